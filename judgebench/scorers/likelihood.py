"""Scorers that ask a model how likely a text is: as it stands, or anywhere in its own completions.

What Relaxed Perplexity does not guarantee: its probability at one place is a sum over sampled
beginnings, which without weights can exceed 1; the places are no events that exclude each other,
so that their sum is no probability; and with a stride, fewer terms are divided by the same length.
Expected occurrences are an expectation, and estimated without bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from judgebench.models import open_backend
from judgebench.models.contract import (
    Before,
    Completions,
    Drawn,
    Draws,
    Message,
    Weigher,
    weigher_of,
)
from judgebench.records import Answer, content_hash
from judgebench.scorers.config import (
    OccurrencesConfig,
    PerplexityConfig,
    RelaxedConfig,
)
from judgebench.scorers.scorer import (
    EMPTY_ANSWER,
    NO_REFERENCE,
    Better,
    Scored,
    references_of,
    require_columns,
)

LikelyConfig = PerplexityConfig | RelaxedConfig | OccurrencesConfig
NEVER = "longer than max_tokens: no completion can hold it"
TOO_LARGE = "the perplexity is larger than any number"
_LACKING = {"answer": EMPTY_ANSWER, "reference": NO_REFERENCE}
# Which tokens these are follows from the weights.
_PREFIX = "before a text alone BOS, else EOS; before a text given what the tokenizer puts there"


# From a text's log-probability, the natural one, and the text. Words are what white space parts.
PERPLEXITY: Mapping[str, Callable[[float, str], float]] = {
    "bits-per-byte": lambda log_p, text: -log_p / (len(text.encode()) * math.log(2)),
    "byte-perplexity": lambda log_p, text: math.exp(-log_p / len(text.encode())),
    "word-perplexity": lambda log_p, text: math.exp(-log_p / len(text.split())),
}


class Likelihood:
    """The likelihood of a text as it stands (bits per byte, byte perplexity, 2 to their power, word
    perplexity), or what the model's own completions say of it. A `Scorer`.

    In completions a text counts as it is spelt with a space before it and without, in the tokens
    that it has alone: other spellings, and other tokens of the same letters, do not.
    """

    def __init__(self, config: LikelyConfig, answers: Sequence[Answer], beside: Path) -> None:
        """Raises SetupError for a backend that cannot be asked, and a column that the data lack."""
        require_columns(answers, [config.of] if config.of not in _LACKING else [], "of")
        self._config = config
        self.better: Better = "higher" if isinstance(config, OccurrencesConfig) else "lower"
        # Completions take seconds: each score is kept at once.
        self.at_once = 16 if isinstance(config, PerplexityConfig) else 1
        self._backend = open_backend(config.backend, config.settings, beside)
        self._open = weigher_of(self._backend, config.backend)
        self._opened: Weigher | None = None

    @cached_property
    def about(self) -> Mapping[str, Any]:
        told = {k: v for k, v in self._backend.describe().items() if k != "structured"}
        rest = {"runtime": told.pop("runtime")} if "runtime" in told else {}
        settings = self._config.model_dump(exclude={"name", "backend", "settings"})
        return {**settings, **told, "prefix": _PREFIX, **rest}

    @property
    def _weigher(self) -> Weigher:
        self._opened = self._opened or self._open()
        return self._opened

    def close(self) -> None:
        self._opened = None
        self._backend.close()

    def key(self, answer: Answer) -> Any:
        asked = answer.question if self._config.given != "nothing" else ""
        return [asked, list(self._texts(answer))]

    def _before(self, answer: Answer) -> Before:
        match self._config.given:
            case "nothing":
                return ""
            case "question":
                return (Message("user", answer.question),)
            case text:
                return text.replace("{question}", answer.question)

    def _texts(self, answer: Answer) -> Sequence[str]:
        match self._config.of:
            case "answer":
                return [answer.text] if answer.text.strip() else []
            case "reference":
                return references_of(answer)
            case column:
                return references_of(replace(answer, reference=answer.metadata.get(column, "")))

    def _lacking(self, answer: Answer) -> str:
        """The reason why an answer cannot be scored; empty where it can."""
        if not self._texts(answer):
            return _LACKING.get(self._config.of, f"the column {self._config.of} is blank")
        asked = self._config.given == "nothing" or answer.question.strip()
        return "" if asked else "the question is empty"

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        lacking = [self._lacking(answer) for answer in answers]
        whole = [answer for answer, why in zip(answers, lacking, strict=True) if not why]
        if isinstance(config := self._config, PerplexityConfig):
            found = iter(self._as_they_stand(whole, PERPLEXITY[config.scorer]))
        else:
            found = iter([self._in_completions(answer, config) for answer in whole])
        return [Scored.none(why) if why else next(found) for why in lacking]

    def _as_they_stand(
        self, answers: Sequence[Answer], of: Callable[[float, str], float]
    ) -> Iterator[Scored]:
        asked = [(self._before(a), text) for a in answers for text in self._texts(a)]
        weighed = iter(self._weigher.weigh(asked) if asked else ())
        for answer in answers:
            told = [(next(weighed), text) for text in self._texts(answer)]
            if reason := next((one.reason for one, _ in told if one.reason), ""):
                yield Scored.none(reason)
                continue
            yield _mean(of(math.fsum(one.log_p), text) for one, text in told)

    def _in_completions(self, answer: Answer, config: RelaxedConfig | OccurrencesConfig) -> Scored:
        free = isinstance(config, OccurrencesConfig)
        seed = int(content_hash([config.seed, self.key(answer)[0]]), 16) % 2**31
        top_p = 1.0 if isinstance(config, OccurrencesConfig) else config.top_p
        draws = Draws(config.samples, config.max_tokens, 1.0, top_p, config.stride, seed, free)
        texts = [text.strip() for text in self._texts(answer)]
        spelt = [form for text in texts for form in (f" {text}", text)]
        told = self._weigher.draw(self._before(answer), spelt, draws)
        if told.reason:
            return Scored.none(told.reason)
        forms = [_forms(told, 2 * i) for i in range(len(texts))]
        if isinstance(config, OccurrencesConfig):
            remark = NEVER * any(min(sizes.values()) > draws.max_tokens for sizes in forms)
            found = (expected_occurrences(told.drawn, sizes, draws) for sizes in forms)
            return _mean(found, remark)
        return _mean(_relaxed(told, sizes, config) for sizes in forms)


def _mean(values: Iterable[float], remark: str = "") -> Scored:
    try:
        return Scored(fmean(values), reason=remark)
    except OverflowError:
        return Scored.none(TOO_LARGE)


def _relaxed(told: Completions, sizes: Mapping[int, int], config: RelaxedConfig) -> float:
    entropy, last = relaxed_cross_entropy(told.drawn, list(sizes), config.best, config.weighted)
    if config.scorer == "relaxed-cross-entropy":
        return entropy
    return math.exp(entropy / (last + next(iter(sizes.values()))))


def _forms(told: Completions, first: int) -> dict[int, int]:
    """The numbers of tokens of spelling `first` and of the next; one of them alone where its
    tokens stand in the other's: it would be counted twice."""
    sizes = {i: len(told.targets[i]) for i in (first, first + 1)}
    long, short = sorted(sizes, key=lambda i: -sizes[i])
    a, b = (tuple(told.targets[i]) for i in (long, short))
    if any(a[i : i + len(b)] == b for i in range(len(a) - len(b) + 1)):
        return {short: sizes[short]}
    return sizes


