"""A curriculum: what is learnt in which order, after section 3.2 of AutoMedEval.

There a judge learns first from labels of low quality, then from a mixture, then from the best, so
that it meets the form of a verdict before its quality. 1,911 of the 3,823 lower ones (half) are the
first block, half of the 4,788 better ones the last, and all that is left the block between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgebench.learning.learnt import TrainingSet
from judgebench.tuning.config import HUMAN, MIXED, SHUFFLED, Stage, files_of


@dataclass(frozen=True)
class Block:
    """What is learnt in one go, by the name of its stage."""

    name: str
    train: TrainingSet


def blocks_of(train: TrainingSet, stages: Sequence[Stage], seed: int) -> Sequence[Block]:
    """The blocks of a training in their order: the stages, all labels of people where there is
    none, and after them what is to be learnt again. Blocks without an answer are left out."""
    mixes = any(stage.data == MIXED for stage in stages)
    left = {HUMAN: replace(train, beside={}, again=()), **train.beside}
    drawn: dict[int, TrainingSet] = {}
    rng = np.random.default_rng(seed)
    for number, stage in enumerate(stages):
        if stage.data in left:
            share = stage.share or (0.5 if mixes else 1.0)
            drawn[number], left[stage.data] = _split(left[stage.data], share, rng)
    for number, stage in enumerate(stages):
        if stage.data == MIXED:
            rest = joined([left[name] for name in (*files_of(stages), HUMAN)])
            drawn[number] = _split(rest, stage.share or 1.0, rng)[0]
            left = {name: found.only(np.arange(0)) for name, found in left.items()}
    blocks = [Block(stages[number].data, drawn[number]) for number in sorted(drawn)]
    if not stages:
        blocks = [Block(HUMAN, left[HUMAN])]
    if any(stage.data == SHUFFLED for stage in stages):
        whole = joined([block.train for block in blocks])
        blocks = [Block(SHUFFLED, whole.only(rng.permutation(len(whole))))]
    blocks += [Block(f"again-{n}", more) for n, more in enumerate(train.again, start=1)]
    return [block for block in blocks if len(block.train)]


def described(blocks: Sequence[Block], seed: int) -> Mapping[str, Any]:
    """What the facts of a training say of its blocks."""
    sizes = [{"data": block.name, "n": len(block.train)} for block in blocks]
    return {"stages": sizes, "stages_seed": seed}


def joined(sets: Sequence[TrainingSet]) -> TrainingSet:
    """All of them as one, in their order; what is beside them is left out."""
    first = sets[0]
    reasons: list[str] = []
    for one in sets:
        reasons += one.reasons or [""] * len(one)
    return TrainingSet(
        first.rubric,
        [answer for one in sets for answer in one.answers],
        {metric: np.concatenate([one.labels[metric] for one in sets]) for metric in first.labels},
        np.concatenate([one.question for one in sets]),
        np.concatenate([one.text for one in sets]),
        reasons if any(reasons) else (),
    )


def _split(
    found: TrainingSet, share: float, rng: np.random.Generator
) -> tuple[TrainingSet, TrainingSet]:
    """That share of them at random, and the rest; both in their order."""
    drawn = rng.permutation(len(found)) < round(share * len(found))
    return found.only(np.flatnonzero(drawn)), found.only(np.flatnonzero(~drawn))
