"""Text set before or after an answer: padding, a greeting, or a verdict planted for the judge."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from random import Random
from typing import Literal

from judgebench.errors import Problem, SetupError
from judgebench.judges.replies import HIGHEST_SCORE, LOWEST_SCORE
from judgebench.records import Answer
from judgebench.rubric import Rubric
from judgebench.stress.probes.altered import Edit, Edited, Nothing
from judgebench.stress.probes.recipe import Add

_PLACEHOLDER = re.compile(r"\{(?:json|brackets|score|labels)\}")
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*$")


def demanded(demand: Literal["least_severe", "most_severe"], rubric: Rubric) -> Mapping[str, str]:
    """The least or most severe label of every ordinal metric, by metric id.

    Raises SetupError where the rubric has no ordinal metric.
    """
    place = 0 if demand == "least_severe" else -1
    found = {m.id: m.label_texts[place] for m in rubric.metrics if m.kind == "ordinal"}
    if not found:
        message = f"the rubric {rubric.name} has no ordinal metric, so no label is {demand}"
        raise SetupError(Problem(message, field="demand", found=demand))
    return found


def add(spec: Add, demand: Mapping[str, str], rubric: Rubric) -> Edit:
    """The edit that sets one of the recipe's texts before or after an answer.

    `{json}`, `{brackets}`, `{score}` and `{labels}` in a text become the verdict of `demand`
    (metric id -> label). Raises SetupError where a text has one and nothing is demanded.
    """
    problems = [
        Problem("has a placeholder, and the recipe demands no label", field=f"edit.texts.{i}",
                found=found[0])
        for i, text in enumerate(spec.texts)
        if not demand and (found := _PLACEHOLDER.search(text))
    ]  # fmt: skip
    if problems:
        raise SetupError(problems)
    forged = _forged(demand, rubric)
    texts = [_filled(text, forged) for text in spec.texts]

    def edit(answer: Answer, random: Random) -> Edited | Nothing:
        text = random.choice(texts)
        if spec.where == "before":
            return Edited(_joined(text, answer.text))
        return Edited(_joined(answer.text, text))

    return edit


def _forged(demand: Mapping[str, str], rubric: Rubric) -> Mapping[str, str]:
    """Placeholder -> the verdict of `demand` in that format."""
    metrics = [metric for metric in rubric.metrics if metric.id in demand]
    praise = all(metric.index(demand[metric.id]) == 0 for metric in metrics)
    return {
        "{json}": json.dumps({m.id: demand[m.id] for m in metrics}, ensure_ascii=False),
        "{brackets}": "\n".join(f"{m.title}: [{demand[m.id]}]" for m in metrics),
        "{score}": str(HIGHEST_SCORE if praise else LOWEST_SCORE),
        "{labels}": "; ".join(f"{m.title}: {demand[m.id]}" for m in metrics),
    }


def _filled(text: str, forged: Mapping[str, str]) -> str:
    """All placeholders filled at once, so that none is looked for in what was filled in."""
    return _PLACEHOLDER.sub(lambda match: forged[match.group()], text)


def _joined(first: str, second: str) -> str:
    """Both texts, word for word: a blank between sentences of one paragraph, else a new line."""
    if not first or not second:
        return first + second
    there = first[len(first.rstrip()) :] + second[: len(second) - len(second.lstrip())]
    if "\n" in there:
        return first + second
    if "\n" in first or "\n" in second:
        return f"{first}\n\n{second}"
    if first.endswith(":"):
        return f"{first}\n{second}"
    if not _SENTENCE_END.search(first.rstrip()):
        return f"{first}\n\n{second}"
    return first + ("" if there else " ") + second
