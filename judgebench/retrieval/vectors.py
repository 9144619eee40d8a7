"""Vectors of whole texts, kept on disk, and those nearest to a query (exact cosines)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from judgebench.files import to_json, write_atomically
from judgebench.models.checkpoint import identify
from judgebench.models.encoder import Encoder, find_encoder, open_encoder
from judgebench.records import content_hash
from judgebench.retrieval.corpus import Corpus

if TYPE_CHECKING:
    from judgebench.stats.arrays import FloatArray, IntArray

_LOG = logging.getLogger("judgebench.models")  # which a run shows with its progress
_TEXTS_AT_ONCE = 256  # documents whose windows are held at a time


def nearest(vectors: FloatArray, queries: FloatArray, k: int) -> IntArray:
    """Places of the `k` rows of `vectors` of the highest inner product with each query, the best
    first; fewer where there are fewer rows. Of equal ones the first.

    (documents, width) and (queries, width) give (queries, k).
    """
    scores = queries @ vectors.T
    k = min(k, len(vectors))
    found = np.sort(np.argpartition(-scores, k - 1, axis=1)[:, :k], axis=1)
    order = np.argsort(-np.take_along_axis(scores, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def embeddings(corpus: Corpus, encoder: Encoder, folder: Path) -> FloatArray:
    """One vector of length 1 for each document, (documents, width), float32.

    They are read from `folder` where the same encoder made them of the same texts before, else
    made and kept there.
    """
    about = to_json(
        {
            "corpus": corpus.content_hash,
            "documents": len(corpus.documents),
            "encoder": identify(str(encoder.folder))["sha256"],
            "max_tokens": encoder.max_tokens,
            "long_texts": "mean over windows",
        }
    )
    path = folder / "embeddings.npz"
    try:
        with np.load(path) as held:
            if str(held["about"]) == about:
                kept: FloatArray = held["vectors"]
                return kept
    except (OSError, ValueError, EOFError, KeyError, BadZipFile):
        pass  # none, lost or torn: made again
    vectors = embed_whole(encoder, [document.text for document in corpus.documents])
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, npz(about=np.array(about), vectors=vectors))
    return vectors


class KeptVectors:
    """The vectors of texts by an encoder, which is opened for a text that is new. Each text gets
    its vector once: they are kept below `folder` by content, some hundreds in a file."""

    def __init__(self, encoder: str, folder: Path) -> None:
        """Raises what finding an encoder raises."""
        self.about = identify(str(find_encoder(encoder)))
        self._name, self._folder = encoder, folder / self.about["sha256"]
        self._encoder: Encoder | None = None
        self._held: dict[str, FloatArray] = {}
        self._unwritten: list[str] = []

    def of(self, texts: Sequence[str]) -> FloatArray:
        """One vector per text, (texts, width), as `embed_whole` makes it."""
        if not self._held:
            for path in self._folder.glob("*.npz"):
                with np.load(path) as kept:
                    self._held |= zip(kept["keys"].tolist(), kept["vectors"], strict=True)
        keys = [content_hash(text) for text in texts]
        found = dict(zip(keys, texts, strict=True))
        new = [key for key in found if key not in self._held]
        if len(new) > _TEXTS_AT_ONCE:
            _LOG.warning("%s texts get their vectors, once", f"{len(new):,}")
        for start in range(0, len(new), _TEXTS_AT_ONCE):
            block = new[start : start + _TEXTS_AT_ONCE]
            self._encoder = self._encoder or open_encoder(self._name)
            made = embed_whole(self._encoder, [found[key] for key in block])
            self._held |= zip(block, made, strict=True)
            self._unwritten += block
            if len(self._unwritten) >= _TEXTS_AT_ONCE:
                self._write()
        return np.stack([self._held[key] for key in keys])

    def _write(self) -> None:
        if keys := self._unwritten:
            self._folder.mkdir(parents=True, exist_ok=True)
            content = npz(keys=np.array(keys), vectors=np.stack([self._held[k] for k in keys]))
            write_atomically(self._folder / f"{content_hash(keys)}.npz", content)
            self._unwritten = []

    def close(self) -> None:
        """Write what is not yet written, and give back encoder and vectors; may be used again."""
        self._write()
        self._encoder, self._held = None, {}


def npz(**arrays: Any) -> bytes:
    """The content of an npz file."""
    content = BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def embed_whole(encoder: Encoder, texts: Sequence[str]) -> FloatArray:
    """One vector per text, (texts, width), float32, of length 1, however long the text is.

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
            # A word begins after a space; the tokens of some vocabularies hold the space before.
            between = (
                i for i in range(end, first, -1)
                if text[starts[i]].isspace() or text[starts[i] - 1].isspace()
            )  # fmt: skip
            end = next(between, end)
        yield text[starts[first] : starts[end] if end < len(starts) else len(text)].strip()
        first = end
