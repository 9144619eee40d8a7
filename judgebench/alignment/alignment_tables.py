"""The tables of an alignment: which rows of its results stand where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, product
from math import inf

from judgebench.alignment.alignment import Alignment, JudgeSummary
from judgebench.alignment.annotators import AGREEMENT_STATISTICS
from judgebench.alignment.probabilities import TRUTH_STATISTICS
from judgebench.alignment.several import EVERYBODY
from judgebench.alignment.statistics import (
    MOST_ANNOTATORS_IN_PAIRS,
    STATISTICS,
    Declared,
)
from judgebench.records import TRAINED_ON, Estimate, Status
from judgebench.results.layout import Content, Contents, Keys, Layout, Line
from judgebench.results.rows import Row
from judgebench.results.tables import DASH, Cell, Table, format_number, p_cell
from judgebench.rubric import Metric
from judgebench.stats.means import mean_and_sd
from judgebench.stats.response_sets import SET_STATISTICS
from judgebench.studies.study import backend_fact
from judgebench.words import counted, listed, percent

CONSISTENCY = {"agreement": "Agreement", "majority_gain": "Majority gain"}
CONSISTENT = (
    "Agreement: share of pairs of an item's verdicts that are equal. Majority gain: accuracy of "
    "the majority over the repeats minus that of the first verdict."
)
POLICIES = {"left_out": "Left out", "worst": "Worst case", "best": "Best case"}
CEILING = "Human ceiling"
SOURCES = {
    "probabilities": "Probabilities",
    "label": "Label alone",
    "annotator": "One annotator",
    "base_rates": "Base rates",
    "gain": "Nearer than one annotator by",
}
_METRIC, _JUDGED = ("Metric",), ("Judge", "Metric")


def present(a: Alignment) -> list[Declared]:
    """The statistics of judges that were measured."""
    measured = set(a.results.values("statistic", "score"))
    return [declared for key, declared in STATISTICS.items() if key in measured]


def _lines(a: Alignment) -> list[Line]:
    """A line for each metric."""
    return [((metric.title,), {"metric": metric.id}) for metric in a.rubric.metrics]


def _judged(judges: Sequence[JudgeSummary]) -> list[tuple[str, Keys]]:
    """A column for each judge; controls are told apart by a word and not only by their place."""
    return [
        (f"{j.name} (baseline)" if j.kind == "control" else j.name, {"judge": j.name})
        for j in judges
    ]


# --- judges against the truth ---------------------------------------------------------------------


def accuracy_table(a: Alignment) -> Table:
    """Metrics down; judges across, then their average and spread, best baseline, human ceiling.

    The layout of Table 1 of Diekmann et al., with what is needed to read it put beside it.
    """
    judges = _judged(a.real_judges)
    summaries = [*(("Average", "StdDev") if len(judges) > 1 else ()), "Best baseline", CEILING]

    def cell(keys: Keys) -> Cell:
        metric, summary = keys["metric"], keys.get("summary")
        if summary in ("Average", "StdDev"):
            mine = [a.score("accuracy", j.name, metric).value for j in a.real_judges]
            return _average(mine, spread=summary == "StdDev")
        return _score(a, STATISTICS["accuracy"], keys)

    averaged = (
        "Average and StdDev (of a sample) are over the judges' point values, baselines and "
        "undefined values left out; they describe these judges and have no interval."
    )
    notes = (
        averaged if len(judges) > 1 else "",
        "Best baseline: the baseline with the highest accuracy on that metric, named "
        "in its mark. Human ceiling: one annotator against the others.",
    )
    title = "Accuracy against the human labels, failures left out"
    across = [*judges, *((s, {"summary": s}) for s in summaries)]
    return Layout("accuracy", title, _METRIC, notes).crossed(_lines(a), across, cell)


def paper_table(a: Alignment) -> Table:
    """The table of a paper: of each metric annotators, judges and the best baseline by
    statistic."""
    found = [r for j in a.real_judges for r in a.results.select("score", judge=j.name)]
    defined = {row.statistic for row in found if row.estimate.value is not None}
    shown = [d for d in present(a) if "paper" in d.shown and d.key in defined]
    who: list[tuple[str, Keys]] = [("One annotator", {"summary": CEILING})]
    counted_in: Keys = {"failures": "worst"}
    who += [(judge.name, {"judge": judge.name, **counted_in}) for judge in a.real_judges]
    who.append(("Best baseline", {"summary": "Best baseline"}))

    def line(metric: Metric, name: str, keys: Keys) -> Contents:
        cells = {d.key: _score(a, d, {**keys, "metric": metric.id}) for d in shown}
        return (
            metric.title, name,
            *(c if key in _WITH_INTERVAL else _bare(c) for key, c in cells.items()),
            *([a.outcomes.get((name, metric.title), DASH).lower()] if a.outcomes else ()),
        )  # fmt: skip

    notes = (
        *a.compared[:1],
        "One annotator: each label against the label of the others, ties left out; n counts "
        "labels, all others items. Best baseline: of each statistic the best value of a baseline "
        "that reads no answer.",
        _failures_in(a),
        _beyond_chance(a, "Cohen's"),
    )
    headings = [_BRIEF.get(d.key, d.heading) for d in shown]
    return Layout(
        "main", "Judges and annotators against the reference labels", ("Metric", "Judge"), notes,
        (*headings, *(["Outcome"] if a.outcomes else ())),
    ).listing(line(metric, *one) for metric in a.rubric.metrics for one in who)  # fmt: skip


def _failures_in(a: Alignment) -> str:
    """Say that failures count as wrong, and how many there are by judge; empty without."""
    shares = []
    for judge in a.real_judges:
        found = [a.score("accuracy", judge.name, metric.id) for metric in a.rubric.metrics]
        if missing := sum(e.n_missing for e in found):
            share = missing / (missing + sum(e.n for e in found))
            shares.append(f"{judge.name} {percent(share)}")
    return f"Failures count as wrong: {listed(shares)} of the answers." if shares else ""


def paper_agreement_table(a: Alignment) -> Table:
    """The table of a paper: of each metric the agreement of the annotators with each other."""
    shown = {"observed": "Same label", "fleiss": "κ", "alpha": "α"}

    def line(metric: Metric) -> Contents:
        found = [a.results.find(s, "agreement", metric=metric.id, who="all") for s in shown]
        return metric.title, found[-1].n, *found

    notes = (
        f"Items: those with two labels or more, by {counted(len(a.annotators), 'annotator')}. Same "
        "label: share of pairs of labels of an item that are equal; its n counts pairs.",
        _beyond_chance(a, "Fleiss'"),
    )
    lines = [line(metric) for metric in a.rubric.metrics] if len(a.annotators) > 1 else []
    beside = ("Items", *shown.values())
    title = "Agreement among the annotators"
    return Layout("main-agreement", title, _METRIC, notes, beside).listing(lines)


def _beyond_chance(a: Alignment, kappa: str) -> str:
    """Say of which kind κ and α are."""
    kinds = dict.fromkeys(metric.kind for metric in a.rubric.metrics)
    return f"κ: {kappa}, unweighted. α: Krippendorff's, {' or '.join(kinds)} level."


_WITH_INTERVAL = ("accuracy", "severe_recall")
_BRIEF = {"kappa": "κ", "alpha": "α"}


def _bare(cell: Cell) -> Cell:
    """The cell without interval and remark."""
    if cell.estimate is None:
        return replace(cell, remark="")
    return Cell(estimate=replace(cell.estimate, low=None, high=None), signed=cell.signed)


def _average(values: Sequence[float | None], *, spread: bool) -> Cell:
    found = mean_and_sd(values)[spread]
    n = sum(value is not None for value in values)
    remark = f"over {n} of {len(values)} judges" if n < len(values) else ""
    if found is None:
        remark = f"undefined{' for fewer than 2 judges' if spread else ': no judge has a value'}"
    return Cell(format_number(found), remark=remark)


def _score(a: Alignment, declared: Declared, keys: Keys) -> Cell:
    """The score of a judge; where the keys name none, of the best baseline or the human ceiling."""
    key, metric, remark = declared.key, keys["metric"], ""
    if "judge" in keys:
        found = a.score(key, keys["judge"], metric, keys.get("failures", "left_out"))
    elif keys["summary"] == CEILING:
        found = a.ceiling(key, metric)
    else:
        none = "", Estimate(None, reason="no baseline has a value")
        remark, found = a.best_control(key, metric) or none
    return Cell(estimate=found, remark=remark, signed=declared.signed)


def score_table(a: Alignment, declared: Declared) -> Table:
    """One statistic: metrics down; every judge, every baseline and the human ceiling across."""
    across = _judged([*a.real_judges, *a.controls])
    if a.results.select("ceiling", declared.key):
        across.append((CEILING, {"summary": CEILING}))
    title = f"{declared.heading}: judges beside the baselines, failures left out"
    layout = Layout(f"{declared.key}-left_out", title, _METRIC, (_meaning(declared),))
    return layout.crossed(_lines(a), across, partial(_score, a, declared))


def _meaning(declared: Declared) -> str:
    return f"{declared.heading}: {declared.meaning}."


def severe_table(a: Alignment) -> Table:
    """Recall of each metric's most severe label, with how many such items there are."""
    lines: list[Line] = []
    for metric in a.rubric.metrics:
        if metric.most_severe is not None:
            judge = a.judges[0].name if a.judges else ""
            keys = {"judge": judge, "metric": metric.id, "human_label": metric.most_severe}
            items = sum(count_of(r.estimate) for r in a.results.select("confusion", **keys))
            lines.append(((metric.title, metric.most_severe, items), {"metric": metric.id}))
    layout = Layout(
        "severe",
        "Do the judges find the most severe answers? Severe recall, failures left out",
        ("Metric", "Most severe label"),
        (
            "Severe recall: share of the items with that reference label to which the judge "
            "gives it.",
            "Best baseline: the baseline with the highest recall, named in its mark.",
        ),
        ("Such items",),
    )
    across = [*_judged(a.real_judges), ("Best baseline", {"summary": "Best baseline"})]
    return layout.crossed(lines, across, partial(_score, a, STATISTICS["severe_recall"]))


