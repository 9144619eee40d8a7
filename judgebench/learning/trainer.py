"""The training of weights by `transformers.Trainer`: of proxies, judges that learn and generators.

Every training is a list of steps that is drawn before it begins. The Trainer takes them, keeps its
checkpoints and goes on from the last of them; what a step learns from is the business of others.
"""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.errors import MissingExtra, RunError
from judgebench.files import disk_errors
from judgebench.models.checkpoints import quietly
from judgebench.progress import NoProgress, Progress
from judgebench.runs.judging import Interrupted, Stop

CHECKPOINTS = "checkpoints"  # in a folder: where its training goes on from
_CHECKPOINTS = 10  # that a training without evaluations keeps on its way
_STATE = "trainer_state.json"  # the last file of a checkpoint
# What only the next step needs.
_PASSING = (_STATE, "optimizer.pt", "scheduler.pt", "rng_state.pth", "scaler.pt")
Entry = Mapping[str, float]  # of the log: the `loss` of a step, or the `eval_…` of an evaluation


@dataclass(frozen=True)
class Watch:
    """The progress of training, and who may stop it."""

    name: str = "training"
    progress: Progress = field(default_factory=NoProgress)
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True)
class Evaluation:
    """`measure` is called after every so many `steps`. The weights of the highest `worth` that it
    returns are kept, of equal ones the first; after `patience` without a higher one it is over."""

    measure: Callable[[], Mapping[str, float]]
    steps: int
    patience: int


@dataclass(frozen=True)
class Training:
    """`n_steps` steps of AdamW (Loshchilov and Hutter 2019) on the weights of a `model` that need a
    gradient. `learning_rate` is the highest: up over the share `warmup` of all steps and down over
    the others, both linearly.

    `losses(n)` are those of the passes of step `n`, from 0, whose sum is made smaller; a pass is
    computed when the memory of the one before is free. `save` writes the weights into a folder.
    """

    model: Any
    n_steps: int
    losses: Callable[[int], Iterable[Any]]
    save: Callable[[Path], None]
    learning_rate: float
    seed: int
    weight_decay: float = 0.0
    warmup: float = 0.1
    evaluation: Evaluation | None = None

    def is_over(self, log: Sequence[Entry]) -> bool:
        """Return True where all steps are done, or too many evaluations were no better."""
        worth = [entry["eval_worth"] for entry in log if "eval_worth" in entry]
        if self.evaluation and worth:
            n_worse = len(worth) - 1 - worth.index(max(worth))
            if n_worse >= self.evaluation.patience:
                return True
        return sum("loss" in entry for entry in log) >= self.n_steps


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from this seed, and leave the caller's random states as they were."""
    import torch
    from transformers import set_seed

    states = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            set_seed(seed)
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def run(training: Training, folder: Path, signature: str, watch: Watch) -> Sequence[Entry]:
    """Train, leave the files of the weights in a folder, and return the log.

    Checkpoints lie below it under the `signature` of the training, from the last of which the same
    training goes on, on the same machine to the same weights as an uninterrupted one. Whoever has
    noted that the folder is whole calls `forget`.

    Raises RunError where a loss is no number, DiskFailed, and Interrupted where it is to stop.
    """
    home = folder / CHECKPOINTS / signature
    with disk_errors(folder), quietly():
        last = _last_checkpoint(home)
        log = _state(last)["log_history"] if last else []
        if not training.is_over(log):
            trainer = _trainer(training, home, watch)
            trainer.train(resume_from_checkpoint=str(last) if last else None)
            log = trainer.state.log_history
        if not training.is_over(log):
            raise Interrupted
        last = _last_checkpoint(home)
        assert last is not None
        best = _state(last)["best_global_step"] or last.name.rpartition("-")[-1]
        files = shutil.ignore_patterns(*_PASSING)
        shutil.copytree(home / f"checkpoint-{best}", folder, ignore=files, dirs_exist_ok=True)
    return log


def forget(folder: Path) -> None:
    """Remove the checkpoints of a folder whose training is done."""
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)


