"""The items of a study: all of the data, or those drawn that are worth a label; and gold items.

Items are drawn by what judges disagree about or are unsure of, each with a known chance, so that
rates and means stay estimable.
"""

from __future__ import annotations

import random
import string
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
)
from pydantic import Field as Limits

from judgebench.data.dataset import VerdictCell
from judgebench.data.findings import Findings
from judgebench.data.load import load_data, read_verdicts
from judgebench.data.tables import open_table
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import StrictModel
from judgebench.people.markdown import markdown_tree
from judgebench.records import CHANCES, Dataset, content_hash
from judgebench.rubric import BETWEEN, Metric, Rubric
from judgebench.stats.arrays import FloatArray

Paths = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
]
IN_QUESTION = "labels_in_question"  # a column of items, which is shown to `adjudicated` alone
AT_RANDOM = 0.1  # of the items are drawn whatever the judges say
# Judges who agree err together too: an item on which they do counts as if it were so likely wrong.
LEAST_DOUBT = 0.1


class ChooseConfig(StrictModel):
    """The key `choose` of annotate.yaml: how many `items` are labelled, and `by` what they are
    drawn: on what several judges disagree, or at random. `verdicts` are files of them."""

    by: Literal["disagreement", "random"] = "disagreement"
    items: int = Field(ge=1)
    verdicts: Paths = ()


def chances(doubt: FloatArray, n: int) -> FloatArray:
    """The chance of each item (N,) to be among n: a tenth of the items at random, the others in
    proportion to the square root of the doubt, which is the best where that is the chance of an
    error (Neyman 1934). None is more than 1.

    >>> chances(np.array([0.0, 0.0, 1.0, 1.0]), 2).round(2).tolist()
    [0.27, 0.27, 0.73, 0.73]
    """
    N, found = len(doubt), np.zeros(len(doubt))
    if n >= N:
        return np.ones(N)
    size = np.sqrt(LEAST_DOUBT + (1 - LEAST_DOUBT) * doubt)
    share = AT_RANDOM / N + (1 - AT_RANDOM) * size / size.sum()
    sure = np.zeros(N, dtype=np.bool_)
    while True:  # what would be more than 1 is 1, and the others share the rest
        free = np.where(sure, 0.0, share)
        found = np.where(sure, 1.0, (n - sure.sum()) * free / free.sum())
        if not (over := found > 1).any():
            return found
        sure |= over


def drawn(found: FloatArray, names: Sequence[str], n: int, seed: int) -> list[int]:
    """The places of n items, drawn with these chances: those with the smallest u / chance, u fixed
    for each name, so that more items later hold all of fewer.

    Sequential Poisson sampling (Ohlsson 1998), whose chances are these but for terms of 1 / n.
    """
    u = np.array([int(content_hash([seed, "choose", name])[:13], 16) / 16**13 for name in names])
    return sorted(np.argsort(u / found, kind="stable")[:n].tolist())


def doubts(
    judges: Sequence[Mapping[str, Sequence[tuple[str, VerdictCell]]]], names: Sequence[str]
) -> FloatArray:
    """The doubt about each item (N,), 0 to 1: the share of pairs of judges and metrics that differ,
    a missing label differing from any."""
    by_judge = [{name: dict(rows) for name, rows in rows_of.items()} for rows_of in judges]
    metrics = dict.fromkeys(m for by_item in by_judge for rows in by_item.values() for m in rows)
    return np.array([
        _disagreement([by_item.get(name, {}).get(m) for by_item in by_judge] for m in metrics)
        for name in names
    ])  # fmt: skip


def _disagreement(by_metric: Iterable[list[VerdictCell | None]]) -> float:
    # The same labels in another order are no disagreement.
    labels = [
        [sorted(((one and one.label) or "").split(BETWEEN)) for one in said] for said in by_metric
    ]
    differ = [a != b or a == [""] for said in labels for a, b in combinations(said, 2)]
    return float(np.mean(differ)) if differ else 0.0


