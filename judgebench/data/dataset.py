"""The items, labels and verdicts of one data set, and whether they fit together."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple

from judgebench.data.conversation import (
    KnownPairs,
    WantedPairs,
    chosen,
    compared_by,
    pair_of,
    preferences,
)
from judgebench.data.draft import ID_FORMS
from judgebench.data.findings import DERIVED, REPEATED, Findings
from judgebench.data.formats import clean, is_blank
from judgebench.data.tables import open_table
from judgebench.errors import SetupError, nearest, shorten, some
from judgebench.records import (
    SEVERAL,
    Answer,
    AnswerKind,
    Blindness,
    HumanLabel,
    Status,
    group_by_key,
)
from judgebench.rubric import Rubric, fold
from judgebench.studies.answers import likeness, repeats_of
from judgebench.text import listed

_GUESSES = 20  # unknown ids for which the nearest known one is looked up
_MOST_CELLS = 10**8  # items times annotators
_EXAMPLES = 3  # repeats that are named

_NUMBERED = (
    "one row, or a column `repeat`, `run`, `epoch` or `seed` that numbers a judge's draws (of "
    "another name: --column NAME=repeat)"
)
_UNNAMED = {
    "pair": "no two answers of this group, the question, have these names as systems or ids",
    "criterion": "no answer has this criterion",
}


class Key(NamedTuple):
    """The item, annotator and metric that a human label belongs to."""

    item_id: str
    annotator: str
    metric: str


class Position(NamedTuple):
    """The file and line where something was read."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class VerdictCell:
    """The entry of a file on one item, judge and metric; of a whole reply the metric is empty.

    `text` is what stands where a label should, and is none. `status` is as the file gives it.
    `shown_first` is the label that means the response of a pair which the judge was shown first,
    `rationale` the reasons that the judge gave.
    """

    place: Position
    label: str | None = None
    text: str = ""
    status: Status | None = None
    raw: str = ""
    repeat: str = ""
    probabilities: Mapping[str, float] | None = None
    shown_first: str = ""
    rationale: str = ""

    @property
    def content(self) -> tuple[object, ...]:
        """All that counts, and not where it stands or why."""
        return (
            self.label, self.text, self.status, self.raw, self.probabilities, self.shown_first,
        )  # fmt: skip

    @property
    def in_words(self) -> str:
        """The label, else what stands in its place."""
        return shorten(self.label or self.text or self.raw or (self.status or ""))


_NOTHING = VerdictCell(Position("", 0)).content


