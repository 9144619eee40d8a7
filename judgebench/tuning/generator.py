"""A model that writes arguments, tuned on the gold arguments of a task: `tune generator`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.files import read_lines, to_json, write_atomically
from judgebench.learning.trainer import Watch
from judgebench.models.checkpoints import local_path, merge
from judgebench.models.contract import Message, Request
from judgebench.tuning.examples import Texts
from judgebench.tuning.train import ADAPTER, MODEL, Recipe, train

ABOUT = "generator.json"


def tune_generator(
    pairs: Path, model: str, folder: Path, recipe: Recipe, watch: Watch
) -> Mapping[str, Any]:
    """Train the model to write the whole `target` of each line of a JSONL file after its
    `messages`, and leave it in the folder: a model of its own, `transformers:FOLDER`. Returns facts
    about the training, which goes on where it was interrupted.

    Raises what `train` raises, and SetupError where the folder is there already.
    """
    if folder.exists():
        message = "is there already: name another folder, or remove it"
        raise SetupError(Problem(message, str(folder)))
    base = local_path(model)
    texts, training = Texts(base), folder.with_name(f"{folder.name}.training")
    examples = []
    for _, pair in read_lines(pairs):
        messages = tuple(Message(**message) for message in pair["messages"])
        examples.append(texts.example(Request("", messages), pair["target"]))
    facts = train([examples], base, recipe, training, watch)
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    if recipe.rank is None:
        shutil.copytree(training / MODEL, part)
    else:
        merge(base, training / ADAPTER, part)
    content = {"base": model, "pairs": len(examples), **facts}
    write_atomically(part / ABOUT, to_json(content, indent=1).encode())
    part.rename(folder)
    return facts
