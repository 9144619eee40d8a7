"""Scores of any table of answers, without labels: `judgebench score` and `jb.score`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.data.columns import Columns, read_columns
from judgebench.data.guess import roles_by_name
from judgebench.errors import Problem, SetupError, some
from judgebench.progress import Progress
from judgebench.records import Answer, Estimate
from judgebench.report.words import counted
from judgebench.results.part import Block, Part
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell, Table, format_number
from judgebench.runner.bench import Gathered
from judgebench.scorers.config import scorer_configs
from judgebench.scorers.kept import KeptScores
from judgebench.scorers.open import open_scorer
from judgebench.scorers.scorer import Scored
from judgebench.stats.means import clustered_mean

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("text", "question", "reference", "system", "group")
_LONGEST = 80  # characters of a column that stands beside the scores: texts do not
_CODE = re.compile(r"0\d")  # no number but a name, such as 007
_HEADINGS = ("Scorer", "Mean", "Lowest", "Highest", "Scored", "Without a score")


@dataclass(frozen=True, repr=False)
class Scores(Shown):
    """The scores of a table's answers by scorer, and what each scorer's numbers depend on. `roles`
    says what the columns were taken for."""

    table: Columns
    roles: Mapping[str, str]
    answers: Sequence[Answer]
    scored: Mapping[str, Sequence[Scored]]
    about: Mapping[str, Mapping[str, Any]]

    def to_frame(self) -> pd.DataFrame:
        """A row for each answer: its row in the table, the table's columns but for texts, a column
        for each scorer and, where an answer has no score or a remark, `NAME_reason`."""
        import pandas as pd

        cells = self.table.cells
        beside = [c for c in cells if max(map(len, cells[c]), default=0) <= _LONGEST]
        frame = pd.DataFrame({"row": self.table.lines, **{c: cells[c] for c in beside}})
        for name in set(self.table.numeric()).intersection(beside):
            if not any(map(_CODE.match, cells[name])):
                frame[name] = pd.to_numeric(frame[name])
        for name, scored in self.scored.items():
            frame[name] = pd.Series([one.value for one in scored], dtype="float64")
            if any(one.reason for one in scored):
                frame[f"{name}_reason"] = [one.reason for one in scored]
        return frame

    @property
    def part(self) -> Part:
        found = Results(tuple(row for name in self.scored for row in self._rows(name)))
        cells = []
        for name in self.scored:
            mean, low, high = (found.find(s, judge=name) for s in ("mean", "lowest", "highest"))
            counts = (mean.n, mean.n_missing)
            ends = (format_number(low.value), format_number(high.value))
            texts = (*ends, *(f"{count:,}" for count in counts))
            cells.append((Cell(name), Cell(estimate=mean), *map(Cell, texts)))
        table = Table("scores", "Scores", _HEADINGS, tuple(cells))
        taken = ", ".join(f"{role} from {column!r}" for role, column in self.roles.items())
        said = [f"{counted(len(self.answers), 'answer')} of {self.table.file}: {taken}."]
        said += [
            f"{row.judge}: {counted(int(row.estimate.value or 0), 'answer')}: {row['reason']}."
            for row in found.select(statistic="reason")
        ]
        for name, about in self.about.items():
            said.append(f"{name} is {'|'.join(f'{k}:{v}' for k, v in about.items())}")
        block = Block("What was scored", tuple(said), (table,), lead=True, on_screen=True)
        return Part("scores", "scores of answers", found, (block,))

    def _rows(self, name: str) -> Iterator[Row]:
        scored = self.scored[name]
        x = np.array([np.nan if one.value is None else one.value for one in scored])
        groups = np.unique([answer.group for answer in self.answers], return_inverse=True)[1]
        mean = clustered_mean(x, groups, "no answer has a score")
        ends = (x[~np.isnan(x)].min(), x[~np.isnan(x)].max()) if mean.n else (None, None)
        for statistic, value in zip(("lowest", "highest"), ends, strict=True):
            end = Estimate(value, n=mean.n, n_missing=mean.n_missing, reason=mean.reason)
            yield Row("scores", statistic, end, name)
        yield Row("scores", "mean", mean, name)
        for reason, n in Counter(one.reason for one in scored if one.reason).items():
            count = Estimate(n, n=len(scored))
            yield Row("scores", "reason", count, name, keys={"reason": reason})


def score_table(
    table: Any, scorers: Sequence[Any], columns: Mapping[str, str], folder: Path | None,
    progress: Progress,
) -> Scores:  # fmt: skip
    """Score the answers of a file or DataFrame. Scores are kept in `folder`, so that the same call
    resumes; `columns` says which column is what where its name does not.

    Raises SetupError with every problem of the table or the scorers, DiskFailed, and what a scorer
    raises.
    """
    configs = scorer_configs(scorers)
    read = read_columns(table, columns.values(), "answers")
    roles = _roles(read, columns)
    taken = [str(c.name) for c in configs if str(c.name) in read.cells]
    if taken:
        message = "the table has this column already: give the scorer another name"
        raise SetupError([Problem(message, read.file, 1, name) for name in taken])
    rows = zip(read.lines, *read.cells.values(), strict=True)
    answers = []
    for line, *cells in rows:
        row = dict(zip(read.cells, cells, strict=True))
        texts = {role: row[column] for role, column in roles.items()}
        answers.append(Answer(str(line), metadata=row, **texts))
    gather = Gathered("scorers")
    opened = [gather(str(c.name), open_scorer, c, answers, Path()) for c in configs]
    gather.raise_any()
    scored, about = {}, {}
    for config, scorer in zip(configs, opened, strict=True):
        assert scorer is not None  # otherwise its problems were raised
        name, kept = str(config.name), KeptScores(scorer, folder)
        about[name] = {**scorer.about, "better": scorer.better or "unknown"}
        progress.start(name, len(answers), 0)
        with closing(kept):
            scored[name] = kept.of(answers, partial(_advance, progress, name))
    return Scores(read, roles, answers, scored, about)


def _roles(table: Columns, columns: Mapping[str, str]) -> Mapping[str, str]:
    """Which column is what: as given, else by its name. Raises SetupError."""
    allowed = ", ".join(ROLES)
    problems = [
        Problem("is no role", "", None, "columns", r, allowed) for r in columns if r not in ROLES
    ]
    found = {**roles_by_name(table.cells), **columns}
    if "text" not in found:
        message = "no column is called `text` or alike: say which one holds the answers"
        problems.append(Problem(message, table.file, 1, "text", allowed=some(table.cells)))
    if problems:
        raise SetupError(problems)
    return {role: found[role] for role in ROLES if role in found}


def _advance(progress: Progress, name: str, n: int) -> None:
    for _ in range(n):
        progress.advance(name)
