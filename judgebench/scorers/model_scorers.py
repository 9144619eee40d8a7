"""Scorers by models: BERTScore and MoverScore, which compare the tokens of answer and reference as
an encoder sees them; BARTScore; classifiers and regressors; and how likely a model finds a text.
"""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.models import open_backend
from judgebench.models.checkpoints import (
    Encoder,
    Tokens,
    config_of,
    find_beside,
    find_encoder,
    identify,
    open_encoder,
    quietly,
    tokenizer_of,
)
from judgebench.models.contract import (
    Before,
    Completions,
    Drawn,
    Draws,
    Message,
    TokenScorer,
    weigher_of,
)
from judgebench.records import Answer, content_hash
from judgebench.scorers.config import SCORERS, Better, LikelihoodConfig, SemanticConfig
from judgebench.scorers.scorer import (
    EMPTY_ANSWER,
    NO_QUESTION,
    NO_REFERENCE,
    Pair,
    PairScorer,
    Scored,
    references_of,
    require_column,
    texts_in,
)

if TYPE_CHECKING:
    from judgebench.stats.arrays import FloatArray


_PAIRS = 256  # answers that share references: these are embedded once
_PUNCTUATION = frozenset(string.punctuation)
_PACKAGES = {"torch": "torch", "transformers": "transformers", "ot": "POT"}  # by module
# The layers that the authors of BERTScore recommend (github.com/Tiiiger/bert_score).
_RECOMMENDED: Mapping[str, int] = {
    "bert-base-uncased": 9, "roberta-base": 10, "roberta-large": 17,
    "allenai/scibert_scivocab_uncased": 8, "microsoft/deberta-xlarge-mnli": 40,
}  # fmt: skip


def semantic(config: SemanticConfig, answers: Sequence[Answer], beside: Path) -> PairScorer:
    """A model that reads texts; a folder is seen from `beside`.

    Raises MissingExtra where a package is not installed, and SetupError for weights that are not
    there, for a layer that they lack and for a label that they do not have."""
    if lacking := [name for module, name in _PACKAGES.items() if find_spec(module) is None]:
        raise MissingExtra(f"the scorer {config.scorer}", "semantic", " and ".join(lacking))
    model = find_beside(config.model, beside, "model")
    if config.scorer == "moverscore":
        return _moverscore(model, answers)
    kinds = {"bertscore": _bertscore, "bartscore": _bartscore, "learned": _learned}
    return kinds[config.scorer](config, model)


def _config(model: str) -> Any:
    return config_of(find_encoder(model, "model"), "model")


def _about(scorer: str, model: str, **settings: Any) -> dict[str, Any]:
    """All that the numbers depend on: the weights, and the version of what reads texts for them."""
    weights = identify(str(find_encoder(model, "model")))
    transformers = {"transformers": version("transformers")}
    return {"scorer": scorer, "references": "max", **settings, **weights, **transformers}


@dataclass
class TokenVectors:
    """The vectors of texts by an encoder that is opened at the first text. `combine` turns states
    (layers, tokens, width) into vectors (tokens, width)."""

    model: str
    layers: Sequence[int]
    combine: Callable[[FloatArray], FloatArray]

    @cached_property
    def encoder(self) -> Encoder:
        """Opened where it is not."""
        return open_encoder(self.model)

    def of(self, texts: Iterable[str]) -> Mapping[str, Tokens]:
        """By text; `states` are the vectors (tokens, width)."""
        different = list(dict.fromkeys(texts))
        read = self.encoder.tokens([self._led(text) for text in different], self.layers)
        return {
            text: replace(tokens, states=self.combine(tokens.states))
            for text, tokens in zip(different, read, strict=True)
        }

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
        """Give back the encoder; may be used again."""
        self.__dict__.pop("encoder", None)

    def scorer(
        self, about: Mapping[str, Any], of: Callable[[Tokens, Tokens], Scored]
    ) -> PairScorer:
        """The scorer that compares the tokens of answer and reference `of` each pair; none where
        the encoder reads no word of a text."""

        def compare(pairs: Sequence[Pair]) -> Sequence[Scored]:
            tokens = self.of(text for answer, (true,) in pairs for text in (answer.text, true))
            return [_compared(tokens[answer.text], tokens[true], of) for answer, (true,) in pairs]

        return PairScorer(about, compare, self.close, at_once=_PAIRS)


_CUT = "the tail of what the model reads is cut"


def _compared(answer: Tokens, true: Tokens, of: Callable[[Tokens, Tokens], Scored]) -> Scored:
    for which, text in (("answer", answer), ("reference", true)):
        if not text.begins.any():
            return Scored.none(f"the encoder reads no word of the {which}")
    score = of(answer, true)
    return replace(score, reason=_CUT) if answer.cut or true.cut else score


