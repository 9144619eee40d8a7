"""The attacks of a stress test, read and checked, and the answers that they alter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from statistics import mode

from pydantic import Field

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import StrictModel, find_file, shipped_folder
from judgebench.records import Answer, HumanLabel, content_hash
from judgebench.rubric import Rubric, load_rubric
from judgebench.stress_tests.best_of import bad_answers, compose, distinct_edits, labels_by_answer
from judgebench.stress_tests.claims import (
    Quantities,
    SentenceRules,
    change_quantity,
    change_sentence,
    swap,
)
from judgebench.stress_tests.item_sets import (
    accepted_ids,
    read_set,
    with_checks,
)
from judgebench.stress_tests.recipes import (
    Add,
    AlteredAnswer,
    Ask,
    BestOf,
    Edit,
    Edited,
    MetricLabels,
    Nothing,
    Recipe,
    Rephrase,
    Reword,
    Rule,
    Swap,
    Wording,
    WordList,
    Write,
    check_demand,
    label_indices,
    load_list,
    load_recipe,
    not_alterable,
)
from judgebench.stress_tests.result import RecipeSummary
from judgebench.stress_tests.wording import Synonyms, add, bullets, demanded, markdown, reword
from judgebench.stress_tests.wordings import Wordings, read_wordings

SHIPPED_SETS = ("consensus-violations",)
_NAMED_ONLY = (Write, Rephrase, BestOf, Wording)  # they need a model, or many more calls


class AttackEntry(StrictModel):
    """One attack of a stress test: a recipe or a set, by path or shipped name.

    `must_worsen` stands in for the recipe's own demand, for rubrics of other names.
    """

    attack: str
    must_worsen: dict[str, str] = Field(default_factory=dict)


class StressSettings(StrictModel):
    """The settings under `stress:` of a bench.yaml.

    Without `attacks` all that ship and need no model are used. `sample` bounds the items of each
    recipe, drawn by the benchmark's seed; a set is used whole. `reviewed` counts only violations
    that people have accepted in the sheet beside a set.
    """

    attacks: tuple[str | AttackEntry, ...] = ()
    sample: int | None = Field(default=None, ge=1)
    reviewed: bool = False

    @property
    def entries(self) -> tuple[AttackEntry, ...]:
        """Every attack as an entry, the shipped ones where none is named."""
        names = self.attacks or shipped_attacks()
        return tuple(AttackEntry(attack=x) if isinstance(x, str) else x for x in names)


@dataclass(frozen=True)
class Attack:
    """A recipe or a set that was read. `items` are a set's; a recipe has made none yet."""

    summary: RecipeSummary
    recipe: Recipe | None = None
    edit: Edit | None = None  # of a recipe by rule
    wordings: Wordings | None = None  # of one that asks in other words
    items: tuple[AlteredAnswer, ...] = ()

    @property
    def name(self) -> str:
        """The name of the recipe."""
        return self.summary.name


def shipped_attacks() -> tuple[str, ...]:
    """The shipped sets and the shipped recipes that need no model, by name."""
    by_rule = [r.name for r in _shipped_recipes() if not isinstance(r.edit, _NAMED_ONLY)]
    return (*SHIPPED_SETS, *by_rule)


def _shipped_recipes() -> list[Recipe]:
    return list(map(load_recipe, sorted(shipped_folder("adversarial").glob("*.yaml"))))


def read_attacks(
    settings: StressSettings, rubric: Rubric, judged: Rubric, relative_to: Path | None = None
) -> tuple[tuple[Attack, ...], tuple[str, ...]]:
    """Every attack of a stress test, checked against the rubric and the metrics that are judged;
    and the names of those left out.

    Raises SetupError with every problem of every attack: no such file, an unknown metric or
    label, a recipe that needs a model, an attack on metrics that nobody judges. Where the user
    names no attack, the shipped ones that do not fit the rubric are left out.
    """
    attacks: list[Attack] = []
    left_out: list[str] = []
    problems: list[Problem] = []
    for entry in settings.entries:
        is_set = entry.attack.endswith(".jsonl") or entry.attack in SHIPPED_SETS
        read, ending = (_of_set, ".jsonl") if is_set else (_of_recipe, ".yaml")
        try:
            path = find_file("adversarial", entry.attack, ending, relative_to)
            attacks += read(entry, path, rubric, judged, settings.reviewed)
        except SetupError as error:
            # Of those that nobody named only a set is missed, where sheets beside sets count.
            missed = settings.reviewed and entry.attack in SHIPPED_SETS
            left_out.append(entry.attack)
            problems += error.problems if settings.attacks or missed else []
    problems += [
        Problem("two attacks have this name", field="attacks", found=name)
        for name, count in Counter(attack.name for attack in attacks).items()
        if count > 1
    ]
    raise_any(problems)
    return tuple(attacks), tuple(left_out)


