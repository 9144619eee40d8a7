"""Compare judges with the humans, and the humans with each other: a study in, one Alignment out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from judgebench.alignment.against_truth import (
    confusion,
    coverage,
    details,
    given_system,
    scores,
    systems_of,
)
from judgebench.alignment.annotators import (
    AGREEMENT_STATISTICS,
    agreement,
    annotator_labels,
    ceiling,
    distribution,
)
from judgebench.alignment.caveats import (
    bar_lines,
    compared_with,
    data_notes,
    few_questions,
    judge_notes,
    model_notes,
    one_annotator_lines,
)
from judgebench.alignment.comparisons import comparisons
from judgebench.alignment.draws import consistency
from judgebench.alignment.probabilities import probability_results
from judgebench.alignment.several import several
from judgebench.alignment.statistics import NOMINAL, STATISTICS
from judgebench.alignment.subgroups import subgroups
from judgebench.errors import Problem, SetupError, nearest, raise_any
from judgebench.progress import SILENT, Progress
from judgebench.records import TRAINED_ON, Estimate, Status
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.rubric import Rubric
from judgebench.runs.from_tables import Tables, study_from
from judgebench.runs.open import Truth
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.studies.verdicts import status_counts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from judgebench.data.layout import Layout
    from judgebench.results.paper_table import PaperTable

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

    presented_by = "judgebench.alignment.alignment_part:alignment_part"

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

        `columns` are statistics, such as `mae`. Without them: accuracy, kappa, alpha and severe
        recall, of which the two shares have intervals, so that a column of a paper holds the
        table. A statistic that is undefined for all, such as severe recall of labels without an
        order, has no column. Raises SetupError for a column that is no statistic.

        >>> import judgebench as jb
        >>> table = jb.align(jb.open_run("runs/small")).table(["accuracy", "mae"])
        >>> table.to_frame().loc["Empathy"].index.to_list()
        ['One annotator', 'my-judge', 'Best baseline']
        >>> table.to_frame().columns.to_list()[:3]
        ['accuracy', 'accuracy_low', 'accuracy_high']
        """
        table: PaperTable = _presenter("paper_tables").chosen_table(self.chosen(columns), intervals)
        return table

    def by(self, column: str) -> PaperTable:
        """Each judge in each group of answers, by the values of a column that was kept with them,
        or by `system`: accuracy, and how far the judge is from the annotators. Raises SetupError
        for a column that was not kept, and for one of too many values.

        >>> import judgebench as jb
        >>> jb.align(jb.open_run("runs/small")).by("system").to_frame().columns.to_list()[:2]
        ['accuracy', 'accuracy_low']
        """
        table: PaperTable = _presenter("paper_tables").subgroup_table(
            self.chosen(by=column), column
        )
        return table

    def chosen(self, columns: Sequence[str] = (), by: str = "") -> Alignment:
        """The same with these `columns` of its table, in the report and the paper, and with the
        rows of subgroups `by` a column. Raises SetupError as `table` and `by` do."""
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
        Failures are left out. Raises SetupError for another statistic, and without a judge.

        >>> import judgebench as jb
        >>> jb.align(jb.open_run("runs/small")).plot("kappa_quadratic").get_xlabel()
        'Quadratic κ'
        """
        if not self.real_judges:
            raise SetupError("there is nothing to plot: no judge was compared with annotators")
        draw = _presenter("alignment_figures").score_plot
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
    yield from (row for m in metrics for row in comparisons(study, m))
    yield from (row for m in metrics for row in distribution(study, m))
    yield from (row for m in metrics for row in annotator_labels(study, m))
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
