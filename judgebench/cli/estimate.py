"""`judgebench estimate`: how often does each label occur, by system?"""

from __future__ import annotations

from typing import Any

from judgebench.cli.groups import flag, option
from judgebench.cli.options import (
    AS_IN_THE_RUN,
    NO_FILES,
    AsJudge,
    Files,
    RunOrTables,
    Truth,
    pairs_of,
)
from judgebench.cli.report import keep, open_study
from judgebench.cli.show import NO_REPORT, ONE_SCREEN, Output, ReportFolder, show


def estimate(
    run: RunOrTables = None,
    files: Files = NO_FILES,
    truth: Truth = AS_IN_THE_RUN,
    as_judge: AsJudge = None,
    by: str = option("", "COLUMN", "Rates by each value of it. Default: system."),
    width: float | None = option(None, "WIDTH", "Say how many more labels give such intervals."),
    anytime: bool = flag("Limits that hold whenever you look."),
    score: list[str] = option(
        (), "HUMAN=COLUMN,…", "The mean of people's numbers, from numbers that predict them."
    ),
    report: ReportFolder = NO_REPORT,
    output: Output = ONE_SCREEN,
) -> None:
    """Estimate how often each label occurs, from few labels, many verdicts.

    Side by side: human labels alone, with the verdicts (PPI++), Rogan-Gladen, and the verdicts
    alone, which are no valid estimate.

    Example: judgebench estimate labels.csv verdicts.csv --by system
    """
    import judgebench as jb
    from judgebench.rates.analysis import naming_by

    if score:
        scores = {k: v.split(",") for k, v in pairs_of(score, "--score").items()}
        table: Any = next(iter(run or ()), None)
        columns = {"question": files.question or ""}
    else:
        with naming_by(by):
            table = open_study(run, keep(files, by), truth.settings, as_judge or (), output)
        scores, columns = {}, {}
    found = jb.estimate(
        table, by=by, drawn=truth.drawn or (), width=width, anytime=anytime, scores=scores,
        columns=columns,
    )  # fmt: skip
    show({"estimate": found}, found.name, output, report.write(found))
