"""A trained evaluator: which decision each argument leads to, as Verdicts.

On top of an encoder, a class is decided from the mean over all tokens, by one linear layer. An
option is weighed by the mean over its own tokens, by one layer that all options share; the encoder
has read text, options and argument together, so one pass decides. A layer over places would have to
learn what a place means.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.judges.judge import Task
from judgebench.models.encoder import Encoder, by_length, mean_over, open_encoder
from judgebench.ranking.proxy.examples import (
    Batch,
    Collator,
    Input,
    InputMaker,
    second_in_test,
)
from judgebench.ranking.proxy.task import ProxyTask, TaskInstance
from judgebench.records import Answer, Status, Verdict

MANIFEST, WEIGHTS = "manifest.json", "model.safetensors"
_BATCH = 32
_DROPOUT = 0.1


@dataclass
class ProxyEvaluator:
    """A Judge that reads an instance's text and an argument and decides: `nli-llm-trained-0`.

    `manifest` says how it was trained; the `signature` changes with anything that it was trained
    with. `instances` are those of its task, by item.
    """

    name: str
    signature: str
    manifest: dict[str, Any]
    encoder: Encoder
    model: Any
    instances: Mapping[str, TaskInstance]

    @classmethod
    def load(cls, folder: Path, task: ProxyTask) -> ProxyEvaluator:
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
        return cls(
            name=manifest["evaluator"],
            signature=manifest["signature"],
            manifest=manifest,
            encoder=encoder,
            model=model.eval(),
            instances={i.item_id: i for i in task.instances},
        )

    def describe(self) -> Mapping[str, Any]:
        """The manifest of its training."""
        return self.manifest

    def close(self) -> None:
        """Do nothing: the engine is released with the object."""

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        """One verdict per argument, in their order; those of one system are decided together.

        The Answers are those of `argument_answer` without documents. A label is the class or the
        place decided, under the task's name as the metric, with the probability of each that the
        instance has. The `reason` tells a cut: `cut`, or `argument cut` where some of the argument
        was lost.
        """
        maker = InputMaker(self.encoder.tokenizer, self.encoder.max_tokens)
        for _, same in groupby(tasks, key=lambda task: task.answer.system):
            yield from self._decided([task.answer for task in same], maker)

    def _decided(self, answers: Sequence[Answer], maker: InputMaker) -> Iterator[Verdict]:
        """The verdicts on the arguments of one system."""
        kind, classes, metric = (self.manifest[key] for key in ("kind", "labels", "task"))
        instances = [self.instances[a.metadata["instance"]] for a in answers]
        texts = zip(instances, answers, strict=True)
        inputs = maker.make(instances, [second_in_test(kind, i, a.text) for i, a in texts])
        began = time.perf_counter()
        probabilities = self._probabilities(inputs)
        latency = (time.perf_counter() - began) / len(inputs)
        for answer, one, row in zip(answers, inputs, probabilities, strict=True):
            labels = list(map(str, range(1, len(row) + 1))) if one.options else classes
            by_label = dict(zip(labels, row, strict=True))
            yield Verdict(
                item_id=answer.item_id,
                content_hash=answer.content_hash,
                judge=self.name,
                signature=self.signature,
                status=Status.OK,
                labels={metric: max(labels, key=by_label.__getitem__)},
                probabilities={metric: by_label},
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
