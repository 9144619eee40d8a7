"""The ways in which a command shows its findings: one screen, everything, nothing, or JSON."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from judgebench.cli.exit_codes import UNMET
from judgebench.cli.groups import flag, option, options
from judgebench.errors import Problem, SetupError
from judgebench.text import for_terminal

if TYPE_CHECKING:
    from rich.console import Console

    from judgebench.results.shown import Shown

MOST_PROBLEMS_SHOWN = 50  # of one kind

AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print outcomes, reasons, conditions and numbers as JSON."),
]


@options
class Output:
    """The amount that is printed. Raises SetupError where two ways are asked for."""

    verbose: bool = flag(
        "Print all tables, numbers behind reasons, all caveats.", "--verbose", "-v"
    )
    quiet: bool = flag("Print errors only; the exit code says the rest.", "--quiet", "-q")
    json: AsJson = False

    def __post_init__(self) -> None:
        if self.verbose + self.quiet + self.json > 1:
            raise SetupError("choose one of --verbose, --quiet and --json")
        if self.quiet:
            warnings.simplefilter("ignore", UserWarning)

    def console(self) -> Console:
        """The console on which a command prints what is not JSON, so that JSON stands alone."""
        from judgebench.results.terminal import Screen

        stream = sys.stderr if self.json else sys.stdout
        return Screen(stream.raw if isinstance(stream, Stream) else stream, quiet=self.quiet)


@options
class ReportFolder:
    """The report that a command writes beside what it prints. Raises SetupError for figures that
    have no folder."""

    to: Path | None = option(None, "FOLDER", "Also write a page, CSV, Markdown and LaTeX there.")
    figures: bool = flag("Also draw figures as PNG, PDF and SVG files.")

    def __post_init__(self) -> None:
        if self.figures and not self.to:
            raise SetupError(
                Problem("are written into a folder: add --to FOLDER", field="--figures")
            )

    def write(self, found: Any) -> Mapping[str, Path]:
        """The path of each file; none where no folder is given."""
        import judgebench as jb

        return jb.report(found, self.to, figures=self.figures) if self.to else {}


ONE_SCREEN, NO_REPORT = Output(), ReportFolder()


def show(
    found: Mapping[str, Shown],
    name: str,
    output: Output,
    written: Mapping[str, Path] | None = None,
    beside: Mapping[str, object] = {},
    tables: bool = False,
) -> None:
    """Print findings, or first their `tables` as in a paper, and where their report was `written`;
    JSON also holds what is `beside`."""
    from judgebench.reporting import parts as parts_of
    from judgebench.results.blocks import caveats
    from judgebench.results.shown import to_json
    from judgebench.results.terminal import print_parts
    from judgebench.text import counted

    if output.json:
        paths = {key: str(path) for key, path in (written or {}).items()}
        typer.echo(to_json(found, name, **({"report": paths} if written else {}), **beside))
        return
    parts, console = parts_of(found), output.console()
    print_parts(parts, console, name, everything=output.verbose, tables=tables)
    console.print()
    for line in _paths(written, output) if written else ():
        console.print(line, soft_wrap=True)
    if not output.verbose:
        notes = caveats(parts, read=False)
        more = f", {counted(len(notes), 'caveat')}" if notes else ""
        console.print(f"More with -v: all tables, the numbers behind each reason{more}.")


def echo_each(lines: Iterable[object], err: bool = False) -> None:
    """Print each on a line, on standard error with `err`; nothing where there are none."""
    for line in lines:
        typer.echo(line, err=err)


def exit_unmet(output: Output, what: str, lines: Sequence[object]) -> None:
    """Print each demand that does not hold after `what`; where there is one, end the command."""
    for line in lines:
        output.console().print(f"{what}: {line}", style="red")
    if lines:
        raise typer.Exit(UNMET)


def _paths(written: Mapping[str, Path], output: Output) -> Sequence[str]:
    """Say where the page is and how many files stand beside it; all paths where much is asked
    for."""
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
    from judgebench.models.settings import Secrets

    secrets = Secrets()
    for line in lines:
        yield secrets.scrubbed(line).replace("\n", "\n  ")


def show_problems(console: Console, problems: Sequence[Problem], word: str) -> None:
    """Every problem as `problem_lines` words it."""
    for line in entries(problem_lines(problems, word)):
        console.print(line, soft_wrap=True)


def problem_lines(problems: Sequence[Problem], word: str) -> Iterator[str]:
    """A line for all problems that are alike; beyond 50 of one kind, the rest is counted."""
    from judgebench.data.findings import counted_once

    shown: dict[str, int] = {}
    for problem in counted_once(problems):
        shown[problem.kind] = shown.get(problem.kind, 0) + 1
        if shown[problem.kind] <= MOST_PROBLEMS_SHOWN:
            yield f"{word}: {problem}"
    for count in shown.values():
        if count > MOST_PROBLEMS_SHOWN:
            yield f"{word}: … and {count - MOST_PROBLEMS_SHOWN} more such {word}s"


# What stands for a character in an encoding that lacks it. Of others their number is written.
_PLAIN = {
    "…": "...", "−": "-", "–": "-", "—": "-", "‑": "-", "‘": "'", "’": "'", "“": '"', "”": '"',
    "≥": ">=", "≤": "<=", "≠": "!=", "≈": "~", "×": "x", "±": "+/-", "·": "|", "•": "*", "→": "->",
    "°": " degrees", "∞": "inf", "α": "alpha", "κ": "kappa", "ρ": "rho", "τ": "tau", "\ufffd": "?",
}  # fmt: skip


def _in_plain_characters(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lost = error.object[error.start : error.end]
    plain = (_PLAIN.get(c) or c.encode("ascii", "backslashreplace").decode() for c in lost)
    return "".join(plain), error.end


codecs.register_error("judgebench", _in_plain_characters)


class Stream(io.TextIOBase):
    """A stream whose text commands no terminal, in characters that its encoding holds.

    What strangers wrote (a server's error, a file's name, a cell) passes here on its way to the
    screen.

    `raw` is the stream for a writer that sends commands of its own (`results.screen`).
    """

    def __init__(self, under: TextIO, clean: bool = True) -> None:
        self._under = under
        self._clean = clean

    @property
    def raw(self) -> TextIO:
        """The same stream, on which text is written as it is."""
        return cast(TextIO, Stream(self._under, clean=False))

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._under.encoding or "utf-8"

    def write(self, text: str) -> int:
        shown = for_terminal(text) if self._clean else text
        with self._named():
            self._under.write(shown.encode(self.encoding, "judgebench").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        with self._named():
            self._under.flush()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of the system say that they are about this stream."""
        try:
            yield
        except OSError as error:
            error.filename = error.filename or "standard output"
            raise

    def fileno(self) -> int:
        return self._under.fileno()

    def isatty(self) -> bool:
        return self._under.isatty()

    def writable(self) -> bool:
        return True


@contextmanager
def guarded_streams() -> Iterator[None]:
    """While it lasts, standard output and error are Streams; one that is closed swallows all."""
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nothing:
        sys.stdout, sys.stderr = (Stream(stream or nothing) for stream in before)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
            for stream in filter(None, before):
                try:
                    stream.flush()
                except (OSError, ValueError):  # lest Python tries again when it ends
                    with suppress(OSError, ValueError):
                        os.dup2(nothing.fileno(), stream.fileno())


def told(error: OSError) -> Iterator[str]:
    """The text to print about an error of the system that ended a command: a line, or none for a
    reader that went away, such as `head`."""
    if error.errno != errno.EPIPE:
        file = os.fsdecode(error.filename) if error.filename is not None else "a file"
        yield f"{file} cannot be read or written: {error.strerror or error}"
