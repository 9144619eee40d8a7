"""Open questions made from exam questions with options: by rule what cannot be asked openly, by a
model the rest, as CareQA was.

After Arias-Duart et al. (2025), section 2.1 and Appendix A.2: what asks for what is wrong is left
out, two prompts rewrite the rest, the model chooses the better rewriting or none, and a second pass
keeps what the right answer alone answers. Every reply is kept as it comes, so that a later run asks
for the rest only.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict

from judgebench.data.tables import read_table
from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.files import read_models, to_json, to_line, write_atomically
from judgebench.judges.config import Decoding
from judgebench.models.contract import Backend, Message, Reply, Request
from judgebench.people.page import Item, Question, check_people, read_decisions, review_page
from judgebench.prompt import QUESTIONS, load_prompt
from judgebench.records import Estimate, Results, Row, content_hash
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell, Layout
from judgebench.stats.agreement import agreement_counts_by_cluster, all_agree, fleiss_kappa
from judgebench.stats.arrays import Clusters, IntArray
from judgebench.stats.intervals import clustered_estimate, clustered_mean, items_for_half_width
from judgebench.text import sentences
from judgebench.writer import WritingTerms, read_shape, schema_of, which_model, write_kept

_ROLES = ("question", "key", "item_id", "group")
_OPTION = re.compile(r"option_\d+")
_NEGATIVE = re.compile(r"\b(?:NOT|(?i:incorrect|except|false|not correct))\b")
_POINTS = re.compile(
    r"(?i)\bof (the following|(the|these) options)\b|\bfollowing (options|answers)\b"
)


class ExamQuestion(BaseModel):
    """A question with options, of which `reference` is the right one, and the open `question` that
    it became, by which `rewriting`; with a `reason` it is left out. Questions of one `group` share
    a case."""

    model_config = ConfigDict(frozen=True)

    item_id: str
    group: str
    closed_question: str
    options: tuple[str, ...]
    reference: str
    question: str = ""
    rewriting: str = ""
    reason: str = ""
    detail: str = ""

    @property
    def closed(self) -> Mapping[str, str]:
        """The closed question as texts to show."""
        pairs = zip(ascii_uppercase, self.options, strict=False)
        options = "\n".join(f"{letter}. {option}" for letter, option in pairs)
        return {"question": self.closed_question, "options": options, "answer": self.reference}


def read_questions(
    source: Any, called: Mapping[str, str] | None = None, first: int = 1
) -> list[ExamQuestion]:
    """The questions of a file in any format, or of a DataFrame.

    Columns are `question`, `option_1`, `option_2` and so on, `key` and, if at hand, `item_id` and
    `group`; `called` says what they are called in the table. The keys are numbers of options,
    counted from `first`, or letters, or texts: what fits the most rows, in that order. Raises
    SetupError with every problem: a missing column, a blank question, a key that names no option, a
    duplicate id.
    """
    called = called or {}
    if unknown := [role for role in called if role not in _ROLES and not _OPTION.fullmatch(role)]:
        allowed = ", ".join((*_ROLES, "option_1, option_2, …"))
        raise SetupError(Problem("is no role", "", None, "called", ", ".join(unknown), allowed))
    asked, key, item, group = (called.get(role, role) for role in _ROLES)
    table = read_table(source, [asked, key, *called.values()], "the questions")
    options = [c for role, c in called.items() if _OPTION.fullmatch(role)]
    options = options or [c for c in table.columns if _OPTION.fullmatch(c)]
    if len(options) < 2:
        message, found = "needs two columns of options or more", ", ".join(table.columns)
        raise SetupError(Problem(message, table.file, 1, "option_1, option_2", found))
    rows = [row for _, row in table.records()]
    right = _right([row[key] for row in rows], [[row[o] for o in options] for row in rows], first)
    questions, problems = dict[str, ExamQuestion](), list[Problem]()
    for line, row, gold in zip(table.lines, rows, right, strict=True):
        item_id = row.get(item) or f"row-{line}"
        for column, message in (
            (asked, "" if row[asked] else "is blank"),
            (key, "" if gold else "names no option"),
            (item, "is a duplicate" if item_id in questions else ""),
        ):
            if message:
                found = shorten(row[column]) if row[column] else ""
                problems.append(Problem(message, table.file, line, column, found))
        questions[item_id] = ExamQuestion(
            item_id=item_id, group=row.get(group) or item_id, closed_question=row[asked],
            options=tuple(row[option] for option in options if row[option]), reference=gold,
        )  # fmt: skip
    raise_any(problems)
    return list(questions.values())


def _right(keys: Sequence[str], options: Sequence[Sequence[str]], first: int) -> Sequence[str]:
    """The option that each key names, "" where it names none."""
    pairs = list(zip(keys, options, strict=True))
    numbers = [str(n) for row in options[:1] for n in range(first, first + len(row))]
    readings = [
        [dict(zip(names, row, strict=False)).get(key.upper(), "") for key, row in pairs]
        for names in (numbers, ascii_uppercase)
    ]
    readings.append([key if key in row else "" for key, row in pairs])
    return max(readings, key=lambda found: sum(map(bool, found)))


def negative_term(question: str) -> str:
    """The term by which a question asks for what is wrong, or an empty text.

    Arias-Duart et al. (2025), "Automatic Evaluation of Healthcare LLMs Beyond Question-Answering",
    Appendix A.2: incorrect, except, false and not correct as whole words, NOT in capitals. There
    they are sought in the whole text; here only where something is asked, for a case may say that
    all was normal except one finding.

    >>> negative_term("All was normal except the pulse. Which of these is FALSE?")
    'FALSE'
    """
    parts = [sentence.text for sentence in sentences(question)]
    asked = [part for part in parts if part.endswith(("?", ":"))]
    found = _NEGATIVE.search("\n".join([*asked, *parts[-1:]]))
    return found[0] if found else ""


def unfit(rewritten: str, of: ExamQuestion) -> str:
    """The reason why a rewriting cannot stand, as a rule sees it, or an empty text: it is blank,
    it points to options, or it holds the right answer, which the closed question did not."""
    if not rewritten:
        return "a rewriting is blank"
    if _POINTS.search(rewritten):
        return "a rewriting points to options"
    told = re.compile(rf"(?i)(?<!\w){re.escape(of.reference.strip(' .'))}(?!\w)")
    given = told.search(rewritten) and not told.search(of.closed_question)
    return "a rewriting gives the answer away" if given else ""


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
        """Ask the model by the prompt `name` of the texts of each item: a reply of that shape or
        why there is none that can be read. An item whose reply failed is missing.

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


