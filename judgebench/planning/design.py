"""A study that has no label yet, as people know it before; and studies drawn from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from judgebench.errors import Problem, SetupError
from judgebench.stats.arrays import Clusters, FloatArray, IntArray

_NEVER = 1e-9  # an error rate
_HALF = 0.5
_TIMES = 3  # as large a share of what seems severe is drawn, where oversampled


@dataclass(frozen=True)
class Design:
    """What is known of a study before its labels.

    `n_annotators` label every answer with one of `n_labels` labels, least severe first, and two of
    them agree on a share `agreement`. A share `severe_share` of the answers is severe (the last
    label); the other labels are equally frequent. `per_question` answers share a question and are
    `alike`: that is the correlation of two such answers, in their label and in how hard they are to
    label. The judge is right a share `judge` more often than an annotator (less often below 0), and
    `judge_severe` so on severe answers (None: the same).

    Where `oversampled`, answers that seem severe to a screen (another judge, a list of words; it
    errs as often as an annotator) are drawn three times as often as others, so that at most half
    seem severe, with known probabilities. A judge must not be its own screen: what it misses would
    be the rarest of all.

    >>> design = Design(n_annotators=3, agreement=0.9, severe_share=0.1)
    >>> round(design.error, 3)  # so often an annotator is wrong
    0.053
    """

    n_annotators: int = 3
    agreement: float = 0.85
    severe_share: float = 0.2
    n_labels: int = 2
    per_question: int = 1
    alike: float = 0.1
    judge: float = 0.0
    judge_severe: float | None = None
    oversampled: bool = False

    @property
    def shares(self) -> FloatArray:
        """Of the labels (labels,)."""
        other = (1 - self.severe_share) / (self.n_labels - 1)
        return np.array([other] * (self.n_labels - 1) + [self.severe_share])

    @cached_property
    def error(self) -> float:
        """The share of answers on which an annotator is wrong, so that two agree on `agreement`.
        Errors are one label up or down, and independent but for how hard the question is."""
        return float(brentq(lambda error: self._agreeing(error) - self.agreement, 0, 0.5))

    @property
    def judge_errors(self) -> FloatArray:
        """The share on which the judge is wrong, by the true label: (labels,)."""
        of_severe = self.judge if self.judge_severe is None else self.judge_severe
        other = self.error - (self.judge - self.severe_share * of_severe) / (1 - self.severe_share)
        return np.array([other] * (self.n_labels - 1) + [self.error - of_severe])

    def _agreeing(self, error: float) -> float:
        """The share on which two annotators agree who are wrong so often."""
        same = np.array([1.0, *[0.5] * (self.n_labels - 2), 1.0])  # both errors lead to one label
        spread = self._icc * error * (1 - error)
        return float((1 - error) ** 2 + spread + (error**2 + spread) * (self.shares @ same))

    @property
    def _icc(self) -> float:
        return self.alike if self.per_question > 1 else 0.0

    def check(self) -> None:
        """Raises SetupError with everything that cannot be."""
        wrong = [
            Problem(message, field=field, found=str(getattr(self, field)), allowed=allowed)
            for field, (low, high), message in _LIMITS
            if not low <= getattr(self, field) <= high
            for allowed in [f"{low} to {high}"]
        ]
        if wrong:
            raise SetupError(wrong)
        if not self._agreeing(0.5) < self.agreement:
            least = f"more than {self._agreeing(0.5):.2f}, as by chance"
            raise SetupError(
                Problem("is too low", field="agreement", found=str(self.agreement), allowed=least)
            )
        errors = self.judge_errors
        if errors.min() < -_NEVER or errors.max() > 1:
            message = (
                f"the judge cannot be so much better: an annotator is wrong on {self.error:.3f} of "
                "the answers"
            )
            raise SetupError(Problem(message, field="judge", found=str(self.judge)))


_LIMITS = (
    ("n_annotators", (2, 20), "annotators are compared with each other"),
    ("agreement", (0, 1), "is a share of the answers"),
    ("severe_share", (0.001, 0.9), "is a share of the answers"),
    ("n_labels", (2, 7), "is the number of labels"),
    ("per_question", (1, 100), "is a number of answers"),
    ("alike", (0, 0.9), "is a correlation"),
)


@dataclass(frozen=True)
class Draw:
    """The labels of one study: of annotators (items, annotators) and the judge (items,), the
    questions, and how many answers each item stands for (items,), where they are not all alike."""

    own: IntArray
    judged: IntArray
    clusters: Clusters
    stands_for: FloatArray | None = None


def draw(design: Design, items: int, rng: np.random.Generator) -> Draw:
    """A study of so many labelled answers, a whole number of questions."""
    questions = max(1, round(items / design.per_question))
    if not design.oversampled:
        return _drawn(design, questions, rng)[0]
    part = max(design.severe_share, min(_TIMES * design.severe_share, _HALF))
    keep = (
        design.severe_share * (1 - part) / (part * (1 - design.severe_share))
    )  # of what seems no severe one
    drawn = design.severe_share + keep * (1 - design.severe_share)
    found, true = _drawn(design, round(questions / drawn), rng)
    seems = (
        _said(true, np.full(len(true), design.error), design.n_labels, rng) == design.n_labels - 1
    )
    kept = np.flatnonzero(seems | (rng.random(len(true)) < keep))
    return Draw(
        found.own[kept], found.judged[kept], found.clusters[kept].occurring(),
        np.where(seems, 1.0, 1 / keep)[kept],
    )  # fmt: skip


def _drawn(design: Design, questions: int, rng: np.random.Generator) -> tuple[Draw, IntArray]:
    """So many questions with all their answers, and the true labels (items,)."""
    k, n = design.n_labels, questions * design.per_question
    of = np.arange(n) // design.per_question
    true = rng.choice(k, size=n, p=design.shares)
    harder = np.ones(n)  # how much more often somebody is wrong than on average
    if icc := design._icc:
        shared = rng.choice(k, size=questions, p=design.shares)[of]
        true = np.where(rng.random(n) < np.sqrt(icc), shared, true)
        sure = 1 / icc - 1
        harder = rng.beta(design.error * sure, (1 - design.error) * sure, questions)[of]
        harder /= design.error
    own = np.stack(
        [_said(true, design.error * harder, k, rng) for _ in range(design.n_annotators)], axis=1
    )
    judged = _said(true, design.judge_errors[true] * harder, k, rng)
    return Draw(own, judged, Clusters(of, questions)), true


def _said(true: IntArray, wrong: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """The labels (items,), wrong ones one step away; at an end of the scale there is one way."""
    step = np.where(rng.random(len(true)) < 0.5, 1, -1)
    step = np.where(true + step < 0, 1, np.where(true + step >= k, -1, step))
    return np.where(rng.random(len(true)) < wrong, true + step, true)
