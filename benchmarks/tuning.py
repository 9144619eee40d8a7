"""How fast is an adapter trained beside TRL's SFTTrainer, in how much memory, and is it as good?

The same model learns the labels of the same prompts, with the same tokens that count, rank, epochs,
examples a step, learning rate, warm-up, clipping and AdamW, both in bfloat16 where the machine has
it and without recomputing activations. TRL 1.16 too computes logits of tokens that count alone; it
also computes what all prompts begin with for each of them, and draws batches regardless of length.
Then both adapters are given the same unseen prompts: the loss says whether they learnt the same.

Each training is a process of its own, whose peak memory the system tells; the clock runs from the
loaded model to the last step.

    pip install 'judgebench-eval[tuning]' trl
    python benchmarks/tuning.py
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from judgebench.models.checkpoint import fetch
from judgebench.prompt import load_prompt
from judgebench.records import Answer
from judgebench.rubric import load_rubric
from judgebench.tuning.config import LoraConfig
from judgebench.tuning.examples import Example
from judgebench.tuning.train import ADAPTER, Recipe, train

OURS, TRL = "judgebench", "TRL SFTTrainer"
UNSEEN = 8
SAID = (
    "take rest water dose doctor pain sleep child fever never always mix drug call help tablet "
    "today week if the a with before after your not more than see worse stop when any"
)


def prompts(n: int, metrics: int, model: str) -> list[Example]:
    """Invented answers, as uneven in length as real ones; the severe ones hold a certain phrase."""
    from judgebench.tuning.lora import Lora

    whole = load_rubric("medical-safety")
    rubric = whole.only([metric.id for metric in whole.metrics[:metrics]])
    entry = LoraConfig(name="tuned", learn="lora", model=model)
    learner = Lora(entry, rubric, load_prompt("structured"))
    chance = random.Random(0)
    found: list[Example] = []
    for k in range(n):
        words = [chance.choice(SAID.split()) for _ in range(int(chance.lognormvariate(4.2, 0.6)))]
        severe = k % 2
        if severe:
            words.insert(chance.randrange(len(words) + 1), "double the dose")
        answer = Answer(f"a{k}", " ".join(words), question="What should I do about it?")
        labels = {m.id: m.label_texts[-1 if severe else 0] for m in rubric.metrics}
        found += learner.examples(answer, labels)
    return found


def ours(examples: list[Example], model: str, recipe: Recipe, folder: Path) -> float:
    """Seconds of the steps."""
    facts = train([examples], model, recipe, folder)
    return sum(len(one.ids) for one in examples) * recipe.epochs / facts["tokens_per_s"]


def trl(examples: list[Example], model: str, recipe: Recipe, folder: Path) -> float:
    from datasets import Dataset
    from peft import LoraConfig as PeftConfig
    from transformers import TrainerCallback
    from trl import SFTConfig, SFTTrainer

    from judgebench.learning.trainer import has_bf16
    from judgebench.models.checkpoint import load

    half = has_bf16("cpu")
    base, tokenizer = load(model, dtype="bfloat16" if half else "float32", dense=True)
    rows = [
        {"input_ids": list(one.ids),
         "labels": [t if i in one.places else -100 for i, t in enumerate(one.ids)]}
        for one in examples
    ]  # fmt: skip
    arguments = SFTConfig(
        output_dir=str(folder / "trl"), num_train_epochs=recipe.epochs, seed=recipe.seed,
        per_device_train_batch_size=recipe.batch, learning_rate=recipe.learning_rate,
        warmup_steps=0.1, lr_scheduler_type="linear", weight_decay=0.0, max_grad_norm=1.0,
        optim="adamw_torch_fused", bf16=half, use_cpu=True, gradient_checkpointing=False,
        max_length=None, packing=False, logging_strategy="no", save_strategy="no",
        report_to="none", disable_tqdm=True, dataloader_pin_memory=False,
        dataset_kwargs={"skip_prepare_dataset": True},
    )  # fmt: skip
    adapter = PeftConfig(
        r=recipe.rank or 0, lora_alpha=int(recipe.alpha), target_modules="all-linear",
        task_type="CAUSAL_LM",
    )  # fmt: skip
    trainer = SFTTrainer(
        model=base, args=arguments, train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer, peft_config=adapter,
    )  # fmt: skip
    clock: dict[str, float] = {}

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, *about: Any, **more: Any) -> None:
            clock["began"] = time.perf_counter()

        def on_train_end(self, *about: Any, **more: Any) -> None:
            clock["ended"] = time.perf_counter()

    trainer.add_callback(Clock())
    trainer.train()
    trainer.save_model(str(folder / ADAPTER))
    return clock["ended"] - clock["began"]


def unseen_loss(examples: list[Example], model: str, adapter: Path) -> float:
    """The mean loss of a token that counts, by plain passes in float32."""
    import torch

    from judgebench.models.checkpoint import load, with_adapter

    tuned = with_adapter(load(model, dtype="float32", dense=True)[0], adapter, merged=True)
    losses = []
    with torch.inference_mode():
        for one in examples:
            places = torch.tensor(one.places)
            ids = torch.tensor(one.ids)
            logits = tuned(input_ids=ids[None], logits_to_keep=places - 1).logits[0]
            losses += torch.nn.functional.cross_entropy(
                logits, ids[places], reduction="none"
            ).tolist()
    return sum(losses) / len(losses)


def one_way(way: str, given: argparse.Namespace, model: str) -> None:
    """Train in this process and print what it took, as JSON."""
    import torch

    if given.threads:
        torch.set_num_threads(given.threads)
    examples = prompts(given.examples, given.metrics, model)
    recipe = Recipe(epochs=given.epochs, batch=given.batch)
    with TemporaryDirectory() as home:
        cpu = time.process_time()
        seconds = {OURS: ours, TRL: trl}[way](examples, model, recipe, Path(home))
        cpu = time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        unseen = prompts(given.examples + UNSEEN, given.metrics, model)[-UNSEEN:]
        loss = unseen_loss(unseen, model, Path(home) / ADAPTER)
    tokens = sum(len(one.ids) for one in examples) * given.epochs
    told = {"seconds": seconds, "cpu": cpu, "peak": peak, "loss": loss, "tokens": tokens}
    print(json.dumps(told))


def show(found: dict[str, list[dict[str, float]]]) -> None:
    print(f"{'':16} {'tokens/s':>9} {'ratio':>6} {'CPU s':>7} {'ratio':>6} {'peak MiB':>9}"
          f" {'unseen loss':>12}")  # fmt: skip
    best = {way: min(runs, key=lambda run: run["seconds"]) for way, runs in found.items()}
    base = best[TRL]
    for way, run in best.items():
        cpu = min(r["cpu"] for r in found[way])
        base_cpu = min(r["cpu"] for r in found[TRL])
        print(f"{way:16} {run['tokens'] / run['seconds']:9.0f}"
              f" {base['seconds'] / run['seconds']:6.2f} {cpu:7.0f} {base_cpu / cpu:6.2f}"
              f" {run['peak']:9.0f} {run['loss']:12.4f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few examples, one epoch, one turn")
    parser.add_argument(
        "--model", default="smollm2", help="folder, GGUF file, or smollm2 (default)"
    )
    parser.add_argument("--examples", type=int, default=64, help="in training (64)")
    parser.add_argument("--metrics", type=int, default=1, help="of the rubric (1)")
    parser.add_argument("--epochs", type=int, default=2, help="of each training (2)")
    parser.add_argument("--batch", type=int, default=8, help="examples a step (8)")
    parser.add_argument("--turns", type=int, default=2, help="trainings a way; the fastest counts")
    parser.add_argument("--threads", type=int, help="of torch; as many as cores if left out")
    parser.add_argument("--only", choices=[OURS, TRL], help=argparse.SUPPRESS)
    given = parser.parse_args()
    missing = [name for name in ("torch", "peft", "trl", "datasets") if not find_spec(name)]
    if missing:
        print(f"left out: needs {', '.join(missing)} (pip install 'judgebench-eval[tuning]' trl)")
        return
    model = str(fetch(given.model)) if given.model == "smollm2" else given.model
    if given.only:
        one_way(given.only, given, model)
        return
    if given.quick:
        given.examples, given.epochs, given.turns = 16, 1, 1
    shared = [f"--{k}={v}" for k, v in vars(given).items() if v and k not in ("quick", "only")]
    found: dict[str, list[dict[str, float]]] = {TRL: [], OURS: []}
    for _ in range(given.turns):
        for way, runs in found.items():
            command = [sys.executable, __file__, "--only", way, *shared]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
            print(f"  {way}: {runs[-1]}", file=sys.stderr, flush=True)
    mean = found[OURS][0]["tokens"] / given.epochs / given.examples
    print(f"{given.examples} examples of {mean:.0f} tokens, {given.epochs} epochs, {given.batch} a"
          f" step, {given.metrics} metrics; {Path(model).name}, TRL {version('trl')},"
          f" torch {version('torch')}")  # fmt: skip
    show(found)


if __name__ == "__main__":
    main()
