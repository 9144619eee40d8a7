"""The presentation of the decisions: outcomes with their reasons, then what they rest on; and the
decisions at a glance, for a terminal and for a paper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial

from judgebench.alignment.notes import BLIND
from judgebench.decisions.anchors import BOTH_MISS
from judgebench.decisions.decision import (
    KINDS,
    NO_FILTER,
    AloneShares,
    Condition,
    Decision,
    Decisions,
    State,
    TriageCurve,
)
from judgebench.decisions.sentences import (
    LOOKS,
    STATES,
    anchor_sentences,
    answer,
    bound_text,
    broken,
    outcomes_sentence,
    rule_sentences,
    scores_sentence,
    severe_sentence,
    standings,
    threshold_text,
)
from judgebench.errors import some
from judgebench.records import Estimate, Row
from judgebench.results.blocks import (
    Block,
    DecisionSummary,
    Drawing,
    Intervals,
    LabelledInterval,
    ReportSection,
)
from judgebench.results.figures import draw_standings
from judgebench.results.tables import (
    DASH,
    NO_REASON,
    Cell,
    CellTone,
    Content,
    Contents,
    Layout,
    Table,
    format_number,
    in_per_cent,
)
from judgebench.text import listed

NO_DECISIONS = "There is no judge with human labels to compare it with: nothing was decided."
TITLE = "May the judge replace the annotators?"
_STATE_LOOKS: Mapping[State, CellTone] = {
    State.MET: "good", State.NOT_MET: "bad", State.UNCLEAR: "unclear",
}  # fmt: skip
_SHARES = (
    "Shares: answers with the reference label; of humans, with the label of the others, ties left "
    "out. Points: how often judge and annotator agree with the label of the other annotators, in "
    "percentage points."
)
_CHANGE_SEVERE = "to change it, `severe_from` in a rule: --rule FILE, in Python rule="
_MORE_SEVERE = "; of two annotators' labels the more severe counts"
_BY_GOLD = "Decided by adjudicated labels, which the shares leave out."
_ANCHORS = Layout(
    "decide_anchors", "Answers whose right label is known (anchors)", ("Metric", "Who"),
    (
        "Found: share of the anchors with a severe flaw that are called severe. False alarms: "
        "share of the others. Both miss: share of the severe ones that the consensus of the "
        "annotators and the judge both miss, each limit by itself.",
    ),
    headings={"found": "Found", "false_alarms": "False alarms", BOTH_MISS: "Both miss"},
    absent=None,
)  # fmt: skip
ALONE = "How much may the judge decide alone?"
_GAP = "Agreement gap"
_ALONE = Layout(
    "decide_alone", "What the judge may decide alone, and people need not label",
    ("Judge", "Metric", "Threshold"),
    (
        "The threshold on the judge's confidence was chosen on one half of the questions; the "
        "share and the agreement gap are of the other half. Agreement gap: how much more often the "
        "judge agrees with the annotators than they with each other, on what it decides alone. "
        "Severe decided alone: of the labels by which annotators agree that an answer is severe, "
        "those on answers that it would decide alone, and so miss.",
    ),
    headings={
        "share": "Alone", "humans_accuracy": _GAP, "gold_accuracy": _GAP,
        "severe_alone": "Severe decided alone",
    },
    signed=("humans_accuracy", "gold_accuracy"),
)  # fmt: skip
_TEST = {
    "annotators": "Annotators",
    "winning_rate": "Winning rate",
    "advantage": "Advantage",
    "passes": "Passes",
    "guarded": "Guarded",
}


def decisions_part(decisions: Decisions) -> ReportSection:
    """The part of the decisions; its rows also stand in decisions.csv."""
    lines, context = tuple(standings(decisions)), decisions.context
    blocks = (*_opening(decisions, lines), *_evidence(decisions))
    title = "may these judges replace the annotators?"
    screen = tuple(screen_blocks(decisions, lines)) if lines else blocks[:1]
    promises = broken(decisions.promises)
    return ReportSection(
        "decisions", title, decisions.results, blocks, context.notes, (), screen,
        urgent=(*promises, *context.urgent), own_file=True, headline=context.headline,
        answer=answer(decisions),
        terms=tuple(_terms(decisions)) if lines else (),
    )  # fmt: skip


def screen_blocks(decisions: Decisions, lines: tuple[DecisionSummary, ...]) -> Iterator[Block]:
    """Show who was compared, a line for each judge and metric, then how to read these."""
    context = decisions.context
    special = (bar for bar in context.bars if ";" in bar or not bar.startswith("Bar"))
    yield Block(text=(context.compared, *special))
    declare = "as declared"
    if context.blind == "unknown":
        declare = "--blind yes|no, in Python truth={'blind': 'yes'}"
    gold = any(KINDS[c.key].about == "gold" for d in decisions for c in d.replace)
    severe = _severe(decisions)
    sentences = (
        _SHARES,
        _BY_GOLD if gold else "",
        f"{context.drawn} The shares count each answer once." if context.drawn else "",
        f"{severe}; {_CHANGE_SEVERE}." if severe else "",
        scores_sentence(decisions.rubric.metrics),
        f"{BLIND[context.blind].capitalize()} ({declare}).",
    )
    yield Block(text=tuple(filter(None, sentences)), standings=lines)
    yield Block(tables=(_protocol_table(decisions),))
    if decisions.anchors.rows:
        yield _anchor_block(decisions)


def _anchor_block(decisions: Decisions) -> Block:
    """What annotators and judges made of answers whose right label is known."""
    rows = (row for row in decisions.anchors if row.statistic in _ANCHORS.headings)
    table = _ANCHORS.of(rows, lambda row: (decisions.titles[row.metric], row.judge or row["who"]))
    sentences = tuple(anchor_sentences(decisions))
    gist = "errors that annotators and judge may share"
    return Block("Anchors", sentences, (table,), brief=True, asks="sure", gist=gist)


def _severe(decisions: Decisions) -> str:
    """Say which labels count as severe, and of which of two annotators' labels they are, without a
    full stop; empty where no label does."""
    severe = severe_sentence(decisions.rubric.metrics, decisions.rule)
    study = decisions.study
    pairs = [h for h in study.humans.values() if len(h.makers) == 2] if study else []
    of_two = any(h.config.ties_of(h.metric) == "upper" for h in pairs)
    return f"{severe}{_MORE_SEVERE if severe and of_two else ''}"


def _terms(decisions: Decisions) -> Iterator[str]:
    if severe := _severe(decisions):
        yield f"{severe}."
    controls = decisions.study.controls if decisions.study else []
    if names := some(control.name for control in controls):
        yield f"Baseline: a rule that understands no answer; here {names}."


def _opening(decisions: Decisions, lines: tuple[DecisionSummary, ...]) -> Iterator[Block]:
    if not lines:
        yield Block("Decisions", (NO_DECISIONS,), lead=True, on_screen=True)
        return
    figure = Drawing("decisions", TITLE, partial(draw_standings, [*lines]))
    table = _decision_table(decisions)
    yield Block("Decisions", decisions.context.bars, (table,), (figure,), lead=True)
    yield Block("Why", tuple(map(_reason, lines)), lead=True)
    yield Block("The protocol", tables=(_protocol_table(decisions),), asks="sure")


def _reason(line: DecisionSummary) -> str:
    which = f"{line.outcome} for {line.metric} ({line.judge})."
    text = " ".join(filter(None, (which, line.why, line.alone, line.next)))
    return f"{text}\n  {line.numbers}" if line.numbers else text


def _evidence(decisions: Decisions) -> Iterator[Block]:
    context = decisions.context
    if decisions.decisions:
        judges = dict.fromkeys(d.judge for d in decisions)
        tables = tuple(_conditions_table(decisions, *at) for at in enumerate(judges, start=1))
        title, gist = "What the decisions rest on", "every condition beside what is required"
        yield Block(title, (STATES,), tables, asks="sure", gist=gist)
        beside = (_bar_table(decisions),)
        gist = " ".join(context.bars).removeprefix("Bar: ").partition(";")[0].rstrip(".")
        yield Block("Who sets the bar", context.bars, beside, asks="people", gist=gist)
    if decisions.anchors.rows:
        yield _anchor_block(decisions)
    title, gist = "Triage: which answers to send to humans", "what people would still read"
    yield Block(title, tables=(_triage_table(decisions),), asks="what_if", gist=gist)
    if decisions.says_sure:
        yield _alone_block(decisions.alone())
    passes = [row.estimate.value for row in context.rows.select("alternative_test", "passes")]
    test = (_alternative_test_table(decisions),)
    gist = f"a published test: {passes.count(1.0)} of {len(passes)} passed"
    yield Block("The Alternative Annotator Test", tables=test, asks="sure", gist=gist)
    has_severe = any(metric.has_severe for metric in decisions.rubric.metrics)
    rule, gist = tuple(rule_sentences(decisions.rule, has_severe)), "what each outcome requires"
    yield Block("The rule of the decisions", rule, asks="sure", gist=gist, on_screen=True)


def _decision_table(decisions: Decisions) -> Table:
    """Metrics down, judges across."""
    by_place = {(d.judge, d.metric): d for d in decisions}

    def cell(row: Row) -> Cell:
        d = by_place[row.judge, row.metric]
        waits = f" (would be {d.shown_would_be})" if d.would_be else ""
        return Cell(d.shown + waits, look=LOOKS[d.outcome])

    return Layout("decide_decisions", TITLE, ("Metric",), (outcomes_sentence(),), absent=None).of(
        decisions.results.select("decision"),
        lambda row: (decisions.titles[row.metric],),
        lambda row: row.judge,
        cell=cell,
    )


def _protocol_table(decisions: Decisions) -> Table:
    """Every promise of the protocol, and what became of it."""
    beside = ("Planned", "Actual", "State")
    layout = Layout("decide_protocol", "Was the protocol kept?", ("Promise",), beside=beside)
    return layout.listing([*map(str, row.keys.values())] for row in decisions.promises)


def _conditions_table(decisions: Decisions, number: int, judge: str) -> Table:
    """Every condition of every metric with its bound, estimate and state."""

    def line(d: Decision, required_for: str, c: Condition) -> Contents:
        estimate = Cell(estimate=c.estimate, signed=KINDS[c.key].is_difference)
        state = Cell(c.state.value, remark=c.missing, look=_STATE_LOOKS[c.state])
        title = f"{required_for}: {c.title}"
        return decisions.titles[d.metric], title, bound_text(c), estimate, state

    rows: list[Contents] = []
    for d in (d for d in decisions if d.judge == judge):
        rows += [line(d, outcome, c) for outcome, c in d.required]
        for camp in d.camps:
            by = f"REPLACE, by {listed(camp.names)} alone"
            rows += [line(d, by, c) for c in camp.conditions]
    key, title = f"decide_conditions-{number}", f"Every condition: {judge}"
    beside = ("Required", "Estimate", "State")
    return Layout(key, title, ("Metric", "Condition"), beside=beside).listing(rows)


def _bar_table(decisions: Decisions) -> Table:
    """Each annotator and each judge beside the annotators of the bar."""
    bar_rows = decisions.context.rows
    weights = {(r.metric, r["who"]): r.estimate.value for r in bar_rows.select("bar", "weight")}
    rows = (
        (
            decisions.titles[row.metric],
            Cell(row.judge or row["who"], remark="a judge" if row.judge else ""),
            row["in_bar"] or DASH,
            format_number(weights.get((row.metric, row["who"]))),
            Cell(estimate=row.estimate, signed=True),
        )
        for row in bar_rows.select("bar", "gap")
    )
    title = "Annotators and judges beside those who set the bar"
    note = (
        "Agreement gap: how much more often somebody agrees with the annotators in the bar than "
        "these agree with each other on the same items. Weight: how much each label of theirs "
        "counts in the bar, 1 on average."
    )
    beside = ("In the bar", "Weight", "Agreement gap")
    return Layout("decide_bar", title, ("Metric", "Who"), (note,), beside).listing(rows)


def _triage_table(decisions: Decisions) -> Table:
    """The recommended threshold of every curve, here and on new answers."""
    rows = (
        (c.judge, f"{decisions.titles[c.metric]}, by {c.signal}", *_choice_cells(c))
        for c in decisions.curves
    )
    title = "The recommended threshold: what it does here, and what is expected on new answers"
    note = (
        "Answers whose signal is at least the threshold go to humans, and so do those without a "
        "verdict. The threshold of labels is the severe label where that does what ASSIST "
        "requires: nothing was chosen then. Any other is the more cautious of two, each chosen on "
        "one half of the questions. What it misses here flatters it, because it was chosen on "
        "these severe answers; what is expected on new answers allows for that."
    )
    beside = (
        "Threshold", "Sent here", "Severe missed here", "New answers sent, expected",
        "New severe missed, expected",
    )  # fmt: skip
    return Layout("decide_triage", title, ("Judge", "Metric and signal"), (note,), beside).listing(
        rows
    )


def alone_part(alone: AloneShares) -> ReportSection:
    """The part on how much judges may decide alone."""
    block, context = _alone_block(alone), alone.decisions.context
    return ReportSection(
        "alone", "how much may these judges decide alone?", alone.results, (block,), context.notes,
        screen=(block,), own_file=True, headline=context.headline,
    )  # fmt: skip


def _alone_block(alone: AloneShares) -> Block:
    """A row for each judge and metric, and a curve where there is one."""
    decisions, titles = alone.decisions, alone.decisions.titles
    table = _ALONE.of(
        alone.results.select("alone"),
        lambda row: (row.judge, titles[row.metric], threshold_text(float(row["threshold"]))),
    )
    margin = decisions.rule.replace.humans.margin
    curves = tuple(_alone_curve(d, titles[d.metric], margin) for d in decisions if d.alone.points)
    return Block(ALONE, (), (table,), curves, asks="what_if", gist="where it is sure")


def _alone_curve(d: Decision, title: str, margin: float) -> Intervals:
    """The agreement gap at each threshold that was tried, by the share that is decided alone."""
    lines = []
    for point in filter(lambda point: point.conditions, d.alone.points):
        name = "passes" if point.is_met else "does not, by agreement or by severe answers missed"
        lane = LabelledInterval(name, "judge", point.conditions[0].estimate)
        lines.append((in_per_cent(point.share, bare=True), (lane,)))
    return Intervals(
        f"alone_{d.metric}_{d.judge}", f"{title}: agreement where {d.judge} decides alone",
        tuple(lines), "Agreement, judge minus annotator",
        {"margin of the rule": -margin, "as often as annotators": 0.0},
        down="Decided alone, on the half it was chosen on",
    )  # fmt: skip


def _choice_cells(curve: TriageCurve) -> Contents:
    """The threshold, what it sends and misses here, and what it is expected to."""
    choice, reason = curve.choice, curve.reason or NO_REASON
    if choice is None:
        nothing = Estimate(None, reason=reason, n=curve.n)
        return (Cell(DASH, remark=reason), *[nothing] * 4)
    threshold = Cell(threshold_text(choice.threshold))
    if choice.sends_all:
        threshold = Cell(threshold_text(-math.inf), remark=NO_FILTER)
    return threshold, choice.sent, choice.missed, choice.expected_sent, choice.expected_missed


def _alternative_test_table(decisions: Decisions) -> Table:
    """A row for each judge and metric."""
    rule = decisions.rule.alternative_test
    title = "The Alternative Annotator Test, and whether every baseline is beaten too"
    notes = (
        f"The test of Calderon et al. (2025), ε = {rule.epsilon:g}, with all annotators; of an "
        "ordinal metric the smaller root mean square distance of labels is the closer one, "
        "else the share of equal labels. Winning rate: share of the tested annotators whom the "
        "judge may replace; the judge passes at 0.5 or more. Advantage: chance to be at least as "
        "close to the other annotators as one of them.",
        "Guarded: passes, and is more accurate than every baseline (one-sided permutation test at "
        f"{rule.guard:g}). Where a label is rare, a judge that never gives it passes the test.",
    )
    rows = decisions.context.rows.select("alternative_test")
    return Layout("alternative_test", title, ("Judge", "Metric"), notes, headings=_TEST).of(
        (row for row in rows if row.statistic in _TEST),
        lambda row: (row.judge, decisions.titles[row.metric]),
        cell=_test_cell,
    )


def _test_cell(row: Row) -> Content:
    estimate = row.estimate
    if row.statistic == "annotators":
        return round(estimate.value or 0)
    if row.statistic == "advantage" or estimate.value is None:
        return estimate
    if row.statistic == "winning_rate":
        return f"{estimate.value:.2f}"
    return Cell("yes" if estimate.value else "no", remark=estimate.reason)
