"""The items and labels of the files of one data set, and whether they fit together."""

from __future__ import annotations

import tempfile
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from judgebench.data.answer_file import AnswerFile, Facts, answer_line
from judgebench.data.cells import clean, is_blank, spreadsheet_damage
from judgebench.data.findings import DERIVED, NEAR_AMONG, REPEATED, Findings, nearest
from judgebench.data.open_table import open_table
from judgebench.data.pairs import (
    KnownPairs,
    WantedPairs,
    chosen,
    compared_by,
    ids_of,
    linked,
    pair_of,
    preferences,
)
from judgebench.errors import DiskFailed, SetupError, shorten, some
from judgebench.records import SEVERAL, Answer, Blindness, HumanLabel, Kind, Status
from judgebench.rubric import Rubric
from judgebench.studies.answers import IdTable, Repeats, repeats_of

MOST_IN_MEMORY = 4 << 20  # bytes of answers; more are kept in a file
_GUESSES = 20  # unknown ids for which the nearest known one is looked up
_MOST_CELLS = 10**8  # items times annotators
_EXAMPLES = 3  # repeats that are named
_CARRIED = ("question", "group", "system")  # with each item, beside its metadata

_UNNAMED = {
    "pair": "no two answers of this group, the question, have these names as systems or ids",
    "criterion": "no answer has this criterion",
}

Who = Literal["annotator", "judge"]


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
class Said:
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
        shown = [self.shown_first] if self.shown_first else []
        return self.label, self.text, self.status, self.raw, self.probabilities, *shown

    @property
    def in_words(self) -> str:
        """The label, else what stands in its place."""
        return shorten(self.label or self.text or self.raw or (self.status or ""))


_NOTHING = Said(Position("", 0)).content


@dataclass(frozen=True)
class VerdictSource:
    """The files in which verdicts stand. `files` are tables, data.yaml files and DataFrames.

    They are those of the one judge `judge` or, without it, of every judge that is named there.
    `columns` (metric -> column) are read beside the labels of data files, `replies` says that whole
    replies are read. `folder` is where the paths in a data.yaml start. Where `may_fail`, a judge of
    whom nothing can be read is not a mistake in the table: its columns are known.
    """

    files: Sequence[Any]
    judge: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    replies: bool = False
    folder: Path | None = None
    may_fail: bool = False


