"""Scorers that compare the tokens of answer and reference as an encoder sees them: BERTScore and
MoverScore."""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.models.encoder import (
    Encoder,
    Tokens,
    config_of,
    find_beside,
    find_encoder,
    open_encoder,
)
from judgebench.records import Answer, content_hash
from judgebench.scorers.config import BertScoreConfig, MoverScoreConfig
from judgebench.scorers.pairs import Pair, PairScorer, about_of, cut_of, weights_of
from judgebench.scorers.references import references_of
from judgebench.scorers.scorer import Scored

if TYPE_CHECKING:
    from judgebench.stats.arrays import FloatArray

_HELD = 1 << 30  # bytes of vectors
_PUNCTUATION = frozenset(string.punctuation)
# The layers that the authors of BERTScore recommend (github.com/Tiiiger/bert_score).
_RECOMMENDED: Mapping[str, int] = {
    "bert-base-uncased": 9, "roberta-base": 10, "roberta-large": 17,
    "allenai/scibert_scivocab_uncased": 8, "microsoft/deberta-xlarge-mnli": 40,
}  # fmt: skip


class TokenVectors:
    """What an encoder, opened at the first text, sees of texts. `made` turns states (layers,
    tokens, width) into vectors (tokens, width). A text is embedded once: the latest are held, up to
    1 GiB."""

    def __init__(
        self, config: BertScoreConfig | MoverScoreConfig, beside: Path,
        layers: Callable[[int], Sequence[int]], made: Callable[[FloatArray], FloatArray],
    ) -> None:  # fmt: skip
        """`layers` are chosen by how many there are. Raises what finding an encoder raises, and
        SetupError for a layer that it lacks."""
        self._name = find_beside(config.encoder, beside)
        folder = find_encoder(self._name)
        depth = config_of(folder).num_hidden_layers
        self._layers, self._made = list(layers(depth)), made
        if min(self._layers) < 0 or max(self._layers) > depth:
            field = "layer" if isinstance(config, BertScoreConfig) else "layers"
            message = f"the encoder {config.encoder} has {depth} layers"
            raise SetupError(Problem(message, field=field, found=str(getattr(config, field))))
        self.about = weights_of(folder) | {"layers": self._layers}
        self._encoder: Encoder | None = None
        self._held: dict[str, Tokens] = {}
        self._bytes = 0

    def of(self, texts: Iterable[str]) -> Mapping[str, Tokens]:
        """By text; `states` are the vectors (tokens, width)."""
        wanted = list(dict.fromkeys(texts))
        found = {text: self._held.pop(text) for text in wanted if text in self._held}
        new = [text for text in wanted if text not in found]
        read = self.encoder.tokens([self._led(text) for text in new], self._layers)
        for text, one in zip(new, read, strict=True):
            found[text] = replace(one, states=self._made(one.states))
            self._bytes += found[text].states.nbytes
        self._held |= found  # at the end: those that were asked for longest ago go first
        while self._bytes > _HELD:
            self._bytes -= self._held.pop(next(iter(self._held))).states.nbytes
        return found

    @property
    def encoder(self) -> Encoder:
        """Opened where it is not, without the layers above those that are read."""
        if self._encoder is None:
            self._encoder = open_encoder(self._name)
            for part in ("encoder", "transformer"):
                stack = getattr(getattr(self._encoder.model, part, None), "layer", None)
                if stack is not None:
                    del stack[max(self._layers) :]
        return self._encoder

    def rarity(self, texts: Sequence[str]) -> Callable[[int], float]:
        """The idf of a token among these texts, as far as the encoder reads them."""
        cut = {"truncation": True, "max_length": self.encoder.max_tokens}
        read = self.encoder.tokenizer([self._led(text) for text in texts], **cut) if texts else {}
        return idf(list(map(set, read.get("input_ids", ()))))

    def _led(self, text: str) -> str:
        """BERTScore reads a first word as any other: after a space, where a vocabulary tells."""
        tells = getattr(self.encoder.tokenizer, "add_prefix_space", None) is False
        return f" {text.strip()}" if tells else text.strip()

    def close(self) -> None:
        """Give back encoder and vectors; may be used again."""
        self._encoder, self._held, self._bytes = None, {}, 0

    def compared(
        self, pairs: Sequence[Pair], compare: Callable[[Tokens, Tokens], Scored]
    ) -> Sequence[Scored]:
        """One score for each pair; none where the encoder reads no word of a text."""
        seen = self.of(text for answer, true in pairs for text in (answer.text, true))
        found = []
        for said, true in ((seen[answer.text], seen[true]) for answer, true in pairs):
            unread = said if not said.begins.any() else true
            if unread.begins.any():
                one = compare(said, true)
                found.append(replace(one, reason=one.reason or cut_of(said.cut, true.cut)))
            else:
                which = "answer" if unread is said else "reference"
                found.append(Scored.none(f"the encoder reads no word of the {which}"))
        return found