def chosen(config: ChooseConfig, data: Dataset, rubric: Rubric, folder: Path, seed: int) -> Dataset:
    """The data with the drawn answers alone, each with its chance in the metadata `probability`.
    Raises SetupError for verdicts that are lacking or cannot be read."""
    rows = list(data.answers)
    names = [row.item_id for row in rows]
    doubt = np.zeros(len(rows))
    if config.by != "random":
        files = [folder / name for name in config.verdicts]
        judges = {
            (file, name): said
            for file in files
            for name, said in read_verdicts(file, rubric, rows)[0].items()
        }
        if len(judges) < 2:
            message = "choosing by disagreement needs verdicts of 2 or more judges"
            raise SetupError(Problem(message, field="verdicts", found=str(len(judges))))
        doubt = doubts([*judges.values()], names)
    chance = chances(doubt, config.items)
    drawn_rows = [
        replace(rows[row], metadata={**rows[row].metadata, CHANCES[0]: f"{chance[row]:.6g}"})
        for row in drawn(chance, names, config.items, seed)
    ]
    return replace(data, answers=drawn_rows)


# --- gold items: their labels are known, and they stand among the others of everybody -------------


class GoldConfig(StrictModel):
    """The key `gold` of annotate.yaml: a table of `items` with their known labels, the `first` of
    which make a qualification round. With `feedback` each of these then shows what is known."""

    items: str
    first: int = Field(default=0, ge=0)
    feedback: bool = False


@dataclass(frozen=True, slots=True)
class Gold:
    """The known labels of an item by metric, and their reason. `first`: in the qualification round.
    `own`: one of the study's items as well."""

    labels: Mapping[str, str]
    reason: str
    first: bool
    own: bool

    def told(self, metrics: Sequence[Metric]) -> str:
        """The known labels and their reason, as text for annotators."""
        lines = [f"{m.title}: {self.labels[m.id]}" for m in metrics if m.id in self.labels]
        return "\n\n".join(filter(None, ["\n".join(lines), self.reason]))


def read_gold(
    config: GoldConfig, items: Dataset, rubric: Rubric, folder: Path
) -> tuple[Dataset, dict[str, Gold]]:
    """The items of a study and, behind them, the gold items that are not among them; what is known,
    by item id in the order of the table. Raises SetupError with every problem of the table."""
    path = folder / config.items
    found = load_data([path], rubric)
    labels = defaultdict[str, dict[str, str]](dict)
    problems = list[Problem]()
    for one in found.labels:
        if one.label and labels[one.item_id].setdefault(one.metric, one.label) != one.label:
            problems.append(Problem("has several known labels", "", None, one.metric, one.item_id))
    own = {row.item_id for row in items.answers}
    others = [row for row in found.answers if row.item_id not in own]
    for row in others if found.textless else ():
        problems.append(Problem("has no text and is none of the items", found=row.item_id))
    names = [row.item_id for row in found.answers if labels[row.item_id]]
    unknown = [row.item_id for row in found.answers if not labels[row.item_id]]
    problems += [Problem("has no known label", found=name) for name in unknown]
    if config.first > len(names):
        allowed = f"0 to {len(names):,}, the items with a known label"
        problems.append(Problem("cannot be met", "", None, "first", str(config.first), allowed))
    if config.feedback and not config.first:
        wrong = "is for the qualification round: say with `first` how many items it has"
        problems.append(Problem(wrong, field="feedback"))
    raise_any([replace(problem, file=problem.file or str(path)) for problem in problems])
    reasons = dict(_reasons(path))
    gold = {
        name: Gold(labels[name], reasons.get(name, ""), n < config.first, name in own)
        for n, name in enumerate(names)
    }
    return replace(items, answers=(*items.answers, *others)), gold


def _reasons(path: Path) -> Iterator[tuple[str, str]]:
    table = open_table(path, Findings())
    for _, row in table.records() if table else ():
        yield row.get("item_id", ""), row.get("reason", "")


