"""The settings of scorers: in `scorers` of bench.yaml, and in judges that follow from one.

One class for each family: numbers of a column, words shared with a reference (overlap), models that
read texts (semantic), how likely a model finds a text (likelihood). Baselines have no settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import yaml
from pydantic import Field, RootModel, field_validator, model_validator

from judgebench.errors import Problem, SetupError
from judgebench.files import StrictModel, node_below, validate
from judgebench.judges.config import Name
from judgebench.models import hosts_of
from judgebench.models.settings import BackendSettings
from judgebench.runs.bench import BenchConfig
from judgebench.runs.load import Gathered

KEY = "scorers"
Better = Literal["higher", "lower", ""]  # "" where nobody knows


class FitConfig(StrictModel):
    """A judge that follows from a score: thresholds are fitted to the human labels of the `metric`
    (or of several), in `folds`, so that nothing is judged by what was learnt from it."""

    metric: tuple[Name, ...] = Field(min_length=1)
    folds: int = Field(default=5, ge=2, le=50)
    seed: int = 0

    @field_validator("metric", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class ScorerConfig(StrictModel):
    """A scorer, and the name of its scores: without one, the scorer's. With a `fit` it is the entry
    of a judge that follows from it."""

    scorer: str
    name: Name = ""
    fit: FitConfig | None = None
    needs: ClassVar[Sequence[str]] = ()

    @model_validator(mode="after")
    def _takes_its_settings(self) -> Self:
        takes = {"scorer", "name", "fit", *SCORERS[self.scorer].takes}
        if others := sorted(self.model_fields_set - takes):
            raise ValueError(f"{self.scorer} has no setting {', '.join(others)}")
        return self

    @property
    def is_judge(self) -> bool:
        """True where it gives labels."""
        return self.fit is not None

    @property
    def weights(self) -> dict[str, str]:
        """The weights that it loads, by the key that names them."""
        return {}

    @property
    def hosts(self) -> list[str]:
        """The hosts that it contacts."""
        return []


class ColumnConfig(ScorerConfig):
    """Numbers that were computed elsewhere: of the column `from` of the data files, which is
    kept with the answers. `better` says in which direction."""

    source: str = Field(alias="from", min_length=1)
    better: Better = ""


class OverlapConfig(ScorerConfig):
    """Words or characters shared with the reference. With `stemmer` words are compared by their
    stems."""

    stemmer: bool = False


class SemanticConfig(ScorerConfig):
    """A `model` (`minilm`, a folder, or a hub name) that reads the answer and its reference.

    BERTScore takes the states of a `layer`: without one, that which its authors recommend where
    they know the encoder, else the last. `measure` is what BERTScore and BARTScore give. A learned
    model `reads` one text or two; of several labels its score is the probability of `label`.
    """

    model: str = "minilm"
    layer: int | None = Field(default=None, ge=0)
    measure: Literal["f1", "precision", "recall"] = "f1"
    reads: tuple[Literal["question", "answer", "reference"], ...] = Field(
        default=("reference", "answer"), min_length=1, max_length=2
    )
    label: str | None = None
    better: Better = ""

    @property
    def weights(self) -> dict[str, str]:
        """The model, by its key."""
        return {"model": self.model}


class LikelihoodConfig(ScorerConfig):
    """How likely a model (`backend`, with `settings`) finds a text: `of` the answer, of its
    reference, or of a column that the data keeps; of each text of a JSON list there, and their
    mean. `given` is what stands before it: nothing, the question as the turn of a chat, or any text
    with {question} in the question's place.

    Relaxed Perplexity compares the text with the model's own completions: `samples` of up to
    `max_tokens` are drawn with the `seed` and `top_p`, and behind every `stride` tokens it is asked
    whether the text comes next; the likeliest `best` count, with `weighted` in proportion to their
    own probability.
    """

    backend: str
    settings: BackendSettings = BackendSettings()
    of: str = Field(default="answer", min_length=1)
    given: str = "nothing"
    samples: int = Field(default=10, ge=1, le=1000)
    max_tokens: int = Field(default=256, ge=1)
    stride: int = Field(default=8, ge=1)
    seed: int = 0
    best: int = Field(default=5, ge=1)
    top_p: float = Field(default=0.9, gt=0, le=1)
    weighted: bool = False

    @model_validator(mode="before")
    @classmethod
    def _completes_the_question(cls, values: Any) -> Any:
        if str(values.get("scorer")).startswith("relaxed"):
            return {"of": "reference", "given": "question", **values}
        return values

    @field_validator("given")
    @classmethod
    def _is_known(cls, given: str) -> str:
        if given in ("nothing", "question") or "{question}" in given:
            return given
        raise ValueError("is 'nothing', 'question', or a text that holds {question}")

    @property
    def hosts(self) -> list[str]:
        """Those of the backend."""
        return hosts_of(self.backend, self.settings)


@dataclass(frozen=True)
class ScorerKind:
    """What a scorer is in words, the family whose settings it has, and which of these it takes."""

    family: str
    title: str
    takes: Sequence[str] = ()
    is_ratio: bool = False  # its 0 is a true zero, and its numbers are never below it


_FAMILIES: Mapping[str, type[ScorerConfig]] = {
    "baseline": ScorerConfig, "column": ColumnConfig, "overlap": OverlapConfig,
    "semantic": SemanticConfig, "likelihood": LikelihoodConfig,
}  # fmt: skip
SCORERS = {
    name: ScorerKind(**kind)
    for name, kind in yaml.safe_load(
        Path(__file__).with_name("scorers.yaml").read_text("utf-8")
    ).items()
}
RATIO_SCALES = frozenset(name for name, kind in SCORERS.items() if kind.is_ratio)
BASELINES = tuple(name for name, kind in SCORERS.items() if kind.family == "baseline")


class ScorersConfig(RootModel[tuple[Any, ...]]):
    """The key `scorers` of bench.yaml; `scorer_config` reads its entries."""


def scorer_config(value: Any, file: str = "", node: yaml.Node | None = None) -> ScorerConfig:
    """A scorer by its name or its settings. Raises SetupError with every problem."""
    settings = {"scorer": value} if isinstance(value, str) else value
    scorer = settings.get("scorer") if isinstance(settings, dict) else settings
    if str(scorer) not in SCORERS:
        allowed = ", ".join(SCORERS)
        raise SetupError(Problem("is no scorer", file, _line(node), "scorer", str(scorer), allowed))
    node = None if isinstance(value, str) else node
    config = validate(settings, _FAMILIES[SCORERS[str(scorer)].family], file, node)
    return config if config.name else config.model_copy(update={"name": config.scorer})


def scorer_configs(
    values: Sequence[Any], file: str = "", node: yaml.Node | None = None
) -> list[ScorerConfig]:
    """Every scorer of a list. Raises SetupError with every problem."""
    gather = Gathered(file)
    read = [
        gather(KEY, scorer_config, value, file, node_below(node, i))
        for i, value in enumerate(values)
    ]
    configs = [config for config in read if config]
    for name, n in Counter(config.name for config in configs).items():
        if n > 1:
            message = "two scorers have this name: give one another `name`"
            gather.tell(KEY, Problem(message, found=name))
    for config in configs:
        if config.fit:
            gather.tell(KEY, Problem("has a `fit`: it belongs to `judges`", found=config.name))
    gather.raise_any()
    return configs


def listed() -> list[tuple[str, str]]:
    """The name of each scorer and what it is."""
    return [(name, kind.title) for name, kind in SCORERS.items()]


def fit_entry(value: Any, file: Path, node: yaml.Node | None) -> ScorerConfig:
    """An entry of `judges` with a key `scorer`. Raises SetupError with every problem."""
    return scorer_config({**value, "fit": value.get("fit") or {}}, str(file), node)


def _line(node: yaml.Node | None) -> int | None:
    return node.start_mark.line + 1 if node else None


def scorer_entries(
    config: BenchConfig, file: Path, node: yaml.Node | None
) -> Sequence[ScorerConfig]:
    """The entries of the list `scorers`. Raises SetupError with every problem."""
    section = config.section(KEY, ScorersConfig)
    return scorer_configs(section.root if section else (), str(file), node_below(node, KEY))