def consistency_table(a: Alignment) -> Table:
    """The agreement of each judge's draws of an item with each other."""

    def cell(keys: Keys) -> Cell:
        return Cell(
            estimate=a.results.find(
                keys["statistic"], "consistency", judge=keys["judge"], metric=keys["metric"]
            )
        )

    lines: list[Line] = [
        ((r.judge, a.title(r.metric), count_of(r.estimate)), {"judge": r.judge, "metric": r.metric})
        for r in a.results.select("consistency", "asked")
    ]
    across = [(heading, {"statistic": key}) for key, heading in CONSISTENCY.items()]
    title = "Self-consistency: several draws of an item, whose majority is the judge's label"
    layout = Layout("consistency", title, _JUDGED, (CONSISTENT,), ("Verdicts per item",))
    return layout.crossed(lines, across, cell)


def failures_table(a: Alignment, declared: Declared) -> Table:
    """One statistic three ways, for each judge and metric of which verdicts are missing."""
    lines: list[Line] = []
    for judge, metric in product(a.judges, a.rubric.metrics):
        ways = [a.score(declared.key, judge.name, metric.id, p) for p in POLICIES]
        if ways[0].n_missing and any(way.value is not None for way in ways):
            lines.append(((judge.name, metric.title), {"judge": judge.name, "metric": metric.id}))
    note = "Worst case: every failure counted as wrong. Best case: every failure counted as right."
    title = f"{declared.heading} where verdicts are missing: three ways to count them"
    across = [(heading, {"failures": policy}) for policy, heading in POLICIES.items()]
    layout = Layout(f"{declared.key}-failures", title, _JUDGED, (note,))
    return layout.crossed(lines, across, partial(_score, a, declared))


