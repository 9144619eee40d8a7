"""Names of models: annotators that may be no people, so that a judge's labels never enter the
truth unnoticed, and judges whose model changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import yaml

from judgebench.errors import Problem

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
    """Whether an annotator is named like a language model or a judge.

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
    """Whether a system is named like a model, whatever the provider, case and date of its version.

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
    """Who of those who make the truth may be no person, and why; a list of labels (`llm#1`) is one.

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
            f"{name!r} makes the truth and {why}; if it is no person, {leave_out}compare it with "
            f"`judges: [{{name: {name}, verdicts: FILE}}]` (`column: COLUMN` where its labels have "
            "a column of their own)",
            file,
            kind="model_in_truth",
        )
