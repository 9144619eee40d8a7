"""Arguments and options that several commands have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

INTERRUPTED = 130  # exit code after Ctrl-C

BenchPath = Annotated[Path, typer.Argument(help="bench.yaml, or the name of a shipped example.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Use only the first N answers.")]
Budget = Annotated[
    float | None,
    typer.Option(min=0, help="Most US dollars that this run folder may cost in total."),
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        help="Judge part K of N of the answers, while other processes judge the rest: 2/8."
    ),
]
EngineOption = Annotated[
    Literal["threads", "ray"], typer.Option(help="`ray` spreads the answers over a Ray cluster.")
]
WorkersOption = Annotated[
    int | None,
    typer.Option(min=1, help="Ray workers. Default: one per GPU, without GPUs one per machine."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Estimate calls, tokens and cost; call no model.")
]
RunOption = Annotated[
    Path | None,
    typer.Option("--run", help="The run folder. Default: runs/NAME in the current folder."),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data-folder", help="The folder of the data files, if it is not the one in the YAML."
    ),
]
RunDir = Annotated[Path, typer.Argument(help="The run folder, such as runs/demo.")]
Rule = Annotated[
    str | None,
    typer.Option("--truth", help="median, majority, dawid_skene or each. Default: as in the run."),
]
Ties = Annotated[str | None, typer.Option(help="lower, upper or none. Default: as in the run.")]
Annotators = Annotated[
    list[str] | None,
    typer.Option(
        "--annotator", help="Whose labels make the truth: a name or a pattern. Repeatable."
    ),
]
AsJudge = Annotated[
    list[str] | None,
    typer.Option(
        help="Treat this annotator as a judge and compare them with the others. Repeatable."
    ),
]
DecisionRuleOption = Annotated[
    str | None, typer.Option("--rule", help="The decision rule: a YAML file.")
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
