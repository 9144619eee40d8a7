"""The verdicts of a judge as arrays: label indices, label probabilities, statuses.

Names of models: annotators that may be no people, so that a judge's labels never enter the
truth unnoticed, and judges whose model changed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from judgebench.errors import Problem
from judgebench.records import TRAINED_ON, Status, Verdict
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray, ratio
from judgebench.studies.answers import IndexedAnswers
from judgebench.studies.reference_labels import Labels

# As words of a name, with or without a version behind them. What is also a first name or a surname
# (Claude, Gemma, Bert, Falcon) is not among them.
_MODELS = re.compile(
    r"(?:chat|code|med|tiny)?"
    r"(?:llama|llms?|vllm|models?|gemini|qwen|qwq|mistral|mixtral|ministral|deepseek|grok|vicuna|"
    r"olmo|smollm|nemotron|prometheus|chatglm|chatbot|openai|anthropic)(?:v?\d\w*)?"
    r"|(?=\w*gpt)\w++"
)
# Names and words that are models too, where a version or a variant stands behind them.
_FIRST_NAMES = frozenset(
    {"claude", "gemma", "kimi", "phi", "yi", "bert", "roberta", "opus", "sonnet", "haiku"}
)
_VARIANT = re.compile(
    r"v?\d|\d+(?:\.\d+)?b|[kr]\d|opus|sonnet|haiku|instant|instruct|chat|base|large|mini|it"
)
_FUSED = re.compile(r"(?:claude|gemma|phi|kimi)-?\d(?:\.\d+)?")  # gemma2, claude-3.5
_JUDGE = re.compile(r"[a-z0-9.]+(?:[-_][a-z0-9.]+)*[-_]judge(?:[-_]?\d+)?")
_PEOPLE = frozenset({"annotator", "clinician", "crowd", "dr", "expert", "human", "lay", "person"})
_FIXED = re.compile(r"[-_@]?(?:\d{4}-\d{2}-\d{2}|\d{4,8})$")  # of a fixed version
_MOST_NAMED = 8
_MOST_SERVED = 4


def is_like_a_model(name: str) -> bool:
    """True where an annotator is named like a language model or a judge.

    >>> [is_like_a_model(name) for name in ("gpt-4", "claude-3-opus", "tone-judge", "Claude")]
    [True, True, True, False]
    """
    words = re.findall(r"[^\W_]+", name.casefold())
    if any(_MODELS.fullmatch(word) for word in words) or _FUSED.fullmatch(name.casefold()):
        return True
    if words and words[0] in _FIRST_NAMES and any(map(_VARIANT.fullmatch, words[1:])):
        return True
    return bool(_JUDGE.fullmatch(name)) and not _PEOPLE.intersection(words)


def is_model(system: str, model: str) -> bool:
    """True where a system is named like a model, whatever the provider, case and date of its
    version.

    >>> [is_model("gpt-4", name) for name in ("openai/GPT-4-0613", "gpt-4-turbo", "")]
    [True, False, False]
    """
    bare = [_FIXED.sub("", name.casefold().rpartition("/")[2]) for name in (system, model)]
    first, second = (re.sub(r"[^a-z0-9]", "", name) for name in bare)
    return bool(first) and first == second


def replaced(judge: str, models: Mapping[str, int]) -> str:
    """A sentence on a judge whose verdicts came from several models, or from one whose engine
    changed; empty otherwise. `models` counts verdicts by `Verdict.model`.

    >>> replaced("tone", {"gpt-4o-2024-08-06": 9}), replaced("tone", {"a": 9, "b": 1})[:50]
    ('', 'tone: its verdicts came from 2 models (a 9, b 1): ')
    """
    counts = Counter[str]()
    for served, n in models.items():
        counts.update(dict.fromkeys(served.split(" + "), n))
    if len(counts) < 2:
        return ""
    shown = [f"{one} {n:,}" for one, n in counts.most_common(_MOST_SERVED)]
    listed = ", ".join([*shown, *(["…"] if len(counts) > _MOST_SERVED else [])])
    names = {one.partition(", engine ")[0] for one in counts}
    if len(names) > 1:
        return (
            f"{judge}: its verdicts came from {len(names):,} models ({listed}): the judge may "
            "have been replaced during the run. Name a fixed version and judge in a new folder."
        )
    return f"{judge}: the engine of its model changed during the run ({listed})."


def suspects(makers: Sequence[str], judges: Collection[str] = ()) -> dict[str, str]:
    """The makers of the truth that may be no person, and why; a list of labels (`llm#1`) is one.

    `judges` are the names of the judges of the study.
    """
    known = {name.casefold() for name in judges}
    found = {}
    for name in dict.fromkeys(maker.split("#")[0] for maker in makers):
        if name.casefold() in known:
            found[name] = "has the name of a judge"
        elif is_like_a_model(name):
            found[name] = "is named like a model"
    return found


def suspicions(
    makers: Sequence[str], judges: Collection[str] = (), file: str = ""
) -> Iterator[Problem]:
    """A warning for each of the `suspects`, with the line that takes it out of the truth."""
    found = suspects(makers, judges)
    people = dict.fromkeys(m.split("#")[0] + "#*" * ("#" in m) for m in makers)
    others = [name for name in people if name.removesuffix("#*") not in found]
    if len(others) > _MOST_NAMED:
        others = [*others[:_MOST_NAMED], "…"]
    listed = yaml.safe_dump(others, default_flow_style=True, width=1000, allow_unicode=True).strip()
    leave_out = f"leave it out with `truth: {{annotators: {listed}}}` or " if others else ""
    for name, why in found.items():
        yield Problem(
            f"{name!r} makes the reference labels and {why}; if it is no person, "
            f"{leave_out}compare it with "
            f"`judges: [{{name: {name}, verdicts: FILE}}]`",
            file,
            kind="model_in_truth",
        )


def weighed(metric: Metric) -> tuple[str, ...]:
    """The labels in the rubric's order, then those of `abstain`."""
    return (*metric.label_texts, *metric.abstain)


