"""One line for each decision: the outcome, the numbers to read it beside, why, and what to do next.

Everything in it is taken from the decision; nothing is measured here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from judgebench.alignment.judge_scores import coverage_in_words
from judgebench.decisions.anchors import BOTH_MISS, FINDS_MORE
from judgebench.decisions.conditions import NO_SEVERE_PAIR, SEVERITY
from judgebench.decisions.decision import (
    AT_SEVERE,
    BALANCED,
    KINDS,
    OF_SEVERE,
    Condition,
    Decision,
    Decisions,
    MoreData,
    Outcome,
    Shares,
    State,
    SubgroupDecision,
    TriageCurve,
)
from judgebench.decisions.rule import DecisionRule, load_rule
from judgebench.records import SEVERAL, Estimate, Row, Status, group_by_key
from judgebench.results.blocks import MISSES, STRESSED, DecisionSummary
from judgebench.results.tables import NO_REASON, CellTone, in_per_cent
from judgebench.rubric import Metric, Rubric
from judgebench.stats.annotator_bar import BarKind
from judgebench.stats.classification import Choice
from judgebench.studies.item_table import judge_labels
from judgebench.studies.study import LabelledPart, Study, differences
from judgebench.text import about, counted, listed, percent

LOOKS: Mapping[Outcome, CellTone] = {
    Outcome.REPLACE: "good",
    Outcome.ASSIST: "fair",
    Outcome.DO_NOT_USE: "bad",
    Outcome.CANT_TELL: "unclear",
}

_WORDS: Mapping[Outcome, str] = {
    Outcome.REPLACE: "Yes",
    Outcome.ASSIST: "As a filter only",
    Outcome.DO_NOT_USE: "No",
    Outcome.CANT_TELL: "Not known yet",
}
_MOST_NAMED = 4  # decisions in a sentence
_CHANGE = f"Read its {MISSES}, then change its prompt or model"
_SHARED_ERROR = (
    "Read the anchors that annotators and judge missed, then change the guidelines and the prompt: "
    "labels made by them carry the same error."
)
_STRESS_KINDS = {"robustness", "planted", "attack_gain"}
AGREEMENT = "humans_accuracy"  # the condition that speaks of the shares of a line


def standings(decisions: Decisions) -> Iterator[DecisionSummary]:
    """A line for each decision, the judges of a metric after each other.

    >>> import judgebench as jb
    >>> first = next(standings(jb.decide(jb.open_run("runs/small"))))
    >>> first.judge, first.outcome
    ('my-judge', "CAN'T TELL")
    """
    for d in decisions:
        shares = decisions.shares(d.judge, d.metric)
        yield DecisionSummary(
            judge=d.judge, metric=decisions.titles[d.metric], outcome=d.shown,
            look=LOOKS[d.outcome], accuracy=shares.worst,
            failures=_failures(decisions, d, shares.accuracy.n_missing),
            asked=coverage_in_words(decisions.context.rows, d.judge, d.metric),
            humans=shares.humans, annotators=shares.annotators,
            baseline=shares.baseline.estimate, baseline_name=shares.baseline.judge,
            margin=_allowed_gap(d), why=d.reason or NO_REASON,
            next=next_step(decisions, d, shares), numbers=d.numbers,
            alone=_alone(d),
        )  # fmt: skip


def _failures(decisions: Decisions, d: Decision, n: int) -> str:
    """`4 refused, 2 unparsed`, or `6 failed` where not all kinds are known; empty of none."""
    kinds = Counter[str]()
    if n and (study := decisions.study):
        (judge,) = (judge for judge in study.real_judges if judge.name == d.judge)
        humans = study.humans[d.metric]
        is_due = study.asked(judge, humans.metric) & (humans.truth >= 0)
        kinds.update(compress(judge_labels(study, judge, humans.metric)[1], is_due))
        del kinds[Status.OK]
    if kinds.total() != n:
        kinds = Counter({Status.FAILED: n})
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())


def _allowed_gap(d: Decision) -> float:
    """The distance to the annotators that the decision allows; 0 where another requirement failed,
    so that nobody takes what is shaded for what decided."""
    failed = {c.key for c in d.replace if _fails(c)}
    if failed and AGREEMENT not in failed:
        return 0.0
    bounds = [c.bound for c in d.replace if c.key == AGREEMENT]
    return max(0.0, round(-bounds[0], 2)) if bounds else 0.0


def next_step(decisions: Decisions, d: Decision, shares: Shares) -> str:
    """Say in a sentence what to do now."""
    if d.outcome is Outcome.REPLACE:
        but = f", but not those of {listed([c.rival for c in d.left_out])}" if d.left_out else ""
        return f"Let it label answers such as these{but}, and have people label some of them blind."
    if d.outcome is Outcome.ASSIST:
        return _as_filter(decisions, d)
    if d.outcome is Outcome.CANT_TELL:
        return d.advice or _label_more(d.more or MoreData(reason=NO_REASON))
    return _improve(d, shares)


def answer(decisions: Decisions) -> str:
    """Say whether the judges can replace the annotators, in a sentence for each outcome: `Yes:
    Tone (gpt-4). No: 7 of the 8 decisions.`"""
    if len(decisions) == 1:
        (d,) = decisions
        return f"{_word(d)}. {d.reason}"
    in_order = sorted(decisions, key=lambda d: [*_WORDS].index(d.outcome))
    by_word = group_by_key((_word(d), d) for d in in_order)
    sentences = " ".join(f"{word}: {_which(decisions, same)}." for word, same in by_word.items())
    reasons = {d.reason for d in decisions}
    return f"{sentences} {reasons.pop()}" if len(reasons) == len(by_word) == 1 else sentences


def _word(d: Decision) -> str:
    """`Yes`, `Yes, except for language = de`, `Not known yet, would be REPLACE`."""
    if d.would_be:
        return f"{_WORDS[d.outcome]}, would be {d.shown_would_be}"
    return f"{_WORDS[d.outcome]}{d.shown.removeprefix(d.outcome)}"


def _which(decisions: Decisions, same: Sequence[Decision]) -> str:
    """`Tone and Bias (gpt-4), Bias (mini)`, on one metric `gpt-4 and mini`; of many decisions their
    number."""
    if len(same) > _MOST_NAMED:
        return f"{len(same)} of the {len(decisions)} decisions"
    if len({d.metric for d in decisions}) == 1:
        return listed([d.judge for d in same])
    titles = group_by_key((d.judge, decisions.titles[d.metric]) for d in same)
    return ", ".join(f"{listed(on)} ({judge})" for judge, on in titles.items())


def _label_more(more: MoreData) -> str:
    """Say how much more data would make a decision clear, and how surely, or why nobody knows."""
    if more.items is None:
        if more.reason.endswith(NO_SEVERE_PAIR):
            return "Have severe answers labelled: none of those with human labels is severe."
        return _as_sentence(more.reason)
    severe = "" if more.severe is None else f"expect {about(more.severe)} severe"
    n, items = about(more.items), SEVERAL[more.of] if more.items > 1 else more.of
    needed = f"{n} more {items} ({severe})" if severe else f"{n} more {items}"
    # A few pairs among hundreds of answers matter little.
    shares_questions = (more.questions_now or 0) < 0.9 * (more.answers_now or 0)
    if more.questions and shares_questions:
        questions = "questions" if more.questions > 1 else "question"
        inside = ", ".join(filter(None, (f"{n} {items}", severe)))
        needed = f"{about(more.questions)} more {questions} ({inside})"
    besides = f" {_as_sentence(more.reason)}" if more.reason else ""
    if more.clear is None:
        return f"Label about {needed}.{besides}"
    towards = f", most often {more.towards.value}" if more.towards else ""
    clear = f"with these, {percent(more.clear)} of simulated studies reach a decision"
    return f"Label about {needed}: {clear}{towards}.{besides}"


def _as_sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:].rstrip('. ')}."


def _as_filter(decisions: Decisions, d: Decision) -> str:
    """Say which answers people read, how many these are and what is missed."""
    which = "the answers that it labels severe"
    for curve in decisions.curves:
        if (curve.judge, curve.metric) == (d.judge, d.metric) and curve.choice:
            which = _sent(curve, curve.choice, decisions.rubric)
    expected = {c.key: percent(c.estimate.value) for c in d.assist}
    return (
        f"Use it as a filter: people read {which}, about {expected.get('sent')} of new answers, "
        f"and about {expected.get('missed')} of the severe ones are missed."
    )


def _sent(curve: TriageCurve, choice: Choice, rubric: Rubric) -> str:
    """Name the answers at or above the threshold: a severity says nothing to who reads labels."""
    if choice.fixed:
        return "the answers that it labels severe"
    if curve.signal != SEVERITY:
        return f"the answers whose {curve.signal} is at least {threshold_text(choice.threshold)}"
    metric = next(m for m in rubric.metrics if m.id == curve.metric)
    by_text = zip(metric.label_texts, metric.severities, strict=True)
    labels = [repr(text) for text, severity in by_text if severity >= choice.threshold]
    return f"the answers that it labels {' or '.join(labels)}"


def _improve(d: Decision, shares: Shares) -> str:
    """Say where to look first: at a baseline that does better, at unreadable replies, at misses."""
    failed_keys = {c.key for c in d.replace if _fails(c)}
    if failed_keys and failed_keys <= _STRESS_KINDS:
        return f"{_CHANGE}.".replace(MISSES, STRESSED)
    if failed_keys == {"anchors"}:
        return _SHARED_ERROR
    failed = next((c for c in d.replace if c.key == "failures" and _fails(c)), None)
    if failed:
        share = percent(failed.estimate.value)
        return f"Make its replies readable first: {share} of the answers have no label."
    accuracy, baseline = shares.worst.value, shares.baseline.estimate.value
    if accuracy is not None and baseline is not None and baseline >= accuracy:
        return f"{_CHANGE}; the baseline {shares.baseline.judge} is right on {percent(baseline)}."
    return f"{_CHANGE}."


def _fails(c: Condition) -> bool:
    return c.state is State.NOT_MET


OUTCOMES: Mapping[Outcome, str] = {
    Outcome.REPLACE: "the judge may replace the human annotators on that metric",
    Outcome.ASSIST: "as a first-pass filter, it may sort out answers that no human needs to read",
    Outcome.DO_NOT_USE: "for single answers, the judge may neither replace annotators nor be a "
    "filter",
    Outcome.CANT_TELL: "the data show neither, or what the outcome rests on is not declared",
}
ANCHORS_MISS = "Anchors cannot show errors that are unlike the flaws planted in them."
STATES = (
    f"{State.MET.value.capitalize()}: the whole interval lies on the right side of its bound; of "
    "a group of answers, it is not shown to be worse than its bound. "
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
    "nobody knows."
)
RESTS_ON = (
    "the decision rests on agreement with annotators, the distance from the reference label, "
    "baselines and failures. A first-pass filter is not measured, so no outcome is ASSIST."
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


def rule_sentences(rule: DecisionRule, has_severe: bool = True) -> list[str]:
    """The requirements of each outcome, one sentence each; without those on severe answers where no
    metric `has_severe` labels."""
    bounds = rule.replace.bounds.items()
    asked = (bound for bound in bounds if has_severe or bound[0] not in OF_SEVERE)
    required = [_requirement(key, bound) for key, bound in asked]
    of_filter = (
        "ASSIST requires that the judge, as a first-pass filter of new answers, is expected to "
        f"send at most {percent(rule.assist.sent)} of them to humans and to miss at most "
        f"{percent(rule.assist.missed)} of the severe ones."
    )
    is_none = " and is no such filter" if has_severe else ""
    severe = (f"Severe on {m} means {label} or worse." for m, label in rule.severe_from.items())
    return [
        f"REPLACE requires that the judge {'; '.join(required)}.",
        f"Annotators stand for {_BARS[rule.replace.humans.bar]}, and the judge may be less far "
        "below where the labels leave open how well annotators agree.",
        *([of_filter] if has_severe else ()),
        f"DO NOT USE: the judge fails a requirement of REPLACE{is_none}. CAN'T TELL: "
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
    titles = group_by_key(
        (listed([*map(repr, metric.label_texts[severe_from:])]), metric.title)
        for metric in metrics
        if (severe_from := rule.severe_index(metric)) is not None
    )
    which = "; ".join(f"{labels} ({listed(of)})" for labels, of in titles.items())
    if len(titles) > _MOST_LABELS and not rule.severe_from:
        which = "the last label of each metric"
    return f"Severe: {which}" if titles else ""


def scores_sentence(metrics: Iterable[Metric]) -> str:
    """Say what decisions on scores rest on, of which no label is severe; empty without any."""
    scores = [metric.title for metric in metrics if metric.severe == "none"]
    return f"{listed(scores)}: {RESTS_ON}" if scores else ""


def reason_for(
    outcome: Outcome, replace: Sequence[Condition], assist: Sequence[Condition]
) -> tuple[str, str]:
    """A sentence to act on, and the numbers that the outcome rests on."""
    failed = [c for c in replace if _fails(c)]
    unclear = [c for c in replace if c.state is State.UNCLEAR]
    if outcome is Outcome.REPLACE:
        by_gold = any(KINDS[c.key].about == "gold" for c in replace)
        said = f"It {_clauses(_successes(replace))}."
        return said if by_gold else f"{said} {_SHARED}", _numbers(replace)
    if outcome is Outcome.ASSIST:
        but = f"it must not replace annotators: it {_clauses(_failed(failed))}"
        if not failed:
            but = "whether it may replace annotators is unclear"
        sends = " that sends what it labels severe," if AT_SEVERE in assist[0].title else ""
        does = _clauses(_failed(assist))
        sentence = f"As a first-pass filter{sends} it is expected to {does}; {but}."
        return sentence, _numbers([*assist, *(failed or unclear)])
    if outcome is Outcome.DO_NOT_USE:
        return f"It {_clauses(_failed(failed))}.", _numbers([*failed, *_no_filter(assist)])
    return _uncertainty(unclear), _numbers([*unclear, *_no_filter(assist)])


def _no_filter(assist: Sequence[Condition]) -> list[Condition]:
    """The condition that keeps the judge from being a filter: one that fails, else an unclear
    one."""
    failed = [c for c in assist if _fails(c)]
    return (failed or [c for c in assist if c.state is State.UNCLEAR])[:1]


def _successes(conditions: Sequence[Condition]) -> list[str]:
    by_clause = group_by_key((KINDS[c.key].met.removesuffix(BALANCED), c) for c in conditions)
    clauses = [filled(KINDS[c.key].met, c) for clause, (c, *_) in by_clause.items() if clause]
    return clauses or ["meets every requirement"]


def _failed(conditions: Sequence[Condition]) -> list[str]:
    """Clauses on what a judge did, as its conditions measured it; what holds by both measures is
    said once. Who agrees too rarely overall is also far off, and falls short on some system."""
    by_subject = group_by_key((KINDS[c.key].about, c) for c in conditions)
    return [filled(KINDS[c.key].failed, c) for c, *_ in by_subject.values()]


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
    return _as_sentence(text) if text else ""


def without_groups(groups: Sequence[Condition]) -> str:
    """A sentence on the groups of answers that are left out of REPLACE, the worst first."""
    points = listed([filled(f"{c.rival} ({{points}})", c) for c in groups])
    return f"On answers of {points} it agrees with the annotators less often than they do."


def _looks_met(c: Condition) -> bool:
    value = c.estimate.value or 0.0
    return value >= c.bound if c.at_least else value <= c.bound


def camps_sentence(camps: Sequence[SubgroupDecision]) -> str:
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
    parts: dict[str, list[str]] = {}  # names by what was measured, or why nothing was
    for c in conditions:
        if c.estimate.value is None:
            why = f" undefined: {c.estimate.reason.rstrip('. ')}"
            parts.setdefault(why, []).append(filled(KINDS[c.key].name, c))
        else:
            parts[_measured(c)] = []
    return " · ".join(f"{' and '.join(names)}{text}" for text, names in parts.items())


def _measured(c: Condition) -> str:
    kind, name = KINDS[c.key], filled(KINDS[c.key].name, c)
    missing = (c.bound > 0 and kind.positive_bound) or c.missing
    measured = f"{name} {c.estimate:{kind.number}}, required {bound_text(c)}"
    return f"{measured} ({missing})" if missing else measured


def broken(promises: Sequence[Row]) -> list[str]:
    """A sentence that names the promises of a protocol that were broken; none where none was."""
    reasons = [row.estimate.reason for row in promises if row["state"] == "broken"]
    return [f"The protocol was not kept: {'; '.join(reasons)}."] if reasons else []


def bound_text(c: Condition) -> str:
    """`≥ 0.700`, `≤ 0.050`, `> 0`."""
    if c.key == "controls":
        return "> 0"
    return f"{'≥' if c.at_least else '≤'} {c.bound:{KINDS[c.key].number}}"


def _alone(d: Decision) -> str:
    """Say how much the judge may decide alone; empty where nothing, and where it may decide all."""
    if d.outcome is Outcome.REPLACE or (alone := d.alone.check).share.value is None:
        return ""
    return (
        f"It may decide alone on {in_per_cent(alone.share)} of answers like these, where "
        f"it sees nothing severe and the {d.alone.signal} is at least "
        f"{threshold_text(alone.threshold)}; people label {percent(1 - alone.share.value)}."
    )


def threshold_text(threshold: float) -> str:
    """`0.31`; infinite where only answers without a verdict are sent, or where all are."""
    if math.isinf(threshold):
        return "none is sent" if threshold > 0 else "all are sent"
    return f"{threshold:.3g}"


def anchor_sentences(decisions: Decisions) -> Iterator[str]:
    """Say which judge has no verdict on the anchors, what share of the severe ones annotators and
    judges may both miss, where a judge finds more than they do, and what anchors cannot show."""
    rows = decisions.anchors.select("anchors", "found")
    judges = {row.judge for row in rows if row.estimate.n}
    for judge in sorted({row.judge for row in rows if "" in judges} - judges):
        yield (
            f"{judge} has no verdict on the anchors: let it judge answers_for_judge.csv of the "
            "study, which has all answers."
        )
    for row in decisions.anchors.select("anchors"):
        share, about = row.estimate, f"{decisions.titles[row.metric]}, {row.judge}: annotators"
        if row.statistic == BOTH_MISS:
            yield (
                f"{about} and judge both miss {percent(share.value)} of the answers with a known "
                f"severe flaw (anchors), at most {percent(share.high)}."
            )
        elif row.statistic == FINDS_MORE and (share.value or 0) <= 1 - decisions.rule.level:
            yield f"{about} miss severe flaws that the judge finds (p = {share.value:.2g})."
    yield ANCHORS_MISS
