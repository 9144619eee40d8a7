"""Other words that say the same: neutral synonyms.

The same words in the same order, in another layout or with a text before or after them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.judges.replies import HIGHEST_SCORE, LOWEST_SCORE
from judgebench.records import Answer
from judgebench.rubric import Rubric
from judgebench.stress_tests.recipes import (
    Add,
    Edit,
    Edited,
    Nothing,
    RuleList,
    facts,
    mentions,
    put,
    statements,
)
from judgebench.text import Sentence, sentences

_MARK = re.compile(r"(?:[-*•]|(\d+[.)]))\s+")
_NUMBER_MARK = re.compile(r"\d+[.)]")  # of a list; it would be left over

_MARKDOWN = re.compile(r"^[^\S\n]*#{1,6}\s|\*\*|__|^[^\S\n]*```", re.MULTILINE)
_LONGEST_HEADING = 8  # words
# Taken from the question's kind: a heading with its germ, drug or number would add one to the text.
_HEADINGS = {
    "symptom": "Symptoms", "treat": "Treatment", "prevent": "Prevention", "diagnos": "Diagnosis",
    "at risk": "Who is at risk", "cause": "Causes", "outlook": "Outlook",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence, a whole item of a list, or a heading.

    `mark` is an item's number, or -; `column` where it stands in its line; `new_line` says whether
    a line begins with the piece.
    """

    kind: Literal["sentence", "item", "heading"]
    text: str
    mark: str = ""
    column: int = 0
    new_line: bool = True


def bullets(answer: Answer, random: Random) -> Edited | Nothing:
    """Every sentence as an item of a list; the items of a list below their lead-in, indented."""
    pieces = _pieces(answer.text)
    if len(pieces) < 2:
        return Nothing("the text is one sentence")
    if all(piece.kind != "sentence" for piece in pieces):
        return Nothing("the text is a list already")
    lines, below = [], 0
    for piece, depth in zip(pieces, _depths(pieces), strict=True):
        if piece.kind == "item":
            lines.append("  " * (depth + below) + f"{piece.mark} {piece.text}")
            continue
        leads_in = piece.text[-1] not in ".!?"
        below = int(piece.kind == "sentence" and leads_in)
        gap = "\n" if lines and piece.kind == "heading" else ""
        lines.append(gap + ("- " if piece.kind == "sentence" else "") + piece.text)
    return _with_same_facts(answer.text, "\n".join(lines))


def markdown(answer: Answer, random: Random) -> Edited | Nothing:
    """A heading above, the first sentence in bold, lists and subheadings as Markdown has them."""
    if _MARKDOWN.search(answer.text):
        return Nothing("the text is in Markdown already")
    pieces = _pieces(answer.text)
    if len(pieces) < 2:
        return Nothing("the text is one sentence")
    first = next((i for i, piece in enumerate(pieces) if piece.kind == "sentence"), None)
    written = [
        _in_markdown(piece, depth, bold=i == first)
        for i, (piece, depth) in enumerate(zip(pieces, _depths(pieces), strict=True))
    ]
    body = written[0]
    for (before, piece), text in zip(pairwise(pieces), written[1:], strict=True):
        apart = "\n\n" if piece.new_line else " "
        body += ("\n" if before.kind == piece.kind == "item" else apart) + text
    asked = [title for word, title in _HEADINGS.items() if word in answer.question.lower()]
    heading = asked[0] if len(asked) == 1 else "Answer"
    return _with_same_facts(answer.text, body, above=f"# {heading}\n\n")


def _pieces(text: str) -> list[_Piece]:
    """The text piece by piece. White space inside a piece is folded to single blanks."""
    pieces: list[_Piece] = []
    found: list[Sentence] = []
    for sentence in sentences(text):
        if found and _NUMBER_MARK.fullmatch(found[-1].text):  # the `1.` of a list
            start = found.pop().start
            sentence = Sentence(start, sentence.end, text[start : sentence.end])
        found.append(sentence)
    ends = [0, *(sentence.end for sentence in found)]
    starts = [*(sentence.start for sentence in found), len(text)]
    for i, sentence in enumerate(found):
        new_line = i == 0 or "\n" in text[ends[i] : starts[i]]
        piece = _piece(sentence, text, new_line, alone="\n" in text[ends[i + 1] : starts[i + 1]])
        if pieces and pieces[-1].kind == "item" and not new_line:
            pieces[-1] = replace(pieces[-1], text=f"{pieces[-1].text} {piece.text}")
        else:
            pieces.append(piece)
    return pieces


