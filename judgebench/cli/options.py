"""The arguments and options that several commands have in common.

The same thing has the same name, the same word for its value and the same help everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from judgebench.cli.groups import flag, option, options
from judgebench.data.settings import LISTED_SETTINGS, SINGLE, TableSettings, settings_of
from judgebench.data.vocabulary import Column
from judgebench.errors import Problem, SetupError, raise_any

BenchPath = Annotated[
    Path,
    typer.Argument(metavar="BENCH", help="A bench.yaml, or the name of a shipped example."),
]
RunDir = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, such as runs/demo.")]
RunOrTables = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="RUN|TABLE",
        help="A run folder, tables (labels.xlsx gpt4.xlsx) or a layout.yaml.",
    ),
]
VerdictsOption = Annotated[
    list[Path] | None,
    typer.Option("--verdicts", metavar="FILE", help="A table of a judge's verdicts. Repeatable."),
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
AnnotatorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--annotator",
        metavar="NAME",
        help="Whose labels make reference labels. Repeatable.",
    ),
]
AsJudge = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="An annotator to compare like a judge. Repeatable.",
    ),
]
Figures = Annotated[
    bool, typer.Option("--figures", help="Also draw figures as PNG, PDF and SVG files.")
]
Every = Annotated[
    bool,
    typer.Option("--all", help="Also compare responses that nobody compared."),
]
AnchorsOption = Annotated[
    Path | None,
    typer.Option("--anchors", metavar="FILE", help="Labels of answers whose label is known."),
]
DecisionRuleOption = Annotated[
    str | None, typer.Option("--rule", metavar="FILE", help="The decision rule: a YAML file.")
]

ProtocolOption = Annotated[
    Path | None,
    typer.Option(
        "--protocol", metavar="FILE", help="What a study promises before its first label."
    ),
]


@options
class Named:
    """Facts about tables: the roles of columns, the meaning of texts, and which holds what."""

    order: list[str] | None = option(
        None,
        "LABELS",
        "From least to most severe: 'Safe < Unsafe', or 'METRIC: Safe < Unsafe'; or none. "
        "Repeatable.",
    )
    severe: list[str] | None = option(
        None, "none", "Of a score: no label is severe; or 'METRIC: none'."
    )
    question: str | None = option(None, "COLUMN", "Which items answer the same question.")
    column: list[str] | None = option(
        None,
        "COLUMN=ROLE",
        "Its role: `judgebench list roles`. Repeatable.",
    )
    item: str | None = option(None, "COLUMN", "The column of item ids; several: id,system.")
    annotators: str | None = option(None, "COLUMN,…", "The columns of annotators, one for each.")
    judge: str | None = option(None, "NAME", "Judges that count; the name of the only one.")
    spell: list[str] | None = option(None, "TEXT=LABEL", "A text that means a label. Repeatable.")
    blank: list[str] | None = option(
        None, "TEXT", "A text that means no label, such as NA. Repeatable."
    )
    failed: list[str] | None = option(
        None, "TEXT", "A text that means that the judge failed; '*': all."
    )
    set: list[str] | None = option(
        None,
        "KEY=VALUE",
        "Rarer settings: `judgebench list settings`. Repeatable.",
    )
    labels: list[Path] | None = option(None, "FILE", "A table of human labels. Repeatable.")
    verdicts: VerdictsOption = None

    @property
    def settings(self) -> TableSettings:
        """What the options say. Raises SetupError."""
        names = (field.name for field in fields(Named) if field.name not in ("column", "set"))
        given: dict[str, Any] = {name: value for name in names if (value := getattr(self, name))}
        listed = ("annotators", "item", "judge")
        given |= {name: given[name].split(",") for name in listed if name in given}
        if self.question:  # a list, as a column may be called like a role
            given["question"] = [self.question]
        settings = settings_of(given)
        for text in self.set or ():
            settings = settings.with_more(_rarer_setting(text))
        return settings.with_more(_roles(self.column))


def _rarer_setting(text: str) -> TableSettings:
    """The setting in a text such as `header=1,2`. Raises SetupError."""
    key, _, value = text.partition("=")
    if key not in LISTED_SETTINGS:
        allowed = ", ".join(LISTED_SETTINGS)
        raise SetupError(Problem("is no such setting", "", None, "--set", text, allowed))
    try:  # of a list, as a column may be called like a role
        return settings_of({key: value if key in SINGLE else [value]})
    except SetupError as error:
        problems = [replace(problem, field="--set", found=text) for problem in error.problems]
        raise SetupError(problems) from None


def _roles(texts: Sequence[str] | None) -> TableSettings:
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


@options
class People:
    """Who labelled, where a name leaves it open."""

    annotator: AnnotatorOption = None
    as_judge: AsJudge = None


@options
class Files(Named):
    """Files that are scored in place of a run folder."""

    save: Path | None = option(None, "FOLDER", "Also write a layout.yaml, bench.yaml and rubric.")
    rubric: StudyRubric = None
    expected: Literal["items", "rows"] = option(
        "items", "items|rows", "Due: all items (default) or those with a row.", show_default=False
    )


@options
class Truth:
    """The making of the labels, and the rule by which they become a truth; what is not set is as
    the run's own settings say."""

    truth: str | None = option(None, "RULE", "median, majority, dawid_skene or each.")
    annotator: AnnotatorOption = None
    adjudicated: bool = flag("Labels of `adjudicated` are reference labels.")
    blind: str | None = option(
        None, "yes|no|unknown", "Did people label without sight of any model?"
    )
    independent_items: bool = flag("Each item is a question of its own.")
    drawn: list[str] | None = option(
        None, "HOW", "random, or by COLUMN: weight=, probability=, strata="
    )

    @property
    def settings(self) -> dict[str, object]:
        """The keys of a TruthConfig that are set."""
        keys = {"truth": "rule", "annotator": "annotators"}
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        return {keys.get(name, name): value for name, value in options.items() if value}


@options
class Extent:
    """The amount that is judged, at what cost, and of which data."""

    limit: Limit = None
    budget: Budget = None
    dry_run: DryRun = False
    data_folder: DataFolder = None


NO_FILES, AS_IN_THE_RUN, EVERYTHING = Files(), Truth(), Extent()
NOT_NAMED, NOBODY = Named(), People()


def said_of_tables(named: Named, people: People) -> dict[str, Any]:
    """Return the facts of the options as `columns` in Python. Raises SetupError."""
    names = {"person": people.annotator or (), "as_judge": people.as_judge or ()}
    return named.settings.with_more(settings_of(names)).as_columns()


def pairs_of(texts: Sequence[str], option: str) -> dict[str, str]:
    """What stands after `=`, by what stands before. Raises SetupError for other texts."""
    pairs = {text: text.partition("=")[::2] for text in texts}
    message = "needs two parts with = between them"
    wrong = (text for text, pair in pairs.items() if not all(pair))
    raise_any([Problem(message, field=option, found=text) for text in wrong])
    return dict(pairs.values())
