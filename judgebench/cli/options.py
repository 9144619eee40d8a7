"""Arguments and options that several commands have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from judgebench.errors import Problem, SetupError

INTERRUPTED = 130  # exit code after Ctrl-C

# The same thing has the same name, the same word for its value and the same help everywhere.
BenchPath = Annotated[
    Path,
    typer.Argument(metavar="BENCH", help="A bench.yaml, or the name of a shipped example."),
]
RunDir = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, such as runs/demo.")]
RunOrFiles = Annotated[
    Path | None,
    typer.Argument(metavar="RUN", help="A run folder, such as runs/demo; or give --labels."),
]
LabelsOption = Annotated[
    Path | None,
    typer.Option("--labels", metavar="FILE", help="Human labels, instead of a run folder."),
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
ExpectedOption = Annotated[
    Literal["items", "rows"],
    typer.Option(
        "--expected",
        metavar="items|rows",
        help="Beside --verdicts or --as-judge: were labels due on all items, or on those with a "
        "row?",
    ),
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
Seed = Annotated[
    int, typer.Option(metavar="N", help="The same seed draws the same.", show_default=True)
]
Budget = Annotated[
    float | None,
    typer.Option(
        min=0, metavar="USD", help="Most US dollars that this run folder may cost in total."
    ),
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
ShardOption = Annotated[
    str | None,
    typer.Option(
        metavar="K/N",
        help="Judge part K of N of the answers, while other processes judge the rest: 2/8.",
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
Rule = Annotated[
    str | None,
    typer.Option(
        "--truth",
        metavar="RULE",
        help="median, majority, dawid_skene or each. Default: as in the run.",
    ),
]
Ties = Annotated[
    str | None,
    typer.Option(metavar="TIES", help="lower, upper or none. Default: as in the run."),
]
Annotators = Annotated[
    list[str] | None,
    typer.Option(
        "--annotator",
        metavar="NAME",
        help="Whose labels make the truth: a name or a pattern. Repeatable.",
    ),
]
Blind = Annotated[
    Literal["yes", "no", "unknown"] | None,
    typer.Option(
        "--blind",
        metavar="yes|no|unknown",
        help="Did annotators label without sight of any model's label? Default: as in the run.",
    ),
]
IndependentItems = Annotated[
    bool,
    typer.Option(
        "--independent-items",
        help="Each item is a question of its own, where no column names the questions.",
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
AllowIncomplete = Annotated[
    bool,
    typer.Option(
        "--allow-incomplete",
        help="Go on with what is left where files of the run are missing or damaged; every table "
        "then says so.",
    ),
]
Figures = Annotated[
    bool,
    typer.Option("--figures", help="Also write each figure of the page as files: PNG and PDF."),
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
class Scoring:
    """How a run is scored; None means as its own settings say."""

    truth: str | None = None
    ties: str | None = None
    annotators: Sequence[str] | None = None
    as_judges: Sequence[str] = ()
    rule: str | None = None
    allow_incomplete: bool = False
    blind: str | None = None
    independent_items: bool = False


AS_IN_THE_RUN = Scoring()


@dataclass(frozen=True)
class Files:
    """Files that are scored in place of a run folder."""

    labels: Path | None = None
    verdicts: Sequence[Path] = ()
    answers: Path | None = None
    rubric: str | None = None
    expected: Literal["items", "rows"] = "items"


NO_FILES = Files()


def columns_of(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """The columns by role of texts `ROLE=COLUMN`. Raises SetupError for other texts."""
    pairs = {text: text.partition("=")[::2] for text in given or ()}
    problems = [
        Problem("needs a role and a column", field=option, found=text, allowed="ROLE=COLUMN")
        for text, pair in pairs.items()
        if not all(pair)
    ]
    if problems:
        raise SetupError(problems)
    return dict(pairs.values())
