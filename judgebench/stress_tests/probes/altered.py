"""Recipes, the YAML files of attacks, and the altered answers that are made by them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from judgebench.errors import Problem, raise_any
from judgebench.records import Answer, content_hash
from judgebench.rubric import Rubric
from judgebench.shipped import find_file
from judgebench.stress_tests.probes.text import differing
from judgebench.yaml_file import Strict, load_model

Text = Annotated[str, StringConstraints(min_length=1)]
RecipeName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")]
Area = Literal["pathogen identification", "treatment", "diagnostic method", "risk factors"]


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
    """The decoding of a model that writes: greedy, it would write the same again and again."""

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


def recipe_in_words(path: Path, rubric: str) -> str:
    """Read a recipe and say what it edits. Raises SetupError."""
    recipe = load_recipe(path)
    kind = recipe.edit.kind
    return f"the recipe {recipe.name}, version {recipe.version}, an edit of the kind {kind}"


def check_demand(
    must_worsen: Mapping[str, str], rubric: Rubric, file: str = "", line: int | None = None
) -> Mapping[str, str]:
    """`must_worsen` with ids and exact labels of the rubric.

    Raises SetupError for every unknown metric or label, for a metric without a severe label
    (nothing is worse there), and for the least severe label, which every verdict reaches.
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
        elif not metric.has_severe:
            message = "has no severe label (`severe: none`) that a verdict could worsen to"
            problems.append(Problem(message, file, line, where))
        elif (label := metric.parse(text)) in (worse := metric.label_texts[1:]) and label:
            found[metric.id] = label
        else:
            message = f"is not a label of {metric.id} that a verdict could worsen to"
            problems.append(Problem(message, file, line, where, text, ", ".join(worse)))
    raise_any(problems)
    return found


BY_RULE = "rule"
BY_HAND = "by hand"
Piece = tuple[str, bool]  # a text, and whether it is changed
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Change:
    """One span of the parent's text, in characters, and what stands in its place."""

    start: int
    end: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class AlteredAnswer:
    """One altered answer with its provenance.

    `must_worsen` maps metrics to the least severe label that the verdict must reach; where it is
    empty the verdict must not change. `demand` is what a planted text asks for. `generator` is the
    signature of the model that wrote it, or `rule`, or `by hand`. `checks` maps each check of
    validity to the reason why it failed, '' where it passed.
    """

    item_id: str
    parent: Answer
    text: str
    recipe: str
    recipe_version: str
    recipe_hash: str
    seed: int = 0
    generator: str = BY_RULE
    must_worsen: Mapping[str, str] = field(default_factory=dict)
    demand: Mapping[str, str] = field(default_factory=dict)
    area: str = ""
    false_claim: str = ""
    true_claim: str = ""
    why_plausible: str = ""
    source: str = ""
    changes: tuple[Change, ...] = ()
    checks: Mapping[str, str] = field(default_factory=dict)

    @property
    def answer(self) -> Answer:
        """The answer that a judge is shown. It shares its parent's cluster."""
        return replace(self.parent, item_id=self.item_id, text=self.text)

    @property
    def made_by(self) -> str:
        """The author of the alteration in words: `altered by hand`, `altered by rule`, `altered by
        m:1a2b`."""
        return f"altered by {self.generator.removeprefix('by ')}"

    @property
    def by_model(self) -> bool:
        """True where a model wrote it."""
        return self.generator not in (BY_RULE, BY_HAND)

    @property
    def failed_checks(self) -> Mapping[str, str]:
        """Check -> reason, for the checks that failed. An item with any is never counted."""
        return {check: reason for check, reason in self.checks.items() if reason}


@dataclass(frozen=True, slots=True)
class Edited:
    """A new text. A rule that makes an answer worse also says which claim is now false, as it
    stands in the new text, and which true claim it breaks."""

    text: str
    false_claim: str = ""
    true_claim: str = ""


@dataclass(frozen=True, slots=True)
class Nothing:
    """The rule found nothing to change; `reason` says what it looked for."""

    reason: str


def not_alterable(answer: Answer) -> str:
    """The reason why an answer is never altered; empty where it may be."""
    if not answer.text.strip():
        return "the answer is empty"
    single = answer.kind == "answer" and not answer.is_conversation
    return "" if single else "pairs, criteria and whole conversations are not altered"


# All chance comes from the generator, which depends on seed, recipe and answer alone: the same
# seed gives the same set, whatever is edited before.
Edit = Callable[[Answer, Random], Edited | Nothing]


def span_diff(old: str, new: str) -> tuple[Change, ...]:
    """The spans of `old` that differ in `new`, word by word, in order."""
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    starts = list(accumulate(map(len, a), initial=0))
    return tuple(
        Change(starts[i1], starts[i2], "".join(a[i1:i2]), "".join(b[j1:j2]))
        for i1, i2, j1, j2 in differing(a, b)
    )


def apply_changes(old: str, changes: tuple[Change, ...]) -> str:
    """The text that `span_diff` compared `old` with."""
    parts, end = [], 0
    for change in changes:
        parts += [old[end : change.start], change.new]
        end = change.end
    return "".join([*parts, old[end:]])


def marked(item: AlteredAnswer) -> tuple[list[Piece], list[Piece]]:
    """The sound and the altered text in pieces, with what differs marked.

    Marked pieces of the two stand beside each other in order; one is '' where something was left
    out or added. Pieces come from here because a browser counts characters otherwise.
    """
    old, changes = item.parent.text, item.changes
    if apply_changes(old, changes) != item.text:  # a set written by hand need not name its changes
        changes = span_diff(old, item.text)
    parent, text, end = [], [], 0
    for change in _as_phrases(old, changes):
        same = (old[end : change.start], False)
        parent += [same, (old[change.start : change.end], True)]
        text += [same, (change.new, True)]
        end = change.end
    return [*parent, (old[end:], False)], [*text, (old[end:], False)]


def _as_phrases(old: str, changes: Sequence[Change]) -> list[Change]:
    """Changes with nothing but white space between them as one, so that a phrase is one mark."""
    joined: list[Change] = []
    for change in changes:
        gap = old[joined[-1].end : change.start] if joined else "-"
        if gap.strip():
            joined.append(change)
        else:
            last = joined.pop()
            both = old[last.start : change.end], last.new + gap + change.new
            joined.append(Change(last.start, change.end, *both))
    return joined
