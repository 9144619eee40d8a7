"""A trained evaluator: which decision each argument leads to, as Verdicts.

On top of an encoder, a class is decided from the mean over all tokens, by one linear layer. An
option is weighed by the mean over its own tokens, by one layer that all options share; the encoder
has read text, options and argument together, so one pass decides. A layer over places would have to
learn what a place means.

Passages scored against a query: by late interaction, or by a sentence encoder in its place.

Passages for the control case `passages`, after section 3.2.2 of the paper.

Whole documents are found by their embeddings, cut into chunks, and the chunks are reranked by late
interaction.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.judges.judge import Task
from judgebench.models.checkpoint import identify, sha256_of
from judgebench.models.encoder import Encoder, by_length, mean_over, open_encoder
from judgebench.ranking.proxy.examples import (
    Batch,
    Collator,
    Input,
    InputMaker,
    second_in_test,
)
from judgebench.ranking.proxy.section import PassagesConfig
from judgebench.ranking.proxy.task import ProxyTask, TaskInstance
from judgebench.records import Answer, Status, Verdict
from judgebench.retrieval.vectors import Corpus, embed_whole, embeddings, nearest
from judgebench.texts import passages_of

if TYPE_CHECKING:
    from judgebench.stats.arrays import FloatArray

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


_PARTS = (".safetensors", ".bin", ".json")


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
    """What `identify` says, with the folders below; raises SetupError for weights that are not
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


MANIFEST, WEIGHTS = "manifest.json", "model.safetensors"
_BATCH = 32
_DROPOUT = 0.1


@dataclass
class ProxyEvaluator:
    """A Judge that reads an instance's text and an argument and decides: `nli-llm-trained-0`.

    `manifest` says how it was trained; the `signature` changes with anything that it was trained
    with. `instances` are those of its task, by item.
    """

    name: str
    signature: str
    manifest: dict[str, Any]
    encoder: Encoder
    model: Any
    instances: Mapping[str, TaskInstance]

    @classmethod
    def load(cls, folder: Path, task: ProxyTask) -> ProxyEvaluator:
        """The evaluator that `train` left in `folder`; on a GPU where there is one.

        Raises SetupError where there is none, or none that is whole.
        """
        from safetensors.torch import load_file

        manifest = read_manifest(folder)
        if manifest is None:
            raise SetupError(Problem("holds no evaluator whose training is finished", str(folder)))
        encoder = open_encoder(str(folder), manifest["max_tokens"], bare=True)
        model = build_model(encoder, manifest["labels"], manifest["multiple_choice"])
        try:
            model.load_state_dict(load_file(folder / WEIGHTS))
        except Exception as error:  # torn, or of another encoder
            said = " ".join(str(error).split())[:300]
            message = f"cannot be loaded: {said}; remove it and train again"
            raise SetupError(Problem(message, str(folder / WEIGHTS))) from error
        instances = {i.item_id: i for i in task.instances}
        name, signature = manifest["evaluator"], manifest["signature"]
        return cls(name, signature, manifest, encoder, model.eval(), instances)

    def describe(self) -> Mapping[str, Any]:
        """How it was trained."""
        return self.manifest

    def close(self) -> None:
        """Its engine is released with it."""

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        """One verdict per argument, in their order; those of one system are decided together.

        The Answers are those of `argument_answer` without documents. A label is the class or the
        place decided, under the task's name as the metric, with the probability of each that the
        instance has. The `reason` tells a cut: `cut`, or `argument cut` where some of the argument
        was lost.
        """
        maker = InputMaker(self.encoder.tokenizer, self.encoder.max_tokens)
        for _, same in groupby(tasks, key=lambda task: task.answer.system):
            yield from self._decided([task.answer for task in same], maker)

    def _decided(self, answers: Sequence[Answer], maker: InputMaker) -> Iterator[Verdict]:
        """The verdicts on the arguments of one system."""
        kind, classes, metric = (self.manifest[key] for key in ("kind", "labels", "task"))
        instances = [self.instances[a.metadata["instance"]] for a in answers]
        texts = zip(instances, answers, strict=True)
        inputs = maker.make(instances, [second_in_test(kind, i, a.text) for i, a in texts])
        began = time.perf_counter()
        probabilities = self._probabilities(inputs)
        latency = (time.perf_counter() - began) / len(inputs)
        for answer, one, row in zip(answers, inputs, probabilities, strict=True):
            labels = list(map(str, range(1, len(row) + 1))) if one.options else classes
            by_label = dict(zip(labels, row, strict=True))
            yield Verdict(
                item_id=answer.item_id,
                content_hash=answer.content_hash,
                judge=self.name,
                signature=self.signature,
                status=Status.OK,
                labels={metric: max(labels, key=by_label.__getitem__)},
                probabilities={metric: by_label},
                reason="argument cut" if one.argument_cut else "cut" if one.cut else "",
                latency=latency,
            )

    def _probabilities(self, inputs: Sequence[Input]) -> list[list[float]]:
        """For each input, one probability per class, or per option that it has."""
        import torch

        collate = Collator(self.encoder.tokenizer, self.encoder.device)
        found: list[list[float]] = [[] for _ in inputs]
        with torch.inference_mode():
            for places in by_length([len(one.ids) for one in inputs], _BATCH):
                batch = collate([inputs[place] for place in places])
                rows = logits(self.model, batch).double().softmax(dim=-1).tolist()
                for place, row in zip(places, rows, strict=True):
                    found[place] = row[: len(inputs[place].options) or None]
        return found


def build_model(encoder: Encoder, labels: Sequence[str], multiple_choice: bool) -> Any:
    """A torch module with the parts `encoder` and `head`; the head's weights are random."""
    from torch import nn

    config = encoder.model.config
    head = nn.Linear(config.hidden_size, 1 if multiple_choice else len(labels))
    nn.init.normal_(head.weight, std=getattr(config, "initializer_range", 0.02))
    nn.init.zeros_(head.bias)
    parts = {"encoder": encoder.model, "dropout": nn.Dropout(_DROPOUT), "head": head}
    return nn.ModuleDict(parts).to(encoder.device)


def logits(model: Any, batch: Batch) -> Any:
    """(inputs, labels), or (inputs, most options) with -inf where an input has no such option."""
    hidden = model["encoder"](**batch.inputs).last_hidden_state
    if batch.options is None:
        return model["head"](model["dropout"](mean_over(hidden, batch.inputs["attention_mask"])))
    spans = batch.options.to(hidden.dtype)
    means = (spans @ hidden) / spans.sum(dim=-1, keepdim=True).clamp(min=1)
    weighed = model["head"](model["dropout"](means)).squeeze(-1)
    return weighed.masked_fill(~batch.present, float("-inf"))


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a finished evaluator; None where there is none, or no weights with it."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and (folder / WEIGHTS).is_file() else None
