"""The attacks of a stress test: recipes and sets, read and checked against the rubric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from judgebench.errors import Problem, SetupError
from judgebench.records import content_hash
from judgebench.rubric import Rubric
from judgebench.shipped import find_file, shipped_folder
from judgebench.stress_tests.probes.altered import AlteredAnswer, Edit
from judgebench.stress_tests.probes.edits.claims import (
    change_number,
    change_unit,
    dose_by_ten,
    negate_contraindication,
    swap,
)
from judgebench.stress_tests.probes.edits.wording import (
    add,
    bullets,
    demanded,
    drop_redundant,
    load_synonyms,
    markdown,
    reword,
)
from judgebench.stress_tests.probes.recipe import (
    Add,
    Ask,
    Recipe,
    Rephrase,
    Reword,
    Rule,
    Swap,
    Write,
    check_demand,
    load_recipe,
)
from judgebench.stress_tests.probes.review import only_accepted, read_decisions, review_path
from judgebench.stress_tests.probes.sets import notices, read_set
from judgebench.stress_tests.probes.text import load_words
from judgebench.yaml_file import Strict

Kind = Literal["violations", "invariance", "planted", "asked otherwise"]
SHIPPED_SETS = ("consensus-violations",)


class AttackEntry(Strict):
    """One attack of a stress test: a recipe or a set, by path or shipped name.

    `must_worsen` stands in for the recipe's own demand, for rubrics of other names; `sample`
    bounds its items, in place of the stress test's own.
    """

    attack: str
    must_worsen: dict[str, str] = Field(default_factory=dict)
    sample: int | None = Field(default=None, ge=1)


class StressSettings(Strict):
    """What `stress:` of a bench.yaml holds.

    Without `attacks` all that ship and need no model are used. `sample` bounds the items of each
    recipe, drawn by the benchmark's seed; a set is used whole unless its entry bounds it.
    `reviewed` counts only violations that people have accepted in the sheet beside a set.
    `half_width` is how narrow a detection rate's interval should be.
    """

    attacks: tuple[str | AttackEntry, ...] = ()
    sample: int | None = Field(default=None, ge=1)
    reviewed: bool = False
    half_width: float = Field(default=0.10, gt=0, lt=0.5)

    @property
    def entries(self) -> tuple[AttackEntry, ...]:
        """Every attack as an entry, the shipped ones where none is named."""
        names = self.attacks or shipped_attacks()
        return tuple(AttackEntry(attack=x) if isinstance(x, str) else x for x in names)


@dataclass(frozen=True)
class Attack:
    """A recipe or a set that was read. `items` are a set's; a recipe has made none yet."""

    name: str
    version: str
    hash: str
    about: str
    bias: str
    kind: Kind
    sample: int | None
    recipe: Recipe | None = None
    edit: Edit | None = None  # of a recipe by rule
    items: tuple[AlteredAnswer, ...] = ()
    notices: tuple[str, ...] = ()
    undecided: int = 0  # items of a set that nobody accepted, where only accepted ones count


def shipped_attacks() -> tuple[str, ...]:
    """The shipped sets and the shipped recipes that need no model, by name."""
    folder = shipped_folder("adversarial")
    recipes = [load_recipe(path) for path in sorted(folder.glob("*.yaml"))]
    by_rule = [r.name for r in recipes if not isinstance(r.edit, Write | Rephrase)]
    return (*SHIPPED_SETS, *by_rule)


def load_attacks(
    settings: StressSettings, rubric: Rubric, judged: Rubric, relative_to: Path | None = None
) -> tuple[Attack, ...]:
    """The attacks of `read_attacks`, without the names of those left out."""
    return read_attacks(settings, rubric, judged, relative_to)[0]


def read_attacks(
    settings: StressSettings, rubric: Rubric, judged: Rubric, relative_to: Path | None = None
) -> tuple[tuple[Attack, ...], tuple[str, ...]]:
    """Every attack of a stress test, checked against the rubric and the metrics that are judged;
    and the names of those left out.

    Raises SetupError with every problem of every attack: no such file, an unknown metric or
    label, a recipe that needs a model, an attack on metrics that nobody judges. Where the user
    names no attack, the shipped ones that do not fit the rubric are left out.
    """
    read = _Reading(rubric, judged, relative_to, settings.reviewed)
    found: list[Attack] = []
    left_out: list[str] = []
    problems: list[Problem] = []
    for entry in settings.entries:
        try:
            found += read.attack(entry)
        except SetupError as error:
            # Of those that nobody named only a set is missed, where sheets beside sets count.
            missed = settings.reviewed and entry.attack in SHIPPED_SETS
            left_out.append(entry.attack)
            problems += error.problems if settings.attacks or missed else []
    names = Counter(attack.name for attack in found)
    problems += [
        Problem("two attacks have this name", field="stress.attacks", found=name)
        for name, count in names.items()
        if count > 1
    ]
    if problems:
        raise SetupError(problems)
    return tuple(found), tuple(left_out)


