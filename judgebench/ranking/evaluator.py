"""A trained evaluator: which decision each argument leads to, as Verdicts.

On top of an encoder, a class is decided from the mean over all tokens, by one linear layer. An
option is weighed by the mean over its own tokens, by one layer that all options share; the encoder
has read text, options and argument together, so one pass decides. A layer over places would have to
learn what a place means.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.files import disk_errors, to_json, write_atomically
from judgebench.judges.judge import Task
from judgebench.learning.trainer import Trainer, Watch, has_bf16, memory_errors
from judgebench.models.checkpoints import (
    Encoder,
    by_length,
    find_encoder,
    identify,
    import_torch,
    length_buckets,
    mean_over,
    open_encoder,
)
from judgebench.progress import NoProgress, Progress
from judgebench.ranking.examples import (
    Batch,
    Collator,
    EvaluatorPlan,
    Example,
    Examples,
    Input,
    InputMaker,
    label_places,
    second_in_test,
    second_in_training,
)
from judgebench.ranking.task import ProxyTask, TaskInstance, TrainingConfig
from judgebench.records import Answer, Status, Verdict, content_hash
from judgebench.runs.judging import Stop
from judgebench.version import VERSION

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


_RECIPE = 2  # of this training; a change to it makes other evaluators of the same settings
_BEST = "best.safetensors"
_MEMORY = "out of memory in training; lower batch_size or max_tokens"


def train(
    plan: EvaluatorPlan, folder: Path, progress: Progress | None = None, stop: Stop | None = None
) -> None:
    """Train an evaluator into `folder`, unless the same one is there.

    AdamW (Loshchilov and Hutter 2019) with linear warm-up and decay ends after `patience` epochs
    without a better development score; the best epoch is kept. An epoch that is done is never lost:
    the same call goes on after it, on the same device to the same weights as an uninterrupted one.
    Raises SetupError for what cannot be trained, RunError where the loss or the memory runs out of
    bounds, DiskFailed, and Interrupted where `stop` is wanted.
    """
    torch = import_torch()
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
    with memory_errors(_MEMORY), torch.random.fork_rng():
        torch.manual_seed(plan.own_seed)
        # Its state is kept after each epoch and where it is to stop, not by the clock.
        name = f"{plan.name}: training"
        watch = Watch(name, progress or NoProgress(), stop or Stop(), every_s=math.inf)
        _Training(plan, examples, signature, folder).run(watch)


# How one epoch went: `train_loss`, the mean loss in training; `development_loss` and
# `development_score`, mean loss and share right on the development split.
Epoch = dict[str, float]


def best_epoch(epochs: Sequence[Epoch]) -> int:
    """The epoch of the highest development score, from 0; of equal ones the lowest loss, then the
    earliest.

    Not by the loss alone: of a small task it is often lowest while the most common class is still
    all that is decided, and an evaluator is asked for decisions.
    """
    worth = [(e["development_score"], -e["development_loss"]) for e in epochs]
    return max(range(len(worth)), key=worth.__getitem__)


def is_over(epochs: Sequence[Epoch], training: TrainingConfig) -> bool:
    """True where all epochs are done, or too many went without a better one."""
    n = len(epochs)
    return n >= training.epochs or (n > 0 and n - 1 - best_epoch(epochs) >= training.patience)


class _Training:
    """The parts of one training, and its loop."""

    def __init__(
        self, plan: EvaluatorPlan, examples: Examples, signature: str, folder: Path
    ) -> None:
        self._plan, self._examples, self._signature = plan, examples, signature
        self._folder, self._settings = folder, plan.config.training
        self._encoder = open_encoder(plan.config.encoder, self._settings.max_tokens)
        self._model = build_model(self._encoder, plan.task.labels, plan.task.is_multiple_choice)
        self._collate = Collator(self._encoder.tokenizer, self._encoder.device)
        self._train, self._development = _tokens(plan, examples, self._encoder)
        self._steps = math.ceil(len(self._train) / self._settings.batch_size)
        groups = _groups(self._model, self._settings.weight_decay)
        self._trainer = Trainer(self._model, groups, self._rate, folder, signature)
        self._trainer.whose = f"{plan.name}: "
        self._epochs: list[Epoch] = []
        self._steps_done, self._loss_sum = 0, 0.0  # the latter in the epoch that is not done
        self._began, self._seconds = time.perf_counter(), 0.0  # the latter of earlier calls
        self._batches: tuple[int, list[list[Labelled]]] = -1, []  # an epoch, and what it reads

    def run(self, watch: Watch) -> None:
        """Train to the end and leave the finished evaluator."""
        self._resume(watch.progress)
        self._began = time.perf_counter()
        if not self._is_over():
            total = self._settings.epochs * self._steps
            watch.progress.start(watch.name, total, self._steps_done)
            left = takewhile(lambda _: not self._is_over(), range(self._steps_done, total))
            for step, loss in self._trainer.steps(left, self._loss_of, watch, self._about):
                self._steps_done = step + 1
                self._loss_sum += loss * len(self._examples_of(step))
                if self._steps_done % self._steps == 0:
                    self._end_epoch(watch)
        self._finish()

    def _is_over(self) -> bool:
        return is_over(self._epochs, self._settings)

    def _end_epoch(self, watch: Watch) -> None:
        """Say how the epoch went, and keep what the next one needs."""
        loss, score = self._tune()
        trained = {"train_loss": self._loss_sum / len(self._train)}
        self._epochs.append({**trained, "development_loss": loss, "development_score": score})
        self._loss_sum, epoch = 0.0, len(self._epochs)
        self._keep(best=best_epoch(self._epochs) == epoch - 1)
        self._trainer.note = f"epoch {epoch}: {score:.3f} on development"
        watch.progress.say(f"{watch.name}: {self._trainer.note}")

    def _loss_of(self, step: int) -> Iterator[Any]:
        self._model.train()
        yield self._loss(self._examples_of(step))[0]

    def _examples_of(self, step: int) -> list[Labelled]:
        """Those of a step; drawn by seed, so that they are the same after every interruption."""
        epoch, number = divmod(step, self._steps)
        if self._batches[0] != epoch:
            versions = self._examples.of_epoch(epoch)
            examples = [source[v] for source, v in zip(self._train, versions, strict=True)]
            chance = random.Random(f"{self._plan.own_seed}/{epoch}")
            lengths = [len(one.ids) for one, _ in examples]
            drawn = length_buckets(lengths, self._settings.batch_size, chance)
            self._batches = epoch, [[examples[place] for place in places] for places in drawn]
        return self._batches[1][number]

    def _rate(self, step: int) -> float:
        """The learning rate: up over the first steps and down over the others, both linearly."""
        total = self._steps * self._settings.epochs
        warm = math.ceil(total * self._settings.warmup)
        share = step / warm if step < warm else (total - step) / max(total - warm, 1)
        return self._settings.learning_rate * share

    def _tune(self) -> tuple[float, float]:
        """Mean loss and share right on the development split: accuracy, which is micro-F1 too where
        each instance has one class."""
        import torch

        loss, right = 0.0, 0
        self._model.eval()
        lengths = [len(one.ids) for one, _ in self._development]
        with torch.inference_mode():
            for places in by_length(lengths, 2 * self._settings.batch_size):
                batch_loss, n_right = self._loss([self._development[place] for place in places])
                loss += float(batch_loss) * len(places)
                right += int(n_right)
        return loss / len(lengths), right / len(lengths)

    def _loss(self, examples: Sequence[tuple[Input, int]]) -> tuple[Any, Any]:
        """Mean cross-entropy, and how many are right."""
        import torch

        batch = self._collate([one for one, _ in examples], [label for _, label in examples])
        device = self._encoder.device
        # CPUs round bfloat16 differently, and often only emulate it.
        half = device == "cuda" and has_bf16(device)
        with torch.autocast(device, torch.bfloat16, enabled=half):
            found = logits(self._model, batch)
        loss = torch.nn.functional.cross_entropy(found.float(), batch.labels)
        return loss, (found.argmax(dim=-1) == batch.labels).sum()

    def _keep(self, *, best: bool) -> None:
        """Keep what the next epoch needs, and the weights where they are the best so far.

        Weights go first: an epoch whose state was not kept is computed again, to the same weights.
        """
        if best:
            from safetensors.torch import save

            weights = self._model.state_dict().items()
            plain = {k: v.detach().cpu().contiguous() for k, v in weights}
            with disk_errors(self._folder):
                write_atomically(self._folder / _BEST, save(plain))
        self._trainer.keep(**self._about())

    def _about(self) -> Mapping[str, str]:
        now = {
            "epochs": self._epochs,
            "seconds": self._seconds + time.perf_counter() - self._began,
            "steps": self._steps_done,
            "loss": self._loss_sum,
        }
        return {key: json.dumps(value) for key, value in now.items()}

    def _resume(self, progress: Progress) -> None:
        """Go on from what was kept of this very evaluator, where it was."""
        best = self._folder / _BEST
        if about := self._trainer.resume(lambda kept: kept["epochs"] == "[]" or best.is_file()):
            now = {key: json.loads(text) for key, text in about.items() if key != "signature"}
            self._epochs, self._seconds = now["epochs"], now["seconds"]
            self._steps_done = now.get("steps", len(self._epochs) * self._steps)
            self._loss_sum = now.get("loss", 0.0)
            progress.say(f"{self._plan.name} resumes after epoch {len(self._epochs)}")

    def _finish(self) -> None:
        """Make the best epoch the evaluator; what only training needed goes."""
        folder = self._folder
        with disk_errors(folder):
            self._encoder.model.config.save_pretrained(folder)
            self._encoder.tokenizer.save_pretrained(folder)
            os.replace(folder / _BEST, folder / WEIGHTS)
            content = to_json(self._manifest(), indent=1) + "\n"
            write_atomically(folder / MANIFEST, content.encode("utf-8"))
            self._trainer.done()

    def _manifest(self) -> dict[str, Any]:
        """The fields of a report's line on this training, and what loads and repeats it."""
        epochs, plan, best = self._epochs, self._plan, best_epoch(self._epochs)
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
            "seconds": round(self._seconds + time.perf_counter() - self._began, 3),
            "cut": sum(one.cut for one in read),
            "cut_arguments": sum(one.argument_cut for one in read),
            "left_out": self._examples.left_out,
            "signature": self._signature,
            "labels": list(plan.task.labels),
            "multiple_choice": plan.task.is_multiple_choice,
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


def _groups(model: Any, weight_decay: float) -> list[dict[str, Any]]:
    """The weights of a model by their decay: biases and norms, which are vectors, have none."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    free = [p for p in model.parameters() if p.ndim <= 1]
    return [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
