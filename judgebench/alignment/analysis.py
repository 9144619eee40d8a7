"""Judges' label probabilities against the truth and against the distribution of human labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from judgebench.alignment.judge_scores import (
    NOMINAL,
    STATISTICS,
    Declared,
    by_key,
    confusion,
    consistency,
    coverage,
    details,
    given_system,
    scores,
    systems_of,
    truths,
)
from judgebench.alignment.notes import (
    bar_lines,
    compared_with,
    data_notes,
    few_questions,
    judge_notes,
    model_notes,
    one_annotator_lines,
)
from judgebench.alignment.raters import (
    AGREEMENT_STATISTICS,
    agreement,
    annotator_labels,
    ceiling,
    comparisons,
    distribution,
)
from judgebench.alignment.subgroups import subgroups
from judgebench.errors import Problem, SetupError, nearest, raise_any
from judgebench.progress import SILENT, Progress
from judgebench.records import TRAINED_ON, Answer, Estimate, Results, Row, Status, is_slot
from judgebench.results.blocks import (
    NOT_ABOUT,
    NOT_LABELLED,
    SIGNS,
    Items,
    ItemVerdict,
    Passage,
    reasons_of,
    sign,
    texts_of,
)
from judgebench.results.blocks import Texts as Passages
from judgebench.results.shown import Shown
from judgebench.rubric import Metric, Rubric
from judgebench.runs.from_tables import Tables, study_from
from judgebench.runs.open import Truth
from judgebench.stats.agreement import (
    NO_SET,
    SET_STATISTICS,
    fill_missing,
    set_scores,
    shares_of_others,
)
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, value_counts
from judgebench.stats.calibration import (
    LEAST_PROBABILITY,
    NO_ITEM,
    annotator_against_others,
    base_rates,
    brier_skill,
    calibration_curve,
    cross_entropy,
    expected_calibration_error,
    judge_against_others,
    one_hot,
    squared_distance,
)
from judgebench.stats.intervals import Kind, clustered_mean
from judgebench.stats.ranks import roc_auc
from judgebench.studies.item_table import Texts, judge_labels, labels_by_annotator, reference_texts
from judgebench.studies.reference_labels import Labels
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.studies.verdicts import status_counts, weighed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from judgebench.data.layout import Layout
    from judgebench.results.paper_table import PaperTable


NO_OTHERS = "no item with label probabilities has labels of two annotators"
# What is scored: the judge's `probabilities`; its `label` taken as a certainty; one `annotator`'s
# label taken so, on the same items; the same `base_rates` of the human labels on every item. `gain`
# is the annotator's distance minus that of the probabilities, item by item: above 0 the judge is
# nearer to the other annotators than one of them is.
Source = Literal["probabilities", "label", "annotator", "base_rates", "gain"]

# Against one truth per item; `_against_truth` measures them.
TRUTH_STATISTICS = by_key(
    Declared(
        "brier", "Brier score",
        "squared distance from the reference label, summed over labels; 0 is best, 2 worst",
        best="lower",
    ),
    Declared(
        "brier_skill", "Skill",
        "1 - Brier score / that of the labels' base rates, said of every item",
    ),
    Declared(
        "log_loss", "Log loss",
        "-ln of the probability of the reference label, the mean in nats; 0 is best",
        best="lower",
    ),
    Declared(
        "ece", "ECE", "expected calibration error: how far confidence is from the share right",
        best="lower",
    ),
    Declared("ece_debiased", "ECE, debiased", "without what chance adds to it", best="lower"),
)  # fmt: skip
_CLIPPED = f"probabilities below {LEAST_PROBABILITY:.1e} count as that"


def probability_results(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[Row]:
    """All that is said of one judge's probabilities on one metric: scores, areas under ROC curves,
    a reliability diagram; of a score in their place the area of the last label. Nothing where the
    judge gave neither, or no human gave a label."""
    rows, truth, clusters = truths(study, metric)
    known = (truth >= 0) & study.asked(judge, metric)[rows]
    rows, truth, shared = rows[known], truth[known], (clusters[known], study.level)
    p, scores = study.probabilities(judge, metric), study.scores(judge)[rows]

    def row(analysis: str, statistic: str, estimate: Estimate, **keys: str) -> Row:
        return Row(analysis, statistic, estimate, judge.name, metric.id, keys)

    def area(place: int, score: FloatArray) -> Row:
        estimate = roc_auc(score, truth == place, *shared)
        return row("label", "roc_auc", estimate, label=metric.label_texts[place])

    if p is None and metric.kind == "ordinal" and not np.isnan(scores).all():
        yield area(len(metric.labels) - 1, scores)
    if p is None or not len(study.humans[metric.id].made.rows):
        return
    for place, score in enumerate(p[rows].T):
        yield area(place, score)
    for statistic, who, estimate in _against_truth(
        p[rows], study.judged(judge, metric)[rows], truth, *shared
    ):
        yield row("probability", statistic, estimate, who=who)
    for statistic, who, estimate in _against_annotators(study, judge, metric, p):
        yield row("probability", statistic, estimate, who=who)
    for place, point in enumerate(calibration_curve(p[rows], truth, study.level), start=1):
        confidence = Estimate(point.confidence, n=point.right.n)
        yield row("calibration", "confidence", confidence, who=f"bin {place}")
        yield row("calibration", "share_right", point.right, who=f"bin {place}")


def _against_truth(
    p: FloatArray, judged: Labels, truth: IntArray, clusters: Clusters, level: float
) -> Iterator[tuple[str, Source, Estimate]]:
    """Against one label per item: the Brier score and its parts, log loss, calibration error."""
    q, shared = one_hot(truth, p.shape[1]), (clusters.codes, NO_ITEM, level)
    brier = clustered_mean(squared_distance(p, q), *shared, kind="brier")
    yield "brier", "probabilities", brier
    certain = np.where(np.isnan(p), np.nan, one_hot(judged, p.shape[1]))
    yield "brier", "label", clustered_mean(squared_distance(certain, q), *shared)
    yield "brier_skill", "probabilities", brier_skill(p, q, clusters, level)
    yield "log_loss", "probabilities", _clipped(clustered_mean(cross_entropy(p, q), *shared))
    errors = expected_calibration_error(p, q, clusters, level)
    yield "ece", "probabilities", errors.plug_in
    yield "ece_debiased", "probabilities", errors.debiased


def _against_annotators(
    study: Study, judge: JudgeVerdicts, metric: Metric, p: FloatArray
) -> Iterator[tuple[str, Source, Estimate]]:
    """Against the labels of the others, whoever is left out: what is said, and what a colleague
    and the base rates would reach on the same items."""
    made = study.humans[metric.id].made
    judged = study.judged(judge, metric)
    n_uc = value_counts(made.values, len(metric.labels))
    there = n_uc.any(axis=1) & study.asked(judge, metric)[made.rows]
    n_uc, rows, clusters = n_uc[there], made.rows[there], study.humans[metric.id].clusters[there]
    same_items = np.where(np.isnan(p[rows, :1]), np.nan, 1.0)
    labels = same_items * one_hot(judged[rows], len(metric.labels))
    rates = same_items * base_rates(n_uc)

    def mean(scores: FloatArray) -> Estimate:
        return clustered_mean(scores, clusters.codes, NO_OTHERS, study.level)

    mine = judge_against_others(p[rows], n_uc)
    colleague = annotator_against_others(n_uc) * same_items[:, 0]
    scores: Mapping[Source, FloatArray] = {
        "probabilities": mine, "label": judge_against_others(labels, n_uc),
        "annotator": colleague, "base_rates": judge_against_others(rates, n_uc),
        "gain": colleague - mine,
    }  # fmt: skip
    for source, one in scores.items():
        yield "squared_distance", source, mean(one)


def _clipped(estimate: Estimate) -> Estimate:
    """The estimate, with a method that says how logarithms are kept finite."""
    if estimate.low is None:
        return estimate
    return replace(estimate, method=f"{estimate.method}; {_CLIPPED}")


EVERYBODY = "all"


def several(study: Study, metric: Metric) -> Iterator[Row]:
    """Hit, coverage and the like of every judge, three ways where it failed on some items, and of
    every annotator against the others; nothing of a metric on which one label is right."""
    sets = study.humans[metric.id].made.sets
    if sets is None:
        return
    k, humans = len(metric.labels), study.humans[metric.id]
    shares, by = humans.made.shares(k, study.config), study.config.accepted_by
    for judge in study.judges:
        if judge.judges(metric):
            yield from _set_scores(study, judge, metric, shares)
    of_others = shares_of_others(sets, k)
    own = [set_scores(sets[:, a], of_others[:, a], by) for a in range(sets.shape[1])]
    for name, own_scores in zip(humans.makers, own, strict=True):
        if not is_slot(name):
            yield from _means(study, own_scores, humans.clusters, 0, ("", metric, "", name))
    if own:
        pooled = np.concatenate(own)
        codes = np.tile(humans.clusters.codes, len(own))
        clusters = Clusters(codes, humans.clusters.n)
        yield from _means(study, pooled, clusters, 0, ("", metric, "", EVERYBODY))


def _set_scores(
    study: Study, judge: JudgeVerdicts, metric: Metric, shares: FloatArray
) -> Iterator[Row]:
    humans = study.humans[metric.id]
    rows = humans.ratings.rows
    due = study.asked(judge, metric)[rows]
    said = np.where(due, study.judged_sets(judge, metric)[rows], -1)
    scores = set_scores(said, shares, study.config.accepted_by)
    missing = due & (said < 0) & ~np.isnan(shares[:, 0])
    yield from _means(
        study, scores, humans.clusters, int(missing.sum()), (judge.name, metric, "left_out", "")
    )
    for policy in ("worst", "best") if missing.any() else ():
        filled = fill_missing(scores, shares, missing, policy == "worst")
        yield from _means(study, filled, humans.clusters, 0, (judge.name, metric, policy, ""))


def _means(
    study: Study, scores: FloatArray, clusters: Clusters, missing: int,
    about: tuple[str, Metric, str, str],
) -> Iterator[Row]:  # fmt: skip
    """The mean of each statistic over the items (n, 4) that have one."""
    judge, metric, failures, who = about
    for key, column in zip(SET_STATISTICS, scores.T, strict=True):
        known = ~np.isnan(column)
        kind: Kind = "mean" if key == "mse" else "share"
        codes = clusters.codes[known]
        found = clustered_mean(
            column[known], codes, NO_SET, study.level, n_missing=missing, kind=kind
        )
        keys = {"who": who} if who else {"failures": failures}
        yield Row("several", key, found, judge, metric.id, keys)


def items_of(study: Study) -> Items:
    """Every item in its order; control judges are left out."""
    ids = tuple(study.answers.item_ids())
    said = [_said(study, metric) for metric in study.rubric.metrics]
    systems = [answer.system if not answer.responses else "" for answer in study.answers]
    return Items(ids, systems, said, _texts(study))


def _said(study: Study, metric: Metric) -> ItemVerdict:
    reference, people = reference_texts(study, metric), labels_by_annotator(study, metric)
    judged = {j.name: judge_labels(study, j, metric) for j in study.real_judges if j.judges(metric)}
    labels = dict.fromkeys(weighed(metric))  # what is more than one label comes behind all labels
    for texts in (reference, *people.values(), *(texts for texts, _ in judged.values())):
        labels |= dict.fromkeys(texts)
    labels.pop("", None)
    signs = {text: sign(place) for place, text in enumerate(labels)}
    about = study.answers.of_kind(metric, study.rubric).tolist()

    def signed(texts: Texts, endings: Texts) -> str:
        """The sign of each label, or of the reason why there is none."""
        others = (SIGNS.get(ending, NOT_LABELLED) for ending in endings)
        each = (signs.get(text, other) for text, other in zip(texts, others, strict=True))
        return "".join(x if is_due else NOT_ABOUT for x, is_due in zip(each, about, strict=True))

    unknown = [""] * len(about)
    return ItemVerdict(
        metric.title,
        tuple(labels),
        metric.severities if metric.kind == "ordinal" else (),
        signed(reference, unknown),
        {name: signed(texts, unknown) for name, texts in people.items()},
        {name: signed(*texts) for name, texts in judged.items()},
    )


def _texts(study: Study) -> Iterator[tuple[Passages, Passages]]:
    for answer in study.answers:
        yield texts_of(answer), tuple(_reasons(study, answer))


def _reasons(study: Study, answer: Answer) -> Iterator[tuple[str, Passage]]:
    for judge in study.real_judges:
        if (verdict := judge.verdicts.get(answer.item_id)) is not None:
            yield from reasons_of(judge.name, verdict, answer, study.rubric)


BEST_BASELINE = "best baseline"
ALIGNED = "align"  # the key in Study.beside of the results of an alignment made before


@dataclass(frozen=True, repr=False, eq=False)
class Alignment(Shown):
    """Agreement of judges with humans, and of humans with each other.

    The analyses of `results` and the keys of their rows beside judge and metric:

    - asked: the `answers` that the judge was asked about, of n; of a judge that was not asked about
      all
    - score: `failures` (left_out, worst, best)
    - label: `label`, which is held against all others; of judges that are no baseline
    - limits_of_agreement: of ordinal metrics whose labels are numbers (Bland and Altman)
    - given_system: of answers of several systems, what is left without their means
    - agreement: `who`, "all" or a pair "a ~ b"
    - ceiling: `who`, one annotator against the truth of the others, or "all", every one pooled
    - several: `failures` of a judge; `who`, one annotator against the response sets of the others,
      or "all"; of metrics on which several labels may be right
    - probability: `who`, what was scored (probabilities, label, annotator, base_rates, gain)
    - calibration: `who`, the bin
    - comparison: `who`, the second judge
    - consistency: of a judge with several draws of an item, how many were `asked` at most
    - distribution: `human_label`
    - annotator_labels: `who`, `human_label`
    - confusion: `human_label`, `label` (the judge's, empty where it gave none)
    - subgroup: `by`, a column of the answers, and `group`, one of its values; see `by`
    - verdicts: the statistic is the status
    - usage: calls, tokens and US dollars, of a judge of which they are known
    """

    presented_by = "judgebench.alignment.report:alignment_part"

    study: Study
    found: Results
    columns: tuple[str, ...] = ()  # the statistics of the table; none: the usual ones
    outcomes: Mapping[tuple[str, str], str] = field(default_factory=dict)  # by judge and metric

    @property
    def results(self) -> Results:
        """Every number of the alignment."""
        return self.found

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.study.name

    @property
    def rubric(self) -> Rubric:
        """The rubric of the study."""
        return self.study.rubric

    @property
    def n_answers(self) -> int:
        """The number of answers."""
        return len(self.study.answers)

    @property
    def gaps(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the run folder lacks."""
        return self.study.gaps

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """Who makes the reference labels by which rule; then who is in the bar."""
        first = (compared_with(self.study), *one_annotator_lines(self.study))
        return " ".join(first), *bar_lines(self.study)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Counted warnings and caveats, one sentence each."""
        study = self.study
        labelled = any(len(humans.ratings.rows) for humans in study.humans.values())
        return (
            *judge_notes(study, self.results),
            *study.notes,
            *((*data_notes(study), *model_notes(study)) if labelled else ()),
            *few_questions(study),
        )

    def to_frame(self, failures: Literal["left_out", "all"] = "left_out") -> pd.DataFrame:
        """One row for each number; none for a statistic that needs an order of labels where these
        have none."""
        frame = super().to_frame(failures)
        return frame[frame.reason != NOMINAL].reset_index(drop=True)

    def table(self, columns: Sequence[str] = (), *, intervals: bool = True) -> PaperTable:
        """Judges by statistics, as a paper shows them: of each metric one annotator against the
        others, every judge and of each statistic the best baseline. Failures count as wrong.
        Without a judge: metrics by statistics of agreement among the annotators.

        `columns` are statistics, such as `mae`; dashes stand where one is undefined. Without them:
        accuracy, kappa, alpha and severe recall, those that are defined, of which the two shares
        have intervals, so that a column of a paper holds the table. Raises SetupError for a column
        that is no statistic.

        >>> import judgebench as jb
        >>> table = jb.align(jb.open_run("runs/small")).table(["accuracy", "mae"])
        >>> table.to_frame().loc["Empathy"].index.to_list()
        ['One annotator', 'my-judge', 'Best baseline']
        >>> table.to_frame().columns.to_list()[:3]
        ['accuracy', 'accuracy_low', 'accuracy_high']
        """
        table: PaperTable = _presenter("tables").chosen_table(self.chosen(columns), intervals)
        return table

    def by(self, column: str) -> PaperTable:
        """Each judge in each group of answers, by the values of a column that was kept with them,
        or by `system`: accuracy, and how far the judge is from the annotators. Raises SetupError
        for a column that was not kept, and for one of too many values.

        >>> import judgebench as jb
        >>> jb.align(jb.open_run("runs/small")).by("system").to_frame().columns.to_list()[:2]
        ['accuracy', 'accuracy_low']
        """
        table: PaperTable = _presenter("tables").subgroup_table(self.chosen(by=column), column)
        return table

    def chosen(self, columns: Sequence[str] = (), by: str = "") -> Alignment:
        """The same with these `columns` of its table, in the report and the paper, and with the
        rows of subgroups `by` a column. Raises SetupError as `table` and `by` do."""
        columns = [columns] if isinstance(columns, str) else columns
        allowed = [*(STATISTICS if self.real_judges else AGREEMENT_STATISTICS)]
        raise_any([
            Problem(f"is no statistic of this table{nearest(key, allowed)}", "", None,
                    "columns", key, ", ".join(allowed))
            for key in columns
            if key not in allowed
        ])  # fmt: skip
        rows = subgroups(self.study, by) if by else ()
        results = Results((*self.results, *rows))
        return replace(self, columns=tuple(columns) or self.columns, found=results)

    def plot(
        self, statistic: str = "accuracy", *, ax: Axes | None = None, width: float | None = None
    ) -> Axes:
        """A statistic of each judge with its interval, beside one annotator and the baselines, on
        each metric, as axes of matplotlib: `ax`, or those of a new figure of a `width` in inches.
        Failures count as wrong. Raises SetupError for another statistic, and without a judge.

        >>> import judgebench as jb
        >>> jb.align(jb.open_run("runs/small")).plot("kappa_quadratic").get_xlabel()
        'Quadratic κ'
        """
        if not self.real_judges:
            raise SetupError("there is nothing to plot: no judge was compared with annotators")
        draw = _presenter("report").score_plot
        axes: Axes = draw(self.chosen([statistic]), statistic, ax, width)
        return axes

    def records(self) -> dict[str, list[Any]]:
        """Every number, and who made the truth."""
        return {**super().records(), "truth": [*self.compared[:1]], "bars": [*self.compared[1:]]}

    @property
    def real_judges(self) -> list[JudgeVerdicts]:
        """Judges, juries and calibrated judges, without the controls."""
        return self.study.real_judges

    @property
    def controls(self) -> list[JudgeVerdicts]:
        """The baselines."""
        return self.study.controls

    def title(self, metric: str) -> str:
        """The title of a metric, by its id."""
        return {m.id: m.title for m in self.rubric.metrics}.get(metric, metric)

    def score(
        self, statistic: str, judge: str, metric: str, failures: str = "left_out"
    ) -> Estimate:
        """One score. Where nothing failed, the three ways of counting failures are one."""
        keys = {"judge": judge, "metric": metric}
        plain = self.results.find(statistic, "score", failures="left_out", **keys)
        if failures == "left_out" or (plain.value is not None and not plain.n_missing):
            return plain
        return self.results.find(statistic, "score", failures=failures, **keys)

    def ceiling(self, statistic: str, metric: str, annotator: str = "all") -> Estimate:
        """An annotator, or all of them pooled, against the reference labels of the others."""
        return self.results.find(statistic, "ceiling", metric=metric, who=annotator)

    def standings(self, statistic: str, failures: str = "left_out") -> Iterator[Row]:
        """Of each metric one annotator against the others, who has no name, every judge and the
        best baseline, as `BEST_BASELINE`, its name in the reason."""
        for metric in self.rubric.metrics:
            yield from self.results.select("ceiling", statistic, metric=metric.id, who="all")
            for judge in self.real_judges:
                score = self.score(statistic, judge.name, metric.id, failures)
                yield Row("score", statistic, score, judge.name, metric.id)
            if best := self.best_control(statistic, metric.id):
                name, score = best
                score = replace(score, reason=f"{name}; {score.reason}".rstrip("; "))
                yield Row("score", statistic, score, BEST_BASELINE, metric.id)

    def best_control(self, statistic: str, metric: str) -> tuple[str, Estimate] | None:
        """The baseline nearest to the ideal value; None where no control has a value."""
        scores = ((c.name, self.score(statistic, c.name, metric)) for c in self.controls)
        defined = [(name, score) for name, score in scores if score.value is not None]
        shortfall = STATISTICS[statistic].shortfall
        return min(defined, key=lambda pair: shortfall(pair[1].value or 0.0), default=None)


def _presenter(module: str) -> Any:
    """A module that presents alignments; it imports this one, and never the other way round."""
    return import_module(f"judgebench.alignment.{module}")


def align_study(study: Study, progress: Progress = SILENT) -> Alignment:
    """Compare every judge with the humans, and the humans with each other, metric by metric.

    Intervals take whole groups of answers (`Answer.group`) as what was sampled.
    """
    return Alignment(study, Results(tuple(_rows(study, progress))))


def accuracies(study: Study) -> Iterator[Row]:
    """The accuracy of every judge, and of the annotators, of each metric, and their hits where
    several labels may be right: the rows of an alignment with them, taken from one where it stands
    beside the study, else without the cost of others."""
    found, only = study.beside.get(ALIGNED), (STATISTICS["accuracy"],)
    if isinstance(found, Results):
        yield from found.select("asked")
        yield from found.select("score", "accuracy")
        yield from found.select("ceiling", "accuracy")
        yield from found.select("several", "hit")
        return
    for metric in study.rubric.metrics:
        for judge in study.judges:
            yield from coverage(study, judge, metric)
            yield from scores(study, judge, metric, only)
        yield from ceiling(study, metric, only)
        yield from (row for row in several(study, metric) if row.statistic == "hit")


def _rows(study: Study, progress: Progress) -> Iterator[Row]:
    """Every number, one analysis after the other."""
    metrics = study.rubric.metrics
    pairs = [(j, metric) for j in study.judges for metric in metrics if j.judges(metric)]
    progress.start("judges on metrics", len(pairs), 0)
    scored: list[Row] = []
    for pair in pairs:
        scored += (*coverage(study, *pair), *scores(study, *pair), *consistency(study, *pair))
        progress.advance("judges on metrics")
    of_probabilities = [row for pair in pairs for row in probability_results(study, *pair)]
    yield from scored
    systems = systems_of(study)
    for pair in pairs:
        if pair[0].kind != "control":
            yield from details(study, *pair)
            yield from given_system(study, *pair, systems)
    yield from agreement(study)
    yield from (row for m in metrics for row in ceiling(study, m))
    yield from (row for m in metrics for row in several(study, m))
    for analysis in ("label", "probability", "calibration"):
        yield from (row for row in of_probabilities if row.analysis == analysis)
    for measure in (comparisons, distribution, annotator_labels):
        yield from (row for metric in metrics for row in measure(study, metric))
    yield from (row for pair in pairs for row in confusion(study, *pair))
    for judge in study.judges:
        yield from _run_rows(study, judge)


def _run_rows(study: Study, judge: JudgeVerdicts) -> Iterator[Row]:
    """How many verdicts ended how, and what they used. What a judge skipped because it learnt from
    it is not among them."""
    statuses = {str(status): n for status, n in status_counts(judge.verdicts).items()}
    trained_on = int(study.coded(judge).trained_on(study.answers).sum())
    if trained_on:
        skipped = statuses.pop(Status.SKIPPED) - trained_on
        statuses |= {TRAINED_ON: trained_on} | ({str(Status.SKIPPED): skipped} if skipped else {})
    n = len(judge.verdicts) - trained_on
    for status, count in statuses.items():
        yield Row("verdicts", status, Estimate(count, n=n), judge.name)
    for key, value in (*asdict(judge.usage).items(), ("cost", judge.cost)):
        if value is not None:
            yield Row("usage", key, Estimate(value, n=n), judge.name)


def align(
    study: Study | Tables | Layout,
    verdicts: Tables | None = None,
    *,
    truth: Truth | None = None,
    columns: Mapping[str, Any] = {},
) -> Alignment:
    """Measure how every judge agrees with the humans, and the humans with each other: of a study
    or a run folder, or of tables, as in `decide`, which need no verdicts.

    >>> import judgebench as jb
    >>> frame = jb.align(jb.open_run("runs/small")).to_frame()
    >>> sorted(frame.analysis.unique())[:3]
    ['agreement', 'annotator_labels', 'ceiling']
    """
    return align_study(study_from(study, verdicts, truth, columns))
