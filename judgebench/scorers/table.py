"""Scores of the answers of any table; and several answers of a model to every question, as a table
that can be judged and scored."""

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

from judgebench.data.formats import Table as AnswerTable
from judgebench.data.formats import to_csv
from judgebench.data.tables import read_table
from judgebench.data.vocabulary import columns_by_role
from judgebench.errors import Problem, SetupError, raise_any, some
from judgebench.files import disk_errors, write_atomically
from judgebench.judges.replies import without_reasoning
from judgebench.models.contract import Message, Reply, Request
from judgebench.progress import SILENT, Progress
from judgebench.records import Answer, Estimate, Results, Row, content_hash, without_runtime
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.shown import Shown
from judgebench.results.tables import Layout
from judgebench.runs.from_tables import Given
from judgebench.runs.load import Gathered
from judgebench.scorers.config import scorer_configs
from judgebench.scorers.judges import open_scorer
from judgebench.scorers.scorer import KeptScores, Scored, copied_references
from judgebench.stats.intervals import clustered_mean
from judgebench.text import counted
from judgebench.writer import TextWriter

if TYPE_CHECKING:
    import pandas as pd


_OWN = ("item_id", "group", "question", "system", "repeat", "text", "finish")
_MAX_TOKENS = 512  # of an answer


def questions_of(table: AnswerTable) -> list[dict[str, str]]:
    """A row for each different question, its id and group first, then whatever else the table holds
    of it but answers. Raises SetupError for a blank question, and for one with two references."""
    roles = columns_by_role(table.columns, ("item", "group", "question", "text", "system"))
    if "question" not in roles:
        allowed = ", ".join(table.columns)
        message = "no column is called `question` or alike"
        raise SetupError(Problem(message, table.file, 1, "question", allowed=allowed))
    table.filled(roles["question"])
    others = [c for c in table.columns if c not in (*roles.values(), *_OWN)]
    reference = columns_by_role(table.columns, ["reference"]).get("reference", "")
    questions: dict[str, dict[str, str]] = {}
    for line, row in table.records():
        item = row.get(roles.get("item", "")) or f"q{line}"
        group, question = row.get(roles.get("group", "")) or item, row[roles["question"]]
        own = {"item_id": item, "group": group, "question": question}
        known = questions.setdefault(question, {**own, **{name: row[name] for name in others}})
        if reference and known[reference] != row[reference]:
            message = "the same question has another reference above: make the questions different"
            raise SetupError(Problem(message, table.file, line, reference, row[reference]))
    return list(questions.values())


def write_answers(
    questions: Sequence[Mapping[str, str]], repeats: int, system: str, to: Path, writer: TextWriter
) -> list[str]:
    """Ask for what is missing and write the table, a row for each answer that came. Returns
    sentences on what is in it. Raises what the writer raises; what came is kept beside."""
    requests = {
        (i, n): Request(
            content_hash([row["question"], n]), (Message("user", row["question"]),), None,
            _MAX_TOKENS, seed=n,
        )
        for i, row in enumerate(questions)
        for n in range(1, repeats + 1)
    }  # fmt: skip
    replies = writer.replies(system, requests)
    rows = [_row(questions[i], n, system, reply) for (i, n), reply in replies.items()]
    columns = list(dict.fromkeys((*_OWN, *(name for row in rows for name in row))))
    with disk_errors(to):
        write_atomically(to, to_csv(columns, [[row.get(c, "") for c in columns] for row in rows]))
    return list(_sentences(rows, len(requests)))


def replies_path(to: Path) -> Path:
    """The file of the replies, beside the table."""
    return to.with_name(f"{to.stem}.replies.jsonl")


def _row(question: Mapping[str, str], n: int, system: str, reply: Reply) -> dict[str, str]:
    finish: str = reply.finish
    try:
        text = without_reasoning(reply.text)
    except ValueError:  # cut off while it thought, say: what it would have said is not known
        text, finish = "", "unclear"
    item = f"{question['item_id']}~{system}~{n}"  # so that tables of several systems fit together
    own = {"item_id": item, "system": system, "repeat": str(n)}
    return {**question, **own, "text": text, "finish": finish}


def _sentences(rows: Sequence[Mapping[str, str]], asked: int) -> Iterator[str]:
    rerun = ": rerun to ask for the others" if asked > len(rows) else ""
    yield f"{len(rows):,} of {counted(asked, 'answer')}{rerun}"
    for finish, n in Counter(row["finish"] for row in rows).items():
        if finish != "stop":
            yield f"{n:,} ended as {finish!r}"


