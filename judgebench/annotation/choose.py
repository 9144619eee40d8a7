"""The items that are worth a label: drawn by what judges disagree about or are unsure of, each with
a known chance, so that rates and means stay estimable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from judgebench.data.dataset import VerdictCell
from judgebench.data.load import read_verdicts
from judgebench.errors import Problem, SetupError
from judgebench.records import CHANCES, Answer, Dataset, content_hash
from judgebench.rubric import BETWEEN, Rubric
from judgebench.stats.arrays import FloatArray
from judgebench.yaml_file import Strict

Paths = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
]
AT_RANDOM = 0.1  # of the items are drawn whatever the judges say
# Judges who agree err together too: an item on which they do counts as if it were so likely wrong.
LEAST_DOUBT = 0.1


class ChooseConfig(Strict):
    """The key `choose` of annotate.yaml: how many `items` are labelled, and `by` what they are
    drawn: on what several judges disagree, of what one is uncertain by its probabilities of labels,
    or at random. `verdicts` are files of them. Within each value of the column `strata`, such as
    `system`, answers are drawn apart: in proportion to their number, and no stratum less than half
    of an equal share."""

    by: Literal["disagreement", "uncertain", "random"] = "disagreement"
    items: int = Field(ge=1)
    verdicts: Paths = ()
    strata: str = ""


def sizes(strata: Sequence[int], n: int) -> list[int]:
    """How many of n are drawn from strata of these sizes.

    >>> sizes([900, 90, 10], 50)
    [32, 10, 8]
    """
    least = n // (2 * len(strata))
    found = [min(size, least) for size in strata]
    while (left := n - sum(found)) > 0 and (free := sum(strata) - sum(found)) > 0:
        rest = [size - got for size, got in zip(strata, found, strict=True)]
        exact = [left * r / free for r in rest]
        more = [min(r, int(e)) for r, e in zip(rest, exact, strict=True)]
        if not any(more):  # what is left goes to the largest remainders
            order = sorted(range(len(rest)), key=lambda i: -exact[i])[:left]
            more = [int(i in order and rest[i] > 0) for i in range(len(rest))]
        found = [a + b for a, b in zip(found, more, strict=True)]
    return found


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
    by: str, judges: Sequence[Mapping[str, Sequence[tuple[str, VerdictCell]]]], names: Sequence[str]
) -> FloatArray:
    """The doubt about each item (N,), 0 to 1: the share of pairs of judges and metrics that differ,
    a missing label differing from any; or how near the probabilities of labels are to all alike."""
    said = [{name: dict(rows) for name, rows in of.items()} for of in judges]
    metrics = dict.fromkeys(m for of in said for rows in of.values() for m in rows)
    doubt = _uncertainty if by == "uncertain" else _disagreement
    return np.array([
        doubt([of.get(name, {}).get(metric) for of in said] for metric in metrics)
        for name in names
    ])  # fmt: skip


def _disagreement(by_metric: Iterable[list[VerdictCell | None]]) -> float:
    # The same labels in another order are no disagreement.
    labels = [
        [sorted(((one and one.label) or "").split(BETWEEN)) for one in said] for said in by_metric
    ]
    differ = [a != b or a == [""] for said in labels for a, b in combinations(said, 2)]
    return float(np.mean(differ)) if differ else 0.0


def _uncertainty(by_metric: Iterable[list[VerdictCell | None]]) -> float:
    """The entropy of the labels, of the most that there can be; 1 where nothing is known."""
    found = []
    for one in (one for said in by_metric for one in said):
        p = np.array([*(one.probabilities or {}).values()]) if one else np.array([])
        p = p[p > 0] / p.sum() if p.sum() > 0 else p
        k = len(one.probabilities or ()) if one else 0
        found.append(float(-(p * np.log(p)).sum() / np.log(k)) if len(p) and k > 1 else 1.0)
    return float(np.mean(found)) if found else 1.0


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
        least = 2 if config.by == "disagreement" else 1
        if len(judges) < least:
            message = f"choosing by {config.by} needs verdicts of {least} or more judges"
            raise SetupError(Problem(message, field="verdicts", found=str(len(judges))))
        doubt = doubts(config.by, [*judges.values()], names)
    strata: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        strata.setdefault(_stratum(row, config.strata), []).append(at)
    found: dict[int, float] = {}
    for places, n in zip(
        strata.values(), sizes([len(one) for one in strata.values()], config.items), strict=True
    ):
        share = chances(doubt[places], n) if n else np.zeros(len(places))
        kept = drawn(share, [names[at] for at in places], n, seed) if n else []
        found |= {places[i]: float(share[i]) for i in kept}
    drawn_rows = [
        replace(rows[at], metadata={**rows[at].metadata, CHANCES[0]: f"{found[at]:.6g}"})
        for at in sorted(found)
    ]
    return replace(data, answers=drawn_rows)


def _stratum(row: Answer, column: str) -> str:
    """The value of the column. Raises SetupError where the answer has no such column."""
    if not column:
        return ""
    known = {"system": row.system, "group": row.group, "question": row.question, **row.metadata}
    if column not in known:
        raise SetupError(Problem("is no column of the answers", "", None, "strata", column,
                                 ", ".join(known)))  # fmt: skip
    return known[column]
