"""How often each label is true of all judged answers, of which humans labelled a part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.partly_labelled import (
    JUDGED,
    JUDGED_THIS,
    LabelCounts,
    judged_counts,
    prediction_powered,
    rogan_gladen,
    share,
)
from judgebench.study.study import JudgeVerdicts, Study


def label_rates(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[Row]:
    """The rate of each label among the answers that the judge labelled, by every method: from the
    human labels of these answers alone, from the verdicts alone, or from both, by
    prediction-powered inference (`ppi`) and the Rogan-Gladen correction; and how many more human
    labels alone would be needed for as narrow an interval as `ppi` has (`labels_saved`).

    Only that of the human labels, with a reason, where all these answers have one; nothing for a
    control judge or a metric without human labels. Under the rule `each`, the truth is the median
    (or majority).
    """
    truth = study.humans[metric.id].truth
    if judge.kind == "control" or (truth < 0).all():
        return
    judged = study.judged(judge, metric)
    k = len(metric.labels)
    counts = judged_counts(truth, judged, study.clusters, k)
    missing = int((judged < 0).sum())
    missing_labelled = int(((judged < 0) & (truth >= 0)).sum())
    unlabelled = bool(counts.kinds[:, k].any())
    for label, text in enumerate(metric.label_texts):
        found = _estimates(counts.of_label(label), study.resampling.level, unlabelled)
        key = {"human_label": text}
        for method, estimate, saved in found:
            n_missing = missing_labelled if method == "human" else missing
            rated = replace(estimate, n_missing=n_missing)
            yield Row("rate", method, rated, judge.name, metric.id, key)
            if saved is not None:
                count = Estimate(saved, n=rated.n)
                yield Row("rate", "labels_saved", count, judge.name, metric.id, key)


def _estimates(
    counts: LabelCounts, level: float, unlabelled: bool
) -> Iterator[tuple[str, Estimate, float | None]]:
    """Method, estimate and how many human labels it saves."""
    powered = prediction_powered(counts, level)
    if not unlabelled:
        yield "human", powered.rate, None  # with the reason why it is no other
        return
    yield "human", powered.human, None
    yield "verdicts", share(counts, JUDGED_THIS, JUDGED, level), None
    yield "ppi", powered.rate, powered.saved
    yield "rogan_gladen", rogan_gladen(counts, level), None


def rate_notes(study: Study, rates: Iterable[Row]) -> Iterator[str]:
    """What must hold for the rates to be true, where there are any beyond the human labels'."""
    if all(rate.statistic == "human" for rate in rates):
        return
    yield (
        "The true rates of the labels hold if the answers with human labels are a random sample of "
        "those that the judge labelled; hard or easy answers picked out for humans would bias them."
    )
    if study.config.rule == "each":
        yield "For these rates, the median (or majority) of the human labels is the truth."
