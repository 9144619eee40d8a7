"""A language model whose completions can be counted: a Markov chain over a few letters.

`python:markov:backend` names it. Tokens are letters; one of probability ends a completion.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from judgebench.models.contract import Draws, Message, Reply, Request, TokenScorer
from judgebench.models.token_scoring import Floats, TokenWeigher

LETTERS = "^ab ."  # the first begins every text; the last ends a completion
END = LETTERS.index(".")
# How likely each letter follows each; nothing goes back to the first.
NEXT = np.array(
    [
        [0.0, 0.5, 0.2, 0.2, 0.1],
        [0.0, 0.1, 0.6, 0.1, 0.2],
        [0.0, 0.4, 0.3, 0.2, 0.1],
        [0.0, 0.7, 0.2, 0.0, 0.1],
        [0.0, 0.2, 0.2, 0.1, 0.5],
    ]
)


class Chain:
    """A `TokenModel` and its encoder. `fixed` completions are given in place of sampled ones."""

    prefix, opening = 0, [0]

    def __init__(self, window: int = 2048, fixed: Sequence[list[int]] = ()) -> None:
        self.window, self.fixed, self.passes = window, fixed, 0

    def ids(self, text: str) -> list[int]:
        return [LETTERS.index(letter) for letter in text]

    def disarmed(self, text: str) -> str:
        return text.replace("^", "")

    def chat(self, messages: Sequence[Message]) -> str:
        return "^" + self.disarmed(messages[-1].content)

    def log_p(self, groups: Any) -> list[list[Floats]]:
        assert all(len(ids) - 1 <= self.window for texts in groups for ids, _ in texts)
        self.passes += sum(map(len, groups))
        with np.errstate(divide="ignore"):
            logs = np.log(NEXT)
        return [
            [np.array([logs[a, b] for a, b in pairwise(ids)])[start - 1 :] for ids, start in texts]
            for texts in groups
        ]

    def sampled(self, prompt: Sequence[int], draws: Draws) -> Sequence[list[int]]:
        if self.fixed:
            return list(self.fixed)
        rng = np.random.default_rng(draws.seed)
        return [self._one(prompt[-1], draws.max_tokens, rng) for _ in range(draws.count)]

    def _one(self, last: int, most: int, rng: np.random.Generator) -> list[int]:
        found: list[int] = []
        while len(found) < most and (last := int(rng.choice(len(LETTERS), p=NEXT[last]))) != END:
            found.append(last)
        return found


class ChainBackend:
    """A backend that weighs texts and has nothing to say."""

    def describe(self) -> Mapping[str, Any]:
        return {"engine": "chain", "runtime": {"threads": 1}}

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        yield from (Reply(request.key, "") for request in requests)

    def weigher(self) -> TokenScorer:
        chain = Chain()
        return TokenWeigher(chain, chain)

    def close(self) -> None:
        """Nothing to give back."""


def backend() -> ChainBackend:
    return ChainBackend()
