"""What is shown of a comparison: differences, decisions that changed, verdicts that flipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from judgebench.alignment.differences import TESTED
from judgebench.comparison.decisions import Changed
from judgebench.comparison.differences import CHANGES, DECLARED, RUN_STATISTICS
from judgebench.comparison.gate import COUNTED
from judgebench.comparison.result import Comparison, PairSummary
from judgebench.records import Estimate
from judgebench.results.part import Block, Intervals, Lane, Part
from judgebench.results.rows import Row
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
_POLICIES = {
    "left_out": "left out", "worst": "counted as wrong", "best": "counted as right",
}  # fmt: skip
OUTCOMES_ALIKE = "No decision changed."
TITLE = "what changed from A to B"
DECIDED_ANEW = (
    "Both are decided anew on the answers that are compared, with the human labels named above."
)
NOTHING_FLIPPED = "No label changed."
NOTHING_SHOWN = (
    "Neither is shown to be better in accuracy, severe recall or the share without a label."
)
_MINUS = "Difference: B minus A on the same answers, with whole questions as units."
_AS_WRONG = "B − A, no label is wrong"
_SEVERE = "Severe recall, B − A"
_CHANGED = "Labels changed (to right, to wrong)"
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
        ("Answers", (f"{c.n_answers:,} compared",)),
        ("Decisions", (f"{changed} changed, {fell} of them to less",)),
        ("Verdicts", (f"{counted(len(c.flips.results.rows), 'label')} changed",)),
        ("Runs", tuple(f"{side}: {run}" for side, run in zip("AB", c.runs, strict=True))),
    )
    paper = (_narrow(main),)
    return Part("comparison", TITLE, c.results, blocks, c.notes, facts, screen, paper)


def _narrow(main: Table) -> Table:
    """The columns of the main table that a page of paper has room for."""
    left_out = (_AS_WRONG, _SEVERE, _CHANGED, "Decision")
    kept = [i for i, name in enumerate(main.columns) if name not in left_out]

    def cut(row: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(row[i] for i in kept)

    rows = tuple(map(cut, main.rows))
    return replace(main, columns=cut(main.columns), rows=rows, notes=main.notes[:-1])


def _about(c: Comparison, pair: PairSummary, metric: str) -> tuple[Cell, ...]:
    """The cells that name a row: the metric, and the judge where there are several."""
    judge = (Cell(pair.name),) if len(c.pairs) > 1 else ()
    return (*judge, Cell(c.title(metric)))


def _stubs(c: Comparison) -> tuple[str, ...]:
    return ("Judge", "Metric") if len(c.pairs) > 1 else ("Metric",)


def _lines(c: Comparison) -> Iterator[tuple[PairSummary, str]]:
    yield from ((pair, metric.id) for pair in c.pairs for metric in c.rubric.metrics)


# --- at a glance ----------------------------------------------------------------------------------


def _main_table(c: Comparison) -> Table:
    """Accuracy of both, the difference, whether chance explains it, severe recall, flips, and what
    is decided."""
    made = {(one.judge, one.who, one.metric): one for one in c.decisions}
    rows, policies = [], ["left_out", "worst"] if c.failures else ["left_out"]
    for pair, metric in _lines(c):
        a, b = (c.value("accuracy", pair.b, metric, side) for side in "AB")
        decided = made.get((pair.b, pair.a, metric))
        rows.append(
            (
                *_about(c, pair, metric),
                Cell(format_number(a.value)), Cell(format_number(b.value)),
                *(difference_cell(c, "accuracy", pair, metric, policy) for policy in policies),
                p_cell(c.p_holm(pair.b, metric, failures=COUNTED)),
                difference_cell(c, "severe_recall", pair, metric, COUNTED),
                Cell(flips_of(c, pair, metric)),
                *([_outcomes(decided)] if c.decisions else []),
            )
        )  # fmt: skip
    columns = (
        *_stubs(c), "Accuracy A", "B", "B − A",
        *([_AS_WRONG] if c.failures else []),
        "p after Holm", _SEVERE, _CHANGED, *(["Decision"] if c.decisions else []),
    )  # fmt: skip
    note = (
        "Labels changed: of all answers; in brackets those that B has right and A had wrong, and "
        "the other way round."
    )
    return Table(
        "comparison_main", "B beside A on the same answers", columns, tuple(rows),
        (_MINUS, *([_WRONG_TOO] if c.failures else []), _HOLM, note), stubs=len(_stubs(c)),
    )  # fmt: skip


def _screen_table(c: Comparison) -> Table:
    """The same in fewer columns, as texts; a missing label counts as wrong."""
    made = {(one.judge, one.who, one.metric): one for one in c.decisions}
    rows = []
    for pair, metric in _lines(c):
        values = (c.value("accuracy", pair.b, metric, side, COUNTED).value for side in "AB")
        found = difference_cell(c, "accuracy", pair, metric, COUNTED)
        cells = (
            Cell(" → ".join(map(format_number, values))),
            Cell(f"{found.value}\n{found.interval}".strip(), look=found.look),
            Cell(flips_of(c, pair, metric)),
        )
        decided = [_outcomes(made.get((pair.b, pair.a, metric)))] if c.decisions else []
        rows.append((*_about(c, pair, metric), *cells, *decided))
    columns = (
        *_stubs(c), "Accuracy A → B", "B − A", "Labels changed",
        *(["Decision"] if c.decisions else []),
    )  # fmt: skip
    note = "Labels changed: in brackets from wrong to right (+), from right to wrong (−)."
    wrong = ("A missing label counts as wrong.",) if c.failures else ()
    return Table(
        "comparison_screen", "B beside A on the same answers", columns, tuple(rows), (*wrong, note),
        stubs=len(_stubs(c)),
    )  # fmt: skip


def _shown(c: Comparison) -> Iterator[str]:
    """What is shown to be worse or better in B, or that nothing is."""
    found: dict[str, dict[str, list[str]]] = {"worse": {}, "better": {}}
    for pair, metric in _lines(c):
        for key in _JUDGED_BY:
            e = c.difference(key, pair.b, metric, COUNTED)
            if e.value and c.is_shown(key, pair.b, metric, COUNTED):
                rises = DECLARED[key].best == "higher"
                name = f"{c.title(metric)} ({pair.name})" if len(c.pairs) > 1 else c.title(metric)
                of_word = found["better" if (e.value > 0) == rises else "worse"]
                of_word.setdefault(key, []).append(
                    f"{name} ({format_number(e.value, signed=True)})"
                )
    for word, said in found.items():
        if said:
            parts = (f"{_JUDGED_BY[key]} of {_some(names)}" for key, names in said.items())
            yield f"B is shown to be {word}: {'; '.join(parts)}."
    if not any(found.values()):
        yield NOTHING_SHOWN


def _some(names: list[str]) -> str:
    """`a, b, c and 2 more metrics`."""
    more = len(names) - _MOST_NAMED
    return listed([*names[:_MOST_NAMED], counted(more, "more metric")] if more > 1 else names)


def _flipped_said(c: Comparison) -> str:
    """How many labels changed, and the first of those that became wrong."""
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


def difference_cell(
    c: Comparison, statistic: str, pair: PairSummary, metric: str, failures: str = "left_out"
) -> Cell:
    """A difference, coloured where its interval lies on one side of 0."""
    found = c.difference(statistic, pair.b, metric, failures)
    return Cell(estimate=found, signed=True, look=_look(statistic, found))


def _look(statistic: str, e: Estimate) -> Look:
    best = DECLARED[statistic].best
    if best == "zero" or e.low is None or e.high is None or e.low <= 0 <= e.high:
        return ""
    return "good" if (e.low > 0) == (best == "higher") else "bad"


def flips_of(c: Comparison, pair: PairSummary, metric: str) -> str:
    """`12 (+3, −5)`."""
    found = c.flips.results.select("flip", judge=pair.b, metric=metric, who=pair.a)
    right = [row["right"] for row in found]
    return f"{len(found):,} (+{right.count('B'):,}, −{right.count('A'):,})" if found else "0"


def _outcomes(decided: Changed | None) -> Cell:
    if decided is None:
        return Cell(DASH)
    a, b = decided.outcomes
    if not decided.differs:
        return Cell(b)
    return Cell(f"{a} → {b}", look="bad" if decided.fell else "fair")


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
    yield Block("Their conditions", tables=(_conditions_table(c),), folded=True, on_screen=True)


def _conditions_table(c: Comparison) -> Table:
    """Every condition of the decisions that changed, in A and in B."""
    rows = []
    for one in c.decisions if any(d.differs for d in c.decisions) else ():
        a, b = one.conditions
        for key in dict.fromkeys((*a, *b)) if one.differs else ():
            row = b.get(key) or a[key]
            cells = (cell for side in (a, b) for cell in _condition_cells(side.get(key)))
            about = Cell(one.judge), Cell(c.title(one.metric)), Cell(f"{key[0]}: {row['title']}")
            rows.append((*about, Cell(_bound(row)), *cells))
    return Table(
        "comparison_conditions", "Every condition of the decisions that changed",
        ("Judge", "Metric", "Condition", "Bound", "A", "State in A", "B", "State in B"),
        tuple(rows), stubs=3,
    )  # fmt: skip


def _bound(row: Row) -> str:
    return f"{'≥' if row['at_least'] == 'true' else '≤'} {float(row['bound']):g}"


def _condition_cells(row: Row | None) -> tuple[Cell, Cell]:
    if row is None:
        return Cell(DASH, remark="not measured"), Cell(DASH)
    looks: dict[str, Look] = {"met": "good", "not met": "bad"}
    state = row["state"]
    return Cell(estimate=row.estimate), Cell(state, look=looks.get(state, "unclear"))


# --- what it rests on -----------------------------------------------------------------------------


def _evidence(c: Comparison) -> Iterator[Block]:
    figures = tuple(figure for key in _DRAWN if (figure := _forest(c, key)).lines)
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
    rows = tuple(
        (
            Cell(row["item_id"]), *((Cell(row.judge),) if len(c.pairs) > 1 else ()),
            Cell(c.title(row.metric)), Cell(row["label_a"] or DASH), Cell(row["label_b"] or DASH),
            Cell(row["truth"] or DASH), Cell(row["right"], look=_LOOKS.get(row["right"], "")),
        )
        for row in first[:MOST_FLIPS_SHOWN]
    )  # fmt: skip
    columns = ("Answer", *_stubs(c), "Label of A", "Label of B", "Truth", "Right")
    cut = (
        f"{counted(len(found), 'label')} changed; the first {len(rows)} are listed here, "
        "all of them in flips.csv."
        if len(found) > len(rows)
        else f"{counted(len(found), 'label')} changed; they are in flips.csv, too."
    )
    table = Table(
        "comparison_flips", "Labels that changed", columns, rows,
        ("Those that A had right and B has wrong come first. A dash is no label.",),
        stubs=1 + len(_stubs(c)),
    )  # fmt: skip
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
    for declared in (d for key, d in DECLARED.items() if key in measured):
        if declared.key in RUN_STATISTICS:
            continue
        three = len({r["failures"] for r in c.results.select("difference", declared.key)}) > 1
        policies = [*_POLICIES] if three else ["left_out"]
        tested = declared.key in TESTED
        rows = []
        for pair, metric in _lines(c):
            if not c.results.select("difference", declared.key, judge=pair.b, metric=metric):
                continue
            values = (c.value(declared.key, pair.b, metric, side) for side in "AB")
            cells = (difference_cell(c, declared.key, pair, metric, p) for p in policies)
            p = [p_cell(c.p_holm(pair.b, metric, declared.key))] if tested else []
            shown = (Cell(estimate=e, signed=declared.signed) for e in values)
            rows.append((*_about(c, pair, metric), *shown, *cells, *p))
        heads = ["B − A", *(f"B − A, failures {_POLICIES[p]}" for p in policies[1:])]
        best = {"higher": "more is better", "lower": "less is better", "zero": "0 is best"}
        yield Table(
            f"comparison_{declared.key}", declared.heading,
            (*_stubs(c), "A", "B", *heads, *(["p after Holm"] if tested else [])), tuple(rows),
            (f"{declared.heading}: {declared.meaning}; {best[declared.best]}.", _MINUS),
            stubs=len(_stubs(c)),
        )  # fmt: skip


def _changes_table(c: Comparison) -> Table:
    rows = tuple(
        (
            *_about(c, pair, metric),
            *(
                Cell(
                    estimate=c.results.find(key, "change", judge=pair.b, metric=metric, who=pair.a),
                    signed=key == "mean_shift",
                )
                for key in CHANGES
            ),
        )
        for pair, metric in _lines(c)
    )
    notes = tuple(f"{d.heading}: {d.meaning}." for d in CHANGES.values())
    columns = (*_stubs(c), *(d.heading for d in CHANGES.values()))
    return Table(
        "comparison_changes", "How many labels changed", columns, rows, notes, len(_stubs(c))
    )


def _runs_table(c: Comparison) -> Table:
    """Statuses, cost, time and tokens."""
    rows = []
    for pair in c.pairs:
        for declared in RUN_STATISTICS.values():
            found = c.results.select("difference", declared.key, judge=pair.b, who=pair.a)
            if not found:
                continue
            values = (c.value(declared.key, pair.b, "", side) for side in "AB")
            difference = found[0].estimate
            rows.append(
                (
                    Cell(pair.name), Cell(declared.heading),
                    *(Cell(estimate=e) for e in values),
                    Cell(estimate=difference, signed=True, look=_look(declared.key, difference)),
                    Cell(declared.meaning),
                )
            )  # fmt: skip
    note = "Of the verdict that counts on each answer, without earlier attempts."
    return Table(
        "comparison_runs", "Failures, cost and time",
        ("Judge", "Measure", "A", "B", "B − A", "Meaning"), tuple(rows), (note,), stubs=2,
    )  # fmt: skip


def _settings_table(c: Comparison) -> Table:
    rows = tuple(
        (Cell(pair.name), Cell(key), *(Cell(_short(value)) for value in (a, b)))
        for pair in c.pairs
        for key, a, b in pair.settings
    )
    return Table(
        "comparison_settings", "Settings that are not the same", ("Judge", "Setting", "A", "B"),
        rows, stubs=2,
    )  # fmt: skip


def _short(text: str) -> str:
    return (text[:_MOST_SETTINGS] + " …" if len(text) > _MOST_SETTINGS else text) or DASH
