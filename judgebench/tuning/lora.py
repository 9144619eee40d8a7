"""A language model that is tuned on the labels: asked as any judge, trained on the very prompts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.judges.config import JudgeConfig, check_judge
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.judges.replies import label_spans, written_reply
from judgebench.learning.learnt import LEARNT, Learner, TrainingSet
from judgebench.learning.trainer import Watch
from judgebench.models.checkpoint import identify, identify_adapter, local_path, merge
from judgebench.models.contract import Request
from judgebench.models.settings import BackendSettings
from judgebench.models.transformers_backend import TransformersBackend
from judgebench.prompt import Prompt
from judgebench.records import Answer, Verdict
from judgebench.rubric import Rubric
from judgebench.runs.judging import Work
from judgebench.tuning.config import LoraConfig
from judgebench.tuning.examples import Example, Texts, blocks_of, described
from judgebench.tuning.train import ADAPTER, MODEL, Recipe, train

_RATE, _RATE_OF_ALL = 2e-4, 2e-5  # of an adapter, and of all weights
Row = tuple[Answer, Mapping[str, str], str]  # an answer, its labels by metric, and the reason


class Lora(Learner):
    """A model with an adapter, or a model of its own, tuned on training blocks.

    It is asked through `TransformersBackend`, as a judge that was never tuned.
    """

    def __init__(self, entry: LoraConfig, rubric: Rubric, prompt: Prompt) -> None:
        self._entry, self._rubric = entry, rubric
        self._base = local_path(entry.model)
        self._settings = BackendSettings(context=entry.context)
        config = JudgeConfig(
            name=entry.name, backend=f"transformers:{self._base}", prompt=entry.prompt,
            probabilities=entry.probabilities, settings=self._settings,
        )  # fmt: skip
        check_judge(config, prompt, rubric)
        backend = TransformersBackend(self._base, self._settings)
        self._untuned = LLMJudge(config, rubric, prompt, backend)
        self.parse_retries = self._untuned.parse_retries
        self._tuned: tuple[Path, LLMJudge] | None = None

    def describe(self) -> Mapping[str, Any]:
        about = dict(self._untuned.describe())
        asked = {k: v for k, v in about.items() if k not in ("judge", "rubric", "runtime")}
        told: dict[str, Any] = {"learn": "lora", "recipe": recipe_of(self._entry).about}
        if self._entry.stages:
            told["stages"] = [stage.model_dump() for stage in self._entry.stages]
        return {**told, "asked": asked, "runtime": about["runtime"]}

    def fit(self, train_on: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        blocks = blocks_of(train_on, self._entry.stages, self._entry.seed)
        texts = [[one for row in rows_of(b.train) for one in self.examples(*row)] for b in blocks]
        watch = Watch(f"{self._entry.name} {folder.name}", work.progress, work.stop)
        facts = train(texts, self._base, recipe_of(self._entry), folder, watch)
        told = described(blocks, self._entry.seed)
        return {**facts, **told, "sha256": self._trained(folder)}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        if self._tuned is None or self._tuned[0] != folder:
            self.close()
            self._tuned = folder, self._untuned.through(lambda _: self._opened(folder))
        yield from self._tuned[1].judge(tasks)

    def close(self) -> None:
        if self._tuned is not None:
            self._tuned[1].close()
        self._tuned = None

    def examples(
        self, answer: Answer, labels: Mapping[str, str], reason: str = ""
    ) -> Iterator[Example]:
        """The examples learnt from an answer with these labels. Where the prompt asks for a
        reason, a reply that has one is learnt whole."""
        for request, reply in self.written(answer, labels, reason):
            # With a label comes what ends it: it tells the label from a longer one.
            spans = [(start, end + 1) for start, end in label_spans(reply)]
            whole = reason and self._untuned.prompt.reply == "rationale"
            yield self._texts.example(request, reply, None if whole else spans)

    def written(
        self, answer: Answer, labels: Mapping[str, str], reason: str = ""
    ) -> Iterator[tuple[Request, str]]:
        """The request about an answer, with the reply that has these labels: all of them, or one
        for each that is weighed on its own. A metric without a label is left out of it."""
        judge = self._untuned
        request = judge.request(Task(answer))
        alone = self._entry.probabilities == "independent"
        for metrics in [[m] for m in judge.rubric.metrics] if alone else [judge.rubric.metrics]:
            own = {m.id: labels[m.id] for m in metrics if m.id in labels}
            if own:
                reply = written_reply(judge.prompt.reply, judge.rubric, own, rationale=reason)
                yield request, reply

    @cached_property
    def _texts(self) -> Texts:
        return Texts(self._base)

    def merge(self, folder: Path, to: Path) -> None:
        """Write what the folder holds as a whole model, without an adapter, below `to`. Raises
        SetupError where it is one already."""
        if not (folder / ADAPTER).is_dir():
            raise SetupError(Problem("holds no adapter that could be merged", str(folder)))
        merge(self._base, folder / ADAPTER, to / MODEL)

    def _opened(self, folder: Path) -> TransformersBackend:
        if (folder / MODEL).is_dir() and self._entry.rank != "full":  # merged
            return TransformersBackend(str(folder / MODEL), self._settings)
        learnt = folder / LEARNT
        facts = json.loads(learnt.read_text()) if learnt.is_file() else {}
        if facts and facts["sha256"] != self._trained(folder):
            message = "holds other weights than were trained: delete it to train again"
            raise SetupError(Problem(message, str(folder)))
        if self._entry.rank == "full":
            return TransformersBackend(str(folder / MODEL), self._settings)
        return TransformersBackend(self._base, self._settings, folder / ADAPTER)

    def _trained(self, folder: Path) -> str:
        if self._entry.rank == "full":
            return identify(str(folder / MODEL))["sha256"]
        return identify_adapter(folder / ADAPTER)


def rows_of(train_on: TrainingSet) -> Iterator[Row]:
    """Each answer with the labels and the reason that it has."""
    reasons = train_on.reasons or [""] * len(train_on)
    for row, (answer, reason) in enumerate(zip(train_on.answers, reasons, strict=True)):
        codes = [(m, int(train_on.labels[m.id][row])) for m in train_on.rubric.metrics]
        yield answer, {m.id: m.label_texts[code] for m, code in codes if code >= 0}, reason


def recipe_of(entry: LoraConfig) -> Recipe:
    """The recipe of training in the keys of the entry."""
    rank = None if entry.rank == "full" else entry.rank
    rate = entry.learning_rate or (_RATE_OF_ALL if rank is None else _RATE)
    return Recipe(
        rank, entry.alpha or 2 * (rank or 0), rate, entry.epochs, entry.batch, entry.tokens,
        entry.context, entry.seed,
    )  # fmt: skip
