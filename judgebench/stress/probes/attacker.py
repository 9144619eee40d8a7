"""Altered answers that a model writes: false ones, and rephrasings.

Any backend is an attacker. What it replies is data: it is read as JSON of a fixed shape, checked
like every other altered answer, and kept apart with the reason where it is no attack.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict

from judgebench.backends.contract import Backend, Message, Reply, Request
from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, content_hash
from judgebench.rubric import Rubric
from judgebench.stress.probes.altered import AlteredAnswer, Edited
from judgebench.stress.probes.plan import By, altered_answer, altered_id
from judgebench.stress.probes.recipe import Area, Recipe, Rephrase, Write
from judgebench.stress.probes.validity import check_same_meaning, check_violations
from judgebench.writer import (
    FENCED,
    WritingTerms,
    Written,
    fenced,
    read_shape,
    schema_of,
    write_texts,
)

CHARACTERS_A_TOKEN = 3  # short, so that no reply is cut off for want of tokens
_TOKENS_BESIDES = 400  # for the claims beside the answer


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

    The error areas take turns, so that any first part of the drafts is balanced over them. Raises
    SetupError for a recipe that needs no model.
    """
    drawn = sorted(answers, key=lambda answer: content_hash([seed, answer.item_id]))
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


_AGREES, _CANNOT_TELL = "contradicts", "cannot tell"
_OPINIONS = [_AGREES, "does not contradict", _CANNOT_TELL]
_SECOND_INSTRUCTIONS = (
    "You check medical texts. You are given an answer to a question and one claim that is true. "
    "Say whether the answer contradicts that claim. " + FENCED
)


class _Opinion(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    the_answer: Literal["contradicts", "does not contradict", "cannot tell"]


def second_opinions(
    items: Sequence[AlteredAnswer],
    backend: Backend,
    seed: int,
    keep: Callable[[AlteredAnswer], None],
    terms: WritingTerms,
) -> Written:
    """Ask another model about violations: `keep` gets each with the check `second_opinion`, or
    unchecked where the reply cannot be read. The name in `terms` is that of the model."""

    def ask(key: str, item: AlteredAnswer) -> Request:
        question, text, claim = item.parent.question, item.text, item.true_claim
        user = f"{fenced(question, text, claim)}\n\nTrue claim: {claim}"
        messages = (Message("system", _SECOND_INSTRUCTIONS), Message("user", user))
        schema = schema_of(_Opinion, the_answer=_OPINIONS)
        return Request(key, messages, schema, max_tokens=60, seed=seed)

    def read(item: AlteredAnswer, reply: Reply) -> None:
        try:
            said = read_shape(reply, _Opinion).the_answer if reply.finish == "stop" else None
        except ValueError:
            said = None
        if said is None:
            return keep(item)
        reason = "" if said == _AGREES else f"{terms.name} says that it {said} the true claim"
        if said == _CANNOT_TELL:
            reason = f"{terms.name} cannot tell whether it contradicts the true claim"
        return keep(replace(item, checks={**item.checks, "second_opinion": reason}))

    by_key = {str(number): item for number, item in enumerate(items)}
    return write_texts(by_key, backend, ask, read, terms)
