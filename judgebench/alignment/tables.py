"""The tables of an alignment: each is declared (title, rows of the results, keys that name its
lines and columns, notes), and `table_of` makes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean, stdev
from typing import Any

from judgebench.alignment.analysis import BEST_BASELINE, TRUTH_STATISTICS, Alignment
from judgebench.alignment.judge_scores import (
    LABEL_STATISTICS,
    LIMITS_OF_AGREEMENT,
    MOST_ANNOTATORS_IN_PAIRS,
    STATISTICS,
    Declared,
)
from judgebench.alignment.raters import AGREEMENT_STATISTICS
from judgebench.records import Estimate, Results, Row
from judgebench.results.paper_table import PaperTable
from judgebench.results.tables import (
    DASH,
    Cell,
    Content,
    Table,
    as_cell,
    format_number,
    p_cell,
)
from judgebench.results.tables import TableSpec as AnalysisTable
from judgebench.rubric import Metric
from judgebench.stats.agreement import SET_STATISTICS
from judgebench.text import counted, listed, percent

CONSISTENCY = {"agreement": "Agreement", "majority_gain": "Majority gain"}
CONSISTENT = (
    "Agreement: share of pairs of an item's verdicts that are equal. Majority gain: accuracy of "
    "the majority over the repeats minus that of the first verdict."
)
ONE_ANNOTATOR = "One annotator"
NO_LABEL = "No label"
_SET_HEADINGS = {"hit": "Hit", "coverage": "Coverage", "exact": "Exact set", "mse": "MSE"}
_DECLARED = {**STATISTICS, **AGREEMENT_STATISTICS, **TRUTH_STATISTICS}
# What is shown in place of the value of a key.
NAMES: Mapping[str, Mapping[str, str]] = {
    "failures": {"left_out": "Left out", "worst": "Worst case", "best": "Best case"},
    "human_label": {"": NO_LABEL},
    "label": {"": NO_LABEL},
    "statistic": {
        **{key: declared.heading for key, declared in _DECLARED.items()},
        **{key: heading for key, (heading, _) in LABEL_STATISTICS.items()},
        **_SET_HEADINGS,
        **CONSISTENCY,
        "accuracy_difference": "Difference",
        "asked": "Verdicts per item",
        "cached_tokens": "Of them cached",
        "calls": "Calls",
        "completion_tokens": "Reply tokens",
        "confidence": "Mean confidence",
        "cost": "Cost (US$)",
        "lower_limit": "Lower limit",
        "mean_difference": "Mean difference",
        "partial_correlation": "Partial correlation",
        "p_holm": "p after Holm",
        "permutation_p": "Permutation p",
        "prompt_tokens": "Prompt tokens",
        "reasoning_tokens": "Of them thinking",
        "roc_auc": "ROC-AUC",
        "share_right": "Share right",
        "squared_distance": "Squared distance",
        "upper_limit": "Upper limit",
    },
}
_SOURCES = {
    "probabilities": "Probabilities",
    "label": "Label alone",
    "annotator": ONE_ANNOTATOR,
    "base_rates": "Base rates",
    "gain": "Nearer than one annotator by",
}
_POOLED = {"all": "All pooled"}
AMONG = {"observed": "Same label", "fleiss": "κ", "alpha": "α"}
_SIGNED = (
    "severity_error",
    "brier_skill",
    "accuracy_difference",
    "annotator_gap",
    *LIMITS_OF_AGREEMENT,
)


@dataclass(frozen=True)
class TableSpec(AnalysisTable[Alignment]):
    """The declaration of a table of an alignment. `names` are shown in place of the values of a
    key, beside those that all tables share; `cell` shows a row otherwise than by its statistic."""

    stubs: Mapping[str, str] = field(
        default_factory=lambda: {"human_label": "Label", "who": "Scored"}
    )
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    cell: Callable[[Row], Content] | None = None


def naming(a: Alignment, spec: TableSpec) -> Callable[[Row, str], str]:
    """What is shown in place of the value that a row has of a key."""
    names = _names(a, spec)
    return lambda row, key: names.get(key, {}).get(row[key], row[key])


def _names(a: Alignment, spec: TableSpec) -> Mapping[str, Mapping[str, str]]:
    titles = {metric.id: metric.title for metric in a.rubric.metrics}
    return {**NAMES, "metric": titles, "judge": _judge_names(a), **spec.names}


def table_of(a: Alignment, spec: TableSpec) -> Table:
    """The table; metrics down stand in the order of the rubric."""
    rows = [*spec.rows(a)]
    if spec.down[0] == "metric":
        places = [metric.id for metric in a.rubric.metrics]
        rows.sort(key=lambda row: places.index(row.metric))
    cell = spec.cell or shown_cell
    return spec.layout.by_keys(rows, spec.down, spec.across, _names(a, spec), cell)


def _judge_names(a: Alignment) -> dict[str, str]:
    """The words in place of a judge's name; a baseline is told apart by a word and not only by
    its place."""
    controls = {judge.name: f"{judge.name} (baseline)" for judge in a.controls}
    return {"": ONE_ANNOTATOR, BEST_BASELINE: "Best baseline", **controls}


def shown_cell(row: Row) -> Content:
    """A count is whole, a p value has no interval, and a difference has a sign."""
    if row.statistic == "cost":
        return f"{row.estimate.value:.4f}"
    if row.statistic in ("count", "asked", "n") or row.analysis in ("verdicts", "usage"):
        return count_of(row.estimate)
    if row.statistic in ("permutation_p", "p_holm"):
        return p_cell(row.estimate)
    if row.statistic == "confidence" or row["who"] == "judges":
        return format_number(row.estimate.value)
    return Cell(estimate=row.estimate, signed=row.statistic in _SIGNED or row["who"] == "gain")


def count_of(estimate: Estimate) -> int:
    """A number of items."""
    return int(estimate.value or 0)


def meaning(declared: Declared) -> str:
    """A sentence on what a statistic is."""
    return f"{declared.heading}: {declared.meaning}."


# --- judges against the truth ---------------------------------------------------------------------


def _averages(a: Alignment) -> Iterator[Row]:
    """The mean and the standard deviation of several judges' accuracies, on each metric."""
    for metric in a.rubric.metrics if len(a.real_judges) > 1 else ():
        values = [a.score("accuracy", judge.name, metric.id).value for judge in a.real_judges]
        known = [value for value in values if value is not None]
        average = fmean(known) if known else None
        spread = stdev(known) if len(known) > 1 else None
        for name, value in (("Average", average), ("StdDev", spread)):
            yield Row("score", "accuracy", Estimate(value), name, metric.id, {"who": "judges"})


