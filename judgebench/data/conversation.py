"""Cells that hold more than a text: conversations, of which turns are judged, and criteria."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isqrt
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field, model_validator

from judgebench.data.formats import (
    Cell,
    Fault,
    clean,
    has_forbidden,
    is_blank,
    nested,
    number_in,
    scalar_text,
    shared,
    split_list,
)
from judgebench.errors import Problem, SetupError, shorten
from judgebench.files import StrictModel, read_lines, to_line
from judgebench.records import Answer, HumanLabel, Part, content_hash, in_words, is_slot
from judgebench.rubric import Metric, Rubric, normalise

Judged = Literal["last", "every", "whole"]
_TURNS = "a list of {role, content}"
ROLES = ("system", "developer", "user", "assistant", "tool")


def turns_of(cell: Cell) -> tuple[list[Part], list[Fault]]:
    """The turns that a cell holds, and everything that is wrong with them."""
    try:
        value = nested(cell)
    except ValueError as error:
        return [], [Fault(str(error))]
    if not value:
        return [], [Fault("the conversation is empty", allowed=_TURNS)]
    if not isinstance(value, list):
        return [], [Fault("is no list of turns", allowed=_TURNS)]
    turns, faults = list[Part](), list[Fault]()
    for number, given in enumerate(value):
        try:
            turns.append(_turn(given))
        except ValueError as error:
            faults.append(Fault(str(error), f"[{number}]", str(given)))
    return turns, faults


def _turn(given: Any) -> Part:
    """The turn of a value. Raises ValueError."""
    if not isinstance(given, dict) or given.get("role") not in ROLES:
        raise ValueError(f"is no turn, {{role, content}}, with a role of {', '.join(ROLES)}")
    text = text_of(given.get("content"))
    if text is None:
        raise ValueError("has no content: a text, or a list of {type: text, text}")
    if has_forbidden(text):
        raise ValueError("holds a character that is not allowed in a text")
    return Part(given["role"], "\n".join(filter(None, (text, *_calls(given.get("tool_calls"))))))


def text_of(content: Any) -> str | None:
    """The text of a turn's content, which may be in pieces; of an image and the like its kind in
    brackets. None where it is no content."""
    if content is None or isinstance(content, str):  # None where a tool is called
        return content or ""
    pieces = []
    for piece in content if isinstance(content, list) else [None]:
        about = piece if isinstance(piece, dict) else {"text": piece}
        text = about["text"] if "text" in about else f"[{about.get('type')}]"
        if not isinstance(text, str):
            return None
        pieces.append(text)
    return "\n".join(pieces)


def _calls(value: Any) -> Iterator[str]:
    """The tools that an assistant calls, as a text."""
    for call in value if isinstance(value, list) else ():
        of = call.get("function") if isinstance(call, dict) else None
        if isinstance(of, dict):
            yield f"[calls {of.get('name')}({of.get('arguments') or ''})]"


def judged(answer: Answer, turns: Sequence[Part], how: Judged) -> Iterator[Answer]:
    """Yield what is judged of a conversation: its last turn of the assistant, every one, or the
    whole.

    Of a turn the question is the conversation before it. All rows of conversations that begin with
    the same turns, up to the first of the assistant, are one group, unless `answer` names another.
    Empty turns are passed over, except the very last. Some turn must be the assistant's.
    """
    of_assistant = [i for i, turn in enumerate(turns) if turn.role == "assistant"]
    places = [i for i in of_assistant if not is_blank(turns[i].text) or i == len(turns) - 1]
    places = places or of_assistant[-1:]
    group = answer.group
    if group in (answer.question, answer.item_id):  # by default
        group = in_words(turns[: of_assistant[0]]) or answer.item_id
    if how == "whole":
        yield replace(answer, text=in_words(turns), group=group, parts=tuple(turns))
        return
    for place in places if how == "every" else places[-1:]:
        yield replace(
            answer,
            item_id=f"{answer.item_id}@{place + 1}" if how == "every" else answer.item_id,
            text=turns[place].text,
            question=in_words(turns[:place]),
            group=group,
            parts=tuple(turns[:place]),
        )


class Criterion(NamedTuple):
    """A criterion that a text is checked by. `points` are a number, `tags` stand between `|`."""

    id: str
    text: str
    points: str
    tags: str


def criteria_of(cell: Cell, item_id: str = "") -> tuple[list[Criterion], list[Fault]]:
    """The criteria of the item that a cell holds, and everything that is wrong with them.

    One may be its text alone. Without an id it has the number of its place, from 1.
    """
    try:
        value = nested(cell) or []
    except ValueError as error:
        return [], [Fault(str(error))]
    if not isinstance(value, list):
        return [], [Fault("is no list of criteria", allowed="a list of {id, text, points, tags}")]
    criteria: dict[str, Criterion] = {}
    faults = []
    for number, given in enumerate(value):
        try:
            criterion = _criterion(given, number)
        except ValueError as error:
            faults.append(Fault(str(error), f"[{number}]", str(given)))
            continue
        if criteria.setdefault(criterion.id, criterion) is not criterion:
            message = f"two criteria of {shorten(item_id)} have this id"
            faults.append(Fault(message, f"[{number}].id", criterion.id))
    return [*criteria.values()], faults


def _criterion(value: Any, number: int) -> Criterion:
    """The criterion of a value; without points it has one. Raises ValueError."""
    stated = {"text": value} if isinstance(value, str) else value
    if not isinstance(stated, dict):
        raise ValueError("is no criterion, {id, text, points, tags}")
    stated = {key: part for key, part in stated.items() if part not in (None, "")}
    named = {"id": number + 1, "points": 1, "text": stated.get("criterion", ""), **stated}
    own_id, text, points = (scalar_text(named[key]).strip() for key in ("id", "text", "points"))
    if is_blank(own_id) or is_blank(text) or has_forbidden(f"{own_id}{text}"):
        raise ValueError("has no text or no id, or a character in it that no text may hold")
    if not math.isfinite(number_in(points)) or number_in(points) == 0:
        raise ValueError("has no number of points: other than 0, below 0 for what should not be")
    tags = stated.get("tags", ())
    listed = split_list(tags) if isinstance(tags, str) else tags
    if not isinstance(listed, list | tuple):
        raise ValueError("has no list of tags")
    joined = "|".join(filter(None, (scalar_text(tag).strip() for tag in listed)))
    return Criterion(own_id, text, repr(number_in(points)).removesuffix(".0"), joined)


def criterion_row(answer: Answer, one: Criterion) -> Answer:
    """The row on which the criterion of the answer is labelled."""
    return replace(
        answer,
        item_id=f"{answer.item_id}#{one.id}",
        metadata={**answer.metadata, "points": one.points, "tags": one.tags},
        parts=(*answer.parts, Part("criterion", one.text, one.id, answer.item_id)),
    )


MOST = 1_000_000  # pairs that are made without a number


def oriented(a: str, b: str) -> tuple[str, str]:
    """The two names in an order that says nothing about them and is always the same.

    In alphabetical order, or in that of a file, `first` would often mean the same system.

    >>> oriented("gpt-4", "llama") == oriented("llama", "gpt-4")
    True
    """
    low, high = sorted((a, b))
    return (low, high) if int(content_hash([low, high]), 16) % 2 else (high, low)


def pair_of(a: Answer, b: Answer, item_id: str = "") -> Answer:
    """The row of a pair. Without an id for it, `oriented` says who is first."""
    if not item_id:
        first, _ = oriented(a.item_id, b.item_id)
        a, b = (a, b) if a.item_id == first else (b, a)
    before = a.turns if a.turns == b.turns and in_words(a.turns) == a.question else ()
    return Answer(
        item_id=item_id or f"{a.item_id} vs {b.item_id}",
        text=in_words([Part("first", a.text), Part("second", b.text)]),
        question=a.question,
        reference=a.reference or b.reference,
        group=a.group,
        parts=(*before, *(Part("response", x.text, x.system, x.item_id) for x in (a, b))),
    )


# In tables -----------------------------------------------------------------------------------


# The id of a pair and its two names in their order, by its question and its names in any order;
# of names that are item ids the question is "".
KnownPairs = Mapping[tuple[str, frozenset[str]], tuple[str, list[str]]]


@dataclass(frozen=True, slots=True)
class NamedPair:
    """The pair `item_id` of the responses `order`, which a row of a table names as `names`, in the
    columns `columns`."""

    item_id: str
    order: Sequence[str]
    names: Sequence[str]
    columns: Sequence[str]

    def place(self, metric: Metric, text: str) -> str:
        """The label that says who is preferred by name or by column, else the text itself."""
        text = clean(text)
        for names in (self.columns, self.names):
            if text in names:
                return metric.label_texts[names.index(text)]
        return text

    def turned(self, metric: Metric, label: str) -> str:
        """The label that a label of the row means of the two in their order."""
        return label if self.order[0] == self.names[0] else metric.swapped(label)


def pair_of_names(question: str, names: Sequence[str], group: str = "") -> Answer:
    """The pair of the responses of these names, without texts; the same in either order."""
    start = f"{question}: "
    order = [name.removeprefix(start) for name in oriented(start + names[0], start + names[1])]
    parts = tuple(Part("response", "", name) for name in order)
    return Answer(start + " vs ".join(order), "", group=group or question, parts=parts)


def known_pairs(answers: Iterable[Answer]) -> KnownPairs:
    """The pairs among the answers, by what a table may call them."""
    found: dict[tuple[str, frozenset[str]], tuple[str, list[str]]] = {}
    for row in answers:
        if responses := row.responses:
            ids, names = [part.item_id for part in responses], [part.name for part in responses]
            found["", frozenset(ids)] = row.item_id, ids
            found[row.group, frozenset(names)] = row.item_id, names
    return found


# Of the answers at hand ----------------------------------------------------------------------


class PairsConfig(StrictModel):
    """The key `pairs` of bench.yaml: which answers to the same question are compared.

    `from` is `all`, how many (a sample, spread over the questions), or a file of two columns of
    item ids. With `prefer`, a metric or composite of the rubric, whoever labelled both responses
    prefers the one of the less severe label.
    """

    model_config = ConfigDict(populate_by_name=True)

    source: int | str = Field(alias="from")
    prefer: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        """A bare value is `from`."""
        named = value if isinstance(value, dict) else {"from": value}
        source = named.get("from", named.get("source", "all"))
        number = isinstance(source, int) and not isinstance(source, bool) and source > 0
        if not number and not (isinstance(source, str) and source):
            raise ValueError("needs `all`, a number of pairs, or a file that names them")
        return named

    def wanted(self, file: Path, seed: int) -> WantedPairs:
        """As the bench.yaml `file` asks for them."""
        named = isinstance(self.source, str) and self.source != "all"
        source = (file.parent / str(self.source)).absolute() if named else self.source
        return WantedPairs(source, self.prefer, seed, str(file))


@dataclass(frozen=True, slots=True)
class WantedPairs:
    """The pairs to make of a data set, and the labels by which people prefer one of two responses.

    `source` is `all`, a number or a file; `file` is whoever asks for them.
    """

    source: str | int | Path = "all"
    prefer: str | None = None
    seed: int = 0
    file: str = ""


def chosen(questions: Sequence[Sequence[int]], wanted: WantedPairs) -> Iterator[tuple[int, int]]:
    """Pairs of the rows of each question, in the order of the questions: all of them, or a number
    of them, of each question the same number as far as it has so many.

    Raises SetupError where there are none, or more than MOST without a number.
    """
    most = np.array([len(rows) * (len(rows) - 1) // 2 for rows in questions], dtype=np.int64)
    total = int(most.sum())
    if not total:
        message = "no question has two answers, so there are no pairs"
        raise SetupError(Problem(message, wanted.file, field="pairs"))
    if wanted.source == "all" and total > MOST:
        message, allowed = (
            "are too many pairs to compare all of them",
            "a number, as in pairs: 1000",
        )
        raise SetupError(Problem(message, wanted.file, None, "pairs", f"{total:,}", allowed))
    rng = np.random.default_rng(wanted.seed)
    number = wanted.source if isinstance(wanted.source, int) else total
    taken = _spread(most, min(number, total), rng)
    for rows, there, n in zip(questions, most.tolist(), taken.tolist(), strict=True):
        places = (
            range(there) if n == there else sorted(rng.choice(there, n, replace=False).tolist())
        )
        for place in places:  # pairs in the order (0, 1), (0, 2), (1, 2), (0, 3), …
            j = (1 + isqrt(8 * place + 1)) // 2
            yield rows[place - j * (j - 1) // 2], rows[j]


def _spread(most: np.ndarray[Any, Any], wanted: int, rng: np.random.Generator) -> Any:
    """The number taken of each: as equal as may be, at most `most`; who gets one more is drawn."""
    taken = np.zeros_like(most)
    while left := wanted - int(taken.sum()):
        able = np.flatnonzero(taken < most)
        if each := left // len(able):
            taken[able] = np.minimum(taken[able] + each, most[able])
        else:
            taken[rng.permutation(able)[:left]] += 1
    return taken


# Preferences ---------------------------------------------------------------------------------


def compared_by(wanted: WantedPairs, rubric: Rubric) -> tuple[Sequence[Metric], Metric]:
    """The metrics whose labels say which response is better, and the one that says so of a pair.

    Raises SetupError where the rubric has none.
    """
    on = [metric for metric in rubric.metrics if metric.preference]
    if len(on) != 1:
        message = f"needs a rubric with one preference; this one has {len(on)}"
        raise SetupError(Problem(message, wanted.file, field="pairs.prefer"))
    able = {m.id: m for m in rubric.metrics if m.of == "answer" and m.kind == "ordinal"}
    name = wanted.prefer or ""
    found = rubric.find(name)
    own = found.id if found else normalise(name)
    names = rubric.composite.get(own, (own,))
    if not able.keys() >= set(names):
        message = "is no ordinal metric of answers and no composite of the rubric"
        allowed = ", ".join(dict.fromkeys((*able, *rubric.composite)))
        raise SetupError(Problem(message, wanted.file, None, "pairs.prefer", name, allowed))
    return [able[each] for each in names], on[0]


def preferences(
    pairs: Iterable[Answer],
    labels: Iterable[HumanLabel],
    by: Sequence[Metric],
    on: Metric,
) -> Iterator[HumanLabel]:
    """Of each pair the preference of everybody who labelled
    both responses on all of `by`: the one whose penalties add up to less, or a tie. Places in a
    list (`crowd#1`) are not people, and have none."""
    metrics = {metric.id: metric for metric in by}
    given: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for label in labels:
        metric = metrics.get(label.metric)
        if metric is None or label.label is None or is_slot(label.annotator):
            continue
        if (place := metric.index(label.label)) >= 0:
            given[label.item_id][label.annotator][label.metric] = metric.penalties[place]
    for pair in pairs:
        first, second = (given.get(part.item_id, {}) for part in pair.responses)
        for who in (who for who in first if who in second):
            if len(first[who]) == len(second[who]) == len(metrics):
                a, b = sum(first[who].values()), sum(second[who].values())
                yield HumanLabel(
                    pair.item_id, who, on.id, on.label_texts[2 if a == b else int(b < a)]
                )


def read_answers(path: Path) -> tuple[Answer, ...]:
    """The answers in that file; a torn last line is passed over. Raises SetupError where there is
    no such file, or a line holds no answer."""
    return tuple(_answer(value, path, number) for number, value in read_lines(path))


def _answer(value: dict[str, Any], path: Path, number: int) -> Answer:
    try:
        parts = tuple(Part(**part) for part in value.pop("parts", ()))
        texts: dict[str, Any] = {
            key: shared(x) if isinstance(x, str) else x for key, x in value.items()
        }
        return Answer(**texts, parts=parts)
    except TypeError as error:
        raise SetupError(Problem(f"is damaged: {error}", str(path), number)) from None


def answer_line(answer: Answer) -> str:
    """The answer's line; its `parts` only where there are any."""
    return to_line({key: value for key, value in asdict(answer).items() if key != "parts" or value})
