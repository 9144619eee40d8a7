"""Which answers a stress test alters, and what became of every attempt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from random import Random
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, HumanLabel, content_hash
from judgebench.rubric import Rubric
from judgebench.stress_tests.probes.altered import (
    BY_RULE,
    AlteredAnswer,
    Edited,
    Nothing,
    not_alterable,
    span_diff,
)
from judgebench.stress_tests.probes.attacks import Attack
from judgebench.stress_tests.probes.edits.wording import demanded
from judgebench.stress_tests.probes.recipe import Ask, Recipe
from judgebench.stress_tests.probes.sets import check_same_meaning, check_violations
from judgebench.stress_tests.probes.text import word_names


@dataclass(frozen=True)
class Made:
    """What one attack made: items that count, items that failed a check, and the parents in
    which the rule found nothing to change, with the reason."""

    attack: Attack
    items: tuple[AlteredAnswer, ...] = ()
    rejected: tuple[AlteredAnswer, ...] = ()
    nothing: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """What the manifest says of it."""
        attack = self.attack
        failed = Counter(check for item in self.rejected for check in item.failed_checks)
        return {
            "name": attack.name, "version": attack.version, "hash": attack.hash,
            "about": attack.about, "bias": attack.bias, "kind": attack.kind,
            "made": len(self.items), "nothing_to_change": len(self.nothing),
            "rejected": dict(failed), "n_rejected": len(self.rejected),
            "undecided": attack.undecided,
        }  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A whole stress test before any judge is asked. `asks` are recipes that leave answers alone
    and ask the judge about `parents` in another way."""

    made: tuple[Made, ...]
    parents: tuple[Answer, ...]  # every unaltered answer that is judged
    asks: tuple[tuple[Recipe, tuple[Answer, ...]], ...]

    @property
    def items(self) -> list[AlteredAnswer]:
        """What every attack made and passed its checks."""
        return [item for made in self.made for item in made.items]

    @property
    def rejected(self) -> list[AlteredAnswer]:
        """What failed a check, of every attack."""
        return [item for made in self.made for item in made.rejected]

    def describe(self, told: Sequence[str] = ()) -> dict[str, Any]:
        """What the manifest says of it, with what else was `told` of the attacks."""
        asked = [
            {
                "name": recipe.name, "version": recipe.version, "hash": recipe.content_hash,
                "about": recipe.about, "bias": recipe.bias, "kind": "asked otherwise",
                "made": len(answers),
            }
            for recipe, answers in self.asks
        ]  # fmt: skip
        of_sets = (notice for made in self.made for notice in made.attack.notices)
        notices = dict.fromkeys((*told, *of_sets))
        recipes = [*(made.describe() for made in self.made), *asked]
        return {"recipes": recipes, "notices": list(notices)}


class _Soundness:
    """Which answers are sound as far as human labels tell; without labels all are."""

    def __init__(self, labels: Iterable[HumanLabel], rubric: Rubric) -> None:
        self._worst: dict[tuple[str, str], int] = {}
        for label in labels:
            metric = rubric.find(label.metric)
            if metric is not None and label.label is not None:
                place = label.item_id, metric.id
                found = metric.index(label.label)
                self._worst[place] = max(found, self._worst.get(place, -1))
        self._rubric = rubric

    def __call__(self, answer: Answer, must_worsen: Mapping[str, str]) -> bool:
        """Whether no human gave the answer a label that the attack demands, or a worse one."""
        for name, label in must_worsen.items():
            metric = self._rubric.find(name)
            worst = self._worst.get((answer.item_id, name), -1)
            if metric is not None and worst >= metric.index(label):
                return False
        return True


@dataclass(frozen=True)
class _Altering:
    """How answers are altered: `sound` says which may be, `sample` bounds a recipe's items."""

    rubric: Rubric
    seed: int
    sample: int | None
    sound: _Soundness


def make_plan(
    attacks: Sequence[Attack],
    answers: Sequence[Answer],
    labels: Sequence[HumanLabel],
    rubric: Rubric,
    *,
    seed: int = 0,
    sample: int | None = None,
) -> Plan:
    """Alter answers by every attack; the same seed gives the same items in any order of attacks.

    Parents are `answers` and the sound answers of the sets; without labels, those that are used.
    An answer whose human label already reaches what an attack demands is no sound parent for it.
    `sample` bounds the items of each recipe; a set is used whole unless its own entry bounds it.
    Raises SetupError where there is no answer to alter, or nothing to change in any.
    """
    made = [_take(a, a.sample, seed) for a in attacks if a.recipe is None]
    sound = [*answers, *(item.parent for m in made for item in m.items)]
    parents = list({answer.item_id: answer for answer in sound}.values())
    if not parents:
        message = "there is no answer to alter: name data, or a set of altered answers"
        raise SetupError(Problem(message, field="stress.attacks"))
    drawn = _shuffled(parents, seed)
    how = _Altering(rubric, seed, sample, _Soundness(labels, rubric))
    recipes = [a for a in attacks if a.recipe and a.edit]
    made += [_alter(a, drawn, how) for a in recipes if a.recipe and a.recipe.alters == "sound"]
    violations = [item.answer for m in made for item in m.items if item.must_worsen]
    pool = _shuffled(violations, seed)
    made += [_alter(a, pool, how) for a in recipes if a.recipe and a.recipe.alters == "violations"]
    asks = tuple(
        (a.recipe, tuple(drawn[: a.sample or sample]))
        for a in attacks
        if a.recipe and isinstance(a.recipe.edit, Ask)
    )
    judged = parents if labels else _used(parents, made, asks)
    if not judged:
        reasons = {reason for m in made for reason in m.nothing.values()}
        message = "no attack found anything to change: " + "; ".join(sorted(reasons)[:5])
        raise SetupError(Problem(message, field="stress.attacks"))
    return Plan(tuple(made), tuple(judged), asks)


