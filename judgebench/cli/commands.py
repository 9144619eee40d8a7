"""The class of all groups of commands: what their help says, and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

Verb = TypeVar("Verb", bound=Callable[..., Any])


class _Command(TyperCommand):
    """A command whose help names what its arguments are (RUN, FILE), not their Python types."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = ["[OPTIONS]"]
        for param in self.get_params(ctx):
            if param.param_type_name == "argument":
                name = param.metavar if param.required else f"[{param.metavar}]"
                pieces.append(f"{name}..." if param.nargs != 1 else str(name))
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            if (row := param.get_help_record(ctx)) is None:
                continue
            if param.param_type_name == "argument":
                rows["Arguments"].append((str(param.metavar), row[1]))
            else:
                rows["Options"].append(row)
        for title, found in rows.items():
            if found:
                with formatter.section(title):
                    formatter.write_dl(found)


class Commands(typer.Typer):
    """A group of commands of judgebench, such as `judgebench rank`."""

    def __init__(self, help: str) -> None:
        super().__init__(
            no_args_is_help=True,
            context_settings={"help_option_names": ["-h", "--help"]},
            pretty_exceptions_enable=False,  # they would print what the code holds
            rich_markup_mode=None,  # rich alone would take a quarter of a second to import
            help=help,
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Verb], Verb]:
        """As `typer.Typer.command`."""
        return super().command(name, cls=_Command, **settings)
