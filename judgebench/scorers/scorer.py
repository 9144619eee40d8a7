"""What a scorer is: a number for an answer, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from judgebench.records import Answer, Status

EMPTY_ANSWER = "the answer is empty"
NO_REFERENCE = "there is no reference"
Better = Literal["higher", "lower", ""]  # "" where nobody knows


@dataclass(frozen=True, slots=True)
class Scored:
    """The score of one answer. Without a `value`, `status` and `reason` say why; beside a value a
    `reason` is a remark that is counted, such as that the tail of a text was cut."""

    value: float | None
    status: Status = Status.OK
    reason: str = ""

    @classmethod
    def none(cls, reason: str, status: Status = Status.SKIPPED) -> Scored:
        """No score, and why."""
        return cls(None, status, reason)


class Scorer(Protocol):
    """A number for each answer. `about` holds everything that the numbers depend on: scorer,
    options, rule for several references, versions of libraries, hash of weights (and `runtime`,
    which is not hashed). `at_once` answers are scored in one call."""

    @property
    def better(self) -> Better: ...

    @property
    def at_once(self) -> int: ...

    @property
    def about(self) -> Mapping[str, Any]: ...

    def key(self, answer: Answer) -> Any:
        """What is read of the answer, JSON-able: equal for two answers that get one score."""
        ...

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        """One for each answer, in their order. Whatever is wrong with one changes no other."""
        ...

    def close(self) -> None:
        """Give back engines; may be called twice."""
        ...
