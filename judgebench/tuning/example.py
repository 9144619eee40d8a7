"""Texts that a language model is trained on, as token ids: a prompt and its reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judgebench.errors import SetupError
from judgebench.models.checkpoint import ChatEncoder, tokenizer_of
from judgebench.models.contract import Request


@dataclass(frozen=True)
class Example:
    """A text as token ids. Each token at one of the `places` (in order, from 1 on) is learnt: it is
    predicted from those before it."""

    ids: tuple[int, ...]
    places: tuple[int, ...]


class Texts:
    """Makes examples for a model (folder, hub name or GGUF file), with its own chat template.

    The tokens are those of the whole text, as where labels are weighed, and of the
    prompt they are those that the model reads when it is asked. Raises SetupError for a model
    without a chat template, and one whose tokenizer does not tell where a token stands.
    """

    def __init__(self, model: str) -> None:
        self._tokenizer = tokenizer_of(model)
        self._encoder = ChatEncoder(self._tokenizer, model)
        if not self._tokenizer.is_fast:
            why = "its tokenizer does not tell which characters a token stands for"
            raise SetupError(f"{model} cannot be trained on labels: {why}")

    def example(
        self, request: Request, reply: str, spans: Sequence[tuple[int, int]] | None = None
    ) -> Example:
        """The request with the reply, of which the tokens in the `spans` (from and to which
        character) are learnt; without spans all of it, and that it ends there.

        Raises ValueError where there is nothing to learn.
        """
        prompt = self._encoder.chat(request.messages)
        found = self._tokenizer(
            prompt + reply, add_special_tokens=False, return_offsets_mapping=True
        )
        ids, offsets = list(found["input_ids"]), found["offset_mapping"]
        wanted = [(0, len(reply))] if spans is None else spans
        places = [
            place
            for place, (start, end) in enumerate(offsets)
            if any(start < len(prompt) + to and end > len(prompt) + begin for begin, to in wanted)
        ]
        if not places:
            raise ValueError("a reply without a token to learn")
        if spans is None and self._tokenizer.eos_token_id is not None:
            places.append(len(ids))
            ids.append(self._tokenizer.eos_token_id)
        return Example(tuple(ids), tuple(places))
