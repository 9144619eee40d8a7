"""A data.yaml's names of metrics and labels, put into the rubric's own words once and for all."""

from __future__ import annotations

from collections.abc import Mapping

from judgebench.data.cells import clean
from judgebench.data.findings import Findings, nearest
from judgebench.data.labels import find_metric
from judgebench.data.spec import DataSpec, FileSpec, LabelSpec
from judgebench.rubric import Metric, Rubric

Spellings = Mapping[str, Mapping[str, str | None]]


def resolve(spec: DataSpec, rubric: Rubric, findings: Findings, file: str) -> DataSpec:
    """`spec` whose `metrics` and `spellings` are keyed by metric id and end in exact labels.

    Every label entry carries all spellings that hold for it. Wrong names are reported.
    """
    names = _Names(rubric, findings, file)
    common = names.spellings(spec.spellings, "spellings")
    files = tuple(
        _resolve_file(one, names, common, f"files.{i}") for i, one in enumerate(spec.files)
    )
    return spec.model_copy(update={"files": files, "spellings": common})


def _resolve_file(file: FileSpec, names: _Names, common: Spellings, where: str) -> FileSpec:
    items = tuple(
        item.model_copy(
            update={
                "labels": tuple(
                    names.labels(label, common, f"{where}.items.{i}.labels.{k}")
                    for k, label in enumerate(item.labels)
                )
            }
        )
        for i, item in enumerate(file.items)
    )
    labels = tuple(
        names.labels(label, common, f"{where}.labels.{k}") for k, label in enumerate(file.labels)
    )
    return file.model_copy(update={"items": items, "labels": labels})


class _Names:
    """Looks names up in a rubric and reports those that are not there."""

    def __init__(self, rubric: Rubric, findings: Findings, file: str) -> None:
        self.rubric, self.findings, self.file = rubric, findings, file

    def labels(self, spec: LabelSpec, common: Spellings, where: str) -> LabelSpec:
        own = self.spellings(spec.spellings, f"{where}.spellings")
        merged = {m: {**common.get(m, {}), **own.get(m, {})} for m in {**common, **own}}
        metrics: dict[str, str] = {}
        for name, column in spec.metrics.items():
            metric = self.metric(name, f"{where}.metrics")
            if metric and metrics.setdefault(metric.id, column) != column:
                message = f"duplicate metric {metric.id}, by its id and by its title"
                self.findings.add("bad_spec", message, (self.file, None), f"{where}.metrics", name)
        return spec.model_copy(update={"metrics": metrics, "spellings": merged})

    def spellings(self, spellings: Spellings, where: str) -> dict[str, dict[str, str | None]]:
        resolved: dict[str, dict[str, str | None]] = {}
        for name, pairs in spellings.items():
            if metric := self.metric(name, where):
                known = resolved.setdefault(metric.id, {})
                for spelling, target in pairs.items():
                    known[clean(spelling)[0]] = self.label(metric, target, f"{where}.{name}")
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