def _of_recipe(
    entry: AttackEntry, path: Path, rubric: Rubric, judged: Rubric, reviewed: bool
) -> list[Attack]:
    """The one attack of a recipe."""
    recipe = load_recipe(path)
    is_by_model = isinstance(recipe.edit, Write | Rephrase)
    if is_by_model or (recipe.must_worsen and reviewed):
        why, by = "makes violations anew, which nobody has accepted", ""
        if is_by_model:
            why, by = "needs a model", " --by JUDGE.yaml"
        command = f"`judgebench stress attacks make {entry.attack}{by}`"
        message = f"{why}: make a set of it with {command}, review it, and name that set here"
        raise SetupError(Problem(message, str(path), field="attack", found=recipe.name))
    if recipe.must_worsen:
        wanted = _demand(entry, recipe, rubric)
        recipe = recipe.model_copy(update={"must_worsen": _judged(wanted, judged, path)})
    edit = wordings = None
    if isinstance(recipe.edit, Wording):
        wordings = read_wordings(recipe.edit, rubric, judged, path)
    elif not isinstance(recipe.edit, Ask):
        edit = edit_of(recipe, judged, path.parent)
    return [Attack(RecipeSummary(recipe.name, recipe.version), recipe, edit, wordings)]


def _demand(entry: AttackEntry, recipe: Recipe, rubric: Rubric) -> MetricLabels:
    """What an attack demands on this rubric. Raises SetupError with what the entry would say."""
    try:
        return check_demand(entry.must_worsen or recipe.must_worsen, rubric)
    except SetupError as error:
        remedy = f"name the attack as {{attack: {entry.attack}, must_worsen: {{METRIC: LABEL}}}}"
        problems = [replace(p, message=f"{p.message}: {remedy}") for p in error.problems]
        raise SetupError(problems) from None


def _of_set(
    entry: AttackEntry, path: Path, rubric: Rubric, judged: Rubric, reviewed: bool
) -> list[Attack]:
    """An attack for each recipe that the lines of a set name."""
    items = read_set(path, rubric, entry.must_worsen)
    accepted = accepted_ids(path) if reviewed else {item.item_id for item in items}
    groups: dict[str, list[AlteredAnswer]] = {}
    versions = {item.recipe: item.recipe_version for item in items}
    for item in items:
        group = groups.setdefault(item.recipe, [])
        if item.item_id in accepted:
            demand = item.must_worsen and _judged(item.must_worsen, judged, path)
            group.append(replace(item, must_worsen=demand))
    return [
        Attack(RecipeSummary(name, versions[name]), items=tuple(group))
        for name, group in groups.items()
    ]


def _judged(demand: MetricLabels, judged: Rubric, path: Path) -> MetricLabels:
    """The part of a demand that the benchmark's metrics can show."""
    kept = {metric: label for metric, label in demand.items() if judged.find(metric)}
    if not kept:
        raise SetupError(
            Problem(
                "must worsen metrics that this benchmark does not judge", str(path),
                field="must_worsen", found=", ".join(demand),
                allowed=", ".join(m.id for m in judged.metrics),
            )
        )  # fmt: skip
    return kept


# --- from a recipe to the rule that carries it out -----------------------------------------------


