"""The run folder: answers, verdicts and the manifest on disk."""
