"""A model that writes arguments, tuned on the gold arguments of a task: `tune generator`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgebench.files import read_lines, to_json, write_atomically
from judgebench.learning.trainer import Watch, forget
from judgebench.models.checkpoints import local_path, merge
from judgebench.models.contract import Message, Request
from judgebench.tuning.config import LoraConfig
from judgebench.tuning.examples import Texts
from judgebench.tuning.train import ADAPTER, train
from judgebench.tuning.tuned import written_whole

ABOUT = "generator.json"


def tune_generator(
    pairs: Path, config: LoraConfig, folder: Path, watch: Watch
) -> Mapping[str, Any]:
    """Train a model to write the whole `target` of each line of a JSONL file after its `messages`,
    and leave it in the folder: a model of its own, `transformers:FOLDER`. Returns facts about the
    training, which goes on where it was interrupted.

    Raises what `train` raises, and SetupError where the folder is there already.
    """
    base, training = local_path(config.model), folder.with_name(f"{folder.name}.training")
    with written_whole(folder) as part:
        texts, examples = Texts(base), []
        for _, pair in read_lines(pairs):
            messages = tuple(Message(**message) for message in pair["messages"])
            examples.append(texts.example(Request("", messages), pair["target"]))
        facts = train([examples], config, training, watch)
        merge(base, training / ADAPTER, part)
        content = {"base": config.model, "pairs": len(examples), **facts}
        write_atomically(part / ABOUT, to_json(content, indent=1).encode())
    forget(training / ADAPTER)
    return facts
