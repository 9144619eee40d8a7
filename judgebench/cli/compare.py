"""`judgebench compare`: is B better or worse than A, and may it be merged?"""

from __future__ import annotations

from pathlib import Path

from judgebench.cli.exit_codes import UNMET
from judgebench.cli.groups import argument, option
from judgebench.cli.options import DecisionRuleOption
from judgebench.cli.show import NO_REPORT, ONE_SCREEN, Output, ReportFolder, exit_unmet, show


def compare(
    a: str = argument("RUN_A[:JUDGE]", "What was before: a run folder."),
    b: str = argument(
        "RUN_B[:JUDGE]", "What is now. The same folder twice compares two of its judges."
    ),
    fail_on: list[str] = option(
        (),
        "worse|decision",
        f"The exit code is {UNMET} if the screen says that B is shown to be worse (accuracy, "
        "severe recall or the share without a label), or if a decision fell. Repeatable.",
    ),
    no_worse: list[str] = option(
        (),
        "MARGIN[:METRIC]",
        f"The exit code is {UNMET} unless accuracy is shown to be at most MARGIN "
        "worse. Repeatable.",
    ),
    rule: DecisionRuleOption = None,
    report: ReportFolder = NO_REPORT,
    output: Output = ONE_SCREEN,
) -> None:
    """Compare two runs or judges on the same answers: is B better?

    Example: judgebench compare runs/last-month runs/today --fail-on worse
    """
    import judgebench as jb
    from judgebench.comparison.result import check_demands, failures, margins

    check_demands(fail_on)
    (before, one), (after, two) = split(a), split(b)
    found = jb.compare(before, after, judges=(one, two), rule=rule)
    missed = list(failures(found, fail_on, margins(no_worse, found)))
    asked = {"failed": missed} if fail_on or no_worse else {}
    show({"compare": found, "flips": found.flips}, found.name, output, report.write(found), asked)
    exit_unmet(output, "failed", missed)


def split(text: str) -> tuple[Path, str]:
    """`runs/demo:gpt-4` as a folder and the name of a judge; either may hold a colon."""
    places = [i for i, character in enumerate(text) if character == ":"]
    for end in (len(text), *places):
        if Path(text[:end]).is_dir() and end:
            return Path(text[:end]), text[end + 1 :]
    return Path(text), ""
