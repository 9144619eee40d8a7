"""Verdicts that follow from other judges' verdicts: juries, and calibrated judges.

No answer is judged again. A calibrated judge's verdicts are another judge's once the prior of its
labels is removed: content-free calibration calls that judge on a few content-free texts, batch
calibration makes no call. The arithmetic is in `stats.recalibration`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgebench.judges.config import CalibrationConfig, JuryConfig
from judgebench.judges.llm import LLMJudge
from judgebench.prompt import Prompt
from judgebench.records import Answer, Status, Verdict, content_hash
from judgebench.rubric import Rubric
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.studies.answers import keys_of, of_kind
from judgebench.studies.truth import TruthConfig, settle

# One member's label of every answer, by metric: its place in the metric, -1 where it gave none.
Ballots = Mapping[str, IntArray]
CONTENT_FREE = ("N/A", "", "[MASK]")  # Zhao et al., arXiv:2102.09690, section 5
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
    settled = {
        m.id: settle(np.stack([votes[m.id] for votes in members], axis=1), m, truth)
        for m in rubric.metrics
    }
    about = {m.id: of_kind(answers, m, rubric) for m in rubric.metrics}
    for row, (item_id, hashed) in enumerate(keys_of(answers)):
        due = [m for m in rubric.metrics if about[m.id][row]]
        chosen = {m.id: int(settled[m.id][row]) for m in due}
        missing = [metric for metric, index in chosen.items() if index < 0]
        labels = {m.id: m.label_texts[chosen[m.id]] for m in due if chosen[m.id] >= 0}
        reason = f"no member's label, or a tie, for {', '.join(missing)}" if missing else ""
        status = Status.UNPARSED if missing else Status.OK
        yield Verdict(item_id, hashed, config.name, signature, status, labels=labels, reason=reason)


@dataclass(frozen=True)
class Judged:
    """Answers and a judge's verdicts on them with their rows; the last on an answer counts."""

    answers: Sequence[Answer]
    verdicts: Iterable[tuple[int, Verdict]]


@dataclass(frozen=True)
class ContentFree:
    """The judge `of` on content-free texts, with a verdict file of its own."""

    judge: LLMJudge
    of: str
    answers: tuple[Answer, ...]


def content_free(
    calibrations: Iterable[CalibrationConfig], judges: Iterable[LLMJudge], *, questions: bool
) -> Iterator[ContentFree]:
    """The requests of content-free calibrations, once per judge. With `questions`, the question is
    content-free too."""
    wanted = {c.calibrate for c in calibrations if c.method == "content-free"}
    for judge in judges:
        if judge.name in wanted:
            asked = judge.asked_otherwise(f"{judge.name}~content-free")
            texts = content_free_answers(judge.prompt, questions=questions)
            yield ContentFree(asked, judge.name, texts)


def content_free_answers(prompt: Prompt, *, questions: bool) -> tuple[Answer, ...]:
    """CONTENT_FREE as answers. The same text is the reference of a prompt that needs one, so that
    none is empty."""
    texts = [text for text in CONTENT_FREE if text or not prompt.asks_for_reference]
    return tuple(
        Answer(
            f"content-free-{number}",
            text,
            question=text if questions else "",
            reference=text if prompt.asks_for_reference else None,
        )
        for number, text in enumerate(texts, 1)
    )


def calibration_about(
    config: CalibrationConfig, rubric: Rubric, member_signature: str, basis: Sequence[Answer]
) -> dict[str, object]:
    """The facts on which a calibrated judge's verdicts depend. `basis` is what the prior is
    estimated from: the answers that are judged, or those of `content_free_answers`."""
    hashes = [list(key) for key in keys_of(basis)]
    return {
        "judge": "calibration",
        "of": {config.calibrate: member_signature},
        "method": config.method,
        "prior_from": {"n": len(hashes), "hash": content_hash(hashes)},
        "rubric": {"name": rubric.name, "hash": rubric.content_hash},
    }


def calibrated_verdicts(
    config: CalibrationConfig,
    rubric: Rubric,
    judged: Judged,
    content_free: Judged | None,
    signature: str,
) -> Iterator[Verdict]:
    """One verdict per answer, in their order: the likeliest label once the prior is removed.

    A metric has no label, and the verdict is `unparsed` with the reason, where the judge gave no
    probabilities, where no prior can be estimated, and where labels are equally likely (as all
    are in a batch of one answer). `content_free` is needed by the method of that name, and must
    hold probabilities for every text. Memory: 8 bytes for each answer, metric and label.
    """
    # Here, for it brings scipy, which every command would otherwise load.
    from judgebench.stats.recalibration import batch_prior, content_free_prior, without_prior

    log_p = _log_probabilities(rubric, judged)
    if config.method == "batch":
        priors = {metric: batch_prior(found) for metric, found in log_p.items()}
    else:
        free = _log_probabilities(rubric, content_free or Judged((), ()))
        priors = {metric: content_free_prior(found) for metric, found in free.items()}
    for metric in rubric.metrics:
        # In place: the raw ones are needed no more, and a million answers fill memory.
        log_p[metric.id][:] = without_prior(log_p[metric.id], priors[metric.id])
    no_prior = [metric for metric, prior in priors.items() if np.isnan(prior).any()]
    for row, (item_id, hashed) in enumerate(keys_of(judged.answers)):
        labels, probabilities, reasons = _read(config, rubric, log_p, row, no_prior)
        status = Status.UNPARSED if reasons else Status.OK
        yield Verdict(
            item_id, hashed, config.name, signature, status, labels=labels,
            probabilities=probabilities or None, reason="; ".join(reasons),
        )  # fmt: skip


def _log_probabilities(rubric: Rubric, judged: Judged) -> dict[str, FloatArray]:
    """By metric: one row per answer and one column per option; a row is NaN where the probability
    of an option is missing."""
    found = {m.id: np.full((len(judged.answers), len(m.options)), np.nan) for m in rubric.metrics}
    for row, verdict in judged.verdicts:
        for metric in rubric.metrics:
            given = (verdict.probabilities or {}).get(metric.id, {})
            options = [given.get(option, np.nan) for option in metric.options]
            found[metric.id][row] = options if all(p == p for p in options) else np.nan
    with np.errstate(divide="ignore"):  # the logarithm of 0 is kept finite by `stats.recalibration`
        for array in found.values():
            np.log(array, out=array)
    return found


def _read(
    config: CalibrationConfig, rubric: Rubric, log_p: Mapping[str, FloatArray], row: int,
    no_prior: Sequence[str],
) -> tuple[dict[str, str], dict[str, dict[str, float]], list[str]]:  # fmt: skip
    """Labels and probabilities by metric, and why a metric has none."""
    labels, probabilities, reasons = {}, {}, []
    for metric in rubric.metrics:
        logs = log_p[metric.id][row]
        if metric.id in no_prior:
            reasons.append(f"{metric.id}: no prior of its labels could be estimated")
        elif np.isnan(logs).any():
            reasons.append(f"{metric.id}: {config.calibrate} gave no probabilities")
        else:
            probabilities[metric.id] = dict(zip(metric.options, np.exp(logs).tolist(), strict=True))
            best = np.flatnonzero(logs > logs.max() - _TIE)
            if len(best) == 1:
                labels[metric.id] = metric.options[int(best[0])]
            else:
                reasons.append(f"{metric.id}: labels are equally likely")
    return labels, probabilities, reasons
