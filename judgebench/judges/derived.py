"""Verdicts that follow from other judges' verdicts: juries, and calibrated judges.

No answer is judged again. A calibrated judge's verdicts are another judge's once the prior of its
labels is removed. The arithmetic is in `stats.recalibration`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgebench.judges.config import CalibrationConfig, JuryConfig
from judgebench.judges.control import codes_of, with_codes
from judgebench.records import Answer, Status, Verdict, content_hash
from judgebench.rubric import Rubric
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.studies.answers import keys_of
from judgebench.studies.truth import TruthConfig, settle

# One member's label of every answer, by metric: its place in the metric, -1 where it gave none.
Ballots = Mapping[str, IntArray]
_TIE = 1e-9  # natural logarithms closer than this differ by rounding alone


def jury_about(config: JuryConfig, rubric: Rubric, members: Mapping[str, str]) -> dict[str, object]:
    """The facts on which a jury's verdicts depend; `members` maps names to signatures."""
    return {
        "judge": "jury",
        "members": dict(members),
        "rule": config.rule,
        "ties": config.ties or "upper; none between nominal labels",
        "rubric": {"name": rubric.name, "hash": rubric.content_hash},
    }


def jury_verdicts(
    config: JuryConfig,
    rubric: Rubric,
    answers: Sequence[Answer],
    members: Sequence[Ballots],
    signature: str,
) -> Iterator[Verdict]:
    """One verdict per answer, by the members that gave a label.

    A metric that no member labelled, or that is tied where `ties` settles nothing, has no label and
    the verdict is `unparsed`. Members' abstentions do not vote; `members` have one row per answer.
    """
    truth = TruthConfig(rule=config.rule, ties=config.ties)
    settled = (
        settle(np.stack([votes[m.id] for votes in members], axis=1), m, truth)
        for m in rubric.metrics
    )
    why = "no member's label, or a tie, for "
    codes = codes_of(settled, rubric, answers)
    for (item_id, hashed), row in zip(keys_of(answers), codes, strict=True):
        empty = Verdict(item_id, hashed, config.name, signature, Status.UNPARSED)
        yield with_codes(empty, row, rubric, why)


@dataclass(frozen=True)
class Judged:
    """Answers and a judge's verdicts on them with their rows; the last on an answer counts."""

    answers: Sequence[Answer]
    verdicts: Iterable[tuple[int, Verdict]]


def calibration_about(
    config: CalibrationConfig, rubric: Rubric, member_signature: str, answers: Sequence[Answer]
) -> dict[str, object]:
    """The facts on which a calibrated judge's verdicts depend: of the prior, the answers."""
    hashes = [list(key) for key in keys_of(answers)]
    return {
        "judge": "calibration",
        "of": {config.calibrate: member_signature},
        "prior_from": {"n": len(hashes), "hash": content_hash(hashes)},
        "rubric": {"name": rubric.name, "hash": rubric.content_hash},
    }


def calibrated_verdicts(
    config: CalibrationConfig, rubric: Rubric, judged: Judged, signature: str
) -> Iterator[Verdict]:
    """One verdict per answer, in their order: the likeliest label once the prior is removed.

    A metric has no label, and the verdict is `unparsed` with the reason, where the judge gave no
    probabilities, and where labels are equally likely (as all are in a batch of one answer).
    Memory: 8 bytes for each answer, metric and label.
    """
    # Here, for it brings scipy, which every command would otherwise load.
    from judgebench.stats.recalibration import batch_prior, without_prior

    log_p = _log_probabilities(rubric, judged)
    for found in log_p.values():
        # In place: the raw ones are needed no more, and a million answers fill memory.
        found[:] = without_prior(found, batch_prior(found))
    for row, (item_id, hashed) in enumerate(keys_of(judged.answers)):
        labels, probabilities, reasons = {}, {}, []
        for metric in rubric.metrics:
            logs = log_p[metric.id][row]
            if np.isnan(logs).any():
                reasons.append(f"{metric.id}: {config.calibrate} gave no probabilities")
                continue
            probabilities[metric.id] = dict(zip(metric.options, np.exp(logs).tolist(), strict=True))
            best = np.flatnonzero(logs > logs.max() - _TIE)
            if len(best) == 1:
                labels[metric.id] = metric.options[int(best[0])]
            else:
                reasons.append(f"{metric.id}: labels are equally likely")
        status = Status.UNPARSED if reasons else Status.OK
        yield Verdict(
            item_id, hashed, config.name, signature, status, labels=labels,
            probabilities=probabilities or None, reason="; ".join(reasons),
        )  # fmt: skip


def _log_probabilities(rubric: Rubric, judged: Judged) -> dict[str, FloatArray]:
    """By metric: one row per answer and one column per option, NaN where it is missing."""
    found = {m.id: np.full((len(judged.answers), len(m.options)), np.nan) for m in rubric.metrics}
    for row, verdict in judged.verdicts:
        for metric in rubric.metrics:
            given = (verdict.probabilities or {}).get(metric.id, {})
            found[metric.id][row] = [given.get(option, np.nan) for option in metric.options]
    with np.errstate(divide="ignore"):  # the logarithm of 0 is kept finite by `stats.recalibration`
        for array in found.values():
            np.log(array, out=array)
    return found
