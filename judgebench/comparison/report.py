"""The presentation of a comparison: differences, decisions that changed, verdicts that flipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judgebench.comparison.result import (
    CHANGES,
    COUNTED,
    DECLARED,
    JUDGED_BY,
    RIGHT,
    SIDES,
    Comparison,
    DecisionChange,
    PairSummary,
    excludes_0,
    is_better,
    with_interval,
)
from judgebench.errors import some
from judgebench.records import Estimate, Row, group_by_key
from judgebench.results.blocks import Block, Intervals, LabelledInterval, ReportSection
from judgebench.results.tables import (
    DASH,
    Cell,
    CellTone,
    Content,
    Layout,
    Table,
    format_number,
    p_cell,
)
from judgebench.rubric import Metric
from judgebench.text import counted

MOST_FLIPS_SHOWN = 50
_MOST_SETTINGS = 80  # characters
_MOST_NAMED = 3  # decisions, metrics or labels in what stands on a screen
_DRAWN = ("accuracy", "kappa_quadratic", "severe_recall")
_LOOKS: dict[str, CellTone] = {"A": "bad", "B": "good", "neither": "unclear"}
TITLE = "what changed from A to B"
OUTCOMES_ALIKE = "No decision changed."
NOTHING_FLIPPED = "No label changed."
NOTHING_SHOWN = "Neither is shown to be better in accuracy{} or the share without a label."
_MINUS = "B − A: on the same answers, with whole questions as units."
_AS_WRONG = "A missing label counts as wrong."
_HOLM = (
    "p after Holm: permutation test of accuracy, A and B changing places question by question, "
    "corrected over the metrics. Each interval is at its own level: among many differences, some "
    "miss 0 by luck."
)
_CHANGED = (
    "Labels changed: in brackets those that B has right and A had wrong (+), and the other way "
    "round (−)."
)
_IN_FLIPS = f"The table has {MOST_FLIPS_SHOWN} at most; all are in flips.csv."
_SEVERE = "Severe recall, B − A"
_ON_SCREEN = ("Accuracy A", "B", "B − A", "Labels changed", "Decision")
_ON_PAPER = ("Accuracy A", "B", "B − A", "p after Holm")
_BEST = {"higher": "more is better", "lower": "less is better", "zero": "0 is best"}
_COLUMNS = {"difference": "B − A", "test": "p after Holm", "change": "From A to B"}


def comparison_part(c: Comparison) -> ReportSection:
    """The part of a comparison."""
    text = (*c.compared, *_shown(c))
    said = (*_decision_sentences(c)[:_MOST_NAMED], _flip_sentence(c))
    changes = [change for change in c.decisions if change.differs]
    fell = sum(change.fell for change in changes)
    return ReportSection(
        "comparison", TITLE, c.results,
        (
            Block("What changed", text, (_glance(c),), lead=True, on_screen=True),
            *_decision_blocks(c),
            *_evidence(c),
        ),
        c.notes,
        (
            f"{c.n_answers:,} answers compared",
            f"{counted(len(changes), 'decision')} changed"
            + (f", {fell} for the worse" if fell else ""),
            f"{counted(len(c.flips.rows.rows), 'label')} changed",
            *(f"{side}: {run}" for side, run in zip(SIDES, c.runs, strict=True)),
        ),
        (
            Block("", c.compared, (_glance(c, _ON_SCREEN),), brief=True),
            Block("In short", (*_shown(c), *said)),
        ),
        (_glance(c, _ON_PAPER),),
    )  # fmt: skip


# --- at a glance ----------------------------------------------------------------------------------


def _stubs(c: Comparison) -> tuple[str, ...]:
    return ("Judge", "Metric") if len(c.pairs) > 1 else ("Metric",)


def _names(c: Comparison, row: Row) -> tuple[str, ...]:
    """The judge, where there are several, and the metric of a row."""
    names = {pair.b: pair.name for pair in c.pairs}
    metric = c.title(row.metric) or "all"
    return (names[row.judge], metric) if len(c.pairs) > 1 else (metric,)


def _glance(c: Comparison, headings: Sequence[str] = ()) -> Table:
    """Accuracy of both, the difference, whether chance explains it, severe recall, flips, and what
    is decided, a missing label counted as wrong: all columns, or those with these headings."""
    lines = []
    for pair in c.pairs:
        for metric in c.rubric.metrics:
            cells = _cells(c, pair, metric)
            headings = headings or [h for h in cells if h != _SEVERE or _has_severe(c)]
            names = (pair.name, metric.title) if len(c.pairs) > 1 else (metric.title,)
            lines.append((*names, *(cells[heading] for heading in headings)))
    notes = (
        _MINUS,
        _AS_WRONG if c.failures else "",
        _HOLM if "p after Holm" in headings else "",
        _CHANGED if "Labels changed" in headings else "",
    )
    title = "B beside A on the same answers"
    return Layout("comparison_main", title, _stubs(c), notes, (*headings,)).listing(lines)


def _has_severe(c: Comparison) -> bool:
    return any(metric.severe is None for metric in c.rubric.metrics)


def _cells(c: Comparison, pair: PairSummary, metric: Metric) -> dict[str, Content]:
    """By heading."""
    of = (pair.b, metric.id)
    a, b = (c.find("value", "accuracy", *of, run=side) for side in SIDES)
    right = [row["right"] for row in c.flips.rows.select("flip", judge=pair.b, metric=metric.id)]
    (*outcome,) = (d for d in c.decisions if (d.judge, d.metric) == of)
    return {
        "Accuracy A": format_number(a.value),
        "B": format_number(b.value),
        "B − A": _difference("accuracy", c.difference("accuracy", *of, COUNTED)),
        "p after Holm": p_cell(c.find("test", "p_holm", *of, of="accuracy")),
        _SEVERE: _difference("severe_recall", c.difference("severe_recall", *of, COUNTED)),
        "Labels changed": f"{len(right):,} (+{right.count('B'):,}, −{right.count('A'):,})",
        "Decision": _outcome(outcome[0]) if outcome else DASH,
    }


def _difference(statistic: str, e: Estimate) -> Cell:
    """A difference, coloured where its interval lies on one side of 0."""
    look: CellTone = ""
    if excludes_0(e) and DECLARED[statistic].best != "zero":
        look = "good" if is_better(statistic, e) else "bad"
    return Cell(estimate=e, signed=True, look=look)


def _outcome(change: DecisionChange) -> Cell:
    a, b = change.outcomes
    return Cell(f"{a} → {b}", look="bad" if change.fell else "fair") if a != b else Cell(b)


# --- sentences ------------------------------------------------------------------------------------


def _shown(c: Comparison) -> Iterator[str]:
    """Sentences on what is shown to be worse or better in B, or that nothing is."""
    names: dict[str, dict[str, list[str]]] = {"worse": {}, "better": {}}
    for key, judge, metric, e in c.shown_differences():
        by_statistic = names["better" if is_better(key, e) else "worse"]
        name = f"{c.title(metric)} ({judge})" if len(c.pairs) > 1 else c.title(metric)
        number = f"{name} {with_interval(e)} (n = {e.n:,})"
        by_statistic.setdefault(JUDGED_BY[key], []).append(number)
    for word, by_statistic in names.items():
        if by_statistic:
            parts = (f"{key} of {some(of, _MOST_NAMED)}" for key, of in by_statistic.items())
            yield f"B is shown to be {word}: {'; '.join(parts)}."
    if not any(names.values()):
        yield NOTHING_SHOWN.format(", severe recall" if _has_severe(c) else "")


def _flip_sentence(c: Comparison) -> str:
    """The number of labels that changed, and the first of those that became wrong."""
    if not (rows := c.flips.rows.rows):
        return NOTHING_FLIPPED
    wrong = [
        f"{row['item_id']}, {c.title(row.metric)}: {row['label_a']} → {row['label_b'] or DASH}"
        for row in rows
        if row["right"] == "A"
    ]
    such_as = f", such as {'; '.join(wrong[:_MOST_NAMED])}" if wrong else ""
    total = counted(len(rows), "label")
    return f"{total} changed; {len(wrong):,} of them from right to wrong{such_as}."


def _decision_sentences(c: Comparison, *, in_full: bool = False) -> list[str]:
    """What is decided now of each judge and metric whose decision changed, and why, or `in_full`
    the reasons of both; those that fell come first."""
    changes = sorted((d for d in c.decisions if d.differs), key=lambda d: not d.fell)
    if c.decisions and not changes:
        return [OUTCOMES_ALIKE]
    sentences = []
    for d in changes:
        head = f"{c.title(d.metric)} ({d.judge}): {' → '.join(d.outcomes)}."
        a, b = d.reasons
        why = f"\n  A: {a}\n  B: {b}" if in_full else f" {b.partition('. ')[0].rstrip('.')}."
        sentences.append(f"{head}{why}")
    return sentences


def _decision_blocks(c: Comparison) -> Iterator[Block]:
    if c.decisions:
        text = tuple(_decision_sentences(c, in_full=True))
        yield Block("Decisions that changed", text, lead=True, on_screen=True)


# --- what it rests on -----------------------------------------------------------------------------


def _evidence(c: Comparison) -> Iterator[Block]:
    measured = c.rows.values("statistic", "difference")
    drawn = (_forest(c, key) for key in _DRAWN if key in measured)
    figures = tuple(figure for figure in drawn if figure.lines)
    flips = (_flip_sentence(c), _IN_FLIPS)
    yield Block("Differences and their intervals", figures=figures)
    yield Block("Verdicts that changed", flips, (_flips_table(c),), on_screen=True)
    yield Block("Every statistic", tables=(_statistics(c),), folded=True, on_screen=True)
    yield Block("What differs in the set-up", tables=(_settings_table(c),), on_screen=True)


def _flips_table(c: Comparison) -> Table:
    return Layout(
        "comparison_flips", "Labels that changed", ("Answer", *_stubs(c)),
        ("Those that A had right and B has wrong come first. A dash is no label.",),
        ("Label of A", "Label of B", "Reference label", "Right"),
    ).listing(
        (
            row["item_id"], *_names(c, row),
            *(row[key] or None for key in ("label_a", "label_b", "truth")),
            Cell(row["right"], look=_LOOKS.get(row["right"], "")),
        )
        for row in sorted(c.flips.rows, key=lambda row: RIGHT.index(row["right"]))[
            :MOST_FLIPS_SHOWN
        ]
    )  # fmt: skip


def _forest(c: Comparison, statistic: str) -> Intervals:
    names, heading = {pair.b: pair.name for pair in c.pairs}, DECLARED[statistic].heading
    lines = group_by_key(
        (c.title(row.metric), LabelledInterval(names[row.judge], "judge", row.estimate))
        for row in c.rows.select("difference", statistic, failures="left_out")
        if row.estimate.value is not None
    )
    return Intervals(
        f"difference_{statistic}",
        f"{heading}: B minus A on the same answers, with interval, failures left out",
        tuple((metric, tuple(lanes)) for metric, lanes in lines.items()),
        f"{heading}, B − A",
        {"no difference": 0.0},
    )


def _statistics(c: Comparison) -> Table:
    """Both values of every statistic, their difference, what chance says of it, and how many labels
    changed."""
    declared = {**DECLARED, **CHANGES}
    rows = [
        row
        for analysis in ("value", "difference", "test", "change")
        for row in c.rows.select(analysis)
        if row["failures"] in ("", "left_out") and row.statistic != "permutation_p"
    ]
    measured = (d for key, d in declared.items() if key in {row.statistic for row in rows})
    return Layout(
        "comparison_statistics", "Both on the same answers, failures left out",
        (*_stubs(c), "Statistic"),
        (_MINUS, *(f"{d.heading}: {d.meaning}; {_BEST[d.best]}." for d in measured)),
    ).of(
        rows,
        lambda row: (*_names(c, row), declared[row["of"] or row.statistic].heading),
        lambda row: _COLUMNS.get(row.analysis, row["run"]),
        cell=_statistic_cell,
    )  # fmt: skip


def _statistic_cell(row: Row) -> Cell:
    if row.analysis == "test":
        return p_cell(row.estimate)
    if row.analysis == "difference":
        return _difference(row.statistic, row.estimate)
    return Cell(estimate=row.estimate)


def _settings_table(c: Comparison) -> Table:
    return Layout(
        "comparison_settings", "Settings that are not the same", ("Judge", "Setting"),
        beside=("A", "B"),
    ).listing(
        (pair.name, key, *(value[:_MOST_SETTINGS] or None for value in values))
        for pair in c.pairs
        for key, *values in pair.settings
    )  # fmt: skip
