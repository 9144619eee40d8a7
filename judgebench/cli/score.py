"""The verbs that score a run again from its folder alone: align, decide, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgebench.shipped import DECISION_RULE

if TYPE_CHECKING:
    from rich.console import Console

    from judgebench.align import Alignment
    from judgebench.decide.result import Decisions
    from judgebench.ranking.result import Rankings
    from judgebench.results.rows import Results
    from judgebench.stress.result import StressResult
    from judgebench.study.truth import TruthConfig

NOT_REACHED = 3  # exit code where an outcome that --require names was not reached

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
    str, typer.Option("--rule", help="The rule of the decisions: a YAML file.")
]


@dataclass(frozen=True)
class Scoring:
    """How a run is scored; None means as its own settings say."""

    truth: str | None = None
    ties: str | None = None
    annotators: Sequence[str] | None = None
    as_judges: Sequence[str] = ()
    rule: str = DECISION_RULE


@dataclass(frozen=True)
class Scored:
    """What a report is made of."""

    alignment: Alignment
    stress: StressResult | None
    decisions: Decisions
    rankings: Rankings | None = None

    @property
    def shown_decisions(self) -> Decisions | None:
        """None without human labels: then there is nothing to decide on, and a report is silent."""
        return self.decisions if self.alignment.n_labels else None


def score(run: Path, scoring: Scoring = Scoring()) -> Scored:
    """Score a run from its folder alone. Raises SetupError where it holds none or is damaged."""
    from judgebench.align import align as align_study
    from judgebench.decide.rule import load_rule
    from judgebench.decide.run import decide as decide_all
    from judgebench.ranking.run import rank_folder
    from judgebench.runner.bench import BenchConfig
    from judgebench.stats.resample import Resampling
    from judgebench.store.folder import RunFolder
    from judgebench.store.open import open_run
    from judgebench.stress.read import stress_run

    rule = load_rule(scoring.rule)
    folder = RunFolder.existing(run)
    settings = BenchConfig.model_validate(folder.manifest()["settings"])
    rule.check(folder.rubric(), scoring.rule)
    resampling = Resampling(
        resamples=settings.report.resamples, seed=settings.seed, level=settings.report.level
    )
    truth = _truth(settings.truth, scoring)
    stressed = stress_run(folder, truth, resampling, settings.stress.half_width)
    study = open_run(folder, truth, resampling, scoring.as_judges)
    decisions = decide_all(study, rule, None if stressed is None else _stress_rows(stressed))
    rankings = rank_folder(folder, resampling)
    return Scored(align_study(study), stressed, decisions, rankings)


def _stress_rows(stress: StressResult) -> Results:
    """What decisions use of a stress test."""
    from judgebench.results.rows import Results, Row

    return Results(
        (
            *(
                Row("invariance", "robustness", x.robustness, x.judge, x.metric,
                    {"recipe": x.probe})
                for x in stress.invariances
            ),
            *(
                Row("planted", "success", x.success, x.judge, x.metric, {"recipe": x.trick})
                for x in stress.planted
            ),
        )
    )  # fmt: skip


def _truth(of_run: TruthConfig, scoring: Scoring) -> TruthConfig:
    from judgebench.study.truth import TruthConfig
    from judgebench.yaml_file import validate

    annotators = tuple(scoring.annotators) if scoring.annotators else None
    asked = {"rule": scoring.truth, "ties": scoring.ties, "annotators": annotators}
    given = {key: value for key, value in asked.items() if value is not None}
    return validate({**of_run.model_dump(), **given}, TruthConfig, file="command line")


def align(
    run: RunDir,
    truth: Rule = None,
    ties: Ties = None,
    annotator: Annotators = None,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = DECISION_RULE,
) -> None:
    """Score a run again from its folder alone; print the tables."""
    from rich.console import Console

    from judgebench.report.old.write import print_tables

    scored = score(run, Scoring(truth, ties, annotator, as_judge or (), rule))
    print_tables(
        scored.alignment, Console(), scored.stress, scored.shown_decisions, scored.rankings
    )


def decide(
    run: RunDir,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="OUTCOME:METRIC or OUTCOME:METRIC:JUDGE that must be reached, else the exit code "
            f"is {NOT_REACHED}; may be repeated."
        ),
    ] = None,
    rule: DecisionRuleOption = DECISION_RULE,
    as_judge: AsJudge = None,
    truth: Rule = None,
    ties: Ties = None,
    annotator: Annotators = None,
) -> None:
    """May a judge replace annotators, assist them, or neither? One line a metric and judge.

    REPLACE also satisfies a demand for ASSIST. Without a judge's name any judge may reach it.
    """
    from rich.console import Console

    from judgebench.decide.outcome import demands, unreached
    from judgebench.report.terminal import print_parts

    scored = score(run, Scoring(truth, ties, annotator, as_judge or (), rule))
    asked = demands(require or (), scored.decisions)
    console = Console()
    print_parts([scored.decisions.part], console)
    missed = unreached(asked, scored.decisions)
    for demand in missed:
        console.print(f"not reached: {demand}", style="red", highlight=False, markup=False)
    if missed:
        raise typer.Exit(NOT_REACHED)


def report(
    run: RunDir,
    to: Annotated[Path | None, typer.Option(help="Where to write. Default: RUN/report.")] = None,
    truth: Rule = None,
    ties: Ties = None,
    annotator: Annotators = None,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = DECISION_RULE,
) -> None:
    """Write a run's report: Markdown, LaTeX, CSV, plots, one HTML page."""
    from judgebench.report.old.write import write_report

    scored = score(run, Scoring(truth, ties, annotator, as_judge or (), rule))
    folder = to or run / "report"
    written = write_report(
        scored.alignment, folder, scored.stress, scored.shown_decisions, scored.rankings
    )
    for path in written.values():
        typer.echo(path)


def report_and_print(run: Path, console: Console) -> None:
    """What ends a run: the report's files, and the tables on the screen."""
    from judgebench.report.old.write import print_tables, write_report

    scored = score(run)
    shown = (scored.alignment, scored.stress, scored.shown_decisions, scored.rankings)
    written = write_report(shown[0], run / "report", *shown[1:])
    print_tables(shown[0], console, *shown[1:])
    console.print(f"Report: {written['html']}", highlight=False, markup=False, soft_wrap=True)
