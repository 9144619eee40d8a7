"""People check open questions without knowing what a model made of them, and how far they agree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.files import write_atomically
from judgebench.people.page import Item, Question, check_people, read_decisions, review_page
from judgebench.records import Estimate, content_hash
from judgebench.results.layout import Layout
from judgebench.results.part import Block, Part
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell
from judgebench.scorers.openqa.questions import KEPT, LEFT_OUT, ExamQuestion
from judgebench.stats.arrays import Clusters, IntArray
from judgebench.stats.interrater import agreement_counts_by_cluster, all_agree, fleiss_kappa
from judgebench.stats.intervals import items_for_half_width
from judgebench.stats.jackknife import clustered_estimate
from judgebench.stats.means import clustered_mean
from judgebench.yaml_file import read_models

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
    def part(self) -> Part:
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
        return Part("openqa", "agreement on open questions", self.rows, (block,))
