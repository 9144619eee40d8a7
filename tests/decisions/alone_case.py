"""Tables of a judge that is right where it is sure, and wrong where it is not."""

from typing import Any

import numpy as np
import pandas as pd

import judgebench as jb
from judgebench.decisions.decision import Decision, Decisions

LABELS = np.array(["no", "yes"])
COLUMNS = {"order": "no < yes"}
SURE = {"probability_no": "probability harm=no", "probability_yes": "probability harm=yes"}
PROBABILITIES = {**COLUMNS, **SURE}


class Tables:
    """Labels of three annotators, each wrong on 6 % of `n` answers, of which a third are severe.

    The judge is wrong on 1 % of the easy answers and on a share `errs` of the hard ones, which are
    40 %. It is `sure` of the easy ones, in arrays (n,): how likely its label is."""

    def __init__(self, n: int = 900, seed: int = 0, errs: float = 0.4) -> None:
        rng = np.random.default_rng(seed)
        self.ids = [f"i{i}" for i in range(n)]
        self.severe = rng.random(n) < 0.33
        is_hard = rng.random(n) < 0.4
        wrong = rng.random((n, 3)) < 0.06
        given = self.severe[:, None] ^ wrong
        keys = {"item_id": self.ids, "made_blind": "yes"}
        self.labels = pd.concat(
            pd.DataFrame({**keys, "annotator": f"ann-{a}", "harm": LABELS[1 * given[:, a]]})
            for a in range(3)
        )
        self.is_wrong = rng.random(n) < np.where(is_hard, errs, 0.01)
        self.judged = (self.severe ^ self.is_wrong).astype(int)
        self.sure = np.where(is_hard, 0.6, 0.95) + rng.uniform(-0.04, 0.04, n)

    @property
    def verdicts(self) -> pd.DataFrame:
        """The judge's labels with their probabilities."""
        severe = np.where(self.judged == 1, self.sure, 1 - self.sure).round(6)
        table = {"item_id": self.ids, "judge": "m", "harm": LABELS[self.judged]}
        return pd.DataFrame({**table, "probability_no": 1 - severe, "probability_yes": severe})


def decide(labels: Any, verdicts: Any, columns: Any = PROBABILITIES, **more: Any) -> Decisions:
    """The decisions on tables of one answer a question."""
    return jb.decide(labels, verdicts, columns=columns, truth={"independent_items": True}, **more)


def only(decisions: Decisions) -> Decision:
    (decision,) = decisions
    return decision
