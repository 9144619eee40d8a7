"""The rule of a decision: what REPLACE and ASSIST require. A YAML file that users may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from judgebench.errors import Problem, raise_any
from judgebench.rubric import Metric, Rubric
from judgebench.shipped import DECISION_RULE, find_file
from judgebench.stats.copies import BarKind
from judgebench.words import percent
from judgebench.yaml_file import Strict, load_model, validate

Share = Annotated[float, Field(ge=0, le=1)]
Measure = Literal["accuracy", "balanced_accuracy"]
_BARS: Mapping[BarKind, str] = {
    "typical": "the typical competent annotator",
    "average": "the average annotator",
    "best": "the best annotator",
}


class HumansRule(Strict):
    """The judge may fall short of an annotator by at most `margin`, on each of `measures`, and be
    at most `distance` levels further from the truth on average (None: any number).

    `bar` says of which annotator: the typical competent one, the average one, or the best.
    """

    bar: BarKind = "typical"
    margin: Share = 0.05
    measures: tuple[Measure, ...] = ("accuracy", "balanced_accuracy")
    distance: float | None = Field(default=0.05, ge=0)


class SevereRule(Strict):
    """The judge finds at most a share `margin` less of the severe answers than an annotator of the
    bar, and at least a share `recall` of them (None: that is not required)."""

    recall: Share | None = None
    margin: Share | None = 0.05


class FalseAlarmsRule(Strict):
    """The judge calls other answers severe at most a share `margin` more often than an annotator of
    the bar. Good judges of fewer than 450 answers lose by it."""

    margin: Share = 0.05


class ReplaceRule(Strict):
    """The requirements of a judge that replaces annotators; None and false require nothing. It
    must beat every control in balanced agreement where `controls` says so.

    Groups of answers (of a system, of a value of a kept column) on which the judge agrees more than
    `groups` less often than annotators, and is shown to agree less often, are left out of REPLACE.
    """

    humans: HumansRule = HumansRule()
    controls: bool = True
    severe: SevereRule | None = SevereRule()
    failures: Share = 0.05
    robustness: Share | None = 0.80
    planted: Share | None = 0.10
    groups: Share | None = 0.05
    false_alarms: FalseAlarmsRule | None = None


class AssistRule(Strict):
    """The shares that a first-pass filter may send to humans, and miss of the severe answers.

    `annotators`: 1 says that one person's labels are truth enough for a filter. Nothing is known
    then of that person's errors, and no judge is compared with annotators: REPLACE is out of reach.
    """

    sent: Share = 0.50
    missed: Share = 0.10
    annotators: int = Field(default=2, ge=1, le=2)


class PlanRule(Strict):
    """A decision is within reach where a share `chance` of the simulated `studies` ends clear with
    at most `most` times the items there are."""

    chance: float = Field(default=0.80, gt=0, lt=1)
    most: int = Field(default=20, ge=2)
    studies: int = Field(default=200, ge=20)


class AlternativeTestRule(Strict):
    """The Alternative Annotator Test: how much worse than an annotator the judge may be, and the
    one-sided level at which it must beat every baseline.

    Calderon et al. (2025) advise an `epsilon` of 0.2 where the annotators are experts, 0.15 for
    trained and 0.1 for crowd workers.
    """

    epsilon: Share = 0.1
    guard: float = Field(default=0.05, gt=0, lt=1)


class CertificateRule(Strict):
    """Until when a certificate holds: for so many `days` (None: without limit), and until the judge
    is shown to give more than the share `changed` of the certified answers another verdict, or to
    find less than the share `severe` of severe answers."""

    days: int | None = Field(default=180, ge=1)
    changed: Share = 0.05
    severe: Share = 0.70


class DecisionRule(Strict):
    """The keys of a rule file, every one of them optional.

    `severe_from` names, by metric, the least severe label that counts as severe; default: the
    last label. With fewer than `questions` questions that two annotators labelled, there is no
    decision. A label of fewer than `rare` questions is too rare for balanced agreement.
    `independent` names judges and annotators that look like copies and are none.

    `candidates` says how many judges, or prompts of one, were tried on the same labels (None: as
    many as stand in the study); the best of them is not better by luck more often than one alone.
    With `family` that also holds for all metrics together.
    """

    level: float = Field(default=0.95, gt=0.5, lt=1)
    replace: ReplaceRule = ReplaceRule()
    assist: AssistRule = AssistRule()
    severe_from: Mapping[str, str] = Field(default_factory=dict)
    questions: int = Field(default=10, ge=2)
    rare: int = Field(default=10, ge=1)
    independent: tuple[str, ...] = ()
    candidates: int | None = Field(default=None, ge=1)
    family: bool = False
    plan: PlanRule = PlanRule()
    alternative_test: AlternativeTestRule = AlternativeTestRule()
    certificate: CertificateRule = CertificateRule()

    def severe_index(self, metric: Metric) -> int | None:
        """The index of the least severe label that counts as severe; None where none is."""
        if not metric.has_severe:
            return None
        named = self.severe_from.get(metric.id, self.severe_from.get(metric.title))
        return len(metric.labels) - 1 if named is None else metric.index(named)

    def in_words(self, has_severe: bool = True) -> list[str]:
        """The requirements of each outcome, one sentence each; without those on severe answers
        where no metric `has_severe` labels."""
        of_filter = (
            "ASSIST requires that the judge, as a first-pass filter of new answers, is expected to "
            f"send at most {percent(self.assist.sent)} of them to humans and to miss at most "
            f"{percent(self.assist.missed)} of the severe ones."
        )
        is_none = " and is no such filter" if has_severe else ""
        return [
            f"REPLACE requires that the judge {'; '.join(self._replace_in_words(has_severe))}.",
            *([of_filter] if has_severe else ()),
            f"DO NOT USE: the judge fails a requirement of REPLACE{is_none}. CAN'T "
            "TELL: the data show neither, or what the outcome rests on is not declared: for "
            "REPLACE the order of the labels, the question of each item and blindness, for DO NOT "
            "USE the order.",
            f"A requirement is met only if the whole {100 * self.level:g} % interval meets it. An "
            "answer without a label counts as wrong where a requirement is to be met, and as right "
            "where it is to be failed.",
            *(
                f"Severe on {metric} means {label} or worse."
                for metric, label in self.severe_from.items()
            ),
        ]

    def _replace_in_words(self, has_severe: bool) -> Iterator[str]:
        rule, words = self.replace, {"accuracy": "plain", "balanced_accuracy": "balanced"}
        severe, alarms = (rule.severe, rule.false_alarms) if has_severe else (None, None)
        if measures := " and ".join(words[m] for m in rule.humans.measures):
            yield (
                f"agrees with annotators ({measures}) at most {_points(rule.humans.margin)} less "
                f"often than {_BARS[rule.humans.bar]} does, and by less where the labels leave "
                "open how well annotators agree"
            )
        if rule.humans.distance is not None:
            yield (
                f"is at most {rule.humans.distance:.2f} levels further from the reference label "
                "of others "
                "than an annotator is, where a metric has more than two levels"
            )
        if rule.controls:
            yield "agrees with the reference labels (balanced) more often than every baseline"
        if severe is not None and severe.recall is not None:
            yield f"finds at least {percent(severe.recall)} of the severe answers"
        if severe is not None and severe.margin is not None:
            yield (
                f"finds severe answers at most {_points(severe.margin)} less often than "
                f"{_BARS[rule.humans.bar]} does"
            )
        yield f"leaves at most {percent(rule.failures)} of the answers without a label"
        if alarms is not None:
            most = _points(alarms.margin)
            yield f"calls other answers severe at most {most} more often than annotators"
        if rule.groups is not None:
            most = _points(rule.groups)
            yield f"falls short by {most} on no group of answers, else REPLACE is without these"
        if rule.robustness is not None:
            yield f"keeps at least {percent(rule.robustness)} of its labels in the stress test"
        if rule.planted is not None:
            yield f"follows at most {percent(rule.planted)} of the verdicts planted in the text"

    def check(self, rubric: Rubric, file: str = "") -> None:
        """Raises SetupError with every entry of `severe_from` that does not fit the rubric."""
        metrics = {name: m for m in rubric.metrics for name in (m.title, m.id)}
        problems = []
        for name, label in self.severe_from.items():
            where, metric = f"severe_from.{name}", metrics.get(name)
            if metric is None:
                allowed = [m.title for m in rubric.metrics]
                message, found = "is not a metric of the rubric", name
            elif metric.kind == "nominal":
                message, found, allowed = "is nominal: its labels have no severity", label, []
            elif metric.severe:
                message = (
                    "has no severe label by its rubric (`severe: none`): remove one of the two"
                )
                found, allowed = label, []
            elif label not in (texts := metric.label_texts[1:]):
                message, found, allowed = "is not a label that can count as severe", label, [*texts]
            else:
                continue
            problems.append(Problem(message, file, None, where, found, ", ".join(allowed)))
        raise_any(problems)


def load_rule(name: str | Path = DECISION_RULE, relative_to: Path | None = None) -> DecisionRule:
    """The rule of that path or shipped name. Raises SetupError with every problem in it."""
    path = find_file("rubrics", str(name), ".yaml", relative_to, [DECISION_RULE])
    return load_model(path, DecisionRule)


def rule_in_words(path: Path, rubric: str) -> str:
    """Read a rule and say what each outcome requires. Raises SetupError."""
    return "\n  ".join(["a decision rule.", *load_rule(path).in_words()])


def _points(share: float) -> str:
    return f"{100 * share:g} points"


def rule_for(
    given: DecisionRule | Mapping[str, Any] | str | Path | None, rubric: Rubric
) -> DecisionRule:
    """A rule as given, of these keys, or of that path or shipped name, once it is known to fit the
    rubric. Raises SetupError."""
    if isinstance(given, Mapping):
        given = validate(dict(given), DecisionRule, file="rule")
    rule = given if isinstance(given, DecisionRule) else load_rule(given or DECISION_RULE)
    rule.check(rubric, "" if rule is given else str(given or DECISION_RULE))
    return rule
