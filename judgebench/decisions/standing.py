"""One line for each decision: the outcome, the numbers to read it beside, why, and what to do next.

Everything in it is taken from the decision; nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from judgebench.alignment.against_truth import coverage_in_words
from judgebench.decisions.conditions import NO_SEVERE_PAIR
from judgebench.decisions.result import (
    Condition,
    Decision,
    Decisions,
    MoreData,
    Outcome,
    Shares,
    State,
    TriageCurve,
)
from judgebench.decisions.triage import SEVERITY
from judgebench.decisions.words import threshold_text
from judgebench.records import SEVERAL
from judgebench.results.part import MISSES, Standing
from judgebench.results.tables import NO_REASON, Look
from judgebench.rubric import Rubric
from judgebench.stats.thresholds import Choice
from judgebench.words import about, listed, percent

LOOKS: Mapping[Outcome, Look] = {
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
AGREEMENT = "humans_accuracy"  # the condition that speaks of the shares of a line


def standings(decisions: Decisions) -> Iterator[Standing]:
    """A line for each decision, the judges of a metric after each other.

    >>> import judgebench as jb
    >>> first = next(standings(jb.decide(jb.open_run("runs/small"))))
    >>> first.judge, first.outcome
    ('my-judge', "CAN'T TELL")
    """
    for d in decisions:
        shares = decisions.shares(d.judge, d.metric)
        yield Standing(
            judge=d.judge, metric=decisions.titles[d.metric], outcome=d.shown,
            look=LOOKS[d.outcome], accuracy=shares.worst, failures=shares.accuracy.n_missing,
            asked=coverage_in_words(decisions.context.rows, d.judge, d.metric),
            humans=shares.humans, annotators=shares.annotators,
            baseline=shares.baseline.estimate, baseline_name=shares.baseline.judge,
            margin=_allowed_gap(d), why=d.reason or NO_REASON,
            next=next_step(decisions, d, shares), numbers=d.numbers,
        )  # fmt: skip


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
    """Say whether the judges can replace the annotators, in a sentence for each outcome: `Yes: for
    gpt-4 on Tone. No: for 7 of the 8 decisions.`"""
    if len(decisions) == 1:
        (d,) = decisions
        return f"{_word(d)}. {d.reason}"
    by_word: dict[str, list[Decision]] = {}
    for d in sorted(decisions, key=lambda d: [*_WORDS].index(d.outcome)):
        by_word.setdefault(_word(d), []).append(d)
    sentences = " ".join(f"{word}: {_which(decisions, same)}." for word, same in by_word.items())
    reasons = {d.reason for d in decisions}
    return f"{sentences} {reasons.pop()}" if len(reasons) == len(by_word) == 1 else sentences


def _word(d: Decision) -> str:
    """`Yes`, `Yes, except for language = de`, `Not known yet, would be REPLACE`."""
    if d.would_be:
        return f"{_WORDS[d.outcome]}, would be {d.shown_would_be}"
    return f"{_WORDS[d.outcome]}{d.shown.removeprefix(d.outcome)}"


def _which(decisions: Decisions, same: Sequence[Decision]) -> str:
    """`for gpt-4 on Tone and Bias and mini on Bias`, on one metric `for gpt-4 and mini`; of many
    decisions their number."""
    if len(same) > _MOST_NAMED:
        return f"for {len(same)} of the {len(decisions)} decisions"
    if len({d.metric for d in decisions}) == 1:
        return f"for {listed([d.judge for d in same])}"
    titles: dict[str, list[str]] = {}
    for d in same:
        titles.setdefault(d.judge, []).append(decisions.titles[d.metric])
    return f"for {listed([f'{judge} on {listed(on)}' for judge, on in titles.items()])}"


def _label_more(more: MoreData) -> str:
    """Say how much more data would make a decision clear, and how surely, or why nobody knows."""
    if more.items is None:
        if more.reason.endswith(NO_SEVERE_PAIR):
            return "Have severe answers labelled: none of those with human labels is severe."
        return f"{more.reason[:1].upper()}{more.reason[1:].rstrip('. ')}."
    severe = "" if more.severe is None else f", {about(more.severe)} of them severe"
    items = about(more.items), SEVERAL[more.of] if more.items > 1 else more.of
    needed = f"{' more '.join(items)}{severe}"
    # A few pairs among hundreds of answers matter little.
    shares_questions = (more.questions_now or 0) < 0.9 * (more.answers_now or 0)
    if more.questions and shares_questions:
        questions = "questions" if more.questions > 1 else "question"
        needed = f"{about(more.questions)} more {questions} ({' '.join(items)}{severe})"
    if more.clear is None:
        return f"Label about {needed}."
    towards = f", most often {more.towards.value}" if more.towards else ""
    clear = f"{percent(more.clear)} of simulated studies of that size reach a decision"
    return f"Label about {needed}: {clear}{towards}."


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
    failed = next((c for c in d.replace if c.key == "failures" and _fails(c)), None)
    if failed:
        share = percent(failed.estimate.value)
        return f"Make its replies readable first: {share} of the answers have no label."
    accuracy, baseline = shares.worst.value, shares.baseline.estimate.value
    if accuracy is not None and baseline is not None and baseline >= accuracy:
        return (
            f"{_CHANGE}; the baseline {shares.baseline.judge}, which never reads an answer, is "
            f"right on {percent(baseline)}."
        )
    return f"{_CHANGE}."


def _fails(c: Condition) -> bool:
    return c.state is State.NOT_MET
