"""A decision: its outcome, reason and conditions, what more data it needs, and whether it is the
one that a pipeline requires, such as `REPLACE:metric:judge`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from judgebench.decisions.kinds import KINDS
from judgebench.decisions.rule import DecisionRule
from judgebench.errors import Problem, SetupError, nearest, raise_any
from judgebench.features import contributed
from judgebench.records import SEVERAL, Estimate, Kind
from judgebench.results.part import Standing
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.results.tables import NO_REASON
from judgebench.rubric import Rubric
from judgebench.stats.thresholds import Choice, Point
from judgebench.words import about, listed, percent

if TYPE_CHECKING:
    import pandas as pd

    from judgebench.studies.study import Study

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
    `rival` is the baseline that it is a difference from, or the system that it is about, if
    any. It must lie above `bound` where `at_least`, else below it. `missing` says in numbers or
    words what keeps an unclear condition from being clear.
    """

    key: str
    title: str
    state: State
    estimate: Estimate
    bound: float
    at_least: bool
    missing: str = ""
    rival: str = ""

    @property
    def is_difference(self) -> bool:
        """True where its sign is to be shown."""
        return KINDS[self.key].is_difference

    def row(self, judge: str, metric: str, outcome: Outcome, who: str = "") -> Row:
        """The condition as a row of the results table; `who` are the annotators of a camp."""
        keys = {
            "outcome": outcome.value, "title": self.title, "state": self.state.value,
            "bound": self.bound, "at_least": str(self.at_least).lower(),
            "missing": self.missing, "rival": self.rival, "who": who,
        }  # fmt: skip
        return Row("condition", self.key, self.estimate, judge, metric, keys)


