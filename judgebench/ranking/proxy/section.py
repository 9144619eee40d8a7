"""The section `proxy:` of a bench.yaml: tasks, the models that write arguments, evaluators."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from judgebench.judges.config import BackendSpec, Name
from judgebench.models.settings import BackendSettings
from judgebench.ranking.proxy.task import CONTROL_CASES, GOLD, ControlCase
from judgebench.yaml_file import Strict

EvaluatorKind = Literal["baseline", "expert-trained", "llm-trained"]
EVALUATOR_KINDS: tuple[EvaluatorKind, ...] = ("baseline", "expert-trained", "llm-trained")


class ArgumentDecoding(Strict):
    """How arguments are drawn; the defaults are those of the paper (section 3.2.1). What is None is
    left out of the request."""

    max_tokens: int = Field(default=256, ge=1)
    temperature: float | None = Field(default=0.9, ge=0, le=2)
    top_p: float | None = Field(default=0.85, gt=0, le=1)


class GeneratorConfig(Strict):
    """A model that writes arguments. Its `settings` hold `concurrency` and the like."""

    name: Name
    backend: BackendSpec
    decoding: ArgumentDecoding = ArgumentDecoding()
    settings: BackendSettings = BackendSettings()

    @field_validator("name")
    @classmethod
    def _not_a_control(cls, name: str) -> str:
        if name in (GOLD, *CONTROL_CASES):
            raise ValueError(f"is kept for the {name} arguments: choose another name")
        return name


class TrainingConfig(Strict):
    """How an evaluator is trained.

    AdamW with a linear warm-up over the share `warmup` of all steps and a linear way down. Training
    ends after `patience` epochs without a better score on the development split, or after `epochs`.
    `max_tokens` None means all that the encoder takes, 512 where it states no limit.
    """

    epochs: int = Field(default=10, ge=1)
    patience: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=5e-5, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    warmup: float = Field(default=0.1, ge=0, lt=1)
    batch_size: int = Field(default=16, ge=1)
    max_tokens: int | None = Field(default=None, ge=16)


class EvaluatorConfig(Strict):
    """`encoder` is a folder, a hub name, or `minilm`; `draws` counts the trainings of each
    kind, which begin and go otherwise, of an LLM-trained evaluator on another draw of arguments.
    With one alone nothing is claimed of an evaluator's order."""

    encoder: str = "minilm"
    kinds: tuple[EvaluatorKind, ...] = EVALUATOR_KINDS
    draws: int = Field(default=3, ge=1)
    training: TrainingConfig = TrainingConfig()


class PassagesConfig(Strict):
    """Where the control case `passages` takes its texts.

    `corpus` is a JSONL file with a key `text`, a CSV with a column of that name, or a folder of
    text files. `late_interaction` names ColBERT weights, a hub name or a folder; None means the
    fallback, which scores passages by the sentence encoder `encoder`.
    """

    corpus: str
    column: str = "text"
    encoder: str = "minilm"
    late_interaction: str | None = None
    documents: int = Field(default=5, ge=1)
    passages: int = Field(default=3, ge=1)
    characters: int = Field(default=300, ge=50)


class LearntConfig(Strict):
    """At most so many instances of the splits that are learnt from; None means all."""

    train: int | None = Field(default=None, ge=2)
    development: int | None = Field(default=None, ge=2)


class SampleConfig(LearntConfig):
    """At most so many instances of each split, drawn by the seed, each class in its share."""

    test: int | None = Field(default=None, ge=2)


class TaskEntry(Strict):
    """A task of the benchmark: a shipped name or the path of a YAML file, and what is particular to
    it here.

    `sample` is all that is used of the task. `arguments_for` says on how many train and development
    instances of these models write, which only LLM-trained evaluators read; all that is ranked is
    written on. `judged: false` keeps the arguments from the judges. Both spare calls.
    """

    task: str
    sample: SampleConfig = SampleConfig()
    arguments_for: LearntConfig = LearntConfig()
    kinds: tuple[EvaluatorKind, ...] | None = None
    generators: tuple[Name, ...] | None = None
    training: TrainingConfig | None = None
    judged: bool = True


class ProxyConfig(Strict):
    """The key `proxy` of a bench.yaml. Paths are seen from the folder of the file.

    `arguments` are files of arguments that were written before, one JSON object per line.
    `families` says which generators and judges are of one family, for the self-preference.
    """

    tasks: tuple[str | TaskEntry, ...] = Field(min_length=1)
    data_folder: str | None = None
    generators: tuple[GeneratorConfig, ...] = ()
    arguments: tuple[str, ...] = ()
    control_cases: tuple[ControlCase, ...] = ("no-argument", "label-only", "noise")
    passages: PassagesConfig | None = None
    evaluators: EvaluatorConfig = EvaluatorConfig()
    human_ranks: tuple[str, ...] = ()
    families: dict[str, tuple[Name, ...]] = Field(default_factory=dict)

    @property
    def entries(self) -> tuple[TaskEntry, ...]:
        """Every task as an entry."""
        return tuple(TaskEntry(task=t) if isinstance(t, str) else t for t in self.tasks)

    @property
    def controls(self) -> tuple[ControlCase, ...]:
        """The control cases: `passages` is one of them where a corpus is named."""
        named = (*self.control_cases, *(("passages",) if self.passages else ()))
        return tuple(dict.fromkeys(named))

    @model_validator(mode="after")
    def _corpus_for_passages(self) -> ProxyConfig:
        if "passages" in self.control_cases and self.passages is None:
            raise ValueError("the control case passages needs a corpus: proxy.passages.corpus")
        return self
