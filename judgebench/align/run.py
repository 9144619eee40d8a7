"""Judges, humans and answers in, one Alignment out."""

from __future__ import annotations

from judgebench.align.annotators import agreement, ceiling, distribution
from judgebench.align.comparisons import comparisons, rankings
from judgebench.align.disagreements import disagreements
from judgebench.align.judges import confusion, scores
from judgebench.align.model_notes import model_notes
from judgebench.align.notes import data_notes, disagreement_note, judge_notes
from judgebench.align.probabilities import probability_results
from judgebench.align.rates import label_rates, rate_notes
from judgebench.align.result import Alignment, JudgeSummary
from judgebench.align.unanimity import by_unanimity
from judgebench.study.study import JudgeVerdicts, Study
from judgebench.study.verdicts import status_counts


def align(study: Study) -> Alignment:
    """Compare every judge with the humans, and the humans with each other, metric by metric.

    Intervals resample whole groups of answers (`Answer.group`).
    """
    rubric, judges, truth = study.rubric, study.judges, study.config
    labelled = any(len(humans.ratings.rows) for humans in study.humans.values())
    pairs = [(judge, metric) for judge in judges for metric in rubric.metrics]
    found = [score for pair in pairs for score in scores(study, *pair)]
    matrices = [confusion(study, *pair) for pair in pairs]
    probabilities = [p for pair in pairs if (p := probability_results(study, *pair))]
    rates = [rate for pair in pairs for rate in label_rates(study, *pair)]
    listed, differing = disagreements(study, rubric, judges)
    return Alignment(
        name=study.name,
        rubric=rubric,
        truth_rule={m.id: truth.in_words(m) for m in rubric.metrics},
        annotators=tuple(sorted({a for h in study.humans.values() for a in h.makers})),
        judges=tuple(_summary(judge) for judge in judges),
        scores=tuple(found),
        agreement=tuple(agreement(study, rubric)),
        ceiling=tuple(c for m in rubric.metrics for c in ceiling(study, m)),
        distribution=tuple(s for m in rubric.metrics for s in distribution(study, m)),
        confusions=tuple(matrices),
        disagreements=tuple(listed),
        n_answers=len(study.answers),
        n_labels=study.n_labels,
        notes=(
            *judge_notes(rubric, judges, found, matrices),
            *study.notes,
            *(data_notes(rubric, study.humans, len(study.answers)) if labelled else ()),
            *(model_notes(rubric, study) if labelled else ()),
            *rate_notes(study, rates),
            *disagreement_note(len(listed), differing),
        ),
        rates=tuple(rates),
        comparisons=tuple(c for m in rubric.metrics for c in comparisons(study, judges, m)),
        rankings=tuple(rankings(rubric, judges, found, study.resampling.level)),
        probability_scores=tuple(score for p in probabilities for score in p.scores),
        calibration_curves=tuple(p.curve for p in probabilities),
        temperatures=tuple(p.temperature for p in probabilities),
        by_unanimity=tuple(x for m in rubric.metrics for x in by_unanimity(study, judges, m)),
    )


def _summary(judge: JudgeVerdicts) -> JudgeSummary:
    statuses = {str(status): n for status, n in status_counts(judge.verdicts).items()}
    return JudgeSummary(
        judge.name, judge.kind, judge.signature, len(judge.verdicts), statuses,
        judge.usage, judge.cost, judge.about or {},
    )  # fmt: skip
