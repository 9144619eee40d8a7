from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chance_encoder import chance_encoder

from judgebench.judges.retrieval import KeptVectors, nearest


@pytest.fixture
def fake(tmp_path: Path) -> Any:
    return chance_encoder(tmp_path / "encoder")


def test_the_nearest_are_those_of_all_inner_products(fake: Any) -> None:
    vectors = fake.embed([f"text {i}" for i in range(200)])
    queries = fake.embed([f"query {i}" for i in range(30)])
    expected = np.argsort(-(queries @ vectors.T), axis=1)[:, :7]
    assert nearest(vectors, queries, 7).tolist() == expected.tolist()
    assert nearest(vectors[:3], queries, 5).shape == (30, 3)
    assert nearest(vectors[:3], queries[:0], 5).shape == (0, 3)
    assert nearest(vectors[[4, 4, 4]], queries[:1], 2).tolist() == [[0, 1]]


def test_each_text_is_embedded_once_by_the_same_weights(fake: Any, tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(5)]

    def embedded(texts: list[str]) -> list[str]:
        fake.embedded.clear()
        kept = KeptVectors("fake", tmp_path / "run", fake)
        assert (kept.of(texts) == fake.embed(texts)).all()
        del fake.embedded[-len(texts) :]
        kept.close()
        return list(fake.embedded)

    assert embedded(texts) == texts
    assert embedded(texts) == []
    assert embedded([*texts, "text 1", "text 5"]) == ["text 5"]
    (fake.folder / "model.safetensors").write_bytes(b"others")
    assert embedded(texts) == texts
