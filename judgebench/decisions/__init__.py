"""Decide, for each judge and metric: REPLACE, ASSIST, DO NOT USE or CAN'T TELL."""
