"""The content of a run folder on judges that learnt, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from judgebench.alignment.judge_scores import STATISTICS, scores
from judgebench.alignment.notes import collapsed, constant_note
from judgebench.alignment.raters import (
    NEVER_APART,
    TESTED,
    PairedLabels,
    both_of,
    corrected,
    failure_policies,
    formula_of,
    score_differences,
    share_tests,
)
from judgebench.records import Estimate, Results, Row
from judgebench.results.shown import JudgesShown
from judgebench.rubric import Metric
from judgebench.runs.folder import RunFolder
from judgebench.runs.open import verdicts_of
from judgebench.stats.classification import confusion_by_cluster
from judgebench.stats.paired_tests import SIDES_SWAPPED, swap_test
from judgebench.studies.study import JudgeVerdicts, Study

SIDES = {
    "gain": ("baseline", "learnt", "difference"),
    "otherwise": ("learnt", "otherwise", "difference"),
}
STATED = ("accuracy", "balanced_accuracy", "kappa_quadratic", "severe_recall")


@dataclass(frozen=True)
class Learnt:
    """One judge that learns. `needs` are the judges that it learnt from, `otherwise` holds the same
    judge taught in another way, by what the way is called (`in-sample`, `n50`, `without-SYSTEM`,
    …), `waiting` the number of revisions that people have to decide on."""

    name: str
    needs: Sequence[str]
    otherwise: dict[str, JudgeVerdicts] = field(default_factory=dict)
    waiting: int = 0
    joined: bool = True  # answers that say nearly the same are in one fold


def read_tuning(folder: RunFolder, study: Study) -> Sequence[Learnt] | None:
    """The judges of a study that learnt; None where there is none."""
    from judgebench.tuning.rounds import proposals_of

    def n_waiting(name: str) -> int:
        return sum(not proposal["decision"] for proposal in proposals_of(folder, name).values())

    names = {judge.name for judge in study.judges}
    judges: Mapping[str, Any] = folder.manifest()["judges"]
    taught = {
        name: Learnt(name, entry["from"], {}, n_waiting(name), entry["folds"]["joined"])
        for name, entry in judges.items()
        if name in names and entry["about"].get("judge") == "learnt" and "learn" in entry["about"]
    }
    for name, entry in judges.items():
        if entry["kind"] == "tuning" and entry["of"] in taught:
            verdicts = verdicts_of(folder, name, entry, study.answers)
            taught[entry["of"]].otherwise[entry["as"]] = verdicts
    return tuple(taught.values()) or None


@dataclass(frozen=True, repr=False)
class Tuned(JudgesShown):
    """The worth of judges that learn, out of fold. `titles` are those of the metrics, `judges` the
    kinds of all judges of the study. `waiting` are the revisions that people have to decide on, by
    judge: what it learnt so far is without them. `joined` says that answers that say
    nearly the same are in one fold."""

    presented_by = "judgebench.tuning.report:tuning_part"

    titles: Mapping[str, str]
    judges: Mapping[str, str]
    rows: Results
    notes: tuple[str, ...]
    collapsed: Mapping[str, str]  # a sentence, by judge
    waiting: Mapping[str, int]
    joined: bool
    gaps: tuple[str, ...] = ()


def measure_tuning(study: Study) -> Tuned | None:
    """None where no judge of the study learnt."""
    kinds = {judge.name: judge.kind for judge in study.judges}
    taught = [learnt for learnt in study.beside.get("tuning") or () if learnt.name in kinds]
    metrics = [
        metric
        for metric in study.rubric.metrics
        if metric.of == "answer" and (study.humans[metric.id].truth >= 0).any()
    ]
    if not taught or not metrics:
        return None
    rows = [row for metric in metrics for row in _of_metric(study, taught, metric)]
    for is_control in (False, True):  # a control that learns makes no judge's gain less certain
        those = [row for row in rows if (kinds[row.judge] == "control") == is_control]
        rows += corrected(those, ("of", "failures"))
    every = Results(tuple(rows))
    return Tuned(
        {metric.id: metric.title for metric in metrics},
        kinds,
        Results(tuple(_with_outcome(row, every, 1 - study.level) for row in every)),
        tuple(constant_note(study)),
        collapsed(study),
        {learnt.name: learnt.waiting for learnt in taught if learnt.waiting},
        taught[0].joined,
        study.gaps,
    )


def _of_metric(study: Study, taught: Sequence[Learnt], metric: Metric) -> Iterator[Row]:
    keys = [key for key in STATED if STATISTICS[key].fits(metric)]
    judges = {judge.name: judge for judge in study.judges}
    rivals = {learnt.name: _rivals(learnt, study, taught) for learnt in taught}
    reached = {
        (name, row.statistic): -np.inf if row.estimate.value is None else row.estimate.value
        for name in {name for some in rivals.values() for name in some}
        for row in scores(study, judges[name], metric)
        if row["failures"] == "left_out"
    }
    for learnt in taught:
        judge = judges[learnt.name]
        if not judge.judges(metric):
            continue
        those = rivals[learnt.name]
        # Of equally good rivals the first is the strongest.
        best = {key: max(those, key=lambda name: reached[name, key], default="") for key in keys}
        for name in those:
            shown = [key for key in keys if best[key] == name]
            yield from _gains(study, (judges[name], judge), metric, shown, keys)
        for way, other in learnt.otherwise.items():
            both = both_of(study, (judge, other), metric)
            _, filled, missing = next(failure_policies(both, metric))
            row = Row("otherwise", "", Estimate(None), judge.name, metric.id, {"as": way})
            yield from _side_by_side(study, metric, filled, missing, keys, row)


def _rivals(learnt: Learnt, study: Study, taught: Sequence[Learnt]) -> Sequence[str]:
    """The judges that it is to beat: those it learnt from, else the controls; of a control, the
    controls that are fitted otherwise."""
    controls = [control.name for control in study.controls]
    if learnt.name in controls:
        learning = [other.name for other in taught]
        return [name for name in controls if name not in learning]
    names = {judge.name for judge in study.judges}
    return [name for name in learnt.needs if name in names] or controls


def _gains(
    study: Study, pair: tuple[JudgeVerdicts, JudgeVerdicts], metric: Metric,
    shown: Sequence[str], tested: Sequence[str],
) -> Iterator[Row]:  # fmt: skip
    """A rival and the judge side by side by the statistics `shown`, in every way to count missing
    labels, and tests of all statistics."""
    for policy, filled, missing in failure_policies(both_of(study, pair, metric), metric):
        about = {"who": pair[0].name, "failures": policy}
        row = Row("gain", "", Estimate(None), pair[1].name, metric.id, about)
        yield from _side_by_side(study, metric, filled, missing, shown, row)
        for key, p in _tests(metric, filled, tested):
            yield Row("test", "permutation_p", p, row.judge, metric.id, {**about, "of": key})


def _side_by_side(
    study: Study, metric: Metric, both: PairedLabels, missing: int, keys: Sequence[str], row: Row
) -> Iterator[Row]:
    """What each of both reaches, and the difference, as rows like `row`."""
    for declared, difference, values in score_differences(study, metric, both, missing, keys):
        for side, estimate in zip(SIDES[row.analysis], (*values, difference), strict=True):
            about = {**row.keys, "side": side}
            yield replace(row, statistic=declared.key, estimate=estimate, keys=about)


def _tests(
    metric: Metric, both: PairedLabels, keys: Sequence[str]
) -> Iterator[tuple[str, Estimate]]:
    yield from ((key, p) for key, p in share_tests(metric, both) if key in keys)
    k = len(metric.labels)
    counts = [confusion_by_cluster(both.truth, x, both.clusters, k) for x in both.judged]
    for key in keys:
        if key not in TESTED:
            p = swap_test(np.stack(counts, axis=-1), formula_of(STATISTICS[key], metric))
            n, reason = int(counts[0].sum()), "" if p is not None else NEVER_APART
            yield key, Estimate(p, method=SIDES_SWAPPED, n=n, reason=reason)


def _with_outcome(row: Row, results: Results, alpha: float) -> Row:
    """A difference with what it shows, whether missing labels are left out or count as wrong."""
    if row.analysis != "gain" or row["side"] != "difference":
        return row
    about = {"judge": row.judge, "metric": row.metric, "who": row["who"]}
    gains = results.select("gain", row.statistic, side="difference", **about)
    tests = results.select("test", "p_holm", of=row.statistic, **about)
    p_values = [test.estimate.value for test in tests if test["failures"] != "best"]
    estimates = [gain.estimate for gain in gains if gain["failures"] != "best"]
    outcome = "not shown"
    if all(p is not None and p <= alpha for p in p_values):
        if all((estimate.low or 0) > 0 for estimate in estimates):
            outcome = "shown"
        elif all((estimate.high or 0) < 0 for estimate in estimates):
            outcome = "loss shown"
    return replace(row, keys={**row.keys, "shown": outcome})
