"""How fast is an evaluator trained beside the plain transformers Trainer, and is it as good?

The same encoder learns the same instances with their gold arguments, with the same epochs, batch
size, learning rate, warm-up, weight decay and most tokens; both keep a checkpoint an epoch and end
with that of the highest development score. The Trainer has AutoModelForSequenceClassification and
its own collator, which pads to the longest of a batch, and draws batches regardless of length. The
clock runs from the loading of the encoder to the finished evaluator. One repetition a seed, in
which all take turns.

judgebench uses the Trainer too, but without dropout of attention weights, which bars fused kernels,
and on batches of like length that are made beforehand. The row of a plain Trainer without this
dropout tells what comes of either.

    pip install 'judgebench-eval[proxy]'
    python benchmarks/proxy_training.py --data-folder DATA
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from statistics import mean, median, stdev
from tempfile import TemporaryDirectory
from typing import Any

from jinja2 import Template

from judgebench.models.checkpoints import find_encoder
from judgebench.prompt import Prompt
from judgebench.ranking.task import (
    EvaluatorConfig,
    ProxyTask,
    Split,
    TaskInstance,
    TrainingConfig,
)
from judgebench.ranking.task_file import load_task, sample_task

OURS, TRAINER, BARE_TRAINER = "judgebench", "Trainer", "Trainer, no attention dropout"
TASK = "misinformation"
Way = Callable[[ProxyTask, EvaluatorConfig, int, Path], float]


@dataclass(frozen=True)
class Trained:
    """One training: seconds, CPU seconds of all threads, and the share right on the development
    split at its best epoch."""

    seconds: float
    cpu: float
    score: float


def invented(n: int) -> ProxyTask:
    """Claims and arguments of words without meaning, as uneven in length as real ones."""
    chance = random.Random(0)
    labels = ("yes", "no")
    signs = {"yes": ("rises", "helps", "works"), "no": ("falls", "harms", "fails")}
    splits: list[Split] = ["train"] * (n * 3 // 4) + ["development"] * (n - n * 3 // 4)
    instances = []
    for k, split in enumerate(splits):
        label = labels[k % 2]
        words = [f"w{chance.randrange(200)}" for _ in range(int(chance.lognormvariate(3.6, 0.7)))]
        words += chance.sample(signs[label], 2)
        chance.shuffle(words)
        claim = f"claim {k} on w{chance.randrange(200)}"
        instances.append(TaskInstance(f"i{k}", claim, label, " ".join(words), split))
    prompt = Prompt("none", "", "argument", "", Template(""))
    return ProxyTask("invented", "Invented claims", labels, instances, prompt)


def ours(task: ProxyTask, config: EvaluatorConfig, seed: int, folder: Path) -> float:
    from judgebench.ranking.evaluator import read_manifest, train
    from judgebench.ranking.examples import EvaluatorPlan

    train(EvaluatorPlan(task, "expert-trained", config, seed), folder)
    manifest = read_manifest(folder)
    assert manifest is not None
    return float(manifest["development_score"])


def trainer(task: ProxyTask, config: EvaluatorConfig, seed: int, folder: Path) -> float:
    return _by_trainer(task, config, seed, folder)


def bare_trainer(task: ProxyTask, config: EvaluatorConfig, seed: int, folder: Path) -> float:
    return _by_trainer(task, config, seed, folder, attention_probs_dropout_prob=0.0)


def _by_trainer(
    task: ProxyTask, config: EvaluatorConfig, seed: int, folder: Path, **changed: float
) -> float:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer

    encoder = find_encoder(config.encoder)
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    splits: tuple[Split, ...] = ("train", "development")
    data = [_rows(task, split, tokenizer, config.training.max_tokens) for split in splits]
    trainer = Trainer(
        model_init=lambda: AutoModelForSequenceClassification.from_pretrained(
            encoder, num_labels=len(task.labels), **changed
        ),
        args=_arguments(config.training, seed, folder),
        train_dataset=data[0],
        eval_dataset=data[1],
        processing_class=tokenizer,
        compute_metrics=lambda p: {
            "right": float((p.predictions.argmax(-1) == p.label_ids).mean())
        },
    )
    trainer.train()
    return float(trainer.evaluate()["eval_right"])


def _rows(task: ProxyTask, split: Split, tokenizer: Any, most: int | None) -> list[dict[str, Any]]:
    found = [i for i in task.of(split) if i.argument.strip()]
    made = tokenizer(
        [i.text for i in found], [i.argument for i in found], truncation=True, max_length=most
    )
    labels = [task.labels.index(i.label) for i in found]
    return [
        {"labels": label, **{name: made[name][n] for name in made}}
        for n, label in enumerate(labels)
    ]


def _arguments(training: TrainingConfig, seed: int, folder: Path) -> Any:
    from transformers import TrainingArguments

    return TrainingArguments(
        output_dir=str(folder), seed=seed, num_train_epochs=training.epochs,
        per_device_train_batch_size=training.batch_size,
        per_device_eval_batch_size=2 * training.batch_size,
        learning_rate=training.learning_rate, weight_decay=training.weight_decay,
        warmup_steps=training.warmup, max_grad_norm=1.0, lr_scheduler_type="linear",
        eval_strategy="epoch", save_strategy="epoch", save_total_limit=1,
        load_best_model_at_end=True, metric_for_best_model="eval_right", greater_is_better=True,
        logging_strategy="epoch", report_to="none", disable_tqdm=True,
        dataloader_pin_memory=False,
    )  # fmt: skip


WAYS: dict[str, Way] = {TRAINER: trainer, BARE_TRAINER: bare_trainer, OURS: ours}


def timed(task: ProxyTask, config: EvaluatorConfig, seeds: int) -> dict[str, list[Trained]]:
    """All trainings by way, one a seed; the ways take turns."""
    found: dict[str, list[Trained]] = {way: [] for way in WAYS}
    for seed in range(seeds):
        for way, by in WAYS.items():
            with TemporaryDirectory() as folder, redirect_stdout(StringIO()):
                began, cpu = time.perf_counter(), time.process_time()
                with redirect_stderr(StringIO()):
                    score = by(task, config, seed, Path(folder))
                seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
            found[way].append(Trained(seconds, cpu, score))
            print(f"  seed {seed}: {found[way][-1]} by {way}", file=sys.stderr, flush=True)
    return found


def show(found: dict[str, list[Trained]], examples: int) -> None:
    """Examples a second, the ratio to the plain Trainer, and the development scores."""
    print(f"{'':30} {'examples a second':>24} {'ratio':>6} {'CPU s':>7}  development score")
    base = median(t.seconds for t in found[TRAINER])
    for way, trained in found.items():
        pace = sorted(examples / t.seconds for t in trained)
        scores = [t.score for t in trained]
        spread = f" (sd {stdev(scores):.3f})" if len(scores) > 1 else ""
        seconds = median(t.seconds for t in trained)
        cpu = median(t.cpu for t in trained)
        shown = f"{median(pace):.1f} ({pace[0]:.1f}-{pace[-1]:.1f})"
        print(f"{way:30} {shown:>24} {base / seconds:6.2f} {cpu:7.1f}  {mean(scores):.3f}{spread}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few instances, one epoch, one seed")
    parser.add_argument("--encoder", default="minilm", help="folder, hub name, or minilm (default)")
    parser.add_argument("--data-folder", type=Path, help=f"where the data of {TASK} lies")
    parser.add_argument("--seeds", type=int, default=3, help="trainings a way (3)")
    parser.add_argument("--epochs", type=int, default=5, help="of each training (5)")
    parser.add_argument("--threads", type=int, help="of torch; as many as cores if left out")
    given = parser.parse_args()
    missing = [name for name in ("torch", "transformers", "accelerate") if not find_spec(name)]
    if missing:
        sys.exit(f"this needs {', '.join(missing)}: pip install 'judgebench-eval[proxy]'")
    import torch

    if given.threads:
        torch.set_num_threads(given.threads)
    epochs, seeds = (1, 1) if given.quick else (given.epochs, given.seeds)
    if given.data_folder is None:
        task = invented(48 if given.quick else 600)
    else:
        task = load_task(TASK, data_folder=given.data_folder)
        task = sample_task(task, {"train": 32, "development": 16} if given.quick else {}, 0)
    task = replace(task, instances=[i for i in task.instances if i.split != "test"])
    training = TrainingConfig(epochs=epochs, patience=epochs, max_tokens=512)
    config = EvaluatorConfig(encoder=given.encoder, training=training)
    n = sum(bool(i.argument.strip()) for i in task.of("train"))
    print(f"{task.title}, {n} instances in training, {epochs} epochs, batches of"
          f" {training.batch_size}, {seeds} seeds; {Path(given.encoder).name},"
          f" torch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)  # fmt: skip
    show(timed(task, config, seeds), n * epochs)
    if not given.data_folder:
        print("invented claims: say with --data-folder where real ones lie")


if __name__ == "__main__":
    main()
