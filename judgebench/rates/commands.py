"""`judgebench estimate`: how often does each label occur, by system?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from judgebench.cli.options import (
    AS_IN_THE_RUN,
    NO_FILES,
    Commands,
    Files,
    RunOrTables,
    Truth,
    columns_of,
)
from judgebench.cli.score import open_study
from judgebench.cli.show import ONE_SCREEN, Output, show

commands = Commands()


@commands.command(epilog="Example: judgebench estimate labels.csv verdicts.csv --by system")
def estimate(
    run: RunOrTables = None,
    files: Files = NO_FILES,
    truth: Truth = AS_IN_THE_RUN,
    by: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="Rates by each value of this column. Default: system."),
    ] = "",
    width: Annotated[
        float | None,
        typer.Option(
            metavar="WIDTH",
            help="Say how many more labels make an interval this wide, such as 0.02.",
        ),
    ] = None,
    anytime: Annotated[
        bool,
        typer.Option(
            "--anytime", help="Wider limits, which hold at every look while labels arrive."
        ),
    ] = False,
    score: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HUMAN=COLUMN,COLUMN",
            help="Of one table: the mean of a column of numbers that people gave, from columns of "
            "numbers that predict it. Repeatable.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write a page, CSV, Markdown and LaTeX there."),
    ] = None,
    output: Output = ONE_SCREEN,
) -> None:
    """Estimate how often each label occurs, by system: from few human labels and many verdicts.

    Four ways stand side by side: human labels alone, with the verdicts (PPI++), Rogan-Gladen, and
    the verdicts alone, which are no valid estimate by themselves.
    """
    from judgebench import api
    from judgebench.rates.analysis import naming_by
    from judgebench.studies.drawn import kept_columns

    keep = kept_columns((), by)
    files = replace(files, column=[*(f"{name}=kept" for name in keep), *(files.column or ())])
    if score:
        scores = {k: v.split(",") for k, v in columns_of(score, "--score").items()}
        table: Any = next(iter(run or ()), None)
        columns = {"question": files.question or ""}
    else:
        with naming_by(by):
            table = open_study(run, files, truth.settings, (), output)
        scores, columns = {}, {}
    found = api.estimate(
        table, by=by, drawn=truth.drawn or (), width=width, anytime=anytime, scores=scores,
        columns=columns,
    )  # fmt: skip
    written = api.report(found, to) if to else None
    show({"estimate": found}, found.name, output, written)
