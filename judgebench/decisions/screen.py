"""The decisions at a glance: for a terminal, for a paper, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby
from typing import Any

from judgebench.decisions.result import Condition, Decision, Decisions, Outcome
from judgebench.decisions.words import why
from judgebench.records import Estimate
from judgebench.results.part import Block
from judgebench.results.rows import Row
from judgebench.results.tables import DASH, NO_REASON, Cell, Look, Table, format_number
from judgebench.words import counted, listed

OUTCOME_LOOKS: Mapping[Outcome, Look] = {
    Outcome.REPLACE: "good",
    Outcome.ASSIST: "fair",
    Outcome.DO_NOT_USE: "bad",
    Outcome.CANT_TELL: "unclear",
}
_NO_CONTROL = Row("score", "accuracy", Estimate(None, reason="there is no control judge"))
_MOST_ON_ONE_LINE = 2  # judges, whose outcome and accuracy share a line
_NARROW = 8  # characters of a name on a line, where there are many judges
_ROOM = 26  # lines of a screen for bars, the table and sentences
_LEAST_ROOM = 8
_LINE = 96  # characters
_NUMBER = re.compile(r"(?<![\w-])\d[\d,]*(?:\.\d+)?(?![\w-])")
_MOST_BARS = 3


def screen_blocks(decisions: Decisions) -> Iterator[Block]:
    """What was compared, the outcomes with the agreement of each judge, and why not REPLACE;
    nothing where nothing was decided."""
    if decisions.decisions:
        bars, table = decisions.bars[:_MOST_BARS], _table(decisions)
        more = len(decisions.bars) - len(bars)
        bars = (*bars, f"… and {counted(more, 'more bar')}, for other metrics.") if more else bars
        yield Block(text=tuple(filter(None, (decisions.compared, *bars))), tables=(table,))
        rows = sum(1 + row[1].text.count("\n") for row in table.rows)
        _, *judges, _, _ = table.columns
        narrow = len(judges) > _MOST_ON_ONE_LINE  # then a name takes several lines
        heading = max(1 + len(judge) // _NARROW for judge in judges) if narrow else 1
        room = _ROOM + 1 - rows - heading - sum(map(_lines, (decisions.compared, *bars)))
        yield Block("Why not REPLACE", tuple(_sentences(decisions, max(_LEAST_ROOM, room))))


def _table(decisions: Decisions) -> Table:
    """Metrics down; judges across, outcome and accuracy; then what the accuracy is held against."""
    made = {(d.judge, d.metric): d.outcome for d in decisions.decisions}
    judges = list(dict.fromkeys(judge for judge, _ in made))
    metrics = list(dict.fromkeys(metric for _, metric in made))
    between = " " if len(judges) <= _MOST_ON_ONE_LINE else "\n"
    rows, controls = [], set()
    for metric in metrics:
        control, ceiling = _best_control(decisions, metric), _ceiling(decisions, metric)
        controls |= {control.judge} - {""}
        cells = (
            _cell(made.get((judge, metric)), _accuracy(decisions, judge, metric), between)
            for judge in judges
        )
        beside = (Cell(format_number(e.value)) for e in (control.estimate, ceiling))
        rows.append((Cell(decisions.titles[metric]), *cells, *beside))
    said = "The number: how often the judge gives the label of the truth (accuracy)"
    strongest = f" ({listed(sorted(controls))})" if controls else ""
    return Table(
        "decide_screen",
        "May the judge replace the annotators?",
        ("Metric", *judges, "Best control", "Human ceiling"),
        tuple(rows),
        (
            f"{said}, beside the best control judge{strongest} and one annotator against the "
            "others.",
        ),
    )


def paper_table(decisions: Decisions) -> Table:
    """A line for each judge and metric: outcome, accuracy, what the accuracy is held against."""
    judges = list(dict.fromkeys(d.judge for d in decisions.decisions))
    rows = tuple(
        (
            Cell(d.judge), Cell(decisions.titles[d.metric]), Cell(d.outcome.value),
            Cell(estimate=_accuracy(decisions, d.judge, d.metric)),
            Cell(format_number(_best_control(decisions, d.metric).estimate.value)),
            Cell(format_number(_ceiling(decisions, d.metric).value)),
        )
        for d in sorted(decisions.decisions, key=lambda d: judges.index(d.judge))
    )  # fmt: skip
    note = (
        "Accuracy: share of the answers to which the judge gives the label of the human truth. "
        "Best control: the most accurate control judge. Human ceiling: one annotator "
        "against the others."
    )
    return Table(
        "main", "May the judges replace the annotators?",
        ("Judge", "Metric", "Outcome", "Accuracy", "Best control", "Human ceiling"),
        rows, (note,), stubs=2,
    )  # fmt: skip


def _cell(outcome: Outcome | None, accuracy: Estimate, between: str) -> Cell:
    if outcome is None:
        return Cell(DASH)
    said = f"{outcome.value}{between}{format_number(accuracy.value)}"
    return Cell(said, look=OUTCOME_LOOKS[outcome])


def _accuracy(decisions: Decisions, judge: str, metric: str) -> Estimate:
    return decisions.beside.find("accuracy", "score", judge=judge, metric=metric)


def _ceiling(decisions: Decisions, metric: str) -> Estimate:
    return decisions.beside.find("accuracy", "ceiling", metric=metric, who="all")


def _best_control(decisions: Decisions, metric: str) -> Row:
    """The accuracy of the most accurate control judge; of no judge where there is none."""
    rows = decisions.beside.select("score", "accuracy", metric=metric)
    known = [r for r in rows if r.judge not in decisions.judges and r.estimate.value is not None]
    return max(known, key=lambda r: r.estimate.value or 0.0, default=_NO_CONTROL)


def _sentences(decisions: Decisions, room: int) -> Iterator[str]:
    """One for what is not REPLACE; decisions with the same words in one sentence.

    Where there is not room for all, it is left out how much more data is needed, and then decisions
    whose words differ in their numbers alone share a sentence.
    """
    every = [d for d in decisions.decisions if d.outcome is not Outcome.REPLACE]
    for words, alike in ((why, str), (_reason, str), (_reason, partial(_NUMBER.sub, "#"))):
        groups: dict[tuple[Outcome, str], list[Decision]] = {}
        for d in every:
            groups.setdefault((d.outcome, alike(words(d))), []).append(d)
        found = {_sentence(decisions, same, words): len(same) for same in groups.values()}
        if sum(map(_lines, found)) <= room:
            break
    left = len(every)
    for sentence, count in found.items():
        if _lines(sentence) <= room:
            room -= _lines(sentence)
            left -= count
            yield sentence
    if left:
        yield f"… and {counted(left, 'more decision')}, for other reasons."


def _reason(d: Decision) -> str:
    return d.reason or NO_REASON


def _lines(sentence: str) -> int:
    return 1 + len(sentence) // _LINE


def _sentence(
    decisions: Decisions, same: Sequence[Decision], words: Callable[[Decision], str]
) -> str:
    """What decisions have in common; a number that differs as `26 to 42`."""
    found = [_NUMBER.findall(words(d)) for d in same]
    spread = iter([list(dict.fromkeys(sorted(n, key=_value))) for n in zip(*found, strict=True)])

    def number(_: re.Match[str]) -> str:
        one = next(spread)
        return one[0] if len(one) == 1 else f"{one[0]} to {one[-1]}"

    reason = _NUMBER.sub(number, words(same[0]))
    return f"{same[0].outcome.value} for {_which(decisions, same)}. {reason}"


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _which(decisions: Decisions, same: Sequence[Decision]) -> str:
    """`Tone and Bias (judge-1); Tone (judge-2)`."""
    by_judge = sorted(same, key=lambda d: list(decisions.judges).index(d.judge))
    return "; ".join(
        f"{listed([decisions.titles[d.metric] for d in made])} ({judge})"
        for judge, made in groupby(by_judge, lambda d: d.judge)
    )


def record(decisions: Decisions, d: Decision) -> dict[str, Any]:
    """A decision with all that it rests on, as plain values; an undefined number is None with a
    `reason`."""
    control = _best_control(decisions, d.metric)
    return {
        "judge": d.judge,
        "metric": d.metric,
        "outcome": d.outcome.value,
        "reason": why(d),
        "accuracy": asdict(_accuracy(decisions, d.judge, d.metric)),
        "best_control": {"judge": control.judge or None, **asdict(control.estimate)},
        "human_ceiling": asdict(_ceiling(decisions, d.metric)),
        "conditions": [
            {"required_for": outcome.value, **_flat(c)}
            for outcome, made in ((Outcome.REPLACE, d.replace), (Outcome.ASSIST, d.assist))
            for c in made
        ],
        "camps": [{"annotators": c.names, "outcome": c.outcome.value} for c in d.camps],
        "more_data": asdict(d.more) if d.more else None,
    }


def _flat(c: Condition) -> dict[str, Any]:
    fields = asdict(c)
    return {**fields.pop("estimate"), **fields}
