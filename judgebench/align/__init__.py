"""Align judges with human labels: verdicts, truth and annotators in, one Alignment out."""

from judgebench.align.result import (
    AGREEMENT_STATISTICS,
    STATISTICS,
    AgreementScore,
    Alignment,
    CeilingScore,
    Confusion,
    Disagreement,
    FailurePolicy,
    JudgeKind,
    JudgeSummary,
    JudgeVerdicts,
    LabelShare,
    Score,
    backend_fact,
)
from judgebench.align.run import align, align_run

__all__ = [
    "AGREEMENT_STATISTICS",
    "STATISTICS",
    "AgreementScore",
    "Alignment",
    "CeilingScore",
    "Confusion",
    "Disagreement",
    "FailurePolicy",
    "JudgeKind",
    "JudgeSummary",
    "JudgeVerdicts",
    "LabelShare",
    "Score",
    "align",
    "align_run",
    "backend_fact",
]
