"""The tables and figures of scorers beside humans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from judgebench.results.part import Block, Intervals, Lane, Part
from judgebench.results.rows import Row
from judgebench.results.tables import DASH, Cell, Table, format_number, p_text
from judgebench.scorers.redundant import redundancy_block
from judgebench.scorers.result import BESIDE, MEDIAN, TESTED, TESTS, TITLES, BesideHumans
from judgebench.scorers.steady_part import steady_blocks
from judgebench.stats.association import Level
from judgebench.stats.few_systems import critical_r, shows_nothing
from judgebench.words import counted, listed

_LEVELS: Mapping[Level, str] = {
    "pooled": "Over all answers",
    "within": "Within questions: the mean over those whose answers differ",
    "system": "Over systems: mean scores and mean severities",
}
CEILING = "Median annotator beside the others"
_TURNED = (
    "Scores that are better when higher are turned: a positive coefficient means that the scorer "
    "goes with the humans, who are taken by the mean severity of those who make the truth."
)
_CONTROLS = (
    "A scorer beats the controls (bold) where the interval of the difference to the best one lies "
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
    """The part; its CSV file is scorers.csv."""
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
    """What the scorers of one metric are good for."""
    scorers, groups = found.held(metric, "judge"), found.humans[metric].mean.groups.n
    if not scorers or scorers[0].estimate.value is None:
        reason = scorers[0].estimate.reason if scorers else "there is no scorer but controls"
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
        yield f"{title}: {names} {verb} with the humans more than the best control, {control}."
    elif line is not None and abs(most.estimate.value or 0.0) < line:
        yield (
            f"No scorer tells {title}: every |rho| is below {format_number(line)}, which chance "
            f"alone can reach with {counted(groups, 'question')}. The largest is that of "
            f"{_with_rho(most)}."
        )
    elif control:
        yield (
            f"{title}: no scorer is shown to go with the humans more than the best control, "
            f"{control}; the strongest is {_with_rho(best)}."
        )
    else:
        yield f"{title}: {_with_rho(best)} goes with the humans most; there is no control."
    within = _best_control(found, metric, "within")
    lost = [row.judge for row in better if not found.beats_controls(row.judge, metric, "within")]
    if within and lost:
        yield (
            f"{title}: within questions, which is where systems are compared, {listed(lost)} "
            f"{'is' if len(lost) == 1 else 'are'} not shown to beat the best control, {within}."
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
    """Every coefficient at one level, and one of them beside the best control and scorer."""
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
            name = f"{first.judge} (control)" if first["kind"] == "control" else first.judge
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
    """What it is minus the best control and minus the best scorer, with p values."""
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
    rows = []
    for row in found.rows.select("count"):
        cells = (row.judge, row["why"], f"{row.estimate.value:,.0f}", f"{row.estimate.n:,}")
        rows.append((*map(Cell, cells), Cell("scored" if row["score"] == "yes" else "no score")))
    columns = ("Scorer", "Reason", "Answers", "Of", "Outcome")
    return Table("scorers_counts", "Reasons, counted", columns, tuple(rows), stubs=2)


def _signatures(found: BesideHumans) -> Table:
    """All that the numbers depend on."""
    rows = []
    for run in found.runs:
        about = {key: value for key, value in run.about.items() if key != "judge"}
        told = "; ".join(f"{key}: {value}" for key, value in about.items())
        better = {"higher": "higher scores", "lower": "lower scores"}.get(run.better, DASH)
        rows.append(tuple(map(Cell, (run.name, better, run.judged.signature, told))))
    columns = ("Scorer", "Better", "Signature", "What the scores depend on")
    return Table("scorers_signatures", "Signatures", columns, tuple(rows), stubs=4)


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