def _bertscore(config: SemanticConfig, model: str) -> PairScorer:
    """BERTScore (Zhang et al. 2020, section 3), without idf and rescaling: each token is matched to
    the most similar one of the other text; precision is the mean over the answer's tokens, recall
    over the reference's. The tokens that begin and end a text can be matched, and do not count."""
    depth = _config(model).num_hidden_layers
    layer = _RECOMMENDED.get(config.model, depth) if config.layer is None else config.layer
    if layer > depth:
        message = f"the encoder {config.model} has {depth} layers"
        raise SetupError(Problem(message, field="layer", found=str(layer)))
    vectors = TokenVectors(model, [layer], lambda states: unit(states[0]))

    def compare(answer: Tokens, true: Tokens) -> Scored:
        ends, similar = vectors.encoder.ends, answer.states @ true.states.T
        precision = float(similar.max(axis=1)[~np.isin(answer.ids, ends)].mean())
        recall = float(similar.max(axis=0)[~np.isin(true.ids, ends)].mean())
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return Scored({"precision": precision, "recall": recall, "f1": f1}[config.measure])

    about = _about("bertscore", model, measure=config.measure, idf=False, layers=[layer])
    return vectors.scorer(about, compare)


def _moverscore(model: str, answers: Sequence[Answer]) -> PairScorer:
    """MoverScore (Zhao et al. 2019, section 3) of single words: 1 minus the least effort that turns
    the answer's words into the reference's. A word's vector holds the power means of the last five
    layers; its weight is its idf among the different answers of the data, or among the references.
    Subwords after the first and punctuation are passed over."""
    depth = _config(model).num_hidden_layers
    layers = [*range(max(0, depth - 4), depth + 1)]
    vectors = TokenVectors(model, layers, power_means)
    corpora = {
        "answer": sorted({answer.text for answer in answers if answer.text.strip()}),
        "reference": sorted({text for answer in answers for text in references_of(answer)}),
    }

    @cache
    def rarities() -> Mapping[str, Callable[[int], float]]:
        return {which: vectors.rarity(texts) for which, texts in corpora.items()}

    def compare(answer: Tokens, true: Tokens) -> Scored:
        points: list[FloatArray] = []
        for which, text in (("answer", answer), ("reference", true)):
            words = np.flatnonzero(_words(vectors.encoder.tokenizer, text))
            weights = np.array([rarities()[which](i) for i in text.ids[words].tolist()])
            if not (weights > 0).any():
                return Scored.none(f"every word of the {which} is in all texts: none has a weight")
            points += [text.states[words[weights > 0]], weights[weights > 0]]
        return Scored(1 - movers_distance(*points))

    about = _about(
        "moverscore", model, idf=content_hash(corpora), POT=version("POT"), layers=layers
    )
    return vectors.scorer(about, compare)


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
    """Minimum, mean and maximum over the layers, side by side, of states brought to length 1, and
    this once more: the power means with the exponents -inf, 1 and inf. (layers, tokens, width)
    gives (tokens, 3 width). Source: Zhao et al. (2019), section 3.2."""
    states = unit(states)
    means = [states.min(axis=0), states.mean(axis=0), states.max(axis=0)]
    return unit(np.concatenate(means, axis=-1).astype(np.float64))


def idf(documents: Sequence[set[int]]) -> Callable[[int], float]:
    """log((n + 1) / (k + 1)) of a token that is in k of n documents.

    >>> rarity = idf([{1, 2}, {1, 3}])
    >>> rarity(1), round(rarity(2), 3), round(rarity(9), 3)
    (0.0, 0.405, 1.099)
    """
    counts = Counter(token for document in documents for token in document)
    return lambda token: math.log((len(documents) + 1) / (counts[token] + 1))


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


def _bartscore(config: SemanticConfig, model: str) -> PairScorer:
    """BARTScore (Yuan, Neubig and Liu 2021, section 3): the mean log-probability of the tokens of
    one text given the other, by an encoder-decoder. Precision is of the answer given the reference,
    recall of the reference given the answer, f1 their mean."""
    import torch
    from transformers import AutoModelForSeq2SeqLM

    @cache
    def opened() -> tuple[Any, Any]:
        with quietly():
            return AutoModelForSeq2SeqLM.from_pretrained(model).eval(), tokenizer_of(model)

    def compare(answer: Answer, references: Sequence[str]) -> Scored:
        bart, tokenizer = opened()
        how = {"truncation": True, "max_length": bart.config.max_position_embeddings}
        how |= {"return_tensors": "pt", "return_token_type_ids": False}
        read, told = (tokenizer(text, **how) for text in (references[0], answer.text))
        with torch.inference_mode():
            precision = -float(bart(**read, labels=told["input_ids"]).loss)
            recall = -float(bart(**told, labels=read["input_ids"]).loss)
        f1 = (precision + recall) / 2
        value = {"precision": precision, "recall": recall, "f1": f1}[config.measure]
        is_cut = any(one.encodings[0].overflowing for one in (read, told))
        return Scored(value, reason=_CUT if is_cut else "")

    about = _about("bartscore", model, measure=config.measure)
    return PairScorer(about, lambda pairs: [compare(*pair) for pair in pairs], opened.cache_clear)


