"""Scorers: a number for an answer, or the reason why there is none; the references of an answer;
scorers of columns, of shared words and of pairs; and scores that are kept on disk."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from judgebench.data.formats import number_in, split_list
from judgebench.errors import MissingExtra, Problem, SetupError, raise_any
from judgebench.files import disk_errors, drop_torn_line, read_lines, to_line
from judgebench.judges.judge import Task
from judgebench.records import Answer, Status, content_hash, signature_of
from judgebench.rubric import normalise
from judgebench.scorers.config import Better, ColumnConfig, OverlapConfig, ScorerConfig
from judgebench.text import counted

EMPTY_ANSWER = "the answer is empty"
NO_REFERENCE = "there is no reference"
NO_QUESTION = "the question is empty"


@dataclass(frozen=True, slots=True)
class Scored:
    """The score of one answer. Without a `value`, `reason` says why; beside a value a `reason` is a
    remark that is counted, such as that the tail of a text was cut."""

    value: float | None
    reason: str = ""

    @property
    def status(self) -> Status:
        """How the scoring ended."""
        return Status.SKIPPED if self.value is None else Status.OK

    @classmethod
    def none(cls, reason: str) -> Scored:
        """No score, and why."""
        return cls(None, reason)


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
    score_one: Callable[[Answer], Scored]
    key: Callable[[Answer], Any]
    better: Better = ""
    at_once: int = 4096

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        """One for each answer."""
        return [self.score_one(answer) for answer in answers]

    def close(self) -> None:
        """Nothing to give back."""


_LIST = re.compile(r"\s*[\[(]\s*[\"']")  # of texts, as in JSON or Python


def references_of(answer: Answer) -> tuple[str, ...]:
    """The references of an answer: its reference, or each text of a list in its place. Blank ones
    are left out.

    >>> references_of(Answer("1", "Yes.", reference='["Yes, it is.", "It is."]'))
    ('Yes, it is.', 'It is.')
    """
    return texts_in(answer.reference or "")


def texts_in(cell: str) -> tuple[str, ...]:
    """The text of a cell, or each text of a list in it, without blank ones."""
    texts: Sequence[str] = [cell]
    if _LIST.match(cell):
        with suppress(ValueError):
            texts = split_list(cell)
    return tuple(text for text in texts if text.strip())


def copied_references(answers: Iterable[Answer]) -> list[str]:
    """A sentence on each system most of whose answers are a reference, but for case and
    punctuation."""
    copies: dict[str, list[bool]] = defaultdict(list)
    for answer in answers:
        references = map(normalise, references_of(answer))
        copies[answer.system].append(normalise(answer.text) in filter(None, references))
    return [
        f"System {system} is the reference text in {sum(same):,} of "
        f"{counted(len(same), 'answer')}: scorers that read the reference score it against itself, "
        "and correlations with it mislead. Leave it out."
        for system, same in copies.items()
        if system and 2 * sum(same) > len(same)
    ]


def require_column(answers: Sequence[Answer], column: str, field: str) -> None:
    """Raises SetupError where no answer has the column."""
    known = sorted({name for answer in answers for name in answer.metadata})
    if column not in known:
        message = "is no column that the data keeps; give it the role `kept` in a layout.yaml"
        raise SetupError(Problem(message, "", None, field, column, ", ".join(known)))


Pair = tuple[Answer, Sequence[str]]  # an answer with one of its references, or with all


@dataclass(frozen=True)
class PairScorer:
    """A `Scorer` of an answer with its references: with all at once where they count `joint`, else
    with each in turn, of which the best counts. Where it `reads` no reference, each answer is one
    pair, with an empty text."""

    about: Mapping[str, Any]
    compare: Callable[[Sequence[Pair]], Sequence[Scored]]
    close: Callable[[], None] = lambda: None
    better: Better = "higher"
    at_once: int = 64
    reads: Sequence[str] = ("answer", "reference")
    joint: bool = False

    def key(self, answer: Answer) -> Any:
        """The texts that are read."""
        question = [answer.question] if "question" in self.reads else []
        return [answer.text, self._references(answer), *question]

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        """One for each answer."""
        sets = [self._sets(answer) for answer in answers]
        pairs = [(a, one) for a, several in zip(answers, sets, strict=True) for one in several]
        scores = iter(self.compare(pairs))
        scored = [[*islice(scores, len(several))] for several in sets]
        return [*map(self._best, answers, scored)]

    def _references(self, answer: Answer) -> Sequence[str]:
        return references_of(answer) if "reference" in self.reads else ("",)

    def _sets(self, answer: Answer) -> Sequence[Sequence[str]]:
        """The references that are compared at once; none of an answer that has no score."""
        references = self._references(answer)
        if self._lacking(answer) or not references:
            return ()
        return [references] if self.joint else [(reference,) for reference in references]

    def _lacking(self, answer: Answer) -> str:
        if not answer.text.strip():
            return EMPTY_ANSWER
        return "" if answer.question.strip() or "question" not in self.reads else NO_QUESTION

    def _best(self, answer: Answer, scored: Sequence[Scored]) -> Scored:
        if lacking := self._lacking(answer):
            return Scored.none(lacking)
        known = [one for one in scored if one.value is not None]
        if not known:
            return scored[0] if scored else Scored.none(NO_REFERENCE)
        best = min if self.better == "lower" else max
        return best(known, key=lambda one: one.value or 0.0)


class KeptScores:
    """The scores of a scorer, below `folder`, or only in memory where that is None. Each text is
    scored once; what is killed between two blocks has kept those before."""

    def __init__(self, scorer: Scorer, folder: Path | None) -> None:
        self.scorer, self.signature = scorer, signature_of(scorer.about)
        self._path = folder and folder / f"{self.signature}.jsonl"

    def of(
        self, answers: Sequence[Answer], advance: Callable[[int], None] = lambda n: None
    ) -> Sequence[Scored]:
        """One score for each answer; `advance` hears how many more are done. Raises DiskFailed and
        what the scorer raises."""
        cache = self._cache
        keys = [content_hash(self.scorer.key(answer)) for answer in answers]
        new = {k: a for k, a in zip(keys, answers, strict=True) if k not in cache}
        advance(len(keys) - len(new))
        rest = iter(new.items())
        while block := list(islice(rest, self.scorer.at_once)):
            scores = self.scorer.score([answer for _, answer in block])
            self._keep({k: _finite(score) for (k, _), score in zip(block, scores, strict=True)})
            advance(len(block))
        return [cache[key] for key in keys]

    def along(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Scored]]:
        """Each task with the score of its answer."""
        coming = iter(tasks)
        while block := list(islice(coming, self.scorer.at_once)):
            yield from zip(block, self.of([task.answer for task in block]), strict=True)

    @cached_property
    def _cache(self) -> dict[str, Scored]:
        if not self._path or not self._path.is_file():
            return {}
        drop_torn_line(self._path)
        lines = (line for _, line in read_lines(self._path))
        return {line["key"]: Scored(line["value"], line["reason"]) for line in lines}

    def _keep(self, scores: Mapping[str, Scored]) -> None:
        self._cache.update(scores)
        if self._path is None:
            return
        with disk_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                for key, one in scores.items():
                    file.write(to_line({"key": key, "value": one.value, "reason": one.reason}))

    def close(self) -> None:
        """Give back the scorer's engine and what was read; may be used again."""
        self.scorer.close()
        self.__dict__.pop("_cache", None)


