"""Decisions in studies that people really run: what goes wrong, and what the rule makes of it.

Each scenario draws studies of 300 to 1,000 answers with three annotators and decides them by the
rule: with labels declared blind and each answer a question of its own, but where a column says
otherwise. `without` is the same rule without the requirement that the scenario is about. Wrong
scenarios should rarely end in REPLACE, or in ASSIST, right ones should keep it. What turns on a
declaration goes through tables, as `judgebench decide` reads and decides them.
`python benchmarks/decisions.py` holds the scenarios of annotators and judges themselves.

    python benchmarks/studies.py                       # 400 studies for each line, 40 by tables
    python benchmarks/studies.py --only declarations   # one table of several
    python benchmarks/studies.py --quick               # 2 studies for each line
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import yaml
from decisions import (
    AUTHORS,
    MARGIN,
    OUTSIDE,
    SCENARIOS,
    Draw,
    assists,
    conditions,
    first_pass,
    gate_of,
    is_met,
    outcome_of,
    side_of,
    study,
)
from numpy.typing import NDArray
from scipy.special import stdtrit

import judgebench as jb
from judgebench.decisions.conditions import (
    findings,
    of_groups,
)
from judgebench.decisions.counts import (
    AGREED,
    HumanSide,
    adjudicated,
    disagreements,
    study_counts,
)
from judgebench.decisions.decide import decisions
from judgebench.decisions.decision import State
from judgebench.decisions.guards import why_derived
from judgebench.decisions.rule import (
    DecisionRule,
    FalseAlarmsRule,
    HumansRule,
    PlanRule,
    ReplaceRule,
)
from judgebench.stats.arrays import Clusters, IntArray
from judgebench.stats.consensus import CRITICAL_ROOT, recall_gap
from judgebench.stats.intervals import mean_difference
from judgebench.stats.partly_labelled import Sample, unlike
from judgebench.studies.study import FEWEST

RULE = DecisionRule()
Rng = np.random.Generator
Decided = tuple[float, ...]  # REPLACE, or what the table is about, in each of its columns


def flipped(true: IntArray, wrong: float | NDArray[np.float64], rng: Rng) -> IntArray:
    return np.where(rng.random(len(true)) < wrong, 1 - true, true)


def drawn(true: IntArray, own: Sequence[IntArray], judged: IntArray, groups: IntArray) -> Draw:
    """A study of two labels, or more, in which every annotator and the judge labelled all."""
    rows, k = np.ones(len(true), dtype=np.bool_), int(max(true.max(), judged.max())) + 1
    return Draw(true, np.stack(own, axis=1), judged, rows, rows, groups, k, False)


def labels(rng: Rng, n: int = 400, severe: float = 0.4) -> IntArray:
    return (rng.random(n) < severe).astype(np.int64)


def with_gold(drew: Draw, share: float, rng: Rng, at_random: bool = False) -> HumanSide:
    """The annotators, with the true label as an adjudicated one on a share of the disagreements, or
    `at_random` of all items."""
    side, _ = side_of(drew)
    known = disagreements(side.own, drew.judged) != AGREED if not at_random else drew.asked
    known = known & (rng.random(len(drew.true)) < share)
    return replace(side, gold=np.where(known, drew.true, -1))


def replaces(
    drew: Draw, rng: Rng, *rules: DecisionRule, side: HumanSide | None = None
) -> list[bool]:
    """Return True for each rule that replaces annotators where labels are declared blind."""
    usual, bar = side_of(drew)
    side = side or usual
    if gate_of(drew, side):
        return [False] * len(rules)
    if side.gold is not None and adjudicated(side, drew.judged, drew.asked)[2]:
        return [False] * len(rules)
    counts = study(drew, side, rng)
    return [is_met(conditions(drew, side, bar, counts, rule)) for rule in rules]


NOT_PLANNED = RULE.model_copy(update={"plan": PlanRule(most=2, studies=20)})  # plans go unread
YES_NO = np.array(["no", "yes"])


def decided_by_tables(
    drew: Draw, declared: Sequence[dict[str, object]], questions: IntArray | None = None
) -> list[bool]:
    """REPLACE of tables of these labels, declared in each of the ways, as `judgebench decide` reads
    and decides them; `questions` stand in a column."""
    n = len(drew.true)
    items = {"item": [f"item {i}" for i in range(n)]}
    if questions is not None:
        items["question"] = [f"question {q}" for q in questions]
    people = {f"annotator {a}": YES_NO[labels] for a, labels in enumerate(drew.own.T, 1)}
    made = jb.study(
        pd.DataFrame({**items, **people}),
        pd.DataFrame({"item": items["item"], "judge": YES_NO[drew.judged]}),
        columns={"order": "no < yes"},
    )
    ways = (replace(made, config=made.config.model_copy(update=way)) for way in declared)
    return [next(decisions(way, NOT_PLANNED)).outcome.value == "REPLACE" for way in ways]


def at(level: float) -> DecisionRule:
    return RULE.model_copy(update={"level": level})


# --- scenarios -----------------------------------------------------------------------------------


BLIND = {"blind": "yes"}
QUESTIONS_KNOWN = {"independent_items": True}
IN_SIGHT = tuple({**QUESTIONS_KNOWN, **blind} for blind in ({}, {"blind": "no"}, BLIND))


def in_sight(kept: float, wrong: float, rng: Rng) -> Draw:
    """Annotators keep the judge's label in a share of the items."""
    true = labels(rng)
    judged = flipped(true, 0.16, rng)
    people = [
        np.where(rng.random(len(true)) < kept, judged, flipped(true, wrong, rng)) for _ in range(3)
    ]
    return drawn(true, people, judged, np.arange(len(true)))


