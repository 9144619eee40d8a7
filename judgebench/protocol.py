"""A protocol: what a study promises before its first label, in a file that shows later changes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from judgebench.files import StrictModel, load_model
from judgebench.records import canonical_json
from judgebench.rubric import Rubric

Count = Annotated[int, Field(ge=1)]


class Protocol(StrictModel):
    """The keys of a protocol.yaml, which `judgebench plan --protocol` writes.

    So many `answers` get labels of so many `annotators` each, who see neither the judge's verdicts
    nor each other's labels. The answers are `drawn` as `--drawn` says it (`random`, or by a column:
    `probability=COLUMN`). There are interim analyses at the shares `looks` of them, and the values
    of the columns `subgroups` are decided apart. `chances` are those of each outcome by the plan,
    if what was `assumed` holds. `severe` says which label counts as severe, and those above it.
    `sha256` is that of the canonical JSON of all other keys: sorted, without spaces, in UTF-8.
    """

    written: str  # the time in UTC, in ISO 8601
    answers: Count
    annotators: Count  # who label each answer
    drawn: str = "random"
    looks: tuple[float, ...] = ()
    subgroups: tuple[str, ...] = ()
    chances: Mapping[str, float] = Field(default_factory=dict)
    assumed: Mapping[str, Any] = Field(default_factory=dict)
    severe: Mapping[str, str] = Field(default_factory=dict)  # by metric
    rubric: Rubric
    rule: Mapping[str, Any] = Field(default_factory=dict)  # the keys of a decision rule
    sha256: str = ""

    @property
    def content_hash(self) -> str:
        """The SHA-256 of all that the file says, whatever its form."""
        keys = self.model_dump(mode="json", exclude={"sha256"}, exclude_unset=True)
        return hashlib.sha256(canonical_json(keys).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def is_unchanged(self) -> bool:
        """True where the file says what it said when it was written."""
        return self.sha256 == self.content_hash


def load_protocol(path: str | Path) -> Protocol:
    """The protocol of that path, also a changed one. Raises SetupError with every problem in it."""
    return load_model(Path(path), Protocol)
