"""Words in sentences, and text made fit to print."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

_BREAKS = re.compile(r"(\s+(?!%))|(?<=[^\s-][/:_@-])(?=\w)|(?<=\S\.)(?=[^\W\d])")
_COMMANDS = re.compile(r"(?!\A)\r(?!\n)|[\u202a-\u202c\u2066-\u2069]")  # which move what is shown
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff]")


def plain_id(text: str) -> str:
    """The words of a text in lower case and plain letters, joined by `_`.

    >>> plain_id("Größe (Prüfer)"), plain_id("Sécurité")
    ('grosse_prufer', 'securite')
    """
    plain = unicodedata.normalize("NFKD", text.casefold())
    return re.sub("[^a-z0-9]+", "_", re.sub("[\u0300-\u036f]", "", plain)).strip("_")


def as_name(text: str) -> str:
    """The text with what no judge's name may hold replaced.

    >>> as_name("gpt 4o (May)")
    'gpt-4o-May'
    """
    return re.sub("[^A-Za-z0-9._-]+", "-", text).strip("-._")[:64] or "judge"


def counted(n: int, one: str, many: str = "") -> str:
    """`1 judge`, `1,204 judges`, `2 juries`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def about(n: int) -> str:
    """A number that is a forecast: two digits, rounded up.

    >>> about(38), about(356), about(2567)
    ('38', '360', '2,600')
    """
    step = 10 ** max(0, len(str(n)) - 2)
    return f"{-(-n // step) * step:,}"


def listed(parts: Sequence[str]) -> str:
    """`a, b and c`; `no judge` where there is nothing."""
    head, last = ", ".join(parts[:-1]), parts[-1] if parts else "no judge"
    return f"{head} and {last}" if head else last


def percent(share: float | None) -> str:
    """`84 %`, rounded as `0.84` is, so that a table and a sentence agree; a dash where there is
    none.

    >>> percent(0.885), f"{0.885:.2f}"
    ('89 %', '0.89')
    """
    return "–" if share is None else f"{100 * float(f'{share:.2f}'):.0f} %"


def wrapped(text: str, width: int) -> str:
    """Printable text in lines of at most `width`, cut at spaces and the signs inside names.

    Chinese, Japanese and Korean characters are twice as wide as others.
    """
    lines, gap = [""], ""
    for piece in _BREAKS.split(printable(text)):
        if not piece or piece.isspace():
            gap = " " if piece else gap
            continue
        if lines[-1] and _room(lines[-1] + gap + piece) > width:
            lines.append("")
        lines[-1] += gap * bool(lines[-1])
        gap = ""
        for character in piece:
            if lines[-1] and _room(lines[-1] + character) > width:
                lines.append("")
            lines[-1] += character
    return "\n".join(lines)


def longest_word(text: str) -> int:
    """The room that the longest piece of a text needs which `wrapped` does not cut of itself."""
    return max(_room(piece or "") for piece in _BREAKS.split(printable(text)))


def _room(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def printable(text: str, escape: Callable[[str], str] = str) -> str:
    """`text` with control characters, lone surrogates and what reverses writing shown as U+FFFD,
    then escaped.

    Tabs and line breaks stay; a terminal or an XML reader must not see the others.
    """
    return escape(_UNPRINTABLE.sub("\ufffd", text))


def for_terminal(text: str) -> str:
    """`text` with all that a terminal would obey shown as U+FFFD: control characters, with them
    the escape that begins a command, what turns the direction of writing, and a return to the start
    of the line, unless the text begins with it, as progress bars of libraries do.

    >>> for_terminal("\x1b[2Jdone")
    '\ufffd[2Jdone'
    """
    return printable(_COMMANDS.sub("\ufffd", text))


_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|dr|mr|mrs|ms|prof|st|spp?|subsp|u\.s|a\.m|p\.m)"
    r"|\b[A-Z])\.$",
    re.IGNORECASE,
)
_LONGEST = 10  # characters before the full stop, so that where a word begins can be seen
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*(?=\s)|\n\s*\n|\n(?=\s*(?:[-*•]|\d+[.)])\s)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, a bullet or a heading, at text[start:end]."""

    start: int
    end: int
    text: str


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text in order, without the white space around them."""
    found, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        last = text[max(start, match.start() - _LONGEST) : match.start() + 1]
        if match.group()[0] == "." and _ABBREVIATION.search(last):
            continue
        found.append(_trimmed(text, start, match.end()))
        start = match.end()
    found.append(_trimmed(text, start, len(text)))
    return [sentence for sentence in found if sentence.text]


def _trimmed(text: str, start: int, end: int) -> Sentence:
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    part = part.strip()
    return Sentence(start, start + len(part), part)


def passages_of(text: str, characters: int = 300) -> list[str]:
    """`text` cut into passages of at most so many characters, white space folded.

    A cut falls between sentences; within a sentence only where it is too long, then between
    words; within a word only where that is too long.
    """
    whole = [" ".join(sentence.text.split()) for sentence in sentences(text)]
    parts = chain.from_iterable(
        textwrap.wrap(sentence, characters, break_on_hyphens=False) for sentence in whole
    )
    passages: list[str] = []
    for part in parts:
        if passages and len(passages[-1]) + 1 + len(part) <= characters:
            passages[-1] += f" {part}"
        else:
            passages.append(part)
    return passages
