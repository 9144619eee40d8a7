"""`judgebench certificate` and `judgebench watch`: show, compare and renew what expires."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from judgebench.cli.options import Again, Commands, Sign
from judgebench.cli.show import ONE_SCREEN, UNMET, Output, echo_each, show
from judgebench.errors import Problem, SetupError

app = Commands(
    "Certificates of judges: what was decided, on what answers, and until when it holds."
)
commands = Commands()
commands.add_typer(app, name="certificate")

CertificateFile = Annotated[
    Path,
    typer.Argument(
        metavar="CERTIFICATE", help="The file that `judgebench decide … --certificate` wrote."
    ),
]
StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="What a watch has seen. Default: the certificate's name with the ending .watch.",
    ),
]
New = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="NEW",
        help="Run folders, tables of verdicts, tables of human labels (with a column annotator).",
    ),
]


@commands.command(epilog="Example: judgebench watch judge.json verdicts.csv new-labels.csv")
def watch(
    certificate: CertificateFile,
    new: New = None,
    state: StateOption = None,
    source: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The name of this judging of the anchors: the same name counts once. Default: the "
            "path of the file.",
        ),
    ] = "",
    hook: Annotated[
        str,
        typer.Option(
            metavar="COMMAND|URL",
            help="Run this command, or post to this URL, when the state changes; it receives the "
            "state and the reasons as JSON.",
        ),
    ] = "",
    ci: Annotated[
        bool,
        typer.Option("--ci", help=f"The exit code is {UNMET} if it is expired or revoked, else 0."),
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write a page, CSV, Markdown and LaTeX there."),
    ] = None,
    output: Output = ONE_SCREEN,
) -> None:
    """Does a certificate still hold: the judge, the answers, its agreement with people?

    Nothing counts twice, however often a file is given. The exit code is 0 where the certificate is
    valid, 4 warned, 5 expired, 6 revoked.
    """
    from judgebench import api
    from judgebench.certificate.hook import call

    watched = api.watch(certificate, state=state or "")
    before = watched.standing
    found = watched.update(*(new or ()), source=source)
    drawn = find_spec("matplotlib") is not None  # a page without the curves is a page too
    written = api.report(found, to, figures=drawn) if to else None
    about = {"state": found.state, "reasons": [reason.text for reason in found.reasons]}
    show({"watch": found}, found.name, output, written, about)
    if hook and found.state != before:
        call(hook, {"judge": found.certificate.judge.name, "before": before, **about})
    if ci and found.state in ("expired", "revoked"):
        raise typer.Exit(UNMET)
    if not ci and found.exit_code:
        raise typer.Exit(found.exit_code)


@app.command(name="show", epilog="Example: judgebench certificate show judge.json")
def show_(certificate: CertificateFile, output: Output = ONE_SCREEN) -> None:
    """Show what a certificate says, on one screen."""
    from judgebench import api
    from judgebench.certificate.card import Described

    found = Described(api.read_certificate(certificate))
    show({"certificate": found}, found.name, output)


@app.command(epilog="Example: judgebench certificate verify judge.json --public-key public.pem")
def verify(
    certificate: CertificateFile,
    public_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Whose signature is expected: a public key (PEM)."),
    ] = None,
) -> None:
    """Check that a certificate is as it was issued, and who signed it."""
    from judgebench import api
    from judgebench.certificate.record import signed_by

    found = api.read_certificate(certificate)
    by = signed_by(found, public_key)
    typer.echo(f"{certificate} is as it was issued on {found.issued:%Y-%m-%d}; {by}.")


@app.command(epilog="Example: judgebench certificate compare old.json new.json")
def compare(
    certificate: CertificateFile,
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="The certificate to compare.")],
) -> None:
    """Say in what two certificates differ: judge, rubric, outcomes, answers, end."""
    from judgebench import api
    from judgebench.certificate.card import differences

    found = differences(api.read_certificate(certificate), api.read_certificate(other))
    echo_each(found or ["They say the same."])


@app.command(epilog="Example: judgebench certificate card judge.json --to README-judge.md")
def card(
    certificate: CertificateFile,
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it there: .md or .svg.")
    ] = None,
    state: StateOption = None,
) -> None:
    """Print a card for a README as Markdown; with --to FILE.svg draw a badge."""
    from judgebench import api
    from judgebench.certificate.card import badge, markdown
    from judgebench.files import write_atomically

    watched = api.watch(certificate, state=state or "")
    draw = badge if to is not None and to.suffix.lower() == ".svg" else markdown
    text = draw(watched.certificate, watched.standing)
    if to is None:
        typer.echo(text, nl=False)
        return
    write_atomically(to, text.encode())
    typer.echo(f"Wrote {to}")


@app.command(epilog="Example: judgebench certificate anchors judge.json -n 10 --to today.jsonl")
def anchors(
    certificate: CertificateFile,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many.")] = 10,
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answers there (JSONL).")
    ] = None,
    state: StateOption = None,
) -> None:
    """Draw the anchors that are to be judged next, in an order that depends on no verdict.

    Every anchor comes once before any comes again. Texts are there if the certificate was issued
    --with-anchors; else their ids.
    """
    from judgebench import api
    from judgebench.certificate.record import anchor_line
    from judgebench.files import write_atomically

    drawn = api.watch(certificate, state=state or "").next_anchors(n)
    lines = [anchor_line(one) for one in drawn]
    if to is None:
        echo_each(lines)
        return
    write_atomically(to, "".join(f"{line}\n" for line in lines).encode())
    typer.echo(f"Wrote {to}: {len(drawn)} anchors. Next: judge them, then judgebench watch")


@app.command(epilog="Example: judgebench certificate renew judge.json log.csv --to renewal")
def renew(
    certificate: CertificateFile,
    new: New = None,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Draw what is to be labelled: a study for judgebench annotate."
        ),
    ] = None,
    decide: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Decide again, and write the new certificate there."),
    ] = None,
    who: Annotated[
        str, typer.Option(metavar="NAME,NAME", help="With --to: the annotators who will label.")
    ] = "",
    items: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many items to draw."),
    ] = None,
    by: Annotated[
        Literal["random", "uncertain"],
        typer.Option(
            metavar="random|uncertain",
            help="With --to: draw those of which the judge is uncertain more often.",
        ),
    ] = "random",
    again: Again = None,
    sign: Sign = None,
    state: StateOption = None,
    output: Output = ONE_SCREEN,
) -> None:
    """Renew a certificate: first draw what is to be labelled, then decide on old and new labels.

    Labels of old answers count again only where the watch says that answers and annotators are what
    they were; if the judge changed, with its new verdicts on the anchors.
    """
    from judgebench import api

    if (to is None) == (decide is None):
        raise SetupError(Problem("give either --to FOLDER or --decide FILE"))
    if to is not None:
        names = [name for name in who.split(",") if name]
        typer.echo(api.renewal(certificate, *(new or ()), to=to, annotators=names, items=items,
                               by=by, state=state or ""))  # fmt: skip
        return
    assert decide is not None
    found = api.renew(certificate, *(new or ()), state=state or "")
    show({"decide": found.decisions}, found.decisions.name, output)
    repeated = [api.open_run(one) if one.is_dir() else one for one in again or ()]
    made = found.certificate(key=sign, again=repeated).write(decide)
    if not output.json:
        output.console().print(f"Wrote {made}")
