"""Groups of commands, and the arguments and options that several commands have in common.

A parameter of a command that is a dataclass stands for the options that its fields declare: a
command that takes an `Output` has --verbose, --quiet and --json.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from judgebench.data.roles import Column
from judgebench.data.settings import TableSettings, settings_of
from judgebench.errors import Problem, raise_any

INTERRUPTED = 130  # exit code after Ctrl-C
_WIDEST = 120  # characters of a line of help
_MANY_OPTIONS = 15  # from which on they stand under headings
_OWN = "Options"  # the heading of those that are of one command
_SECTIONS: Mapping[str, Sequence[str]] = {
    "What tables hold": (
        "order", "question", "column", "item", "annotators", "judge", "spell", "blank",
        "failed", "several", "header", "skip", "fill_down", "repeats", "only_common",
    ),
    "How the labels were made": ("blind", "independent_items", "drawn"),
    _OWN: (),
    "Output": ("to", "save", "figures", "checklist", "verbose", "quiet", "json", "help"),
    "Certificate": ("certificate",),
    "Reference labels": ("truth", "ties", "annotator", "adjudicated"),
    "Other input": (
        "labels", "verdicts", "answers", "rubric", "expected", "as_judge",
    ),
}  # fmt: skip

# The same thing has the same name, the same word for its value and the same help everywhere.
BenchPath = Annotated[
    Path,
    typer.Argument(metavar="BENCH", help="A bench.yaml, or the name of a shipped example."),
]
RunDir = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, such as runs/demo.")]
RunOrTables = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="RUN|TABLE",
        help="A run folder, such as runs/demo; or tables: labels.xlsx gpt4.xlsx, or a layout.yaml "
        "that says what they hold.",
    ),
]
VerdictsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--verdicts",
        metavar="FILE",
        help="Beside labels: verdicts of a judge, named by a column `judge` or the file. "
        "Repeatable.",
    ),
]
AnswersOption = Annotated[
    Path | None,
    typer.Option("--answers", metavar="FILE", help="Beside labels: answers, if at hand."),
]
StudyRubric = Annotated[
    str | None,
    typer.Option("--rubric", metavar="RUBRIC", help="A rubric: a file or a shipped name."),
]
RunOption = Annotated[
    Path | None,
    typer.Option(
        "--run", metavar="RUN", help="The run folder. Default: runs/NAME in the current folder."
    ),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data-folder", metavar="FOLDER", help="Where the data files are, if not as the YAML says."
    ),
]
RubricOption = Annotated[
    str, typer.Option("--rubric", metavar="RUBRIC", help="A rubric: a file or a shipped name.")
]
Limit = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Use only the first N answers.")
]
Budget = Annotated[
    float | None,
    typer.Option(
        min=0, metavar="USD", help="Most US dollars that this run folder may cost in total."
    ),
]
Seed = Annotated[
    int, typer.Option(metavar="N", help="The same seed draws the same.", show_default=True)
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done and cost; call no model.")
]
LocalOnly = Annotated[
    bool,
    typer.Option(
        "--local-only",
        help="Refuse, before the first call, every model that would contact another machine.",
    ),
]
BatchOption = Annotated[
    bool,
    typer.Option(
        "--batch",
        help="Send remote judges batches, which cost less and take up to a day. Rerun to collect.",
    ),
]
EngineOption = Annotated[
    Literal["threads", "ray"],
    typer.Option(metavar="threads|ray", help="`ray` spreads the answers over a Ray cluster."),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Ray workers. Default: one per GPU, without GPUs one per machine."
    ),
]
AsJudge = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Treat an annotator (a name, or a pattern such as 'expert*') as a judge and compare "
        "them with the others: a blank cell or missing row of theirs counts as failed. Repeatable.",
    ),
]
Figures = Annotated[
    bool,
    typer.Option("--figures", help="Also draw figures: in the page, and as PNG and PDF files."),
]
Checklist = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Also fill a reporting checklist: `grras`, or a YAML file of the same form.",
    ),
]
Every = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Also compare responses to the same question that nobody compared: pairs, triples and "
        "win rates from the labels of each.",
    ),
]
DecisionRuleOption = Annotated[
    str | None,
    typer.Option("--rule", metavar="FILE", help="The decision rule: a YAML file."),
]


@dataclass(frozen=True)
class Named:
    """What is said of tables: what columns are, and what texts mean."""

    order: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABELS",
            help="Labels from the least to the most severe, such as 'Safe < Unsure < Unsafe'; the "
            "last counts as severe. After 'METRIC: ' if there are several. Repeatable. `none`, or "
            "'METRIC: none': no label is worse than another.",
        ),
    ] = None
    question: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that says which items answer the same question.",
        ),
    ] = None
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=ROLE",
            help="What a column is: item, annotator, label, verdict, reply, kept, ignored, … "
            "(`judgebench list roles`); also 'kim=label harm by Kim'. Repeatable.",
        ),
    ] = None
    item: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of item ids; or several: id,system."),
    ] = None
    annotators: Annotated[
        str | None,
        typer.Option(metavar="COLUMN,COLUMN", help="The columns of annotators, one for each."),
    ] = None
    judge: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The judges that count; of the only one, its name."),
    ] = None
    spell: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT=LABEL", help="A text that means a label. Repeatable."),
    ] = None
    blank: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A text that means no label, such as NA. Repeatable."),
    ] = None
    failed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="A text that means that the judge failed, such as ERROR; '*': whatever is no "
            "label. Repeatable.",
        ),
    ] = None
    several: Annotated[
        str, typer.Option(metavar="SIGN", help="What stands between several labels in a cell.")
    ] = ""
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="[FILE:]ROW", help="The row of the columns' names; two: 1,2."),
    ] = None
    skip: Annotated[
        list[str] | None,
        typer.Option(metavar="[FILE:]ROW,ROW", help="Rows that are no items, such as totals."),
    ] = None
    fill_down: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Blank cells mean the cell above, as merged ones do."),
    ] = None
    repeats: Annotated[
        Literal["first", "last"] | None,
        typer.Option(
            metavar="first|last", help="Which of several labels of one person on an item counts."
        ),
    ] = None
    only_common: Annotated[
        bool,
        typer.Option("--only-common", help="Leave out items that some table lacks."),
    ] = False

    @property
    def settings(self) -> TableSettings:
        """What the options say. Raises SetupError."""
        names = (field.name for field in fields(Named) if field.name != "column")
        options: dict[str, Any] = {name: value for name in names if (value := getattr(self, name))}
        for name in ("annotators", "item", "judge"):
            if name in options:
                options[name] = options[name].split(",")
        if self.question:  # a list, as a column may be called like a role
            options["question"] = [self.question]
        return settings_of(options).with_more(_columns_said(self.column))


def _columns_said(texts: Sequence[str] | None) -> TableSettings:
    """The roles in texts such as `kim=label harm by Kim`. Raises SetupError."""
    columns, problems = dict[str, Column](), list[Problem]()
    for text in texts or ():
        before, of_probability, after = text.rpartition("=probability ")  # of METRIC=LABEL
        name, _, role = (
            (before, "", f"probability {after}") if of_probability else text.rpartition("=")
        )
        try:
            columns[name] = Column.parse(role)
        except ValueError as error:
            problems.append(Problem(str(error), field="--column", found=text))
    raise_any(problems)
    return TableSettings(columns=columns)


@dataclass(frozen=True)
class Files(Named):
    """Files that are scored in place of a run folder."""

    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Also write what the columns are, with the answers to all questions, as a "
            "layout.yaml, bench.yaml and rubric.",
        ),
    ] = None

    labels: Annotated[
        list[Path] | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="A table of human labels; of several, each is that of an annotator. Repeatable.",
        ),
    ] = None
    verdicts: VerdictsOption = None
    answers: AnswersOption = None
    rubric: StudyRubric = None
    expected: Annotated[
        Literal["items", "rows"],
        typer.Option(
            "--expected",
            metavar="items|rows",
            help="Were all items meant for the judges, or those with a row?",
        ),
    ] = "items"


@dataclass(frozen=True)
class Truth:
    """The making of the labels, and the rule by which they become a truth; what is not set is as
    the run's own settings say."""

    truth: Annotated[
        str | None,
        typer.Option(
            "--truth",
            metavar="RULE",
            help="median, majority, dawid_skene or each. Default: median, or as in the run.",
        ),
    ] = None
    ties: Annotated[
        str | None,
        typer.Option(metavar="TIES", help="lower, upper or none. Default: as in the run."),
    ] = None
    annotator: Annotated[
        list[str] | None,
        typer.Option(
            "--annotator",
            metavar="NAME",
            help="Whose labels make the reference labels: a name or a pattern. Repeatable.",
        ),
    ] = None
    adjudicated: Annotated[
        bool,
        typer.Option(
            "--adjudicated",
            help="Where a label of `adjudicated` is there, it is the reference label.",
        ),
    ] = False

    blind: Annotated[
        str | None,
        typer.Option(
            "--blind",
            metavar="yes|no|unknown",
            help="Did annotators label without sight of any model's label? Default: unknown, or "
            "as in the run.",
        ),
    ] = None
    independent_items: Annotated[
        bool,
        typer.Option(
            "--independent-items",
            help="Each item is a question of its own, where no column names the questions.",
        ),
    ] = False
    drawn: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOW",
            help="How labelled answers were drawn: random, or by a column: weight=COLUMN, "
            "probability=COLUMN, strata=COLUMN. Repeatable.",
        ),
    ] = None

    @property
    def settings(self) -> dict[str, object]:
        """The keys of a TruthConfig that are set."""
        keys = {"truth": "rule", "annotator": "annotators"}
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        return {keys.get(name, name): value for name, value in options.items() if value}