class DatasetBuilder:
    """The items, labels and verdicts read so far of one data set."""

    def __init__(self, rubric: Rubric, wanted: Rubric) -> None:
        self.rubric = rubric
        self.wanted = frozenset(metric.id for metric in wanted.metrics)
        self.kinds = wanted.kinds  # of rows
        self.findings = Findings()
        self.labels: dict[Key, tuple[str | None, Position]] = {}
        self.verdicts: dict[tuple[Key, str], VerdictCell] = {}  # by draw of the judge
        self.repeats = ""  # which of several labels of one person counts
        self.without_texts = False  # whether items need no text: every id is one
        self.only_labelled = False  # whether items that nobody labelled do not count
        self.textless: dict[str, None] = {}  # files that have items and no column of their texts
        self.blind: set[str] = set()  # what the rows of human labels say of it
        self.sources: dict[str, str] = {}
        self.collected: dict[str, None] = {}  # sentences on how labels were collected
        self.judge = ""  # whose verdicts stand in a table that names nobody
        self.known_pairs: KnownPairs = {}  # that verdicts may name
        self.labelled: frozenset[tuple[str, str]] | None = None  # items by metric, where known
        self.named: dict[str, tuple[Answer, Position]] = {}  # pairs and criteria that labels name
        self.about: dict[str, tuple[Answer, Position]] = {}  # of items, by labels, then by verdicts
        self.pairs: WantedPairs | None = None  # of which answers pairs are made
        self._people: dict[str, dict[str, None]] = {}  # spellings of names that are one person's
        self._ids: dict[str, str] = {}  # of items by their compared form
        self._answers: dict[str, Answer] = {}  # by item id, in their order
        self._places: dict[str, Position] = {}  # where each was read
        self._by_nfc: dict[str, str] = {}

    def known_id(self, item_id: str, form: str) -> str:
        """The id as it was first written, where ids are compared in a form."""
        if not form:
            return item_id
        compared = "\0".join(map(ID_FORMS[form], item_id.split(" · ")))
        return self._ids.setdefault(compared, item_id)

    def person(self, name: str) -> str:
        """An annotator's name as it was first written: case, space and accents make no other."""
        spellings = self._people.setdefault(fold(name), {})
        spellings[name] = None
        return next(iter(spellings))

    def find_pair(self, question: str, names: Sequence[str]) -> tuple[str, Sequence[str]] | None:
        """The id of a pair that is known, and its names in their order."""
        both = frozenset(names)
        return self.known_pairs.get((question, both)) or self.known_pairs.get(("", both))

    def plain_answers(self) -> list[Answer]:
        """The items that are no pairs or criteria, which these are made of."""
        return [answer for answer in self._answers.values() if answer.kind == "answer"]

    def derived_rows(self) -> dict[str, Answer]:
        """The pairs and criteria."""
        return {i: answer for i, answer in self._answers.items() if answer.kind != "answer"}

    def find(self, item_id: str) -> Answer | None:
        """The item of that id."""
        return self._answers.get(item_id)

    def answers(self) -> tuple[Answer, ...]:
        """The answers in the order in which they were read."""
        return tuple(self._answers.values())

    @property
    def blindness(self) -> Blindness:
        """`no` where a row of human labels says in its column `made_blind` that a model's label
        was in sight, `yes` where every row says that none was."""
        return "no" if "no" in self.blind else "yes" if self.blind == {"yes"} else "unknown"

    def human_labels(self) -> Iterator[HumanLabel]:
        """The labels as records, in the order in which they were read."""
        return (HumanLabel(*key, label) for key, (label, _) in self.labels.items())

    def add_item(self, answer: Answer, place: Position, *, labelled: bool = False) -> bool:
        """Keep an answer. False where another answer has the same id. That the same one stands in
        several rows is usual where these are `labelled`, by an annotator each."""
        if self._collides(answer.item_id, place):
            return False
        first = self._answers.setdefault(answer.item_id, answer)
        if first is answer:
            self._places[answer.item_id] = place
            return True
        if first == answer:
            if not labelled:
                self.findings.add("duplicate_item", "duplicate item, kept once", place)
            return True
        both = completed(first, answer)
        if first.text == answer.text and both == completed(answer, first):
            self._answers[answer.item_id] = both  # each says what the other does not
            return True
        names = (part.name for part in fields(Answer))
        differ = ", ".join(n for n in names if getattr(first, n) != getattr(answer, n))
        message = f"occurs {_seen(self._places[answer.item_id], place)} with another {differ}"
        self.findings.add("conflicting_item", message, place, "item_id", answer.item_id)
        return False

    def add_about(self, said: Answer, place: Position, by_judge: bool = False) -> None:
        """Keep the question, group, system and metadata that a row of labels, or of verdicts, gives
        an item. Labels that differ are reported; verdicts fill in what nothing else says."""
        first, at = self.about.setdefault(said.item_id, (said, place))
        if first != said:
            if not by_judge:
                self._report_differences(first, at, said, place)
            self.about[said.item_id] = completed(first, said), at

    def _report_differences(
        self, first: Answer, at: Position, said: Answer, place: Position
    ) -> None:
        """Report what two rows say otherwise of an item."""
        before = _facts(first)
        for name, other in _facts(said).items():
            if other and before.get(name, "") not in ("", other):
                one = shorten(before[name])
                message = f"{shorten(said.item_id)} has the {name} {one} {_seen(at, place)}"
                self.findings.add("conflicting_item", message, place, name, other)

    def add_labelled_items(self) -> None:
        """Make an item without a text of every id that has a label."""
        for key, (_, place) in self.labels.items():
            if not self.has(key.item_id):
                said, _ = self.about.get(key.item_id, (Answer(key.item_id, ""), place))
                if self.add_item(said, place):
                    self.textless[place.file] = None

    def add_label(self, key: Key, label: str | None, place: Position, column: str) -> None:
        """Keep a label. Duplicates are counted; two that differ are an error."""
        known = self.labels.get(key)
        if known is None:
            self.labels[key] = (label, place)
            return
        if known[0] is None or (self.repeats == "last" and label is not None):
            self.labels[key] = (label, place)  # a blank cell does not contradict a label
        is_same = label is None or known[0] in (None, label)
        if is_same or self.repeats:
            message = "duplicate label of an annotator, item and metric, kept once"
            if not is_same:
                message = f"another label of the same annotator, the {self.repeats} one counts"
            self.findings.add("duplicate_label", message, place, column)
            return
        message = (
            f"{shorten(key.annotator)} said {known[0]!r} of {shorten(key.item_id)} "
            f"on {key.metric} {_seen(known[1], place)}"
        )
        self.findings.add("conflicting_label", message, place, column, label)

    def is_due(self, item_id: str, metric: str) -> bool:
        """True where a judge that left the cell blank lacks a verdict: somebody labelled it, or
        nobody knows who labelled what."""
        return self.labelled is None or (item_id, metric) in self.labelled

    def add_verdict(self, key: Key, said: VerdictCell, column: str) -> None:
        """Keep what a judge said of an item on a metric, in each of its draws. Two that differ are
        an error, and two of one draw."""
        known = self.verdicts.setdefault((key, said.repeat), said)
        if known is said:
            return
        if (said.content, said.place) == (known.content, known.place):
            return  # a record of a log is read once for each entry of a list in it
        is_same = said.content in (known.content, _NOTHING) or known.content == _NOTHING
        if is_same and not said.repeat:
            self.verdicts[key, ""] = said if known.content == _NOTHING else known
            self.findings.add(
                "duplicate_label",
                "duplicate verdict of a judge, item and metric, kept once",
                said.place,
                column,
            )
        else:
            about = f" on {key.metric}" if key.metric else ""
            draw = f", draw {said.repeat}," if said.repeat else ""
            message = (
                f"{shorten(key.annotator)} said {known.in_words} of {shorten(key.item_id)}{about}"
                f"{draw} {_seen(known.place, said.place)}"
            )
            found, allowed = said.label or said.text or said.raw, "" if draw else _NUMBERED
            self.findings.add("conflicting_verdict", message, said.place, column, found, allowed)

    def settle(self) -> None:
        """Once all is read: labels whose items do not exist are reported."""
        self._check_annotators()
        for item_id, known in self.about.items():
            if answer := self.find(item_id):
                self._report_differences(answer, self._places[item_id], *known)
        self.complete()
        add_made_rows(self)
        self._note_people()
        self._check_items()
        check_kinds(self)
        if "answer" not in self.kinds:
            self._answers = self.derived_rows() or self._answers
        if not self.without_texts:
            self._report_repeats()

    def want_pairs(self, pairs: WantedPairs) -> None:
        """Make these pairs of the answers, and read the labels that preferences follow from.

        Raises SetupError where a metric is none of the rubric.
        """
        self.pairs = pairs
        if pairs.prefer:
            by, _ = compared_by(pairs, self.rubric)
            self.wanted |= {metric.id for metric in by}

    def complete(self) -> None:
        """Give the items what else is known of them and they lack, but for the question, which
        judges would read."""
        for item_id, (said, _) in self.about.items():
            if answer := self.find(item_id):
                whole = completed(answer, said)
                self._answers[item_id] = replace(whole, question=answer.question)

    def _note_people(self) -> None:
        """Note whose name is written in several ways."""
        for spellings in self._people.values():
            if len(spellings) > 1:
                message = f"{listed([*spellings])} are one person, spelled in several ways"
                self.findings.add("one_person", message, ("", None))

    def _check_annotators(self) -> None:
        """Report annotators and items whose labels would not fit into memory."""
        people = len({key.annotator for key in self.labels})
        items = len({key.item_id for key in self.labels})
        if people * items > _MOST_CELLS:
            message = (
                f"{people:,} annotators of {items:,} items cannot be compared: does this column "
                "name who labelled?"
            )
            _, place = next(iter(self.labels.values()))
            self.findings.add("malformed", message, (place.file, None), "annotator")

    def _check_items(self) -> None:
        if self.findings.lost_rows or self.without_texts or not self.plain_answers():
            return
        reported: set[Position] = set()
        for key in [key for key in self.labels if not self.has(key.item_id)]:
            _, place = self.labels.pop(key)
            if self.only_labelled:
                self.findings.add("ignored_label", "label of an item without an answer", place)
            elif place not in reported:
                reported.add(place)
                self._report_unknown(key.item_id, place, guess=len(reported) <= _GUESSES)

    def _report_repeats(self) -> None:
        answers = self.answers()
        repeats = repeats_of(map(likeness, answers), len(answers))
        if note := repeats.note():
            pairs = zip(repeats.rows.tolist(), repeats.firsts.tolist(), strict=True)
            ids = ([shorten(answers[row].item_id) for row in pair] for pair in pairs)
            named = some((f"{row} repeats {first}" for row, first in ids), _EXAMPLES)
            self.findings.add(REPEATED, f"{note} ({named})", ("", None))

    def has(self, item_id: str) -> bool:
        """True where there is an item of that id."""
        return item_id in self._answers

    def _collides(self, item_id: str, place: Position) -> bool:
        """True where the id differs from another only in how accents are stored, which is
        unseen."""
        if item_id.isascii():
            return False
        other = self._by_nfc.setdefault(unicodedata.normalize("NFC", item_id), item_id)
        if other == item_id:
            return False
        self.findings.add(
            "id_collision",
            f"{other!a} and {item_id!a} differ only in how their accents are stored",
            place,
            "item_id",
        )
        return True

    def _report_unknown(self, item_id: str, place: Position, guess: bool) -> None:
        if self._collides(item_id, place):
            return
        message = "no answer has this id"
        if item_id in self.named:
            message = _UNNAMED[self.named[item_id][0].kind]
        elif guess:
            message += nearest(item_id, [*self._answers])
        self.findings.add("unknown_item", message, place, "item_id", item_id)


