"""Fonts for the characters of a figure that the usual font lacks, such as Chinese ones."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache

_BOXES = "Last Resort"  # a font that has a box for every character
_MOST_NAMED = 8


def fonts_for(characters: set[str]) -> tuple[list[str], list[str]]:
    """The families of installed fonts that have what DejaVu Sans lacks, those with most of it
    first, and the characters that no font has. Matplotlib finds these families from then on."""
    from matplotlib.font_manager import findfont, fontManager

    usual = _glyphs(str(findfont("DejaVu Sans")))
    missing = {c for c in characters if ord(c) not in usual}
    families: list[str] = []
    while missing:
        having = {path: {c for c in missing if ord(c) in _glyphs(path)} for path in _upright()}
        best = max(having, key=lambda path: len(having[path]), default="")
        if not having.get(best):
            break
        if best not in {font.fname for font in fontManager.ttflist}:
            fontManager.addfont(best)
        families.append(_upright()[best])
        missing -= having[best]
    return families, sorted(missing)


def without_a_font(missing: Sequence[str]) -> str:
    """Which characters of a figure are drawn as boxes, and what to do.

    >>> without_a_font(["\ue000"])
    'No font on this machine has U+E000: drawn as boxes. Install one that has, such as Noto Sans.'
    """
    named = ", ".join(f"U+{ord(c):04X}{_script(c)}" for c in missing[:_MOST_NAMED])
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    return (
        f"No font on this machine has {named}{more}: drawn as boxes. Install one that has, such as "
        "Noto Sans."
    )


def _script(character: str) -> str:
    """` (TIBETAN)`, the first word of a character's name; empty where it has none."""
    name = unicodedata.name(character, "")
    return f" ({name.split()[0]})" if name else ""


@cache
def _upright() -> dict[str, str]:
    """The file and the family of every upright font of normal weight. Matplotlib's own list may be
    older than a font that was installed since."""
    from matplotlib.font_manager import findSystemFonts, fontManager, get_font, ttfFontProperty

    found = {}
    for path in sorted({*findSystemFonts(), *(font.fname for font in fontManager.ttflist)}):
        try:
            font = ttfFontProperty(get_font(path))
        except (OSError, RuntimeError, NotImplementedError):  # no font that matplotlib can read
            continue
        if font.style == "normal" and font.weight == 400 and not font.name.startswith(_BOXES):
            found[path] = font.name
    return found


@cache
def _glyphs(path: str) -> frozenset[int]:
    """The code points that a font has a glyph for."""
    from matplotlib.font_manager import get_font

    return frozenset(get_font(path).get_charmap())
