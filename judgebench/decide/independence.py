"""Whether a judge's labels, or an annotator's, seem to be copied or derived from others'."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgebench.decide.counts import Bools, HumanSide
from judgebench.stats.arrays import Clusters, IntArray
from judgebench.stats.camps import pair_agreement
from judgebench.stats.copies import ALMOST_ALL, leans_on, same_as, same_as_truth

_FEW = 30  # items in common; fewer never show a copy


def why_derived(judged: IntArray, side: HumanSide, names: Sequence[str]) -> str:
    """Why a judge's labels cannot be taken for judgements of its own; empty where they can.

    `names` are the annotators of the bar.
    """
    if copied := _first(same_as(judged, side.own, side.clusters), names):
        return (
            f"The judge gives the labels of {copied} on almost all items where another annotator "
            "differs: they may be copied or leaked"
        )
    if same_as_truth(judged, side.truth, side.own, side.clusters, side.k):
        return (
            "The judge gives the consensus of the annotators on almost all items where they "
            "differ, more often than it can be right: its labels may be derived from it"
        )
    if leaning := _first(leans_on(judged, side.own, side.clusters, side.k), names):
        return (
            f"The judge is close to {leaning} alone and further from the others than they are from "
            "each other: its labels may be derived in part"
        )
    return ""


def why_copied(
    ratings: IntArray, names: Sequence[str], clusters: Clusters, independent: Sequence[str]
) -> str:
    """Why annotators' labels (items, annotators) cannot all be taken for their own; empty where
    they can. Of those in `independent`, equal labels are no sign of a copy."""
    # A copy is equal on almost all items: where it could not tell, everybody was.
    share, both = pair_agreement(ratings, int(ratings.max(initial=0)) + 1)
    alike = np.argwhere(np.triu((share >= ALMOST_ALL) & (both >= _FEW), 1))
    for a, b in alike if len(names) > 2 else ():
        others = np.delete(ratings, a, axis=1)
        pair = names[a], names[b]
        if same_as(ratings[:, a], others, clusters)[b - 1] and not {*pair} <= set(independent):
            return (
                f"{pair[0]} and {pair[1]} gave the same labels on almost all items where another "
                "annotator differs: one of them may be copied"
            )
    return ""


def _first(which: Bools, names: Sequence[str]) -> str:
    return next((name for name, is_it in zip(names, which, strict=True) if is_it), "")