def beside_a_sister(rng: Rng) -> Draw:
    """Annotators keep the label of another model in 30 % of the items; the judge shares half of
    that model's errors."""
    true = labels(rng)
    sister, judged = flipped(true, 0.16, rng), flipped(true, 0.16, rng)
    judged = np.where(rng.random(len(true)) < 0.5, sister, judged)
    people = [
        np.where(rng.random(len(true)) < 0.3, sister, flipped(true, 0.1, rng)) for _ in range(3)
    ]
    return drawn(true, people, judged, np.arange(len(true)))


def by_question(questions: int, rng: Rng) -> Draw:
    """Answers to few questions; the judge errs by question."""
    of = np.arange(400) * questions // 400
    true = labels(rng)
    hard = np.where(rng.random(questions) < 0.35, 0.35, 0.0)[of]
    people = [flipped(true, 0.03, rng) for _ in range(3)]
    return drawn(true, people, flipped(true, hard, rng), of)


def alone(drew: Draw) -> Draw:
    """The same with each answer as a question of its own."""
    return replace(drew, clusters=np.arange(len(drew.true)))


def declared_falsely(draw: Callable[[Rng], Draw], rng: Rng) -> Decided:
    return (*replaces(draw(rng), rng, RULE),)


def blindness_declared(draw: Callable[[Rng], Draw], rng: Rng) -> Decided:
    """Not at all; as it was; falsely."""
    return (*decided_by_tables(draw(rng), IN_SIGHT),)


def questions_declared(draw: Callable[[Rng], Draw], rng: Rng) -> Decided:
    """Not at all; in a column; each answer as a question of its own. Labels are made blind."""
    drew = draw(rng)
    nothing, falsely = decided_by_tables(drew, (BLIND, {**BLIND, **QUESTIONS_KNOWN}))
    return nothing, *decided_by_tables(drew, (BLIND,), drew.clusters), falsely


def questions_in_a_column(draw: Callable[[Rng], Draw], rng: Rng) -> Decided:
    """Each answer taken for a question of its own; a column names the questions."""
    drew = draw(rng)
    return *replaces(alone(drew), rng, RULE), *replaces(drew, rng, RULE)


def far(wrong: float, step: int, rng: Rng) -> Decided:
    """Of five levels the judge errs by `step` where annotators err by one."""
    true = rng.choice(5, size=1000, p=(0.3, 0.2, 0.2, 0.2, 0.1))

    def said(share: float, by: int) -> IntArray:
        away = np.where(true + by < 5, true + by, true - by)
        return np.where(rng.random(len(true)) < share, away, true)

    own = [said(0.08, 1) for _ in range(3)]
    found = drawn(true, own, said(wrong, step), np.arange(len(true)))
    humans = HumansRule(distance=None)
    before = RULE.model_copy(update={"replace": ReplaceRule(humans=humans)})
    return (*replaces(found, rng, before, RULE),)


