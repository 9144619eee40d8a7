"""Train one evaluator of a proxy task; what is trained already is left, what was begun goes on."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from judgebench.backends.checkpoint import identify
from judgebench.errors import RunError
from judgebench.ranking.proxy import checkpoint, heads
from judgebench.ranking.proxy.batches import Collator, by_length, length_buckets
from judgebench.ranking.proxy.config import EvaluatorConfig, EvaluatorKind, TrainingConfig
from judgebench.ranking.proxy.encoder import find_encoder, import_torch, open_encoder
from judgebench.ranking.proxy.epochs import Epoch, Progress
from judgebench.ranking.proxy.examples import (
    Example,
    Examples,
    choose,
    evaluator_name,
    label_places,
)
from judgebench.ranking.proxy.inputs import Input, InputMaker, second_in_training
from judgebench.ranking.proxy.optimization import (
    adamw,
    chance_state,
    has_bf16,
    linear,
    set_chance_state,
)
from judgebench.ranking.proxy.task import ProxyTask
from judgebench.records import content_hash

_RECIPE = 2  # of this training; a change to it makes other evaluators of the same settings
_CLIP = 1.0  # the most that the gradient's norm may be


class Watcher(Protocol):
    """Follows one training. Epochs count from 0. What it raises ends training; the epochs that are
    done are kept."""

    def epoch_started(self, epoch: int, epochs: int, steps: int) -> None:
        """So many steps are ahead in this epoch, of at most so many epochs."""
        ...

    def step(self, loss: float) -> None:
        """One batch is done."""
        ...

    def epoch_ended(self, epoch: int, dev_loss: float, dev_score: float) -> None:
        """Loss and score on the development split; the epoch is kept."""
        ...

    def told(self, message: str) -> None:
        """A line for the user."""
        ...


class Silence:
    """A Watcher that says nothing."""

    def epoch_started(self, epoch: int, epochs: int, steps: int) -> None: ...

    def step(self, loss: float) -> None: ...

    def epoch_ended(self, epoch: int, dev_loss: float, dev_score: float) -> None: ...

    def told(self, message: str) -> None: ...


@dataclass(frozen=True)
class _Plan:
    """What is to be trained. `seed` gives every chance in it, `signature` names all of it."""

    task: ProxyTask
    kind: EvaluatorKind
    draw: int
    config: EvaluatorConfig
    examples: Examples
    seed: int
    signature: str

    @property
    def name(self) -> str:
        return evaluator_name(self.task.name, self.kind, self.draw)

    @property
    def training(self) -> TrainingConfig:
        return self.config.training


def train(
    task: ProxyTask,
    kind: EvaluatorKind,
    arguments: Mapping[str, Mapping[str, str]],
    config: EvaluatorConfig,
    folder: Path,
    *,
    seed: int,
    draw: int = 0,
    watcher: Watcher | None = None,
) -> None:
    """Train an evaluator into `folder`, unless the same one is there.

    `arguments` maps a system to its texts by item; only LLM-trained evaluators read it, and draw
    number `draw` says which. AdamW (Loshchilov and Hutter 2019) with linear warm-up and decay ends
    after `patience` epochs without a better development score; the best epoch is kept. An
    epoch that is done is never lost: the same call goes on after it, on the same device to the same
    weights as an uninterrupted one. Raises SetupError for what cannot be trained, RunError where
    the loss or the memory runs out of bounds, DiskFailed.
    """
    watcher = watcher or Silence()
    torch = import_torch()
    plan = _plan(task, kind, arguments, config, seed, draw)
    done = checkpoint.read_manifest(folder)
    if done is not None and done.get("signature") == plan.signature:
        return
    checkpoint.forget(folder)
    with torch.random.fork_rng(), _memory_errors():
        torch.manual_seed(plan.seed)
        _Training(plan, folder, watcher).run()


def _plan(
    task: ProxyTask,
    kind: EvaluatorKind,
    arguments: Mapping[str, Mapping[str, str]],
    config: EvaluatorConfig,
    seed: int,
    draw: int,
) -> _Plan:
    examples = choose(task, kind, arguments, seed=seed, draw=draw)
    encoder = identify(str(find_encoder(config.encoder)))["sha256"]
    about = [_RECIPE, task.name, list(task.labels), kind, examples.content_hash]
    signature = content_hash([*about, encoder, config.training.model_dump(), seed, draw])
    own_seed = int(content_hash([seed, task.name, kind, draw]), 16) % 2**31
    return _Plan(task, kind, draw, config, examples, own_seed, signature)


class _Training:
    """The parts of one training, and its loop."""

    def __init__(self, plan: _Plan, folder: Path, watcher: Watcher) -> None:
        self._plan, self._folder, self._watcher = plan, folder, watcher
        self._encoder = open_encoder(plan.config.encoder, plan.training.max_tokens)
        task = plan.task
        self._model = heads.build(
            self._encoder.model, len(task.labels), multiple_choice=task.is_multiple_choice
        ).to(self._encoder.device)
        self._collate = Collator(self._encoder.tokenizer, self._encoder.device)
        self._read(plan)
        self._steps = math.ceil(len(self._train) / plan.training.batch_size)
        self._optimizer = adamw(self._model, plan.training, self._encoder.device)
        self._schedule = linear(self._optimizer, plan.training, self._steps)
        self._progress = Progress()

    def _read(self, plan: _Plan) -> None:
        """Turn everything into tokens, once."""
        maker = InputMaker(self._encoder.tokenizer, self._encoder.max_tokens)

        def made(examples: Sequence[Example]) -> list[tuple[Input, int]]:
            seconds = [second_in_training(plan.kind, e.instance, e.argument) for e in examples]
            inputs = maker.make([e.instance for e in examples], seconds)
            return list(zip(inputs, label_places(plan.task, examples), strict=True))

        flat = iter(made([e for versions in plan.examples.train for e in versions]))
        self._train = [[next(flat) for _ in versions] for versions in plan.examples.train]
        self._development = made(plan.examples.development)

    def run(self) -> None:
        """Train to the end and leave the finished evaluator."""
        self._resume()
        training = self._plan.training
        while not self._progress.over(training):
            began = time.perf_counter()
            epoch = len(self._progress.epochs)
            self._watcher.epoch_started(epoch, training.epochs, self._steps)
            train_loss = self._learn(epoch)
            loss, score = self._tune()
            self._progress.epochs.append(Epoch(train_loss, loss, score))
            self._progress.seconds += time.perf_counter() - began
            self._keep(best=self._progress.best == epoch)
            self._watcher.epoch_ended(epoch, loss, score)
        checkpoint.finish(
            self._folder, self._encoder.model, self._encoder.tokenizer, self._manifest()
        )

    def _learn(self, epoch: int) -> float:
        """One pass over the training split; its mean loss."""
        import torch

        versions = self._plan.examples.of_epoch(epoch)
        examples = [source[v] for source, v in zip(self._train, versions, strict=True)]
        chance = random.Random(f"{self._plan.seed}/{epoch}")
        lengths = [len(one.ids) for one, _ in examples]
        total = 0.0
        self._model.train()
        for places in length_buckets(lengths, self._plan.training.batch_size, chance):
            loss = self._loss([examples[place] for place in places])[0]
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), _CLIP)
            self._optimizer.step()
            self._schedule.step()
            self._optimizer.zero_grad(set_to_none=True)
            value = float(loss.detach())
            if not math.isfinite(value):
                raise RunError(f"{self._plan.name}: the loss is no number; lower learning_rate")
            total += value * len(places)
            self._watcher.step(value)
        return total / len(examples)

    def _tune(self) -> tuple[float, float]:
        """Mean loss and share right on the development split: accuracy, which is micro-F1 too where
        each instance has one class."""
        import torch

        loss, right = 0.0, 0
        self._model.eval()
        lengths = [len(one.ids) for one, _ in self._development]
        with torch.inference_mode():
            for places in by_length(lengths, 2 * self._plan.training.batch_size):
                batch_loss, n_right = self._loss([self._development[place] for place in places])
                loss += float(batch_loss) * len(places)
                right += int(n_right)
        return loss / len(lengths), right / len(lengths)

    def _loss(self, examples: Sequence[tuple[Input, int]]) -> tuple[Any, Any]:
        """Mean cross-entropy, and how many are right."""
        import torch

        batch = self._collate([one for one, _ in examples], [label for _, label in examples])
        device = self._encoder.device
        with torch.autocast(device, torch.bfloat16, enabled=has_bf16(device)):
            found = heads.logits(self._model, batch)
        loss = torch.nn.functional.cross_entropy(found.float(), batch.labels)
        return loss, (found.argmax(dim=-1) == batch.labels).sum()

    def _keep(self, *, best: bool) -> None:
        state = {
            "signature": self._plan.signature,
            "epochs": [asdict(epoch) for epoch in self._progress.epochs],
            "seconds": self._progress.seconds,
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "chance": chance_state(),
        }
        checkpoint.save_state(self._folder, state, self._model, best=best)

    def _resume(self) -> None:
        kept = checkpoint.load_state(self._folder, self._plan.signature, "cpu")
        if kept is None:
            return
        self._progress = Progress([Epoch(**e) for e in kept["epochs"]], kept["seconds"])
        self._model.load_state_dict(kept["model"])
        self._optimizer.load_state_dict(kept["optimizer"])
        self._schedule.load_state_dict(kept["schedule"])
        set_chance_state(kept["chance"])
        self._watcher.told(f"{self._plan.name} goes on after epoch {len(kept['epochs'])}")

    def _manifest(self) -> dict[str, Any]:
        """The fields of a report's line on this training, and what loads and repeats it."""
        progress, plan = self._progress, self._plan
        read = [versions[0][0] for versions in self._train]
        return {
            "task": plan.task.name,
            "evaluator": plan.name,
            "kind": plan.kind,
            "draw": plan.draw,
            "encoder": plan.config.encoder,
            "train": len(read),
            "development": len(self._development),
            "epochs": len(progress.epochs),
            "best_epoch": progress.best + 1,
            "development_score": progress.epochs[progress.best].development_score,
            "seconds": round(progress.seconds, 3),
            "cut": sum(one.cut for one in read),
            "cut_arguments": sum(one.argument_cut for one in read),
            "left_out": plan.examples.left_out,
            "signature": plan.signature,
            "labels": list(plan.task.labels),
            "multiple_choice": plan.task.is_multiple_choice,
            "max_tokens": self._encoder.max_tokens,
            "seed": plan.seed,
            "training": plan.training.model_dump(),
            "by_epoch": [asdict(epoch) for epoch in progress.epochs],
            "device": self._encoder.device,
            "versions": {p: version(p) for p in ("judgebench", "torch", "transformers")},
        }


@contextmanager
def _memory_errors() -> Iterator[None]:
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise RunError("out of memory in training; lower batch_size or max_tokens") from error