LETTERS = string.ascii_uppercase
WHOLE, SKIP = "", "skip"  # the field and the label of a screen that is skipped
PART = "part"  # the field that says how many parts were shown to the end
CANNOT_TELL = ""
# Before the key of a field: the field of the words that are the reason for its label, as a JSON
# list of [section, start, end], counted in characters from 0.
SPANS = "spans "
_SPANS = TypeAdapter(tuple[tuple[int, int, int], ...])

Labels = Mapping[str, str | None]  # by field; None where a label was taken back
State = Literal["new", "begun", "skipped", "done"]


class Wanted(StrictModel):
    """The items that the lead looks for: the one `screen`, those of `annotator`, in that `state`,
    with that `label` on the `metric` (`""`: cannot tell), on which people `differ`, whose texts
    hold `text`. What is empty, or None, does not matter. At most `most` of them are shown."""

    screen: str = ""
    state: State | Literal[""] = ""
    annotator: str = ""
    metric: str = ""
    label: str | None = None
    differ: bool = False
    text: str = ""
    most: int = Limits(default=50, ge=1, le=1000)


class Section(StrictModel):
    """A text under its heading. `slot` counts texts that are compared, in an order that says
    nothing; each annotator sees them in another order, under letters."""

    heading: str
    text: str
    slot: int | None = None
    part: int = 0


class Option(StrictModel):
    """A label that may be given: `value` is stored, `text` is shown."""

    value: str
    text: str
    about: str = ""


