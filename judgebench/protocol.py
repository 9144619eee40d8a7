"""A protocol: what a study promises before its first label, in a file that shows later changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from judgebench.errors import Problem, SetupError
from judgebench.files import StrictModel, load_with_lines, validate
from judgebench.records import sha256_of
from judgebench.rubric import Rubric
from judgebench.stats.intervals import look_levels


def _rising(looks: tuple[float, ...]) -> tuple[float, ...]:
    """The looks. Raises ValueError unless they rise to the end, which is not among them."""
    look_levels((*looks, 1.0))
    return looks


class Promises(StrictModel):
    """The promises of a study beside its plan; the keys are those of a Protocol."""

    answers: int | None = Field(default=None, ge=1)
    drawn: str = ""
    looks: Annotated[tuple[float, ...], AfterValidator(_rising)] = ()
    subgroups: tuple[str, ...] = ()
    rubric: Rubric


class Protocol(Promises):
    """The keys of a protocol.yaml, which `judgebench plan --protocol` writes.

    So many `answers` get labels of so many `annotators` each, who see neither the judge's verdicts
    nor each other's labels. The answers are `drawn` as `--drawn` says it (`random`, or by a column:
    `probability=COLUMN`). There are interim analyses at the shares `looks` of them, and the values
    of the columns `subgroups` are decided apart. `chances` are those of each outcome by the plan,
    if what was `assumed` holds. The last label of each metric of the `rubric` is severe, and more
    where the `rule` has `severe_from`. `sha256` is that of all other keys as canonical JSON:
    sorted, without spaces, in UTF-8. `written` is the time in UTC.
    """

    answers: int = Field(ge=1)
    written: str
    annotators: int
    chances: Mapping[str, float]
    assumed: Mapping[str, Any]
    rule: Mapping[str, Any]
    sha256: str = ""

    @property
    def content_hash(self) -> str:
        """The SHA-256 of what the file says now, whatever its form."""
        return sha256_of(self.model_dump(mode="json", exclude={"sha256"}, exclude_unset=True))


def load_protocol(path: str | Path) -> Protocol:
    """The protocol of that path, also a changed one. Raises SetupError with every problem in it."""
    value, node = load_with_lines(Path(path))
    if not isinstance(value, Mapping) or "written" not in value:
        message = "is not a protocol: `judgebench plan --protocol FILE --rubric RUBRIC` writes one"
        raise SetupError(Problem(message, str(path)))
    return validate(value, Protocol, str(path), node)
