import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chance_encoder import chance_encoder

from judgebench.errors import MissingExtra
from judgebench.judges.retrieval import Corpus
from judgebench.ranking.examples import ColBERTReranker, EncoderReranker, PassageRetriever
from judgebench.ranking.task import PassagesConfig


class FakeEncoder:
    """Embeds a text by how often each of the letters a and b stands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked.append(list(texts))
        vectors = np.array([[t.count("a"), t.count("b")] for t in texts], dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_fallback_scores_each_query_with_its_own_passages_by_cosine(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder(tmp_path)
    scores = EncoderReranker(encoder).scores(["a", "b"], [["b", "ab", "a"], ["ab"]])
    half = np.sqrt(0.5)
    assert scores[0] == pytest.approx(np.array([0, half, 1]))
    assert scores[1] == pytest.approx(np.array([half]))
    assert encoder.asked == [["a", "b"], ["b", "ab", "a"]]  # no passage twice


def test_the_fallback_says_that_it_is_no_late_interaction(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    encoder: Any = FakeEncoder(tmp_path)
    about = EncoderReranker(encoder).describe()
    assert about["name"] == "sentence encoder, no late interaction"
    (tmp_path / "model.safetensors").write_bytes(b"others")
    assert EncoderReranker(encoder).describe()["sha256"] != about["sha256"]


def test_without_pylate_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pylate", None)
    monkeypatch.setitem(sys.modules, "pylate.models", None)
    with pytest.raises(MissingExtra, match=r"\[colbert\]"):
        ColBERTReranker("colbert-ir/colbertv2.0")


def test_many_queries_are_answered_in_their_order(tmp_path: Path) -> None:
    held = Corpus(tuple(f"text {i}" for i in range(7)))
    fake = chance_encoder(tmp_path / "encoder")
    config = PassagesConfig(corpus="-", documents=1, passages=1, characters=500)
    retriever = PassageRetriever(config, held, tmp_path / "index", fake)
    queries = [held.documents[i % 7] for i in range(150)]
    assert retriever.retrieve_all(queries) == [[query] for query in queries]
    assert retriever.retrieve_all([]) == []
