"""Judges: an answer in, a Verdict out, whether a model, a jury, a rule or a coin decides."""
