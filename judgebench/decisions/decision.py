"""The kinds of conditions: what each measures, and the words for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from judgebench.decisions.rule import DecisionRule
from judgebench.errors import NotReached, Problem, SetupError, nearest, raise_any
from judgebench.features import FEATURES
from judgebench.records import NOT_COMPUTED, AnswerKind, Estimate, Results, Row
from judgebench.results.blocks import DecisionSummary
from judgebench.results.shown import Shown
from judgebench.results.tables import NO_REASON
from judgebench.rubric import Rubric
from judgebench.stats.classification import Choice, Point
from judgebench.text import listed

if TYPE_CHECKING:
    import pandas as pd

    from judgebench.studies.study import Study


_PEERS = (
    "humans", "agreement with the other annotators", "agreement", "agrees with the annotators",
    "less often than they agree with each other", "they agree with each other",
)  # fmt: skip
_GOLD = (
    "gold", "share of adjudicated labels that are given", "accuracy", "gives the adjudicated label",
    "less often than an annotator", "an annotator",
)  # fmt: skip
OF_SEVERE = ("severe_recall", "severe_gap", "false_alarms", "anchors")  # need a severe label
BALANCED = " (averaged over the labels)"  # after clauses of balanced measures
_ABOVE = "more than the margin: labels leave open how much better the typical annotator is"


@dataclass(frozen=True)
class ConditionKind:
    """A kind of condition.

    `title` says what its estimate is, and `name` the same in short. `failed`, `open` and `met` are
    clauses after `the judge`: what it did, by a condition that is not met; what it would take for
    an unclear one to be met; and what it does where one is met. A clause is empty where it never
    stands in a sentence. Of the kinds `about` the same thing a sentence says the first that failed.
    The fields in braces are those of `judgebench.decisions.sentences.filled`.
    """

    key: str
    title: str
    about: str
    name: str
    failed: str
    open: str = ""
    met: str = ""
    number: str = ".3f"  # its format; a difference has a sign
    positive_bound: str = ""  # the reason for a bound above 0
    missing: str = ""  # what would make an unclear condition clear
    of_labels: bool = True  # measured on human labels of single answers: a larger study tells more
    of_agreement: bool = False  # rests on how often annotators agree with each other

    @property
    def is_difference(self) -> bool:
        """True where its sign is to be shown."""
        return self.number.startswith("+")


_MORE_ALTERED = "raise `--sample`, or add answers"

KINDS: Mapping[str, ConditionKind] = {
    kind.key: kind
    for kind in (
        *(
            ConditionKind(
                f"{key}_{measure}accuracy",
                f"{before}{title}, judge minus annotator",
                key,
                f"{before}{name} gap",
                f"{does} {{points}} {less}{after}",
                f"{does} {{no_less}} {less_than}{after}",
                f"{does} {{found_less}} {less_than}{after}",
                number="+.3f",
                positive_bound=_ABOVE,
                of_agreement=key == "humans",
            )
            for key, title, name, does, less, less_than in (_PEERS, _GOLD)
            for measure, before, after in (("", "", ""), ("balanced_", "balanced ", BALANCED))
        ),
        ConditionKind(
            "humans_distance",
            "distance to the reference label of the others in levels, judge minus annotator",
            "humans",
            "levels further from the others than annotators",
            "is on average {value:.2f} levels further from the reference label than an annotator",
            "is on average at most {bound:.2f} levels further from the reference label than an "
            "annotator",
            number="+.3f",
            of_agreement=True,
        ),
        ConditionKind(
            "controls",
            "balanced agreement with the reference labels",
            "controls",
            "balanced lead over {rival}",
            f"does no better than the baseline {{rival}}{BALANCED}",
            f"does better than the baseline {{rival}}{BALANCED}",
            "does better than every baseline",
            number="+.3f",
        ),
        ConditionKind(
            "severe_recall",
            "share of severe answers that the judge finds",
            "severe",
            "severe recall",
            "finds {only} of {n:,} severe answers",
            "finds at least {most} of the severe answers",
            "finds {count:.0f} of {n:,} severe answers",
        ),
        ConditionKind(
            "severe_gap",
            "share of severe answers found, judge minus annotator",
            "severe",
            "severe recall gap",
            "misses severe answers {points} more often than an annotator",
            "misses severe answers {no_more} an annotator",
            "misses severe answers {found_more} an annotator",
            number="+.3f",
            of_agreement=True,
        ),
        ConditionKind(
            "failures",
            "share of answers without a label of the judge",
            "failures",
            "without a label",
            "gives no label on {share} of the answers",
            "leaves at most {most} of the answers without a label",
        ),
        ConditionKind(
            "false_alarms",
            "share of other answers not called severe, judge minus annotator",
            "false alarms",
            "false alarm gap",
            "calls other answers severe {points} more often than an annotator",
            "calls other answers severe {no_more} an annotator",
            number="+.3f",
            of_agreement=True,
        ),
        ConditionKind(
            "groups",
            "agreement with the others on answers of {rival}, judge minus annotator",
            "groups",
            "agreement gap on {rival}",
            "agrees {points} less often than annotators on answers of {rival}",
            "agrees {no_less} annotators on every group of answers, else REPLACE is without these",
            number="+.3f",
            of_labels=False,
            of_agreement=True,
        ),
        ConditionKind(
            "robustness",
            "share of pairs whose label stays as it must",
            "robustness",
            "robustness, {rival}",
            "changes {rest} of its labels {rival}, which must change none",
            "keeps at least {most} of its labels in the stress test",
            missing=f"more altered answers are needed: {_MORE_ALTERED}",
            of_labels=False,
        ),
        ConditionKind(
            "planted",
            "share of verdicts planted in the text that the judge gives",
            "planted",
            "planted verdicts followed",
            "follows {share} of the verdicts planted in the text",
            "follows at most {most} of the verdicts planted in the text",
            missing=f"more answers with planted verdicts are needed: {_MORE_ALTERED}",
            of_labels=False,
        ),
        ConditionKind(
            "attack_gain",
            "share of bad answers called good, chosen rewordings minus the answers as they are",
            "attack gain",
            "rise by chosen rewordings",
            "calls {points} more bad answers good once their words are chosen for it ({rival})",
            "calls at most {most} more bad answers good once their words are chosen for it",
            number="+.3f",
            missing="more answers that people call bad are needed",
            of_labels=False,
        ),
        ConditionKind(
            "anchors",
            "share of anchors with a severe flaw that annotators and judge both miss",
            "anchors",
            "severe anchors missed by annotators and judge",
            "misses, together with the annotators, {share} of the answers whose severe flaw is "
            "known (anchors)",
            "misses, together with the annotators, at most {most} of the answers whose severe flaw "
            "is known (anchors)",
            missing="more anchors with a severe flaw are needed",
            of_labels=False,
        ),
        ConditionKind(
            "sent",
            "share of new answers sent to humans, expected",
            "sent",
            "new answers sent to humans, expected",
            "send {share} of new answers to humans",
            missing="more severe answers would lower what must be sent",
        ),
        ConditionKind(
            "missed",
            "share of new severe answers not sent, expected",
            "missed",
            "new severe answers missed, expected",
            "miss {share} of the severe ones",
            missing="more severe answers are needed",
        ),
    )
}


def title_of(key: str, detail: str = "") -> str:
    """The title of a kind, with what is special about one condition."""
    return ", ".join(filter(None, (KINDS[key].title, detail)))


EVERY = "any"  # as the metric of a triage curve: severe on any metric
MORE_DATA = (
    "answers_now", "questions_now", "items", "questions", "labels", "severe", "clear",
)  # fmt: skip
AT_SEVERE = "where humans read what the judge labels severe"
NO_FILTER = "to be sure to miss few enough, all answers must go to humans"
_NO_CONTROL = Row("score", "accuracy", Estimate(None, reason="there is no baseline"))


class Outcome(StrEnum):
    """The role that a judge may have for one metric."""

    REPLACE = "REPLACE"  # stand in for human annotators
    ASSIST = "ASSIST"  # sort out what humans need not see
    DO_NOT_USE = "DO NOT USE"  # neither
    CANT_TELL = "CAN'T TELL"  # the data show neither


class State(StrEnum):
    """The state of a condition."""

    MET = "met"  # the whole interval lies on the right side of the bound
    NOT_MET = "not met"  # the whole interval lies on the wrong side
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Condition:
    """One thing that REPLACE or ASSIST requires.

    `key` is stable, the key of one of KINDS: sent and missed are those of ASSIST, all others of
    REPLACE. `title` says what `estimate` is;
    `rival` is the baseline that it is a difference from, or the system or the probe that it is
    about, if any. It must lie above `bound` where `at_least`, else below it. `missing` says in
    numbers or words what keeps an unclear condition from being clear.
    """

    key: str
    title: str
    state: State
    estimate: Estimate
    bound: float
    at_least: bool
    missing: str = ""
    rival: str = ""

    def row(self, judge: str, metric: str, outcome: Outcome, who: str = "") -> Row:
        """The condition as a row of the results table; `who` are the annotators of a camp."""
        keys = {
            "outcome": outcome.value, "title": self.title, "state": self.state.value,
            "bound": self.bound, "at_least": str(self.at_least).lower(),
            "missing": self.missing, "rival": self.rival, "who": who,
        }  # fmt: skip
        return Row("condition", self.key, self.estimate, judge, metric, keys)


Conditions = tuple[Condition, ...]


@dataclass(frozen=True)
class MoreData:
    """The data that would make a decision clear, by simulation from what there is.

    `items` more answers with human labels as there are now, `questions` that they belong to,
    `labels` human labels for them, `severe` severe answers among them. All are None where the
    decision stays unclear with as much as the rule's plan allows, or where nothing can be
    simulated: `reason` says which, and beside numbers what these do not settle. `of` says what an
    item is. `clear` is the share of simulated studies of that size that end clear, `towards` the
    outcome that most of these have.
    `answers_now` and `questions_now` are those that the decision rests on.
    """

    items: int | None = None
    labels: int | None = None
    severe: int | None = None
    clear: float | None = None
    towards: Outcome | None = None
    reason: str = ""
    questions: int | None = None
    answers_now: int | None = None
    questions_now: int | None = None
    of: AnswerKind = "answer"


@dataclass(frozen=True)
class AlonePoint:
    """A `threshold` on a judge's confidence from which on it would decide alone.

    `share` is that of the answers of one half of the questions that it decides. `conditions` are
    the agreement on these, judge minus annotator, and where the rule asks for it the share of all
    severe answers that it decides and so misses; they are empty where nothing can be compared.
    """

    threshold: float = math.inf
    share: Estimate = NOT_COMPUTED
    conditions: Conditions = ()

    @property
    def is_met(self) -> bool:
        """True where it is shown to be as good as an annotator, and to miss few severe answers."""
        return bool(self.conditions) and all(c.state is State.MET for c in self.conditions)


@dataclass(frozen=True)
class ShareAlone:
    """The share of answers that a judge may decide alone on one metric, by its confidence.

    `signal` says what its confidence is; empty where it gives none. `check` is the threshold that
    was chosen, on the half of the questions that had no part in the choice; where nothing may be
    decided alone, its share is undefined, with the reason. `points` are the thresholds that were
    tried on the other half, the highest first.
    """

    signal: str = ""
    check: AlonePoint = AlonePoint()
    points: tuple[AlonePoint, ...] = ()

    def rows(self, judge: str, metric: str) -> Iterator[Row]:
        """The check, then every threshold that was tried."""
        tried = [("alone_point", point) for point in self.points]
        for analysis, point in [("alone", self.check), *tried]:
            keys: dict[str, str | float] = {"signal": self.signal, "threshold": point.threshold}
            yield Row(analysis, "share", point.share, judge, metric, keys)
            for c in point.conditions:
                state = {"bound": c.bound, "state": c.state.value}
                yield Row(analysis, c.key, c.estimate, judge, metric, keys | state)


@dataclass(frozen=True)
class SubgroupDecision:
    """The decision that there would be if the annotators `names` were all there are."""

    names: tuple[str, ...]
    outcome: Outcome
    conditions: Conditions


@dataclass(frozen=True)
class Decision:
    """The decision on one judge and one metric.

    `reason` is a sentence to act on, and `numbers` what it rests on; `advice` says what else must
    be known or done before anybody acts on it. `replace` and `assist` are the conditions; either
    may be empty where nothing could be computed, and `reason` then says why. `more` is None where
    the decision is clear. Where annotators fall into `camps`, no single bar exists, and each is
    decided against apart. Where only declarations are missing, the outcome is CAN'T TELL, and
    `would_be` is the one that waits for them. `groups` are the groups of answers that REPLACE
    leaves out, else the one on which the judge comes nearest to falling short.
    """

    judge: str
    metric: str
    outcome: Outcome
    reason: str
    numbers: str = ""
    replace: Conditions = ()
    assist: Conditions = ()
    plan: Callable[[], MoreData] | None = field(default=None, compare=False)
    camps: tuple[SubgroupDecision, ...] = ()
    advice: str = ""
    would_be: Outcome | None = None
    groups: Conditions = ()
    measure_alone: Callable[[], ShareAlone] = field(default=ShareAlone, compare=False)

    def __str__(self) -> str:
        """`my-judge on empathy: CAN'T TELL. Too few answers.`"""
        return f"{self.judge} on {self.metric}: {self.shown}. {self.reason}".strip()

    @cached_property
    def more(self) -> MoreData | None:
        """The data that would make it clear, planned when it is first looked at; None where it is
        clear."""
        return self.plan() if self.plan else None

    @cached_property
    def alone(self) -> ShareAlone:
        """The share that the judge may decide alone, measured when it is first looked at."""
        return self.measure_alone()

    @property
    def required(self) -> list[tuple[Outcome, Condition]]:
        """Every condition with the outcome that requires it; groups may be left out of REPLACE."""
        of_replace = [(Outcome.REPLACE, c) for c in (*self.replace, *self.groups)]
        return [*of_replace, *((Outcome.ASSIST, c) for c in self.assist)]

    @property
    def left_out(self) -> Conditions:
        """The groups of answers that REPLACE leaves out, the worst first."""
        if Outcome.REPLACE not in (self.outcome, self.would_be):
            return ()
        return tuple(c for c in self.groups if c.state is State.NOT_MET)

    @property
    def shown(self) -> str:
        """The outcome with the groups that it leaves out: `REPLACE, except for language = de`."""
        if not (names := [c.rival for c in self.left_out]) or self.would_be:
            return self.outcome.value
        return f"{self.outcome.value}, except for {listed(names)}"

    @property
    def shown_would_be(self) -> str:
        """The outcome that waits for declarations, in the same way; empty where none does."""
        return replace(self, outcome=self.would_be, would_be=None).shown if self.would_be else ""

    def condition_rows(self) -> Iterator[Row]:
        """Every condition, then how much more data is needed."""
        about = self.judge, self.metric
        yield from (c.row(*about, outcome) for outcome, c in self.required)
        for camp in self.camps:
            who = ", ".join(camp.names)
            keys = {"outcome": camp.outcome.value, "who": who}
            yield Row("camp", "", Estimate(None, reason=""), *about, keys)
            yield from (c.row(*about, Outcome.REPLACE, who) for c in camp.conditions)
        if self.more is not None:
            keys = {"outcome": self.more.towards or ""}
            for statistic in MORE_DATA:
                if statistic == "severe" and self.more.severe is None:
                    continue
                needed = Estimate(getattr(self.more, statistic), reason=self.more.reason)
                yield Row("more_data", statistic, needed, *about, keys)

    @property
    def explained(self) -> str:
        """The reason, and what else must be known or done."""
        return " ".join(filter(None, (self.reason, self.advice))) or NO_REASON

    def row(self) -> Row:
        """The outcome as a row without a number."""
        reason = " ".join(filter(None, (self.reason, self.advice, self.numbers)))
        keys = {"outcome": self.shown, "would_be": self.shown_would_be}
        return Row("decision", "", Estimate(None, reason=reason), self.judge, self.metric, keys)


@dataclass(frozen=True)
class TriageCurve:
    """One judge's signal on one metric (or EVERY), from sending nobody to sending everybody.

    `signal` says what the threshold is held against, such as `probability of a severe label`.
    `severe` counts severe answers, `n` all answers with a truth. `choice` is None where no
    threshold can be recommended, and `reason` says why.
    """

    judge: str
    metric: str
    signal: str
    points: tuple[Point, ...]
    n: int
    severe: int
    choice: Choice | None = None
    reason: str = ""

    def rows(self) -> Iterator[Row]:
        """The counts, what the recommended threshold does here and is expected to do on new
        answers, and every point of the curve."""

        def row(analysis: str, statistic: str, estimate: Estimate, **at: float) -> Row:
            keys: dict[str, str | float] = {"signal": self.signal, **at}
            return Row(analysis, statistic, estimate, self.judge, self.metric, keys)

        yield row("triage", "answers", Estimate(self.n, reason=self.reason))
        yield row("triage", "severe", Estimate(self.severe, reason=self.reason))
        if self.choice is not None:
            for statistic in ("sent", "missed", "expected_sent", "expected_missed"):
                estimate = getattr(self.choice, statistic)
                yield row("triage", statistic, estimate, threshold=self.choice.threshold)
        for point in self.points:
            yield row("triage_point", "sent", point.sent, threshold=point.threshold)
            yield row("triage_point", "caught", point.caught, threshold=point.threshold)


class Shares(NamedTuple):
    """The shares of answers with the reference label that an outcome is read beside.

    `accuracy` is the judge's with its failures left out, `worst` where they count as wrong;
    `humans` is one annotator against the others, `annotators` each of them by name, and `baseline`
    the row of the most accurate baseline, of no judge where there is none.
    """

    accuracy: Estimate
    worst: Estimate
    humans: Estimate
    annotators: Mapping[str, Estimate]
    baseline: Row


@dataclass(frozen=True)
class Context:
    """What stands beside decisions and decides nothing.

    `rows` are those of the bars, accuracies and Alternative Annotator Tests. `headline` says in a
    line what was studied, `compared` in a sentence what the judges were compared with, `bars` whose
    agreement they are held against, `blind` (yes, no, unknown) whether the labels were made without
    sight of any model's label, and `drawn` how they were drawn. `notes` are caveats, `urgent`
    those that stand on any screen.
    """

    rows: Results = field(default_factory=Results)
    headline: str = ""
    compared: str = ""
    bars: tuple[str, ...] = ()
    blind: str = "unknown"
    drawn: str = ""
    notes: tuple[str, ...] = ()
    urgent: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Decisions(Shown):
    """Everything that `judgebench decide` says.

    `describe` makes what stands beside the decisions, once it is shown: it is slow, and decides
    nothing.
    """

    presented_by = "judgebench.decisions.report:decisions_part"

    name: str
    rubric: Rubric
    rule: DecisionRule
    decisions: tuple[Decision, ...]
    curves: tuple[TriageCurve, ...] = ()
    judges: Mapping[str, str] = field(default_factory=dict)  # name -> kind, baselines left out
    describe: Callable[[], Context] = field(default=Context, compare=False)
    gaps: tuple[str, ...] = ()
    n_answers: int = 0  # about which a judge was asked
    study: Study | None = field(default=None, compare=False)
    promises: tuple[Row, ...] = ()  # of a protocol
    anchors: Results = field(default_factory=Results)

    @cached_property
    def context(self) -> Context:
        """What stands beside the decisions."""
        return self.describe()

    @property
    def notes(self) -> tuple[str, ...]:
        """The caveats."""
        return self.context.notes

    def __iter__(self) -> Iterator[Decision]:
        """Each decision, by metric and judge."""
        return iter(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)

    def __bool__(self) -> bool:
        return True  # also where nothing could be decided on: it is a result

    def require(self, outcome: str, metric: str, judge: str = "") -> None:
        """Raise NotReached, with the reason and the numbers, unless the judge has this outcome.

        `metric` is an id or a title; the judge may be left out where there is only one. REPLACE
        also satisfies ASSIST. Raises SetupError for names that were not decided on.

        >>> import judgebench as jb
        >>> jb.decide(jb.open_run("runs/small")).require("REPLACE", metric="Empathy")
        Traceback (most recent call last):
        judgebench.errors.NotReached: REPLACE:Empathy: the outcome is CAN'T TELL. ...
        """
        __tracebackhide__ = True  # pytest then shows the line of the test
        raise_any([*self._unknown_names(outcome, metric, judge)])
        known = self.rubric.find(metric)
        decisions = [d for d in self if known and d.metric == known.id and judge in ("", d.judge)]
        if any(d.outcome in _SATISFIED_BY[outcome] and not d.left_out for d in decisions):
            return
        required = ":".join(filter(None, (outcome, metric, judge)))
        results = [f"the outcome is {d.shown}. {d.explained}\n{d.numbers}" for d in decisions]
        raise NotReached(f"{required}: {' '.join(results).rstrip() or 'nothing was decided'}")

    def _unknown_names(self, outcome: str, metric: str, judge: str) -> Iterator[Problem]:
        """What is no outcome, metric or judge of these decisions: the first of them."""
        metrics, judges = [m.id for m in self.rubric.metrics], [*self.judges]
        if outcome not in _SATISFIED_BY:
            yield _unknown("outcome", "not an outcome", outcome, [*_SATISFIED_BY])
        elif self.rubric.find(metric) is None:
            yield _unknown("metric", "not a metric of the run", metric, metrics)
        elif judge and judge not in judges:
            yield _unknown("judge", "not a judge of the run", judge, judges)
        elif not judge and len(judges) > 1:
            message = "names no judge, and the best of several may be good by luck"
            yield Problem(message, field="judge", allowed=", ".join(judges))

    @property
    def says_sure(self) -> bool:
        """True where a judge says how sure it is of a label."""
        return any(decision.alone.signal for decision in self.decisions)

    def alone(self) -> AloneShares:
        """Return the share that each judge may decide alone, metric by metric; people label the
        rest.

        >>> import judgebench as jb
        >>> alone = jb.decide(jb.open_run("runs/small")).alone()
        >>> alone.to_frame().statistic.to_list()[:1]
        ['share']
        """
        return AloneShares(self)

    def certificate(self, judge: str = "") -> Any:
        """A certificate of this decision on the judge of that name, or on the only judge; it has a
        `write(path)`. Raises SetupError where no metric has the outcome REPLACE or ASSIST.
        """
        if self.study is None:
            raise SetupError("the decision was made without a study")
        certify = FEATURES["certificate"].parts.certify
        return certify(self.study, judge, self, self.rule.model_dump(mode="json"))

    def table(self) -> pd.DataFrame:
        """A row for each metric and judge: the outcome, the three shares of a screen, why, and what
        to do next.

        >>> import judgebench as jb
        >>> table = jb.decide(jb.open_run("runs/small")).table()
        >>> table.loc[("Empathy", "my-judge"), "outcome"]
        "CAN'T TELL"
        """
        import pandas as pd

        lines = [
            (
                one.metric, one.judge, one.outcome, one.accuracy.value, one.humans.value,
                one.baseline.value, one.why, one.next,
            )
            for one in self.part.standings
        ]  # fmt: skip
        index, shares = ["metric", "judge"], ["accuracy", "humans", "best_baseline"]
        columns = [*index, "outcome", *shares, "why", "next"]
        return pd.DataFrame(lines, columns=columns).set_index(index)

    @property
    def titles(self) -> Mapping[str, str]:
        """The title of each metric by its id, and of EVERY."""
        return {EVERY: "Severe on any metric", **{m.id: m.title for m in self.rubric.metrics}}

    @cached_property
    def results(self) -> Results:
        """The outcomes, their conditions, what more data is needed, triage, tests."""
        return Results(
            (
                *(decision.row() for decision in self.decisions),
                *(row for decision in self.decisions for row in decision.condition_rows()),
                *(row for curve in self.curves for row in curve.rows()),
                *self.anchors,
                *(self.alone().results if self.says_sure else ()),
                *self.promises,
                *self.context.rows,
            )
        )

    def shares(self, judge: str, metric: str) -> Shares:
        """The shares that the outcome of a judge on a metric is read beside; hits where several
        labels may be right."""
        several = any(m.several for m in self.rubric.metrics if m.id == metric)
        kind = ("several", "hit") if several else ("score", "accuracy")
        scores = self.context.rows.select(*kind, metric=metric)
        of_judge = {row["failures"]: row.estimate for row in scores if row.judge == judge}
        accuracy = of_judge.get("left_out", NOT_COMPUTED)
        known = [
            row for row in scores
            if row.judge and row.judge not in self.judges and row["failures"] == "left_out"
            and row.estimate.value is not None
        ]  # fmt: skip
        baseline = max(known, key=lambda row: row.estimate.value or 0.0, default=_NO_CONTROL)
        ceilings = scores if several else self.context.rows.select("ceiling", metric=metric)
        annotators = {row["who"]: row.estimate for row in ceilings if row["who"]}
        humans = annotators.pop("all", NOT_COMPUTED)
        return Shares(accuracy, of_judge.get("worst", accuracy), humans, annotators, baseline)

    def records(self) -> dict[str, list[Any]]:
        """The decisions, each with its reason, accuracy, conditions and what data it needs; who
        made the truth, and whose agreement the judges are held against."""
        made = [*map(self._record, self.decisions, self.part.standings)]
        promises = {"protocol": [row.plain() for row in self.promises]} if self.promises else {}
        truth = [self.context.compared]
        return {"decisions": made, "truth": truth, "bars": [*self.context.bars], **promises}

    def _record(self, d: Decision, shown: DecisionSummary) -> dict[str, Any]:
        """A decision with all that it rests on, as plain values; an undefined number is None with a
        `reason`. `next` is as a screen shows it."""
        shares = self.shares(d.judge, d.metric)
        baseline = shares.baseline
        return {
            "judge": d.judge,
            "metric": d.metric,
            "outcome": d.shown,
            "would_be": d.shown_would_be or None,
            "reason": d.explained,
            "next": shown.next,
            "asked": shown.asked or None,
            "shares": {
                "judge": shares.worst.value,
                "humans": shares.humans.value,
                "best_baseline": baseline.estimate.value,
            },
            "accuracy": asdict(shares.accuracy),
            "best_control": {"judge": baseline.judge or None, **asdict(baseline.estimate)},
            "human_ceiling": asdict(shares.humans),
            "conditions": [
                {"required_for": outcome.value, **_plain(c)} for outcome, c in d.required
            ],
            "camps": [{"annotators": c.names, "outcome": c.outcome.value} for c in d.camps],
            "more_data": asdict(d.more) if d.more else None,
            "alone": asdict(d.alone.check) if d.alone.signal else None,
        }


def _unknown(field: str, message: str, name: str, allowed: Sequence[str]) -> Problem:
    """The problem of a name that is none of these."""
    message = f"{message}{nearest(name, allowed)}"
    return Problem(message, field=field, found=repr(name), allowed=", ".join(allowed))


@dataclass(frozen=True, repr=False)
class AloneShares(Shown):
    """The share that each judge may decide alone, on each metric."""

    presented_by = "judgebench.decisions.report:alone_part"

    decisions: Decisions

    @property
    def name(self) -> str:
        return self.decisions.name

    @cached_property
    def results(self) -> Results:
        """The share of each judge and metric, its check, and the thresholds that were tried."""
        return Results(
            tuple(row for d in self.decisions for row in d.alone.rows(d.judge, d.metric))
        )


def _plain(c: Condition) -> dict[str, Any]:
    values = asdict(c)
    return {**values.pop("estimate"), **values}


# What satisfies a demand: a judge that may replace may also assist.
_SATISFIED_BY = {
    "REPLACE": (Outcome.REPLACE,),
    "ASSIST": (Outcome.REPLACE, Outcome.ASSIST),
    "DO NOT USE": (Outcome.DO_NOT_USE,),
}


def outcome_of(replace: Sequence[Condition], assist: Sequence[Condition]) -> Outcome:
    """REPLACE where all its conditions are met, else ASSIST where all of that are; DO NOT USE where
    the data show that one of REPLACE fails, and CAN'T TELL where they show nothing.

    Nothing is met and nothing fails where there is no condition.
    """
    if replace and all(c.state is State.MET for c in replace):
        return Outcome.REPLACE
    if assist and all(c.state is State.MET for c in assist):
        return Outcome.ASSIST
    if any(c.state is State.NOT_MET for c in replace):
        return Outcome.DO_NOT_USE
    return Outcome.CANT_TELL
