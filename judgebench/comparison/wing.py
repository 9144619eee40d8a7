"""The compare wing: is one run, or one judge, better or worse than another on the same items?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from judgebench.runs.wing import Wing

if TYPE_CHECKING:
    import typer


def _commands(app: typer.Typer) -> None:
    from judgebench.comparison import commands

    epilog = "Example: judgebench compare runs/last-month runs/today --fail-on worse"
    app.command(epilog=epilog)(commands.compare)


WING = Wing(name="compare", commands=_commands)
