"""Answers, human labels and verdicts as arrays: what every analysis takes."""
