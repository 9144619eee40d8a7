"""The settings of a judge: a YAML file, or an entry of bench.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field, field_validator, model_validator

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import StrictModel, validate
from judgebench.judges.replies import HIGHEST_SCORE, LOWEST_SCORE, RATIONALE
from judgebench.models import kind_of
from judgebench.models.contract import Conditioning
from judgebench.models.settings import BackendSettings, place_of
from judgebench.prompt import JudgeReply, Prompt
from judgebench.records import SEVERAL, AnswerKind
from judgebench.rubric import Rubric
from judgebench.stats.consensus import Ties

# It names files, so it holds what every file system takes.
JUDGE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|(?:COM|LPT)\d)(?:\..*)?", re.IGNORECASE)


def _plain(name: str) -> str:
    if _DEVICE.fullmatch(name):
        raise ValueError("names a device where there is Windows, so that no file can have it")
    if not re.fullmatch(JUDGE_NAME, name):
        raise ValueError("takes letters, digits, `.`, `_` and `-`, at most 64, no spaces")
    return name


Name = Annotated[str, AfterValidator(_plain)]


def _known(backend: str) -> str:
    try:
        kind_of(backend)
    except SetupError as error:
        (problem,) = error.problems
        raise ValueError(f"{problem.message} (allowed: {problem.allowed})") from None
    return backend


BackendSpec = Annotated[str, AfterValidator(_known)]  # such as `llamacpp:smollm2`
QUESTION = "question"  # the key of a judge's own question, in replies that are JSON
Mode = Literal["one_pass", "per_metric"]
Rule = Literal["majority", "median"]


class Decoding(StrictModel):
    """The decoding of replies. `max_tokens` None means enough for the reply kind; whatever else is
    None is left out of the request."""

    temperature: float | None = Field(default=0.0, ge=0, le=2)
    top_p: float | None = Field(default=1.0, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = 0

    @property
    def without_neutral(self) -> Decoding:
        """The decoding as an endpoint gets it: our own `top_p` and `seed`, which change nothing
        where `temperature` is 0, are left out, for some endpoints refuse them."""
        written = self.model_dump(exclude_unset=True)
        return Decoding.model_validate({"top_p": None, "seed": None, **written})

    @property
    def left_out(self) -> tuple[str, ...]:
        """The parameters that the endpoint gets none of."""
        return tuple(k for k in ("temperature", "top_p", "seed") if getattr(self, k) is None)


class KnowledgeConfig(StrictModel):
    """The look-ups that a judge may make before its verdict: at most `questions` times, `passages`
    of at most `characters` each.

    `corpus` is a folder of text files, or a table with the `column`. `embedder` is an encoder
    (`minilm`, a folder or a hub name), or `words`, which finds passages by the words that they
    share with a question and needs no model.
    """

    corpus: str
    column: str = "text"
    embedder: str = "minilm"
    questions: int = Field(default=3, ge=1, le=20)
    passages: int = Field(default=1, ge=1, le=20)
    characters: int = Field(default=400, ge=50)


class JudgeConfig(StrictModel):
    """A language model as a judge. `parse_retries`: how often an unreadable reply is requested
    again.

    `probabilities` requests a probability of every label of every metric, which depends on the
    prompt alone (`independent`) or also on the labels of the metrics before it (`chained`).
    `knowledge` lets the judge look things up before its verdict.

    With a prompt that shows responses, `list` answers to one question are judged in one request, or
    pairs are. `orders`: a pair is shown in both orders (the default), or in `one`; a pair whose
    preference changes with the order is a tie. `seed` decides the places.
    """

    name: Name
    backend: BackendSpec
    prompt: str = "structured"
    mode: Mode = "one_pass"
    decoding: Decoding = Decoding()
    thresholds: dict[str, dict[str, float]] | None = None
    probabilities: Conditioning | None = None
    knowledge: KnowledgeConfig | None = None
    list: int | None = Field(default=None, ge=2, le=8)
    orders: Literal["both", "one"] | None = None
    seed: int | None = None
    parse_retries: int = Field(default=1, ge=0, le=5)
    settings: BackendSettings = BackendSettings()

    @staticmethod
    def place_of(key: str) -> str:
        """Where a key belongs that stands in another place; empty where that is not known."""
        return f"settings.{key}" if key in BackendSettings.model_fields else place_of(key)


class JuryConfig(StrictModel):
    """A jury over verdicts that other judges of the same run give.

    `median` is by severity and needs ordinal metrics; nominal ones are settled by majority.
    `ties`: the less severe label, the more severe one, or no label; where it is not given, the more
    severe one, and no label of a nominal metric.
    """

    name: Name
    jury: tuple[Name, ...] = Field(min_length=2)
    rule: Rule = "majority"
    ties: Ties | None = None

    @field_validator("jury")
    @classmethod
    def _each_once(cls, jury: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(jury)) < len(jury):
            raise ValueError("duplicate member: each has one vote")
        return jury


class CalibrationConfig(StrictModel):
    """The verdicts of the judge `calibrate`, once the prior of its labels is removed.

    The prior is estimated from the very answers that are judged; see `stats.recalibration`.
    """

    name: Name
    calibrate: Name


class RecordedConfig(StrictModel):
    """Verdicts that somebody has, as a judge; without a `name`, every judge that the file names.

    `verdicts` is a table, or a layout.yaml that says where they stand. `expected` says what was
    meant for the judge: all items, or those with a row. Whole replies are parsed for the one
    label that each gives, or with another kind of `reply` as when a prompt of that kind is used.
    Of several draws of an item the label is the majority, where `ties` are settled as those of the
    reference labels are, unless it says how. `about` holds facts that the report repeats.
    """

    name: Name = ""
    verdicts: str
    expected: Literal["items", "rows"] = "items"
    ties: Ties | None = None
    reply: JudgeReply | Literal["label"] = "label"
    thresholds: dict[str, dict[str, float]] | None = None
    about: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _thresholds_of_scores(self) -> RecordedConfig:
        if (self.reply == "result") != (self.thresholds is not None):
            raise ValueError("give thresholds with the reply result, and only with it")
        return self


JudgeEntry = JudgeConfig | JuryConfig | CalibrationConfig | RecordedConfig
CORE_ENTRIES = (JudgeConfig, JuryConfig, CalibrationConfig, RecordedConfig)


def judge_entry(value: Any, file: str, node: yaml.Node | None) -> JudgeEntry:
    """The judge that stands at `node` of `file`: a jury with a key `jury`, a calibrated judge with
    a key `calibrate`, recorded verdicts with a key `verdicts`.

    Raises SetupError with every problem.
    """
    kinds: dict[str, type[JudgeEntry]] = {
        "jury": JuryConfig, "calibrate": CalibrationConfig, "verdicts": RecordedConfig,
    }  # fmt: skip
    keys = value if isinstance(value, dict) else ()
    model = next((model for key, model in kinds.items() if key in keys), JudgeConfig)
    return validate(value, model, file, node)


def judged_kind(config: JudgeConfig, prompt: Prompt) -> AnswerKind:
    """Of which rows the judge judges: its prompt and `list` say so."""
    if prompt.shows == "criteria":
        return "criterion"
    return "pair" if prompt.shows == "responses" and config.list is None else "answer"


def check_judge(config: JudgeConfig, prompt: Prompt, rubric: Rubric) -> None:
    """Check that judge, prompt and rubric fit together. Raises SetupError with every problem."""
    kind = judged_kind(config, prompt)
    judged = rubric.of_kind(kind)
    problems = _broken(_place_rules(config, prompt, kind))
    if judged is None:
        message = f"judges {SEVERAL[kind]}, of which the rubric has no metric"
        allowed = ", ".join(f"{m.id} (of: {m.of})" for m in rubric.metrics)
        if prompt.shows == "responses" and not config.list:
            allowed += "; with `list: K` it judges answers"
        raise SetupError([*problems, Problem(message, "", None, "prompt", prompt.name, allowed)])
    problems += _broken(_prompt_rules(config, prompt, judged))
    if config.probabilities is not None:
        problems += _broken(_probability_rules(config, prompt, judged))
    if prompt.reply == "result" and config.thresholds is not None:
        problems += threshold_problems(config.thresholds, judged)
    if kind_of(config.backend).decides:
        problems += _broken(_decision_rules(config, prompt, judged))
    raise_any(problems)


# A fault that a judge may have: whether it has it, the key, the message.
Fault = tuple[object, str, str]


def _broken(rules: Iterator[Fault]) -> list[Problem]:
    """The problems of those rules that a judge breaks."""
    return [Problem(message, field=field) for breaks, field, message in rules if breaks]


def _prompt_rules(config: JudgeConfig, prompt: Prompt, rubric: Rubric) -> Iterator[Fault]:
    name, scored = prompt.name, prompt.reply == "result"
    has_thresholds = config.thresholds is not None
    message = f"{'are needed by' if scored else 'have no effect with'} the prompt {name}"
    yield scored != has_thresholds, "thresholds", message
    yield (
        scored and config.mode != "per_metric",
        "mode",
        f"must be per_metric with the prompt {name}",
    )
    keys = [RATIONALE, f"{RATIONALE}_1", f"{RATIONALE}_2"] if prompt.reply == "rationale" else []
    keys += [QUESTION] if config.knowledge else []
    for metric in filter(None, map(rubric.find, keys)):
        yield True, "prompt", f"the reply has a key with the name of the metric {metric.id}"
    message = f"{prompt.reply} cannot be the reply of a prompt that shows several texts"
    yield prompt.shows != "answer" and scored, "prompt", message


def _place_rules(config: JudgeConfig, prompt: Prompt, kind: AnswerKind) -> Iterator[Fault]:
    """Keys about places that have no effect, for nothing is shown side by side, or not in pairs."""
    message = "needs a prompt that shows responses, such as compare"
    yield config.list and prompt.shows != "responses", "list", message
    message = "is about pairs, which this judge does not judge"
    yield config.orders and kind != "pair", "orders", message
    is_drawn = config.list or config.orders == "one"
    has_seed = config.seed is not None
    yield has_seed and not is_drawn, "seed", "has no effect without `list` or `orders: one`"


def _probability_rules(config: JudgeConfig, prompt: Prompt, rubric: Rubric) -> Iterator[Fault]:
    field = "probabilities"
    several = prompt.shows != "answer"
    yield several, field, "are of one answer at a time, not of several texts side by side"
    message = "need a prompt whose reply is a JSON object of labels (reply: json)"
    yield prompt.reply != "json", field, message
    lists = ", ".join(metric.id for metric in rubric.metrics if metric.several)
    yield lists, field, f"are of one label; the metrics {lists} take several"
    yield config.knowledge, field, "cannot be had of a judge with `knowledge`"
    # Whatever writes its reply has read the labels before, so its probabilities are independent
    # only where each metric has a request of its own.
    is_alone = config.mode == "per_metric" or len(rubric.metrics) == 1
    writes = not kind_of(config.backend).weighs_labels and not is_alone
    message = "each label depends on those before it; allowed: chained; or mode: per_metric"
    yield config.probabilities == "independent" and writes, field, message


def _decision_rules(config: JudgeConfig, prompt: Prompt, rubric: Rubric) -> Iterator[Fault]:
    """Rules on what cannot be asked of a model that answers each question and writes no text."""
    message = "cannot be asked of a decision model; it needs a prompt with `reply: json`"
    yield prompt.reply != "json", "prompt", message
    message = "has no effect on a decision model, which writes no text"
    yield config.decoding != Decoding(), "decoding", message
    yield config.knowledge, "knowledge", message
    message = "of a decision model are independent"
    yield config.probabilities == "chained", "probabilities", message
    several = (prompt.shows == "criteria" or config.list) and len(rubric.metrics) > 1
    message = "of a decision model that is shown several texts must be per_metric"
    yield several and config.mode == "one_pass", "mode", message


def threshold_problems(
    thresholds: dict[str, dict[str, float]], rubric: Rubric
) -> Iterator[Problem]:
    """Problems of the lowest scores of labels."""
    for metric in rubric.metrics:
        field, lowest = f"thresholds.{metric.id}", thresholds.get(metric.id, {})
        scores = sorted(lowest.values())
        is_sound = scores[:1] == [LOWEST_SCORE] and scores[-1] <= HIGHEST_SCORE
        if not is_sound or len({*scores}) < len(scores) or lowest.keys() - {*metric.label_texts}:
            message = f"needs labels, each with a score of its own, the lowest {LOWEST_SCORE}"
            allowed = f"{', '.join(metric.label_texts)}; {LOWEST_SCORE} to {HIGHEST_SCORE}"
            yield Problem(message, "", None, field, str(lowest), allowed)