def edit_of(recipe: Recipe, rubric: Rubric, relative_to: Path | None = None) -> Edit:
    """The edit that a recipe names; paths of word lists are seen from `relative_to`.

    Raises SetupError where a word list cannot be read, and for a recipe that only a model, or
    another way of asking, can carry out.
    """
    match recipe.edit:
        case Add():
            demand = demanded(recipe.demand, rubric) if recipe.demand else {}
            return add(recipe.edit, demand, rubric)
        case Swap(words=name, to=to):
            return swap(load_list(name, WordList, relative_to), to)
        case Reword(words=name):
            return reword(load_list(name, Synonyms, relative_to))
        case Rule(kind="bullets"):
            return bullets
        case Rule(kind="markdown"):
            return markdown
        case Rule(kind="negate-contraindication"):
            return change_sentence(load_list("warnings", SentenceRules))
        case Rule(kind="drop-redundant"):
            return change_sentence(load_list("courtesies", SentenceRules))
        case Rule(kind=name):
            return change_quantity(load_list("quantities", Quantities), name)
        case BestOf(of=names):
            parts = [load_recipe(name, relative_to) for name in names]
            return compose([edit_of(part, rubric, relative_to) for part in parts])
        case _:
            message = f"needs more than a rule: it is of the kind {recipe.edit.kind}"
            raise SetupError(Problem(message, field="edit", found=recipe.name))


# --- which answers are altered, and what became of every attempt ----------------------------------


@dataclass(frozen=True)
class GeneratedItems:
    """The products of one attack: items that count, items that failed a check, and the parents in
    which the rule found nothing to change, with the reason."""

    attack: Attack
    items: tuple[AlteredAnswer, ...] = ()
    rejected: tuple[AlteredAnswer, ...] = ()
    nothing: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_words(self) -> str:
        """`unit 3 (21 impossible)`, `mine 0 (5 rejected, most often: no false claim is stated)`."""
        words = [self.attack.name, str(len(self.items))]
        if self.rejected:
            first = [next(iter(item.failed_checks.values())) for item in self.rejected]
            words.append(f"({len(first)} rejected, most often: {mode(first)})")
        if self.nothing:
            why = "" if self.items else f", most often: {mode(self.nothing.values())}"
            words.append(f"({len(self.nothing)} impossible{why})")
        return " ".join(words)

    @property
    def summary(self) -> RecipeSummary:
        """What became of every attempt, in numbers."""
        return replace(
            self.attack.summary,
            made=len(self.items),
            nothing_to_change=len(self.nothing),
            rejected=len(self.rejected),
        )


