"""Judges that follow from a score: out of fold, with controls fitted the same way."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from study_case import SCORERS, write_notes

import judgebench as jb
from judgebench.decisions.conditions import SCORE
from judgebench.errors import JudgesStopped
from judgebench.learning.learnt import material_of
from judgebench.progress import NoProgress
from judgebench.records import Answer
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Budget, Interrupted, Stop, Work
from judgebench.runs.load import load_bench
from judgebench.scorers.config import ScorerConfig
from judgebench.scorers.judges import LabelThresholds
from judgebench.scorers.scorer import AnswerScorer, KeptScores, Scored, baseline
from judgebench.studies.answers import indexed
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import JudgeVerdicts

GOOD = "judges:\n  - {name: judge, scorer: column, from: good, fit: {metric: omission}}"
FITTED = {"length-fitted", "question-overlap-fitted", "random-number-fitted"}


def judges_of(study: jb.Study) -> dict[str, JudgeVerdicts]:
    return {judge.name: judge for judge in study.judges}


def learnt(run: Path, name: str = "judge") -> dict[str, bytes]:
    """What was learnt, by fold."""
    (home,) = (run / "scorers" / name).iterdir()
    return {path.parent.name: path.read_bytes() for path in home.glob("*/cuts.json")}


def test_a_score_becomes_a_judge(tmp_path: Path) -> None:
    bench, columns = write_notes(tmp_path, GOOD)
    found = judges_of(jb.run(bench, tmp_path / "run"))
    verdicts = found["judge"].verdicts
    assert found["judge"].kind == "judge"
    # Higher is better: turned, so that more is more severe, and its labels rise with it.
    assert [verdicts[f"n{i}"].score for i in range(120)] == (-columns["good"]).tolist()
    truth = [sorted(row)[1] for row in columns["omission"].tolist()]
    severities = ["None", "Some", "Much", "Most"]

    def right(name: str) -> int:
        said = found[name].verdicts
        labels = [severities.index(said[f"n{i}"].labels["omission"]) for i in range(120)]
        return sum(a == b for a, b in zip(labels, truth, strict=True))

    assert right("judge") > max(map(right, FITTED)) + 5
    one = verdicts["n0"]
    assert set(one.labels) == {"omission"}
    assert one.probabilities is not None
    assert sum(one.probabilities["omission"].values()) == pytest.approx(1)
    assert {name for name, judge in found.items() if judge.kind == "control"} >= FITTED


def test_nothing_is_learnt_from_what_is_judged(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, GOOD, questions=12)
    jb.run(bench, tmp_path / "one")
    before = learnt(tmp_path / "one")
    with (tmp_path / "labels.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    rows = [
        [*row[:2], "Most", row[3]] if row[0] in {"n0", "n1", "n2", "n3"} else row for row in rows
    ]
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    jb.run(bench, tmp_path / "two")
    same = [fold for fold, made in learnt(tmp_path / "two").items() if made == before[fold]]
    assert len(same) == 1  # the fold that judges these four


def test_without_a_score_there_is_no_label_but_a_reason(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, GOOD.replace("good", "gappy"))
    verdicts = judges_of(jb.run(bench, tmp_path / "run"))["judge"].verdicts
    none = {item: v for item, v in verdicts.items() if not v.labels}
    assert set(none) == {f"n{i}" for i in range(0, 120, 5)}
    told = {(v.status.value, v.reason, v.score) for v in none.values()}
    assert told == {("unparsed", "the column gappy is blank", None)}


def test_it_is_fitted_once(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, SCORERS + GOOD, questions=10)
    jb.run(bench, tmp_path / "run")
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*.jsonl")}
    jb.run(bench, tmp_path / "run")
    assert {p: p.read_bytes() for p in (tmp_path / "run").rglob("*.jsonl")} == before


def slow(then: Callable[[], None], asked: list[str]) -> AnswerScorer:
    """The length, two answers at a time; `asked` are those that it scored."""
    length = baseline(ScorerConfig(scorer="length"))

    def score_one(answer: Answer) -> Scored:
        asked.append(answer.item_id)
        if len(asked) % 2 == 0:
            then()
        return length.score_one(answer)

    return replace(length, score_one=score_one, at_once=2)


def test_stopped_while_it_learns_it_goes_on_with_the_scores_it_has(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, GOOD, questions=6)
    loaded = load_bench(bench)
    answers = indexed(list(loaded.answers))
    rubric = loaded.rubric.only(["omission"])
    train = material_of(rubric, answers, loaded.dataset.labels, TruthConfig(), 5).training(
        np.arange(24)
    )
    work = Work(RunFolder(tmp_path), NoProgress(), Budget(None), Stop())
    first: list[str] = []
    with pytest.raises(Interrupted):
        LabelThresholds(KeptScores(slow(work.stop, first), tmp_path), rubric).fit(
            train, tmp_path, work
        )
    assert first == ["n0", "n1"]
    assert not (tmp_path / "cuts.json").exists()
    second: list[str] = []
    kept = KeptScores(slow(lambda: None, second), tmp_path)
    LabelThresholds(kept, rubric).fit(train, tmp_path, replace(work, stop=Stop()))
    assert second == [f"n{i}" for i in range(2, 24)]
    assert (tmp_path / "cuts.json").exists()


@pytest.mark.parametrize(
    ("judges", "more", "controls"),
    [
        (GOOD, "", FITTED),
        (GOOD, "controls: false", set()),
        (f"{GOOD}\n  - {{name: words, scorer: length, fit: {{metric: omission}}}}", "",
         FITTED - {"length-fitted"} | {"words"}),
        (f"{GOOD}\n  - {{name: words, scorer: length, fit: {{metric: hallucination}}}}", "",
         FITTED | {"words"}),
        ("judges:\n  - {name: words, scorer: length, fit: {metric: omission}}", "", {"words"}),
        (f"scorers: [length]\n{GOOD}", "", FITTED),
    ],
)  # fmt: skip
def test_controls_are_fitted_the_same_way(tmp_path, judges, more, controls) -> None:
    bench, _ = write_notes(tmp_path, judges, questions=10, more=more)
    study = jb.run(bench, tmp_path / "run")
    found = {
        judge.name: sorted(next(iter(judge.verdicts.values())).labels)
        for judge in study.judges
        if judge.kind == "control" and (judge.about or {}).get("judge") == "learnt"
    }
    assert set(found) == controls
    assert all(found[name] == ["omission"] for name in controls & FITTED)


def test_several_metrics_each_have_their_own_direction(tmp_path: Path) -> None:
    bench, columns = write_notes(tmp_path, GOOD.replace("omission", "[omission, hallucination]"))
    with (tmp_path / "labels.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    # Somebody makes things up where nothing is left out.
    rows = [[*r[:3], "Some" if columns["good"][int(r[0][1:])] > 2 else "None"] for r in rows]
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    study = jb.run(bench, tmp_path / "run")
    cuts = [json.loads(made) for made in learnt(tmp_path / "run").values()]
    assert {(c["omission"]["sign"], c["hallucination"]["sign"]) for c in cuts} == {(-1.0, 1.0)}
    verdicts = judges_of(study)["judge"].verdicts
    made_up = np.array([verdicts[f"n{i}"].labels["hallucination"] == "Some" for i in range(120)])
    assert sum(made_up == (columns["good"] > 2)) >= 117  # a cut lies between two other answers


def test_the_score_is_the_signal_of_triage(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, GOOD, questions=15)
    (curve,) = jb.decide(jb.run(bench, tmp_path / "run")).curves
    assert (curve.judge, curve.metric) == ("judge", "omission")
    assert curve.signal == SCORE == "score, more being more severe"


def test_an_altered_answer_is_scored_and_judged_by_the_fold_of_its_parent(tmp_path: Path) -> None:
    attacking = pytest.importorskip("judgebench.stress_tests.make")
    words = "  - {name: words, scorer: length, fit: {metric: omission}}"
    more = "stress: {attacks: [greeting]}"
    bench, _ = write_notes(tmp_path, f"{GOOD}\n{words}", questions=10, more=more)
    run = tmp_path / "run"
    jb.run(load_bench(bench, extend=attacking.StressExtension()), run)
    said = {}
    for name in ("judge", "words"):
        lines = map(json.loads, (run / f"verdicts-{name}.jsonl").open())
        said[name] = {verdict["item_id"]: verdict for verdict in lines}
    cut = {fold: json.loads(made) for fold, made in learnt(run, "words").items()}
    altered = [json.loads(line) for line in (run / "attacks.jsonl").open()]
    assert altered
    for line in altered:
        parent, one = said["words"][line["parent_id"]], said["words"][line["item_id"]]
        assert abs(one["score"]) > abs(parent["score"])
        assert abs(one["score"]) == len(line["text"].split())
        same = [c for c in cut.values() if _label(c, one["score"]) == one["labels"]["omission"]]
        assert same
        column = said["judge"][line["item_id"]]
        assert (column["status"], column["reason"]) == (
            "unparsed", "the column good is not about this text"
        )  # fmt: skip


def _label(cuts: dict, score: float) -> str:
    above = sum(cut < score for cut in cuts["omission"]["cuts"])
    return ["None", "Some", "Much", "Most"][above]


def test_a_column_is_fitted_where_no_text_is_given(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, GOOD, questions=10)
    (tmp_path / "layout.yaml").write_text(
        "tables:\n"
        "  - file: answers.csv\n"
        "    columns: {item_id: item, question: question, good: kept, system: ignored,\n"
        "              text: ignored, twin: ignored, noise: ignored, gappy: ignored}\n"
    )
    bench.write_text(bench.read_text().replace("answers.csv", "layout.yaml"))
    found = judges_of(jb.run(bench, tmp_path / "run"))
    assert all(verdict.labels for verdict in found["judge"].verdicts.values())
    assert not FITTED & set(found)  # nothing that they could read


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    judges = """
judges:
  - {name: a, scorer: column, from: good, fit: {metric: [tone, omission]}}
  - {name: b, scorer: column, from: good, fit: {metric: omission, folds: 20}}
  - {name: c, scorer: column, from: grace, fit: {metric: kind}}
