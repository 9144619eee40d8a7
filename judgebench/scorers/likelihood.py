"""Scorers that ask a model how likely a text is: as it stands, or anywhere in its own completions.

What Relaxed Perplexity does not guarantee: its probability at one place is a sum over sampled
beginnings, which without weights can exceed 1; the places are no events that exclude each other,
so that their sum is no probability; and with a stride, fewer terms are divided by the same length.
Expected occurrences are an expectation, and estimated without bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.backends import open_backend
from judgebench.backends.contract import (
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
    WeighedConfig,
)
from judgebench.scorers.references import references_of, require_columns
from judgebench.scorers.scorer import EMPTY_ANSWER, NO_REFERENCE, Better, Scored

LONG = "longer than the model reads at once: the end was read without the beginning"
TOO_LARGE = "the perplexity is larger than any number"
# Which tokens these are follows from the weights.
_PREFIX = "before a text alone BOS, else EOS; before a text given what the tokenizer puts there"


class _Asked:
    """What is read of answers, and the model that is asked about it."""

    def __init__(self, config: WeighedConfig, answers: Sequence[Answer], beside: Path) -> None:
        """Raises SetupError for a backend that cannot be asked, and a column that the data lack."""
        named = () if config.of in ("answer", "reference") else (config.of,)
        require_columns(answers, named, "of")
        self._config = config
        self._backend = open_backend(config.backend, config.settings, beside)
        self._open = weigher_of(self._backend, config.backend)
        self._weigher: Weigher | None = None

    @cached_property
    def about(self) -> Mapping[str, Any]:
        told = {k: v for k, v in self._backend.describe().items() if k != "structured"}
        rest = {"runtime": told.pop("runtime")} if "runtime" in told else {}
        return {"model": told, "prefix": _PREFIX, **rest}

    @property
    def weigher(self) -> Weigher:
        self._weigher = self._weigher or self._open()
        return self._weigher

    def before(self, answer: Answer) -> Before:
        match self._config.given:
            case "nothing":
                return ""
            case "question":
                return (Message("user", answer.question),)
            case text:
                return text.replace("{question}", answer.question)

    def texts(self, answer: Answer) -> Sequence[str]:
        match self._config.of:
            case "answer":
                return [answer.text] if answer.text.strip() else []
            case "reference":
                return references_of(answer)
            case column:
                return references_of(replace(answer, reference=answer.metadata.get(column, "")))

    def key(self, answer: Answer) -> Any:
        asked = answer.question if self._config.given != "nothing" else ""
        return [asked, list(self.texts(answer))]

    def lacking(self, answer: Answer) -> str:
        """Why an answer cannot be scored; empty where it can."""
        if not self.texts(answer):
            known = {"answer": EMPTY_ANSWER, "reference": NO_REFERENCE}
            return known.get(self._config.of, f"the column {self._config.of} is blank")
        if self._config.given != "nothing" and not answer.question.strip():
            return "the question is empty"
        return ""

    def close(self) -> None:
        self._weigher = None
        self._backend.close()


# From a text's log-probability, the natural one, and the text. Words are what white space parts.
PERPLEXITY: Mapping[str, Callable[[float, str], float]] = {
    "bits-per-byte": lambda log_p, text: -log_p / (len(text.encode()) * math.log(2)),
    "byte-perplexity": lambda log_p, text: math.exp(-log_p / len(text.encode())),
    "word-perplexity": lambda log_p, text: math.exp(-log_p / len(text.split())),
}


class Perplexity:
    """Bits per byte, byte perplexity (2 to their power) or word perplexity of a text, conditional
    or not. A `Scorer`."""

    better: Better = "lower"
    at_once = 16

    def __init__(self, config: PerplexityConfig, answers: Sequence[Answer], beside: Path) -> None:
        """Raises SetupError."""
        self._asked = _Asked(config, answers, beside)
        self._of = PERPLEXITY[config.scorer]
        self._name = {"scorer": config.scorer, "of": config.of, "given": config.given}
        self.key, self.close = self._asked.key, self._asked.close

    @property
    def about(self) -> Mapping[str, Any]:
        return {**self._name, **self._asked.about}

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        lacking = [self._asked.lacking(answer) for answer in answers]
        asked = [
            (self._asked.before(answer), text)
            for answer, why in zip(answers, lacking, strict=True)
            for text in (() if why else self._asked.texts(answer))
        ]
        weighed = iter(self._asked.weigher.weigh(asked) if asked else ())
        found = []
        for answer, why in zip(answers, lacking, strict=True):
            if why:
                found.append(Scored.none(why))
                continue
            texts = self._asked.texts(answer)
            told = [next(weighed) for _ in texts]
            if reason := next((one.reason for one in told if one.reason), ""):
                found.append(Scored.none(reason))
                continue
            sums = [math.fsum(one.log_p) for one in told]
            try:
                values = [self._of(log_p, text) for log_p, text in zip(sums, texts, strict=True)]
            except OverflowError:
                found.append(Scored.none(TOO_LARGE))
                continue
            remark = LONG if any(one.unseen for one in told) else ""
            found.append(Scored(float(np.mean(values)), reason=remark))
        return found


class Completed:
    """What a model's completions say of a text. A `Scorer`.

    A text counts as it is spelt with a space before it and without, in the tokens that it has
    alone: other spellings, and other tokens of the same letters, do not.
    """

    at_once = 1  # a score takes seconds, and is kept at once

    def __init__(
        self, config: RelaxedConfig | OccurrencesConfig, answers: Sequence[Answer], beside: Path
    ) -> None:
        """Raises SetupError."""
        self._config, self._asked = config, _Asked(config, answers, beside)
        self.better: Better = "higher" if config.scorer == "expected-occurrences" else "lower"
        left_out = {"name", "backend", "settings"}
        self._settings = config.model_dump(exclude=left_out)
        self.key, self.close = self._asked.key, self._asked.close

    @property
    def about(self) -> Mapping[str, Any]:
        return {**self._settings, **self._asked.about}

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        return [self._one(answer) for answer in answers]

    def _one(self, answer: Answer) -> Scored:
        if why := self._asked.lacking(answer):
            return Scored.none(why)
        config, free = self._config, isinstance(self._config, OccurrencesConfig)
        before, texts = self._asked.before(answer), self._asked.texts(answer)
        seed = int(content_hash([config.seed, self._asked.key(answer)[0]]), 16) % 2**31
        top_p = config.top_p if isinstance(config, RelaxedConfig) else 1.0
        draws = Draws(config.samples, config.max_tokens, 1.0, top_p, config.stride, seed, free)
        spelt = [form for text in texts for form in (f" {text.strip()}", text.strip())]
        told = self._asked.weigher.draw(before, spelt, draws)
        if told.reason:
            return Scored.none(told.reason)
        try:
            values = [self._of(told, _forms(told, 2 * i), draws) for i in range(len(texts))]
        except OverflowError:
            return Scored.none(TOO_LARGE)
        return Scored(float(np.mean(values)))

    def _of(self, told: Completions, forms: Sequence[int], draws: Draws) -> float:
        config = self._config
        sizes = {form: len(told.targets[form]) for form in forms}
        if isinstance(config, OccurrencesConfig):
            return expected_occurrences(told.drawn, sizes, draws)
        entropy, last = relaxed_cross_entropy(told.drawn, forms, config.best, config.weighted)
        if config.scorer == "relaxed-cross-entropy":
            return entropy
        return math.exp(entropy / (last + sizes[forms[0]]))


def _forms(told: Completions, first: int) -> list[int]:
    """The spellings `first` and the one behind it, or one of them where its tokens stand in the
    other's: it would be counted twice."""
    long, short = sorted((first, first + 1), key=lambda i: -len(told.targets[i]))
    a, b = tuple(told.targets[long]), tuple(told.targets[short])
    if any(a[i : i + len(b)] == b for i in range(len(a) - len(b) + 1)):
        return [short]
    return [first, first + 1]


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
            own, target = math.fsum(one.log_p[:place]), _total(one, forms, i)
            behind[tuple(one.tokens[:place])] = own, target
        chosen = sorted(behind.values(), reverse=True)[:best]
        logs = [target + (own if weighted else 0.0) for own, target in chosen]
        entropy, last = entropy - float(np.logaddexp.reduce(logs)), place
    return entropy, last


def _total(one: Drawn, forms: Sequence[int], place: int) -> float:
    return float(np.logaddexp.reduce([one.targets[form][place] for form in forms]))


def expected_occurrences(drawn: Sequence[Drawn], sizes: Mapping[int, int], draws: Draws) -> float:
    """How often a target is expected in one completion of at most `draws.max_tokens` tokens: the
    mean, over completions, of the sum over places of the probability that it comes next and ends in
    time. `sizes` holds the tokens of each form of the target.

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
