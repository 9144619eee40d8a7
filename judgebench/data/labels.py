"""What people write for labels and metrics, in the rubric's own words: the texts of cells
(`read_label`), and the names in a data.yaml (`resolve`).

Rows that are made of what files hold: of two answers, and those that labels name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from judgebench.data.cells import clean, spreadsheet_damage
from judgebench.data.findings import DERIVED, Findings, nearest
from judgebench.data.open_table import open_table
from judgebench.data.pairs import (
    WantedPairs,
    chosen,
    compared_by,
    ids_of,
    linked,
    pair_of,
    preferences,
)
from judgebench.data.spec import DataSpec, LabelSpec
from judgebench.errors import SetupError, some
from judgebench.records import SEVERAL, Answer, Kind
from judgebench.rubric import Metric, Rubric

if TYPE_CHECKING:
    from judgebench.data.gather import Collected, Position

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
    from judgebench.data.gather import Key, Position

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
        message = "nobody labelled both responses of a pair, so that no preference follows"
        gathered.findings.add("bad_pair", message, (wanted.file, None), "pairs.prefer")
        return
    message = (
        f"the preferences of {some(who)} on {on.id} are derived: of two responses they prefer the "
        f"one to which they gave the better label of {wanted.prefer}"
    )
    gathered.findings.add(DERIVED, message, ("", None))


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
        message = "a file of pairs has two columns, of item ids"
        findings.add("bad_pair", message, (table.file, 1), found=some(table.columns))
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
            message = f"the metric {key.metric} is about {SEVERAL[wanted]}, and this is {one}"
            allowed = _HOW.get(wanted, "")
            gathered.findings.add("unknown_item", message, place, "item_id", key.item_id, allowed)


def report_lacking(gathered: Collected) -> None:
    """Report that there is nothing of a kind that the wanted metrics are about."""
    for kind in sorted(gathered.kinds - {"answer", *gathered.made.values()}):
        message = f"the rubric has metrics of {SEVERAL[kind]}, and the data hold none"
        gathered.findings.add("no_answers", message, ("", None), allowed=_HOW[kind])


_WHOLE_FLOAT = re.compile(r"\A(-?\d+)\.0+\Z")


class CellLabel(NamedTuple):
    """A cell's label, None where it is blank or wrong, and the problem met, if any."""

    label: str | None
    kind: str = ""
    message: str = ""
    allowed: str = ""


def read_label(metric: Metric, raw: str, spelt: Mapping[str, str | None]) -> CellLabel:
    """The label that a cell holds: by the data's own spellings first, then by the rubric's."""
    text, unseen, _ = clean(raw)
    if text == "" and (label := spelt.get("")):
        return CellLabel(label, "mapped_blank", f"blank cell, counted as {label!r}")
    # `2` for `2.0`, which is how many tables write the code 2 once a cell is blank
    for candidate in (text, _WHOLE_FLOAT.sub(r"\1", text)):
        label = spelt[candidate] if candidate in spelt else metric.parse(candidate)
        if candidate == "" or (candidate in spelt and label is None):
            return CellLabel(None, "blank_label", "blank cell, counted as no label")
        if label is not None:
            break
    else:
        return _unknown(metric, text, spelt)
    if candidate != text:
        message = "a number with .0, as a table writes it beside blanks"
        return CellLabel(label, "float_label", message)
    if unseen:
        return CellLabel(label, "invisible_characters", "invisible characters left out of a label")
    return CellLabel(label)


def _unknown(metric: Metric, text: str, spelt: Mapping[str, str | None]) -> CellLabel:
    spellings = [spelling for spelling in spelt if spelling]
    allowed = ", ".join((*metric.options, *spellings))
    if damage := spreadsheet_damage(text):
        return CellLabel(None, "spreadsheet_label", damage, allowed)
    aliases = [alias for label in metric.labels for alias in label.aliases]
    near = nearest(text, [*metric.options, *aliases, *spellings])
    message = f"is not a label of {metric.id}{near}"
    return CellLabel(None, "unknown_label", message, allowed)


def find_metric(name: str, rubric: Rubric) -> Metric | str:
    """The metric of that id or title, else what is wrong with the name."""
    metric = rubric.find(name)
    if metric is not None:
        return metric
    names = [name for m in rubric.metrics for name in (m.id, m.title)]
    return f"is not a metric of the rubric{nearest(name, names)}"


Spellings = Mapping[str, Mapping[str, str | None]]


