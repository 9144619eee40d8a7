"""A trained evaluator on disk, and one in training: whole at any moment, and known by a signature.

manifest.json            what it is and how training went; written last
model.safetensors        encoder and head of the best epoch
config.json, tokenizer*  what loads the encoder without a network
training.pt, best.safetensors   only while it is being trained: all that the next epoch needs
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from judgebench.errors import DiskFailed, Problem, SetupError
from judgebench.files import to_json, write_atomically

MANIFEST, WEIGHTS = "manifest.json", "model.safetensors"
_STATE, _BEST = "training.pt", "best.safetensors"


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a finished evaluator; None where there is none, or no weights with it."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and (folder / WEIGHTS).is_file() else None


def forget(folder: Path) -> None:
    """Drop the manifest of another evaluator, so that it is never taken for the new one's."""
    with _disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)


def save_state(folder: Path, state: Mapping[str, Any], model: Any, *, best: bool) -> None:
    """Keep what the next epoch needs; `best` keeps the model's weights as the best so far.

    Weights go first: an epoch whose state was not kept is computed again, to the same weights.
    Raises DiskFailed.
    """
    import torch

    temporary = folder / f".{_STATE}.{os.getpid()}.tmp"
    with _disk_errors(folder):
        if best:
            write_atomically(folder / _BEST, _as_safetensors(model))
        try:
            with temporary.open("wb") as file:
                torch.save(dict(state), file)
            os.replace(temporary, folder / _STATE)
        finally:
            temporary.unlink(missing_ok=True)


def load_state(folder: Path, signature: str, device: str) -> dict[str, Any] | None:
    """What `save_state` kept of the evaluator with this signature, None where there is nothing."""
    import torch

    try:
        found = torch.load(folder / _STATE, map_location=device, weights_only=True)
    except Exception:  # none, torn, or of another version: training begins anew
        return None
    same = isinstance(found, dict) and found.get("signature") == signature
    return found if same and (folder / _BEST).is_file() else None


def finish(folder: Path, encoder: Any, tokenizer: Any, manifest: Mapping[str, Any]) -> None:
    """Make the best epoch the evaluator; what only training needed goes. Raises DiskFailed."""
    with _disk_errors(folder):
        encoder.config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        os.replace(folder / _BEST, folder / WEIGHTS)
        content = to_json(manifest, indent=1) + "\n"
        write_atomically(folder / MANIFEST, content.encode("utf-8"))
        (folder / _STATE).unlink(missing_ok=True)


def load_weights(folder: Path, model: Any) -> None:
    """Put a finished evaluator's weights into `model`. Raises SetupError where they do not fit."""
    from safetensors.torch import load_file

    try:
        model.load_state_dict(load_file(folder / WEIGHTS))
    except Exception as error:  # torn, or of another encoder
        said = " ".join(str(error).split())[:300]
        raise SetupError(
            Problem(f"cannot be loaded: {said}; remove it and train again", str(folder / WEIGHTS))
        ) from error


def _as_safetensors(model: Any) -> bytes:
    from safetensors.torch import save

    return bytes(save({k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}))


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DiskFailed(f"cannot write to {folder}: {error.strerror or error}") from error
