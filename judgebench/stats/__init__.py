"""The statistics: arrays in, records.Estimate out. Nothing here knows judges, files, rubrics.

Labels are small ints 0..k-1 in the rubric's order (ordinal: least to most severe); -1 is missing.
"""
