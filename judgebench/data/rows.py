"""From the rows of a sheet to records: answers, people's labels and judges' verdicts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

from judgebench.data.conversation import (
    NamedPair,
    criteria_of,
    criterion_row,
    judged,
    pair_of_names,
    turns_of,
)
from judgebench.data.dataset import DatasetBuilder, Key, Position, VerdictCell
from judgebench.data.draft import is_blank_word, is_failure_word, plain_label, side_of
from judgebench.data.findings import ERRORS
from judgebench.data.formats import (
    Cell,
    Fault,
    Nested,
    Table,
    clean,
    has_invisible,
    is_blank,
    number_in,
    split_list,
    spreadsheet_damage,
)
from judgebench.data.layout import Layout, Sheet, Spelling
from judgebench.data.settings import each_as
from judgebench.data.vocabulary import words
from judgebench.errors import nearest, some
from judgebench.records import ADJUDICATED, Answer, Part, Status, content_hash, is_slot
from judgebench.rubric import BETWEEN, Metric, listed_in

_BETWEEN_KEYS = " · "  # of the cells of an item that is known by several columns
_LONGEST_KEY = 120  # characters of such an id; of a longer one the hash counts
_ROUNDING = 0.02  # of probabilities that people write down
_SLOT = "an annotator with # is read as a slot of a list, not as a person"
CROWD = "crowd"  # of whom lists hold the labels, where no column names them
WHOLE_REPLY = ""  # in the place of a metric


class CellLabel(NamedTuple):
    """A cell's label, None where it is blank or wrong, and the problem met, if any."""

    label: str | None
    kind: str = ""
    message: str = ""
    allowed: str = ""


def read_label(metric: Metric, text: str, spelling: Spelling) -> CellLabel:
    """The label that a cell holds: by the tables' own spellings first, then by the rubric's."""
    if (spelt := text if text in spelling else plain_label(text)) in spelling:
        label = spelling[spelt]
        return CellLabel(label) if label else _blank()
    if metric.several:
        text = BETWEEN.join(spelling.get(part) or part for part in listed_in(text))
    label = metric.parse(text) or metric.parse(plain_label(text)) if text else None
    if label is not None:
        return CellLabel(label)
    if text == "" or is_blank_word(text):
        return _blank()
    options = [*metric.options, *filter(None, spelling)]
    aliases = [alias for one in metric.labels for alias in one.aliases]
    near = nearest(text, [*options, *aliases])
    allowed = f"{', '.join(options)}; `spell` or `blank` settles another text"
    return CellLabel(None, "unknown_label", f"is not a label of {metric.id}{near}", allowed)


def _blank() -> CellLabel:
    return CellLabel(None, "blank_label", "blank cell, counted as no label")


def item_id(cells: Sequence[str]) -> str:
    """The id of an item by its cells; empty where all are blank.

    >>> item_id(["q1"]), item_id(["q1", "gpt-4"])
    ('q1', 'q1 · gpt-4')
    """
    if len(cells) == 1:
        return cells[0]
    if not any(cells):
        return ""
    joined = _BETWEEN_KEYS.join(cells)
    return joined if len(joined) <= _LONGEST_KEY else content_hash([*cells])


def _read_by(layout: Layout, metric_id: str, text: str) -> CellLabel:
    """The label in a cell, which may hold several, as the tables write them."""
    metric = layout.rubric.find(metric_id)
    assert metric is not None  # as its cells were found
    separator = "" if text.startswith("[") else layout.several
    if separator:
        text = BETWEEN.join(part.strip() for part in text.split(separator))
    return read_label(metric, text, layout.spellings.get(metric_id, {}))


class Cells(NamedTuple):
    """The cells that say the label of a row: the column, its metric, who gave it, and the text."""

    column: str
    metric: Metric
    who: str
    text: str


