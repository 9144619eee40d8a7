"""The findings of an audit: what was printed and found, who passed and what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from judgebench.errors import Problem
from judgebench.published.card import StudyCard
from judgebench.results.part import Standing
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.words import counted

GOOD = ("REPLACE", "ASSIST")
YES, NO = "yes", "no"


@dataclass(frozen=True)
class Audited:
    """One study. `found` has these analyses, each row with the key `study`:

    - `figure`: a printed figure and what the files give; `same` is `yes` or `no`.
    - `decision`: `accuracy` of a judge, that of the best `baseline` and of `humans`; `outcome`.
    - `test`: the published Alternative Annotator Test of every judge and baseline (`kind`):
      `passes` (1 or 0), `winning_rate`, `advantage`, and of a judge `guarded`: it also beats every
      baseline. `claimed` says whether it was published as passing.
    - `choice`: the accuracy under another `choice`, with the outcome `before` and `outcome`.
    """

    name: str
    card: StudyCard
    titles: Mapping[str, str]
    standings: tuple[Standing, ...]
    found: Results

    @property
    def claims(self) -> list[Row]:
        """The tests of judges that were published as passing."""
        return self.found.select("test", "passes", claimed=YES)

    def tests(self, kind: str, statistic: str = "passes") -> list[Row]:
        return self.found.select("test", statistic, kind=kind)

    @property
    def blind_passes(self) -> list[Row]:
        """The baselines that pass the published test."""
        return [row for row in self.tests("baseline") if row.estimate.value]


@dataclass(frozen=True, repr=False)
class Audit(Shown):
    """Every study that was decided again; `skipped` are sentences on those that were not, `failed`
    the problems of those that could not be."""

    presented_by: ClassVar[str] = "judgebench.published.part:audit_part"

    studies: tuple[Audited, ...]
    skipped: tuple[str, ...] = ()
    failed: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        return counted(len(self.studies), "published study", "published studies")

    @cached_property
    def found(self) -> Results:
        """The rows of all studies."""
        return Results(tuple(row for study in self.studies for row in study.found))

    @property
    def n_answers(self) -> int:
        """The number of studies: what the size of this report is measured by."""
        return len(self.studies)

    @property
    def claims(self) -> list[Row]:
        """The tests of judges that were published as passing."""
        return [row for study in self.studies for row in study.claims]