def _used(
    parents: Sequence[Answer],
    made: Sequence[Made],
    asks: Iterable[tuple[Recipe, tuple[Answer, ...]]],
) -> list[Answer]:
    """The answers that something is compared with: without human labels, no other says anything."""
    used = {item.parent.item_id for m in made for item in m.items}
    used |= {answer.item_id for _, answers in asks for answer in answers}
    return [parent for parent in parents if parent.item_id in used]


def _shuffled(answers: Iterable[Answer], seed: int) -> list[Answer]:
    """The same order for the same seed, whatever order the answers come in."""
    return sorted(answers, key=lambda answer: content_hash([seed, answer.item_id]))


def _take(attack: Attack, sample: int | None, seed: int) -> Made:
    """A set's items after their checks; a sample is drawn from each error area in turn."""
    kept, rejected = checked(attack.items)
    if sample is not None and sample < len(kept):
        by_area: dict[str, list[AlteredAnswer]] = {}
        for item in sorted(kept, key=lambda item: content_hash([seed, item.item_id])):
            by_area.setdefault(item.area, []).append(item)
        turns = zip_longest(*by_area.values())
        drawn = [item for turn in turns for item in turn if item is not None][:sample]
        kept = sorted(drawn, key=lambda item: item.item_id)
    return Made(attack, tuple(kept), tuple(rejected))


def _alter(attack: Attack, pool: Sequence[Answer], how: _Altering) -> Made:
    """Edit answers of the pool in their order until the sample is full."""
    recipe, edit = attack.recipe, attack.edit
    assert recipe is not None
    assert edit is not None
    items: list[AlteredAnswer] = []
    nothing: dict[str, str] = {}
    for parent in pool:
        if len(items) == (attack.sample or how.sample):
            break
        if not how.sound(parent, recipe.must_worsen):
            continue
        chance = Random(content_hash([how.seed, recipe.content_hash, parent.item_id]))
        why_not = not_alterable(parent)
        edited = Nothing(why_not) if why_not else edit(parent, chance)
        if isinstance(edited, Nothing):
            nothing[parent.item_id] = edited.reason
        else:
            items.append(altered_answer(recipe, parent, edited, how.rubric, By(how.seed)))
    kept, rejected = checked(items)
    return Made(attack, tuple(kept), tuple(rejected), nothing)


def altered_id(parent: Answer, recipe: Recipe, number: int | None = None) -> str:
    """The id of what a recipe makes of an answer; `number` tells several of one apart."""
    return f"{parent.item_id}~{recipe.name}" + (f"~{number}" if number else "")


@dataclass(frozen=True)
class By:
    """Who altered an answer; `number` tells several of one answer apart."""

    seed: int
    generator: str = BY_RULE
    number: int | None = None


def altered_answer(
    recipe: Recipe, parent: Answer, edited: Edited, rubric: Rubric, by: By
) -> AlteredAnswer:
    """An edited text with all that its recipe says of it."""
    return AlteredAnswer(
        altered_id(parent, recipe, by.number), parent, edited.text,
        recipe=recipe.name, recipe_version=recipe.version, recipe_hash=recipe.content_hash,
        seed=by.seed, generator=by.generator, must_worsen=recipe.must_worsen,
        demand=demanded(recipe.demand, rubric) if recipe.demand else {},
        area=recipe.area or "", false_claim=edited.false_claim, true_claim=edited.true_claim,
        changes=span_diff(parent.text, edited.text),
    )  # fmt: skip


def checked(items: Sequence[AlteredAnswer]) -> tuple[list[AlteredAnswer], list[AlteredAnswer]]:
    """Those that passed every check of validity, and those that failed one."""
    found = [
        *check_violations([item for item in items if item.must_worsen]),
        *check_same_meaning((item for item in items if not item.must_worsen), word_names()),
    ]
    failed = [item for item in found if item.failed_checks]
    return [item for item in found if not item.failed_checks], failed