def completed(first: Answer, said: Answer) -> Answer:
    """The item with what is `said` of it elsewhere and itself it does not say.

    >>> completed(Answer("a", ""), Answer("a", "", "Is it safe?")).group
    'Is it safe?'
    """
    if said.parts:  # of a pair or a criterion, which says its group already
        return first
    own_group = _own_group(first) or (first.question and not _own_group(said))
    more = {c: text for c, text in said.metadata.items() if is_blank(first.metadata.get(c, ""))}
    return replace(
        first,
        question=first.question or said.question,
        system=first.system or said.system,
        group=first.group if own_group else said.group,
        metadata={**first.metadata, **more} if more else first.metadata,
    )


def _own_group(answer: Answer) -> str:
    """The group that an item states itself, and that does not follow from its question or id."""
    return "" if answer.group in (answer.question, answer.item_id) else _plain(answer.group)


def _facts(answer: Answer) -> dict[str, str]:
    """What an item states itself, but for its text."""
    stated = {"question": answer.question, "group": _own_group(answer), "system": answer.system}
    return {name: _plain(text) for name, text in {**stated, **answer.metadata}.items()}


def _plain(text: str) -> str:
    return " ".join(clean(text).split())


def _seen(first: Position, now: Position) -> str:
    elsewhere = f" of {first.file}" if first.file != now.file else ""
    return f"in row {first.line}{elsewhere}"


