"""Make a set of altered answers: by rule, or by a model and with a second model's opinion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from judgebench.backends.contract import Reply
from judgebench.errors import Problem, SetupError
from judgebench.judges.config import JudgeConfig
from judgebench.progress import NoProgress, Progress
from judgebench.records import Answer, content_hash
from judgebench.rubric import Rubric
from judgebench.shipped import find_file
from judgebench.stress.probes.altered import AlteredAnswer
from judgebench.stress.probes.attacker import Attacker, Draft, drafts, second_opinions
from judgebench.stress.probes.attacks import AttackEntry, StressSettings, load_attacks
from judgebench.stress.probes.plan import make_plan
from judgebench.stress.probes.recipe import Ask, Recipe, Rephrase, Write, check_demand, load_recipe
from judgebench.stress.probes.sets import SetFile
from judgebench.stress.probes.words import word_names
from judgebench.writer import WritingTerms, opened, which_model, write_texts

NO_AREA = "no area"  # what an item without an error area is counted under


@dataclass
class Yield:
    """What making a set came to. `failed` counts checks: an item may fail several."""

    asked: int = 0
    made_before: int = 0
    accepted: int = 0
    rejected: int = 0
    nothing_to_change: int = 0
    no_reply: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    areas: Counter[str] = field(default_factory=Counter)
    why_no_reply: str = ""
    second_asked: int = 0
    second_against: int = 0  # violations of the set that the second model did not see as such

    def count(self, item: AlteredAnswer) -> None:
        """Count one item by its checks and its area."""
        if item.failed_checks:
            self.rejected += 1
            self.failed.update(list(item.failed_checks))
        else:
            self.accepted += 1
            self.areas[item.area or NO_AREA] += 1


@dataclass(frozen=True)
class SetOrder:
    """How a set is made: `by` is the model that writes, `second` the one that is asked whether a
    violation is one; at most `limit` answers are altered, drawn by the seed."""

    by: JudgeConfig | None = None
    second: JudgeConfig | None = None
    seed: int = 0
    limit: int | None = None


@dataclass(frozen=True)
class _Making:
    """One set in the making."""

    recipe: Recipe
    answers: Sequence[Answer]
    rubric: Rubric
    file: SetFile
    order: SetOrder
    progress: Progress

    def has(self, item_id: str, recipe_hash: str, generator: str) -> bool:
        """Whether that item was made before."""
        return self.file.has(item_id, recipe_hash, generator, self.order.seed)


def make_set(
    name: str,
    answers: Sequence[Answer],
    rubric: Rubric,
    to: Path,
    order: SetOrder,
    progress: Progress | None = None,
) -> Yield:
    """Alter answers by the recipe of that path or name and add them to the set file `to`.

    What was made before by the same recipe, model and seed is not made again. Raises SetupError
    where recipe, rubric, answers and models do not fit together, or where the file holds other
    items of the same ids.
    """
    recipe = load_recipe(name)
    if not answers:
        raise SetupError(Problem("there is no answer to alter", field="data"))
    making = _Making(recipe, answers, rubric, SetFile(to), order, progress or NoProgress())
    if isinstance(recipe.edit, Write | Rephrase):
        if order.by is None:
            message = "needs a model to write: a judge's YAML file"
            raise SetupError(Problem(message, field="recipe", found=recipe.name))
        path = find_file("adversarial", name, ".yaml")
        demand = check_demand(recipe.must_worsen, rubric, str(path))
        recipe = recipe.model_copy(update={"must_worsen": dict(demand)})
        found = _by_model(replace(making, recipe=recipe), order.by)
    else:
        found = _by_rule(making, name)
    if order.second is not None:
        _ask_second(making, order.second, found)
    return found


def _by_model(making: _Making, by: JudgeConfig) -> Yield:
    recipe, seed, file = making.recipe, making.order.seed, making.file
    with opened(by.backend, by.settings) as backend:
        # The recipe holds its decoding, except for the length of a reply.
        way = content_hash([which_model(backend), by.decoding.max_tokens])
        attacker = Attacker(
            f"{by.name}:{way}", making.rubric, seed, word_names(), by.decoding.max_tokens
        )
        times = recipe.edit.times if isinstance(recipe.edit, Rephrase) else 1
        limit = making.order.limit
        wanted = drafts(recipe, making.answers, seed)[: None if limit is None else limit * times]
        todo = {
            str(number): draft
            for number, draft in enumerate(wanted)
            if not making.has(draft.item_id, recipe.content_hash, attacker.generator)
        }
        found = Yield(asked=len(todo), made_before=len(wanted) - len(todo))

        def keep(draft: Draft, reply: Reply) -> None:
            item = attacker.read(draft, reply, file.accepted)
            file.add(item)
            found.count(item)

        terms = WritingTerms(f"{by.name} writes", making.progress)
        written = write_texts(todo, backend, attacker.ask, keep, terms, found.made_before)
    found.no_reply, found.why_no_reply = written.failed, written.why_failed
    return found


def _by_rule(making: _Making, name: str) -> Yield:
    recipe, rubric = making.recipe, making.rubric
    if isinstance(recipe.edit, Ask) or recipe.alters == "violations":
        message = "alters no sound answer by itself: name it under `stress` in a bench.yaml"
        raise SetupError(Problem(message, field="recipe", found=recipe.name))
    settings = StressSettings(attacks=(AttackEntry(attack=name),))
    attacks = load_attacks(settings, rubric, rubric)
    (made,) = make_plan(
        attacks, making.answers, (), rubric, seed=making.order.seed, sample=making.order.limit
    ).made
    every = [*made.items, *made.rejected]
    new = [i for i in every if not making.has(i.item_id, i.recipe_hash, i.generator)]
    found = Yield(
        asked=len(new), made_before=len(every) - len(new), nothing_to_change=len(made.nothing)
    )
    making.progress.start(name, len(every), found.made_before)
    for item in new:
        making.file.add(item)
        found.count(item)
        making.progress.advance(name)
    return found


def _ask_second(making: _Making, second: JudgeConfig, found: Yield) -> None:
    """Ask about every violation of the file that no second model has judged yet."""
    file = making.file
    unchecked = [
        item for item in file.accepted if item.must_worsen and "second_opinion" not in item.checks
    ]
    if not unchecked:
        return
    answered: list[AlteredAnswer] = []
    terms = WritingTerms(second.name, making.progress)
    try:
        with opened(second.backend, second.settings) as backend:
            second_opinions(unchecked, backend, making.order.seed, answered.append, terms)
    finally:
        file.replace_checked(answered)
        found.second_asked = len(answered)
        found.second_against = sum(bool(item.failed_checks) for item in answered)
