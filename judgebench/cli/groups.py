"""Groups of commands, and how commands and their options are declared.

A parameter of a command that is a block of `options` stands for the options that its fields
declare: a command that takes an `Output` has --verbose, --quiet and --json.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Any, ClassVar, TypeVar, dataclass_transform, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

_WIDEST = 120  # characters of a line of help
_MANY_OPTIONS = 15  # from which on they stand under headings
_OWN = "Options"  # the heading of those that are of one command
_SECTIONS: Mapping[str, Sequence[str]] = {
    "What tables hold": (
        "order", "severe", "question", "column", "item", "annotators", "judge", "spell", "blank",
        "failed", "set", "labels", "verdicts", "rubric", "expected",
    ),
    "Labels": (
        "blind", "independent_items", "drawn", "truth", "annotator", "adjudicated", "as_judge",
    ),
    _OWN: (),
    "Output": ("to", "save", "figures", "checklist", "verbose", "quiet", "json", "help"),
}  # fmt: skip

Block = TypeVar("Block")


def option(default: Any, metavar: str, help: str, *names: str, **limits: Any) -> Any:
    """An option with a value, called like its parameter unless it has other `names`."""
    return typer.Option(default, *names, metavar=metavar, help=help, **limits)


def flag(help: str, *names: str) -> Any:
    """An option without a value."""
    return typer.Option(False, *names, help=help)


def argument(metavar: str, help: str, default: Any = ...) -> Any:
    """An argument, which has to be given unless it has a default."""
    return typer.Argument(default, metavar=metavar, help=help)


@dataclass_transform(frozen_default=True)
def options(block: type[Block]) -> type[Block]:
    """Make a frozen dataclass of the class, whose fields a command takes as options."""
    declared = {name: info for name, info in vars(block).items() if isinstance(info, OptionInfo)}
    for name, info in declared.items():
        setattr(block, name, info.default)
    made = dataclass(frozen=True)(block)
    setattr(made, "declared", {**getattr(block, "declared", {}), **declared})  # noqa: B010
    return made


Verb = TypeVar("Verb", bound=Callable[..., Any])


class _Command(TyperCommand):
    """A command whose help names what its arguments are (RUN, FILE), not their Python types. The
    default of a group goes by the group's name: nobody types `stress bench`."""

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        if parent and info_name == getattr(parent.command, "default", None):
            info_name, parent = parent.info_name, parent.parent
        return super().make_context(info_name, args, parent, **extra)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = ["[OPTIONS]"]
        for param in self.get_params(ctx):
            if param.param_type_name == "argument":
                name = param.metavar if param.required else f"[{param.metavar}]"
                pieces.append(f"{name}..." if param.nargs != 1 else str(name))
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        params = self.get_params(ctx)
        rows: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Arguments", *_SECTIONS)}
        of = {name: title for title, names in _SECTIONS.items() for name in names}
        for param in params:
            if (row := param.get_help_record(ctx)) is None:
                continue
            if param.param_type_name == "argument":
                rows["Arguments"].append((str(param.metavar), row[1]))
            else:
                title = of.get(str(param.name), _OWN) if len(params) > _MANY_OPTIONS else _OWN
                rows[title].append(row)
        for title, found in rows.items():
            if found:
                with formatter.section(title):
                    formatter.write_dl(found)


class Group(TyperGroup):
    """Commands, each with the first sentence of its help, under the headings of `sections`.

    Arguments that begin with no command's name are those of the command `default`, whose help is
    the group's.
    """

    sections: ClassVar[Mapping[str, Sequence[str]]] = {}
    rest = "Commands"  # heading of all others
    default: ClassVar[str] = ""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.default:
            self.help = self.commands[self.default].help
            self.epilog = self.commands[self.default].epilog

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if self.default and not ctx.resilient_parsing:
            is_bare = not args and any(p.required for p in self.commands[self.default].params)
            if not is_bare and args[:1] not in [["-h"], ["--help"], *([c] for c in self.commands)]:
                args = [self.default, *args]
        return list(super().parse_args(ctx, args))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = list(super().collect_usage_pieces(ctx))
        if self.default:
            return [*self.commands[self.default].collect_usage_pieces(ctx), "|", *pieces[1:]]
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        before = {self.default, *(name for names in self.sections.values() for name in names)}
        others = [name for name in self.commands if name not in before]
        width = max(map(len, self.commands))
        if self.default:
            self.commands[self.default].format_options(ctx, formatter)
        for title, names in {**self.sections, self.rest: others}.items():
            present = [self.commands[name] for name in names if name in self.commands]
            with formatter.section(title):
                formatter.write_dl([(str(c.name).ljust(width), _summary(c.help)) for c in present])
        if self.default:
            return
        records = [param.get_help_record(ctx) for param in self.get_params(ctx)]
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record])


def _summary(help: str | None) -> str:
    first = re.split(r"(?<=[.?])\s", inspect.cleandoc(help or ""), maxsplit=1)[0]
    return " ".join(first.split())


class Commands(typer.Typer):
    """A group of commands of judgebench, such as `judgebench rank`; with a `default`, that command
    may be left out: `judgebench score FILE` is `judgebench score table FILE`."""

    def __init__(self, help: str = "", cls: type[Group] = Group, default: str = "") -> None:
        super().__init__(
            cls=type("Group", (cls,), {"default": default}),
            no_args_is_help=True,
            context_settings={
                "help_option_names": ["-h", "--help"],
                "max_content_width": _WIDEST,  # else as wide as the terminal
            },
            pretty_exceptions_enable=False,  # they would print what the code holds
            rich_markup_mode=None,  # rich alone would take a quarter of a second to import
            help=help,
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Verb], Verb]:
        """As `typer.Typer.command`, of a function that may take blocks of options. The end of its
        docstring, from `Example: ` on, stands at the end of the help."""

        def added(verb: Verb) -> Verb:
            help, _, example = inspect.cleandoc(verb.__doc__ or "").partition("\n\nExample: ")
            end = f"Example: {example}" if example else None
            super(Commands, self).command(
                name, cls=_Command, help=help, **{"epilog": end, **settings}
            )(_flat(verb))
            return verb

        return added


def _flat(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The command with a parameter for each field of its dataclasses, in their place."""
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: one for name, one in hints.items() if is_dataclass(one)}
    parameters: list[inspect.Parameter] = []
    for name, given in inspect.signature(verb).parameters.items():
        if name in groups:
            parameters += _options_of(groups[name])
        else:
            parameters.append(given.replace(annotation=hints[name], kind=given.KEYWORD_ONLY))
    for parameter in parameters:
        if parameter.annotation is bool and not parameter.default.param_decls:
            parameter.default.param_decls = (f"--{parameter.name.replace('_', '-')}",)

    @wraps(verb)
    def called(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        return verb(**given)

    del called.__wrapped__
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called


def _options_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=group.declared.get(field.name, field.default),
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
