"""Documents found by their embeddings: exact inner products in FAISS, vectors kept on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.backends.checkpoint import identify
from judgebench.errors import MissingExtra
from judgebench.files import to_json, write_atomically
from judgebench.ranking.proxy.retrieval.corpus import Document, corpus_hash

if TYPE_CHECKING:
    from judgebench.ranking.proxy.encoder import Encoder
    from judgebench.stats.arrays import FloatArray, IntArray

_TEXTS_AT_ONCE = 256  # documents whose windows are held at a time


class DocumentIndex:
    """Every document's embedding, searched without approximation.

    `vectors` is (documents, width) of float32, each row of length 1, so that the inner product is
    the cosine. Raises MissingExtra without FAISS.
    """

    def __init__(self, vectors: FloatArray, encoder: Encoder) -> None:
        self._encoder = encoder
        self._index = _import_faiss().IndexFlatIP(vectors.shape[1])
        self._index.add(vectors)

    def search(self, queries: Sequence[str], k: int) -> tuple[FloatArray, IntArray]:
        """Cosines and places of the `k` nearest documents of each query, the best first.

        Both are (queries, k), or as wide as there are documents where these are fewer.
        """
        k = min(k, self._index.ntotal)
        scores, places = self._index.search(embed_whole(self._encoder, queries), k)
        return scores, places


def open_index(documents: Sequence[Document], encoder: Encoder, folder: Path) -> DocumentIndex:
    """The index of `documents`; their embeddings are read from `folder` where the same encoder
    made them of the same texts before, else made and kept there."""
    _import_faiss()  # before anything takes time
    return DocumentIndex(_vectors(documents, encoder, folder), encoder)


def _vectors(documents: Sequence[Document], encoder: Encoder, folder: Path) -> FloatArray:
    about = {
        "corpus": corpus_hash(documents),
        "documents": len(documents),
        "encoder": identify(str(encoder.folder))["sha256"],
        "max_tokens": encoder.max_tokens,
        "long_texts": "mean over windows",
    }
    manifest, path = folder / "embeddings.json", folder / "embeddings.npy"
    if _is_kept(manifest, about):
        try:
            kept: FloatArray = np.load(path)
            return kept
        except (OSError, ValueError, EOFError):
            pass  # lost or torn: made again
    vectors = embed_whole(encoder, [document.text for document in documents])
    folder.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.npy")
    try:
        np.save(temporary, vectors)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    write_atomically(manifest, to_json(about, indent=2).encode())
    return vectors


def _is_kept(manifest: Path, about: dict[str, Any]) -> bool:
    try:
        return bool(json.loads(manifest.read_bytes()) == about)
    except (OSError, ValueError):
        return False


def embed_whole(encoder: Encoder, texts: Sequence[str]) -> FloatArray:
    """One vector a text, (texts, width), float32, of length 1, however long the text is.

    A text longer than the encoder takes is cut into windows of about equal length, and its vector
    is the mean of theirs, brought to length 1 again.
    """
    found = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        windows = [windows_of(encoder, t) for t in texts[start : start + _TEXTS_AT_ONCE]]
        vectors = encoder.embed([window for own in windows for window in own])
        ends = np.cumsum([len(own) for own in windows])
        means = np.stack([part.mean(axis=0) for part in np.split(vectors, ends[:-1])])
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        found.append(means / np.maximum(lengths, np.finfo(np.float32).tiny))
    return np.concatenate(found).astype(np.float32) if found else encoder.embed([])


def windows_of(encoder: Encoder, text: str) -> list[str]:
    """`text` in as few pieces as the encoder can take whole, of about equal numbers of tokens.

    A cut falls between words, within a word only where one is longer than a window.
    """
    tokens = encoder.tokenizer(
        text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )["offset_mapping"]
    room = encoder.max_tokens - encoder.tokenizer.num_special_tokens_to_add()
    if len(tokens) <= room:
        return [text]
    size = -(-len(tokens) // -(-len(tokens) // room))
    return [window for window in _cut(text, [start for start, _ in tokens], size) if window]


def _cut(text: str, starts: Sequence[int], size: int) -> Iterator[str]:
    """Windows of at most `size` tokens, which begin at the characters `starts`."""
    first = 0
    while first < len(starts):
        end = min(first + size, len(starts))
        if end < len(starts):
            between = (i for i in range(end, first, -1) if _begins_word(text, starts[i]))
            end = next(between, end)
        yield text[starts[first] : starts[end] if end < len(starts) else len(text)].strip()
        first = end


def _begins_word(text: str, start: int) -> bool:
    """Whether a token that begins at the character `start` begins a word; the tokens of some
    vocabularies hold the space before."""
    return text[start].isspace() or text[start - 1].isspace()


def _import_faiss() -> Any:
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise MissingExtra("an index of documents", "proxy", "faiss-cpu") from error
    return faiss
