"""One judge over the answers: what has no ending is asked, and every reply is kept.

How far it is with every answer stands in a Ledger, in a few bytes an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import SetupError
from judgebench.files import to_line
from judgebench.judges.control import ControlJudge
from judgebench.judges.judge import Judge, Task
from judgebench.judges.llm import LLMJudge
from judgebench.judges.replies import QUOTED
from judgebench.progress import SILENT, Progress
from judgebench.records import Answer, Status, Verdict, content_hash
from judgebench.runs.folder import RunFolder
from judgebench.runs.stop import Budget, StopSign, within_budget
from judgebench.runs.verdict_log import Head, VerdictWriter, plain_verdict, read_heads, signed
from judgebench.studies.answers import IndexedAnswers, keys_of
from judgebench.studies.verdicts import replaced

_NONE = -1
_CODE = {status: code for code, status in enumerate(Status)}
_FAILED = _CODE[Status.FAILED]


class Ledger:
    """One judge's latest verdict on each answer: its status and which attempt it was.

    Unreadable verdicts that may be asked for again are kept whole, for the judge is given
    their reasons; all others are forgotten.
    """

    def __init__(self, answers: IndexedAnswers, signature: str, parse_retries: int = 0) -> None:
        self._answers = answers
        self._signature = signature
        self._parse_retries = parse_retries
        self._status = np.full(len(answers), _NONE, np.int8)
        self._unread: dict[int, Verdict] = {}
        self.models = Counter[str]()  # of all that was noted

    def note_all(self, verdicts: Iterable[Verdict]) -> int:
        """Note what was written before; how many are of other settings or other answers."""
        return sum(not self.note(verdict) for verdict in verdicts)

    def note_files(self, paths: Sequence[Path], progress: Progress = SILENT) -> int:
        """As `note_all`, of whole files, of which no more is read than is needed. Damaged lines are
        reported and passed over."""
        other = 0
        for head in read_heads(paths):
            if isinstance(head, SetupError):
                progress.say(f"{head}; what it judged is asked again")
            elif (row := self._row(head)) < 0:
                other += 1
            else:
                unread = head.verdict() if head.status is Status.UNPARSED else None
                self._note(row, head.status, unread)
                self.models[head.model] += 1
        return other

    def note(self, verdict: Verdict) -> bool:
        """Note a verdict; False where it is of other settings or on another text."""
        if (row := self._row(verdict)) < 0:
            return False
        self._note(row, verdict.status, verdict if verdict.status is Status.UNPARSED else None)
        self.models[verdict.model] += 1
        return True

    def _row(self, verdict: Verdict | Head) -> int:
        if verdict.signature != self._signature:
            return _NONE
        return self._answers.row_of(verdict.item_id, verdict.content_hash)

    def _note(self, row: int, status: Status, unread: Verdict | None) -> None:
        self._status[row] = _CODE[status]
        if unread is not None and unread.attempt < self._parse_retries:
            self._unread[row] = unread
        else:
            self._unread.pop(row, None)

    def never_ended(self, rows: Rows) -> Rows:
        """Those of `rows` that were never asked, or to which no reply ever came."""
        status = self._status[rows]
        unended: Rows = rows[(status == _NONE) | (status == _FAILED)]
        return unended

    def to_ask_again(self, rows: Rows) -> list[tuple[int, Verdict]]:
        """Those of `rows` whose last reply could not be read, with it, while retries are left."""
        if not self._unread:
            return []
        return [(row, self._unread[row]) for row in rows.tolist() if row in self._unread]

    def done(self, rows: Rows) -> int:
        """The number of `rows` that need no further call."""
        return len(rows) - len(self.never_ended(rows)) - len(self.to_ask_again(rows))

    def tell_of_models(self, judge: str, progress: Progress) -> None:
        """Say so where the verdicts came from several models."""
        if said := replaced(judge, {name: n for name, n in self.models.items() if name}):
            progress.say(said)


def each(rows: Rows) -> Iterator[int]:
    """The rows as whole numbers, without a list of a million."""
    return map(int, rows)


class Writers:
    """The files that are being written, so that all can be closed at once."""

    def __init__(self) -> None:
        self._open: set[VerdictWriter] = set()
        self._lock = Lock()

    def add(self, writer: VerdictWriter) -> VerdictWriter:
        """Keep this one in view too; returns it."""
        with self._lock:
            self._open.add(writer)
        return writer

    def close(self) -> None:
        """Close all files; what was written stays, and a later write raises ValueError."""
        with self._lock:
            for writer in self._open:
                writer.close()


@dataclass(frozen=True)
class Work:
    """The state that all judges of a run share. `outcomes` are the reasons why judges stopped, by
    name; "" where one is done."""

    folder: RunFolder
    progress: Progress
    budget: Budget
    stop: StopSign
    writers: Writers = field(default_factory=Writers)
    outcomes: dict[str, str] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def contacts(self, judge: Judge) -> None:
        """Note in run.json which hosts the judge contacts, as far as is known."""
        with self.lock:
            self.folder.note_hosts(getattr(judge, "hosts", ()))


def tasks_of(answers: IndexedAnswers) -> Iterator[Task]:
    """Every answer, to be judged."""
    return (Task(answers[row], None, answers.content_hash(row)) for row in range(len(answers)))


def judge_answers(judge: Judge, bundles: Bundles, work: Work) -> None:
    """Bring one judge's verdicts up to date. Raises BudgetSpent or what its engine raises."""
    parse_retries: int = getattr(judge, "parse_retries", 0)
    path = work.folder.verdict_path(judge.name)
    answers, rows = bundles.answers, bundles.rows
    with work.writers.add(VerdictWriter(path)) as writer:
        if writer.torn_bytes:
            work.progress.say(f"{path.name}: dropped a torn last line of {writer.torn_bytes} bytes")
        ledger = Ledger(answers, judge.signature, parse_retries)
        other = ledger.note_files(work.folder.verdict_files(judge.name), work.progress)
        if other:
            work.progress.say(
                f"{judge.name}: {other:,} verdicts of other settings, or on other answers, are "
                "kept unused"
            )
        work.progress.start(judge.name, len(rows), ledger.done(rows))
        if left := ledger.done(rows) < len(rows):
            work.contacts(judge)
        first = map(bundles.task, each(ledger.never_ended(rows)))
        try:
            ask(judge, first, writer, ledger, work)
            for _ in range(parse_retries):
                again = (bundles.task(row, last) for row, last in ledger.to_ask_again(rows))
                ask(judge, again, writer, ledger, work)
        finally:
            ledger.tell_of_models(judge.name, work.progress)
            if left:  # some backends know only now
                work.contacts(judge)


