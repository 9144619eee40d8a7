"""The input and the result of the analysis of a stress test: verdicts in pairs, rows of numbers."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from judgebench.records import Estimate, Results, Row, Verdict, group_by_key
from judgebench.results.shown import JudgesShown
from judgebench.rubric import Metric, Rubric
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.classification import confusion_by_cluster
from judgebench.stats.intervals import Statistic, clopper_pearson, clustered_estimate
from judgebench.stress_tests.recipes import AlteredAnswer
from judgebench.studies.answers import IndexedAnswers, indexed
from judgebench.studies.reference_labels import Labels
from judgebench.studies.study import JudgeKind, JudgeVerdicts, Study
from judgebench.studies.verdicts import coded

EVERY = "all"  # as a recipe, an area or a metric: all of them together
BY_CHANCE = "random"  # the baseline
NOT_MEASURED = Estimate(None, reason="not measured for this judge")


@dataclass(frozen=True)
class Miss:
    """A violation that at least one real judge did not detect, with every judge's verdicts."""

    item: AlteredAnswer
    missed_by: tuple[str, ...]
    verdicts: Mapping[str, Verdict]  # judge -> verdict on the violation; baselines left out
    of_parent: Mapping[str, Verdict]  # judge -> verdict on the sound parent


@dataclass(frozen=True)
class RecipeSummary:
    """One recipe or set in one run: what it made, and what became of it."""

    name: str
    version: str
    made: int = 0  # items that count
    nothing_to_change: int = 0  # parents the rule found nothing to change in
    rejected: int = 0  # items that failed a check

    def rows(self) -> Iterator[Row]:
        """Its counts as rows of the results table."""
        for statistic in ("made", "nothing_to_change", "rejected"):
            estimate = Estimate(getattr(self, statistic))
            yield Row("recipe", statistic, estimate, keys={"recipe": self.name})


@dataclass(frozen=True, repr=False)
class StressResult(JudgesShown):
    """Everything that a stress test shows. The rows, by their `analysis`, for each judge:

    - `violations`, of one `recipe`, `area` and metric (or EVERY), each beside its own parent.
      `detected` is the share of verdicts at least as severe as `label` (empty where it differs
      between items), `false_alarms` the share of parents judged so too, `told_apart` that of pairs
      with a detection and no false alarm, `advantage` the detection rate minus the false alarm
      rate: a judge that gives one label to everything has 0 of the last two.
      `failures` says how missing labels are counted.
    - `invariance`, of one `recipe` that must not move a verdict, on one metric (or EVERY, where a
      pair is the same only if all metrics are). `flipped` is the share of pairs whose label
      differs, `robustness` 1 minus that, the robustness rate of Ye et al. (2024); `shift` is the
      mean change of severity, `p` of an exact sign test on the direction of the shifts, cluster by
      cluster, and `p_holm` corrected over the judge's probes on the metric.
    - `planted`, of one trick as `recipe` (or EVERY): `success` is the share of items on which it
      got what it asks for, of those where the judge had not said so. For EVERY metric: on at
      least one. `no_label` is the share of the same items that have no label any more.
    - `best_of`, of one `recipe` that words answers anew which people call bad: of `attempts` N (0:
      the answer as it is), `passed` is the share whose best verdict of N is in the better half of
      the scale, `attack_gain` how much that rises by the choice, `gain` by how many labels the best
      verdict is better.
    - `consistency` of a judge that was `asked` the same so often: `agreement` is the share of
      pairs of an item's verdicts that are equal, `majority_gain` the accuracy of the majority
      minus that of the first verdict.
    """

    presented_by = "judgebench.stress_tests.report:stress_part"

    rubric: Rubric
    judges: Mapping[str, JudgeKind]
    rows: Results
    misses: tuple[Miss, ...] = ()
    n_misses: int = 0  # of which `misses` lists the first
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def real_judges(self) -> list[str]:
        """The names of judges and juries, without the controls."""
        return [name for name in self.judges if not self.is_control(name)]

    @property
    def demanded_metrics(self) -> list[Metric]:
        """The metrics that some violation must worsen, in the rubric's order."""
        demanded = set(self.rows.values("metric", "violations"))
        return [metric for metric in self.rubric.metrics if metric.id in demanded]

    def that_may_move(self, rows: Iterable[Row]) -> list[Row]:
        """The rows of judges, and of the baseline whose labels are drawn by chance: what the others
        say has nothing to do with how a text is worded."""
        return [row for row in rows if row.judge == BY_CHANCE or not self.is_control(row.judge)]

    def number(self, analysis: str, statistic: str, **keys: str) -> Estimate:
        """One number of a judge, undefined with a reason where it was not measured."""
        found = self.rows.select(analysis, statistic, **keys)
        return found[0].estimate if found else NOT_MEASURED

    def violations(self, statistic: str, **keys: str) -> Estimate:
        """One number of the violations: of all recipes and areas, failures left out, unless
        `keys` say otherwise."""
        usual = {"recipe": EVERY, "area": EVERY, "failures": "left_out"}
        return self.number("violations", statistic, **{**usual, **keys})