class Collected:
    """The items, labels and verdicts read so far from the files of one data set."""

    def __init__(
        self, rubric: Rubric, wanted: Rubric, findings: Findings,
        source: VerdictSource | None = None,
    ) -> None:  # fmt: skip
        self.rubric = rubric
        self.wanted = frozenset(metric.id for metric in wanted.metrics)
        self.kinds = wanted.kinds  # of rows
        self.findings = findings
        self.labels: dict[Key, tuple[str | None, Position]] = {}
        self.left_out: set[str] = set()  # ids of rows that were skipped or reported
        self.source = source  # of verdicts; None where answers and human labels are read
        self.verdicts: dict[Key, Said] = {}  # of judges
        self.without_texts = False  # whether items need no text: every id is one
        self.people_only = False  # whether entries of verdicts are read elsewhere
        self.keeps_empty = False  # whether a plain file's empty texts are answers
        self.textless: dict[str, None] = {}  # files that have items and no column of their texts
        self.blank = 0
        self.blind: set[str] = set()  # what the rows of human labels say of it
        self.ignore_unknown = False
        self.sources: dict[str, str] = {}
        self.files: dict[str, str] = {}  # absolute path -> sha256
        self.known_pairs: KnownPairs = {}  # that labels may name
        self.labelled: frozenset[tuple[str, str]] | None = None  # items by metric, where known
        self.named: dict[str, tuple[Answer, Position]] = {}  # pairs and criteria that labels name
        self.said: dict[str, tuple[Answer, Position]] = {}  # by labels, of items
        self.said_by_judges: dict[str, Answer] = {}  # fills in what nothing else says of an item
        self.pairs: WantedPairs | None = None  # of which answers pairs are made
        self.made: dict[str, Kind] = {}  # rows that are no answers
        self.has_answers = False  # which pairs and criteria are made of
        self._answers = AnswerSpool()
        self._rows = IdTable(self._answers.item_id)
        self._files: dict[str, int] = {}
        self._file_of, self._line_of = array("i"), array("q")  # where each answer was read
        self._by_nfc: dict[str, str] = {}
        self._conflicts: list[tuple[Key, str, Position, str, str]] = []

    @property
    def who(self) -> Who:
        """Whose labels are read: what their column is called."""
        return "judge" if self.source else "annotator"

    @property
    def n_answers(self) -> int:
        """The number of different items so far."""
        return len(self._rows)

    def plain_answers(self) -> Iterator[tuple[int, Answer]]:
        """The items that are no pairs or criteria, by their row."""
        for row in range(len(self._rows)):
            if (answer := self._answers[row]).kind == "answer":
                yield row, answer

    def answer(self, row: int) -> Answer:
        """The item of that row."""
        return self._answers[row]

    def find(self, item_id: str) -> Answer | None:
        """The item of that id."""
        row = self._rows.find(item_id)
        return None if row < 0 else self._answers[row]

    def answers(self) -> Sequence[Answer]:
        """The answers in the order in which they were read; no more may be added after."""
        return self._answers.done()

    @property
    def blindness(self) -> Blindness:
        """`no` where a row of human labels says in its column `made_blind` that a model's label
        was in sight, `yes` where every row says that none was."""
        return "no" if "no" in self.blind else "yes" if self.blind == {"yes"} else "unknown"

    def human_labels(self) -> Iterator[HumanLabel]:
        """The labels as records, in the order in which they were read."""
        for key, (label, _) in self.labels.items():
            yield HumanLabel(key.item_id, key.annotator, key.metric, label)

    def add_item(self, answer: Answer, place: Position, *, labelled: bool = False) -> bool:
        """Keep an answer. False where another answer has the same id. That the same one stands in
        several rows is usual where these are `labelled`, by an annotator each."""
        if self._collides(answer.item_id, place):
            return False
        row = self._rows.find_or_add(answer.item_id)
        if row == len(self._answers):
            self._answers.add(answer)
            self._file_of.append(self._files.setdefault(place.file, len(self._files)))
            self._line_of.append(place.line)
            if (kind := answer.kind) == "answer":
                self.has_answers = True
            else:
                self.made[answer.item_id] = kind
            return True
        first = self._answers[row]
        if first == answer:
            if not labelled:
                self.findings.add("duplicate_item", "duplicate item, kept once", place)
            return True
        names = [part.name for part in fields(Answer)]
        parts = [name for name in names if getattr(first, name) != getattr(answer, name)]
        where = Position(list(self._files)[self._file_of[row]], self._line_of[row])
        self.findings.add(
            "conflicting_item",
            f"occurs {_seen(where, place)} with another {', '.join(parts)}",
            place,
            "item_id",
            answer.item_id,
        )
        return False

    def add_said(self, said: Answer, place: Position, by_judge: bool = False) -> None:
        """Keep the question, group, system and metadata that a row of labels, or of verdicts, gives
        an item."""
        item_id = said.item_id
        if by_judge:
            known = self.said_by_judges.setdefault(item_id, said)
            if known != said:
                self.said_by_judges[item_id] = completed(known, said)
            return
        first, at = self.said.setdefault(item_id, (said, place))
        if first != said:
            self.said[item_id] = self._agreed(first, at, said, place), at

    def _agreed(self, first: Answer, at: Position, said: Answer, place: Position) -> Answer:
        """The item with what labels say of it, where itself it does not say it; two that differ
        are reported."""
        stated = [
            *((name, _own(first, name), _own(said, name)) for name in _CARRIED),
            *(
                (c, _plain(first.metadata.get(c, "")), _plain(said.metadata[c]))
                for c in said.metadata
            ),
        ]
        for name, one, other in stated:
            if one and other and one != other:
                self.findings.add(
                    "conflicting_item",
                    f"{shorten(said.item_id)} has the {name} {shorten(one)} {_seen(at, place)}",
                    place,
                    name,
                    other,
                )
        return completed(first, said)

    def what_is_said(self) -> dict[str, Answer]:
        """The items as labels and verdicts describe them, without texts."""
        by_labels = {item_id: said for item_id, (said, _) in self.said.items()}
        return completed_all(by_labels, self.said_by_judges)

    def add_labelled_items(self) -> None:
        """Make an item without a text of every id that has a label."""
        known = self.what_is_said()
        for key, (_, place) in self.labels.items():
            said = known.get(key.item_id) or Answer(key.item_id, "")
            if not self.has(key.item_id) and self.add_item(said, place):
                self.textless[place.file] = None

    def add_label(self, key: Key, label: str | None, place: Position, column: str) -> None:
        """Keep a label. Duplicates are counted; two that differ are an error."""
        known = self.labels.get(key)
        if known is None:
            self.labels[key] = (label, place)
            return
        if known[0] is None:  # a blank cell does not contradict a label
            self.labels[key] = (label, place)
        if label is None or known[0] in (None, label):
            self.findings.add(
                "duplicate_label",
                "duplicate label of an annotator, item and metric, kept once",
                place,
                column,
            )
            return
        self._conflicts.append(
            (
                key,
                f"{shorten(key.annotator)} said {known[0]!r} of {shorten(key.item_id)} "
                f"on {key.metric} {_seen(known[1], place)}",
                place,
                column,
                label,
            )
        )

    def is_due(self, item_id: str, metric: str) -> bool:
        """True where a judge that left the cell blank lacks a verdict: somebody labelled it, or
        nobody knows who labelled what."""
        return self.labelled is None or (item_id, metric) in self.labelled

    def add_verdict(self, key: Key, said: Said, column: str) -> None:
        """Keep what a judge said of an item on a metric. Two that differ are an error; of several
        passes the first is kept."""
        known = self.verdicts.setdefault(key, said)
        if known is said:
            return
        if known.repeat != said.repeat:
            self.findings.add(
                "later_repeat",
                "a later pass of the same judge over the same item, not read",
                said.place,
                column,
            )
        elif said.content in (known.content, _NOTHING) or known.content == _NOTHING:
            self.verdicts[key] = said if known.content == _NOTHING else known
            self.findings.add(
                "duplicate_label",
                "duplicate verdict of a judge, item and metric, kept once",
                said.place,
                column,
            )
        else:
            about = f" on {key.metric}" if key.metric else ""
            message = (
                f"{shorten(key.annotator)} said {known.in_words} of {shorten(key.item_id)}{about} "
                f"{_seen(known.place, said.place)}"
            )
            found = said.label or said.text or said.raw
            self.findings.add("conflicting_verdict", message, said.place, column, found)

    def settle(self) -> None:
        """Once all is read: labels that differ, or whose items do not exist, are reported.

        Ignored labels may differ: they change no number.
        """
        self._check_annotators()
        if self.said and self.n_answers:
            self._keep(self._with_said(answer) for answer in self._answers.done())
        self.complete(self.said_by_judges)
        if self.source is None:
            add_made_rows(self)
        for key, message, place, column, label in self._conflicts:
            if self.has(key.item_id) or not self.ignore_unknown:
                self.findings.add("conflicting_label", message, place, column, label)
        self._check_items()
        check_kinds(self)
        if self.made and "answer" not in self.kinds:
            every = self._answers  # of which pairs or criteria were made
            self._keep([every[row] for row in map(self._rows.find, self.made)])
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

    def complete(self, said: Mapping[str, Answer]) -> None:
        """Give the items what is `said` of them and they lack, but for the question, which judges
        would read."""
        if said and self.n_answers:
            known = ((a, said.get(a.item_id)) for a in self._answers.done())
            self._keep(replace(completed(a, s), question=a.question) if s else a for a, s in known)

    def _with_said(self, answer: Answer) -> Answer:
        known = self.said.get(answer.item_id)
        if known is None:
            return answer
        row = self._rows.find(answer.item_id)
        where = Position(list(self._files)[self._file_of[row]], self._line_of[row])
        return replace(self._agreed(answer, where, *known), question=answer.question)

    def _keep(self, answers: Iterable[Answer]) -> None:
        """Keep these answers in place of all."""
        kept = AnswerSpool()
        rows = IdTable(kept.item_id)
        for answer in answers:
            rows.find_or_add(answer.item_id)
            kept.add(answer)
        self._answers, self._rows = kept, rows

    def _check_annotators(self) -> None:
        """Report annotators and items whose labels would not fit into memory."""
        if len(self.labels) ** 2 <= _MOST_CELLS:
            return
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
        if self.findings.lost_rows or self.without_texts or not self.labels:
            return
        if not self.has_answers and not self.left_out:
            self.findings.add(
                "unchecked_items",
                "the files hold labels and no answers, which only a judge that is called needs: a "
                "mistyped item id in the labels cannot be noticed",
                ("", None),
            )
            return
        reported: set[Position] = set()
        for key in [key for key in self.labels if not self.has(key.item_id)]:
            _, place = self.labels.pop(key)
            if key.item_id in self.left_out:
                self.findings.add("label_without_item", "label of an item that was left out", place)
            elif self.ignore_unknown:
                self.findings.add(
                    "ignored_label",
                    "label of an unknown item, ignored as labels_for_unknown_items says",
                    place,
                )
            elif place not in reported:
                reported.add(place)
                self._report_unknown(key.item_id, place, guess=len(reported) <= _GUESSES)

    def _report_repeats(self) -> None:
        found, id_of = self._answers.repeats(), self._answers.item_id
        if note := found.note():
            pairs = np.stack([found.rows, found.firsts], axis=1)[:_EXAMPLES].tolist()
            named = [f"{shorten(id_of(row))} repeats {shorten(id_of(of))}" for row, of in pairs]
            more = ", …" if len(found.rows) > _EXAMPLES else ""
            self.findings.add(REPEATED, f"{note} ({', '.join(named)}{more})", ("", None))

    def has(self, item_id: str) -> bool:
        """True where there is an item of that id."""
        return self._rows.find(item_id) >= 0

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
        if item_id in self.named:
            self.findings.add(
                "unknown_item", _UNNAMED[self.named[item_id][0].kind], place, "item_id", item_id
            )
            return
        message = "no answer has this id"
        if damage := spreadsheet_damage(item_id):
            message += f", which {damage}"
        elif guess and self.n_answers <= NEAR_AMONG:
            message += nearest(item_id, [self._answers.item_id(i) for i in range(self.n_answers)])
        self.findings.add("unknown_item", message, place, "item_id", item_id)


