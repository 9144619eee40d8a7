"""Compare judges with the humans, and the humans with each other: a study in, one Alignment out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from judgebench.alignment.against_truth import confusion, coverage, scores
from judgebench.alignment.annotators import agreement, annotator_labels, ceiling, distribution
from judgebench.alignment.caveats import (
    bar_lines,
    collapsed,
    compared_with,
    data_notes,
    few_questions,
    judge_notes,
    model_notes,
    one_annotator_lines,
    size_in_words,
)
from judgebench.alignment.comparisons import comparisons
from judgebench.alignment.draws import consistency
from judgebench.alignment.items import items_of
from judgebench.alignment.probabilities import probability_results
from judgebench.alignment.several import several
from judgebench.alignment.statistics import NOMINAL, STATISTICS
from judgebench.progress import SILENT, Progress
from judgebench.records import TRAINED_ON, Estimate, Status, Usage
from judgebench.results.items import Items
from judgebench.results.part import Files
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.rubric import Rubric
from judgebench.runs.from_tables import Tables, study_from
from judgebench.runs.open import Truth
from judgebench.studies.study import JudgeKind, JudgeVerdicts, Study
from judgebench.studies.verdicts import status_counts

if TYPE_CHECKING:
    import pandas as pd

    from judgebench.data.layout import Layout

BEST_BASELINE = "best baseline"
ALIGNED = "align"  # the key in Study.beside of the results of an alignment made before


@dataclass(frozen=True)
class JudgeSummary:
    """One judge's run: how many verdicts ended how, what it used. `about` is from the manifest.

    What it skipped because it learnt from it is not among the `n`, and its status is TRAINED_ON.
    """

    name: str
    kind: JudgeKind
    signature: str
    n: int
    statuses: Mapping[str, int]  # status -> how many
    usage: Usage
    cost: float | None
    about: Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class Alignment(Shown):
    """Agreement of judges with humans, and of humans with each other.

    The analyses of `results` and the keys of their rows beside judge and metric:

    - asked: the `answers` that the judge was asked about, of n; of a judge that was not asked about
      all
    - score: `failures` (left_out, worst, best)
    - agreement: `who`, "all" or a pair "a ~ b"; the metric may be "all"
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
    - verdicts: the statistic is the status
    """

    presented_by = "judgebench.alignment.alignment_part:alignment_part"

    name: str
    rubric: Rubric
    annotators: tuple[str, ...]  # who makes the truth
    judges: tuple[JudgeSummary, ...]
    found: Results
    n_answers: int
    n_labels: int
    notes: tuple[str, ...]  # counted warnings and caveats, one sentence each
    size: str = ""  # how many answers, pairs and criteria, to how many questions
    run: str = ""  # when the judges ran and with what, where that is known
    compared: tuple[str, ...] = ()  # who makes the truth by which rule; then who is in the bar
    gaps: tuple[str, ...] = ()  # what the run folder lacks
    collapsed: tuple[str, ...] = ()  # a sentence for each judge that gives nearly one label
    files: Files = field(default_factory=dict)  # of a report, beside its numbers
    outcomes: Mapping[tuple[str, str], str] = field(default_factory=dict)  # by judge and metric
    items: Callable[[], Items] | None = None  # every item, for a report's page
    blind: str = ""  # whether labels are known to be made without sight of any model's label

    @property
    def results(self) -> Results:
        """Every number of the alignment."""
        return self.found

    def to_frame(self, failures: Literal["left_out", "all"] = "left_out") -> pd.DataFrame:
        """One row for each number; none for a statistic that needs an order of labels where these
        have none."""
        frame = super().to_frame(failures)
        return frame[frame.reason != NOMINAL].reset_index(drop=True)

    def table(self) -> pd.DataFrame:
        """Judges by statistics, as a paper shows them: of each metric the annotators, every judge
        and of each statistic the best baseline. Failures count as wrong, undefined numbers are NaN;
        a statistic that is undefined for all, such as severe recall of labels without an order, has
        no column. Without a judge: metrics by statistics of agreement among the annotators.

        >>> import judgebench as jb
        >>> table = jb.align(jb.open_run("runs/small")).table()
        >>> table.loc["Empathy"].index.to_list()
        ['annotators', 'my-judge', 'best baseline']
        >>> table.columns.to_list()[:2]
        ['accuracy', 'balanced_accuracy']
        """
        import pandas as pd

        rows = [row for key in STATISTICS for row in self.standings(key, "worst")]
        if not self.real_judges:
            rows = [r for r in self.results.select("agreement", who="all") if r.metric != "all"]
        lines: dict[tuple[str, str], dict[str, float | None]] = {}
        for row in rows:
            line = lines.setdefault((self.title(row.metric), row.judge or "annotators"), {})
            line[row.statistic] = row.estimate.value
        index = pd.MultiIndex.from_tuples(lines, names=["metric", "judge"])
        statistics = [*dict.fromkeys(row.statistic for row in rows)]
        frame = pd.DataFrame([*lines.values()], index, statistics, dtype=float)
        frame = frame.dropna(axis=1, how="all")
        if not self.real_judges:
            return frame.droplevel("judge")
        return frame if len(self.rubric.metrics) > 1 else frame.droplevel("metric")

    def records(self) -> dict[str, list[Any]]:
        """Every number, and who made the truth."""
        return {**super().records(), "truth": [*self.compared[:1]], "bars": [*self.compared[1:]]}

    @property
    def real_judges(self) -> list[JudgeSummary]:
        """Judges, juries and calibrated judges, without the controls."""
        return [judge for judge in self.judges if judge.kind != "control"]

    @property
    def controls(self) -> list[JudgeSummary]:
        """The baselines."""
        return [judge for judge in self.judges if judge.kind == "control"]

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


def align_study(study: Study, progress: Progress = SILENT) -> Alignment:
    """Compare every judge with the humans, and the humans with each other, metric by metric.

    Intervals take whole groups of answers (`Answer.group`) as what was sampled.
    """
    rubric = study.rubric
    judges = tuple(_summary(judge, study) for judge in study.judges)
    found = Results(tuple(_rows(study, judges, progress)))
    labelled = any(len(humans.ratings.rows) for humans in study.humans.values())
    return Alignment(
        name=study.name,
        rubric=rubric,
        annotators=study.makers,
        compared=(" ".join((compared_with(study), *one_annotator_lines(study))), *bar_lines(study)),
        judges=judges,
        found=found,
        n_answers=len(study.answers),
        n_labels=study.n_labels,
        notes=(
            *judge_notes(study, found),
            *study.notes,
            *((*data_notes(study), *model_notes(study)) if labelled else ()),
            *few_questions(study),
        ),
        size=size_in_words(study),
        run=study.run,
        gaps=study.gaps,
        collapsed=tuple(collapsed(study).values()),
        files={"verdicts.csv": partial(verdict_rows, study)},
        items=partial(items_of, study),
        blind=study.config.blind,
    )


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


def _rows(study: Study, judges: Sequence[JudgeSummary], progress: Progress) -> Iterator[Row]:
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
    yield from agreement(study)
    yield from (row for m in metrics for row in ceiling(study, m))
    yield from (row for m in metrics for row in several(study, m))
    for analysis in ("probability", "calibration"):
        yield from (row for row in of_probabilities if row.analysis == analysis)
    yield from (row for m in metrics for row in comparisons(study, m))
    yield from (row for m in metrics for row in distribution(study, m))
    yield from (row for m in metrics for row in annotator_labels(study, m))
    yield from (row for pair in pairs for row in confusion(study, *pair))
    for judge in judges:
        for status, count in judge.statuses.items():
            yield Row("verdicts", status, Estimate(count, n=judge.n), judge.name)


def _summary(judge: JudgeVerdicts, study: Study) -> JudgeSummary:
    statuses = {str(status): n for status, n in status_counts(judge.verdicts).items()}
    if own := int(study.coded(judge).trained_on(study.answers).sum()):
        others = statuses.pop(Status.SKIPPED) - own
        statuses |= {TRAINED_ON: own} | ({str(Status.SKIPPED): others} if others else {})
    return JudgeSummary(
        judge.name, judge.kind, judge.signature, len(judge.verdicts) - own, statuses,
        judge.usage, judge.cost, judge.about or {},
    )  # fmt: skip


# --- verdicts.csv ---------------------------------------------------------------------------------


def verdict_rows(study: Study) -> Iterator[Sequence[str]]:
    """The names of the columns, then a row for each answer and each judge that is no control: a
    label for each metric, how the verdict ended and, where a label is missing, why."""
    metrics, gaps = study.rubric.metrics, [" ".join(study.gaps)] if study.gaps else []
    about, ended = ("item_id", "question", "system", "group", "judge"), ("status", "reason")
    yield (*about, *(metric.id for metric in metrics), *ended, *["incomplete" for _ in gaps])
    judges = study.real_judges
    asked = {judge.name: study.coded(judge).was_asked(study.answers) for judge in judges}
    several_right = any(metric.several for metric in metrics)
    found = {judge.name: [study.judged(judge, metric) for metric in metrics] for judge in judges}
    for row, answer in enumerate(study.answers):
        item = (answer.item_id, answer.question, answer.system, answer.group)
        for judge in (judge for judge in judges if asked[judge.name][row]):
            places = [labels[row] for labels in found[judge.name]]
            said = [m.label_texts[i] for m, i in zip(metrics, places, strict=True)]
            ended = ("ok", "")
            if min(places) < 0 or several_right:  # only then is the verdict read, which takes time
                verdict = judge.verdicts[answer.item_id]
                said = [verdict.labels.get(metric.id, "") for metric in metrics]
                ended = (verdict.status.value, verdict.reason)
            yield (*item, judge.name, *said, *ended, *gaps)


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
