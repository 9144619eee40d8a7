"""The settings of scorers: in `scorers` of bench.yaml, and in judges that follow from one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import Field, RootModel, field_validator

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import StrictModel, node_below, validate
from judgebench.judges.config import Name
from judgebench.models import hosts_of
from judgebench.models.settings import BackendSettings
from judgebench.runs.bench import BenchConfig
from judgebench.runs.load import Gathered

KEY = "scorers"
_RADGRAPH = r"^(.*/)?(radgraph|radgraph-xl|modern-radgraph-xl|echograph)$"
_FIELD = re.compile(r"{(\w+)}")


class ScorerConfig(StrictModel):
    """The settings that all have in common. Without a `name` it is called as the scorer."""

    scorer: str
    name: Name | None = None

    @property
    def weights(self) -> dict[str, str]:
        """The weights that it loads, by the key that names them."""
        return {key: getattr(self, key) for key in ("encoder", "model") if hasattr(self, key)}

    @property
    def hosts(self) -> list[str]:
        """The hosts that it contacts."""
        return []


class ColumnConfig(ScorerConfig):
    """Numbers that were computed elsewhere: of the column `from` of the data files, which is
    kept with the answers. `better` says in which direction."""

    scorer: Literal["column"]
    name: Name
    source: str = Field(alias="from", min_length=1)
    better: Literal["higher", "lower", ""] = ""


class SimpleConfig(ScorerConfig):
    """A scorer without meaning of its own, for comparison: how many words the answer has, a draw
    that depends on the answer and the `seed` alone, the share of the question's words that the
    answer repeats."""

    scorer: Literal["length", "random-number", "question-overlap"]
    seed: int = 0


class ReferencesConfig(ScorerConfig):
    """The common keys of scorers that compare an answer with references: its reference, or each
    text of a list in its place, and those in `reference_columns`."""

    reference_columns: tuple[Annotated[str, Field(min_length=1)], ...] = ()


class PairsConfig(ReferencesConfig):
    """The common keys of scorers that read an answer with each reference in turn: `references`
    says what the score against several is, `max` (the best of their scores) or `mean`."""

    references: Literal["max", "mean"] = "max"


class RougeConfig(PairsConfig):
    """ROUGE, F1. With `stemmer` words are compared by their stems."""

    scorer: Literal["rouge-1", "rouge-2", "rouge-l"]
    stemmer: bool = False


class SacrebleuConfig(ReferencesConfig):
    """The metrics of sacrebleu; with `joint` several references by its own rule: BLEU counts what
    is in any of them, TER divides by their mean length, chrF takes the best."""

    scorer: Literal["bleu", "chrf", "chrf++", "ter"]
    references: Literal["joint", "max", "mean"] = "joint"


class MeteorConfig(PairsConfig):
    """METEOR; its synonyms need the data of WordNet."""

    scorer: Literal["meteor"]
    synonyms: bool = True


class BertScoreConfig(PairsConfig):
    """BERTScore by an `encoder`: `minilm`, a folder, or a hub name. Without a `layer` it is the one
    that the authors recommend where they know the encoder, else the last."""

    scorer: Literal["bertscore"]
    encoder: str = "minilm"
    layer: int | None = None
    measure: Literal["f1", "precision", "recall"] = "f1"


class MoverScoreConfig(PairsConfig):
    """MoverScore by the last `layers` of an `encoder`, of words or of pairs of words (`ngram`)."""

    scorer: Literal["moverscore"]
    encoder: str = "minilm"
    layers: int = Field(default=5, ge=1)
    ngram: Literal[1, 2] = 1


class LearnedConfig(PairsConfig):
    """A classifier or regressor of texts: a `model` by folder or hub name, which `reads` one text
    or two. One number is the score; of several labels it is the probability of `label`, or without
    one the expected place of the label in the model's order."""

    scorer: Literal["learned"]
    model: str
    reads: tuple[str, ...] = Field(default=("{reference}", "{answer}"), min_length=1, max_length=2)
    label: str | None = None
    better: Literal["higher", "lower", ""] = ""

    @field_validator("reads")
    @classmethod
    def _known(cls, reads: tuple[str, ...]) -> tuple[str, ...]:
        fields = set(_FIELD.findall("".join(reads)))
        if "answer" not in fields or fields - {"question", "answer", "reference"}:
            raise ValueError("must hold {answer}, and may hold {question} and {reference}")
        return reads


