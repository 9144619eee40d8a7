"""Other words that say the same: neutral synonyms.

The same words in the same order, in another layout or with a text before or after them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from judgebench.errors import Problem, SetupError
from judgebench.judges.replies import HIGHEST_SCORE, LOWEST_SCORE
from judgebench.records import Answer
from judgebench.rubric import Rubric
from judgebench.stress_tests.recipes import (
    PLACEHOLDER,
    Add,
    Edit,
    Edited,
    MetricLabels,
    Nothing,
    Outcome,
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
_ONE_SENTENCE = Nothing("the text is one sentence")
# Taken from the question's kind: a heading with its germ, drug or number would add one to the text.
_HEADINGS = {
    "symptom": "Symptoms", "treat": "Treatment", "prevent": "Prevention", "diagnos": "Diagnosis",
    "at risk": "Who is at risk", "cause": "Causes", "outlook": "Outlook",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence, a whole item of a list, or a heading.

    `mark` is an item's number, or -, indented by its depth; `new_line` says whether a line begins
    with the piece.
    """

    kind: Literal["sentence", "item", "heading"]
    text: str
    mark: str = ""
    new_line: bool = True


def bullets(answer: Answer, random: Random) -> Outcome:
    """Every sentence as an item of a list; the items of a list below their lead-in, indented."""
    pieces = _pieces(answer.text)
    if len(pieces) < 2:
        return _ONE_SENTENCE
    if all(piece.kind != "sentence" for piece in pieces):
        return Nothing("the text is a list already")
    lines, indent = list[str](), ""
    for piece in pieces:
        if piece.kind == "item":
            lines.append(f"{indent}{piece.mark} {piece.text}")
            continue
        is_sentence = piece.kind == "sentence"
        indent = "  " if is_sentence and piece.text[-1] not in ".!?" else ""
        gap = "\n" if lines else ""
        lines.append(f"- {piece.text}" if is_sentence else gap + piece.text)
    return _with_same_facts(answer.text, "\n".join(lines))


def markdown(answer: Answer, random: Random) -> Outcome:
    """A heading above, the first sentence in bold, lists and subheadings as Markdown has them."""
    pieces = _pieces(answer.text)
    if _MARKDOWN.search(answer.text):
        return Nothing("the text is in Markdown already")
    if len(pieces) < 2:
        return _ONE_SENTENCE
    asked = [title for word, title in _HEADINGS.items() if word in answer.question.lower()]
    body, kinds = "", [""]
    for piece in pieces:
        gap = "\n\n" if piece.new_line else " "
        if piece.kind == kinds[-1] == "item":
            gap = "\n"
        is_first = piece.kind == "sentence" and piece.kind not in kinds
        text = f"**{piece.text}**" if is_first else piece.text
        marks = {"item": f"{piece.mark} ", "heading": "## ", "sentence": ""}
        body += (gap if body else "") + marks[piece.kind] + text
        kinds.append(piece.kind)
    heading = asked[0] if len(asked) == 1 else "Answer"
    return _with_same_facts(answer.text, body, above=f"# {heading}\n\n")


def _pieces(text: str) -> list[_Piece]:
    """The text piece by piece. White space inside a piece is folded to single blanks."""
    pieces: list[_Piece] = []
    columns: list[int] = []  # of the lists that the last item is in
    parts = _sentences_with_numbers(text)
    starts = [*(part.start for part in parts[1:]), len(text)]
    new_line = True
    for part, start in zip(parts, starts, strict=False):
        plain, ends_line = " ".join(part.text.split()), "\n" in text[part.end : start]
        mark = _MARK.match(plain)
        if not new_line and pieces[-1].kind == "item":
            pieces[-1] = replace(pieces[-1], text=f"{pieces[-1].text} {plain}")
        elif new_line and mark:
            column = part.start - text.rfind("\n", 0, part.start) - 1
            columns = [c for c in columns if c < column]
            indented = "  " * len(columns) + (mark[1] or "-")
            pieces.append(_Piece("item", plain[mark.end() :], indented))
            columns.append(column)
        else:
            columns = []
            is_heading = new_line and ends_line and _is_short(plain)
            kind: Literal["heading", "sentence"] = "heading" if is_heading else "sentence"
            pieces.append(_Piece(kind, plain, new_line=new_line))
        new_line = ends_line
    return pieces


