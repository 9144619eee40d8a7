"""Markdown as a page shows it: a tree of few elements that carry no attribute and no address, so
that a text can load nothing, run nothing and lead nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Node = str | list[Any]  # a text, or [tag, number, nodes]
_TAGS = (
    "p", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td",
    "strong", "em", "s",
)  # fmt: skip
_PLAIN = {  # a text of these alone is shown as it is written
    "paragraph_open", "paragraph_close", "inline", "text", "text_special", "softbreak",
    "hardbreak", "code_block",
}  # fmt: skip
_BREAK = re.compile(r"<br ?/?>")  # the one piece of HTML that tables of models need
_FORMULA = frozenset(r"()[]{}\,;:&%")  # after a backslash these are LaTeX
_DEEPEST = 20
_LONGEST = 20_000  # characters; of more, hostile ones would keep the server busy for seconds


@lru_cache(maxsize=512)
def markdown_tree(text: str) -> list[Node] | None:
    """The text as nodes; None where it has no markup, and is shown as it is.

    A node is a text or `[tag, number, nodes]`: the number is the level of a heading (`h3`, always)
    or the first of an ordered list. Nothing that is written gets lost: HTML and footnotes stay
    text, links and images become their text and their address.

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


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # A line of dashes under a paragraph is meant as a rule, and a footnote is to be read.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser.disable(["lheading", "reference", "text_join"])


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
        yield f"[Image: {token.content} ({token.attrs['src']})]"
    elif token.info == "escape" and token.content in _FORMULA:
        yield token.markup
    else:
        first, *rest = _BREAK.split(token.content)
        yield from filter(None, [first])
        for part in rest:
            yield ["br", 0, []]
            yield from filter(None, [part])
