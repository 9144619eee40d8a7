"""The commands of the scorers wing, each beside the others in `wing.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgebench.cli.show import AsJson, Output, Quiet, Verbose, show

ScoreTable = Annotated[Path, typer.Argument(metavar="FILE", help="A table with scores.")]
GroupColumn = Annotated[
    str | None,
    typer.Option("--group", metavar="COLUMN", help="The column that names the question."),
]
SystemColumn = Annotated[
    str | None,
    typer.Option("--system", metavar="COLUMN", help="The column that names the system."),
]


def consistency(
    file: ScoreTable,
    group: GroupColumn = "question",
    system: SystemColumn = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A score. Default: all numbers. Repeatable."),
    ] = None,
    ratio: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A score with a true zero. Repeatable."),
    ] = None,
    standard_error: Annotated[
        float | None,
        typer.Option(min=0, metavar="X", help="Say how many runs give a mean this standard error."),
    ] = None,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where to write a report.")
    ] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """How much of a score is noise? Rows of one question and system are runs of the same."""
    from judgebench import api
    from judgebench.report.place import write_in_place

    output = Output(verbose, quiet, as_json)
    found = api.consistency(
        file, group=group or "question", system=system or "", scores=column or (),
        ratio=ratio or (), standard_error=standard_error,
    )  # fmt: skip
    n = int(found.results.find("units").value or 0)
    written = write_in_place([found.part], to, name=file.stem, answers=n)[0] if to else {}
    show({"consistency": found}, file.stem, output, written)
