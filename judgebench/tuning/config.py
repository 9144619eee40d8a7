"""The keys of a judge that learns, and the key `tuning` of bench.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, field_validator

from judgebench.errors import Problem, SetupError
from judgebench.files import StrictModel, validate
from judgebench.judges.config import Name
from judgebench.judges.retrieval import WORDS
from judgebench.models.contract import Conditioning

HUMAN, MIXED, SHUFFLED = "human", "mixed", "shuffled"


def files_of(stages: Sequence[str]) -> tuple[str, ...]:
    """The files that stages name, each once."""
    return tuple(dict.fromkeys(s for s in stages if s not in (HUMAN, MIXED, SHUFFLED)))


class RoundsConfig(StrictModel):
    """At most `n` rounds of introspection: where the judge, out of fold, disagrees with what it is
    taught, the `suggester` proposes a revision and the `objector` accepts it or objects. Both are
    language models of the file. Then people `decide`, of every proposal, or only where the two have
    not `agreed`.
    """

    n: int = Field(default=2, ge=1, le=10)
    suggester: Name
    objector: Name
    decide: Literal["people", "agreed"] = "people"


class Learn(StrictModel):
    """The common keys."""

    name: Name
    seed: int = 0
    rounds: RoundsConfig | None = None

    @property
    def silver(self) -> tuple[str, ...]:
        """The files of machine-made labels that it learns from beside the human ones."""
        return files_of(getattr(self, "stages", ()))

    @property
    def needs(self) -> tuple[str, ...]:
        """The judges whose verdicts or settings it needs."""
        return ()

    @property
    def weights(self) -> dict[str, str]:
        """The weights that it loads, by the key that names them."""
        named = {key: getattr(self, key, WORDS) for key in ("encoder", "model")}
        return {key: name for key, name in named.items() if name != WORDS}


class ExamplesConfig(Learn):
    """The judge `from`, which must be a language model, with the `k` nearest labelled cases before
    its question."""

    learn: Literal["examples"]
    source: Name = Field(alias="from")
    k: int = Field(default=6, ge=1, le=100)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.source,)


class InstructionsConfig(Learn):
    """The judge `from`, by a wording of its instructions that is revised at most `revisions` times.
    `by` is the language model that revises it, by default the judge's."""

    learn: Literal["instructions"]
    source: Name = Field(alias="from")
    by: Name | None = None
    revisions: int = Field(default=5, ge=1, le=50)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.source,)


class BagOfWordsConfig(Learn):
    """A control: a regression on the words of question and answer."""

    learn: Literal["bag-of-words"]


class HeadConfig(Learn):
    """A regression on the vectors of an `encoder` (`minilm`, a folder, a hub name), or on
    `words`."""

    learn: Literal["head"]
    encoder: str = Field(min_length=1)


class RecalibrateConfig(Learn):
    """A regression on what the judges `from` said."""

    learn: Literal["recalibrate"]
    members: tuple[Name, ...] = Field(alias="from", min_length=1)

    @field_validator("members", mode="before")
    @classmethod
    def _of_one(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @property
    def needs(self) -> tuple[str, ...]:
        return self.members


class LoraConfig(Learn):
    """A language model that is tuned: an adapter of this `rank` (LoRA).

    `model` is `smollm2`, a GGUF file, a folder or a hub name. A step of the training takes `batch`
    examples and computes at most `tokens` side by side, so that fewer need less memory. What is
    longer than the `context` is left out of the training. It is asked with the `prompt`, and for
    label `probabilities` as any judge. `alpha` is twice the rank unless given. AdamW (Loshchilov
    and Hutter 2019) takes the steps; its `learning_rate` rises over the first tenth of them and
    then falls, both linearly.

    `stages` are learnt in order: files of machine-made labels, `human`, and `mixed`, what the other
    stages leave of all of them. A stage draws half of its data where there is a mixed one to take
    the rest, else all. `shuffled` makes one block of those before it. Without stages the labels of
    people are learnt at once.
    """

    learn: Literal["lora"]
    model: str
    rank: int = Field(default=16, ge=1, le=1024)
    alpha: float | None = Field(default=None, gt=0)
    learning_rate: float = Field(default=2e-4, gt=0, le=1)
    epochs: int = Field(default=3, ge=1, le=1000)
    batch: int = Field(default=8, ge=1, le=4096)
    tokens: int = Field(default=4096, ge=64)
    context: int | None = Field(default=None, ge=256)
    prompt: str = "structured"
    probabilities: Conditioning | None = None
    stages: tuple[Annotated[str, Field(min_length=1)], ...] = ()

    @property
    def recipe(self) -> dict[str, Any]:
        """The facts on which the weights depend: `tokens` only bound the memory."""
        keys = {"rank", "learning_rate", "epochs", "batch", "context", "seed"}
        return {**self.model_dump(include=keys), "alpha": self.alpha or 2 * self.rank}


_MODELS: dict[str, type[Learn]] = {
    "bag-of-words": BagOfWordsConfig,
    "examples": ExamplesConfig,
    "head": HeadConfig,
    "instructions": InstructionsConfig,
    "recalibrate": RecalibrateConfig,
    "lora": LoraConfig,
}


class TuningConfig(StrictModel):
    """The examination of what is learnt. Judges of each of the `folds` learn from the others.

    `holdout_systems` are systems whose answers are also judged by a judge that learnt from none of
    theirs. `curve` are numbers of labels of which a learning curve is made.
    """

    folds: int = Field(default=5, ge=2, le=50)
    holdout_systems: tuple[str, ...] = ()
    curve: tuple[Annotated[int, Field(ge=2)], ...] = ()


def learn_entry(value: Any, file: Path, node: yaml.Node | None) -> Learn:
    """An entry of `judges` with a key `learn`. Raises SetupError with every problem."""
    model = _MODELS.get(str(value["learn"]))
    if model is None:
        message, found = "is no way to learn", str(value["learn"])
        raise SetupError(Problem(message, str(file), None, "learn", found, ", ".join(_MODELS)))
    return validate(value, model, str(file), node)
