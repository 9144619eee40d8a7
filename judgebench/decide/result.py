"""What a decision holds: the outcome, every condition with its interval, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from judgebench.decide.rule import DecisionRule
from judgebench.records import Estimate
from judgebench.rubric import Rubric

EVERY = "any"  # as the metric of a triage curve: severe on any metric


class Outcome(StrEnum):
    """What a judge may do for one metric."""

    REPLACE = "REPLACE"  # stand in for human annotators
    ASSIST = "ASSIST"  # sort out what humans need not see
    DONT = "DON'T"  # neither
    CANT_TELL = "CAN'T TELL"  # the data cannot carry a decision


class State(StrEnum):
    """How a condition stands."""

    MET = "met"  # the whole interval lies on the right side of the bound
    NOT_MET = "not met"  # the whole interval lies on the wrong side
    UNCLEAR = "unclear"


def state_at_most(estimate: Estimate, bound: float) -> State:
    """How an estimate stands that must lie below `bound`; unclear without an interval."""
    if estimate.high is not None and estimate.high <= bound:
        return State.MET
    if estimate.low is not None and estimate.low > bound:
        return State.NOT_MET
    return State.UNCLEAR


@dataclass(frozen=True)
class Condition:
    """One thing that REPLACE or ASSIST asks for.

    `key` is stable: humans_accuracy, humans_balanced_accuracy, controls_accuracy,
    controls_balanced_accuracy, severe_items, severe_recall, failures, robustness, planted (for
    REPLACE), sent, missed (for ASSIST). `title` says what `estimate` is; `rival` is the control
    judge that it is a difference from, if any. It must lie above `bound` where `at_least`, else
    below it. `missing` says in numbers or words what keeps an unclear condition from being clear.
    """

    key: str
    title: str
    state: State
    estimate: Estimate
    bound: float
    at_least: bool
    missing: str = ""
    rival: str = ""


@dataclass(frozen=True)
class MoreData:
    """How much more data would make a decision clear, by simulation from what there is.

    `items` more answers with human labels as there are now, `labels` human labels for them,
    `severe` severe answers among them. All are None where the decision stays unclear with as much
    as the rule's plan allows, or where nothing can be simulated: `reason` says which. `clear` is
    the share of simulated studies of that size that end clear, `towards` the outcome that most of
    these have.
    """

    items: int | None
    labels: int | None
    severe: int | None
    clear: float | None
    towards: Outcome | None
    reason: str = ""


@dataclass(frozen=True)
class Decision:
    """The decision on one judge and one metric. `reason` is one sentence with its numbers.

    `replace` and `assist` are the conditions; either may be empty where nothing could be
    computed, and `reason` then says why. `more` is None where the decision is clear.
    """

    judge: str
    metric: str
    outcome: Outcome
    reason: str
    replace: tuple[Condition, ...]
    assist: tuple[Condition, ...]
    more: MoreData | None = None


@dataclass(frozen=True)
class TriagePoint:
    """Answers whose signal is at least `threshold` go to humans; so do those without a verdict.

    `sent` is the share of answers that do, `caught` the share of severe answers among these.
    """

    threshold: float
    sent: Estimate
    caught: Estimate


@dataclass(frozen=True)
class TriageChoice:
    """The recommended threshold: the more cautious of two, each chosen on one half of the
    questions. `missed` is held out: that of each half under the other half's threshold. `sent` is
    what the recommended threshold sends of all answers."""

    threshold: float
    sent: Estimate
    missed: Estimate


@dataclass(frozen=True)
class TriageCurve:
    """One judge's signal on one metric (or EVERY), from sending nobody to sending everybody.

    `signal` says what the threshold is held against, such as `probability of a severe label`.
    `severe` counts severe answers, `n` all answers with a truth. `choice` is None where none can
    be recommended, and `reason` says why.
    """

    judge: str
    metric: str
    signal: str
    points: tuple[TriagePoint, ...]
    n: int
    severe: int
    choice: TriageChoice | None = None
    reason: str = ""


@dataclass(frozen=True)
class ErrorCorrelation:
    """How far two judges err on the same items: Pearson's correlation of their errors (phi)."""

    metric: str
    first: str
    second: str
    estimate: Estimate


@dataclass(frozen=True)
class JuryValue:
    """What a jury of this run's judges is worth on one metric.

    `correlation` is the mean of the pairs' error correlations r, `effective` the number of
    independent judges that would be worth as much, m / (1 + (m - 1) r). `best` is the subset
    chosen on all items; `accuracy` that of subsets chosen on the other folds (held out), `single`
    that of the best single judge chosen so, `gain` their difference on the same items.
    """

    metric: str
    judges: tuple[str, ...]
    correlations: tuple[ErrorCorrelation, ...]
    correlation: Estimate
    effective: Estimate
    best: tuple[str, ...]
    accuracy: Estimate
    single: Estimate
    gain: Estimate


@dataclass(frozen=True)
class AlternativeTest:
    """The Alternative Annotator Test of one judge on one metric (Calderon et al., 2025).

    `variant` is `plain`, or `balanced` with every label of the others weighing the same.
    `annotators` were tested, `winning_rate` of them the judge is as good as, with the tolerance
    `epsilon`; `advantage` is the average advantage probability. `passes` is what the test alone
    says; `guarded` that it passes and the judge also beats every control. None where undefined.
    """

    judge: str
    metric: str
    variant: str
    epsilon: float
    annotators: int
    winning_rate: float | None
    advantage: Estimate
    passes: bool | None
    guarded: bool | None
    reason: str = ""


@dataclass(frozen=True)
class Decisions:
    """Everything that `judgebench decide` says. `in_words` are the rule's demands as sentences."""

    name: str
    rubric: Rubric
    rule: DecisionRule
    decisions: tuple[Decision, ...]
    curves: tuple[TriageCurve, ...] = ()
    juries: tuple[JuryValue, ...] = ()
    alternative_tests: tuple[AlternativeTest, ...] = ()
    judges: Mapping[str, str] = field(default_factory=dict)  # name -> kind, controls left out
    in_words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
