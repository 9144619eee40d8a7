"""How much a judge is said to decide alone, and how often that is too much.

Each scenario (`alone` in scenarios.yaml) is a population of answers with known labels. From it many
studies are drawn, and in each a threshold on the judge's confidence is chosen and checked as
`judgebench decide` does. Beside it stand two rules that need no labels: a fixed threshold of 0.9 on
the probability of the label, and what the judge says of itself in five steps from 50 to 90 %, noisy
and too sure, as models do: alone where it says 90 %. In all three what the judge calls severe goes
to people.

The error is above its bound where, in the population, the judge gives the true label more than 5
points less often than the typical annotator on the answers that it decides alone, or where of the
severe answers that an annotator finds more than 5 % are decided alone, and so missed.

    python benchmarks/alone.py            # 400 studies a scenario, about an hour
    python benchmarks/alone.py --quick    # 10 studies
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from decisions import MARGIN, RULE, Draw, scenarios, side_of
from numpy.typing import NDArray
from scipy.special import expit, logit

from judgebench.decisions.alone import share_alone
from judgebench.planning.design import noisy
from judgebench.stats.arrays import FloatArray
from judgebench.stats.intervals import clopper_pearson
from judgebench.studies.confidence import Confidence

FIXED = 0.9
_POPULATION = 300_000
_MOST_SURE = 0.995


@dataclass(frozen=True)
class Sure:
    """A judge that is surer of some answers than of others.

    Answers are easy or hard by a number in 0..1, most of them easy. Annotators err with a chance
    that goes from the first to the second `noise` as an answer gets harder, times their `skills`;
    the judge from the first to the second of `judge`. It is sure by its chance of being right,
    which it knows up to a normal error of the standard deviation `blur` in logits; `shift` makes it
    too sure. Where `informs` is 0 its confidence has nothing to do with the answer, where it is -1
    it is surest of what it most often gets wrong. It gives a share `blind` of the severe answers
    the mildest label, and is sure of it; so does each annotator with a chance `overlooked`. Of
    `a_question` answers to one question the judge errs on all or none. With `draws` its label is
    the majority of so many, and its confidence their share.
    """

    name: str
    items: int
    shares: tuple[float, ...] = (0.75, 0.25)
    annotators: int = 3
    noise: tuple[float, float] = (0.03, 0.15)
    skills: tuple[float, ...] = ()
    judge: tuple[float, float] = (0.005, 0.45)
    blur: float = 0.5
    shift: float = 0.0
    informs: int = 1
    blind: float = 0.0
    overlooked: float = 0.0
    a_question: int = 1
    draws: int = 0


@dataclass(frozen=True)
class Sample:
    """A study, and how sure the judge is of each item (items,): by a probability or draws, and as
    it says itself."""

    study: Draw
    confidence: FloatArray
    stated: FloatArray


def sample(world: Sure, items: int, rng: np.random.Generator) -> Sample:
    """That many items of the world."""
    k, question = len(world.shares), np.arange(items) // world.a_question
    true = rng.choice(k, size=items, p=world.shares)
    hard = rng.beta(1, 2, size=question[-1] + 1)[question]
    skills = world.skills or (1.0,) * world.annotators
    own = [noisy(true, skill * _between(world.noise, hard), k, rng) for skill in skills]
    wrong = _between(world.judge, hard)
    luck = rng.random(question[-1] + 1)[question]
    judged = noisy(true, wrong, k, rng, luck)
    known = {1: wrong, 0: _between(world.judge, rng.random(items)), -1: wrong.max() - wrong}
    sure = logit(1 - np.clip(known[world.informs], 0.002, 0.5)) + world.shift
    confidence = expit(sure + rng.normal(0, world.blur, items))
    if world.draws:
        votes = [noisy(true, wrong, k, rng) for _ in range(world.draws)]
        counts = (np.stack(votes)[:, :, None] == np.arange(k)).sum(axis=0)
        judged, confidence = counts.argmax(axis=1), counts.max(axis=1) / world.draws
    is_blind = (true == k - 1) & (rng.random(items) < world.blind)
    judged = np.where(is_blind, 0, judged)
    confidence = np.where(is_blind, _MOST_SURE, confidence)
    # In steps of ten from 50 %: a point too sure in logits, and noisy.
    stated = np.round(expit(logit(np.clip(confidence, 0.01, 0.99)) + rng.normal(1, 1.5, items)), 1)
    if world.overlooked:
        is_missed = rng.random((len(own), items)) < world.overlooked
        own = [
            np.where(is_blind & missed, 0, labels)
            for labels, missed in zip(own, is_missed, strict=True)
        ]
    every = np.ones(items, dtype=np.bool_)
    study = Draw(true, np.stack(own, axis=1), judged, every, every, question, k)
    return Sample(study, confidence, np.clip(stated, 0.5, 0.9))


def mild(study: Draw, confidence: FloatArray) -> FloatArray:
    """The confidence in labels that are not severe (items,), else NaN."""
    return np.where(study.judged < study.k - 1, confidence, np.nan)


def _between(ends: tuple[float, float], hard: FloatArray) -> FloatArray:
    return ends[0] + (ends[1] - ends[0]) * hard


@dataclass(frozen=True)
class Truth:
    """A large sample of a world."""

    every: Sample

    def is_above(self, alone: NDArray[np.bool_]) -> bool:
        """True where the judge errs more than it may on what it decides alone."""
        study = self.every.study
        right = study.own == study.true[:, None]
        short = np.median(right[alone].mean(axis=0)) - (study.judged == study.true)[alone].mean()
        severe = study.true == study.k - 1
        missed = right[severe & alone].sum() / right[severe].sum()
        return bool(short > MARGIN or missed > MARGIN)

    def decided(self, confidence: FloatArray, threshold: float) -> NDArray[np.bool_]:
        """What is decided alone from this confidence on (items,)."""
        return mild(self.every.study, confidence) >= threshold


def run(world: Sure, draws: int, seed: int) -> list[str]:
    """The world's line of the table."""
    rng = np.random.default_rng([seed, *world.name.encode()])
    truth = Truth(sample(world, _POPULATION // world.a_question * world.a_question, rng))
    shares, n_above = [], 0
    for _ in range(draws):
        of = sample(world, world.items, rng)
        side, _bar = side_of(of.study)
        sure = Confidence("confidence", mild(of.study, of.confidence))
        found = share_alone(side, of.study.judged, sure, RULE)
        alone = np.zeros(_POPULATION, dtype=np.bool_)
        if found.check.share.value is not None:
            alone = truth.decided(truth.every.confidence, found.check.threshold)
            n_above += truth.is_above(alone)
        shares.append(float(alone.mean()))
    some = [share for share in shares if share]
    ours = f"{100 * np.mean(some):.0f} %" if some else "–"
    cells = [f"{100 * len(some) / draws:.0f} %", ours, _share(n_above, draws)]
    for confidence in (truth.every.confidence, truth.every.stated):
        alone = truth.decided(confidence, FIXED)
        above = "yes" if alone.any() and truth.is_above(alone) else "no"
        cells += [f"{100 * alone.mean():.0f} %", above]
    return [world.name, f"{world.items:,}", *cells]


def _share(count: int, n: int) -> str:
    high = clopper_pearson(count, n).high or 0.0
    return f"{100 * count / n:.1f} % (≤ {100 * high:.1f})"


def table(draws: int, seed: int, name: str) -> Iterator[str]:
    """A line for each scenario, in Markdown."""
    heads = (
        "scenario", "answers", "something is decided alone", "share alone then",
        "error above the bound", "0.9 on the probability: alone", "above the bound",
        "the judge says 90 %: alone", "above the bound",
    )  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield f"|---|{'--:|' * (len(heads) - 1)}"
    for world in scenarios("alone", Sure):
        if name in world.name:
            yield f"| {' | '.join(run(world, draws, seed))} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=400, help="studies a scenario")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--world", default="", help="only scenarios whose name holds this")
    parser.add_argument("--quick", action="store_true", help="10 studies a scenario")
    asked = parser.parse_args()
    draws = 10 if asked.quick else asked.draws
    print(f"{draws} studies a scenario, seed {asked.seed}\n")
    for line in table(draws, asked.seed, asked.world):
        print(line, flush=True)


if __name__ == "__main__":
    main()
