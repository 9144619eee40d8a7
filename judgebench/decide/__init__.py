"""Decide, for each judge and metric: REPLACE, ASSIST, DON'T or CAN'T TELL."""
