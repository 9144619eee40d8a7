"""Tables beside the decisions: who sets the bar, and the Alternative Annotator Test.

By itself the test is passed by a judge that always gives the common label: its guard is a paired
test against every baseline. docs/decide_alternative_test.md shows the trap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from judgebench.alignment.comparisons import Outcomes
from judgebench.decisions.counts import estimable
from judgebench.decisions.rule import DecisionRule
from judgebench.records import Estimate, is_slot
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.alternative_test import (
    DuelTerms,
    alternative_annotator_test,
    average_advantage,
)
from judgebench.stats.arrays import value_counts
from judgebench.stats.copies import BarKind, gap
from judgebench.stats.intervals import SMOOTHED_T
from judgebench.stats.paired import mcnemar_clustered
from judgebench.studies.study import Humans, JudgeVerdicts, Study


def bar_rows(study: Study, kind: BarKind) -> Iterator[Row]:
    """`gap`: how much more often an annotator, or a judge, agrees with those in the bar than these
    agree with each other on the same items; `share`: of each label among an annotator's labels.

    Nothing for places in a list, which are nobody in particular.
    """
    for metric in study.rubric.metrics:
        humans = study.humans[metric.id]
        if not humans.has_places:
            yield from _of_annotators(humans, kind)
            yield from _of_judges(study, metric, kind)


def _of_annotators(humans: Humans, kind: BarKind) -> Iterator[Row]:
    bar, made, metric = humans.bar(kind), humans.made, humans.metric
    for a, who in enumerate(made.annotators):
        labels = made.values[:, a]
        given = labels[labels >= 0]
        keys = {"who": who, "in_bar": "yes" if bar.kept[a] else "no"}
        found = (bar.gap.value[a], bar.gap.low[a], bar.gap.high[a])
        yield Row("bar", "gap", _estimate(found, len(given)), "", metric.id, keys)
        counts = np.bincount(given, minlength=len(metric.labels))
        for label, count in zip(metric.label_texts, counts.tolist(), strict=True):
            share = Estimate(count / len(given) if len(given) else None, n=len(given), reason="")
            yield Row("bar", "share", share, "", metric.id, {"who": who, "label": label})


def _of_judges(study: Study, metric: Metric, kind: BarKind) -> Iterator[Row]:
    humans = study.humans[metric.id]
    kept = humans.ratings.of(humans.in_bar(kind))
    votes = value_counts(kept.values, len(metric.labels))
    for judge in study.real_judges:
        judged = study.judged(judge, metric)[kept.rows]
        found = gap(judged, False, votes, humans.clusters)
        yield Row("bar", "gap", _estimate(found, (judged >= 0).sum()), judge.name, metric.id)


def _estimate(found: tuple[float, float, float], n: int) -> Estimate:
    if np.isnan(found[0]):
        return Estimate(None, n=n, reason="no item has labels of two others")
    value, low, high = map(float, found)
    return Estimate(value, low, high, SMOOTHED_T, int(n))


def rare_labels(study: Study, metric: Metric, rule: DecisionRule) -> Iterator[str]:
    """Name the labels that are too rare for balanced agreement, and what to do about it."""
    humans, severe = study.humans[metric.id], rule.severe_index(metric)
    truth = humans.truth_of(humans.trusted(rule.replace.humans.bar))
    known = np.flatnonzero(truth >= 0)
    questions = np.array(
        [
            len(np.unique(study.clusters.codes[known[truth[known] == label]]))
            for label in range(len(metric.labels))
        ]
    )
    for label, text in enumerate(metric.label_texts):
        if not estimable(questions, rule.rare, severe)[label] and questions[label]:
            answers = int((truth == label).sum())
            yield (
                f'{metric.title}: "{text}" is the reference label of {answers} of {len(known):,} '
                "answers, too few to estimate agreement on it: it counts in plain and not in "
                "balanced agreement. If it is no judgement, list it under `abstain` in the rubric."
            )


_Guard = tuple[bool | None, str]  # whether every baseline is beaten, None without any; why not


def alternative_tests(study: Study, rule: DecisionRule) -> Iterator[Row]:
    """The test of Calderon et al. (2025) for each judge that is not a control, metric by metric.

    Of all annotators who make the truth, in the bar or not, and with the paper's scores, the share
    of equal labels and, where the metric is ordinal, minus the root mean square distance of
    severities. Places in a list (`crowd#3`) are not people and are left out.

    `advantage` is the average advantage probability; its interval is over whole questions. The t
    test takes items as independent, as in the paper.
    """
    controls = [judge.name for judge in study.controls]
    level = rule.alternative_test.guard
    for metric in study.rubric.metrics:
        right = Outcomes(study, metric)
        for judge in study.real_judges:
            guard = _guard(right, judge.name, controls, level)
            yield from _test(study, metric, judge, rule, guard)


def _test(
    study: Study, metric: Metric, judge: JudgeVerdicts, rule: DecisionRule, guard: _Guard
) -> Iterator[Row]:
    """`winning_rate` is the share of the tested annotators that the judge is as good as, `passes`
    what the test alone says, `guarded` that the judge also beats every control."""
    humans, reason, remarks = study.humans[metric.id], "", list[str]()
    named, tested, rate, passes = [a for a in humans.makers if not is_slot(a)], 0, None, None
    scores = metric.severities if metric.kind == "ordinal" else None
    if len(named) < 2:
        reason = f"the test needs two named annotators; reference labels are made by {len(named)}"
        if humans.has_places:
            reason += " and by places in a list, which are not people"
    advantage = Estimate(None, reason=reason, level=study.level)
    if not reason:
        asked = study.asked(judge, metric)[humans.ratings.rows]
        ratings = humans.ratings.of(named).values[asked]
        judged = study.judged(judge, metric)[humans.ratings.rows[asked]]
        k = len(metric.labels)
        terms = DuelTerms(rule.alternative_test.epsilon, severities=scores)
        found = alternative_annotator_test(ratings, judged, k, terms)
        clusters, level = humans.clusters[asked], study.level
        advantage = average_advantage(ratings, judged, clusters, k, terms, level)
        tested, rate, passes = found.tested, found.winning_rate, found.passes
        few = "with two annotators there is no consensus to be close to" if len(named) == 2 else ""
        remarks = [found.reason, few, guard[1] if passes else ""]
    reason = "; ".join(filter(None, (reason, *remarks)))
    # A judge that fails the test is neither saved nor left open by a control that is missing.
    guarded = guard[0] if passes else passes
    for statistic, number in (
        ("epsilon", rule.alternative_test.epsilon), ("annotators", tested), ("winning_rate", rate),
        ("advantage", advantage), ("passes", passes), ("guarded", guarded),
    ):  # fmt: skip
        if not isinstance(number, Estimate):
            number = Estimate(None if number is None else float(number), reason=reason)
        yield Row("alternative_test", statistic, number, judge.name, metric.id)


def _guard(right: Outcomes, judge: str, controls: Sequence[str], level: float) -> _Guard:
    """Is the judge more accurate than each control, on the items that both labelled?"""
    if not controls:
        return None, "there is no baseline to beat"
    p = {c: mcnemar_clustered(*right.apart(judge, c), "greater") for c in controls}
    unbeaten = ", ".join(c for c, shown in p.items() if shown is None or shown > level)
    return not unbeaten, f"not shown to be more accurate than {unbeaten}" * bool(unbeaten)
