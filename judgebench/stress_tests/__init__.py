"""Stress: what altered answers, and other ways of asking, did to each judge's verdicts."""