def _piece(sentence: Sentence, text: str, new_line: bool, alone: bool) -> _Piece:
    plain = " ".join(sentence.text.split())
    mark = _MARK.match(plain)
    if mark and new_line:
        column = sentence.start - text.rfind("\n", 0, sentence.start) - 1
        return _Piece("item", plain[mark.end() :], mark[1] or "-", column)
    short = len(plain.split()) <= _LONGEST_HEADING and plain[-1] not in ".!?;," and ":" not in plain
    return _Piece("heading" if new_line and alone and short else "sentence", plain, "", 0, new_line)


def _depths(pieces: Sequence[_Piece]) -> list[int]:
    """The depth of each item in the lists of its text, 0 for what is no item."""
    columns: list[int] = []
    depths = []
    for piece in pieces:
        columns = [c for c in columns if c < piece.column] if piece.kind == "item" else []
        depths.append(len(columns))
        if piece.kind == "item":
            columns.append(piece.column)
    return depths


def _in_markdown(piece: _Piece, depth: int, bold: bool) -> str:
    if piece.kind == "heading":
        return f"## {piece.text}"
    if piece.kind == "item":
        return "  " * depth + f"{piece.mark} {piece.text}"
    return f"**{piece.text}**" if bold else piece.text


def _with_same_facts(old: str, new: str, above: str = "") -> Edited | Nothing:
    """Bold type or a list's mark between a number and its unit would tear them apart."""
    if facts(old) != facts(new):
        return Nothing("another layout would tear a number from its unit")
    return Edited(above + new)


# --- a text before or after: padding, a greeting, a planted verdict ------------------------------

_PLACEHOLDER = re.compile(r"\{(?:json|brackets|score|labels)\}")
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*$")


def demanded(demand: Literal["least_severe", "most_severe"], rubric: Rubric) -> Mapping[str, str]:
    """The least or most severe label of every ordinal metric, by metric id; where none is severe
    the best or the worst.

    Raises SetupError where the rubric has no ordinal metric.
    """
    extreme = min if demand == "least_severe" else max
    found = {
        m.id: extreme(zip(m.penalties, m.label_texts, strict=True))[1]
        for m in rubric.metrics
        if m.kind == "ordinal"
    }
    if not found:
        message = f"the rubric {rubric.name} has no ordinal metric, so no label is {demand}"
        raise SetupError(Problem(message, field="demand", found=demand))
    return found


def add(spec: Add, demand: Mapping[str, str], rubric: Rubric) -> Edit:
    """The edit that sets one of the recipe's texts before or after an answer.

    `{json}`, `{brackets}`, `{score}` and `{labels}` in a text become the verdict of `demand`
    (metric id -> label). Raises SetupError where a text has one and nothing is demanded.
    """
    problems = [
        Problem("has a placeholder, and the recipe demands no label", field=f"edit.texts.{i}",
                found=found[0])
        for i, text in enumerate(spec.texts)
        if not demand and (found := _PLACEHOLDER.search(text))
    ]  # fmt: skip
    raise_any(problems)
    forged = _forged(demand, rubric)
    # All placeholders at once, so that none is looked for in what was filled in.
    texts = [_PLACEHOLDER.sub(lambda match: forged[match.group()], text) for text in spec.texts]

    def edit(answer: Answer, random: Random) -> Edited | Nothing:
        text = random.choice(texts)
        before = spec.where == "before"
        return Edited(_beside(text, answer.text) if before else _beside(answer.text, text))

    return edit