def confusion_tables(a: Alignment) -> Iterator[Table]:
    """One table per metric: a row for each real judge and human label, its labels across."""
    for metric in a.rubric.metrics:
        about = {"metric": metric.id}
        lines = [
            ((judge.name, label), {"judge": judge.name, **about, "human_label": label})
            for judge, label in product(a.real_judges, metric.label_texts)
        ]
        layout = Layout(
            f"confusion-{metric.id}",
            f"Confusion matrices: {metric.title}",
            ("Judge", "Human label"),
            ("Counts of items: human label down, the judge's label across.",),
        )
        across = [(label or "No label", {"label": label}) for label in (*metric.label_texts, "")]
        yield layout.crossed(
            lines, across, lambda keys: count_of(a.results.find("count", "confusion", **keys))
        )


def label_use_table(a: Alignment) -> Table:
    """The share of each label among the reference labels, those of each annotator (of the people
    with the most labels) and those of each real judge on the items with a reference label; without
    any, on all."""
    given = Counter[str]()
    for row in a.results.select("annotator_labels"):
        given[row["who"]] += count_of(row.estimate)
    people = sorted(sorted(given, key=lambda who: -given[who])[:MOST_ANNOTATORS_IN_PAIRS])
    beside = ("Severity",) if a.n_labels else ()
    lines = [
        (
            (metric.title, label or "No label",
             *(f"{metric.severities[i]}" if label and metric.kind == "ordinal" else None
               for _ in beside)),
            {"metric": metric.id, "text": label},
        )
        for metric in a.rubric.metrics
        for i, label in enumerate((*metric.label_texts, ""))
    ]  # fmt: skip
    across: list[tuple[str, Keys]] = [
        ("Reference label", {"analysis": "distribution"}) for _ in beside
    ]
    across += [(who, {"analysis": "annotator_labels", "who": who}) for who in people]
    across += [(j.name, {"analysis": "confusion", "judge": j.name}) for j in a.real_judges]

    def cell(keys: Keys) -> Content:
        of = {**keys, "label" if "judge" in keys else "human_label": keys["text"]}
        of.pop("text")
        rows = a.results.select(statistic="count", **of)
        total = sum(count_of(row.estimate) for row in rows)
        return _share(replace(rows[0].estimate, value=total)) if rows else None

    notes = (
        "A judge that gives one label nearly always looks accurate where that label is common.",
        f"The {len(people)} of {len(given):,} annotators with the most labels."
        if len(people) < len(given) else "",
    )  # fmt: skip
    title = "How often each label is given"
    layout = Layout("label-use", title, ("Metric", "Label"), notes * len(beside), beside)
    return layout.crossed(lines if across else [], across, cell)


