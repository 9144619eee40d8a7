"""The rule of a decision: what REPLACE and ASSIST require. A YAML file that users may change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from judgebench.errors import Problem, SetupError
from judgebench.files import DECISION_RULE, StrictModel, find_file, load_model, validate
from judgebench.rubric import Metric, Rubric
from judgebench.stats.annotator_bar import BarKind

Share = Annotated[float, Field(ge=0, le=1)]
Measure = Literal["accuracy", "balanced_accuracy"]
STRESSED = ("robustness", "planted", "attack_gain")  # what a stress test measures


class HumansRule(StrictModel):
    """The judge may fall short of an annotator by at most `margin`, on each of `measures`, and be
    at most `distance` levels further from the truth on average (None: any number).

    `bar` says of which annotator: the typical competent one, the average one, or the best.
    """

    bar: BarKind = "typical"
    margin: Share = 0.05
    measures: tuple[Measure, ...] = ("accuracy", "balanced_accuracy")
    distance: float | None = Field(default=0.05, ge=0)


class SevereRule(StrictModel):
    """The judge finds at most a share `margin` less of the severe answers than an annotator of the
    bar, and at least a share `recall` of them (None: that is not required)."""

    recall: Share | None = None
    margin: Share | None = 0.05


class FalseAlarmsRule(StrictModel):
    """The judge calls other answers severe at most a share `margin` more often than an annotator of
    the bar. Good judges of fewer than 450 answers lose by it."""

    margin: Share = 0.05


class ReplaceRule(StrictModel):
    """The requirements of a judge that replaces annotators; None and false require nothing. It
    must beat every control in balanced agreement where `controls` says so. `anchors` is the share
    of answers with a known severe flaw that judge and annotators may both miss.

    Groups of answers (of a system, of a value of a kept column) on which the judge agrees more than
    `groups` less often than annotators, and is shown to agree less often, are left out of REPLACE.
    """

    humans: HumansRule = HumansRule()
    controls: bool = True
    severe: SevereRule | None = SevereRule()
    failures: Share = 0.05
    robustness: Share | None = 0.80
    planted: Share | None = 0.10
    attack_gain: Share | None = None
    anchors: float | None = Field(default=None, gt=0, lt=1)
    groups: Share | None = 0.05
    false_alarms: FalseAlarmsRule | None = None

    @property
    def bounds(self) -> dict[str, float]:
        """The bound of each kind of condition that is required, in the order of KINDS."""
        humans, severe, alarms = self.humans, self.severe, self.false_alarms
        bounds = {
            **{f"humans_{measure}": -humans.margin for measure in humans.measures},
            "humans_distance": humans.distance,
            "controls": 0.0 if self.controls else None,
            "severe_recall": severe.recall if severe else None,
            "severe_gap": -severe.margin if severe and severe.margin is not None else None,
            "false_alarms": -alarms.margin if alarms else None,
            "failures": self.failures,
            "groups": None if self.groups is None else -self.groups,
            "robustness": self.robustness,
            "planted": self.planted,
            "attack_gain": self.attack_gain,
            "anchors": self.anchors,
        }
        return {key: bound for key, bound in bounds.items() if bound is not None}


class AssistRule(StrictModel):
    """The shares that a first-pass filter may send to humans, and miss of the severe answers.

    `annotators`: 1 says that one person's labels are truth enough for a filter. Nothing is known
    then of that person's errors, and no judge is compared with annotators: REPLACE is out of reach.
    """

    sent: Share = 0.50
    missed: Share = 0.10
    annotators: int = Field(default=2, ge=1, le=2)


class PlanRule(StrictModel):
    """A decision is within reach where a share `chance` of the simulated `studies` ends clear with
    at most `most` times the items there are."""

    chance: float = Field(default=0.67, gt=0, lt=1)
    most: int = Field(default=20, ge=2)
    studies: int = Field(default=500, ge=20)


class AlternativeTestRule(StrictModel):
    """The Alternative Annotator Test: how much worse than an annotator the judge may be, and the
    one-sided level at which it must beat every baseline.

    Calderon et al. (2025) advise an `epsilon` of 0.2 where the annotators are experts, 0.15 for
    trained and 0.1 for crowd workers.
    """

    epsilon: Share = 0.1
    guard: float = Field(default=0.05, gt=0, lt=1)


class CertificateRule(StrictModel):
    """Until when a certificate holds: for so many `days` (None: without limit), and until the judge
    is shown to give more than the share `changed` of the certified answers another verdict, or to
    find less than the share `severe` of severe answers."""

    days: int | None = Field(default=180, ge=1)
    changed: Share = 0.05
    severe: Share = 0.70


class DecisionRule(StrictModel):
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

    def check(self, rubric: Rubric, file: str = "") -> None:
        """Raises SetupError with every entry of `severe_from` that does not fit the rubric."""
        metrics = {name: m for m in rubric.metrics for name in (m.title, m.id)}
        problems = []
        for name, label in self.severe_from.items():
            metric, found = metrics.get(name), label
            if metric is None:
                message, found = "is not a metric of the rubric", name
                allowed = [m.title for m in rubric.metrics]
            elif metric.kind == "nominal":
                message, allowed = "is nominal: its labels have no severity", []
            elif metric.severe:
                message = "has no severe label by its rubric (`severe: none`): remove one of both"
                allowed = []
            else:
                message = "is not a label that can count as severe"
                allowed = [*metric.label_texts[1:]]
            if found not in allowed:
                field = f"severe_from.{name}"
                problems.append(Problem(message, file, None, field, found, ", ".join(allowed)))
        if problems:
            raise SetupError(problems)


def load_rule(name: str | Path = DECISION_RULE) -> DecisionRule:
    """The rule of that path or shipped name. Raises SetupError with every problem in it."""
    return load_model(find_file("rubrics", str(name), ".yaml", None, [DECISION_RULE]), DecisionRule)


def rule_of(source: DecisionRule | Mapping[str, Any] | str | Path | None) -> DecisionRule:
    """A rule as `rule_for` takes it, before it is known to fit a rubric. Raises SetupError."""
    if isinstance(source, DecisionRule):
        return source
    if isinstance(source, Mapping):
        return validate(dict(source), DecisionRule, file="rule")
    return load_rule(source) if source else DecisionRule()


def rule_for(
    source: DecisionRule | Mapping[str, Any] | str | Path | None, rubric: Rubric
) -> DecisionRule:
    """A rule as it is, of these keys, or of that path or shipped name, once it is known to fit the
    rubric; None is the shipped one, whose keys are the defaults. Raises SetupError."""
    rule = rule_of(source)
    rule.check(rubric, str(source) if source and isinstance(source, str | Path) else "")
    return rule


Rule: TypeAlias = DecisionRule | Mapping[str, Any] | str | Path
"""A rule, or the keys that differ from the default's, or a YAML file."""
