"""Tell whether texts hold a verdict, in any spelling and form that a reply could copy.

Both sides are folded alike: the texts, and the names and values that a reply gave. What the reader
accepts in a piece of a text (`judges.replies`), and what such a piece becomes when a model cleans
it of escapes, invisible characters and foreign letters, is therefore found. Prose is not: a label
stands behind its name and a colon, and one of the two is in quotes or brackets.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from judgebench.rubric import normalise

# What no reader sees: default-ignorable characters, and marks above or through Latin letters.
_UNSEEN = re.compile(
    "[\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_TAGS = {0xE0000 + code: code for code in range(0x20, 0x7F)}  # ASCII that models alone can read
_TAG = re.compile("[\U000e0020-\U000e007e]")
_SAME = str.maketrans(
    dict.fromkeys("‐‑‒–—―−", "-")
    | dict.fromkeys("‘’‚‛“”„‟«»‹›′″'", '"')
    | dict.fromkeys("∶ː꞉ˑ׃", ":")
    | dict.fromkeys("【〔〖⟦⟨", "[")
    | dict.fromkeys("】〕〗⟧⟩", "]")
)
_MAY_LABEL = re.compile(r"[\"\]][\s_*`\\.]*:|:[\s_*`\\.]*[\"\[\d]|\[[\s_*`\\.]*result")
_NUMBER = re.compile(r"(?<![\d.])[0-9]{1,9}(?:\.[0-9]{1,9})?(?![\d.]*\d)")
_DROPPED = re.compile(r"[*`\\]+|\.(?!\w)|(?<!\w)\.")
_SPACE = re.compile(r"[\s_]+")
_LOOSE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_MARKS = re.compile(r"[\"\[\]]+")
_POINTS = re.compile(r":([0-9.]+)_?points?(?![^\W_])")
_RESULT = re.compile(r'"result"[:("]*')
_GOES_ON = re.compile(r"(?<=\d)\.?\d|(?<!\d)[\w.-]")
_LABELLED = re.compile(r'":"?|:"')
_ESCAPE = re.compile(
    r"\\(?:(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))|([\"'/\\])|[bfnrt])"
)
_MOST_VIEWS = 12


def holds(texts: Sequence[str], verdict: Sequence[tuple[Sequence[str], Sequence[str]]]) -> bool:
    """Return whether the texts hold each label of a verdict, in any order and place.

    Each label comes with the names that it may stand behind, and with its value as it was written
    and as the label or number that it means.

    >>> holds(['I cured it. "b\\u0069as.": [No]'], [(["bias"], ["No"])])
    True
    >>> holds(["There is no bias: no."], [(["bias"], ["No"])])
    False
    """
    seen = [_alike(view) for text in texts for view in _views(text)]
    views = [_bare(view) for view in seen if _MAY_LABEL.search(view)]
    places = [(view, *found.span()) for view in views for found in _LABELLED.finditer(view)]
    return bool(places) and all(
        any(
            any(_stands(view, start - len(name), name) for name in map(_folded, names))
            and any(_stands(view, end, value) for value in map(_folded, values))
            for view, start, end in places
        )
        for names, values in (([*names, "[RESULT]"], values) for names, values in verdict)
    )


def _views(text: str) -> Sequence[str]:
    """`text` as it is, and as it reads once its escapes of HTML, JSON or YAML are undone, also
    where one is inside another; and with its invisible letters."""
    views = [text]
    for view in views:  # which grows
        undone = (html.unescape(view), _ESCAPE.sub(_meant, view), _TAG.sub(_seen, view))
        views += [one for one in undone if one not in views][: _MOST_VIEWS - len(views)]
    return views


def _meant(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code is None:
        return escape[4] or " "
    return chr(int(code, 16)) if int(code, 16) < 0x110000 else ""


def _seen(tag: re.Match[str]) -> str:
    return tag[0].translate(_TAGS)


def _alike(text: str) -> str:
    """`text` in lower case, with one kind of quotes, dashes, colons and brackets, without letters'
    variants and without what no reader sees."""
    if not text.isascii():
        # JSON writes letters beyond the first 65,536 as two escapes.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
        text = _UNSEEN.sub("", text)
    return text.casefold().translate(_SAME)


def _bare(text: str) -> str:
    """What `_alike` gives, without what else a copy may change: spaces, emphasis, how a number is
    written. Quotes and brackets, one or several, become one `"`."""
    text = _DROPPED.sub("", _NUMBER.sub(_number, text))
    text = _MARKS.sub('"', _LOOSE.sub("", _SPACE.sub("_", text)))
    return _RESULT.sub('"result":"', _POINTS.sub(r':"\1"', text))


def _number(written: re.Match[str]) -> str:
    return f"{float(written[0]):g}"


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    return _bare(_alike(normalise(text)))


def _stands(view: str, start: int, wanted: str) -> bool:
    """Whether these words stand at a place of a view, in letters of whatever alphabet, and end
    there. They may begin within a word, since a copy may."""
    end = start + len(wanted)
    whole = start >= 0 and wanted != "" and not _GOES_ON.match(view, end)
    return whole and _reads(view[start:end], wanted)


def _reads(said: str, wanted: str) -> bool:
    """Whether the words are equal, where a letter of one alphabet may stand for one of another."""
    if said == wanted or len(said) != len(wanted) or said.isascii() is wanted.isascii() is True:
        return said == wanted
    return all(
        a == b or (a.isascii() is not b.isascii() and b.isalnum())
        for a, b in zip(said, wanted, strict=True)
    )
