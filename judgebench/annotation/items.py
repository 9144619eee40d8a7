"""The items of a study: all of the data, or those drawn that are worth a label; and gold items.

Items are drawn by what judges disagree about or are unsure of, each with a known chance, so that
rates and means stay estimable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from judgebench.data.dataset import VerdictCell
from judgebench.data.findings import Findings
from judgebench.data.load import load_data, read_verdicts
from judgebench.data.tables import open_table
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.records import CHANCES, Dataset, content_hash
from judgebench.rubric import BETWEEN, Metric, Rubric
from judgebench.stats.arrays import FloatArray
from judgebench.yaml_file import Strict

Paths = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
]
IN_QUESTION = "labels_in_question"  # a column of items, which is shown to `adjudicated` alone
AT_RANDOM = 0.1  # of the items are drawn whatever the judges say
# Judges who agree err together too: an item on which they do counts as if it were so likely wrong.
LEAST_DOUBT = 0.1


class ChooseConfig(Strict):
    """The key `choose` of annotate.yaml: how many `items` are labelled, and `by` what they are
    drawn: on what several judges disagree, or at random. `verdicts` are files of them."""

    by: Literal["disagreement", "random"] = "disagreement"
    items: int = Field(ge=1)
    verdicts: Paths = ()


def chances(doubt: FloatArray, n: int) -> FloatArray:
    """The chance of each item (N,) to be among n: a tenth of the items at random, the others in
    proportion to the square root of the doubt, which is the best where that is the chance of an
    error (Neyman 1934). None is more than 1.

    >>> chances(np.array([0.0, 0.0, 1.0, 1.0]), 2).round(2).tolist()
    [0.27, 0.27, 0.73, 0.73]
    """
    N, found = len(doubt), np.zeros(len(doubt))
    if n >= N:
        return np.ones(N)
    size = np.sqrt(LEAST_DOUBT + (1 - LEAST_DOUBT) * doubt)
    share = AT_RANDOM / N + (1 - AT_RANDOM) * size / size.sum()
    sure = np.zeros(N, dtype=np.bool_)
    while True:  # what would be more than 1 is 1, and the others share the rest
        free = np.where(sure, 0.0, share)
        found = np.where(sure, 1.0, (n - sure.sum()) * free / free.sum())
        if not (over := found > 1).any():
            return found
        sure |= over


def drawn(found: FloatArray, names: Sequence[str], n: int, seed: int) -> list[int]:
    """The places of n items, drawn with these chances: those with the smallest u / chance, u fixed
    for each name, so that more items later hold all of fewer.

    Sequential Poisson sampling (Ohlsson 1998), whose chances are these but for terms of 1 / n.
    """
    u = np.array([int(content_hash([seed, "choose", name])[:13], 16) / 16**13 for name in names])
    return sorted(np.argsort(u / found, kind="stable")[:n].tolist())


def doubts(
    judges: Sequence[Mapping[str, Sequence[tuple[str, VerdictCell]]]], names: Sequence[str]
) -> FloatArray:
    """The doubt about each item (N,), 0 to 1: the share of pairs of judges and metrics that differ,
    a missing label differing from any."""
    by_judge = [{name: dict(rows) for name, rows in rows_of.items()} for rows_of in judges]
    metrics = dict.fromkeys(m for by_item in by_judge for rows in by_item.values() for m in rows)
    return np.array([
        _disagreement([by_item.get(name, {}).get(m) for by_item in by_judge] for m in metrics)
        for name in names
    ])  # fmt: skip


def _disagreement(by_metric: Iterable[list[VerdictCell | None]]) -> float:
    # The same labels in another order are no disagreement.
    labels = [
        [sorted(((one and one.label) or "").split(BETWEEN)) for one in said] for said in by_metric
    ]
    differ = [a != b or a == [""] for said in labels for a, b in combinations(said, 2)]
    return float(np.mean(differ)) if differ else 0.0


def chosen(config: ChooseConfig, data: Dataset, rubric: Rubric, folder: Path, seed: int) -> Dataset:
    """The data with the drawn answers alone, each with its chance in the metadata `probability`.
    Raises SetupError for verdicts that are lacking or cannot be read."""
    rows = list(data.answers)
    names = [row.item_id for row in rows]
    doubt = np.zeros(len(rows))
    if config.by != "random":
        files = [folder / name for name in config.verdicts]
        judges = {
            (file, name): said
            for file in files
            for name, said in read_verdicts(file, rubric, rows)[0].items()
        }
        if len(judges) < 2:
            message = "choosing by disagreement needs verdicts of 2 or more judges"
            raise SetupError(Problem(message, field="verdicts", found=str(len(judges))))
        doubt = doubts([*judges.values()], names)
    chance = chances(doubt, config.items)
    drawn_rows = [
        replace(rows[row], metadata={**rows[row].metadata, CHANCES[0]: f"{chance[row]:.6g}"})
        for row in drawn(chance, names, config.items, seed)
    ]
    return replace(data, answers=drawn_rows)


# --- gold items: their labels are known, and they stand among the others of everybody -------------


class GoldConfig(Strict):
    """The key `gold` of annotate.yaml: a table of `items` with their known labels, the `first` of
    which make a qualification round. With `feedback` each of these then shows what is known."""

    items: str
    first: int = Field(default=0, ge=0)
    feedback: bool = False


@dataclass(frozen=True, slots=True)
class Gold:
    """The known labels of an item by metric, and their reason. `first`: in the qualification round.
    `own`: one of the study's items as well."""

    labels: Mapping[str, str]
    reason: str
    first: bool
    own: bool

    def told(self, metrics: Sequence[Metric]) -> str:
        """The known labels and their reason, as text for annotators."""
        lines = [f"{m.title}: {self.labels[m.id]}" for m in metrics if m.id in self.labels]
        return "\n\n".join(filter(None, ["\n".join(lines), self.reason]))