def write_controls(control: ControlJudge, answers: IndexedAnswers, work: Work) -> None:
    """Bring a baseline's verdicts up to date, on the answers that it was fitted on."""
    path = work.folder.verdict_path(control.name)
    with work.writers.add(VerdictWriter(path)) as writer:
        ledger = Ledger(answers, control.signature)
        ledger.note_files(work.folder.verdict_files(control.name))
        due = ledger.never_ended(np.arange(len(answers)))
        if not len(due):
            return
        codes, wanted = control.codes()[due], np.isin(np.arange(len(answers)), due)
        keys = compress(keys_of(answers.all), wanted)
        for begin in range(0, len(due), _LINES):
            if work.stop.wanted:
                return
            kinds, which = np.unique(codes[begin : begin + _LINES], axis=0, return_inverse=True)
            nameless = (plain_verdict(control.verdict("", "", kind)) for kind in kinds)
            ends = [to_line(value).encode() for value in nameless]
            lines = [_named(ends[k], key) for k, key in zip(which.tolist(), keys, strict=False)]
            writer.write_lines(b"".join(lines), len(lines))


_LINES = 10_000  # of baselines, written together
_NAMELESS = b'{"item_id":"","content_hash":"",'


def _named(line: bytes, key: tuple[str, str]) -> bytes:
    """The line of a verdict on no answer as that of one on this answer: what it says, and how, was
    made once for all that say the same."""
    begin = to_line(dict(zip(("item_id", "content_hash"), key, strict=True))).encode()
    return signed(begin[:-2] + b"," + line[len(_NAMELESS) :])


def ask(
    judge: Judge, tasks: Iterable[Task], writer: VerdictWriter, ledger: Ledger, work: Work
) -> None:
    """Ask for every task and keep each verdict as it comes; stops drawing when asked to stop.

    Raises BudgetSpent or what the judge's engine raises.
    """
    unpriced: SetupError | None = None

    def halted() -> bool:
        return work.stop.wanted or unpriced is not None

    with closing(within_budget(tasks, judge.judge, work.budget, halted)) as verdicts:
        for verdict in verdicts:
            unpriced = _keep(verdict, writer, ledger, work) or unpriced
    if unpriced:
        raise unpriced


def _keep(verdict: Verdict, writer: VerdictWriter, ledger: Ledger, work: Work) -> SetupError | None:
    writer.write(verdict)
    ledger.note(verdict)
    work.progress.advance(verdict.judge, verdict)
    paid = verdict.usage.calls and verdict.status in (Status.OK, Status.UNPARSED)
    return work.budget.pay(verdict.cost, f"judges.{verdict.judge}.settings.price" if paid else "")


