"""The Alternative Annotator Test of every real judge, and whether it also beats every control.

By itself the test is passed by a judge that always gives the common label: its guard is a paired
test against every control judge. docs/decide_alternative_test.md shows the trap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judgebench.align.comparisons import Outcomes, outcomes
from judgebench.decide.rule import AlternativeTestRule
from judgebench.records import Estimate, is_slot
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.alternative_test import (
    DuelTerms,
    alternative_annotator_test,
    average_advantage,
)
from judgebench.stats.paired import mcnemar_clustered
from judgebench.study.study import JudgeVerdicts, Study

VARIANTS = ("plain", "balanced")


@dataclass(frozen=True)
class _Guard:
    """Whether a judge beats every control; None without a control, and `reason` says why not."""

    beats_all: bool | None
    reason: str


def alternative_tests(study: Study, rule: AlternativeTestRule) -> Iterator[Row]:
    """Both variants for each judge that is not a control, metric by metric (Calderon et al., 2025).

    The variant (key `who`) is `plain`, or `balanced` with every label of the others weighing the
    same. `advantage` is the average advantage probability.

    The annotators are the named people who make the truth; places in a list (`crowd#3`) are not
    people and are left out. Closeness to the others is the share of equal labels, for ordinal
    metrics too. The t test takes items as independent, as in the paper; the advantage's interval
    resamples whole questions.
    """
    controls = [judge.name for judge in study.judges if judge.kind == "control"]
    real = [judge for judge in study.judges if judge.kind != "control"]
    for metric in study.rubric.metrics:
        right = outcomes(study, study.judges, metric)
        for judge in real:
            guard = _guard(right, judge.name, controls, rule.guard, study.resampling.seed)
            for variant in VARIANTS:
                yield from _test(study, metric, judge, variant, rule, guard)


def _test(
    study: Study,
    metric: Metric,
    judge: JudgeVerdicts,
    variant: str,
    rule: AlternativeTestRule,
    guard: _Guard,
) -> Iterator[Row]:
    """`winning_rate` is the share of the tested annotators that the judge is as good as, `passes`
    what the test alone says, `guarded` that the judge also beats every control."""
    humans, tested, rate, passes = study.humans[metric.id], 0, None, None
    named = [a for a in humans.makers if not is_slot(a)]
    reason = _too_few(named, any(is_slot(a) for a in humans.makers)) if len(named) < 2 else ""
    advantage = Estimate(None, reason=reason, level=study.resampling.level)
    if not reason:
        ratings = humans.ratings.of(named).values
        judged = study.judged(judge, metric)[humans.ratings.rows]
        k = len(metric.labels)
        terms = DuelTerms(rule.epsilon, balanced=variant == "balanced")
        found = alternative_annotator_test(ratings, judged, k, terms)
        clusters, resampling = humans.clusters, study.resampling
        advantage = average_advantage(ratings, judged, clusters, k, terms, resampling)
        tested, rate, passes = found.tested, found.winning_rate, found.passes
        few = "with two annotators there is no consensus to be close to" if len(named) == 2 else ""
        reason = "; ".join(filter(None, (found.reason, few, guard.reason if passes else "")))
    # A judge that fails the test is neither saved nor left open by a control that is missing.
    guarded = guard.beats_all if passes else passes
    for statistic, number in (
        ("epsilon", rule.epsilon), ("annotators", tested), ("winning_rate", rate),
        ("advantage", advantage), ("passes", passes), ("guarded", guarded),
    ):  # fmt: skip
        if not isinstance(number, Estimate):
            number = Estimate(None if number is None else float(number), reason=reason)
        keys = {"who": variant}
        yield Row("alternative_test", statistic, number, judge.name, metric.id, keys)


def _guard(right: Outcomes, judge: str, controls: Sequence[str], level: float, seed: int) -> _Guard:
    """Is the judge more accurate than each control, on the items that both labelled?"""
    if not controls:
        return _Guard(None, "there is no control judge to beat")
    unbeaten = []
    for control in controls:
        p = mcnemar_clustered(right.pair(judge, control), "greater", seed=seed)
        if p is None or p > level:
            unbeaten.append(control)
    if not unbeaten:
        return _Guard(True, "")
    return _Guard(False, f"not shown to be more accurate than {', '.join(unbeaten)}")


def _too_few(named: Sequence[str], has_slots: bool) -> str:
    """Why there is no test without two people."""
    people = f"the test needs two named annotators; the truth is made by {len(named)}"
    return f"{people} and by places in a list, which are not people" if has_slots else people