def _finite(score: Scored) -> Scored:
    """A number that no mean and no rank can take is no score."""
    if score.value is None or math.isfinite(score.value):
        return score
    return Scored.none("its score is no finite number")


_WORD = re.compile(r"\w+")
_SEED = 0  # of the draw that depends on the answer


def baseline(config: ScorerConfig) -> AnswerScorer:
    """Length in words, as white space parts them; chance; or the share of the question's different
    words that the answer holds."""

    def score_one(answer: Answer) -> Scored:
        if not answer.text.strip():
            return Scored.none(EMPTY_ANSWER)
        if config.scorer == "length":
            return Scored(float(len(answer.text.split())))
        if config.scorer == "random-number":
            return Scored(int(content_hash([_SEED, answer.question, answer.text]), 16) / 2**64)
        asked, told = (set(_WORD.findall(t.lower())) for t in (answer.question, answer.text))
        return Scored(len(asked & told) / len(asked) if asked else 0.0)

    seed = {"seed": _SEED} if config.scorer == "random-number" else {}
    about = {"scorer": config.scorer, **seed}
    return AnswerScorer(about, score_one, lambda answer: [answer.question, answer.text])


def column(config: ColumnConfig, answers: Sequence[Answer]) -> AnswerScorer:
    """Numbers of a column. Raises SetupError where no answer has the column, and for cells that
    hold no number."""
    name = config.source
    require_column(answers, name, "from")
    # Of these answers alone: what stands beside a text says nothing of one made from it.
    cells = {answer.item_id: answer.metadata.get(name, "") for answer in answers}
    numbers = {item: number_in(cell) for item, cell in cells.items() if cell.strip()}
    raise_any([
        Problem("is no number", field=f"{name}, item {item}", found=cells[item])
        for item, number in numbers.items()
        if not math.isfinite(number)
    ])  # fmt: skip

    def score_one(answer: Answer) -> Scored:
        reason = "is blank" if answer.item_id in cells else "is not about this text"
        number = numbers.get(answer.item_id)
        return Scored(number, f"the column {name} {reason}" if number is None else "")

    about = {"scorer": "column", "from": name, "values": content_hash([*cells.values()])}
    return AnswerScorer(about, score_one, lambda a: [name, cells.get(a.item_id)], config.better)


