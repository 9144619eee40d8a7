"""Label probabilities of a reply that vLLM generates in this process.

vLLM lists the most probable tokens beside each one that it generates, after the grammar has taken
out those that fit no label. Where labels begin alike, the branches that the reply did not take
have to be known too: they are asked as further requests of one token, each under a grammar of the
labels that can still follow. The engine has the prompt's keys and values in its cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from judgebench.backends.contract import LabelsAsked
from judgebench.backends.token_log_probabilities import (
    LabelsRead,
    Place,
    Step,
    Token,
    read_labels,
    recorded,
)

LISTED = 20  # tokens beside each generated one: vLLM's own bound


class Vocabulary:
    """The bytes of each token of a model, whole characters or not."""

    def __init__(self, tokenizer: Any) -> None:
        import xgrammar

        self._pieces: list[bytes] = xgrammar.TokenizerInfo.from_huggingface(tokenizer).decoded_vocab

    def steps(self, output: Any) -> list[Step]:
        """What was generated, and what could have been."""
        return [
            Step(
                self._token(id_, listed[id_]), tuple(self._token(*pair) for pair in listed.items())
            )
            for id_, listed in zip(output.token_ids, output.logprobs, strict=True)
        ]

    def _token(self, id_: int, listed: Any) -> Token:
        piece = self._pieces[id_] if id_ < len(self._pieces) else b""
        return Token(piece, float(listed.logprob), id_)


class LabelReader:
    """The labels of one reply, read as far as the branches are known, and the places that have to
    be asked to know more."""

    def __init__(self, asked: LabelsAsked, text: str, steps: Sequence[Step]) -> None:
        self._asked = asked
        self._text = text
        self._steps = steps
        self._recorded = recorded(steps)
        self._told: dict[tuple[int | None, ...], Sequence[Token]] = {}
        self._missing: list[Place] = []
        self.labels = self._read()

    def take_missing(self) -> list[Place]:
        """The places to ask, once each."""
        missing, self._missing = self._missing, []
        return missing

    def tell(self, answers: Iterable[tuple[Place, Sequence[Token]]]) -> None:
        """Read anew with what the engine listed at places it was asked about."""
        for place, listed in answers:
            self._told[self.tokens_before(place)] = listed
        self.labels = self._read()

    def tokens_before(self, place: Place) -> tuple[int | None, ...]:
        """The ids of the reply's tokens, as they would be at a place."""
        return tuple(t.id for t in (*(s.written for s in self._steps[: place.at]), *place.branch))

    def _read(self) -> LabelsRead:
        pieces = [step.written.piece for step in self._steps]
        return read_labels(self._text, pieces, self._asked.fields, self._ask)

    def _ask(self, place: Place) -> Sequence[Token] | None:
        known = self._recorded(place) or self._told.get(self.tokens_before(place))
        if known is None and place.grammar() is not None:
            self._missing.append(place)
        return known