class ScreenField(StrictModel):
    """One thing that is asked. Without options it is answered in words.

    `metric` is what figures are grouped by, least severe option first where `ordinal`; `about`
    tells apart the fields of one metric. `when` names another field and its label: only then is
    this one asked. Where `prefers`, the first two options are for the texts in slots 0 and 1. Of
    the first `together` options several may be given, with ` | ` between them.
    """

    metric: str
    title: str
    question: str
    options: tuple[Option, ...] = ()
    ordinal: bool = False
    slot: int | None = None
    part: int = 0
    about: str = ""
    required: bool = True
    when: tuple[str, str] | None = None
    prefers: bool = False
    together: int = 0

    @model_serializer(mode="wrap")
    def _as_before(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # So that the hash of a screen is what it was before several could be given together.
        return {k: v for k, v in plain(self).items() if v or k != "together"}

    @property
    def key(self) -> str:
        """Its name on the screen."""
        return f"{self.metric}@{self.about}" if self.about else self.metric

    @property
    def values(self) -> tuple[str, ...]:
        """The labels that may be given."""
        return tuple(option.value for option in self.options)

    def given_in(self, label: str | None) -> list[str]:
        """The labels that were given as one, in the order of giving."""
        if label is None:
            return []
        return label.split(BETWEEN) if self.together else [label]

    def admits(self, label: str) -> bool:
        """True where the label is among the options, or each of several once."""
        given = self.given_in(label)
        several = {*given} <= {*self.values[: self.together]} and len({*given}) == len(given)
        return several or label in self.values


class Screen(StrictModel):
    """Texts and what is asked about them. A second part is shown once the first is complete, which
    can then no longer be changed. `group` says which screens belong together (a question)."""

    id: str
    group: str
    sections: tuple[Section, ...]
    fields: tuple[ScreenField, ...]

    @cached_property
    def hash(self) -> str:
        """Changes with anything that the annotator reads."""
        return content_hash([self._texts, [f.model_dump(mode="json") for f in self.fields]])

    def field_hash(self, key: str) -> str:
        """Changes with the texts and with what this field asks; a field of another metric may come
        or go. Empty for a field that is not there; the whole screen is a field too."""
        if key in (WHOLE, PART):
            return self.hash
        field = self.field(key.removeprefix(SPANS))
        return content_hash([self._texts, field.model_dump(mode="json")]) if field else ""

    @cached_property
    def _texts(self) -> list[Any]:
        return [section.model_dump(mode="json") for section in self.sections]

    def field(self, key: str) -> ScreenField | None:
        """The field of that key."""
        return next((field for field in self.fields if field.key == key), None)

    @property
    def parts(self) -> int:
        """The number of parts that are shown one after the other."""
        return 1 + max(*(s.part for s in self.sections), *(f.part for f in self.fields))

    def asked(self, labels: Labels, part: int | None = None) -> list[ScreenField]:
        """The fields that are asked, given the labels so far; of one part or of all."""
        return [
            field
            for field in self.fields
            if part in (None, field.part)
            and (field.when is None or labels.get(field.when[0]) == field.when[1])
        ]

    def complete(self, labels: Labels, part: int | None = None) -> bool:
        """True where everything that must be answered is."""
        asked = self.asked(labels, part)
        return all(labels.get(f.key) is not None for f in asked if f.required)

    def revealed(self, labels: Labels) -> int:
        """The last part that may be shown."""
        return min(int(labels.get(PART) or 0), self.parts - 1)

    def state(self, labels: Labels) -> State:
        """The state of an annotator's work on it."""
        if self.revealed(labels) == self.parts - 1 and self.complete(labels):
            return "done"
        if labels.get(WHOLE) == SKIP:
            return "skipped"
        return "begun" if any(label is not None for label in labels.values()) else "new"

    def shown_to(self, annotator: str, seed: int, revealed: int = 0) -> dict[str, Any]:
        """The screen as JSON for one annotator, up to the part that is `revealed`.

        Texts that are compared stand in an order of the annotator's own, unless a second part may
        speak of the first one. The labels that come back do not depend on it.
        """
        order = sorted({s.slot for s in self.sections if s.slot is not None})
        if self.parts == 1:
            random.Random(content_hash([seed, annotator, self.id])).shuffle(order)
        letter = {slot: LETTERS[place] for place, slot in enumerate(order)}
        by_slot = {s.slot: s for s in self.sections if s.slot is not None}
        turn = (by_slot[slot] for slot in order)  # they change places among themselves
        sections = [s if s.slot is None else next(turn) for s in self.sections]
        fields = [f for f in self.fields if f.part <= revealed]
        fields.sort(key=lambda f: (f.part, letter.get(f.slot, "") if f.slot is not None else ""))
        return {
            "id": self.id,
            "parts": self.parts,
            "revealed": revealed,
            "sections": [
                {
                    "n": self.sections.index(s),
                    "heading": s.heading if s.slot is None else f"{s.heading} {letter[s.slot]}",
                    "text": s.text,
                    "tree": markdown_tree(s.text),
                    "compared": s.slot is not None,
                    "part": s.part,
                }
                for s in sections
                if s.part <= revealed
            ],
            "fields": [_shown_field(field, letter) for field in fields],
        }


def spans_in(screen: Screen, said: str | None) -> list[dict[str, Any]]:
    """The words that are marked: `section`, its `heading`, `start`, `end` and `text`. Empty where
    anything is no part of a text."""
    try:
        spans = _SPANS.validate_json(said or "[]", strict=True)
    except ValidationError:
        return []
    texts = [(s.heading, s.text) for s in screen.sections]
    if not all(0 <= n < len(texts) and 0 <= a < b <= len(texts[n][1]) for n, a, b in spans):
        return []
    return [
        {"section": n, "heading": texts[n][0], "start": a, "end": b, "text": texts[n][1][a:b]}
        for n, a, b in spans
    ]


def _shown_field(field: ScreenField, letter: Mapping[int, str]) -> dict[str, Any]:
    options = [option.model_dump() for option in field.options]
    if field.prefers:
        for slot in (0, 1):
            options[slot]["text"] = f"{letter[slot]} is better"
        options[:2] = sorted(options[:2], key=lambda option: str(option["text"]))
    return {
        "key": field.key,
        "title": field.title if field.slot is None else f"{letter[field.slot]}: {field.title}",
        "question": field.question,
        "options": options,
        "part": field.part,
        "required": field.required,
        "when": field.when,
        "together": field.together,
    }
