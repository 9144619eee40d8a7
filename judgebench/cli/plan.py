"""`judgebench plan`: how many labels does a study need?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from judgebench.cli.groups import flag, option
from judgebench.cli.options import DecisionRuleOption, ProtocolOption, StudyRubric
from judgebench.cli.show import NO_REPORT, ONE_SCREEN, Output, ReportFolder, show
from judgebench.errors import Problem, raise_any


def plan(
    n_annotators: int = option(3, "N", "People who label each answer."),
    agreement: float = option(0.85, "SHARE", "How often two of them agree."),
    severe_share: float = option(0.2, "SHARE", "How many answers are severe."),
    n_labels: int = option(2, "N", "Labels of the metric."),
    per_question: int = option(1, "N", "Answers to each question."),
    alike: float = option(0.1, "CORRELATION", "How alike answers to one question are."),
    judge: float = option(
        0.0, "SHARE", "How much more often than an annotator the judge is right; below 0: less."
    ),
    judge_severe: float | None = option(None, "SHARE", "The same on severe answers."),
    oversampled: bool = flag("What seems severe is drawn three times as often."),
    studies: int = option(750, "N", "Simulated studies. More are more exact, and slower."),
    rule: DecisionRuleOption = None,
    protocol: ProtocolOption = None,
    rubric: StudyRubric = None,
    answers: int | None = option(None, "N", "Promised answers with labels. Default: as needed."),
    drawn: str = option("", "HOW", "random, or by COLUMN: weight=, probability=, strata="),
    looks: list[float] = option((), "SHARE", "Share labelled at an interim analysis. Repeatable."),
    subgroup: list[str] = option(
        (), "COLUMN", "Its values are decided apart, as promised. Repeatable."
    ),
    report: ReportFolder = NO_REPORT,
    output: Output = ONE_SCREEN,
) -> None:
    """Say how many labels a study needs, before it has any.

    Studies like yours are simulated and decided: the chance of each outcome by the number of
    labelled answers, a cheaper design, and what happens if annotators agree less.

    Example: judgebench plan --n-annotators 3 --agreement 0.9 --severe-share 0.1 --judge 0.02
    """
    import judgebench as jb
    from judgebench.decisions.rule import rule_of
    from judgebench.planning.plan import check_promises

    promises: dict[str, Any] = {
        "rubric": rubric, "answers": answers, "drawn": drawn, "looks": looks, "subgroups": subgroup
    }  # fmt: skip
    message = "is for a protocol: add --protocol FILE"
    unused = [name for name, value in promises.items() if value and not protocol]
    raise_any([Problem(message, field=name) for name in unused])
    if protocol:  # before anything is simulated
        check_promises(protocol, rule_of(rule), promises)
    found = jb.plan(
        rule, studies=studies, n_annotators=n_annotators, agreement=agreement,
        severe_share=severe_share, n_labels=n_labels, per_question=per_question, alike=alike,
        judge=judge, judge_severe=judge_severe, oversampled=oversampled,
        show_progress=not (output.quiet or output.json),
    )  # fmt: skip
    if protocol:
        found = replace(found, promised=found.protocol(protocol, **promises).answers)
    show({"plan": found}, found.name, output, report.write(found))
    if protocol:
        output.console().print(
            f"Next: judgebench annotate init annotate.yaml --protocol {protocol} --to FOLDER",
            soft_wrap=True,
        )