def _learned(config: SemanticConfig, model: str) -> PairScorer:
    """A classifier or regressor of one text or two, such as BLEURT (Sellam et al. 2020) in the form
    of transformers. The one number that it gives is the score; of several labels, the probability
    of one."""
    to_scores = _label_scores(config, _config(model))

    @cache
    def opened() -> Encoder:
        return open_encoder(model, head=True)

    def compare(pairs: Sequence[Pair]) -> Sequence[Scored]:
        import torch

        inputs = [
            [{"question": a.question, "answer": a.text, "reference": true}[r] for r in config.reads]
            for a, (true,) in pairs
        ]
        scores: dict[int, Scored] = {}
        texts = [text[0] if len(text) == 1 else tuple(text) for text in inputs]
        for places, batch in opened().batches(texts):
            with torch.inference_mode():
                values = to_scores(opened().model(**batch).logits.cpu().double()).tolist()
            for place, value, read in zip(places, values, batch.encodings, strict=True):
                scores[place] = Scored(value, reason=_CUT if read.overflowing else "")
        return [scores[place] for place in range(len(pairs))]

    about = _about("learned", model, reads=config.reads, label=config.label)
    return PairScorer(about, compare, opened.cache_clear, config.better, reads=config.reads)


def _label_scores(config: SemanticConfig, model: Any) -> Any:
    """The function that makes scores (texts,) of logits (texts, labels)."""
    labels = [str(model.id2label[i]) for i in range(model.num_labels)]
    if len(labels) == 1 and config.label is None:
        return lambda logits: logits[:, 0]
    if config.label not in labels:
        message, allowed = "is not a label of the model", ", ".join(labels)
        raise SetupError(Problem(message, "", None, "label", config.label or "", allowed))
    place = labels.index(config.label)
    return lambda logits: logits.softmax(dim=-1)[:, place]


TOO_LARGE = "the perplexity is larger than any number"
_LACKING = {"answer": EMPTY_ANSWER, "reference": NO_REFERENCE}
# Which tokens these are follows from the weights.
_PREFIX = "before a text alone BOS, else EOS; before a text given what the tokenizer puts there"


# From a text's log-probability, the natural one, and the text. Words are what white space parts.
PERPLEXITY: Mapping[str, Callable[[float, str], float]] = {
    "bits-per-byte": lambda log_p, text: -log_p / (len(text.encode()) * math.log(2)),
    "byte-perplexity": lambda log_p, text: math.exp(-log_p / len(text.encode())),
    "word-perplexity": lambda log_p, text: math.exp(-log_p / len(text.split())),
}


