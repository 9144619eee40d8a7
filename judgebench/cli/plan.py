"""`judgebench plan`: how many labels does a study need?"""

from __future__ import annotations

from judgebench.cli.groups import flag, option
from judgebench.cli.options import DecisionRuleOption
from judgebench.cli.show import NO_REPORT, ONE_SCREEN, Output, ReportFolder, show


def plan(
    annotators: int = option(3, "N", "People who label each answer.", "--n-annotators"),
    agreement: float = option(0.85, "SHARE", "How often two of them agree."),
    severe: float = option(0.2, "SHARE", "How many answers are severe.", "--severe-share"),
    labels: int = option(2, "N", "Labels of the metric.", "--n-labels"),
    per_question: int = option(1, "N", "Answers to each question."),
    alike: float = option(0.1, "CORRELATION", "How alike answers to one question are."),
    judge: float = option(
        0.0, "SHARE", "How much more often than an annotator the judge is right; below 0: less."
    ),
    judge_severe: float | None = option(None, "SHARE", "The same on severe answers."),
    oversampled: bool = flag("Half of the labelled answers are called severe by the judge."),
    studies: int = option(600, "N", "Studies that are simulated. More are more exact, and slower."),
    rule: DecisionRuleOption = None,
    report: ReportFolder = NO_REPORT,
    output: Output = ONE_SCREEN,
) -> None:
    """Say how many labels a study needs, before it has any.

    Studies like yours are simulated and decided: the chance of each outcome by the number of
    labelled answers, the cheapest design, and what happens if annotators agree less.

    Example: judgebench plan --n-annotators 3 --agreement 0.9 --severe-share 0.1 --judge 0.02
    """
    import judgebench as jb

    found = jb.plan(
        rule, studies=studies, annotators=annotators, agreement=agreement, severe=severe,
        labels=labels, per_question=per_question, alike=alike, judge=judge,
        judge_severe=judge_severe, oversampled=oversampled,
    )  # fmt: skip
    show({"plan": found}, found.name, output, report.write(found))
