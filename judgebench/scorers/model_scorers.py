"""Scorers by models that read texts: BERTScore and MoverScore, which compare the tokens of answer
and reference as an encoder sees them; classifiers, regressors and RadGraph, which were trained.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.models import open_backend
from judgebench.models.checkpoints import (
    Encoder,
    Tokens,
    config_of,
    find_beside,
    find_encoder,
    open_encoder,
    sha256_of,
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
from judgebench.records import Answer, Status, content_hash
from judgebench.scorers.config import (
    BertScoreConfig,
    LearnedConfig,
    MoverScoreConfig,
    OccurrencesConfig,
    PerplexityConfig,
    RadGraphConfig,
    RelaxedConfig,
)
from judgebench.scorers.scorer import (
    EMPTY_ANSWER,
    NO_REFERENCE,
    Better,
    Pair,
    PairScorer,
    Scored,
    about_of,
    cut_of,
    references_of,
    require_columns,
    weights_of,
)

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
    """The vectors of texts by an encoder that is opened at the first text. `made` turns states
    (layers, tokens, width) into vectors (tokens, width). A text is embedded once: the latest are
    held, up to 1 GiB."""

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

    vectors = TokenVectors(
        config, beside, lambda depth: range(depth + 1 - config.layers, depth + 1), power_means
    )
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


_FIELD = re.compile(r"{(question|answer|reference)}")
_CUT = "the tail of what the model reads is cut"
_INFINITE = Scored.none("the model gives no finite number")
_ELSEWHERE = "or compute it elsewhere and name its column: {scorer: column, name: …, from: …}"


def learned(config: LearnedConfig, answers: Sequence[Answer], beside: Path) -> PairScorer:
    """A classifier or regressor of one text or two, such as BLEURT (Sellam et al. 2020) in the form
    of transformers. The one number that it gives is the score; of several labels, the probability
    of one, or the expected place.
    Raises what `about_of` and finding an encoder raise, and SetupError for an unknown label."""
    about = about_of(config, answers, "torch", "transformers")
    name = find_beside(config.model, beside, "model")
    folder = find_encoder(name, "model")
    weigh = _weighed(config, config_of(folder, "model"))
    fields = _FIELD.findall("".join(config.reads))
    held: list[Encoder] = []

    def scored(pairs: Sequence[Pair]) -> Sequence[Scored]:
        import torch

        if not held:
            held.append(open_encoder(name, head=True))
        found = [Scored.none("there is no question")] * len(pairs)
        asks = "question" in fields
        asked = [i for i, (a, _) in enumerate(pairs) if a.question.strip() or not asks]
        inputs = [[_filled(one, *pairs[i]) for one in config.reads] for i in asked]
        texts = [one[0] if len(one) == 1 else tuple(one) for one in inputs]
        for places, batch in held[0].batches(texts):
            with torch.inference_mode():
                values = weigh(held[0].model(**batch).logits.cpu().double()).tolist()
            for place, value, read in zip(places, values, batch.encodings, strict=True):
                one = Scored(value, reason=_CUT if read.overflowing else "")
                found[asked[place]] = one if math.isfinite(value) else _INFINITE
        return found

    about |= {"reads": list(config.reads), "label": config.label, **weights_of(folder)}
    return PairScorer(config, about, scored, held.clear, config.better, reads=fields)


def _filled(template: str, answer: Answer, reference: str) -> str:
    """All in one go, so that no text of theirs is read as a field."""
    texts = {"question": answer.question, "answer": answer.text, "reference": reference}
    return _FIELD.sub(lambda match: texts[match[1]], template)


def _weighed(config: LearnedConfig, model: Any) -> Any:
    """The function that makes scores (texts,) of logits (texts, labels)."""
    import torch

    labels = [str(model.id2label[i]) for i in range(model.num_labels)]
    each, wrong = model.problem_type == "multi_label_classification", ""
    if config.label is None and each:
        wrong = "is missing: labels that do not exclude each other have no common score"
    elif config.label is not None and (len(labels) == 1 or config.label not in labels):
        wrong = "is not a label of the model"
    if wrong:
        allowed = ", ".join(labels) if len(labels) > 1 else "none: it gives one number"
        raise SetupError(Problem(wrong, "", None, "label", config.label or "", allowed))
    if len(labels) == 1:
        return lambda logits: logits[:, 0]
    if config.label is None:
        places = torch.arange(len(labels), dtype=torch.float64)
        return lambda logits: logits.softmax(dim=-1) @ places
    place = labels.index(config.label)
    return lambda logits: (logits.sigmoid() if each else logits.softmax(dim=-1))[:, place]


def radgraph(config: RadGraphConfig, answers: Sequence[Answer], beside: Path) -> PairScorer:
    """F1-RadGraph (Delbrouck et al. 2022) by the package radgraph: how many entities of radiology
    answer and reference share.
    Raises SetupError where package or weights cannot be had, and what `about_of` raises."""
    about = about_of(config, answers)
    if find_spec("radgraph") is None:
        message = (
            "needs the package radgraph, its weights and transformers below 5: "
            f"pip install radgraph 'transformers<5'; {_ELSEWHERE}"
        )
        raise SetupError(Problem(message, field="scorer", found="radgraph"))
    held: list[Any] = []

    def opened() -> Any:
        if not held:
            held.append(_radgraph(config, beside))
        return held[0]

    def one(answer: Answer, true: str) -> Scored:
        """Each pair on its own: a text that the package cannot read stops all of its call."""
        try:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                _, (value,), _, (found,) = opened()[0](hyps=[answer.text], refs=[true])
        except KeyError:  # it prints the error and leaves the text out
            return Scored.none("radgraph cannot read the answer or the reference", Status.FAILED)
        return Scored(value, reason="" if found["entities"] else "no entity in the reference")

    about |= {"level": config.level, "radgraph": version("radgraph"), "model": opened()[1]}
    return PairScorer(config, about, lambda pairs: [one(*pair) for pair in pairs], held.clear)


def _radgraph(config: RadGraphConfig, beside: Path) -> tuple[Any, Any]:
    """The package's scorer, and which weights it loaded."""
    from radgraph import F1RadGraph
    from radgraph.radgraph import CACHE_DIR

    own = beside / config.model
    folder = own if own.is_dir() else Path(CACHE_DIR) / config.model
    how = {"model_type": folder.name, "model_cache_dir": str(folder.parent)}
    try:
        with redirect_stdout(StringIO()):
            model = F1RadGraph(reward_level=config.level, **how)
        return model, [folder.name, sha256_of(folder / "weights.th")]
    except Exception as error:  # the package raises what it meets, and asserts
        said = " ".join(str(error).split())[:200]
        message = f"cannot be opened by radgraph, which needs transformers below 5: {said}"
        message += f"; {_ELSEWHERE}"
        raise SetupError(Problem(message, field="model", found=config.model)) from error


