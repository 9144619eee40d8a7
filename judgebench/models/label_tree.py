"""Texts that begin alike as one tree of tokens, for one forward pass: all labels of all metrics
behind a prompt, or what could have come instead at any place of a text.

Branches that begin alike share their first tokens; what all begin with is the trunk. Each token
attends to the trunk before its branch and to its own ancestors alone, and its position is its
depth, so that the pass computes for each branch what a pass of its own would compute. (Tree
attention is known from speculative decoding: Miao et al., SpecInfer, ASPLOS 2024, section 4.2.)

`label_texts` and `ReplyTokens` make the replies whose probabilities are asked for. Tokens are those
of the real text, also where prompt and reply meet. What closes a label is its quote, which
tokenizers join with what follows (`","` may be one token), and what follows is not asked about: so
all tokens that begin with a quote together count as the close.

Arrays and texts alone: no engine is imported here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import SetupError
from judgebench.models.checkpoint import ChatEncoder
from judgebench.models.contract import LabelsAsked

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Tokens = Sequence[int]
Token = TypeVar("Token")


class Branch(NamedTuple):
    """Tokens that could stand behind the first `place` of the trunk; those before `weighed` are
    read, and their own probability is not asked."""

    place: int
    tokens: Tokens
    weighed: int = 0


@dataclass(frozen=True)
class TokenTree:
    """A trunk, and nodes of one token each; a parent stands before its children.

    The last token of a branch is only predicted, never read, and so is no node. Steps are what is
    asked: how likely `step_token` follows `step_node`, on the way to the end of the branch
    `step_branch`. A node or parent of -1 is the trunk's last token, -2 the one before it.
    """

    trunk: Ints  # (trunk,)
    tokens: Ints  # (nodes,)
    parents: Ints  # (nodes,)
    step_node: Ints  # (steps,)
    step_token: Ints  # (steps,)
    step_branch: Ints  # (steps,)

    @property
    def depths(self) -> Ints:
        """How many tokens behind the trunk's end each node stands, 0 for its children. (nodes,)"""
        depths = np.zeros(len(self.parents), np.int64)
        for node, parent in enumerate(self.parents):
            depths[node] = 1 + (depths[parent] if parent >= 0 else parent)
        return depths

    def unread(self, known: int) -> Ints:
        """The tokens of a pass when `known` tokens of the trunk are in the cache. (rows,)"""
        return np.concatenate([self.trunk[known:], self.tokens])

    def positions(self, known: int) -> Ints:
        """The place of each row's token in its own branch's text. (rows,)"""
        length = len(self.trunk)
        return np.concatenate([np.arange(known, length), length + self.depths])

    def visible(self, known: int) -> NDArray[np.bool_]:
        """Which cached token or row (columns) each row attends to. (rows, known + rows)"""
        length, nodes = len(self.trunk), len(self.tokens)
        seen = np.zeros((length - known + nodes, length + nodes), np.bool_)
        seen[: length - known, :length] = np.tri(length - known, length, known, np.bool_)
        own = seen[length - known :]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                own[node] = own[parent]
            else:
                own[node, : length + parent + 1] = True
            own[node, length + node] = True
        return seen

    def totals(self, step_log_p: Floats) -> Floats:
        """Each branch's log-probability: the sum over its steps' (steps,). (branches,)"""
        return np.asarray(np.bincount(self.step_branch, step_log_p), np.float64)


def normalised(totals: Floats, options: Sequence[int]) -> list[Floats]:
    """Each field's options' log-probabilities, normalised over them, from those of all branches:
    what all options of a field share cancels out. `options` counts each field's."""
    fields = np.split(totals, np.cumsum(options)[:-1])
    return [field - np.logaddexp.reduce(field) for field in fields]


def token_tree(trunk: Tokens, branches: Iterable[Branch]) -> TokenTree:
    """The tree of `trunk` and `branches`.

    >>> tree = token_tree([1, 2, 3], [Branch(1, (7, 8)), Branch(3, (7, 8)), Branch(3, (7, 9))])
    >>> tree.tokens.tolist(), tree.parents.tolist(), tree.positions(2).tolist()
    ([7, 7], [-3, -1], [2, 1, 3])
    """
    grown: dict[tuple[int, int], int] = {}  # (parent, token) -> node
    steps: list[tuple[int, int, int]] = []
    for number, branch in enumerate(branches):
        at = branch.place - len(trunk) - 1
        for i, token in enumerate(branch.tokens):
            if i >= branch.weighed:
                steps.append((at, token, number))
            if i < len(branch.tokens) - 1:
                at = grown.setdefault((at, token), len(grown))
    parents, tokens = np.array(list(grown) or np.empty((0, 2)), np.int64).T
    return TokenTree(np.array(trunk, np.int64), tokens, parents, *np.array(steps, np.int64).T)


def label_tree(fields: Sequence[Sequence[Tokens]]) -> TokenTree:
    """The tree of `fields`: for each, for each of its options, the whole text's tokens.

    Raises ValueError where a field has one option only, or one branch is the beginning of
    another of its field: its label could not be distinguished from the other.
    """
    trunk = common_prefix([option for field in fields for option in field])
    branches = []
    for field in fields:
        shared = len(common_prefix(field))
        if shared == min(map(len, field)):
            raise ValueError("two labels cannot be told apart by their tokens")
        place, weighed = len(trunk), shared - len(trunk)
        branches += [Branch(place, option[place:], weighed) for option in field]
    return token_tree(trunk, branches)


def common_prefix(sequences: Sequence[Sequence[Token]]) -> list[Token]:
    """The longest beginning that all have."""
    together = takewhile(lambda column: len(set(column)) == 1, zip(*sequences, strict=False))
    return [column[0] for column in together]


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

    def __init__(self, encoder: ChatEncoder) -> None:
        if not encoder.tokenizer.is_fast:
            why = "its tokenizer does not tell which characters a token stands for"
            raise SetupError(f"transformers: this model cannot weigh labels: {why}")
        self._encoder, self._tokenizer = encoder, encoder.tokenizer
        self._cuttable: bool | None = None
        self._tail = lru_cache(maxsize=4096)(self._whole)

    def branches(self, prompt: str, fields: Sequence[Sequence[str]]) -> Branches:
        """The ids of the prompt and each reply, CLOSE in the place of the closing quote."""
        if self._cuttable is None:
            whole = self._whole_tokens(prompt, fields)
            self._cuttable = self._cut(prompt) > 0 and self._cut_tokens(prompt, fields) == whole
        return (self._cut_tokens if self._cuttable else self._whole_tokens)(prompt, fields)

    def _cut_tokens(self, prompt: str, fields: Sequence[Sequence[str]]) -> Branches:
        cut = self._cut(prompt)
        head = self._encoder.ids(prompt[:cut])
        return [[head + self._tail(prompt[cut:], reply) for reply in field] for field in fields]

    def _whole_tokens(self, prompt: str, fields: Sequence[Sequence[str]]) -> Branches:
        return [[self._whole(prompt, reply) for reply in field] for field in fields]

    def _cut(self, prompt: str) -> int:
        return max((found.start() for found in self._encoder.control.finditer(prompt)), default=0)

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
        before = self._encoder.ids("x")[-1]
        start = self._tokenizer.decode([before]) + '"'
        every = range(len(self._tokenizer))
        texts = self._tokenizer.batch_decode([[before, token] for token in every])
        return [token for token, text in zip(every, texts, strict=True) if text.startswith(start)]
