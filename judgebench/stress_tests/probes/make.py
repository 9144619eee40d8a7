"""Make a set of altered answers: by rule, or by a model and with a second model's opinion.

Any backend is an attacker. What it replies is data: it is read as JSON of a fixed shape, checked
like every other altered answer, and kept apart with the reason where it is no attack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from judgebench.errors import Problem, SetupError
from judgebench.judges.config import JudgeConfig
from judgebench.models import open_backend
from judgebench.models.contract import Backend, Message, Reply, Request
from judgebench.progress import NoProgress, Progress
from judgebench.records import Answer, content_hash
from judgebench.rubric import Rubric
from judgebench.shipped import find_file
from judgebench.stress_tests.probes.altered import AlteredAnswer, Edited, not_alterable
from judgebench.stress_tests.probes.attacks import AttackEntry, StressSettings, load_attacks
from judgebench.stress_tests.probes.plan import By, altered_answer, altered_id, make_plan
from judgebench.stress_tests.probes.recipe import (
    Area,
    Ask,
    Recipe,
    Rephrase,
    Write,
    check_demand,
    load_recipe,
)
from judgebench.stress_tests.probes.sets import SetFile, check_same_meaning, check_violations
from judgebench.stress_tests.probes.text import word_names
from judgebench.writer import (
    FENCED,
    WritingTerms,
    Written,
    fenced,
    read_shape,
    schema_of,
    which_model,
    write_texts,
)

NO_AREA = "no area"  # what an item without an error area is counted under
CHARACTERS_A_TOKEN = 3  # short, so that no reply is cut off for want of tokens
_TOKENS_BESIDES = 400  # for the claims beside the answer


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
    with closing(open_backend(by.backend, by.settings)) as backend:
        # The recipe holds its decoding, except for the length of a reply and what is left out.
        left_out = by.decoding.left_out
        way = content_hash([which_model(backend), by.decoding.max_tokens, *left_out])
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

        terms = WritingTerms(f"{by.name} writes", making.progress, left_out=left_out)
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
    order = making.order
    plan = make_plan(attacks, making.answers, (), rubric, seed=order.seed, sample=order.limit)
    (made,) = plan.made
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
    """Ask about every violation and every rephrasing of the file that no second model has judged
    yet."""
    file = making.file
    asked = (item for item in file.accepted if item.must_worsen or item.by_model)
    unchecked = [item for item in asked if "second_opinion" not in item.checks]
    if not unchecked:
        return
    answered: list[AlteredAnswer] = []
    terms = WritingTerms(second.name, making.progress, left_out=second.decoding.left_out)
    try:
        with closing(open_backend(second.backend, second.settings)) as backend:
            second_opinions(unchecked, backend, making.order.seed, answered.append, terms)
    finally:
        file.replace_checked(answered)
        found.second_asked = len(answered)
        found.second_against = sum(bool(item.failed_checks) for item in answered)


# --- by a model ---


class _FalseAnswer(BaseModel):
    """A false answer as the model replies it."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    area: str = ""
    answer: str
    false_claim: str
    true_claim: str
    why_plausible: str = ""