def count_of(estimate: Estimate) -> int:
    """A number of items."""
    return int(estimate.value or 0)


# --- several right labels -------------------------------------------------------------------------


def several_table(a: Alignment) -> Table:
    """Judges, baselines and annotators beside the response sets, failures left out."""
    kinds = {judge.name: judge.kind for judge in a.judges}
    rows = [row for row in a.results.select("several") if row["failures"] in ("", "left_out")]

    def line(row: Row) -> Contents:
        who = row["who"] if not row.judge else ""
        name = "All annotators" if who == EVERYBODY else row.judge or who
        return a.title(row.metric), f"{name} (baseline)" if kinds.get(name) == "control" else name

    notes = (
        "Response set: the labels that enough annotators accept (all of them beside a judge, the "
        "others beside an annotator). A judge with one label has the hit of that label.",
        *(f"{heading}: {SET_STATISTICS[key]}." for key, heading in _SET_HEADINGS.items()),
    )
    title = "Several right labels: agreement with the response sets"
    layout = Layout("several", title, ("Metric", "Judge"), notes, headings=_SET_HEADINGS)
    return layout.of(rows, line)


_SET_HEADINGS = {"hit": "Hit", "coverage": "Coverage", "exact": "Exact set", "mse": "MSE"}


# --- the humans -----------------------------------------------------------------------------------


def ceiling_table(a: Alignment, declared: Declared) -> Table:
    """One statistic of each annotator against the truth of the others, all pooled last."""
    who = set(a.results.values("who", "ceiling", declared.key))
    across = [(name, {"who": name}) for name in sorted(who - {"all"})]
    title = f"Human ceiling ({declared.heading}): each annotator against the others"
    return Layout(f"{declared.key}-ceiling", title, _METRIC).crossed(
        _lines(a) if who else [],
        [*across, ("All pooled", {"who": "all"})],
        lambda keys: a.results.find(declared.key, "ceiling", **keys),
    )


def agreement_table(a: Alignment) -> Table:
    """The agreement of all annotators: metrics down, statistics across.

    Statistics of people who rated the same items have a column only where there is any such.
    """
    rows = a.results.select("agreement", who="all")
    measured = {row.statistic for row in rows}
    found = {row.statistic for row in rows if row.estimate.value is not None}
    shown = [
        d
        for key, d in AGREEMENT_STATISTICS.items()
        if key in measured and (key in found or "people" not in d.shown)
    ]
    title = "Agreement among the annotators"
    layout = Layout("agreement", title, _METRIC, tuple(map(_meaning, shown)))
    return _agreed(a, layout, [(d.heading, {"statistic": d.key, "who": "all"}) for d in shown])


