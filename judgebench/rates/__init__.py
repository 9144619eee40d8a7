"""Rates of labels by system, from few human labels and many verdicts."""
