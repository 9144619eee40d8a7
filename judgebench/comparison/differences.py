"""The answers, judges and labels that two studies have in common, and every difference on them.

Rows of `difference` hold B minus A, rows of `value` what each of them reaches on these answers.
Which of the two is A changes nothing but the
signs: what is measured is put into one order first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from judgebench.alignment.against_truth import truths
from judgebench.alignment.differences import (
    Both,
    both_of,
    failure_policies,
    score_differences,
    share_tests,
)
from judgebench.alignment.probabilities import TRUTH_STATISTICS
from judgebench.alignment.statistics import (
    STATISTICS,
    Declared,
    by_key,
)
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.records import Estimate, Status, Verdict
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.calibration_error import (
    NO_ITEM,
    cross_entropy,
    one_hot,
    squared_distance,
)
from judgebench.stats.jackknife import (
    ClusterCounts,
    clustered_estimate,
)
from judgebench.stats.means import clustered_mean
from judgebench.stats.paired import (
    FLIPPED,
    LESS_SEVERE,
    MEAN_SHIFT,
    MORE_SEVERE,
    moves_by_cluster,
)
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.words import counted, listed

SIDES = ("A", "B")
Pair = tuple[JudgeVerdicts, JudgeVerdicts]
_MOST_NAMED = 8
# Why an answer is not compared: its key in the results, and what is said of it.
_LEFT_OUT = {
    "text_differs": "whose text or question is not the same in B",
    "only_in_a": "of A only",
    "only_in_b": "of B only",
    "not_asked_a": "without a verdict in A",
    "not_asked_b": "without a verdict in B",
}


LeftOut = Mapping[str, Sequence[str]]  # ids of answers by the reason why they are left out


def matched(a: Study, b: Study) -> tuple[tuple[IntArray, IntArray], LeftOut]:
    """The rows (answers,) of A and of B of the answers with the same id and the same content, in
    the order of B; and the others.

    Raises SetupError where there is none.
    """
    found: list[tuple[int, int]] = []
    left_out: dict[str, list[str]] = {reason: [] for reason in _LEFT_OUT}
    for row, item_id in enumerate(b.answers.item_ids()):
        other = a.answers.row(item_id)
        if other < 0:
            left_out["only_in_b"].append(item_id)
        elif a.answers.content_hash(other) != b.answers.content_hash(row):
            left_out["text_differs"].append(item_id)
        else:
            found.append((other, row))
    left_out["only_in_a"] = [i for i in a.answers.item_ids() if b.answers.row(i) < 0]
    if not found:
        of_both = len(left_out["text_differs"])
        why = "of those with the same id, every text differs" if of_both else "no id is in both"
        message = f"have no answer in common: {why}"
        raise SetupError(Problem(message, f"{a.name} and {b.name}", field="item_id"))
    rows = np.array(found, dtype=np.int64)
    return (rows[:, 0], rows[:, 1]), left_out


def left_out_lines(left_out: LeftOut, who: str = "") -> Iterator[str]:
    """A sentence for each reason why answers are not compared, with the first of them."""
    for reason, words in _LEFT_OUT.items():
        if ids := left_out.get(reason):
            more = len(ids) - _MOST_NAMED
            named = listed([*ids[:_MOST_NAMED], *([f"{more:,} more"] if more > 0 else [])])
            yield f"{who}Left out: {counted(len(ids), 'answer')} {words}: {named}."


def left_out_rows(left_out: LeftOut, judge: str = "") -> Iterator[Row]:
    """Rows of the number of answers left out for each reason, and of every one of them."""
    for reason, ids in left_out.items():
        yield Row("left_out", reason, Estimate(len(ids)), judge)
        for item_id in ids:
            yield Row(
                "left_out_item", reason, Estimate(None, reason=""), judge, "", {"item_id": item_id}
            )


# --- judges ---------------------------------------------------------------------------------------


def pairs_of(a: Study, b: Study, named: tuple[str, str] = ("", "")) -> list[Pair]:
    """The judges to compare: those named, else every judge that is in both, baselines left
    out, else the only judge of each.

    Raises SetupError where a named judge is not there, or where nothing says who is compared with
    whom.
    """
    if any(named):
        return [_named_pair(a, b, named)]
    real = [{j.name: j for j in study.judges if j.kind != "control"} for study in (a, b)]
    common = [name for name in real[1] if name in real[0]]
    if common:
        return [(real[0][name], real[1][name]) for name in common]
    if len(real[0]) == len(real[1]) == 1:
        return [(next(iter(real[0].values())), next(iter(real[1].values())))]
    raise SetupError(
        [
            Problem(
                "no judge of this name is in both: name the two to compare, as in RUN_A:JUDGE",
                study.name, field=f"judges of {side}", found=listed([*judges]),
            )
            for side, study, judges in zip(SIDES, (a, b), real, strict=True)
        ]
    )  # fmt: skip


def _named_pair(a: Study, b: Study, named: tuple[str, str]) -> Pair:
    """One judge of each; a name that is not given is that of the other, or the only judge."""
    found, problems = [], []
    for side, study, own, other in zip(SIDES, (a, b), named, reversed(named), strict=True):
        judges = {judge.name: judge for judge in study.judges}
        real = [name for name, judge in judges.items() if judge.kind != "control"]
        name = own or (other if other in judges else real[0] if len(real) == 1 else "")
        if name in judges:
            found.append(judges[name])
        else:
            message = "is no judge of this run" if name else "which of its judges is compared?"
            field = f"judge of {side}"
            problems.append(Problem(message, study.name, None, field, name, ", ".join(judges)))
    raise_any(problems)
    return found[0], found[1]


def unpaired_lines(a: Study, b: Study, pairs: Sequence[Pair]) -> Iterator[str]:
    """Sentences on judges that are in one run only."""
    for side, study, place in ((SIDES[0], a, 0), (SIDES[1], b, 1)):
        used = {pair[place].name for pair in pairs}
        if left := [j.name for j in study.judges if j.kind != "control" and j.name not in used]:
            yield f"Not compared, of {side}: {listed(left)}."


# --- metrics and human labels ---------------------------------------------------------------------


def common_metrics(a: Study, b: Study) -> list[Metric]:
    """The metrics of both, as B has them.

    Raises SetupError where there is none, and for each whose labels differ.
    """
    own = {metric.id: metric for metric in a.rubric.metrics}
    both = [metric for metric in b.rubric.metrics if metric.id in own]
    name = f"{a.name} and {b.name}"
    if not both:
        found = f"{', '.join(own)} in A and {', '.join(m.id for m in b.rubric.metrics)} in B"
        raise SetupError(Problem("have no metric in common", name, field="rubric", found=found))
    problems = [
        Problem(
            "its labels are not the same in both runs, so verdicts cannot be compared", name,
            field=metric.id, found=f"{_labels(own[metric.id])} in A and {_labels(metric)} in B",
        )
        for metric in both
        if _labels(own[metric.id]) != _labels(metric)
    ]  # fmt: skip
    raise_any(problems)
    return both


def _labels(metric: Metric) -> str:
    """Everything about a metric that its verdicts are counted by."""
    severities = metric.severities if metric.kind == "ordinal" else ()
    kind = f"{metric.kind}{', severe: none' if metric.severe else ''}"
    texts = [
        f"{text} ({severities[i]})" if severities else text
        for i, text in enumerate(metric.label_texts)
    ]
    others = sorted(set(metric.options) - set(metric.label_texts))
    return f"{kind}: {', '.join([*texts, *others])}"


def metric_lines(a: Study, b: Study, metrics: Sequence[Metric]) -> Iterator[str]:
    """Sentences on metrics that are in one run only, or worded differently."""
    shared = {metric.id for metric in metrics}
    for side, study in zip(SIDES, (a, b), strict=True):
        if alone := [m.title for m in study.rubric.metrics if m.id not in shared]:
            yield f"Metrics of {side} only, not compared: {', '.join(alone)}."
    own = {metric.id: metric for metric in a.rubric.metrics}
    if other := [m.title for m in metrics if m.prompt_line() != own[m.id].prompt_line()]:
        yield f"The rubric words these metrics differently in A and B: {', '.join(other)}."


def truth_changes(
    a: Study, b: Study, rows: tuple[IntArray, IntArray], metrics: Sequence[Metric]
) -> dict[str, int]:
    """By metric the number of answers whose reference label is not the same."""
    return {
        m.id: int((a.humans[m.id].truth[rows[0]] != b.humans[m.id].truth[rows[1]]).sum())
        for m in metrics
    }


def truth_line(differing: Mapping[str, int], holder: str, titles: Mapping[str, str]) -> str:
    """Against whose labels both are scored, and whether the other run's are the same."""
    if said := ", ".join(f"{titles[m]} {n:,}" for m, n in differing.items() if n):
        return (
            f"Both are scored against the reference labels of {holder}, which are not the same in "
            f"the other run: {said}."
        )
    return "Both are scored against the same reference labels."


