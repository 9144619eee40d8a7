"""Passages for the control case `passages`, after section 3.2.2 of the paper.

Whole documents are found by their embeddings, cut into chunks, and the chunks are reranked by late
interaction, or by a sentence encoder in its place.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.models.checkpoint import identify, sha256_of
from judgebench.ranking.proxy.task import PassagesConfig
from judgebench.retrieval.vectors import Corpus, KeptVectors, nearest
from judgebench.texts import passages_of

if TYPE_CHECKING:
    from judgebench.models.encoder import Encoder
    from judgebench.stats.arrays import FloatArray

_QUERIES_AT_ONCE = 64  # whose passages' token embeddings are held in memory
_PARTS = (".safetensors", ".bin", ".json")


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
        kept = KeptVectors(encoder.name, folder, encoder)
        self._vectors = kept.of(corpus.documents)
        kept.write()

    def retrieve_all(self, queries: Sequence[str]) -> list[list[str]]:
        """The passages for each query, the best first, of equal ones the first; all come from its
        top documents."""
        found: list[list[str]] = []
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            asked = queries[start : start + _QUERIES_AT_ONCE]
            vectors = self._encoder.embed(asked)
            places = nearest(self._vectors, vectors, self._config.documents)
            documents = ([self._corpus.documents[place] for place in own] for own in places)
            most = self._config.characters
            chunks = [
                list(dict.fromkeys(chunk for text in texts for chunk in passages_of(text, most)))
                for texts in documents
            ]
            for own, scores in zip(chunks, self._reranker.scores(asked, chunks), strict=True):
                best = np.argsort(-np.asarray(scores), kind="stable")[: self._config.passages]
                found.append([own[i] for i in best])
        return found

    def describe(self) -> dict[str, Any]:
        """The corpus, the models and the settings of the passages, for a manifest."""
        return {
            "corpus": self._corpus.describe(),
            "encoder": {"name": self._encoder.name, "max_tokens": self._encoder.max_tokens},
            "reranker": dict(self._reranker.describe()),
            **self._config.model_dump(include={"documents", "passages", "characters"}),
        }


class EncoderReranker:
    """The fallback: one vector per passage, scored by its cosine with the query."""

    name = "sentence encoder, no late interaction"

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[FloatArray]:
        """The scores of each query's own passages, higher is nearer.

        Passages and queries are cut to what the encoder takes.
        """
        places = _distinct(passages)
        asked = self._encoder.embed(queries)
        vectors = self._encoder.embed(list(places))
        return [
            vectors[[places[passage] for passage in own]] @ query
            for query, own in zip(asked, passages, strict=True)
        ]

    def describe(self) -> Mapping[str, Any]:
        """Name and weights, for a manifest."""
        return {"name": self.name, **identify(str(self._encoder.folder))}


class ColBERTReranker:
    """Late interaction by the ColBERT weights of a folder or a hub name, through pylate.

    Santhanam et al. (2022), "ColBERTv2", section 3.1. A query longer than the weights' query length
    (32 tokens as a rule) is read whole, as far as the encoder goes, and without the mask tokens
    that fill up short ones: else a clinical case would be scored by its first line.
    Raises MissingExtra without pylate, SetupError where there are no such weights, or where they
    have no projection for late interaction.
    """

    name = "late interaction (ColBERT)"

    def __init__(self, weights: str) -> None:
        try:
            from pylate.models import ColBERT
        except ModuleNotFoundError as error:
            raise MissingExtra("late interaction", "colbert", "pylate") from error
        weights = os.path.expanduser(weights)
        self._about = {"name": self.name, **_identify(weights)}
        try:
            self._model = ColBERT(weights)
        except Exception as error:  # no memory, an unknown architecture, torn weights, ...
            said = " ".join(str(error).split())[:300]
            raise SetupError(_problem(f"cannot be loaded: {said}", weights)) from error
        self._limit = int(getattr(self._model[0].auto_model.config, "max_position_embeddings", 512))
        self._model.document_length = self._limit

    def token_vectors(self, texts: Sequence[str], *, queries: bool = False) -> list[FloatArray]:
        """Every text's token embeddings, (tokens, width), float32, each of length 1."""
        if not queries:
            return list(self._model.encode(list(texts), is_query=False, show_progress_bar=False))
        usual = self._model.query_length
        by_length: dict[int, list[str]] = {}  # the usual one, or the query's own
        for query in dict.fromkeys(texts):
            # One more for the token that marks a query.
            tokens = len(self._model.tokenizer(query, verbose=False)["input_ids"]) + 1
            by_length.setdefault(max(usual, min(tokens, self._limit)), []).append(query)
        found: dict[str, FloatArray] = {}
        try:
            for length, own in by_length.items():
                self._model.query_length = length
                vectors = self._model.encode(own, is_query=True, show_progress_bar=False)
                found.update(zip(own, vectors, strict=True))
        finally:
            self._model.query_length = usual
        return [found[text] for text in texts]

    def scores(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[FloatArray]:
        """The scores of each query's own passages: the sum over the query's tokens of the highest
        cosine with a token of the passage:

        S(q, d) = sum_i max_j Q_i . D_j
        """
        from pylate.scores import colbert_scores_pairwise

        places = _distinct(passages)
        asked = self.token_vectors(queries, queries=True)
        vectors = self.token_vectors(list(places))
        # Pairwise, for pylate's reranker fills shorter passages up with zeros, which would count as
        # tokens where all cosines are negative.
        return [
            colbert_scores_pairwise(
                [query] * len(own), [vectors[places[passage]] for passage in own]
            ).numpy()
            for query, own in zip(asked, passages, strict=True)
        ]

    def describe(self) -> Mapping[str, Any]:
        return self._about


Reranker = ColBERTReranker | EncoderReranker


def _distinct(passages: Sequence[Sequence[str]]) -> dict[str, int]:
    """The place of every passage among all different ones: documents recur between queries."""
    return {p: i for i, p in enumerate(dict.fromkeys(p for own in passages for p in own))}


def _problem(message: str, weights: str) -> Problem:
    allowed = "a folder or a hub name of ColBERT weights"
    return Problem(message, weights, field="late_interaction", allowed=allowed)


def _identify(weights: str) -> dict[str, str]:
    """The entries of `identify`, with the folders below; raises SetupError for weights that are not
    there, or that are a plain encoder's: pylate would project these at random."""
    config = _json_of(weights, "config.json")
    if config is None:
        message = "is no folder of weights and no hub name that can be reached"
        raise SetupError(_problem(message, weights))
    modules = _json_of(weights, "modules.json")
    projects = isinstance(modules, list) and len(modules) > 1 and "Dense" in str(modules[1:])
    if not projects and "HF_ColBERT" not in (config.get("architectures") or []):
        raise SetupError(_problem("holds no projection for late interaction", weights))
    folder = Path(weights)
    if not folder.is_dir():
        return identify(weights)
    files = sorted(p for p in folder.rglob("*") if p.suffix in _PARTS and p.is_file())
    sums = "".join(f"{p.relative_to(folder).as_posix()} {sha256_of(p)}\n" for p in files)
    return {"model": folder.name, "sha256": hashlib.sha256(sums.encode()).hexdigest()[:16]}


def _json_of(weights: str, name: str) -> Any:
    """A file of JSON in a folder or on the hub, None where there is none."""
    from transformers.utils import cached_file

    try:
        found = cached_file(weights, name)
        return json.loads(Path(found).read_bytes()) if found else None
    except (OSError, ValueError):
        return None
