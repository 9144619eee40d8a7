"""Texts of a corpus, found for a question: by their vectors, or by their words."""
