"""Judges that learn from human labels, and what they are worth on answers that they never saw."""
