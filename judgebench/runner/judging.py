"""One judge over the answers: what has no ending is asked, and every reply is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from threading import Lock

from judgebench.judges.judge import Judge, Task
from judgebench.progress import Progress
from judgebench.records import Verdict
from judgebench.runner.budget import Budget
from judgebench.runner.ledger import Ledger, Rows, each, rows_of_shard
from judgebench.runner.stop import StopSign
from judgebench.store.folder import RunFolder, Shard
from judgebench.store.verdict_file import VerdictWriter
from judgebench.study.answers import IndexedAnswers


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
        """What is written stays; whoever goes on writing gets a ValueError."""
        with self._lock:
            for writer in self._open:
                writer.close()


@dataclass(frozen=True)
class Work:
    """What all judges of a run share. With a `shard`, only its part is done."""

    folder: RunFolder
    progress: Progress
    budget: Budget
    stop: StopSign
    shard: Shard | None = None
    writers: Writers = field(default_factory=Writers)

    @property
    def part(self) -> str:
        """What the files of this part of the work are called by."""
        return self.shard.part if self.shard else ""

    def rows(self, answers: IndexedAnswers) -> Rows:
        """The rows that this process is to judge."""
        n = len(answers)
        return (
            rows_of_shard(n, self.shard.number, self.shard.of) if self.shard else rows_of_shard(n)
        )


def task_of(answers: IndexedAnswers, row: int, previous: Verdict | None = None) -> Task:
    """The answer of that row, to be judged, or judged again after an unreadable reply."""
    return Task(answers[row], previous, answers.content_hash(row))


def judge_answers(judge: Judge, answers: IndexedAnswers, work: Work) -> None:
    """Bring one judge's verdicts up to date. Raises BudgetSpent or what its engine raises."""
    parse_retries: int = getattr(judge, "parse_retries", 0)
    path = work.folder.verdict_path(judge.name, work.part)
    rows = work.rows(answers)
    with work.writers.add(VerdictWriter(path)) as writer:
        if writer.torn_bytes:
            work.progress.say(f"{path.name}: dropped a torn last line of {writer.torn_bytes} bytes")
        ledger = Ledger(answers, judge.signature, parse_retries)
        other = ledger.note_files(work.folder.verdict_files(judge.name))
        if other:
            work.progress.say(
                f"{judge.name}: {other:,} verdicts of other settings, or on other answers, are "
                "kept unused"
            )
        work.progress.start(judge.name, len(rows), ledger.done(rows))
        first = (task_of(answers, row) for row in each(ledger.never_ended(rows)))
        ask(judge, first, writer, ledger, work)
        for _ in range(parse_retries):
            again = (task_of(answers, row, last) for row, last in ledger.to_ask_again(rows))
            ask(judge, again, writer, ledger, work)


def ask(
    judge: Judge, tasks: Iterable[Task], writer: VerdictWriter, ledger: Ledger, work: Work
) -> None:
    """Ask for every task and keep each verdict as it comes; stops drawing when asked to stop.

    Raises BudgetSpent or what the judge's engine raises.
    """
    withheld = False

    def drawn() -> Iterator[Task]:
        nonlocal withheld
        for task in tasks:
            if work.stop.wanted:
                return
            if not work.budget.may_ask():
                withheld = True
                return
            yield task

    verdicts = judge.judge(drawn())
    try:
        for verdict in verdicts:
            _keep(verdict, writer, ledger, work)
    finally:
        close = getattr(verdicts, "close", None)
        if close is not None:
            close()
    if withheld:
        raise work.budget.spent_up()


def _keep(verdict: Verdict, writer: VerdictWriter, ledger: Ledger, work: Work) -> None:
    writer.write(verdict)
    ledger.note(verdict)
    work.progress.advance(verdict.judge, verdict)
    where = f"judges.{verdict.judge}.settings.price" if verdict.usage.calls else ""
    work.budget.pay(verdict.cost, where)
