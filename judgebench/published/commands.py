"""`judgebench audit`: published studies, decided again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from judgebench.cli.options import Commands, Figures
from judgebench.cli.show import ONE_SCREEN, Output, show
from judgebench.errors import raise_any

commands = Commands()


@commands.command(
    epilog="Example: judgebench audit examples/audit --downloads published --to pages"
)
def audit(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="A folder for each study, with a study.yaml."),
    ] = None,
    downloads: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the published files are. Default: FOLDER."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write a page over all studies, and one of each, there."
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this study. Repeatable.")
    ] = None,
    choices: Annotated[
        bool, typer.Option("--choices/--no-choices", help="Also decide under other choices.")
    ] = True,
    figures: Figures = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of study.yaml and exit.")
    ] = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Decide published studies again: what their authors printed, and what is left beside rules
    that never read an answer.

    Python files of a study are run: read them before you audit what somebody else wrote.
    """
    from judgebench import api

    if schema:
        from judgebench.published.card import StudyCard

        typer.echo(json.dumps(StudyCard.model_json_schema(), indent=2))
        return
    if folder is None:
        raise typer.BadParameter("name the folder of the studies", param_hint="FOLDER")
    found = api.audit(
        folder, downloads or folder, to=to, only=only or (), choices=choices, figures=figures,
        show_progress=True,
    )  # fmt: skip
    show({"audit": found}, found.name, output, {"html": to / "report.html"} if to else None)
    raise_any(found.failed)
