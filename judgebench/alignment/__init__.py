"""Align judges with human labels: a study in, one Alignment out."""

from judgebench.alignment.alignment import Alignment, Disagreement, JudgeSummary, align
from judgebench.alignment.statistics import STATISTICS, FailurePolicy

__all__ = ["STATISTICS", "Alignment", "Disagreement", "FailurePolicy", "JudgeSummary", "align"]