def bertscore(config: BertScoreConfig, answers: Sequence[Answer], beside: Path) -> PairScorer:
    """BERTScore (Zhang et al. 2020, section 3), without idf and rescaling: each token is matched to
    the most similar one of the other text; precision is the mean over the answer's tokens, recall
    over the reference's. The tokens that begin and end a text can be matched, and do not count.
    Raises what `about_of` and `TokenVectors` raise."""
    about = about_of(config, answers, "torch", "transformers")
    layer = config.layer

    def layers(depth: int) -> Sequence[int]:
        return [_RECOMMENDED.get(config.encoder, depth) if layer is None else layer]

    vectors = TokenVectors(config, beside, layers, lambda states: unit(states[0]))

    def compare(said: Tokens, true: Tokens) -> Scored:
        ends, similar = vectors.encoder.ends, said.states @ true.states.T
        precision = float(similar.max(axis=1)[~np.isin(said.ids, ends)].mean())
        recall = float(similar.max(axis=0)[~np.isin(true.ids, ends)].mean())
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return Scored({"precision": precision, "recall": recall, "f1": f1}[config.measure])

    about |= {"measure": config.measure, "idf": False, **vectors.about}
    return PairScorer(config, about, lambda pairs: vectors.compared(pairs, compare), vectors.close)


def moverscore(config: MoverScoreConfig, answers: Sequence[Answer], beside: Path) -> PairScorer:
    """MoverScore (Zhao et al. 2019, section 3): 1 minus the least effort that turns the answer's
    n-grams into the reference's. A word's vector holds the power means of the last `layers`; its
    weight is its idf among the different answers of the data, or among the references. Subwords
    after the first and punctuation are passed over.
    Raises what `about_of` and `TokenVectors` raise."""
    about = about_of(config, answers, "torch", "transformers", "ot")

    def layers(depth: int) -> Sequence[int]:
        return range(depth + 1 - config.layers, depth + 1)

    vectors = TokenVectors(config, beside, layers, power_means)
    columns = config.reference_columns
    corpora = {
        "answer": sorted({answer.text for answer in answers if answer.text.strip()}),
        "reference": sorted({text for a in answers for text in references_of(a, columns)}),
    }
    rarity: dict[str, Callable[[int], float]] = {}

    def compare(said: Tokens, true: Tokens) -> Scored:
        if not rarity:
            rarity.update({which: vectors.rarity(texts) for which, texts in corpora.items()})
        weighed = []
        for which, text in (("answer", said), ("reference", true)):
            words = np.flatnonzero(_words(vectors.encoder.tokenizer, text))
            weights = np.array([rarity[which](i) for i in text.ids[words].tolist()])
            weighed += [*ngrams(text.states[words], weights, config.ngram)]
            if not len(weighed[-1]):
                return Scored.none(f"every word of the {which} is in all texts: none has a weight")
        return Scored(1 - movers_distance(*weighed))

    about |= {"ngram": config.ngram, "idf": content_hash(corpora), "POT": version("POT")}
    about |= vectors.about
    return PairScorer(config, about, lambda pairs: vectors.compared(pairs, compare), vectors.close)


def _words(tokenizer: Any, text: Tokens) -> Any:
    """(tokens,): whether it is the first of a word, or the special one at either end."""
    pieces = tokenizer.convert_ids_to_tokens(text.ids.tolist())
    words = np.array([piece.lstrip("Ġ▁") not in _PUNCTUATION for piece in pieces])
    return (text.begins & words) | np.isin(np.arange(len(words)), (0, len(words) - 1))


def unit(vectors: FloatArray) -> FloatArray:
    """Each brought to length 1, (..., width)."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    longer: FloatArray = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return longer


def power_means(states: FloatArray) -> FloatArray:
    """Minimum, mean and maximum over the layers, side by side, of states brought to length 1: the
    power means with the exponents -inf, 1 and inf. (layers, tokens, width) gives (tokens, 3 width).
    Source: Zhao et al. (2019), section 3.2."""
    states = unit(states)
    return np.concatenate([states.min(axis=0), states.mean(axis=0), states.max(axis=0)], axis=-1)


def idf(documents: Sequence[set[int]]) -> Callable[[int], float]:
    """log((n + 1) / (k + 1)) of a token that is in k of n documents.

    >>> rarity = idf([{1, 2}, {1, 3}])
    >>> rarity(1), round(rarity(2), 3), round(rarity(9), 3)
    (0.0, 0.405, 1.099)
    """
    counts = Counter(token for document in documents for token in document)
    return lambda token: math.log((len(documents) + 1) / (counts[token] + 1))


def ngrams(vectors: FloatArray, weights: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Those with a weight: the weighed sums of the vectors of n words in a row, brought to length
    1, and the sums of their weights. (words, width), (words,) give (n-grams, width), (n-grams,);
    fewer than n words are one n-gram. Source: Zhao et al. (2019), section 3.1."""
    width = max(len(weights) - n + 1, 1)
    windows = [slice(i, i + width) for i in range(min(n, len(weights)))]
    weighed = vectors.astype(np.float64) * weights[:, None]
    sums = np.sum([weighed[window] for window in windows], axis=0)
    totals = np.sum([weights[window] for window in windows], axis=0)
    return unit(sums[totals > 0]), totals[totals > 0]


def movers_distance(
    x: FloatArray, x_weights: FloatArray, y: FloatArray, y_weights: FloatArray
) -> float:
    """The earth mover's distance of weighted points (n, width), (n,), (m, width), (m,): the least
    sum of mass times Euclidean distance. The masses on either side add up to 1.

    >>> ends = np.array([[0.0], [4.0]])
    >>> movers_distance(ends, np.array([3.0, 1.0]), ends, np.array([1.0, 1.0]))
    1.0
    """
    import ot
    from scipy.spatial.distance import cdist

    shares = [weights / weights.sum() for weights in (x_weights, y_weights)]
    return float(ot.emd2(*shares, cdist(x, y), numItermax=10**7))