class RadGraphConfig(PairsConfig):
    """F1-RadGraph by the package radgraph; `model` is one of its names, or a folder of that name.
    `level`: entities, with `partial` also whether they have relations, with `complete` which."""

    scorer: Literal["radgraph"]
    model: str = Field(default="modern-radgraph-xl", pattern=_RADGRAPH)
    level: Literal["simple", "partial", "complete"] = "partial"


class WeighedConfig(ScorerConfig):
    """The common keys of scorers that ask a model (`backend`, with `settings`) how likely a text
    is: `of` the answer, of its reference, or of a column that the data keeps; of each text of a
    JSON list there, and their mean. `given` is what stands before it: nothing, the question as the
    turn of a chat, or any text with {question} in the question's place."""

    backend: str
    settings: BackendSettings = BackendSettings()
    of: str = Field(default="answer", min_length=1)
    given: str = "nothing"

    @field_validator("given")
    @classmethod
    def _known(cls, given: str) -> str:
        if given in ("nothing", "question") or "{question}" in given:
            return given
        raise ValueError("is 'nothing', 'question', or a text that holds {question}")

    @property
    def hosts(self) -> list[str]:
        return hosts_of(self.backend, self.settings)


class PerplexityConfig(WeighedConfig):
    """The likelihood of a text, per byte or word of it."""

    scorer: Literal["bits-per-byte", "byte-perplexity", "word-perplexity"]


class DrawnConfig(WeighedConfig):
    """The scorer that compares a text with the model's own completions: `samples` of up to
    `max_tokens` are drawn with the `seed`, and behind every `stride` tokens it is asked whether
    the text comes next."""

    of: str = Field(default="reference", min_length=1)
    given: str = "question"
    samples: int = Field(default=10, ge=1, le=1000)
    max_tokens: int = Field(default=256, ge=1)
    stride: int = Field(default=8, ge=1)
    seed: int = 0


class RelaxedConfig(DrawnConfig):
    """Relaxed Perplexity, or the sum in its exponent: the likeliest `best` of the samples count,
    drawn with `top_p`; with `weighted`, in proportion to their own probability."""

    scorer: Literal["relaxed-perplexity", "relaxed-cross-entropy"]
    best: int = Field(default=5, ge=1)
    top_p: float = Field(default=0.9, gt=0, le=1)
    weighted: bool = False


class OccurrencesConfig(DrawnConfig):
    """The expected number of times that the text occurs in a completion that is drawn freely."""

    scorer: Literal["expected-occurrences"]


_FAMILIES = (
    ColumnConfig, RougeConfig, SacrebleuConfig, MeteorConfig, BertScoreConfig, MoverScoreConfig,
    LearnedConfig, RadGraphConfig, PerplexityConfig, RelaxedConfig, OccurrencesConfig, SimpleConfig,
)  # fmt: skip
MODELS: Mapping[str, type[ScorerConfig]] = {
    name: model for model in _FAMILIES for name in get_args(model.model_fields["scorer"].annotation)
}
SIMPLE = tuple(name for name, model in MODELS.items() if model is SimpleConfig)
ABOUT: Mapping[str, str] = {
    "column": "numbers of a column of the data, computed elsewhere",
    "rouge-1": "ROUGE: words shared with the reference (F1, 0 to 1)",
    "rouge-2": "ROUGE: pairs of neighbouring words shared with the reference (F1, 0 to 1)",
    "rouge-l": "ROUGE: longest common sequence of words (F1, 0 to 1)",
    "bleu": "BLEU of a single text: up to four words in a row (0 to 100)",
    "chrf": "chrF: up to six characters in a row (0 to 100)",
    "chrf++": "chrF++: chrF with words and pairs of words (0 to 100)",
    "ter": "TER: edits per 100 words of the reference, lower is better; slow on long texts",
    "meteor": "METEOR: words, stems and synonyms (0 to 1); synonyms need WordNet's data",
    "bertscore": "BERTScore: tokens matched by an encoder (F1, precision or recall, up to 1)",
    "moverscore": "MoverScore: 1 minus the least effort to turn the answer into the reference",
    "learned": "any classifier or regressor of texts, by folder (BLEURT, NLI, quality)",
    "radgraph": "F1-RadGraph: clinical entities and relations shared (0 to 1); package radgraph",
    "bits-per-byte": "how unlikely a model finds the text, in bits per byte; needs a backend",
    "byte-perplexity": "the same as 2 to the power of the bits per byte",
    "word-perplexity": "the same per word",
    "relaxed-perplexity": "Relaxed Perplexity: does the text come anywhere in completions?",
    "relaxed-cross-entropy": "the sum in the exponent of Relaxed Perplexity; lower is better",
    "expected-occurrences": "how often a free completion holds the text, letter by letter",
    "length": "for comparison: how many words the answer has",
    "random-number": "for comparison: a draw that depends on the answer alone",
    "question-overlap": "for comparison: share of the question's words that the answer repeats",
}