@dataclass(frozen=True)
class SheetReader:
    """Reads the rows of one sheet into a data set."""

    sheet: Sheet
    table: Table
    layout: Layout
    dataset: DatasetBuilder

    def read_items(self) -> None:
        """Read what the rows say of items: the answers, where there are texts."""
        read = self._read_answer if self.sheet.of("text", "messages") else self._read_about
        for row, key in self._rows(report=True):
            if key is not None:
                read(row, key)

    def read_labels(self) -> None:
        """Read people's labels."""
        for row, key, about in self._named_rows():
            if self.sheet.of("blind"):
                self.dataset.blind.add(self._text(row, "blind").lower())
            for column in self.sheet.of("labels"):
                self._read_list(row, key, column)
            for cell in (*self._cells(row, "label"), *self._cells(row, "adjudicated")):
                if is_slot(cell.who):
                    self._note("slot_name", _SLOT, row, cell.column)
                reading = self._label_in(cell.metric, cell.text, about[1])
                self._add_label(row, about[0], cell, reading)

    def read_verdicts(self) -> None:
        """Read judges' verdicts, and what their rows say of items that nothing else says."""
        for row, key, about in self._named_rows(report=not self.sheet.has_labels):
            if not self.sheet.has_labels:
                self._read_about(row, key, by_judge=True)
            self._read_row_of_judge(row, *about)

    # What a row is about

    @cached_property
    def _keys(self) -> list[str]:
        return [item_id(cells) for cells in self.table.rows(*self.sheet.of("item"))]

    def _rows(self, report: bool = False) -> Iterator[tuple[int, str | None]]:
        """The place of every row, and the id of its item; None where it names none."""
        for row, key in enumerate(self._keys):
            if not key and report:
                self._note("blank_id", "the row names no item", row)
            yield row, self.dataset.known_id(key, self.layout.ids) if key else None

    def _named_rows(
        self, report: bool = False
    ) -> Iterator[tuple[int, str, tuple[str, NamedPair | None]]]:
        """The place of every row that says what it is about: its item, and the item of its labels,
        which may be a pair."""
        for row, key in self._rows(report):
            if key is not None and (about := self._pair(row, key)):
                yield row, key, about

    def _text(self, row: int, role: str) -> str:
        column = self.sheet.first(role)
        return self.table.texts(column)[row] if column else ""

    def _raw(self, row: int, column: str) -> str:
        """A cell with its space, as texts are kept."""
        cell = self.table.columns[column][row] if column else ""
        return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False, default=str)

    @cached_property
    def _kept(self) -> list[str]:
        """The columns that stay with an item: each of several that it is known by, too."""
        items = self.sheet.of("item")
        return [*self.sheet.of("kept"), *(items if len(items) > 1 else ())]

    def _about(self, row: int, key: str, **texts: Any) -> Answer:
        """What a row says of its item, with these texts."""
        kept = {c: self.table.texts(c)[row] for c in self._kept}
        return Answer(
            key, system=self._text(row, "system"), group=self._text(row, "group"),
            metadata={c: t for c, t in kept.items() if t}, **texts,
        )  # fmt: skip

    def _read_about(self, row: int, key: str, by_judge: bool = False) -> None:
        is_said = self._kept or self.sheet.of("question", "group", "system")
        if self.sheet.of("first", "criterion") or not is_said:
            return
        about = self._about(row, key, text="", question=self._text(row, "question"))
        self.dataset.add_about(about, self._place(row), by_judge)

    def _read_answer(self, row: int, key: str) -> None:
        columns = map(self.sheet.first, ("text", "question", "reference"))
        text, question, reference = (self._raw(row, column) for column in columns)
        question = "" if is_blank(question) else question
        known = None if is_blank(reference) else reference
        answer = self._about(row, key, text=text, question=question, reference=known)
        if is_blank(text) and not self.sheet.of("messages"):
            self._note("empty_answer", "empty text: kept as an empty answer", row)
        elif has_invisible(text):
            self._note("invisible_characters", "invisible characters kept in a text", row)
        if damage := spreadsheet_damage(text):
            self._note("spreadsheet_text", f"the whole text {damage}", row)
        is_repeated = self.sheet.has_labels or self.sheet.has_verdicts
        for one in self._turns(row, answer) if self.sheet.of("messages") else (answer,):
            if self.dataset.add_item(one, self._place(row), labelled=is_repeated):
                self._read_criteria(row, one)

    def _turns(self, row: int, answer: Answer) -> Iterator[Answer]:
        """What is judged of a conversation, whose last turn may stand in a column of its own."""
        column = self.sheet.first("messages")
        turns, faults = turns_of(self.table.columns[column][row])
        if self.sheet.of("text"):
            turns.append(Part("assistant", answer.text))
        lacking = not any(turn.role == "assistant" for turn in turns)
        if not faults and lacking and self.sheet.has_labels:
            yield answer  # of which the text is not known
            return
        if not faults and lacking:
            faults.append(Fault("no turn is the assistant's, so there is nothing to judge"))
        self._report("bad_conversation", faults, row, column)
        if not faults:
            yield from judged(answer, turns, self.sheet.turns)

    def _read_criteria(self, row: int, answer: Answer) -> None:
        """The criteria that an item brings in a cell, each as a row."""
        for column in self.sheet.of("criteria") if "criterion" in self.dataset.kinds else ():
            criteria, faults = criteria_of(self.table.columns[column][row], answer.item_id)
            self._report("bad_criterion", faults, row, column)
            for one in criteria:
                self.dataset.add_item(criterion_row(answer, one), self._place(row))

    def _report(self, kind: str, faults: Sequence[Fault], row: int, column: str) -> None:
        for fault in faults:
            self._note(kind, fault.message, row, column + fault.where, fault.found, fault.allowed)

    def _pair(self, row: int, key: str) -> tuple[str, NamedPair | None] | None:
        """The id of what the labels of a row are about and, of a pair, its responses; None, which
        is reported, where the row does not say it."""
        group = self._text(row, "group") or self._text(row, "question") or key
        if self.sheet.of("criterion"):
            criterion = self._text(row, "criterion")
            if not criterion:
                self._note("blank_id", "the row names no criterion", row)
                return None
            parts = (Part("criterion", "", criterion, key),)
            return self._named(
                Answer(f"{key}#{criterion}", "", group=group, parts=parts), row
            ), None
        columns = [self.sheet.first("first"), self.sheet.first("second")]
        if not all(columns):
            return key, None
        names = [self.table.texts(column)[row] for column in columns]
        if not all(names):
            self._note("blank_id", "names no response", row, columns[1], names[1])
            return None
        if names[0] == names[1]:
            self._note("bad_pair", "a response is compared with itself", row, columns[1], names[1])
            return None
        known = self.dataset.find_pair(key, names)
        if known is None:
            made = pair_of_names(key, names, group)
            known = self._named(made, row), [part.name for part in made.responses]
        return known[0], NamedPair(*known, names, columns)

    def _named(self, named: Answer, row: int) -> str:
        first, _ = self.dataset.named.setdefault(named.item_id, (named, self._place(row)))
        if first.parts != named.parts:
            message = "names others that have this item id, too"
            self._note("bad_pair", message, row, "", named.item_id)
        return named.item_id

    # People's labels

    def _cells(self, row: int, role: str) -> Iterator[Cells]:
        """The cells of labels, or of verdicts, in a row; blank names and unknown metrics are
        reported."""
        metric_column = self.sheet.first("metric")
        for column in self.sheet.of(role):
            text = self.table.texts(column)[row]
            metric = self._metric(row, self.sheet.columns[column].metric, metric_column)
            if metric is None or metric.id not in self.dataset.wanted:
                continue
            who = ADJUDICATED
            if role != "adjudicated":
                who = self._who(row, column, "judge" if role == "verdict" else "annotator", text)
            if who:
                yield Cells(column, metric, who, text)

    def _who(self, row: int, column: str, role: str, text: str = "") -> str:
        """Who said what stands in a column, as the row, the column or the table names them; where
        the row should and does not, it is reported."""
        if not self.sheet.of(role):
            names = (self.sheet.columns[column].who, self.sheet.source.who, self.dataset.judge)
            return next(filter(None, names), self.table.stem)
        who = self._text(row, role)
        if not who and (text or role == "judge"):
            self._note("blank_annotator", f"no {role} is named", row)
        return ADJUDICATED if role == "annotator" and who.casefold() == ADJUDICATED else who

    def _metric(self, row: int, name: str, column: str) -> Metric | None:
        """The metric of a cell: of its column, of its row, or the only one."""
        rubric = self.layout.rubric
        name = name or (self.table.texts(column)[row] if column else "")
        if not name:
            if len(rubric.metrics) == 1 and not column:
                return rubric.metrics[0]
            self._note("blank_metric", "no metric is named", row, column)
            return None
        metric: Metric | None = self._find_metric(name)
        if metric is None:
            known = [n for m in rubric.metrics for n in (m.id, m.title)]
            message = f"is not a metric of the rubric{nearest(name, known)}"
            allowed = ", ".join(m.id for m in rubric.metrics)
            self._note("unknown_metric", message, row, column, name, allowed)
        return metric

    @cached_property
    def _find_metric(self) -> Any:
        return cache(self.layout.rubric.find)

    @cached_property
    def _read(self) -> Any:
        """`read_label` of a metric and a text, once for the same two."""
        return cache(partial(_read_by, self.layout))  # not of `self`, which would outlive the rows

    def _label_in(self, metric: Metric, text: str, pair: NamedPair | None) -> CellLabel:
        reading: CellLabel = self._read(metric.id, text)
        if not pair or not metric.preference:
            return reading
        spelling = self.layout.spellings.get(metric.id, {})
        side = spelling.get(text) or pair.place(metric, text)
        is_other = side in self._responses  # of another row, called `b`, say
        reading = self._read(metric.id, side if is_other else side_of(side) or side)
        return reading._replace(label=reading.label and pair.turned(metric, reading.label))

    @cached_property
    def _responses(self) -> frozenset[str]:
        """The names of all responses that rows compare."""
        columns = (*self.sheet.of("first"), *self.sheet.of("second"))
        return frozenset(name for column in columns for name in self.table.texts(column))

    def _add_label(self, row: int, item_id: str, cell: Cells, reading: CellLabel) -> None:
        if reading.kind:
            self._note(reading.kind, reading.message, row, cell.column, cell.text, reading.allowed)
        if reading.kind not in ERRORS:
            key = Key(item_id, self.dataset.person(cell.who), cell.metric.id)
            self.dataset.add_label(key, reading.label, self._place(row), cell.column)

    def _read_list(self, row: int, key: str, column: str) -> None:
        """The labels of several annotators in a cell, of those that another cell lists."""
        metric = self._metric(row, self.sheet.columns[column].metric, "")
        labels = self._entries(row, column)
        if metric is None or labels is None:
            return
        if not labels:
            self._note("blank_label", "blank list cell, no labels", row, column)
            return
        listed = self.sheet.first("annotators")
        slots = [f"{CROWD}#{n}" for n in range(1, len(labels) + 1)]
        names = (self._entries(row, listed) or []) if listed else slots
        if len(names) != len(labels):
            message = f"lists {len(labels)} labels, and {listed!r} {len(names)} annotators"
            self._note("bad_list", message, row, column)
            return
        for name, text in zip(names, labels, strict=True):
            if is_blank(name):
                self._note("blank_annotator", "no annotator is named", row, listed)
            else:
                cell = Cells(column, metric, clean(name), text)
                self._add_label(row, key, cell, self._read(metric.id, text))

    def _entries(self, row: int, column: str) -> list[str] | None:
        """The entries of a list cell; None, which is reported, where it is none."""
        cell: Cell = self.table.columns[column][row]
        sign = self.layout.several or ("," if self.sheet.of("annotators") else "")
        if sign and isinstance(cell, str) and sign in cell and not cell.startswith("["):
            return [part.strip() for part in cell.split(sign)]
        try:
            if isinstance(cell, Nested):
                raise ValueError("holds objects, where a list was expected")
            return [*split_list(cell)]
        except ValueError as error:
            self._note("bad_list", str(error), row, column, str(cell))
            return None

    # Judges' verdicts

    def _read_row_of_judge(self, row: int, item_id: str, pair: NamedPair | None) -> None:
        base = VerdictCell(
            self._place(row), status=self._status(row), raw=self._raw(row, self.sheet.first("raw")),
            repeat=" ".join(self.table.texts(c)[row] for c in self.sheet.of("repeat")).strip(),
            rationale=self._text(row, "rationale"),
        )  # fmt: skip
        for column in self.sheet.of("reply"):
            if who := self._who(row, column, "judge"):
                cell = replace(base, raw=self._raw(row, column))
                self.dataset.add_verdict(Key(item_id, who, WHOLE_REPLY), cell, column)
        labels = []
        for cells in self._cells(row, "verdict"):
            key = Key(item_id, cells.who, cells.metric.id)
            cell = self._verdict(row, key, pair, cells, base)
            self.dataset.add_verdict(key, cell, cells.column)
            labels.append(cell.label)
        is_read_in_part = base.status is Status.UNPARSED and None in labels
        if any(labels) and base.status not in (None, Status.OK) and not is_read_in_part:
            message = f"has the status {base.status!s} and a label"
            found = next(filter(None, labels))
            self._note("bad_status", message, row, "", found, "a label or a status")

    def _verdict(
        self, row: int, key: Key, pair: NamedPair | None, cells: Cells, base: VerdictCell
    ) -> VerdictCell:
        """The label of a cell, or the text that stands there in place of one."""
        cell = replace(
            base,
            probabilities=self._probabilities(row, cells.metric, pair),
            shown_first=self._shown_first(row, cells.metric, pair),
        )
        reading = self._label_in(cells.metric, cells.text, pair)
        if reading.kind in ERRORS:
            failed = self.layout.failed
            if cells.text in failed or "*" in failed or is_failure_word(cells.text):
                return replace(cell, text=cells.text, status=Status.FAILED)
            message = f"is not a label of the metric {cells.metric.title!r}: counted as unparsed"
            self._note("unread_verdict", message, row, cells.column, cells.text)
            return replace(cell, text=cells.text)
        if (
            reading.label is None
            and not base.status
            and self.dataset.is_due(key.item_id, key.metric)
        ):
            self._note("blank_verdict", "blank cell, counted as failed", row)
        return replace(cell, label=reading.label)

    def _shown_first(self, row: int, metric: Metric, pair: NamedPair | None) -> str:
        """The label that means the response that was shown first; empty where none is named."""
        text = self._text(row, "shown_first") if metric.preference else ""
        if not text:
            return ""
        label = pair.place(metric, text) if pair else text
        if label not in metric.label_texts[:2]:
            names = [*pair.names, *pair.columns] if pair else metric.label_texts[:2]
            message = "is neither response of the pair: it says which was shown first"
            self._note("bad_pair", message, row, "shown_first", text, ", ".join(names))
            return ""
        return pair.turned(metric, label) if pair else label

    def _status(self, row: int) -> Status | None:
        text = self._text(row, "status").casefold()
        if not text:
            return None
        if text in words("ended"):
            return Status.OK
        try:
            return Status(text)
        except ValueError:
            if text in map(str.casefold, self.layout.failed) or is_failure_word(text):
                return Status.FAILED
            column = self.sheet.first("status")
            allowed = f"{', '.join(Status)} (or {each_as('ignored', [column]).flags()})"
            self._note("bad_status", "is no status of a verdict", row, column, text, allowed)
            return None

    @cached_property
    def _shares(self) -> Mapping[str, Mapping[str, str]]:
        """The column of each label's probability, by metric."""
        by_metric: dict[str, dict[str, str]] = {}
        for column in self.sheet.of("probability"):
            name, equals, text = self.sheet.columns[column].metric.rpartition("=")
            metrics = [self._find_metric(name)] if equals else self.layout.rubric.metrics
            for metric in filter(None, metrics):
                if label := metric.parse(text):
                    by_metric.setdefault(metric.id, {})[label] = column
        return by_metric

    def _probabilities(
        self, row: int, metric: Metric, pair: NamedPair | None
    ) -> dict[str, float] | None:
        """By label, None where all are blank; of two labels one says that of the other. What is
        wrong with them is reported."""
        columns = self._shares.get(metric.id, {})
        texts = {label: self.table.texts(column)[row] for label, column in columns.items()}
        if not any(texts.values()):
            return None
        shares = {label: number_in(text) for label, text in texts.items()}
        for label, share in shares.items():
            if not 0 <= share <= 1:
                message, allowed = "is no probability", "a number from 0 to 1"
                self._note("bad_probability", message, row, columns[label], texts[label], allowed)
                return None
        missing = [option for option in metric.options if option not in shares]
        if missing and len(metric.options) > 2:
            message = f"not used without the probabilities of the other labels: {some(missing)}"
            self._note("unused_column", message, row, ", ".join(columns.values()))
        elif missing:
            shares[missing[0]] = 1 - sum(shares.values())
        if not 0 < (total := math.fsum(shares.values())) <= 1 + _ROUNDING:
            message, allowed = f"probabilities add up to {total:.3g}", "more than 0, at most 1"
            self._note("bad_probability", message, row, "", None, allowed)
            return None
        return {pair.turned(metric, x) if pair else x: share for x, share in shares.items()}

    # Places and problems

    def _place(self, row: int) -> Position:
        return Position(self.table.file, self.table.lines[row])

    def _note(
        self, kind: str, message: str, row: int, column: str = "", text: str | None = None,
        allowed: str = "",
    ) -> None:  # fmt: skip
        self.dataset.findings.add(kind, message, self._place(row), column, text, allowed)
