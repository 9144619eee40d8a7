"""Adapters (LoRA): small weights that go on top of a base model, and what belongs to which base.

An adapter is a folder in PEFT's format, with a file beside it that says whose weights it was
trained on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.files import to_json, write_atomically
from judgebench.models.checkpoint import load, sums_of
from judgebench.records import content_hash

CONFIG, BASE = "adapter_config.json", "base.json"
WEIGHTS = "adapter_model.safetensors"


def identify_adapter(folder: Path) -> str:
    """A hash of what an adapter's replies depend on. Raises SetupError where it is none."""
    lacking = [name for name in (CONFIG, WEIGHTS) if not (folder / name).is_file()]
    if lacking:
        raise SetupError(Problem(f"holds no adapter: it lacks {', '.join(lacking)}", str(folder)))
    return content_hash(sums_of([folder / CONFIG, folder / WEIGHTS]))


def note_base(folder: Path, base: Mapping[str, str]) -> None:
    """Write beside an adapter whose weights (`checkpoint.identify`) it was trained on."""
    write_atomically(folder / BASE, to_json(base, indent=1).encode())


def check_base(folder: Path, base: Mapping[str, str]) -> None:
    """Raises SetupError where the adapter says that it was trained on other weights."""
    if not (folder / BASE).is_file():  # made by another tool, which keeps no hash
        return
    own = json.loads((folder / BASE).read_text())
    if _hashes(own) != _hashes(base):
        message = f"is an adapter of {_named(own)}, not of {_named(base)}"
        raise SetupError(Problem(message, str(folder)))


def _hashes(base: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in base.items() if key != "model"}


def _named(base: Mapping[str, str]) -> str:
    known = ", ".join(f"{key} {value[:12]}" for key, value in _hashes(base).items())
    return f"{base['model']} ({known})"


def with_adapter(model: Any, folder: Path, *, merged: bool) -> Any:
    """The loaded base with the adapter on top, as a model of the base's class.

    `merged`: its weights are added to the base's, which is as good and faster in float32, and
    rounds in half precision. Raises SetupError for an adapter of a model of another shape.
    """
    PeftModel = import_peft().PeftModel
    try:
        found = PeftModel.from_pretrained(model, str(folder))
    except Exception as error:  # names and shapes of another architecture, torn weights
        config = json.loads((folder / CONFIG).read_text())
        of, name = config.get("base_model_name_or_path"), model.config.model_type
        first = str(error).strip().splitlines()[0]
        message = f"an adapter of {of} does not fit this model ({name}): {first}"
        raise SetupError(Problem(message, str(folder))) from error
    return found.merge_and_unload().eval() if merged else found.base_model.model.eval()


def merge(base: str, adapter: Path, folder: Path) -> None:
    """Write the base with the adapter added to its weights, in float32, as a model of its own with
    its tokenizer. Raises SetupError."""
    model, tokenizer = load(base, dtype="float32", dense=True)
    with_adapter(model, adapter, merged=True).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def import_peft() -> Any:
    """The package. Raises MissingExtra."""
    try:
        import peft
    except ModuleNotFoundError as error:
        raise MissingExtra("an adapter", "tuning", "peft") from error
    return peft