Sides = tuple[IntArray, IntArray]

NO_LABEL = Declared("no_label", "No label", "share of answers without a usable label", best="lower")
PROBABILITY_STATISTICS = {k: TRUTH_STATISTICS[k] for k in ("brier", "log_loss")}
# Of a judge, whatever the metric: of the verdict that counts, without earlier attempts.
RUN_STATISTICS = by_key(
    *(
        Declared(status.value, status.value.capitalize(), f"share of verdicts that are {status}",
                 best="lower")
        for status in Status if status is not Status.OK
    ),
    Declared("cost", "Cost (US$)", "mean cost of a verdict", best="lower"),
    Declared("latency", "Seconds", "mean time that a verdict took", best="lower"),
    Declared("tokens", "Tokens", "mean number of tokens of prompt and reply", best="lower"),
)  # fmt: skip
CHANGES = by_key(
    Declared("flipped", "Changed", "share of answers with two labels whose label differs"),
    Declared("more_severe", "More severe", "share of answers that B labels more severe",
             of_severe=True),
    Declared("less_severe", "Less severe", "share of answers that B labels less severe",
             of_severe=True),
    Declared("mean_shift", "Mean shift", "label by B minus that by A, as numbers",
             needs_severities=True),
)  # fmt: skip
DECLARED: Mapping[str, Declared] = {
    **STATISTICS,
    **by_key(NO_LABEL),
    **PROBABILITY_STATISTICS,
    **RUN_STATISTICS,
}