def read_gold(
    config: GoldConfig, items: Dataset, rubric: Rubric, folder: Path
) -> tuple[Dataset, dict[str, Gold]]:
    """The items of a study and, behind them, the gold items that are not among them; what is known,
    by item id in the order of the table. Raises SetupError with every problem of the table."""
    path = folder / config.items
    found = load_data([path], rubric)
    labels = defaultdict[str, dict[str, str]](dict)
    problems = list[Problem]()
    for one in found.labels:
        if one.label and labels[one.item_id].setdefault(one.metric, one.label) != one.label:
            problems.append(Problem("has several known labels", "", None, one.metric, one.item_id))
    own = {row.item_id for row in items.answers}
    others = [row for row in found.answers if row.item_id not in own]
    for row in others if found.textless else ():
        problems.append(Problem("has no text and is none of the items", found=row.item_id))
    names = [row.item_id for row in found.answers if labels[row.item_id]]
    unknown = [row.item_id for row in found.answers if not labels[row.item_id]]
    problems += [Problem("has no known label", found=name) for name in unknown]
    if config.first > len(names):
        allowed = f"0 to {len(names):,}, the items with a known label"
        problems.append(Problem("cannot be met", "", None, "first", str(config.first), allowed))
    if config.feedback and not config.first:
        wrong = "is for the qualification round: say with `first` how many items it has"
        problems.append(Problem(wrong, field="feedback"))
    raise_any([replace(problem, file=problem.file or str(path)) for problem in problems])
    reasons = dict(_reasons(path))
    gold = {
        name: Gold(labels[name], reasons.get(name, ""), n < config.first, name in own)
        for n, name in enumerate(names)
    }
    return replace(items, answers=(*items.answers, *others)), gold


def _reasons(path: Path) -> Iterator[tuple[str, str]]:
    table = open_table(path, Findings())
    for _, row in table.records() if table else ():
        yield row.get("item_id", ""), row.get("reason", "")
