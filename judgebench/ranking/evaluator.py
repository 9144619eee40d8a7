"""A trained evaluator: which decision each argument leads to, as Verdicts.

It is a plain `AutoModelForTokenClassification` of transformers. A class is decided from the mean of
the logits of all tokens. An option is weighed by the mean over its own tokens of the one logit that
all options share; the encoder has read text, options and argument together, so one pass decides. A
head over places would have to learn what a place means.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.files import disk_errors, to_json, write_atomically
from judgebench.judges.judge import Task
from judgebench.learning.trainer import (
    Entry,
    Evaluation,
    Training,
    Watch,
    forget,
    has_bf16,
    memory_errors,
    run,
    seeded,
)
from judgebench.models.checkpoints import (
    Encoder,
    by_length,
    find_encoder,
    identify,
    import_torch,
    length_buckets,
    open_encoder,
)
from judgebench.progress import NoProgress, Progress
from judgebench.ranking.examples import (
    Batch,
    EvaluatorPlan,
    Example,
    Examples,
    Input,
    InputMaker,
    collate,
    label_places,
    second_in_test,
    second_in_training,
)
from judgebench.ranking.task import ProxyTask, TaskInstance
from judgebench.records import Answer, Status, Verdict, content_hash
from judgebench.runs.judging import Stop
from judgebench.version import VERSION

MANIFEST, WEIGHTS = "manifest.json", "model.safetensors"
_BATCH = 32
_OPTION = "option"  # the one label of a head that weighs options


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
    instances: Mapping[str, TaskInstance]

    @classmethod
    def load(cls, folder: Path, task: ProxyTask) -> ProxyEvaluator:
        """The evaluator that `train` left in `folder`; on a GPU where there is one.

        Raises SetupError where there is none, or none that is whole.
        """
        manifest = read_manifest(folder)
        if manifest is None:
            raise SetupError(Problem("holds no evaluator whose training is finished", str(folder)))
        return cls(
            name=manifest["evaluator"],
            signature=manifest["signature"],
            manifest=manifest,
            encoder=open_encoder(str(folder), manifest["max_tokens"], head=True, by_token=True),
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
        instance has. The `reason` is `cut` where the input was longer than the encoder takes.
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
        for answer, one, row in zip(answers, inputs, self._probabilities(inputs), strict=True):
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
                reason="cut" if one.cut else "",
            )

    def _probabilities(self, inputs: Sequence[Input]) -> list[list[float]]:
        """For each input, one probability per class, or per option that it has."""
        import torch

        found: list[list[float]] = [[] for _ in inputs]
        with torch.inference_mode():
            for places in by_length([len(one.ids) for one in inputs], _BATCH):
                batch = collate(self.encoder, [inputs[place] for place in places])
                rows = logits(self.encoder.model, batch).double().softmax(dim=-1).tolist()
                for place, row in zip(places, rows, strict=True):
                    found[place] = row[: len(inputs[place].options) or None]
        return found


def logits(model: Any, batch: Batch) -> Any:
    """(inputs, labels), or (inputs, most options), the least of all where an input has no such
    option."""
    import torch

    by_token = model(**batch.inputs).logits
    has_options = batch.options.shape[1] > 0
    marked = batch.options if has_options else batch.inputs["attention_mask"].unsqueeze(1)
    spans = marked.to(by_token.dtype)
    means = (spans @ by_token) / spans.sum(dim=-1, keepdim=True).clamp(min=1)
    if not has_options:
        return means.squeeze(1)
    return means.squeeze(-1).masked_fill(~marked.any(dim=-1), torch.finfo(means.dtype).min)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a finished evaluator; None where there is none, or no weights with it."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and (folder / WEIGHTS).is_file() else None


_RECIPE = 3  # of this training; a change to it makes other evaluators of the same settings
_MEMORY = "out of memory in training; lower batch_size or max_tokens"


def train(
    plan: EvaluatorPlan, folder: Path, progress: Progress | None = None, stop: Stop | None = None
) -> None:
    """Train an evaluator into `folder`, unless the same one is there.

    Training ends after `patience` epochs without a better development score. The best epoch is
    kept: of the highest score, of equal ones the lowest loss, then the earliest. Not by the loss
    alone: of a small task it is often lowest while the most common class is still all that is
    decided, and an evaluator is asked for decisions.

    An epoch that is done is never lost: the same call goes on after it, on the same device to the
    same weights as an uninterrupted one. Raises SetupError for what cannot be trained, RunError
    where the loss or the memory runs out of bounds, DiskFailed, and Interrupted where `stop` is
    wanted.
    """
    import_torch()
    examples = plan.examples()
    encoder = identify(str(find_encoder(plan.config.encoder)))["sha256"]
    about = [_RECIPE, plan.task.name, list(plan.task.labels), plan.kind, examples.content_hash]
    settings = [plan.config.training.model_dump(), plan.seed, plan.draw]
    signature = content_hash([*about, encoder, *settings])
    done = read_manifest(folder)
    if done is not None and done.get("signature") == signature:
        return
    with disk_errors(folder):  # lest the manifest of another evaluator is taken for the new one's
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)
    watch = Watch(f"{plan.name}: training", progress or NoProgress(), stop or Stop())
    began = time.perf_counter()
    with memory_errors(_MEMORY), seeded(plan.own_seed):
        training = _Training(plan, examples)
        log = run(training.steps(), folder, signature, watch)
    content = {
        **training.manifest(log),
        "seconds": round(time.perf_counter() - began, 3),
        "signature": signature,
    }
    with disk_errors(folder):
        write_atomically(folder / MANIFEST, f"{to_json(content, indent=1)}\n".encode())
    forget(folder)


class _Training:
    """The parts of one training."""

    def __init__(self, plan: EvaluatorPlan, examples: Examples) -> None:
        self._plan, self._examples, self._settings = plan, examples, plan.config.training
        labels = [_OPTION] if plan.task.is_multiple_choice else plan.task.labels
        self._encoder = open_encoder(
            plan.config.encoder, self._settings.max_tokens, head=True, by_token=True, labels=labels
        )
        self._train, self._development = _tokens(plan, examples, self._encoder)

    def steps(self) -> Training:
        batches = [b for epoch in range(self._settings.epochs) for b in self._batches(epoch)]
        settings = self._settings
        return Training(
            model=self._encoder.model,
            n_steps=len(batches),
            losses=lambda step: [self._loss(batches[step])[0]],
            save=self._save,
            learning_rate=settings.learning_rate,
            seed=self._plan.own_seed,
            weight_decay=settings.weight_decay,
            warmup=settings.warmup,
            evaluation=Evaluation(
                self._measure, len(batches) // settings.epochs, settings.patience
            ),
        )

    def _batches(self, epoch: int) -> Iterator[list[Labelled]]:
        """What the steps of an epoch read, drawn by seed."""
        versions = self._examples.of_epoch(epoch)
        examples = [source[v] for source, v in zip(self._train, versions, strict=True)]
        chance = random.Random(f"{self._plan.own_seed}/{epoch}")
        lengths = [len(one.ids) for one, _ in examples]
        for places in length_buckets(lengths, self._settings.batch_size, chance):
            yield [examples[place] for place in places]

    def _measure(self) -> Mapping[str, float]:
        """Mean loss and share right on the development split: accuracy, which is micro-F1 too where
        each instance has one class."""
        import torch

        loss, right = 0.0, 0
        lengths = [len(one.ids) for one, _ in self._development]
        with torch.inference_mode():
            for places in by_length(lengths, 2 * self._settings.batch_size):
                batch_loss, n_right = self._loss([self._development[place] for place in places])
                loss += float(batch_loss) * len(places)
                right += int(n_right)
        loss, score = loss / len(lengths), right / len(lengths)
        # The loss only tells apart what is equal: a step of the score is far more.
        return {"loss": loss, "score": score, "worth": score - 1e-9 * loss}

    def _loss(self, examples: Sequence[Labelled]) -> tuple[Any, Any]:
        """Mean cross-entropy, and how many are right."""
        import torch

        batch = collate(self._encoder, *map(list, zip(*examples, strict=True)))
        device = self._encoder.device
        # CPUs round bfloat16 differently, and often only emulate it.
        half = device == "cuda" and has_bf16(device)
        with torch.autocast(device, torch.bfloat16, enabled=half):
            found = logits(self._encoder.model, batch)
        loss = torch.nn.functional.cross_entropy(found.float(), batch.labels)
        return loss, (found.argmax(dim=-1) == batch.labels).sum()

    def _save(self, folder: Path) -> None:
        self._encoder.model.save_pretrained(folder)
        self._encoder.tokenizer.save_pretrained(folder)

    def manifest(self, log: Sequence[Entry]) -> dict[str, Any]:
        """The fields of a report's line on this training, and what loads and repeats it."""
        epochs = [
            {"development_loss": entry["eval_loss"], "development_score": entry["eval_score"]}
            for entry in log
            if "eval_score" in entry
        ]
        worth = [entry["eval_worth"] for entry in log if "eval_worth" in entry]
        best, plan = worth.index(max(worth)), self._plan
        read = [versions[0][0] for versions in self._train]
        return {
            "task": plan.task.name,
            "evaluator": plan.name,
            "kind": plan.kind,
            "draw": plan.draw,
            "encoder": plan.config.encoder,
            "train": len(read),
            "development": len(self._development),
            "epochs": len(epochs),
            "best_epoch": best + 1,
            "development_score": epochs[best]["development_score"],
            "cut": sum(one.cut for one in read),
            "labels": list(plan.task.labels),
            "max_tokens": self._encoder.max_tokens,
            "seed": plan.own_seed,
            "training": self._settings.model_dump(),
            "by_epoch": epochs,
            "device": self._encoder.device,
            "versions": {
                "judgebench": VERSION,
                **{library: version(library) for library in ("torch", "transformers")},
            },
        }


Labelled = tuple[Input, int]


def _tokens(
    plan: EvaluatorPlan, examples: Examples, encoder: Encoder
) -> tuple[list[list[Labelled]], list[Labelled]]:
    """Everything that is read, as tokens: the versions of each source, and development."""
    maker = InputMaker(encoder.tokenizer, encoder.max_tokens)

    def made(examples: Sequence[Example]) -> list[Labelled]:
        seconds = [second_in_training(plan.kind, e.instance, e.argument) for e in examples]
        inputs = maker.make([e.instance for e in examples], seconds)
        return list(zip(inputs, label_places(plan.task, examples), strict=True))

    flat = iter(made([e for versions in examples.train for e in versions]))
    train = [[next(flat) for _ in versions] for versions in examples.train]
    return train, made(examples.development)
