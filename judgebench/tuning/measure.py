"""The content of a run folder on judges that learnt, and what that is worth."""

from __future__ import annotations

import json
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

SIDES = ("baseline", "learnt", "difference")
WAYS = ("learnt", "otherwise", "difference")
STATED = ("accuracy", "balanced_accuracy", "kappa_quadratic", "severe_recall")


@dataclass(frozen=True)
class Learnt:
    """One judge that learns. `needs` are the judges that it learnt from, `folds` says how its folds
    were made. `otherwise` holds the same judge taught in another way, by what the way is called
    (`in-sample`, `n50`, `without-SYSTEM`, …), `learnt_from` the least and the greatest number of
    answers that each way learns from, `waiting` the number of revisions that people have to decide
    on before it has learnt what it is to learn."""

    name: str
    needs: Sequence[str]
    folds: Mapping[str, Any]
    otherwise: dict[str, JudgeVerdicts] = field(default_factory=dict)
    learnt_from: dict[str, tuple[int, int]] = field(default_factory=dict)
    waiting: int = 0


def read_tuning(folder: RunFolder, study: Study) -> Sequence[Learnt] | None:
    """The judges of a study that learnt; None where there is none."""
    names = {judge.name for judge in study.judges}
    judges: Mapping[str, Any] = folder.manifest()["judges"]
    taught = {
        name: Learnt(
            name, entry.get("from", ()), entry.get("folds", {}), waiting=_waiting(folder, name)
        )
        for name, entry in judges.items()
        if name in names and entry["about"].get("judge") == "learnt" and "learn" in entry["about"]
    }
    for name, entry in judges.items():
        if entry["kind"] == "tuning" and entry["of"] in taught:
            verdicts = verdicts_of(folder, name, entry, study.answers)
            taught[entry["of"]].otherwise[entry["as"]] = verdicts
            cells = folder.path.glob(f"tuning/{name}/{entry['signature']}/*/learnt.json")
            if sizes := [json.loads(path.read_text())["n"] for path in cells]:
                taught[entry["of"]].learnt_from[entry["as"]] = min(sizes), max(sizes)
    return tuple(taught.values()) or None


def _waiting(folder: RunFolder, name: str) -> int:
    about = folder.manifest()["judges"][name]["about"]
    if about.get("rounds", {}).get("decide") != "people":
        return 0
    from judgebench.tuning.rounds import cells_of, waiting_in

    return len(waiting_in(cells_of(folder, name)))


@dataclass(frozen=True, repr=False)
class Tuned(JudgesShown):
    """The worth of judges that learn, out of fold. `titles` are those of the metrics, `judges` the
    kinds of all judges of the study, `folds` how the folds were made. `waiting` are the revisions
    that people have to decide on, by judge: until then there is no row of what learning brought.
    `learnt_from` are the least and the greatest number of answers, by judge and way to teach it."""

    presented_by = "judgebench.tuning.report:tuning_part"

    titles: Mapping[str, str]
    judges: Mapping[str, str]
    folds: Mapping[str, Any]
    rows: Results
    gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    collapsed: Mapping[str, str] = field(default_factory=dict)  # a sentence, by judge
    waiting: Mapping[str, int] = field(default_factory=dict)
    learnt_from: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)


def measure_tuning(study: Study) -> Tuned | None:
    """None where no judge of the study learnt."""
    judges = {judge.name: judge for judge in study.judges}
    taught = [learnt for learnt in study.beside.get("tuning") or () if learnt.name in judges]
    metrics = [
        metric
        for metric in study.rubric.metrics
        if metric.of == "answer" and (study.humans[metric.id].truth >= 0).any()
    ]
    if not taught or not metrics:
        return None
    rows = [row for metric in metrics for row in _of_metric(study, taught, metric)]
    kinds = {judge.name: judge.kind for judge in study.judges}
    for is_control in (False, True):  # a control that learns makes no judge's gain less certain
        those = [row for row in rows if (kinds[row.judge] == "control") == is_control]
        rows += corrected(those, ("of", "failures"))
    every = Results(tuple(rows))
    results = Results(tuple(_with_outcome(row, every, 1 - study.level) for row in every))
    titles = {metric.id: metric.title for metric in metrics}
    notes = (study.gaps, tuple(constant_note(study)), collapsed(study))
    waiting = {learnt.name: learnt.waiting for learnt in taught if learnt.waiting}
    learnt_from = {(t.name, way): n for t in taught for way, n in t.learnt_from.items()}
    return Tuned(titles, kinds, taught[0].folds, results, *notes, waiting, learnt_from)


