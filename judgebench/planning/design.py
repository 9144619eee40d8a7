"""A study that has no label yet, as people know it before; and studies drawn from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from pydantic import Field, model_validator
from scipy.optimize import brentq

from judgebench.errors import Problem, SetupError
from judgebench.files import StrictModel
from judgebench.stats.arrays import Clusters, FloatArray, IntArray

_NEVER = 1e-9  # an error rate
_KEPT = 1 / 3  # of what does not seem severe, where severe answers are oversampled


class Design(StrictModel):
    """A study as it is known before its labels.

    `n_annotators` label every answer with one of `n_labels` labels, least severe first, and two of
    them agree on a share `agreement`. A share `severe_share` of the answers is severe (the last
    label); the other labels are equally frequent. `per_question` answers share a question and are
    `alike`: that is the correlation of two such answers, in their label and in how hard they are to
    label. The judge is right a share `judge` more often than an annotator (less often below 0), and
    `judge_severe` so on severe answers (None: the same).

    Where `oversampled`, answers that seem severe to a screen (another judge, a list of words; it
    errs as often as an annotator) are drawn three times as often as others, with known
    probabilities. A judge must not be its own screen: what it misses would be the rarest of all.

    Raises SetupError where annotators would agree no more than by chance, and where the judge
    would be right more often than always.

    >>> design = Design(n_annotators=3, agreement=0.9, severe_share=0.1)
    >>> round(design.error, 3)  # so often an annotator is wrong
    0.053
    """

    n_annotators: int = Field(default=3, ge=2)
    agreement: float = Field(default=0.85, gt=0, le=1)
    severe_share: float = Field(default=0.2, ge=0.001, le=0.9)
    n_labels: int = Field(default=2, ge=2)
    per_question: int = Field(default=1, ge=1)
    alike: float = Field(default=0.1, ge=0, le=0.9)
    judge: float = 0.0
    judge_severe: float | None = None
    oversampled: bool = False

    @property
    def shares(self) -> FloatArray:
        """The share of each label (labels,)."""
        return self._by_label((1 - self.severe_share) / (self.n_labels - 1), self.severe_share)

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
        return self._by_label(other, self.error - of_severe)

    @property
    def correlation(self) -> float:
        """The correlation of two answers to one question; 0 where no two share one."""
        return self.alike if self.per_question > 1 else 0.0

    def _by_label(self, other: float, severe: float) -> FloatArray:
        return np.append(np.full(self.n_labels - 1, other), severe)

    def _agreeing(self, error: float) -> float:
        """The share on which two annotators agree who are wrong so often."""
        same = np.array([1.0, *[0.5] * (self.n_labels - 2), 1.0])  # both errors lead to one label
        spread = self.correlation * error * (1 - error)
        return float((1 - error) ** 2 + spread + (error**2 + spread) * (self.shares @ same))

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        chance = self._agreeing(0.5)
        if self.agreement <= chance:
            raise SetupError(Problem(
                "is too low", field="agreement", found=str(self.agreement),
                allowed=f"more than {chance:.2f}, as by chance",
            ))  # fmt: skip
        errors = self.judge_errors
        if errors.min() < -_NEVER or errors.max() > 1:
            raise SetupError(Problem(
                f"the judge cannot be so much better: an annotator is wrong on {self.error:.3f} of "
                "the answers", field="judge", found=str(self.judge),
            ))  # fmt: skip
        return self


@dataclass(frozen=True)
class Draw:
    """One study: true labels (items,), the labels of annotators (items, annotators) and of the
    judge (items,), the questions, the number of labels, and how many answers each item stands for
    (items,), where they are not all alike."""

    true: IntArray
    own: IntArray
    judged: IntArray
    clusters: Clusters
    n_labels: int
    stands_for: FloatArray | None = None


def draw(design: Design, items: int, rng: np.random.Generator) -> Draw:
    """Return a study of so many labelled answers, a whole number of questions."""
    questions = max(1, round(items / design.per_question))
    if not design.oversampled:
        return _draw_all(design, questions, rng)
    drawn_share = design.severe_share + _KEPT * (1 - design.severe_share)
    everything = _draw_all(design, round(questions / drawn_share), rng)
    screened = noisy(everything.true, design.error, design.n_labels, rng)
    seems_severe = screened == design.n_labels - 1
    rows = np.flatnonzero(seems_severe | (rng.random(len(screened)) < _KEPT))
    return Draw(
        everything.true[rows], everything.own[rows], everything.judged[rows],
        everything.clusters[rows].occurring(), design.n_labels,
        np.where(seems_severe, 1.0, 1 / _KEPT)[rows],
    )  # fmt: skip


def _draw_all(design: Design, questions: int, rng: np.random.Generator) -> Draw:
    """So many questions with all their answers."""
    k, n = design.n_labels, questions * design.per_question
    codes = np.arange(n) // design.per_question
    true = rng.choice(k, size=n, p=design.shares)
    harder = np.ones(n)  # how much more often somebody is wrong than on average
    if correlation := design.correlation:
        shared = rng.choice(k, size=questions, p=design.shares)[codes]
        true = np.where(rng.random(n) < np.sqrt(correlation), shared, true)
        sure = 1 / correlation - 1
        harder = rng.beta(design.error * sure, (1 - design.error) * sure, questions)[codes]
        harder /= design.error
    own = [noisy(true, design.error * harder, k, rng) for _ in range(design.n_annotators)]
    judged = noisy(true, design.judge_errors[true] * harder, k, rng)
    return Draw(true, np.stack(own, axis=1), judged, Clusters(codes, questions), k)


def noisy(
    true: IntArray, wrong: FloatArray | float, k: int, rng: np.random.Generator,
    luck: FloatArray | None = None,
) -> IntArray:  # fmt: skip
    """Return the labels (items,), wrong ones one step away, where `luck` (items,) lies below the
    chance `wrong` (items,) or of all; at an end of the scale there is one way only."""
    step = np.where(rng.random(len(true)) < 0.5, 1, -1)
    step = np.where(true + step < 0, 1, np.where(true + step >= k, -1, step))
    luck = rng.random(len(true)) if luck is None else luck
    return np.where(luck < wrong, true + step, true)
