"""Probes that leave the answer alone and ask the judge in another way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from judgebench.judges.llm import LLMJudge
from judgebench.records import Answer
from judgebench.rubric import Metric, Rubric
from judgebench.stress.probes.recipe import Ask, Recipe


@dataclass(frozen=True)
class Variant:
    """The judge `of`, asked as `recipe` says about `answers`; `repeat` counts from 1."""

    judge: LLMJudge
    of: str
    recipe: str
    kind: str
    repeat: int
    answers: tuple[Answer, ...]


def variants(
    judge: LLMJudge, recipe: Recipe, ask: Ask, answers: tuple[Answer, ...]
) -> Iterator[Variant]:
    """The ways of asking that a recipe names, on the judge's own engine.

    A judge that is asked metric by metric anyway has no `per-metric` variant, and a single metric
    no other order.
    """
    rubric, name = judge.rubric, f"{judge.name}~{recipe.name}"
    decoding = judge.config.decoding
    if ask.temperature is not None:
        decoding = decoding.model_copy(update={"temperature": ask.temperature})
    found: list[LLMJudge] = []
    match ask.kind:
        case "metric-order" if len(rubric.metrics) > 1:
            turned = rubric.model_copy(update={"metrics": rubric.metrics[::-1]})
            found = [judge.asked_otherwise(name, rubric=turned, decoding=decoding)]
        case "label-order":
            found = [judge.asked_otherwise(name, rubric=_labels_turned(rubric), decoding=decoding)]
        case "per-metric" if judge.config.mode == "one_pass" and len(rubric.metrics) > 1:
            found = [judge.asked_otherwise(name, mode="per_metric", decoding=decoding)]
        case "repeat":
            for repeat in range(1, ask.times + 1):
                # With the same seed, sampling would say the same again.
                seed = None if decoding.seed is None else decoding.seed + repeat
                fresh = decoding.model_copy(update={"seed": seed})
                again = f"{name}~{repeat}"
                found.append(judge.asked_otherwise(again, repeat=repeat, decoding=fresh))
    for number, variant in enumerate(found, 1):
        repeat = number if ask.kind == "repeat" else 0
        yield Variant(variant, judge.name, recipe.name, ask.kind, repeat, answers)


def _labels_turned(rubric: Rubric) -> Rubric:
    """The rubric whose prompts list every metric's labels the other way round."""
    metrics = tuple(m.model_copy(update={"prompt_order": _turned(m)}) for m in rubric.metrics)
    return rubric.model_copy(update={"metrics": metrics})


def _turned(metric: Metric) -> tuple[str, ...]:
    return tuple(reversed(metric.prompt_order or metric.label_texts))
