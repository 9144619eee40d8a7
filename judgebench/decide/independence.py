"""Whether a judge's labels, or an annotator's, seem to be copied or derived from others'."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgebench.decide.counts import Bools, HumanSide
from judgebench.stats.arrays import IntArray
from judgebench.stats.copies import leans_on, same_as, same_as_truth

DECLARE = "name {who} under `independent` in the rule if they were made independently"


def why_derived(
    judged: IntArray, side: HumanSide, names: Sequence[str], independent: Sequence[str] = ()
) -> str:
    """Why the labels cannot be taken as a judgement of their own; empty where they can.

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
    for a, name in enumerate(names):
        if name not in independent and len(names) > 2:
            others = np.delete(side.own, a, axis=1)
            peers = [other for other in names if other != name]
            same = _first(same_as(side.own[:, a], others, side.clusters), peers)
            if same and same not in independent:
                return (
                    f"{name} and {same} gave the same labels on almost all items where another "
                    "annotator differs: one of them may be copied"
                )
    return ""


def _first(which: Bools, names: Sequence[str]) -> str:
    return next((name for name, is_it in zip(names, which, strict=True) if is_it), "")
