"""People check what a machine made, on a local page: `judgebench tune review`.

The questions are those of AutoMedEval (section 3.1, "Reliability Verification"), where an item that
fails any of three is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from judgebench.errors import Problem, SetupError, shorten
from judgebench.people.page import Item, Question
from judgebench.results.rows import Results, Row
from judgebench.stats.means import clustered_mean
from judgebench.tuning.examples import SilverLine
from judgebench.yaml_file import read_models

CRITERIA = (
    Question("knowledge", "Is the medical knowledge in the reasons and labels right?"),
    Question("attribution", "Is what the reasons say of the answer really in the answer?"),
    Question("fluency", "Are the reasons fluent and easy to understand?"),
)


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
    """The name of whoever wrote the labels."""
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
    the share `dropped` of those that are decided; over questions.
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
    """Silver items, split by the decisions of one or several people.

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
    rate = partial(clustered_mean, clusters=groups, undefined="no answer", kind="share")
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
