"""Every altered answer beside its parent, and what each judge said of both, as arrays."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgebench.records import Estimate, Verdict
from judgebench.rubric import Rubric
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.confusion import confusion_by_cluster
from judgebench.stats.intervals import clopper_pearson
from judgebench.stats.resample import Resampling, Statistic, cluster_bootstrap
from judgebench.stress_tests.probes.altered import AlteredAnswer
from judgebench.stress_tests.result import RecipeSummary
from judgebench.studies.answers import IndexedAnswers, indexed
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.studies.truth import Labels
from judgebench.studies.verdicts import label_indices


@dataclass(frozen=True)
class VariantVerdicts:
    """What a judge said when asked in another way about unaltered answers.

    `kind` is `metric-order`, `label-order`, `repeat` or `per-metric`. Several of one recipe are
    told apart by `repeat`, counted from 1.
    """

    judge: str
    recipe: str
    kind: str
    repeat: int
    verdicts: Mapping[str, Verdict]  # by item_id


@dataclass(frozen=True)
class StressRun:
    """What a stress test has beside its study.

    `judges` hold the verdicts on the study's answers and on the altered ones, `variants` those of
    the same judges asked otherwise, on the study's answers. `half_width` is how narrow a detection
    rate's interval should be.
    """

    altered: Sequence[AlteredAnswer]
    judges: Sequence[JudgeVerdicts]
    variants: Sequence[VariantVerdicts] = ()
    recipes: Sequence[RecipeSummary] = ()
    notes: Sequence[str] = ()
    half_width: float = 0.10


@dataclass(frozen=True)
class Pairs:
    """Every text once: the study's answers, parents and altered answers.

    `truth` (texts, metrics) holds indices of labels, -1 where no human says anything. `unaltered`
    (answers,), `parents` and `altered` (items,) are rows of the texts. `judged` maps each judge to
    its label indices (texts, metrics), -1 where there is no label.
    """

    study: Study
    texts: IndexedAnswers
    truth: Labels
    judges: Sequence[JudgeVerdicts]
    variants: Sequence[VariantVerdicts]
    items: tuple[AlteredAnswer, ...]
    unaltered: Labels
    parents: Labels
    altered: Labels
    judged: Mapping[str, Labels]

    @property
    def rubric(self) -> Rubric:
        return self.study.rubric

    @property
    def resampling(self) -> Resampling:
        return self.study.resampling

    @property
    def clusters(self) -> Clusters:
        return self.texts.clusters

    @property
    def real_judges(self) -> list[JudgeVerdicts]:
        """The judges without the control judges."""
        return [judge for judge in self.judges if judge.kind != "control"]

    def labels(self, variant: VariantVerdicts) -> Labels:
        """Label indices (texts, metrics) of a variant, -1 on all but unaltered answers."""
        rows = self.asked(variant.verdicts)
        found = np.full_like(self.judged[variant.judge], -1)
        found[rows] = _labels(self.texts, self.rubric, variant.verdicts)[rows]
        return found

    def asked(self, verdicts: Container[str]) -> Labels:
        """The rows of the unaltered answers that a verdict is there for, whatever it says."""
        return np.array(
            [r for r in self.unaltered if self.texts[r].item_id in verdicts], dtype=np.int64
        )

    def share(self, outcome: Labels, why_none: str) -> Estimate:
        """The share of 1 in an outcome (items,) of 1, 0 and -1 for missing, with its exact
        interval. `why_none` is the reason where nothing but missing outcomes is there."""
        known = outcome[outcome >= 0]
        found = clopper_pearson(int(known.sum()), len(known), self.resampling.level)
        return replace(
            found,
            method=f"{found.method}, items taken as independent",
            n_missing=len(outcome) - len(known),
            reason="" if len(known) else why_none,
        )

    def compared(
        self, before: Labels, after: Labels, clusters: Clusters, statistic: Statistic
    ) -> Estimate:
        """A statistic of outcomes 1, 0 and -1 (missing), all (pairs,), over counts (..., 2, 2)."""
        counts = confusion_by_cluster(before, after, clusters, 2)
        return self.bootstrap(counts, statistic, int(counts.sum()), len(before))

    def bootstrap(self, counts: FloatArray, statistic: Statistic, n: int, of: int) -> Estimate:
        """A statistic of counts (clusters, ...) that rest on `n` pairs of so many."""
        return cluster_bootstrap(counts, statistic, self.resampling, n=n, n_missing=of - n)


def pairs_of(study: Study, run: StressRun) -> Pairs:
    """An altered answer that failed a check of validity is left out, here and once for all."""
    items = tuple(x for x in run.altered if not x.failed_checks)
    shown = [*study.answers, *(x.parent for x in items), *(x.answer for x in items)]
    texts = indexed(tuple({text.item_id: text for text in shown}.values()))
    truth = np.full((len(texts), len(study.rubric.metrics)), -1, dtype=np.int64)
    truths = [study.humans[m.id].truth for m in study.rubric.metrics]
    truth[: len(study.answers)] = np.column_stack(truths)
    return Pairs(
        study, texts, truth, run.judges, run.variants, items,
        unaltered=np.arange(len(study.answers)),
        parents=np.array([texts.row(x.parent.item_id) for x in items], dtype=np.int64),
        altered=np.array([texts.row(x.item_id) for x in items], dtype=np.int64),
        judged={j.name: _labels(texts, study.rubric, j.verdicts) for j in run.judges},
    )  # fmt: skip


def _labels(texts: IndexedAnswers, rubric: Rubric, verdicts: Mapping[str, Verdict]) -> Labels:
    return np.column_stack([label_indices(verdicts, m, texts) for m in rubric.metrics])
