"""What a certified judge decides alone in a run, by the key `alone` of its bench.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from judgebench.certificate.issue import as_json, decides_alone
from judgebench.certificate.record import Certificate, read
from judgebench.certificate.watch import watch_study
from judgebench.errors import Problem, SetupError
from judgebench.records import without_runtime
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.studies.study import Study

_OF_ROWS = {"file", "rows", "draws", "expected"}  # what differs in every table of verdicts


def admit(bench: Bench) -> Certificate:
    """Return the certificate that a benchmark names, without its verdicts. Raises SetupError where
    it lets the judge decide nothing alone or has expired, and for another judge."""
    path = bench.file.parent / getattr(bench.config, "alone", "")
    certificate = read(path)
    file, name = str(path), certificate.judge.name
    if all(metric.alone_from is None for metric in certificate.metrics.values()):
        raise SetupError(Problem("lets the judge decide nothing alone", file))
    if watch_study(certificate).state == "expired":
        raise SetupError(Problem("has expired: decide again, on newer labels", file))
    if name not in bench.names:
        judges = bench.names - {control.name for control in bench.controls}
        message, allowed = "is not a judge of this benchmark", ", ".join(sorted(judges))
        raise SetupError(Problem(message, file, None, "judge", name, allowed))
    facts = {judge.name: judge.describe() for judge in bench.judges}
    facts |= {judge.name: judge.describe() for judge in bench.recorded}
    _check(certificate, facts.get(name, certificate.judge.settings))  # of others after they judged
    return certificate.model_copy(update={"verdicts": {}, "texts": {}, "alone": {}})


def _check(certificate: Certificate, facts: Mapping[str, Any]) -> None:
    """Raises SetupError unless these are the facts of the judge that was certified."""
    certified, here = certificate.judge.settings, without_runtime(as_json(facts))
    keys = (certified.keys() | here.keys()) - {*_OF_ROWS, "runtime"}
    if differing := sorted(key for key in keys if certified.get(key) != here.get(key)):
        message = "this judge is not as it was certified: decide again, or restore what differs"
        field, differs = f"alone: {certificate.judge.name}", ", ".join(differing)
        raise SetupError(Problem(message, "bench.yaml", None, field, differs))


def deciders(folder: RunFolder, study: Study) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return `alone` or `to people` for each item, by metric and the judge's name. Raises
    SetupError where it is not the judge that was certified."""
    certificate = Certificate.model_validate(folder.manifest()["settings"]["alone"])
    certified = certificate.metrics
    found: dict[str, dict[str, dict[str, str]]] = {}
    for judge in (judge for judge in study.judges if judge.name == certificate.judge.name):
        _check(certificate, judge.about or {})
        for metric in (metric for metric in study.rubric.metrics if metric.id in certified):
            if (about := certified[metric.id]).alone_from is None:
                continue
            is_alone = decides_alone(study, judge, metric, metric, about)
            words = np.where(is_alone, "alone", "to people")
            items = zip(study.answers.item_ids(), words.tolist(), strict=True)
            found.setdefault(metric.id, {})[judge.name] = dict(items)
    return found


def measure(study: Study) -> None:
    """Return nothing: who decides an answer is a column of the verdicts, and no finding."""
