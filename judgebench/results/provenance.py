"""How a report came to be: when, with what, from which files, and by which command."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date

from judgebench.version import VERSION

# The command line that runs, as it was given; empty in Python, where no line repeats a report.
COMMAND: ContextVar[str] = ContextVar("command", default="")
_DIGITS = 12  # of a hash that are shown


@dataclass(frozen=True, slots=True)
class Provenance:
    """The day, the SHA-256 of each file that a study was read from, by name (empty of a data
    frame), and the command, empty where there was none.

    >>> Provenance("2026-11-29", {"labels.csv": "ab" * 32, "verdicts": ""}).files
    ['labels.csv (SHA-256 abababababab…)', 'verdicts (a DataFrame, which has no hash)']
    """

    day: str
    sources: Mapping[str, str]
    command: str = ""
    version: str = VERSION

    @property
    def files(self) -> list[str]:
        """Each source with the beginning of its hash."""
        return [
            f"{name} (SHA-256 {digest[:_DIGITS]}…)"
            if digest
            else f"{name} (a DataFrame, which has no hash)"
            for name, digest in self.sources.items()
        ]


def provenance_of(sources: Mapping[str, str]) -> Provenance:
    """The provenance of what is made now from these sources."""
    return Provenance(date.today().isoformat(), sources, COMMAND.get())
