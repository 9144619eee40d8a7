"""The presentation of the decisions: outcomes with their reasons, then what they rest on; and the
decisions at a glance, for a terminal and for a paper."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby

from judgebench.alignment.caveats import BLIND
from judgebench.decisions.figures import triage_drawings
from judgebench.decisions.kinds import KINDS
from judgebench.decisions.result import (
    NO_FILTER,
    Condition,
    Decision,
    Decisions,
    State,
    TriageCurve,
    why,
)
from judgebench.decisions.standing import LOOKS, answer, standings
from judgebench.decisions.words import (
    STATES,
    bound_text,
    outcomes_sentence,
    severe_sentence,
    threshold_text,
)
from judgebench.records import Estimate
from judgebench.results.figure import draw_standings
from judgebench.results.layout import Contents, Layout
from judgebench.results.part import Block, Drawing, Intervals, Lane, Part
from judgebench.results.tables import DASH, NO_REASON, Cell, Look, Table
from judgebench.words import counted, listed, percent


def screen_blocks(decisions: Decisions) -> Iterator[Block]:
    """Show who was compared, a line for each judge and metric, then how to read these."""
    special = (bar for bar in decisions.bars if ";" in bar or not bar.startswith("Bar"))
    severe = severe_sentence(decisions.rubric.metrics, decisions.rule)
    lines = tuple(standings(decisions))
    yield Block(text=(decisions.compared, *special))
    ask = "--blind yes|no, in Python truth={'blind': 'yes'}"
    declare = ask if decisions.blind == "unknown" else "as declared"
    blind = f"{BLIND[decisions.blind].capitalize()} ({declare})."
    gold = any(KINDS[c.key].about == "gold" for d in decisions for c in d.replace)
    drawn = decisions.study.drawn.in_words() if decisions.study else ""
    weighed = f"{drawn} The shares count each answer once." if drawn else ""
    said = filter(None, (_SHARES, _BY_GOLD if gold else "", weighed, severe, blind))
    yield Block(text=tuple(said), standings=lines)


def _outcome_cell(d: Decision) -> Cell:
    would_be = f" (would be {d.shown_would_be})" if d.would_be else ""
    return Cell(d.shown + would_be, look=LOOKS[d.outcome])


NO_DECISIONS = "There is no judge with human labels to compare it with: nothing was decided."
_STATE_LOOKS: Mapping[State, Look] = {
    State.MET: "good", State.NOT_MET: "bad", State.UNCLEAR: "unclear",
}  # fmt: skip
_SHARES = (
    "Shares: answers with the reference label; of humans, with the label of the others, ties left "
    "out. Points: how often judge and annotator agree with the label of the other annotators, in "
    "percentage points."
)
_BY_GOLD = "Decided by adjudicated labels, which the shares leave out."
_MOST_LANES = 12  # in a band of a figure
_YES_OR_NO = {1.0: "yes", 0.0: "no"}


def _mostly_severe(decisions: Decisions) -> Iterator[str]:
    """A sentence on each metric with more severe reference labels than others, as it has where the
    order of the labels is given the wrong way round."""
    if (study := decisions.study) is None:
        return
    for metric in decisions.rubric.metrics:
        truth, first = study.humans[metric.id].truth, decisions.rule.severe_index(metric)
        known = truth[truth >= 0]
        if first is not None and len(known) and (share := float((known >= first).mean())) > 0.5:
            severe = listed([*map(repr, metric.label_texts[first:])])
            yield (
                f"{percent(share)} of the reference labels of {metric.title} count as severe "
                f"({severe}): does the order go from the least to the most severe label?"
            )


def decisions_part(decisions: Decisions) -> Part:
    """The part of the decisions; its rows also stand in decisions.csv."""
    blocks = (*_opening(decisions), *_evidence(decisions))
    title = "may these judges replace the annotators?"
    screen = tuple(screen_blocks(decisions)) if decisions.decisions else blocks[:1]
    return Part(
        "decisions", title, decisions.results, blocks, decisions.notes, (), screen,
        urgent=(*decisions.collapsed, *_mostly_severe(decisions)), own_file=True,
        headline=decisions.headline, answer=answer(decisions),
    )  # fmt: skip


def _opening(decisions: Decisions) -> Iterator[Block]:
    if not decisions.decisions:
        yield Block("Decisions", (NO_DECISIONS,), lead=True, on_screen=True)
        return
    table, title = _decision_table(decisions), "May the judge replace the annotators?"
    figures = (Drawing("decisions", title, partial(draw_standings, [*standings(decisions)])),)
    yield Block("Decisions", decisions.bars, (table,), figures, lead=True)
    reasons = tuple(
        f"{d.shown} for {decisions.titles[d.metric]} ({d.judge}). {why(d)}"
        + (f"\n  {d.numbers}" if d.numbers else "")
        for d in decisions.decisions
    )
    yield Block("Why", reasons, lead=True)


def _evidence(decisions: Decisions) -> Iterator[Block]:
    if decisions.decisions:
        judges = enumerate(_judges(decisions), start=1)
        tables = tuple(_conditions_table(decisions, judge, n) for n, judge in judges)
        figures = tuple(_condition_figures(decisions))
        title = "What the decisions rest on"
        yield Block(title, (STATES,), tables, figures, asks="sure", gist=_counted_states(decisions))
        beside, said = tuple(_bar_figure(decisions)), decisions.bars
        yield Block(
            "Who sets the bar", said, (_bar_table(decisions),), beside, asks="people",
            gist=" ".join(said).removeprefix("Bar: ").partition(";")[0].rstrip("."),
        )  # fmt: skip
    more = (_more_data_table(decisions),)
    unclear = counted(sum(d.more is not None for d in decisions.decisions), "unclear decision")
    yield Block("How much more data is needed", tables=more, asks="sure", gist=f"for {unclear}")
    curves, drawings = (_triage_table(decisions),), tuple(triage_drawings(decisions))
    title = "Triage: which answers to send to humans"
    yield Block(
        title, tables=curves, figures=drawings, asks="what_if", gist="what people would still read"
    )
    test = _alternative_test_table(decisions)
    ended = decisions.beside.select("alternative_test", "passes")
    passed = sum(bool(row.estimate.value) for row in ended)
    yield Block(
        "The Alternative Annotator Test", tables=(test,), asks="sure",
        gist=f"a published test: {passed} of {len(ended)} passed",
    )  # fmt: skip
    has_severe = any(metric.has_severe for metric in decisions.rubric.metrics)
    yield Block(
        "The rule of the decisions", tuple(decisions.rule.in_words(has_severe)), asks="sure",
        gist="what each outcome requires", on_screen=True,
    )  # fmt: skip


def _counted_states(decisions: Decisions) -> str:
    """`6 conditions: 3 met, 3 not met`."""
    states = Counter(c.state.value for d in decisions.decisions for c in (*d.of_replace, *d.assist))
    said = ", ".join(f"{states[state]} {state.value}" for state in State if states[state])
    return f"{counted(states.total(), 'condition')}: {said}"


def _judges(decisions: Decisions) -> list[str]:
    return list(dict.fromkeys(d.judge for d in decisions.decisions))


def _metrics(decisions: Decisions) -> list[str]:
    return list(dict.fromkeys(d.metric for d in decisions.decisions))


def _decision_table(decisions: Decisions) -> Table:
    """Metrics down, judges across."""
    made = {(d.judge, d.metric): _outcome_cell(d) for d in decisions}
    title = "May the judge replace the annotators?"
    layout = Layout("decide_decisions", title, ("Metric",), (outcomes_sentence(),))
    return layout.crossed(
        [((decisions.titles[metric],), {"metric": metric}) for metric in _metrics(decisions)],
        [(judge, {"judge": judge}) for judge in _judges(decisions)],
        lambda keys: made.get((keys["judge"], keys["metric"])),
    )


def _condition_figures(decisions: Decisions) -> Iterator[Intervals]:
    """One for each kind of condition: its estimates against the bound, by metric and judge; where
    bounds differ, against the easiest and the hardest to meet."""
    found: dict[str, dict[str, list[Lane]]] = {}
    kinds: dict[str, list[Condition]] = {}
    for d in decisions.decisions:
        for c in (*d.of_replace, *d.assist):
            if c.estimate.low is not None:
                kinds.setdefault(c.key, []).append(c)
                lanes = found.setdefault(c.key, {}).setdefault(decisions.titles[d.metric], [])
                lanes.append(Lane(d.judge, "judge", c.estimate))
    for key, same in kinds.items():
        c, *_, last = sorted([*same, same[0]], key=lambda c: c.bound)
        least, most = (bound_text(one).replace("-", "−") for one in (c, last))
        bounds = {f"required: {least}": c.bound}
        if most != least:  # it differs by judge or metric
            bounds[f"to {most.rpartition(' ')[2]}"] = last.bound
        lines = tuple((title, tuple(lanes)) for title, lanes in found[key].items())
        yield Intervals(
            f"condition_{key}", _kind_title(c), lines, "Estimate with its interval",
            bounds, None if c.is_difference else (0.0, 1.0),
        )  # fmt: skip


def _kind_title(c: Condition) -> str:
    """The title of a condition, without the baseline, system or probe of one decision."""
    title = c.title.split(", ")[0] if c.key == "robustness" else c.title
    if c.key == "groups":
        title = KINDS[c.key].title.format(rival="the group on which it is lowest")
    elif c.rival:
        title = f"{title.split(', judge minus')[0]}, judge minus the strongest baseline"
    return title[:1].upper() + title[1:]


def _bar_figure(decisions: Decisions) -> Iterator[Intervals]:
    """Annotators and judges beside each other, where there are few enough to tell apart."""
    found: dict[str, list[Lane]] = {}
    for row in decisions.beside.select("bar", "gap"):
        if row.estimate.low is not None:
            name = row.judge or row["who"] + (" (left out)" if row["in_bar"] == "no" else "")
            lane = Lane(name, "judge" if row.judge else "human", row.estimate)
            found.setdefault(decisions.titles[row.metric], []).append(lane)
    lines = tuple((title, tuple(lanes)) for title, lanes in found.items())
    if lines and max(len(lanes) for _, lanes in lines) <= _MOST_LANES:
        title = "Agreement with the annotators in the bar, beside theirs with each other"
        equal = {"as they agree with each other": 0.0}
        yield Intervals("bar", title, lines, "Agreement gap with its interval", equal)


def _bar_table(decisions: Decisions) -> Table:
    """Each annotator and each judge beside the annotators of the bar."""
    found, rows = decisions.beside, []
    for row in found.select("bar", "gap"):
        shares = found.select("bar", "share", metric=row.metric, who=row["who"])
        given = (f"{share['label']} {percent(share.estimate.value)}" for share in shares)
        who = Cell(row.judge or row["who"], remark="a judge" if row.judge else "")
        labels = ", ".join(given) if row["who"] else DASH
        gap = Cell(estimate=row.estimate, signed=True)
        rows.append((decisions.titles[row.metric], who, row["in_bar"] or DASH, gap, labels))
    return Layout(
        "decide_bar",
        "Annotators and judges beside those who set the bar",
        ("Metric", "Who"),
        (
            "Agreement gap: how much more often somebody agrees with the annotators in the bar "
            "than these agree with each other on the same items.",
        ),
        ("In the bar", "Agreement gap", "Labels given"),
    ).listing(rows)


def _conditions_table(decisions: Decisions, judge: str, number: int) -> Table:
    """Every condition of every metric with its bound, estimate and state."""
    rows = [
        (
            decisions.titles[d.metric], f"{outcome}: {c.title}", bound_text(c),
            _estimate_cell(c), Cell(c.state.value, remark=c.missing, look=_STATE_LOOKS[c.state]),
        )
        for d in decisions.decisions
        if d.judge == judge
        for outcome, conditions in (
            ("REPLACE", d.of_replace), ("ASSIST", d.assist),
            *((f"REPLACE, by {listed(camp.names)} alone", camp.conditions) for camp in d.camps),
        )
        for c in conditions
    ]  # fmt: skip
    return Layout(
        f"decide_conditions-{number}",
        f"Every condition: {judge}",
        ("Metric", "Condition"),
        beside=("Bound", "Estimate", "State"),
    ).listing(rows)


def _estimate_cell(c: Condition) -> Cell:
    return Cell(estimate=c.estimate, signed=c.is_difference)


def _more_data_table(decisions: Decisions) -> Table:
    """The data that each unclear decision still needs; the reason in a mark where it is unknown."""
    rows = []
    of_severe = any(d.more and d.more.severe is not None for d in decisions.decisions)
    for d in decisions.decisions:
        if (more := d.more) is not None:
            found = [_now_and_more(more.answers_now, more.items),
                     _now_and_more(more.questions_now, more.questions),
                     *map(_count, (more.labels, more.severe)[: 1 + of_severe])]  # fmt: skip
            unknown = more.reason or NO_REASON
            remark = unknown if more.items is None else "no label of this metric is severe"
            cells = (Cell(text, remark=remark * text.endswith(DASH)) for text in found)
            ends = percent(more.clear), more.towards and more.towards.value
            rows.append((d.judge, decisions.titles[d.metric], *cells, *ends))
    return Layout(
        "decide_more_data",
        "How much more data would make the unclear decisions clear",
        ("Judge", "Metric"),
        (
            "Simulated from the estimates at hand, with human labels as frequent as now. Answers "
            "to the same question go together: what is needed is more questions, not more answers "
            "to these. The last two columns are of simulated studies of that size.",
        ),
        (
            "Answers now + more",
            "Questions now + more",
            "Human labels for them",
            *(["Severe among them"] if of_severe else ()),
            "Studies that reach a decision",
            "Most of them with",
        ),
    ).listing(rows)


def _now_and_more(now: int | None, more: int | None) -> str:
    return " + ".join(f"{n:,}" for n in (now, more) if n is not None) or DASH


def _count(number: int | None) -> str:
    return DASH if number is None else f"{number:,}"


def _triage_table(decisions: Decisions) -> Table:
    """The recommended threshold of every curve, here and on new answers."""
    titles = decisions.titles
    rows = (
        (curve.judge, f"{titles[curve.metric]}, by {curve.signal}", *_choice_cells(curve))
        for curve in decisions.ordered_curves
    )
    return Layout(
        "decide_triage",
        "The recommended threshold: what it does here, and what is expected on new answers",
        ("Judge", "Metric and signal"),
        (
            "Answers whose signal is at least the threshold go to humans, and so do those without "
            "a verdict. The threshold of labels is the severe label where that does what ASSIST "
            "requires: nothing was chosen then. Any other is the more cautious of two, each chosen "
            "on one half of the questions. What it misses here flatters it, because it was chosen "
            "on these severe answers; what is expected on new answers allows for that.",
        ),
        (
            "Threshold",
            "Sent here",
            "Severe missed here",
            "New answers sent, expected",
            "New severe missed, expected",
        ),
    ).listing(rows)


def _choice_cells(curve: TriageCurve) -> Contents:
    """The threshold, what it sends and misses here, and what it is expected to."""
    choice, reason = curve.choice, curve.reason or NO_REASON
    if choice is None:
        here = (f"{DASH} of {count:,}" for count in (curve.n, curve.severe))
        nothing = Estimate(None, reason=reason, n=curve.n)
        return (Cell(DASH, remark=reason), *here, nothing, nothing)
    threshold = -math.inf if choice.sends_all else choice.threshold
    counts = (
        f"{round((share.value or 0.0) * share.n):,} of {share.n:,} ({percent(share.value)})"
        for share in (choice.sent, choice.missed)
    )
    shown = Cell(threshold_text(threshold), remark=NO_FILTER if choice.sends_all else "")
    return (shown, *counts, choice.expected_sent, choice.expected_missed)


def _alternative_test_table(decisions: Decisions) -> Table:
    """A row for each judge and metric."""
    rule = decisions.rule.alternative_test
    tests = decisions.beside.select("alternative_test")
    rows: list[Contents] = []
    for (judge, metric), test in groupby(tests, lambda r: (r.judge, r.metric)):
        e = {row.statistic: row.estimate for row in test}
        rate = e["winning_rate"].value
        rows.append(
            (
                judge, decisions.titles[metric], f"{e['annotators'].value:.0f}",
                None if rate is None else f"{rate:.2f}", e["advantage"],
                *(_verdict_cell(e[ended]) for ended in ("passes", "guarded")),
            )
        )  # fmt: skip
    return Layout(
        "alternative_test",
        "The Alternative Annotator Test, and whether every baseline is beaten too",
        ("Judge", "Metric"),
        (
            f"The test of Calderon et al. (2025), ε = {rule.epsilon:g}, with all "
            "annotators; of an ordinal metric the smaller root mean square distance of labels "
            "is the closer one, else the share of equal labels. Winning rate: share of the tested "
            "annotators whom the judge may replace; the judge passes at 0.5 or more. Advantage: "
            "chance to be at least as close to the other annotators as one of them.",
            "Guarded: passes, and "
            f"is more accurate than every baseline (one-sided permutation test at {rule.guard:g}). "
            "Where a label is rare, a judge that never gives it passes the test.",
        ),
        ("Annotators", "Winning rate", "Advantage", "Passes", "Guarded"),
    ).listing(rows)


def _verdict_cell(said: Estimate) -> Cell:
    if said.value is None:
        return Cell(DASH, remark=f"undefined: {said.reason or NO_REASON}")
    return Cell(_YES_OR_NO[said.value], remark=said.reason)
