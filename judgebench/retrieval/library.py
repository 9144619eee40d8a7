"""The passages of a corpus, found for a question."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgebench.models.checkpoint import identify
from judgebench.models.weights import WEIGHTS, fetch
from judgebench.retrieval.corpus import Corpus, Document
from judgebench.retrieval.words import WordSearch, words_of
from judgebench.texts import passages_of

_LOG = logging.getLogger("judgebench.models")  # which a run shows with its progress
WORDS = "words"  # the embedder that needs no model

Nearest = Callable[[str, int], list[int]]  # a question, how many: their places, the best first


@dataclass
class Library:
    """The documents of `corpus`, cut into passages of at most `characters` between sentences, or
    between words where a sentence is longer.

    `embedder` names an encoder (`models.encoder`), or is `words` (`retrieval.words`). It is
    opened with the first question; vectors are kept in `folder`.
    """

    corpus: Corpus
    embedder: str
    characters: int
    folder: Path
    _passages: list[str] = field(default_factory=list, init=False, repr=False)
    _nearest: Nearest | None = field(default=None, init=False, repr=False)

    def find(self, question: str, k: int, besides: Collection[str] = ()) -> tuple[str, ...]:
        """At most `k` passages, the best first, none of them in `besides`; none at all for a
        question without a word. Raises what opening an encoder raises."""
        if not words_of(question):
            return ()
        if self._nearest is None:
            every = (passages_of(d.text, self.characters) for d in self.corpus.documents)
            self._passages = list(dict.fromkeys(passage for own in every for passage in own))
            self._nearest = self._opened()
        places = self._nearest(question, k + len(besides))
        found = (self._passages[place] for place in places)
        return tuple([passage for passage in found if passage not in besides][:k])

    def _opened(self) -> Nearest:
        if self.embedder == WORDS:
            return WordSearch(self._passages).nearest
        from judgebench.files import disk_errors
        from judgebench.models.encoder import open_encoder
        from judgebench.retrieval.vectors import embed_whole, embeddings, nearest

        encoder = open_encoder(self.embedder)
        held = Corpus(tuple(Document(str(i), text) for i, text in enumerate(self._passages)))
        folder = self.folder / f"{Path(self.embedder).name}-{held.content_hash}"
        if not folder.exists():
            n = len(self._passages)
            _LOG.warning("%s passages to look things up in get their vectors, once", f"{n:,}")
        with disk_errors(folder):
            vectors = embeddings(held, encoder, folder)
        return lambda question, k: nearest(vectors, embed_whole(encoder, [question]), k)[0].tolist()

    def describe(self) -> dict[str, Any]:
        """What is found depends on this."""
        about = {"corpus": self.corpus.describe(), "embedder": about_embedder(self.embedder)}
        return {**about, "characters": self.characters}

    def close(self) -> None:
        """Give back the encoder and the vectors; another question opens them again."""
        self._nearest = None


def about_embedder(name: str) -> dict[str, Any]:
    """What is near to a text depends on this: the weights of an encoder, or that words count."""
    if name == WORDS:
        return {"name": WORDS}
    return dict(identify(str(fetch(name)) if name in WEIGHTS else name))