def shares(weighed: NDArray[np.floating[Any]], metric: Metric) -> FloatArray:
    """Rows (answers, k) that add up to 1, from rows as long as `weighed`."""
    p = weighed[:, : len(metric.labels)].astype(np.float64)
    usable = ((p >= 0) & (p < np.inf)).all(axis=1)  # a NaN is neither
    for abstaining in weighed.T[len(metric.labels) :]:
        usable &= abstaining <= p.max(axis=1)
    p[~usable] = 0
    return ratio(p, p.sum(axis=1, keepdims=True))


_TRAINED_ON = len(Status)  # the code of what a judge skipped because it learnt from it
_SCORE = ""
_STATUSES = [*Status, Status.SKIPPED]  # by their codes


class CodedVerdicts:
    """A judge's verdict on each answer, as arrays: a million verdicts as objects would take
    gigabytes. Labels and probabilities are those of the `metrics`."""

    def __init__(self, answers: IndexedAnswers, metrics: Sequence[Metric]) -> None:
        self._answers = answers
        self._statuses = np.full(len(answers), -1, np.int8)  # their codes; -1: no verdict
        # Codes of labels by metric. Whether the rubric knows a label is asked when it is counted,
        # as an older line may be wrong without harm.
        self._labels = {metric.id: np.full(len(answers), -1, np.int32) for metric in metrics}
        self._texts: dict[str, int] = {}
        # (answers, options) by metric, once a verdict has some; scores under no metric's name.
        self._numbers: dict[str, FloatArray] = {}
        self._options = {_SCORE: (_SCORE,), **{metric.id: weighed(metric) for metric in metrics}}

    def put(self, row: int, verdict: Verdict) -> None:
        """Keep what is said of the answer in that row, in place of what was said before."""
        is_own = verdict.reason == TRAINED_ON
        self._statuses[row] = _TRAINED_ON if is_own else _STATUSES.index(verdict.status)
        for metric, codes in self._labels.items():
            label = verdict.labels.get(metric)
            codes[row] = -1 if label is None else self._texts.setdefault(label, len(self._texts))
        given = {**(verdict.probabilities or {})}
        if verdict.score is not None:
            given[_SCORE] = {_SCORE: verdict.score}
        for name in given.keys() - self._numbers.keys() & self._options.keys():
            self._numbers[name] = np.full((len(self._answers), len(self._options[name])), np.nan)
        for name, numbers in self._numbers.items():
            known, options = given.get(name, {}), self._options[name]
            numbers[row] = [known[o] for o in options] if known.keys() >= {*options} else np.nan

    def label_indices(self, metric: Metric, answers: IndexedAnswers) -> Labels:
        """The label index of each of these answers, -1 where there is none or the judge abstained.

        Raises SetupError where a label is none of the metric's.
        """
        return self._coded(metric, answers, metric.index)

    def label_sets(self, metric: Metric, answers: IndexedAnswers) -> Labels:
        """The labels of each of these answers as a set, `Metric.set_of`; -1 where there is none or
        the judge abstained.

        Raises SetupError where a label is none of the metric's.
        """
        return self._coded(metric, answers, metric.set_of)

    def _coded(
        self, metric: Metric, answers: IndexedAnswers, code_of: Callable[[str], int]
    ) -> Labels:
        codes, texts = self._labels[metric.id], list(self._texts)
        index = np.full(len(texts) + 1, -1)  # the last: -1 is no label
        for code in np.unique(codes[codes >= 0]).tolist():
            index[code] = code_of(texts[code])
        return self._for(answers, index[codes], -1)

    def label_probabilities(self, metric: Metric, answers: IndexedAnswers) -> FloatArray:
        """The probability of each label (answers, k), columns in the rubric's order of labels.

        A row adds up to 1: where the judge may abstain, it holds each label's probability given
        that a label is given. It is NaN throughout where the verdict has no probability for every
        option, or where to abstain is the likeliest.
        """
        return shares(self.option_probabilities(metric, answers), metric)

    def option_probabilities(self, metric: Metric, answers: IndexedAnswers) -> FloatArray:
        """The probability of each label and then of each way to abstain, as the judge gave them
        (answers, options); a row without all of them is NaN."""
        if metric.id not in self._numbers:
            return np.full((len(answers), len(self._options[metric.id])), np.nan)
        return self._for(answers, self._numbers[metric.id], np.nan)

    def scores(self, answers: IndexedAnswers) -> FloatArray:
        """The score of each of these answers, NaN where there is none."""
        if _SCORE not in self._numbers:
            return np.full(len(answers), np.nan)
        return self._for(answers, self._numbers[_SCORE][:, 0], np.nan)

    def was_asked(self, answers: IndexedAnswers) -> NDArray[np.bool_]:
        """True where there is a verdict on each of these answers, also one without a label."""
        return self._for(answers, self._known, False)

    def trained_on(self, answers: IndexedAnswers) -> NDArray[np.bool_]:
        """True where the judge skipped each of these answers because it learnt from it."""
        return self._for(answers, self._statuses == _TRAINED_ON, False)

    def status_counts(self) -> Mapping[Status, int]:
        """The number of verdicts of each status that occurs."""
        return Counter(_STATUSES[code] for code in self._statuses[self._known].tolist())

    @property
    def _known(self) -> NDArray[np.bool_]:
        return self._statuses >= 0

    def _is(self, status: Status) -> NDArray[np.bool_]:
        return np.asarray(self._statuses == _STATUSES.index(status))

    def _for(self, answers: IndexedAnswers, values: NDArray[Any], missing: float) -> NDArray[Any]:
        """The values (answers here, …) of these answers, `missing` for those not here."""
        if answers is self._answers:
            return values
        rows = np.array([self._answers.row(item_id) for item_id in answers.item_ids()], np.int64)
        none = np.full((1, *values.shape[1:]), missing, values.dtype)
        return np.concatenate([values, none])[rows]


def status_counts(verdicts: Mapping[str, Verdict]) -> Mapping[Status, int]:
    """The number of verdicts of each status."""
    if isinstance(verdicts, CodedVerdicts):
        return verdicts.status_counts()
    return Counter(verdict.status for verdict in verdicts.values())


def coded(
    verdicts: Mapping[str, Verdict], answers: IndexedAnswers, metrics: Sequence[Metric] = ()
) -> CodedVerdicts:
    """Verdicts by item_id as arrays; unchanged where they are: those of a file."""
    if isinstance(verdicts, CodedVerdicts):
        return verdicts
    made = CodedVerdicts(answers, metrics)
    for item_id, verdict in verdicts.items():
        if (row := answers.row(item_id)) >= 0:
            made.put(row, verdict)
    return made