def _of_metric(study: Study, taught: Sequence[Learnt], metric: Metric) -> Iterator[Row]:
    keys = [key for key in STATED if STATISTICS[key].fits(metric)]
    judges = {judge.name: judge for judge in study.judges}
    rivals = {learnt.name: _rivals(learnt, study, taught) for learnt in taught}
    others = [rival for some in rivals.values() for rival in some] + [*study.controls]
    names = dict.fromkeys([*rivals, *(other.name for other in others)])
    scored = [
        row
        for name in names
        for row in scores(study, judges[name], metric)
        if row.statistic in keys and row["failures"] == "left_out"
    ]
    yield from scored
    reached = {(row.judge, row.statistic): row.estimate.value for row in scored}
    for learnt in taught:
        judge = judges[learnt.name]
        if judge.judges(metric) and not learnt.waiting:
            for rival in rivals[learnt.name]:
                shown = [
                    key for key in keys if _best(reached, rivals[learnt.name], key) == rival.name
                ]
                yield from _gains(study, (rival, judge), metric, shown, keys)
            yield from _otherwise(study, judge, learnt, metric, keys)


def _rivals(learnt: Learnt, study: Study, taught: Sequence[Learnt]) -> Sequence[JudgeVerdicts]:
    """The judges that it is to beat: those it learnt from, else the controls; of a control, the
    controls that are fitted otherwise."""
    judges = {judge.name: judge for judge in study.judges}
    if judges[learnt.name].kind == "control":
        learning = [other.name for other in taught]
        return [control for control in study.controls if control.name not in learning]
    return [judges[name] for name in learnt.needs if name in judges] or study.controls


def _best(
    reached: Mapping[tuple[str, str], float | None], rivals: Sequence[JudgeVerdicts], key: str
) -> str:
    """The name of the rival that is the best by the statistic, the first of equal ones."""

    def value(name: str) -> float:
        score = reached[name, key]
        return -np.inf if score is None else score

    return max((rival.name for rival in rivals), key=value, default="")


def _gains(
    study: Study, pair: tuple[JudgeVerdicts, JudgeVerdicts], metric: Metric,
    shown: Sequence[str], tested: Sequence[str],
) -> Iterator[Row]:  # fmt: skip
    """A rival and the judge side by side by the statistics `shown`, in every way to count missing
    labels, and tests of all statistics."""
    both = both_of(study, pair, metric)
    for policy, filled, missing in failure_policies(both, metric):
        about = {"who": pair[0].name, "failures": policy}
        for declared, difference, values in score_differences(
            study, metric, filled, missing, shown
        ):
            for side, estimate in zip(SIDES, (*values, difference), strict=True):
                keyed = {**about, "side": side}
                yield Row("gain", declared.key, estimate, pair[1].name, metric.id, keyed)
        for key, p in _tests(metric, filled, tested):
            yield Row("test", "permutation_p", p, pair[1].name, metric.id, {**about, "of": key})


def _tests(
    metric: Metric, both: PairedLabels, keys: Sequence[str]
) -> Iterator[tuple[str, Estimate]]:
    yield from ((key, p) for key, p in share_tests(metric, both) if key in keys)
    k, clusters = len(metric.labels), both.clusters
    counts = [confusion_by_cluster(both.truth, labels, clusters, k) for labels in both.judged]
    for key in keys:
        if key not in TESTED:
            p = swap_test(np.stack(counts, axis=-1), formula_of(STATISTICS[key], metric))
            n, reason = int(counts[0].sum()), "" if p is not None else NEVER_APART
            yield key, Estimate(p, method=SIDES_SWAPPED, n=n, reason=reason)


def _otherwise(
    study: Study, judge: JudgeVerdicts, learnt: Learnt, metric: Metric, keys: Sequence[str]
) -> Iterator[Row]:
    """The judge taught in other ways, and that minus the judge itself; missing labels left out."""
    for way, other in learnt.otherwise.items():
        both = both_of(study, (judge, other), metric)
        _, filled, missing = next(failure_policies(both, metric))
        for declared, difference, values in score_differences(study, metric, filled, missing, keys):
            for side, estimate in zip(WAYS, (*values, difference), strict=True):
                about = {"as": way, "side": side}
                yield Row("otherwise", declared.key, estimate, judge.name, metric.id, about)


def _with_outcome(row: Row, results: Results, alpha: float) -> Row:
    """A difference with what it shows, whether missing labels are left out or count as wrong."""
    if row.analysis != "gain" or row["side"] != "difference":
        return row
    about = {"judge": row.judge, "metric": row.metric, "who": row["who"]}
    gains = results.select("gain", row.statistic, side="difference", **about)
    tests = results.select("test", "p_holm", of=row.statistic, **about)
    p_values = [test.estimate.value for test in tests if test["failures"] != "best"]
    estimates = [gain.estimate for gain in gains if gain["failures"] != "best"]
    outcome = "no gain is shown"
    if all(p is not None and p <= alpha for p in p_values):
        if all((estimate.low or 0.0) > 0 for estimate in estimates):
            outcome = "a gain is shown"
        elif all((estimate.high or 0.0) < 0 for estimate in estimates):
            outcome = "a loss is shown"
    return replace(row, keys={**row.keys, "shown": outcome})
