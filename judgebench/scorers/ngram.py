"""Scorers that count the words or characters that an answer shares with its references."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, NamedTuple

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.records import Answer
from judgebench.scorers.config import MeteorConfig, RougeConfig, SacrebleuConfig
from judgebench.scorers.references import about_columns, over_references, references_of
from judgebench.scorers.scorer import EMPTY_ANSWER, NO_REFERENCE, Better, Scored

_ROUGE = {"rouge-1": ("rouge1", 1), "rouge-2": ("rouge2", 2), "rouge-l": ("rougeL", 1)}
_UNREAD = "the {} has {} of a-z and 0-9, which alone ROUGE reads"


class _Measure(NamedTuple):
    """The score of a text against references, several only by the rule `joint`. `n_words` counts
    what is read of a text; a reference with fewer than `least` has nothing to share."""

    score: Callable[[str, Sequence[str]], float]
    signature: str
    n_words: Callable[[str], int] = len
    least: int = 1


class Ngram:
    """ROUGE (Lin 2004; F1), BLEU (Papineni et al. 2002), chrF and chrF++ (Popovic 2015, 2017), TER
    (Snover et al. 2006) or METEOR (Lavie and Agarwal 2007), as their libraries compute them for a
    single text. A `Scorer`."""

    def __init__(
        self, config: RougeConfig | SacrebleuConfig | MeteorConfig, answers: Sequence[Answer]
    ) -> None:
        """Raises MissingExtra without the library, and SetupError for a column of references that
        the data lacks and for METEOR's synonyms without WordNet."""
        columns = about_columns(answers, config.reference_columns)
        self._columns, self._rule = config.reference_columns, config.references
        package = "sacrebleu" if isinstance(config, SacrebleuConfig) else "rouge-score"
        try:
            self._measure = _measure(config)
        except ImportError as error:
            raise MissingExtra(f"the scorer {config.scorer}", "scorers", package) from error
        self.better: Better = "lower" if config.scorer == "ter" else "higher"
        self.at_once = 8 if config.scorer == "ter" else 256  # TER may take seconds for long texts
        self.about: Mapping[str, Any] = {
            "scorer": config.scorer, "signature": self._measure.signature,
            "references": self._rule, **columns,
        }  # fmt: skip

    def key(self, answer: Answer) -> Any:
        return [answer.text, references_of(answer, self._columns)]

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        return [self._one(a.text, references_of(a, self._columns)) for a in answers]

    def _one(self, text: str, references: Sequence[str]) -> Scored:
        score, _, n_words, least = self._measure
        read = [reference for reference in references if n_words(reference) >= least]
        if not text.strip():
            return Scored.none(EMPTY_ANSWER)
        if not references:
            return Scored.none(NO_REFERENCE)
        if not n_words(text):
            return Scored.none(_UNREAD.format("answer", "no word"))
        if not read:
            few = "no word" if least == 1 else f"fewer than {least} words"
            return Scored.none(_UNREAD.format("reference", few))
        if self._rule == "joint":
            return Scored(score(text, read))
        return Scored(over_references([score(text, [r]) for r in read], self._rule, self.better))

    def close(self) -> None:
        """Nothing to give back."""


def _measure(config: RougeConfig | SacrebleuConfig | MeteorConfig) -> _Measure:
    match config:
        case RougeConfig():
            return _rouge(config)
        case SacrebleuConfig():
            return _sacrebleu(config)
    return _meteor(config)


def _rouge(config: RougeConfig) -> _Measure:
    from rouge_score import rouge_scorer, tokenizers

    kind, least = _ROUGE[config.scorer]
    words = tokenizers.DefaultTokenizer(config.stemmer)
    scorer = rouge_scorer.RougeScorer([kind], tokenizer=words)
    stemmer = "porter" if config.stemmer else "no"
    return _Measure(
        lambda text, references: float(scorer.score(references[0], text)[kind].fmeasure),
        f"{kind}|measure:f1|stemmer:{stemmer}|rouge-score:{version('rouge-score')}",
        lambda text: len(words.tokenize(text)),
        least,
    )


def _sacrebleu(config: SacrebleuConfig) -> _Measure:
    from sacrebleu.metrics import BLEU, CHRF, TER

    kinds = {
        "bleu": partial(BLEU, effective_order=True), "chrf": CHRF,
        "chrf++": partial(CHRF, word_order=2), "ter": TER,
    }  # fmt: skip
    metric: Any = kinds[config.scorer]()
    metric.num_refs = -1 if config.references == "joint" else 1  # as after scoring: var, or 1
    return _Measure(
        lambda text, references: float(metric.sentence_score(text, references).score),
        str(metric.get_signature()),
    )


def _meteor(config: MeteorConfig) -> _Measure:
    import nltk
    from nltk.corpus import wordnet
    from nltk.translate.meteor_score import meteor_score

    try:
        synonyms = f"wordnet-{wordnet.get_version()}" if config.synonyms else "no"
    except (LookupError, OSError):
        message = (
            "needs the data of WordNet, which are not on this machine: "
            "python -m nltk.downloader wordnet; or compare words and stems alone: synonyms: false"
        )
        raise SetupError(Problem(message, field="synonyms")) from None
    known = wordnet if config.synonyms else SimpleNamespace(synsets=lambda word: ())

    def score(text: str, references: Sequence[str]) -> float:
        said, *others = (nltk.word_tokenize(t, preserve_line=True) for t in (text, *references))
        return float(meteor_score(others, said, wordnet=known))

    options = f"stemmer:porter|synonyms:{synonyms}|alpha:0.9|beta:3|gamma:0.5"
    return _Measure(score, f"{options}|nltk:{nltk.__version__}")