def _sentences_with_numbers(text: str) -> list[Sentence]:
    """The sentences, each with the number before it if it is an item of a list."""
    parts: list[Sentence] = []
    for part in sentences(text):
        if parts and _NUMBER_MARK.fullmatch(parts[-1].text):
            start = parts.pop().start
            part = Sentence(start, part.end, text[start : part.end])
        parts.append(part)
    return parts


def _is_short(text: str) -> bool:
    return len(text.split()) <= _LONGEST_HEADING and text[-1] not in ".!?;," and ":" not in text


def _with_same_facts(old: str, new: str, above: str = "") -> Outcome:
    """Bold type or a list's mark between a number and its unit would tear them apart."""
    if facts(old) != facts(new):
        return Nothing("another layout would tear a number from its unit")
    return Edited(above + new)


# --- a text before or after: padding, a greeting, a planted verdict ------------------------------

_SENTENCE_END = re.compile(r"[.!?][\"')\]]*$")


def demanded(demand: Literal["least_severe", "most_severe"], rubric: Rubric) -> MetricLabels:
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


def add(spec: Add, demand: MetricLabels, rubric: Rubric) -> Edit:
    """The edit that sets one of the recipe's texts before or after an answer.

    `{json}`, `{brackets}`, `{score}` and `{labels}` in a text become the verdict of `demand`
    (metric id -> label).
    """
    forged = _forged(demand, rubric)
    # All placeholders at once, so that none is looked for in what was filled in.
    texts = [PLACEHOLDER.sub(lambda match: forged[match.group()], text) for text in spec.texts]

    def edit(answer: Answer, random: Random) -> Outcome:
        text = random.choice(texts)
        before = spec.where == "before"
        return Edited(_beside(text, answer.text) if before else _beside(answer.text, text))

    return edit


def _forged(demand: MetricLabels, rubric: Rubric) -> Mapping[str, str]:
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
    there = first[len(first.rstrip()) :] + second[: len(second) - len(second.lstrip())]
    several = "\n" in first + second
    if not first or not second or "\n" in there:
        gap = ""
    elif first.endswith(":") and not several:
        gap = "\n"
    elif several or not _SENTENCE_END.search(first.rstrip()):
        gap = "\n\n"
    else:
        gap = "" if there else " "
    return first + gap + second


_MOST_REPLACED = 6

Phrase = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z' ,-]*$")]


class Synonyms(RuleList):
    """A word list of pairs, in lower case, that may be put for each other wherever they stand."""

    pairs: tuple[tuple[Phrase, Phrase], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _neutral(self) -> Synonyms:
        denies = [" / ".join(pair) for pair in self.pairs if facts(pair[0]) != facts(pair[1])]
        if denies:
            raise ValueError(f"one of the two denies something: {', '.join(denies)}")
        return self


def reword(synonyms: Synonyms) -> Edit:
    """The edit that puts synonyms for up to six words or phrases, drawn from all that occur."""
    other = {a: b for pair in synonyms.pairs for a, b in (pair, pair[::-1])}
    longest_first = sorted(other, key=len, reverse=True)
    phrases = "|".join(re.escape(p).replace(r"\ ", r"\s+") for p in longest_first)
    pattern = re.compile(rf"(?<![\w-])(?:{phrases})(?![\w-])", re.IGNORECASE)

    def edit(answer: Answer, random: Random) -> Outcome:
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
    begins = not re.search(r"[^\W\d_]", before)
    titled = old.isupper() or any(word[0].isupper() for word in old.split()[int(begins) :])
    if titled or (begins and after and after[0][0].isupper()) or mentions(sentence.text, new):
        return ""
    return new[0].upper() + new[1:] if old[0].isupper() else new
