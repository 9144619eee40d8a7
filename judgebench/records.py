"""The records that pass between the packages, each declared once.

All are frozen: a record is a fact. Text in them is data and is never interpreted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from judgebench.errors import Problem, SetupError

if TYPE_CHECKING:
    import pandas as pd


Number = TypeVar("Number", int, float)
K = TypeVar("K")
V = TypeVar("V")


def group_by_key(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, in the order of the pairs.

    >>> group_by_key([("tone", 1), ("harm", 2), ("tone", 3)])
    {'tone': [1, 3], 'harm': [2]}
    """
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


# Made once: json.dumps would make an encoder for every value.
canonical_json = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode


def sha256_of(value: Any) -> str:
    """The SHA-256 of a JSON-able value as hex digits, equal on every machine."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def content_hash(value: Any) -> str:
    """The first sixteen digits of `sha256_of`."""
    return sha256_of(value)[:16]


def without_runtime(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a description that verdicts depend on: all but how it was set to run."""
    return {key: value for key, value in about.items() if key != "runtime"}


def signature_of(about: Mapping[str, Any]) -> str:
    """Return the hash of all in a description but its `runtime`."""
    return content_hash(without_runtime(about))


# What a row of a data set is, and so what a metric can be about.
AnswerKind = Literal["answer", "pair", "criterion"]
Blindness = Literal["yes", "no", "unknown"]  # whether no annotator saw a model's label
# How a sentence begins on how a data set's labels were collected; see `Dataset.collected`.
COLLECTED = {
    "plan": "Plan of the labels: ",
    "rating_process": "How labels were collected: ",
    "background": "Who the annotators are: ",
    "first_label": "First label: ",
    "protocol": "Protocol of the labels, SHA-256: ",
}
SEVERAL: Mapping[AnswerKind, str] = {"answer": "answers", "pair": "pairs", "criterion": "criteria"}


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of an answer that is more than one text.

    Of a conversation each turn, whose `role` is who speaks (`user`, `assistant`, …). Of a pair each
    `response`, in their order: `name` is its system, `item_id` that of the answer it is, both as
    far as known. Of a criterion its text: `name` is its id, `item_id` that of the answer.
    """

    role: str
    text: str
    name: str = ""
    item_id: str = ""


_NO_METADATA: Mapping[str, str] = {}  # one for all: a million empty ones take 64 MB


@dataclass(frozen=True, slots=True)
class Answer:
    """One text to be judged, or two to be compared, or one to be checked by a criterion.

    `question` may be empty. `group` names the cluster that is one unit (usually the
    question); it is never empty after construction. Where there are `parts`, `question` and `text`
    hold the same in plain words, so that whoever knows no parts can do without them.
    """

    item_id: str
    text: str
    question: str = ""
    system: str = ""
    reference: str | None = None
    group: str = ""
    metadata: Mapping[str, str] = field(default_factory=lambda: _NO_METADATA)
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        if not self.group:
            object.__setattr__(self, "group", self.question or self.item_id)
        if not self.metadata:
            object.__setattr__(self, "metadata", _NO_METADATA)

    @property
    def content_hash(self) -> str:
        """Changes with anything a judge may read; not with the id, group or metadata."""
        read: list[Any] = [self.question, self.text, self.reference]
        return content_hash(read + [[[p.role, p.text] for p in self.parts]] * bool(self.parts))

    @property
    def responses(self) -> tuple[Part, ...]:
        """The two texts of a pair, in their order."""
        return tuple(part for part in self.parts if part.role == "response")

    @property
    def criterion(self) -> Part | None:
        """The criterion by which the text is checked."""
        return next((part for part in self.parts if part.role == "criterion"), None)

    @property
    def turns(self) -> tuple[Part, ...]:
        """The conversation: before the text, or the text itself where that is a conversation."""
        return tuple(part for part in self.parts if part.role not in ("response", "criterion"))

    @property
    def is_conversation(self) -> bool:
        """True where the turns are those of the text, and not what was said before it."""
        return bool(self.turns) and self.text == in_words(self.turns)

    @property
    def kind(self) -> AnswerKind:
        """The kind of row that is labelled."""
        if self.responses:
            return "pair"
        return "criterion" if self.criterion else "answer"


def in_words(turns: Sequence[Part]) -> str:
    """A conversation as one text.

    >>> print(in_words([Part("user", "Is it safe?"), Part("assistant", "Yes.")]))
    user: Is it safe?
    <BLANKLINE>
    assistant: Yes.
    """
    return "\n\n".join(f"{turn.role}: {turn.text}" for turn in turns)


# Who settles what annotators disagree on: no annotator, and nobody a judge is held against.
ADJUDICATED = "adjudicated"


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """The label of one annotator for one item and metric.

    `label` is a label text of the rubric, or None where the cell was blank. An annotator written
    `crowd#3` is the third entry of a list cell: a slot, not a person, so two items' `crowd#3` may
    be different people.
    """

    item_id: str
    annotator: str
    metric: str
    label: str | None

    @property
    def adjudicated(self) -> bool:
        """True where it is no annotator's label."""
        return self.annotator == ADJUDICATED