@dataclass(frozen=True)
class Plan:
    """A whole stress test before any judge is asked. `asks` are attacks that leave answers alone
    and ask the judge about `parents` in another way."""

    made: tuple[GeneratedItems, ...]
    parents: tuple[Answer, ...]  # every unaltered answer that is judged
    asks: tuple[tuple[Attack, tuple[Answer, ...]], ...]

    @property
    def items(self) -> list[AlteredAnswer]:
        """The items of every attack that passed their checks."""
        return [item for made in self.made for item in made.items]

    @property
    def in_words(self) -> str:
        """The items of each attack, and why there are no more."""
        return ", ".join(made.in_words for made in self.made)

    def refuse_empty(self) -> None:
        """Raises SetupError, with each attack and why, where no judge would be asked anything."""
        if not self.items and not self.asks:
            message = f"no attack makes an item of these answers: {self.in_words}"
            raise SetupError(Problem(message, field="attacks"))

    @property
    def summaries(self) -> list[RecipeSummary]:
        """Each attack, and what it made."""
        asks = [replace(attack.summary, made=len(answers)) for attack, answers in self.asks]
        return [*(made.summary for made in self.made), *asks]


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
    `sample` bounds the items of each recipe; a set is used whole. Raises SetupError where there is
    no answer to alter.
    """
    made = [_generated(a, a.items) for a in attacks if a.recipe is None]
    sound = [*answers, *(item.parent for m in made for item in m.items)]
    parents = list({answer.item_id: answer for answer in sound}.values())
    if not parents:
        message = "there is no answer to alter: name data, or a set of altered answers"
        raise SetupError(Problem(message, field="attacks"))
    drawn = _shuffled(parents, seed)
    people = labels_by_answer(labels, rubric)
    alter = partial(_alter, limit=sample, rubric=rubric, seed=seed, people=people)
    for alters in ("sound", "bad", "violations"):
        chosen = [a for a in attacks if a.edit and a.recipe and a.recipe.alters == alters]
        pool = drawn
        if alters == "violations":
            pool = _shuffled((i.answer for m in made for i in m.items if i.must_worsen), seed)
        elif alters == "bad" and chosen:
            pool = bad_answers(drawn, labels, rubric)
        made += [alter(attack, pool) for attack in chosen]
    asks = tuple((a, tuple(drawn[:sample])) for a in attacks if a.recipe and not a.edit)
    if not labels:  # no other answer says anything than those that something is compared with
        used = {item.parent.item_id for m in made for item in m.items}
        used |= {answer.item_id for _, asked in asks for answer in asked}
        parents = [parent for parent in parents if parent.item_id in used]
    return Plan(tuple(made), tuple(parents), asks)


def _shuffled(answers: Iterable[Answer], seed: int) -> list[Answer]:
    """The same order for the same seed, whatever order the answers come in."""
    return sorted(answers, key=lambda answer: content_hash([seed, answer.item_id]))


def _generated(
    attack: Attack, items: Sequence[AlteredAnswer], nothing: Mapping[str, str] = {}
) -> GeneratedItems:
    """Items after their checks."""
    checked = with_checks(items)
    accepted = tuple(item for item in checked if not item.failed_checks)
    rejected = tuple(item for item in checked if item.failed_checks)
    return GeneratedItems(attack, accepted, rejected, nothing)


def _alter(
    attack: Attack,
    pool: Sequence[Answer],
    limit: int | None,
    rubric: Rubric,
    seed: int,
    people: Mapping[tuple[str, str], Sequence[int]],
) -> GeneratedItems:
    """Edit answers of the pool in their order until there are `limit`.

    An answer to which one of the `people` gave a label that the attack demands, or a worse one, is
    passed by.
    """
    recipe, edit = attack.recipe, attack.edit
    assert recipe is not None
    assert edit is not None
    demands = label_indices(recipe.must_worsen, rubric.metrics)
    least = {m.id: index for m, index in zip(rubric.metrics, demands, strict=True) if index >= 0}
    times = recipe.edit.times if isinstance(recipe.edit, BestOf) else 1
    items: list[AlteredAnswer] = []
    nothing: dict[str, str] = {}
    n_parents = 0
    for parent in pool:
        if n_parents == limit:
            break
        if any(max(people.get((parent.item_id, m), [-1])) >= least[m] for m in least):
            continue
        chance = Random(content_hash([seed, recipe.content_hash, parent.item_id]))
        why_not = not_alterable(parent)
        edits = Nothing(why_not) if why_not else distinct_edits(edit, parent, chance, times)
        if isinstance(edits, Nothing):
            nothing[parent.item_id] = edits.reason
            continue
        n_parents += 1
        altered = [altered_answer(recipe, parent, edited, rubric, seed) for edited in edits]
        if times > 1:
            altered = [replace(x, item_id=f"{x.item_id}~{n}") for n, x in enumerate(altered, 1)]
        items += altered
    return _generated(attack, items, nothing)


def altered_answer(
    recipe: Recipe, parent: Answer, edited: Edited, rubric: Rubric, seed: int
) -> AlteredAnswer:
    """An edited text with all that its recipe says of it."""
    return AlteredAnswer(
        f"{parent.item_id}~{recipe.name}", parent, edited.text,
        recipe=recipe.name, recipe_version=recipe.version, recipe_hash=recipe.content_hash,
        seed=seed, must_worsen=recipe.must_worsen,
        demand=demanded(recipe.demand, rubric) if recipe.demand else {},
        area=recipe.area or "", false_claim=edited.false_claim, true_claim=edited.true_claim,
    )  # fmt: skip


def set_in_words(path: Path, rubric: str) -> str:
    """Check a set of altered answers and say how many it holds. Raises SetupError with what fails
    a check."""
    items = with_checks(read_set(path, load_rubric(rubric)))
    raise_any(
        [
            Problem(reason, str(path), None, item.item_id, check)
            for item in items
            for check, reason in item.failed_checks.items()
        ]
    )
    return f"a set of {len(items)} altered answers that pass every check"


def recipe_in_words(path: Path, rubric: str) -> str:
    """Read a recipe, check it against a rubric, and say what it edits. Raises SetupError."""
    recipe, judged = load_recipe(path), load_rubric(rubric)
    if not isinstance(recipe.edit, Write | Rephrase):
        _of_recipe(AttackEntry(attack=str(path)), path, judged, judged, reviewed=False)
    kind = recipe.edit.kind
    return f"the recipe {recipe.name}, version {recipe.version}, an edit of the kind {kind}"


def listed() -> list[tuple[str, str]]:
    """The name of each shipped attack and what it is."""
    sets = [(name, "a set of sound answers, each beside a false one") for name in SHIPPED_SETS]
    return [*sets, *((recipe.name, recipe.about) for recipe in _shipped_recipes())]
