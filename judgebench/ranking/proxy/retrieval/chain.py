"""The retrieval chain: documents by embedding, cut into chunks, reranked, the best few kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebench.ranking.proxy.config import PassagesConfig
from judgebench.ranking.proxy.retrieval.corpus import Corpus, Document, corpus_hash
from judgebench.ranking.proxy.retrieval.index import open_index
from judgebench.ranking.proxy.retrieval.late_interaction import (
    ColBERTReranker,
    EncoderReranker,
    Reranker,
)
from judgebench.stress.probes.arguments import passages_of

if TYPE_CHECKING:
    from judgebench.ranking.proxy.encoder import Encoder
    from judgebench.stats.arrays import FloatArray

_QUERIES_AT_ONCE = 64  # whose passages' token embeddings are held in memory


class PassageRetriever:
    """Finds passages for a query; may stand as `retrieve` in `probes.arguments.control_case`.

    The defaults of `config` are section 3.2.2 of the paper: the top five documents in chunks of 300
    characters, the top three chunks. `folder` keeps the embeddings of the documents. `encoder` is
    opened by the name in `config` where none is given. Raises what opening an encoder, an index or
    late-interaction weights raises.
    """

    def __init__(
        self,
        config: PassagesConfig,
        documents: Sequence[Document],
        folder: Path,
        encoder: Encoder | None = None,
    ) -> None:
        if encoder is None:
            from judgebench.ranking.proxy.encoder import open_encoder

            encoder = open_encoder(config.encoder)
        self._config = config
        self._documents = documents
        self._encoder = encoder
        self._reranker: Reranker = (
            ColBERTReranker(config.late_interaction)
            if config.late_interaction
            else EncoderReranker(encoder)
        )
        self._index = open_index(documents, encoder, folder)

    def __call__(self, query: str) -> list[str]:
        """The passages for one query, the best first."""
        return self.retrieve_all([query])[0]

    def retrieve_all(self, queries: Sequence[str]) -> list[list[str]]:
        """The passages for each query, the best first; all come from its top documents."""
        found: list[list[str]] = []
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            found += self._retrieve(queries[start : start + _QUERIES_AT_ONCE])
        return found

    def _retrieve(self, queries: Sequence[str]) -> list[list[str]]:
        _, places = self._index.search(queries, self._config.documents)
        chunks = [self._chunks(own) for own in places.tolist()]
        scores = self._reranker.scores(queries, chunks)
        k = self._config.passages
        return [_best(own, marks, k) for own, marks in zip(chunks, scores, strict=True)]

    def _chunks(self, places: Sequence[int]) -> list[str]:
        """The different chunks of these documents, in their order."""
        texts = (self._documents[place].text for place in places)
        return list(
            dict.fromkeys(c for text in texts for c in passages_of(text, self._config.characters))
        )

    def describe(self) -> dict[str, Any]:
        """What the passages rest on, for a manifest."""
        left_out = {}
        if isinstance(self._documents, Corpus):
            left_out = {"duplicates": self._documents.duplicates, "empty": self._documents.empty}
        return {
            "corpus": {
                "documents": len(self._documents),
                "content": corpus_hash(self._documents),
                **left_out,
            },
            "encoder": {"name": self._encoder.name, "max_tokens": self._encoder.max_tokens},
            "reranker": dict(self._reranker.describe()),
            **self._config.model_dump(include={"documents", "passages", "characters"}),
        }


def _best(passages: Sequence[str], scores: FloatArray, k: int) -> list[str]:
    """The `k` passages of the highest scores; equal ones in the order given."""
    order = sorted(range(len(passages)), key=lambda i: (-float(scores[i]), i))
    return [passages[i] for i in order[:k]]
