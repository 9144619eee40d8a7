"""Judges at work: what has no ending is asked, every reply is kept, and a run stops cleanly.

Every remote judge has a lane, which is a thread. Engines inside this process would take the cores
and the memory from each other, so they share one lane and work one after another. Ctrl-C once lets
answers in flight finish, twice ends at once; and so does once where something is learnt, if that
takes longer than PATIENCE_S: what was learnt or answered by then is kept.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import TypeVar

import numpy as np

from judgebench.errors import BudgetSpent, JudgebenchError, Problem, SetupError
from judgebench.judges.judge import Judge, Task
from judgebench.judges.llm import LLMJudge
from judgebench.judges.replies import QUOTED
from judgebench.progress import Progress
from judgebench.records import Answer, Status, Verdict, content_hash, group_by_key
from judgebench.runs.folder import RunFolder
from judgebench.runs.verdict_log import FiledVerdicts, Rows, VerdictWriter, set_damaged_aside
from judgebench.studies.answers import IndexedAnswers
from judgebench.studies.verdicts import replaced

Drawn = TypeVar("Drawn")
Outcome = TypeVar("Outcome")

PATIENCE_S = 6.0  # a fit, or a step of a training, may take minutes
_GLANCE_S = 0.2  # a thread that waits longer than this would not see a signal in time


class Interrupted(KeyboardInterrupt):
    """The user stopped the run. What was written is kept. `at_once`: work was cut off in flight."""

    def __init__(self, at_once: bool = False) -> None:
        super().__init__("stopped at once" if at_once else "stopped")
        self.at_once = at_once


class Stop:
    """The request to end a run, read by every thread that draws tasks. `wanted`: no further answers
    are to be asked for; `is_cut`: what is in flight is not waited for."""

    def __init__(self) -> None:
        self._then: list[Callable[[], object]] = []
        self.wanted = self.interrupted = self.is_cut = False

    def __call__(self) -> None:
        """No further answers are asked for; those in flight are waited for."""
        self.wanted = True
        for act in self._then:
            act()

    def then(self, act: Callable[[], object]) -> None:
        """Do this too when it is asked for, in whatever thread asks."""
        self._then.append(act)


class Budget:
    """US dollars for all who share it, whatever thread they are in; `limit` None means any sum.

    `spent` is what the run folder has cost so far, `highest` the most that one call has cost.
    """

    def __init__(self, limit: float | None, spent: float = 0.0, highest: float = 0.0) -> None:
        self._limit = limit
        self.spent = spent
        self._highest = highest
        self._in_flight = 0
        self.unpriced: SetupError | None = None
        self._lock = threading.Condition()

    def may_ask(self) -> bool:
        """True where one more call fits, should it and all in flight cost as much as the most
        expensive one so far; if so, it counts as in flight until it is paid."""
        with self._lock:
            fits = self._has_room()
            self._in_flight += fits
            return fits

    def _has_room(self) -> bool:
        most = self.spent + (self._in_flight + 1) * self._highest
        return self._limit is None or (most <= self._limit and self.unpriced is None)

    def wait_for_room(self, stop: Stop) -> None:
        """Wait until one more call fits, or is not wanted. Raises BudgetSpent where none does once
        the calls in flight, of other judges, have ended, and SetupError where a call was paid for
        and nobody knows how much."""
        with self._lock:
            while self._in_flight and not self._has_room() and not stop.wanted:
                self._lock.wait(_GLANCE_S)
            if not self._has_room():
                raise self.unpriced or BudgetSpent(
                    f"the budget of ${self._limit:g} is used up: ${self.spent:.4f} spent in this "
                    f"run folder, and one more call may cost ${self._highest:.4f}; run again with "
                    "a larger budget to go on"
                )

    @contextmanager
    def one_waits(self, stop: Stop) -> Iterator[None]:
        """One call in flight is not sent before something else is done, which may ask a model for
        it: meanwhile it does not count. Raises as `wait_for_room`."""
        with self._lock:
            waiting = min(1, self._in_flight)  # none where nobody pays for what is asked
            self.release(waiting)
        try:
            yield
            self.wait_for_room(stop)
        finally:
            self.release(-waiting)

    def release(self, n: int) -> None:
        """So many calls ended with no reply to pay for."""
        with self._lock:
            self._in_flight -= n
            self._lock.notify_all()

    def pay(self, cost: float | None, price_field: str = "") -> None:
        """Count what a call cost, None if unknown. `price_field` names the setting that would
        tell; without it nothing was paid for. Where a limit cannot be kept, no other call fits."""
        with self._lock:
            self._in_flight -= 1
            self.spent += cost or 0.0
            self._highest = max(self._highest, cost or 0.0)
            if self._limit is not None and cost is None and price_field:
                message = (
                    "a budget needs to know what a call costs, and a reply came without it: state "
                    "its price, and use an endpoint that counts its tokens"
                )
                self.unpriced = SetupError(Problem(message, field=price_field))
            self._lock.notify_all()


def within_budget(
    tasks: Iterable[Drawn],
    ask: Callable[[Iterator[Drawn]], Iterator[Outcome]],
    budget: Budget,
    stop: Stop,
) -> Generator[Outcome, None, None]:
    """The outcomes of all tasks, which `ask` draws while the budget has room for one more beside
    all in flight. Where it has none, the rest is asked when these have ended. Raises BudgetSpent,
    and SetupError where the cost of a call is unknown.

    Whoever iterates pays for each outcome. Nothing is drawn once it is to stop.
    """
    due, withheld, n_open = iter(tasks), list[Drawn](), 0

    def drawn() -> Iterator[Drawn]:
        nonlocal n_open
        for task in due:
            if stop.wanted:
                return
            if not budget.may_ask():
                withheld.append(task)
                return
            n_open += 1
            yield task

    while True:
        outcomes = ask(drawn())
        try:
            for outcome in outcomes:
                n_open -= 1
                yield outcome
        finally:
            close = getattr(outcomes, "close", None)
            if close is not None:
                close()
            budget.release(n_open)
        if budget.unpriced:
            raise budget.unpriced
        if not withheld or stop.wanted:
            return
        budget.wait_for_room(stop)
        due, n_open = chain([withheld.pop()], due), 0


@dataclass(frozen=True)
class Work:
    """The state that all judges of a run share. `outcomes` are the reasons why judges stopped, by
    name; "" where one is done."""

    folder: RunFolder
    progress: Progress
    budget: Budget
    stop: Stop
    outcomes: dict[str, str] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def contacts(self, judge: Judge) -> None:
        """Note in run.json which hosts the judge contacts, as far as is known."""
        with self.lock:
            self.folder.note_hosts(getattr(judge, "hosts", ()))

    def set_damaged_aside(self, path: Path) -> None:
        """Take damaged lines out of a file of verdicts; say so, and note it in run.json."""
        if message := set_damaged_aside(path):
            self.progress.say(message)
            with self.lock:
                self.folder.note_change(path.name, f"{message}.")


def tasks_of(answers: IndexedAnswers) -> Iterator[Task]:
    """Every answer, to be judged."""
    return (Task(answers[row], None, answers.content_hash(row)) for row in range(len(answers)))


def judge_answers(judge: Judge, bundles: RequestGroups, work: Work) -> None:
    """Bring one judge's verdicts up to date. Raises BudgetSpent or what its engine raises."""
    parse_retries: int = getattr(judge, "parse_retries", 0)
    path, rows = work.folder.verdict_path(judge.name), bundles.rows
    work.set_damaged_aside(path)
    with VerdictWriter(path) as writer:
        if writer.torn_bytes:
            work.progress.say(f"{path.name}: dropped a torn last line of {writer.torn_bytes} bytes")
        verdicts = FiledVerdicts(path, judge.signature, bundles.answers)
        if verdicts.n_unused:
            work.progress.say(
                f"{judge.name}: {verdicts.n_unused:,} verdicts of other settings, or on other "
                "answers, are kept unused"
            )
        first = verdicts.never_ended(rows)
        n_due = len(first) + len(verdicts.to_ask_again(rows, parse_retries))
        work.progress.start(judge.name, len(rows), len(rows) - n_due)
        if n_due:
            work.contacts(judge)
        try:
            ask(judge, map(bundles.task, first), writer, verdicts, work)
            for _ in range(parse_retries):
                unread = verdicts.to_ask_again(rows, parse_retries)
                again = (bundles.task(row, last) for row, last in unread)
                ask(judge, again, writer, verdicts, work)
        finally:
            if " + " in " + ".join(verdicts.models):  # several models
                work.progress.say(replaced(judge.name, verdicts.models))
            if n_due:  # some backends know only now
                work.contacts(judge)