@dataclass(frozen=True)
class Compared:
    """Two judges on one metric of a study of the answers that both were asked about."""

    study: Study
    pair: Pair
    metric: Metric

    def judged(self) -> Sides:
        """The labels of both (items,), -1 where there is none."""
        one, two = (self.study.judged(judge, self.metric) for judge in self.pair)
        return one, two

    def of_truth(self) -> Both:
        """Truth, the labels of both and the cluster of each item that any human rated."""
        return both_of(self.study, self.pair, self.metric)

    def rows(
        self, statistic: str, difference: Estimate, values: Sequence[Estimate],
        failures: str = "left_out",
    ) -> Iterator[Row]:  # fmt: skip
        """The difference, and what each of both reaches."""
        return _of_both(self.pair, self.metric.id, statistic, difference, values, failures)


def _of_both(
    pair: Pair, metric: str, statistic: str, difference: Estimate, values: Sequence[Estimate],
    failures: str,
) -> Iterator[Row]:  # fmt: skip
    keys = {"who": pair[0].name, "failures": failures}
    yield Row("difference", statistic, difference, pair[1].name, metric, keys)
    for side, value in zip(SIDES, values, strict=True):
        yield Row("value", statistic, value, pair[1].name, metric, {**keys, "run": side})


def differences(compared: Compared) -> Iterator[Row]:
    """Every statistic on one metric."""
    yield from _scores(compared)
    yield from _probabilities(compared)
    # The share of answers without a usable label: unread, refused, failed or abstained.
    missing = [(labels < 0).astype(np.float64) for labels in compared.judged()]
    yield from compared.rows("no_label", *_shares(compared.study, missing))
    yield from _changes(compared)


# --- against the truth ----------------------------------------------------------------------------


def _scores(compared: Compared) -> Iterator[Row]:
    """The statistics of an alignment; three ways where either judge failed on some items."""
    study, metric = compared.study, compared.metric
    keys = {"who": compared.pair[0].name}
    for policy, both, missing in failure_policies(compared.of_truth(), metric):
        for declared, difference, values in score_differences(study, metric, both, missing):
            yield from compared.rows(declared.key, difference, values, policy)
        for key, p in share_tests(metric, both):
            about = {**keys, "failures": policy, "of": key}
            yield Row("test", "permutation_p", p, compared.pair[1].name, metric.id, about)


