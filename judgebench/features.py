"""The wings: features that own everything about themselves and that the rest can do without.

Each has a package with a module `wing` that holds `WING`, a `runs.wing.Wing`. To take a
feature out, delete its folder, its entry here and its tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

WINGS = {
    "annotate": "annotation", "certificate": "certificate",
    "compare": "comparison", "decide": "decisions",
    "estimate": "rates",
    "preferences": "preferences", "ranking": "ranking", "scorers": "scorers",
    "stress": "stress_tests", "tuning": "tuning",
}  # fmt: skip
"""The package of each wing, by the wing's name."""


@dataclass(frozen=True)
class Named:
    """A function or class given by name, such as `judgebench.tuning.measure:measure_tuning`, whose
    module is imported when it is first used."""

    name: str

    @property
    def value(self) -> Any:
        """The function or class itself."""
        module, _, name = self.name.partition(":")
        return getattr(import_module(module), name)

    def __call__(self, *args: Any) -> Any:
        return self.value(*args)


@cache
def wings() -> tuple[Any, ...]:
    """Every wing, in the order in which they are shown."""
    return tuple(import_module(f"judgebench.{package}.wing").WING for package in WINGS.values())


def contributed(part: str) -> list[Any]:
    """The parts of one kind, such as a `section`, of all wings that have it."""
    return [found for wing in wings() if (found := getattr(wing, part))]