ASKED = (
    Question(
        "correct",
        "Is the answer right, and the only right one to the question as it stands?",
        ("correct", "wrong"),
    ),
)
SHEETS = "sheets"


def checkable(folder: Path, *, every: bool = True) -> Mapping[str, ExamQuestion]:
    """The open questions in the folder of `judgebench score openqa make`, with `every` also those
    that the second pass left out, by a code that says nothing of them. Raises SetupError."""
    read = [o for name in (KEPT, LEFT_OUT) for o in read_models(folder / name, ExamQuestion)]
    asked = [one for one in read if one.question and (every or not one.reason)]
    if not asked:
        raise SetupError(Problem("holds no open question to check", str(folder)))
    return {f"q-{content_hash(one.item_id)[:8]}": one for one in asked}


def shown_item(code: str, one: ExamQuestion) -> Item:
    """A question as an item of a page, without who wrote it and whether it was left out."""
    closed = f"{one.closed_question}\n\n{one.closed['options']}"
    sections = [
        ["Question", one.question],
        ["Answer", one.reference],
        ["With options", closed, True],
    ]
    return {"id": code, "title": "", "sections": sections}


def write_sheets(
    folder: Path, checkers: Sequence[str], sample: int | None, seed: int, *, every: bool = False
) -> list[Path]:
    """Write a page for each of the `checkers`: the same `sample` of questions, in another order.

    Drawn are questions that the second pass kept; with `every`, also those that it left out, so
    that what it is worth can be measured. Raises SetupError where there is no question or a name
    cannot name a file.
    """
    check_people(checkers, "checkers")
    found = checkable(folder, every=every)
    drawn = sorted(found, key=lambda code: content_hash([seed, code]))[:sample]
    paths = []
    for name in checkers:
        order = sorted(drawn, key=lambda code: content_hash([seed, name, code]))
        page = review_page(name, [shown_item(code, found[code]) for code in order], ASKED)
        paths.append(folder / SHEETS / f"{name}.html")
        paths[-1].parent.mkdir(exist_ok=True)
        write_atomically(paths[-1], page.encode())
    return paths