def _probabilities(compared: Compared) -> Iterator[Row]:
    """Against one truth per item, where both gave probabilities; nothing where neither did."""
    study, metric = compared.study, compared.metric
    given = [study.probabilities(judge, metric) for judge in compared.pair]
    if given[0] is None or given[1] is None:
        lacking = SIDES[0] if given[0] is None else SIDES[1]
        undefined = Estimate(None, reason=f"{lacking} gave no label probabilities")
        for key in PROBABILITY_STATISTICS if any(p is not None for p in given) else ():
            yield from compared.rows(key, undefined, (undefined, undefined))
        return
    rows, truth, clusters = truths(study, metric)
    q, shared = one_hot(truth, len(metric.labels)), (clusters.codes, NO_ITEM, study.level)
    a, b = given[0][rows], given[1][rows]
    lacks = np.isnan(a + b).any(axis=1)
    a[lacks] = b[lacks] = np.nan
    for key, score in (("brier", squared_distance), ("log_loss", cross_entropy)):
        scores = [np.where(lacks, np.nan, score(p, q)) for p in (a, b)]
        values = [clustered_mean(x, *shared) for x in scores]
        yield from compared.rows(key, clustered_mean(scores[1] - scores[0], *shared), values)


# --- without a truth ------------------------------------------------------------------------------


def _shares(study: Study, x: Sequence[FloatArray]) -> tuple[Estimate, list[Estimate]]:
    """The difference of two shares (items,) of 0 and 1, and both."""
    clusters, none = study.clusters, "there is no answer"
    mean = partial(clustered_mean, clusters=clusters.codes, undefined=none, level=study.level)
    return mean(x[1] - x[0], kind="difference"), [mean(one, kind="share") for one in x]


def _changes(compared: Compared) -> Iterator[Row]:
    """Rows of labels that changed, and which way; of answers to which both gave one."""
    study, metric = compared.study, compared.metric
    one, two = compared.judged()
    both = (one >= 0) & (two >= 0)
    one, two, clusters = one[both], two[both], study.clusters[both]
    severity = np.array(metric.severities if metric.kind == "ordinal" else [0] * len(metric.labels))
    shift = severity[two] - severity[one]
    counts = ClusterCounts(moves_by_cluster((one != two).astype(np.int64), shift, clusters))
    keys = {"who": compared.pair[0].name}
    measured = zip(CHANGES.values(), (FLIPPED, MORE_SEVERE, LESS_SEVERE, MEAN_SHIFT), strict=True)
    for declared, statistic in measured:
        if declared.fits(metric):
            found = clustered_estimate(
                counts, statistic, study.level, n=len(one), n_missing=int((~both).sum())
            )
            yield Row("change", declared.key, found, compared.pair[1].name, metric.id, keys)


def of_the_runs(study: Study, pair: Pair) -> Iterator[Row]:
    """Statuses, cost, time and tokens of the verdicts of both; those that neither has are left
    out."""
    said = [[judge.verdicts[i] for i in study.answers.item_ids()] for judge in pair]
    for declared in RUN_STATISTICS.values():
        x = [_facts(declared.key, verdicts) for verdicts in said]
        if not np.nansum(np.abs(x)):  # nobody failed so, or nothing is known
            continue
        if declared.key in set(Status):
            difference, values = _shares(study, x)
        else:
            shared = (study.clusters.codes, "no verdict says it", study.level)
            values = [clustered_mean(one, *shared) for one in x]
            difference = clustered_mean(x[1] - x[0], *shared)
            unknown = [SIDES[i] for i, one in enumerate(x) if np.isnan(one).all()]
            if unknown:
                reason = f"unknown for {unknown[0]}: no model was called, or it does not report it"
                difference = replace(difference, reason=reason)
        yield from _of_both(pair, "", declared.key, difference, values, "")


def _facts(key: str, verdicts: Sequence[Verdict]) -> FloatArray:
    """One number of each verdict, NaN where it is unknown."""

    def fact(verdict: Verdict) -> float:
        if key == "cost":
            return np.nan if verdict.cost is None else verdict.cost
        if key == "latency":  # of a verdict that was not made here it is 0
            return verdict.latency or np.nan
        if key == "tokens":
            used = verdict.usage.prompt_tokens, verdict.usage.completion_tokens
            return np.nan if None in used else float(sum(u or 0 for u in used))
        return float(verdict.status == key)

    return np.array([fact(verdict) for verdict in verdicts])