@dataclass(frozen=True)
class Extent:
    """The amount that is judged, at what cost, and of which data."""

    limit: Limit = None
    budget: Budget = None
    dry_run: DryRun = False
    data_folder: DataFolder = None


NO_FILES, AS_IN_THE_RUN, EVERYTHING = Files(), Truth(), Extent()
NOT_NAMED = Named()


def columns_of(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """The columns by role of texts `ROLE=COLUMN`. Raises SetupError for other texts."""
    pairs = {text: text.partition("=")[::2] for text in given or ()}
    problems = [
        Problem("needs a role and a column", field=option, found=text, allowed="ROLE=COLUMN")
        for text, pair in pairs.items()
        if not all(pair)
    ]
    raise_any(problems)
    return dict(pairs.values())


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

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command, as of any group; one that stands outside the group is named."""
        if args[0] not in self.commands and args[0] in ctx.find_root().command.commands:
            ctx.fail(f"No such command '{args[0]}'. Did you mean 'judgebench {args[0]}'?")
        return super().resolve_command(ctx, args)

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
        """As `typer.Typer.command`, of a function that may take dataclasses of options."""
        add = super().command(name, cls=_Command, **settings)

        def added(verb: Verb) -> Verb:
            add(_flat(verb))
            return verb

        return added

    def include(self, others: Commands) -> None:
        """Add the commands and the groups of `others`."""
        self.registered_commands += others.registered_commands
        self.registered_groups += others.registered_groups


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
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
