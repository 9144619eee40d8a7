"""Pairs of responses to one question, as rows that are labelled like any answer."""

from __future__ import annotations

from judgebench.records import content_hash


def oriented(a: str, b: str) -> tuple[str, str]:
    """The two names in an order that says nothing about them and is always the same.

    In alphabetical order, or in that of a file, `first` would often mean the same system.

    >>> oriented("gpt-4", "llama") == oriented("llama", "gpt-4")
    True
    """
    low, high = sorted((a, b))
    return (low, high) if int(content_hash([low, high]), 16) % 2 else (high, low)
