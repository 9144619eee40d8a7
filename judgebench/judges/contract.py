"""What the runner asks of a judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from judgebench.records import Answer, Verdict


@dataclass(frozen=True, slots=True)
class Task:
    """One answer to judge. `previous` is the unreadable verdict that is asked for again.

    `content_hash` is the answer's; whoever knows it saves the judge from hashing the text.
    """

    answer: Answer
    previous: Verdict | None = None
    content_hash: str = ""


class Judge(Protocol):
    """Anything that turns answers into verdicts: a model, a rule, a coin.

    An attribute `parse_retries` says how often a reply that could not be read is asked for again;
    without it, never.
    """

    name: str
    signature: str  # hash of everything that its verdicts depend on

    def describe(self) -> Mapping[str, Any]:
        """What the manifest says of it: what the signature hashes, and `runtime`."""
        ...

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        """One verdict a task, as each is finished, in any order; `tasks` is read lazily."""
        ...

    def close(self) -> None:
        """Give back the engine."""
        ...
