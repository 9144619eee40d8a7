"""Scorers that count the words or characters that an answer shares with its references."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.records import Answer
from judgebench.scorers.config import MeteorConfig, RougeConfig, SacrebleuConfig
from judgebench.scorers.references import over_references, references_of, require_columns
from judgebench.scorers.scorer import EMPTY_ANSWER, NO_REFERENCE, Better, Scored

NgramConfig = RougeConfig | SacrebleuConfig | MeteorConfig
_ROUGE = {"rouge-1": "rouge1", "rouge-2": "rouge2", "rouge-l": "rougeL"}


@dataclass(frozen=True)
class _Measure:
    """A measure of a library: the score of a text against references, several only with the rule
    `joint`. `n_words` counts the words that it reads of a text, of which a reference needs `least`:
    with fewer there is nothing to share."""

    score: Callable[[str, Sequence[str]], float]
    signature: str
    better: Better = "higher"
    n_words: Callable[[str], int] = lambda text: 1
    least: int = 1


class Ngram:
    """ROUGE (Lin 2004; F1), BLEU (Papineni et al. 2002), chrF and chrF++ (Popovic 2015, 2017), TER
    (Snover et al. 2006) or METEOR (Lavie and Agarwal 2007), as their libraries compute them for a
    single text. A `Scorer`."""

    def __init__(self, config: NgramConfig, answers: Sequence[Answer]) -> None:
        """Raises MissingExtra without the library, and SetupError for a column of references that
        the data lacks and for METEOR's synonyms without WordNet."""
        require_columns(answers, config.reference_columns, "reference_columns")
        self._columns, self._rule = config.reference_columns, config.references
        self._measure = _measure(config)
        self.better = self._measure.better
        self.at_once = 8 if config.scorer == "ter" else 256  # TER may take seconds for long texts
        columns = {"reference_columns": list(self._columns)} if self._columns else {}
        self.about: Mapping[str, Any] = {
            "scorer": config.scorer, "signature": self._measure.signature,
            "references": self._rule, **columns,
        }  # fmt: skip

    def key(self, answer: Answer) -> Any:
        return [answer.text, references_of(answer, self._columns)]

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        return [self._one(answer) for answer in answers]

    def _one(self, answer: Answer) -> Scored:
        measure, text = self._measure, answer.text
        if not text.strip():
            return Scored.none(EMPTY_ANSWER)
        references = references_of(answer, self._columns)
        if not references:
            return Scored.none(NO_REFERENCE)
        if not measure.n_words(text):
            return Scored.none("the answer has no word of a-z and 0-9, which alone ROUGE reads")
        if not (read := [r for r in references if measure.n_words(r) >= measure.least]):
            words = f"fewer than {measure.least} words" if measure.least > 1 else "no word"
            return Scored.none(f"the reference has {words} of a-z and 0-9, which alone ROUGE reads")
        if self._rule == "joint":
            return Scored(measure.score(text, read))
        scores = [measure.score(text, [reference]) for reference in read]
        return Scored(over_references(scores, self._rule, self.better))

    def close(self) -> None:
        """Nothing to give back."""


def _measure(config: NgramConfig) -> _Measure:
    package = "sacrebleu" if isinstance(config, SacrebleuConfig) else "rouge-score"
    try:
        match config:
            case RougeConfig():
                return _rouge(config)
            case SacrebleuConfig():
                return _sacrebleu(config)
            case MeteorConfig():
                return _meteor(config)
    except ImportError as error:
        raise MissingExtra(f"the scorer {config.scorer}", "scorers", package) from error


def _rouge(config: RougeConfig) -> _Measure:
    from rouge_score import rouge_scorer, tokenizers

    kind = _ROUGE[config.scorer]
    words = tokenizers.DefaultTokenizer(config.stemmer)
    scorer = rouge_scorer.RougeScorer([kind], tokenizer=words)
    stemmer = "porter" if config.stemmer else "no"
    return _Measure(
        lambda text, references: float(scorer.score(references[0], text)[kind].fmeasure),
        f"{kind}|measure:f1|stemmer:{stemmer}|rouge-score:{version('rouge-score')}",
        n_words=lambda text: len(words.tokenize(text)),
        least=2 if kind == "rouge2" else 1,
    )


def _sacrebleu(config: SacrebleuConfig) -> _Measure:
    from sacrebleu.metrics import BLEU, CHRF, TER

    metric: Any = {
        "bleu": lambda: BLEU(effective_order=True),
        "chrf": CHRF,
        "chrf++": lambda: CHRF(word_order=2),
        "ter": TER,
    }[config.scorer]()  # fmt: skip
    metric.num_refs = -1 if config.references == "joint" else 1  # as after scoring: var, or 1
    return _Measure(
        lambda text, references: float(metric.sentence_score(text, references).score),
        str(metric.get_signature()),
        "lower" if config.scorer == "ter" else "higher",
    )


def _meteor(config: MeteorConfig) -> _Measure:
    import nltk
    from nltk.translate.meteor_score import single_meteor_score

    wordnet, synonyms = _wordnet() if config.synonyms else (_NoSynonyms(), "no")

    def words(text: str) -> Sequence[str]:
        return nltk.word_tokenize(text, preserve_line=True)  # type: ignore[no-any-return]

    return _Measure(
        lambda text, references: float(
            single_meteor_score(words(references[0]), words(text), wordnet=wordnet)
        ),
        f"stemmer:porter|synonyms:{synonyms}|alpha:0.9|beta:3|gamma:0.5|nltk:{nltk.__version__}",
    )


class _NoSynonyms:
    """In place of WordNet."""

    def synsets(self, word: str) -> Sequence[Any]:
        return ()


def _wordnet() -> tuple[Any, str]:
    """WordNet, and its version. Raises SetupError where its data are not on this machine."""
    from nltk.corpus import wordnet

    try:
        return wordnet, f"wordnet-{wordnet.get_version()}"
    except LookupError:
        message = (
            "needs the data of WordNet, which are not on this machine: "
            "python -m nltk.downloader wordnet; or compare words and stems alone: synonyms: false"
        )
        raise SetupError(Problem(message, field="synonyms")) from None
