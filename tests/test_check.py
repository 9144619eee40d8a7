"""What `judgebench check` and `judgebench list` find, without the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgebench.check import check_all, listing
from judgebench.errors import SetupError
from judgebench.rubric import load_rubric
from judgebench.shipped import shipped_folder


def test_data_files_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("item_id,text\na,Hello.\n")
    (tmp_path / "labels.csv").write_text("item_id,annotator,politeness\na,ann,Polite\n")
    files = [tmp_path / "labels.csv", tmp_path / "answers.csv"]
    found = check_all(files, "support-tone")
    assert found.errors == found.warnings == []
    assert found.facts[0].startswith("1 answers, 1 human labels, 0 blank cells")
    assert "  ann: 1 labels" in found.facts


def test_one_bad_file_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "judge.yaml").write_text("name: a b\nbackend: what:ever\nmode: both\n")
    (tmp_path / "jury.yaml").write_text("name: j\njury: [a]\n")
    (tmp_path / "other.yaml").write_text("colour: red\n")
    (tmp_path / "prompt.jinja").write_text("{% block user %}{{ nobody }}{% endblock %}")
    names = ("judge.yaml", "jury.yaml", "other.yaml", "prompt.jinja", "none.csv", "none.yaml")
    found = check_all([tmp_path / name for name in names], "support-tone")
    told = [str(problem).replace(f"{tmp_path}/", "") for problem in found.errors]
    for start in (
        "judge.yaml:1: name:", "judge.yaml:2: backend:", "judge.yaml:3: mode:", "jury.yaml:2: jury",
        "other.yaml: is none of: judge", "prompt.jinja", "none.csv", "none.yaml: no such file",
    ):  # fmt: skip
        assert any(line.startswith(start) for line in told), (start, told)
    assert found.facts[0].startswith("0 answers, 0 human labels")


def test_an_unknown_rubric_is_told_and_nothing_is_raised(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("item_id,text\na,Hello.\n")
    (problem,) = check_all([tmp_path / "answers.csv"], "no-such-rubric").errors
    assert "support-tone" in str(problem)


@pytest.mark.parametrize("kind", ["rubrics", "prompts"])
def test_everything_that_ships_passes(kind: str) -> None:
    files = sorted(p for p in shipped_folder(kind).glob("*.*") if p.suffix != ".md")
    found = check_all(files, "support-tone")
    assert found.errors == []
    assert len(found.facts) == len(files) >= 3


def test_judges_in_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "judge.yaml").write_text("name: a\nbackend: litellm:openai/gpt-4o\n")
    (tmp_path / "jury.yaml").write_text("name: j\njury: [a, b]\n")
    (tmp_path / "calibrated.yaml").write_text("name: c\ncalibrate: a\n")
    names = ("judge.yaml", "jury.yaml", "calibrated.yaml")
    found = check_all([tmp_path / name for name in names], "support-tone")
    assert [fact.rpartition(": ")[2] for fact in found.facts] == [
        "the judge a", "the jury j", "the calibrated judge c, from verdicts of a",
    ]  # fmt: skip


def test_the_listing_names_what_can_be_used() -> None:
    everything = listing()
    kinds = ["rubrics", "prompts", "examples", "backends", "controls", "weights"]
    assert list(everything)[: len(kinds)] == kinds
    for name, _ in everything["rubrics"]:
        load_rubric(name)
    assert listing("weights") == {"weights": everything["weights"]}
    assert all(":" in name for name, _ in listing("backends")["backends"])
    with pytest.raises(SetupError):
        load_rubric("none")