ROLES = ("text", "question", "reference", "system", "group")
_CODE = re.compile(r"0\d")  # no number but a name, such as 007


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
        """A row for each answer: its row in the table, the table's columns but for text and
        reference, a column for each scorer and, where an answer has no score or a remark,
        `NAME_reason`."""
        import pandas as pd

        texts = {self.roles["text"], self.roles.get("reference")}
        columns = {c: self.table.contents(c) for c in self.table.columns if c not in texts}
        frame = pd.DataFrame({"row": self.table.lines, **columns})
        for name in set(self.table.numeric()) - texts:
            if not any(map(_CODE.match, columns[name])):
                frame[name] = pd.to_numeric(frame[name])
        for name, scored in self.scored.items():
            frame[name] = pd.Series([one.value for one in scored], dtype="float64")
            if any(one.reason for one in scored):
                frame[f"{name}_reason"] = [one.reason for one in scored]
        return frame

    @cached_property
    def part(self) -> ReportSection:
        """A table with a row for each scorer."""
        results = Results(tuple(row for name in self.scored for row in self._rows(name)))
        roles = ", ".join(f"{role} from {column!r}" for role, column in self.roles.items())
        sentences = [f"{counted(len(self.answers), 'answer')} of {self.table.file}: {roles}."]
        sentences += copied_references(self.answers)
        for name, about in self.about.items():
            keys = "|".join(f"{k}:{v}" for k, v in without_runtime(about).items())
            sentences.append(f"{name} is {keys}.")
            sentences += [
                f"{name}: {counted(row.estimate.n, 'answer')}: {row['why']}."
                for row in results.select(statistic="reason", judge=name)
            ]
        layout = Layout("scores", "Scores", ("Scorer",), (), ("Mean", "Scored", "Without a score"))
        table = layout.listing(
            (row.judge, row.estimate, row.estimate.n, row.estimate.n_missing)
            for row in results.select(statistic="mean")
        )
        block = Block("What was scored", tuple(sentences), (table,), lead=True, on_screen=True)
        return ReportSection("scores", "scores of answers", results, (block,))

    def _rows(self, name: str) -> Iterator[Row]:
        x = np.array([scored.value for scored in self.scored[name]], dtype=np.float64)
        groups = np.unique([answer.group for answer in self.answers], return_inverse=True)[1]
        yield Row("scores", "mean", clustered_mean(x, groups, "no answer has a score"), name)
        for reason, n in Counter(s.reason for s in self.scored[name] if s.reason).items():
            yield Row("scores", "reason", Estimate(n, n=n), name, keys={"why": reason})


def _roles(table: AnswerTable, columns: Mapping[str, str]) -> Mapping[str, str]:
    """The role of each column: as given, else by its name. Raises SetupError."""
    allowed = ", ".join(ROLES)
    unknown = [role for role in columns if role not in ROLES]
    problems = [Problem("is no role", field="columns", found=r, allowed=allowed) for r in unknown]
    named = {"reference": "gold"} if "gold" in table.columns else {}
    roles = {**named, **columns_by_role(table.columns, ROLES), **columns}
    if "text" not in roles:
        message = "no column is called `text` or alike: say which one holds the answers"
        problems.append(Problem(message, table.file, 1, "text", allowed=some(table.columns)))
    raise_any(problems)
    return {role: roles[role] for role in ROLES if role in roles}


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
    taken = (config.name for config in configs if config.name in read.columns)
    raise_any([Problem(message, read.file, 1, name) for name in taken])
    rows = []
    for line, row in read.records():
        texts = {role: row[column] for role, column in roles.items()}
        rows.append(Answer(str(line), metadata=row, **texts))  # type: ignore[arg-type]
    gather, scored, about = Gathered("scorers"), {}, {}
    opened = [gather(c.name, open_scorer, c, rows, Path()) for c in configs]
    gather.raise_any()
    for config, scorer in zip(configs, filter(None, opened), strict=True):
        name, kept = config.name, KeptScores(scorer, Path(folder) if folder else None)
        progress.start(name, len(rows), 0)

        def advance(n: int, name: str = name) -> None:
            for _ in range(n):
                progress.advance(name)

        with closing(kept):
            scored[name] = kept.of(rows, advance)
        about[name] = {**scorer.about, "better": scorer.better or "unknown"}
    return Scores(read, roles, rows, scored, about)
