"""Arguments and options that several commands have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

INTERRUPTED = 130  # exit code after Ctrl-C

BenchPath = Annotated[Path, typer.Argument(help="bench.yaml, or the name of a shipped example.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Take the first N answers only.")]
Budget = Annotated[
    float | None, typer.Option(min=0, help="US dollars that this run folder may cost in all.")
]
ShardOption = Annotated[
    str | None,
    typer.Option(help="Do part K of N of the answers, beside other processes: 2/8."),
]
EngineOption = Annotated[
    Literal["threads", "ray"], typer.Option(help="ray: spread the answers over a Ray cluster.")
]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, help="Ray workers. Default: one a GPU, else one a machine.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say how many calls, tokens and dollars.")
]
RunOption = Annotated[
    Path | None, typer.Option("--run", help="The run folder. Default: runs/NAME, here.")
]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data-folder", help="Where data files lie, if not where the YAML says."),
]
RunDir = Annotated[Path, typer.Argument(help="The run folder, such as runs/demo.")]
Rule = Annotated[
    str | None,
    typer.Option("--truth", help="median, majority, dawid_skene or each. Default: as in the run."),
]
Ties = Annotated[str | None, typer.Option(help="lower, upper or none. Default: as in the run.")]
Annotators = Annotated[
    list[str] | None,
    typer.Option("--annotator", help="Who makes the truth: a name or pattern; may be repeated."),
]
AsJudge = Annotated[
    list[str] | None,
    typer.Option(help="An annotator to hold against the others as if a judge; may be repeated."),
]
DecisionRuleOption = Annotated[
    str | None, typer.Option("--rule", help="The rule of the decisions: a YAML file.")
]


@dataclass(frozen=True)
class Scoring:
    """How a run is scored; None means as its own settings say."""

    truth: str | None = None
    ties: str | None = None
    annotators: Sequence[str] | None = None
    as_judges: Sequence[str] = ()
    rule: str | None = None


AS_IN_THE_RUN = Scoring()
