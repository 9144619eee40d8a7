"""Whether a judge's labels seem to be copied or derived from annotators'."""

from __future__ import annotations

from collections.abc import Sequence

from judgebench.decisions.counts import Bools, HumanSide
from judgebench.stats.arrays import IntArray
from judgebench.stats.copies import leans_on, same_as, same_as_truth


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
            f"Where {leaning} deviates from the others, the judge does too, in both directions and "
            "far more often than with anybody else: its labels may be derived in part"
        )
    return ""


def _first(which: Bools, names: Sequence[str]) -> str:
    return next((name for name, is_it in zip(names, which, strict=True) if is_it), "")
