"""The same question in other words: prompt and rubric reworded sentence by sentence, or the
opposite asked, with labels carried back to those of the rubric.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.files import find_file, shipped_folder, shipped_names
from judgebench.judges.llm import LLMJudge
from judgebench.prompt import literal_lines, parse_prompt
from judgebench.records import Answer, Verdict
from judgebench.rubric import Metric, Rubric, load_rubric
from judgebench.runs.bench import Variant
from judgebench.stress_tests.item_sets import (
    accepted_ids,
    decisions_path,
    read_set,
    with_checks,
)
from judgebench.stress_tests.recipes import OTHER_RUBRIC, Opposite, Recipe, Wording
from judgebench.text import sentences

FEWEST_WORDS = 4  # of a sentence that is worth other words


@dataclass(frozen=True)
class Wordings:
    """The other wordings of each sentence, and the metrics of which the opposite is asked."""

    sentences: Mapping[str, Sequence[str]]
    opposites: Mapping[str, Opposite]

    def reword(self, text: str, number: int) -> str:
        """The text with every known sentence in its wording of that number, in turn."""
        longest_first = sorted(self.sentences, key=len, reverse=True)
        if not longest_first:
            return text
        known = re.compile("|".join(map(re.escape, longest_first)))

        def other(match: re.Match[str]) -> str:
            texts = self.sentences[match.group()]
            return texts[number % len(texts)]

        return known.sub(other, text)

    def rubric(self, rubric: Rubric, number: int) -> Rubric:
        """The rubric in other words, with the opposite of those metrics that have one."""
        metrics = tuple(self._metric(metric, number) for metric in rubric.metrics)
        instructions = self.reword(rubric.instructions, number)
        return rubric.model_copy(update={"metrics": metrics, "instructions": instructions})

    def _metric(self, metric: Metric, number: int) -> Metric:
        if (opposite := self.opposites.get(metric.id)) is not None:
            order = [opposite.labels[text] for text in metric.prompt_order]
            turned = [  # other spellings of the old labels mean the reverse
                label.model_copy(update={"text": opposite.labels[label.text], "aliases": ()})
                for label in metric.labels
            ]
            asked = opposite.model_dump() | {"labels": turned, "prompt_order": order}
            return Metric(**{**metric.model_dump(), **asked})
        labels = tuple(
            label.model_copy(update={"description": self.reword(label.description, number)})
            for label in metric.labels
        )
        question = self.reword(metric.question, number)
        return metric.model_copy(update={"question": question, "labels": labels})


def read_wordings(edit: Wording, rubric: Rubric, judged: Rubric, recipe_path: Path) -> Wordings:
    """What a recipe of the kind `wording` names, as far as it is about the metrics that are judged.

    Of a set beside which a person's decisions lie, only what was accepted is used. Raises
    SetupError where a set cannot be read, where nothing is left of the recipe, and where it names a
    metric, or labels, that the rubric does not have; a shipped recipe is for every shipped rubric.
    """
    texts: dict[str, list[str]] = defaultdict(list)
    for name in edit.sets:
        path = find_file("adversarial", name, ".jsonl", recipe_path.parent)
        items = with_checks(read_set(path))
        if decisions_path(path).is_file():
            accepted = accepted_ids(path)
            items = [item for item in items if item.item_id in accepted]
        for item in items:
            if not item.failed_checks:
                texts[item.parent.text].append(item.text)
    labels = {metric.id: {*metric.label_texts} for metric in rubric.metrics}
    wrong = {name for name, asked in edit.metrics.items() if {*asked.labels} != labels.get(name)}
    if wrong and recipe_path.parent != shipped_folder("adversarial"):
        message = f"must be metrics of the rubric, each with all its labels; {OTHER_RUBRIC}"
        names, allowed = ", ".join(sorted(wrong)), _labels_of(rubric)
        raise SetupError(Problem(message, str(recipe_path), None, "edit.metrics", names, allowed))
    able = [m.id for m in judged.metrics if m.id not in wrong and not m.several]
    opposites = {name: edit.metrics[name] for name in able if name in edit.metrics}
    if not texts and not opposites:
        message = "words nothing anew: it has no accepted sentence, and no judged metric's labels"
        problem = Problem(message, str(recipe_path), field="edit", allowed=_labels_of(judged))
        raise SetupError(problem)
    return Wordings(texts, opposites)


def _labels_of(rubric: Rubric) -> str:
    return "; ".join(f"{m.id}: {', '.join(m.label_texts)}" for m in rubric.metrics)


def worded_variants(
    judge: LLMJudge, recipe: Recipe, wordings: Wordings, answers: tuple[Answer, ...]
) -> Iterator[Variant]:
    """The judge asked in other words, as often as the recipe says.

    Raises SetupError where nothing of its prompt and rubric changes.
    """
    assert isinstance(recipe.edit, Wording)
    labels_back = {
        name: {shown: text for text, shown in opposite.labels.items()}
        for name, opposite in wordings.opposites.items()
    }
    for number in range(recipe.edit.times):
        rubric = wordings.rubric(judge.rubric, number)
        text = wordings.reword(judge.prompt.text, number)
        if (rubric, text) == (judge.rubric, judge.prompt.text):
            message = "has no wording of any sentence of this judge's prompt and rubric"
            raise SetupError(Problem(message, recipe.name, field=judge.name))
        name = f"{judge.name}~{recipe.name}~{number + 1}"
        prompt = parse_prompt(text, Path(f"{judge.prompt.name}.jinja"))
        other = judge.asked_otherwise(name, rubric=rubric, prompt=prompt)
        # A sentence of the prompt or of the instructions is read for every metric.
        changes_all = (rubric.instructions, text) != (judge.rubric.instructions, judge.prompt.text)
        asks = {
            new.id: {"metric": old.id, "labels": labels_back.get(old.id, {})}
            for old, new in zip(judge.rubric.metrics, rubric.metrics, strict=True)
            if changes_all or old != new
        }
        yield Variant(other, judge.name, recipe.name, "wording", number + 1, answers, asks)


def in_rubric_terms(
    verdicts: Mapping[str, Verdict], asks: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Verdict]:
    """The verdicts on the metrics that were asked in other words, with labels that answer an
    opposite question as labels of the rubric."""
    if not asks:
        return verdicts

    def carried(verdict: Verdict) -> dict[str, str]:
        return {
            other["metric"]: other["labels"].get(verdict.labels[name], verdict.labels[name])
            for name, other in asks.items()
            if name in verdict.labels
        }

    return {key: replace(verdict, labels=carried(verdict)) for key, verdict in verdicts.items()}


def instruction_texts(names: Iterable[Path]) -> list[Answer]:
    """The sentences of prompts and rubrics, by path or shipped name, for a model to word anew."""
    texts: dict[str, str] = {}
    for name in map(str, names):
        if name.endswith(".jinja") or name in shipped_names("prompts", ".jinja"):
            parts = literal_lines(find_file("prompts", name, ".jinja"))
        else:
            rubric = load_rubric(name)
            labels = [label for metric in rubric.metrics for label in metric.labels]
            questions = [metric.question for metric in rubric.metrics]
            parts = [rubric.instructions, *questions, *(label.description for label in labels)]
        for sentence in (s.text for part in parts for s in sentences(part)):
            if len(sentence.split()) >= FEWEST_WORDS:
                texts.setdefault(sentence, f"{Path(name).stem}-{len(texts) + 1}")
    return [Answer(item_id, text) for text, item_id in texts.items()]
