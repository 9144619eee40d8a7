"""Batches of inputs of like length, so that little of the work is spent on padding."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judgebench.ranking.proxy.inputs import Input

_BUCKET = 4  # batches; more mix the lengths better, fewer leave less padding


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors on one device. `inputs` are what the encoder is called with, (inputs, tokens) each.

    `options` (inputs, options, tokens) marks each option's tokens and `present` (inputs, options)
    the options that are there; None where classes are decided. `labels` (inputs,) counts from 0.
    """

    inputs: dict[str, Any]
    labels: Any
    options: Any = None
    present: Any = None


def length_buckets(lengths: Sequence[int], size: int, chance: random.Random) -> list[list[int]]:
    """The places of `lengths` in batches of `size`; which meet, and in which order the batches
    come, is left to chance, but only neighbours in length meet."""
    order = list(range(len(lengths)))
    chance.shuffle(order)  # so that equal lengths meet otherwise every time
    order.sort(key=lambda i: lengths[i])
    buckets = [order[i : i + _BUCKET * size] for i in range(0, len(order), _BUCKET * size)]
    batches = []
    for bucket in buckets:
        chance.shuffle(bucket)
        batches += [bucket[i : i + size] for i in range(0, len(bucket), size)]
    chance.shuffle(batches)
    return batches


def by_length(lengths: Sequence[int], size: int) -> list[list[int]]:
    """The places in batches of `size`, the longest first: what does not fit shows at once."""
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    return [order[i : i + size] for i in range(0, len(order), size)]


class Collator:
    """Pads inputs to the longest of a batch and puts them on a device."""

    def __init__(self, tokenizer: Any, device: str) -> None:
        self._pad = tokenizer.pad_token_id
        self._typed = "token_type_ids" in tokenizer.model_input_names
        self._device = device

    def __call__(self, inputs: Sequence[Input], labels: Sequence[int] | None = None) -> Batch:
        import torch

        width = max(len(i.ids) for i in inputs)
        rows = {
            "input_ids": [i.ids + [self._pad] * (width - len(i.ids)) for i in inputs],
            "attention_mask": [[1] * len(i.ids) + [0] * (width - len(i.ids)) for i in inputs],
        }
        if self._typed:
            rows["token_type_ids"] = [i.types + [0] * (width - len(i.types)) for i in inputs]
        options, present = self._options(inputs, width)
        return Batch(
            {name: torch.tensor(values).to(self._device) for name, values in rows.items()},
            None if labels is None else torch.tensor(labels).to(self._device),
            options,
            present,
        )

    def _options(self, inputs: Sequence[Input], width: int) -> tuple[Any, Any]:
        import torch

        most = max(len(i.options) for i in inputs)
        if not most:
            return None, None
        marks = torch.zeros(len(inputs), most, width, dtype=torch.bool)
        present = torch.zeros(len(inputs), most, dtype=torch.bool)
        for row, one in enumerate(inputs):
            present[row, : len(one.options)] = True
            for place, (start, end) in enumerate(one.options):
                marks[row, place, start:end] = True
        return marks.to(self._device), present.to(self._device)
