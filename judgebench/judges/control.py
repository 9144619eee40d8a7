"""Control judges: content-blind baselines, which any real judge must beat.

Where a control learns from human labels, the questions are cut into two halves and each half is
judged by what the other half's labels say, so that no control sees the labels it is scored on.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal, get_args

from judgebench.judges.fit import Fit
from judgebench.judges.judge import Task
from judgebench.records import Answer, HumanLabel, Status, Verdict, content_hash
from judgebench.rubric import Metric, Rubric

Control = Literal[
    "constant-majority", "constant-fixed", "random", "prior", "longest-answer", "constant-severe"
]
# Against human labels the most severe label is never the one to beat; it shows in a stress test
# that whoever calls everything wrong detects everything.
CONTROLS: tuple[Control, ...] = tuple(c for c in get_args(Control) if c != "constant-severe")
UNTAUGHT: tuple[Control, ...] = ("constant-fixed", "random")  # need no human label
ABOUT: Mapping[Control, str] = {
    "constant-majority": "always the most common human label of the other half of the questions",
    "constant-fixed": "always the least severe label (of a nominal metric: the first)",
    "constant-severe": "always the most severe label (of a nominal metric: the last)",
    "random": "any label, all equally likely",
    "prior": "a label drawn as often as humans gave it in the other half of the questions",
    "longest-answer": "the longer the answer, the less severe its label, "
    "in the shares that humans gave in the other half of the questions",
}

Choice = Callable[[Metric, Sequence[int], Answer], int | None]


class ControlJudge:
    """Meets `judges.judge.Judge`; fitted when constructed, so that judging is cheap."""

    def __init__(
        self,
        control: Control,
        rubric: Rubric,
        answers: Sequence[Answer],
        labels: Iterable[HumanLabel],
        seed: int = 0,
        *,
        fit: Fit | None = None,
    ) -> None:
        """`fit` is what was learnt from the same answers and labels, if it exists already."""
        self.name: str = control
        self._rubric = rubric
        self._fit = fit or Fit(rubric, answers, labels, seed)
        self._choose = _choice(control, self._fit)
        self._about = {
            "judge": "control",
            "control": control,
            "rubric": {"name": rubric.name, "hash": rubric.content_hash},
            "seed": seed,
            "fitted_on": self._fit.fitted_on,
        }
        self.signature = content_hash(self._about)

    def describe(self) -> Mapping[str, Any]:
        return self._about

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        for task in tasks:
            yield self._verdict(task.answer, task.content_hash)

    def _verdict(self, answer: Answer, content_hash: str) -> Verdict:
        prior = self._fit.priors[self._fit.half(answer.group)]
        chosen = {m.id: self._choose(m, prior[m.id], answer) for m in self._rubric.metrics}
        labels = {
            m.id: m.label_texts[index]
            for m in self._rubric.metrics
            if (index := chosen[m.id]) is not None
        }
        missing = [metric for metric, index in chosen.items() if index is None]
        return Verdict(
            item_id=answer.item_id,
            content_hash=content_hash or answer.content_hash,
            judge=self.name,
            signature=self.signature,
            status=Status.SKIPPED if missing else Status.OK,
            labels=labels,
            reason=f"no human label in the other half for {', '.join(missing)}" if missing else "",
        )

    def close(self) -> None:
        """There is nothing to release."""


def control_judges(
    controls: Iterable[Control],
    rubric: Rubric,
    answers: Sequence[Answer],
    labels: Iterable[HumanLabel],
    seed: int = 0,
) -> tuple[ControlJudge, ...]:
    """Several controls that are fitted together, in one pass over the answers."""
    chosen = tuple(controls)
    fit = Fit(rubric, answers, labels, seed) if chosen else None
    return tuple(ControlJudge(c, rubric, answers, labels, seed, fit=fit) for c in chosen)


def _choice(control: Control, fit: Fit) -> Choice:
    seed = fit.seed
    match control:
        case "constant-majority":
            return lambda metric, prior, answer: prior.index(max(prior)) if any(prior) else None
        case "constant-fixed":
            return lambda metric, prior, answer: 0
        case "constant-severe":
            return lambda metric, prior, answer: len(metric.labels) - 1
        case "random":
            return lambda metric, prior, answer: int(
                _fraction(seed, control, metric.id, answer.item_id) * len(metric.labels)
            )
        case "prior":
            return lambda metric, prior, answer: _quantile(
                prior, range(len(prior)), _fraction(seed, control, metric.id, answer.item_id)
            )
        case "longest-answer":
            return _by_length(fit)


def _by_length(fit: Fit) -> Choice:
    share_longer = lru_cache(maxsize=1)(fit.share_longer)  # the same for every metric

    def choose(metric: Metric, prior: Sequence[int], answer: Answer) -> int | None:
        order: Sequence[int] = range(len(prior))
        if metric.kind == "nominal":  # no label is less severe: the most common one first
            order = sorted(order, key=lambda i: -prior[i])
        return _quantile(prior, order, share_longer(answer.item_id))

    return choose


def _quantile(prior: Sequence[int], order: Sequence[int], fraction: float) -> int | None:
    """The label at `fraction` of the prior when its labels are laid end to end in `order`."""
    edges = list(accumulate(prior[i] for i in order))
    if not edges[-1]:
        return None
    return order[bisect_right(edges, fraction * edges[-1])]


def _fraction(*parts: object) -> float:
    """A number in [0, 1) that depends on `parts` alone: the same in any order, on any machine."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()
    # Fifty-three bits, which a float holds exactly: sixty-four could round up to 1.
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53
