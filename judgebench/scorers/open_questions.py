"""Open questions made from exam questions with options: by rule what cannot be asked openly, by a
model the rest, as CareQA was.

After Arias-Duart et al. (2025), section 2.1 and Appendix A.2: what asks for what is wrong is left
out, two prompts rewrite the rest, the model chooses the better rewriting or none, and a second pass
keeps what the right answer alone answers. Every reply is kept as it comes, so that a later run asks
for the rest only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict

from judgebench.data.formats import to_csv
from judgebench.data.tables import read_table
from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.files import to_line, write_atomically
from judgebench.models.contract import Message, Reply, Request
from judgebench.prompt import QUESTIONS, load_prompt
from judgebench.records import Results, Row, content_hash
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.shown import Shown
from judgebench.results.tables import Layout
from judgebench.stats.intervals import clustered_mean
from judgebench.text import sentences
from judgebench.writer import TextWriter, read_shape, schema_of

_OPTION = re.compile(r"option_\d+")
_NEGATIVE = re.compile(r"\b(?:NOT|(?i:incorrect|except|false|not correct))\b")
_OPTION_NAMES = ([str(n) for n in range(1, 99)], [str(n) for n in range(99)], ascii_uppercase)
_POINTS = re.compile(
    r"(?i)\bof (the following|(the|these) options)\b|\bfollowing (options|answers)\b"
)
REPLIES, KEPT, LEFT_OUT = "replies.jsonl", "questions.jsonl", "left-out.jsonl"
REWRITINGS, CHOOSE, CHECK = ("rephrase", "from-answer"), "choose", "only-answer"
NOT_ALONE = "another answer may be right too"
_MAX_TOKENS = 700  # of a reply


class ExamQuestion(BaseModel):
    """A question with options, of which `reference` is the right one, and the open `question` that
    it became; with a `reason` it is left out. Questions of one `group` share
    a case."""

    model_config = ConfigDict(frozen=True)

    item_id: str
    group: str
    closed_question: str
    options: tuple[str, ...]
    reference: str
    question: str = ""
    reason: str = ""
    detail: str = ""

    @property
    def closed(self) -> dict[str, str]:
        """The closed question as texts to show."""
        pairs = zip(ascii_uppercase, self.options, strict=False)
        options = "\n".join(f"{letter}. {option}" for letter, option in pairs)
        return {"question": self.closed_question, "options": options, "answer": self.reference}


def read_questions(source: Any, called: Mapping[str, str] | None = None) -> list[ExamQuestion]:
    """The questions of a file in any format, or of a DataFrame.

    Columns are `question`, `option_1`, `option_2` and so on, `key` and, if at hand, `item_id` and
    `group`; `called` says what they are called in the table. The keys are numbers of options,
    counted from 1 or from 0, or letters, or texts: what fits the most rows, in that order. Raises
    SetupError with every problem: a missing column, a blank question, a key that names no option, a
    duplicate id.
    """
    called = called or {}
    key = called.get("key", "key")
    needed = (called.get("question", "question"), key, *called.values())
    table = read_table(source, needed, "the questions")
    columns = {**table.columns, **{role: table.columns[name] for role, name in called.items()}}
    options = [role for role in columns if _OPTION.fullmatch(role)]
    if len(options) < 2:
        message, found = "needs two columns of options or more", ", ".join(table.columns)
        raise SetupError(Problem(message, table.file, 1, "option_1, option_2", found))
    table = replace(table, columns=columns)
    table.filled("question")
    rows = [{"item_id": f"row-{line}", **row} for line, row in table.records()]
    answers = _answers([row["key"] for row in rows], [[row[o] for o in options] for row in rows])
    ids = Counter(row["item_id"] for row in rows)
    problems = [
        Problem("names no option", table.file, line, key, shorten(row["key"]))
        for line, row, answer in zip(table.lines, rows, answers, strict=True)
        if not answer
    ]
    message = "two questions have this id"
    problems += [Problem(message, table.file, None, "item_id", i) for i in ids if ids[i] > 1]
    raise_any(problems)
    return [
        ExamQuestion(
            item_id=row["item_id"], group=row.get("group") or row["item_id"],
            closed_question=row["question"], reference=answer,
            options=tuple(row[option] for option in options if row[option]),
        )
        for row, answer in zip(rows, answers, strict=True)
    ]  # fmt: skip


def _answers(keys: Sequence[str], options: Sequence[Sequence[str]]) -> Sequence[str]:
    """The option that each key names, "" where it names none."""
    pairs = list(zip(keys, options, strict=True))
    readings = [
        [dict(zip(names, row, strict=False)).get(key.upper(), "") for key, row in pairs]
        for names in _OPTION_NAMES
    ]
    readings.append([key if key in row else "" for key, row in pairs])
    return max(readings, key=lambda answers: sum(map(bool, answers)))


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
    answer = re.compile(rf"(?i)(?<!\w){re.escape(of.reference.strip(' .'))}(?!\w)")
    is_told = answer.search(rewritten) and not answer.search(of.closed_question)
    return "a rewriting gives the answer away" if is_told else ""


Shape = TypeVar("Shape", bound=BaseModel)


class _Rewritten(BaseModel):
    suitable: Literal["yes", "no"]
    question: str = ""


class _Chosen(BaseModel):
    best: Literal["A", "B", "none"]


class _Checked(BaseModel):
    other: str = ""
    only: Literal["yes", "no"]


def ask(
    writer: TextWriter, name: str, shape: type[Shape], texts: Mapping[str, Mapping[str, str]]
) -> dict[str, Shape | str]:
    """Ask the model by the prompt `name` of the texts of each item: a reply of that shape or why
    there is none that can be read. An item whose reply failed is missing. Raises what the writer
    raises; what came is kept."""
    prompt = load_prompt(name, kind=QUESTIONS)
    choices = {k: [*get_args(f.annotation)] for k, f in shape.model_fields.items()}
    schema = schema_of(shape, **{key: words for key, words in choices.items() if words})

    def request(shown: Mapping[str, str]) -> Request:
        system, user = prompt.render_texts(**shown)
        messages = Message("system", system), Message("user", user)
        return Request(content_hash([prompt.content_hash, shown]), messages, schema, _MAX_TOKENS)

    replies = writer.replies(name, {item: request(shown) for item, shown in texts.items()})
    return {item: _read(reply, shape) for item, reply in replies.items()}


def _read(reply: Reply, shape: type[Shape]) -> Shape | str:
    try:
        return read_shape(reply, shape)
    except ValueError as error:
        return str(error)


def open_questions(closed: Sequence[ExamQuestion], writer: TextWriter) -> list[ExamQuestion]:
    """The questions, each with an open one, a reason why there is none, or neither where it waits
    for a reply that failed. Raises what `ask` raises."""
    questions = {one.item_id: _without_negatives(one) for one in closed}

    def update(item: str, **fields: str) -> None:
        questions[item] = questions[item].model_copy(update=fields)

    shown = {item: one.closed for item, one in questions.items() if not one.reason}
    replies = [ask(writer, name, _Rewritten, shown) for name in REWRITINGS]
    offers: dict[str, list[str]] = {}
    for item in (item for item in shown if all(item in of for of in replies)):
        texts, against = _proposals(questions[item], [of[item] for of in replies])
        if texts:  # which is shown first is drawn, for a model may prefer the first
            offers[item] = sorted(texts, key=content_hash)
        else:
            update(item, reason=against)
    asked = {
        item: {**shown[item], "first": texts[0], "second": "".join(texts[1:])}
        for item, texts in offers.items()
    }
    for item, chosen in ask(writer, CHOOSE, _Chosen, asked).items():
        if isinstance(chosen, str):
            update(item, reason="the choice cannot be read", detail=chosen)
        elif text := dict(zip("AB", offers[item], strict=False)).get(chosen.best):
            update(item, question=text)
        else:
            update(item, reason="no rewriting is good enough")
    asked = {
        item: {"question": one.question, "answer": one.reference}
        for item, one in questions.items()
        if one.question
    }
    checks = ask(writer, CHECK, _Checked, asked)
    for item in asked:
        check = checks.get(item)
        if check is None:
            update(item, question="")
        elif isinstance(check, str):
            update(item, reason="the check cannot be read", detail=check)
        elif check.only == "no":
            update(item, reason=NOT_ALONE, detail=check.other)
    return list(questions.values())


def _without_negatives(question: ExamQuestion) -> ExamQuestion:
    term = negative_term(question.closed_question)
    reason = f"asks for what is wrong: {term}" if term else ""
    return question.model_copy(update={"reason": reason})


def _proposals(of: ExamQuestion, replies: Sequence[_Rewritten | str]) -> tuple[set[str], str]:
    """The different rewritings that can stand, and what speaks against the others."""
    texts, against = set[str](), set[str]()
    for reply in replies:
        if isinstance(reply, str):
            against.add("a rewriting cannot be read")
        elif reply.suitable == "no":
            against.add("unsuitable for an open question")
        elif why := unfit(reply.question.strip(), of):
            against.add(why)
        else:
            texts.add(reply.question.strip())
    return texts, "; ".join(sorted(against))


METRIC = "correct"
_RUBRIC = """
name: open-questions
version: "1"
instructions: Read the question as it stands, without options, and the answer.
metrics:
  - id: correct
    title: Correct
    question: Is the answer right, and the only right one?
    kind: nominal
    labels: [correct, wrong]