@dataclass(frozen=True)
class _Reading:
    """How attacks are read: against the rubric, whose metrics `judged` are judged."""

    rubric: Rubric
    judged: Rubric
    relative_to: Path | None
    reviewed: bool

    def attack(self, entry: AttackEntry) -> list[Attack]:
        """A recipe as one attack, a set as one for each recipe that its lines name."""
        if entry.attack.endswith(".jsonl") or entry.attack in SHIPPED_SETS:
            path = find_file("adversarial", entry.attack, ".jsonl", self.relative_to)
            return self._set(entry, path)
        path = find_file("adversarial", entry.attack, ".yaml", self.relative_to)
        return [self._recipe(entry, load_recipe(path), path)]

    def _recipe(self, entry: AttackEntry, recipe: Recipe, path: Path) -> Attack:
        make = f"`judgebench attack make {entry.attack}"
        if isinstance(recipe.edit, Write | Rephrase):
            message = (
                f"needs a model: make a set of it first, with {make} --by JUDGE.yaml`, and name "
                "that set here"
            )
            raise SetupError(Problem(message, str(path), field="edit.kind", found=recipe.edit.kind))
        if recipe.must_worsen and self.reviewed:
            message = (
                "makes its violations anew, so nobody has accepted them: make a set of them, with "
                f"{make}`, review that, and name it here"
            )
            raise SetupError(Problem(message, str(path), field="stress.reviewed"))
        problems: list[Problem] = []
        edit = None
        try:
            if recipe.must_worsen:
                wanted = entry.must_worsen or recipe.must_worsen
                demand = _judged(check_demand(wanted, self.rubric, str(path)), self.judged, path)
                recipe = recipe.model_copy(update={"must_worsen": demand})
        except SetupError as error:
            problems += error.problems
        try:
            asks = isinstance(recipe.edit, Ask)
            edit = None if asks else edit_of(recipe, self.judged, path.parent)
        except SetupError as error:
            problems += [replace(p, file=p.file or str(path)) for p in error.problems]
        if problems:
            raise SetupError(problems)
        return Attack(
            recipe.name, recipe.version, recipe.content_hash, recipe.about, recipe.bias,
            _kind(recipe), entry.sample, recipe, edit,
        )  # fmt: skip

    def _set(self, entry: AttackEntry, path: Path) -> list[Attack]:
        items = read_set(path, self.rubric, entry.must_worsen)
        decisions = read_decisions(review_path(path)) if self.reviewed else None
        told = tuple(f"The set {path.stem}: {notice}." for notice in notices(path))
        by_recipe: dict[str, list[AlteredAnswer]] = {}
        for item in items:
            if item.must_worsen:
                demand = _judged(item.must_worsen, self.judged, path)
                item = replace(item, must_worsen=demand)
            by_recipe.setdefault(item.recipe, []).append(item)
        attacks = []
        for name, group in by_recipe.items():
            kinds = {_kind(item) for item in group}
            if len(kinds) > 1:
                message = f"holds items of the recipe {name} of several kinds: give each a recipe"
                raise SetupError(Problem(message, str(path), found=", ".join(sorted(kinds))))
            kept = group if decisions is None else only_accepted(group, decisions)
            hashed = content_hash([item.answer.content_hash for item in kept])
            attack = Attack(
                name, group[0].recipe_version, hashed, f"the set {path.name}", "", kinds.pop(),
                entry.sample, items=tuple(kept), notices=told, undecided=len(group) - len(kept),
            )  # fmt: skip
            attacks.append(attack)
        return attacks


def _judged(demand: Mapping[str, str], judged: Rubric, path: Path) -> dict[str, str]:
    """The part of a demand that the benchmark's metrics can show."""
    kept = {metric: label for metric, label in demand.items() if judged.find(metric)}
    if not kept:
        allowed = ", ".join(m.id for m in judged.metrics)
        message = "must worsen metrics that this benchmark does not judge"
        raise SetupError(
            Problem(message, str(path), field="must_worsen", found=", ".join(demand),
                    allowed=allowed)
        )  # fmt: skip
    return kept


def _kind(attack: Recipe | AlteredAnswer) -> Kind:
    if isinstance(attack, Recipe) and isinstance(attack.edit, Ask):
        return "asked otherwise"
    if attack.must_worsen:
        return "violations"
    return "planted" if attack.demand else "invariance"


# --- from a recipe to the rule that carries it out -----------------------------------------------

_RULES = {
    "dose-by-ten": dose_by_ten,
    "number": change_number,
    "unit": change_unit,
    "negate-contraindication": negate_contraindication,
    "bullets": bullets,
    "markdown": markdown,
    "drop-redundant": drop_redundant,
}


def edit_of(recipe: Recipe, rubric: Rubric, relative_to: Path | None = None) -> Edit:
    """The edit that a recipe names; paths of word lists are seen from `relative_to`.

    Raises SetupError where a word list cannot be read, and for a recipe that only a model, or
    another way of asking, can carry out.
    """
    match recipe.edit:
        case Add():
            demand = demanded(recipe.demand, rubric) if recipe.demand else {}
            return add(recipe.edit, demand, rubric)
        case Swap():
            return swap(load_words(recipe.edit.words, relative_to), recipe.edit.to)
        case Reword():
            return reword(load_synonyms(recipe.edit.words, relative_to))
        case Rule():
            return _RULES[recipe.edit.kind]
        case _:
            message = f"needs more than a rule: it is of the kind {recipe.edit.kind}"
            raise SetupError(Problem(message, field="edit", found=recipe.name))
