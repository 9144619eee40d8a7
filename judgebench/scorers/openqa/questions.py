"""Exam questions with options, from any table, and what by rule cannot be asked openly."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from pydantic import BaseModel, ConfigDict

from judgebench.data.columns import read_columns
from judgebench.errors import Problem, SetupError, shorten
from judgebench.texts import sentences

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
    table = read_columns(source, [asked, key, *called.values()], "the questions")
    options = [c for role, c in called.items() if _OPTION.fullmatch(role)]
    options = options or [c for c in table.cells if _OPTION.fullmatch(c)]
    if len(options) < 2:
        message, found = "needs two columns of options or more", ", ".join(table.cells)
        raise SetupError(Problem(message, table.file, 1, "option_1, option_2", found))
    rows = [
        dict(zip(table.cells, row, strict=True)) for row in zip(*table.cells.values(), strict=True)
    ]
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
    if problems:
        raise SetupError(problems)
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
    """Why a rewriting cannot stand, as a rule sees it, or an empty text: it is blank, it points to
    options, or it holds the right answer, which the closed question did not."""
    if not rewritten:
        return "a rewriting is blank"
    if _POINTS.search(rewritten):
        return "a rewriting points to options"
    told = re.compile(rf"(?i)(?<!\w){re.escape(of.reference.strip(' .'))}(?!\w)")
    given = told.search(rewritten) and not told.search(of.closed_question)
    return "a rewriting gives the answer away" if given else ""
