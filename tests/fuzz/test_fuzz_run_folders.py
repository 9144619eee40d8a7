"""A run folder that was damaged anywhere is refused, or its numbers are those of the sound one."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from fuzz_budget import fuzzed
from hypothesis import given
from hypothesis import strategies as st

import judgebench as jb
from judgebench.runs import run_bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench

ITEMS = 12
SAYS = {"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"}
FILES = ("run.json", "rubric.json", "answers.jsonl", "labels.jsonl", "verdicts-m.jsonl")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    place = tmp_path_factory.mktemp("sound")
    answers = [f"i{i},reply {i}" for i in range(ITEMS)]
    labels = [f"i{i},{who},{'Polite' if i % n else 'Impolite'}"
              for n, who in ((3, "ann"), (4, "ben")) for i in range(ITEMS)]  # fmt: skip
    (place / "answers.csv").write_text("\n".join(["item_id,text", *answers]))
    (place / "labels.csv").write_text("\n".join(["item_id,annotator,politeness", *labels]))
    replies = [
        {"pattern": "reply 1", "text": json.dumps({**SAYS, "politeness": "Impolite"})},
        {"text": json.dumps(SAYS)},
    ]
    (place / "script.jsonl").write_text("\n".join(map(json.dumps, replies)))
    bench = {
        "name": "b", "rubric": "support-tone", "data": ["answers.csv", "labels.csv"],
        "metrics": ["politeness"],
        "judges": [{"name": "m", "backend": f"scripted:{place / 'script.jsonl'}"}],
    }  # fmt: skip
    (place / "bench.yaml").write_text(yaml.safe_dump(bench))
    opened = load_bench(place / "bench.yaml")
    try:
        run_bench.run(opened, RunFolder(place / "run"))
    finally:
        opened.close()
    return place / "run"


def rows(folder: Path) -> str:
    return repr(jb.align(jb.open_run(folder)).results.rows)


Edit = tuple[str, float, float, bytes]


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    """A file, and what stands in the place of a part of it; the part is a share of its length."""
    file = draw(st.sampled_from(FILES))
    start = draw(st.floats(0, 1))
    length = draw(st.sampled_from([0.0, 0.01, 0.5, 1.0]) | st.floats(0, 1))
    new = draw(st.sampled_from([b"", b"\n", b"\0", b"{", b'"', b"Polite", b"1"]) | st.binary())
    return file, start, length, new[:20]


def damage(folder: Path, edit: Edit) -> None:
    file, start, length, new = edit
    content = (folder / file).read_bytes()
    begin = round(start * len(content))
    end = begin + round(length * len(content))
    (folder / file).write_bytes(content[:begin] + new + content[end:])


def copied(sound: Path, folder: Path, damages: Sequence[Edit] = ()) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sound, folder)
    for edit in damages:
        damage(folder, edit)
    return folder


def refused_or_the_same(folder: Path, sound: Path, files: list[str]) -> None:
    """A refusal names one of the files."""
    refused = ""
    try:
        found = rows(folder)
    except jb.SetupError as error:
        refused = str(error)
    assert any(file in refused for file in files) if refused else found == rows(sound)


@given(damages=st.lists(edits(), min_size=1, max_size=3))
@fuzzed(0.2)
def test_other_bytes(sound: Path, tmp_path: Path, damages: list[Edit]) -> None:
    folder = copied(sound, tmp_path / "run", damages)
    refused_or_the_same(folder, sound, [edit[0] for edit in damages])


@given(file=st.sampled_from(FILES), data=st.data())
@fuzzed(0.2)
def test_other_lines(sound: Path, tmp_path: Path, file: str, data: st.DataObject) -> None:
    folder = copied(sound, tmp_path / "run")
    lines = (folder / file).read_bytes().splitlines(keepends=True)
    kept = data.draw(st.lists(st.sampled_from(lines), max_size=len(lines) + 2))
    (folder / file).write_bytes(b"".join(data.draw(st.permutations(lines) | st.just(kept))))
    refused_or_the_same(folder, sound, [file])


@given(file=st.sampled_from(FILES), other=st.sampled_from([*FILES, "", "a folder"]))
@fuzzed(0.2)
def test_other_files(sound: Path, tmp_path: Path, file: str, other: str) -> None:
    folder = copied(sound, tmp_path / "run")
    (folder / file).unlink()
    if other in FILES:
        shutil.copy(sound / other, folder / file)
    elif other:
        (folder / file).mkdir()
    refused_or_the_same(folder, sound, [file])


@given(damages=st.lists(edits(), min_size=1, max_size=2))
@fuzzed(0.04)
def test_a_resumed_run_repairs_its_folder(sound: Path, tmp_path: Path, damages: list[Edit]) -> None:
    folder = copied(sound, tmp_path / "run", damages)
    bench, refused = load_bench(sound.parent / "bench.yaml"), ""
    try:
        run_bench.run(bench, RunFolder(folder))
    except jb.SetupError as error:
        refused = str(error)
    finally:
        bench.close()
    files = [edit[0] for edit in damages]
    assert any(map(refused.__contains__, files)) if refused else rows(folder) == rows(sound)
