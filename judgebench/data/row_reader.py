"""Read the rows of one table, by the entries of a data.yaml, into what was gathered so far."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from judgebench.data.cells import (
    Cell,
    Fault,
    Nested,
    RawRow,
    clean,
    has_invisible,
    is_blank,
    number_in,
    split_list,
    spreadsheet_damage,
)
from judgebench.data.conversation import criteria_of, criterion_row, judged, turns_of
from judgebench.data.findings import ERRORS, nearest
from judgebench.data.gather import Collected, Key, Position, Said
from judgebench.data.open_table import DataTable
from judgebench.data.pairs import NamedPair, pair_of_names
from judgebench.data.spec import (
    About,
    CellLabel,
    FileSpec,
    Holds,
    IdSource,
    ItemSpec,
    LabelSpec,
    Source,
    VerdictSpec,
    columns_of,
    find_metric,
    parts_of,
    read_label,
)
from judgebench.errors import some
from judgebench.records import Answer, Part, Status, content_hash, is_slot
from judgebench.rubric import Metric

_Get = Callable[[RawRow], str]
_Pick = Callable[[RawRow], Iterator[tuple[Metric, int]]]
_SLOT = "an annotator with # is read as a slot of a list, not as a person"
_ROUNDING = 0.02  # of probabilities that people write down


@dataclass(frozen=True)
class _Labels:
    """A prepared label entry: `pick` gives the metrics of a row and the indices of their cells.

    Where cells hold lists, `people` is the index of the cell that lists their annotators.
    """

    annotator: _Get
    pick: _Pick
    list: bool
    people: int | None
    spellings: Mapping[str, Mapping[str, str | None]]
    kept: Callable[[RawRow], bool]
    read: dict[tuple[str, str], CellLabel] = field(default_factory=dict)  # few texts, many cells
    pair: NamedPair | None = None  # that the row is about

    def of(self, metric: Metric, text: str) -> CellLabel:
        """The label in a cell's text."""
        if not self.pair or not metric.preference:
            return self._of(metric, text)
        if clean(text)[0] not in self.spellings.get(metric.id, {}):
            text = self.pair.place(metric, text)
        found = self._of(metric, text)
        return found._replace(label=found.label and self.pair.turned(metric, found.label))

    def _of(self, metric: Metric, text: str) -> CellLabel:
        reading = self.read.get((metric.id, text))
        if reading is None:
            reading = read_label(metric, text, self.spellings.get(metric.id, {}))
            self.read[metric.id, text] = reading
        return reading


@dataclass(frozen=True)
class _Verdicts:
    """A prepared entry of verdicts. `probabilities` gives each label's column, by metric."""

    labels: _Labels
    whole_replies: bool
    status: _Get
    raw: _Get
    repeat: _Get
    shown_first: _Get
    rationale: _Get
    probabilities: Callable[[str], Mapping[str, int]]


@dataclass(frozen=True)
class _Item:
    """A prepared item entry."""

    spec: ItemSpec
    item_id: _Get
    text: _Get
    question: _Get
    system: _Get
    reference: _Get
    group: _Get
    metadata: tuple[tuple[str, int], ...]
    labels: tuple[_Labels, ...]
    kept: Callable[[RawRow], bool]


def read_table(
    table: DataTable, spec: FileSpec, default_annotator: str, gathered: Collected
) -> None:
    """Read every row of `table`, whose entries in a data.yaml have been resolved.

    None is read where a column is missing, which is reported.
    """
    names = list(dict.fromkeys(filter(None, (*table.columns, *table.nested))))
    read = dict.fromkeys(clean(column)[0] for column, _ in columns_of(spec))
    missing = [column for column in read if table.find(column) is None]
    table.unread.update(set(table.columns) - read.keys())
    allowed, at = some(names), (table.file, 1)
    for column in missing:
        gathered.findings.add(
            "missing_column",
            f"has no such column{nearest(column, names)}",
            at,
            column,
            allowed=allowed,
        )
    if not missing:
        _RowReader(table, default_annotator, gathered).read(spec)


