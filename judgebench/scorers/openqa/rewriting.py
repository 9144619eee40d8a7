"""Open questions made from closed ones by a model, as CareQA was.

After Arias-Duart et al. (2025), section 2.1 and Appendix A.2: what asks for what is wrong is left
out, two prompts rewrite the rest, the model chooses the better rewriting or none, and a second pass
keeps what the right answer alone answers. Every reply is kept as it comes, so that a later run asks
for the rest only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar, get_args

from pydantic import BaseModel

from judgebench.files import to_json, to_line, write_atomically
from judgebench.judges.config import Decoding
from judgebench.models.contract import Backend, Message, Reply, Request
from judgebench.prompt import QUESTIONS, load_prompt
from judgebench.records import content_hash
from judgebench.scorers.openqa.questions import ExamQuestion, negative_term, unfit
from judgebench.writer import WritingTerms, read_shape, schema_of, which_model, write_kept

Shape = TypeVar("Shape", bound=BaseModel)
REPLIES, KEPT, LEFT_OUT, ABOUT = "replies.jsonl", "questions.jsonl", "left-out.jsonl", "openqa.json"
REWRITINGS, CHOOSE, CHECK = ("rephrase", "from-answer"), "choose", "only-answer"
NOT_ALONE = "another answer may be right too"
_ENOUGH = 700  # tokens of a reply


class _Rewritten(BaseModel):
    suitable: Literal["yes", "no"]
    question: str = ""


class _Chosen(BaseModel):
    best: Literal["A", "B", "none"]


class _Checked(BaseModel):
    other: str = ""
    only: Literal["yes", "no"]


@dataclass(frozen=True)
class QuestionWriter:
    """The model that writes, how its replies are drawn, and the file that they are kept in."""

    backend: Backend
    decoding: Decoding
    path: Path

    def ask(
        self, name: str, shape: type[Shape], texts: Mapping[str, Mapping[str, str]],
        terms: WritingTerms,
    ) -> dict[str, Shape | str]:  # fmt: skip
        """What the model says by the prompt `name` of the texts of each item: a reply of that shape
        or why there is none that can be read. An item whose reply failed is missing.

        Raises Interrupted after a Ctrl-C, and what `write_texts` raises; what came is kept.
        """
        prompt, drawn = load_prompt(name, kind=QUESTIONS), self.decoding
        about = [prompt.content_hash, which_model(self.backend), drawn.model_dump()]
        keys = {item: content_hash([*about, shown]) for item, shown in texts.items()}
        choices = {k: [*get_args(f.annotation)] for k, f in shape.model_fields.items()}
        schema = schema_of(shape, **{key: words for key, words in choices.items() if words})

        def request(key: str, shown: Mapping[str, str]) -> Request:
            system, user = prompt.render_texts(**shown)
            messages, most = (Message("system", system), Message("user", user)), drawn.max_tokens
            how = (drawn.temperature, drawn.top_p, drawn.seed)
            return Request(key, messages, schema, most or _ENOUGH, *how)

        todo = {key: texts[item] for item, key in keys.items()}
        named = replace(terms, name=name, left_out=drawn.left_out)
        kept = write_kept(self.path, todo, self.backend, request, named)
        return {item: _read(kept[key], shape) for item, key in keys.items() if key in kept}


def _read(reply: Reply, shape: type[Shape]) -> Shape | str:
    try:
        return read_shape(reply, shape)
    except ValueError as error:
        return str(error)


def open_questions(
    closed: Sequence[ExamQuestion], writer: QuestionWriter, terms: WritingTerms
) -> list[ExamQuestion]:
    """The questions, each with an open one, a reason why there is none, or neither where it waits
    for a reply that failed. Raises what `QuestionWriter.ask` raises."""
    found = {one.item_id: one for one in closed}

    def settle(item: str, **what: str) -> None:
        found[item] = found[item].model_copy(update=what)

    for item, one in found.items():
        if term := negative_term(one.closed_question):
            settle(item, reason=f"asks for what is wrong: {term}")
    shown = {item: one.closed for item, one in found.items() if not one.reason}
    said = [writer.ask(name, _Rewritten, shown, terms) for name in REWRITINGS]
    offers = dict[str, Mapping[str, tuple[str, str]]]()
    for item in (item for item in shown if all(item in replies for replies in said)):
        texts, against = _proposals(found[item], [replies[item] for replies in said])
        # Which is shown first is drawn, for a model may prefer the first.
        drawn = sorted(texts, key=lambda name: content_hash([name, texts[name]]))
        if texts:
            offers[item] = {a: (n, texts[n]) for a, n in zip("AB", drawn, strict=False)}
        else:
            settle(item, reason=against)
    asked = {
        item: {**shown[item], "first": two["A"][1], "second": two["B"][1] if "B" in two else ""}
        for item, two in offers.items()
    }
    for item, chosen in writer.ask(CHOOSE, _Chosen, asked, terms).items():
        if isinstance(chosen, str):
            settle(item, reason="the choice cannot be read", detail=chosen)
        elif chosen.best not in offers[item]:
            settle(item, reason="no rewriting is good enough")
        else:
            name, text = offers[item][chosen.best]
            settle(item, question=text, rewriting=name)
    asked = {
        item: {"question": one.question, "answer": one.reference}
        for item, one in found.items()
        if one.question
    }
    checks = writer.ask(CHECK, _Checked, asked, terms)
    for item in asked:
        check = checks.get(item)
        if check is None:
            settle(item, question="", rewriting="")
        elif isinstance(check, str):
            settle(item, reason="the check cannot be read", detail=check)
        elif check.only == "no":
            settle(item, reason=NOT_ALONE, detail=check.other)
    return list(found.values())


def _proposals(
    of: ExamQuestion, replies: Sequence[_Rewritten | str]
) -> tuple[Mapping[str, str], str]:
    """The different rewritings that can stand, by prompt, and what speaks against the others."""
    texts, against = dict[str, str](), set[str]()
    for name, reply in zip(REWRITINGS, replies, strict=True):
        if isinstance(reply, str):
            against.add("a rewriting cannot be read")
        elif reply.suitable == "no":
            against.add("unsuitable for an open question")
        elif why := unfit(text := reply.question.strip(), of):
            against.add(why)
        elif text not in texts.values():
            texts[name] = text
    return texts, "; ".join(sorted(against))


def write_questions(found: Sequence[ExamQuestion], writer: QuestionWriter) -> Mapping[str, int]:
    """Write beside the replies what is kept, what is left out, and what made it. Returns how many
    questions are left out for each reason. The id stands in `exam_id` too, since answers to the
    questions get ids of their own."""
    folder, reasons = writer.path.parent, Counter(one.reason for one in found if one.reason)
    kept = [one for one in found if one.question and not one.reason]
    for name, some in ((KEPT, kept), (LEFT_OUT, [one for one in found if one.reason])):
        rows = [one.model_dump(mode="json", exclude_defaults=True) for one in some]
        lines = [to_line({**row, "exam_id": row["item_id"]}) for row in rows]
        write_atomically(folder / name, "".join(lines).encode())
    prompts = {n: load_prompt(n, kind=QUESTIONS).content_hash for n in (*REWRITINGS, CHOOSE, CHECK)}
    about = {
        "model": which_model(writer.backend), "decoding": writer.decoding.model_dump(),
        "prompts": prompts, "questions": len(found), "kept": len(kept), "left_out": reasons,
    }  # fmt: skip
    write_atomically(folder / ABOUT, (to_json(about, indent=1) + "\n").encode())
    return dict(reasons.most_common())
