"""The presentation of scorers: tables declared as data, intervals drawn.

Scorers beside humans, which of them say the same, how steady they are, and how the columns of a
table go together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from judgebench.records import Results, Row
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.tables import Cell, Content, Layout, Table, p_cell
from judgebench.scorers.consistency import ANALYSIS, ANSWERS, Consistency
from judgebench.scorers.correlate import Correlations
from judgebench.scorers.measure import (
    BEST_BASELINE,
    GIVEN_SYSTEM,
    MEDIAN,
    TESTED,
    TITLES,
    BesideHumans,
    strength,
)
from judgebench.stats.association import shows_nothing
from judgebench.text import counted, listed

_LEVELS: Mapping[str, str] = {
    "pooled": "Over all answers",
    "within": "Within questions: the mean over those whose answers differ",
    "system": "Over systems",
    GIVEN_SYSTEM: "Over all answers, once the mean of each system is taken off",
}
CEILING = "Median annotator beside the others"
_TURNED = (
    "Scores that are better when higher are turned: a positive coefficient means that the scorer "
    "goes with the humans, who are taken by the mean severity of those who make the reference "
    "labels."
)
_CONTROLS = (
    "A scorer beats the baselines (bold) where the interval of the difference to the best one "
    "(Spearman's rho, over systems Pearson's r, on the answers that both scored) lies above 0 and "
    "a permutation test (Holm, over scorers and metrics) is significant. A control, and a scorer "
    "whose direction nobody declared, counts in the direction in which it does best."
)
_THESE = (
    "Intervals and tests are about these systems. Whether it holds for systems like these is asked "
    "by the |r| that so many systems need."
)
_PAIRS = (
    "Pairwise accuracy: of two answers, how often both humans and scores say the same of which is "
    "worse, or that they are level; scores that differ little count as level, by a threshold that "
    "is best on these answers. By chance: what shuffled scores reach with such a threshold."
)
_CHANCE = "By chance"
_MINUS = f"Minus the {BEST_BASELINE}"
_P = f"p, {BEST_BASELINE}"
_HOLM = "Holm p of r"
_HEADINGS = {heading: heading for heading in (*TITLES.values(), _CHANCE, _MINUS, _P, _HOLM)}
_BRIEF = (TITLES["spearman"], _MINUS)
_BRIEFLY = "How scorers go with the humans' severities"


def scorers_part(found: BesideHumans) -> ReportSection:
    """The part."""
    levels = [level for level in _LEVELS if found.rows.select("association", scope=level)]
    brief = [_level(found, "pooled", _BRIEF)] if levels else []  # none without human labels
    sentences = tuple(_sentences(found))
    blocks = (
        Block("Scorers beside humans", sentences, tuple(brief), on_screen=True),
        Block("At each level", tables=tuple(_level(found, level) for level in levels)),
        redundancy_block(found.rows),
        *steady_blocks(found.rows, found.titles),
        Block("What could not be scored", tables=(_counts(found),), on_screen=True),
    )
    return ReportSection("scorers", "scorers beside humans", found.rows, blocks)


def _sentences(found: BesideHumans) -> Iterator[str]:
    yield from found.references
    for metric, title in found.titles.items():
        yield from _worth(found, metric, title)
    yield from _few_systems(found.rows, "association")
    if not found.titles:
        yield "There are no human labels to hold the scorers against."
    elif not found.rows.select("ceiling"):
        yield "Each answer has one annotator's label: there is no human ceiling to compare with."


def _worth(found: BesideHumans, metric: str, title: str) -> Iterator[str]:
    """Sentences on the worth of the scorers of one metric."""
    keys = {"metric": metric, "scope": "pooled", "kind": "judge"}
    rows = found.rows.select("association", TESTED["pooled"], **keys)
    scorers = sorted(rows, key=strength, reverse=True)
    if not scorers or scorers[0].estimate.value is None:
        reason = scorers[0].estimate.reason if scorers else "there is no scorer but baselines"
        yield f"{title}: nothing can be said; {reason}."
        return
    baseline = _best_baseline(found, metric)
    rival = f"the best baseline, {baseline}" if baseline else "a baseline: there is none"
    better = [row for row in scorers if found.beats_controls(row.judge, metric)]
    if not better:
        yield (
            f"{title}: no scorer is shown to go with the humans more than {rival}; the strongest "
            f"is {_with_rho(scorers[0])}."
        )
        return
    verb = "goes" if len(better) == 1 else "go"
    yield f"{title}: {listed([*map(_with_rho, better)])} {verb} with the humans more than {rival}."


def _few_systems(rows: Results, analysis: str) -> Iterator[str]:
    """What so few systems cannot show, by how many are compared."""
    systems = {row.estimate.n for row in rows.select(analysis, "pearson", scope="system")}
    yield from map(shows_nothing, sorted(systems - {0}))


def _best_baseline(found: BesideHumans, metric: str) -> str:
    """The baseline that the scorers are held against, over all answers."""
    keys = {"metric": metric, "scope": "pooled"}
    compared = found.rows.select("difference", **keys)
    if not compared:
        return ""
    name = compared[0]["who"]
    return _with_rho(found.rows.select("association", TESTED["pooled"], judge=name, **keys)[0])


def _with_rho(row: Row) -> str:
    cell = Cell(estimate=row.estimate)
    return f"{row.judge} (rho {f'{cell.value} {cell.interval}'.strip()})"


def _level(found: BesideHumans, level: str, columns: Sequence[str] | None = None) -> Table:
    """Every coefficient at one level, and one of them beside the best baseline, or some of the
    columns: a line for each scorer of each metric, then one of the baselines each and the median
    annotator."""
    notes = (_TURNED, _PAIRS, _CONTROLS, _THESE if level == "system" else "")
    layout = _layout("scorers", level, ("Metric", "Scorer"), *notes)
    if columns:
        layout = replace(layout, key="scorers_brief", title=_BRIEFLY, notes=(_TURNED, _CONTROLS))

    def line(row: Row) -> tuple[str, str]:
        name = f"{row.judge} (baseline)" if row["kind"] == "control" else row.judge
        return found.titles[row.metric], name or CEILING

    def cell(row: Row) -> Content:
        is_difference = row.analysis == "difference"
        best = is_difference and found.beats_controls(row.judge, row.metric, level)
        return replace(_cell(row), best=best)

    rows = filter(_is_shown, found.rows.select(scope=level))
    return layout.of(rows, line, _heading, columns, cell)


def _layout(table: str, level: str, stubs: tuple[str, ...], *notes: str) -> Layout:
    """The declaration of a table of coefficients at one level."""
    return Layout(f"{table}_{level}", _LEVELS[level], stubs, notes, headings=_HEADINGS, absent=None)


def _is_shown(row: Row) -> bool:
    """True for a coefficient, a difference, a corrected p value, and the median annotator."""
    if row.analysis == "ceiling":
        return row["who"] == MEDIAN
    if row.statistic == "p_holm":
        return row["of"] == "pearson" or bool(row["test"])
    return row.analysis in ("association", "correlation", "chance", "difference")


def _heading(row: Row) -> str:
    if row.analysis == "test":
        return _P if row["test"] else _HOLM
    other = {"chance": _CHANCE, "difference": _MINUS}
    return other.get(row.analysis) or TITLES[row.statistic]


def _cell(row: Row) -> Cell:
    if row.analysis == "test":
        return p_cell(row.estimate)
    if row.analysis == "difference":
        return Cell(estimate=row.estimate, remark=f"beside {row['who']}", signed=True)
    remark = "its direction was not declared" if row["kind"] and not row["better"] else ""
    return Cell(estimate=row.estimate, remark=remark)


def _counts(found: BesideHumans) -> Table:
    """Answers without a score, and scores with a remark."""
    outcome = {"yes": "scored", "no": "no score"}
    columns = ("Answers", "Of", "Outcome")
    layout = Layout("scorers_counts", "Reasons, counted", ("Scorer", "Reason"), beside=columns)
    return layout.listing(
        (row.judge, row["why"], int(row.estimate.value or 0), row.estimate.n, outcome[row["score"]])
        for row in found.rows.select("count")
    )


def redundancy_block(rows: Results, *, on_screen: bool = False) -> Block:
    """The matrix, of two scorers or more."""
    if not (pairs := rows.select("redundancy")):
        return Block()
    title = f"{TITLES[pairs[0].statistic]} of each two scorers"
    matrix = Layout("redundancy", title, ("Scorer",), absent=None).of(
        pairs, lambda row: (row.judge,), lambda row: row["who"], rows.values("judge", "redundancy")
    )
    return Block("Which scorers say the same?", tables=(matrix,), on_screen=on_screen)


_STEADY_HEADINGS = {
    "within_sd": "SD within", "between_sd": "SD between", "icc": "ICC",
    "runs": "Runs for reliability 0.9", "cv": "CV",
    "variance_over_range": "Variance / range",
}  # fmt: skip
_STEADY_NOTES = (
    "SD within: standard deviation of one run; that of a mean of r runs is smaller by the root of "
    "r. SD between: of answers without that noise. ICC: the share of the variance of single runs "
    "that lies between answers.",
    "Reliability 0.9: of so many runs the mean has a standard error of a third of SD between.",
    "Variance / range: as a published comparison of metrics does it; it has the unit of the score, "
    "and a few high scores make a metric near zero look steady. CV: mean of SD / mean, for scales "
    "with a true zero alone.",
)


def consistency_part(found: Consistency) -> ReportSection:
    """The part of the scores of a table alone."""
    blocks = steady_blocks(found.rows, {})
    return ReportSection("consistency", "how steady are the scores?", found.rows, blocks)


def steady_blocks(rows: Results, titles: Mapping[str, str]) -> tuple[Block, ...]:
    """A block for each kind of runs; `titles` are those of metrics by id."""
    return tuple(_steady_block(rows, runs, titles) for runs in rows.values("runs", ANALYSIS))


def _steady_block(rows: Results, runs: str, titles: Mapping[str, str]) -> Block:
    of_scores = [row for row in rows.select(ANALYSIS, runs=runs) if row.judge]

    def line(row: Row) -> tuple[str]:
        return (f"{row.judge}: {titles[row.metric]}" if row.metric in titles else row.judge,)

    units, most = (int(rows.find(k, ANALYSIS, runs=runs).value or 0) for k in ("units", "most"))
    heading, title = f"Robust to {runs}?", f"Answers beside versions of them: {runs}"
    sentence = f"{counted(units, 'answer')} with up to {counted(most - 1, 'version')} each."
    if runs == ANSWERS:
        heading, title = "Is one answer enough?", "Several answers of a system to a question"
        pairs = counted(units, "pair of system and question", "pairs of system and question")
        sentence = f"{pairs} with up to {most} answers each."
    layout = Layout(f"steady_{runs}", title, ("Score",), _STEADY_NOTES, headings=_STEADY_HEADINGS)
    table = layout.of(of_scores, line, cell=_runs_cell)
    return Block(heading, (sentence,), (table,), on_screen=True)


def _runs_cell(row: Row) -> Cell:
    """Numbers of runs are whole."""
    if row.statistic != "runs" or row.estimate.value is None:
        return Cell(estimate=row.estimate)
    return Cell(format(row.estimate, ",.0f"), remark=row.estimate.reason)


def correlations_part(found: Correlations) -> ReportSection:
    """The part."""
    targets = found.rows.values("metric", "correlation")
    levels, tables = found.rows.values("scope", "correlation"), []
    for level in levels:
        # Where a row is a system, the interval is about systems like these.
        note = _THESE if level == "system" and "pooled" in levels else ""
        layout = _layout("correlations", level, ("Beside", "Column"), note)
        rows = (r for r in found.rows if r["scope"] in (level, "") and _is_shown(r))
        tables.append(layout.of(rows, lambda row: (row.metric, row.judge), _heading, cell=_cell))
    sentences = tuple(_columns_in_words(found))
    together = Block("How the columns go together", sentences, tuple(tables), on_screen=True)
    same = redundancy_block(found.rows, on_screen=not targets)
    return ReportSection("correlations", "how scores go together", found.rows, (together, same))


def _columns_in_words(found: Correlations) -> Iterator[str]:
    """Sentences on what so few can show, and how many columns show it."""
    for row in found.rows.select("agreement"):
        yield f"{row.metric}: Krippendorff's α (interval) of {row['raters']} is {row.estimate}."
    yield from _few_systems(found.rows, "correlation")
    for target in found.rows.values("metric", "test"):
        tests = found.rows.select("test", "p_holm", metric=target, of="pearson")
        passed = sum(row.estimate.value is not None and row.estimate.value < 0.05 for row in tests)
        yield (
            f"{target}: {passed or 'none'} of {counted(len(tests), 'column')} with p < .05 after "
            "Holm's correction."
        )