# As in Table 1 of Diekmann et al., with what is needed to read it put beside it.
ACCURACY = TableSpec(
    "accuracy",
    "Accuracy against the human labels, failures left out",
    lambda a: [*a.standings("accuracy"), *_averages(a)],
    across="judge",
    notes=(
        "Average and StdDev (of a sample) are over the judges that have the number. Best baseline: "
        "the baseline with the highest accuracy on that metric, named in its mark. "
        "One annotator: each against the others.",
    ),
)


def severe(a: Alignment) -> TableSpec:
    """Recall of each metric's most severe label."""
    labels = {m.id: f"{m.title}: {m.most_severe}" for m in a.rubric.metrics if m.most_severe}
    return TableSpec(
        "severe",
        "Do the judges find the most severe answers? Severe recall, failures left out",
        lambda a: [row for row in a.standings("severe_recall") if row.metric in labels],
        across="judge",
        notes=(
            "Severe recall: share of the items with the most severe reference label to which the "
            f"judge gives it ({'; '.join(labels.values())}).",
            "Best baseline: the baseline with the highest recall, named in its mark.",
        ),
    )


def scores(declared: Declared) -> TableSpec:
    """One statistic of every judge, then of every baseline and of one annotator."""

    def rows(a: Alignment) -> Iterator[Row]:
        for judge in (*a.real_judges, *a.controls):
            yield from a.results.select(
                "score", declared.key, judge=judge.name, failures="left_out"
            )
        yield from a.results.select("ceiling", declared.key, who="all")

    title = f"{declared.heading}: judges beside the baselines, failures left out"
    notes = (meaning(declared),)
    return TableSpec(f"{declared.key}-left_out", title, rows, across="judge", notes=notes)


SELF_CONSISTENCY = TableSpec(
    "consistency",
    "Self-consistency: several draws of an item, whose majority is the judge's label",
    lambda a: a.results.select("consistency"),
    ("judge", "metric"),
    notes=(CONSISTENT,),
)


def _failures(a: Alignment) -> Iterator[Row]:
    for row in a.results.select("score", "accuracy", failures="worst"):
        about = {"judge": row.judge, "metric": row.metric}
        yield from a.results.select("score", "accuracy", **about)


FAILURES = TableSpec(
    "accuracy-failures",
    "Accuracy where verdicts are missing: three ways to count them",
    _failures,
    ("judge", "metric"),
    "failures",
    ("Worst case: every failure counted as wrong. Best case: every failure counted as right.",),
)