def relaxed_cross_entropy(
    drawn: Sequence[Drawn], forms: Sequence[int], best: int, weighted: bool
) -> tuple[float, int]:
    """The sum of -log P(A_i | B_i) over the places i of completions, and the last place.

    P(A_i | B_i) is the sum, over the `best` likeliest different beginnings of i tokens, of the
    probability that the target comes next; `weighted`, times the beginning's own. It is that of
    the model: top-p only chooses the completions. (Paper 004, section 4 and appendix D, where the
    weights are left out, for they fall with i.)
    """
    entropy, last = 0.0, 0
    longest = max(drawn, key=lambda one: len(one.places)).places
    for i, place in enumerate(longest):
        behind: dict[tuple[int, ...], tuple[float, float]] = {}
        for one in (one for one in drawn if len(one.places) > i):
            target = np.logaddexp.reduce([one.targets[form][i] for form in forms])
            behind[tuple(one.tokens[:place])] = math.fsum(one.log_p[:place]), float(target)
        chosen = sorted(behind.values(), reverse=True)[:best]
        logs = [target + (own if weighted else 0.0) for own, target in chosen]
        entropy, last = entropy - float(np.logaddexp.reduce(logs)), place
    return entropy, last


def expected_occurrences(drawn: Sequence[Drawn], sizes: Mapping[int, int], draws: Draws) -> float:
    """The expected number of occurrences of a target in one completion of at most
    `draws.max_tokens` tokens: the mean, over completions, of the sum over places of the
    probability that it comes next and ends in time. `sizes` holds the tokens of each form of the
    target.

    A place behind n tokens counts if the completion has got so far, whatever it went on with. So
    the mean is of expectations (Rao-Blackwell), and without bias where completions are drawn from
    the model as it is; with a stride, a place counts `stride` times.
    """
    return draws.stride * float(np.mean([
        sum(
            math.exp(one.targets[form][i])
            for form, size in sizes.items()
            for i, place in enumerate(one.places)
            if place + size <= draws.max_tokens
        )
        for one in drawn
    ]))  # fmt: skip
