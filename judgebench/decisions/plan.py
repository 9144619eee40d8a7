"""How much more data would make a decision clear: larger studies are drawn from this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from judgebench.decisions.conditions import findings
from judgebench.decisions.counts import HumanSide, StudyCounts, study_counts
from judgebench.decisions.result import Condition, MoreData, Outcome, State
from judgebench.decisions.rule import DecisionRule
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.copies import Bar, bar_of, signal_left

_DRAWN = 20_000  # answers that stand for all, from which studies of two and of three are drawn
_BARS = 4  # that three annotators of equal skill set by chance
_CELLS = 1 << 22  # of multiplicities drawn at once: 32 MiB
_STUDY_KEYS = ("humans_", "controls_", "severe_", "failures")


def more_data(
    counts: StudyCounts, rule: DecisionRule, conditions: Sequence[Condition], seed: int
) -> MoreData:
    """The least number of further items with which a share `rule.plan.chance` of simulated studies
    ends clear: every condition met, or one failed.

    A larger study has more clusters like those there are: shares of the kinds of clusters are drawn
    by the Bayesian bootstrap (Rubin, 1981), so that what is not known of them counts, and then
    the clusters. Human labels for each item and failures are as frequent as now. What the labels
    cannot tell (robustness) is taken as it stands.
    """
    answers, asked = counts.total_asked, counts.asked[:, 0] > 0
    questions = round(float(counts.how_many @ asked))
    now = MoreData(answers_now=answers, questions_now=questions)
    if blocked := _blocked(counts, rule, conditions):
        return replace(now, reason=blocked)
    clusters = round(float(counts.how_many.sum()))
    least, most = 0, clusters * (rule.plan.most - 1)
    share, towards = _simulate(counts, rule, conditions, most, seed)
    if share < rule.plan.chance:
        few = f"{questions:,} questions ({answers:,} answers)"
        times = f"{rule.plan.most} times the {few if now.few_questions else 'items'}"
        reason = f"even with {times} only {100 * share:.0f} % of simulated studies end clear"
        return replace(now, clear=share, towards=towards, reason=reason)
    now = replace(now, clear=share, towards=towards)
    while most - least > max(1, clusters // 20):
        middle = (least + most) // 2
        share, towards = _simulate(counts, rule, conditions, middle, seed)
        if share >= rule.plan.chance:
            most, now = middle, replace(now, clear=share, towards=towards)
        else:
            least = middle
    factor = most / clusters
    totals = (counts.how_many @ x for x in (counts.asked[:, 0], counts.labels, counts.severe[:, 0]))
    items, labels, severe = (int(np.ceil(factor * total)) for total in totals)
    spent = labels + round(float(counts.how_many @ counts.labels))
    alone = towards is Outcome.REPLACE and not now.few_questions
    by = third_annotator(counts, rule, spent, seed) if alone else (None, None)
    return replace(
        now, items=items, labels=labels, severe=severe if counts.has_severity else None,
        questions=int(np.ceil(factor * questions)), spent=spent, by_two=by[0], by_three=by[1],
    )  # fmt: skip


def third_annotator(
    counts: StudyCounts, rule: DecisionRule, labels: int, seed: int
) -> tuple[float, float] | tuple[None, None]:
    """The shares of studies that end in REPLACE where so many human labels are of two annotators,
    and of three; None unless two set the bar.

    Annotators are taken for equals and every error for equally likely, so that agreement gives
    their accuracy and the judge's (`signal_left`), and each answer for a question of its own.
    """
    if counts.pairs.shape[1] != 2:
        return None, None
    k, rng = counts.items.shape[1], np.random.default_rng(seed)
    n, agreeing, said = (
        np.einsum("u,ubk->k", counts.how_many, x)
        for x in (counts.pairs, counts.annotator_pairs, counts.judge_pairs)
    )
    left = max(0.01, float(signal_left(agreeing.sum() / n.sum(), k)))
    right = (1 + (k - 1) * left) / k
    rights = *(right,) * 3, (1 + (k * said.sum() / n.sum() - 1) / left) / k
    shares = np.clip(n / n.sum() - (1 - right) / (k - 1), 0, None)
    true = rng.choice(k, size=_DRAWN, p=shares / shares.sum())
    *own, judged = (
        np.where(rng.random(_DRAWN) < p, true, (true + rng.integers(1, k, _DRAWN)) % k)
        for p in rights
    )
    _, failing = counts.how_many @ counts.asked / counts.total_asked
    judged = np.where(rng.random(_DRAWN) < failing, -1, judged)

    def share(people: IntArray) -> float:
        size, met = labels // people.shape[1], []
        for _ in range(_BARS if people.shape[1] > 2 else 1):  # two set one bar
            some = people[rng.integers(0, _DRAWN, size)]
            bar = bar_of(some, Clusters(np.arange(size), size), k, rule.replace.humans.bar)
            drawn = _of_equals(people, judged, bar, counts)
            kinds = drawn.how_many / _DRAWN
            how_many = rng.multinomial(size, kinds, size=rule.plan.studies)
            found = findings(drawn, rule, how_many.astype(np.float64))
            met.append(np.all([f.met for f in found], axis=0).mean())
        return float(np.mean(met))

    return share(np.stack(own[:2], axis=1)), share(np.stack(own, axis=1))


def _of_equals(own: IntArray, judged: IntArray, bar: Bar, like: StudyCounts) -> StudyCounts:
    """The counts of a judge beside two or three annotators (items, annotators)."""
    n, a = own.shape
    k = like.items.shape[1]
    side = HumanSide(
        np.sort(own, axis=1)[:, a // 2], own,
        np.stack([np.delete(own, one, axis=1).max(axis=1) for one in range(a)], axis=1),
        Clusters(np.arange(n), n), k, like.severe_from, bar.weights, bar.spread,
    )  # fmt: skip
    constants = {f"constant {label}": np.full(n, label) for label in range(k)}
    return study_counts(side, judged, np.ones(n, dtype=np.bool_), constants)


def _blocked(counts: StudyCounts, rule: DecisionRule, conditions: Sequence[Condition]) -> str:
    """Why no larger study can be simulated, or empty."""
    if counts.how_many.sum() < rule.questions:
        return f"fewer than {rule.questions} questions have human labels: too few to plan from"
    of_study = [c for c in conditions if c.key.startswith(_STUDY_KEYS)]
    undefined = [c.estimate.reason for c in of_study if c.estimate.value is None]
    if undefined:
        return f"nothing to plan from: {undefined[0]}"
    noisy = [c.missing for c in conditions if c.key == "severe_recall" and c.missing]
    if noisy:
        return f"more labels such as these do not help: {noisy[0]}"
    others = [c for c in conditions if c not in of_study and c.state is State.UNCLEAR]
    if others:
        told = "more human labels do not settle what the stress test leaves open"
        return f"{told}: {others[0].title}"
    return ""


def _simulate(
    counts: StudyCounts,
    rule: DecisionRule,
    conditions: Sequence[Condition],
    further: int,
    seed: int,
) -> tuple[float, Outcome | None]:
    """The share of studies with `further` clusters more that end clear, and where most do."""
    how_many = _larger(counts.how_many, further, rule.plan.studies, seed)
    found = list(findings(counts, rule, how_many))
    own = {finding.key for finding in found}
    fixed = [c for c in conditions if c.key not in own]
    met = np.all([f.met for f in found], axis=0) & all(c.state is State.MET for c in fixed)
    failed = np.any([f.not_met for f in found], axis=0)
    failed |= any(c.state is State.NOT_MET for c in fixed)
    towards = Outcome.REPLACE if met.mean() >= failed.mean() else Outcome.DO_NOT_USE
    clear = float((met | failed).mean())
    return clear, towards if clear > 0 else None


def _larger(how_many: FloatArray, further: int, studies: int, seed: int) -> FloatArray:
    """How many clusters of each kind larger studies hold: (studies, U)."""
    rng = np.random.default_rng(seed)
    studies = max(20, min(studies, _CELLS // len(how_many)))
    weights = rng.standard_gamma(how_many, size=(studies, len(how_many)))
    shares = weights / weights.sum(axis=1, keepdims=True)
    return how_many + rng.multinomial(further, shares).astype(np.float64)