"""
    bench, _ = write_notes(tmp_path, judges, questions=4)
    rubric = (tmp_path / "notes.yaml").read_text()
    kind = "  - {id: kind, title: Kind, question: Which one, kind: nominal, labels: [A, B, C]}\n"
    (tmp_path / "notes.yaml").write_text(rubric + kind)
    (tmp_path / "labels.csv").write_text(
        (tmp_path / "labels.csv").read_text().replace("\n", ",A\n").replace("ation,A", "ation,kind")
    )
    said = [str(problem).removeprefix(f"{bench}: ") for problem in jb.check([bench]).errors]
    assert said == [
        "judges.c.from: is no column that the data keeps; give it the role `kept` in a layout.yaml"
        "; found grace; allowed: gappy, good, noise, twin",
        "judges.a.fit.metric: is no metric of answers whose labels have an order; found tone; "
        "allowed: omission, hallucination",
        "judges.b.fit.folds: is more than the 4 groups of questions that share no answer; found 20",
        "judges.c.fit.metric: is no metric of answers whose labels have an order; found kind; "
        "allowed: omission, hallucination",
    ]


def test_scorer_and_fit_of_a_judge_are_both_read(tmp_path: Path) -> None:
    judges = """
judges:
  - {name: a, scorer: rouge-l, fit: omission}
  - {name: b, scorer: rouge-l, stem: true, fit: {metric: omission, folds: 1}}
  - {name: c, scorer: rouge-l, fit: }
