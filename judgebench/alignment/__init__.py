"""Align judges with human labels: a study in, one Alignment out."""

from judgebench.alignment.alignment import Alignment, align
from judgebench.alignment.statistics import STATISTICS, FailurePolicy

__all__ = ["STATISTICS", "Alignment", "FailurePolicy", "align"]
