"""Edits by rule: an answer in, an edited text or nothing out. No model is asked."""
