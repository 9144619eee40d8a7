"""Proxy tasks and their evaluators: an argument is as good as it helps a trained model decide."""
