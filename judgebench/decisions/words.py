"""Reasons, bounds, thresholds and missing data in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from judgebench.decisions.kinds import BALANCED, KINDS
from judgebench.decisions.result import (
    AT_SEVERE,
    Condition,
    InCamp,
    Outcome,
    State,
)
from judgebench.decisions.rule import DecisionRule, load_rule
from judgebench.records import Estimate
from judgebench.rubric import Metric
from judgebench.stats.copies import BarKind
from judgebench.studies.labelled import LabelledPart, differences
from judgebench.studies.study import Study
from judgebench.words import counted, listed, percent

OUTCOMES: Mapping[Outcome, str] = {
    Outcome.REPLACE: "the judge may replace the human annotators on that metric",
    Outcome.ASSIST: "as a first-pass filter, it may sort out answers that no human needs to read",
    Outcome.DO_NOT_USE: "for single answers, the judge may neither replace annotators nor be a "
    "filter",
    Outcome.CANT_TELL: "the data show neither, or what the outcome rests on is not declared",
}
STATES = (
    f"{State.MET.value.capitalize()}: the whole interval lies on the right side of its bound. "
    f"{State.NOT_MET.value.capitalize()}: the whole interval lies on the wrong side. "
    f"{State.UNCLEAR.value.capitalize()}: neither, or not met at the cautious threshold that was "
    "recommended, though another threshold might meet it."
)
IN_SIGHT = (
    "Labels were made in sight of a model's label: agreement with them shows nothing",
    "Have items labelled without sight of any model's label.",
)
AGREE_FIRST = "Agree on how to read the labels, then label again."
OF_ONE = (
    "One annotator's labels are taken as the reference labels: what that annotator misses, "
    "nobody knows, and "
    "more severe answers than expected may be missed."
)
_BARS: Mapping[BarKind, str] = {
    "typical": "the typical competent annotator",
    "average": "the average annotator",
    "best": "the best annotator",
}
_MOST_LABELS = 3  # that count as severe, in a sentence
_MOST_OPEN = 3  # requirements that the data leave open, in a sentence
_AS_OFTEN = "as often as"
_TOO_FEW = "there is too little data to tell whether the judge"
_GOOD_BUT_FEW = "the judge looks good enough, but there is too little data to be sure that it"
_SHARED = "Errors shared with annotators would not show."


class Declaration(NamedTuple):
    """A declaration that is missing: what the numbers take for granted, and how to declare it."""

    assumption: str  # a clause after `It would be REPLACE if`
    advice: str


_BLIND = Declaration(
    "the labels were made without sight of a model",
    "`--blind yes`, or `--blind no` where annotators saw a model's label (in Python "
    "truth={'blind': 'yes'})",
)


def undeclared(
    study: Study, metric: Metric, outcome: Outcome, part: LabelledPart
) -> list[Declaration]:
    """Return every declaration that the outcome on this metric waits for.

    Severe answers are looked for once the order of the labels is known, so that a judge which fails
    may still be a filter: DO NOT USE waits for the order, too.
    """
    missing = []
    if metric.order and outcome in (Outcome.REPLACE, Outcome.DO_NOT_USE):
        missing.append(_order(metric, len(study.rubric.metrics) > 1))
    if outcome is Outcome.REPLACE and not study.knows_questions:
        missing.append(_question(study.unconfirmed_question))
    if outcome is Outcome.REPLACE and study.config.blind == "unknown":
        missing.append(_BLIND)
    if outcome in (Outcome.REPLACE, Outcome.DO_NOT_USE) and part.unlike and not study.drawn.is_said:
        missing.append(_drawn(part))
    return missing


def _drawn(part: LabelledPart) -> Declaration:
    return Declaration(
        f"the labelled answers stood for all, but {differences(part.unlike, 'they')}",
        "`--drawn random`, `weight=COLUMN`, `probability=COLUMN` or `strata=COLUMN` (in Python "
        "truth={'drawn': […]}), or have answers labelled that were drawn at random from all",
    )


def _order(metric: Metric, is_named: bool) -> Declaration:
    title = f"{metric.title}: " if is_named else ""
    texts = metric.label_texts
    orders = [texts, texts[::-1]] if len(texts) == 2 else [("BEST", "…", "WORST")]
    flags = [f"`--order {quote(title + ' < '.join(order))}`" for order in orders]
    return Declaration(
        "no label were worse than another",
        f"{' or '.join(flags)}, or `--order {quote(f'{title}none')}` where no label is worse (in "
        "Python columns={'order': …}, in a rubric `kind: ordinal` or without `order: unknown`)",
    )


def _question(column: str) -> Declaration:
    assumption = "each item were a question of its own"
    if column:
        assumption = f"items with the same {column} shared a question, and no others did"
    return Declaration(
        assumption,
        f"`--question {quote(column) if column else 'COLUMN'}`, or `--independent-items` where "
        "each item is a question of its own (in Python columns={'question': …} or "
        "truth={'independent_items': True})",
    )


def rule_in_words(path: Path, rubric: str) -> str:
    """Read a rule and say what each outcome requires. Raises SetupError."""
    return "\n  ".join(["a decision rule.", *rule_sentences(load_rule(path))])


def rule_sentences(rule: DecisionRule) -> list[str]:
    """The requirements of each outcome, one sentence each."""
    required = [_requirement(key, bound) for key, bound in rule.replace.bounds.items()]
    severe = (f"Severe on {m} means {label} or worse." for m, label in rule.severe_from.items())
    return [
        f"REPLACE requires that the judge {'; '.join(required)}.",
        f"Annotators stand for {_BARS[rule.replace.humans.bar]}, and the judge may be less far "
        "below where the labels leave open how well annotators agree.",
        "ASSIST requires that the judge, as a first-pass filter of new answers, is expected to "
        f"send at most {percent(rule.assist.sent)} of them to humans and to miss at most "
        f"{percent(rule.assist.missed)} of the severe ones.",
        "DO NOT USE: the judge fails a requirement of REPLACE and is no such filter. CAN'T TELL: "
        "the data show neither, or what the outcome rests on is not declared: for REPLACE the "
        "order of the labels, the question of each item and blindness, for DO NOT USE the order.",
        f"A requirement is met only if the whole {100 * rule.level:g} % interval meets it. An "
        "answer without a label counts as wrong where a requirement is to be met, and as right "
        "where it is to be failed.",
        *severe,
    ]


def _requirement(key: str, bound: float) -> str:
    """`misses severe answers at most 5 points more often than an annotator`."""
    kind, no_number = KINDS[key], Estimate(None, reason="")
    required = Condition(key, "", State.UNCLEAR, no_number, bound, True)
    return filled(kind.met if key == "controls" else kind.open, required)


def outcomes_sentence() -> str:
    """A sentence with the meaning of the four outcomes."""
    return "; ".join(f"{outcome.value}: {words}" for outcome, words in OUTCOMES.items()) + "."


def severe_sentence(metrics: Iterable[Metric], rule: DecisionRule) -> str:
    """Say which labels count as severe, without a full stop; empty where no label does."""
    titles: dict[str, list[str]] = {}
    for metric in metrics:
        if (severe_from := rule.severe_index(metric)) is not None:
            labels = listed([*map(repr, metric.label_texts[severe_from:])])
            titles.setdefault(labels, []).append(metric.title)
    which = "; ".join(f"{labels} ({listed(of)})" for labels, of in titles.items())
    if len(titles) > _MOST_LABELS and not rule.severe_from:
        which = "the last label of each metric"
    return f"Severe: {which}" if titles else ""


def reason_for(
    outcome: Outcome, replace: Sequence[Condition], assist: Sequence[Condition]
) -> tuple[str, str]:
    """A sentence to act on, and the numbers that the outcome rests on."""
    failed = [c for c in replace if c.state is State.NOT_MET]
    unclear = [c for c in replace if c.state is State.UNCLEAR]
    if outcome is Outcome.REPLACE:
        by_gold = any(KINDS[c.key].about == "gold" for c in replace)
        said = f"It {_clauses(_successes(replace))}."
        return said if by_gold else f"{said} {_SHARED}", _numbers(replace)
    if outcome is Outcome.ASSIST:
        but = f"it must not replace annotators: it {_clauses(_failures(failed))}"
        if not failed:
            but = "whether it may replace annotators is unclear"
        sends = " that sends what it labels severe," if AT_SEVERE in assist[0].title else ""
        does = _clauses(_failures(assist))
        sentence = f"As a first-pass filter{sends} it is expected to {does}; {but}."
        return sentence, _numbers([*assist, *(failed or unclear)])
    if outcome is Outcome.DO_NOT_USE:
        return f"It {_clauses(_failures(failed))}.", _numbers([*failed, *_no_filter(assist)])
    return _uncertainty(unclear), _numbers([*unclear, *_no_filter(assist)])


def _no_filter(assist: Sequence[Condition]) -> list[Condition]:
    """The condition that keeps the judge from being a filter: one that fails, else an unclear
    one."""
    for state in (State.NOT_MET, State.UNCLEAR):
        if found := [c for c in assist if c.state is state]:
            return found[:1]
    return []


def _successes(conditions: Sequence[Condition]) -> list[str]:
    first: dict[str, Condition] = {}
    for c in conditions:
        first.setdefault(KINDS[c.key].met.removesuffix(BALANCED), c)
    said = [filled(KINDS[c.key].met, c) for met, c in first.items() if met]
    return said or ["meets every requirement"]


def _failures(conditions: Sequence[Condition]) -> list[str]:
    """Clauses on what a judge did, as its conditions measured it; what holds by both measures is
    said once. Who agrees too rarely overall is also far off, and falls short on some system."""
    first: dict[str, Condition] = {}
    for c in conditions:
        first.setdefault(KINDS[c.key].about, c)
    return [filled(KINDS[c.key].failed, c) for c in first.values()]


def filled(words: str, c: Condition) -> str:
    """The words with the numbers of the condition in the place of their fields."""
    value, n, within = c.estimate.value or 0.0, c.estimate.n, round(-100 * c.bound)
    less, more = ("less", "more") if value < 0 else ("more", "less")
    points, count = counted(round(abs(100 * value)), "point"), round(value * n)
    allowed = f"at most {counted(within, 'point')} {{}} often than" if within > 0 else _AS_OFTEN
    differs = f"{points} {{}} often than" if abs(100 * value) >= 1 else _AS_OFTEN
    return words.format(
        only=f"only {count}" if count else "none", value=value, n=n, count=count, bound=c.bound,
        rival=c.rival, points=points, share=percent(value), rest=percent(1 - value),
        most=percent(c.bound), no_less=allowed.format("less"), no_more=allowed.format("more"),
        found_less=differs.format(less), found_more=differs.format(more),
    )  # fmt: skip


def _uncertainty(conditions: Sequence[Condition]) -> str:
    """A sentence on the requirements that the data leave open, and why."""
    known = [c for c in conditions if c.estimate.value is not None]
    weakest: dict[tuple[str, str], Condition] = {}
    for c in known:
        key = KINDS[c.key].open.removesuffix(BALANCED), c.rival
        weakest[key] = min(weakest.get(key, c), c, key=lambda c: c.bound)
    clauses = [filled(KINDS[c.key].open, c) for c in weakest.values()]
    parts = []
    if clauses:
        more = f"{len(clauses) - _MOST_OPEN + 1} other requirements are open, too"
        what = _clauses(clauses)
        if len(clauses) > _MOST_OPEN:
            what = f"{_clauses(clauses[: _MOST_OPEN - 1])}; {more}"
        good = all(map(_looks_met, known))
        parts.append(f"{_GOOD_BUT_FEW if good else _TOO_FEW} {what}")
    undefined = (c.estimate.reason for c in conditions if c.estimate.value is None)
    parts += dict.fromkeys(reason.rstrip(". ") for reason in undefined)
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def without_groups(groups: Sequence[Condition]) -> str:
    """A sentence on the groups of answers that are left out of REPLACE, the worst first."""
    points = listed([filled(f"{c.rival} ({{points}})", c) for c in groups])
    return f"On answers of {points} it agrees with the annotators less often than they do."


def _looks_met(c: Condition) -> bool:
    value = c.estimate.value or 0.0
    return value >= c.bound if c.at_least else value <= c.bound


def camps_sentence(camps: Sequence[InCamp]) -> str:
    """A sentence: no single bar exists, who is in which camp, and what each would decide."""
    who = "; ".join(listed(camp.names) for camp in camps)
    each = "; ".join(f"by {listed(camp.names)} alone, {camp.outcome.value}" for camp in camps)
    return (
        f"The annotators form {len(camps)} subgroups that agree within and differ across ({who}), "
        f"so that no single bar exists. Decided {each}"
    )


def _clauses(parts: Iterable[str]) -> str:
    """`agrees with annotators, beats every control, and found 8 of 10`."""
    *head, last = [*parts] or [""]
    comma = "," if len(head) > 1 else ""
    return f"{', '.join(head)}{comma} and {last}" if head else last


def _numbers(conditions: Sequence[Condition]) -> str:
    """`severe recall 0.812 [0.774, 0.850], required ≥ 0.700 · …`"""
    return " · ".join(map(_measured, conditions))


def _measured(c: Condition) -> str:
    kind, name = KINDS[c.key], filled(KINDS[c.key].name, c)
    if c.estimate.value is None:
        return f"{name} undefined: {c.estimate.reason.rstrip('. ')}"
    missing = (c.bound > 0 and kind.positive_bound) or c.missing
    measured = f"{name} {c.estimate:{kind.number}}, required {bound_text(c)}"
    return f"{measured} ({missing})" if missing else measured


def bound_text(c: Condition) -> str:
    """`≥ 0.700`, `≤ 0.050`, `> 0`."""
    if c.key == "controls":
        return "> 0"
    return f"{'≥' if c.at_least else '≤'} {c.bound:{KINDS[c.key].number}}"


def threshold_text(threshold: float) -> str:
    """`0.31`; infinite where only answers without a verdict are sent, or where all are."""
    if math.isinf(threshold):
        return "none is sent" if threshold > 0 else "all are sent"
    return f"{threshold:.3g}"
