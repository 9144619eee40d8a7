"""Markdown as a page shows it: a tree of few elements without addresses, so that a text can load
nothing, run nothing and lead nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from html import unescape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token


Node = str | list[Any]  # a text, or [tag, more, nodes]
_TAGS = (
    "p", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td",
    "strong", "em", "s",
)  # fmt: skip
_PLAIN = {  # a text of these alone is shown as it is written
    "paragraph_open", "paragraph_close", "inline", "text", "text_special", "softbreak",
    "hardbreak", "code_block",
}  # fmt: skip
_BREAK = re.compile(r"<br ?/?>")  # the one piece of HTML that tables of models need
_BACKSLASHED = frozenset(r"()[]{}\,;:&%")  # these stay TeX where a formula cannot be shown
# A dollar sign is money beside a space or before a digit.
_TEX = re.compile(  # of a text that never ends, the search does
    r"\$\$(.{1,1000}?)\$\$|\\\[(.{1,1000}?)\\\]|\\\((.{1,1000}?)\\\)"
    r"|\$(?![\s$])([^$]{0,1000}[^\s$\\])\$(?!\d)",
    re.DOTALL,
)
_MATHS = {
    "math", "mrow", "mi", "mn", "mo", "mtext", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup",
    "munder", "mover", "munderover", "mtable", "mtr", "mtd",
}  # fmt: skip
_MATHS_ATTRIBUTES = ("linethickness", "stretchy", "accent", "form")
_PICTURE = "picture:"  # before the name of a picture that the study holds
_DEEPEST = 20
_LONGEST = 20_000  # characters; of more, hostile ones would keep the server busy for seconds


@lru_cache(maxsize=512)
def markdown_tree(text: str) -> list[Node] | None:
    """The text as nodes; None where it has no markup, and is shown as it is.

    A node is a text or `[tag, more, nodes]`: `more` is the level of a heading (`h3`, always), the
    first number of an ordered list, or the attributes of a part of a formula. The nodes of an `img`
    are the name of a picture (`picture:NAME`) and its description. Nothing that is written gets
    lost: HTML and footnotes stay text, links and other images become their text and their address.

    TeX between dollar signs, `\\(` or `\\[` becomes MathML (the extra `maths`).

    >>> markdown_tree("Take **one**.")
    [['p', 0, ['Take ', ['strong', 0, ['one']], '.']]]
    >>> markdown_tree("Take one.") is None
    True
    """
    tokens = [*_tokens(text)] if len(text) <= _LONGEST else []
    if _PLAIN.issuperset(token.type for token in tokens):
        return None
    root: list[Node] = []
    within, address = [root], ""
    for token in tokens:
        if token.nesting > 0:
            inner, tag = within[-1], "h3" if token.type == "heading_open" else token.tag
            if (tag == "h3" or tag in _TAGS) and not token.hidden and len(within) < _DEEPEST:
                inner = []
                within[-1].append([tag, _number(token), inner])
            within.append(inner)
            address = str(token.attrs.get("href", "")) or address
        elif token.nesting < 0:
            within.pop()
            if token.type == "link_close" and token.info != "auto":
                within[-1].append(f" ({address})")
        else:
            within[-1].extend(_leaf(token))
    return root


def lacks_maths(texts: Iterable[str]) -> bool:
    """True where a text may hold TeX, which is shown as it is written: the extra is missing."""
    return find_spec("latex2mathml") is None and any(map(_TEX.search, texts))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # A line of dashes under a paragraph is meant as a rule, and a footnote is to be read.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("escape", "formula", _formula_rule)
    return parser.disable(["lheading", "reference", "text_join"])


def _formula_rule(state: StateInline, silent: bool) -> bool:
    """Markdown's rule for a formula, which stays text where it cannot be shown as MathML."""
    formula = _TEX.match(state.src, state.pos)
    node = formula and _mathml(formula.group(formula.lastindex or 0), (formula.lastindex or 0) < 3)
    if not formula or not node:
        return False
    if not silent:
        state.push("formula", "", 0).meta = {"node": node}
    state.pos = formula.end()
    return True


@lru_cache(maxsize=512)
def _mathml(tex: str, is_block: bool) -> Node | None:
    """The formula as nodes; None where it is none, or the library that reads it is not there."""
    if find_spec("latex2mathml") is None:
        return None
    from latex2mathml.converter import convert_to_element

    try:
        root = convert_to_element(tex)
    except Exception:  # the library has no class of its own for TeX that it cannot read
        return None
    display = "block" if is_block else "inline"
    return ["math", {"display": display, "alttext": tex}, [_maths_node(part) for part in root]]


def _maths_node(element: Element, depth: int = _DEEPEST) -> Node:
    if element.tag == "mspace":
        return ["mtext", {}, ["\u2009"]]
    attributes = {k: v for k, v in element.items() if k in _MATHS_ATTRIBUTES}
    tag = element.tag if element.tag in _MATHS else "mrow"
    if depth == 0:
        return [tag, attributes, [unescape("".join(element.itertext()))]]
    text = unescape(element.text or "")
    parts = [_maths_node(part, depth - 1) for part in element]
    return [tag, attributes, [text, *parts] if text else parts]


def _tokens(text: str) -> Iterator[Token]:
    for block in _parser().parse(text):
        yield from block.children or [block]


def _number(token: Token) -> int:
    if token.type == "heading_open":
        return int(token.tag[1:])
    return int(token.attrs.get("start", 1)) if token.tag == "ol" else 0


def _leaf(token: Token) -> Iterator[Node]:
    if token.type in ("softbreak", "hardbreak", "hr"):
        yield ["hr" if token.type == "hr" else "br", 0, []]
    elif token.type in ("fence", "code_block", "code_inline"):
        tag = "code" if token.type == "code_inline" else "pre"
        yield [tag, 0, [token.content.removesuffix("\n")]]
    elif token.type == "image":
        address = str(token.attrs["src"])
        name = address.removeprefix(_PICTURE)
        is_own = name != address
        yield (
            ["img", 0, [name, token.content]] if is_own else f"[Image: {token.content} ({address})]"
        )
    elif token.type == "formula":
        yield token.meta["node"]
    elif token.info == "escape" and token.content in _BACKSLASHED:
        yield token.markup
    else:
        for n, part in enumerate(_BREAK.split(token.content)):
            if n:
                yield ["br", 0, []]
            if part:
                yield part