def ask(
    judge: Judge, tasks: Iterable[Task], writer: VerdictWriter, known: FiledVerdicts, work: Work
) -> None:
    """Ask for every task and keep each verdict as it comes; stops drawing when asked to stop.

    Raises BudgetSpent or what the judge's engine raises.
    """
    with closing(within_budget(tasks, judge.judge, work.budget, work.stop)) as verdicts:
        for verdict in verdicts:
            if work.stop.is_cut:  # somebody else may write to the file by now
                raise Interrupted(at_once=True)
            known.note(verdict, writer.write(verdict))
            work.progress.advance(verdict.judge, verdict)
            is_paid = verdict.usage.calls and verdict.status in (Status.OK, Status.UNPARSED)
            price_field = f"judges.{verdict.judge}.settings.price" if is_paid else ""
            work.budget.pay(verdict.cost, price_field)


class RequestGroups:
    """The `rows` that a judge judges, those of a bundle beside each other: what is shown in one
    request. Most judges are shown one answer at a time, and judge all. `numbers` (answers,) are
    those of the bundles, -1 for an answer that is not judged.

    Bundles are made of the answers `among`, all of the data, where `answers` are others: some of
    the same, asked in another way, or altered ones. An altered answer (`parents`: the id of what it
    was made of) stands in its parent's place, and that bundle is asked about it alone.
    """

    def __init__(
        self, judge: Judge, answers: IndexedAnswers,
        among: IndexedAnswers | None = None, parents: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.answers, self._parents = answers, parents or {}
        self._bundles: list[Sequence[Answer]] = []  # in the order shown
        self._number_of: dict[str, int] = {}  # by item
        self._is_list = False
        cells = getattr(judge, "cells", None)
        self.numbers = cells(answers, self._parents) if cells else np.arange(len(answers))
        if isinstance(judge, LLMJudge):
            self._is_list = judge.config.list is not None
            if judge.bundled:
                self._bundles = [*self._made(judge, among or answers)]
                bundled = enumerate(self._bundles)
                self._number_of = {a.item_id: n for n, some in bundled for a in some}
                self.numbers = np.array([*map(self._number, range(len(answers)))], np.int64)
            if judge.of_some:
                self.numbers[[answer.kind != judge.kind for answer in answers]] = -1
        order = np.argsort(self.numbers, kind="stable")
        self.rows: Rows = order[self.numbers[order] >= 0]

    def _made(self, judge: LLMJudge, among: Iterable[Answer]) -> Iterator[Sequence[Answer]]:
        """Lists of at most `list` answers, as equal in size as can be, drawn and put in order by
        seed; or all criteria of an answer, as they come."""
        groups = group_by_key(
            (judge.together(answer), answer)
            for answer in among
            if answer.kind == judge.kind and answer.item_id not in self._parents
        )
        most, seed = judge.config.list, judge.config.seed or 0
        if most is None:
            yield from groups.values()
            return

        def drawn(some: Iterable[Answer], what: str) -> list[Answer]:
            return sorted(some, key=lambda answer: content_hash([seed, what, answer.item_id]))

        for group in groups.values():
            answers = drawn(group, "list")
            for rows in np.array_split(np.arange(len(answers)), -(-len(answers) // most)):
                yield drawn((answers[row] for row in rows), "place")

    def _number(self, row: int) -> int:
        alone, item_id = len(self._bundles) + row, self.answers[row].item_id
        return alone if item_id in self._parents else self._number_of.get(item_id, alone)

    def task(self, row: int, previous: Verdict | None = None) -> Task:
        """The answer of that row, to be judged, or judged again after an unreadable reply: of a
        list alone, where one of its texts holds the labels of all."""
        answer = self.answers[row]
        origin, bundle = self._parents.get(answer.item_id, answer.item_id), tuple[Answer, ...]()
        if self._is_list and previous is not None and QUOTED in previous.reason:
            bundle = (answer,)
        elif origin in self._number_of:
            shown = self._bundles[self._number_of[origin]]
            bundle = tuple(answer if other.item_id == origin else other for other in shown)
        return Task(answer, previous, self.answers.content_hash(row), bundle)


@contextmanager
def ctrl_c(
    stop: Stop,
    tell: Callable[[str], None],
    patience_s: float | None = None,
    *,
    what: str = "the answers in flight",
) -> Iterator[None]:
    """While it lasts, a first SIGINT stops softly, after `what`, and a second raises Interrupted.
    With `patience_s` the second comes by itself after so many seconds.

    Signals reach the main thread alone; called from another one, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if stop.interrupted:
            stop.is_cut = True
            raise Interrupted(at_once=True)
        stop.interrupted = True
        stop()
        if patience_s is not None:
            second.start()
        tell(f"Finishing {what}. Press Ctrl-C again to stop at once.")

    second = threading.Timer(patience_s or 0, signal.raise_signal, [signal.SIGINT])
    second.daemon = True
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        second.cancel()
        signal.signal(signal.SIGINT, before)


def run_lanes(
    lanes: Mapping[str, Callable[[], None]],
    stop: Stop,
    progress: Progress,
    drain: Callable[[], None],
) -> None:
    """Run every lane to its end. `drain` is called, again and again, after a stop: what waits
    to be asked is then no longer waited for.

    A lane that fails ends alone: its error is reported at once, the other lanes continue, and the
    error is raised when all have ended. Any other exception stops the other lanes softly.
    Raises Interrupted after a Ctrl-C, and at once after a second one.
    """
    errors: list[BaseException] = []
    running = set(lanes)

    def lane(name: str) -> None:
        try:
            lanes[name]()
        except JudgebenchError as error:
            errors.append(error)
            if running - {name}:  # else it is reported anyway, as the error that ends the run
                progress.say(f"{name} stopped: {error}")
        except BaseException as error:
            errors.insert(0, error)
            stop()
        finally:
            running.discard(name)

    threads = [threading.Thread(target=lane, args=(name,), daemon=True) for name in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_GLANCE_S)
            if stop.wanted:
                drain()
    if stop.interrupted:
        raise Interrupted
    if errors:
        raise errors[0]
