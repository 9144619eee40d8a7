"""The wings: features that own everything about themselves and that the rest can do without.

Each name is a package with a module `wing` that holds `WING`. To take a feature out, delete its
folder, its name here and its tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

    from judgebench.results.shown import Shown
    from judgebench.store.folder import RunFolder
    from judgebench.study.study import Study

WINGS = ("decide", "stress", "ranking")

Lines = Sequence[tuple[str, str]]  # (name, what it is)


@dataclass(frozen=True)
class Wing:
    """What a wing adds to judgebench. All of it is optional.

    `read` takes from a run folder what the wing measures; it goes into `Study.beside[name]`.
    `measure` makes the wing's results from a study and from those of the wings before it, by name
    (None where there is nothing to measure). `commands` adds verbs to the command line. `checks`
    maps what `judgebench check` may call a file to its check; `lists` are the headings of
    `judgebench list`.
    """

    name: str
    read: Callable[[RunFolder, Study], Any] | None = None
    measure: Callable[[Study, Mapping[str, Shown]], Shown | None] | None = None
    commands: Callable[[typer.Typer], None] | None = None
    checks: Mapping[str, Callable[[Path], str]] = field(default_factory=dict)
    lists: Mapping[str, Callable[[], Lines]] = field(default_factory=dict)


def wings() -> list[Wing]:
    """Every wing, in the order in which they measure and are shown."""
    return [import_module(f"judgebench.{name}.wing").WING for name in WINGS]
