"""What differs between two lists of words, in a time in proportion to their length."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

Words = Sequence[str]
Span = tuple[int, int, int, int]  # a[i1:i2] became b[j1:j2]
# Pairs of words that difflib compares: its time grows with the cube of the length, a second here.
_WHOLE = 250_000
_PART = 10_000  # of the parts of longer texts
_RUN = 4  # words in a row


def differing(a: Words, b: Words) -> list[Span]:
    """The spans that differ, in order. Long parts that have little in common are one span.

    >>> differing("one two three four".split(), "one 2 three four".split())
    [(1, 2, 1, 2)]
    """
    if len(a) * len(b) <= _WHOLE:
        return _compared(a, b, 0, 0)
    start, after = _ends(a, b)
    a, b = a[start : len(a) - after], b[start : len(b) - after]
    if len(a) * len(b) <= _WHOLE:
        return _compared(a, b, start, start)
    spans: list[Span] = []
    i = j = 0
    for i_end, j_end in [*_common(a, b), (len(a), len(b))]:
        if i_end >= i and j_end >= j:
            before, after = _ends(a[i:i_end], b[j:j_end])
            i1, i2, j1, j2 = i + before, i_end - after, j + before, j_end - after
            if (i2 - i1) * (j2 - j1) > _PART:
                spans.append((start + i1, start + i2, start + j1, start + j2))
            else:
                spans += _compared(a[i1:i2], b[j1:j2], start + i1, start + j1)
            i, j = i_end, j_end
    return spans


def _compared(a: Words, b: Words, i: int, j: int) -> list[Span]:
    """What difflib finds to differ, seen from the places `i` and `j`."""
    found = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [(i + i1, i + i2, j + j1, j + j2) for tag, i1, i2, j1, j2 in found if tag != "equal"]


def _ends(a: Words, b: Words) -> tuple[int, int]:
    """How many words at the beginning and at the end are the same. The longer end is taken first:
    of an `I` that is put before `I think`, the first is new."""
    n = min(len(a), len(b))
    before = next((i for i in range(n) if a[i] != b[i]), n)
    after = next((i for i in range(n) if a[-1 - i] != b[-1 - i]), n)
    return (before, min(after, n - before)) if before >= after else (min(before, n - after), after)


def _common(a: Words, b: Words) -> list[tuple[int, int]]:
    """Where the same runs of words begin in both, in order: the most that are in order.

    A run counts where both have it equally often; the first is then the first, and so on.
    """
    runs = [list(zip(*(words[i:] for i in range(_RUN)), strict=False)) for words in (a, b)]
    often = [Counter(found) for found in runs]
    numbered: list[dict[tuple[tuple[str, ...], int], int]] = [{}, {}]
    for found, places in zip(runs, numbered, strict=True):
        seen: Counter[tuple[str, ...]] = Counter()
        for place, run in enumerate(found):
            if often[0][run] == often[1][run]:
                seen[run] += 1
                places[run, seen[run]] = place
    pairs = [(place, numbered[1][key]) for key, place in numbered[0].items()]
    # The longest rising part, by the smallest last place of each length (Fredman 1975).
    ends: list[int] = []
    lasts: list[int] = []
    before: list[int] = []
    for n, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(lasts[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        lasts[length : length + 1] = [n]
    kept = []
    n = lasts[-1] if lasts else -1
    while n >= 0:
        kept.append(pairs[n])
        n = before[n]
    return kept[::-1]
