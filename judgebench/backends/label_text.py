"""The replies whose probabilities are asked for, as text and as tokens.

Tokens are those of the real text, also where prompt and reply meet. What closes a label is its
quote, which tokenizers join with what follows (`","` may be one token), and what follows is not
asked about: so all tokens that begin with a quote together count as the close.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from judgebench.backends.contract import LabelsAsked
from judgebench.backends.label_tree import Floats
from judgebench.errors import SetupError

Branches = list[list[list[int]]]  # for each field, for each of its options: token ids


# Stands at the end of a branch for any token that begins with the closing quote.
CLOSE = -1


def label_texts(asked: LabelsAsked, found: Mapping[str, Floats]) -> Iterator[list[list[str]]]:
    """What is weighed in one pass after another: replies up to a label's end, by field and option.

    The closing quote belongs to a label: it tells it from one that only begins with it.
    `found` is filled between the passes: of `chained` fields, a reply holds the labels before it.
    """
    if asked.conditioning == "independent":
        yield [[_reply("", f.key, option) for option in f.options] for f in asked.fields]
        return
    said = ""
    for field in asked.fields:
        yield [[_reply(said, field.key, option) for option in field.options]]
        chosen = field.options[int(np.argmax(found[field.key]))]
        said += f"{_json(field.key)}:{_json(chosen)},"


def _reply(said: str, key: str, label: str) -> str:
    """As a reply that is bound to a schema is written: without spaces between the parts."""
    return f"{{{said}{_json(key)}:{_json(label)}"


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class ReplyTokens:
    """Token ids of a prompt with a reply behind it, always those of the whole text.

    A control token ends what a tokenizer joins. Where the prompt's last one stands, the text is
    cut, and what follows is tokenised apart and remembered, if the first texts prove that to be
    the same.
    """

    def __init__(self, tokenizer: Any, control: re.Pattern[str]) -> None:
        if not tokenizer.is_fast:
            why = "its tokenizer does not tell which characters a token stands for"
            raise SetupError(f"transformers: this model cannot weigh labels: {why}")
        self._tokenizer = tokenizer
        self._control = control
        self._cuttable: bool | None = None
        self._tail = lru_cache(maxsize=4096)(self._whole)

    def ids(self, text: str) -> list[int]:
        """The ids of a text that holds its control tokens as strings."""
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def branches(self, prompt: str, fields: Sequence[Sequence[str]]) -> Branches:
        """The ids of the prompt and each reply, CLOSE in the place of the closing quote."""
        if self._cuttable is None:
            whole = self._whole_tokens(prompt, fields)
            self._cuttable = self._cut(prompt) > 0 and self._cut_tokens(prompt, fields) == whole
        return (self._cut_tokens if self._cuttable else self._whole_tokens)(prompt, fields)

    def _cut_tokens(self, prompt: str, fields: Sequence[Sequence[str]]) -> Branches:
        cut = self._cut(prompt)
        head = self.ids(prompt[:cut])
        return [[head + self._tail(prompt[cut:], reply) for reply in field] for field in fields]

    def _whole_tokens(self, prompt: str, fields: Sequence[Sequence[str]]) -> Branches:
        return [[self._whole(prompt, reply) for reply in field] for field in fields]

    def _cut(self, prompt: str) -> int:
        return max((found.start() for found in self._control.finditer(prompt)), default=0)

    def _whole(self, prompt: str, reply: str) -> list[int]:
        found = self._tokenizer(
            prompt + reply, add_special_tokens=False, return_offsets_mapping=True
        )
        ids = list(found["input_ids"])
        start, _ = found["offset_mapping"][-1]
        # A quote that is joined to the label's last letters is kept as it is.
        return [*ids[:-1], CLOSE] if start == len(prompt + reply) - 1 else ids

    @cached_property
    def closing(self) -> list[int]:
        """The ids of all tokens that begin with a quote."""
        # Behind another token, or some tokenizers take a token's first space away.
        before = self.ids("x")[-1]
        start = self._tokenizer.decode([before]) + '"'
        every = range(len(self._tokenizer))
        texts = self._tokenizer.batch_decode([[before, token] for token in every])
        return [token for token, text in zip(every, texts, strict=True) if text.startswith(start)]
