"""What people write for labels and metrics, in the rubric's own words: the texts of cells
(`read_label`), and the names in a data.yaml (`resolve`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from judgebench.data.cells import clean, spreadsheet_damage
from judgebench.data.findings import Findings, nearest
from judgebench.data.spec import DataSpec, LabelSpec
from judgebench.rubric import Metric, Rubric

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