def checked(folder: Path, tables: Sequence[Path], half_width: float) -> Checked:
    """The agreement in the tables that people saved of the pages of `write_sheets`. Raises
    SetupError with every problem of a table."""
    found = checkable(folder)
    items = [shown_item(code, one) for code, one in found.items()]
    said = [read_decisions(path, items, ASKED) for path in tables]
    value = {"correct": 1, "wrong": 0, "": -1}
    ratings = np.array(
        [[value[one[code]["correct"]] if code in one else -1 for one in said] for code in found]
    )
    kept = np.array([not one.reason for one in found.values()])
    groups = np.unique([one.group for one in found.values()], return_inverse=True)[1]
    parts = {"all": np.ones_like(kept), "kept by the second pass": kept, "left out by it": ~kept}
    rows = [
        row
        for name, chosen in (parts if (ratings[~kept] >= 0).any() else {"all": kept}).items()
        for row in agreement(ratings[chosen], groups[chosen], half_width, name)
    ]
    return Checked(Results(tuple(rows)), half_width)


def agreement(
    ratings: IntArray, groups: IntArray, half_width: float, questions: str = "all"
) -> Iterator[Row]:
    """The share of questions that annotators call correct, and the agreement of annotators.

    `ratings` is (questions, annotators): 1 correct, 0 wrong, -1 not checked; `groups` (questions,)
    are the clusters. Of the questions that as many annotators checked as any: the share that at
    least 1, 2, … call correct (Arias-Duart et al. 2025, Table 2), the share on which all agree
    (there "interrater"), and Fleiss' kappa. Beside each, how many more questions it takes until the
    interval reaches no further than `half_width`: of independent questions for a share, by the root
    of n for kappa.
    """
    rated = (ratings >= 0).any(axis=1)
    ratings, codes = ratings[rated], np.unique(groups[rated], return_inverse=True)[1]
    clusters = Clusters(codes, int(codes.max(initial=-1)) + 1)
    made, yes = (ratings >= 0).sum(axis=1), (ratings == 1).sum(axis=1)
    most = int(made.max(initial=0))
    whole, undefined = made == most, "no question was checked"
    found: dict[str, Estimate] = {
        f"correct {k}/{most}": clustered_mean(
            np.where(whole, yes >= k, np.nan), codes, undefined, kind="share"
        )
        for k in range(1, most + 1)
    }
    found["all agree"] = all_agree(ratings, clusters)
    counts = agreement_counts_by_cluster(ratings, clusters, 2)
    n = int((made > 1).sum())
    kappa = clustered_estimate(counts, fleiss_kappa(), n=n, n_missing=len(made) - n)
    for name, estimate in {**found, "Fleiss' κ": kappa}.items():
        more = _more(estimate, half_width, is_share=name in found)
        yield Row("openqa", name, estimate, keys={"questions": questions, "n_more": more})


def _more(e: Estimate, half_width: float, *, is_share: bool) -> int | str:
    if e.value is not None and is_share:
        return max(0, items_for_half_width(e.value, half_width, e.level) - e.n)
    if e.value is None or e.low is None or e.high is None:
        return ""
    widest = max(e.high - e.value, e.value - e.low)
    return max(0, math.ceil(e.n * (widest / half_width) ** 2) - e.n)


@dataclass(frozen=True, repr=False)
class Checked(Shown):
    """The answers of people to open questions, as rows of `agreement`."""

    rows: Results
    half_width: float

    @property
    def part(self) -> ReportSection:
        """A table: a row for each statistic, and how many more questions it takes."""
        note = (
            "Correct k/m: at least k of m annotators call question and answer correct. That "
            "all agree may be chance where most is correct; Fleiss' κ is agreement beyond it."
        )
        numbers = ("Value", f"n more for ± {self.half_width:g}")
        title, stubs = "Open questions as people see them", ("Questions", "Statistic")
        table = Layout("openqa", title, stubs, (note,), numbers).listing(
            (r["questions"], r.statistic, r.estimate, Cell(r["n_more"] or "–")) for r in self.rows
        )
        block = Block("Agreement", tables=(table,), on_screen=True)
        return ReportSection("openqa", "agreement on open questions", self.rows, (block,))
