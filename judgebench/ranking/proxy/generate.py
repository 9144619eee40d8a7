"""Ask models for arguments: one-shot, drawn as in section 3.2.1 of the paper, kept one by one.

An argument is on disk before the next is waited for. What was written with the same model, prompt,
decoding and seed on the same text is never asked for again. Of an item's lines the last counts: one
that was written otherwise is followed by the one that is wanted, or by a blank one until it comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from judgebench.backends.contract import Backend, Message, Reply, Request
from judgebench.errors import BudgetSpent, Problem, SetupError
from judgebench.files import drop_torn_line, to_line
from judgebench.ranking.proxy.arguments import Argument, plain_argument, read_arguments
from judgebench.ranking.proxy.config import GeneratorConfig
from judgebench.ranking.proxy.evidence import verbatim_share
from judgebench.ranking.proxy.task import ProxyTask, TaskInstance
from judgebench.records import content_hash

# Small models repeat the heading that the example stands under.
_HEADING = re.compile(r"^\s*\**(?:argument|evidence)\**\s*:\**\s*", re.IGNORECASE)


class Writing(Protocol):
    """Who follows the writing of arguments; `wanted` says that it is to end."""

    def started(self, name: str, total: int, done: int) -> None:
        """So many arguments are wanted of `name`, of which so many were written before."""
        ...

    def step(self, name: str) -> None:
        """One more is written."""
        ...

    @property
    def wanted(self) -> bool:
        """Whether no further arguments are to be asked for."""
        ...


@dataclass
class Written:
    """What asking came to. `failed` had no reply and are asked for again by the next run. `cost` is
    that of all that the file holds, and of the failed ones."""

    asked: int = 0
    before: int = 0
    failed: int = 0
    why_failed: str = ""
    finishes: dict[str, int] = field(default_factory=dict)
    cost: float = 0.0


class _Purse:
    """What may still be spent, in US dollars; no budget means any sum. `spent_up` once a request
    could not be paid for, should it and all in flight be as dear as the dearest."""

    def __init__(self, budget: float | None, costs: Sequence[float]) -> None:
        self._budget, self.spent = budget, sum(costs)
        self._dearest = max(costs, default=0.0)
        self._in_flight = 0
        self.spent_up = False

    def may_ask(self) -> bool:
        most = self.spent + (self._in_flight + 1) * self._dearest
        self.spent_up = self._budget is not None and most > self._budget
        self._in_flight += not self.spent_up
        return not self.spent_up

    def pay(self, reply: Reply, generator: str) -> None:
        """Raises SetupError where there is a budget and nobody knows what the reply cost."""
        self._in_flight -= 1
        self.spent += reply.cost or 0.0
        self._dearest = max(self._dearest, reply.cost or 0.0)
        if self._budget is not None and reply.cost is None and reply.finish in ("stop", "length"):
            message = "--budget needs to know what a call costs: state price in these settings"
            where = f"proxy.generators.{generator}.settings.price"
            raise SetupError(Problem(message, field=where))


def write_arguments(
    task: ProxyTask,
    instances: Sequence[TaskInstance],
    generator: GeneratorConfig,
    backend: Backend,
    path: Path,
    *,
    seed: int,
    watch: Writing,
    budget: float | None = None,
) -> Written:
    """Have `generator` write on each instance and append its arguments to the file at `path`.

    `budget` is in US dollars, for all that the file holds. Raises BudgetSpent where the next
    argument could cost more than is left, SetupError where nobody knows what one costs, and what a
    backend raises; what was written is kept.
    """
    about = {k: v for k, v in backend.describe().items() if k != "runtime"}
    way = [task.name, task.prompt.content_hash, about, generator.decoding.model_dump(), seed]
    wanted = {_signature(way, i): i for i in instances}
    path.parent.mkdir(parents=True, exist_ok=True)
    drop_torn_line(path)
    kept = list(_kept(path))
    done = {a.signature: a for a in kept if a.signature}
    todo = {signature: i for signature, i in wanted.items() if signature not in done}
    purse = _Purse(budget, [a.cost or 0.0 for a in done.values()])
    result = Written(len(todo), len(wanted) - len(todo), cost=purse.spent)
    name = f"{task.name}: {generator.name} writes"
    watch.started(name, len(wanted), result.before)
    requests = _requests(task, todo, generator, seed, watch, purse)
    replies = backend.complete(requests) if todo else iter(())
    with path.open("ab", buffering=0) as file:
        file.write("".join(map(_line, _set_right(wanted, done, kept, task.name))).encode("utf-8"))
        for reply in replies:
            if reply.finish == "failed":
                result.failed, result.why_failed = result.failed + 1, reply.error
            else:
                file.write(_line(_argument(task, todo[reply.key], generator.name, reply)).encode())
                result.finishes[reply.finish] = result.finishes.get(reply.finish, 0) + 1
                watch.step(name)
            purse.pay(reply, generator.name)
            result.cost = purse.spent
    if purse.spent_up and not watch.wanted:
        raise BudgetSpent(f"{name}: ${purse.spent:.2f} of ${budget or 0:.2f} are spent")
    return result


def _set_right(
    wanted: Mapping[str, TaskInstance],
    done: Mapping[str, Argument],
    kept: Sequence[Argument],
    task: str,
) -> Iterator[Argument]:
    """The lines that follow those written otherwise, so that the last of an item is the wanted
    one: it again, or a blank one, which is no argument."""
    last = {a.item_id: a for a in kept if a.task == task}
    for signature, instance in wanted.items():
        before = last.get(instance.item_id)
        if before is None or before.signature == signature:
            continue
        if signature in done:
            yield done[signature]
        elif before.finish != "failed":
            yield Argument(task, instance.item_id, before.system, "", finish="failed")


def _line(argument: Argument) -> str:
    return to_line(plain_argument(argument))


def _kept(path: Path) -> Iterator[Argument]:
    if path.is_file():
        yield from (argument for _, argument in read_arguments(path))


def _signature(way: Sequence[object], instance: TaskInstance) -> str:
    return content_hash([*way, instance.item_id, instance.question, instance.context])


def _requests(
    task: ProxyTask,
    todo: dict[str, TaskInstance],
    generator: GeneratorConfig,
    seed: int,
    watch: Writing,
    purse: _Purse,
) -> Iterator[Request]:
    """A request an instance, none once the user wants to stop or the budget is spent."""
    decoding = generator.decoding
    for signature, instance in todo.items():
        if watch.wanted or not purse.may_ask():
            return
        system, user = task.prompt.render_argument(instance.question, instance.context)
        yield Request(
            key=signature,
            messages=(Message("system", system), Message("user", user)),
            max_tokens=decoding.max_tokens,
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            # A seed of its own for each instance: with one for all, models repeat themselves.
            seed=int(content_hash([seed, instance.item_id]), 16) % 2**31,
        )


def _argument(task: ProxyTask, instance: TaskInstance, system: str, reply: Reply) -> Argument:
    text = _HEADING.sub("", reply.text).strip() if reply.finish in ("stop", "length") else ""
    share = verbatim_share(text, instance.context) if task.prompt.reply == "evidence" else None
    return Argument(
        task.name, instance.item_id, system, text, reply.key, reply.finish, share, reply.cost
    )


def wanted_instances(task: ProxyTask, learnt_from: ProxyTask | None) -> list[TaskInstance]:
    """Whom arguments are needed for: the ranked test instances, and the first version of every
    train and development instance of `learnt_from`, the part of the task whose arguments of models
    an evaluator is trained on; None where none is."""
    learnt = () if learnt_from is None else learnt_from.instances
    return [*task.ranked, *(i for i in learnt if i.split != "test" and i.version == 0)]
