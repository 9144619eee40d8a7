"""What is learnt from human labels: folds, training sets, judges that learn."""
