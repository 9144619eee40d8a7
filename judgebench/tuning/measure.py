"""The content of a run folder on judges that learnt."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from judgebench.learning.learnt import LEARNT
from judgebench.records import Estimate, Results, Row
from judgebench.results.shown import JudgesShown
from judgebench.rubric import Metric
from judgebench.runs.folder import RunFolder
from judgebench.runs.open import verdicts_of
from judgebench.stats.classification import confusion_by_cluster
from judgebench.stats.paired_tests import SIDES_SWAPPED, swap_test
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.tuning.judges import FOLDER

Facts = Mapping[str, Mapping[str, Any]]  # by cell


@dataclass(frozen=True)
class Learnt:
    """One judge that learns. `needs` are the judges that it learnt from, `folds` says how its folds
    were made, `facts` what was learnt in each. `otherwise` holds the same judge taught in another
    way, by what the way is called (`in-sample`, `n50`, `without-SYSTEM`, …), with its own facts.
    """

    name: str
    needs: Sequence[str]
    folds: Mapping[str, Any]
    facts: Facts
    otherwise: dict[str, tuple[JudgeVerdicts, Facts]] = field(default_factory=dict)


def read_tuning(folder: RunFolder, study: Study) -> Sequence[Learnt] | None:
    """The judges of a study that learnt; None where there is none."""
    entries = folder.manifest()["judges"]
    kept = {judge.name for judge in study.judges}
    found = {
        name: Learnt(name, e.get("from", ()), e.get("folds", {}), _facts(folder, name, e))
        for name, e in entries.items()
        if name in kept and e["about"].get("judge") == "learnt" and "learn" in e["about"]
    }
    for name, entry in entries.items():
        if entry["kind"] == "tuning" and (one := found.get(entry["of"])):
            judged = verdicts_of(folder, name, entry, study.answers)
            one.otherwise[entry["as"]] = judged, _facts(folder, name, entry)
    return tuple(found.values()) or None


def _facts(folder: RunFolder, name: str, entry: Mapping[str, Any]) -> Facts:
    home = folder.path / FOLDER / name / entry["signature"]
    paths = sorted(home.glob(f"*/{LEARNT}"))
    return {path.parent.name: json.loads(path.read_text()) for path in paths}


@dataclass(frozen=True, repr=False)
class Tuned(JudgesShown):
    """The worth of judges that learn, out of fold. `measure` describes the rows; `titles` are
    those of the metrics, `judges` the kinds of all judges of the study."""

    presented_by = "judgebench.tuning.report:tuning_part"

    titles: Mapping[str, str]
    judges: Mapping[str, str]
    taught: tuple[Learnt, ...]
    rows: Results
    gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    collapsed: Mapping[str, str] = field(default_factory=dict)  # a sentence, by judge

    def curve(self, judge: str, metric: str, statistic: str) -> Mapping[int, Estimate]:
        """The score by the number of answers it learnt from, with all of them last; empty where no
        curve was asked for."""
        about = {"judge": judge, "metric": metric}
        fewer = self.rows.select("otherwise", statistic, side="otherwise", kind="labels", **about)
        points = {labels_of(row): row.estimate for row in fewer}
        cells = next(one.facts for one in self.taught if one.name == judge).values()
        if points and cells:
            whole = round(sum(facts["n"] for facts in cells) / len(cells))
            points[whole] = self.rows.find(statistic, "score", **about)
        return dict(sorted(points.items()))


def labels_of(row: Row) -> int:
    """Of a row of the kind `labels`: how many labelled answers were learnt from."""
    return int(row["as"].removeprefix("n"))


SIDES = ("baseline", "learnt", "difference")
WAYS = ("learnt", "otherwise", "difference")
STATED = ("accuracy", "balanced_accuracy", "kappa_quadratic", "severe_recall")


def measure_tuning(study: Study) -> Tuned | None:
    """None where no judge of the study learnt."""
    taught: Sequence[Learnt] = study.beside.get("tuning") or ()
    judges = {judge.name: judge for judge in study.judges}
    taught = [one for one in taught if one.name in judges]
    metrics = [m for m in study.rubric.metrics if (study.humans[m.id].truth >= 0).any()]
    metrics = [m for m in metrics if m.of == "answer"]
    if not taught or not metrics:
        return None
    learning = [one.name for one in taught]
    rivals = {one.name: _rivals(one, judges, learning) for one in taught}
    controls = study.controls
    others = [judge.name for of in (*rivals.values(), controls) for judge in of]
    scored = dict.fromkeys([*learning, *others])
    rows: list[Row] = []
    for metric in metrics:
        keys = [key for key in STATED if STATISTICS[key].fits(metric)]
        reached = [row for name in scored for row in scores(study, judges[name], metric)]
        reached = [r for r in reached if r.statistic in keys and r["failures"] == "left_out"]
        rows += reached
        for one in (one for one in taught if judges[one.name].judges(metric)):
            best = _best(Results(tuple(reached)), rivals[one.name], keys)
            rows += _gains(study, judges[one.name], best, metric, keys)
            rows += _otherwise(study, one, metric, keys)
    kinds = {judge.name: judge.kind for judge in study.judges}
    for control in (False, True):  # a control that learns makes no judge's gain less certain
        those = [row for row in rows if (kinds[row.judge] == "control") == control]
        rows += corrected(those, ("of", "failures"))
    found = Results(tuple(rows))
    shown = Results(tuple(_said(row, found, 1 - study.level) for row in found))
    titles = {metric.id: metric.title for metric in metrics}
    notes = tuple(constant_note(study))
    return Tuned(titles, kinds, tuple(taught), shown, study.gaps, notes, collapsed(study))


def _rivals(
    one: Learnt, judges: Mapping[str, JudgeVerdicts], learning: Collection[str]
) -> list[JudgeVerdicts]:
    """The judges that it is to beat: the judges it learnt from, else the controls; of a control,
    the controls that are fitted otherwise."""
    controls = [judge for judge in judges.values() if judge.kind == "control"]
    if judges[one.name].kind == "control":
        return [control for control in controls if control.name not in learning]
    return [judges[name] for name in one.needs if name in judges] or controls


Best = Sequence[tuple[JudgeVerdicts, Sequence[str]]]


def _best(reached: Results, rivals: Sequence[JudgeVerdicts], keys: Sequence[str]) -> Best:
    """The rivals, each with the statistics by which it is the best of them."""
    found: dict[str, list[str]] = {}
    for key in keys if rivals else ():
        found_of = {r.name: reached.find(key, judge=r.name).value for r in rivals}
        values = {n: -math.inf if value is None else value for n, value in found_of.items()}
        best = max(values, key=lambda name: values[name])
        found.setdefault(best, []).append(key)
    return [(rival, found.get(rival.name, ())) for rival in rivals]


def _gains(
    study: Study, judge: JudgeVerdicts, best: Best, metric: Metric, tested: Sequence[str]
) -> Iterator[Row]:
    """The judge beside each of these by its statistics, in every way to count missing labels, and
    tests of all statistics."""
    for rival, keys in best:
        both = both_of(study, (rival, judge), metric)
        for policy, filled, missing in failure_policies(both, metric):
            about = {"who": rival.name, "failures": policy}
            found = score_differences(study, metric, filled, missing, keys)
            for declared, difference, values in found:
                for side, estimate in zip(SIDES, (*values, difference), strict=True):
                    keyed = {**about, "side": side}
                    yield Row("gain", declared.key, estimate, judge.name, metric.id, keyed)
            for key, p in _tests(study, metric, filled, tested):
                keyed = {**about, "of": key}
                yield Row("test", "permutation_p", p, judge.name, metric.id, keyed)


def _tests(
    study: Study, metric: Metric, both: PairedLabels, keys: Sequence[str]
) -> Iterator[tuple[str, Estimate]]:
    k = len(metric.labels)
    yield from ((key, p) for key, p in share_tests(metric, both) if key in keys)
    sides = [confusion_by_cluster(both.truth, x, both.clusters, k) for x in both.judged]
    counts = np.stack(sides, axis=-1)
    for key in (key for key in keys if key not in TESTED):
        p = swap_test(counts, formula_of(STATISTICS[key], metric))
        n, reason = int(sides[0].sum()), "" if p is not None else NEVER_APART
        yield key, Estimate(p, method=SIDES_SWAPPED, n=n, reason=reason)


def _otherwise(study: Study, one: Learnt, metric: Metric, keys: Sequence[str]) -> Iterator[Row]:
    """The judge taught in other ways, and that minus the judge itself; missing labels left out."""
    (judge,) = (judge for judge in study.judges if judge.name == one.name)
    for way, (other, _) in one.otherwise.items():
        both = both_of(study, (judge, other), metric)
        _, filled, missing = next(failure_policies(both, metric))
        for declared, difference, values in score_differences(study, metric, filled, missing, keys):
            for side, estimate in zip(WAYS, (*values, difference), strict=True):
                about = {"as": way, "kind": _kind(way), "side": side}
                yield Row("otherwise", declared.key, estimate, one.name, metric.id, about)


def _said(row: Row, found: Results, most: float) -> Row:
    """A difference with what it shows, in words."""
    if row.analysis != "gain" or row["side"] != "difference":
        return row
    about = {"judge": row.judge, "metric": row.metric, "who": row["who"]}
    both = found.select("gain", row.statistic, side="difference", **about)
    tests = found.select("test", "p_holm", of=row.statistic, **about)
    e = [one.estimate for one in both if one["failures"] != "best"]
    p = [one.estimate.value for one in tests if one["failures"] != "best"]
    said = "no gain is shown"
    if all(x is not None and x <= most for x in p):
        if all((one.low or 0.0) > 0 for one in e):
            said = "a gain is shown"
        elif all((one.high or 0.0) < 0 for one in e):
            said = "a loss is shown"
    return replace(row, keys={**row.keys, "shown": said})


def _kind(way: str) -> str:
    """The kind of another way to teach a judge."""
    if way.startswith("n") and way[1:].isdigit():
        return "labels"
    return "system" if way.startswith("without-") else way if way == "in-sample" else "other"
