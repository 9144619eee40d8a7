"""The verdicts of a judge as arrays: label indices, label probabilities, statuses.

Names of models: annotators that may be no people, so that a judge's labels never enter the
truth unnoticed, and judges whose model changed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from judgebench.errors import Problem
from judgebench.records import TRAINED_ON, Status, Verdict
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray, ratio
from judgebench.studies.answers import IndexedAnswers, knows
from judgebench.studies.truth import Labels

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


def may_be_a_model(name: str) -> bool:
    """True where the head of a column of verdicts is a model's name, though people may have it.

    >>> [may_be_a_model(name) for name in ("Claude", "gpt-4", "Tone")]
    [True, True, False]
    """
    words = {*re.findall(r"[^\W_]+", name.casefold())}
    return is_like_a_model(name) or (bool(words) and words <= _FIRST_NAMES)


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


def no_probabilities(metric: Metric, answers: IndexedAnswers) -> FloatArray:
    """NaN (answers, k), for a judge that gave no probabilities."""
    return np.full((len(answers), len(metric.labels)), np.nan)


@knows("label_probabilities")
def label_probabilities(
    verdicts: Mapping[str, Verdict], metric: Metric, answers: IndexedAnswers
) -> FloatArray:
    """The probability of each label (answers, k), columns in the rubric's order of labels.

    A row adds up to 1: where the judge may abstain, it holds each label's probability given that
    a label is given. It is NaN throughout where the verdict has no probability for every option,
    or where to abstain is the likeliest. Read from files they have the precision of float32.
    """
    found = np.full((len(answers), len(weighed(metric))), np.nan)
    read = itemgetter(*weighed(metric))
    for item_id, verdict in verdicts.items():
        given = verdict.probabilities and verdict.probabilities.get(metric.id)
        if given and given.keys() >= set(weighed(metric)) and (row := answers.row(item_id)) >= 0:
            found[row] = read(given)
    return shares(found, metric)


@knows("label_indices")
def label_indices(
    verdicts: Mapping[str, Verdict], metric: Metric, answers: IndexedAnswers
) -> Labels:
    """The label index of each answer (answers,), -1 where there is none or the judge abstained.

    Raises SetupError where a label does not belong to the metric.
    """
    return _coded(verdicts, metric, answers, metric.index)


@knows("label_sets")
def label_sets(verdicts: Mapping[str, Verdict], metric: Metric, answers: IndexedAnswers) -> Labels:
    """The labels of each answer as a set (answers,), `Metric.set_of`; -1 where there is none or the
    judge abstained.

    Raises SetupError where a label does not belong to the metric.
    """
    return _coded(verdicts, metric, answers, metric.set_of)


def _coded(
    verdicts: Mapping[str, Verdict], metric: Metric, answers: IndexedAnswers,
    code_of: Callable[[str], int],
) -> Labels:  # fmt: skip
    found = np.full(len(answers), -1, dtype=np.int64)
    for item_id, verdict in verdicts.items():
        label, row = verdict.labels.get(metric.id), answers.row(item_id)
        if label is not None and row >= 0:
            found[row] = code_of(label)
    return found


@knows("scores")
def scores(verdicts: Mapping[str, Verdict], answers: IndexedAnswers) -> FloatArray:
    """The score of each answer (answers,), NaN where there is none."""
    found = np.full(len(answers), np.nan)
    for item_id, verdict in verdicts.items():
        if verdict.score is not None and (row := answers.row(item_id)) >= 0:
            found[row] = verdict.score
    return found


@knows("was_asked")
def was_asked(verdicts: Mapping[str, Verdict], answers: IndexedAnswers) -> NDArray[np.bool_]:
    """True where there is a verdict on each answer (answers,), also one without a label."""
    found = np.zeros(len(answers), dtype=np.bool_)
    found[[row for row in map(answers.row, verdicts) if row >= 0]] = True
    return found


@knows("trained_on")
def trained_on(verdicts: Mapping[str, Verdict], answers: IndexedAnswers) -> NDArray[np.bool_]:
    """True where the judge skipped each answer (answers,) because it learnt from it."""
    return was_asked({k: v for k, v in verdicts.items() if v.reason == TRAINED_ON}, answers)


@knows("status_counts")
def status_counts(verdicts: Mapping[str, Verdict]) -> Mapping[Status, int]:
    """The number of verdicts of each status."""
    return Counter(verdict.status for verdict in verdicts.values())
