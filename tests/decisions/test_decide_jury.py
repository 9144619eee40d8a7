"""What a jury of a run's judges would be worth."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from align_case import answers, labels, metric, rubric, verdicts

from judgebench.decisions.beside import jury_rows
from judgebench.results.rows import Results
from judgebench.studies.study import JudgeVerdicts, study_of
from judgebench.studies.truth import TruthConfig

TRUTH = "abcab" * 30


def seen(share: float, seed: int) -> str:
    """The truth, with each label drawn anew with the probability 1 - `share`."""
    rng = np.random.default_rng(seed)
    return "".join(x if rng.random() < share else rng.choice([*"abc"]) for x in TRUTH)


def values(judges: list[JudgeVerdicts], kind: str = "ordinal", truth: str = TRUTH):
    measured = metric(kind)
    items = answers(len(truth))
    study = study_of(rubric(measured), items, labels({"ann": truth}), TruthConfig())
    found = Results(tuple(jury_rows(replace(study, judges=tuple(judges)))))
    return [_value(found, name) for name in found.values("metric", "jury")]


def _value(found: Results, name: str) -> SimpleNamespace:
    """The rows of one metric."""
    rows = {row.statistic: row for row in found.select("jury", metric=name)}
    pairs = found.select("error_correlation", metric=name)
    return SimpleNamespace(
        metric=name,
        pairs={(row.judge, row["who"]): row.estimate for row in pairs},
        judges=tuple(dict.fromkeys(x for row in pairs for x in (row.judge, row["who"]))),
        best=tuple(filter(None, rows["gain"]["who"].split(", "))),
        **{key: row.estimate for key, row in rows.items()},
    )


def judge(name: str, row: str, kind: str = "judge") -> JudgeVerdicts:
    return verdicts(name, row, answers(len(row)), kind)


def of_three() -> SimpleNamespace:
    (found,) = values([judge(n, seen(0.5, s)) for s, n in enumerate("xyz")])
    return found


def test_a_value_names_its_judges_its_pairs_and_its_best_jury() -> None:
    found = of_three()
    assert (found.metric, found.judges, found.best) == ("harm", ("x", "y", "z"), ("x", "y", "z"))
    assert list(found.pairs) == [("x", "y"), ("x", "z"), ("y", "z")]
    mean = np.mean([estimate.value for estimate in found.pairs.values()])
    assert found.correlation.value == pytest.approx(mean)
    assert found.effective.value == pytest.approx(3 / (1 + 2 * max(0, mean)))
    assert found.gain.value == pytest.approx(found.accuracy.value - found.single.value)
    assert found.gain.low is None


def test_ordinal_labels_are_settled_by_median_and_nominal_ones_by_majority() -> None:
    """Of a, b and c in any order the median is b, and there is no majority."""
    judges = [judge(name, row * 20) for name, row in zip("xyz", ("abc", "bca", "cab"), strict=True)]
    (ordinal,) = values(judges, "ordinal", "b" * 60)
    assert (ordinal.best, ordinal.accuracy.value) == (("x", "y", "z"), 1)
    (nominal,) = values(judges, "nominal", "b" * 60)
    assert nominal.best != ("x", "y", "z")
    assert nominal.accuracy.value < 0.6


def test_juries_and_controls_are_no_members_and_one_judge_is_no_jury() -> None:
    x, y = judge("x", seen(0.5, 0)), judge("y", seen(0.5, 1), "calibration")
    others = [judge("j", seen(0.5, 2), "jury"), judge("c", seen(0.5, 3), "control")]
    assert values([x, *others]) == []
    (found,) = values([x, *others, y])
    assert found.judges == ("x", "y")


def test_a_judge_that_says_nothing_is_left_out_and_gaps_are_counted() -> None:
    gap = ".." + seen(0.5, 1)[2:]
    judges = [judge("x", seen(0.5, 0)), judge("mute", "." * 150), judge("y", gap)]
    (found,) = values(judges)
    assert found.judges == ("x", "y")
    assert (found.gain.n, found.gain.n_missing) == (148, 2)


@pytest.mark.parametrize("truth", ["." * 150, TRUTH], ids=["no human", "no verdict"])
def test_nothing_in_common_is_told(truth: str) -> None:
    row = TRUTH if truth != TRUTH else "." * 150
    (found,) = values([judge("x", row), judge("y", row)], truth=truth)
    assert found.best == ()
    for estimate in (found.correlation, found.effective, found.accuracy, found.gain):
        assert estimate.value is None
        assert estimate.reason == "no item with a reference label was labelled by every judge"