LikelyConfig = PerplexityConfig | RelaxedConfig | OccurrencesConfig
NEVER = "longer than max_tokens: no completion can hold it"
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

    def __init__(self, config: LikelyConfig, answers: Sequence[Answer], beside: Path) -> None:
        """Raises SetupError for a backend that cannot be asked, and a column that the data lack."""
        require_columns(answers, [config.of] if config.of not in _LACKING else [], "of")
        self._config = config
        self.better: Better = "higher" if isinstance(config, OccurrencesConfig) else "lower"
        # Completions take seconds: each score is kept at once.
        self.at_once = 16 if isinstance(config, PerplexityConfig) else 1
        self._backend = open_backend(config.backend, config.settings, beside)
        self._open = weigher_of(self._backend, config.backend)
        self._opened: TokenScorer | None = None

    @cached_property
    def about(self) -> Mapping[str, Any]:
        told = {k: v for k, v in self._backend.describe().items() if k != "structured"}
        rest = {"runtime": told.pop("runtime")} if "runtime" in told else {}
        settings = self._config.model_dump(exclude={"name", "backend", "settings"})
        return {**settings, **told, "prefix": _PREFIX, **rest}

    @property
    def _weigher(self) -> TokenScorer:
        self._opened = self._opened or self._open()
        return self._opened

    def close(self) -> None:
        self._opened = None
        self._backend.close()

    def key(self, answer: Answer) -> Any:
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
                return references_of(replace(answer, reference=answer.metadata.get(column, "")))

    def _lacking(self, answer: Answer) -> str:
        """The reason why an answer cannot be scored; empty where it can."""
        if not self._texts(answer):
            return _LACKING.get(self._config.of, f"the column {self._config.of} is blank")
        asked = self._config.given == "nothing" or answer.question.strip()
        return "" if asked else "the question is empty"

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        lacking = [self._lacking(answer) for answer in answers]
        whole = [answer for answer, why in zip(answers, lacking, strict=True) if not why]
        if isinstance(config := self._config, PerplexityConfig):
            found = iter(self._as_they_stand(whole, PERPLEXITY[config.scorer]))
        else:
            found = iter([self._in_completions(answer, config) for answer in whole])
        return [Scored.none(why) if why else next(found) for why in lacking]

    def _as_they_stand(
        self, answers: Sequence[Answer], of: Callable[[float, str], float]
    ) -> Iterator[Scored]:
        asked = [(self._before(a), text) for a in answers for text in self._texts(a)]
        weighed = iter(self._weigher.weigh(asked) if asked else ())
        for answer in answers:
            told = [(next(weighed), text) for text in self._texts(answer)]
            if reason := next((one.reason for one, _ in told if one.reason), ""):
                yield Scored.none(reason)
                continue
            yield _mean(of(math.fsum(one.log_p), text) for one, text in told)

    def _in_completions(self, answer: Answer, config: RelaxedConfig | OccurrencesConfig) -> Scored:
        free = isinstance(config, OccurrencesConfig)
        seed = int(content_hash([config.seed, self.key(answer)[0]]), 16) % 2**31
        top_p = 1.0 if isinstance(config, OccurrencesConfig) else config.top_p
        draws = Draws(config.samples, config.max_tokens, 1.0, top_p, config.stride, seed, free)
        texts = [text.strip() for text in self._texts(answer)]
        spelt = [form for text in texts for form in (f" {text}", text)]
        told = self._weigher.draw(self._before(answer), spelt, draws)
        if told.reason:
            return Scored.none(told.reason)
        forms = [_forms(told, 2 * i) for i in range(len(texts))]
        if isinstance(config, OccurrencesConfig):
            remark = NEVER * any(min(sizes.values()) > draws.max_tokens for sizes in forms)
            found = (expected_occurrences(told.drawn, sizes, draws) for sizes in forms)
            return _mean(found, remark)
        return _mean(_relaxed(told, sizes, config) for sizes in forms)


