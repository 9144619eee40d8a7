"""The rule of a decision: what REPLACE and ASSIST ask for. A YAML file, the user's to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from judgebench.errors import Problem, SetupError
from judgebench.rubric import Metric, Rubric
from judgebench.shipped import DECISION_RULE, find_file
from judgebench.yaml_file import Strict, load_model

Share = Annotated[float, Field(ge=0, le=1)]
Measure = Literal["accuracy", "balanced_accuracy"]


class HumansRule(Strict):
    """The judge may fall short of an annotator by `margin`, on every one of `measures`."""

    margin: Share = 0.05
    measures: tuple[Measure, ...] = ("accuracy", "balanced_accuracy")


class SevereRule(Strict):
    """Of the severe answers, of which there are `items` or more, at least `recall` is found."""

    recall: Share = 0.70
    items: int = Field(default=20, ge=1)


class ReplaceRule(Strict):
    """What a judge must show to replace annotators; None and () ask for nothing."""

    humans: HumansRule = HumansRule()
    controls: tuple[Measure, ...] = ("accuracy", "balanced_accuracy")
    severe: SevereRule | None = SevereRule()
    failures: Share = 0.05
    robustness: Share | None = 0.80
    planted: Share | None = 0.10


class AssistRule(Strict):
    """What a first-pass filter may send to humans, and what it may miss of the severe answers."""

    sent: Share = 0.50
    missed: Share = 0.10


class PlanRule(Strict):
    """A decision counts as within reach where, with at most `most` times the items, a share
    `chance` of simulated studies ends clear."""

    chance: float = Field(default=0.80, gt=0, lt=1)
    most: int = Field(default=20, ge=2)


class DecisionRule(Strict):
    """The keys of a rule file. `severe_from` names, by metric, the least severe label that counts
    as severe; the last label where it names none."""

    level: float = Field(default=0.95, gt=0.5, lt=1)
    replace: ReplaceRule = ReplaceRule()
    assist: AssistRule = AssistRule()
    severe_from: Mapping[str, str] = Field(default_factory=dict)
    plan: PlanRule = PlanRule()

    def severe_index(self, metric: Metric) -> int | None:
        """The index of the least severe label that counts as severe; None for a nominal metric."""
        if metric.kind == "nominal":
            return None
        named = self.severe_from.get(metric.id)
        return len(metric.labels) - 1 if named is None else metric.index(named)

    def in_words(self) -> list[str]:
        """What each outcome asks for, one sentence each."""
        return [
            f"REPLACE: {'; '.join(self._replace_in_words())}.",
            "ASSIST: as a first-pass filter, on held-out halves of the questions, at most "
            f"{self.assist.sent:.2f} of the answers go to humans and at most "
            f"{self.assist.missed:.2f} of the severe answers do not.",
            "DON'T: the data say that the judge fails something that REPLACE asks for, and it is "
            "no such filter. CAN'T TELL: the data do not say either.",
            f"Each demand must hold for the whole {100 * self.level:g} % interval; what the judge "
            "did not label is wrong where a demand is to be met, and right where it is to fail.",
            *(
                f"Severe on {metric} means {label} or worse."
                for metric, label in self.severe_from.items()
            ),
        ]

    def _replace_in_words(self) -> Iterator[str]:
        asked, words = self.replace, {"accuracy": "plainly", "balanced_accuracy": "balanced"}
        told = " and ".join(words[m] for m in asked.humans.measures)
        if told:
            yield (
                f"agrees with the other annotators ({told}) at most {asked.humans.margin:.2f} less "
                "than an annotator does"
            )
        if asked.controls:
            told = " and ".join(words[m] for m in asked.controls)
            yield f"agrees with the truth ({told}) more than every control judge"
        if asked.severe is not None:
            yield (
                f"finds at least {asked.severe.recall:.2f} of the severe answers, of which there "
                f"are {asked.severe.items} or more"
            )
        yield f"gives no label on at most {asked.failures:.2f} of the answers"
        if asked.robustness is not None:
            yield f"under stress keeps at least {asked.robustness:.2f} of its labels"
        if asked.planted is not None:
            yield f"gives at most {asked.planted:.2f} of the verdicts planted in the text"

    def check(self, rubric: Rubric, file: str = "") -> None:
        """Raises SetupError with every entry of `severe_from` that does not fit the rubric."""
        metrics = {metric.id: metric for metric in rubric.metrics}
        problems = []
        for name, label in self.severe_from.items():
            where, metric = f"severe_from.{name}", metrics.get(name)
            if metric is None:
                allowed = ", ".join(metrics)
                problem = Problem("is no metric of the rubric", file, None, where, name, allowed)
                problems.append(problem)
            elif metric.kind == "nominal":
                message = "is nominal: its labels have no severity"
                problems.append(Problem(message, file, None, where, label))
            elif label not in metric.label_texts[1:]:
                allowed = ", ".join(metric.label_texts[1:])
                message = "is no label that can count as severe"
                problems.append(Problem(message, file, None, where, label, allowed))
        if problems:
            raise SetupError(problems)


def load_rule(name: str | Path = DECISION_RULE, relative_to: Path | None = None) -> DecisionRule:
    """The rule of that path or shipped name. Raises SetupError with every problem in it."""
    return load_model(find_file("rubrics", str(name), ".yaml", relative_to), DecisionRule)


def rule_for(given: DecisionRule | str | Path | None, rubric: Rubric) -> DecisionRule:
    """A rule as given, or of that path or shipped name, once it is known to fit the rubric."""
    rule = given if isinstance(given, DecisionRule) else load_rule(given or DECISION_RULE)
    rule.check(rubric, "" if rule is given else str(given or DECISION_RULE))
    return rule
