"""How a command shows what it found: one screen, everything, nothing, or JSON."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgebench.cli.streams import Stream
from judgebench.errors import SetupError

if TYPE_CHECKING:
    from rich.console import Console

    from judgebench.errors import Problem
    from judgebench.results.shown import Shown

MOST_PROBLEMS_SHOWN = 50  # of one kind

Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Print all tables, the numbers behind each reason, and all caveats."
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print errors only; the exit code says the rest.")
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print outcomes, reasons, conditions and numbers as JSON."),
]


@dataclass(frozen=True)
class Output:
    """How much is printed. Raises SetupError where two ways are asked for."""

    verbose: bool = False
    quiet: bool = False
    json: bool = False

    def __post_init__(self) -> None:
        if self.verbose + self.quiet + self.json > 1:
            raise SetupError("choose one of --verbose, --quiet and --json")
        if self.quiet:
            warnings.simplefilter("ignore", UserWarning)

    def console(self) -> Console:
        """Where a command prints what is not JSON, so that JSON stands alone."""
        from judgebench.results.screen import Screen

        stream = sys.stderr if self.json else sys.stdout
        return Screen(stream.raw if isinstance(stream, Stream) else stream, quiet=self.quiet)


ONE_SCREEN = Output()


def show(
    found: Mapping[str, Shown],
    name: str,
    output: Output,
    written: Mapping[str, Path] | None = None,
    **beside: object,
) -> None:
    """Print findings and where their report was `written`; JSON also holds what is `beside`."""
    from judgebench import api
    from judgebench.results.part import caveats
    from judgebench.results.shown import to_json
    from judgebench.results.terminal import print_parts, print_screen
    from judgebench.words import counted

    if output.json:
        paths = {key: str(path) for key, path in (written or {}).items()}
        typer.echo(to_json(found, name, **({"report": paths} if written else {}), **beside))
        return
    parts, console = api.parts(found), output.console()
    (print_parts if output.verbose else print_screen)(parts, console, name)
    console.print()
    for line in _paths(written or {}, output):
        console.print(line, soft_wrap=True)
    if not output.verbose:
        notes = caveats(parts)
        more = f", {counted(len(notes), 'caveat')}" if notes else ""
        console.print(f"More with -v: all tables, the numbers behind each reason{more}.")


def _paths(written: Mapping[str, Path], output: Output) -> Sequence[str]:
    """Where the page is and how many files stand beside it; all paths where much is asked for."""
    if not written:
        return []
    page = written.get("html", next(iter(written.values())))
    table = [f"Verdicts: {path}" for key, path in written.items() if key == "verdicts.csv"]
    others = [path for path in written.values() if path != page]
    if output.verbose:
        return [*table, f"Report: {page}", *map(str, others)]
    beside = f" and {len(others)} other files in {page.parent}" if others else ""
    return [*table, f"Report: {page}{beside}"]


def entries(lines: Iterable[str]) -> Iterator[str]:
    """Each line without keys. What follows a break in one is set in, so that no file's name and no
    server can write a line of ours."""
    from judgebench.models.secrets import Secrets

    secrets = Secrets()
    for line in lines:
        yield secrets.scrubbed(line).replace("\n", "\n  ")


def show_problems(console: Console, problems: Sequence[Problem], word: str) -> None:
    """Every problem on a line of its own; beyond 50 of one kind, the rest is counted."""
    shown: dict[str, int] = {}
    told = []
    for problem in problems:
        shown[problem.kind] = shown.get(problem.kind, 0) + 1
        if shown[problem.kind] <= MOST_PROBLEMS_SHOWN:
            told.append(f"{word}: {problem}")
    for line in entries(told):
        console.print(line, soft_wrap=True)
    for kind, count in shown.items():
        if count > MOST_PROBLEMS_SHOWN:
            console.print(f"{word}: … and {count - MOST_PROBLEMS_SHOWN} more of the kind {kind!r}")
