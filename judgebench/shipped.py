"""Find the files that come with judgebench: prompts, rubrics, tasks, adversarial sets, examples.

In a wheel they are in `judgebench/_shipped/`; in a checkout beside `pyproject.toml`. A path that
the user gives always wins over a shipped name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from judgebench.errors import SetupError

DECISION_RULE = "decision"  # its file lies among the rubrics, being written as they are

_PACKAGE = Path(__file__).resolve().parent


def shipped_folder(kind: str) -> Path:
    """The folder `kind` (`prompts`, `tasks`, `examples`, …) of this installation."""
    for base in (_PACKAGE / "_shipped", _PACKAGE.parent):
        if (base / kind).is_dir():
            return base / kind
    raise SetupError(f"this installation lacks its folder {kind}/: install judgebench again")


def shipped_names(kind: str, suffix: str) -> list[str]:
    """Names, without suffix, of the shipped files of a kind, sorted."""
    return sorted(p.name.removesuffix(suffix) for p in shipped_folder(kind).glob(f"*{suffix}"))


def is_file(path: Path) -> bool:
    """True where there is such a file; False for an impossible file name."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long a name, a name that holds a NUL
        return False


def at_home(name: str) -> Path:
    """The path of that name, with `~` expanded to the home folder."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def find_file(
    kind: str,
    name: str,
    suffix: str,
    relative_to: Path | None = None,
    meant: Sequence[str] = (),
) -> Path:
    """The file that `name` means: a path (relative to `relative_to`), else a shipped name.

    Raises SetupError that lists the shipped names: those that are meant here, else all of the kind.
    """
    path = at_home(name)
    for candidate in (path if relative_to is None else relative_to / path, path):
        if is_file(candidate):
            return candidate
    shipped = shipped_folder(kind) / f"{name}{suffix}"
    if "/" not in name and is_file(shipped):
        return shipped
    names = ", ".join(meant or shipped_names(kind, suffix))
    raise SetupError(
        f"there is no file {name!r}, and nothing shipped has that name; shipped: {names}"
    )
