"""`judgebench annotate`: collect human labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgebench.cli.commands import Commands

app = Commands("Collect human labels with a small web app: blind, balanced, on your own machine.")

StudyFolder = Annotated[
    Path,
    typer.Argument(metavar="STUDY", help="The folder that `judgebench annotate init` wrote."),
]
Person = Annotated[str, typer.Argument(metavar="NAME", help="An annotator, or `lead`.")]


@app.command(epilog="Example: judgebench annotate link runs/labels ann")
def link(study: StudyFolder, name: Person) -> None:
    """Print a new link for somebody. It works once, within a week; earlier sessions go on."""
    from judgebench.annotate.folder import link_of, open_store

    with open_store(study) as store:
        typer.echo(link_of(store, name))


@app.command(epilog="Example: judgebench annotate revoke runs/labels ann")
def revoke(study: StudyFolder, name: Person) -> None:
    """End all sessions and links of somebody. Labels stay."""
    from judgebench.annotate.folder import known_person, open_store

    with open_store(study) as store:
        ended = store.revoke(known_person(store, name))
    typer.echo(f"{name}: {ended} sessions and links ended")
