"""`judgebench annotate`: collect human labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from judgebench.cli.groups import Commands, argument, flag, option
from judgebench.cli.options import ProtocolOption
from judgebench.cli.show import AsJson, Output, echo_each, show
from judgebench.errors import Problem, SetupError
from judgebench.text import counted

app = Commands("Collect human labels with a web app on your own machine.")

StudyFolder = Annotated[
    Path,
    typer.Argument(metavar="STUDY", help="The folder that `judgebench annotate init` wrote."),
]
Person = Annotated[str, typer.Argument(metavar="NAME", help="An annotator, or `lead`.")]
Annotator = Annotated[str, typer.Argument(metavar="NAME", help="An annotator.")]


@app.command()
def init(
    file: Path = argument("FILE", "annotate.yaml."),
    to: Path = option(..., "FOLDER", "The folder of the study."),
    new_version: bool = flag("The study is there: take the items as they are."),
    protocol: ProtocolOption = None,
    anchors: int | None = option(
        None, "N", "Answers with known labels for everybody, most with a severe flaw."
    ),
    anchors_from: list[Path] = option(
        (), "FILE", "A table, or a set of altered answers, to draw them from. Repeatable."
    ),
) -> None:
    """Make a study: blind screens, who labels what, and a link for everybody.

    \b
    The shortest annotate.yaml:
      name: labels
      items: answers.csv
      rubric: medical-safety
      annotators: [ann, ben]

    Example: judgebench annotate init annotate.yaml --to runs/labels
    """
    import judgebench as jb

    typer.echo(jb.annotate(
        file, to, new_version=new_version, protocol=protocol, anchors=anchors,
        anchors_from=anchors_from,
    ))  # fmt: skip


@app.command()
def draw(
    kind: Literal["agreed", "disagreements", "again"] = argument(
        "agreed|disagreements|again", "Which items."
    ),
    run: Path = argument("RUN", "A run folder, or a layout.yaml."),
    to: Path | None = option(None, "FILE", "Draw: the CSV file to write."),
    count: Path | None = option(None, "FILE", "Or count: labels of items drawn before."),
    metric: str = option("", "ID", "Of several metrics, which."),
    judge: str = option("", "NAME", "Of several judges, which."),
    items: int | None = option(None, "N", "How many. Default: 59, all disagreements, 100 again."),
    seed: int = option(0, "N", "The same seed draws the same."),
) -> None:
    """Draw items of a run that people label once more; then count what their labels say.

    agreed: annotators and judge agree on them. An expert who labels them shows errors that these
    share, which can be seen in no other way; --count says how many. disagreements: they do not
    agree. Labels of the annotator `adjudicated` on them are gold for `judgebench decide`. again:
    any. One annotator labels them blind, and --count says whether the labels of record may have
    been made in sight of the judge.

    Example: judgebench annotate draw disagreements runs/demo --metric tone --to items.csv
    """
    import judgebench as jb
    from judgebench.files import all_or_nothing, write_atomically

    if (to is None) == (count is None):
        raise SetupError(Problem("give either --to or --count"))
    layout = run if run.is_file() else run / "layout.yaml"  # as --save writes it
    study = jb.study(layout) if layout.is_file() else jb.open_run(run)
    if count is not None:
        typer.echo(jb.count_drawn(study, kind, count, metric=metric, judge=judge))
    elif to is not None:
        drawn = jb.draw(study, kind, metric=metric, judge=judge, items=items, seed=seed)
        with all_or_nothing(to.parent, [to]):
            write_atomically(to, drawn.to_csv(index=False).encode())
        typer.echo(f"{to}: {counted(len(drawn), 'item')}, to be `items` of an annotate.yaml")


@app.command()
def serve(
    study: StudyFolder,
    host: str = option("127.0.0.1", "HOST", "Where to listen."),
    port: int = option(8765, "N", "0: any that is free."),
    cert: Path | None = option(None, "FILE", "A TLS certificate."),
    cert_key: Path | None = option(None, "FILE", "Its key."),
    proxy: str = option("", "URL", "A proxy's address, with https.", "--behind-proxy"),
    open_lead: bool = flag("Open the study lead's page in the browser.", "--open"),
) -> None:
    """Serve a study to its annotators and its lead, until Ctrl-C.

    Other machines reach it only with --cert or --behind-proxy.

    Example: judgebench annotate serve runs/labels --open
    """
    from judgebench.annotation import server

    if cert_key and not cert:
        raise SetupError(Problem("needs a certificate: --cert", field="--cert-key"))
    tls = (cert, cert_key) if cert else None
    server.serve(study, host, port, tls=tls, proxy=proxy, open_lead=open_lead)


@app.command()
def status(study: StudyFolder, as_json: AsJson = False) -> None:
    """Show how far everybody is, how well people agree, and who differs from the rest.

    Example: judgebench annotate status runs/labels
    """
    import judgebench as jb

    found = jb.collected(study)
    show({"annotate": found}, found.name, Output(verbose=not as_json, json=as_json))


@app.command()
def link(study: StudyFolder, name: Person) -> None:
    """Print a new link for somebody. It works once, within a week; earlier sessions go on.

    Example: judgebench annotate link runs/labels ann
    """
    from judgebench.annotation.store import link_of, open_store

    with open_store(study) as store:
        typer.echo(link_of(store, name))


@app.command()
def export(
    study: StudyFolder,
    to: Path | None = option(None, "FILE", "Default: labels.csv or the like in STUDY."),
    calibration: bool = flag("Also the calibration round."),
) -> None:
    """Write the labels that count now as a table, also while the study is served.

    Example: judgebench annotate export runs/labels
    """
    from judgebench.annotation import export as tables

    echo_each(tables.export(study, to, calibration=calibration))


@app.command()
def sheet(
    study: StudyFolder,
    name: Annotator,
    to: Path = option(..., "FILE", "The HTML file to write."),
) -> None:
    """Write the page of an annotator as one file, for work without a connection to the server.

    It saves labels as NAME.events.json, which `judgebench annotate import` reads.

    Example: judgebench annotate sheet runs/labels ann --to ann.html
    """
    from judgebench.annotation.sheet import sheet as made_sheet
    from judgebench.annotation.store import open_store
    from judgebench.files import disk_errors, write_atomically

    if to.exists():
        raise SetupError(Problem("exists and is not overwritten", str(to), field="--to"))
    with open_store(study) as store, disk_errors(to):
        write_atomically(to, made_sheet(store, name).encode())
    typer.echo(f"{to}: the page of {name}; what it saves is read by `judgebench annotate import`")


@app.command("import")
def import_(
    study: StudyFolder,
    file: Path = argument("FILE", "What an offline sheet saved, as JSON."),
) -> None:
    """Add the labels that an offline sheet saved. Importing a file again changes nothing.

    Example: judgebench annotate import runs/labels ann.events.json
    """
    from judgebench.annotation.sheet import import_events

    said, refused = import_events(study, file)
    typer.echo(said)
    if refused:
        typer.echo("\n".join(("refused:", *refused)), err=True)
        raise typer.Exit(1)
