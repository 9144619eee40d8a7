"""The tables and figures of the scorers.

Scorers beside humans, which of them say the same, how steady they are, and how the columns of a
table go together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from judgebench.records import Estimate
from judgebench.results.layout import Layout
from judgebench.results.part import Block, Drawing, Intervals, Lane, Part
from judgebench.results.rows import Results, Row
from judgebench.results.tables import DASH, Cell, Table, format_number, p_text
from judgebench.scorers.correlate import Correlations
from judgebench.scorers.measure import (
    BESIDE,
    BETWEEN,
    MEDIAN,
    TESTED,
    TESTS,
    TITLES,
    BesideHumans,
    strength,
)
from judgebench.scorers.steady import ANALYSIS, ANSWERS, Consistency
from judgebench.stats.association import COEFFICIENTS, Level, critical_r, shows_nothing
from judgebench.stats.jackknife import NO_WIDTH
from judgebench.stats.redundancy import FAMILY
from judgebench.words import counted, listed, wrapped

_LEVELS: Mapping[Level, str] = {
    "pooled": "Over all answers",
    "within": "Within questions: the mean over those whose answers differ",
    "system": "Over systems: mean scores and mean severities",
}
_COUNTS = Layout(
    "scorers_counts", "Reasons, counted", ("Scorer", "Reason"), (), ("Answers", "Of", "Outcome")
)
_SIGNATURES = Layout(
    "scorers_signatures", "Signatures",
    ("Scorer", "Better", "Signature", "What the scores depend on"),
)  # fmt: skip
CEILING = "Median annotator beside the others"
_TURNED = (
    "Scores that are better when higher are turned: a positive coefficient means that the scorer "
    "goes with the humans, who are taken by the mean severity of those who make the reference "
    "labels."
)
_CONTROLS = (
    "A scorer beats the baselines (bold) where the interval of the difference to the best one lies "
    "above 0 and a permutation test (Holm, over scorers and metrics) is significant. A control, "
    "and a scorer whose direction nobody declared, counts in the direction in which it does best."
)
_DIFFERENCES = "Differences are those of {}, on the answers that both scored; p values are Holm's."
_THESE = (
    "Intervals and permutation tests are about these systems. Whether it holds for systems like "
    "these is asked by Williams' test, and by the |r| that so many systems need."
)
_PAIRS = (
    "Pairwise accuracy: of two answers, how often both humans and scores say the same of which is "
    "worse, or that they are level; scores that differ little count as level, by a threshold that "
    "is best on these answers. By chance: what shuffled scores reach with such a threshold."
)


def scorers_part(found: BesideHumans) -> Part:
    """The part."""
    sentences = tuple(_sentences(found))
    levels = [level for level in _LEVELS if found.rows.select("association", scope=level)]
    tables = tuple(_level(found, level) for level in levels)
    brief = tuple(map(_brief, tables[:1]))  # none where there are no human labels
    figures = tuple(_figures(found))
    same, steady = redundancy_block(found.rows), steady_blocks(found.rows, found.titles)
    blocks = (
        Block("Scorers beside humans", sentences, brief, figures[:1], on_screen=True),
        Block("At each level", tables=tables, figures=figures[1:]),
        same,
        *steady,
        Block("What could not be scored", tables=(_counts(found),), on_screen=True),
        Block("Signatures of the scorers", tables=(_signatures(found),), folded=True),
    )
    first = Block("Scorers beside humans", (*sentences, *same.text), brief)
    screen = (
        first,
        *(replace(block, tables=block.tables if not brief else ()) for block in steady),
    )
    title, paper = "scorers beside humans", (*brief, *tables)
    return Part("scorers", title, found.rows, blocks, screen=screen, paper=paper)


def _sentences(found: BesideHumans) -> Iterator[str]:
    yield from found.references
    for metric, title in found.titles.items():
        yield from _worth(found, metric, title)
    systems = {len(humans.systems) for humans in found.humans.values() if "system" in humans.levels}
    yield from map(shows_nothing, sorted(systems))
    if not found.humans:
        yield "There are no human labels to hold the scorers against."
    elif not found.rows.select("ceiling"):
        yield "Each answer has one annotator's label: there is no human ceiling to compare with."


def _worth(found: BesideHumans, metric: str, title: str) -> Iterator[str]:
    """Sentences on the worth of the scorers of one metric."""
    scorers, groups = found.held(metric, "judge"), found.humans[metric].mean.groups.n
    if not scorers or scorers[0].estimate.value is None:
        reason = scorers[0].estimate.reason if scorers else "there is no scorer but baselines"
        yield f"{title}: nothing can be said; {reason}."
        return
    best, control = scorers[0], _best_control(found, metric, "pooled")
    same, line = found.rows.values("judge", "function"), critical_r(groups)
    better = [row for row in scorers if found.beats_controls(row.judge, metric)]
    better = [row for row in better if row.judge not in same] or better
    most = max(scorers, key=lambda row: abs(row.estimate.value or 0.0))
    if better:
        verb = "goes" if len(better) == 1 else "go"
        names = listed([_with_rho(row) for row in better])
        yield f"{title}: {names} {verb} with the humans more than the best baseline, {control}."
    elif line is not None and abs(most.estimate.value or 0.0) < line:
        yield (
            f"No scorer tells {title}: every |rho| is below {format_number(line)}, which chance "
            f"alone can reach with {counted(groups, 'question')}. The largest is that of "
            f"{_with_rho(most)}."
        )
    elif control:
        yield (
            f"{title}: no scorer is shown to go with the humans more than the best baseline, "
            f"{control}; the strongest is {_with_rho(best)}."
        )
    else:
        yield f"{title}: {_with_rho(best)} goes with the humans most; there is no baseline."
    within = _best_control(found, metric, "within")
    lost = [row.judge for row in better if not found.beats_controls(row.judge, metric, "within")]
    if within and lost:
        yield (
            f"{title}: within questions, which is where systems are compared, {listed(lost)} "
            f"{'is' if len(lost) == 1 else 'are'} not shown to beat the best baseline, {within}."
        )


def _best_control(found: BesideHumans, metric: str, level: Level) -> str:
    """The one that the scorers were held against."""
    about = {"metric": metric, "scope": level}
    names = {row["who"] for row in found.rows.select("difference", beside=BESIDE[0], **about)}
    controls = found.held(metric, "control", level)
    return next((_with_rho(row) for row in controls if row.judge in names), "")


def _with_rho(row: Row) -> str:
    cell = Cell(estimate=row.estimate)
    return f"{row.judge} (rho {f'{cell.value} {cell.interval}'.strip()})"


def _level(found: BesideHumans, level: Level) -> Table:
    """Every coefficient at one level, and one of them beside the best baseline and scorer."""
    compared = [
        heading for beside in BESIDE
        for heading in (f"Minus the {beside}", *(f"{test}, {beside}" for test in TESTS[level]))
    ]  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for metric, title in found.titles.items():
        about = {"metric": metric, "scope": level}
        for first in (
            row for kind in ("judge", "control") for row in found.held(metric, kind, level)
        ):
            of = found.rows.select("association", judge=first.judge, **about)
            of += found.rows.select("chance", judge=first.judge, **about)
            name = f"{first.judge} (baseline)" if first["kind"] == "control" else first.judge
            cells = [_cell(row) for row in of] + [Cell(DASH)] * (len(TITLES) + 1 - len(of))
            rows.append((Cell(title), Cell(name), *cells, *_compared(found, first, level)))
        if ceiling := found.rows.select("ceiling", who=MEDIAN, **about):
            dashes = [Cell(DASH)] * (1 + len(compared))
            rows.append((Cell(title), Cell(CEILING), *map(_cell, ceiling), *dashes))
    columns = ("Metric", "Scorer", *TITLES.values(), "By chance", *compared)
    said = _DIFFERENCES.format(TITLES[TESTED[level]])
    notes = (_TURNED, _PAIRS, said, *((_THESE,) if level == "system" else ()))
    return Table(f"scorers_{level}", _LEVELS[level], columns, tuple(rows), notes, stubs=2)


def _compared(found: BesideHumans, of: Row, level: Level) -> list[Cell]:
    """The differences to the best baseline and to the best scorer, with p values."""
    cells = []
    for beside in BESIDE:
        keys = {"judge": of.judge, "metric": of.metric, "scope": level, "beside": beside}
        row = next(iter(found.rows.select("difference", **keys)), None)
        tests = [found.rows.find("p_holm", test=test, **keys) for test in TESTS[level]]
        best = beside == BESIDE[0] and found.beats_controls(of.judge, of.metric, level)
        cells += [
            Cell(estimate=row.estimate, remark=f"beside {row['who']}", signed=True, best=best)
            if row else Cell(DASH),
            *(Cell(p_text(p.value)) for p in tests),
        ]  # fmt: skip
    return cells


def _brief(whole: Table) -> Table:
    """Of the table over all answers, what is to be read first."""
    difference = f"Minus the {BESIDE[0]}"
    places = [0, 1, whole.columns.index(TITLES["spearman"]), whole.columns.index(difference)]
    rows = tuple(tuple(row[place] for place in places) for row in whole.rows)
    columns = tuple(whole.columns[place] for place in places)
    notes = (_TURNED, _CONTROLS)
    title = "How scorers go with the humans' severities"
    return Table("scorers_brief", title, columns, rows, notes, stubs=2)


def _cell(row: Row) -> Cell:
    remark = "its direction was not declared" if row["kind"] and not row["better"] else ""
    return Cell(estimate=row.estimate, remark=remark)


def _counts(found: BesideHumans) -> Table:
    """Answers without a score, and scores with a remark."""
    outcome = {"yes": "scored", "no": "no score"}
    return _COUNTS.listing(
        (r.judge, r["why"], int(r.estimate.value or 0), r.estimate.n, outcome[r["score"]])
        for r in found.rows.select("count")
    )


def _signatures(found: BesideHumans) -> Table:
    """All that the numbers depend on."""
    rows = []
    for run in found.runs:
        about = {key: value for key, value in run.about.items() if key != "judge"}
        told = "; ".join(f"{key}: {value}" for key, value in about.items())
        better = {"higher": "higher scores", "lower": "lower scores"}.get(run.better, DASH)
        rows.append((run.name, better, run.judged.signature, told))
    return _SIGNATURES.listing(rows)


def _figures(found: BesideHumans) -> Iterator[Intervals]:
    """At each level the scorers beside the controls and the annotators; over systems also what so
    few could show."""
    for level, coefficient in TESTED.items():
        lines = []
        for metric, title in found.titles.items():
            about = {"metric": metric, "scope": level}
            scored = found.rows.select("association", coefficient, **about)
            lanes = [
                Lane(row.judge, "control" if row["kind"] == "control" else "judge", row.estimate)
                for row in scored
            ]
            ceiling = found.rows.select("ceiling", coefficient, who=MEDIAN, **about)
            lanes += [Lane(CEILING, "human", row.estimate) for row in ceiling]
            lines += [(title, tuple(lanes))] if lanes else []
        n = {
            len(h.systems) for h in found.humans.values() if level == "system" and level in h.levels
        }
        needed = {f"needed with {k} systems": critical_r(k) or 1.0 for k in n}
        heading = f"{_LEVELS[level]}: {TITLES[coefficient]} with the humans' severities"
        bounds, key = {"nothing in common": 0.0, **needed}, f"scorers_{level}_{coefficient}"
        axis, limits = TITLES[coefficient], (-1.02, 1.02)
        if lines:
            yield Intervals(key, heading, tuple(lines), axis, bounds, limits)


ALIKE = 0.1
"""Of scorers whose coefficients beside humans are this near each other, one is enough."""
_ALIKE_AT = {"pooled": "over all items", "within": "within groups", "system": "over systems"}
_NUMBERED = 20  # in a larger matrix no number can be read


def _reach(estimate: Estimate) -> float:
    """The largest distance from 0 that it may have."""
    if estimate.low is not None and estimate.high is not None:
        return max(-estimate.low, estimate.high)
    return 0.0 if abs(estimate.value or 0.0) < NO_WIDTH else math.inf


def redundancy_block(rows: Results) -> Block:
    """Sentences, the matrix with its figure, and the families."""
    names = rows.values("judge", "redundancy")
    if len(names) < 2:
        return Block()
    (statistic,) = rows.values("statistic", "redundancy")
    title = f"{TITLES[statistic]} of each two scorers"
    table = Layout("redundancy", title, ("Scorer",)).crossed(
        [((name,), {"judge": name}) for name in names],
        [(name, {"who": name}) for name in names],
        lambda of: None if of["judge"] == of["who"] else rows.find(statistic, "redundancy", **of),
    )
    notes = (
        f"Scorers of a family have an |r| of {FAMILY} or more, on average, here; do not rely on it "
        f"where the interval of this mean goes below {FAMILY}.",
    )
    declared = Layout("families", "Families of scorers", ("Scorers",), notes, ("Mean |r|",))
    shown = declared.listing((_listed(row), row.estimate) for row in rows.select("family"))
    drawing = Drawing("redundancy", title, partial(draw_redundancy, rows, title))
    return Block(
        "Which scorers say the same?", tuple(_families_in_words(rows)), (shown, table), (drawing,)
    )


def _listed(family: Row) -> str:
    return listed(family["members"].split(BETWEEN))


def _families_in_words(rows: Results) -> Iterator[str]:
    for row in rows.select("function"):
        yield (
            f"{row.judge} is a function of {row['who']} ({row['formula']}, y being {row.judge}): "
            "the two say the same, and that they agree counts for nothing."
        )
    alike = [row for row in rows.select("family") if row.estimate.value is not None]
    stable = [
        row for row in alike
        if (row.estimate.low or 0.0) >= FAMILY and (critical_r(row.estimate.n) or 1.0) < FAMILY
    ]  # fmt: skip
    for row in stable:
        how = f"mean |r| {row.estimate:.2f}"
        yield f"{_listed(row)} say nearly the same ({how}){_enough(rows, row['members'])}."
    if unsure := len(alike) - len(stable):
        some = counted(unsure, "family looks", "families look")
        yield (f"{some} alike here, but not surely so: the mean |r| may lie below {FAMILY}.")
    if not alike:
        yield "Beside functions of one another, no two scorers say the same."


def _enough(rows: Results, members: str) -> str:
    """True where one of a family is enough, by how the members go with the humans."""
    apart = [r for r in rows.select("alike", members=members) if r.estimate.value is not None]
    if not apart:
        return "; whether one of them is enough is seen beside the humans' scores"
    row = max(apart, key=lambda row: _reach(row.estimate))
    said = f"{row.judge} and {row['who']} beside {row.metric}, {_ALIKE_AT[row['scope']]}: "
    said += f"{TITLES[row.statistic]} differs by {row.estimate}"
    if _reach(row.estimate) <= ALIKE:
        return f", and go with the humans alike (at most {said}); one of them is enough"
    return f", but one does not stand for the others: less than {ALIKE} is not shown ({said})"


def draw_redundancy(rows: Results, title: str) -> Any:
    """The matrix, like beside like, with a frame around each family."""
    from matplotlib.patches import Rectangle

    from judgebench.results.figure import grid_ticks, ink_on, new_figure

    found = {(row.judge, row["who"]): row.estimate.value for row in rows.select("redundancy")}
    names = rows.values("judge", "redundancy")
    n = len(names)
    given = [[1.0 if a == b else found[a, b] for b in names] for a in names]
    values = np.array(given, dtype=np.float64)  # None is NaN
    figure = new_figure(3.2 + 0.4 * n, 2.4 + 0.34 * n)
    axes = figure.subplots()
    image = axes.imshow(values, cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
    axes.set_facecolor("#eeeeee")
    grounds = image.to_rgba(np.ma.masked_invalid(values))
    for i, j in np.ndindex(values.shape) if n <= _NUMBERED else ():
        text = DASH if np.isnan(values[i, j]) else f"{values[i, j]:.2f}"
        axes.text(j, i, text, ha="center", va="center", fontsize=8.4, color=ink_on(grounds[i, j]))
    for row in rows.select("family"):
        members = [names.index(name) for name in names if name in row["members"].split(BETWEEN)]
        corner, size = (min(members) - 0.5, min(members) - 0.5), max(members) - min(members) + 1
        axes.add_patch(Rectangle(corner, size, size, fill=False, edgecolor="black", linewidth=1.8))
    grid_ticks(axes, names, names, ("", ""))
    axes.set_xticks(range(n), names, rotation=90)
    figure.colorbar(image, ax=axes, fraction=0.03, shrink=0.8, pad=0.02, label="Correlation")
    axes.set_title(
        wrapped(f"{title}; families are framed", max(30, 6 * n)), loc="left", fontsize=10
    )
    return figure


_STEADY_HEADINGS = {
    "within_sd": "SD within", "between_sd": "SD between", "icc": "ICC",
    "runs": "Runs for reliability 0.9", "runs_for_answer": "Runs for an answer",
    "runs_for_system": "Runs for a system", "cv": "CV", "flips": "Order flips",
    "variance_over_range": "Variance / range",
}  # fmt: skip
_STEADY_NOTES = (
    "SD within: standard deviation of one run; that of a mean of r runs is smaller by the root of "
    "r. SD between: of answers without that noise. ICC: the share of the variance of single runs "
    "that lies between answers.",
    "Reliability 0.9: of so many runs the mean has a standard error of a third of SD between. "
    "Order flips: how often two runs put two systems in opposite order; 0.5 is a coin toss.",
    "Variance / range: as a published comparison of metrics does it; it has the unit of the score, "
    "and a few high scores make a metric near zero look steady. CV: mean of SD / mean, for scales "
    "with a true zero alone.",
)
_WANTED = (
    "Runs for an answer, for a system: until the mean score of an answer, or of a system over its "
    "questions, has the standard error that was asked for."
)
_UNSURE = 0.1


def consistency_part(found: Consistency) -> Part:
    """The part of the scores of a table alone."""
    blocks = steady_blocks(found.rows, {})
    return Part("consistency", "how steady are the scores?", found.rows, blocks)


def steady_blocks(rows: Results, titles: Mapping[str, str]) -> tuple[Block, ...]:
    """A block for each kind of runs; `titles` are those of metrics by id."""
    return tuple(_block(rows, runs, titles) for runs in rows.values("runs", ANALYSIS))


def _block(rows: Results, runs: str, titles: Mapping[str, str]) -> Block:
    numbers: dict[str, dict[str, Estimate]] = {}
    for row in (row for row in rows.select(ANALYSIS, runs=runs) if row.judge):
        name = row.judge + (f": {titles.get(row.metric, row.metric)}" if row.metric else "")
        numbers.setdefault(name, {})[row.statistic] = row.estimate
    columns = [key for key in _STEADY_HEADINGS if any(key in by for by in numbers.values())]
    cells = ((Cell(name), *(_runs_cell(k, by[k]) for k in columns)) for name, by in numbers.items())
    units, most = (int(rows.find(k, ANALYSIS, runs=runs).value or 0) for k in ("units", "most"))
    pairs = counted(units, "pair of system and question", "pairs of system and question")
    if runs == ANSWERS:
        heading, title = "Is one answer enough?", "Several answers of a system to a question"
        said = f"{pairs} with up to {most} answers each."
    else:
        heading, title = f"Robust to {runs}?", f"Answers beside versions of them: {runs}"
        said = f"{counted(units, 'answer')} with up to {counted(most - 1, 'version')} each."
    headings = ("Score", *(_STEADY_HEADINGS[key] for key in columns))
    notes = (*_STEADY_NOTES, *([_WANTED] if "runs_for_answer" in columns else ()))
    table = Table(f"steady_{runs}", title, headings, tuple(cells), notes)
    lines = tuple((name, (Lane("ICC", "judge", by["icc"]),)) for name, by in numbers.items())
    axis = "ICC: share of the variance that lies between answers"
    figure = Intervals(f"steady_{runs}", heading, lines, axis, down="Score")
    return Block(heading, (said, *_conclusions(numbers)), (table,), (figure,), on_screen=True)


def _runs_cell(key: str, estimate: Estimate) -> Cell:
    """Numbers of runs are whole."""
    if not key.startswith("runs") or estimate.value is None:
        return Cell(estimate=estimate)
    return Cell(format(estimate, ",.0f"), remark=estimate.reason)


def _conclusions(numbers: Mapping[str, Mapping[str, Estimate]]) -> Iterator[str]:
    """The conclusions for a reader, as far as the intervals bear it out, and where the two ways to
    see noise disagree."""
    ends = {name: {k: _ends(e) for k, e in by.items()} for name, by in numbers.items()}
    if unsure := [name for name, by in numbers.items() if (by["flips"].value or 0) > _UNSURE]:
        yield (
            f"Do not rank systems by one run of {listed(unsure)}: two runs put two systems in "
            f"opposite order in more than {_UNSURE:.0%} of cases."
        )
    if constant := [name for name, by in numbers.items() if by["within_sd"].value == 0]:
        yield f"{listed(constant)}: every run of an answer has the same score."
    if noisy := [name for name, by in ends.items() if by["icc"][1] < 0.5]:
        yield f"{listed(noisy)}: more than half of the variance of scores is noise (ICC < 0.5)."
    odd = [
        (ends[b]["icc"][0] - ends[a]["icc"][1], a, b)
        for a, of in numbers.items()
        for b, to in numbers.items()
        if (of["variance_over_range"].value or 0) < (to["variance_over_range"].value or 0)
    ]
    if odd and max(odd)[0] > 0:
        _, a, b = max(odd)
        (u, i), (v, j) = ([numbers[c][k] for k in ("variance_over_range", "icc")] for c in (a, b))
        yield (
            f"Divided by its range, {a} looks steadier than {b} ({u.value:.3g} against "
            f"{v.value:.3g}); beside the differences between answers it is noisier (ICC {i} "
            f"against {j})."
        )


def _ends(estimate: Estimate) -> tuple[float, float]:
    """The interval, and what bears nothing out where there is none."""
    low, high = estimate.low, estimate.high
    return (-inf, inf) if low is None or high is None else (low, high)


_COLUMNS_AT = {
    "pooled": "over all items", "within": "within groups, the mean of those that vary",
    "system": "over systems",
}  # fmt: skip
_ONLY_THESE = (
    "Intervals are about these systems. What would hold for systems like these depends on how many "
    "they are."
)
_MANY = 50  # systems show also what is weak
_STRONGEST = 12  # columns on a screen


def correlations_part(found: Correlations) -> Part:
    """The part."""
    against = found.rows.values("metric", "correlation")
    levels = found.rows.values("scope", "correlation")
    tables = [_columns_table(found, one, level) for one in against for level in levels]
    figures = tuple(_columns_figure(found, one) for one in against)
    sentences = tuple(_columns_in_words(found))
    held = Block("How the columns go together", sentences, tuple(tables), figures, on_screen=True)
    same = replace(redundancy_block(found.rows), on_screen=not against)
    brief = replace(held, tables=tuple(map(_strongest, tables)), figures=())
    screen = (brief, replace(same, tables=(), figures=()))
    return Part("correlations", "how scores go together", found.rows, (held, same), screen=screen)


def _strongest(table: Table) -> Table:
    """Its strongest columns."""
    left = len(table.rows) - _STRONGEST
    notes = (f"And {counted(left, 'weaker column')}, with -v.",) if left > 0 else ()
    return replace(table, rows=table.rows[:_STRONGEST], notes=(*table.notes, *notes))


def _columns_in_words(found: Correlations) -> Iterator[str]:
    """Sentences on what is no system, what so few can show, and how many columns show it."""
    yield from found.references
    systems = {
        row.estimate.n for row in found.rows.select("correlation", "pearson", scope="system")
    }
    yield from map(shows_nothing, sorted(n for n in systems if n < _MANY))
    for one in found.rows.values("metric", "test"):
        about = {"metric": one, "of": "pearson"}
        raw, holm = (
            [r.estimate.value for r in found.rows.select("test", key, **about)]
            for key in ("p", "p_holm")
        )
        tested = [p for p in raw if p is not None]
        passed, left = (sum(p is not None and p < 0.05 for p in ps) for ps in (raw, holm))
        yield (
            f"{one}: {passed} of {counted(len(tested), 'column')} with p < .05, where chance alone "
            f"gives {0.05 * len(tested):.2g}; after Holm's correction {left or 'none'}."
        )


def _columns_table(found: Correlations, against: str, level: str) -> Table:
    """A row for each column, the strongest first."""
    about = {"metric": against, "scope": level}
    pearson = found.rows.select("correlation", "pearson", **about)
    rows = sorted(pearson, key=strength, reverse=True)
    statistics = [c for c in COEFFICIENTS if found.rows.select("correlation", c, **about)]
    chance = bool(found.rows.select("chance", **about))
    tested = bool(found.rows.select("test", metric=against))
    headings = [TITLES[s] for s in statistics] + ["By chance"] * chance + ["Holm p of r"] * tested
    lines = []
    for row in rows:
        of = {"judge": row.judge, **about}
        cells = [Cell(estimate=found.rows.find(s, "correlation", **of)) for s in statistics]
        beside = [found.rows.find("pairwise", "chance", **of)] * chance
        holm = found.rows.find("p_holm", "test", of="pearson", judge=row.judge, metric=against)
        cells += [Cell(p_text(one.value)) for one in (*beside, *[holm] * tested)]
        lines.append((Cell(row.judge), *cells))
    title = f"Columns beside {against}, {_COLUMNS_AT[level]}"
    notes = (_ONLY_THESE,) if level == "system" and not tested else ()
    columns = ("Column", *headings)
    return Table(f"correlations_{level}_{against}", title, columns, tuple(lines), notes)


def _columns_figure(found: Correlations, against: str) -> Intervals:
    """Pearson's r of every column, with what so many systems could show."""
    rows = found.rows.select("correlation", "pearson", metric=against)
    by_column: dict[str, list[Row]] = {}
    for row in rows:
        by_column.setdefault(row.judge, []).append(row)
    lines = tuple(
        (column, tuple(Lane(_COLUMNS_AT[row["scope"]], "judge", row.estimate) for row in of))
        for column, of in by_column.items()
    )
    bounds = {"no correlation": 0.0}
    n = max((row.estimate.n for row in rows if row["scope"] == "system"), default=0)
    if least := critical_r(n):
        bounds |= {f"needed with {n} systems": least, "the same, negative": -least}
    title = f"Pearson's r of every column with {against}"
    key = f"correlations_{against}"
    return Intervals(key, title, lines, "Pearson's r", bounds, (-1.02, 1.02), "Column")
