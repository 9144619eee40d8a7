"""Every kind of damage to a file of a run folder that numbers depend on is noticed, and named."""

import json
import shutil
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from loopback import Loopback, is_few_words, said, status
from scripted_judges import Listener

import judgebench as jb
from judgebench.errors import DamagedRun
from judgebench.reporting import analyse, parts
from judgebench.results.documents import part_csv, to_markdown
from judgebench.runs import run_bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench

ITEMS = 12
SAYS = {"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"}
FILES = ["run.json", "rubric.json", "answers.jsonl", "labels.jsonl"]
# Of a judge, a jury and a control, which are read alike: each damage befalls one of them, in turn.
VERDICTS = ["verdicts-good.jsonl", "verdicts-both.jsonl", "verdicts-prior.jsonl"]
Damage = Callable[[Path, Path], object]


def _lines(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def _directory(path: Path, _: Path) -> None:
    path.unlink()
    path.mkdir()


def _one_byte(path: Path, _: Path) -> None:
    """A letter in a text near the middle, so that the file stays JSON."""
    content = bytearray(path.read_bytes())
    at = next(i for i in range(len(content) // 2, len(content)) if chr(content[i]).isalpha())
    content[at] ^= 1
    path.write_bytes(content)


def _loop(path: Path, _: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)  # opening it fails for every user, unlike a file without permissions


DAMAGES: dict[str, Damage] = {
    "deleted": lambda path, _: path.unlink(),
    "empty": lambda path, _: path.write_bytes(b""),
    "halved at a line": lambda path, _: _lines(path, lambda lines: lines[: len(lines) // 2]),
    "halved in a line": lambda path, _: path.write_bytes(
        path.read_bytes()[: path.stat().st_size // 2 + 7]
    ),
    "a directory": _directory,
    "a byte changed": _one_byte,
    "a bad byte": lambda path, _: path.write_bytes(
        path.read_bytes()[:14] + b"\xff" + path.read_bytes()[15:]
    ),
    "lines swapped": lambda path, _: _lines(path, lambda lines: [*lines[1:], lines[0]]),
    "a line doubled": lambda path, _: _lines(path, lambda lines: [lines[0], *lines]),
    "of another run": lambda path, other: shutil.copy(other / path.name, path),
    "unreadable": _loop,
}


CASES = [
    (file, damage)
    for n, damage in enumerate(DAMAGES)
    for file in (*FILES, VERDICTS[n % 3])
    if (file, damage) != ("rubric.json", "of another run")  # which is the same
]


def _write_bench(place: Path, name: str, politeness: str) -> Path:
    place.mkdir()
    rows = [f"i{i},Is this reply {i} fine?,reply {i} of {name}" for i in range(ITEMS)]
    (place / "answers.csv").write_text("\n".join(["item_id,question,text", *rows]) + "\n")
    rows = [
        f"i{i},{who},{'Polite' if i % 3 else 'Impolite'}"
        for i in range(ITEMS)
        for who in (f"ann of {name}", "ben")
    ]
    (place / "labels.csv").write_text("\n".join(["item_id,annotator,politeness", *rows]) + "\n")
    reply = json.dumps({**SAYS, "politeness": politeness})
    (place / "script.jsonl").write_text(json.dumps({"text": reply}) + "\n")
    good = {"name": "good", "backend": f"scripted:{place / 'script.jsonl'}"}
    bench = {
        "name": name, "rubric": "support-tone", "data": ["answers.csv", "labels.csv"],
        "metrics": ["politeness"], "judges": [good, {"name": "both", "jury": ["good", "random"]}],
        }  # fmt: skip
    (place / "bench.yaml").write_text(yaml.safe_dump(bench))
    return place / "bench.yaml"


def _run(bench_file: Path, folder: Path) -> list[str]:
    """Run it; what was said meanwhile."""
    bench, listener = load_bench(bench_file), Listener()
    try:
        run_bench.run(bench, RunFolder(folder), progress=listener)
    finally:
        bench.close()
    return listener.heard


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two finished runs, `mine` and `other`."""
    place = tmp_path_factory.mktemp("damaged")
    for name, says in (("mine", "Polite"), ("other", "Impolite")):
        _run(_write_bench(place / f"bench of {name}", name, says), place / name)
    return place


@pytest.fixture
def damaged(runs: Path, tmp_path: Path) -> Callable[[str, str], Path]:
    """Copies `mine` and damages a file of the copy."""

    def copied(file: str, damage: str) -> Path:
        run = tmp_path / "run"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(runs / "mine", run)
        DAMAGES[damage](run / file, runs / "other")
        return run

    return copied


# --- refused -------------------------------------------------------------------------------------


def _commands(run: Path, sound: Path) -> Iterable[list[object]]:
    yield ["align", run]
    yield ["report", run, "--to", run.parent / "report"]
    yield ["decide", run]
    yield from (["compare", run, sound], ["compare", sound, run])


@pytest.mark.parametrize(("file", "damage"), CASES)
def test_every_damage_is_refused_by_name(file: str, damage: str, damaged, call) -> None:  # type: ignore[no-untyped-def]
    run = damaged(file, damage)
    code, out, err = call("align", run)
    assert (code, out) == (2, "")
    assert file in err or damage == "of another run"  # whose run.json knows none of the files
    told = "is a link" if damage == "unreadable" else "again in the same run folder"
    assert told in err or file == "run.json"
    assert "Traceback" not in err
    assert not (run / "report").exists()


def test_every_command_refuses(damaged, runs: Path, call) -> None:  # type: ignore[no-untyped-def]
    run = damaged("labels.jsonl", "halved at a line")
    for command in _commands(run, runs / "mine"):
        code, out, err = call(*command)
        assert (code, out) == (2, ""), command
        told = "was changed after the run; the run wrote 24 labels, it holds 12; to repair it, run "
        assert f"error: {run}/labels.jsonl: {told}`judgebench run BENCH` (or `stress`, " in err
    assert not (run.parent / "report").exists()
    with pytest.raises(DamagedRun, match="wrote 24 labels, it holds 12"):
        jb.open_run(run)


def test_all_damage_is_reported_together(damaged, runs: Path, call) -> None:  # type: ignore[no-untyped-def]
    run = damaged("labels.jsonl", "deleted")
    DAMAGES["a directory"](run / "verdicts-good.jsonl", run)
    DAMAGES["a byte changed"](run / "answers.jsonl", run)
    (run / "attacks.jsonl").write_text('{"item_id":"i0"}\n')
    _, _, err = call("align", run)
    assert [line.split("; to repair")[0] for line in err.splitlines()] == [
        f"error: {run}/answers.jsonl: was changed after the run; the run wrote 12 answers, it holds"
        " 12",
        f"error: {run}/labels.jsonl: is missing; the run wrote 24 labels",
        f"error: {run}/verdicts-good.jsonl: cannot be read (Is a directory); the run wrote 12 "
        "verdicts",
        f"error: {run}/attacks.jsonl: was put here after the run",
    ]


# --- repaired ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "damage"),
    [c for c in CASES if c[1] in ("deleted", "empty", "halved in a line", "a bad byte")],
)
def test_a_resumed_run_repairs_its_folder_and_says_so(
    file: str,
    damage: str,
    damaged,  # type: ignore[no-untyped-def]
    runs: Path,
) -> None:
    run = damaged(file, damage)
    heard = _run(runs / "bench of mine" / "bench.yaml", run)
    if (file, damage) != ("run.json", "deleted"):  # of which nothing is known then
        assert [line for line in heard if file in line]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = jb.open_run(run)
    assert not again.unfinished
    if (file, damage) != ("run.json", "deleted"):
        assert [said for said in again.gaps if said.startswith(file)]
    before, after = ({j.name: j for j in r.judges} for r in (jb.open_run(runs / "mine"), again))
    for name, judge in before.items():
        assert {k: v.labels for k, v in judge.verdicts.items()} == {
            k: v.labels for k, v in after[name].verdicts.items()
        }


@pytest.mark.filterwarnings("ignore:verdicts-good")
def test_verdicts_of_a_changed_file_count_and_every_report_says_so(damaged, runs: Path) -> None:  # type: ignore[no-untyped-def]
    run = damaged("verdicts-good.jsonl", "a line doubled")
    heard = _run(runs / "bench of mine" / "bench.yaml", run)
    told = "was changed after the run; the run wrote 12 verdicts, it holds 13"
    does = "its verdicts count as they stand, and what it lacks is asked for again"
    assert f"{run}/verdicts-good.jsonl: {told}; {does}" in heard
    note = f"verdicts-good.jsonl was not as the run had left it ({told}): {does}."
    for _ in range(2):  # also after a further run, which finds nothing
        assert note in jb.open_run(run).gaps
        _run(runs / "bench of mine" / "bench.yaml", run)
    (run / "verdicts-good.jsonl").unlink()
    _run(runs / "bench of mine" / "bench.yaml", run)
    (gap,) = jb.open_run(run).gaps
    assert gap.startswith(note)
    assert gap.endswith(f"(is missing; the run wrote 13 verdicts): {does}.")


def test_what_was_repaired_stands_under_every_table_and_in_json(damaged, runs: Path, call) -> None:  # type: ignore[no-untyped-def]
    run = damaged("verdicts-good.jsonl", "a byte changed")
    _run(runs / "bench of mine" / "bench.yaml", run)
    told = (
        "verdicts-good.jsonl was not as the run had left it (was changed after the run; the run "
        "wrote 12 verdicts, it holds 12): its verdicts count as they stand, and what it lacks is "
        "asked for again. "
        "verdicts-good.jsonl: 1 damaged line is now in verdicts-good.jsonl.damaged; what it judged "
        "is asked again."
    )
    for command in ["align", "decide"]:
        for option in ([], ["--verbose"], ["--json"]):
            with pytest.warns(UserWarning, match="1 damaged line"):
                code, out, _ = call(command, run, *option)
            assert code == 0
            said = json.loads(out)["notes"] if option == ["--json"] else " ".join(out.split())
            assert told in said, (command, option)
    with pytest.warns(UserWarning, match="1 damaged line"):
        study = jb.open_run(run)
    for part in parts(analyse(study)):
        tables = [*part.paper, *(t for b in (*part.blocks, *part.screen) for t in b.tables)]
        assert [t.key for t in tables if told not in t.notes] == []
        assert all(told in line for line in part_csv(part).splitlines()[1:])
        assert told in to_markdown([part], "")


def test_damaged_lines_are_put_aside(damaged, runs: Path) -> None:  # type: ignore[no-untyped-def]
    run = damaged("verdicts-good.jsonl", "a bad byte")
    heard = _run(runs / "bench of mine" / "bench.yaml", run)
    told = "verdicts-good.jsonl: 1 damaged line is now in verdicts-good.jsonl.damaged"
    assert f"{told}; what it judged is asked again" in heard
    assert (run / "verdicts-good.jsonl.damaged").read_bytes().count(b"\n") == 1
    assert (run / "verdicts-good.jsonl").read_bytes().count(b"\n") == ITEMS


def test_a_damaged_manifest_vouches_for_no_file(damaged, runs: Path) -> None:  # type: ignore[no-untyped-def]
    run = damaged("run.json", "a byte changed")
    for name in ("good", "prior"):
        DAMAGES["a bad byte"](run / f"verdicts-{name}.jsonl", run)
    _run(runs / "bench of mine" / "bench.yaml", run)
    with pytest.warns(UserWarning, match=r"run\.json was not as the run had left it"):
        assert [len(judge.verdicts) for judge in jb.open_run(run).judges] == [ITEMS] * 7


def test_zeros_that_a_power_cut_left_are_put_aside(damaged, runs: Path) -> None:  # type: ignore[no-untyped-def]
    run = damaged("verdicts-good.jsonl", "halved at a line")
    with (run / "verdicts-good.jsonl").open("ab") as file:
        file.write(b"\0" * 400 + b"\n")
    folder = RunFolder(run)
    folder.write_manifest(folder.manifest(), "running")
    heard = _run(runs / "bench of mine" / "bench.yaml", run)
    told = "verdicts-good.jsonl: 1 damaged line is now in verdicts-good.jsonl.damaged"
    assert [line for line in heard if told in line]
    with pytest.warns(UserWarning, match=told):
        study = jb.open_run(run)
    assert len(study.judges[3].verdicts) == ITEMS


# --- unfinished ----------------------------------------------------------------------------------


def test_an_unfinished_run_is_announced_with_what_it_lacks(damaged, call) -> None:  # type: ignore[no-untyped-def]
    run = damaged("verdicts-good.jsonl", "halved at a line")
    folder = RunFolder(run)
    folder.write_manifest(folder.manifest(), "running")  # as of a killed process
    said = (
        "good: 6 of 12 asked; its numbers are of these.",
        "This run is unfinished: the same command,",
    )
    with pytest.warns(UserWarning, match=" given again, goes on with it.$"):
        code, out, _ = call("align", run)
    assert code == 0
    assert all(sentence in out.replace("\n", " ") for sentence in said)


def test_damage_to_the_data_of_an_unfinished_run_is_refused(damaged, call) -> None:  # type: ignore[no-untyped-def]
    run = damaged("verdicts-good.jsonl", "halved at a line")
    folder = RunFolder(run)
    folder.write_manifest(folder.manifest(), "running")
    DAMAGES["halved at a line"](run / "labels.jsonl", run)
    code, _, err = call("align", run)
    assert code == 2
    assert "labels.jsonl: was changed after the run" in err
    assert "verdicts-good" not in err


@pytest.mark.parametrize("lost", [["seal"], ["seal", "files"]])
def test_a_manifest_that_lost_its_seal_is_damaged(damaged, call, lost: list[str]) -> None:  # type: ignore[no-untyped-def]
    run = damaged("labels.jsonl", "lines swapped")
    manifest = json.loads((run / "run.json").read_text())
    for key in lost:
        del manifest[key]
    (run / "run.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
    code, out, err = call("align", run)
    assert (code, out) == (2, "")
    assert "run.json: was changed after the run; to repair it, run" in err


# --- endings -------------------------------------------------------------------------------------


def test_a_model_without_a_verdict_fails_the_run(tmp_path: Path, call, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    bench = _write_bench(tmp_path / "b", "mine", "Polite")

    def script(body: Any, count: int) -> Any:
        return said("An example.") if is_few_words(body) else status(400)

    with Loopback(script) as server:
        settings = {"base_url": server.base_url, "max_retries": 0}
        remote = {"name": "remote", "backend": "openai-compatible:m", "settings": settings}
        changes = {"judges": [remote], "controls": False}
        bench.write_text(yaml.safe_dump({**yaml.safe_load(bench.read_text()), **changes}))
        code, out, err = call("run", bench, "--run", tmp_path / "run", "--limit", "4")
    assert code == 1
    assert "Report: " in out
    told = "failed: remote: no verdict could be read (4 failed); the first: "
    assert [line for line in err.splitlines() if line.startswith(told)]
