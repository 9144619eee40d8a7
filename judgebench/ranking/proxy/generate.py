"""Ask models for arguments: one-shot, drawn as in section 3.2.1 of the paper, kept one by one.

An argument is on disk before the next is waited for. What was written with the same model, prompt,
decoding and seed on the same text is never asked for again. Of an item's lines the last counts: one
that was written otherwise is followed by the one that is wanted, or by a blank one until it comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgebench.backends.contract import Backend, Message, Reply, Request
from judgebench.files import drop_torn_line, to_line
from judgebench.ranking.proxy.arguments import Argument, plain_argument, read_arguments
from judgebench.ranking.proxy.config import GeneratorConfig
from judgebench.ranking.proxy.evidence import verbatim_share
from judgebench.ranking.proxy.task import ProxyTask, TaskInstance
from judgebench.records import content_hash
from judgebench.writer import WritingTerms, Written, which_model, write_texts

# Small models repeat the heading that the example stands under.
_HEADING = re.compile(r"^\s*\**(?:argument|evidence)\**\s*:\**\s*", re.IGNORECASE)


@dataclass(frozen=True)
class ArgumentWriter:
    """A generator at work: its backend, the file of its arguments, and the seed of every draw."""

    generator: GeneratorConfig
    backend: Backend
    path: Path
    seed: int

    def write(
        self, task: ProxyTask, instances: Sequence[TaskInstance], terms: WritingTerms
    ) -> Written:
        """Have the model write on each instance and append its arguments to the file.

        Raises what `write_texts` raises; what was written is kept.
        """
        way = [
            task.name, task.prompt.content_hash, which_model(self.backend),
            self.generator.decoding.model_dump(), self.seed,
        ]  # fmt: skip
        wanted = {content_hash([*way, i.item_id, i.question, i.context]): i for i in instances}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        drop_torn_line(self.path)
        kept = list(_kept(self.path))
        done = {a.signature: a for a in kept if a.signature}
        todo = {signature: i for signature, i in wanted.items() if signature not in done}
        with self.path.open("ab", buffering=0) as file:
            file.write("".join(map(_line, _set_right(wanted, done, kept, task.name))).encode())

            def ask(key: str, instance: TaskInstance) -> Request:
                return self._request(key, task, instance)

            def keep(instance: TaskInstance, reply: Reply) -> None:
                file.write(_line(self._argument(task, instance, reply)).encode())

            return write_texts(todo, self.backend, ask, keep, terms, len(wanted) - len(todo))

    def _request(self, key: str, task: ProxyTask, instance: TaskInstance) -> Request:
        system, user = task.prompt.render_argument(instance.question, instance.context)
        decoding = self.generator.decoding
        return Request(
            key=key,
            messages=(Message("system", system), Message("user", user)),
            max_tokens=decoding.max_tokens,
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            # A seed of its own for each instance: with one for all, models repeat themselves.
            seed=int(content_hash([self.seed, instance.item_id]), 16) % 2**31,
        )

    def _argument(self, task: ProxyTask, instance: TaskInstance, reply: Reply) -> Argument:
        text = _HEADING.sub("", reply.text).strip() if reply.finish in ("stop", "length") else ""
        share = verbatim_share(text, instance.context) if task.prompt.reply == "evidence" else None
        system = self.generator.name
        return Argument(
            task.name, instance.item_id, system, text, reply.key, reply.finish, share, reply.cost
        )


def costs_of(path: Path) -> list[float]:
    """What each argument of a file cost; a line that stands there twice was paid for once."""
    return [a.cost or 0.0 for a in {a.signature: a for a in _kept(path)}.values()]


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


def wanted_instances(task: ProxyTask, learnt_from: ProxyTask | None) -> list[TaskInstance]:
    """The instances that arguments are needed for: the ranked test instances, and the first version
    of every train and development instance of `learnt_from`, the part of the task whose arguments
    of models an evaluator is trained on; None where none is."""
    learnt = () if learnt_from is None else learnt_from.instances
    return [*task.ranked, *(i for i in learnt if i.split != "test" and i.version == 0)]
