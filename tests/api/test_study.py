"""`jb.study`: whatever shape labels and verdicts come in, it is the same study."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from python_api import METRICS, rubric

import judgebench as jb
from judgebench.alignment.raters import AGREEMENT_STATISTICS

TONES = ["Friendly", "Curt", "Rude"]
TONE = jb.Rubric.from_labels({"tone": TONES})
LABELS = pd.DataFrame(
    {
        "item_id": ["a", "a", "b", "b", "c", "c"],
        "annotator": ["Ann", "Bob"] * 3,
        "tone": ["Friendly", "Curt", "Rude", "Rude", "Curt", None],
    }
)
VERDICTS = pd.DataFrame({"item_id": ["a", "b"], "judge": "m", "tone": ["Friendly", "Rude"]})
JUDGED = pd.DataFrame({"item_id": ["a", "b", "c"], "judge": "m", "tone": TONES})


def tables(place: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    return tuple(pd.read_csv(place / f"{n}.csv") for n in ("labels", "verdicts", "answers"))  # type: ignore[return-value]


def long(frame: pd.DataFrame, who: str) -> pd.DataFrame:
    return frame.melt(["item_id", who], METRICS, "metric", "label")


def judge(study: jb.Study) -> Any:
    (found,) = (judge for judge in study.judges if judge.kind == "judge")
    return found


def same_study(a: jb.Study, b: jb.Study) -> None:
    assert [answer.item_id for answer in a.answers] == [answer.item_id for answer in b.answers]
    assert (a.clusters.codes == b.clusters.codes).all()
    assert a.n_labels == b.n_labels
    for metric in a.rubric.metrics:
        one, other = a.humans[metric.id], b.humans[metric.id]
        assert (one.truth == other.truth).all()
        assert (one.ratings.values == other.ratings.values).all()
        for mine, yours in zip(a.judges, b.judges, strict=True):
            assert mine.name == yours.name
            assert (a.judged(mine, metric) == b.judged(yours, metric)).all()


def test_tables_take_the_truth_where_a_study_has_one() -> None:
    columns = {"order": "Friendly < Curt < Rude"}
    found = jb.decide(LABELS, JUDGED, truth={"blind": "yes"}, columns=columns)
    other = jb.align(LABELS, JUDGED, truth={"blind": "no"}, columns=columns)
    assert other.study.config.blind == "no"
    assert found.context.blind == "yes"
    for shown in (str(found), found._repr_html_()):
        assert "Understood: " in shown
    assert "! Understood" not in str(found)
    study = jb.study(LABELS, JUDGED, rubric=TONE)
    with pytest.raises(jb.SetupError, match="truth: a study has these already"):
        jb.decide(study, truth="majority")
    with pytest.raises(jb.SetupError, match="columns: a study has these already"):
        jb.align(study, columns={"order": "none"})


def test_without_a_judge_the_agreement_of_the_annotators_stands_first() -> None:
    columns = {"order": "Friendly < Curt < Rude"}
    found, beside = jb.align(LABELS, columns=columns), jb.align(LABELS, JUDGED, columns=columns)
    for shown in (str(found), str(beside), found._repr_html_()):
        assert "Agreement among the annotators" in shown
    assert "decide" not in jb.analyse(jb.study(LABELS, rubric=TONE))


def test_the_table_of_labels_alone_is_agreement_and_no_baseline_is_spoken_of() -> None:
    found = jb.align(LABELS, columns={"order": "Friendly < Curt < Rude"})
    table = found.table([*AGREEMENT_STATISTICS]).to_frame()
    agreement = found.results.select("agreement", who="all", metric=found.rubric.metrics[0].id)
    assert table.index.to_list() == [found.rubric.metrics[0].title]
    values = {row.statistic: row.estimate.value for row in agreement}
    assert {key: table.iloc[0][key] for key, value in values.items() if value is not None} == (
        pytest.approx({key: value for key, value in values.items() if value is not None})
    )
    assert found.table().to_frame().columns[0] == "observed"
    assert not any("baseline" in note for note in found.notes)


def test_a_report_of_decisions_holds_the_tables_of_a_paper(tmp_path: Path) -> None:
    for order, recall in (("none", False), ("Friendly < Curt < Rude", True)):
        decisions = jb.decide(LABELS, JUDGED, columns={"order": order})
        written = jb.report(decisions, tmp_path / order[:4])
        assert {"decisions.csv", "verdicts.csv"} <= set(written)
        paper = (tmp_path / order[:4] / "latex" / "main.tex").read_text()
        assert "Outcome" in paper
        assert ("Severe" in paper) == recall  # no column in which nothing is defined
    assert json.loads((tmp_path / "none" / "report.json").read_text()) == {"answers": 3}


def test_frames_paths_wide_and_long_are_the_same_study(place: Path) -> None:
    labels, verdicts, answers = tables(place)
    wide = jb.study(labels, verdicts, answers, rubric=rubric())
    same_study(
        wide, jb.study(long(labels, "annotator"), long(verdicts, "judge"), answers, rubric=rubric())
    )
    paths = [str(place / f"{n}.csv") for n in ("labels", "verdicts", "answers")]
    same_study(wide, jb.study(*paths, rubric="medical-safety"))
    indexed = labels.set_index(["item_id", "annotator"])
    same_study(wide, jb.study(indexed, verdicts, place / "answers.csv", rubric=rubric()))


def test_a_model_among_the_annotators_is_asked_about(place: Path) -> None:
    labels, verdicts, answers = tables(place)
    labels = labels.replace({"annotator": {labels.annotator.iloc[0]: "gpt-4"}})
    with pytest.raises(jb.Unsettled, match="gpt-4 in column annotator is named like a model"):
        jb.study(labels, verdicts, answers, rubric=rubric())
    people = sorted({*labels.annotator} - {"gpt-4"})
    found = jb.study(labels, verdicts, answers, rubric=rubric(), truth={"annotators": people})
    assert found.makers == tuple(people)


def test_labels_and_verdicts_alone_with_the_questions_as_groups(place: Path) -> None:
    labels, verdicts, answers = tables(place)
    whole = jb.study(labels, verdicts, answers, rubric=rubric())
    grouped = labels.merge(answers[["item_id", "question"]])
    bare = jb.study(grouped, verdicts, rubric=rubric())
    assert bare.clusters.n == whole.clusters.n < len(bare.answers)
    assert (bare.judged(judge(bare), rubric().metrics[0]) >= 0).all()
    controls = {j.name for j in bare.judges if j.kind == "control"}
    assert controls == {"constant-majority", "constant-fixed", "random", "prior"}
    alone = jb.study(labels, verdicts, rubric=rubric())
    assert alone.clusters.n == len(alone.answers)
    assert {answer.text for answer in alone.answers} == {""}


def test_a_judge_in_a_table_may_have_any_name() -> None:
    verdicts = pd.DataFrame({"item_id": ["a", "b", "c"], "judge": "GPT-4 (strict)", "tone": "Rude"})
    study = jb.study(LABELS, verdicts, rubric=TONE)
    assert judge(study).name == "GPT-4 (strict)"


def test_only_metrics_that_occur_are_measured(place: Path) -> None:
    labels, verdicts, answers = tables(place)
    study = jb.study(labels, verdicts, answers, rubric="medical-safety")
    assert [m.id for m in study.rubric.metrics] == list(METRICS)


def test_labels_may_stand_alone() -> None:
    study = jb.study(LABELS, rubric=TONE)
    assert all(one.kind == "control" for one in study.judges)
    assert study.n_labels == 5
    assert study.only(np.arange(1)).n_labels == 2


def test_truth_by_its_rule_or_by_some_keys() -> None:
    assert jb.study(LABELS, rubric=TONE, truth="majority").config.rule == "majority"
    study = jb.study(LABELS, rubric=TONE, truth={"annotators": ["Ann"], "ties": "lower"})
    assert study.humans["tone"].makers == ("Ann",)
    assert study.config.ties == "lower"
    with pytest.raises(jb.SetupError, match="truth: rule"):
        jb.study(LABELS, rubric=TONE, truth="mean")


def test_numbers_as_labels_and_ids() -> None:
    scores = jb.Rubric.from_labels({"grade": ["0", "1", "2"]})
    labels = pd.DataFrame({"item_id": [1, 2, 3], "annotator": 7, "grade": np.array([0, 1, np.nan])})
    study = jb.study(labels, rubric=scores)
    assert [answer.item_id for answer in study.answers] == ["1", "2", "3"]
    assert study.humans["grade"].truth.tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("labels", "verdicts", "expected"),
    [
        (LABELS.assign(tone="Grumpy"), VERDICTS,
         ["labels:2: tone: is not a label of tone; found 'Grumpy'; allowed: Friendly, Curt, Rude",
          "labels:7"]),
        (LABELS.iloc[:0], None, ["labels", "no rows"]),
        (LABELS.assign(tone=None), None, ["labels: holds no human label"]),
    ],
)  # fmt: skip
def test_every_problem_is_reported_with_table_row_and_column(labels, verdicts, expected) -> None:
    with pytest.raises(jb.SetupError) as error:
        jb.study(labels, verdicts, rubric=TONE)
    for part in expected:
        assert part in str(error.value)
    assert "--" not in str(error.value)


@pytest.mark.parametrize(
    ("labels", "verdicts", "asks"),
    [
        (LABELS.rename(columns={"annotator": "anotator"}), None, "rows 2 and 3 are both about a"),
        (LABELS, VERDICTS.assign(item_id=["x", "y"]), "2 of its ids are not in labels (x, y)"),
        (pd.concat([LABELS, LABELS.assign(tone="Rude")]), None, "rows 2 and 8 are both about a"),
    ],
)  # fmt: skip
def test_what_is_open_is_asked_with_table_and_row(labels, verdicts, asks: str) -> None:
    with pytest.raises(jb.Unsettled) as error:
        jb.study(labels, verdicts, rubric=TONE)
    (question,) = error.value.questions
    assert asks in question.asks
    assert question.table in ("labels", "verdicts")


def test_unknown_items_do_not_count_and_missing_ones_were_not_asked(place: Path) -> None:
    labels, verdicts, answers = tables(place)
    more = pd.concat([verdicts, verdicts[:1].assign(item_id="q99-a")])
    with pytest.warns(UserWarning, match="for 1 items that are not in the data; found q99-a"):
        jb.study(labels, more, answers, rubric=rubric())
    with pytest.warns(UserWarning, match="my-judge: 23 of 24 asked"):
        study = jb.study(labels, verdicts[verdicts.item_id != "q01-a"], answers, rubric=rubric())
    assert "q01-a" not in judge(study).verdicts


def test_a_rubric_of_labels() -> None:
    made = jb.Rubric.from_labels({"Tone of voice": TONES, "Topic": ["A", "B"]}, nominal=["Topic"])
    assert [(m.id, m.kind) for m in made.metrics] == [
        ("tone_of_voice", "ordinal"),
        ("topic", "nominal"),
    ]
    with pytest.raises(jb.SetupError, match=r"metrics\.0\.labels"):
        jb.Rubric.from_labels({"tone": ["Friendly"]})
    with pytest.raises(jb.SetupError, match="Topics"):
        jb.Rubric.from_labels({"tone": TONES}, nominal=["Topics"])


def test_a_study_says_what_it_holds_in_one_line() -> None:
    assert repr(jb.study(LABELS, VERDICTS, rubric=TONE)) == (
        "Study 'labels': 3 answers in 3 groups, 5 labels by 2 annotators on tone; "
        "judges: m; 4 baselines"
    )


def test_a_text_stands_for_a_list_of_one(tmp_path: Path) -> None:
    truth = {"drawn": "random", "annotators": "Ann"}

    study = jb.study(LABELS, VERDICTS, rubric=TONE, truth=truth, as_judges="Bob")

    assert (study.config.drawn, study.makers) == (("random",), ("Ann",))
    assert "Bob" in [judge.name for judge in study.real_judges]
    LABELS.to_csv(tmp_path / "labels.csv")
    assert not jb.check(str(tmp_path / "labels.csv")).errors