"""
_STUDY = """
name: open-questions
task: labels
items: check.csv
rubric: rubric.yaml
annotators: [checker-1, checker-2, checker-3]
per_item: 3
"""


def write_questions(questions: Sequence[ExamQuestion], writer: TextWriter) -> Mapping[str, int]:
    """Write beside the replies what is kept, what is left out, and a study in which
    people check both (`judgebench annotate init FOLDER/annotate.yaml`). Returns how many questions
    are left out for each reason. The id stands in `exam_id` too, since answers to the questions
    get ids of their own."""
    folder, reasons = writer.path.parent, Counter(one.reason for one in questions if one.reason)
    kept = [one for one in questions if one.question and not one.reason]
    for name, some in ((KEPT, kept), (LEFT_OUT, [one for one in questions if one.reason])):
        lines = [
            to_line({**one.model_dump(exclude_defaults=True), "exam_id": one.item_id})
            for one in some
        ]
        write_atomically(folder / name, "".join(lines).encode())
    checked = [
        [one.item_id, one.group, one.question, one.reference] for one in questions if one.question
    ]
    columns = ["item_id", "group", "question", "text"]
    write_atomically(folder / "check.csv", to_csv(columns, checked))
    write_atomically(folder / "rubric.yaml", _RUBRIC.encode())
    write_atomically(folder / "annotate.yaml", _STUDY.encode())
    return dict(reasons.most_common())


def checked(labels: Any) -> Checked:
    """The share of questions that people call correct: a table of their labels with the columns
    `item_id`, `annotator` and `correct`, as `annotate` exports it.

    Of the questions that as many people labelled as any: the share that at least 1, 2, … call
    correct (Arias-Duart et al. 2025, Table 2), and that on which all agree (there "interrater").
    Agreement beyond chance is measured by `align`. Raises SetupError for labels of another kind.

    >>> import pandas as pd
    >>> labels = pd.DataFrame({"item_id": list("aabb"), "annotator": list("xyxy")})
    >>> found = checked(labels.assign(correct=["correct", "correct", "correct", "wrong"]))
    >>> [round(row.estimate.value, 1) for row in found.rows]
    [1.0, 0.5, 0.5]
    """
    import pandas as pd

    table = read_table(labels, ("item_id", "annotator", METRIC), "the labels")
    cells = table.contents(METRIC)
    raise_any([
        Problem("is no label", table.file, line, METRIC, cell, "correct, wrong")
        for line, cell in zip(table.lines, cells, strict=True)
        if cell not in ("correct", "wrong")
    ])  # fmt: skip
    counts = pd.crosstab(table.contents("item_id"), cells).reindex(columns=["correct", "wrong"])
    yes, wrong = counts.fillna(0).to_numpy(int).T
    n = yes + wrong
    shares = {f"correct {k}/{n.max()}": yes >= k for k in range(1, n.max() + 1)}
    shares["all agree"] = (yes == 0) | (yes == n)
    items, rows = np.arange(len(n)), list[Row]()
    for name, share in shares.items():
        x = np.where(n == n.max(), share, np.nan)
        rows.append(Row("openqa", name, clustered_mean(x, items, "", kind="share")))
    return Checked(Results(tuple(rows)))


@dataclass(frozen=True, repr=False)
class Checked(Shown):
    """The answers of people to open questions, as rows of `checked`."""

    rows: Results

    @property
    def part(self) -> ReportSection:
        """A table with a row for each statistic."""
        note = (
            "Correct k/m: at least k of m annotators call question and answer correct. That all "
            "agree may be chance where most is correct: judgebench align measures agreement beyond "
            "it."
        )
        layout = Layout(
            "openqa", "Open questions as people see them", ("Share",), (note,), ("Value",)
        )
        table = layout.listing((row.statistic, row.estimate) for row in self.rows)
        block = Block("Open questions", tables=(table,), on_screen=True)
        return ReportSection("openqa", "open questions", self.rows, (block,))
