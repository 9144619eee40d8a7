"""Align judges with human labels: a study in, one Alignment out."""

from judgebench.align.alignment import Alignment, Disagreement, JudgeSummary, align
from judgebench.align.statistics import STATISTICS, FailurePolicy

__all__ = ["STATISTICS", "Alignment", "Disagreement", "FailurePolicy", "JudgeSummary", "align"]
