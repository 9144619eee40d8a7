"""Make a set of altered answers: by rule, or by a model and with a second model's opinion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judgebench.backends import open_backend
from judgebench.backends.contract import Reply
from judgebench.errors import Problem, SetupError
from judgebench.judges.config import JudgeConfig
from judgebench.records import Answer, content_hash
from judgebench.rubric import Rubric
from judgebench.shipped import find_file
from judgebench.stress.probes.altered import AlteredAnswer
from judgebench.stress.probes.attacks import AttackEntry, StressSettings, load_attacks
from judgebench.stress.probes.plan import make_plan
from judgebench.stress.probes.recipe import Ask, Recipe, Rephrase, Write, check_demand, load_recipe
from judgebench.stress.probes.set_file import SetFile
from judgebench.stress.probes.words import word_names
from judgebench.stress.probes.writer import drafts, second_opinions, write

NO_AREA = "no area"  # what an item without an error area is counted under
Watch = Callable[[AlteredAnswer | Reply], None]


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


def make_set(
    name: str,
    answers: Sequence[Answer],
    rubric: Rubric,
    to: Path,
    *,
    by: JudgeConfig | None = None,
    second: JudgeConfig | None = None,
    seed: int = 0,
    limit: int | None = None,
    started: Callable[[int], None] = lambda total: None,
    watch: Watch = lambda item: None,
) -> Yield:
    """Alter up to `limit` answers by the recipe of that path or name and add them to a set file.

    `by` is the model that writes, `second` the one that is asked whether a violation is one. What
    was made before by the same recipe, model and seed is not made again. `started` is told how
    many items are to come (and once more for second opinions), `watch` each of them. Raises
    SetupError where recipe, rubric, answers and models do not fit together, or where the file
    holds other items of the same ids.
    """
    recipe = load_recipe(name)
    if not answers:
        raise SetupError(Problem("there is no answer to alter", field="data"))
    file = SetFile(to)
    if isinstance(recipe.edit, Write | Rephrase):
        if by is None:
            message = "needs a model: name a judge's YAML file with --by"
            raise SetupError(Problem(message, field="recipe", found=recipe.name))
        path = find_file("adversarial", name, ".yaml")
        demand = check_demand(recipe.must_worsen, rubric, str(path))
        recipe = recipe.model_copy(update={"must_worsen": dict(demand)})
        found = _by_model(recipe, answers, rubric, file, by, seed, limit, started, watch)
    else:
        found = _by_rule(name, recipe, answers, rubric, file, seed, limit, started, watch)
    if second is not None:
        _ask_second(file, second, seed, found, started, watch)
    return found


def _by_model(
    recipe: Recipe,
    answers: Sequence[Answer],
    rubric: Rubric,
    file: SetFile,
    by: JudgeConfig,
    seed: int,
    limit: int | None,
    started: Callable[[int], None],
    watch: Watch,
) -> Yield:
    backend = open_backend(by.backend, by.settings)
    try:
        about = {k: v for k, v in backend.describe().items() if k != "runtime"}
        # How it is drawn stands in the recipe, but for the length of a reply.
        generator = f"{by.name}:{content_hash([about, by.decoding.max_tokens])}"
        times = recipe.edit.times if isinstance(recipe.edit, Rephrase) else 1
        wanted = drafts(recipe, answers, seed)[: None if limit is None else limit * times]
        todo = [d for d in wanted if not file.has(d.item_id, recipe.content_hash, generator, seed)]
        found = Yield(asked=len(todo), made_before=len(wanted) - len(todo))
        started(len(todo))
        for item in write(
            todo, rubric, backend,
            generator=generator, seed=seed, names=word_names(), earlier=file.accepted,
            max_tokens=by.decoding.max_tokens,
        ):  # fmt: skip
            if isinstance(item, Reply):
                found.no_reply += 1
                found.why_no_reply = item.error
            else:
                file.add(item)
                found.count(item)
            watch(item)
    finally:
        backend.close()
    return found


def _by_rule(
    name: str,
    recipe: Recipe,
    answers: Sequence[Answer],
    rubric: Rubric,
    file: SetFile,
    seed: int,
    limit: int | None,
    started: Callable[[int], None],
    watch: Watch,
) -> Yield:
    if isinstance(recipe.edit, Ask) or recipe.alters == "violations":
        message = "alters no sound answer by itself: name it under `stress` in a bench.yaml"
        raise SetupError(Problem(message, field="recipe", found=recipe.name))
    settings = StressSettings(attacks=(AttackEntry(attack=name),))
    attacks = load_attacks(settings, rubric, rubric)
    (made,) = make_plan(attacks, answers, (), rubric, seed=seed, sample=limit).made
    every = [*made.items, *made.rejected]
    new = [i for i in every if not file.has(i.item_id, i.recipe_hash, i.generator, seed)]
    found = Yield(
        asked=len(new), made_before=len(every) - len(new), nothing_to_change=len(made.nothing)
    )
    started(len(new))
    for item in new:
        file.add(item)
        found.count(item)
        watch(item)
    return found


def _ask_second(
    file: SetFile,
    second: JudgeConfig,
    seed: int,
    found: Yield,
    started: Callable[[int], None],
    watch: Watch,
) -> None:
    """Ask about every violation of the file that nobody was asked about yet."""
    open_items = [
        item for item in file.accepted if item.must_worsen and "second_opinion" not in item.checks
    ]
    if not open_items:
        return
    started(len(open_items))
    backend = open_backend(second.backend, second.settings)
    answered: list[AlteredAnswer] = []
    try:
        for item in second_opinions(open_items, backend, second.name, seed):
            answered.append(item)
            watch(item)
    finally:
        backend.close()
        file.replace_checked(answered)
        found.second_asked = len(answered)
        found.second_against = sum(bool(item.failed_checks) for item in answered)
