"""The tables and figures of scorers beside humans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from judgebench.report.words import counted, listed
from judgebench.results.part import Block, Intervals, Lane, Part
from judgebench.results.rows import Row
from judgebench.results.tables import DASH, Cell, Table, format_number
from judgebench.scorers.redundant import redundancy_block
from judgebench.scorers.result import BESIDE, MAIN, MEDIAN, TESTED, TESTS, BesideHumans
from judgebench.scorers.steady_part import steady_blocks
from judgebench.stats.association import Level
from judgebench.stats.coefficients import Coefficient
from judgebench.stats.few_systems import critical_r, shows_nothing

TITLES: Mapping[str, str] = {
    "pearson": "Pearson's r", "spearman": "Spearman's rho", "kendall": "Kendall's tau-b",
    "pairwise": "Pairwise accuracy",
}  # fmt: skip
_LEVELS: Mapping[Level, str] = {
    "pooled": "Over all answers",
    "within": "Within questions: the mean over those whose answers differ",
    "system": "Over systems: mean scores and mean severities",
}
_FIRST = (TITLES[MAIN[1]], f"Minus the {BESIDE[0]}", f"{BESIDE[0]}: permutation p")
CEILING = "The median annotator beside the others"
_TURNED = (
    "Scores that are better when higher are turned: a positive coefficient means that the scorer "
    "goes with the humans, who are taken by the mean severity of those who make the truth."
)
_CONTROLS = (
    "A scorer beats the controls where the interval of the difference to the best of them lies "
    "above 0 and a permutation test (Holm, over scorers and metrics) is significant. A control, "
    "and a scorer whose direction nobody declared, counts in the direction in which it does best."
)
_DIFFERENCES = "Differences are those of {}, on the answers that both scored; p values are Holm's."
_PAIRS = (
    "Pairwise accuracy: of two answers, how often both humans and scores say the same of which is "
    "worse, or that they are level; scores that differ little count as level, by a threshold that "
    "is best on these answers. By chance: what shuffled scores reach with such a threshold."
)


def scorers_part(found: BesideHumans) -> Part:
    """The part; its CSV file is scorers.csv."""
    sentences = tuple(_sentences(found))
    levels = [level for level in _LEVELS if found.rows.select("association", level=level)]
    tables = tuple(_level(found, level) for level in levels)
    brief = tuple(map(_brief, tables[:1]))  # none where there are no human labels
    same, steady = redundancy_block(found.rows), steady_blocks(found.rows, found.titles)
    blocks = (
        Block("Scorers beside humans", sentences, brief, _figures(found), on_screen=True),
        Block("At each level", tables=tables),
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
    for metric, title in found.titles.items():
        yield _worth(found, metric, title)
    systems = {len(humans.systems) for humans in found.humans.values() if "system" in humans.levels}
    yield from map(shows_nothing, sorted(systems))
    if not found.humans:
        yield "There are no human labels to hold the scorers against."
    elif not found.rows.select("ceiling"):
        yield "Each answer has one annotator's label: there is no human ceiling to compare with."


def _worth(found: BesideHumans, metric: str, title: str) -> str:
    """What the scorers of one metric are good for, in a sentence."""
    scorers, controls = found.main(metric, "judge"), found.main(metric, "control")
    groups = found.humans[metric].mean.groups.n
    line = critical_r(groups)
    if not scorers or scorers[0].estimate.value is None:
        reason = scorers[0].estimate.reason if scorers else "there is no scorer but controls"
        return f"{title}: nothing can be said; {reason}."
    most = max(scorers, key=lambda row: abs(row.estimate.value or 0.0))
    beside = f"{controls[0].judge} ({_rho(controls[0])})" if controls else ""
    same = found.rows.values("judge", "function")
    better = [row for row in scorers if found.beats_controls(row.judge, metric)]
    better = [row for row in better if row.judge not in same] or better
    if better:
        names = listed([f"{row.judge} ({_rho(row)})" for row in better])
        verb = "goes" if len(better) == 1 else "go"
        return f"{title}: {names} {verb} with the humans more than the best control, {beside}."
    if line is not None and abs(most.estimate.value or 0.0) < line:
        return (
            f"No scorer tells {title}: every |rho| is below {format_number(line)}, which chance "
            f"alone can reach with {counted(groups, 'question')}. The largest is that of "
            f"{most.judge} ({_rho(most)})."
        )
    if not controls:
        return f"{title}: {most.judge} goes with the humans most ({_rho(most)}), without controls."
    return (
        f"{title}: no scorer is shown to go with the humans more than the best control, {beside}; "
        f"the strongest is {scorers[0].judge} ({_rho(scorers[0])})."
    )


def _rho(row: Row) -> str:
    return f"rho {Cell(estimate=row.estimate).value} {Cell(estimate=row.estimate).interval}".strip()


def _level(found: BesideHumans, level: Level) -> Table:
    """Every coefficient at one level, and one of them beside the best control and scorer."""
    rows: list[tuple[Cell, ...]] = []
    for metric, title in found.titles.items():
        about = {"metric": metric, "level": level}
        for first in (row for kind in ("judge", "control") for row in found.main(metric, kind)):
            of = found.rows.select("association", judge=first.judge, **about)
            of += found.rows.select("chance", judge=first.judge, **about)
            name = f"{first.judge} (control)" if first["kind"] == "control" else first.judge
            cells = [_cell(row) for row in of] + [Cell(DASH)] * (len(TITLES) + 1 - len(of))
            rows.append((Cell(title), Cell(name), *cells, *_compared(found, first.judge, about)))
        if ceiling := found.rows.select("ceiling", who=MEDIAN, **about):
            dashes = [Cell(DASH)] * (1 + len(_compared(found, "", about)))
            rows.append((Cell(title), Cell(CEILING), *map(_cell, ceiling), *dashes))
    compared = [
        heading for beside in BESIDE
        for heading in (f"Minus the {beside}", *(f"{beside}: {test} p" for test in TESTS[level]))
    ]  # fmt: skip
    columns = ("Metric", "Scorer", *TITLES.values(), "By chance", *compared)
    notes = (_TURNED, _PAIRS, _DIFFERENCES.format(TITLES[TESTED[level]]))
    return Table(f"scorers_{level}", _LEVELS[level], columns, tuple(rows), notes, stubs=2)


def _compared(found: BesideHumans, judge: str, about: Mapping[str, str]) -> list[Cell]:
    """What it is minus the best control and minus the best scorer, with p values."""
    cells = []
    for beside in BESIDE:
        keys = {**about, "judge": judge, "beside": beside}
        row = next(iter(found.rows.select("difference", **keys)), None)
        tests = [found.rows.find("p_holm", test=test, **keys) for test in TESTS[about["level"]]]
        best = bool(row) and beside == BESIDE[0] and found.beats_controls(judge, about["metric"])
        cells += [
            Cell(estimate=row.estimate, remark=f"beside {row['who']}", signed=True, best=best)
            if row else Cell(DASH),
            *(Cell(format_number(p.value)) for p in tests),
        ]  # fmt: skip
    return cells


def _brief(whole: Table) -> Table:
    """Of the table over all answers, what is to be read first."""
    places = [whole.columns.index(name) for name in ("Metric", "Scorer", *_FIRST)]
    rows = tuple(tuple(row[place] for place in places) for row in whole.rows)
    columns = tuple(whole.columns[place] for place in places)
    notes = (_TURNED, _CONTROLS)
    title = "How scorers go with the humans' severities"
    return Table("scorers_brief", title, columns, rows, notes, stubs=2)


def _cell(row: Row) -> Cell:
    remark = "its direction was not declared" if row["turned"] == "undeclared" else ""
    return Cell(estimate=row.estimate, remark=remark)


def _counts(found: BesideHumans) -> Table:
    """Answers without a score, and scores with a remark."""
    rows = []
    for row in found.rows.select("count"):
        cells = (row.judge, row["reason"], f"{row.estimate.value:,.0f}", f"{row.estimate.n:,}")
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


def _figures(found: BesideHumans) -> tuple[Intervals, ...]:
    return tuple(_intervals(found, *place) for place in (MAIN,))


def _intervals(found: BesideHumans, level: Level, coefficient: Coefficient) -> Intervals:
    """Each scorer's coefficient beside the controls and the annotators."""
    lines = []
    for metric, title in found.titles.items():
        lanes = [
            Lane(row.judge, "control" if row["kind"] == "control" else "judge", row.estimate)
            for row in found.rows.select("association", coefficient, metric=metric, level=level)
        ]
        ceiling = found.rows.select("ceiling", coefficient, metric=metric, level=level, who=MEDIAN)
        lanes += [Lane(CEILING, "human", row.estimate) for row in ceiling]
        lines.append((title, tuple(lanes)))
    title = f"{TITLES[coefficient]} of scorers with the humans' severities"
    return Intervals(
        f"scorers_{level}_{coefficient}", title, tuple(lines), TITLES[coefficient],
        {"nothing in common": 0.0}, (-1.02, 1.02),
    )  # fmt: skip
