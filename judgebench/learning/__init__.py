"""Learning from human labels: folds, training sets, judges that learn."""
