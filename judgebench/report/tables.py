"""What a report shows, as plain tables: the one place that decides what stands in which table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgebench.align import AGREEMENT_STATISTICS, STATISTICS, Alignment, Confusion, FailurePolicy
from judgebench.records import Estimate, Status, Usage
from judgebench.report.comparisons import comparison_table, ranking_table
from judgebench.report.lookup import (
    BEST_AT_ZERO,
    Scores,
    best_control,
    controls,
    find_ceiling,
    find_score,
    has_ceiling,
    real_judges,
    score_index,
)
from judgebench.report.probabilities import probability_tables
from judgebench.report.rates import rate_tables
from judgebench.report.unanimity import unanimity_tables
from judgebench.results.tables import DASH, Cell, Table, format_number
from judgebench.rubric import Metric
from judgebench.stats.means import mean_and_sd
from judgebench.study.study import backend_fact
from judgebench.study.truth import BlankPolicy

POLICIES: Mapping[FailurePolicy, str] = {
    "left_out": "failures left out",
    "worst": "worst case: every failure counted as wrong",
    "best": "best case: every failure counted as right",
}
POLICY_HEADINGS: Mapping[FailurePolicy, str] = {
    "left_out": "Left out",
    "worst": "Worst case",
    "best": "Best case",
}
BLANKS: Mapping[BlankPolicy, str] = {
    "missing": "blank = missing",
    "least_severe": "blank = least severe",
}
CEILING = "Human ceiling"
ONLY_IN_PANELS = ("ac", "spearman", "pearson", "tau_b")  # and in alignment.csv: no own tables


def all_tables(alignment: Alignment) -> list[Table]:
    """Every table of the Markdown and LaTeX reports, in their order; empty ones are left out."""
    scored = {score.statistic for score in alignment.scores} - {*ONLY_IN_PANELS}
    present = [s for s in STATISTICS if s in scored]
    tables = [
        standing_table(alignment),
        accuracy_table(alignment),
        *([severe_table(alignment)] if "severe_recall" in present else []),
        *(score_table(alignment, statistic) for statistic in present),
        *(failures_table(alignment, statistic) for statistic in present),
        *unanimity_tables(alignment),
        *(ceiling_table(alignment, statistic) for statistic in present),
        agreement_table(alignment),
        *(pairs_table(alignment, statistic) for statistic in AGREEMENT_STATISTICS),
        distribution_table(alignment),
        *rate_tables(alignment),
        *probability_tables(alignment),
        *confusion_tables(alignment),
        comparison_table(alignment),
        ranking_table(alignment),
        judges_table(alignment),
    ]
    return [table for table in tables if table.rows]


def standing_table(alignment: Alignment) -> Table:
    """In how many metrics each judge is more accurate than the best control and the humans."""
    scores = score_index(alignment)
    rows = []
    for judge in real_judges(alignment):
        above, clearly, compared = _wins_over_controls(alignment, scores, judge.name)
        reached, held = _wins_over_ceiling(alignment, scores, judge.name)
        failed = judge.n - judge.statuses.get(Status.OK, 0)
        rows.append(
            (
                Cell(judge.name),
                Cell(_of(above, compared)),
                Cell(_of(clearly, compared)),
                Cell(_of(reached, held)),
                Cell(f"{failed:,} of {judge.n:,}"),
            )
        )
    return Table(
        "standing",
        "Where each judge stands on accuracy",
        (
            "Judge",
            "Metrics above the best control",
            "… with the whole interval",
            "Metrics at or above the human ceiling",
            "Verdicts that failed",
        ),
        tuple(rows),
        (
            "A count of metrics, failures left out: a reading aid, not a test. "
            "A metric on which one of the two is undefined is not counted.",
            "The best control is picked after the fact, which favours it.",
        ),
    )


def _wins_over_controls(alignment: Alignment, scores: Scores, judge: str) -> tuple[int, int, int]:
    above = clearly = compared = 0
    for metric in alignment.rubric.metrics:
        mine = find_score(scores, judge, metric.id, "accuracy")
        bar = best_control(alignment, scores, metric.id, "accuracy")
        if mine.value is None or bar is None or bar[1].value is None:
            continue
        compared += 1
        above += mine.value > bar[1].value
        clearly += mine.low is not None and mine.low > bar[1].value
    return above, clearly, compared


def _wins_over_ceiling(alignment: Alignment, scores: Scores, judge: str) -> tuple[int, int]:
    reached = held = 0
    for metric in alignment.rubric.metrics:
        mine = find_score(scores, judge, metric.id, "accuracy").value
        ceiling = find_ceiling(alignment, metric.id, "accuracy").value
        if mine is not None and ceiling is not None:
            held += 1
            reached += mine >= ceiling
    return reached, held


AVERAGE = ("Average", "StdDev")
AVERAGE_NOTE = (
    "Average and StdDev (of a sample) are over the judges' point values, controls and undefined "
    "values left out; they describe these judges and have no interval."
)


def accuracy_table(alignment: Alignment) -> Table:
    """Metrics down; judges across, then their average and spread, best control, human ceiling.

    The layout of Table 1 of Diekmann et al., with what is needed to read it put beside it.
    """
    scores = score_index(alignment)
    judges = [judge.name for judge in real_judges(alignment)]
    several = len(judges) > 1
    rows = []
    for metric in alignment.rubric.metrics:
        mine = [find_score(scores, name, metric.id, "accuracy") for name in judges]
        rows.append(
            (
                Cell(metric.title),
                *(Cell(estimate=score) for score in mine),
                *(_average_cells(mine) if several else ()),
                _best_control_cell(alignment, scores, metric.id, "accuracy"),
                Cell(estimate=find_ceiling(alignment, metric.id, "accuracy")),
            )
        )
    return Table(
        "accuracy",
        "Accuracy against the human labels, failures left out",
        ("Metric", *judges, *(AVERAGE if several else ()), "Best control", CEILING),
        tuple(rows),
        (
            *([AVERAGE_NOTE] if several else []),
            "Best control: the control judge with the highest accuracy on that metric, named "
            "in its mark. Human ceiling: one annotator against the others.",
        ),
    )


def _average_cells(estimates: Sequence[Estimate]) -> tuple[Cell, Cell]:
    mean, sd = mean_and_sd([e.value for e in estimates])
    n = sum(e.value is not None for e in estimates)
    short = f"over {n} of {len(estimates)} judges" if n < len(estimates) else ""
    return (
        Cell(format_number(mean), remark=short if n else "undefined: no judge has a value"),
        Cell(format_number(sd), remark=short if n > 1 else "undefined for fewer than 2 judges"),
    )


def _best_control_cell(alignment: Alignment, scores: Scores, metric: str, statistic: str) -> Cell:
    bar = best_control(alignment, scores, metric, statistic)
    if bar is None:
        return Cell(estimate=Estimate(None, reason="no control judge has a value"))
    return Cell(estimate=bar[1], remark=bar[0])


def score_table(
    alignment: Alignment, statistic: str, failures: FailurePolicy = "left_out"
) -> Table:
    """One statistic: metrics down; every judge, every control and the human ceiling across."""
    heading, meaning = STATISTICS[statistic]
    scores = score_index(alignment)
    names = [judge.name for judge in (*real_judges(alignment), *controls(alignment))]
    signed = statistic in BEST_AT_ZERO

    def cells(metric: Metric) -> Iterator[Cell]:
        for name in names:
            score = find_score(scores, name, metric.id, statistic, failures)
            yield Cell(estimate=score, signed=signed)
        if has_ceiling(alignment, statistic):
            yield Cell(estimate=find_ceiling(alignment, metric.id, statistic), signed=signed)

    return Table(
        f"{statistic}-{failures}",
        f"{heading}: judges beside the control judges, {POLICIES[failures]}",
        ("Metric", *column_names(alignment, statistic)),
        tuple((Cell(metric.title), *cells(metric)) for metric in alignment.rubric.metrics),
        (f"{heading}: {meaning}.",),
    )


def severe_table(alignment: Alignment) -> Table:
    """Recall of each metric's most severe label, with how many such items there are."""
    scores = score_index(alignment)
    judges = [judge.name for judge in real_judges(alignment)]
    items = {c.metric: int(c.counts[-1].sum()) for c in alignment.confusions}
    rows = []
    for metric in alignment.rubric.metrics:
        if metric.most_severe is None:
            continue
        found = [find_score(scores, name, metric.id, "severe_recall") for name in judges]
        rows.append(
            (
                Cell(metric.title),
                Cell(metric.most_severe),
                Cell(f"{items.get(metric.id, 0):,}"),
                *(Cell(estimate=estimate) for estimate in found),
                _best_control_cell(alignment, scores, metric.id, "severe_recall"),
            )
        )
    return Table(
        "severe",
        "Do the judges find the most severe answers? Severe recall, failures left out",
        ("Metric", "Most severe label", "Such items", *judges, "Best control"),
        tuple(rows),
        (
            "Severe recall: share of the items with that human truth to which the judge gives it.",
            "Best control: the control judge with the highest recall, named in its mark.",
        ),
        stubs=2,
    )


