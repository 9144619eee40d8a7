"""Which answers, judges and human labels of two studies are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import IntArray
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


@dataclass(frozen=True)
class Matched:
    """The answers that two studies have in common.

    `rows` (answers,) are those of A and of B, in the order of B. `left_out` holds the ids of the
    others by the reason why they are.
    """

    rows: tuple[IntArray, IntArray]
    left_out: Mapping[str, Sequence[str]]


def matched(a: Study, b: Study) -> Matched:
    """The answers with the same id and the same content.

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
    return Matched((rows[:, 0], rows[:, 1]), left_out)


def left_out_lines(left_out: Mapping[str, Sequence[str]], who: str = "") -> Iterator[str]:
    """A sentence for each reason why answers are not compared, with the first of them."""
    for reason, words in _LEFT_OUT.items():
        if ids := left_out.get(reason):
            more = len(ids) - _MOST_NAMED
            named = listed([*ids[:_MOST_NAMED], *([f"{more:,} more"] if more > 0 else [])])
            yield f"{who}Left out: {counted(len(ids), 'answer')} {words}: {named}."


def left_out_rows(left_out: Mapping[str, Sequence[str]], judge: str = "") -> Iterator[Row]:
    """How many answers are left out for each reason, and every one of them."""
    for reason, ids in left_out.items():
        yield Row("left_out", reason, Estimate(len(ids)), judge)
        for item_id in ids:
            yield Row(
                "left_out_item", reason, Estimate(None, reason=""), judge, "", {"item_id": item_id}
            )


# --- judges ---------------------------------------------------------------------------------------


def pairs_of(a: Study, b: Study, named: tuple[str, str] = ("", "")) -> list[Pair]:
    """The judges to compare: those named, else every judge that is in both, control judges left
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
    if problems:
        raise SetupError(problems)
    return found[0], found[1]


def unpaired_lines(a: Study, b: Study, pairs: Sequence[Pair]) -> Iterator[str]:
    """Which judges are in one run only."""
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
    if problems:
        raise SetupError(problems)
    return both


def _labels(metric: Metric) -> str:
    """Everything about a metric that its verdicts are counted by."""
    severities = metric.severities if metric.kind == "ordinal" else ()
    texts = [
        f"{text} ({severities[i]})" if severities else text
        for i, text in enumerate(metric.label_texts)
    ]
    others = sorted(set(metric.options) - set(metric.label_texts))
    return f"{metric.kind}: {', '.join([*texts, *others])}"


def metric_lines(a: Study, b: Study, metrics: Sequence[Metric]) -> Iterator[str]:
    """Which metrics are in one run only, and which are worded differently."""
    shared = {metric.id for metric in metrics}
    for side, study in zip(SIDES, (a, b), strict=True):
        if alone := [m.title for m in study.rubric.metrics if m.id not in shared]:
            yield f"Metrics of {side} only, not compared: {', '.join(alone)}."
    own = {metric.id: metric for metric in a.rubric.metrics}
    if other := [m.title for m in metrics if m.prompt_line() != own[m.id].prompt_line()]:
        yield f"The rubric words these metrics differently in A and B: {', '.join(other)}."


@dataclass(frozen=True)
class Truths:
    """How the human labels of two studies differ on the answers that both have: the number of
    answers by metric, whose labels and whose truth differ."""

    labels: Mapping[str, int]
    truth: Mapping[str, int]

    def rows(self) -> Iterator[Row]:
        for metric, count in self.labels.items():
            yield Row("truth", "labels_differ", Estimate(count), "", metric)
            yield Row("truth", "truth_differs", Estimate(self.truth[metric]), "", metric)


def truths(
    a: Study, b: Study, rows: tuple[IntArray, IntArray], metrics: Sequence[Metric]
) -> Truths:
    """Compare the human labels and the truth of both, answer by answer."""
    labels, truth = {}, {}
    for metric in metrics:
        humans = a.humans[metric.id], b.humans[metric.id]
        names = sorted({name for one in humans for name in one.ratings.annotators})
        given = []
        for study, one, of_side in zip((a, b), humans, rows, strict=True):
            whole = np.full((len(study.answers), len(names)), -1, dtype=np.int64)
            places = [names.index(name) for name in one.ratings.annotators]
            whole[np.ix_(one.ratings.rows, np.array(places, dtype=np.int64))] = one.ratings.values
            given.append(whole[of_side])
        labels[metric.id] = int((given[0] != given[1]).any(axis=1).sum())
        differs = humans[0].truth[rows[0]] != humans[1].truth[rows[1]]
        truth[metric.id] = int(differs.sum())
    return Truths(labels, truth)


def truth_line(found: Truths, holder: str, titles: Mapping[str, str]) -> str:
    """Against whose labels both are scored, and whether the other run's are the same."""
    labels = ", ".join(f"{titles[m]} {n:,}" for m, n in found.labels.items() if n)
    truth = ", ".join(f"{titles[m]} {n:,}" for m, n in found.truth.items() if n)
    if labels:
        return (
            f"The human labels of A and B are not the same: both are scored against those of "
            f"{holder}. Answers with other labels: {labels}; with another truth: {truth or 'none'}."
        )
    if truth:
        return (
            "The human labels of A and B are the same, and the rule that makes the truth of them "
            f"is not: both are scored by that of {holder}. Answers with another truth: {truth}."
        )
    return "Both are scored against the same human labels."
