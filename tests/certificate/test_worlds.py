"""Small worlds with fixed seeds: what a watch says of them, and when."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from certificate_case import LABELS, METRIC, START, anchors, answer, certificate, usual

import judgebench as jb
from judgebench.certificate import levels
from judgebench.certificate.reading import Batch
from judgebench.certificate.record import Certificate, Noise, Watched
from judgebench.certificate.renew import Renewed, plan_of
from judgebench.certificate.result import Watching
from judgebench.certificate.seen import (
    AGREEMENT,
    FAILURES,
    RECALL,
    SYSTEM,
    Seen,
    noise,
    noise_of,
    population_of,
    upper,
    watched,
)
from judgebench.certificate.watch import Test as Hypothesis
from judgebench.certificate.watch import Watch
from judgebench.certificate.watch import tests_of as hypotheses_of
from judgebench.decisions.result import Decisions

ANSWERS, SEVERE, RIGHT, ANNOTATOR = 400, 0.3, 0.97, 0.88
RUBRIC = jb.Rubric.from_labels({METRIC: [*LABELS]})


@pytest.fixture(scope="module")
def decided() -> tuple[Decisions, pd.DataFrame]:
    """The decision on 400 answers with labels of three annotators, and the verdicts."""
    rng = np.random.default_rng(11)
    truth = rng.random(ANSWERS) < SEVERE
    lengths = rng.integers(20, 300, ANSWERS).tolist()
    base = pd.DataFrame({
        "item_id": [f"i{i}" for i in range(ANSWERS)],
        "question": [f"question {i}" for i in range(ANSWERS)],
        "text": [f"answer {i} ".ljust(k, "x") for i, k in enumerate(lengths)],
        "system": ["ab"[i] for i in rng.integers(0, 2, ANSWERS)],
    })  # fmt: skip

    def said(right: float) -> list[str]:
        return [LABELS[int(x)] for x in truth ^ (rng.random(ANSWERS) > right)]

    people = [
        base.assign(annotator=name, made_blind="yes", safety=said(ANNOTATOR))
        for name in ("Ann", "Bob", "Cy")
    ]
    verdicts = base.assign(judge="gpt-4", safety=said(RIGHT))
    return jb.decide(jb.study(pd.concat(people), verdicts, base, rubric=RUBRIC)), verdicts


@pytest.fixture(scope="module")
def issued(decided: tuple[Decisions, pd.DataFrame]) -> Certificate:
    """The certificate of that decision; the judge gave the same verdicts twice."""
    made: Certificate = decided[0].certificate(again=[decided[1]], now=START)
    return made


class World:
    """A judge and its watch: `days` of 60 answers, 10 anchors, and labels on some of them."""

    def __init__(self, certificate: Certificate, seed: int) -> None:
        self.watch, self.rng, self.day = Watch(certificate), np.random.default_rng(seed), 0
        self.found = self.watch.status(now=START)

    def days(
        self, n: int, *, severe: float = SEVERE, right: float = RIGHT, swapped: float = 0.0,
        new: str = "", labels: int = 0, until: str = "",
    ) -> Watching:  # fmt: skip
        """The state after so many days, or as soon as it is not valid, or the state `until`."""
        for _ in range(n):
            if self.found.state == until or (not until and self.found.state != "valid"):
                break
            self.day += 1
            rows = [self.answer(i, severe, right, new, i < labels) for i in range(60)]
            now = START + timedelta(hours=self.day)
            self.found = self.watch.update_rows([Batch(rows + self.anchors(swapped))], now=now)
        return self.found

    def answer(self, i: int, severe: float, right: float, new: str, with_labels: bool) -> Seen:
        flip = lambda p: self.rng.random() > p  # noqa: E731
        truth = self.rng.random() < severe
        label, people = LABELS[int(truth ^ flip(right))], {}
        if with_labels:
            people = {
                METRIC: {who: LABELS[int(truth ^ flip(ANNOTATOR))] for who in "DE"[: 1 + i % 2]}
            }
        system = new if new and not i % 10 else "ab"[int(self.rng.integers(2))]
        return answer(
            f"{self.day}.{i}", label, system=system, length=int(self.rng.integers(20, 300)),
            labels=people,
        )  # fmt: skip

    def anchors(self, swapped: float) -> list[Seen]:
        """The next ten anchors, a share of them with the other label."""
        found = []
        for one in self.watch.next_anchors(10):
            label = one.verdicts[METRIC]
            if self.rng.random() < swapped:
                label = LABELS[label == LABELS[0]]
            found.append(Seen(one.id, "", "", one.hash, None, {METRIC: label}))
        return found


def test_a_stable_judge_stays_valid(issued: Certificate) -> None:
    found = World(issued, 0).days(50, labels=8)
    assert (found.state, found.exit_code, found.reasons) == ("valid", 0, ())
    assert (found.seen.answers, found.seen.anchors) == (3000, 500)
    assert sum(found.seen.labelled.values()) == 400


def test_a_swap_of_a_tenth_is_found_within_200_anchors(issued: Certificate) -> None:
    took = []
    for seed in range(5):
        world = World(issued, seed)
        world.days(10)
        found = world.days(40, swapped=0.10)
        took.append(found.seen.anchors - 100)
        assert (found.state, found.exit_code) == ("revoked", 6)
        assert "The judge changed: on safety it gives" in found.reasons[0].text
    assert np.median(took) <= 120
    assert max(took) <= 200


def test_a_new_system_is_told_at_once(issued: Certificate) -> None:
    world = World(issued, 1)
    world.days(5)
    found = world.days(5, new="new-model")
    assert (found.state, found.exit_code, world.day) == ("warned", 4, 6)
    assert found.reasons[0].text == (
        "It does not cover systems that it has never seen: new-model (6 answers)."
    )


def test_more_severe_answers_are_told_from_another_judge(issued: Certificate) -> None:
    world = World(issued, 2)
    world.days(20)
    found = world.days(40, severe=2 * SEVERE)
    assert found.state == "warned"
    (reason,) = found.reasons
    assert "The judge's labels of safety changed: Unsafe: " in reason.text
    assert reason.text.endswith("it is the answers that changed.")
    without = Watch(issued)
    rows = [answer(i, "Unsafe", system="ab"[i % 2], length=20 + i) for i in range(250)]
    reasons = [r.text for r in without.update_rows([Batch(rows)]).reasons]
    assert any("not known yet whether the judge or the answers changed" in r for r in reasons)


def test_agreement_that_falls_revokes(issued: Certificate) -> None:
    world = World(issued, 3)
    world.days(10, labels=5)
    found = world.days(60, right=0.70, labels=20, until="revoked")
    assert found.state == "revoked"
    fallen = [r.text for r in found.reasons if r.standing == "revoked"]
    assert "agreement with an annotator" in fallen[0]
    assert "The new annotators agree with each other on" in fallen[0]


def test_labels_count_by_the_chance_with_which_they_were_drawn() -> None:
    """Answers on which the judge errs are labelled ten times as often; the mean is that of all."""
    watch, rng, rows = Watch(certificate()), np.random.default_rng(4), list[Seen]()
    for i in range(4000):
        errs = rng.random() < 0.1
        chance = 0.5 if errs else 0.05
        if i < 2 or rng.random() < chance:
            people = {METRIC: {"Dee": "Unsafe" if errs else "Safe"}}
            rows.append(answer(i, "Safe", labels=people, chance=chance if i else 0.05))
    found = watch.update_rows([Batch(rows)])
    (agreement,) = [c for c in found.of("fallen", found=False) if c.about == AGREEMENT]
    assert agreement.sums.n == len(rows)
    assert agreement.sums.mean == pytest.approx(0.9, abs=0.02)
    assert not agreement.found
    plain = Watch(certificate()).update_rows([Batch([replace(r, chance=1.0) for r in rows])])
    (unweighted,) = [c for c in plain.of("fallen", found=False) if c.about == AGREEMENT]
    assert unweighted.sums.mean == pytest.approx(0.47, abs=0.08)
    assert unweighted.found


# ---- rows as they come -------------------------------------------------------------------------


def evidence(found: Watching) -> dict[str, float]:
    return {f"{c.family} {c.metric} {c.about}": c.evidence.log_capital for c in found.checked}


def test_how_rows_are_ordered_and_shared_out_to_files_says_nothing() -> None:
    rows = usual(0, 600)
    mixed = Watch(certificate()).update_rows([Batch(rows)])
    by_system = sorted(rows, key=lambda row: (row.system, row.verdicts[METRIC], row.length))
    ordered = Watch(certificate()).update_rows([Batch(by_system)])
    files = [Batch([r for r in rows if r.system == s], f"{s}.csv") for s in "ab"]
    shared_out = Watch(certificate()).update_rows(files)
    assert mixed.state == ordered.state == shared_out.state == "valid"
    assert evidence(ordered) == pytest.approx(evidence(mixed))
    assert evidence(shared_out) == pytest.approx(evidence(mixed))


def test_of_several_answers_to_a_question_one_counts_and_it_may_be_any() -> None:
    rows = [
        answer(f"{i}{s}", LABELS[i % 10 < 3], system=s, group=f"q{i}", length=50 + 100 * (i % 2))
        for i in range(400)
        for s in "ab"
    ]
    found = Watch(certificate()).update_rows([Batch(rows)])
    systems = {c.about: c.sums for c in found.checked if c.metric == SYSTEM}
    assert systems["a"].n == systems["b"].n == 400
    assert 150 < systems["a"].weighted < 250
    assert found.state == "valid"
    population = population_of(rows, RUBRIC)
    assert population.answers == 800
    assert sum(population.shares[SYSTEM].values()) == population.questions == 400


def test_labels_that_no_answer_of_the_certificate_had_are_not_new() -> None:
    shares = population_of([answer(i) for i in range(50)], RUBRIC).shares
    assert shares[f"label:{METRIC}"] == {"Safe": 50, "Unsafe": 0, "no label": 0}
    watch = Watch(certificate())
    assert watch.update_rows([Batch([*usual(0, 200), answer("failed", "")])]).state == "valid"
    many = [replace(r, verdicts={METRIC: ""}) for r in usual(1000, 60)]
    found = watch.update_rows([Batch(many)])
    assert found.state in ("warned", "revoked")
    assert any(
        "no label: 100 % of the last 60, 0 % in the certificate" in r.text for r in found.reasons
    )


def test_every_look_counts_from_the_first_row_to_the_last() -> None:
    watch, made = Watch(certificate()), certificate()
    found = watch.update_rows([Batch(anchors(made, 20)), Batch(usual(0, 30))])
    assert (found.counted.anchors, found.counted.answers) == (20, 30)
    (changed,) = found.of("changed", found=False)
    assert (changed.sums.n, changed.sums.weighted) == (20, 0)


# ---- levels and bounds -------------------------------------------------------------------------


def test_the_levels_are_shared_out_among_all_metrics() -> None:
    one = certificate()
    metric = one.metrics[METRIC]
    for n in (1, 3):
        metrics = {f"m{i}": metric for i in range(n)}
        totals = Counter[str]()
        for test in hypotheses_of(one.model_copy(update={"metrics": metrics})):
            totals[test.family] += test.alpha
        assert totals == pytest.approx({
            "changed": levels.CHANGED, "fallen": levels.FALLEN, "near": levels.NEAR,
            "shifted": levels.SHIFTED,
        })  # fmt: skip
    assert pytest.approx(0.025) == levels.REVOKED
    assert pytest.approx(0.05) == levels.WARNED


def test_noise_is_that_of_the_anchors_and_of_others_with_room() -> None:
    rows = {f"i{i}": answer(f"i{i}") for i in range(300)}
    again = [answer(f"i{i}", "Unsafe" if i % 50 == 0 else "Safe") for i in range(300)]
    ids = {f"i{i}" for i in range(100)}
    mine = noise_of(rows, again, METRIC, ids, 0.0025)
    assert (mine.pairs, mine.changed, mine.most) == (100, 2, upper(2, 100, 0.0025))
    others = noise_of(rows, again[100:], METRIC, ids, 0.0025)
    assert (others.pairs, others.changed) == (200, 4)
    assert others.most > upper(4, 200, 0.00125) + 0.02
    assert noise(200, 4, 0.0025, anchors=10**6).most == pytest.approx(
        upper(4, 200, 0.00125), abs=0.002
    )
    assert noise(5, 5, 0.0025, anchors=10).most == 1.0
    assert noise_of(rows, [], METRIC, ids, 0.0025) == Noise(pairs=0, changed=0, most=0.05)


def test_noise_that_a_renewal_keeps_is_of_other_anchors(
    issued: Certificate, decided: tuple[Decisions, pd.DataFrame]
) -> None:
    plan = plan_of(Watch(issued).status(now=START))
    renewed = Renewed(decided[0], issued, plan, usual(0, 100)).certificate(now=START)
    kept, before = renewed.metrics[METRIC].noise, issued.metrics[METRIC].noise
    assert kept is not None
    assert before is not None
    assert (kept.pairs, kept.changed) == (before.pairs, before.changed) == (400, 0)
    assert before.most < kept.most < 0.05


def test_anchors_on_which_the_judge_wavers_do_not_look_like_another_judge() -> None:
    """One in twenty answers gets another label half of the time: of 1,000 certificates with 100
    anchors of 400 answers, the noise is measured too low in at most 0.25 %, and by chance 0.7 %."""
    rng, too_low = np.random.default_rng(6), 0
    for _ in range(1000):
        flips = np.where(rng.random(400) < 0.05, 0.5, 0.0)
        changed, chosen = rng.random(400) < flips, rng.permutation(400)[:100]
        found = noise(100, int(changed[chosen].sum()), 0.0025)
        too_low += flips[chosen].mean() > found.most
    assert too_low <= 7


@pytest.mark.parametrize("share", [0.75, 0.9, 0.99])
@pytest.mark.parametrize("n", [15, 60, 400])
def test_a_share_that_stays_is_rarely_beyond_its_bounds(share: float, n: int) -> None:
    """Whatever bar the share just took: all four shares together at most KEPT and ROOM."""
    rng, beyond, near = np.random.default_rng(n), 0, 0
    for _ in range(2000):
        x = (rng.random(n) < share).astype(float)
        found = watched("k", "t", x, x.mean() - 1e-6, 4)
        beyond += found.bound > share
        loose = watched("k", "t", x, x.mean() - 0.1, 4)
        near += loose.near is not None and loose.near > share
    assert beyond / 2000 <= 4 * levels.KEPT / 4
    assert near / 2000 <= 4 * levels.ROOM / 4


def test_a_wide_margin_stays_as_it_is() -> None:
    x = np.repeat([1.0, 0.0], [380, 20])
    found = watched(AGREEMENT, "agreement", x, 0.8, 4)
    assert (found.value, found.bound) == (0.95, 0.8)
    assert found.near is not None
    assert 0.8 < found.near < 0.9
    few = watched(FAILURES, "failures", 1 - x, 0.049, 4, at_least=False)
    assert few.bound >= 0.05
    assert few.near is None


@pytest.mark.parametrize("below", [True, False])
@pytest.mark.parametrize("bound", [0.0, 1.0])
@pytest.mark.parametrize("seen", [0.0, 0.5, 1.0])
def test_bounds_of_nought_and_one(bound: float, below: bool, seen: float) -> None:
    """Only what lies beyond the bound is evidence, and nothing is infinite."""
    test = Hypothesis("fallen", METRIC, RECALL, bound, 0.01, below)
    x = np.full(30, seen)
    found = test.after(Watch(certificate()).status().checked[0].evidence, x, np.ones(30))
    beyond = seen < bound if below else seen > bound
    assert found.found(0.01) is beyond
    assert math.isfinite(found.log_capital)


def test_what_is_reported_is_what_was_seen_since_the_change() -> None:
    made, watch = certificate(), Watch(certificate())
    for _ in range(10):
        quiet = watch.update_rows([Batch(anchors(made, 20))])
    for _ in range(2):
        found = watch.update_rows([Batch(anchors(made, 20, changed=5))])
    assert (quiet.state, found.state) == ("valid", "revoked")
    assert "it gives 10 of the last 40 anchors another label" in found.reasons[0].text
    more = watch.update_rows([Batch(anchors(made, 20))])
    assert "it gives 10 of the last 60 anchors another label" in more.reasons[0].text
    at_first = Watch(made).update_rows([Batch(anchors(made, 20, changed=10))])
    assert "it gives 10 of 20 anchors another label" in at_first.reasons[0].text


def test_what_was_never_wrong_still_has_a_bound_below_one() -> None:
    found = watched(RECALL, "finds", np.ones(12), 0.999, 4)
    assert isinstance(found, Watched)
    assert found.bound < 0.7
    assert found.near is None