def completed(first: Answer, said: Answer) -> Answer:
    """The item with what is `said` of it elsewhere and itself it does not say.

    >>> completed(Answer("a", ""), Answer("a", "", "Is it safe?")).group
    'Is it safe?'
    """
    if said.parts:  # of a pair or a criterion, which says its group already
        return first
    own_group = _own(first, "group") or (first.question and not _own(said, "group"))
    more = {c: text for c, text in said.metadata.items() if is_blank(first.metadata.get(c, ""))}
    return replace(
        first,
        question=first.question or said.question,
        system=first.system or said.system,
        group=first.group if own_group else said.group,
        metadata={**first.metadata, **more} if more else first.metadata,
    )


def completed_all(first: Mapping[str, Answer], said: Mapping[str, Answer]) -> dict[str, Answer]:
    """Items by id, each with what is `said` of it elsewhere, and all others that are known there.

    >>> sorted(completed_all({"a": Answer("a", "")}, {"b": Answer("b", "")}))
    ['a', 'b']
    """
    both = {item_id: completed(first[item_id], said[item_id]) for item_id in first.keys() & said}
    return {**said, **first, **both}


def _own(answer: Answer, name: str) -> str:
    """The value that an item states itself: not the group that follows from its question or id."""
    value = str(getattr(answer, name))
    follows = name == "group" and value in (answer.question, answer.item_id)
    return "" if follows else _plain(value)


