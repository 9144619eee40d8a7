"""What decides on top of an encoder: a class from the whole input, or one of its options.

A class comes from the mean over all tokens, by one linear layer. An option is weighed by the mean
over its own tokens, by one layer that all options share; the encoder has read text, options and
argument together, so one pass decides. A layer over places would have to learn what a place means.
"""

from __future__ import annotations

from typing import Any

from judgebench.ranking.proxy.batches import Batch
from judgebench.ranking.proxy.encoder import mean_over

DROPOUT = 0.1


def build(encoder: Any, n_labels: int, *, multiple_choice: bool) -> Any:
    """A torch module with the parts `encoder` and `head`; the head's weights are drawn anew."""
    from torch import nn

    width = encoder.config.hidden_size
    head = nn.Linear(width, 1 if multiple_choice else n_labels)
    nn.init.normal_(head.weight, std=getattr(encoder.config, "initializer_range", 0.02))
    nn.init.zeros_(head.bias)
    return nn.ModuleDict({"encoder": encoder, "dropout": nn.Dropout(DROPOUT), "head": head})


def logits(model: Any, batch: Batch) -> Any:
    """(inputs, labels), or (inputs, most options) with -inf where an input has no such option."""
    hidden = model["encoder"](**batch.inputs).last_hidden_state
    if batch.options is None:
        return model["head"](model["dropout"](mean_over(hidden, batch.inputs["attention_mask"])))
    spans = batch.options.to(hidden.dtype)
    means = (spans @ hidden) / spans.sum(dim=-1, keepdim=True).clamp(min=1)
    weighed = model["head"](model["dropout"](means)).squeeze(-1)
    return weighed.masked_fill(~batch.present, float("-inf"))