_HOW: dict[AnswerKind, str] = {
    "pair": "`pairs: all` in bench.yaml, which compares the answers to each question, or labels "
    "with columns of the roles first and second",
    "criterion": "columns of the roles criteria and criterion in a layout.yaml",
}


def add_made_rows(dataset: DatasetBuilder) -> None:
    """Add the rows that labels name, the pairs that are wanted, and people's preferences."""
    if dataset.kinds == {"answer"} or dataset.findings.lost_rows:
        return
    _add_named(dataset)
    if dataset.pairs and "pair" in dataset.kinds:
        _add_chosen(dataset, dataset.pairs)


def _add_named(dataset: DatasetBuilder) -> None:
    """Add what labels name. Where there are answers, only pairs of these: other labels are then of
    unknown items."""
    named = [(row, at) for row, at in dataset.named.values() if row.kind in dataset.kinds]
    answers = dataset.plain_answers()
    ids: dict[tuple[str, str], str] = {}
    for answer in answers:
        key = (answer.group, answer.system)
        ids[key] = "" if key in ids else answer.item_id  # of several, none is meant

    def find(question: str, name: str) -> Answer | None:
        return dataset.find(ids.get((question, name)) or name)

    for row, place in named:
        if not answers:
            dataset.textless[place.file] = None
            dataset.add_item(row, place)
        elif row.kind == "pair":
            a, b = (find(row.group, part.name) for part in row.responses)
            if a and b:
                dataset.add_item(pair_of(a, b, row.item_id), place)