def is_slot(annotator: str) -> bool:
    """True where a name such as `crowd#3` is a place in a list cell and not a person."""
    return "#" in annotator


class Status(StrEnum):
    """The outcome of judging an answer. Only `ok` carries a label for every metric."""

    OK = "ok"
    UNPARSED = "unparsed"  # a reply came and could not be read
    REFUSED = "refused"  # the model or its provider declined
    FAILED = "failed"  # no reply came, after all retries
    SKIPPED = "skipped"  # never asked (an over-long prompt, say)


HUMAN_COLUMN = "human: "  # before the names of the columns of human labels in verdicts.csv
# Before the metric in the name of a column of verdicts.csv that says who decides the label.
DECIDED_COLUMN = "decided: "
# Why a judge skips what it learnt from: no label of it is due there.
TRAINED_ON = "trained on it"


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls and tokens of an endpoint. Tokens are None where it did not report them.

    `reasoning_tokens` are those of `completion_tokens` that a model thought with, and
    `cached_tokens` those of `prompt_tokens` that the endpoint still had in its cache.
    """

    calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            add_known(self.prompt_tokens, other.prompt_tokens),
            add_known(self.completion_tokens, other.completion_tokens),
            add_known(self.reasoning_tokens, other.reasoning_tokens),
            add_known(self.cached_tokens, other.cached_tokens),
        )


def add_known(a: Number | None, b: Number | None) -> Number | None:
    """The sum of what is known; None only where nothing is."""
    if a is None:
        return b
    return a if b is None else a + b


@dataclass(frozen=True, slots=True)
class Showing:
    """The place of a row that was shown to a judge beside others, and the judge's word on it.

    `place`, from 0, is where its text stood among `of` texts; of a pair, where its first response
    stood. `labels`, by metric, are those of the texts as shown: the preference `first` is for the
    one that stood first.
    """

    place: int
    of: int
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lookup:
    """A question that a judge asked before its verdict, and the passages it was given."""

    question: str
    passages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "passages", tuple(self.passages))  # a list, where read from JSON


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one judge on one answer in one pass.

    `labels` holds every metric that was read, also where `status` is `unparsed` because another
    metric was not. `attempt` counts parse retries, which follow an unreadable reply; the line with
    the highest attempt is the verdict. `cost` is in US dollars, None if unknown; `latency` in
    seconds. `model` is who said to have replied, with the state of its engine where that is given:
    `gpt-4o-2024-08-06, engine fp_44709d6fcb`. `shown` holds a Showing for each request in which
    several texts stood side by side, `rationale` the judge's own reasons, `transcript` what it
    looked up, and `reasoning` what a reasoning model thought before its reply, as far as the
    endpoint tells it apart from the reply. `score` is the number of a scorer; a judge that follows
    from one has turned it so that more is more severe.
    """

    item_id: str
    content_hash: str
    judge: str
    signature: str
    status: Status
    labels: Mapping[str, str] = field(default_factory=dict)
    probabilities: Mapping[str, Mapping[str, float]] | None = None
    attempt: int = 0
    repeat: int = 0
    reason: str = ""
    raw: str = ""
    usage: Usage = Usage()
    cost: float | None = None
    latency: float = 0.0
    model: str = ""
    shown: tuple[Showing, ...] = ()
    rationale: str = ""
    transcript: tuple[Lookup, ...] = ()
    reasoning: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its data and method. `value` is None where undefined; `reason` says why.

    `n` counts the data used, `n_missing` those that were due and are missing. `low` and
    `high` may be None while `value` is not: `reason` then says why there is no interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    method: str = ""
    n: int = 0
    n_missing: int = 0
    reason: str = ""
    level: float = 0.95

    @property
    def complement(self) -> Estimate:
        """1 minus a share, with its interval."""
        if self.value is None:
            return self
        low, high = (None if x is None else 1 - x for x in (self.high, self.low))
        return replace(self, value=1 - self.value, low=low, high=high)

    def __format__(self, spec: str) -> str:
        """`0.812 [0.774, 0.850]`; undefined numbers are shown as an en dash."""
        spec = spec or ".3f"
        if self.value is None:
            return "–"
        if self.low is None or self.high is None:
            return format(self.value, spec)
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def __str__(self) -> str:
        return format(self)


# Columns that say how likely an answer was to be labelled: one over it, or the chance itself.
WEIGHTS, CHANCES = ("weight", "sampling_weight"), ("probability", "inclusion_probability")


def columns_named(columns: Iterable[str], names: Iterable[str]) -> list[str]:
    """Those of the columns with these names, whatever their case and the signs between words.

    >>> columns_named(["text", "Sampling-Weight"], WEIGHTS)
    ['Sampling-Weight']
    """
    plain = {column.lower().replace(" ", "_").replace("-", "_"): column for column in columns}
    return [plain[name] for name in names if name in plain]


