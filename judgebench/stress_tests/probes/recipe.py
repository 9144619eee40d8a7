"""A recipe: the YAML file of one attack, and what must happen to the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints, model_validator

from judgebench.errors import Problem, SetupError
from judgebench.records import content_hash
from judgebench.rubric import Rubric
from judgebench.shipped import find_file
from judgebench.yaml_file import Strict, load_model

Text = Annotated[str, StringConstraints(min_length=1)]
RecipeName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")]
Area = Literal["pathogen identification", "treatment", "diagnostic method", "risk factors"]
AREAS: tuple[Area, ...] = get_args(Area)


class Add(Strict):
    """Text set before or after the answer; one of `texts` is drawn.

    A text may hold `{json}`, `{brackets}`, `{score}` and `{labels}`: the whole verdict that the
    recipe's `demand` asks for, in each reply format.
    """

    kind: Literal["add"]
    where: Literal["before", "after"]
    texts: tuple[Text, ...] = Field(min_length=1)


class Swap(Strict):
    """A term of a word list made another one that breaks the list's fact.

    `to` names a kind of replacement that the list offers, such as `inside` the drug's class.
    """

    kind: Literal["swap"]
    words: str
    to: str = ""


class Rule(Strict):
    """An edit that needs nothing but its name."""

    kind: Literal[
        "dose-by-ten", "number", "unit", "negate-contraindication",
        "bullets", "markdown", "drop-redundant",
    ]  # fmt: skip


class Reword(Strict):
    """Neutral synonyms of a word list put for each other."""

    kind: Literal["reword"]
    words: str


class _ByModel(Strict):
    """How a model writes: greedy decoding would write the same again and again."""

    instructions: Text
    temperature: float = Field(default=0.9, ge=0, le=2)
    top_p: float = Field(default=0.85, gt=0, le=1)


class Write(_ByModel):
    """A model writes a false answer. `areas` says what to get wrong in each error area."""

    kind: Literal["write"]
    areas: Mapping[Area, Text] = Field(min_length=1)


class Rephrase(_ByModel):
    """A model writes the answer anew, `times` over, without changing what it says."""

    kind: Literal["rephrase"]
    times: int = Field(default=6, ge=1, le=20)


class Ask(Strict):
    """The answer stays as it is, and the judge is asked in another way.

    `repeat` asks the same again `times` more; `per_metric` asks for one metric a call.
    """

    kind: Literal["metric-order", "label-order", "repeat", "per-metric"]
    times: int = Field(default=1, ge=1, le=20)
    temperature: float | None = Field(default=None, ge=0, le=2)


EditSpec = Annotated[
    Add | Swap | Rule | Reword | Write | Rephrase | Ask, Field(discriminator="kind")
]


class Recipe(Strict):
    """One attack. Give either `must_worsen` (metric -> at least this label) or
    `must_not_change: true`.

    `bias` is the name of the bias in Ye et al., "Justice or Prejudice?" (CALM), where the probe is
    the same. `on` says what is altered: sound answers, or the violations that other attacks of
    the same run made. `demand`: the labels that a planted text asks for. `area` is the error area
    of what becomes false.
    """

    name: RecipeName
    version: Text
    about: Text
    bias: str = ""
    must_worsen: Mapping[str, str] = Field(default_factory=dict)
    must_not_change: bool = False
    alters: Literal["sound", "violations"] = "sound"
    demand: Literal["least_severe", "most_severe"] | None = None
    area: Area | None = None
    edit: EditSpec

    @model_validator(mode="after")
    def _one_expectation(self) -> Recipe:
        if bool(self.must_worsen) == self.must_not_change:
            raise ValueError("give either must_worsen (metric: label) or must_not_change: true")
        if self.demand and not self.must_not_change:
            raise ValueError("a demand is planted in an answer whose verdict must_not_change")
        if isinstance(self.edit, Ask | Rephrase) and self.must_worsen:
            raise ValueError(f"an edit of the kind {self.edit.kind} must not change the verdict")
        return self

    @property
    def content_hash(self) -> str:
        """Changes with anything that could change an altered answer or what it must do."""
        return content_hash(self.model_dump(mode="json", exclude={"about"}))


def load_recipe(name: str | Path, relative_to: Path | None = None) -> Recipe:
    """The recipe of that path or shipped name. Raises SetupError with every problem in it."""
    return load_model(find_file("adversarial", str(name), ".yaml", relative_to), Recipe)


def check_demand(
    must_worsen: Mapping[str, str], rubric: Rubric, file: str = "", line: int | None = None
) -> Mapping[str, str]:
    """`must_worsen` with ids and exact labels of the rubric.

    Raises SetupError for every unknown metric or label, for a nominal metric (nothing is worse
    there), and for the least severe label, which every verdict reaches.
    """
    found, problems = {}, []
    for name, text in must_worsen.items():
        where = f"must_worsen.{name}"
        metric = rubric.find(name)
        if metric is None:
            allowed = ", ".join(m.id for m in rubric.metrics)
            message = f"is no metric of the rubric {rubric.name}"
            problems.append(Problem(message, file, line, where, name, allowed))
        elif metric.kind == "nominal":
            message = "is nominal, so no label of it is worse than another"
            problems.append(Problem(message, file, line, where))
        elif (label := metric.parse(text)) in (worse := metric.label_texts[1:]) and label:
            found[metric.id] = label
        else:
            message = f"is no label of {metric.id} that a verdict could worsen to"
            problems.append(Problem(message, file, line, where, text, ", ".join(worse)))
    if problems:
        raise SetupError(problems)
    return found
