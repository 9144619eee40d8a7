"""The training of a language model, for programs of others: data, folds and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import yaml

from judgebench.errors import Problem, SetupError
from judgebench.files import to_json, to_line
from judgebench.learning.learnt import LearntJudge
from judgebench.learning.training import TrainingSet
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.tuning.config import LoraConfig
from judgebench.tuning.curriculum import blocks_of
from judgebench.tuning.export import entry_of, written_whole
from judgebench.tuning.judges import learner_of, open_examination, open_judges
from judgebench.tuning.lora import Lora, recipe_of, rows_of
from judgebench.tuning.train import Recipe

Tool = Literal["trl", "axolotl"]
FOLDS = "folds.json"
_COMMAND = {"trl": "trl sft --config", "axolotl": "axolotl train"}
_LONGEST = 4096  # tokens, where the recipe names no context


def write_for(tool: Tool, bench: Bench, name: str, to: Path, run: RunFolder) -> None:
    """Write a folder with `all.jsonl`, what is learnt from all labels, `fold-1.jsonl` and so on,
    what each fold may learn from, and beside each the settings of the same recipe. `folds.json`
    says which answers each fold learns from and which it judges.

    Unlike ours, their loss is over the whole reply, not over its labels alone. Raises SetupError
    where the judge is no language model that is trained, or the folder is there already.
    """
    entry = entry_of(bench, name)
    if not isinstance(entry, LoraConfig):
        message, found = "is no language model that is trained", entry.model_dump()["learn"]
        raise SetupError(Problem(message, str(bench.file), None, name, found, "learn: lora"))
    of, ordered = {"of": name, "as": "in-sample"}, len(entry.stages) > 1
    # Stages are learnt one after another, each in all of its passes.
    recipe = replace(recipe_of(entry), epochs=1) if ordered else recipe_of(entry)
    settings = (_trl if tool == "trl" else _axolotl)(entry.model, recipe, ordered)
    judges = [*open_examination(bench, run), *open_judges(bench, run)]
    chosen = [j for j in judges if isinstance(j, LearntJudge) and (j.more == of or j.name == name)]
    ids = [answer.item_id for answer in bench.answers if answer.kind == "answer"]
    learner = learner_of(entry.model_copy(update={"rounds": None}), bench, run)
    assert isinstance(learner, Lora)
    folds = {}
    with written_whole(to) as part:
        for cell, train in (each for judge in chosen for each in judge.parts()):
            lines = map(to_line, _lines(tool, learner, entry, train))
            (part / f"{cell.name}.jsonl").write_text("".join(lines), encoding="utf-8")
            said = yaml.safe_dump(settings, sort_keys=False).replace("CELL", cell.name)
            how = f"# In this folder: {_COMMAND[tool]} {cell.name}.yaml\n"
            how += "# The base model must be a folder or a hub name: GGUF files are not read.\n"
            (part / f"{cell.name}.yaml").write_text(how + said, encoding="utf-8")
            learnt = [answer.item_id for answer in train.answers]
            folds[cell.name] = {"learns_from": learnt, "judges": [ids[row] for row in cell.judged]}
        (part / FOLDS).write_text(to_json(folds, indent=1), encoding="utf-8")


def _lines(
    tool: Tool, learner: Lora, entry: LoraConfig, train: TrainingSet
) -> Iterator[Mapping[str, Any]]:
    blocks = blocks_of(train, entry.stages, entry.seed)
    passes = entry.epochs if len(entry.stages) > 1 else 1
    for answer, labels, reason in (
        row for block in blocks for _ in range(passes) for row in rows_of(block.train)
    ):
        for request, reply in learner.written(answer, labels, reason):
            asked = [{"role": m.role, "content": m.content} for m in request.messages]
            said = [{"role": "assistant", "content": reply.text}]
            found = {"prompt": asked, "completion": said}
            yield {
                "item_id": answer.item_id,
                **(found if tool == "trl" else {"messages": asked + said}),
            }


def _trl(model: str, recipe: Recipe, ordered: bool) -> dict[str, Any]:
    """Keys of ScriptArguments, SFTConfig, ModelConfig and DatasetMixtureConfig of trl 1.16."""
    adapter = {
        "use_peft": True, "lora_r": recipe.rank, "lora_alpha": int(recipe.alpha),
        "lora_dropout": 0.0, "lora_target_modules": ["all-linear"],
    }  # fmt: skip
    data = {"path": "json", "data_files": "CELL.jsonl", "columns": ["prompt", "completion"]}
    return {
        "model_name_or_path": model, "datasets": [data], "output_dir": "trained-CELL",
        "completion_only_loss": True, "max_length": recipe.context or _LONGEST, "packing": False,
        **(adapter if recipe.rank else {}),
        **({"train_sampling_strategy": "sequential"} if ordered else {}),
        "learning_rate": recipe.learning_rate, "lr_scheduler_type": "linear", "warmup_steps": 0.1,
        "max_grad_norm": 1.0, "num_train_epochs": recipe.epochs,
        "per_device_train_batch_size": recipe.batch, "seed": recipe.seed, "report_to": "none",
    }  # fmt: skip


def _axolotl(model: str, recipe: Recipe, ordered: bool) -> dict[str, Any]:
    """Keys of the schema of axolotl 0.18."""
    adapter = {
        "adapter": "lora", "lora_r": recipe.rank, "lora_alpha": int(recipe.alpha),
        "lora_dropout": 0.0, "lora_target_linear": True,
    }  # fmt: skip
    data = {"path": "CELL.jsonl", "ds_type": "json", "type": "chat_template"}
    kept = {"shuffle_merged_datasets": False, "curriculum_sampling": True}
    return {
        "base_model": model,
        "datasets": [{**data, "roles_to_train": ["assistant"], "train_on_eos": "turn"}],
        "dataset_prepared_path": "prepared-CELL", "val_set_size": 0, "output_dir": "trained-CELL",
        "sequence_len": recipe.context or _LONGEST, "excess_length_strategy": "drop",
        "sample_packing": False, **(adapter if recipe.rank else {}), **(kept if ordered else {}),
        "learning_rate": recipe.learning_rate, "optimizer": "adamw_torch", "lr_scheduler": "linear",
        "warmup_ratio": 0.1, "weight_decay": 0.0, "max_grad_norm": 1.0,
        "num_epochs": recipe.epochs, "micro_batch_size": recipe.batch,
        "gradient_accumulation_steps": 1, "seed": recipe.seed, "bf16": "auto",
    }  # fmt: skip
