"""A language model that is tuned on the labels: asked as any judge, trained on the very prompts."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from judgebench.errors import SetupError
from judgebench.files import disk_errors
from judgebench.judges.config import JudgeConfig, check_judge
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.judges.replies import label_spans, written_reply
from judgebench.learning.learnt import Learner, TrainingSet
from judgebench.learning.trainer import (
    Training,
    Watch,
    forget,
    has_bf16,
    memory_errors,
    run,
    seeded,
)
from judgebench.models.checkpoints import (
    BASE,
    identify,
    identify_adapter,
    import_peft,
    length_buckets,
    load,
    local_path,
    note_base,
    tokenizer_of,
)
from judgebench.models.contract import Request
from judgebench.models.settings import BackendSettings
from judgebench.models.token_scoring import common_prefix
from judgebench.models.transformers_backend import TransformersBackend
from judgebench.prompt import Prompt
from judgebench.records import Answer, Verdict, content_hash
from judgebench.rubric import Rubric
from judgebench.runs.judging import Work
from judgebench.tuning.config import LoraConfig
from judgebench.tuning.examples import Example, Texts, blocks_of, described

Row = tuple[Answer, Mapping[str, str], str]  # an answer, its labels by metric, and the reason


class Lora(Learner):
    """A model with an adapter that is tuned on training blocks.

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
        about = self._untuned.describe()
        asked = {k: v for k, v in about.items() if k not in ("judge", "rubric", "runtime")}
        recipe = {**self._entry.recipe, "stages": list(self._entry.stages)}
        return {"learn": "lora", "recipe": recipe, "asked": asked, "runtime": about["runtime"]}

    def fit(self, train_on: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        blocks = blocks_of(train_on, self._entry.stages, self._entry.seed)
        texts = [[one for row in rows_of(b.train) for one in self.examples(*row)] for b in blocks]
        watch = Watch(f"{self._entry.name} {folder.name}", work.progress, work.stop)
        facts = train(texts, self._entry, folder, watch)
        forget(folder / ADAPTER)
        told = described(blocks, self._entry.seed)
        return {**facts, **told, "sha256": identify_adapter(folder / ADAPTER)}

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

    def export(self, folder: Path, to: Path) -> None:
        """Copy the adapter, with the tokenizer of its base."""
        shutil.copytree(folder / ADAPTER, to, ignore=shutil.ignore_patterns(BASE))
        tokenizer_of(self._base).save_pretrained(to)

    def _opened(self, folder: Path) -> TransformersBackend:
        # An export holds itself what a training leaves in a folder below.
        adapter = folder / ADAPTER if (folder / ADAPTER).is_dir() else folder
        return TransformersBackend(self._base, self._settings, adapter)


def rows_of(train_on: TrainingSet) -> Iterator[Row]:
    """Each answer with the labels and the reason that it has."""
    reasons = train_on.reasons or [""] * len(train_on)
    for row, (answer, reason) in enumerate(zip(train_on.answers, reasons, strict=True)):
        codes = [(m, int(train_on.labels[m.id][row])) for m in train_on.rubric.metrics]
        yield answer, {m.id: m.label_texts[code] for m, code in codes if code >= 0}, reason


ADAPTER = "adapter"  # in the folder: what was trained
_FORM = 2  # of this training; a change to it makes other weights of the same recipe
_UNBOUNDED = 1 << 30
MEMORY = "out of memory in training: lower tokens (it then goes on), context or rank"


def train(
    blocks: Sequence[Sequence[Example]], config: LoraConfig, folder: Path, watch: Watch
) -> Mapping[str, Any]:
    """Train an adapter (LoRA, Hu et al. 2021, on every linear layer) of the entry's model on the
    blocks, one after another, each `epochs` times in steps of `batch` examples, and leave
    `adapter/` in the folder; returns facts about the training. The caller, once it has noted these,
    calls `forget` on it.

    The same call goes on where an earlier one was cut off, on the same machine to the same weights
    as an uninterrupted one, bit for bit. Raises SetupError for what cannot be trained, RunError
    where the loss or the memory runs out of bounds, DiskFailed, and Interrupted where it is to
    stop.
    """
    identity = identify(local_path(config.model))
    texts = [[[example.ids, example.places] for example in block] for block in blocks]
    signature, adapter = content_hash([_FORM, identity, config.recipe, texts]), folder / ADAPTER
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with memory_errors(MEMORY), seeded(config.seed):
        training = _Training(blocks, identity, config, watch)
        log = run(training.steps(), adapter, signature, watch)
    return training.facts([entry["loss"] for entry in log if "loss" in entry])


class _Training:
    """The parts of one training."""

    def __init__(
        self, blocks: Sequence[Sequence[Example]], identity: Mapping[str, str],
        config: LoraConfig, watch: Watch,
    ) -> None:  # fmt: skip
        import torch

        self._config, self._identity = config, identity
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._half = has_bf16(self._device)
        self._model = _model_of(config, self._half)
        self._model.to(self._device)
        known = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        context = min(config.context or _UNBOUNDED, known or _UNBOUNDED)
        self._blocks = [[one for one in b if len(one.ids) <= context] for b in blocks]
        n, n_read = (sum(map(len, some)) for some in (blocks, self._blocks))
        self._left_out = n - n_read
        left_out = f"{self._left_out:,} of {n:,} examples are longer than the context of"
        if not n_read:
            raise SetupError(f"nothing to train on: {left_out} {context:,} tokens")
        if self._left_out:
            watch.progress.say(f"{watch.name}: {left_out} {context:,} tokens and are left out")
        self._batches = list(self._drawn())

    def _drawn(self) -> Iterator[list[Example]]:
        """The examples of each step."""
        for number, examples in enumerate(self._blocks):
            lengths = [len(one.ids) for one in examples]
            for epoch in range(self._config.epochs):
                chance = random.Random(f"{self._config.seed}/{number}/{epoch}")
                for places in length_buckets(lengths, self._config.batch, chance):
                    yield [examples[place] for place in places]

    def steps(self) -> Training:
        return Training(
            self._model, len(self._batches), self._losses, self._save, self._config.learning_rate,
            self._config.seed,
        )  # fmt: skip

    def _losses(self, step: int) -> Iterator[Any]:
        """Of the passes of a step; their sum is the mean loss of a token that is learnt."""
        examples = self._batches[step]
        n = sum(len(one.places) for one in examples)
        return (self._loss(some) / n for some in _passes(examples, self._config.tokens))

    def _loss(self, examples: Sequence[Example]) -> Any:
        """The summed cross-entropy of what is learnt in a pass.

        Texts are padded on the right, where no token that is learnt sees it.
        """
        import torch

        begin = _shared(examples)
        rests = [one.ids[begin:] for one in examples]
        width = max(map(len, rests))
        places = [(row, p - 1 - begin) for row, one in enumerate(examples) for p in one.places]
        targets = [one.ids[place] for one in examples for place in one.places]
        kept = sorted({place for _, place in places})
        where = {place: column for column, place in enumerate(kept)}

        def tensor(values: Any) -> Any:
            return torch.tensor(values, device=self._device)

        with torch.autocast(self._device, torch.bfloat16, enabled=self._half):
            cache = None
            if begin:
                read = tensor([examples[0].ids[:begin]])
                cache = self._model(input_ids=read, use_cache=True, logits_to_keep=1)
                cache = cache.past_key_values
                cache.batch_repeat_interleave(len(examples))
            logits = self._model(
                input_ids=tensor([[*rest, *[0] * (width - len(rest))] for rest in rests]),
                past_key_values=cache,
                use_cache=cache is not None,
                logits_to_keep=tensor(kept),
            ).logits
        rows, columns = zip(*[(row, where[place]) for row, place in places], strict=True)
        chosen = logits[tensor(rows), tensor(columns)].float()
        return torch.nn.functional.cross_entropy(chosen, tensor(targets), reduction="sum")

    def _save(self, folder: Path) -> None:
        self._model.peft_config["default"].base_model_name_or_path = self._identity["model"]
        self._model.save_pretrained(folder, save_embedding_layers=False)
        (folder / "README.md").unlink(missing_ok=True)  # an empty form
        note_base(folder, self._identity)

    def facts(self, losses: Sequence[float]) -> Mapping[str, Any]:
        tail = losses[-max(1, len(losses) // 10) :]
        return {
            "blocks": [len(block) for block in self._blocks],
            "left_out": self._left_out,
            "steps": len(losses),
            "first_loss": losses[0],
            "last_loss": sum(tail) / len(tail),
        }


def _model_of(config: LoraConfig, half: bool) -> Any:
    """The model with an adapter. Weights that are not trained need no more than half precision."""
    peft = import_peft()
    dtype = "bfloat16" if half else "float32"
    model, _ = load(local_path(config.model), dtype=dtype, dense=True)
    adapter = peft.LoraConfig(
        r=config.rank, lora_alpha=config.recipe["alpha"], target_modules="all-linear",
        task_type="CAUSAL_LM",
    )  # fmt: skip
    return peft.get_peft_model(model, adapter)


def _shared(examples: Sequence[Example]) -> int:
    """The number of tokens at the beginning that all texts share, short of the first that predicts
    a token that is learnt; 0 for a single text."""
    if len(examples) == 1:
        return 0
    first = min(one.places[0] for one in examples) - 1
    return min(len(common_prefix([one.ids[:first] for one in examples])), first)


def _passes(examples: Sequence[Example], tokens: int) -> list[list[Example]]:
    """The examples in passes, the longest first: each of at most so many tokens, with padding and
    without what its texts share, or of one example."""
    passes: list[list[Example]] = []
    for one in sorted(examples, key=lambda one: (-len(one.ids), one.ids)):
        if passes:
            some = [*passes[-1], one]
            begin = _shared(some)
            if begin + len(some) * (len(some[0].ids) - begin) <= tokens:
                passes[-1] = some
                continue
        passes.append([one])
    return passes