def _plain(text: str) -> str:
    return " ".join(clean(text)[0].split())


def _seen(first: Position, now: Position) -> str:
    elsewhere = f" of {first.file}" if first.file != now.file else ""
    return f"in row {first.line}{elsewhere}"


class AnswerSpool:
    """Takes answers one by one: into memory while there are few, then into a temporary file.

    The file has no name, so that nothing of it remains however the process ends. It is
    where the system keeps such files; the variable TMPDIR names another folder. Raises DiskFailed
    where it cannot be written.
    """

    def __init__(self, most_in_memory: int | None = None) -> None:
        self._most_in_memory = MOST_IN_MEMORY if most_in_memory is None else most_in_memory
        self._few: list[Answer] = []
        self._file: IO[bytes] | None = None
        self._starts = array("q", [0])
        self._facts = Facts.of_none()
        self._flushed = 0

    def __len__(self) -> int:
        return len(self._facts.hashes)

    def __getitem__(self, row: int) -> Answer:
        return self._few[row] if self._file is None else self._filed(row)[row]

    def item_id(self, row: int) -> str:
        """The item id of that row."""
        return self._few[row].item_id if self._file is None else self._filed(row).head(row)[0]

    def add(self, answer: Answer) -> None:
        """Keep one more."""
        line, hashed = answer_line(answer)
        self._starts.append(self._starts[-1] + len(line))
        self._facts.add(answer, hashed)
        if self._file is not None:
            self._write(self._file, line)
        else:
            self._few.append(answer)
            if self._starts[-1] > self._most_in_memory:
                self._spill()

    def repeats(self) -> Repeats:
        """Those that repeat the question and text of another."""
        return repeats_of(self._facts.likenesses, len(self))

    def done(self) -> Sequence[Answer]:
        """The answers: a tuple of a few, an AnswerFile of many. None may be added afterwards."""
        return tuple(self._few) if self._file is None else self._filed(len(self) - 1)

    def _spill(self) -> None:
        try:
            self._file = tempfile.TemporaryFile(prefix="judgebench-")  # noqa: SIM115
        except OSError as error:
            raise _disk_failed(error) from error
        for answer in self._few:
            self._write(self._file, answer_line(answer)[0])
        self._few.clear()

    def _filed(self, row: int) -> AnswerFile:
        """The file, once it holds everything up to this row."""
        assert self._file is not None
        if row >= self._flushed:
            try:
                self._file.flush()
            except OSError as error:
                raise _disk_failed(error) from error
            self._flushed = len(self)
        return AnswerFile(self._file, self._starts, self._facts)

    def _write(self, file: IO[bytes], line: bytes) -> None:
        try:
            file.write(line)
        except OSError as error:
            raise _disk_failed(error) from error


