"""Whether evidence that a model extracted occurs in the document, word for word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from judgebench.texts import sentences

_SEPARATOR = re.compile(r"(?:^|(?<=\s))\*\*(?=\s|$)|\n")
_QUOTES = dict.fromkeys(map(ord, '"`´‘’‚‛“”„‟«»‹›′″'), "'")
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣－"), "-")
_FOLDED = {**_QUOTES, **_DASHES}
_BULLETS = "*•‣◦▪●○·∙⁃"
_NUMBERED = re.compile(r"^\(?(?:\d{1,2}|[a-z])[.)]\s+")
_ENDS = " '.,;:!?()[]"


def verbatim_share(extract: str, document: str) -> float | None:
    """The share of an extract's characters that occur in the document, None for an empty extract.

    The extract is split at ` ** ` and at line breaks, and a piece that is not found whole
    into its sentences; what is found counts with its length. White space, quotes, dashes, case,
    list bullets and the marks around a piece make no difference; a word counts only whole.

    share = sum of the lengths of pieces found / sum of the lengths of all pieces
    """
    found = foreign = 0
    for _, length, stands in _pieces(extract, document):
        found += length * stands
        foreign += length * (not stands)
    return found / (found + foreign) if found + foreign else None


def _pieces(extract: str, document: str) -> Iterator[tuple[str, int, bool]]:
    """Every piece with its length and whether it occurs in the document."""
    held = " ".join(_fold(line) for line in document.splitlines())
    for part in _SEPARATOR.split(extract):
        whole = part.strip()
        pieces = [whole] if _stands(whole, held) else [s.text for s in sentences(whole)]
        for piece in pieces:
            if length := len(_core(piece)):
                yield piece, length, _stands(piece, held)


def _stands(piece: str, held: str) -> bool:
    """Whether the words of a piece occur in the folded document in a row, with its number in a list
    or without."""
    folded = _fold(piece)
    return any(_is_in(core.strip(_ENDS), held) for core in (folded, _NUMBERED.sub("", folded)))


def _is_in(core: str, held: str) -> bool:
    # No part of a word, and no part of a number: 18 does not occur in 18.5.
    pattern = rf"(?<!\w)(?<!\d[.,]){re.escape(core)}(?!\w)(?![.,]\d)"
    return bool(core) and core in held and re.search(pattern, held) is not None


def _core(piece: str) -> str:
    return _NUMBERED.sub("", _fold(piece)).strip(_ENDS)


def _fold(text: str) -> str:
    """`text` in one line and in one spelling of letters, quotes and dashes, without bullets."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = (word.strip(_BULLETS) for word in folded.translate(_FOLDED).split())
    return " ".join(word for word in words if word.strip("-"))
