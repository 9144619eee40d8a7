"""The part of a comparison: differences, decisions that changed, verdicts that flipped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from judgebench.alignment.differences import TESTED
from judgebench.alignment.statistics import Declared
from judgebench.comparison.differences import CHANGES, DECLARED, RUN_STATISTICS
from judgebench.comparison.result import COUNTED, Comparison
from judgebench.records import Estimate
from judgebench.results.layout import Content, Contents, Keys, Layout, Line
from judgebench.results.part import Block, Intervals, Lane, Part
from judgebench.results.tables import DASH, Cell, Look, Table, format_number, p_cell
from judgebench.words import counted, listed

MOST_FLIPS_SHOWN = 50
_MOST_SETTINGS = 80  # characters
_MOST_ON_SCREEN = 3  # decisions that changed
_MOST_NAMED = 3  # metrics in a sentence
# What says whether B is better, and what it is called in a sentence.
_JUDGED_BY = {
    "accuracy": "accuracy", "severe_recall": "severe recall",
    "no_label": "the share without a label",
}  # fmt: skip
NONE = "no label"
_MOST_FLIPS_ON_SCREEN = 3
_DRAWN = ("accuracy", "weighted_kappa", "severe_recall")
_LOOKS: dict[str, Look] = {"A": "bad", "B": "good", "neither": "unclear"}
_POLICIES = {"worst": "counted as wrong", "best": "counted as right"}
OUTCOMES_ALIKE = "No decision changed."
TITLE = "what changed from A to B"
DECIDED_ANEW = (
    "Both are decided anew on the answers that are compared, with the human labels named above."
)
NOTHING_FLIPPED = "No label changed."
NOTHING_SHOWN = "Neither is shown to be better in accuracy{} or the share without a label."
_BESIDE = "B beside A on the same answers"
_MINUS = "Difference: B minus A on the same answers, with whole questions as units."
_AS_WRONG = "B − A, no label is wrong"
_SEVERE = "Severe recall, B − A"
_CHANGED = "Labels changed (to right, to wrong)"
_LABELS_CHANGED = (
    "Labels changed: of all answers; in brackets those that B has right and A had wrong, and the "
    "other way round."
)
Columns = Mapping[str, Callable[[Keys], Content]]
_WRONG_TOO = "A missing label is left out of the first difference and wrong in all else."
_HOLM = (
    "p after Holm: permutation test of accuracy, A and B changing places question by question, "
    "corrected over the metrics. Each interval is at its own level: among many differences, some "
    "miss 0 by luck."
)


def comparison_part(c: Comparison) -> Part:
    """The part of a comparison."""
    main = _main_table(c)
    lead = Block("What changed", (*c.compared, *_shown(c)), (main,), lead=True, on_screen=True)
    blocks = (lead, *_decision_blocks(c), *_evidence(c))
    said = (*_decisions_said(c, _MOST_ON_SCREEN), _flipped_said(c))
    screen = (Block("", c.compared, (_screen_table(c),)), Block("In short", (*_shown(c), *said)))
    fell = sum(one.fell for one in c.decisions)
    changed = sum(one.differs for one in c.decisions)
    facts = (
        f"{c.n_answers:,} answers compared",
        f"{counted(changed, 'decision')} changed, {fell} of them to less",
        f"{counted(len(c.flips.results.rows), 'label')} changed",
        *(f"{side}: {run}" for side, run in zip("AB", c.runs, strict=True)),
    )
    paper = (_main_table(c, (_AS_WRONG, _SEVERE, _CHANGED, "Decision")),)
    return Part("comparison", TITLE, c.results, blocks, c.notes, facts, screen, paper)


def _lines(c: Comparison) -> list[Line]:
    """A line for each judge and metric; judges are named where there are several."""
    return [
        (
            (*([pair.name] if len(c.pairs) > 1 else []), metric.title),
            {"judge": pair.b, "who": pair.a, "metric": metric.id},
        )
        for pair in c.pairs
        for metric in c.rubric.metrics
    ]


def _stubs(c: Comparison) -> tuple[str, ...]:
    return ("Judge", "Metric") if len(c.pairs) > 1 else ("Metric",)


def _table(
    c: Comparison, layout: Layout, columns: Columns, lines: Iterable[Line] | None = None
) -> Table:
    """A line for each judge and metric, and the columns that are declared."""
    cells = (
        (*begin, *(cell(keys) for cell in columns.values()))
        for begin, keys in (_lines(c) if lines is None else lines)
    )
    return replace(layout, stubs=_stubs(c), beside=tuple(columns)).listing(cells)


# --- at a glance ----------------------------------------------------------------------------------


def _main_table(c: Comparison, left_out: Collection[str] = ()) -> Table:
    """Accuracy of both, the difference, whether chance explains it, severe recall, flips, and what
    is decided; on paper without the columns that it has no room for."""

    def accuracy(side: str, keys: Keys) -> str:
        return format_number(c.value("accuracy", keys["judge"], keys["metric"], side).value)

    columns: dict[str, Callable[[Keys], Content]] = {
        "Accuracy A": partial(accuracy, "A"),
        "B": partial(accuracy, "B"),
        "B − A": partial(difference_cell, c, "accuracy"),
        _AS_WRONG: partial(difference_cell, c, "accuracy", failures=COUNTED),
        "p after Holm": lambda keys: p_cell(
            c.p_holm(keys["judge"], keys["metric"], failures=COUNTED)
        ),
        _SEVERE: partial(difference_cell, c, "severe_recall", failures=COUNTED),
        _CHANGED: partial(flips_of, c),
        "Decision": partial(_outcomes, c),
    }
    absent = {*left_out}
    absent |= set() if c.failures else {_AS_WRONG}
    absent |= set() if c.decisions else {"Decision"}
    absent |= set() if _has_severe(c) else {_SEVERE}
    columns = {heading: cell for heading, cell in columns.items() if heading not in absent}
    notes = (_MINUS, _WRONG_TOO if c.failures else "", _HOLM, "" if left_out else _LABELS_CHANGED)
    return _table(
        c, Layout("comparison_main", "B beside A on the same answers", notes=notes), columns
    )


def _has_severe(c: Comparison) -> bool:
    return any(metric.severe is None for metric in c.rubric.metrics)


def _screen_table(c: Comparison) -> Table:
    """The same in fewer columns, as texts; a missing label counts as wrong."""

    def accuracies(keys: Keys) -> str:
        values = (c.value("accuracy", keys["judge"], keys["metric"], s, COUNTED) for s in "AB")
        return " → ".join(format_number(value.value) for value in values)

    def difference(keys: Keys) -> Cell:
        cell = difference_cell(c, "accuracy", keys, COUNTED)
        return Cell(f"{cell.value}\n{cell.interval}".strip(), look=cell.look)

    columns: dict[str, Callable[[Keys], Content]] = {
        "Accuracy A → B": accuracies, "B − A": difference, "Labels changed": partial(flips_of, c),
        **({"Decision": partial(_outcomes, c)} if c.decisions else {}),
    }  # fmt: skip
    notes = (
        "A missing label counts as wrong." if c.failures else "",
        "Labels changed: in brackets from wrong to right (+), from right to wrong (−).",
    )
    return _table(
        c, Layout("comparison_screen", "B beside A on the same answers", notes=notes), columns
    )


def _shown(c: Comparison) -> Iterator[str]:
    """Sentences on what is shown to be worse or better in B, or that nothing is."""
    found: dict[str, dict[str, list[str]]] = {"worse": {}, "better": {}}
    for names, keys in _lines(c):
        of = keys["judge"], keys["metric"], COUNTED
        for key in _JUDGED_BY:
            e = c.difference(key, *of)
            if e.value and c.is_shown(key, *of):
                rises = DECLARED[key].best == "higher"
                name = " ".join([str(names[-1]), *(f"({judge})" for judge in names[:-1])])
                of_word = found["better" if (e.value > 0) == rises else "worse"]
                of_word.setdefault(key, []).append(
                    f"{name} ({format_number(e.value, signed=True)})"
                )
    for word, said in found.items():
        if said:
            parts = []
            for key, names in said.items():
                more = len(names) - _MOST_NAMED
                rest = [counted(more, "more metric")]
                some = [*names[:_MOST_NAMED], *rest] if more > 1 else names
                parts.append(f"{_JUDGED_BY[key]} of {listed(some)}")
            yield f"B is shown to be {word}: {'; '.join(parts)}."
    if not any(found.values()):
        yield NOTHING_SHOWN.format(", severe recall" if _has_severe(c) else "")


def _flipped_said(c: Comparison) -> str:
    """The number of labels that changed, and the first of those that became wrong."""
    rows = c.flips.results.rows
    if not rows:
        return NOTHING_FLIPPED
    wrong = [row for row in rows if row["right"] == "A"]
    first = [
        f"{row['item_id']}, {c.title(row.metric)}: {row['label_a']} → {row['label_b'] or NONE}"
        for row in wrong[:_MOST_FLIPS_ON_SCREEN]
    ]
    listed_here = f", such as {'; '.join(first)}" if first else ""
    total = counted(len(rows), "label")
    return f"{total} changed; {len(wrong):,} of them from right to wrong{listed_here}."


def difference_cell(c: Comparison, statistic: str, keys: Keys, failures: str = "left_out") -> Cell:
    """A difference, coloured where its interval lies on one side of 0."""
    found = c.difference(statistic, keys["judge"], keys["metric"], failures)
    return Cell(estimate=found, signed=True, look=_look(statistic, found))


def _look(statistic: str, e: Estimate) -> Look:
    best = DECLARED[statistic].best
    if best == "zero" or e.low is None or e.high is None or e.low <= 0 <= e.high:
        return ""
    return "good" if (e.low > 0) == (best == "higher") else "bad"


def flips_of(c: Comparison, keys: Keys) -> str:
    """`12 (+3, −5)`."""
    right = [row["right"] for row in c.flips.results.select("flip", **keys)]
    return f"{len(right):,} (+{right.count('B'):,}, −{right.count('A'):,})" if right else "0"


def _outcomes(c: Comparison, keys: Keys) -> Cell:
    for one in c.decisions:
        if (one.judge, one.who, one.metric) == (keys["judge"], keys["who"], keys["metric"]):
            a, b = one.outcomes
            return Cell(f"{a} → {b}", look="bad" if one.fell else "fair") if a != b else Cell(b)
    return Cell(DASH)


# --- decisions ------------------------------------------------------------------------------------


def _decisions_said(c: Comparison, most: int, *, reasons: bool = False) -> Iterator[str]:
    """A sentence for each decision that changed, with the reasons of both on lines of their own;
    those that fell come first."""
    changed = sorted((one for one in c.decisions if one.differs), key=lambda one: not one.fell)
    if c.decisions and not changed:
        yield OUTCOMES_ALIKE
    for one in changed[:most]:
        a, b = one.outcomes
        moved = f" What moved: {found}" if (found := one.why()) else ""
        lines = [f"{c.title(one.metric)} ({one.judge}): {a} → {b}.{moved}"]
        if reasons:
            lines += [f"  {side}: {why}" for side, why in zip("AB", one.reasons, strict=True)]
        yield "\n".join(lines)
    if len(changed) > most:
        yield f"… and {counted(len(changed) - most, 'more decision')} changed."


def _decision_blocks(c: Comparison) -> Iterator[Block]:
    if not c.decisions:
        return
    said = tuple(_decisions_said(c, len(c.decisions), reasons=True))
    anew = (DECIDED_ANEW,) if any(one.differs for one in c.decisions) else ()
    yield Block("Decisions that changed", (*said, *anew), lead=True, on_screen=True)


# --- what it rests on -----------------------------------------------------------------------------


def _evidence(c: Comparison) -> Iterator[Block]:
    measured = c.results.values("statistic", "difference")
    drawn = (_forest(c, key) for key in _DRAWN if key in measured)
    figures = tuple(figure for figure in drawn if figure.lines)
    yield Block("Differences and their intervals", figures=figures)
    yield Block("Verdicts that changed", *_flips_shown(c), on_screen=True)
    yield Block("Every statistic", tables=tuple(_statistic_tables(c)), folded=True, on_screen=True)
    yield Block("How many labels changed", tables=(_changes_table(c),), folded=True, on_screen=True)
    yield Block("Failures, cost and time", tables=(_runs_table(c),), on_screen=True)
    yield Block("What differs in the set-up", tables=(_settings_table(c),), on_screen=True)


def _flips_shown(c: Comparison) -> tuple[tuple[str, ...], tuple[Table, ...]]:
    found = c.flips.results.rows
    if not found:
        return (NOTHING_FLIPPED,), ()
    first = sorted(found, key=lambda row: ("A", "B", "neither", "unknown").index(row["right"]))
    lines: list[Contents] = [
        (
            row["item_id"], *([row.judge] if len(c.pairs) > 1 else []), c.title(row.metric),
            row["label_a"] or None, row["label_b"] or None, row["truth"] or None,
            Cell(row["right"], look=_LOOKS.get(row["right"], "")),
        )
        for row in first[:MOST_FLIPS_SHOWN]
    ]  # fmt: skip
    cut = (
        f"{counted(len(found), 'label')} changed; the first {len(lines)} are listed here, "
        "all of them in flips.csv."
        if len(found) > len(lines)
        else f"{counted(len(found), 'label')} changed; they are in flips.csv, too."
    )
    table = Layout(
        "comparison_flips", "Labels that changed", ("Answer", *_stubs(c)),
        ("Those that A had right and B has wrong come first. A dash is no label.",),
        ("Label of A", "Label of B", "Reference label", "Right"),
    ).listing(lines)  # fmt: skip
    return (cut,), (table,)


def _forest(c: Comparison, statistic: str) -> Intervals:
    heading, _ = c.shown_as(statistic)
    lines = []
    for metric in c.rubric.metrics:
        lanes = [
            Lane(pair.name, "judge", found)
            for pair in c.pairs
            if (found := c.difference(statistic, pair.b, metric.id)).value is not None
        ]
        if lanes:
            lines.append((metric.title, tuple(lanes)))
    title = f"{heading}: B minus A on the same answers, with interval, failures left out"
    ends = [abs(x) for _, of in lines for e in of for x in (e.estimate.low, e.estimate.high) if x]
    most = 1.05 * max(ends, default=1.0)
    return Intervals(
        f"difference_{statistic}", title, tuple(lines), f"{heading}, B − A",
        {"no difference": 0.0}, (-most, most),
    )  # fmt: skip


def _statistic_tables(c: Comparison) -> Iterator[Table]:
    """A table for each statistic that is measured on a metric: both values, the difference, and
    the difference with failures counted in."""
    measured = c.results.values("statistic", "difference")
    best = {"higher": "more is better", "lower": "less is better", "zero": "0 is best"}
    for declared in (d for key, d in DECLARED.items() if key in measured):
        if declared.key not in RUN_STATISTICS:
            meaning = f"{declared.heading}: {declared.meaning}; {best[declared.best]}."
            layout = Layout(f"comparison_{declared.key}", declared.heading, notes=(meaning, _MINUS))
            rows = c.results.select("difference", declared.key)
            there = {(row.judge, row.metric) for row in rows}
            lines = [line for line in _lines(c) if (line[1]["judge"], line[1]["metric"]) in there]
            three = len({row["failures"] for row in rows}) > 1
            yield _table(c, layout, _statistic_columns(c, declared, three), lines)


def _statistic_columns(c: Comparison, declared: Declared, three: bool) -> Columns:
    """The values of A and B, and their difference; `three` ways to count failures."""
    key = declared.key

    def value(side: str, keys: Keys) -> Cell:
        return Cell(
            estimate=c.value(key, keys["judge"], keys["metric"], side), signed=declared.signed
        )

    columns: dict[str, Callable[[Keys], Content]] = {
        "A": partial(value, "A"), "B": partial(value, "B"),
        "B − A": partial(difference_cell, c, key),
    }  # fmt: skip
    for policy, words in _POLICIES.items() if three else ():
        columns[f"B − A, failures {words}"] = partial(difference_cell, c, key, failures=policy)
    if key in TESTED:
        columns["p after Holm"] = lambda keys: p_cell(c.p_holm(keys["judge"], keys["metric"], key))
    return columns


def _changes_table(c: Comparison) -> Table:
    measured = c.results.values("statistic", "change")
    changes = [declared for key, declared in CHANGES.items() if key in measured]
    notes = tuple(f"{d.heading}: {d.meaning}." for d in changes)
    return Layout("comparison_changes", "How many labels changed", _stubs(c), notes).crossed(
        _lines(c),
        [(declared.heading, {"statistic": declared.key}) for declared in changes],
        lambda keys: Cell(
            estimate=c.results.find(analysis="change", **keys),
            signed=keys["statistic"] == "mean_shift",
        ),
    )


def _runs_table(c: Comparison) -> Table:
    """Statuses, cost, time and tokens."""
    lines: list[Contents] = []
    for pair in c.pairs:
        for key, declared in RUN_STATISTICS.items():
            for row in c.results.select("difference", key, judge=pair.b, who=pair.a)[:1]:
                values = (c.value(key, pair.b, "", side) for side in "AB")
                difference = Cell(estimate=row.estimate, signed=True, look=_look(key, row.estimate))
                lines.append((pair.name, declared.heading, *values, difference, declared.meaning))
    note = "Of the verdict that counts on each answer, without earlier attempts."
    return Layout(
        "comparison_runs", "Failures, cost and time", ("Judge", "Measure"), (note,),
        ("A", "B", "B − A", "Meaning"),
    ).listing(lines)  # fmt: skip


def _settings_table(c: Comparison) -> Table:
    def short(text: str) -> str:
        return (text[:_MOST_SETTINGS] + " …" if len(text) > _MOST_SETTINGS else text) or DASH

    lines = [
        (pair.name, key, short(a), short(b)) for pair in c.pairs for key, a, b in pair.settings
    ]
    return Layout(
        "comparison_settings", "Settings that are not the same", ("Judge", "Setting"),
        beside=("A", "B"),
    ).listing(lines)  # fmt: skip