def column_names(alignment: Alignment, statistic: str) -> list[str]:
    """Judges, then controls, told apart by words and not only by their place, then the humans."""
    return [
        *(judge.name for judge in real_judges(alignment)),
        *(f"{judge.name} (control)" for judge in controls(alignment)),
        *([CEILING] if has_ceiling(alignment, statistic) else []),
    ]


def failures_table(alignment: Alignment, statistic: str) -> Table:
    """One statistic three ways, for each judge and metric of which verdicts are missing."""
    heading = STATISTICS[statistic][0]
    scores = score_index(alignment)
    signed = statistic in BEST_AT_ZERO
    rows = []
    for judge in alignment.judges:
        for metric in alignment.rubric.metrics:
            ways = [find_score(scores, judge.name, metric.id, statistic, p) for p in POLICIES]
            if ways[0].n_missing and any(way.value is not None for way in ways):
                cells = (Cell(estimate=way, signed=signed) for way in ways)
                rows.append((Cell(judge.name), Cell(metric.title), *cells))
    return Table(
        f"{statistic}-failures",
        f"{heading} where verdicts are missing: three ways to count them",
        ("Judge", "Metric", *POLICY_HEADINGS.values()),
        tuple(rows),
        ("Worst case: every failure counted as wrong. Best case: every failure counted as right.",),
        stubs=2,
    )


