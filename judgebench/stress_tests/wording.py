"""Other words, or fewer, that say the same: neutral synonyms, and a redundant sentence dropped.

The same words in the same order, in another layout or with a text before or after them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import StrictModel, find_file, load_model
from judgebench.judges.replies import HIGHEST_SCORE, LOWEST_SCORE
from judgebench.records import Answer
from judgebench.rubric import Rubric
from judgebench.stress_tests.recipes import (
    Add,
    Edit,
    Edited,
    Nothing,
    content_words,
    facts,
    mentions,
    negations,
    statements,
    word_names,
    words,
)
from judgebench.text import Sentence, sentences

_MARK = re.compile(r"(?:[-*•]|(\d+[.)]))\s+")

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
_VOWEL_SOUND = re.compile(r"(?!one|once|eu|uni|us[ei]|ut[ei])[aeiou]|hour|honest|heir")
_MOST_SENTENCES = 500  # of an answer, in which one may be redundant
_LEAST_WORDS = 3  # content words of a sentence that can be redundant
_NUMBER_MARK = re.compile(r"\d+[.)]")  # of a list; it would be left over
_COURTESY = re.compile(
    r"(?:i |we )?hope (?:this|that|it) (?:helps|is helpful|was helpful)"
    r"(?: you| to you| for you)?"
    r"|thank(?: you|s)(?: so much| very much)? for (?:asking|your question|reaching out)"
    r"|(?:please )?(?:feel free to ask|let (?:me|us) know)(?: me| us)?"
    r"(?: if you have)?(?: any)?(?: more| other| further)? questions"
    r"|(?:please )?feel free to ask",
    re.IGNORECASE,
)
_POINTER = re.compile(  # to another page, of which the text holds no more than the name
    r"top of page|more on: [^\n]+"
    r"|for (?:more|further|additional) (?:information|details)\b"
    r"(?!.*\b(?:doctor|physician|provider|professional|clinic|hospital|pharmacist|nurse)s?\b)"
    r"[^\n]*?,? (?:please )?(?:see|visit|view|read|go to) [^\n]+",
    re.IGNORECASE,
)
# What limits a claim, so that the same claim without it says more.
_LIMITS = frozenset(
    ("if", "when", "while", "until", "except", "only", "may", "might", "can", "could", "should",
     "must", "will", "would", "some", "many", "most", "all", "every", "few", "often", "usually",
     "sometimes", "rarely", "seldom", "generally", "always", "also", "more", "less", "before",
     "after", "or", "but")
)  # fmt: skip
# A sentence that begins so needs the one before it.
_REFERS_BACK = frozenset(
    ("it", "its", "they", "their", "these", "those", "this", "that", "such", "he", "she", "however",
     "therefore", "thus", "so", "then", "but", "also", "both", "otherwise", "instead", "and", "or")
)  # fmt: skip

Phrase = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z' ,-]*$")]


class Synonyms(StrictModel):
    """A word list of pairs, in lower case, that may be put for each other wherever they stand.

    A word or phrase stands in one pair only. `about` tells a reader how the list was made.
    """

    name: Annotated[str, StringConstraints(min_length=1)]
    version: Annotated[str, StringConstraints(min_length=1)]
    about: Annotated[str, StringConstraints(min_length=1)]
    pairs: tuple[tuple[Phrase, Phrase], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _neutral(self) -> Synonyms:
        listed = [phrase for pair in self.pairs for phrase in pair]
        twice = sorted({phrase for phrase in listed if listed.count(phrase) > 1})
        if twice:
            raise ValueError(f"stands in two pairs, or twice in one: {', '.join(twice)}")
        denies = [" / ".join(pair) for pair in self.pairs if facts(pair[0]) != facts(pair[1])]
        if denies:
            raise ValueError(f"one of the two denies something: {', '.join(denies)}")
        return self

    @property
    def other(self) -> Mapping[str, str]:
        """Every word or phrase -> what may stand in its place."""
        return {a: b for pair in self.pairs for a, b in (pair, pair[::-1])}


def load_synonyms(name: str | Path, relative_to: Path | None = None) -> Synonyms:
    """The list of that path or shipped name. Raises SetupError with every problem in it."""
    path = find_file("adversarial/words", str(name), ".yaml", relative_to)
    return load_model(path, Synonyms)


def synonyms_in_words(path: Path, rubric: str) -> str:
    """Read a list of synonyms and say what it holds. Raises SetupError."""
    synonyms = load_synonyms(path)
    return f"the word list {synonyms.name}, version {synonyms.version}, {len(synonyms.pairs)} pairs"


def reword(synonyms: Synonyms) -> Edit:
    """The edit that puts synonyms for up to six words or phrases, drawn from all that occur."""
    other = synonyms.other
    longest_first = sorted(other, key=len, reverse=True)
    phrases = "|".join(re.escape(p).replace(r"\ ", r"\s+") for p in longest_first)
    pattern = re.compile(rf"(?<![\w-])(?:(an?)(\s+))?({phrases})(?![\w-])", re.IGNORECASE)

    def edit(answer: Answer, random: Random) -> Edited | Nothing:
        found = [
            (match, new)
            for sentence in statements(answer.text)
            for match in pattern.finditer(answer.text, sentence.start, sentence.end)
            if (new := _replacement(match, sentence, other))
        ]
        if not found:
            return Nothing(f"no word or phrase of the list {synonyms.name} stands in the text")
        chosen = random.sample(found, min(_MOST_REPLACED, len(found)))
        text = answer.text
        for match, new in sorted(chosen, key=lambda pair: pair[0].start(), reverse=True):
            text = text[: match.start()] + new + text[match.end() :]
        return Edited(text)

    return edit


def _replacement(match: re.Match[str], sentence: Sentence, other: Mapping[str, str]) -> str:
    """The replacement of a match, article and capital included; '' where it had better stay.

    A capital inside a sentence marks a name or a title. A sentence that holds the synonym already
    would say the same word twice.
    """
    article, blank, old = match.groups()
    new = other[" ".join(old.lower().split())]
    before = match.string[sentence.start : match.start()]
    after = match.string[match.end() : sentence.end].split()
    begins = not re.search(r"[^\W\d_]", before)
    inner = match.group().split()[int(begins) :]
    titled = old.isupper() or any(word[0].isupper() for word in inner)
    if titled or (begins and after and after[0][0].isupper()) or mentions(sentence.text, new):
        return ""
    if not article:
        return new[0].upper() + new[1:] if old[0].isupper() else new
    return article[0] + ("n" if _VOWEL_SOUND.match(new) else "") + blank + new


def drop_redundant(answer: Answer, random: Random) -> Edited | Nothing:
    """One sentence less: a courtesy, a pointer to another page, or what another sentence says.

    What is dropped has no number, negation or listed name, and nothing behind it refers to it.
    """
    text, found = answer.text, sentences(answer.text)[:_MOST_SENTENCES]
    if len(found) < 2:
        return Nothing("the text is one sentence")
    dispensable = [
        sentence
        for place, sentence in enumerate(found)
        if _is_dispensable(place, found)
        and not any(
            mentions(sentence.text, name)
            for name in word_names()
            if name.lower() in sentence.text.lower()
        )
        and _keeps_facts(text, place, found)
    ]
    if not dispensable:
        return Nothing("no sentence is a courtesy or says what another one says already")
    return Edited(_without(text, random.choice(dispensable)))


def _keeps_facts(text: str, place: int, found: Sequence[Sentence]) -> bool:
    """Return whether the text keeps its facts without that sentence, which has none: those before
    and after it could become one number with its unit."""
    sentence, start = found[place], found[max(0, place - 1)].start
    around = text[start : found[min(place + 1, len(found) - 1)].end]
    inside = Sentence(sentence.start - start, sentence.end - start, sentence.text)
    return facts(_without(around, inside)) == facts(around)


def _is_dispensable(place: int, found: Sequence[Sentence]) -> bool:
    text = found[place].text
    following = words(found[place + 1].text)[:1] if place + 1 < len(found) else []
    numbered = place > 0 and _NUMBER_MARK.fullmatch(found[place - 1].text)
    if numbered or facts(text) or _REFERS_BACK & set(following):
        return False
    plain = text.rstrip(".! ")
    return bool(_COURTESY.fullmatch(plain) or _POINTER.fullmatch(plain)) or _is_said(place, found)


def _is_said(place: int, found: Sequence[Sentence]) -> bool:
    """Return whether another sentence says it; of two that say the same, the later repeats it."""
    text = found[place].text
    told = _told(text)
    whole = text[0].isupper() and text[-1] in ".!" and len(told) >= _LEAST_WORDS
    if not whole or _REFERS_BACK & set(words(text)):
        return False  # the same words about something else, perhaps
    return any(
        _says(other.text, text) and (_told(other.text) != told or i < place)
        for i, other in enumerate(found)
        if i != place
    )


def _says(other: str, text: str) -> bool:
    """Return whether `other` has the content words of `text` in order, with the same limits on
    what is claimed and no negation."""
    if _denies(other) or _limits(other) != _limits(text):
        return False
    left = iter(_told(other))
    return all(word in left for word in _told(text))


# Every sentence is compared with every other one.
_denies = lru_cache(_MOST_SENTENCES)(negations)


@lru_cache(_MOST_SENTENCES)
def _limits(text: str) -> frozenset[str]:
    return _LIMITS.intersection(words(text))


@lru_cache(_MOST_SENTENCES)
def _told(text: str) -> list[str]:
    return [stem for word in words(text) for stem in content_words(word)]


def _without(text: str, sentence: Sentence) -> str:
    """The text without a sentence; of the gaps around it the one with more line ends stays."""
    before, after = text[: sentence.start], text[sentence.end :]
    head, tail = before.rstrip(), after.lstrip()
    gaps = before[len(head) :], after[: len(after) - len(tail)]
    if not head or not tail:
        return head + tail
    return head + max(gaps, key=lambda gap: gap.count("\n")) + tail
