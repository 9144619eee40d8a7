"""How likely texts are by a model in this process: which tokens are read, and in what windows.

An engine is a `TokenModel` with `Texts`; `TokenWeigher` makes a `Weigher` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Protocol

import numpy as np

from judgebench.models.contract import (
    Before,
    Completions,
    Drawn,
    Draws,
    Message,
    Weighed,
)
from judgebench.models.label_tree import Branch, Floats, Tokens, common_prefix


class Texts(Protocol):
    """Texts as a model's tokens. `prefix` stands before a plain text with nothing before it: BOS,
    or EOS where there is none. `opening` is what the tokenizer itself puts before every text."""

    @property
    def prefix(self) -> int: ...

    @property
    def opening(self) -> list[int]: ...

    def ids(self, text: str) -> list[int]:
        """The tokens of a text in which control tokens are written out."""
        ...

    def disarmed(self, text: str) -> str:
        """A text whose control tokens are broken up."""
        ...

    def chat(self, messages: Sequence[Message]) -> str:
        """The prompt of a chat, its control tokens written out. Raises SetupError."""
        ...


class TokenModel(Protocol):
    """A model as tokens see it. One pass reads `window` of them, and says what follows the last."""

    @property
    def window(self) -> int: ...

    def log_p(self, texts: Sequence[tuple[Tokens, int]]) -> Sequence[Floats]:
        """For each text and place in it, the log-probabilities of its tokens from there on."""
        ...

    def sampled(self, prompt: Tokens, draws: Draws) -> Sequence[list[int]]:
        """Completions without the token that ends them."""
        ...


Hung = Callable[[Sequence[tuple[Tokens, Sequence[Branch]]]], Sequence[Floats]]


def passes_of(
    model: TokenModel, texts: Sequence[tuple[Tokens, Sequence[Branch]]]
) -> Sequence[Floats]:
    """For each text, the log-probability of each of its branches: by one pass over the text, for
    the branches that are part of it, and one for each other branch."""
    asked: list[tuple[Tokens, int]] = []
    for text, branches in texts:
        asked.append((text, min(branch.place for branch in branches)))
        others = (b for b in branches if not _own(b, text))
        asked += [([*text[: b.place], *b.tokens], b.place) for b in others]
    told = iter(model.log_p(asked))
    found = []
    for text, branches in texts:
        along, first = next(told), min(branch.place for branch in branches)
        parts = [
            along[b.place - first :][: len(b.tokens)] if _own(b, text) else next(told)
            for b in branches
        ]
        found.append(np.array([part.sum() for part in parts]))
    return found


def _own(branch: Branch, text: Tokens) -> bool:
    """Whether the text itself goes on as the branch does."""
    end = branch.place + len(branch.tokens)
    return list(text[branch.place : end]) == list(branch.tokens)


def windows(start: int, end: int, window: int) -> Iterator[tuple[int, int, int]]:
    """How the tokens from `start` to `end` are predicted by passes that read `window` tokens: from
    where each pass reads, and from where to where it predicts.

    As in lm-evaluation-harness with a context of one token: every token is predicted once, and
    the last pass, like the others, reads as many tokens as it can.

    >>> list(windows(1, 8, 3))
    [(0, 1, 4), (3, 4, 7), (4, 7, 8)]
    """
    to = min(end, window + 1)
    while start < end:
        yield max(0, to - window - 1), start, to
        start, to = to, min(end, to + window)


class TokenWeigher:
    """A `Weigher` over a `TokenModel`; `hung` does what `passes_of` does, with fewer passes.

    Tokens are those of the whole text, also where it meets what stands before it: a token that
    they share counts as the text's.
    """

    def __init__(self, texts: Texts, model: TokenModel, hung: Hung | None = None) -> None:
        self._texts, self._model = texts, model
        self._hung = hung or partial(passes_of, model)

    def weigh(self, texts: Sequence[tuple[Before, str]]) -> Sequence[Weighed]:
        window = self._model.window
        read = [self._tokens(*one) for one in texts]
        plans = [
            list(windows(start, len(ids), window)) if start <= window else [] for ids, start in read
        ]
        logs = iter(
            self._model.log_p(
                [
                    (ids[first:to], since - first)
                    for (ids, _), plan in zip(read, plans, strict=True)
                    for first, since, to in plan
                ]
            )
        )
        found = []
        for (_, start), plan in zip(read, plans, strict=True):
            if start > window:
                found.append(Weighed(reason=self._too_long("what stands before it", start)))
                continue
            log_p = [x for part in islice(logs, len(plan)) for x in part.tolist()]
            found.append(Weighed(log_p, sum(to - since for first, since, to in plan if first)))
        return found

    def draw(self, before: Before, targets: Sequence[str], draws: Draws) -> Completions:
        prompt, _ = self._tokens(before, "")
        spelt = [self._texts.ids(self._texts.disarmed(target)) for target in targets]
        needed = len(prompt) + draws.max_tokens + max(map(len, spelt))
        if needed > self._model.window:
            return Completions(reason=self._too_long("prompt, completion and target", needed))
        sampled = self._model.sampled(prompt, draws)
        places = [
            range((draws.seed + i) % draws.stride if draws.spread else 0, len(s) + 1, draws.stride)
            for i, s in enumerate(sampled)
        ]
        start = len(prompt)
        asked = [
            (
                [*prompt, *tokens],
                [Branch(start + i, (token,)) for i, token in enumerate(tokens)]
                + [Branch(start + at, target) for target in spelt for at in here],
            )
            for tokens, here in zip(sampled, places, strict=True)
        ]
        drawn = []
        told = iter(self._hung([one for one in asked if one[1]]))
        for tokens, here, (_, branches) in zip(sampled, places, asked, strict=True):
            logs = next(told) if branches else np.empty(0)
            own, behind = logs[: len(tokens)].tolist(), logs[len(tokens) :]
            weighed = behind.reshape(len(spelt), len(here)).tolist()
            drawn.append(Drawn(tokens, own, here, weighed))
        return Completions(drawn, spelt)

    def _tokens(self, before: Before, text: str) -> tuple[list[int], int]:
        """The tokens of both, and where those of the text begin."""
        of, text = self._texts, self._texts.disarmed(text)
        if isinstance(before, str):
            said = of.disarmed(before)
            first = of.opening if said else [of.prefix]
        else:
            said, first = of.chat(before), []
        alone, whole = of.ids(said), of.ids(said + text)
        return [*first, *whole], len(first) + len(common_prefix([alone, whole]))

    def _too_long(self, what: str, tokens: int) -> str:
        return f"{what} has {tokens} tokens, and the model reads {self._model.window}"
