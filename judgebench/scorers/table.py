"""Scores of any table of answers, without labels: `judgebench score` and `jb.score`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.data.table import Table as AnswerTable
from judgebench.data.tables import read_table
from judgebench.data.vocabulary import columns_by_role
from judgebench.errors import Problem, raise_any, some
from judgebench.progress import SILENT, Progress
from judgebench.records import Answer, Estimate, without_runtime
from judgebench.results.part import Block, Part
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell, Table, format_number
from judgebench.runs.from_tables import Given
from judgebench.runs.load import Gathered
from judgebench.scorers.config import scorer_configs
from judgebench.scorers.judges import open_scorer
from judgebench.scorers.scorer import (
    IS_REFERENCE,
    KeptScores,
    Scored,
    is_reference,
    reference_systems,
    references_of,
)
from judgebench.stats.means import clustered_mean
from judgebench.words import counted

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

    table: AnswerTable
    roles: Mapping[str, str]
    answers: Sequence[Answer]
    scored: Mapping[str, Sequence[Scored]]
    about: Mapping[str, Mapping[str, Any]]

    def to_frame(self) -> pd.DataFrame:  # type: ignore[override]  # no row is a judge's
        """A row for each answer: its row in the table, the table's columns but for texts, where
        answers are their own reference `is_reference`, a column for each scorer and, where an
        answer has no score or a remark, `NAME_reason`."""
        import pandas as pd

        texts = {self.roles["text"], self.roles.get("reference")}
        cells = {column: self.table.contents(column) for column in self.table.columns}
        short = {c: x for c, x in cells.items() if max(map(len, x)) <= _LONGEST}
        beside = {column: cells for column, cells in short.items() if column not in texts}
        frame = pd.DataFrame({"row": self.table.lines, **beside})
        for name in set(self.table.numeric()).intersection(beside):
            if not any(map(_CODE.match, beside[name])):
                frame[name] = pd.to_numeric(frame[name])
        same = [is_reference(one.text, references_of(one)) for one in self.answers]
        if any(same):
            frame[IS_REFERENCE] = ["yes" if one else "no" for one in same]
        for name, scored in self.scored.items():
            frame[name] = pd.Series([one.value for one in scored], dtype="float64")
            if any(one.reason for one in scored):
                frame[f"{name}_reason"] = [one.reason for one in scored]
        return frame

    @cached_property
    def part(self) -> Part:
        found = Results(tuple(row for name in self.scored for row in self._rows(name)))
        taken = ", ".join(f"{role} from {column!r}" for role, column in self.roles.items())
        said = [f"{counted(len(self.answers), 'answer')} of {self.table.file}: {taken}."]
        said += reference_systems((a.system, a.text, references_of(a)) for a in self.answers)
        cells = []
        for name, about in self.about.items():
            mean, *ends = (found.find(s, judge=name) for s in ("mean", "lowest", "highest"))
            texts = (*(format_number(end.value) for end in ends), mean.n, mean.n_missing)
            cells.append((Cell(name), Cell(estimate=mean), *(Cell(str(text)) for text in texts)))
            told = "|".join(f"{k}:{v}" for k, v in without_runtime(about).items())
            said.append(f"{name} is {told}.")
            for row in found.select(statistic="reason", judge=name):
                said.append(f"{name}: {counted(row.estimate.n, 'answer')}: {row['why']}.")
        table = Table("scores", "Scores", _HEADINGS, tuple(cells))
        block = Block("What was scored", tuple(said), (table,), lead=True, on_screen=True)
        return Part("scores", "scores of answers", found, (block,))

    def _rows(self, name: str) -> Iterator[Row]:
        x = np.array([np.nan if s.value is None else s.value for s in self.scored[name]])
        groups = np.unique([answer.group for answer in self.answers], return_inverse=True)[1]
        mean = clustered_mean(x, groups, "no answer has a score")
        yield Row("scores", "mean", mean, name)
        for statistic, end in (("lowest", np.nanmin), ("highest", np.nanmax)):
            value, why = (float(end(x)), "") if mean.n else (None, mean.reason)
            found = Estimate(value, n=mean.n, n_missing=mean.n_missing, reason=why)
            yield Row("scores", statistic, found, name)
        for reason, n in Counter(s.reason for s in self.scored[name] if s.reason).items():
            yield Row("scores", "reason", Estimate(n, n=n), name, keys={"why": reason})


def _roles(table: AnswerTable, columns: Mapping[str, str]) -> Mapping[str, str]:
    """The role of each column: as given, else by its name. Raises SetupError."""
    allowed = ", ".join(ROLES)
    unknown = [role for role in columns if role not in ROLES]
    problems = [Problem("is no role", field="columns", found=r, allowed=allowed) for r in unknown]
    named = {"reference": "gold"} if "gold" in table.columns else {}
    found = {**named, **columns_by_role(table.columns, ROLES), **columns}
    if "text" not in found:
        message = "no column is called `text` or alike: say which one holds the answers"
        problems.append(Problem(message, table.file, 1, "text", allowed=some(table.columns)))
    raise_any(problems)
    return {role: found[role] for role in ROLES if role in found}


def score(
    answers: Given,
    scorers: Sequence[str | Mapping[str, Any]],
    *,
    columns: Mapping[str, str] = {},
    folder: str | Path | None = None,
    progress: Progress = SILENT,
) -> Scores:
    """Score the answers of a table, without labels: by ROUGE, chrF and whatever else
    `judgebench list scorers` names. `to_frame()` has a row for each answer.

    A scorer is a name, or settings as in `scorers` of a bench.yaml. `columns` says which column is
    the `text`, `reference`, `question`, `system` or `group`, where its name does not. Scores are
    kept in `folder`, so that the same call resumes. Raises SetupError with every problem.

    >>> import judgebench as jb
    >>> found = jb.score("answers.csv", ["length"], columns={"reference": "question"})
    >>> found.to_frame().columns.to_list()[-1]
    'length'
    """
    configs = scorer_configs(scorers)
    read = read_table(answers, columns.values(), "answers")
    roles = _roles(read, columns)
    message = "the table has this column already: give the scorer another name"
    taken = (str(c.name) for c in configs if c.name in read.columns)
    raise_any([Problem(message, read.file, 1, name) for name in taken])
    rows = []
    for line, row in read.records():
        texts = {role: row[column] for role, column in roles.items()}
        rows.append(Answer(str(line), metadata=row, **texts))  # type: ignore[arg-type]
    gather, scored, about = Gathered("scorers"), {}, {}
    opened = [gather(str(c.name), open_scorer, c, rows, Path()) for c in configs]
    gather.raise_any()
    for config, scorer in zip(configs, filter(None, opened), strict=True):
        name, kept = str(config.name), KeptScores(scorer, Path(folder) if folder else None)
        progress.start(name, len(rows), 0)

        def advance(n: int, name: str = name) -> None:
            for _ in range(n):
                progress.advance(name)

        with closing(kept):
            scored[name] = kept.of(rows, advance)
        about[name] = {**scorer.about, "better": scorer.better or "unknown"}
    return Scores(read, roles, rows, scored, about)