def confusion(metric: Metric) -> TableSpec:
    """The confusion matrices of one metric, of each judge that is no baseline."""
    return TableSpec(
        f"confusion-{metric.id}",
        f"Confusion matrices: {metric.title}",
        lambda a: [
            row
            for judge in a.real_judges
            for row in a.results.select("confusion", judge=judge.name, metric=metric.id)
        ],
        ("judge", "human_label"),
        "label",
        ("Counts of items: reference label down, the judge's label across.",),
    )


def _label_counts(a: Alignment) -> Iterator[Row]:
    """Counts of each label as a reference label, and as given by each annotator, unless these are
    very many, and by each judge on the items with a reference label; without any, on all."""
    if a.study.n_labels:
        yield from a.results.select("distribution")
    if len(a.results.values("who", "annotator_labels")) <= MOST_ANNOTATORS_IN_PAIRS:
        yield from a.results.select("annotator_labels")
    counts = Counter[tuple[str, str, str, int]]()
    for judge in a.real_judges:
        for row in a.results.select("confusion", judge=judge.name):
            counts[judge.name, row.metric, row["label"], row.estimate.n] += count_of(row.estimate)
    for (name, metric, label, n), count in counts.items():
        keys = {"who": f"{name} (judge)", "human_label": label}
        yield Row("confusion", "count", Estimate(count, n=n), "", metric, keys)


def _share(row: Row) -> str:
    """`93 of 100 (93 %)`; no share of nothing."""
    count, n = count_of(row.estimate), row.estimate.n
    return f"{count:,} of {n:,} ({percent(count / n if n else None)})"


LABEL_USE = TableSpec(
    "label-use",
    "How often each label is given",
    _label_counts,
    ("metric", "human_label"),
    "who",
    ("A judge that gives one label nearly always looks accurate where that label is common.",),
    names={"who": {"": "Reference label"}},
    cell=_share,
)
LABELS = TableSpec(
    "labels",
    "Each label against all others, failures left out",
    lambda a: a.results.select("label"),
    ("judge", "metric", "label"),
    notes=(
        *(f"{heading}: {meaning}." for heading, meaning in LABEL_STATISTICS.values()),
        "ROC-AUC: of an item with this reference label and one with another, the chance that the "
        "first is given the higher probability, or score.",
        "Recall is also called true positive rate or sensitivity, specificity true negative rate.",
    ),
)
LIMITS = TableSpec(
    "limits-of-agreement",
    "Limits of agreement: 95 % of differences from the reference label, failures left out",
    lambda a: a.results.select("limits_of_agreement"),
    ("judge", "metric"),
    notes=(
        "In the unit of the labels, judge minus reference label; the limits are the mean "
        "difference ± 1.96 standard deviations (Bland and Altman), each with its own interval.",
    ),
)
PARTIAL = TableSpec(
    "given-system",
    "Partial correlation given the system, failures left out",
    lambda a: a.results.select("given_system"),
    across="judge",
    notes=(
        "Pearson's r of the severities, after the mean of each system is taken off both. "
        "A judge that only knows which systems are good reaches 0.",
    ),
)
SEVERAL_RIGHT = TableSpec(
    "several",
    "Several right labels: agreement with the response sets",
    lambda a: [
        replace(row, judge=row.judge or _POOLED.get(row["who"], row["who"]))
        for row in a.results.select("several")
        if row["failures"] in ("", "left_out")
    ],
    ("metric", "judge"),
    notes=(
        "Response set: the labels that enough annotators accept (all of them beside a judge, the "
        "others beside an annotator). A judge with one label has the hit of that label.",
        *(f"{heading}: {SET_STATISTICS[key]}." for key, heading in _SET_HEADINGS.items()),
    ),
)


# --- the humans -----------------------------------------------------------------------------------


ANNOTATORS = TableSpec(
    "ceiling",
    "Human ceiling: each annotator against the others",
    lambda a: a.results.select("ceiling"),
    ("metric", "statistic"),
    "who",
    names={"who": _POOLED},
)


def among_all(a: Alignment) -> list[Row]:
    """The agreement of all annotators on each metric."""
    return a.results.select("agreement", who="all")


AGREEMENT = TableSpec(
    "agreement",
    "Agreement among the annotators",
    among_all,
    notes=tuple(meaning(d) for d in AGREEMENT_STATISTICS.values() if d.shown & {"all", "people"}),
)
PAIRS = TableSpec(
    "pairs",
    "Agreement of each pair of annotators",
    lambda a: [row for row in a.results.select("agreement") if row["who"] != "all"],
    ("metric", "statistic"),
    "who",
    tuple(meaning(d) for d in AGREEMENT_STATISTICS.values() if "pairs" in d.shown),
)

