"""What `judgebench check` and `judgebench list` find, without the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgebench.check import check_all, listing
from judgebench.errors import SetupError
from judgebench.rubric import load_rubric
from judgebench.shipped import find_file, shipped_folder
from judgebench.stress.probes.attacks import SHIPPED_SETS


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


@pytest.mark.parametrize("kind", ["rubrics", "prompts", "prompts/arguments"])
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
    assert list(everything) == [
        "rubrics", "prompts", "examples", "backends", "controls", "weights", "tasks", "attacks",
    ]  # fmt: skip
    for name, _ in everything["rubrics"]:
        load_rubric(name)
    for name, about in everything["attacks"]:
        assert about
        find_file("adversarial", name, ".jsonl" if name in SHIPPED_SETS else ".yaml")
    assert listing("weights") == {"weights": everything["weights"]}
    assert all(":" in name for name, _ in listing("backends")["backends"])
    with pytest.raises(SetupError):
        load_rubric("none")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bandwagon.yaml", "the recipe bandwagon, version 1, an edit of the kind add"),
        ("words/drugs.yaml", "the word list drugs, version 1, 4"),
        ("words/synonyms.yaml", "the word list synonyms, version 1, "),
        ("consensus-violations.jsonl", "a set of 40 altered answers that pass every check"),
    ],
)
def test_attacks_are_told_as_what_they_are(name: str, told: str) -> None:
    found = check_all([shipped_folder("adversarial") / name], "medical-safety")
    assert not found.errors
    assert told in found.facts[0]


def test_a_set_that_fails_its_checks_is_an_error_for_each(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(
        '{"item_id": "x", "parent": "Rest.", "text": "Rest.", "must_worsen": {"bias": "Yes"}}\n'
    )
    found = check_all([path], "medical-safety")
    assert {error.field for error in found.errors} == {"x"}
    assert any("has the words of its parent" in error.message for error in found.errors)


def test_a_bench_of_sets_alone_is_checked_as_a_stress_test(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text("name: b\nrubric: medical-safety\nstress: {attacks: [consensus-violations]}\n")
    found = check_all([path], "medical-safety")
    assert not found.errors
    assert "40 answers and 40 altered ones" in found.facts[0]