@dataclass(frozen=True, slots=True)
class Dataset:
    """Answers with their human labels, and the counted warnings met while reading them.

    `textless` are the files whose items have no text: only labels and verdicts of them are known.
    `blind` says, by the files, whether the labels were made without sight of any model's label, and
    `collected`, by the study of `judgebench annotate` that they come from, how they were collected.
    """

    answers: Sequence[Answer]
    labels: Sequence[HumanLabel]
    warnings: Sequence[Problem] = ()
    sources: Mapping[str, str] = field(default_factory=dict)  # file -> sha256
    textless: Sequence[str] = ()
    blind: Blindness = "unknown"
    collected: Sequence[str] = ()

    @property
    def n_labels(self) -> int:
        """The number of labels that annotators gave; a blank cell is none."""
        return sum(x.label is not None and not x.adjudicated for x in self.labels)


NOT_COMPUTED = Estimate(None, reason="not computed for this metric")
ESTIMATE_COLUMNS = ("value", "low", "high", "level", "n", "n_missing", "method", "reason")


@dataclass(frozen=True, slots=True)
class Row:
    """One number. `keys` holds whatever else identifies it, such as `failures` or `annotator`.

    Raises ValueError for keys that the estimate's columns would hide.
    """

    analysis: str
    statistic: str
    estimate: Estimate
    judge: str = ""
    metric: str = ""
    keys: Mapping[str, str | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if hidden := self.keys.keys() & set(ESTIMATE_COLUMNS):
            raise ValueError(f"the estimate has columns of these names: {', '.join(hidden)}")

    def __getitem__(self, key: str) -> str:
        """One of the keys; empty where the row has no such key."""
        if key in ("analysis", "statistic", "judge", "metric"):
            return str(getattr(self, key))
        return str(self.keys.get(key, ""))

    def plain(self) -> dict[str, Any]:
        """Keys and estimate side by side, as they stand in a CSV file or a data frame."""
        e = self.estimate
        level = None if e.low is None else e.level
        return {
            "analysis": self.analysis, "judge": self.judge, "metric": self.metric,
            "statistic": self.statistic, **self.keys,
            "value": e.value, "low": e.low, "high": e.high, "level": level,
            "n": e.n, "n_missing": e.n_missing, "method": e.method, "reason": e.reason,
        }  # fmt: skip


@dataclass(frozen=True, repr=False)
class Results:
    """Rows, in the order in which they are written, and how to find some of them.

    >>> from judgebench.records import Estimate
    >>> found = Results((Row("score", "accuracy", Estimate(0.5, n=4), "m", "tone"),))
    >>> found.find("accuracy", judge="m", metric="tone").value
    0.5
    """

    rows: tuple[Row, ...] = ()

    def __repr__(self) -> str:
        return f"{len(self.rows):,} rows of results; to_frame() gives them as a DataFrame"

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def select(self, analysis: str = "", statistic: str = "", **keys: str) -> list[Row]:
        """The rows with all these keys; an empty analysis or statistic means any."""
        if statistic:
            keys["statistic"] = statistic
        if analysis:
            keys["analysis"] = analysis
        names = tuple(keys)
        if names not in self._indices:
            self._indices[names] = group_by_key(
                (tuple(row[name] for name in names), row) for row in self.rows
            )
        return [*self._indices[names].get(tuple(keys.values()), ())]

    def find(self, statistic: str, analysis: str = "", **keys: str) -> Estimate:
        """The estimate of the first such row; undefined with a reason where there is none."""
        return next(
            (row.estimate for row in self.select(analysis, statistic, **keys)), NOT_COMPUTED
        )

    def values(self, key: str, analysis: str = "", statistic: str = "") -> list[str]:
        """The different values of a key among those rows, in their order."""
        return list(dict.fromkeys(row[key] for row in self.select(analysis, statistic)))

    @cached_property
    def _indices(self) -> dict[tuple[str, ...], dict[tuple[str, ...], list[Row]]]:
        """By names of keys, the rows by the values of these keys; made when first asked for."""
        return {}

    @property
    def columns(self) -> list[str]:
        """The columns of these rows: the common keys, every other key, the estimate."""
        other = dict.fromkeys(key for row in self.rows for key in row.keys)
        return ["analysis", "judge", "metric", "statistic", *other, *ESTIMATE_COLUMNS]

    def to_frame(
        self, analysis: str = "", failures: Literal["left_out", "all"] = "left_out"
    ) -> pd.DataFrame:
        """One row for each number, of all analyses or of one, with no columns but its own; an
        undefined number is NaN and its `reason` says why. A judge's failures are left out;
        `failures="all"` adds the rows where they count as wrong (`worst`) and as right (`best`).
        Raises SetupError for another analysis.

        >>> found = Results((Row("score", "accuracy", Estimate(0.5, n=4), "m", "tone"),))
        >>> found.to_frame("score").statistic.to_list()
        ['accuracy']
        """
        import pandas as pd

        shown = ("", "left_out", *(["worst", "best"] if failures == "all" else []))
        selected = [row for row in self.select(analysis) if row["failures"] in shown]
        rows, known = Results(tuple(selected)), self.values("analysis")
        if analysis and not rows.rows:
            raise SetupError(Problem("is none", "", None, "analysis", analysis, ", ".join(known)))
        return pd.DataFrame([row.plain() for row in rows], columns=rows.columns)
