"""Every altered answer beside its parent, and what each judge said of both, as arrays."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgebench.records import Answer, Estimate, HumanLabel, Verdict
from judgebench.rubric import Rubric
from judgebench.stats.arrays import Clusters
from judgebench.stats.confusion import confusion_by_cluster
from judgebench.stats.intervals import clopper_pearson
from judgebench.stats.resample import Resampling, Statistic, cluster_bootstrap
from judgebench.stress.probes.altered import AlteredAnswer
from judgebench.study.study import JudgeVerdicts, Study, study_of
from judgebench.study.truth import Labels, TruthConfig


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
class Pairs:
    """`study` holds every text once: unaltered answers, parents and altered answers.

    `unaltered` (answers,), `parents` and `altered` (items,) are rows of the study. `judged` maps
    each judge to its label indices (texts, metrics), -1 where there is no label.
    """

    rubric: Rubric
    study: Study
    judges: Sequence[JudgeVerdicts]
    variants: Sequence[VariantVerdicts]
    items: tuple[AlteredAnswer, ...]
    unaltered: Labels
    parents: Labels
    altered: Labels
    judged: Mapping[str, Labels]

    def labels(self, variant: VariantVerdicts) -> Labels:
        """Label indices (texts, metrics) of a variant, -1 on all but unaltered answers."""
        (judge,) = (j for j in self.judges if j.name == variant.judge)
        rows = self.asked(variant.verdicts)
        found = np.full_like(self.judged[judge.name], -1)
        said = replace(judge, verdicts=variant.verdicts)
        found[rows] = _labels(self.study, self.rubric, said)[rows]
        return found

    def asked(self, verdicts: Container[str]) -> Labels:
        """The rows of the unaltered answers that a verdict is there for, whatever it says."""
        answers = self.study.answers
        return np.array([r for r in self.unaltered if answers[r].item_id in verdicts], np.int64)


def pairs_of(
    rubric: Rubric,
    altered: Sequence[AlteredAnswer],
    judges: Sequence[JudgeVerdicts],
    variants: Sequence[VariantVerdicts],
    labels: Sequence[HumanLabel],
    answers: Sequence[Answer],
    truth: TruthConfig,
    resampling: Resampling,
) -> Pairs:
    """An altered answer that failed a check of validity is left out, here and once for all.

    Raises SetupError where `truth.annotators` fits nobody or a label is none of the rubric.
    """
    items = tuple(x for x in altered if not x.failed_checks)
    shown = [*answers, *(x.parent for x in items), *(x.answer for x in items)]
    texts = {text.item_id: text for text in shown}
    row = {item_id: i for i, item_id in enumerate(texts)}
    study = study_of(rubric, tuple(texts.values()), labels, truth, resampling)
    return Pairs(
        rubric=rubric,
        study=study,
        judges=judges,
        variants=variants,
        items=items,
        unaltered=np.array([row[a.item_id] for a in answers], dtype=np.int64),
        parents=np.array([row[x.parent.item_id] for x in items], dtype=np.int64),
        altered=np.array([row[x.item_id] for x in items], dtype=np.int64),
        judged={judge.name: _labels(study, rubric, judge) for judge in judges},
    )


def _labels(study: Study, rubric: Rubric, judge: JudgeVerdicts) -> Labels:
    return np.column_stack([study.judged(judge, metric) for metric in rubric.metrics])


def exact_share(outcome: Labels, level: float, why_none: str) -> Estimate:
    """The share of 1 in an outcome (items,) of 1, 0 and -1 for missing, with its exact interval.

    `why_none` is the reason where nothing but missing outcomes is there.
    """
    known = outcome[outcome >= 0]
    found = clopper_pearson(int(known.sum()), len(known), level)
    return replace(
        found,
        method=f"{found.method}, items taken as independent",
        n_missing=len(outcome) - len(known),
        reason="" if len(known) else why_none,
    )


def yes_or_no(
    study: Study, before: Labels, after: Labels, clusters: Clusters, statistic: Statistic
) -> Estimate:
    """A statistic of outcomes 1, 0 and -1 (missing), all (pairs,), over counts (..., 2, 2)."""
    counts = confusion_by_cluster(before, after, clusters, 2)
    n = int(counts.sum())
    return cluster_bootstrap(counts, statistic, study.resampling, n=n, n_missing=len(before) - n)