def _disk_failed(error: OSError) -> DiskFailed:
    return DiskFailed(
        f"the temporary file of the answers, in {tempfile.gettempdir()}, cannot be written: "
        f"{error.strerror or error}; set TMPDIR to a folder with room"
    )


_HOW: dict[Kind, str] = {
    "pair": "`pairs: all` in bench.yaml, which compares the answers to each question, or labels "
    "with `pair: [column, column]` in a data.yaml",
    "criterion": "`criteria` in a data.yaml, and labels with `criterion: column`",
}


def add_made_rows(gathered: Collected) -> None:
    """Add the rows that labels name, the pairs that are wanted, and people's preferences."""
    if gathered.kinds == {"answer"} or gathered.findings.lost_rows:
        return
    _add_named(gathered)
    if gathered.pairs and "pair" in gathered.kinds:
        _add_chosen(gathered, gathered.pairs)


def _add_named(gathered: Collected) -> None:
    """Add what labels name. Where there are answers, only pairs of these: other labels are then of
    unknown items."""
    named = [(row, at) for row, at in gathered.named.values() if row.kind in gathered.kinds]
    ids: dict[tuple[str, str], str] = {}
    for _, answer in gathered.plain_answers() if named else ():
        key = (answer.group, answer.system)
        ids[key] = "" if key in ids else answer.item_id  # of several, none is meant

    def find(question: str, name: str) -> Answer | None:
        return gathered.find(ids.get((question, name)) or name)

    for row, place in named:
        if not gathered.has_answers:
            gathered.textless[place.file] = None
            gathered.add_item(row, place)
        elif row.kind == "pair" and (pair := linked(row, find)):
            gathered.add_item(pair, place)


