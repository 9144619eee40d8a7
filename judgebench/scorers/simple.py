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

from judgebench.errors import MissingExtra, Problem, SetupError, raise_any
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
    AnswerScorer,
    PairScorer,
    Scored,
    about_of,
    references_of,
    require_columns,
)

_WORD = re.compile(r"\w+")


def simple(config: SimpleConfig) -> AnswerScorer:
    """Length in words, as white space parts them; chance; or overlap with the question."""
    about: dict[str, Any] = {"scorer": config.scorer}
    if config.scorer == "random-number":
        about["seed"] = config.seed

    def scored(answer: Answer) -> Scored:
        if not answer.text.strip():
            return Scored.none(EMPTY_ANSWER)
        match config.scorer:
            case "length":
                return Scored(float(len(answer.text.split())))
            case "random-number":
                drawn = content_hash([config.seed, answer.question, answer.text])
                return Scored(int(drawn, 16) / 2**64)
        # The share of the question's different words that the answer holds.
        asked, said = (set(_WORD.findall(t.lower())) for t in (answer.question, answer.text))
        return Scored(len(asked & said) / len(asked) if asked else 0.0)

    return AnswerScorer(about, scored, lambda answer: [answer.question, answer.text])


def column(config: ColumnConfig, answers: Sequence[Answer]) -> AnswerScorer:
    """Numbers of a column. Raises SetupError where no answer has the column, and for cells that
    hold no number."""
    name = config.source
    require_columns(answers, [name], "from")
    # Of these answers alone: what stands beside a text says nothing of one made from it.
    cells = {answer.item_id: answer.metadata.get(name, "") for answer in answers}
    wrong = [
        Problem("is no number", field=f"{name}, item {item}", found=cell)
        for item, cell in cells.items()
        if cell.strip() and _number(cell) is None
    ]
    raise_any(wrong)

    def scored(answer: Answer) -> Scored:
        if answer.item_id not in cells:
            return Scored.none(f"the column {name} is not about this text")
        value = _number(cells[answer.item_id])
        return Scored.none(f"the column {name} is blank") if value is None else Scored(value)

    hashed = content_hash([answer.metadata.get(name, "") for answer in answers])
    about = {"scorer": "column", "from": name, "values": hashed}
    return AnswerScorer(about, scored, lambda a: [name, cells.get(a.item_id)], config.better)


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
        score, signature, n_words, least = _MEASURES[type(config)](config)
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


def _rouge(config: RougeConfig) -> _Measure:
    from rouge_score import rouge_scorer, tokenizers

    kind, least = _ROUGE[config.scorer]
    words = tokenizers.DefaultTokenizer(config.stemmer)
    scorer = rouge_scorer.RougeScorer([kind], tokenizer=words)
    stemmer = "porter" if config.stemmer else "no"

    def rouge(text: str, references: Sequence[str]) -> float:
        if config.scorer == "rouge-l":
            return _rouge_l(words.tokenize(references[0]), words.tokenize(text))
        return float(scorer.score(references[0], text)[kind].fmeasure)

    return _Measure(
        rouge,
        f"{kind}|measure:f1|stemmer:{stemmer}|rouge-score:{version('rouge-score')}",
        lambda text: len(words.tokenize(text)),
        least,
    )


def _rouge_l(reference: Sequence[str], text: Sequence[str]) -> float:
    """ROUGE-L as rouge-score computes it, without its table of every word by every word.

    The longest common subsequence is the number of zeros in a row of bits, one for each word of
    the reference: Hyyrö (2004), "Bit-parallel LCS-length computation revisited".
    """
    places: dict[str, int] = {}
    for i, word in enumerate(reference):
        places[word] = places.get(word, 0) | 1 << i
    every = row = (1 << len(reference)) - 1
    for word in text:
        matches = row & places.get(word, 0)
        row = ((row + matches) | (row - matches)) & every
    common = len(reference) - row.bit_count()
    precision, recall = common / len(text), common / len(reference)
    return 2 * precision * recall / (precision + recall) if common else 0.0


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


_MEASURES: Mapping[type, Callable[[Any], _Measure]] = {
    RougeConfig: _rouge, SacrebleuConfig: _sacrebleu, MeteorConfig: _meteor,
}  # fmt: skip
