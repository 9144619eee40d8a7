"""Find a score, the human ceiling or the best control in an Alignment."""

from __future__ import annotations

from collections.abc import Mapping

from judgebench.align import Alignment, FailurePolicy, JudgeSummary
from judgebench.records import Estimate

# Statistics of which less is better, and the one that is best at 0.
_LESS_IS_BETTER = ("overestimated", "underestimated")
BEST_AT_ZERO = ("severity_error",)


def real_judges(alignment: Alignment) -> list[JudgeSummary]:
    """Judges and juries, without the controls."""
    return [judge for judge in alignment.judges if judge.kind != "control"]


def controls(alignment: Alignment) -> list[JudgeSummary]:
    """The control judges."""
    return [judge for judge in alignment.judges if judge.kind == "control"]


Scores = Mapping[tuple[str, str, str], Mapping[FailurePolicy, Estimate]]


def score_index(alignment: Alignment) -> Scores:
    """The scores by (judge, metric, statistic) and then by the way of counting failures."""
    index: dict[tuple[str, str, str], dict[FailurePolicy, Estimate]] = {}
    for x in alignment.scores:
        index.setdefault((x.judge, x.metric, x.statistic), {})[x.failures] = x.estimate
    return index


def find_score(
    scores: Scores, judge: str, metric: str, statistic: str, failures: FailurePolicy = "left_out"
) -> Estimate:
    """The estimate of one judge; undefined with a reason where it was not computed.

    Where nothing failed, the three ways of counting failures are one.
    """
    found = scores.get((judge, metric, statistic), {})
    if failures in found:
        return found[failures]
    plain = found.get("left_out")
    if plain is not None and plain.n_missing == 0:
        return plain
    return Estimate(None, reason="not computed for this metric")


def find_ceiling(
    alignment: Alignment, metric: str, statistic: str, annotator: str = "all"
) -> Estimate:
    """The estimate of one annotator against the others; undefined where it was not computed."""
    for score in alignment.ceiling:
        if (score.annotator, score.metric, score.statistic) == (annotator, metric, statistic):
            return score.estimate
    return Estimate(None, reason="not computed for this metric")


def has_ceiling(alignment: Alignment, statistic: str) -> bool:
    """Whether humans were held against each other by this statistic at all."""
    return any(score.statistic == statistic for score in alignment.ceiling)


def best_control(
    alignment: Alignment, scores: Scores, metric: str, statistic: str
) -> tuple[str, Estimate] | None:
    """The control judge nearest to the ideal value, or None where no control has a value."""
    found = [
        (control.name, find_score(scores, control.name, metric, statistic))
        for control in controls(alignment)
    ]
    defined = [pair for pair in found if pair[1].value is not None]
    return min(defined, key=lambda pair: shortfall(statistic, pair[1].value or 0.0), default=None)


def shortfall(statistic: str, value: float) -> float:
    """A number that falls as a statistic gets better."""
    if statistic in BEST_AT_ZERO:
        return abs(value)
    return value if statistic in _LESS_IS_BETTER else -value