def ceiling_table(alignment: Alignment, statistic: str) -> Table:
    """One statistic of each annotator against the truth of the others, all pooled last."""
    scores = [score for score in alignment.ceiling if score.statistic == statistic]
    people = sorted({score.annotator for score in scores} - {"all"})
    signed = statistic in BEST_AT_ZERO
    heading = STATISTICS[statistic][0]
    return Table(
        f"{statistic}-ceiling",
        f"Human ceiling ({heading}): each annotator against the truth of the others",
        ("Metric", *people, "All pooled"),
        tuple(
            (
                Cell(metric.title),
                *(
                    Cell(estimate=find_ceiling(alignment, metric.id, statistic, who), signed=signed)
                    for who in (*people, "all")
                ),
            )
            for metric in alignment.rubric.metrics
            if scores
        ),
    )


def agreement_table(alignment: Alignment) -> Table:
    """How far all annotators agree: metrics down, statistics across, pooled last.

    Statistics of people who rated the same items have a column only where there is any such.
    """
    found = {x.statistic for x in alignment.agreement if x.estimate.value is not None}
    shown = [s for s in AGREEMENT_STATISTICS if s in found or not s.startswith("icc")]
    headings = {s: AGREEMENT_STATISTICS[s][0] for s in shown}
    return _agreement(
        alignment,
        "agreement",
        "Agreement among the annotators",
        [(heading, s, "all") for s, heading in headings.items()],
        tuple(f"{headings[s]}: {AGREEMENT_STATISTICS[s][1]}." for s in shown),
    )


def pairs_table(alignment: Alignment, statistic: str) -> Table:
    """One statistic of agreement for each pair of annotators."""
    heading = AGREEMENT_STATISTICS[statistic][0]
    pairs = dict.fromkeys(
        score.who
        for score in alignment.agreement
        if score.statistic == statistic and score.who != "all"
    )
    columns = [(who, statistic, who) for who in pairs]
    return _agreement(
        alignment, f"{statistic}-pairs", f"{heading} for each pair of annotators", columns
    )


def _agreement(
    alignment: Alignment,
    key: str,
    title: str,
    columns: Sequence[tuple[str, str, str]],
    notes: tuple[str, ...] = (),
) -> Table:
    """A table of agreement scores; `columns` holds (heading, statistic, who)."""
    found = {(x.metric, x.statistic, x.who): x.estimate for x in alignment.agreement}
    columns = [c for c in columns if any((s, w) == c[1:] for _, s, w in found)]
    names = {metric.id: metric.title for metric in alignment.rubric.metrics}
    if len(names) > 1:
        names["all"] = "All metrics pooled"
    absent = {"all": Estimate(None, reason="labels of different metrics are not pooled")}
    other = Estimate(None, reason="not computed for this metric")

    def cell(metric: str, statistic: str, who: str) -> Cell:
        return Cell(estimate=found.get((metric, statistic, who), absent.get(metric, other)))

    rows = tuple(
        (Cell(name), *(cell(metric, s, w) for _, s, w in columns))
        for metric, name in names.items()
        if any((metric, s, w) in found for _, s, w in columns)
    )
    return Table(key, title, ("Metric", *(heading for heading, _, _ in columns)), rows, notes)