# --- label probabilities --------------------------------------------------------------------------

PROBABILITIES = TableSpec(
    "probabilities",
    "Label probabilities against the reference labels and those of the annotators",
    lambda a: a.results.select("probability"),
    ("judge", "metric", "who"),
    notes=(
        "Label alone: the judge's label taken as a certainty. A judge that says the base rates of "
        "every answer has skill 0.",
        "Chance lifts ECE; its interval is without that.",
        *map(meaning, TRUTH_STATISTICS.values()),
        "Squared distance from the annotators' labels: summed over labels, from 0 to 2; 0 is best. "
        "A proper score: nobody gains by stating bolder or more timid probabilities. Each "
        "annotator's label in turn is held back, and the distribution is that of the item's other "
        "labels; so judge, annotator and base rates are measured against the same, on the same "
        "items.",
        "An annotator gives one label and no shades: the judge's label alone is the "
        "like-for-like rival, and shades gain over a certainty what base rates may gain, too.",
    ),
    names={"who": _SOURCES},
)
CALIBRATION = TableSpec(
    "calibration",
    "Reliability diagrams in numbers",
    lambda a: a.results.select("calibration"),
    ("judge", "metric", "who"),
    notes=(
        "Answers in bins of equally many, by the probability of the judge's likeliest label. The "
        "interval of the share right is exact (Clopper-Pearson), items taken as independent.",
    ),
)


# --- judges against each other --------------------------------------------------------------------


def _compared(a: Alignment) -> Iterator[Row]:
    """Each two real judges, and each real judge beside the best baseline; `judge` names both."""
    names, real = _judge_names(a), {judge.name for judge in a.real_judges}
    for row in a.results.select("comparison"):
        best, other = a.best_control("accuracy", row.metric), row["who"]
        if other in real or (best and other == best[0]):
            yield replace(row, judge=f"{row.judge} − {names.get(other, other)}")


COMPARISONS = TableSpec(
    "comparisons",
    "Judges against each other: accuracy on the same items",
    _compared,
    ("metric", "judge"),
    notes=(
        "Difference: accuracy of the first minus that of the second, on items to which both "
        "gave a label. Of the baselines, the one with the highest accuracy; all are in "
        "results.csv.",
        "The permutation test flips the sign of whole questions; Holm's correction is over all "
        "pairs of the metric.",
    ),
)


# --- the judges themselves ------------------------------------------------------------------------


JUDGES = TableSpec(
    "judges",
    "The judges and what they used",
    lambda a: [*a.results.select("verdicts"), *a.results.select("usage")],
    ("judge",),
    notes=(
        "Statuses count the last verdict on each answer; calls and tokens count all attempts. "
        f"{DASH}: not known, or none.",
    ),
)


USUAL = ("accuracy", "kappa", "alpha", "severe_recall")
_OF_GROUPS = {
    "accuracy": "Accuracy", "annotator_gap": "Gap", "permutation_p": "p", "p_holm": "p (Holm)",
}  # fmt: skip
_SHARES = ("accuracy", "severe_recall")  # with intervals in the usual table: more are too wide
_HEADINGS = {**NAMES["statistic"], "kappa": "κ", "mae": "MAE", **AMONG}


def paper_tables(a: Alignment) -> Iterator[Table]:
    """The tables of main.tex."""
    if a.study.n_labels:
        yield table_of(a, _among(a))
        if a.real_judges:
            yield table_of(a, _judges(a))
        for column in a.results.values("by", "subgroup"):
            yield table_of(a, groups(a, column))


def chosen_table(a: Alignment, intervals: bool) -> PaperTable:
    """Judges by statistics; without a judge the agreement of the annotators."""
    return _on_its_own(a, _judges(a, intervals) if a.real_judges else _among(a, intervals))


def subgroup_table(a: Alignment, column: str) -> PaperTable:
    """Judges in the groups of answers by a column."""
    return _on_its_own(a, groups(a, column))


def _on_its_own(a: Alignment, spec: TableSpec) -> PaperTable:
    assert spec.cell
    table, rows, name = table_of(a, spec), [*spec.rows(a)], naming(a, spec)
    lines: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        names = tuple(name(row, key) for key in spec.down)
        line = lines.setdefault(names, dict(zip(spec.down, names, strict=True)))
        cell = as_cell(spec.cell(row))
        estimate = cell.estimate or row.estimate
        line[row.statistic] = cell.text if row.analysis == "outcome" else estimate.value
        if estimate.low is not None:
            line[f"{row.statistic}_low"] = estimate.low
            line[f"{row.statistic}_high"] = estimate.high
    return PaperTable(table, [*lines.values()], spec.down, Results(tuple(rows)))


