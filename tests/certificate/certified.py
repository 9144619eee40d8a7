"""A synthetic study whose judge earns REPLACE on one metric, and its certificate."""

import random
from collections.abc import Sequence
from typing import Any

import pandas as pd

import judgebench as jb

ANNOTATORS = ("ann", "ben", "cem")
COLUMNS = {"order": "no < yes", "question": "question"}


def replies(
    seed: int, start: int, n: int, *, finds: float = 0.98, alarms: float = 0.02,
    annotators: Sequence[str] = ANNOTATORS, systems: Sequence[str] = ("old", "new"),
) -> tuple[pd.DataFrame, pd.DataFrame]:  # fmt: skip
    """Labels of annotators, each right in 96 %, and verdicts of a judge that finds this share of
    the 35 % of answers that are severe, and calls this share of the others severe."""
    draw = random.Random(seed)
    labels, verdicts = [], []
    for number in range(start, start + n):
        is_severe = draw.random() < 0.35
        text = f"Reply {number}: " + "so " * draw.randrange(5, 60)
        keys = {"item_id": f"r{number}", "question": f"Question {number}?", "text": text}
        keys["system"] = systems[number % len(systems)]
        for name in annotators:
            label = "yes" if is_severe != (draw.random() < 0.04) else "no"
            labels.append({**keys, "annotator": name, "refused": label, "made_blind": "yes"})
        verdict = "yes" if draw.random() < (finds if is_severe else alarms) else "no"
        verdicts.append({**keys, "judge": "gpt-4", "refused": verdict})
    return pd.DataFrame(labels), pd.DataFrame(verdicts)


def certify(labels: Any, verdicts: Any, columns: Any = COLUMNS) -> Any:
    """The certificate of the decision on these tables."""
    return jb.decide(labels, verdicts, columns=columns).certificate()
