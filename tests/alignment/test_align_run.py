"""Scoring a run again from its folder alone."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from align_case import aligned, answers, labels, rubric, score, verdicts
from aligned import align, align_run

from judgebench.alignment import Alignment
from judgebench.errors import SetupError
from judgebench.models.checkpoints import WEIGHTS
from judgebench.records import Answer, Usage, Verdict
from judgebench.runs.folder import RunFolder
from judgebench.runs.verdict_log import VerdictWriter
from judgebench.studies.reference_labels import TruthConfig

HUMAN = {"ann": "aabbcc", "bob": "abbbca"}


def written(
    path: Path,
    judges: dict[str, list[Verdict]],
    items: list[Answer] | None = None,
    backends: dict[str, Any] | None = None,
) -> RunFolder:
    folder = RunFolder(path)
    folder.path.mkdir(exist_ok=True)
    folder.write_data(rubric(), items or answers(6), labels(HUMAN))
    folder.write_manifest(
        {
            "name": "case",
            "judges": {
                name: {"kind": "control" if name == "random" else "judge", "signature": "s",
                       "about": {"judge": name, **(backends or {}).get(name, {})}}
                for name in judges
            },
            "notes": ["Reading the data: 3 × blank_label."],
        }
    )  # fmt: skip
    for name, found in judges.items():
        with VerdictWriter(folder.verdict_path(name)) as writer:
            for verdict in found:
                writer.write(verdict)
    return folder


def said(judge: str, row: str, **more) -> list[Verdict]:
    return [replace(v, **more) for v in verdicts(judge, row, answers(6)).verdicts.values()]


def same(one: Alignment, two: Alignment) -> bool:
    results = [[row for row in a.results if row.analysis != "usage"] for a in (one, two)]
    return results[0] == results[1]


def statuses(found: Alignment) -> dict[str, float]:
    """How many verdicts of the judge m ended how."""
    rows = found.results.select("verdicts", judge="m")
    return {row.statistic: row.estimate.value for row in rows}


def n_verdicts(found: Alignment) -> float:
    return sum(statuses(found).values())


def test_the_shipped_weights_are_reported_to_be_weak_however_they_are_run(tmp_path: Path) -> None:
    judges = {name: said(name, "aabbcc") for name in ("tiny", "other")}
    sums = {"tiny": WEIGHTS["smollm2"].sha256, "other": "0" * 64}
    backends = {name: {"backend": {"engine": name, "sha256": s}} for name, s in sums.items()}
    found = align_run(written(tmp_path, judges, backends=backends))
    (note,) = [n for n in found.notes if "clinical weight" in n]
    assert note.startswith("tiny runs smollm2, a very small model")


def test_a_run_is_scored_as_its_parts_would_be(tmp_path: Path) -> None:
    folder = written(tmp_path, {"m": said("m", "aab.cc"), "random": said("random", "abcabc")})
    found = align_run(folder, TruthConfig(ties="lower"))
    expected = aligned(HUMAN, {"m": "aab.cc"}, controls={"random": "abcabc"}, ties="lower")
    assert same(found, expected)
    assert found.notes == ("Reading the data: 3 × blank_label.", *expected.notes)
    assert [(judge.name, judge.kind, judge.about) for judge in found.study.judges] == [
        ("m", "judge", {"judge": "m"}), ("random", "control", {"judge": "random"}),
    ]  # fmt: skip
    assert statuses(found) == {"ok": 5, "unparsed": 1}
    assert found.name == "case"
    assert same(found, align_run(folder, TruthConfig(ties="lower")))


def test_the_truth_may_be_made_otherwise_afterwards(tmp_path: Path) -> None:
    folder = written(tmp_path, {"m": said("m", "aabbcc")})
    assert score(align_run(folder, TruthConfig(annotators=("ann",))), "accuracy").value == 1
    assert score(align_run(folder, TruthConfig(annotators=("bob",))), "accuracy").value == (
        pytest.approx(4 / 6)
    )


def test_the_last_attempt_is_the_verdict_and_every_attempt_was_paid_for(tmp_path: Path) -> None:
    first = said("m", "......", usage=Usage(1, 10, 1), cost=0.1)
    second = said("m", "aabbca", usage=Usage(1, 20, None), cost=0.2, attempt=1)
    found = align_run(written(tmp_path, {"m": first + second}))
    assert score(found, "accuracy").n == 6
    assert statuses(found) == {"ok": 6}
    usage = {row.statistic: row.estimate.value for row in found.results.select("usage")}
    assert usage.pop("cost") == pytest.approx(1.8)
    assert usage == {"calls": 12, "prompt_tokens": 180, "completion_tokens": 6}


def test_verdicts_of_other_settings_or_on_older_texts_are_left_out(tmp_path: Path) -> None:
    old = said("m", "cccccc", signature="old")
    good = said("m", "aabbcc")
    items = answers(6)
    items[0] = Answer("i0", "a new text", group="g0")
    found = align_run(written(tmp_path, {"m": good + old}, items))
    assert n_verdicts(found) == 5  # nothing was said of the new text
    accuracy = score(found, "accuracy")
    assert (accuracy.n, accuracy.n_missing) == (5, 0)
    again = replace(good[0], content_hash=items[0].content_hash)
    folder = written(tmp_path / "again", {"m": [again, *good]}, items)
    assert score(align_run(folder), "accuracy").n == 6


def test_a_judge_that_was_not_reached_yet_has_no_numbers(tmp_path: Path) -> None:
    found = align_run(written(tmp_path, {"m": []}))
    assert (score(found, "accuracy").value, n_verdicts(found)) == (None, 0)
    assert found.gaps == ("m: 0 of 6 asked; its numbers are of these.",)


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    folder = written(tmp_path, {"m": said("m", "aabbcc")})
    path = folder.verdict_path("m")
    path.write_bytes(path.read_bytes()[:-9])
    assert n_verdicts(align_run(folder)) == 5


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", None),
        ("run.json", "{}"),
        ("run.json", "{"),
        ("rubric.json", None),
        ("rubric.json", "{}"),
        ("answers.jsonl", None),
        ("answers.jsonl", '{"item": "i0"}\n'),
        ("labels.jsonl", "null\n"),
        ("verdicts-m.jsonl", "{}\n"),
        ("verdicts-m.jsonl", None),
    ],
)
def test_a_damaged_folder_is_a_setup_error(tmp_path: Path, name: str, content) -> None:
    folder = written(tmp_path, {"m": said("m", "aabbcc")})
    path = tmp_path / name
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    if (name, content) == ("verdicts-m.jsonl", None):  # the judge was never asked
        assert n_verdicts(align_run(folder)) == 0
        return
    with pytest.raises(SetupError):
        align_run(folder)


def test_a_label_that_the_rubric_does_not_know_is_told(tmp_path: Path) -> None:
    wrong = replace(said("m", "aabbcc")[0], labels={"harm": "worse"})
    with pytest.raises(SetupError, match="is not a label of harm; found worse"):
        align_run(written(tmp_path, {"m": [wrong]}))


def test_an_alignment_needs_neither_answers_nor_labels_nor_judges() -> None:
    empty = align("x", rubric(), [], [], [])
    assert empty.n_answers == 0
    assert all(
        a.estimate.value is None and a.estimate.reason for a in empty.results.select("agreement")
    )
    judged = align("x", rubric(), [], [], [verdicts("m", "", [])])
    assert all(
        s.estimate.value is None and s.estimate.reason for s in judged.results.select("score")
    )
    json.dumps([str(s.estimate) for s in judged.results.select("score")])