def _judges(a: Alignment, intervals: bool = True) -> TableSpec:
    """Of each metric one annotator, the judges and the best baseline, and the outcomes."""
    columns = a.columns or USUAL
    rows = [row for key in columns for row in a.standings(key, "worst")]
    defined = {row.statistic for row in rows if row.estimate.value is not None}
    outcomes = [
        Row("outcome", "outcome", Estimate(None), judge, metric.id)
        for metric in a.rubric.metrics
        for judge, title in a.outcomes
        if title == metric.title
    ]
    with_interval = (a.columns or _SHARES) if intervals else ()
    return TableSpec(
        "main",
        "Judges and annotators against the reference labels",
        lambda a: [*(r for r in rows if a.columns or r.statistic in defined), *outcomes],
        ("metric", "judge"),
        notes=(
            *a.compared[:1],
            "One annotator: each label against the label of the others, ties left out; n counts "
            "labels, all others items. Best baseline: of each statistic the best value of a "
            "baseline that reads no answer.",
            _failures_in(a),
            _of_several(a),
            *(meaning(STATISTICS[key]) for key in columns if key not in _SHARES),
        ),
        names={"statistic": {**_HEADINGS, "outcome": "Outcome"}},
        cell=partial(_cell, a, with_interval),
    )


def _cell(a: Alignment, with_interval: tuple[str, ...], row: Row) -> Content:
    if row.analysis == "outcome":
        return a.outcomes[row.judge, a.title(row.metric)].lower()
    cell = shown_cell(row)
    if row.statistic in with_interval or not isinstance(cell, Cell) or cell.estimate is None:
        return cell
    return replace(cell, estimate=replace(cell.estimate, low=None, high=None))


def _of_several(a: Alignment) -> str:
    """Say that of several labels the first alone counts here; empty where no metric takes them."""
    titles = [metric.title for metric in a.rubric.metrics if metric.several]
    return f"{listed(titles)}: of several labels the one named first counts." if titles else ""


def _failures_in(a: Alignment) -> str:
    """Say that failures count as wrong, and how many there are by judge; empty without."""
    failed = []
    for judge in a.real_judges:
        rows = a.results.select("score", "accuracy", judge=judge.name, failures="left_out")
        if missing := sum(row.estimate.n_missing for row in rows):
            n = missing + sum(row.estimate.n for row in rows)
            failed.append(f"{judge.name} {missing:,} of {n:,}")
    return f"Failures count as wrong: {listed(failed)} labels." if failed else ""


def _among(a: Alignment, intervals: bool = True) -> TableSpec:
    """Of each metric the agreement of the annotators with each other; of one alone nothing."""
    n = len(a.study.makers)
    columns = (() if a.real_judges else a.columns) or tuple(AMONG)
    return TableSpec(
        "main-agreement",
        "Agreement among the annotators",
        lambda a: [
            row for key in columns for row in among_all(a) if row.statistic == key and n > 1
        ],
        notes=(
            f"By {counted(n, 'annotator')}, on items with two labels or more. Same "
            "label: share of pairs of labels of an item that are equal; its n counts pairs.",
            *(meaning(AGREEMENT_STATISTICS[key]) for key in columns if key != "observed"),
        ),
        names={"statistic": _HEADINGS},
        cell=partial(_cell, a, columns if intervals else ()),
    )


def groups(a: Alignment, column: str) -> TableSpec:
    """Of each metric, judge and group of answers: accuracy, and the gap to annotators."""

    def rows(a: Alignment) -> Iterator[Row]:
        for row in a.results.select("subgroup", by=column):
            if row.statistic == "accuracy":
                n = row.estimate.n
                yield replace(row, statistic="n", estimate=Estimate(n, n=n))
            yield row

    return TableSpec(
        f"subgroups-{column}",
        f"By {column}: the judges in each group of answers",
        rows,
        ("metric", "judge", "group"),
        notes=(
            "Accuracy: against the reference labels, failures counted as wrong. Gap: "
            "how much more often the judge gives the label of the other annotators than an "
            "annotator of the bar does, on the same answers; ties of the others left out, where a "
            "decision takes them as the reference label does, so that its gap can be another.",
            "p: two-sided permutation test that the two differ, signs of whole questions flipped; "
            "Holm's correction is over the groups of a judge on a metric.",
        ),
        names={"statistic": _OF_GROUPS},
        cell=_group_cell,
    )


def _group_cell(row: Row) -> Content:
    """A p value keeps its three digits where a share has two."""
    cell = as_cell(shown_cell(row))
    return cell if cell.estimate else replace(cell, text=cell.text.replace("0.", "."))
