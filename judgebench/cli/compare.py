"""`judgebench compare`: is B better or worse than A, and may it be merged?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgebench.cli.options import Commands, DecisionRuleOption, Figures
from judgebench.cli.show import ONE_SCREEN, UNMET, Output, exit_unmet, show

commands = Commands()


@commands.command(epilog="Example: judgebench compare runs/last-month runs/today --fail-on worse")
def compare(
    a: Annotated[
        str, typer.Argument(metavar="RUN_A[:JUDGE]", help="What was before: a run folder.")
    ],
    b: Annotated[
        str,
        typer.Argument(
            metavar="RUN_B[:JUDGE]",
            help="What is now. The same folder twice compares two of its judges.",
        ),
    ],
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="worse|decision",
            help=f"The exit code is {UNMET} if B is shown to be worse, or if a decision "
            "fell. Repeatable.",
        ),
    ] = None,
    no_worse: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MARGIN[:METRIC]",
            help=f"The exit code is {UNMET} unless accuracy is shown to be at most MARGIN "
            "worse. Repeatable.",
        ),
    ] = None,
    rule: DecisionRuleOption = None,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to write the report. Default: nowhere."),
    ] = None,
    figures: Figures = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Compare two runs, or two judges, on the same answers: what changed, and is it better?"""
    import judgebench as jb
    from judgebench.comparison.result import check_demands, failures, margins

    check_demands(fail_on or ())
    (before, one), (after, two) = split(a), split(b)
    found = jb.compare(before, after, judges=(one, two), rule=rule)
    missed = list(failures(found, fail_on or (), margins(no_worse or (), found)))
    asked = {"failed": missed} if fail_on or no_worse else {}
    written = jb.report(found, to, figures=figures) if to else {}
    show({"compare": found, "flips": found.flips}, found.name, output, written, asked)
    exit_unmet(output, "failed", missed)


def split(text: str) -> tuple[Path, str]:
    """`runs/demo:gpt-4` as a folder and the name of a judge; either may hold a colon."""
    places = [i for i, character in enumerate(text) if character == ":"]
    for end in (len(text), *places):
        if Path(text[:end]).is_dir() and end:
            return Path(text[:end]), text[end + 1 :]
    return Path(text), ""
