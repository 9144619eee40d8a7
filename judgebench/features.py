"""The wings: features that own everything about themselves and that the rest can do without.

Each has a package with a module `wing` that holds `WING`, a `runs.wing.Wing`. To take a
feature out, delete its folder, its entry here and its tests.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

WINGS = {
    "annotate": "annotation", "compare": "comparison", "decide": "decisions",
    "preferences": "preferences", "ranking": "ranking", "scorers": "scorers",
    "stress": "stress_tests", "tuning": "tuning",
}  # fmt: skip
"""The package of each wing, by the wing's name."""


@cache
def wings() -> tuple[Any, ...]:
    """Every wing, in the order in which they are shown."""
    return tuple(import_module(f"judgebench.{package}.wing").WING for package in WINGS.values())


def contributed(part: str) -> list[Any]:
    """The parts of one kind, such as a `section`, of all wings that have it."""
    return [found for wing in wings() if (found := getattr(wing, part))]