def _forged(demand: Mapping[str, str], rubric: Rubric) -> Mapping[str, str]:
    """Placeholder -> the verdict of `demand` in that format."""
    metrics = [metric for metric in rubric.metrics if metric.id in demand]
    praise = all(metric.index(demand[metric.id]) == 0 for metric in metrics)
    return {
        "{json}": json.dumps({m.id: demand[m.id] for m in metrics}, ensure_ascii=False),
        "{brackets}": "\n".join(f"{m.title}: [{demand[m.id]}]" for m in metrics),
        "{score}": str(HIGHEST_SCORE if praise else LOWEST_SCORE),
        "{labels}": "; ".join(f"{m.title}: {demand[m.id]}" for m in metrics),
    }


def _beside(first: str, second: str) -> str:
    """Both texts, word for word: a blank between sentences of one paragraph, else a new line."""
    if not first or not second:
        return first + second
    there = first[len(first.rstrip()) :] + second[: len(second) - len(second.lstrip())]
    if "\n" in there:
        return first + second
    several = "\n" in first or "\n" in second
    if first.endswith(":") and not several:
        return f"{first}\n{second}"
    if several or not _SENTENCE_END.search(first.rstrip()):
        return f"{first}\n\n{second}"
    return first + ("" if there else " ") + second


_MOST_REPLACED = 6
_ARTICLE = re.compile(r"\b(an?)\s+$", re.IGNORECASE)

Phrase = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z' ,-]*$")]


class Synonyms(RuleList):
    """A word list of pairs, in lower case, that may be put for each other wherever they stand.

    A word or phrase stands in one pair only.
    """

    pairs: tuple[tuple[Phrase, Phrase], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _neutral(self) -> Synonyms:
        counts = Counter(phrase for pair in self.pairs for phrase in pair)
        if duplicates := sorted(phrase for phrase, n in counts.items() if n > 1):
            raise ValueError(f"stands in two pairs, or twice in one: {', '.join(duplicates)}")
        denies = [" / ".join(pair) for pair in self.pairs if facts(pair[0]) != facts(pair[1])]
        if denies:
            raise ValueError(f"one of the two denies something: {', '.join(denies)}")
        return self

    @property
    def other(self) -> Mapping[str, str]:
        """Every word or phrase -> what may stand in its place."""
        return {a: b for pair in self.pairs for a, b in (pair, pair[::-1])}


def reword(synonyms: Synonyms) -> Edit:
    """The edit that puts synonyms for up to six words or phrases, drawn from all that occur."""
    other = synonyms.other
    longest_first = sorted(other, key=len, reverse=True)
    phrases = "|".join(re.escape(p).replace(r"\ ", r"\s+") for p in longest_first)
    pattern = re.compile(rf"(?<![\w-])(?:{phrases})(?![\w-])", re.IGNORECASE)

    def edit(answer: Answer, random: Random) -> Edited | Nothing:
        offers = [
            (match.span(), new)
            for sentence in statements(answer.text)
            for match in pattern.finditer(answer.text, sentence.start, sentence.end)
            if (new := _replacement(match, sentence, other))
        ]
        if not offers:
            return Nothing(f"no word or phrase of the list {synonyms.name} stands in the text")
        chosen = sorted(random.sample(offers, min(_MOST_REPLACED, len(offers))))
        return Edited(put(answer.text, *zip(*chosen, strict=True)))

    return edit


def _replacement(match: re.Match[str], sentence: Sentence, other: Mapping[str, str]) -> str:
    """The replacement of a match, capital included; '' where it had better stay.

    A capital inside a sentence marks a name or a title. A sentence that holds the synonym already
    would say the same word twice.
    """
    old = match.group()
    new = other[" ".join(old.lower().split())]
    before = match.string[sentence.start : match.start()]
    after = match.string[match.end() : sentence.end].split()
    article = _ARTICLE.search(before)
    phrase = [*article.groups(), *old.split()] if article else old.split()
    begins = not re.search(r"[^\W\d_]", before[: article.start()] if article else before)
    titled = old.isupper() or any(word[0].isupper() for word in phrase[int(begins) :])
    if titled or (begins and after and after[0][0].isupper()) or mentions(sentence.text, new):
        return ""
    return new[0].upper() + new[1:] if old[0].isupper() else new