def one_system(share: float, good: float, poor: float, rng: Rng) -> Decided:
    """A share of the answers is that of ten systems; one system has the rest."""
    true = labels(rng, 600)
    systems = np.where(rng.random(600) < share, rng.integers(0, 10, 600), 10)
    own = [flipped(true, 0.04, rng) for _ in range(3)]
    judged = flipped(true, 1 - np.where(systems < 10, good, poor), rng)
    found = drawn(true, own, judged, np.arange(600))
    side, _ = side_of(found)
    parts = {s: np.flatnonzero(systems == s) for s in range(11)}
    counts = {
        f"s{s}": study_counts(side.at(rows), judged[rows], found.asked[rows], {})
        for s, rows in parts.items()
        if len(rows) >= RULE.questions
    }
    flagged = any(c.state is not State.MET for c in of_groups(counts, RULE))
    (without,) = replaces(found, rng, RULE)
    return without, without and not flagged


def many_judges(m: int, worse: float, rng: Rng) -> Decided:
    """Any REPLACE among `m` judges or prompts, so much worse than annotators; their additional
    errors are on answers that are not severe."""
    true = labels(rng)
    own = [flipped(true, 0.03, rng) for _ in range(3)]
    wrong = np.where(true == 0, 0.03 + worse / 0.6, 0.03)
    found = [drawn(true, own, flipped(true, wrong, rng), np.arange(len(true))) for _ in range(m)]
    outcomes = zip(*(replaces(each, rng, RULE, at(1 - 0.05 / m)) for each in found), strict=True)
    return tuple(any(by_rule) for by_rule in outcomes)


def many_metrics(m: int, worse: float, rng: Rng) -> Decided:
    """Any REPLACE of one judge among `m` metrics: of each alone, and with `family: true`."""
    outcomes = zip(*(_on_one_metric(m, worse, rng) for _ in range(m)), strict=True)
    return tuple(any(by_rule) for by_rule in outcomes)


def _on_one_metric(m: int, worse: float, rng: Rng) -> list[bool]:
    true = labels(rng)
    own = [flipped(true, 0.03, rng) for _ in range(3)]
    wrong = np.where(true == 0, 0.03 + worse / 0.6, 0.03)
    found = drawn(true, own, flipped(true, wrong, rng), np.arange(len(true)))
    return replaces(found, rng, RULE, at(1 - 0.05 / m))


def shared_errors(rng: Rng) -> Decided:
    """Annotators miss 15 % of the severe answers, the judge the same ones: nothing shows it."""
    true = labels(rng)
    seen = np.where((true == 1) & (rng.random(len(true)) < 0.15), 0, true)
    own = [flipped(seen, 0.03, rng) for _ in range(3)]
    found = drawn(true, own, flipped(seen, 0.02, rng), np.arange(len(true)))
    return (*replaces(found, rng, RULE),)


def hard_items(one_sided: bool, rng: Rng) -> Draw:
    """A fifth of the items is hard for everybody: there annotators err in 30 %. The judge is 5.2
    points worse, all of it on these items; one-sided, it calls too much of them severe."""
    true = labels(rng, 1000)
    hard = rng.random(1000) < 0.2
    own = [flipped(true, np.where(hard, 0.3, 0.02), rng) for _ in range(3)]
    more = np.where(true == 0, 0.052 / (0.2 * 0.6), 0.0) if one_sided else 0.052 / 0.2
    judged = flipped(true, np.where(hard, 0.3 + more, 0.02), rng)
    return drawn(true, own, judged, np.arange(1000))


def thresholds(rng: Rng) -> Decided:
    """Annotators draw the line at different heights of one scale, and so does the judge, who is
    5.2 points worse than the annotator in the middle: it calls too much severe."""
    height = rng.normal(-0.25, 1, 1000)
    true = (height > 0).astype(np.int64)

    def said(line: float) -> IntArray:
        return (height + rng.normal(0, 0.1, 1000) > line).astype(np.int64)

    own = [said(line) for line in (-0.2, 0.0, 0.2)]
    return (*replaces(drawn(true, own, said(-0.32), np.arange(1000)), rng, RULE),)


