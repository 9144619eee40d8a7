"""The Alternative Annotator Test of every real judge, and whether it also beats every control.

By itself the test is passed by a judge that always gives the common label: its guard is a paired
test against every control judge. docs/decide_alternative_test.md shows the trap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judgebench.align.comparisons import Outcomes, outcomes
from judgebench.decide.result import AlternativeTest
from judgebench.records import Estimate, is_slot
from judgebench.rubric import Metric
from judgebench.stats.alternative_test import alternative_annotator_test, average_advantage
from judgebench.stats.paired import mcnemar_clustered
from judgebench.study.study import JudgeVerdicts, Study

EPSILON = 0.1
LEVEL_OF_GUARD = 0.05  # one-sided, against each control
VARIANTS = ("plain", "balanced")


@dataclass(frozen=True)
class _Guard:
    """Whether a judge beats every control; None without one, and `reason` says what stands."""

    beats_all: bool | None
    reason: str


def alternative_tests(
    study: Study,
    metrics: Sequence[Metric],
    judges: Sequence[JudgeVerdicts],
    epsilon: float = EPSILON,
) -> Iterator[AlternativeTest]:
    """Both variants for each judge that is no control, metric by metric.

    The annotators are the named people who make the truth; places in a list (`crowd#3`) are no
    people and are left out. Closeness to the others is the share of equal labels, for ordinal
    metrics too. `epsilon` is how much worse than an annotator the judge may be, for being cheaper:
    Calderon et al. (2025) advise 0.2 where the annotators are experts, 0.15 for trained and 0.1
    for crowd workers; the strictest of these is the default. Items are taken as independent by
    the t test, as in the paper; the advantage's interval resamples whole questions.
    """
    for metric in metrics:
        right = outcomes(study, judges, metric)
        controls = [judge.name for judge in judges if judge.kind == "control"]
        for judge in judges:
            if judge.kind == "control":
                continue
            guard = _guard(right, judge.name, controls, study.resampling.seed)
            for variant in VARIANTS:
                yield _test(study, metric, judge, variant, epsilon, guard)


def _test(
    study: Study,
    metric: Metric,
    judge: JudgeVerdicts,
    variant: str,
    epsilon: float,
    guard: _Guard,
) -> AlternativeTest:
    humans, level = study.humans[metric.id], study.resampling.level
    named = [a for a in humans.makers if not is_slot(a)]
    if len(named) < 2:
        reason = _too_few(named, any(is_slot(a) for a in humans.makers))
        undefined = Estimate(None, reason=reason, level=level)
        return AlternativeTest(
            judge.name, metric.id, variant, epsilon, 0, None, undefined, None, None, reason
        )
    ratings = humans.ratings.of(named).values
    judged = study.judged(judge, metric)[humans.ratings.rows]
    k, balanced = len(metric.labels), variant == "balanced"
    found = alternative_annotator_test(ratings, judged, k, epsilon=epsilon, balanced=balanced)
    advantage = average_advantage(
        ratings, judged, humans.clusters, k, balanced=balanced,
        resampling=study.resampling,
    )  # fmt: skip
    guarded = None if found.passes is None else _guarded(found.passes, guard)
    caution = "with two annotators there is no consensus to be close to" if len(named) == 2 else ""
    standing = guard.reason if found.passes else ""
    reason = "; ".join(part for part in (found.reason, caution, standing) if part)
    return AlternativeTest(
        judge.name, metric.id, variant, epsilon, found.tested, found.winning_rate, advantage,
        found.passes, guarded, reason,
    )  # fmt: skip


def _guarded(passes: bool, guard: _Guard) -> bool | None:
    """A judge that fails the test is not saved, nor left open, by a control that is missing."""
    return guard.beats_all if passes else False


def _guard(right: Outcomes, judge: str, controls: Sequence[str], seed: int) -> _Guard:
    """Is the judge more accurate than each control, on the items that both labelled?"""
    if not controls:
        return _Guard(None, "there is no control judge to beat")
    unbeaten = []
    for control in controls:
        p = mcnemar_clustered(right.pair(judge, control), "greater", seed=seed)
        if p is None or p > LEVEL_OF_GUARD:
            unbeaten.append(control)
    if not unbeaten:
        return _Guard(True, "")
    return _Guard(False, f"not shown to be more accurate than {', '.join(unbeaten)}")


def _too_few(named: Sequence[str], has_slots: bool) -> str:
    """Why there is no test without two people."""
    people = f"the test needs two named annotators; the truth is made by {len(named)}"
    return f"{people} and by places in a list, which are no people" if has_slots else people
