import hashlib
import io
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from page_reader import Page
from part_case import make_part

import judgebench as jb
from judgebench.results.documents import write_report

# Little to draw: these tests are about files.
PART = make_part()
BARE = replace(PART, blocks=tuple(b for b in PART.blocks if not b.figures))


@pytest.mark.parametrize("figures", [False, True])
def test_every_file_is_written_and_named(tmp_path: Path, figures: bool) -> None:
    paper = PART.blocks[0].tables or PART.blocks[1].tables
    parts = [replace(PART, paper=paper), replace(BARE, key="stress", own_file=True)]
    written = write_report(parts, tmp_path / "new" / "folder", name="study", figures=figures)
    names = {"html": "report.html", "markdown": "tables.md"}
    assert {names.get(key, key) for key in written} == {
        "report.html", "results.csv", "stress.csv", "tables.md", "latex/main.tex",
        "latex/appendix.tex",
    } | {
        f"plots/alignment_{name}.{kind}"
        for name in ("lanes", "drawing")
        for kind in ("png", "pdf", "svg")
        if figures
    }  # fmt: skip
    folder = tmp_path / "new" / "folder"
    assert {p for p in folder.rglob("*") if p.is_file()} == set(written.values())
    assert all(path.stat().st_size > 0 for path in written.values())
    others = len(written) - 1
    assert repr(written) == f"{folder / 'report.html'} and {others} other files in {folder}"
    rows = pd.read_csv(written["results.csv"], keep_default_na=False)
    stress = pd.read_csv(written["stress.csv"], keep_default_na=False)
    assert rows["part"].value_counts().to_dict() == dict.fromkeys(("alignment", "stress"), 3)
    assert rows[rows["part"] == "stress"].drop(columns="part").values.tolist() == (
        stress.values.tolist()
    )


def test_the_same_parts_give_the_same_files_and_others_replace_them(tmp_path: Path) -> None:
    first = {key: p.read_bytes() for key, p in write_report([BARE], tmp_path, name="a").items()}
    again = {key: p.read_bytes() for key, p in write_report([BARE], tmp_path, name="a").items()}
    assert first == again
    written = write_report([BARE], tmp_path, name="another")
    assert "another" in written["html"].read_text(encoding="utf-8")


def test_a_file_that_cannot_be_replaced_leaves_nothing_half_written(tmp_path: Path) -> None:
    before = write_report([BARE], tmp_path)["results.csv"].read_bytes()
    (tmp_path / "report.html").unlink()
    (tmp_path / "report.html").mkdir()
    (tmp_path / "report.html" / "kept").write_text("kept")
    with pytest.raises(OSError, match=r"report\.html"):
        write_report([BARE], tmp_path)
    assert (tmp_path / "results.csv").read_bytes() == before
    assert (tmp_path / "report.html" / "kept").read_text() == "kept"
    assert not list(tmp_path.rglob("*.tmp"))


def test_lone_surrogates_can_be_written(tmp_path: Path) -> None:
    written = write_report([BARE], tmp_path, name="a\ud800b")
    assert "a\ufffdb" in written["markdown"].read_text(encoding="utf-8")


LABELS = "item,annotator,tone\n1,Ann,mild\n1,Ben,mild\n2,Ann,rude\n2,Ben,mild\n"
VERDICTS = "item,judge,tone\n1,my-judge,mild\n2,my-judge,rude\n"


def test_a_page_names_its_files_and_the_command_that_made_it(
    call: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("labels.csv").write_text(LABELS)
    Path("verdicts.csv").write_text(VERDICTS)
    code, *_ = call("report", "labels.csv", "verdicts.csv", "--order", "mild < rude", "--to", "out")
    assert code == 0
    words = " ".join(Page(Path("out/report.html").read_text("utf-8")).words.split())
    digest = hashlib.sha256(LABELS.encode()).hexdigest()[:12]
    assert f"On {date.today()} with judgebench {jb.__version__}, from labels.csv" in words
    assert f"labels.csv (SHA-256 {digest}…), verdicts.csv (SHA-256" in words
    again = "judgebench report labels.csv verdicts.csv --order 'mild < rude' --to out"
    assert f"The same again: {again}" in words


def test_a_page_of_data_frames_says_so_and_names_no_command(tmp_path: Path) -> None:
    labels, verdicts = (pd.read_csv(io.StringIO(text)) for text in (LABELS, VERDICTS))
    study = jb.study(labels, verdicts, columns={"order": "mild < rude"})
    page = jb.report(study, tmp_path)["html"].read_text("utf-8")
    assert "labels (a DataFrame, which has no hash)" in page
    assert "The same again" not in page
