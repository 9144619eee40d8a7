"""`judgebench watch`: does a certificate still hold?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from judgebench.cli.exit_codes import UNMET
from judgebench.cli.groups import argument
from judgebench.cli.options import NO_FILES, NOBODY, Files, People, RunOrTables
from judgebench.cli.report import open_study
from judgebench.cli.show import NO_REPORT, ONE_SCREEN, Output, ReportFolder, show


def watch(
    certificate: Path = argument(
        "CERTIFICATE", "The file that `judgebench decide … --certificate` wrote."
    ),
    tables: RunOrTables = None,
    files: Files = NO_FILES,
    people: People = NOBODY,
    report: ReportFolder = NO_REPORT,
    output: Output = ONE_SCREEN,
) -> None:
    """Say whether a certificate still holds.

    Is the file unchanged, the judge the same, and does it still agree with people? Nothing is
    stored: give all new labels and verdicts each time, in the order of time.

    Example: judgebench watch judge.json new-labels.csv new-verdicts.csv
    """
    import judgebench as jb
    from judgebench.certificate.record import read
    from judgebench.certificate.report import sentence

    certified = read(certificate)
    study = None
    if tables or files != NO_FILES:
        asked = replace(files, expected="rows")
        truth = {"annotators": people.annotator} if people.annotator else {}
        study = open_study(tables, asked, truth, people.as_judge or (), output, certified.rubric)
    watched = jb.watch(certified, study)
    reasons = [sentence(watched, reason) for reason in watched.reasons]
    state = {"state": watched.state, "reasons": reasons}
    show({"watch": watched}, watched.name, output, report.write(watched), state)
    if watched.state != "valid":
        raise typer.Exit(UNMET)
