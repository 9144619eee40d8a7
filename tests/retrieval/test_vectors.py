import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chance_encoder import chance_encoder
from hypothesis import given
from hypothesis import strategies as st

from judgebench.retrieval.vectors import (
    Corpus,
    Document,
    embed_whole,
    embeddings,
    nearest,
    windows_of,
)


class PieceTokenizer:
    """Tokens are pieces of words of at most three letters; two special tokens stand around them."""

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        return {"offset_mapping": [m.span() for m in re.finditer(r"\S{1,3}", text)]}

    def num_special_tokens_to_add(self) -> int:
        return 2


@dataclass
class FakeEncoder:
    """Embeds a text by how often each of the letters a, b and c stands in it."""

    max_tokens: int = 8
    tokenizer: PieceTokenizer = field(default_factory=PieceTokenizer)
    seen: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> Any:
        self.seen += texts
        counts = [[text.count(letter) + 1e-6 for letter in "abc"] for text in texts]
        vectors = np.array(counts, dtype=np.float32).reshape(-1, 3)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def n_tokens(text: str) -> int:
    return len(PieceTokenizer()(text)["offset_mapping"])


@given(st.text(alphabet="ab cd\n", max_size=120), st.integers(3, 12))
def test_windows_hold_the_whole_text_in_pieces_that_fit(text: str, most: int) -> None:
    windows = windows_of(FakeEncoder(max_tokens=most), text)  # type: ignore[arg-type]
    assert "".join("".join(windows).split()) == "".join(text.split())
    assert all(n_tokens(window) <= most - 2 for window in windows)


@given(st.lists(st.sampled_from(["a", "bb", "ccc", "abcd", "abcabcab"]), min_size=1), st.data())
def test_windows_never_cut_a_word_that_fits(text: list[str], data: st.DataObject) -> None:
    # 8 letters are 3 tokens; windows of about equal length may be no shorter than that.
    encoder: Any = FakeEncoder(max_tokens=data.draw(st.integers(8, 20)))
    assert " ".join(windows_of(encoder, " ".join(text))).split() == text


def test_windows_are_of_about_equal_length() -> None:
    encoder: Any = FakeEncoder(max_tokens=12)
    assert [n_tokens(w) for w in windows_of(encoder, "a " * 11)] == [6, 5]
    assert windows_of(encoder, " a b ") == [" a b "]


def test_a_long_text_is_the_mean_of_its_windows_at_length_one() -> None:
    encoder: Any = FakeEncoder(max_tokens=4)  # two tokens a window
    vectors = embed_whole(encoder, ["a a b b", "c", "a a a a"])
    assert encoder.seen == ["a a", "b b", "c", "a a", "a a"]
    half = np.sqrt(0.5)
    assert vectors == pytest.approx(np.array([[half, half, 0], [0, 0, 1], [1, 0, 0]]), abs=1e-5)
    assert vectors.dtype == np.float32
    assert embed_whole(encoder, []).shape == (0, 3)


def test_many_texts_are_embedded_in_their_order() -> None:
    encoder: Any = FakeEncoder(max_tokens=4)
    texts = ["abc"[i % 3] * (1 + i % 5) for i in range(700)]
    assert embed_whole(encoder, texts).argmax(axis=1).tolist() == [i % 3 for i in range(700)]


@pytest.fixture
def fake(tmp_path: Path) -> Any:
    return chance_encoder(tmp_path / "encoder")


def corpus(n: int) -> Corpus:
    return Corpus(tuple(Document(str(i), f"text {i}") for i in range(n)))


def test_the_nearest_are_those_of_all_inner_products(fake: Any) -> None:
    vectors = fake.embed([f"text {i}" for i in range(200)])
    queries = fake.embed([f"query {i}" for i in range(30)])
    expected = np.argsort(-(queries @ vectors.T), axis=1)[:, :7]
    assert nearest(vectors, queries, 7).tolist() == expected.tolist()
    assert nearest(vectors[:3], queries, 5).shape == (30, 3)
    assert nearest(vectors[:3], queries[:0], 5).shape == (0, 3)
    assert nearest(vectors[[4, 4, 4]], queries[:1], 2).tolist() == [[0, 1]]


def test_a_second_opening_embeds_nothing_and_a_change_everything(fake: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run" / "index"
    first = embeddings(corpus(5), fake, folder)

    def embedded(corpus: Corpus, encoder: Any) -> int:
        encoder.embedded.clear()
        embeddings(corpus, encoder, folder)
        return len(encoder.embedded)

    assert embedded(corpus(5), fake) == 0
    assert (embeddings(corpus(5), fake, folder) == first).all()
    assert embedded(corpus(6), fake) == 6
    assert embedded(corpus(6), replace(fake, max_tokens=16)) == 6
    assert embedded(corpus(6), fake) == 6
    (fake.folder / "model.safetensors").write_bytes(b"others")
    assert embedded(corpus(6), fake) == 6
    (folder / "embeddings.npz").write_bytes(b"torn")
    assert embedded(corpus(6), fake) == 6
    assert embedded(corpus(6), fake) == 0
    assert sorted(p.name for p in folder.iterdir()) == ["embeddings.npz"]