@dataclass(frozen=True)
class MoreData:
    """The data that would make a decision clear, by simulation from what there is.

    `items` more answers with human labels as there are now, `questions` that they belong to,
    `labels` human labels for them, `severe` severe answers among them. All are None where the
    decision stays unclear with as much as the rule's plan allows, or where nothing can be
    simulated: `reason` says which. `of` says what an item is, and `waiting` how many items with
    human labels the judge was not asked about. `clear` is the share of simulated studies of that
    size that end clear, `towards` the outcome that most of these have. `answers_now` and
    `questions_now` are those that the decision rests on.
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
    of: Kind = "answer"
    waiting: int = 0

    @property
    def few_questions(self) -> bool:
        """True where so many answers share questions that it is these that are needed; a few pairs
        among hundreds of answers matter little."""
        return (self.questions_now or 0) < 0.9 * (self.answers_now or 0)


@dataclass(frozen=True)
class InCamp:
    """The decision that there would be if the annotators `names` were all there are."""

    names: tuple[str, ...]
    outcome: Outcome
    conditions: tuple[Condition, ...]


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
    replace: tuple[Condition, ...] = ()
    assist: tuple[Condition, ...] = ()
    more: MoreData | None = None
    camps: tuple[InCamp, ...] = ()
    advice: str = ""
    would_be: Outcome | None = None
    groups: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        """`my-judge on empathy: CAN'T TELL. Too few answers.`"""
        return f"{self.judge} on {self.metric}: {self.shown}. {self.reason}".strip()

    @property
    def of_replace(self) -> tuple[Condition, ...]:
        """The conditions of REPLACE, and of the groups that it may leave out."""
        return (*self.replace, *self.groups)

    @property
    def left_out(self) -> tuple[Condition, ...]:
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
        for outcome, conditions in (
            (Outcome.REPLACE, self.of_replace), (Outcome.ASSIST, self.assist),
        ):  # fmt: skip
            yield from (c.row(self.judge, self.metric, outcome) for c in conditions)
        for camp in self.camps:
            who = ", ".join(camp.names)
            keys = {"outcome": camp.outcome.value, "who": who}
            yield Row("camp", "", Estimate(None, reason=""), self.judge, self.metric, keys)
            for c in camp.conditions:
                yield c.row(self.judge, self.metric, Outcome.REPLACE, who)
        if self.more is not None:
            keys = {"outcome": self.more.towards or ""}
            for statistic in MORE_DATA:
                if statistic == "severe" and self.more.severe is None:
                    continue
                needed = Estimate(getattr(self.more, statistic), reason=self.more.reason)
                yield Row("more_data", statistic, needed, self.judge, self.metric, keys)

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
        about = (self.judge, self.metric)
        keys: dict[str, str | float] = {"signal": self.signal}
        for statistic, count in (("answers", self.n), ("severe", self.severe)):
            yield Row("triage", statistic, Estimate(count, reason=self.reason), *about, keys)
        if self.choice is not None:
            at = {**keys, "threshold": self.choice.threshold}
            for statistic in ("sent", "missed", "expected_sent", "expected_missed"):
                yield Row("triage", statistic, getattr(self.choice, statistic), *about, at)
        for point in self.points:
            at = {**keys, "threshold": point.threshold}
            yield Row("triage_point", "sent", point.sent, *about, at)
            yield Row("triage_point", "caught", point.caught, *about, at)


@dataclass(frozen=True, repr=False)
class Decisions(Shown):
    """Everything that `judgebench decide` says.

    `beside` are the rows of the bars, accuracies and alternative tests.
    `compared` says in a sentence what the judges were compared with, and `bars` whose agreement
    they are held against. `blind` (yes, no, unknown) says whether the labels were made without
    sight of any model's label. `headline` says in a line what was studied, `n_answers` how many
    answers a judge was asked about.
    """

    presented_by = "judgebench.decisions.part:decisions_part"

    name: str
    rubric: Rubric
    rule: DecisionRule
    decisions: tuple[Decision, ...]
    curves: tuple[TriageCurve, ...] = ()
    beside: Results = field(default_factory=Results)
    judges: Mapping[str, str] = field(default_factory=dict)  # name -> kind, baselines left out
    notes: tuple[str, ...] = ()
    compared: str = ""
    bars: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    collapsed: tuple[str, ...] = ()  # a sentence for each judge that gives nearly one label
    blind: str = "unknown"
    headline: str = ""
    n_answers: int = 0
    study: Study | None = field(default=None, repr=False, compare=False)

    def __iter__(self) -> Iterator[Decision]:
        """Each decision, by metric and judge."""
        return iter(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)

    def __bool__(self) -> bool:
        return True  # also where nothing could be decided on: it is a result

    def certificate(self, judge: str = "") -> Any:
        """A certificate of this decision on the judge of that name, or on the only judge; it has a
        `write(path)`. Raises SetupError where no metric has the outcome REPLACE or ASSIST.
        """
        issuers = contributed("certify")
        if not issuers or self.study is None:
            message = "this installation of judgebench lacks judgebench/certificate"
            raise SetupError("the decision was made without a study" if issuers else message)
        return issuers[0](self.study, judge, self, self.rule.model_dump(mode="json"))

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

    @property
    def ordered_curves(self) -> list[TriageCurve]:
        """The triage curves, judge after judge and signal after signal, EVERY first in each."""
        groups = list(dict.fromkeys((c.judge, c.signal) for c in self.curves))
        return sorted(
            self.curves, key=lambda c: (groups.index((c.judge, c.signal)), c.metric != EVERY)
        )

    @cached_property
    def results(self) -> Results:
        """The outcomes, their conditions, what more data is needed, triage, tests."""
        return Results(
            (
                *(decision.row() for decision in self.decisions),
                *(row for decision in self.decisions for row in decision.condition_rows()),
                *(row for curve in self.curves for row in curve.rows()),
                *self.beside,
            )
        )

    def accuracy(self, judge: str, metric: str) -> Estimate:
        """The share of answers to which a judge gives the label of the truth."""
        analysis, statistic = self._share(metric, "score")
        return self.beside.find(statistic, analysis, judge=judge, metric=metric)

    def _share(self, metric: str, analysis: str) -> tuple[str, str]:
        """The rows that say how often labels are right: hits where several may be."""
        several = any(m.several for m in self.rubric.metrics if m.id == metric)
        return ("several", "hit") if several else (analysis, "accuracy")

    def worst_accuracy(self, judge: str, metric: str) -> Estimate:
        """The same where every answer without a label counts as wrong."""
        about = {"judge": judge, "metric": metric}
        worst = self.beside.select(*self._share(metric, "score"), failures="worst", **about)
        return worst[0].estimate if worst else self.accuracy(judge, metric)

    def ceiling(self, metric: str) -> Estimate:
        """The accuracy of one annotator against the others."""
        analysis, statistic = self._share(metric, "ceiling")
        return self.beside.find(statistic, analysis, metric=metric, who="all")

    def annotators(self, metric: str) -> dict[str, Estimate]:
        """The accuracy of each annotator against the others, by name."""
        rows = self.beside.select(*self._share(metric, "ceiling"), metric=metric)
        return {row["who"]: row.estimate for row in rows if row["who"] not in ("", "all")}

    def best_control(self, metric: str) -> Row:
        """The accuracy of the most accurate baseline; of no judge where there is none."""
        share = self._share(metric, "score")
        rows = self.beside.select(*share, metric=metric, failures="left_out")
        known = [r for r in rows if r.judge not in self.judges and r.estimate.value is not None]
        return max(known, key=lambda r: r.estimate.value or 0.0, default=_NO_CONTROL)

    def records(self) -> dict[str, list[Any]]:
        """The decisions, each with its reason, accuracy, conditions and what data it needs; who
        made the truth, and whose agreement the judges are held against."""
        made = [*map(self._record, self.decisions, self.part.standings)]
        return {"decisions": made, "truth": [self.compared], "bars": [*self.bars]}

    def _record(self, d: Decision, shown: Standing) -> dict[str, Any]:
        """A decision with all that it rests on, as plain values; an undefined number is None with a
        `reason`. `shares` and `next` are as a screen shows them."""
        control = self.best_control(d.metric)
        return {
            "judge": d.judge,
            "metric": d.metric,
            "outcome": d.shown,
            "would_be": d.shown_would_be or None,
            "reason": why(d),
            "next": shown.next,
            "asked": shown.asked or None,
            "shares": {
                "judge": shown.accuracy.value,
                "humans": shown.humans.value,
                "best_baseline": shown.baseline.value,
            },
            "accuracy": asdict(self.accuracy(d.judge, d.metric)),
            "best_control": {"judge": control.judge or None, **asdict(control.estimate)},
            "human_ceiling": asdict(self.ceiling(d.metric)),
            "conditions": [
                {
                    "required_for": outcome.value,
                    **asdict(c.estimate),
                    **{name: x for name, x in asdict(c).items() if name != "estimate"},
                }
                for outcome, made in ((Outcome.REPLACE, d.of_replace), (Outcome.ASSIST, d.assist))
                for c in made
            ],
            "camps": [{"annotators": c.names, "outcome": c.outcome.value} for c in d.camps],
            "more_data": asdict(d.more) if d.more else None,
        }


def why(d: Decision) -> str:
    """Say why a decision is as it is, and what data it needs."""
    return " ".join(filter(None, (d.reason or NO_REASON, d.advice, more_sentence(d))))


def more_sentence(decision: Decision) -> str:
    """Say how much more data would make a decision clear, and how surely, or why nobody knows.

    Empty where it is clear or its reason says it already.
    """
    more, said = decision.more, decision.reason.rstrip(". ")
    if more is None or (said and said.lower() in more.reason.lower()):
        return ""
    if more.items is None:
        reason = (more.reason or NO_REASON).rstrip(". ")
        return f"More data: {reason[0].lower()}{reason[1:]}."
    severe = "" if more.severe is None else f", {about(more.severe)} of them severe,"
    labels = "" if more.labels is None else f"{about(more.labels)} "
    what = f"{SEVERAL[more.of]}{severe} with {labels}human labels"
    needed = f"About {about(more.items)} more {what} would settle it"
    if more.few_questions and more.questions and more.questions_now:
        total = more.questions_now + more.questions
        needed = (
            f"{more.answers_now:,} {SEVERAL[more.of]}, but only {more.questions_now:,} questions: "
            f"about {about(total)} are needed. The new ones have about {about(more.items)} {what}"
        )
    if more.clear is None:
        return f"{needed}."
    towards = f", most of them with {more.towards.value}" if more.towards else ""
    clear = f"{percent(more.clear)} of simulated studies of that size reach a decision"
    return f"{needed}; {clear}{towards}."


# What satisfies a demand: a judge that may replace may also assist.
_SATISFIED_BY = {
    Outcome.REPLACE: (Outcome.REPLACE,),
    Outcome.ASSIST: (Outcome.REPLACE, Outcome.ASSIST),
    Outcome.DO_NOT_USE: (Outcome.DO_NOT_USE,),
}
_NAMED: Mapping[str, Outcome] = {outcome.value: outcome for outcome in _SATISFIED_BY}


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


@dataclass(frozen=True)
class Demand:
    """An outcome for a metric, of any judge where `judge` is empty; `text` is as it was asked."""

    outcome: Outcome
    metric: str
    judge: str
    text: str

    def __str__(self) -> str:
        return self.text

    def is_on(self, d: Decision) -> bool:
        """True for a decision that it asks about."""
        return d.metric == self.metric and self.judge in ("", d.judge)


def demands(texts: Sequence[str], decisions: Decisions) -> list[Demand]:
    """Raises SetupError with every text that is not a demand or names what was not decided."""
    found, problems = [], []
    for text in texts:
        name, title, judge = (*text.split(":", 2), "", "")[:3]  # a judge's name may hold colons
        outcome, metric = _NAMED.get(name), decisions.rubric.find(title) if title else None
        if outcome is None:
            message = f"not an outcome{nearest(name, [o.value for o in _SATISFIED_BY])}"
            allowed = f"{', '.join(_SATISFIED_BY)}, followed by :METRIC"
        elif metric is None:
            ids = [metric.id for metric in decisions.rubric.metrics]
            message, allowed = f"not a metric of the run{nearest(title, ids)}", ", ".join(ids)
        elif not judge and len(decisions.judges) > 1:
            message = "names no judge, and the best of several may be good by luck"
            allowed = ", ".join(f"{text}:{one}" for one in decisions.judges)
        elif judge and judge not in decisions.judges:
            message = f"not a judge of the run{nearest(judge, [*decisions.judges])}"
            allowed = ", ".join(decisions.judges)
        else:
            found.append(Demand(outcome, metric.id, judge, text))
            continue
        problems.append(Problem(message, field="--require", found=text, allowed=allowed))
    raise_any(problems)
    return found


def unreached(required: Sequence[Demand], decisions: Decisions) -> list[Demand]:
    """The demands that no decision satisfies."""
    return [
        demand
        for demand in required
        if not any(
            demand.is_on(d) and not d.left_out and d.outcome in _SATISFIED_BY[demand.outcome]
            for d in decisions
        )
    ]


def why_unreached(demand: Demand, decisions: Decisions) -> str:
    """`REPLACE:tone: the outcome is ASSIST. It …`, as it was asked, what came out and why."""
    said = [
        f"the outcome is {d.shown}. {d.reason or NO_REASON} {d.advice}".rstrip()
        for d in decisions
        if demand.is_on(d)
    ]
    return f"{demand}: {' '.join(said) or 'nothing was decided'}"