def _add_chosen(gathered: Collected, wanted: WantedPairs) -> None:
    """Add the pairs of answers that are wanted and not there yet."""
    place = Position(wanted.file, 0)
    rows = (row for made in gathered.made if (row := gathered.find(made)) and row.responses)
    there = {frozenset(part.item_id for part in row.responses): ids_of(row) for row in rows}
    try:
        for a, b in _chosen(gathered, wanted):
            if (both := frozenset((a.item_id, b.item_id))) not in there:
                pair = pair_of(a, b)
                there[both] = ids_of(pair)
                gathered.add_item(pair, place)
    except SetupError as error:
        named = (replace(problem, file=wanted.file, field="pairs") for problem in error.problems)
        gathered.findings.extend("bad_pair", named)
    if not wanted.prefer or gathered.findings.errors:
        return
    by, on = compared_by(wanted, gathered.rubric)
    who: dict[str, None] = {}
    for label in preferences(there.values(), gathered.human_labels(), by, on):
        key = Key(label.item_id, label.annotator, label.metric)
        if key not in gathered.labels:
            gathered.labels[key] = (label.label, place)
            who[label.annotator] = None
    if not who:
        gathered.findings.add(
            "bad_pair",
            "nobody labelled both responses of a pair, so that no preference follows",
            (wanted.file, None),
            "pairs.prefer",
        )
        return
    gathered.findings.add(
        DERIVED,
        f"the preferences of {some(who)} on {on.id} are derived: of two responses they prefer the "
        f"one to which they gave the better label of {wanted.prefer}",
        ("", None),
    )


def _chosen(gathered: Collected, wanted: WantedPairs) -> Iterator[tuple[Answer, Answer]]:
    if isinstance(wanted.source, Path):
        yield from _named_in(wanted.source, gathered)
        return
    questions: dict[tuple[str, str], list[int]] = {}
    for row, answer in gathered.plain_answers():
        questions.setdefault((answer.group, answer.question), []).append(row)
    number = wanted.source if isinstance(wanted.source, int) else None
    for i, j in chosen(list(questions.values()), number, wanted.seed):
        yield gathered.answer(i), gathered.answer(j)


def _named_in(path: Path, gathered: Collected) -> Iterator[tuple[Answer, Answer]]:
    """The pairs that a file names in its two columns; what is wrong with it is reported."""
    findings = gathered.findings
    table = open_table(path, findings)
    if table is None:
        return
    if len(table.columns) != 2:
        findings.add(
            "bad_pair",
            "a file of pairs has two columns, of item ids",
            (table.file, 1),
            found=some(table.columns),
        )
        return
    seen: dict[frozenset[str], int] = {}
    for line, cells, sound, _ in table.rows:
        if not sound:
            continue
        ids = [cell.strip() if isinstance(cell, str) else "" for cell in cells]
        a, b = (gathered.find(item_id) for item_id in ids)
        known = [answer is not None and answer.kind == "answer" for answer in (a, b)]
        faults = {i: "no answer has this id" for i in (0, 1) if not known[i]}
        first = seen.setdefault(frozenset(ids), line)
        if a and b and not faults:
            if ids[0] == ids[1]:
                faults[1] = "is the same answer"
            elif (a.group, a.question) != (b.group, b.question):
                faults[1] = "answers another question"
            elif first != line:
                faults[1] = f"is the pair of row {first} again"
            else:
                yield a, b
        for i, message in faults.items():
            at = (table.file, line)
            findings.add("bad_pair", message, at, table.columns[i], ids[i])


def check_kinds(gathered: Collected) -> None:
    """Report labels of a metric of pairs on what is none, and so on."""
    of = {metric.id: metric.of for metric in gathered.rubric.metrics}
    if set(of.values()) == {"answer"} or gathered.findings.lost_rows:
        return
    told: set[Position] = set()
    for key, (label, place) in list(gathered.labels.items()):
        wanted, kind = of[key.metric], gathered.made.get(key.item_id, "answer")
        if kind == wanted:
            continue
        if label is None:
            del gathered.labels[key]  # of a wide table, in which rows of all kinds stand
        elif place not in told and (gathered.has(key.item_id) or not gathered.has_answers):
            told.add(place)
            one = "an answer" if kind == "answer" else f"a {kind}"
            gathered.findings.add(
                "unknown_item",
                f"the metric {key.metric} is about {SEVERAL[wanted]}, and this is {one}",
                place,
                "item_id",
                key.item_id,
                _HOW.get(wanted, ""),
            )


def report_lacking(gathered: Collected) -> None:
    """Report that there is nothing of a kind that the wanted metrics are about."""
    for kind in sorted(gathered.kinds - {"answer", *gathered.made.values()}):
        gathered.findings.add(
            "no_answers",
            f"the rubric has metrics of {SEVERAL[kind]}, and the data hold none",
            ("", None),
            allowed=_HOW[kind],
        )
