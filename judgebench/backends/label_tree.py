"""All labels of all metrics as one tree of tokens behind a prompt, for one forward pass.

Branches that begin alike share their first tokens; what all begin with is the trunk. Each token
attends to the trunk and to its own ancestors alone, and its position is its depth, so that the
pass computes for each branch what a pass of its own would compute. (Tree attention is known from
speculative decoding: Miao et al., SpecInfer, ASPLOS 2024, section 4.2.)

Arrays alone: no engine is imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Tokens = Sequence[int]


@dataclass(frozen=True)
class LabelTree:
    """A trunk, and below it nodes of one token each; a parent stands before its children.

    The last token of a branch is only predicted, never read, and so is no node. Steps are what
    the labels differ by: that `step_token` follows `step_node`, on the way to the option
    `step_option` (counted through all fields). A node or parent of -1 is the trunk's last token.
    """

    trunk: Ints  # (trunk,)
    tokens: Ints  # (nodes,)
    parents: Ints  # (nodes,)
    step_node: Ints  # (steps,)
    step_token: Ints  # (steps,)
    step_option: Ints  # (steps,)
    options: tuple[int, ...]  # how many options each field has

    @property
    def depths(self) -> Ints:
        """How many tokens behind the trunk each node stands, 0 for its children. (nodes,)"""
        depths = np.zeros(len(self.parents), np.int64)
        for node, parent in enumerate(self.parents):
            depths[node] = depths[parent] + 1 if parent >= 0 else 0
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
        own[:, :length] = True
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                own[node] = own[parent]
            own[node, length + node] = True
        return seen

    def log_probabilities(self, step_log_p: Floats) -> list[Floats]:
        """Each field's options' log-probabilities, normalised over the options.

        `step_log_p` (steps,) holds each step's log-probability over the whole vocabulary. An
        option's is the sum over its branch; what all options of a field share cancels out.
        """
        totals = np.bincount(self.step_option, step_log_p, sum(self.options))
        fields = np.split(totals, np.cumsum(self.options)[:-1])
        return [field - np.logaddexp.reduce(field) for field in fields]


def label_tree(branches: Sequence[Sequence[Tokens]]) -> LabelTree:
    """The tree of `branches`: for each field, for each of its options, the whole text's tokens.

    Raises ValueError where a field has one option only, or one branch is the beginning of
    another of its field: its label could not be distinguished from the other.
    """
    trunk = common_prefix([option for field in branches for option in field])
    grown: dict[tuple[int, int], int] = {}  # (parent, token) -> node
    parents: list[int] = []
    tokens: list[int] = []
    steps: list[tuple[int, int, int]] = []
    option = 0
    for field in branches:
        shared = len(common_prefix(field))
        if shared == min(map(len, field)):
            raise ValueError("two labels cannot be told apart by their tokens")
        for branch in field:
            at = -1
            for place in range(len(trunk), len(branch)):
                token = branch[place]
                if place >= shared:
                    steps.append((at, token, option))
                if place == len(branch) - 1:
                    break
                if (at, token) not in grown:
                    grown[at, token] = len(parents)
                    parents.append(at)
                    tokens.append(token)
                at = grown[at, token]
            option += 1
    nodes, followers, ends = np.array(steps, np.int64).T
    return LabelTree(
        trunk=np.array(trunk, np.int64),
        tokens=np.array(tokens, np.int64),
        parents=np.array(parents, np.int64),
        step_node=nodes,
        step_token=followers,
        step_option=ends,
        options=tuple(map(len, branches)),
    )


def common_prefix(sequences: Sequence[Tokens]) -> list[int]:
    """The longest beginning that all have."""
    together = takewhile(lambda column: len(set(column)) == 1, zip(*sequences, strict=False))
    return [column[0] for column in together]