def pairs_tables(a: Alignment) -> Iterator[Table]:
    """Each statistic of agreement for each pair of annotators."""
    for key, declared in AGREEMENT_STATISTICS.items():
        if pairs := [who for who in a.results.values("who", "agreement", key) if who != "all"]:
            title = f"{declared.heading} for each pair of annotators"
            across = [(who, {"statistic": key, "who": who}) for who in pairs]
            yield _agreed(a, Layout(f"{key}-pairs", title, _METRIC), across)


def _agreed(a: Alignment, layout: Layout, across: Sequence[tuple[str, Keys]]) -> Table:
    """A table of agreement, of each metric that has any."""
    whose = {keys["who"] for _, keys in across}
    measured = {r.metric for r in a.results.select("agreement") if r["who"] in whose}
    lines = [line for line in _lines(a) if line[1]["metric"] in measured]
    return layout.crossed(lines, across, lambda keys: a.results.find(analysis="agreement", **keys))


def _share(e: Estimate) -> str:
    """`93 of 100 (93.0 %)`; no share of nothing."""
    share = f"{100 * count_of(e) / e.n:.1f} %" if e.n else DASH
    return f"{count_of(e):,} of {e.n:,} ({share})"


# --- label probabilities --------------------------------------------------------------------------


def probability_tables(a: Alignment) -> Iterator[Table]:
    """The tables of judges that gave label probabilities; none where no judge did."""
    if not (rows := a.results.select("probability", "brier", who="probabilities")):
        return
    lines = [((r.judge, a.title(r.metric)), {"judge": r.judge, "metric": r.metric}) for r in rows]

    def cell(keys: Keys) -> Content:
        signed = keys["statistic"] == "brier_skill" or keys["who"] == "gain"
        return Cell(estimate=a.results.find(analysis="probability", **keys), signed=signed)

    def table(key: str, title: str, columns: Sequence[tuple[str, str, str]], *notes: str) -> Table:
        """`columns` holds (heading, statistic, what was scored)."""
        across = [(heading, {"statistic": key, "who": who}) for heading, key, who in columns]
        return Layout(key, title, _JUDGED, notes).crossed(lines, across, cell)

    measured = [(d.heading, key, "probabilities") for key, d in TRUTH_STATISTICS.items()]
    measured.insert(1, ("Brier, label alone", "brier", "label"))
    yield table(
        "probabilities", "Label probabilities against the reference labels", measured,
        "Brier, label alone: of the judge's label taken as a certainty. A judge that says the "
        "base rates of every answer has skill 0.",
        "Chance lifts ECE; its interval is without that.",
        *map(_meaning, TRUTH_STATISTICS.values()),
    )  # fmt: skip
    yield table(
        "probabilities-squared_distance",
        "How far from the annotators' labels? Squared distance",
        [(title, "squared_distance", source) for source, title in SOURCES.items()],
        "Squared distance: summed over labels, from 0 to 2; 0 is best. A proper score: nobody "
        "gains by stating bolder or more timid probabilities.",
        "Each annotator's label in turn is held back, and the distribution is that of the item's "
        "other labels; so judge, annotator and base rates are measured against the same, on the "
        "same items.",
        "An annotator gives one label and no shades: the judge's label alone is the "
        "like-for-like rival, and shades gain over a certainty what base rates may gain, too.",
    )  # fmt: skip
    yield from _curve_tables(a)


def curves(a: Alignment, judge: str) -> Mapping[str, list[tuple[float, Estimate]]]:
    """The reliability diagram of each metric: mean confidence and share right of each bin."""
    found: dict[str, list[tuple[float, Estimate]]] = {}
    confidences = a.results.select("calibration", "confidence", judge=judge)
    shares = a.results.select("calibration", "share_right", judge=judge)
    for confidence, right in zip(confidences, shares, strict=True):
        point = (confidence.estimate.value or 0.0, right.estimate)
        found.setdefault(right.metric, []).append(point)
    return found