def _add_chosen(dataset: DatasetBuilder, wanted: WantedPairs) -> None:
    """Add the pairs of answers that are wanted and not there yet."""
    place = Position(wanted.file, 0)
    rows = (row for row in dataset.derived_rows().values() if row.responses)
    there = {frozenset(part.item_id for part in row.responses): row for row in rows}
    try:
        for a, b in _chosen(dataset, wanted):
            if (both := frozenset((a.item_id, b.item_id))) not in there:
                there[both] = pair_of(a, b)
                dataset.add_item(there[both], place)
    except SetupError as error:
        dataset.findings.extend("bad_pair", error.problems)
    if not wanted.prefer or dataset.findings.errors:
        return
    by, on = compared_by(wanted, dataset.rubric)
    who: dict[str, None] = {}
    for label in preferences(there.values(), dataset.human_labels(), by, on):
        key = Key(label.item_id, label.annotator, label.metric)
        if key not in dataset.labels:
            dataset.labels[key] = (label.label, place)
            who[label.annotator] = None
    if not who:
        dataset.findings.add(
            "bad_pair",
            "nobody labelled both responses of a pair, so that no preference follows",
            (wanted.file, None),
            "pairs.prefer",
        )
        return
    dataset.findings.add(
        DERIVED,
        f"the preferences of {some(who)} on {on.id} are derived: of two responses they prefer the "
        f"one to which they gave the better label of {wanted.prefer}",
        ("", None),
    )


def _chosen(dataset: DatasetBuilder, wanted: WantedPairs) -> Iterator[tuple[Answer, Answer]]:
    if isinstance(wanted.source, Path):
        yield from _named_in(wanted.source, dataset)
        return
    answers = dataset.plain_answers()
    questions = group_by_key(((a.group, a.question), row) for row, a in enumerate(answers))
    for i, j in chosen([*questions.values()], wanted):
        yield answers[i], answers[j]


def _named_in(path: Path, dataset: DatasetBuilder) -> Iterator[tuple[Answer, Answer]]:
    """The pairs that a file names in its two columns; what is wrong with it is reported."""
    table = open_table(path, dataset.findings)
    if table is None:
        return
    if len(table.columns) != 2:
        dataset.findings.add(
            "bad_pair",
            "a file of pairs has two columns, of item ids",
            (table.file, 1),
            found=some(table.columns),
        )
        return
    for line, *ids in zip(table.lines, *map(table.texts, table.columns), strict=True):
        a, b = both = [dataset.find(item_id) for item_id in ids]
        unknown = [i for i, one in enumerate(both) if one is None or one.kind != "answer"]
        faults = dict.fromkeys(unknown, "no answer has this id")
        if a and b and not faults:
            if a is b:
                faults[1] = "is the same answer"
            elif (a.group, a.question) != (b.group, b.question):
                faults[1] = "answers another question"
            else:
                yield a, b
        for i, message in faults.items():
            at = (table.file, line)
            dataset.findings.add("bad_pair", message, at, [*table.columns][i], ids[i])


def check_kinds(dataset: DatasetBuilder) -> None:
    """Report labels of a metric of pairs on what is none, and so on."""
    if dataset.rubric.kinds == {"answer"} or dataset.findings.lost_rows:
        return
    of = {metric.id: metric.of for metric in dataset.rubric.metrics}
    told: set[Position] = set()
    has_answers = bool(dataset.plain_answers())
    for key, (label, place) in list(dataset.labels.items()):
        item = dataset.find(key.item_id)
        wanted, kind = of[key.metric], item.kind if item else "answer"
        if kind == wanted:
            continue
        if label is None:
            del dataset.labels[key]  # of a wide table, in which rows of all kinds stand
        elif place not in told and (item or not has_answers):
            told.add(place)
            one = "an answer" if kind == "answer" else f"a {kind}"
            dataset.findings.add(
                "unknown_item",
                f"the metric {key.metric} is about {SEVERAL[wanted]}, and this is {one}",
                place,
                "item_id",
                key.item_id,
                _HOW.get(wanted, ""),
            )


def report_lacking(dataset: DatasetBuilder) -> None:
    """Report that there is nothing of a kind that the wanted metrics are about."""
    for kind in sorted(
        dataset.kinds - {"answer", *(row.kind for row in dataset.derived_rows().values())}
    ):
        dataset.findings.add(
            "no_answers",
            f"the rubric has metrics of {SEVERAL[kind]}, and the data hold none",
            ("", None),
            allowed=_HOW[kind],
        )
