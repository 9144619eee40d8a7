"""The contract between runner and judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from judgebench.records import Answer, Verdict


@dataclass(frozen=True, slots=True)
class Task:
    """One answer to judge. `previous` is the unreadable verdict that is retried.

    `content_hash` is the answer's; where it is given, the judge need not hash the text. `bundle`
    are the answers that are shown side by side, this one among them, in the order shown; empty
    where it stands alone.
    """

    answer: Answer
    previous: Verdict | None = None
    content_hash: str = ""
    bundle: tuple[Answer, ...] = ()


class Judge(Protocol):
    """Anything that turns answers into verdicts: a model, a rule, a random draw.

    An attribute `parse_retries` says how often an unreadable reply is requested again;
    without it, never.
    """

    name: str
    signature: str  # hash of everything that its verdicts depend on

    def describe(self) -> Mapping[str, Any]:
        """Its entry in the manifest: what the signature hashes, and `runtime`."""
        ...

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        """One verdict per task, as each is finished, in any order; `tasks` is read lazily."""
        ...

    def close(self) -> None:
        """Release the engine."""
        ...
