"""A trained evaluator: which decision each argument leads to, as Verdicts.

On top of an encoder, a class is decided from the mean over all tokens, by one linear layer. An
option is weighed by the mean over its own tokens, by one layer that all options share; the encoder
has read text, options and argument together, so one pass decides. A layer over places would have to
learn what a place means.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.models.encoder import Encoder, by_length, mean_over, open_encoder
from judgebench.ranking.proxy.arguments import argument_id
from judgebench.ranking.proxy.examples import (
    Batch,
    Collator,
    Input,
    InputMaker,
    second_in_test,
)
from judgebench.ranking.proxy.task import ProxyTask, TaskInstance
from judgebench.records import Status, Verdict, content_hash

MANIFEST, WEIGHTS = "manifest.json", "model.safetensors"
_BATCH = 32
_DROPOUT = 0.1


@dataclass(frozen=True)
class ProxyEvaluator:
    """Reads an instance's text and an argument and decides. `manifest` says how it was trained."""

    manifest: dict[str, Any]
    encoder: Encoder
    model: Any
    inputs: InputMaker

    @classmethod
    def load(cls, folder: Path) -> ProxyEvaluator:
        """The evaluator that `train` left in `folder`; on a GPU where there is one.

        Raises SetupError where there is none, or none that is whole.
        """
        from safetensors.torch import load_file

        manifest = read_manifest(folder)
        if manifest is None:
            raise SetupError(Problem("holds no evaluator whose training is finished", str(folder)))
        encoder = open_encoder(str(folder), manifest["max_tokens"], bare=True)
        model = build_model(encoder, manifest["labels"], manifest["multiple_choice"])
        try:
            model.load_state_dict(load_file(folder / WEIGHTS))
        except Exception as error:  # torn, or of another encoder
            said = " ".join(str(error).split())[:300]
            message = f"cannot be loaded: {said}; remove it and train again"
            raise SetupError(Problem(message, str(folder / WEIGHTS))) from error
        maker = InputMaker(encoder.tokenizer, encoder.max_tokens)
        return cls(manifest, encoder, model.eval(), maker)

    @property
    def name(self) -> str:
        """Such as `nli-llm-trained-0`."""
        return str(self.manifest["evaluator"])

    @property
    def signature(self) -> str:
        """Changes with anything that it was trained with."""
        return str(self.manifest["signature"])

    @staticmethod
    def content_hash(instance: TaskInstance, text: str) -> str:
        """The `content_hash` of the Verdict on this argument."""
        return content_hash([instance.question, text, None])

    def judge(
        self, task: ProxyTask, system: str, instances: Sequence[TaskInstance], texts: Sequence[str]
    ) -> Iterator[Verdict]:
        """One verdict per argument of `system`, in the order of `instances`.

        Its label is the class or the place decided, under the task's name as the metric, with the
        probability of each that the instance has. Its `reason` tells a cut: `cut`, or `argument
        cut` where some of the argument was lost.
        """
        kind, classes = self.manifest["kind"], list(self.manifest["labels"])
        seconds = [second_in_test(kind, i, text) for i, text in zip(instances, texts, strict=True)]
        inputs = self.inputs.make(instances, seconds)
        began = time.perf_counter()
        probabilities = self._probabilities(inputs)
        latency = (time.perf_counter() - began) / max(len(inputs), 1)
        for instance, text, one, row in zip(instances, texts, inputs, probabilities, strict=True):
            labels = list(map(str, range(1, len(row) + 1))) if one.options else classes
            by_label = dict(zip(labels, row, strict=True))
            yield Verdict(
                item_id=argument_id(task.name, instance.item_id, system),
                content_hash=self.content_hash(instance, text),
                judge=self.name,
                signature=self.signature,
                status=Status.OK,
                labels={task.name: max(labels, key=by_label.__getitem__)},
                probabilities={task.name: by_label},
                reason="argument cut" if one.argument_cut else "cut" if one.cut else "",
                latency=latency,
            )

    def _probabilities(self, inputs: Sequence[Input]) -> list[list[float]]:
        """For each input, one probability per class, or per option that it has."""
        import torch

        collate = Collator(self.encoder.tokenizer, self.encoder.device)
        found: list[list[float]] = [[] for _ in inputs]
        with torch.inference_mode():
            for places in by_length([len(one.ids) for one in inputs], _BATCH):
                batch = collate([inputs[place] for place in places])
                rows = logits(self.model, batch).double().softmax(dim=-1).tolist()
                for place, row in zip(places, rows, strict=True):
                    found[place] = row[: len(inputs[place].options) or None]
        return found


def build_model(encoder: Encoder, labels: Sequence[str], multiple_choice: bool) -> Any:
    """A torch module with the parts `encoder` and `head`; the head's weights are random."""
    from torch import nn

    config = encoder.model.config
    head = nn.Linear(config.hidden_size, 1 if multiple_choice else len(labels))
    nn.init.normal_(head.weight, std=getattr(config, "initializer_range", 0.02))
    nn.init.zeros_(head.bias)
    parts = {"encoder": encoder.model, "dropout": nn.Dropout(_DROPOUT), "head": head}
    return nn.ModuleDict(parts).to(encoder.device)


def logits(model: Any, batch: Batch) -> Any:
    """(inputs, labels), or (inputs, most options) with -inf where an input has no such option."""
    hidden = model["encoder"](**batch.inputs).last_hidden_state
    if batch.options is None:
        return model["head"](model["dropout"](mean_over(hidden, batch.inputs["attention_mask"])))
    spans = batch.options.to(hidden.dtype)
    means = (spans @ hidden) / spans.sum(dim=-1, keepdim=True).clamp(min=1)
    weighed = model["head"](model["dropout"](means)).squeeze(-1)
    return weighed.masked_fill(~batch.present, float("-inf"))


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a finished evaluator; None where there is none, or no weights with it."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and (folder / WEIGHTS).is_file() else None