class _RowReader:
    """Reads the rows of one table by the entries prepared for it."""

    def __init__(self, table: DataTable, default_annotator: str, gathered: Collected) -> None:
        self.table = table
        self.gathered = gathered
        self.default_annotator = default_annotator
        self._metrics: dict[str, Metric | str] = {}

    def read(self, spec: FileSpec) -> None:
        wanted = [self._item(item) for item in spec.items if self._is_wanted(item)]
        others = [self._id(item.item_id) for item in spec.items if not self._is_wanted(item)]
        labels = [(self._about(own), self._labels(own), self._said(own)) for own in spec.labels]
        asked = () if self.gathered.people_only else spec.verdicts
        verdicts = [(self._about(own), self._verdicts(own), self._said(own)) for own in asked]
        several = any(metric.several for metric in self.gathered.rubric.metrics)
        used = {(self._place(column), holds) for column, holds in columns_of(spec, several)}
        made_blind = self._made_blind(spec)
        for row in self.table.rows:
            if not (row.sound and (row.plain or self._is_flat(row, used))):
                self.gathered.left_out.update(item.item_id(row) for item in wanted)
                continue
            if made_blind is not None:
                self.gathered.blind.add(made_blind(row).strip().lower())
            for item in wanted:
                if item.kept(row):
                    self._read_item(item, row)
            for about, own, said_of in labels:
                if own.kept(row) and (of := about(row)):
                    said_of(of[0], row)
                    self._read_labels(replace(own, pair=of[1]) if of[1] else own, of[0], row)
            for about, said, said_of in verdicts:
                if said.labels.kept(row) and (of := about(row)):
                    said_of(of[0], row)
                    if of[1]:  # replacing takes as long as all else
                        said = replace(said, labels=replace(said.labels, pair=of[1]))
                    self._read_verdicts(said, of[0], row)
            for get_id in others:
                self.gathered.left_out.add(get_id(row))

    def _made_blind(self, spec: FileSpec) -> _Get | None:
        """The text in column `made_blind`, blank where a table with human labels lacks it; nothing
        of other tables. The column is one of the labels where a metric is called so."""
        people = self.gathered.who == "annotator"
        if not (people and (spec.labels or any(item.labels for item in spec.items))):
            return None
        if "made_blind" not in self.table.unread:
            return self._text(None)
        self.table.unread.discard("made_blind")
        return self._text(Source(column="made_blind"))

    def _is_wanted(self, item: ItemSpec) -> bool:
        """An entry is left out where all its labels belong to metrics that were not chosen."""
        metrics = {name for spec in item.labels for name in spec.metrics}
        is_long = any(spec.metric is not None for spec in item.labels)
        return is_long or not metrics or bool(metrics & self.gathered.wanted)

    def _note(
        self, kind: str, message: str, row: RawRow, column: str = "", found: str | None = None,
        allowed: str = "",
    ) -> None:  # fmt: skip
        at = (self.table.file, row.line)
        self.gathered.findings.add(kind, message, at, column, found, allowed)

    def _is_flat(self, row: RawRow, used: set[tuple[int, Holds]]) -> bool:
        """True where each cell that is read holds one text, or more where that is expected."""
        bad = [place for place, holds in used if not isinstance(row.cells[place], holds)]
        for place in sorted(bad):
            found = "a list" if isinstance(row.cells[place], tuple) else "a nested value"
            self._note(
                "nested_value",
                f"holds {found}, where one value was expected",
                row,
                self.table.columns[place],
                allowed="in a data.yaml a path into it, such as doc.question or "
                "messages[-1].content",
            )
        return not bad

    # What an entry of the data.yaml becomes

    def _place(self, column: str) -> int:
        place = self.table.find(column)
        assert place is not None, column  # read_table has looked
        return place

    def _text(self, source: Source | None) -> _Get:
        if source is not None and source.template is not None:
            return self._built(source.template, any)
        if source is None or source.column is None:
            value = "" if source is None or source.value is None else source.value
            return lambda row: value
        place = self._place(source.column)
        return lambda row: _as_text(row.cells[place])

    def _references(self, source: Source | None) -> _Get:
        """As `_text`; several in a list become a list in JSON."""
        if source is None or source.column is None:
            return self._text(source)
        place = self._place(source.column)
        return lambda row: c if isinstance(c := row.cells[place], str) else json.dumps(c)

    def _built(self, template: str, filled: Callable[[Iterable[bool]], bool]) -> _Get:
        """Text and columns joined, without outer space; blank unless `filled` says that enough of
        the columns are not."""
        parts = [
            (text, self._place(column) if column else -1) for text, column in parts_of(template)
        ]

        def built(row: RawRow) -> str:
            texts = [text or _as_text(row.cells[place]) for text, place in parts]
            cells = (not is_blank(t) for t, (text, _) in zip(texts, parts, strict=True) if not text)
            return "".join(texts).strip() if filled(cells) else ""

        return built

    def _name(self, source: Source | None) -> _Get:
        """Like `_text`, without invisible characters, so that names that look equal are equal."""
        if source is not None and source.template is not None:
            get, shown = self._built(source.template, all), source.template
            return lambda row: self._tidy(get(row), row, shown)
        get = self._text(source)
        if source is None or source.column is None:
            return get
        column, place = source.column, self._place(source.column)

        def name(row: RawRow) -> str:
            text = _as_text(row.cells[place])
            return text if row.plain and text.strip() == text else self._tidy(text, row, column)

        return name

    def _tidy(self, text: str, row: RawRow, column: str) -> str:
        cleaned, unseen, spaced = clean(text)
        if cleaned and unseen:
            self._note(
                "invisible_characters",
                "invisible characters left out of an id or name",
                row,
                column,
            )
        elif cleaned and spaced:
            self._note("stripped_space", "space around an id or name left out", row, column)
        return cleaned

    def _id(self, source: IdSource) -> _Get:
        prefix = source.prefix
        if source.column is not None or source.template is not None:
            name = self._name(Source(column=source.column, template=source.template))
            return lambda row: prefix + text if (text := name(row)) else ""
        if source.row:
            return lambda row: f"{prefix}{row.line}"
        places = [self._place(column) for column in source.hash_of]

        def hashed(row: RawRow) -> str:
            cells = [row.cells[place] for place in places]
            return prefix + content_hash(cells) if any(cells) else ""

        return hashed

    def _item(self, spec: ItemSpec) -> _Item:
        return _Item(
            spec=spec,
            item_id=self._id(spec.item_id),
            text=self._text(spec.text),
            question=self._text(spec.question),
            system=self._name(spec.system),
            reference=self._references(spec.reference),
            group=self._name(spec.group),
            metadata=tuple((column, self._place(column)) for column in spec.metadata),
            labels=tuple(map(self._labels, spec.labels)),
            kept=self._kept(spec.only),
        )

    def _kept(self, only: Mapping[str, Sequence[str]]) -> Callable[[RawRow], bool]:
        """True where a row has one of the values asked for, column by column."""
        wanted = [(self._place(column), frozenset(values)) for column, values in only.items()]
        return lambda row: all(_as_text(row.cells[i]).strip() in values for i, values in wanted)

    def _about(self, own: About) -> Callable[[RawRow], tuple[str, NamedPair | None] | None]:
        """Make the reader of what labels are about: its id and, of a pair, its responses; None,
        which is reported, where the row does not say it."""
        get_id, known = self._id(own.item_id), self.gathered.known_pairs
        sources = own.pair or ((Source(column=own.criterion),) if own.criterion else ())
        names = [self._name(source) for source in sources]
        columns = [source.column or source.template or "" for source in sources]

        def about(row: RawRow) -> tuple[str, NamedPair | None] | None:
            item_id, found = self._known_id(get_id, row), [name(row) for name in names]
            for column, name in zip(columns, found, strict=True):
                if not name:
                    self._note("blank_id", "the row names no response or criterion", row, column)
            if not item_id or not all(found):
                return None
            if not found:
                return item_id, None
            if own.pair is None:
                part = Part("criterion", "", found[0], item_id)
                named = Answer(f"{item_id}#{found[0]}", "", group=item_id, parts=(part,))
                return self._named(named, row), None
            if found[0] == found[1]:
                self._note(
                    "bad_pair", "a response is compared with itself", row, columns[-1], found[1]
                )
                return None
            both = frozenset(found)
            there = known.get((item_id, both)) or known.get(("", both))
            if there is None:
                named = pair_of_names(item_id, found)
                there = self._named(named, row), [part.name for part in named.responses]
            return there[0], NamedPair(*there, found, columns)

        return about

    def _said(self, own: About) -> Callable[[str, RawRow], None]:
        """Keep what a table of labels or verdicts says of its items, beside what was said of
        them."""
        told = own.question or own.group or own.system or own.metadata
        if own.pair or own.criterion or not told:
            return lambda item_id, row: None
        question, group, system = (
            self._text(own.question),
            self._name(own.group),
            self._name(own.system),
        )
        columns = [(column, self._place(column)) for column in own.metadata]
        by_judge = isinstance(own, VerdictSpec)

        def said(item_id: str, row: RawRow) -> None:
            cells = ((column, _as_text(row.cells[place])) for column, place in columns)
            kept = {column: text.strip() for column, text in cells if not is_blank(text)}
            asked, one, by = question(row).strip(), group(row), system(row)
            if asked or one or by or kept:
                answer = Answer(item_id, "", asked, by, group=one, metadata=kept)
                place = Position(self.table.file, row.line)
                self.gathered.add_said(answer, place, by_judge)

        return said

    def _named(self, named: Answer, row: RawRow) -> str:
        place = Position(self.table.file, row.line)
        known, _ = self.gathered.named.setdefault(named.item_id, (named, place))
        if known.parts != named.parts:
            self._note(
                "bad_pair", "names others that have this item id, too", row, found=named.item_id
            )
        return named.item_id

    def _labels(self, spec: LabelSpec) -> _Labels:
        annotator, pick = self._annotator(spec.annotator), self._labels_of(spec)
        who = spec.annotator.column if spec.annotator and spec.list else None
        people = self._place(who) if who else None
        return _Labels(annotator, pick, spec.list, people, spec.spellings, self._kept(spec.only))

    def _verdicts(self, spec: VerdictSpec) -> _Verdicts:
        whole = not spec.metric and not spec.metrics
        pick: _Pick = (lambda row: iter(())) if whole else self._labels_of(spec)

        def column(name: str | None) -> _Get:
            return self._text(Source(column=name)) if name else lambda row: ""

        @cache
        def probabilities(metric_id: str) -> Mapping[str, int]:
            rubric, found = self.gathered.rubric, dict[str, int]()
            for name, of in spec.probabilities.items():
                metric, text = (metric_id, of) if isinstance(of, str) else of
                if (one := rubric.find(metric)) == rubric.find(metric_id) and one:
                    label = one.parse(text)
                    found |= {label: self._place(name)} if label else {}
            return found

        judge = self._name(spec.annotator or Source(value=self.default_annotator))
        return _Verdicts(
            _Labels(judge, pick, False, None, spec.spellings, self._kept(spec.only)), whole,
            column(spec.status), column(spec.raw), column(spec.repeat),
            column(spec.shown_first), column(spec.rationale), probabilities,
        )  # fmt: skip

    def _labels_of(self, spec: LabelSpec) -> _Pick:
        if spec.metric and spec.label:
            return self._long(spec.metric, spec.label)
        pairs = [
            (metric, self._place(column))
            for name, column in spec.metrics.items()
            if name in self.gathered.wanted and (metric := self.gathered.rubric.find(name))
        ]
        return lambda row: iter(pairs)

    def _annotator(self, source: Source | None) -> _Get:
        get = self._name(source or Source(value=self.default_annotator))
        if source is None or source.column is None:
            return get

        def named(row: RawRow) -> str:
            name = get(row)
            if is_slot(name):
                self._note("slot_name", _SLOT, row, source.column or "")
            return name

        return named

    def _long(self, metric_column: str, label_column: str) -> _Pick:
        metric_place, label_place = self._place(metric_column), self._place(label_column)

        def pick(row: RawRow) -> Iterator[tuple[Metric, int]]:
            name = clean(_as_text(row.cells[metric_place]))[0]
            if not name:
                self._note("blank_metric", "no metric is named", row, metric_column)
                return
            if name not in self._metrics:
                self._metrics[name] = find_metric(name, self.gathered.rubric)
            metric = self._metrics[name]
            if isinstance(metric, str):
                self._note(
                    "unknown_metric",
                    metric,
                    row,
                    metric_column,
                    name,
                    ", ".join(m.id for m in self.gathered.rubric.metrics),
                )
            elif metric.id in self.gathered.wanted:
                yield metric, label_place

        return pick

    # What a row becomes

    def _known_id(self, get_id: _Get, row: RawRow) -> str:
        item_id = get_id(row)
        if not item_id:
            self._note(
                "blank_id",
                "the row names no item",
                row,
                allowed="an id; in a data.yaml `item_id: {row: true}` numbers the rows",
            )
        return item_id

    def _read_item(self, item: _Item, row: RawRow) -> None:
        item_id = self._known_id(item.item_id, row)
        text, talks = item.text(row), item.spec.messages
        if not item_id or not (
            (talks and not item.spec.text) or self._has_text(item, item_id, text, row)
        ):
            return
        question, reference = item.question(row), item.reference(row)
        if is_blank(question):
            question = ""
            if item.spec.question is not None:
                self._note("blank_question", "blank question: the text is judged without one", row)
        answer = Answer(
            item_id=item_id,
            text=text,
            question=question,
            system=item.system(row),
            reference=None if is_blank(reference) else reference,
            group=item.group(row),
            metadata={column: _as_text(row.cells[place]) for column, place in item.metadata},
        )
        place = Position(self.table.file, row.line)
        for one in self._judged(item, answer, talks, row) if talks else (answer,):
            if self.gathered.add_item(one, place, labelled=bool(item.labels)):
                for labels in item.labels:
                    if labels.kept(row):
                        self._read_labels(labels, item_id, row)
                if item.spec.criteria and "criterion" in self.gathered.kinds:
                    self._read_criteria(item.spec.criteria, one, row)

    def _judged(self, item: _Item, answer: Answer, column: str, row: RawRow) -> Iterator[Answer]:
        """Yield what is judged of a conversation, whose last turn may stand in a column of its
        own."""
        turns, faults = turns_of(row.cells[self._place(column)])
        if item.spec.text is not None:
            turns.append(Part("assistant", answer.text))
        if not faults and not any(turn.role == "assistant" for turn in turns):
            faults.append(Fault("no turn is the assistant's, so there is nothing to judge"))
        if faults:
            self.gathered.left_out.add(answer.item_id)
        self._report("bad_conversation", faults, row, column)
        for one in judged(answer, turns, item.spec.judge or "last") if not faults else ():
            if item.spec.text or self._has_text(item, one.item_id, one.text, row):
                yield one

    def _read_criteria(self, column: str, answer: Answer, row: RawRow) -> None:
        """The criteria that an item brings in a cell, each as a row."""
        found, faults = criteria_of(row.cells[self._place(column)], answer.item_id)
        self._report("bad_criterion", faults, row, column)
        for one in found:
            self.gathered.add_item(criterion_row(answer, one), Position(self.table.file, row.line))

    def _report(self, kind: str, faults: Sequence[Fault], row: RawRow, column: str) -> None:
        for fault in faults:
            self._note(kind, fault.message, row, column + fault.where, fault.found, fault.allowed)

    def _has_text(self, item: _Item, item_id: str, text: str, row: RawRow) -> bool:
        if item.spec.text is None and item.spec.messages is None:
            self.gathered.textless[self.table.file] = None
            return True
        source = item.spec.text
        column = item.spec.messages if source is None else source.column or source.template
        column = column or ""
        if is_blank(text):
            if item.spec.if_empty == "keep":
                self._note("empty_answer", "empty text: kept as an empty answer", row, column)
                return True
            self.gathered.left_out.add(item_id)
            if item.spec.if_empty == "skip":
                self._note(
                    "skipped_item", "empty text: the item and its labels are left out", row, column
                )
            else:
                self._note(
                    "empty_text",
                    "the text is empty; in a data.yaml `if_empty: keep` reads it as an empty "
                    "answer, `if_empty: skip` leaves such rows out",
                    row,
                    column,
                    text,
                )
            return False
        if not row.plain and has_invisible(text):
            self._note("invisible_characters", "invisible characters kept in a text", row, column)
        if damage := spreadsheet_damage(text):
            self._note("spreadsheet_text", f"the whole text {damage}", row, column)
        return True

    def _read_labels(self, labels: _Labels, item_id: str, row: RawRow) -> None:
        annotators = self._annotators(labels, row)
        if annotators is None:
            return
        for metric, place in labels.pick(row):
            for name, text in self._entries(labels, annotators, place, row):
                self._read_label(labels, metric, Key(item_id, name, metric.id), text, place, row)

    def _annotators(self, labels: _Labels, row: RawRow) -> list[str] | None:
        """The annotators of a row: one, or all that a cell lists; None, which is reported, where
        it is unclear."""
        if labels.people is None:
            names = [labels.annotator(row)]
        elif (listed := self._split(labels.people, row)) is None:
            return None
        else:
            names = [clean(name)[0] for name in listed]
            if any(map(is_slot, names)):
                self._note("slot_name", _SLOT, row, self.table.columns[labels.people])
        if all(names):
            return names
        if any(row.cells[place] for _, place in labels.pick(row)):
            self._note("blank_annotator", "no annotator is named", row)
        return None

    def _split(self, place: int, row: RawRow) -> list[str] | None:
        """The entries of a list cell; None, which is reported, where it is none."""
        cell = row.cells[place]
        assert not isinstance(cell, Nested)  # the row was looked through
        try:
            return [] if isinstance(cell, str) and is_blank(cell) else list(split_list(cell))
        except ValueError as error:
            self._note("bad_list", str(error), row, self.table.columns[place], _as_text(cell))
            return None

    def _entries(
        self, labels: _Labels, annotators: list[str], place: int, row: RawRow
    ) -> list[tuple[str, str]]:
        """The annotators of a cell with their texts: one, or one per entry of a list."""
        cell, column = row.cells[place], self.table.columns[place]
        if not labels.list:
            return [(annotators[0], _label_text(cell))]
        texts = self._split(place, row)
        if texts is None:
            return []
        if cell == "" or (isinstance(cell, str) and is_blank(cell)):
            self.gathered.blank += 1
            self._note("blank_label", "blank list cell, no labels", row, column)
            return []
        if labels.people is None:
            return [(f"{annotators[0]}#{n}", text) for n, text in enumerate(texts, start=1)]
        if len(texts) != len(annotators):
            names = self.table.columns[labels.people]
            self._note(
                "bad_list",
                f"lists {len(texts)} labels, and {names!r} {len(annotators)} annotators",
                row,
                column,
                allowed="lists of the same length",
            )
            return []
        return list(zip(annotators, texts, strict=True))

    def _read_label(
        self, labels: _Labels, metric: Metric, key: Key, text: str, place: int, row: RawRow
    ) -> None:
        reading = labels.of(metric, text)
        column = self.table.columns[place]
        if reading.kind:
            self._note(reading.kind, reading.message, row, column, text, reading.allowed)
        if reading.kind in ERRORS:
            return
        self.gathered.blank += reading.label is None
        self.gathered.add_label(key, reading.label, Position(self.table.file, row.line), column)

    def _read_verdicts(self, said: _Verdicts, item_id: str, row: RawRow) -> None:
        judge = said.labels.annotator(row)
        if not judge:
            self._note("blank_annotator", "no judge is named", row)
            return
        place = Position(self.table.file, row.line)
        status = self._status(said.status(row), row)
        about, why = (said.raw(row), said.repeat(row)), said.rationale(row)
        if said.whole_replies:
            cell = Said(place, None, "", status, *about, rationale=why)
            self.gathered.add_verdict(Key(item_id, judge, ""), cell, "")
            return
        labelled, lacking = "", 0
        for metric, where in said.labels.pick(row):
            label, text = self._verdict(said, metric, where, row)
            blank = label is None and not text and status is None
            if blank and self.gathered.is_due(item_id, metric.id):
                self._note("blank_verdict", "blank cell, counted as failed", row)
            shares = self._probabilities(said.probabilities(metric.id), row)
            if shares and (pair := said.labels.pair):
                shares = {pair.turned(metric, text): share for text, share in shares.items()}
            first = self._shown_first(said, metric, row) if metric.preference else ""
            cell = Said(place, label, text, status, *about, shares, first, why)
            column = self.table.columns[where]
            self.gathered.add_verdict(Key(item_id, judge, metric.id), cell, column)
            labelled, lacking = label or labelled, lacking + (label is None)
        allowed = [None, Status.OK, *([Status.UNPARSED] if lacking else [])]  # or read in part
        if status and labelled and status not in allowed:
            self._note(
                "bad_status",
                f"has the status {status.value!r} and a label",
                row,
                found=labelled,
                allowed="a label or a status",
            )

    def _verdict(
        self, said: _Verdicts, metric: Metric, place: int, row: RawRow
    ) -> tuple[str | None, str]:
        """The label of a cell, and the text that stands there in place of one."""
        text, column = _label_text(row.cells[place]), self.table.columns[place]
        reading = said.labels.of(metric, text)
        if reading.kind in ERRORS:
            self._note(
                "unread_verdict",
                f"is not a label of the metric {metric.title!r}: counted as unparsed",
                row, column, text,
            )  # fmt: skip
            return None, text
        if reading.kind and reading.label is not None:
            self._note(reading.kind, reading.message, row, column)
        return reading.label, ""

    def _shown_first(self, said: _Verdicts, metric: Metric, row: RawRow) -> str:
        """The label that means the response that was shown first; empty where none is named."""
        if not (text := said.shown_first(row).strip()):
            return ""
        pair = said.labels.pair
        label, allowed = pair.place(metric, text) if pair else text, metric.label_texts[:2]
        if label not in allowed:
            names = [*pair.names, *pair.columns] if pair else allowed
            self._note(
                "bad_pair",
                "is neither response of the pair: it says which was shown first",
                row,
                "shown_first",
                text,
                ", ".join(names),
            )
            return ""
        return pair.turned(metric, label) if pair else label

    def _status(self, text: str, row: RawRow) -> Status | None:
        try:
            return Status(text.strip().casefold()) if text.strip() else None
        except ValueError:
            self._note(
                "bad_status", "is no status of a verdict", row, "status", text, ", ".join(Status)
            )
            return None

    def _probabilities(self, places: Mapping[str, int], row: RawRow) -> dict[str, float] | None:
        """By label, None where all are blank. What is wrong with them is reported."""
        texts = {label: _as_text(row.cells[place]).strip() for label, place in places.items()}
        if not any(texts.values()):
            return None
        found = {}
        for label, text in texts.items():
            found[label] = number_in(text)
            if not 0 <= found[label] <= 1:
                column, allowed = self.table.columns[places[label]], "a number from 0 to 1"
                self._note("bad_probability", "is no probability", row, column, text, allowed)
                return None
        if not 0 < (total := math.fsum(found.values())) <= 1 + _ROUNDING:
            self._note(
                "bad_probability",
                f"probabilities add up to {total:.3g}",
                row,
                allowed="more than 0, at most 1",
            )
            return None
        return found


def _as_text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else ""


def _label_text(cell: Cell) -> str:
    """The text of a label; several in a list become a list in JSON."""
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, tuple) else _as_text(cell)
