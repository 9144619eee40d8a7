"""Tune a model that writes texts, on pairs of what it is asked and what it should write.

After section 4.1 of the paper on proxy tasks, which tunes a model on each task's gold arguments.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from judgebench.errors import Problem, SetupError
from judgebench.files import to_json, write_atomically
from judgebench.learning.trainer import Watch
from judgebench.models.checkpoint import local_path, merge
from judgebench.models.contract import Message, Request
from judgebench.tuning.examples import Texts
from judgebench.tuning.train import ADAPTER, MODEL, Recipe, train
from judgebench.yaml_file import read_models

ABOUT = "generator.json"


class _Turn(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Literal["system", "user", "assistant"]
    content: str


class Pair(BaseModel):
    """A line of a file of pairs; keys besides these are passed over."""

    model_config = ConfigDict(frozen=True)

    messages: tuple[_Turn, ...] = Field(min_length=1)
    target: str = Field(min_length=1)


def read_pairs(path: Path) -> Sequence[Pair]:
    """Raises SetupError with every line that is unsound, and where there is none."""
    if not (pairs := read_models(path, Pair)):
        raise SetupError(Problem("holds no pair to learn from", str(path)))
    return pairs


def tune_generator(
    pairs: Sequence[Pair], model: str, folder: Path, recipe: Recipe, watch: Watch
) -> Mapping[str, Any]:
    """Train the model to write the whole target of each pair, and leave it in the folder: a model
    of its own, `transformers:FOLDER`. Returns facts about the training.

    The training lies in FOLDER.training, and goes on from there where it was interrupted. Raises
    what `train` raises, and SetupError where the folder is there already.
    """
    if folder.exists():
        message = "is there already: name another folder, or remove it"
        raise SetupError(Problem(message, str(folder)))
    base = local_path(model)
    texts, training = Texts(base), folder.with_name(f"{folder.name}.training")
    examples = [
        texts.example(Request("", tuple(Message(t.role, t.content) for t in p.messages)), p.target)
        for p in pairs
    ]
    facts = train([examples], base, recipe, training, watch)
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    if recipe.rank is None:
        shutil.copytree(training / MODEL, part)
    else:
        merge(base, training / ADAPTER, part)
    content = {"base": model, "pairs": len(pairs), **facts}
    write_atomically(part / ABOUT, to_json(content, indent=1).encode())
    part.rename(folder)
    return facts