def distribution_table(alignment: Alignment) -> Table:
    """The share of each label in the human truth, under each policy for blank cells."""
    shares = {(x.metric, x.label, x.blanks): x for x in alignment.distribution}
    blanks = [b for b in BLANKS if any(x.blanks == b for x in alignment.distribution)]
    rows = []
    for metric in alignment.rubric.metrics:
        labels = dict.fromkeys(x.label for x in alignment.distribution if x.metric == metric.id)
        for label in labels:
            found = [shares.get((metric.id, label, b)) for b in blanks]
            severity = next((x.severity for x in found if x is not None), None)
            rows.append(
                (
                    Cell(metric.title),
                    Cell(label),
                    Cell(DASH if severity is None else str(severity)),
                    *(Cell(share_text(x.count, x.n) if x else DASH) for x in found),
                )
            )
    return Table(
        "distribution",
        "Labels of the human truth",
        ("Metric", "Label", "Severity", *(BLANKS[b] for b in blanks)),
        tuple(rows),
        ("Counts of items with a truth, and their share. Nominal metrics have no severity.",),
        stubs=2,
    )


def share_text(count: int, n: int) -> str:
    """`93 of 100 (93.0 %)`; no share of nothing."""
    return f"{count:,} of {n:,} ({100 * count / n:.1f} %)" if n else f"{count:,} of 0 ({DASH})"


def confusion_tables(alignment: Alignment) -> list[Table]:
    """One table a metric: a row for each judge and human label, the judge's labels across."""
    names = {judge.name for judge in real_judges(alignment)}
    tables = []
    for metric in alignment.rubric.metrics:
        found = [c for c in alignment.confusions if c.metric == metric.id and c.judge in names]
        if not found:
            continue
        rows = [row for confusion in found for row in confusion_rows(confusion)]
        tables.append(
            Table(
                f"confusion-{metric.id}",
                f"Confusion matrices: {metric.title}",
                ("Judge", "Human label", *found[0].labels, "No label"),
                tuple(rows),
                ("Counts of items: human label down, the judge's label across.",),
                stubs=2,
            )
        )
    return tables


def confusion_rows(confusion: Confusion) -> Iterator[tuple[Cell, ...]]:
    """The judge's name, the human label and the counts, one row a human label."""
    for label, counts in zip(confusion.labels, confusion.counts, strict=True):
        yield (Cell(confusion.judge), Cell(label), *(Cell(f"{count:,}") for count in counts))


def judges_table(alignment: Alignment) -> Table:
    """How each judge's run went and what it used."""
    statuses = [s for s in Status if any(j.statuses.get(s) for j in alignment.judges)]
    rows = [
        (
            Cell(judge.name),
            Cell(judge.kind),
            *(Cell(f"{judge.statuses.get(status, 0):,}") for status in statuses),
            *_usage_cells(judge.usage, judge.cost),
            Cell(lane(judge.about)),
            Cell(judge.signature),
        )
        for judge in alignment.judges
    ]
    return Table(
        "judges",
        "The judges and what they used",
        (
            "Judge",
            "Kind",
            *(status.value for status in statuses),
            "Calls",
            "Prompt tokens",
            "Reply tokens",
            "Cost (US$)",
            "Structured output",
            "Signature",
        ),
        tuple(rows),
        ("Statuses count the last verdict on each answer; calls and tokens count all attempts.",),
    )


def _usage_cells(usage: Usage, cost: float | None) -> tuple[Cell, ...]:
    """Calls, tokens and cost; a dash where nobody was called, as for a control judge."""
    unknown = Cell("unknown" if usage.calls else DASH)
    tokens = (usage.prompt_tokens, usage.completion_tokens)
    return (
        Cell(f"{usage.calls:,}"),
        *(unknown if count is None else Cell(f"{count:,}") for count in tokens),
        unknown if cost is None else Cell(f"{cost:.4f}"),
    )


def lane(about: Mapping[str, Any]) -> str:
    """How the judge's engine enforces the form of a reply, as its manifest tells it."""
    found = backend_fact(about, "structured")
    return DASH if found is None else str(found)


def flatten(about: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """`{"a": {"b": 1}}` as `("a.b", "1")`, in the order given; None and empty parts left out."""
    for key, value in about.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        elif value is not None and value != [] and value != ():
            yield f"{prefix}{key}", str(value)


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else f"{DASH} (nothing to compare)"