_UNREAD = "the {} has too few words of a-z and 0-9, which alone ROUGE reads"
Compare = Callable[[Answer, Sequence[str]], Scored]


def overlap(config: OverlapConfig) -> PairScorer:
    """ROUGE (Lin 2004; F1), BLEU (Papineni et al. 2002), chrF and chrF++ (Popovic 2015, 2017) or
    TER (Snover et al. 2006), as their libraries compute them for a single text. Of several
    references ROUGE takes the best; sacrebleu has a rule for each metric, which reads all at once.

    Raises MissingExtra without the library."""
    is_rouge, is_ter = config.scorer.startswith("rouge"), config.scorer == "ter"
    try:
        compare, signature = _rouge(config) if is_rouge else _sacrebleu(config.scorer)
    except ImportError as error:
        package = "rouge-score" if is_rouge else "sacrebleu"
        raise MissingExtra(f"the scorer {config.scorer}", "scorers", package) from error
    about = {
        "scorer": config.scorer, "signature": signature,
        "references": "max" if is_rouge else "joint",
    }  # fmt: skip
    return PairScorer(
        about, lambda pairs: [compare(*pair) for pair in pairs],
        better="lower" if is_ter else "higher",
        at_once=8 if is_ter else 256,  # TER may take seconds for long texts
        joint=not is_rouge,
    )  # fmt: skip


def _rouge(config: OverlapConfig) -> tuple[Compare, str]:
    from rouge_score import rouge_scorer, tokenizers

    kind = config.scorer.replace("-", "").replace("l", "L")
    tokenizer = tokenizers.DefaultTokenizer(config.stemmer)
    scorer = rouge_scorer.RougeScorer([kind], tokenizer=tokenizer)
    least = 2 if kind == "rouge2" else 1  # words of a reference that has something to share

    def compare(answer: Answer, references: Sequence[str]) -> Scored:
        text, reference = (tokenizer.tokenize(t) for t in (answer.text, references[0]))
        if not text:
            return Scored.none(_UNREAD.format("answer"))
        if len(reference) < least:
            return Scored.none(_UNREAD.format("reference"))
        if kind == "rougeL":
            return Scored(_rouge_l(reference, text))
        return Scored(float(scorer.score(references[0], answer.text)[kind].fmeasure))

    stemmer = "porter" if config.stemmer else "no"
    return compare, f"{kind}|measure:f1|stemmer:{stemmer}|rouge-score:{version('rouge-score')}"


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


def _sacrebleu(scorer: str) -> tuple[Compare, str]:
    from sacrebleu.metrics import BLEU, CHRF, TER

    kinds = {
        "bleu": partial(BLEU, effective_order=True), "chrf": CHRF,
        "chrf++": partial(CHRF, word_order=2), "ter": TER,
    }  # fmt: skip
    metric: Any = kinds[scorer]()
    metric.num_refs = -1  # as after scoring texts with different numbers of references

    def compare(answer: Answer, references: Sequence[str]) -> Scored:
        return Scored(float(metric.sentence_score(answer.text, references).score))

    return compare, str(metric.get_signature())