Rows = NDArray[np.int64]


class Bundles:
    """The `rows` that a judge judges, those of a bundle beside each other: what is shown in one
    request. Most judges are shown one answer at a time, and judge all. `numbers` (answers,) are
    those of the bundles.

    Bundles are made of the answers `among`, all of the data, where `answers` are others: some of
    the same, asked in another way, or altered ones. An altered answer (`parents`: the id of what it
    was made of) stands in its parent's place, and that bundle is asked about it alone.
    """

    def __init__(
        self, judge: Judge, answers: IndexedAnswers,
        among: IndexedAnswers | None = None, parents: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.answers = answers
        self._among, self.parents = among or answers, parents or {}
        self._bundles: list[list[int]] = []  # rows of `_among`, in the order shown
        self._of: dict[int, int] = {}  # row of `_among` -> its bundle
        # The bundle last asked for: answers may be read from a file.
        self._held = -1, tuple[Answer, ...]()
        self._is_list = False
        self.rows = self.numbers = np.arange(len(answers), dtype=np.int64)
        if cells := getattr(judge, "cells", None):
            self.numbers = cells(answers, self.parents)
            order = np.argsort(self.numbers, kind="stable")
            self.rows = order[self.numbers[order] >= 0]
        if not isinstance(judge, LLMJudge):
            return
        if judge.of_some:
            self.rows = self.rows[[answer.kind == judge.kind for answer in answers]]
        self._is_list = judge.config.list is not None
        if judge.bundled:
            self._bundles = [*self._made(judge)]
            self._of = {row: n for n, rows in enumerate(self._bundles) for row in rows}
            numbers = map(self._number, range(len(answers)))
            self.numbers = np.fromiter(numbers, np.int64, len(answers))
            self.rows = self.rows[np.argsort(self.numbers[self.rows], kind="stable")]

    def _made(self, judge: LLMJudge) -> Iterator[list[int]]:
        """Lists of at most `list` answers, as equal in size as can be, drawn and put in order by
        seed; or all criteria of an answer, as they come."""
        groups: dict[Hashable, list[int]] = {}
        for row, answer in enumerate(self._among):
            if answer.kind == judge.kind and answer.item_id not in self.parents:
                groups.setdefault(judge.together(answer), []).append(row)
        most, seed = judge.config.list, judge.config.seed or 0
        if most is None:
            yield from groups.values()
            return

        def drawn(rows: Sequence[int], what: str) -> list[int]:
            ids = {row: self._among[row].item_id for row in rows}
            return sorted(rows, key=lambda row: content_hash([seed, what, ids[row]]))

        for rows in groups.values():
            for some in np.array_split(drawn(rows, "list"), -(-len(rows) // most)):
                yield drawn(some.tolist(), "place")

    def _origin(self, answer: Answer) -> int:
        return self._among.row(self.parents.get(answer.item_id, answer.item_id))

    def _number(self, row: int) -> int:
        answer, alone = self.answers[row], len(self._bundles) + row
        if answer.item_id in self.parents:
            return alone
        return self._of.get(self._origin(answer), alone)

    def task(self, row: int, previous: Verdict | None = None) -> Task:
        """The answer of that row, to be judged, or judged again after an unreadable reply: of a
        list alone, where one of its texts holds the labels of all."""
        answer, bundle = self.answers[row], tuple[Answer, ...]()
        if self._is_list and previous is not None and QUOTED in previous.reason:
            bundle = (answer,)
        elif self._bundles and (origin := self._origin(answer)) in self._of:
            number = self._of[origin]
            rows = self._bundles[number]
            if self._held[0] != number:
                self._held = number, tuple(self._among[other] for other in rows)
            place = rows.index(origin)
            bundle = (*self._held[1][:place], answer, *self._held[1][place + 1 :])
        return Task(answer, previous, self.answers.content_hash(row), bundle)

    def firsts(self, rows: Rows) -> Rows:
        """One of the rows of each bundle that `rows` are of, in the order of the bundles."""
        found: Rows = rows[np.unique(self.numbers[rows], return_index=True)[1]]
        return found

    def cut(self, rows: Rows, n: int) -> list[Rows]:
        """Rows as they stand here in at most `n` pieces that cut no bundle."""
        begins = np.flatnonzero(np.diff(self.numbers[rows], prepend=-1))
        pieces = [piece for piece in np.array_split(begins, n) if len(piece)]
        return np.split(rows, [piece[0] for piece in pieces[1:]])
