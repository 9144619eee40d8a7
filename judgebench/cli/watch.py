"""`judgebench watch`: does a certificate still hold?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from judgebench.cli.options import NO_FILES, Commands, Files, RunOrTables
from judgebench.cli.report import open_study
from judgebench.cli.show import ONE_SCREEN, UNMET, Output, show

commands = Commands()


@commands.command(epilog="Example: judgebench watch judge.json new-labels.csv new-verdicts.csv")
def watch(
    certificate: Annotated[
        Path,
        typer.Argument(
            metavar="CERTIFICATE", help="The file that `judgebench decide … --certificate` wrote."
        ),
    ],
    tables: RunOrTables = None,
    files: Files = NO_FILES,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write a page, CSV, Markdown and LaTeX there."),
    ] = None,
    output: Output = ONE_SCREEN,
) -> None:
    """Does a certificate still hold: is the file unchanged, the judge the same, and does it still
    agree with people?

    Nothing is stored: give all new labels and verdicts each time, in the order of time. The exit
    code is 0 where the certificate is valid, and 3 where it expired or is revoked.
    """
    import judgebench as jb
    from judgebench.certificate.record import read
    from judgebench.certificate.report import sentence

    certified = read(certificate)
    study = None
    if tables or files != NO_FILES:
        asked = replace(files, expected="rows")
        study = open_study(tables, asked, output=output, rubric=certified.rubric)
    watched = jb.watch(certified, study)
    written = jb.report(watched, to) if to else None
    reasons = [sentence(watched, reason) for reason in watched.reasons]
    show({"watch": watched}, watched.name, output, written,
         {"state": watched.state, "reasons": reasons})  # fmt: skip
    if watched.state != "valid":
        raise typer.Exit(UNMET)
