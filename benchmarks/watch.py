"""How often does a watched certificate give a false alarm, and how soon does it find a change?

Made-up annotators and a made-up judge are decided on, and the certificate is issued as
`judgebench decide --certificate` issues it. Then a year is simulated: 1,000 answers a day, 10
anchors a day in the order that `Watch.next_anchors` draws, and 10 answers a week with fresh labels
by one or two annotators. Two months go through `Watch.update_rows` row by row; the years through
the same tests on counts, many at once, and the evidence of those two months is compared.

- stable: false revocations (at most 2.5 %) and false warnings (at most 5 %) of a judge that stays
  as it was, without noise, with noise on every answer, and with noise on a few answers;
- looks: the same years, looked at every hour, every day and every month;
- swaps: anchors until the certificate is revoked;
- drifts, a new system, more severe answers, other annotators, a judge that is noisy from the start;
- beside it, on the same anchors: a rolling z-test, CUSUM with an average run length of a year, and
  a binomial test every month;
- real verdicts: GPT-4's on XSTest, swapped for a string match at half (needs ../shared/data).

    python benchmarks/watch.py
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import zeta
from scipy.stats import binom

import judgebench as jb
from judgebench.certificate.reading import Batch
from judgebench.certificate.record import Certificate
from judgebench.certificate.seen import (
    FAILURES,
    NO_LABEL,
    RECALL,
    Seen,
    features,
    length_names,
    observed,
)
from judgebench.certificate.watch import Test, Watch, tests_of
from judgebench.decisions.rule import DecisionRule, HumansRule, ReplaceRule, SevereRule
from judgebench.stats.betting import BETS, BLOCK
from judgebench.stats.intervals import clopper_pearson

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
METRIC, LABELS = "safety", ("Safe", "Unsafe")
SEVERE, ANNOTATOR, FAILS = 0.2, 0.88, 0.002  # shares: of severe answers, right labels, no label
ANCHORS, A_WEEK = 10, 10  # anchors a day, answers with fresh labels a week
SWAPS = (0.03, 0.05, 0.10)
START = datetime(2026, 1, 1, tzinfo=UTC)
NEVER = 10**9
Found = dict[str, Counts]
XSTEST = Path(__file__).resolve().parents[2] / "shared/data/xstest-verdicts/xstest.csv.gz"


# ---- a judge and its certificate ---------------------------------------------------------------


@dataclass(frozen=True)
class Judge:
    """A judge that gives the right label with chance `right`, and another one than at first to a
    share `wavering` of answers with chance `flips` each time that it judges again."""

    right: float = 0.97
    wavering: float = 0.0
    flips: float = 0.0


STABLE = {
    "no noise": Judge(),
    "2 % noise on every answer": Judge(wavering=1, flips=0.02),
    "2 % noise, on 5 % of answers": Judge(wavering=0.05, flips=0.4),
}
FEW = "2 % noise, on 5 % of answers"


@dataclass(frozen=True)
class Issued:
    """A certificate of a judge, and the chance that it changes each of the anchors (anchors,)."""

    certificate: Certificate
    flips: Floats
    judge: Judge

    @property
    def tests(self) -> list[Test]:
        """Its hypotheses."""
        return tests_of(self.certificate)


@cache
def studied(right: float, n: int, seed: int) -> tuple[Any, pd.DataFrame, NDArray[np.bool_]] | None:
    """The decision on a study of n answers with three annotators, with the verdicts and where
    there are any; None where there is no certificate."""
    rng = np.random.default_rng([n, seed])
    truth, failed = rng.random(n) < SEVERE, rng.random(n) < FAILS
    words = [11 + 5 * int(k) for k in rng.integers(3, 60, n)]
    base = pd.DataFrame({
        "item_id": [f"i{i}" for i in range(n)], "question": [f"question {i}" for i in range(n)],
        "text": [f"answer {i} ".ljust(k, "x") for i, k in enumerate(words)],
        "system": ["ab"[i] for i in rng.integers(0, 2, n)],
    })  # fmt: skip
    people = [
        base.assign(annotator=name, made_blind="yes", **{METRIC: named(given)})
        for name in ("Ann", "Bob", "Cy")
        for given in [truth ^ (rng.random(n) > ANNOTATOR)]
    ]
    said = named(truth ^ (rng.random(n) > right), failed)
    verdicts = base.assign(judge="gpt-4", **{METRIC: said})
    rubric = jb.Rubric.from_labels({METRIC: list(LABELS)})
    decided = jb.decide(jb.study(pd.concat(people), verdicts, base, rubric=rubric))
    try:
        decided.certificate()
    except jb.JudgebenchError:
        return None
    return decided, verdicts, ~failed


@cache
def issued(judge: Judge, n: int, how_many: int) -> tuple[Issued, ...]:
    """Certificates of a judge, whose verdicts on all answers are asked for twice; a study without
    a certificate is left out."""
    found, seed = list[Issued](), 0
    while len(found) < how_many:
        seed += 1
        if (of := studied(judge.right, n, seed)) is None:
            continue
        decided, verdicts, there = of
        rng = np.random.default_rng([n, seed, 1])
        flips = np.where(there & (rng.random(n) < judge.wavering), judge.flips, 0.0)
        severe = (verdicts[METRIC] == LABELS[1]).to_numpy() ^ (rng.random(n) < flips)
        again = verdicts.assign(**{METRIC: named(severe, ~there)})
        made = decided.certificate(again=[again], now=START)
        by_id = dict(zip(verdicts["item_id"], flips, strict=True))
        found.append(Issued(made, np.array([by_id[a.id] for a in made.anchors]), judge))
    return tuple(found)


def named(severe: NDArray[np.bool_], failed: NDArray[np.bool_] | None = None) -> list[str]:
    """The labels, empty where the judge failed."""
    there = np.ones(len(severe), dtype=np.bool_) if failed is None else ~failed
    return [LABELS[int(x)] if is_there else "" for x, is_there in zip(severe, there, strict=True)]


# ---- evidence of many years at once ------------------------------------------------------------


def curves(steps: Floats, n: Counts) -> Floats:
    """The log of the capital of stats/betting.py after each look (draws, looks), from what each
    bet made of it (draws, looks, bets) and the number of observations (draws, looks)."""
    draws, looks, _ = steps.shape
    last = 1 + int(n.sum(axis=1).max() // BLOCK)
    log_zeta = math.log(zeta(1.5))
    kept = np.log(zeta(1.5, np.arange(1, last + 2))) - log_zeta
    running = np.full((draws, len(BETS)), -np.inf)
    starts, since = np.zeros(draws, dtype=np.int64), np.zeros(draws, dtype=np.int64)
    found = np.zeros((draws, looks))
    for t in range(looks):
        due = (n[:, t] > 0) & ((starts == 0) | (since >= BLOCK))
        starts, since = starts + due, np.where(due, 0, since)
        share = -1.5 * np.log(np.maximum(starts, 1)) - log_zeta
        running = np.where(due[:, None], np.logaddexp(running, share[:, None]), running)
        running = running + steps[:, t]
        since = since + n[:, t]
        staked = np.logaddexp.reduce(running, axis=1) - math.log(len(BETS))
        found[:, t] = np.where(starts > 0, np.logaddexp(staked, kept[starts]), 0.0)
    return found


def of_counts(test: Test, k: Counts, n: Counts) -> Floats:
    """What each bet makes of k ones among n observations."""
    one, none = (gains(test, np.array([x]))[0] for x in (1.0, 0.0))
    return np.asarray(k[..., None] * one + (n - k)[..., None] * none)


def gains(test: Test, x: Floats) -> Floats:
    """What each bet makes of each observation (..., bets)."""
    y, floor = (test.bound - x, 1 - test.bound) if test.below else (x - test.bound, test.bound)
    return np.log1p(y[..., None] / max(floor, 1e-6) * BETS)


def first(curve: Floats, alpha: float) -> Counts:
    """The look at which each draw gives the alarm; NEVER where it gives none."""
    over = curve >= -math.log(alpha)
    return np.where(over.any(axis=1), over.argmax(axis=1), NEVER)


# ---- what happens ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Course:
    """What changes by day (days,): `swapped`, the share of labels that another judge gives
    otherwise; `severe`, the share of severe answers; `annotator`, how often one is right."""

    swapped: Floats
    severe: Floats
    annotator: Floats


def course(days: int, severe: float) -> Course:
    """Nothing changes."""
    return Course(np.zeros(days), np.full(days, severe), np.full(days, ANNOTATOR))


@dataclass(frozen=True)
class Streams:
    """Draws of a course: `answers` and the counts of each category by feature (draws, looks);
    anchors judged again and how many of them changed (draws, looks), and which (draws, anchors);
    what fresh labels say of agreement and of severe answers (draws, weeks, labels)."""

    categories: Mapping[tuple[str, str], Counts]
    answers: Counts
    anchors: Counts
    changed: Counts
    which: NDArray[np.bool_]
    agrees: Floats
    finds: Floats
    looks_a_day: int = 1


def drawn(world: Issued, c: Course, draws: int, a_day: int, rng: np.random.Generator) -> Streams:
    """Streams of a course, looked at every day."""
    judge, shape = world.judge, (draws, len(c.swapped))
    right = judge.right * (1 - c.swapped) + (1 - judge.right) * c.swapped
    unsafe = c.severe * right + (1 - c.severe) * (1 - right)
    n = np.full(shape, a_day)
    failed = rng.binomial(n, FAILS)
    said_unsafe = rng.binomial(n - failed, np.broadcast_to(unsafe, shape))
    found: dict[tuple[str, str], Counts] = {
        (f"label:{METRIC}", NO_LABEL): failed,
        (f"label:{METRIC}", "Unsafe"): said_unsafe,
        (f"label:{METRIC}", "Safe"): n - failed - said_unsafe,
    }
    found["system", "a"] = rng.binomial(n, 0.5)
    found["system", "b"] = n - found["system", "a"]
    cuts = world.certificate.population.cuts
    place = np.searchsorted(cuts, 11 + 5 * np.arange(3, 60), side="right")
    counts = rng.multinomial(n, np.bincount(place, minlength=len(cuts) + 1) / len(place))
    found |= {("length", name): counts[..., i] for i, name in enumerate(length_names(cuts))}
    which = anchors_changed(world, c, draws, rng)
    changed = which.reshape(*shape, ANCHORS).sum(axis=2)
    agrees, finds = labelled(c, right, draws, rng)
    return Streams(found, n, np.full(shape, ANCHORS), changed, which, agrees, finds)


def anchors_changed(
    world: Issued, c: Course, draws: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Passes over all anchors, each in an order of its own; a swap changes labels at random."""
    n = len(c.swapped) * ANCHORS
    passes = -(-n // len(world.flips))
    tiled = np.tile(world.flips, (draws, 1))
    p = np.concatenate([rng.permuted(tiled, axis=1) for _ in range(passes)], axis=1)[:, :n]
    s = np.repeat(c.swapped, ANCHORS)
    return np.asarray(rng.random(p.shape) < p * (1 - s) + (1 - p) * s)


def labelled(
    c: Course, right: Floats, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Fresh labels at the end of each week: agreement with one or two annotators, and of what one
    of them calls severe, the judge's part; nan where nothing is said."""
    weeks = np.arange(6, len(right), 7)
    shape = (draws, len(weeks), A_WEEK)
    severe, good, person = (v[weeks][None, :, None] for v in (c.severe, right, c.annotator))
    truth = rng.random(shape) < severe
    said, failed = truth ^ (rng.random(shape) > good), rng.random(shape) < FAILS
    people = truth[..., None] ^ (rng.random((*shape, 2)) > person[..., None])
    same = (people == said[..., None]) & ~failed[..., None]
    agrees = np.where(rng.random(shape) < 0.5, same.mean(axis=-1), same[..., 0])
    return agrees, np.where(people[..., 0], said & ~failed, np.nan)


def alarms(worlds: Sequence[tuple[Issued, Streams]], each: int = 1, only: str = "") -> Found:
    """The day of the first alarm of each family (draws,), where one looks each so many looks."""
    draws = len(worlds[0][1].answers)
    together: dict[tuple[str, int], list[tuple[int, Test]]] = {}
    for place, (world, _) in enumerate(worlds):
        counted = Counter[str]()
        for test in world.tests:
            if test.family.startswith(only):
                counted[test.family] += 1  # tests of one place of their list are taken together
                together.setdefault((test.family, counted[test.family]), []).append((place, test))
    found: Found = {}
    for (family, _), ones in together.items():
        first_of = found.setdefault(family, np.full(len(worlds) * draws, NEVER))
        like: dict[tuple[int, int], list[tuple[int, Test, Floats, Counts]]] = {}
        for place, test in ones:
            steps, n, every = steps_of(test, worlds[place][1])
            pool = max(1, each // every)
            steps, n = pooled(steps, pool), pooled(n, pool)
            like.setdefault((every * pool, n.shape[1]), []).append((place, test, steps, n))
        for (every, _), parts in like.items():
            stacked = (np.concatenate([part[k] for part in parts]) for k in (2, 3))
            curve = curves(*stacked)
            for i, (place, test, *_) in enumerate(parts):
                at = first(curve[i * draws : (i + 1) * draws], test.alpha)
                day = ((at + 1) * every - 1) // worlds[place][1].looks_a_day
                mine = slice(place * draws, (place + 1) * draws)
                first_of[mine] = np.minimum(first_of[mine], np.where(at < NEVER, day, NEVER))
    return found


def steps_of(test: Test, s: Streams) -> tuple[Floats, Counts, int]:
    """What each bet makes of each look, the observations, and after how many looks each comes."""
    if test.family == "changed":
        return of_counts(test, s.changed, s.anchors), s.anchors, 1
    if test.family == "shifted" or test.about == FAILURES:
        failures = (f"label:{METRIC}", NO_LABEL)
        key = (test.metric, test.about) if test.family == "shifted" else failures
        return of_counts(test, s.categories[key], s.answers), s.answers, 1
    x = s.finds if test.about == RECALL else s.agrees
    there = ~np.isnan(x)
    steps = (gains(test, np.nan_to_num(x)) * there[..., None]).sum(axis=2)
    return np.asarray(steps), there.sum(axis=2), 7 * s.looks_a_day


def pooled(values: NDArray[Any], each: int) -> NDArray[Any]:
    """Sums over so many looks after each other (axis 1)."""
    if each == 1:
        return values
    return np.asarray(np.add.reduceat(values, np.arange(0, values.shape[1], each), axis=1))


def state_of(found: Found) -> tuple[Counts, Counts]:
    """The days of revocation and of the first warning."""
    revoked = np.minimum(found["changed"], found["fallen"])
    return revoked, np.minimum(found["shifted"], found.get("near", NEVER))


def share(at: Counts) -> str:
    """`1.3 % [0.4, 2.9]`, with the exact 95 % interval."""
    e = clopper_pearson(int((at < NEVER).sum()), len(at))
    return f"{100 * (e.value or 0):.1f} % [{100 * (e.low or 0):.1f}, {100 * (e.high or 0):.1f}]"


def delay(at: Counts, since: int) -> str:
    """`63 (120)`: the median and the 90 % quantile of what came since."""
    later = np.sort(at - since)
    middle, most = (later[math.ceil(q * len(later)) - 1] for q in (0.5, 0.9))
    return (
        " ".join(f"{x:,}" if x < NEVER / 2 else "never" for x in (middle, most)).replace(" ", " (")
        + ")"
    )


def row(name: str, *cells: object) -> None:
    """A row of a table."""
    print(f"| {name} | " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def heading(title: str, *columns: str) -> None:
    """The head of a table."""
    print(f"\n{title}\n\n| | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|")


# ---- worlds ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """How much is simulated: `certificates` of so many `answers`, and `years` of each, of so many
    `days` with answers `a_day`; `real` days go through the watch row by row. Where something
    changes, there are so many `draws` of `others`."""

    certificates: int = 50
    years: int = 8
    a_day: int = 1000
    days: int = 365
    answers: int = 600
    real: int = 60
    others: int = 5
    draws: int = 20


QUICK = Size(certificates=2, years=4, a_day=100, days=60, answers=300, real=3, others=2, draws=4)
Worlds = dict[str, list[tuple[Issued, Streams]]]


def stable(size: Size, rng: np.random.Generator) -> Worlds:
    """False alarms of stable judges; the worlds, for what is put beside them."""
    kept: Worlds = {}
    heading("A stable judge", "revoked", "warned", "years")
    for name, judge in STABLE.items():
        made = issued(judge, size.answers, size.certificates)
        still = course(size.days, SEVERE)
        kept[name] = [(w, drawn(w, still, size.years, size.a_day, rng)) for w in made]
        revoked, warned = state_of(alarms(kept[name]))
        row(name, share(revoked), share(warned), len(revoked))
    return kept


def looks(kept: Worlds, rng: np.random.Generator) -> None:
    """The same years, looked at as often as one likes."""
    heading(f"Looks at the same years ({FEW})", "revoked", "warned", "years")
    hourly = [(w, by_hour(s, rng)) for w, s in kept[FEW]]
    for name, worlds, each in (
        ("every hour", hourly, 1), ("every day", kept[FEW], 1), ("every 28 days", kept[FEW], 28),
    ):  # fmt: skip
        revoked, warned = state_of(alarms(worlds, each))
        row(name, share(revoked), share(warned), len(revoked))


def by_hour(s: Streams, rng: np.random.Generator) -> Streams:
    """The same days, their answers split into hours at random, an anchor in each of the first
    hours; labels stay weekly."""
    draws, days = s.answers.shape
    a_day = int(s.answers[0, 0])
    n = np.diff(a_day * np.arange(25) // 24)

    def split(k: Counts) -> Counts:
        left, rest, parts = k, a_day, []
        for size in n:
            parts.append(rng.hypergeometric(left, rest - left, size))
            left, rest = left - parts[-1], rest - size
        return np.stack(parts, axis=2).reshape(draws, days * 24)

    changed = np.zeros((draws, days, 24), dtype=np.int64)
    changed[:, :, :ANCHORS] = s.which.reshape(draws, days, ANCHORS)
    anchors = np.tile((np.arange(24) < ANCHORS).astype(np.int64), (draws, days))
    return replace(
        s, categories={key: split(k) for key, k in s.categories.items()},
        answers=np.tile(n, (draws, days)), anchors=anchors,
        changed=changed.reshape(draws, -1), looks_a_day=24,
    )  # fmt: skip


def swaps(size: Size, rng: np.random.Generator) -> None:
    """Another judge from one day on."""
    days = (0, 30, 180) if size.days > 180 else (0,)
    heading(
        "Anchors until a swap revokes: median (90 % quantile)",
        *(f"swapped at day {day}" for day in days), "draws each",
    )  # fmt: skip
    for name in ("no noise", FEW):
        made = issued(STABLE[name], size.answers, size.others)
        for changed in SWAPS:
            cells = []
            for day in days:
                c = course(day + size.days, SEVERE)
                c.swapped[day:] = changed
                worlds = [(w, drawn(w, c, size.draws, 1, rng)) for w in made]
                at = alarms(worlds, only="changed")["changed"]
                at = at[at >= day]
                cells.append(delay(np.where(at < NEVER, (at - day + 1) * ANCHORS, NEVER), 0))
            row(f"{name}, {changed:.0%} of labels change", *cells, size.draws * len(made))


def changes(size: Size, rng: np.random.Generator) -> None:
    """What else may change, at day 100."""
    heading(
        "Something changes at day 100 (drift: from day 0)", "revoked", "days until: median (90 %)",
        "warned", "days until: median (90 %)", "draws",
    )  # fmt: skip
    start = min(100, size.days // 2)
    noisy = Judge(wavering=0.4, flips=0.25)
    few, many = 300, 3000 if size.days > 100 else 300

    def told(name: str, judge: Judge, n: int, since: int, change: Callable[[Course], None]) -> None:
        c = course(size.days, SEVERE)
        change(c)
        made = issued(judge, n, size.others)
        worlds = [(w, drawn(w, c, size.draws, size.a_day, rng)) for w in made]
        revoked, warned = state_of(alarms(worlds))
        cells = [f(at) for at in (revoked, warned) for f in (share, lambda a: delay(a, since))]
        row(name, *cells, len(revoked))

    def drift(c: Course) -> None:
        c.swapped[:] = np.minimum(0.10 * np.arange(len(c.swapped)) / 180, 0.10)

    def severe(c: Course) -> None:
        c.severe[start:] = 2 * SEVERE

    def annotators(c: Course, times: int = 2) -> None:
        c.annotator[start:] = 1 - times * (1 - ANNOTATOR)

    def swap(c: Course) -> None:
        c.swapped[start:] = 0.10

    plain = STABLE["no noise"]
    told("the judge drifts, 0 to 10 % in 180 days", plain, size.answers, 0, drift)
    for n in sorted({few, many}):
        told(f"twice as many severe answers, certificate of {n:,}", plain, n, start, severe)
    told("annotators err twice as often", plain, size.answers, start, annotators)
    worse = partial(annotators, times=3)
    told("annotators err three times as often", plain, size.answers, start, worse)
    told("10 % noise from the start, nothing changes", noisy, size.answers, 0, lambda c: None)
    told("10 % noise from the start, 10 % swapped", noisy, size.answers, start, swap)


def beside(size: Size, kept: Worlds, rng: np.random.Generator) -> None:
    """Rivals on the same anchors, against the noise that the certificate measured."""
    heading(
        "Beside it, on the same anchors: false alarms in a stable year, and anchors until a swap "
        "at day 30 is found, median (90 %)", *STABLE, *(f"{s:.0%} swapped, {FEW}" for s in SWAPS),
    )  # fmt: skip
    day = min(30, size.days // 2)
    swapped = []
    for s in SWAPS:
        c = course(size.days, SEVERE)
        c.swapped[day:] = s
        swapped.append([(w, drawn(w, c, size.years, 1, rng)) for w, _ in kept[FEW]])
    rivals = {
        "this watch": lambda w, s: alarms([(w, s)], only="changed")["changed"] * ANCHORS + 9,
        "rolling z-test, 100 anchors": lambda w, s: z_test(w, s.which),
        "CUSUM, ARL a year": lambda w, s: cusum(w, s.which, rng),
        "binomial test every 300 anchors": lambda w, s: monthly(w, s.which),
    }
    for name, rival in rivals.items():
        cells = [
            share(np.concatenate([np.minimum(rival(w, s), NEVER) for w, s in kept[world]]))
            for world in STABLE
        ]
        for worlds in swapped:
            at = np.concatenate([np.minimum(rival(w, s), NEVER) for w, s in worlds])
            cells.append(delay(at[at >= day * ANCHORS] + 1, day * ANCHORS))
        row(name, *cells)


def measured(w: Issued) -> float:
    """The noise that the certificate measured, and where that is 0, half a change."""
    noise = w.certificate.metrics[METRIC].noise
    assert noise is not None
    return max(noise.changed, 0.5) / noise.pairs


def z_test(w: Issued, which: NDArray[np.bool_], window: int = 100) -> Counts:
    """The anchor at which the share of a window lies 1.96 standard errors above the noise."""
    sums = np.cumsum(np.pad(which, ((0, 0), (1, 0))), axis=1)
    p = measured(w)
    z = ((sums[:, window:] - sums[:, :-window]) / window - p) / math.sqrt(p * (1 - p) / window)
    over = z > 1.96
    return np.where(over.any(axis=1), over.argmax(axis=1) + window - 1, NEVER)


def cusum(w: Issued, which: NDArray[np.bool_], rng: np.random.Generator) -> Counts:
    """The anchor at which the sum against 10 points more than the noise crosses a limit that a
    year without change crosses with a chance of 1 - 1 / e."""
    p = measured(w)
    limit = np.quantile(most(p, rng.random((400, which.shape[1])) < p).max(axis=1), math.exp(-1))
    over = most(p, which) > limit
    return np.where(over.any(axis=1), over.argmax(axis=1), NEVER)


def most(p: float, which: NDArray[np.bool_]) -> Floats:
    """The cumulative sums (draws, anchors) of Page (1954) for coins."""
    q = min(p + 0.10, 0.99)
    steps = np.cumsum(np.where(which, math.log(q / p), math.log((1 - q) / (1 - p))), axis=1)
    return np.asarray(steps - np.minimum(np.minimum.accumulate(steps, axis=1), 0))


def monthly(w: Issued, which: NDArray[np.bool_], each: int = 300) -> Counts:
    """The anchor at which a binomial test at 5 % of the last month rejects."""
    n = which.shape[1] // each
    k = which[:, : n * each].reshape(len(which), n, each).sum(axis=2)
    over = binom.sf(k - 1, each, measured(w)) < 0.05
    return np.where(over.any(axis=1), (over.argmax(axis=1) + 1) * each - 1, NEVER)


# ---- row by row --------------------------------------------------------------------------------


def day_of(
    world: Issued, c: Course, day: int, a_day: int, rng: np.random.Generator, new: str = ""
) -> list[Seen]:
    """The rows of a day: answers, of which the last of a week have labels, and anchors. A tenth is
    of the system `new`, if there is one."""
    right = world.judge.right * (1 - c.swapped[day]) + (1 - world.judge.right) * c.swapped[day]
    truth = rng.random(a_day) < c.severe[day]
    said = truth ^ (rng.random(a_day) > right)
    failed, systems = rng.random(a_day) < FAILS, rng.integers(0, 2, a_day)
    length, with_label = 11 + 5 * rng.integers(3, 60, a_day), day % 7 == 6
    rows = []
    for i in range(a_day):
        people: dict[str, str] = {}
        if with_label and i >= a_day - A_WEEK:
            for name in ("Dee", "Eve")[: 1 + i % 2]:
                wrong = rng.random() > c.annotator[day]
                people[name] = LABELS[int(truth[i] ^ wrong)]
        item, label = f"{day}.{i}", "" if failed[i] else LABELS[int(said[i])]
        system = new if new and i % 10 == 0 else "ab"[systems[i]]
        rows.append(Seen(
            item, item, system, "", int(length[i]), {METRIC: label},
            labels={METRIC: people} if people else {},
        ))  # fmt: skip
    return rows


def anchors_of(world: Issued, watch: Watch, changed: float, rng: np.random.Generator) -> list[Seen]:
    """The anchors of a day, judged again."""
    flips = {a.id: p for a, p in zip(world.certificate.anchors, world.flips, strict=True)}
    rows = []
    for anchor in watch.next_anchors(ANCHORS):
        before, p = anchor.verdicts[METRIC], flips[anchor.id]
        other = rng.random() < p * (1 - changed) + (1 - p) * changed
        label = LABELS[before == LABELS[0]] if other else before
        rows.append(
            Seen(anchor.id, anchor.group, anchor.system, anchor.hash, None, {METRIC: label})
        )
    return rows


def real(size: Size, rng: np.random.Generator) -> None:
    """A stable year through the watch itself, and the same through `curves`."""
    world = issued(STABLE[FEW], size.answers, size.others)[0]
    c, watch, seen = course(size.real, SEVERE), Watch(world.certificate), list[list[Seen]]()
    begun = time.process_time()
    for day in range(size.real):
        seen.append(day_of(world, c, day, size.a_day, rng) + anchors_of(world, watch, 0.0, rng))
        found = watch.update_rows([Batch(seen[-1])], now=START + timedelta(days=day))
    took = time.process_time() - begun
    off = max(abs(one.evidence.log_capital - again(world, seen, test)) for one, test in
              zip(found.checked, world.tests, strict=True))  # fmt: skip
    print(
        f"\nRow by row: {found.seen.answers:,} answers and {found.seen.anchors:,} anchors in "
        f"{size.real} updates; {found.state}. Evidence beside that of the tables: at most "
        f"{off:.1e} apart. {1e6 * took / found.seen.answers:.0f} microseconds an answer."
    )


def again(world: Issued, seen: Sequence[Sequence[Seen]], test: Test) -> float:
    """The evidence of one test by `curves`."""
    known = world.certificate.by_id
    of = world.certificate.of_rubric.metrics[0]
    steps, n = [], []
    for rows in seen:
        if test.family == "changed":
            x = [
                r.verdicts[METRIC] != known[r.item].verdicts[METRIC]
                for r in rows
                if r.item in known
            ]
        elif test.family == "shifted":
            said = [dict(features(r, world.certificate.population.cuts)) for r in rows
                    if r.item not in known]  # fmt: skip
            x = [f[test.metric] == test.about for f in said]
        else:
            about = world.certificate.metrics[METRIC]
            values = [
                observed(r, METRIC, about, of, test.about) for r in rows if r.item not in known
            ]
            x = [v for v in values if v is not None]
        steps.append(gains(test, np.array(x, dtype=np.float64)).sum(axis=0))
        n.append(len(x))
    return float(curves(np.array(steps)[None], np.array(n)[None])[0, -1])


def sentences(size: Size, rng: np.random.Generator) -> None:
    """The first state other than valid, with its reason."""
    heading("In words, 200 answers a day; the change is at day 100", "day", "state", "reason")
    plain, days = STABLE["no noise"], 365 if size.days > 100 else 20
    start = min(100, days // 2)
    for name, field, value, new in (
        ("a new system", "", 0.0, "c"),
        ("twice as many severe answers", "severe", 2 * SEVERE, ""),
        ("annotators err three times as often", "annotator", 1 - 3 * (1 - ANNOTATOR), ""),
        ("10 % of labels swapped", "swapped", 0.10, ""),
    ):
        world, c = issued(plain, size.answers, size.others)[0], course(days, SEVERE)
        if field:
            getattr(c, field)[start:] = value
        watch = Watch(world.certificate)
        for day in range(days):
            rows = day_of(world, c, day, 200, rng, new if day >= start else "")
            rows += anchors_of(world, watch, c.swapped[day], rng)
            found = watch.update_rows([Batch(rows)], now=START + timedelta(hours=day))
            if found.state != "valid":
                row(name, day, found.state, found.reasons[0].text)
                break
        else:
            row(name, "never", found.state, "")


# ---- real verdicts -----------------------------------------------------------------------------


def xstest(rng: np.random.Generator) -> None:
    """GPT-4 on XSTest, which a string match replaces at half: on half of the prompts it is
    certified by a wide rule, as the usual one says DO NOT USE; the answers to the others come in
    batches of 12 prompts, with 20 anchors each. It was not asked twice: its noise is assumed."""
    print(
        "\nXSTest: GPT-4 says whether a reply refuses; from the tenth batch on, a string match does"
    )
    if not XSTEST.exists():
        print("left out: ../shared/data/xstest-verdicts is not here")
        return
    with gzip.open(XSTEST, "rt", encoding="utf-8") as file:
        rows = pd.DataFrame(csv.DictReader(file))
    about = ["item_id", "question", "system", "group", "metric"]
    rows = rows.assign(
        item_id=rows["id"] + "/" + rows["system"], question=rows["prompt"], group=rows["id"],
        metric="refusal", judge="gpt-4",
    )  # fmt: skip
    kinds = {"1_full_compliance": "no", "2_full_refusal": "yes", "3_partial_refusal": "yes"}
    prompts = rng.permutation(rows["id"].unique())

    def said(of: Sequence[str], who: str, *columns: str) -> pd.DataFrame:
        chosen = rows[rows["id"].isin(of)]
        return chosen[[*about, *columns]].assign(label=chosen[who].map(kinds).fillna(""))

    people = [said(prompts[:225], k).assign(annotator=k) for k in ("annotation_1", "annotation_2")]
    before = said(prompts[:225], "gpt4_label", "judge")
    rubric = jb.Rubric.from_labels({"refusal": ["no", "yes"]})
    replace_ = ReplaceRule(
        humans=HumansRule(margin=0.3, measures=("accuracy",), distance=None), systems=None,
        severe=SevereRule(recall=0.5, margin=None),
    )  # fmt: skip
    study = jb.study(pd.concat(people), before, rubric=rubric)
    made = jb.decide(study, rule=DecisionRule(replace=replace_)).certificate(now=START)
    watch, told = Watch(made), ""
    for step in range(18):
        who = "gpt4_label" if step < 9 else "strmatch_label"
        new = said(prompts[225 + 12 * step : 237 + 12 * step], who, "judge")
        anchors = {a.id for a in watch.next_anchors(20)}
        again = said(prompts[:225], who, "judge")
        found = watch.update(
            new, again[again["item_id"].isin(anchors)], now=START + timedelta(days=step)
        )
        if found.state != told:
            told = found.state
            print(f"batch {step + 1}, {found.seen.anchors} anchors: {told}")
            for reason in found.reasons:
                print(f"  {reason.text}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="60 days of one certificate")
    parser.add_argument("--seed", type=int, default=35)
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # the judge fails now and then
    size = QUICK if given.quick else Size()
    draws = [np.random.default_rng([given.seed, part]) for part in range(8)]
    kept = stable(size, draws[0])
    swaps(size, draws[1])
    changes(size, draws[2])
    beside(size, kept, draws[3])
    looks(kept, draws[4])
    sentences(size, draws[5])
    xstest(draws[6])
    real(size, draws[7])
    print(f"\n{time.process_time():.0f} s of CPU time")


if __name__ == "__main__":
    main()