class ScorersConfig(RootModel[tuple[Any, ...]]):
    """The key `scorers` of bench.yaml; `scorer_config` reads its entries."""


class FitConfig(StrictModel):
    """A judge that follows from a score: thresholds are fitted to the human labels of the `metric`
    (or of several), in `folds`, so that nothing is judged by what was learnt from it."""

    metric: tuple[Name, ...] = Field(min_length=1)
    folds: int = Field(default=5, ge=2, le=50)
    seed: int = 0

    @field_validator("metric", mode="before")
    @classmethod
    def _of_one(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


@dataclass(frozen=True)
class _Entry:
    name: str
    how: ScorerConfig
    needs: Sequence[str] = field(default=(), init=False)

    @property
    def weights(self) -> Mapping[str, str]:
        return self.how.weights

    @property
    def hosts(self) -> list[str]:
        return self.how.hosts


@dataclass(frozen=True)
class ScorerEntry(_Entry):
    """A scorer of the list `scorers`, or one that is scored `beside` them for comparison."""

    beside: bool = False
    is_judge: bool = field(default=False, init=False)


@dataclass(frozen=True)
class FitEntry(_Entry):
    """A judge that follows from a scorer."""

    fit: FitConfig


def scorer_config(value: Any, file: str = "", node: yaml.Node | None = None) -> ScorerConfig:
    """A scorer by its name or its settings. Raises SetupError with every problem."""
    if isinstance(value, ScorerConfig):
        return value
    given = {"scorer": value} if isinstance(value, str) else value
    name = given.get("scorer") if isinstance(given, dict) else None
    model = MODELS.get(str(name))
    if model is None:
        message, allowed = "is no scorer", ", ".join(MODELS)
        told = str(value if name is None else name)
        raise SetupError(Problem(message, file, _line(node), "scorer", told, allowed))
    found = validate(given, model, file, None if isinstance(value, str) else node)
    return found if found.name else found.model_copy(update={"name": found.scorer})


def scorer_configs(
    values: Sequence[Any], file: str = "", node: yaml.Node | None = None
) -> list[ScorerConfig]:
    """Every scorer of a list. Raises SetupError with every problem."""
    found: list[ScorerConfig] = []
    problems: list[Problem] = []
    for i, value in enumerate(values):
        try:
            found.append(scorer_config(value, file, node_below(node, i)))
        except SetupError as error:
            problems += error.problems
    names = Counter(str(how.name) for how in found)
    message = "two scorers have this name: give one another `name`"
    problems += [Problem(message, file, field=KEY, found=n) for n in names if names[n] > 1]
    raise_any(problems)
    return found


def listed() -> list[tuple[str, str]]:
    """The name of each scorer and what it is."""
    return list(ABOUT.items())


def fit_entry(value: Any, file: Path, node: yaml.Node | None) -> FitEntry:
    """An entry of `judges` with a key `scorer`. Raises SetupError with every problem."""
    lacking = [key for key in ("name", "fit") if key not in value]
    message = "is missing: a judge needs a name, and the metric that it is fitted to"
    raise_any([Problem(message, str(file), _line(node), key) for key in lacking])
    gather, scorer = Gathered(str(file)), {k: v for k, v in value.items() if k != "fit"}
    how = gather("", scorer_config, scorer, str(file), node)
    fit = gather("fit", validate, value["fit"], FitConfig, "", node_below(node, "fit"))
    gather.raise_any()
    assert how is not None
    assert fit is not None
    return FitEntry(str(how.name), how, fit)


def _line(node: yaml.Node | None) -> int | None:
    return node.start_mark.line + 1 if node else None


def scorer_entries(
    config: BenchConfig, file: Path, node: yaml.Node | None
) -> Sequence[ScorerEntry]:
    """The entries of the list `scorers` and, unless `controls` is off or names its own, scorers
    without meaning beside them. Raises SetupError with every problem."""
    listed = config.section(KEY, ScorersConfig)
    configs = scorer_configs(listed.root if listed else (), str(file), node_below(node, KEY))
    found = [ScorerEntry(str(how.name), how) for how in configs]
    if found and config.controls is True:
        taken = {judge.get("name") for judge in config.judges if isinstance(judge, dict)}
        names = [one for one in SIMPLE if one not in {*taken, *(entry.name for entry in found)}]
        found += [ScorerEntry(name, scorer_config(name), beside=True) for name in names]
    return found