def _last_checkpoint(home: Path) -> Path | None:
    """Return the checkpoint of the latest step that is whole."""
    whole = [path.parent for path in home.glob(f"checkpoint-*/{_STATE}") if _state(path.parent)]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[-1]), default=None)


def _state(checkpoint: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((checkpoint / _STATE).read_text())
    except ValueError:  # torn
        return {}
    return state


def _trainer(training: Training, home: Path, watch: Watch) -> Any:
    """Return the Trainer that takes the steps. Raises MissingExtra."""
    if find_spec("accelerate") is None:
        raise MissingExtra("training", "tuning", "accelerate")
    from torch.utils.data import DataLoader
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

    evaluation = training.evaluation

    class StepTrainer(Trainer):  # type: ignore[misc]
        def get_train_dataloader(self) -> Any:
            # The Trainer asks a batch for its keys.
            steps = [{"step": number} for number in range(training.n_steps)]
            return DataLoader(steps, batch_size=1, collate_fn=itemgetter(0))

        def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
            model.train()
            total: Any = 0.0
            for loss in training.losses(inputs["step"]):
                loss.backward()
                total = total + loss.detach()
            if not math.isfinite(total):
                raise RunError(f"{watch.name}: the loss is no number: lower learning_rate")
            return total

        def evaluate(self, *_: Any, **__: Any) -> Mapping[str, float]:
            assert evaluation is not None
            self.model.eval()
            metrics = {f"eval_{key}": value for key, value in evaluation.measure().items()}
            self.log(metrics)
            handler = self.callback_handler
            self.control: Any = handler.on_evaluate(self.args, self.state, self.control, metrics)
            return metrics

        def save_model(self, output_dir: Any = None, _internal_call: bool = False) -> None:
            training.save(Path(output_dir))

        def floating_point_ops(self, inputs: Any) -> int:
            return 0

    class Watcher(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            watch.progress.start(watch.name, state.max_steps, state.global_step)
            if state.global_step:
                watch.progress.say(f"{watch.name} resumes after step {state.global_step:,}")

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.is_stopped = watch.stop.wanted  # at least one step is taken each time

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_save = control.should_save or self.is_stopped
            control.should_training_stop = control.should_training_stop or self.is_stopped

        def on_log(self, args: Any, state: Any, control: Any, logs: Any, **_: Any) -> None:
            if "loss" in logs:
                watch.progress.advance(watch.name, f"loss {logs['loss']:.3f}")
            elif "eval_score" in logs:
                epoch = sum("eval_score" in entry for entry in state.log_history)
                score = f"epoch {epoch}: {logs['eval_score']:.3f} on development"
                watch.progress.say(f"{watch.name}: {score}")
                control.should_training_stop = training.is_over(state.log_history)

    n_between = evaluation.steps if evaluation else math.ceil(training.n_steps / _CHECKPOINTS)
    arguments = TrainingArguments(
        output_dir=str(home), max_steps=training.n_steps, logging_steps=1, seed=training.seed,
        learning_rate=training.learning_rate, weight_decay=training.weight_decay,
        warmup_steps=math.ceil(training.warmup * training.n_steps), optim="adamw_torch_fused",
        eval_strategy="steps" if evaluation else "no", eval_steps=n_between,
        save_strategy="steps", save_steps=n_between, save_total_limit=2,
        metric_for_best_model="worth", greater_is_better=True, logging_nan_inf_filter=False,
        use_cpu=training.model.device.type == "cpu", report_to="none", disable_tqdm=True,
    )  # fmt: skip
    trainer = StepTrainer(
        training.model, arguments, eval_dataset=[0] if evaluation else None, callbacks=[Watcher]
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


@contextmanager
def memory_errors(message: str) -> Iterator[None]:
    """Raise RunError with the message in place of an engine's error for lack of memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # of torch, RuntimeErrors
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        raise RunError(message) from error


def has_bf16(device: str) -> bool:
    """Return True where the machine computes in bfloat16 and does not only emulate it."""
    import torch

    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    able = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))