class _Rephrased(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    answer: str


@dataclass(frozen=True)
class Draft:
    """One altered answer to be written: its parent, its number, its area."""

    parent: Answer
    number: int | None
    area: Area | None
    recipe: Recipe

    @property
    def item_id(self) -> str:
        """The id of the item that it becomes."""
        return altered_id(self.parent, self.recipe, self.number)


def drafts(recipe: Recipe, answers: Iterable[Answer], seed: int) -> list[Draft]:
    """What is to be written, in an order that the seed decides.

    An answer that is empty or not a single text is not altered. The error areas take turns, so that
    any first part of the drafts is balanced over them. Raises SetupError for a recipe that needs no
    model.
    """
    filled = (answer for answer in answers if not not_alterable(answer))
    drawn = sorted(filled, key=lambda answer: content_hash([seed, answer.item_id]))
    match recipe.edit:
        case Write(areas=areas):
            turns = tuple(areas)
            return [Draft(a, None, turns[i % len(turns)], recipe) for i, a in enumerate(drawn)]
        case Rephrase(times=times):
            return [Draft(a, n, None, recipe) for a in drawn for n in range(1, times + 1)]
        case _:
            message = "needs no model to carry it out"
            raise SetupError(Problem(message, field="edit", found=recipe.name))


@dataclass(frozen=True)
class Attacker:
    """Who writes, and for what: `generator` is the signature of the model, `names` are those that a
    rephrased answer must keep."""

    generator: str
    rubric: Rubric
    seed: int
    names: Collection[str]
    max_tokens: int | None = None

    def ask(self, key: str, draft: Draft) -> Request:
        """The request that asks for one draft."""
        edit, parent = draft.recipe.edit, draft.parent
        assert isinstance(edit, Write | Rephrase)
        instructions = edit.instructions
        if isinstance(edit, Write) and draft.area:
            instructions += f"\n\nError area: {draft.area}. {edit.areas[draft.area]}"
        enough = 2 * len(parent.text) // CHARACTERS_A_TOKEN + _TOKENS_BESIDES
        # The area comes first, so that the model writes it down before it writes the answer.
        schema = schema_of(_shape(draft), area=[draft.area]) if draft.area else None
        return Request(
            key=key,
            messages=(
                Message("system", f"{instructions}\n\n{FENCED}"),
                Message("user", fenced(parent.question, parent.text)),
            ),
            schema=schema or schema_of(_shape(draft)),
            max_tokens=self.max_tokens or enough,
            temperature=edit.temperature,
            top_p=edit.top_p,
            seed=self.seed + (draft.number or 0),
        )

    def read(
        self, draft: Draft, reply: Reply, earlier: Sequence[AlteredAnswer] = ()
    ) -> AlteredAnswer:
        """The altered answer of a reply, its checks recorded; it may repeat none of `earlier`.

        A reply that cannot be read, or that declines, has the failed check `reply` and the raw
        text.
        """
        try:
            values = read_shape(reply, _shape(draft)).model_dump()
        except ValueError as error:
            values, checks = {"answer": reply.text}, {"reply": str(error)}
        else:
            values["answer"] = values["answer"].strip()
            checks = {}
            if (said := values.get("area")) and said != draft.area:
                message = f"the reply is of the area {said!r}, and {draft.area!r} was asked for"
                checks = {"area": message}
        claims = values.get("false_claim", ""), values.get("true_claim", "")
        edited = Edited(values["answer"], *claims)
        by = By(self.seed, self.generator, draft.number)
        item = altered_answer(draft.recipe, draft.parent, edited, self.rubric, by)
        plausible = values.get("why_plausible", "")
        item = replace(item, area=draft.area or item.area, why_plausible=plausible, checks=checks)
        if "reply" in checks:
            return item
        if item.must_worsen:
            return check_violations([item], earlier)[0]
        return check_same_meaning([item], self.names)[0]


def _shape(draft: Draft) -> type[BaseModel]:
    return _FalseAnswer if isinstance(draft.recipe.edit, Write) else _Rephrased


_CANNOT_TELL = "cannot tell"
_YOU_CHECK = "You check medical texts. You are given an answer to a question and "
# Of violations and of other items: what is asked, what agrees, what disagrees, and with what.
_SECOND = {
    True: (
        f"{_YOU_CHECK}one claim that is true. Say whether the answer contradicts that claim. The "
        "claim stands between such tags too. ",
        "contradicts", "does not contradict", "the true claim",
    ),
    False: (
        f"{_YOU_CHECK}an original that it words anew. Say whether the answer says the same as the "
        "original: nothing added, nothing left out, nothing changed in what it means or in how "
        "sure it is. The original stands between such tags too. ",
        "says the same as", "does not say the same as", "its parent",
    ),
}  # fmt: skip


class _Opinion(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    the_answer: str


def second_opinions(
    items: Sequence[AlteredAnswer],
    backend: Backend,
    seed: int,
    keep: Callable[[AlteredAnswer], None],
    terms: WritingTerms,
) -> Written:
    """Ask another model whether violations contradict the true claim and whether others say the
    same as their parents: `keep` gets each with the check `second_opinion`, or unchecked where the
    reply cannot be read. The name in `terms` is that of the model."""

    def ask(key: str, item: AlteredAnswer) -> Request:
        worse, parent = bool(item.must_worsen), item.parent
        beside = {"claim": item.true_claim} if worse else {"original": parent.text}
        instructions, agrees, differs, _ = _SECOND[worse]
        user = fenced(parent.question, item.text, **beside)
        messages = (Message("system", instructions + FENCED), Message("user", user))
        schema = schema_of(_Opinion, the_answer=[agrees, differs, _CANNOT_TELL])
        return Request(key, messages, schema, max_tokens=60, seed=seed)

    def read(item: AlteredAnswer, reply: Reply) -> None:
        try:
            said = read_shape(reply, _Opinion).the_answer if reply.finish == "stop" else None
        except ValueError:
            said = None
        _, agrees, differs, what = _SECOND[bool(item.must_worsen)]
        told = {
            agrees: "",
            differs: f"{terms.name} says that it {differs} {what}",
            _CANNOT_TELL: f"{terms.name} cannot tell whether it {agrees} {what}",
        }
        checks = {"second_opinion": told[said]} if said in told else {}
        return keep(replace(item, checks={**item.checks, **checks}))

    by_key = {str(number): item for number, item in enumerate(items)}
    return write_texts(by_key, backend, ask, read, terms)
