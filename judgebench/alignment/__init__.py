"""Align judges with human labels: a study in, one Alignment out."""

from judgebench.alignment.analysis import Alignment, align
from judgebench.alignment.judge_scores import STATISTICS, FailurePolicy

__all__ = ["STATISTICS", "Alignment", "FailurePolicy", "align"]