"""
    bench, _ = write_notes(tmp_path, judges)
    said = [str(problem).removeprefix(str(bench)) for problem in jb.check([bench]).errors]
    assert [problem.split(";")[0].split(": ", 1)[1] for problem in said] == [
        "fit: must hold a mapping", "fit.folds: must be greater than or equal to 2",
        "stem: is not a known key", "fit.metric: Field required",
    ]  # fmt: skip


def test_too_few_labels_are_said_before_anything_is_scored(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, GOOD, questions=6)
    text = (tmp_path / "labels.csv").read_text()
    for label in ("Some", "Much", "None"):
        text = text.replace(f",{label},", ",Most,")
    (tmp_path / "labels.csv").write_text(text)
    (one,) = map(str, jb.check([bench]).errors)
    assert "judges.judge.rubric.omission: has one human label only: learning needs two" in one


def test_a_column_of_blanks_cannot_be_fitted(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, GOOD.replace("good", "gappy"), questions=6)
    with (tmp_path / "answers.csv").open(newline="") as file:
        rows = [*csv.reader(file)]
    blank = [[*row[:-1], ""] for row in rows[1:-1]]
    last = [*rows[-1][:-1], "0.5"]  # which nobody labelled
    with (tmp_path / "answers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([rows[0], *blank, last])
    labels = (tmp_path / "labels.csv").read_text().splitlines(keepends=True)
    kept = (line for line in labels if not line.startswith(f"{last[0]},"))
    (tmp_path / "labels.csv").write_text("".join(kept))
    with pytest.raises(
        JudgesStopped, match="omission: no answer to learn from has a score and a hum"
    ):
        jb.run(bench, tmp_path / "run")
