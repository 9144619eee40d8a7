"""A certified judge decides alone in a run, by the key `alone` of its bench.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from judgebench.certificate.issue import as_json, judged_labels
from judgebench.certificate.record import ALONE, Certificate, Role, read
from judgebench.certificate.watch import watch_study
from judgebench.errors import Problem, SetupError
from judgebench.judges.judge import Judge
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.studies.study import JudgeVerdicts, Study


def admit(bench: Bench) -> Certificate:
    """Return the certificate that a benchmark names, without its verdicts. Raises SetupError where
    it lets the judge decide nothing alone or has expired, and for another judge."""
    path = bench.file.parent / getattr(bench.config, "alone", "")
    certificate = read(path)
    file, name = str(path), certificate.judge.name
    if not _alone(certificate):
        raise SetupError(Problem("lets the judge decide nothing alone", file))
    if watch_study(certificate).state == "expired":
        raise SetupError(Problem("has expired: decide again, on newer labels", file))
    if name not in bench.names:
        named = bench.names - {control.name for control in bench.controls}
        message, allowed = "is not a judge of this benchmark", ", ".join(sorted(named))
        raise SetupError(Problem(message, file, None, "judge", name, allowed))
    judges: Sequence[Judge] = (*bench.judges, *bench.recorded)
    for judge in judges:  # others are checked after they judged
        if judge.name == name:
            _check(certificate, judge.describe())
    return certificate.model_copy(update={"verdicts": {}, "texts": {}})


def _alone(certificate: Certificate) -> list[Role]:
    """The roles in which the judge decides alone."""
    return [role for role in certificate.roles if role.outcome == ALONE]


def _check(certificate: Certificate, facts: Mapping[str, Any]) -> None:
    """Raises SetupError unless these are the facts of the judge that was certified."""
    if differing := certificate.judge.differing(as_json(facts)):
        message = "this judge is not as it was certified: decide again, or restore what differs"
        field, differs = f"alone: {certificate.judge.name}", ", ".join(differing)
        raise SetupError(Problem(message, "bench.yaml", None, field, differs))


def deciders(folder: RunFolder, study: Study) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return `alone` or `to people` for each item, by metric and the judge's name. Raises
    SetupError where it is not the judge that was certified."""
    certificate = Certificate.model_validate(folder.manifest()["settings"]["alone"])
    judges = [judge for judge in study.judges if judge.name == certificate.judge.name]
    for judge in judges:
        _check(certificate, judge.about or {})
    return {
        role.metric: {judge.name: _deciders(study, judge, role) for judge in judges}
        for role in _alone(certificate)
    }


def _deciders(study: Study, judge: JudgeVerdicts, role: Role) -> Mapping[str, str]:
    """Return `alone` or `to people` by item; people decide all where nothing says how sure the
    judge is."""
    is_flagged = judged_labels(study, judge, role).is_flagged
    words = np.where(True if is_flagged is None else is_flagged, "to people", "alone")
    words = np.broadcast_to(words, len(study.answers))
    return dict(zip(study.answers.item_ids(), words.tolist(), strict=True))