def _mean(values: Iterable[float], remark: str = "") -> Scored:
    try:
        return Scored(fmean(values), reason=remark)
    except OverflowError:
        return Scored.none(TOO_LARGE)


def _relaxed(told: Completions, sizes: Mapping[int, int], config: RelaxedConfig) -> float:
    entropy, last = relaxed_cross_entropy(told.drawn, list(sizes), config.best, config.weighted)
    if config.scorer == "relaxed-cross-entropy":
        return entropy
    return math.exp(entropy / (last + next(iter(sizes.values()))))


def _forms(told: Completions, first: int) -> dict[int, int]:
    """The numbers of tokens of spelling `first` and of the next; one of them alone where its
    tokens stand in the other's: it would be counted twice."""
    sizes = {i: len(told.targets[i]) for i in (first, first + 1)}
    long, short = sorted(sizes, key=lambda i: -sizes[i])
    a, b = (tuple(told.targets[i]) for i in (long, short))
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
        for one in (one for one in drawn if len(one.places) > i):
            target = np.logaddexp.reduce([one.targets[form][i] for form in forms])
            behind[tuple(one.tokens[:place])] = math.fsum(one.log_p[:place]), float(target)
        chosen = sorted(behind.values(), reverse=True)[:best]
        logs = [target + (own if weighted else 0.0) for own, target in chosen]
        entropy, last = entropy - float(np.logaddexp.reduce(logs)), place
    return entropy, last


def expected_occurrences(drawn: Sequence[Drawn], sizes: Mapping[int, int], draws: Draws) -> float:
    """The expected number of occurrences of a target in one completion of at most
    `draws.max_tokens` tokens: the mean, over completions, of the sum over places of the
    probability that it comes next and ends in time. `sizes` holds the tokens of each form of the
    target.

    A place behind n tokens counts if the completion has got so far, whatever it went on with. So
    the mean is of expectations (Rao-Blackwell), and without bias where completions are drawn from
    the model as it is; with a stride, a place counts `stride` times.
    """
    return draws.stride * float(np.mean([
        sum(
            math.exp(one.targets[form][i])
            for form, size in sizes.items()
            for i, place in enumerate(one.places)
            if place + size <= draws.max_tokens
        )
        for one in drawn
    ]))  # fmt: skip
