"""A plan for a study that has no label yet: the numbers of answers and annotators that it needs."""
