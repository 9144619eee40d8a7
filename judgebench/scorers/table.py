"""Several answers of a model to every question, as a table that can be judged and scored."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.data.formats import Table as AnswerTable
from judgebench.data.tables import read_table
from judgebench.data.vocabulary import columns_by_role
from judgebench.errors import Problem, SetupError, raise_any, some
from judgebench.files import disk_errors, write_atomically
from judgebench.judges.config import Decoding
from judgebench.judges.replies import without_reasoning
from judgebench.models.contract import Backend, Message, Reply, Request
from judgebench.progress import SILENT, Progress
from judgebench.records import Answer, Estimate, Results, Row, content_hash, without_runtime
from judgebench.results.blocks import Block, ReportSection
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
from judgebench.stats.intervals import clustered_mean
from judgebench.text import counted
from judgebench.writer import WritingTerms, which_model, write_kept

if TYPE_CHECKING:
    import pandas as pd


_OWN = ("item_id", "group", "question", "system", "repeat", "text", "finish")
_ENOUGH = 512  # tokens of an answer
Asked = tuple[Mapping[str, str], int]  # a row of the table, and the number of the answer


@dataclass(frozen=True)
class AnswerOrder:
    """The number of answers to every question, the name they get, and the decoding."""

    repeats: int
    system: str
    decoding: Decoding


def questions_of(table: AnswerTable) -> list[dict[str, str]]:
    """A row for each different question, its id and group first, then whatever else the table holds
    of it but answers. Raises SetupError for a blank question and an id that two questions have."""
    roles = columns_by_role(table.columns, ("item", "group", "question", "text", "system"))
    if "question" not in roles:
        allowed = ", ".join(table.columns)
        message = "no column is called `question` or alike"
        raise SetupError(Problem(message, table.file, 1, "question", allowed=allowed))
    beside = [c for c in table.columns if c not in (*roles.values(), *_OWN)]
    found: dict[str, dict[str, str]] = {}
    problems, ids = [], Counter[str]()
    for line, row in table.records():
        question, where = row[roles["question"]], (table.file, line)
        if not question:
            problems.append(Problem("is blank", *where, "question"))
        elif question not in found:
            item = row.get(roles.get("item", ""), "") or f"q{line}"
            ids[item] += 1
            if ids[item] > 1:
                problems.append(Problem("two questions have this id", *where, "item_id", item))
            group = row.get(roles.get("group", ""), "") or item
            about = {"item_id": item, "group": group, "question": question}
            found[question] = {**about, **{name: row[name] for name in beside}}
    raise_any(problems)
    return list(found.values())


def write_answers(
    questions: list[dict[str, str]], order: AnswerOrder, to: Path, backend: Backend,
    terms: WritingTerms,
) -> list[str]:  # fmt: skip
    """Ask for what is missing and write the table, a row for each answer that came. Returns
    sentences on what is in it. Raises what `write_kept` raises; what came is kept beside."""
    drawn = order.decoding
    about = [which_model(backend), drawn.model_dump()]
    keys = {
        content_hash([*about, row["question"], n]): (row, n)
        for row in questions
        for n in range(1, order.repeats + 1)
    }

    def ask(key: str, asked: Asked) -> Request:
        row, n = asked
        messages = (Message("user", row["question"]),)
        seed = None if drawn.seed is None else drawn.seed + n
        most = drawn.max_tokens or _ENOUGH
        return Request(key, messages, None, most, drawn.temperature, drawn.top_p, seed)

    named = replace(terms, name=order.system, left_out=drawn.left_out)
    kept = write_kept(replies_path(to), keys, backend, ask, named)
    rows = [_row(*keys[key], order.system, kept[key]) for key in keys if key in kept]
    table = StringIO(newline="")
    columns = dict.fromkeys((*_OWN, *(name for row in rows for name in row)))
    writer = csv.DictWriter(table, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with disk_errors(to):
        write_atomically(to, table.getvalue().encode("utf-8", "replace"))
    return list(_told(rows, len(keys)))


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


def _told(rows: Sequence[Mapping[str, str]], asked: int) -> Iterator[str]:
    yield f"{len(rows):,} of {counted(asked, 'answer')}"
    for finish, n in Counter(row["finish"] for row in rows).items():
        if finish != "stop":
            yield f"{n:,} ended as {finish!r}"
    if empty := sum(not row["text"] for row in rows):
        yield f"{empty:,} empty, which count as answers"
    if asked > len(rows):
        yield f"{asked - len(rows):,} without a reply: rerun to ask again"
    texts: dict[str, list[str]] = {}
    for row in rows:
        texts.setdefault(row["question"], []).append(row["text"])
    same = sum(len(said) > 1 and len(set(said)) == 1 for said in texts.values())
    if same:
        yield (
            f"{same:,} of {counted(len(texts), 'question')} with the same answer each time: the "
            "engine may ignore temperature or seed"
        )


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
    def part(self) -> ReportSection:
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
        return ReportSection("scores", "scores of answers", found, (block,))

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