def resolve(spec: DataSpec, rubric: Rubric, findings: Findings, file: str) -> DataSpec:
    """`spec` whose `metrics` and `spellings` are keyed by metric id and end in exact labels.

    Every label entry carries all spellings that hold for it; that of "" is what a blank cell stands
    for. Wrong names and spellings that can never apply are reported.
    """
    names = _Names(rubric, findings, file)
    common = names.spellings(spec.spellings, "spellings")
    files = []
    for i, one in enumerate(spec.files):
        items = [
            item.model_copy(
                update={
                    "labels": names.all(item.labels, common, f"files.{i}.items.{k}.labels"),
                    "verdicts": names.all(item.verdicts, common, f"files.{i}.items.{k}.verdicts"),
                }
            )
            for k, item in enumerate(one.items)
        ]
        labels = names.all(one.labels, common, f"files.{i}.labels")
        verdicts = names.all(one.verdicts, common, f"files.{i}.verdicts")
        own = {"items": tuple(items), "labels": labels, "verdicts": verdicts}
        files.append(one.model_copy(update=own))
    names.check_used(common, "spellings", names.read)
    return spec.model_copy(update={"files": tuple(files), "spellings": common})


class _Names:
    """Looks names up in a rubric and reports those that are not there."""

    def __init__(self, rubric: Rubric, findings: Findings, file: str) -> None:
        self.rubric, self.findings, self.file = rubric, findings, file
        self.read: set[str] = set()  # metrics of which some entry may have labels

    def all(
        self, specs: Sequence[LabelSpec], common: Spellings, where: str
    ) -> tuple[LabelSpec, ...]:
        return tuple(self.labels(s, common, f"{where}.{k}") for k, s in enumerate(specs))

    def labels(self, spec: LabelSpec, common: Spellings, where: str) -> LabelSpec:
        own = self.spellings(spec.spellings, f"{where}.spellings")
        merged = {m: {**common.get(m, {}), **own.get(m, {})} for m in {**common, **own}}
        metrics: dict[str, str] = {}
        for name, column in spec.metrics.items():
            metric = self.metric(name, f"{where}.metrics")
            if metric and metrics.setdefault(metric.id, column) != column:
                message = f"duplicate metric {metric.id}, by its id and by its title"
                self.findings.add("bad_spec", message, (self.file, None), f"{where}.metrics", name)
        read = set(metrics) or {metric.id for metric in self.rubric.metrics}
        self.check_used(own, f"{where}.spellings", read)
        self.read |= read
        for name, label in self.blanks(spec, read, f"{where}.blank"):
            merged[name] = {**merged.get(name, {}), "": label}
        return spec.model_copy(update={"metrics": metrics, "spellings": merged})

    def blanks(self, spec: LabelSpec, read: set[str], where: str) -> Iterator[tuple[str, str]]:
        """The label that a blank cell stands for, by metric."""
        given = spec.blank
        if isinstance(given, str):
            given = {m.id: given for m in self.rubric.metrics if m.id in read}
        for name, target in (given or {}).items():
            if metric := self.metric(name, where):
                self.check_used({metric.id: {}}, where, read)
                if label := self.label(metric, target, where):
                    yield metric.id, label

    def check_used(self, spellings: Spellings, where: str, read: set[str]) -> None:
        """Report spellings of metrics of which nothing is read."""
        for name in spellings.keys() - read if read else ():
            message = f"can never apply: no column of labels is read for {name}"
            self.findings.add("bad_spec", message, (self.file, None), where, name)

    def spellings(self, spellings: Spellings, where: str) -> dict[str, dict[str, str | None]]:
        resolved: dict[str, dict[str, str | None]] = {}
        for name, pairs in spellings.items():
            if metric := self.metric(name, where):
                known = resolved.setdefault(metric.id, {})
                for spelling, target in pairs.items():
                    text, label = clean(spelling)[0], self.label(metric, target, f"{where}.{name}")
                    if known.setdefault(text, label) != label:
                        message = "the same spelling twice, but for space or invisible characters"
                    elif not text:
                        message = (
                            "can never apply: a blank cell has no spelling; `blank: LABEL` beside "
                            "the metrics gives it a label"
                        )
                    else:
                        continue
                    at = (self.file, None)
                    self.findings.add("bad_spec", message, at, f"{where}.{name}", spelling)
        return resolved

    def metric(self, name: str, where: str) -> Metric | None:
        metric = find_metric(name, self.rubric)
        if isinstance(metric, str):
            allowed = ", ".join(m.id for m in self.rubric.metrics)
            self.findings.add("unknown_metric", metric, (self.file, None), where, name, allowed)
            return None
        return metric

    def label(self, metric: Metric, target: str | None, where: str) -> str | None:
        label = None if target is None else metric.parse(target)
        if target is not None and label is None:
            message = f"is not a label of {metric.id}{nearest(target, metric.options)}"
            allowed = ", ".join(metric.options)
            self.findings.add("unknown_label", message, (self.file, None), where, target, allowed)
        return label
