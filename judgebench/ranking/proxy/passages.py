"""Passages for the control case `passages`, after section 3.2.2 of the paper.

Whole documents are found by their embeddings, cut into chunks, and the chunks are reranked by late
interaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.ranking.proxy.late_interaction import ColBERTReranker, EncoderReranker, Reranker
from judgebench.ranking.proxy.section import PassagesConfig
from judgebench.retrieval.vectors import Corpus, embed_whole, embeddings, nearest
from judgebench.texts import passages_of

if TYPE_CHECKING:
    from judgebench.models.encoder import Encoder

_QUERIES_AT_ONCE = 64  # whose passages' token embeddings are held in memory


class PassageRetriever:
    """Finds passages for a query.

    The defaults of `config` are section 3.2.2 of the paper: the top five documents in chunks of 300
    characters, the top three chunks. `folder` keeps the embeddings of the documents. `encoder` is
    opened by the name in `config` where none is given. Raises what opening an encoder or
    late-interaction weights raises.
    """

    def __init__(
        self, config: PassagesConfig, corpus: Corpus, folder: Path, encoder: Encoder | None = None
    ) -> None:
        if encoder is None:
            from judgebench.models.encoder import open_encoder

            encoder = open_encoder(config.encoder)
        self._config, self._corpus, self._encoder = config, corpus, encoder
        self._reranker: Reranker = (
            ColBERTReranker(config.late_interaction)
            if config.late_interaction
            else EncoderReranker(encoder)
        )
        self._vectors = embeddings(corpus, encoder, folder)

    def retrieve_all(self, queries: Sequence[str]) -> list[list[str]]:
        """The passages for each query, the best first, of equal ones the first; all come from its
        top documents."""
        found: list[list[str]] = []
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            asked = queries[start : start + _QUERIES_AT_ONCE]
            vectors = embed_whole(self._encoder, asked)
            places = nearest(self._vectors, vectors, self._config.documents)
            chunks = [self._chunks(own) for own in places.tolist()]
            for own, scores in zip(chunks, self._reranker.scores(asked, chunks), strict=True):
                best = np.argsort(-np.asarray(scores), kind="stable")[: self._config.passages]
                found.append([own[i] for i in best])
        return found

    def _chunks(self, places: Sequence[int]) -> list[str]:
        """The different chunks of these documents, in their order."""
        texts = (self._corpus.documents[place].text for place in places)
        most = self._config.characters
        return list(dict.fromkeys(c for text in texts for c in passages_of(text, most)))

    def describe(self) -> dict[str, Any]:
        """What the passages rest on, for a manifest."""
        return {
            "corpus": self._corpus.describe(),
            "encoder": {"name": self._encoder.name, "max_tokens": self._encoder.max_tokens},
            "reranker": dict(self._reranker.describe()),
            **self._config.model_dump(include={"documents", "passages", "characters"}),
        }
