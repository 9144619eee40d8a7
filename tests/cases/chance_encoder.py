"""An encoder without a model: a text's vector is drawn at random, seeded by its words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class ChanceEncoder:
    """Every text has a random vector, which its own words seed."""

    folder: Path
    max_tokens: int = 8
    name: str = "fake"
    embedded: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> Any:
        self.embedded += texts
        rows = [np.random.default_rng(list(t.encode())).normal(size=16) for t in texts]
        vectors = np.array(rows, dtype=np.float32).reshape(-1, 16)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def chance_encoder(folder: Path) -> Any:
    """One whose weights lie in this new folder."""
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    return ChanceEncoder(folder)
