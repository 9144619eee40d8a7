"""Proxy tasks and their evaluators: an argument is only as good as the decisions it improves."""
