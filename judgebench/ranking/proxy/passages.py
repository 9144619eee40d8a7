"""Passages for the control case `passages`, after section 3.2.2 of the paper.

Whole documents are found by their embeddings (exact cosines), cut into chunks, and the chunks are
reranked by late interaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from judgebench.backends.checkpoint import identify
from judgebench.files import to_json, write_atomically
from judgebench.ranking.proxy.corpus import Corpus
from judgebench.ranking.proxy.late_interaction import ColBERTReranker, EncoderReranker, Reranker
from judgebench.ranking.proxy.section import PassagesConfig
from judgebench.texts import passages_of

if TYPE_CHECKING:
    from judgebench.ranking.proxy.encoder import Encoder
    from judgebench.stats.arrays import FloatArray, IntArray

_QUERIES_AT_ONCE = 64  # whose passages' token embeddings are held in memory
_TEXTS_AT_ONCE = 256  # documents whose windows are held at a time


class PassageRetriever:
    """Finds passages for a query.

    The defaults of `config` are section 3.2.2 of the paper: the top five documents in chunks of 300
    characters, the top three chunks. `folder` keeps the embeddings of the documents. `encoder` is
    opened by the name in `config` where none is given. Raises what opening an encoder or
    late-interaction weights raises.
    """

    def __init__(
        self,
        config: PassagesConfig,
        corpus: Corpus,
        folder: Path,
        encoder: Encoder | None = None,
    ) -> None:
        if encoder is None:
            from judgebench.ranking.proxy.encoder import open_encoder

            encoder = open_encoder(config.encoder)
        self._config = config
        self._corpus = corpus
        self._encoder = encoder
        self._reranker: Reranker = (
            ColBERTReranker(config.late_interaction)
            if config.late_interaction
            else EncoderReranker(encoder)
        )
        self._vectors = embeddings(corpus, encoder, folder)

    def retrieve_all(self, queries: Sequence[str]) -> list[list[str]]:
        """The passages for each query, the best first; all come from its top documents."""
        found: list[list[str]] = []
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            found += self._retrieve(queries[start : start + _QUERIES_AT_ONCE])
        return found

    def _retrieve(self, queries: Sequence[str]) -> list[list[str]]:
        asked = embed_whole(self._encoder, queries)
        places = nearest(self._vectors, asked, self._config.documents)
        chunks = [self._chunks(own) for own in places.tolist()]
        scores = self._reranker.scores(queries, chunks)
        k = self._config.passages
        return [_best(own, marks, k) for own, marks in zip(chunks, scores, strict=True)]

    def _chunks(self, places: Sequence[int]) -> list[str]:
        """The different chunks of these documents, in their order."""
        texts = (self._corpus.documents[place].text for place in places)
        return list(
            dict.fromkeys(c for text in texts for c in passages_of(text, self._config.characters))
        )

    def describe(self) -> dict[str, Any]:
        """What the passages rest on, for a manifest."""
        corpus = self._corpus
        return {
            "corpus": {
                "documents": len(corpus.documents),
                "content": corpus.content_hash,
                "duplicates": corpus.duplicates,
                "empty": corpus.empty,
            },
            "encoder": {"name": self._encoder.name, "max_tokens": self._encoder.max_tokens},
            "reranker": dict(self._reranker.describe()),
            **self._config.model_dump(include={"documents", "passages", "characters"}),
        }


def _best(passages: Sequence[str], scores: FloatArray, k: int) -> list[str]:
    """The `k` passages of the highest scores; equal ones in the order given."""
    order = sorted(range(len(passages)), key=lambda i: (-float(scores[i]), i))
    return [passages[i] for i in order[:k]]


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
    content = BytesIO()
    np.savez(content, about=np.array(about), vectors=vectors)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content.getvalue())
    return vectors


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
            between = (i for i in range(end, first, -1) if _begins_word(text, starts[i]))
            end = next(between, end)
        yield text[starts[first] : starts[end] if end < len(starts) else len(text)].strip()
        first = end


def _begins_word(text: str, start: int) -> bool:
    """Whether a token that begins at the character `start` begins a word; the tokens of some
    vocabularies hold the space before."""
    return text[start].isspace() or text[start - 1].isspace()
