"""The presentation of scorers: tables declared as data, intervals drawn.

Scorers beside humans, which of them say the same, how steady they are, and how the columns of a
table go together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from judgebench.records import Estimate, Results, Row
from judgebench.results.blocks import Block, Intervals, LabelledInterval, ReportSection
from judgebench.results.tables import DASH, Cell, Content, Layout, Table, format_number, p_cell
from judgebench.scorers.consistency import ANALYSIS, ANSWERS, Consistency
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
from judgebench.stats.association import Level, critical_r, shows_nothing
from judgebench.stats.intervals import NO_WIDTH
from judgebench.stats.repeated_measures import FAMILY
from judgebench.text import counted, listed

_LEVELS: Mapping[Level, str] = {
    "pooled": "Over all answers",
    "within": "Within questions: the mean over those whose answers differ",
    "system": "Over systems: mean scores and mean severities",
}
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
_CHANCE = "By chance"


def scorers_part(found: BesideHumans) -> ReportSection:
    """The part."""
    sentences = tuple(_sentences(found))
    levels = [level for level in _LEVELS if found.rows.select("association", scope=level)]
    tables = tuple(_level(found, level) for level in levels)
    brief = (_brief(found),) if levels else ()  # none where there are no human labels
    figures = tuple(_figure(found, level) for level in levels)
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
    repeated = (replace(block, tables=()) for block in steady) if brief else steady
    title, paper = "scorers beside humans", (*brief, *tables)
    return ReportSection(
        "scorers", title, found.rows, blocks, screen=(first, *repeated), paper=paper
    )


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
    """The baseline that the scorers are held against."""
    keys = {"metric": metric, "scope": level}
    compared = found.rows.select("difference", beside=BESIDE[0], **keys)
    if not compared:
        return ""
    name = compared[0]["who"]
    return _with_rho(found.rows.select("association", TESTED[level], judge=name, **keys)[0])


def _with_rho(row: Row) -> str:
    cell = Cell(estimate=row.estimate)
    return f"{row.judge} (rho {f'{cell.value} {cell.interval}'.strip()})"


def _level(found: BesideHumans, level: Level) -> Table:
    """Every coefficient at one level, and one of them beside the best baseline and scorer."""
    compared = [
        heading
        for beside in BESIDE
        for heading in (f"Minus the {beside}", *(f"{test}, {beside}" for test in TESTS[level]))
    ]
    differences = _DIFFERENCES.format(TITLES[TESTED[level]])
    notes = (_TURNED, _PAIRS, differences, _THESE if level == "system" else "")
    layout = Layout(f"scorers_{level}", _LEVELS[level], ("Metric", "Scorer"), notes, absent=None)
    return _beside_humans(found, level, layout, [*TITLES.values(), _CHANCE, *compared])


def _brief(found: BesideHumans) -> Table:
    """Of the table over all answers, what is to be read first."""
    title = "How scorers go with the humans' severities"
    notes = (_TURNED, _CONTROLS)
    layout = Layout("scorers_brief", title, ("Metric", "Scorer"), notes, absent=None)
    return _beside_humans(found, "pooled", layout, [TITLES["spearman"], f"Minus the {BESIDE[0]}"])


def _beside_humans(
    found: BesideHumans, level: Level, layout: Layout, columns: Iterable[str]
) -> Table:
    """A line for each scorer of each metric, the strongest first, then one of the baselines each
    and the median annotator."""
    order = [
        (metric, judge)
        for metric in found.titles
        for judge in (*_ordered(found, metric, level), "")
    ]
    baselines = {row.judge for row in found.rows.select("association", kind="control")}
    rows = [row for row in found.rows.select(scope=level) if _is_shown(row)]
    rows = [row for row in rows if (row.metric, row.judge) in order]

    def line(row: Row) -> tuple[str, str]:
        name = f"{row.judge} (baseline)" if row.judge in baselines else row.judge
        return found.titles[row.metric], name or CEILING

    def cell(row: Row) -> Content:
        best = row["beside"] == BESIDE[0] and found.beats_controls(row.judge, row.metric, level)
        return replace(_cell(row), best=best and row.analysis == "difference")

    rows.sort(key=lambda row: order.index((row.metric, row.judge)))
    return layout.of(rows, line, _heading, columns, cell)


def _ordered(found: BesideHumans, metric: str, level: Level) -> list[str]:
    return [row.judge for kind in ("judge", "control") for row in found.held(metric, kind, level)]


def _is_shown(row: Row) -> bool:
    """True for a coefficient, a difference, a corrected p value, and the median annotator."""
    if row.analysis == "ceiling":
        return row["who"] == MEDIAN
    return row.analysis in ("association", "chance", "difference") or row.statistic == "p_holm"


def _heading(row: Row) -> str:
    if row.analysis == "chance":
        return _CHANCE
    if row.analysis == "difference":
        return f"Minus the {row['beside']}"
    if row.analysis == "test":
        return f"{row['test']}, {row['beside']}" if row["beside"] else "Holm p of r"
    return TITLES[row.statistic]


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


def _signatures(found: BesideHumans) -> Table:
    """All that the numbers depend on."""
    layout = Layout(
        "scorers_signatures", "Signatures",
        ("Scorer", "Better", "Signature", "What the scores depend on"),
    )  # fmt: skip
    settings = (
        "; ".join(f"{key}: {value}" for key, value in run.about.items() if key != "judge")
        for run in found.runs
    )
    return layout.listing(
        (run.name, run.better or DASH, run.judged.signature, text)
        for run, text in zip(found.runs, settings, strict=True)
    )


def _figure(found: BesideHumans, level: Level) -> Intervals:
    """The scorers beside the baselines and the median annotator."""
    coefficient = TESTED[level]
    rows = found.rows.select("association", coefficient, scope=level)
    rows += found.rows.select("ceiling", coefficient, scope=level, who=MEDIAN)
    lanes = (
        (found.titles[row.metric],
         LabelledInterval(row.judge, "control" if row["kind"] == "control" else "judge",
                          row.estimate)
         if row.judge else LabelledInterval(CEILING, "human", row.estimate))
        for row in rows
    )  # fmt: skip
    heading = f"{_LEVELS[level]}: {TITLES[coefficient]} with the humans' severities"
    bounds, limits = {"nothing in common": 0.0}, (-1.02, 1.02)
    key = f"scorers_{level}_{coefficient}"
    return Intervals(key, heading, _lines(lanes), TITLES[coefficient], bounds, limits)


def _lines(
    lanes: Iterable[tuple[str, LabelledInterval]],
) -> tuple[tuple[str, tuple[LabelledInterval, ...]], ...]:
    """The lanes by the name of their line."""
    by_line: dict[str, list[LabelledInterval]] = {}
    for name, lane in lanes:
        by_line.setdefault(name, []).append(lane)
    return tuple((name, tuple(of_line)) for name, of_line in by_line.items())


ALIKE = 0.1
"""Of scorers whose coefficients beside humans are this near each other, one is enough."""
_ALIKE_AT = {"pooled": "over all items", "within": "within groups", "system": "over systems"}


def _reach(estimate: Estimate) -> float:
    """The largest distance from 0 that it may have."""
    if estimate.low is not None and estimate.high is not None:
        return max(-estimate.low, estimate.high)
    return 0.0 if abs(estimate.value or 0.0) < NO_WIDTH else math.inf


def redundancy_block(rows: Results) -> Block:
    """Sentences, the matrix, and the families."""
    names = rows.values("judge", "redundancy")
    if len(names) < 2:
        return Block()
    pairs = rows.select("redundancy")
    title = f"{TITLES[pairs[0].statistic]} of each two scorers"
    matrix = Layout("redundancy", title, ("Scorer",), absent=None).of(
        pairs, lambda row: (row.judge,), lambda row: row["who"], names
    )
    notes = (
        f"Scorers of a family have an |r| of {FAMILY} or more, on average, here; do not rely on it "
        f"where the interval of this mean goes below {FAMILY}.",
    )
    layout = Layout("families", "Families of scorers", ("Scorers",), notes, ("Mean |r|",))
    families = layout.listing((_listed(row), row.estimate) for row in rows.select("family"))
    sentences = tuple(_families_in_words(rows))
    return Block("Which scorers say the same?", sentences, (families, matrix))


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


def consistency_part(found: Consistency) -> ReportSection:
    """The part of the scores of a table alone."""
    blocks = steady_blocks(found.rows, {})
    return ReportSection("consistency", "how steady are the scores?", found.rows, blocks)


def steady_blocks(rows: Results, titles: Mapping[str, str]) -> tuple[Block, ...]:
    """A block for each kind of runs; `titles` are those of metrics by id."""
    return tuple(_block(rows, runs, titles) for runs in rows.values("runs", ANALYSIS))


def _block(rows: Results, runs: str, titles: Mapping[str, str]) -> Block:
    of_scores = [row for row in rows.select(ANALYSIS, runs=runs) if row.judge]

    def name(row: Row) -> str:
        return f"{row.judge}: {titles.get(row.metric, row.metric)}" if row.metric else row.judge

    units, most = (int(rows.find(k, ANALYSIS, runs=runs).value or 0) for k in ("units", "most"))
    if runs == ANSWERS:
        heading, title = "Is one answer enough?", "Several answers of a system to a question"
        pairs = counted(units, "pair of system and question", "pairs of system and question")
        sentence = f"{pairs} with up to {most} answers each."
    else:
        heading, title = f"Robust to {runs}?", f"Answers beside versions of them: {runs}"
        versions = counted(most - 1, "version")
        sentence = f"{counted(units, 'answer')} with up to {versions} each."
    are_wanted = any(row.statistic == "runs_for_answer" for row in of_scores)
    notes = (*_STEADY_NOTES, _WANTED if are_wanted else "")
    table = Layout(f"steady_{runs}", title, ("Score",), notes, headings=_STEADY_HEADINGS).of(
        of_scores, lambda row: (name(row),), cell=_runs_cell
    )
    icc = [row for row in of_scores if row.statistic == "icc"]
    lines = _lines((name(row), LabelledInterval("ICC", "judge", row.estimate)) for row in icc)
    axis = "ICC: share of the variance that lies between answers"
    figure = Intervals(f"steady_{runs}", heading, lines, axis, down="Score")
    conclusions = _conclusions([(name(row), row) for row in of_scores])
    return Block(heading, (sentence, *conclusions), (table,), (figure,), on_screen=True)


def _runs_cell(row: Row) -> Cell:
    """Numbers of runs are whole."""
    e = row.estimate
    if not row.statistic.startswith("runs") or e.value is None:
        return Cell(estimate=e)
    return Cell(format(e, ",.0f"), remark=e.reason)


def _conclusions(rows: Iterable[tuple[str, Row]]) -> Iterator[str]:
    """The conclusions for a reader, as far as the intervals bear it out."""
    estimates = [(name, row.statistic, row.estimate) for name, row in rows]
    unsure = [n for n, key, e in estimates if key == "flips" and (e.value or 0) > _UNSURE]
    constant = [n for n, key, e in estimates if key == "within_sd" and e.value == 0]
    noisy = [n for n, key, e in estimates if key == "icc" and e.high is not None and e.high < 0.5]
    if unsure:
        yield (
            f"Do not rank systems by one run of {listed(unsure)}: two runs put two systems in "
            f"opposite order in more than {_UNSURE:.0%} of cases."
        )
    if constant:
        yield f"{listed(constant)}: every run of an answer has the same score."
    if noisy:
        yield f"{listed(noisy)}: more than half of the variance of scores is noise (ICC < 0.5)."


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


def correlations_part(found: Correlations) -> ReportSection:
    """The part."""
    against = found.rows.values("metric", "correlation")
    levels = found.rows.values("scope", "correlation")
    tables = [_columns_table(found, one, level) for one in against for level in levels]
    figures = tuple(_columns_figure(found, one) for one in against)
    sentences = tuple(_columns_in_words(found))
    together = Block(
        "How the columns go together", sentences, tuple(tables), figures, on_screen=True
    )
    same = replace(redundancy_block(found.rows), on_screen=not against)
    brief = replace(together, tables=tuple(map(_strongest, tables)), figures=())
    screen = (brief, replace(same, tables=(), figures=()))
    return ReportSection("correlations", "how scores go together", found.rows, (together, same),
                screen=screen)  # fmt: skip


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
    keys = {"metric": against, "scope": level}
    pearson = found.rows.select("correlation", "pearson", **keys)
    order = [row.judge for row in sorted(pearson, key=strength, reverse=True)]
    tests = found.rows.select("test", "p_holm", of="pearson", metric=against)
    rows = [*found.rows.select("correlation", **keys), *found.rows.select("chance", **keys), *tests]
    return Layout(
        f"correlations_{level}_{against}",
        f"Columns beside {against}, {_COLUMNS_AT[level]}",
        ("Column",),
        (_ONLY_THESE if level == "system" and not tests else "",),
        absent=None,
    ).of(
        sorted(rows, key=lambda row: order.index(row.judge)),
        lambda row: (row.judge,),
        _heading,
        dict.fromkeys(map(_heading, rows)),
        _cell,
    )


def _columns_figure(found: Correlations, against: str) -> Intervals:
    """Pearson's r of every column, with what so many systems could show."""
    rows = found.rows.select("correlation", "pearson", metric=against)
    lanes = (
        (row.judge, LabelledInterval(_COLUMNS_AT[row["scope"]], "judge", row.estimate))
        for row in rows
    )
    bounds = {"no correlation": 0.0}
    n = max((row.estimate.n for row in rows if row["scope"] == "system"), default=0)
    if least := critical_r(n):
        bounds |= {f"needed with {n} systems": least, "the same, negative": -least}
    title, limits = f"Pearson's r of every column with {against}", (-1.02, 1.02)
    key = f"correlations_{against}"
    return Intervals(key, title, _lines(lanes), "Pearson's r", bounds, limits, "Column")
