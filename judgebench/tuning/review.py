"""People check what a machine made, on a local page: `judgebench tune review`.

The questions are those of AutoMedEval (section 3.1, "Reliability Verification"), where an item that
fails any of three is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from judgebench.data.cells import mark_forbidden
from judgebench.data.findings import Findings
from judgebench.data.open_table import open_table
from judgebench.data.spreadsheet import filled_rows, missing_columns, quoted
from judgebench.errors import Problem, SetupError, shorten
from judgebench.records import content_hash
from judgebench.results.rows import Results, Row
from judgebench.stats.means import clustered_mean
from judgebench.tuning.silver import SilverLine
from judgebench.web.page import fill_in_page
from judgebench.yaml_file import read_models

Item = Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    """What is asked of every item: `key` names its column, `answers` are the words to choose from,
    each of another first letter, which is its key on the keyboard."""

    key: str
    text: str
    answers: Sequence[str] = ("pass", "fail")


CRITERIA = (
    Question("knowledge", "Is the medical knowledge in the reasons and labels right?"),
    Question("attribution", "Is what the reasons say of the answer really in the answer?"),
    Question("fluency", "Are the reasons fluent and easy to understand?"),
)
_BESIDE = ("reviewer", "remark", "edit")


def review_page(name: str, items: Sequence[Item], questions: Sequence[Question]) -> str:
    """A self-contained page on which a person answers the `questions` on each item.

    An item is a dict: `id`; `title`, a line above all; `sections`, a list of [heading, text] or
    [heading, text, True], which is folded; and, where the person may write another text, `edit`,
    the text to begin with. What is said stays in the browser and is saved as NAME.decisions.csv
    (`read_decisions`).
    """
    table = f"{name}.decisions.csv"
    columns = ["item_id", "content_hash", *(q.key for q in questions), *_BESIDE]
    shown = [
        {
            "id": mark_forbidden(item["id"]), "hash": item_hash(item), "title": item["title"],
            "sections": item["sections"], "edit": item.get("edit"), "cell": quoted(item["id"]),
        }
        for item in items
    ]  # fmt: skip
    asked = [asdict(q) for q in questions]
    data = {"name": name, "table": table, "columns": columns, "items": shown, "questions": asked}
    return fill_in_page(Path(__file__).with_name("review_page"), data, name=name)


def item_hash(item: Item) -> str:
    """Changes with anything that the person reads; the letter keeps it from being a number."""
    return "h" + content_hash([item["title"], item["sections"], item.get("edit")])


def read_decisions(
    path: Path, items: Sequence[Item], questions: Sequence[Question]
) -> Mapping[str, Mapping[str, str]]:
    """What one person said of the items of a page, by id and column; a blank is no answer.

    Raises SetupError with every problem: a missing column, an unknown answer, an item that is not
    on the page, occurs again, or has changed since.
    """
    findings = Findings()
    table = open_table(path, findings, format="csv")
    problems, said = list(findings.errors), dict[str, Mapping[str, str]]()
    if table is not None:
        needed = ["item_id", "content_hash", *(q.key for q in questions)]
        problems += missing_columns(table, needed)
        known = {mark_forbidden(item["id"]): item for item in items}
        for line, row in filled_rows(table) if not problems else ():
            own, item = row["item_id"], known.get(row["item_id"])
            wrong = ""
            if item is None:
                wrong = "is not among the items"
            elif row["content_hash"] != item_hash(item):
                wrong = "has changed since it was reviewed"
            elif item["id"] in said:
                wrong = "occurs twice"
            else:
                said[item["id"]] = row
            if wrong:
                problems.append(Problem(wrong, str(path), line, "item_id", shorten(own)))
            for q in questions:
                row[q.key] = row[q.key].strip().casefold()
                if row[q.key] not in ("", *q.answers):
                    found, allowed = shorten(row[q.key]), ", ".join((*q.answers, "or blank"))
                    message = "is no answer"
                    problems.append(Problem(message, str(path), line, q.key, found, allowed))
        problems += [one for one in findings.errors if one not in problems]
    if problems:
        raise SetupError(problems)
    return said


# --- the double check of silver items ------------------------------------------------------------


def shown_item(line: Item) -> Item:
    """A line of a silver file as an item of a page."""
    looked_up = ["\n\n".join([one["question"], *one.get("passages", ())])
                 for one in line.get("transcript", ())]  # fmt: skip
    labels = "\n".join(f"{metric}: {label}" for metric, label in line["labels"].items())
    sections = [
        ["Question", line.get("question", "")], ["Answer", line["text"]], ["Labels", labels],
        ["Reasons", line.get("rationale", "")],
        *([f"Looked up {n}", text, True] for n, text in enumerate(looked_up, 1)),
    ]  # fmt: skip
    # Not who wrote it: that would be judged instead of what was written.
    return {"id": line["item_id"], "title": "", "sections": sections}


def teacher_of(line: Item) -> str:
    """Who wrote the labels."""
    teacher = line.get("teacher")
    return str(teacher.get("name", "")) if isinstance(teacher, dict) else str(teacher or "")


class _Looked(BaseModel):
    question: str
    passages: tuple[str, ...] = ()


class _Line(SilverLine):
    """With where the labels come from; other keys are kept."""

    model_config = ConfigDict(extra="allow")

    transcript: tuple[_Looked, ...] = ()
    teacher: dict[str, Any] | str = ""


def read_items(path: Path, *, unique: bool = False) -> list[Item]:
    """The lines of a silver file. Raises SetupError for every line that is unsound, where there is
    none, and where each is to have an id of its own, for one that occurs twice."""
    seen = Counter[str]()

    def check(line: _Line) -> Iterator[Problem]:
        seen[line.item_id] += 1
        if unique and seen[line.item_id] > 1:
            yield Problem("occurs twice", field="item_id", found=shorten(line.item_id))

    items: list[Item] = [
        line.model_dump(exclude_unset=True) for line in read_models(path, _Line, check)
    ]
    if not items:
        raise SetupError(Problem("holds no item", str(path)))
    return items


@dataclass(frozen=True)
class Reviewed:
    """Items by what people said of them. Whoever fails one on any criterion rejects it; what is
    accepted was passed on every criterion.

    `rates` holds the share that fails each criterion, of the items that have an answer on it, and
    the share `dropped` of those that are decided; resampled by question.
    """

    accepted: Sequence[Item]
    rejected: Sequence[Item]
    undecided: Sequence[Item]
    rates: Results

    def lines(self) -> Sequence[str]:
        """The rates, and what follows of them."""
        *failing, dropped = [row.estimate for row in self.rates]
        told = [f"{row.statistic}: {row.estimate:.1%} (n = {row.estimate.n})" for row in self.rates]
        known = [rate.value for rate in failing if rate.value is not None]
        if known and dropped.value is not None:
            told.append(
                f"Whatever fails one criterion is dropped: at least the largest of these shares "
                f"({max(known):.1%}) and at most their sum ({min(1, sum(known)):.1%}), where all "
                "items have an answer on every criterion."
            )
        return told


def reviewed(lines: Sequence[Item], said: Sequence[Mapping[str, Mapping[str, str]]]) -> Reviewed:
    """What one or several people's decisions make of silver items.

    As an item that fails one criterion is dropped, no fewer are dropped than fail the worst one.
    AutoMedEval (section 3.1) has 9.29 % fail attribution and drops 305 of 9,874, which is 3.1 %:
    not both can be of the same items by the same rule.
    """
    keys = [q.key for q in CRITERIA]
    fails = np.full((len(lines), len(keys)), np.nan)
    for row, line in enumerate(lines):
        answers = [found[line["item_id"]] for found in said if line["item_id"] in found]
        for column, key in enumerate(keys):
            if given := {one[key] for one in answers} - {""}:
                fails[row, column] = "fail" in given
    # 1 where any is failed, else 0, and NaN where one has no answer.
    decided = np.where((fails == 1).any(axis=1), 1.0, fails.sum(axis=1))
    groups = np.unique([x.get("question") or x["item_id"] for x in lines], return_inverse=True)[1]
    rate = partial(clustered_mean, clusters=groups, undefined="no answer", is_proportion=True)
    rates = {**{f"fails {key}": rate(x) for key, x in zip(keys, fails.T, strict=True)},
             "dropped": rate(decided)}  # fmt: skip
    rejected = [
        {**lines[row], "failed": [key for key, f in zip(keys, fails[row], strict=True) if f == 1]}
        for row in np.flatnonzero(decided == 1).tolist()
    ]
    return Reviewed(
        [lines[row] for row in np.flatnonzero(decided == 0).tolist()],
        rejected,
        [lines[row] for row in np.flatnonzero(np.isnan(decided)).tolist()],
        Results(tuple(Row("review", name, e) for name, e in rates.items())),
    )