@dataclass(frozen=True)
class VariantVerdicts:
    """The verdicts of a judge that was asked in another way about unaltered answers.

    `kind` is `metric-order`, `label-order`, `repeat`, `per-metric` or `wording`. Several of one
    recipe are told apart by `repeat`, counted from 1. `metrics` are those that it asks in other
    words; none: it asks all of them otherwise.
    """

    judge: str
    recipe: str
    kind: str
    repeat: int
    verdicts: Mapping[str, Verdict]  # by item_id
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class StressRun:
    """The parts of a stress test beside its study.

    `judges` hold the verdicts on the study's answers and on the altered ones, `variants` those of
    the same judges asked otherwise, on the study's answers.
    """

    altered: Sequence[AlteredAnswer]
    judges: Sequence[JudgeVerdicts]
    variants: Sequence[VariantVerdicts] = ()
    recipes: Sequence[RecipeSummary] = ()
    notes: Sequence[str] = ()


class JudgedPairs(NamedTuple):
    """A judge's label indices, -1 for none, of altered answers and their parents."""

    items: Labels  # (pairs,) places in `Pairs.items`
    before: Labels  # (pairs, metrics) of the parents
    after: Labels  # (pairs, metrics) of the altered answers
    clusters: Clusters  # (pairs,)


@dataclass(frozen=True)
class Pairs:
    """Every text once: the study's answers, parents and altered answers.

    `truth` (texts, metrics) holds indices of labels, -1 where no human says anything. `parents` and
    `altered` (items,) are rows of the texts. `judged` maps each judge to its label indices (texts,
    metrics), -1 where there is no label.
    """

    study: Study
    texts: IndexedAnswers
    truth: Labels
    judges: Sequence[JudgeVerdicts]
    variants: Sequence[VariantVerdicts]
    items: tuple[AlteredAnswer, ...]
    parents: Labels
    altered: Labels
    judged: Mapping[str, Labels]

    @property
    def real_judges(self) -> list[JudgeVerdicts]:
        """The judges without the baselines."""
        return [judge for judge in self.judges if judge.kind != "control"]

    def places(self, is_wanted: Callable[[AlteredAnswer], object]) -> dict[str, Labels]:
        """The places of the wanted items, by their recipe."""
        groups = group_by_key(
            (item.recipe, place) for place, item in enumerate(self.items) if is_wanted(item)
        )
        return {recipe: np.array(places, dtype=np.int64) for recipe, places in groups.items()}

    def labels(self, variant: VariantVerdicts) -> Labels:
        """Label indices (texts, metrics) of a variant, -1 on all but unaltered answers."""
        rows = self.asked(variant.verdicts)
        found = np.full_like(self.judged[variant.judge], -1)
        found[rows] = _labels(self.texts, self.study.rubric, variant.verdicts)[rows]
        return found

    def asked(self, verdicts: Container[str]) -> Labels:
        """The rows of the unaltered answers that a verdict is there for, whatever it says."""
        return np.array(
            [row for row, answer in enumerate(self.study.answers) if answer.item_id in verdicts],
            dtype=np.int64,
        )

    def before_and_after(self, judge: JudgeVerdicts, items: Labels) -> JudgedPairs:
        """The judge's labels of those altered answers and their parents; of `items` those alone
        that it was asked about, as well as about their parents."""
        was_asked = judge.coded(self.texts).was_asked(self.texts)
        items = items[was_asked[self.parents[items]] & was_asked[self.altered[items]]]
        parents, labels = self.parents[items], self.judged[judge.name]
        clusters = self.texts.clusters[parents]
        return JudgedPairs(items, labels[parents], labels[self.altered[items]], clusters)

    def share(self, outcome: Labels, why_none: str) -> Estimate:
        """The share of 1 in an outcome (items,) of 1, 0 and -1 for missing, with its exact
        interval. `why_none` is the reason where nothing but missing outcomes is there."""
        known = outcome[outcome >= 0]
        found = clopper_pearson(int(known.sum()), len(known), self.study.level)
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
        return self.estimate(counts, statistic, int(counts.sum()), len(before))

    def estimate(self, counts: FloatArray, statistic: Statistic, n: int, of: int) -> Estimate:
        """A statistic of counts (clusters, ...) that rest on `n` pairs of so many."""
        return clustered_estimate(counts, statistic, self.study.level, n=n, n_missing=of - n)


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
        parents=np.array([texts.row(x.parent.item_id) for x in items], dtype=np.int64),
        altered=np.array([texts.row(x.item_id) for x in items], dtype=np.int64),
        judged={j.name: _labels(texts, study.rubric, j.verdicts) for j in run.judges},
    )  # fmt: skip


def _labels(texts: IndexedAnswers, rubric: Rubric, verdicts: Mapping[str, Verdict]) -> Labels:
    said = coded(verdicts, texts, rubric.metrics)
    return np.column_stack([said.label_indices(m, texts) for m in rubric.metrics])