def sixty_questions(rng: Rng) -> Decided:
    """A judge better than annotators, 60 questions of five answers, each with a verdict."""
    true = labels(rng, 300)
    own = [flipped(true, 0.08, rng) for _ in range(3)]
    return (*replaces(drawn(true, own, flipped(true, 0.01, rng), np.arange(300) // 5), rng, RULE),)


def a_filter(k: int, missed: float, a_question: int, rng: Rng) -> Decided:
    """A judge takes a share `missed` of the severe answers, whole questions of them, for harmless.
    Without the severe label first, a threshold is chosen on halves of the questions."""
    n, noise = 500, 0.03
    questions = np.arange(n) // a_question
    true = np.where(rng.random(n) < 0.4, k - 1, rng.integers(0, k - 1, n))
    own = [np.where(rng.random(n) < noise, (true + 1) % k, true) for _ in range(3)]
    unseen = (true == k - 1) & (rng.random(n) < missed)[questions]
    found = drawn(true, own, np.where(unseen, 0, true), questions)
    truth = side_of(found)[0].truth
    return tuple(assists(first_pass(found, truth, fixed=tried)) for tried in (False, True))


def beside_the_constant(wrong: float | None, rng: Rng) -> Decided:
    """DO NOT USE beside annotators who do not beat a constant, of a judge with so many errors or of
    a constant judge (None)."""
    true = labels(rng, 1000, 0.03)
    own = [flipped(true, 0.10, rng) for _ in range(3)]
    judged = np.zeros_like(true) if wrong is None else flipped(true, wrong, rng)
    found = replace(drawn(true, own, judged, np.arange(1000)), nominal=True)
    side, _ = side_of(found)
    counts = study(found, side, rng)
    return (any(f.not_met[0] for f in findings(counts, RULE, counts.how_many[None, :])),)


def seen(share: float, lean: float, rng: Rng) -> Decided:
    """True where the judge's labels seem derived: it gave the first annotator's in a share of the
    items, and both are lenient alike in a share `lean` of the severe answers."""
    true = labels(rng)
    own = [flipped(true, 0.12, rng) for _ in range(3)]
    own[0] = own[0] * (rng.random(400) >= lean)
    judged = flipped(true, 0.25, rng) * (rng.random(400) >= lean)
    judged = np.where(rng.random(400) < share, own[0], judged)
    side, bar = side_of(drawn(true, own, judged, np.arange(400)))
    names = [str(a) for a in np.flatnonzero(bar.kept)]
    return (bool(why_derived(judged, side, names)),)


GOLD = (0.0, 1.0, 0.5, 0.3)


def adjudicating(draw: Callable[[Rng], Draw], rng: Rng) -> Decided:
    """The share of disagreements; REPLACE without adjudicated labels, with one on every
    disagreement, on half, on 30 %, and by the true labels of all items, with the plain t interval
    of both differences."""
    drew, found = draw(rng), list[bool]()
    side, _ = side_of(drew)
    apart = float((disagreements(side.own, drew.judged) != AGREED).mean())
    for share in GOLD:
        side = with_gold(drew, share, rng) if share else None
        found += replaces(drew, rng, RULE, side=side)
    return apart, *found, by_true_labels(drew)


def by_true_labels(drew: Draw) -> bool:
    """REPLACE by an oracle: judge minus the mean annotator, of all and of the severe answers."""
    ahead = (drew.judged == drew.true) - (drew.own == drew.true[:, None]).mean(axis=1)
    low = []
    for x in (ahead, ahead[drew.true == drew.k - 1]):
        t = stdtrit(len(x) - 1, 0.975)
        low.append(x.mean() - t * x.std(ddof=1) / np.sqrt(len(x)))
    return bool(min(low) >= -MARGIN)


def of_accuracy(people: Sequence[float], judge: float, n: int, severe: float, rng: Rng) -> Draw:
    """Independent errors, as often on severe answers as on others."""
    true = labels(rng, n, severe)
    own = [flipped(true, 1 - p, rng) for p in people]
    return drawn(true, own, flipped(true, 1 - judge, rng), np.arange(n))


def misconception(rng: Rng) -> Draw:
    """One in eight answers everybody misreads, annotators in 60 % and the judge always."""
    true = labels(rng, 600, 0.3)
    hard = rng.random(600) < 0.125
    own = [flipped(true, np.where(hard, 0.6, 0.03), rng) for _ in range(3)]
    return drawn(true, own, flipped(true, np.where(hard, 1.0, 0.03), rng), np.arange(600))


def guideline(rng: Rng) -> Draw:
    """What the guideline leaves open annotators read one way in 80 %, and the judge always: in half
    of these it is wrong."""
    true = labels(rng, 600, 0.3)
    unclear = rng.random(600) < 0.2
    reading = np.where(rng.random(600) < 0.5, true, 1 - true)
    own = [
        np.where(unclear & (rng.random(600) < 0.8), reading, flipped(true, 0.04, rng))
        for _ in range(3)
    ]
    return drawn(true, own, np.where(unclear, reading, flipped(true, 0.09, rng)), np.arange(600))


def false_alarm_margin(draw: Callable[[Rng], Draw], rng: Rng) -> Decided:
    """Without a margin for false alarms, and with one of 5 points."""
    drew = draw(rng)
    side = replace(side_of(drew)[0], with_alarms=True)
    margin = FalseAlarmsRule(margin=MARGIN)
    rule = ReplaceRule(false_alarms=margin)
    return (*replaces(drew, rng, RULE, RULE.model_copy(update={"replace": rule}), side=side),)


def false_alarms(more: float, rng: Rng) -> Draw:
    """A judge that only errs by calling other answers severe, so much more often than annotators,
    who err in 5 %; a third is severe."""
    true = labels(rng, 600, 0.33)
    own = [flipped(true, 0.05, rng) for _ in range(3)]
    return drawn(
        true, own, flipped(true, np.where(true == 1, 0.0, 0.05 + more), rng), np.arange(600)
    )


def enriched(judge: tuple[float, float], people: float, severe: float, rng: Rng) -> Decided:
    """Of 9,000 answers 300 are labelled that the judge flags, and 300 others. `judge` are its
    errors on severe and on other answers. REPLACE and DO NOT USE as if drawn at random, weighted,
    and of 600 drawn at random."""
    true = labels(rng, 9000, severe)
    own = [flipped(true, people, rng) for _ in range(3)]
    judged = flipped(true, np.where(true == 1, *judge), rng)
    chance = np.where(judged == 1, 300 / judged.sum(), 300 / (judged == 0).sum())
    chosen, at_random = rng.random(9000) < chance, rng.random(9000) < 600 / 9000
    found = list[bool]()
    for rows, weights in ((chosen, None), (chosen, 1 / chance), (at_random, None)):
        drew = drawn(true[rows], [x[rows] for x in own], judged[rows], np.arange(rows.sum()))
        side, _ = side_of(drew)
        side = replace(side, stands_for=None if weights is None else weights[rows])
        counts = study(drew, side, rng)
        each = list(findings(counts, RULE, counts.how_many[None, :]))
        found += [*replaces(drew, rng, RULE, side=side), any(f.not_met[0] for f in each)]
    return tuple(found)


def labelled_part_of(mode: str, rng: Rng) -> Decided:
    """True where the labelled answers are found to be unlike all."""
    n, k = 3000, 10
    systems, questions = rng.integers(0, k, n), np.arange(n)
    labelled = rng.random(n) < 0.3
    if mode == "few":
        n = 400
        systems, questions, labelled = systems[:n], questions[:n], rng.random(n) < 0.15
    if mode == "questions":
        questions = np.arange(n) // 10
        labelled = (rng.random(n // 10) < 50 / 300)[questions]
    if mode == "new":
        labelled &= systems != 9
    if mode == "fewer":
        labelled &= (systems != 9) | (rng.random(n) < 0.3)
    verdicts = (rng.random(n) < np.where(systems == 3, 0.5, 0.2)).astype(np.float64)
    if mode == "flagged":
        labelled = rng.random(n) < np.where(verdicts == 1, 0.5, 0.15)
    y = np.where(labelled, 1.0, np.nan)
    columns = {f"system {s}": (systems == s).astype(np.float64) for s in range(k)}
    columns |= {"verdict": verdicts, "length": rng.normal(size=n)}
    sample = Sample(y, Clusters(questions, int(questions.max()) + 1))
    return (sample.units >= FEWEST and bool(unlike(sample, columns)),)


def by_group(groups: int, errors: tuple[float, float], n: int, rng: Rng) -> Decided:
    """Groups of equal size; the judge errs so often in the first and in the others. Any group is
    found to be worse than annotators of .93, and it is the first."""
    true = labels(rng, n)
    group = rng.integers(0, groups, n)
    own = [flipped(true, 0.07, rng) for _ in range(3)]
    judged = flipped(true, np.where(group == 0, *errors), rng)
    drew = drawn(true, own, judged, np.arange(n))
    side, _ = side_of(drew)
    parts = {str(g): np.flatnonzero(group == g) for g in range(groups)}
    every = {g: np.ones(len(rows), dtype=np.bool_) for g, rows in parts.items()}
    counts = {g: study_counts(side.at(r), judged[r], every[g], {}) for g, r in parts.items()}
    short = [c.rival for c in of_groups(counts, RULE) if c.state is State.NOT_MET]
    return bool(short), "0" in short


Scenario = Callable[[Rng], Decided]


@dataclass(frozen=True)
class Drawing:
    """A scenario of the section `studies` of scenarios.yaml: `run` is the name of a function here
    and its arguments, of which some may be such functions themselves."""

    name: str
    right: str
    proposed: str
    run: Sequence[Any]

    @property
    def title(self) -> str:
        return f"{self.name}{'' if self.proposed == AUTHORS else f' {OUTSIDE}'}"


def built(run: Sequence[Any]) -> Scenario:
    """The function of that name with its arguments."""
    name, *given = run
    is_run = [isinstance(x, list) and isinstance(x[0], str) for x in given]
    arguments = (
        built(x) if nested else tuple(x) if isinstance(x, list) else x
        for x, nested in zip(given, is_run, strict=True)
    )
    return partial(globals()[name], *arguments)


def drawings(table: str) -> list[Drawing]:
    """The scenarios of a table."""
    sections = yaml.safe_load(SCENARIOS.read_text("utf-8"))
    return [Drawing(**entry) for entry in sections["studies"][table]]


Errors = tuple[tuple[float, float, float], float]  # of annotators and the judge, on the severe
GAPS: tuple[tuple[str, int, Errors], ...] = (
    *(("as an annotator", n, ((0.05, 0.05, 0.05), 0.05)) for n in (100, 200, 400)),
    ("as two annotators, one careless (25 %)", 200, ((0.05, 0.05, 0.25), 0.05)),
    ("as annotators who miss 20 % of the severe", 200, ((0.2, 0.2, 0.2), 0.2)),
    *(("at the bound", n, ((0.05, 0.05, 0.05), 0.10)) for n in (100, 200, 400)),
    ("at the bound, one careless", 200, ((0.05, 0.05, 0.25), 0.10)),
    ("at the bound, annotators miss 20 %", 200, ((0.2, 0.2, 0.2), 0.25)),
)


def severe_gap(n_severe: int, missed: Errors, rng: Rng) -> tuple[bool, bool, bool]:
    """True where the severe gap is met: by the labels at hand, by two classes, by an oracle."""
    true = labels(rng, 2 * n_severe, 0.5)
    others = [0.25 if m == 0.25 else 0.05 for m in missed[0]]  # false alarms
    pairs = zip(missed[0], others, strict=True)
    own = [flipped(true, np.where(true == 1, m, a), rng) for m, a in pairs]
    judged = flipped(true, np.where(true == 1, missed[1], 0.05), rng)
    found = drawn(true, own, judged, np.arange(len(true)))
    side, bar = side_of(found)
    counts = study(found, side, rng)
    measured = findings(counts, RULE, counts.how_many[None, :])
    (now,) = (f.met[0] for f in measured if f.key == "severe_gap")
    weights = bar.weights.mean(axis=0)
    _, root = recall_gap(np.column_stack([*own, judged]), weights / weights.sum(), MARGIN)
    good = np.stack([one for one, m in zip(own, missed[0], strict=True) if m < 0.25])[:, true == 1]
    x, ones = (judged[true == 1] - good.mean(axis=0))[:, None], np.ones((1, (true == 1).sum()))
    oracle = mean_difference(x, ones.T, ones, RULE.level, balanced=False).low[0] >= -MARGIN
    return bool(now), root >= CRITICAL_ROOT, bool(oracle)


def severe_table(draws: int) -> Iterator[str]:
    heads = "severe answers | labels at hand, % | two latent classes, % | oracle, %"
    yield f"\n| scenario | {heads} |\n|---|--:|--:|--:|--:|"
    for name, n, missed in GAPS:
        rng = np.random.default_rng(5)
        shares = 100 * np.mean([severe_gap(n, missed, rng) for _ in range(draws)], axis=0)
        yield f"| {name} | {n} | {' | '.join(f'{x:.1f}' for x in shares)} |"


SIZES = (100, 200, 400, 800)
SIZED = ((0.05, 0.03), (0.05, 0.05), (0.10, 0.08), (0.10, 0.10), (0.05, 0.12), (0.05, 0.20))


def ends(severe: float, errors: tuple[float, float], n: int, draws: int) -> tuple[float, float]:
    """The percent of studies of n answers that end in REPLACE, and in DO NOT USE."""
    rng, people, judge = np.random.default_rng(7), *errors
    found = []
    for _ in range(draws):
        true = labels(rng, n, severe)
        own = [flipped(true, people, rng) for _ in range(3)]
        drew = drawn(true, own, flipped(true, judge, rng), np.arange(n))
        side, bar = side_of(drew)
        counts = study(drew, side, rng)
        found.append(outcome_of(conditions(drew, side, bar, counts), "", None))
    return 100 * found.count("REPLACE") / draws, 100 * found.count("DO NOT USE") / draws


def sizes_table(draws: int) -> Iterator[str]:
    heads = " | ".join(f"{n} answers" for n in SIZES)
    yield f"\n| severe | annotators err | the judge errs | {heads} |"
    yield f"|{'--:|' * (3 + len(SIZES))}"
    asked = [(severe, errors) for severe in (0.1, 0.2, 0.4) for errors in SIZED]
    with ProcessPoolExecutor() as pool:
        jobs = [[pool.submit(ends, *one, n, draws) for n in SIZES] for one in asked]
        for (severe, (people, judge)), of in zip(asked, jobs, strict=True):
            cells = " | ".join(f"{x:.0f}, {y:.0f}" for x, y in (job.result() for job in of))
            yield f"| {severe:.0%} | {people:.0%} | {judge:.0%} | {cells} |"


BESIDE = ("without, %", "by the rule, %")
ALONE_BY_THE_RULE = ("by the rule, %",)
TABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "declarations": (
        "to replace", ("nothing declared, %", "declared as it was, %", "declared falsely, %"),
    ),
    "requirements": ("to replace", BESIDE),
    "unseen": ("to replace", ALONE_BY_THE_RULE),
    "filters": ("to assist", BESIDE),
    "constants": ("DO NOT USE", ALONE_BY_THE_RULE),
    "gold": (
        "to replace",
        ("disagreements, %", "no gold, %", "all disagreements, %", "half, %", "30 %, %",
         "true labels, %"),
    ),
    "enriched": (
        "to replace",
        tuple(f"{way}: {outcome}, %" for way in ("as at random", "weighted", "600 at random")
              for outcome in ("REPLACE", "DO NOT USE")),
    ),
    "false_alarms": ("to replace", ("without a margin, %", "5 points, %")),
    "parts": ("to find it unlike", ALONE_BY_THE_RULE),
    "groups": ("poor", ("any group found, %", "the poor one found, %")),
    "derived": ("to call it derived", ALONE_BY_THE_RULE),
}  # fmt: skip


MOST = {"declarations": 40}  # studies of a line: reading tables takes twenty times as long


def run(scenario: Scenario, draws: int, seed: int) -> list[float]:
    """The percent of the studies in which each column is true."""
    rng = np.random.default_rng(seed)
    return (100 * np.mean([scenario(rng) for _ in range(draws)], axis=0)).tolist()


def table(name: str, draws: int) -> Iterator[str]:
    verb, heads = TABLES[name]
    yield f"\n| scenario | {verb} is | {' | '.join(heads)} |\n|---|---|{'--:|' * len(heads)}"
    scenarios = drawings(name)
    with ProcessPoolExecutor() as pool:
        jobs = [pool.submit(run, built(one.run), draws, n) for n, one in enumerate(scenarios)]
        for one, job in zip(scenarios, jobs, strict=True):
            yield f"| {one.title} | {one.right} | {' | '.join(f'{x:.1f}' for x in job.result())} |"


def lines(only: str, draws: int) -> Iterator[str]:
    for name in TABLES:
        if only in ("", name):
            yield from table(name, min(draws, MOST.get(name, draws)))
    if only in ("", "severe_gap"):
        yield from severe_table(draws)
    if only in ("", "sizes"):
        yield from sizes_table(draws)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="2 studies for each line")
    parser.add_argument("--studies", type=int, default=400, help="for each line; default 400")
    only = ("", *TABLES, "severe_gap", "sizes")
    parser.add_argument("--only", choices=only[1:], default="", help="one table of several")
    arguments = parser.parse_args()
    for line in lines(arguments.only, 2 if arguments.quick else arguments.studies):
        print(line, flush=True)
