"""Scorers: a number for an answer, or the reason why there is none; the references of an answer;
scorers that read it with each reference in turn; and scores that are kept on disk."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, Protocol

from judgebench.data.formats import split_list
from judgebench.errors import MissingExtra, Problem, SetupError, raise_any
from judgebench.files import disk_errors, drop_torn_line, read_lines, to_line
from judgebench.judges.judge import Task
from judgebench.models.checkpoints import identify
from judgebench.records import Answer, Status, content_hash, signature_of
from judgebench.rubric import normalise
from judgebench.scorers.config import (
    ColumnConfig,
    MeteorConfig,
    PairsConfig,
    RougeConfig,
    SacrebleuConfig,
    SimpleConfig,
)
from judgebench.text import counted

EMPTY_ANSWER = "the answer is empty"
NO_REFERENCE = "there is no reference"
Better = Literal["higher", "lower", ""]  # "" where nobody knows


@dataclass(frozen=True, slots=True)
class Scored:
    """The score of one answer. Without a `value`, `status` and `reason` say why; beside a value a
    `reason` is a remark that is counted, such as that the tail of a text was cut."""

    value: float | None
    status: Status = Status.OK
    reason: str = ""

    @classmethod
    def none(cls, reason: str, status: Status = Status.SKIPPED) -> Scored:
        """No score, and why."""
        return cls(None, status, reason)


class Scorer(Protocol):
    """A number for each answer. `about` holds everything that the numbers depend on: scorer,
    options, rule for several references, versions of libraries, hash of weights (and `runtime`,
    which is not hashed). `at_once` answers are scored in one call."""

    @property
    def better(self) -> Better: ...

    @property
    def at_once(self) -> int: ...

    @property
    def about(self) -> Mapping[str, Any]: ...

    def key(self, answer: Answer) -> Any:
        """The key of what is read of the answer, JSON-able: equal for two answers that get one
        score."""
        ...

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        """One for each answer, in their order. Whatever is wrong with one changes no other."""
        ...

    def close(self) -> None:
        """Give back engines; may be called twice."""
        ...


@dataclass(frozen=True)
class AnswerScorer:
    """A `Scorer` that looks at one answer at a time and needs no engine."""

    about: Mapping[str, Any]
    of: Callable[[Answer], Scored]
    key: Callable[[Answer], Any]
    better: Better = ""
    at_once: int = 4096

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        return [self.of(answer) for answer in answers]

    def close(self) -> None:
        """Nothing to give back."""


IS_REFERENCE = "is_reference"
"""The column of a table of scores that says which answers are their own reference."""
_LIST = re.compile(r"\s*[\[(]\s*[\"']")  # of texts, as in JSON or Python


def references_of(answer: Answer, columns: Sequence[str] = ()) -> tuple[str, ...]:
    """The references of an answer: its reference, or each text of a list in its place, then
    the cells of these columns. Blank ones are left out.

    >>> references_of(Answer("1", "Yes.", reference='["Yes, it is.", "It is."]'))
    ('Yes, it is.', 'It is.')
    """
    found: Sequence[str] = [answer.reference or ""]
    if _LIST.match(found[0]):
        with suppress(ValueError):
            found = split_list(found[0])
    found = [*found, *(answer.metadata.get(column, "") for column in columns)]
    return tuple(text for text in found if text.strip())


def is_reference(text: str, references: Sequence[str]) -> bool:
    """True where the text is one of them, but for case and punctuation."""
    said = normalise(text)
    return bool(said) and said in map(normalise, references)


def reference_systems(texts: Iterable[tuple[str, str, Sequence[str]]]) -> Iterator[str]:
    """Sentences on each system whose answers are references, most of them at least. `texts` are
    (system, text, references)."""
    counts: dict[str, list[bool]] = defaultdict(list)
    for system, text, references in texts:
        counts[system].append(is_reference(text, references))
    for system, same in counts.items():
        if system and 2 * sum(same) > len(same):
            yield (
                f"System {system} is the reference text in {sum(same):,} of "
                f"{counted(len(same), 'answer')}: scorers that read the reference score it against "
                "itself, and correlations with it mislead. Leave it out."
            )


def over_references(scores: Sequence[float], rule: str, better: Better) -> float:
    """One score of those against each reference: their mean, or with `max` the best of them."""
    if rule == "mean":
        return sum(scores) / len(scores)
    return min(scores) if better == "lower" else max(scores)


def require_columns(answers: Sequence[Answer], columns: Sequence[str], field: str) -> None:
    """Raises SetupError with each of the columns that no answer has."""
    known = sorted({column for answer in answers for column in answer.metadata})
    message = "is no column that the data keeps; give it the role `kept` in a layout.yaml"
    allowed = ", ".join(known)
    lacking = (column for column in columns if column not in known)
    raise_any([Problem(message, "", None, field, name, allowed) for name in lacking])


Pair = tuple[Answer, str]  # with one of its references
_PACKAGES = {"ot": "POT"}  # by the module to import


@dataclass(frozen=True)
class PairScorer:
    """A `Scorer` of pairs. Pairs without a score are passed over where another has one. Where it
    `reads` no reference, each answer is one pair, with an empty text; where all references count
    `joint`, with the first."""

    config: PairsConfig | SacrebleuConfig
    about: Mapping[str, Any]
    scored: Callable[[Sequence[Pair]], Sequence[Scored]]
    close: Callable[[], None]
    better: Better = "higher"
    at_once: int = 64
    reads: Sequence[str] = ("answer", "reference")

    def key(self, answer: Answer) -> Any:
        asked = [answer.question] if "question" in self.reads else []
        return [answer.text, self._references(answer), *asked]

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        most = 1 if self.config.references == "joint" else None
        places = [
            (row, (answer, reference))
            for row, answer in enumerate(answers)
            if answer.text.strip()
            for reference in self._references(answer)[:most]
        ]
        own: list[list[Scored]] = [[] for _ in answers]
        scored = self.scored([pair for _, pair in places])
        for (row, _), one in zip(places, scored, strict=True):
            own[row].append(one)
        return [self._over(*one) for one in zip(answers, own, strict=True)]

    def _references(self, answer: Answer) -> Sequence[str]:
        if "reference" not in self.reads:
            return ("",)
        return references_of(answer, self.config.reference_columns)

    def _over(self, answer: Answer, scored: Sequence[Scored]) -> Scored:
        if not answer.text.strip():
            return Scored.none(EMPTY_ANSWER)
        had = [(one.value, one.reason) for one in scored if one.value is not None]
        if not had:
            return scored[0] if scored else Scored.none(NO_REFERENCE)
        value = over_references([value for value, _ in had], self.config.references, self.better)
        return Scored(value, reason=max((reason for _, reason in had), key=len))


def about_of(
    config: PairsConfig | SacrebleuConfig, answers: Sequence[Answer], *modules: str
) -> dict[str, Any]:
    """The common description of scorers of pairs. Raises MissingExtra where one of the `modules`
    is not installed, and SetupError for a column of references that the data lacks."""
    if lacking := [_PACKAGES.get(m, m) for m in modules if find_spec(m) is None]:
        raise MissingExtra(f"the scorer {config.scorer}", "semantic", " and ".join(lacking))
    about: dict[str, Any] = {"scorer": config.scorer, "references": config.references}
    if columns := config.reference_columns:
        require_columns(answers, columns, "reference_columns")
        # No answer's hash changes with its metadata.
        cells = [[answer.metadata.get(column, "") for column in columns] for answer in answers]
        about |= {"reference_columns": [*columns], "values": content_hash(cells)}
    return about


def weights_of(folder: Path) -> dict[str, Any]:
    """The weights of a scorer, and the version of what reads texts for them."""
    return identify(str(folder)) | {"transformers": version("transformers")}


def cut_of(answer: bool, reference: bool) -> str:
    """The remark on texts whose tail was not read; the longest one says most."""
    if answer and reference:
        return "the tails of answer and reference are cut"
    which = "answer" if answer else "reference"
    return f"the tail of the {which} is cut" if answer or reference else ""


def _finite(one: Scored) -> Scored:
    """A number that no mean and no rank can take is no score."""
    whole = one.value is None or math.isfinite(one.value)
    return one if whole else Scored.none("its score is no finite number")


class KeptScores:
    """The scores of a scorer, below `folder`, or only in memory where that is None. Each text is
    scored once; what is killed between two blocks has kept those before."""

    def __init__(self, scorer: Scorer, folder: Path | None) -> None:
        self.scorer, self.signature = scorer, signature_of(scorer.about)
        self._path = folder and folder / f"{self.signature}.jsonl"
        self._held: dict[str, Scored] | None = None

    def of(
        self, answers: Sequence[Answer], advance: Callable[[int], None] = lambda n: None
    ) -> Sequence[Scored]:
        """One score for each answer; `advance` hears how many more are done. Raises DiskFailed and
        what the scorer raises."""
        held = self._read()
        keys = [content_hash(self.scorer.key(answer)) for answer in answers]
        new = {k: a for k, a in zip(keys, answers, strict=True) if k not in held}
        times = Counter(keys)
        advance(len(keys) - sum(times[key] for key in new))
        left = list(new.items())
        for start in range(0, len(left), self.scorer.at_once):
            block = left[start : start + self.scorer.at_once]
            made = map(_finite, self.scorer.score([answer for _, answer in block]))
            self._keep({key: one for (key, _), one in zip(block, made, strict=True)})
            advance(sum(times[key] for key, _ in block))
        return [held[key] for key in keys]

    def along(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Scored]]:
        """Each task with the score of its answer."""
        coming = iter(tasks)
        while block := list(islice(coming, self.scorer.at_once)):
            yield from zip(block, self.of([task.answer for task in block]), strict=True)

    def _read(self) -> dict[str, Scored]:
        if self._held is None:
            self._held = {}
            if self._path and self._path.is_file():
                drop_torn_line(self._path)
                for number, line in read_lines(self._path):
                    self._held |= _scored(line, self._path, number)
        return self._held

    def _keep(self, made: dict[str, Scored]) -> None:
        self._read().update(made)
        if self._path is None:
            return
        lines = [
            to_line(
                {
                    "key": key, "value": one.value,
                    **({"status": one.status.value} if one.status is not Status.OK else {}),
                    **({"reason": one.reason} if one.reason else {}),
                }
            )
            for key, one in made.items()
        ]  # fmt: skip
        with disk_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write("".join(lines))

    def close(self) -> None:
        """Give back the scorer's engine and what was read; may be used again."""
        self.scorer.close()
        self._held = None


def _scored(line: dict[str, Any], path: Path, number: int) -> dict[str, Scored]:
    """The score that a line holds, by its key. Raises SetupError where it holds none."""
    try:
        status, value = Status(line.get("status", Status.OK)), line.get("value")
        found = None if value is None else float(value)
        return {str(line["key"]): Scored(found, status, str(line.get("reason", "")))}
    except (KeyError, TypeError, ValueError):
        message = "is no score; delete the line to have it computed again"
        raise SetupError(Problem(message, str(path), number)) from None


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
