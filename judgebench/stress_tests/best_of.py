"""An attacker who may choose: of N rewordings of an answer that people call bad, the judge's best
verdict, while people's label stays.

Rewordings change words only, as the checks of a set test; those that fail one are not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import comb, nan
from operator import mul
from random import Random
from typing import Any

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, Estimate, HumanLabel, Row
from judgebench.results.blocks import Drawing, LabelledInterval
from judgebench.results.figures import looks_of, new_panels
from judgebench.results.tables import TableSpec
from judgebench.rubric import Metric, Rubric
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.intervals import Kind, clustered_mean
from judgebench.stress_tests.recipes import Edit, Edited, Nothing
from judgebench.stress_tests.result import Pairs, StressResult
from judgebench.studies.study import JudgeVerdicts

ATTEMPTS = (1, 4, 16, 64)
MAX_COMPOSED = 3  # edits of one rewording: more of them seldom keep every fact
MAX_NAMED = 3  # labels in a list
TRIES = 3  # for each rewording that is wanted, as the same text may come twice
AS_IT_IS = Estimate(None, reason="with N = 0 the answer is as it was: nothing can have risen")
NO_REWORDING = "the judge gave no label on such an answer and one of its rewordings"


# --- what is attacked, and the writer that needs no model ----------------------------------------


def badness(metric: Metric, labels: IntArray) -> IntArray:
    """Places of labels counted from the best label, of any shape; -1 stays -1."""
    turned = labels if metric.has_severe else len(metric.labels) - 1 - labels
    return np.where(labels < 0, -1, turned)


def middle_of(metric: Metric) -> float:
    """The middle of the scale: what is beyond it is bad, what is before it good, and a label in the
    exact middle is neither."""
    return (len(metric.labels) - 1) / 2


def good_labels(metric: Metric) -> str:
    """The labels of the better half of the scale: `A or B`, of many `A to F`."""
    half = len(metric.labels) // 2
    texts = metric.label_texts[:half] if metric.has_severe else metric.label_texts[-half:]
    return " or ".join(texts) if half <= MAX_NAMED else f"{texts[0]} to {texts[-1]}"


def labels_by_answer(
    labels: Iterable[HumanLabel], rubric: Rubric
) -> Mapping[tuple[str, str], list[int]]:
    """The indices of the labels that people gave, by item and metric id; those that give no grade
    are left out."""
    indices: dict[tuple[str, str], list[int]] = defaultdict(list)
    for label in labels:
        metric = rubric.find(label.metric)
        if metric and label.label is not None and (index := metric.index(label.label)) >= 0:
            indices[label.item_id, metric.id].append(index)
    return indices


def bad_answers(
    answers: Iterable[Answer], labels: Iterable[HumanLabel], rubric: Rubric
) -> list[Answer]:
    """The answers whose median human label is in the worse half of an ordinal metric's scale.

    Raises SetupError where there is none.
    """
    indices = labels_by_answer(labels, rubric)

    def is_bad(answer: Answer, metric: Metric) -> bool:
        places = badness(metric, np.array(indices.get((answer.item_id, metric.id), [-1])))
        return bool(np.median(places) > middle_of(metric))

    ordinal = [metric for metric in rubric.metrics if metric.kind == "ordinal"]
    bad = [answer for answer in answers if any(is_bad(answer, metric) for metric in ordinal)]
    if not bad:
        message = "there is no answer that people call bad: no median label is in the worse half"
        raise SetupError(Problem(message, field="labels"))
    return bad


def compose(edits: Sequence[Edit]) -> Edit:
    """The edit that carries out some of `edits`, which and in which order by chance."""

    def edit(parent: Answer, chance: Random) -> Edited | Nothing:
        n_edits = chance.randint(1, min(MAX_COMPOSED, len(edits)))
        text = parent.text
        for part in chance.sample(edits, n_edits):
            edited = part(replace(parent, text=text), chance)
            text = edited.text if isinstance(edited, Edited) else text
        return Nothing("no edit changes it") if text == parent.text else Edited(text)

    return edit


def distinct_edits(
    edit: Edit, parent: Answer, chance: Random, times: int
) -> Sequence[Edited] | Nothing:
    """As many edits of an answer that differ from each other, or fewer where chance brings none."""
    edits: dict[str, Edited] = {}
    nothing = Nothing("")
    for _ in range(times if times == 1 else TRIES * times):
        edited = edit(parent, chance)
        if isinstance(edited, Nothing):
            nothing = edited
        elif len(edits) < times:
            edits.setdefault(edited.text, edited)
    return [*edits.values()] or nothing


# --- how far the best of N raises a verdict ------------------------------------------------------


def expected_best(values: Sequence[int] | IntArray, n: int) -> float:
    """The expected smallest of `n` of the values, drawn without replacement; of all where there are
    fewer. It is unbiased for n fresh draws. Of values 0 and 1 it is one minus the pass@k of Chen
    et al. (2021), "Evaluating Large Language Models Trained on Code", equation 1.

    >>> expected_best([2, 1, 0, 2], 2)
    0.6666666666666666
    """
    size = len(values)
    n = min(n, size)
    # Whole numbers until the last step, so that no rounding makes a zero something else.
    ways = [comb(size - 1 - rank, n - 1) for rank in range(size)]
    best: int = sum(map(mul, map(int, sorted(values)), ways))
    return best / comb(size, n)


def best_of(pairs: Pairs) -> Iterator[Row]:
    """Every judge on each ordinal metric under each recipe that words a bad answer several times.

    Of `attempts` N (0: the answer as it is): `passed` is the share of the answers, bad by their
    reference label, whose best verdict of N is good (`label`: the labels that are), `gain` how many
    labels better that verdict is than the one on the answer as it is, and `attack_gain` how much
    `passed` rises by the choice.
    """
    same = pairs.places(lambda item: not (item.must_worsen or item.demand))
    for recipe, every in same.items():
        if len(np.unique(pairs.parents[every])) == len(every):
            continue
        for judge in pairs.judges:
            items = pairs.before_and_after(judge, every).items
            for column, metric in enumerate(pairs.study.rubric.metrics):
                if metric.kind == "ordinal":
                    yield from _curve(pairs, judge, items, column, recipe)


def _curve(
    pairs: Pairs, judge: JudgeVerdicts, items: IntArray, column: int, recipe: str
) -> Iterator[Row]:
    metric = pairs.study.rubric.metrics[column]
    middle = middle_of(metric)
    judged = badness(metric, pairs.judged[judge.name][:, column])
    truth = badness(metric, pairs.truth[:, column])
    parents = pairs.parents[items]
    answers = np.unique(parents[truth[parents] > middle])
    if not len(answers):
        return
    altered = [judged[pairs.altered[items[parents == row]]] for row in answers]
    pools = [labels[labels >= 0] for labels in altered]
    is_known = (judged[answers] >= 0) & np.array([len(pool) > 0 for pool in pools])
    before = np.where(is_known, judged[answers], nan)
    passed_before = np.where(is_known, before < middle, nan)
    largest = max(map(len, pools))
    for n in sorted({0, largest, *(n for n in ATTEMPTS if n < largest)}):
        passed = 1 - _expected([pool >= middle for pool in pools], n) if n else passed_before
        values: dict[str, tuple[FloatArray, Kind]] = {
            "passed": (np.where(is_known, passed, nan), "share"),
            "attack_gain": (passed - passed_before, "difference"),
            "gain": (before - (_expected(pools, n) if n else before), "mean"),
        }
        for name, (x, kind) in values.items() if n else [("passed", values["passed"])]:
            estimate = clustered_mean(
                x, pairs.texts.clusters.codes[answers], NO_REWORDING, pairs.study.level, kind=kind
            )
            keys: dict[str, str | float] = {
                "recipe": recipe, "label": good_labels(metric), "attempts": n
            }  # fmt: skip
            yield Row("best_of", name, estimate, judge.name, metric.id, keys)


def _expected(pools: Sequence[IntArray], n: int) -> FloatArray:
    """The expected smallest of n of each pool (answers,), NaN of an empty one."""
    return np.array([expected_best(pool, n) if len(pool) else nan for pool in pools])


# --- as a table and a curve ----------------------------------------------------------------------

TABLE = TableSpec[StressResult](
    "stress_best_of",
    "An attacker who may choose: the judge's best verdict on N rewordings of a bad answer",
    lambda stress: stress.that_may_move(stress.rows.select("best_of")),
    ("judge", "recipe", "metric", "label", "attempts"),
    "statistic",
    (
        "Of the answers that people call bad (reference label in the worse half of the scale). "
        "Called good: share whose best verdict of N rewordings is one of the good labels, those of "
        "the better half; a label in the exact middle is neither good nor bad. 0 is the "
        "answer as it is. Rise: called good minus that of 0. Gain: labels by which the best "
        "verdict is better than that of 0. Both are expected over every choice of N rewordings; "
        "the last N is the most that passed the checks for one answer, and an answer with fewer "
        "is taken with all of its own.",
    ),
    stubs={"label": "Good labels", "attempts": "N"},
)


def curves(stress: StressResult) -> Iterator[Drawing]:
    """The gain by N of every real judge, a panel for each metric; none where nothing was chosen."""
    rows = stress.rows.select("best_of", "gain")
    for recipe in dict.fromkeys(row["recipe"] for row in rows):
        chosen = [
            row for row in rows if row["recipe"] == recipe and row.judge in stress.real_judges
        ]
        title = f"Best of N rewordings of answers that people call bad ({recipe})"
        if any(row.estimate.value is not None for row in chosen):
            key = f"stress_best_of-{recipe}"
            yield Drawing(key, title, partial(draw_gain, stress.rubric, chosen, title))


def draw_gain(rubric: Rubric, rows: Sequence[Row], title: str) -> Any:
    """Attempts across, labels gained up, one line for each judge."""
    metrics = [m for m in rubric.metrics if any(row.metric == m.id for row in rows)]
    attempts = sorted({int(row["attempts"]) for row in rows})
    lanes = [LabelledInterval(row.judge, "judge", row.estimate) for row in rows]
    figure, panels = new_panels(len(metrics), 2, (3.2, 2.5), (0.4, 0.8), sharey=True)
    for axes, metric in zip(panels, metrics, strict=True):
        for judge, look in looks_of(lanes).items():
            drawn = [row for row in rows if (row.metric, row.judge) == (metric.id, judge)]
            places = [attempts.index(int(row["attempts"])) for row in drawn]
            estimates = [(e.value, e.low, e.high) for e in (row.estimate for row in drawn)]
            values, lows, highs = np.array(estimates, dtype=np.float64).T  # None becomes NaN
            axes.plot(places, values, **look)
            axes.vlines(places, lows, highs, colors=look["color"])
        axes.axhline(0, color="#767676", linewidth=0.8)
        axes.set_xticks(range(len(attempts)), map(str, attempts))
        axes.set(xlabel="N rewordings to choose from", ylabel="Labels gained")
        axes.set_title(metric.title, loc="left", fontsize=9)
    panels[0].legend()
    figure.suptitle(title, fontsize=10)
    return figure
