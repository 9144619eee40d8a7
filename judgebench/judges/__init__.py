"""Judges: an answer in, a Verdict out. A judge is a model, a jury, a rule or a control."""
