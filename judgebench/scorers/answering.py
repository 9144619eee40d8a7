"""Several answers of a model to every question, as a table that can be judged and scored."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from judgebench.data.table import Table
from judgebench.data.vocabulary import columns_by_role
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import disk_errors, write_atomically
from judgebench.judges.config import Decoding
from judgebench.judges.replies import without_reasoning
from judgebench.models.contract import Backend, Message, Reply, Request
from judgebench.records import content_hash
from judgebench.words import counted
from judgebench.writer import WritingTerms, which_model, write_kept

_OWN = ("item_id", "group", "question", "system", "repeat", "text", "finish")
_ENOUGH = 512  # tokens of an answer
Asked = tuple[Mapping[str, str], int]  # a row of the table, and the number of the answer


@dataclass(frozen=True)
class AnswerOrder:
    """The number of answers to every question, the name they get, and the decoding."""

    repeats: int
    system: str
    decoding: Decoding


def questions_of(table: Table) -> list[dict[str, str]]:
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
