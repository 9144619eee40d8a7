"""The rankings of a report: medal grids, scores, ranks, agreement, biases and training."""
