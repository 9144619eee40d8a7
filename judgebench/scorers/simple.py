"""Scorers that need no model.

Columns of the data, scorers without meaning of their own, and counts of the words or characters
that an answer shares with its references.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, NamedTuple

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.records import Answer, content_hash
from judgebench.scorers.config import (
    ColumnConfig,
    MeteorConfig,
    RougeConfig,
    SacrebleuConfig,
    SimpleConfig,
)
from judgebench.scorers.scorer import (
    EMPTY_ANSWER,
    Better,
    PairScorer,
    Scored,
    about_of,
    references_of,
    require_columns,
)

_WORD = re.compile(r"\w+")


class Simple:
    """Length, chance, or overlap with the question. A `Scorer`."""

    better: Better = ""
    at_once = 4096

    def __init__(self, config: SimpleConfig) -> None:
        self._of: Callable[[Answer], float] = {
            "length": lambda answer: float(len(answer.text.split())),  # as white space parts them
            "random-number": self._drawn, "question-overlap": _overlap,
        }[config.scorer]  # fmt: skip
        self._seed = config.seed
        seeded = {"seed": config.seed} if config.scorer == "random-number" else {}
        self.about: Mapping[str, Any] = {"scorer": config.scorer, **seeded}

    def key(self, answer: Answer) -> Any:
        return [answer.question, answer.text]

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        return [
            Scored(self._of(a)) if a.text.strip() else Scored.none(EMPTY_ANSWER) for a in answers
        ]

    def _drawn(self, answer: Answer) -> float:
        return int(content_hash([self._seed, answer.question, answer.text]), 16) / 2**64

    def close(self) -> None:
        """Nothing to give back."""


def _overlap(answer: Answer) -> float:
    """The share of the question's different words that the answer holds."""
    asked, said = (set(_WORD.findall(t.lower())) for t in (answer.question, answer.text))
    return len(asked & said) / len(asked) if asked else 0.0


class Column:
    """Numbers of a column. A `Scorer`."""

    at_once = 4096

    def __init__(self, config: ColumnConfig, answers: Sequence[Answer]) -> None:
        """Raises SetupError where no answer has the column, and for cells that hold no number."""
        self._column, self.better = config.source, config.better
        require_columns(answers, [self._column], "from")
        cells = [answer.metadata.get(self._column, "") for answer in answers]
        # Of these answers alone: what stands beside a text says nothing of one made from it.
        self._cells = {a.item_id: cell for a, cell in zip(answers, cells, strict=True)}
        wrong = [
            Problem("is no number", field=f"{self._column}, item {a.item_id}", found=cell)
            for a, cell in zip(answers, cells, strict=True)
            if cell.strip() and _number(cell) is None
        ]
        if wrong:
            raise SetupError(wrong)
        self.about: Mapping[str, Any] = {
            "scorer": "column", "from": self._column, "values": content_hash(cells),
        }  # fmt: skip

    def key(self, answer: Answer) -> Any:
        return [self._column, self._cells.get(answer.item_id)]

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        return [self._of(self._cells.get(answer.item_id)) for answer in answers]

    def _of(self, cell: str | None) -> Scored:
        if cell is None:
            return Scored.none(f"the column {self._column} is not about this text")
        value = _number(cell)
        return (
            Scored.none(f"the column {self._column} is blank") if value is None else Scored(value)
        )

    def close(self) -> None:
        """Nothing to give back."""


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


_ROUGE = {"rouge-1": ("rouge1", 1), "rouge-2": ("rouge2", 2), "rouge-l": ("rougeL", 1)}
_UNREAD = "the {} has {} of a-z and 0-9, which alone ROUGE reads"


class _Measure(NamedTuple):
    """The score of a text against references, several only by the rule `joint`. `n_words` counts
    what is read of a text; a reference with fewer than `least` has nothing to share."""

    score: Callable[[str, Sequence[str]], float]
    signature: str
    n_words: Callable[[str], int] = len
    least: int = 1


def ngram(
    config: RougeConfig | SacrebleuConfig | MeteorConfig, answers: Sequence[Answer]
) -> PairScorer:
    """ROUGE (Lin 2004; F1), BLEU (Papineni et al. 2002), chrF and chrF++ (Popovic 2015, 2017), TER
    (Snover et al. 2006) or METEOR (Lavie and Agarwal 2007), as their libraries compute them for a
    single text.

    Raises MissingExtra without the library, and SetupError for a column of references that the data
    lacks and for METEOR's synonyms without WordNet."""
    about = about_of(config, answers)
    package = "sacrebleu" if isinstance(config, SacrebleuConfig) else "rouge-score"
    try:
        score, signature, n_words, least = _measure(config)
    except ImportError as error:
        raise MissingExtra(f"the scorer {config.scorer}", "scorers", package) from error
    few = "no word" if least == 1 else f"fewer than {least} words"

    def one(answer: Answer, reference: str) -> Scored:
        if not n_words(answer.text):
            return Scored.none(_UNREAD.format("answer", "no word"))
        if n_words(reference) < least:
            return Scored.none(_UNREAD.format("reference", few))
        joint = config.references == "joint"
        all_of_them = references_of(answer, config.reference_columns) if joint else [reference]
        return Scored(score(answer.text, all_of_them))

    return PairScorer(
        config, {"scorer": config.scorer, "signature": signature, **about},
        lambda pairs: [one(*pair) for pair in pairs], lambda: None,
        "lower" if config.scorer == "ter" else "higher",
        8 if config.scorer == "ter" else 256,  # TER may take seconds for long texts
    )  # fmt: skip


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