class Likelihood:
    """The likelihood of a text as it stands (bits per byte, byte perplexity, 2 to their power, word
    perplexity), or what the model's own completions say of it. A `Scorer`.

    In completions a text counts as it is spelt with a space before it and without, in the tokens
    that it has alone: other spellings, and other tokens of the same letters, do not.
    """

    better: Better = "lower"

    def __init__(self, config: LikelihoodConfig, answers: Sequence[Answer], beside: Path) -> None:
        """Raises SetupError for a backend that cannot be asked, and a column that the data lack."""
        if config.of not in _LACKING:
            require_column(answers, config.of, "of")
        self._config = config
        # Completions take seconds: each score is kept at once.
        self.at_once = 16 if config.scorer in PERPLEXITY else 1
        self._backend = open_backend(config.backend, config.settings, beside)
        self._open = weigher_of(self._backend, config.backend)

    @cached_property
    def about(self) -> Mapping[str, Any]:
        """The settings and the model."""
        model = {k: v for k, v in self._backend.describe().items() if k != "structured"}
        takes = {"scorer", *SCORERS[self._config.scorer].takes} - {"backend", "settings"}
        return {**self._config.model_dump(include=takes), "prefix": _PREFIX, **model}

    @cached_property
    def _weigher(self) -> TokenScorer:
        return self._open()

    def close(self) -> None:
        """Give back the model."""
        self.__dict__.pop("_weigher", None)
        self._backend.close()

    def key(self, answer: Answer) -> Any:
        """The texts that are read."""
        asked = answer.question if self._config.given != "nothing" else ""
        return [asked, list(self._texts(answer))]

    def _before(self, answer: Answer) -> Before:
        match self._config.given:
            case "nothing":
                return ""
            case "question":
                return (Message("user", answer.question),)
            case text:
                return text.replace("{question}", answer.question)

    def _texts(self, answer: Answer) -> Sequence[str]:
        match self._config.of:
            case "answer":
                return [answer.text] if answer.text.strip() else []
            case "reference":
                return references_of(answer)
            case column:
                return texts_in(answer.metadata.get(column, ""))

    def _lacking(self, answer: Answer) -> str:
        """The reason why an answer cannot be scored; empty where it can."""
        if not self._texts(answer):
            return _LACKING.get(self._config.of, f"the column {self._config.of} is blank")
        has_question = self._config.given == "nothing" or answer.question.strip()
        return "" if has_question else NO_QUESTION

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        """One for each answer."""
        lacking = [self._lacking(answer) for answer in answers]
        whole = [answer for answer, why in zip(answers, lacking, strict=True) if not why]
        if self._config.scorer in PERPLEXITY:
            scores = self._as_they_stand(whole)
        else:
            scores = map(self._in_completions, whole)
        return [Scored.none(why) if why else next(scores) for why in lacking]

    def _as_they_stand(self, answers: Sequence[Answer]) -> Iterator[Scored]:
        texts = [(self._before(a), text) for a in answers for text in self._texts(a)]
        weights = iter(self._weigher.weigh(texts) if texts else ())
        for answer in answers:
            pairs = [(next(weights), text) for text in self._texts(answer)]
            if reason := next((weight.reason for weight, _ in pairs if weight.reason), ""):
                yield Scored.none(reason)
                continue
            perplexity = PERPLEXITY[self._config.scorer]
            yield _mean(perplexity(math.fsum(weight.log_p), text) for weight, text in pairs)

    def _in_completions(self, answer: Answer) -> Scored:
        config = self._config
        seed = int(content_hash([config.seed, self.key(answer)[0]]), 16) % 2**31
        draws = Draws(config.samples, config.max_tokens, 1.0, config.top_p, config.stride, seed)
        texts = [text.strip() for text in self._texts(answer)]
        forms = [form for text in texts for form in (f" {text}", text)]
        completions = self._weigher.draw(self._before(answer), forms, draws)
        if completions.reason:
            return Scored.none(completions.reason)
        return _mean(
            _relaxed(completions, _forms(completions, 2 * i), config) for i in range(len(texts))
        )


def _mean(values: Iterable[float]) -> Scored:
    try:
        return Scored(fmean(values))
    except OverflowError:
        return Scored.none(TOO_LARGE)


def _relaxed(completions: Completions, sizes: Mapping[int, int], config: LikelihoodConfig) -> float:
    forms = list(sizes)
    entropy, last = relaxed_cross_entropy(completions.drawn, forms, config.best, config.weighted)
    if config.scorer == "relaxed-cross-entropy":
        return entropy
    return math.exp(entropy / (last + sizes[forms[0]]))


def _forms(completions: Completions, first: int) -> dict[int, int]:
    """The numbers of tokens of spelling `first` and of the next; one of them alone where its
    tokens stand in the other's: it would be counted twice."""
    sizes = {i: len(completions.targets[i]) for i in (first, first + 1)}
    long, short = sorted(sizes, key=lambda i: -sizes[i])
    a, b = (tuple(completions.targets[i]) for i in (long, short))
    if any(a[i : i + len(b)] == b for i in range(len(a) - len(b) + 1)):
        return {short: sizes[short]}
    return sizes


def relaxed_cross_entropy(
    drawn: Sequence[Drawn], forms: Sequence[int], best: int, weighted: bool
) -> tuple[float, int]:
    """The sum of -log P(A_i | B_i) over the places i of completions, and the last place.

    P(A_i | B_i) is the sum, over the `best` likeliest different beginnings of i tokens, of the
    probability that the target comes next; `weighted`, times the beginning's own. It is that of
    the model: top-p only chooses the completions. (Paper 004, section 4 and appendix D, where the
    weights are left out, for they fall with i.)
    """
    entropy, last = 0.0, 0
    longest = max(drawn, key=lambda one: len(one.places)).places
    for i, place in enumerate(longest):
        behind: dict[tuple[int, ...], tuple[float, float]] = {}
        for completion in (one for one in drawn if len(one.places) > i):
            target = np.logaddexp.reduce([completion.targets[form][i] for form in forms])
            beginning = tuple(completion.tokens[:place])
            behind[beginning] = math.fsum(completion.log_p[:place]), float(target)
        chosen = sorted(behind.values(), reverse=True)[:best]
        logs = [target + (own if weighted else 0.0) for own, target in chosen]
        entropy, last = entropy - float(np.logaddexp.reduce(logs)), place
    return entropy, last