def _curve_tables(a: Alignment) -> Iterator[Table]:
    """The points of each judge's reliability diagrams."""
    for number, judge in enumerate(a.results.values("judge", "calibration"), start=1):
        rows = [
            (
                a.title(metric), f"{place} of {len(points)}", right.n,
                format_number(confidence), format(right),
            )
            for metric, points in curves(a, judge).items()
            for place, (confidence, right) in enumerate(points, start=1)
        ]  # fmt: skip
        note = (
            "Answers in bins of equally many, by the probability of the judge's likeliest "
            "label. The interval of the share right is exact (Clopper-Pearson), items taken "
            "as independent."
        )
        yield Layout(
            f"calibration-{number}", f"Reliability diagram in numbers: {judge}", _METRIC, (note,),
            ("Bin", "Answers", "Mean confidence", "Share right"),
        ).listing(rows)  # fmt: skip


# --- judges against each other --------------------------------------------------------------------


def comparison_table(a: Alignment) -> Table:
    """Each two real judges on each metric, and each real judge beside the control nearest to it."""
    controls = {judge.name for judge in a.controls}
    lines: list[Line] = [
        (
            (
                a.title(row.metric),
                f"{row.judge} − {row['who']}{' (baseline)' if row['who'] in controls else ''}",
                Cell(estimate=row.estimate, signed=True),
            ),
            {"judge": row.judge, "metric": row.metric, "who": row["who"]},
        )
        for row in _nearest(a.results.select("comparison", "accuracy_difference"), controls)
    ]
    notes = (
        "Difference: accuracy of the first minus that of the second, on items to which both "
        "gave a label. Of the baselines, the one that comes nearest to the judge; all are in "
        "results.csv.",
        "The permutation test flips the sign of whole questions; Holm's correction is over all "
        "pairs of the metric.",
    )
    title = "Judges against each other: accuracy on the same items"
    across = [
        ("Permutation p", {"statistic": "permutation_p"}),
        ("p after Holm", {"statistic": "p_holm"}),
    ]
    return Layout("comparisons", title, ("Metric", "Judges"), notes, ("Difference",)).crossed(
        lines, across, lambda keys: p_cell(a.results.find(analysis="comparison", **keys))
    )


def _nearest(found: Sequence[Row], controls: set[str]) -> Iterator[Row]:
    """Pairs of real judges, and of each judge and metric the control that it leads the least."""
    yield from (row for row in found if row["who"] not in controls)
    beside = (row for row in found if row["who"] in controls)
    for _, rows in groupby(beside, lambda row: (row.metric, row.judge)):
        yield min(rows, key=lambda row: inf if row.estimate.value is None else row.estimate.value)


# --- the judges themselves ------------------------------------------------------------------------


def judges_table(a: Alignment) -> Table:
    """The outcome of each judge's run and what it used."""
    known = (*map(str, Status), TRAINED_ON)
    statuses = [s for s in known if any(j.statuses.get(s) for j in a.judges)]
    rows: list[Contents] = [
        (
            judge.name, judge.kind,
            *(judge.statuses.get(status, 0) for status in statuses),
            *_usage(judge), judge.signature,
        )
        for judge in a.judges
    ]  # fmt: skip
    columns = (
        "Kind", *statuses, "Calls", "Prompt tokens",
        "Reply tokens", "Cost (US$)", "Structured output", "Signature",
    )  # fmt: skip
    note = "Statuses count the last verdict on each answer; calls and tokens count all attempts."
    title = "The judges and what they used"
    return Layout("judges", title, ("Judge",), (note,), columns).listing(rows)


def _usage(judge: JudgeSummary) -> tuple[str, ...]:
    """Calls, tokens, cost and how the engine enforces the form of a reply; a dash where no model
    was called, as for a baseline."""
    usage, form = judge.usage, backend_fact(judge.about, "structured")
    unknown = "unknown" if usage.calls else DASH
    return (
        f"{usage.calls:,}",
        _tokens(usage.prompt_tokens, usage.cached_tokens, "cached", unknown),
        _tokens(usage.completion_tokens, usage.reasoning_tokens, "thinking", unknown),
        unknown if judge.cost is None else f"{judge.cost:.4f}",
        DASH if form is None else str(form),
    )


def _tokens(count: int | None, part: int | None, what: str, unknown: str) -> str:
    """`12,000 (9,000 cached)`."""
    if count is None:
        return unknown
    return f"{count:,} ({part:,} {what})" if part else f"{count:,}"
