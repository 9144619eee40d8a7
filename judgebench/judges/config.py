"""The settings of a judge: a YAML file, or an entry of bench.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field, field_validator, model_validator

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.judges.replies import HIGHEST_SCORE, LOWEST_SCORE, RATIONALE
from judgebench.models import kind_of
from judgebench.models.contract import Conditioning
from judgebench.models.settings import BackendSettings, place_of
from judgebench.prompt import JudgeReply, Prompt
from judgebench.records import SEVERAL, Kind
from judgebench.rubric import Rubric
from judgebench.stats.consensus import Ties
from judgebench.yaml_file import Strict, validate

# It names files, so it holds what every file system takes.
JUDGE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|(?:COM|LPT)\d)(?:\..*)?", re.IGNORECASE)


def _plain(name: str) -> str:
    if _DEVICE.fullmatch(name):
        raise ValueError("names a device where there is Windows, so that no file can have it")
    if not re.fullmatch(JUDGE_NAME, name):
        near = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:64]
        meant = f"; did you mean {near!r}?" * bool(near)
        raise ValueError(f"takes letters, digits, `.`, `_` and `-`, at most 64, no spaces{meant}")
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
CalibrationMethod = Literal["batch", "content-free"]


class Decoding(Strict):
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


class KnowledgeConfig(Strict):
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


class JudgeConfig(Strict):
    """A language model as a judge. `parse_retries`: how often an unreadable reply is requested
    again.

    `probabilities` requests a probability of every label of every metric, which depends on the
    prompt alone (`independent`) or also on the labels of the metrics before it (`chained`).
    `knowledge` lets the judge look things up before its verdict.

    With a prompt that shows responses, `list` answers to one question are judged in one request, or
    pairs are. `orders`: a pair is shown in both orders (the default), or in `one`. `inconsistent`:
    what a pair becomes whose preference changes with the order: a `tie` (the default), or a verdict
    without a label (`none`). `seed` decides the places.
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
    inconsistent: Literal["tie", "none"] | None = None
    seed: int | None = None
    parse_retries: int = Field(default=1, ge=0, le=5)
    settings: BackendSettings = BackendSettings()

    @staticmethod
    def place_of(key: str) -> str:
        """Where a key belongs that stands in another place; empty where that is not known."""
        return f"settings.{key}" if key in BackendSettings.model_fields else place_of(key)


class JuryConfig(Strict):
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


class CalibrationConfig(Strict):
    """The verdicts of the judge `calibrate`, once the prior of its labels is removed.

    `batch` estimates the prior from the very answers that are judged, `content-free` from
    content-free texts; see `stats.recalibration`.
    """

    name: Name
    calibrate: Name
    method: CalibrationMethod = "batch"


class RecordedConfig(Strict):
    """Verdicts that somebody has, as a judge; without a `name`, every judge that the file names.

    `verdicts` is a table, or a layout.yaml that says where they stand. `expected` says what the
    judge was asked about: all items, or those with a row. Whole replies are parsed for the one
    label that each gives, or with another kind of `reply` as when a prompt of that kind is used.
    `about` holds facts that the report repeats.
    """

    name: Name = ""
    verdicts: str
    expected: Literal["items", "rows"] = "items"
    reply: JudgeReply | Literal["label"] = "label"
    thresholds: dict[str, dict[str, float]] | None = None
    about: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _thresholds_of_scores(self) -> RecordedConfig:
        if (self.reply in ("likert", "result")) != (self.thresholds is not None):
            raise ValueError(
                "give thresholds with the replies likert and result, and only with them"
            )
        return self


JudgeEntry = JudgeConfig | JuryConfig | CalibrationConfig | RecordedConfig
CORE_ENTRIES = (JudgeConfig, JuryConfig, CalibrationConfig, RecordedConfig)
_OWN_KEYS: dict[type[JuryConfig | CalibrationConfig | RecordedConfig], set[str]] = {
    JuryConfig: {"jury"},
    CalibrationConfig: {"calibrate"},
    RecordedConfig: {"verdicts"},
}


def judge_entry(value: Any, file: str, node: yaml.Node | None) -> JudgeEntry:
    """The judge that stands at `node` of `file`: a jury with a key `jury`, a calibrated judge with
    a key `calibrate`, recorded verdicts with a key `verdicts`.

    Raises SetupError with every problem.
    """
    keys = value.keys() if isinstance(value, dict) else ()
    for config, own in _OWN_KEYS.items():
        if own.intersection(keys):
            return validate(value, config, file, node)
    return validate(value, JudgeConfig, file, node)


def judged_kind(config: JudgeConfig, prompt: Prompt) -> Kind:
    """Of which rows the judge judges: its prompt and `list` say so."""
    if prompt.shows == "criteria":
        return "criterion"
    return "pair" if prompt.shows == "responses" and config.list is None else "answer"


def check_judge(config: JudgeConfig, prompt: Prompt, rubric: Rubric) -> None:
    """Check that judge, prompt and rubric fit together. Raises SetupError with every problem."""
    kind = judged_kind(config, prompt)
    problems = _places_problems(config, prompt, kind)
    judged = rubric.of_kind(kind)
    if judged is None:
        message = f"judges {SEVERAL[kind]}, of which the rubric has no metric"
        allowed = ", ".join(f"{m.id} (of: {m.of})" for m in rubric.metrics)
        if prompt.shows == "responses" and not config.list:
            allowed += "; with `list: K` it judges answers"
        raise SetupError([*problems, Problem(message, "", None, "prompt", prompt.name, allowed)])
    problems += _prompt_problems(config, prompt, judged)
    if prompt.reply in ("likert", "result") and config.thresholds is not None:
        problems += threshold_problems(config.thresholds, judged)
    if config.probabilities is not None:
        problems += _probability_problems(config, prompt, judged)
    if config.knowledge is not None:
        problems += _knowledge_problems(config, prompt, judged)
    if kind_of(config.backend).decides:
        problems += _decision_problems(config, prompt, judged)
    raise_any(problems)


# A fault that a judge may have: whether it has it, the message, the key, what it holds instead of
# what is allowed.
Fault = tuple[object, str, str, object, str]


def _broken(*rules: Fault) -> list[Problem]:
    """The problems of those rules that a judge breaks."""
    return [
        Problem(message, "", None, field, str(found), allowed)
        for breaks, message, field, found, allowed in rules
        if breaks
    ]


def _prompt_problems(config: JudgeConfig, prompt: Prompt, rubric: Rubric) -> list[Problem]:
    name, scored = prompt.name, prompt.reply in ("likert", "result")
    taken = [RATIONALE] if prompt.shows == "answer" else [f"{RATIONALE}_1", f"{RATIONALE}_2"]
    clashes: list[Fault] = [
        (
            metric,
            f"requests a {key} under the same key as the metric {metric.id}",
            "prompt",
            name,
            "",
        )
        for key in taken
        if prompt.reply == "rationale" and (metric := rubric.find(key))
    ]
    several = "cannot be the reply of a prompt that shows several texts"
    return _broken(
        (
            scored and config.thresholds is None,
            f"are needed by the prompt {name}", "thresholds", "", "",
        ),
        (
            not scored and config.thresholds is not None,
            f"have no effect with the prompt {name}", "thresholds", "", "",
        ),
        (
            prompt.reply == "result" and config.mode != "per_metric",
            f"must be per_metric with the prompt {name}", "mode", "", "",
        ),
        *clashes,
        (
            prompt.shows != "answer" and scored,
            several, "prompt", f"{name}, {prompt.reply}", "json, rationale, brackets",
        ),
    )  # fmt: skip


def _places_problems(config: JudgeConfig, prompt: Prompt, kind: Kind) -> list[Problem]:
    """Keys about places that have no effect, for nothing is shown side by side, or not in pairs."""
    one_order = kind == "pair" and config.orders == "one"
    no_pairs = "is about pairs, which this judge does not judge"
    return _broken(
        (
            config.list and prompt.shows != "responses",
            "needs a prompt that shows responses, such as compare", "list", prompt.name, "",
        ),
        (config.orders and kind != "pair", no_pairs, "orders", config.orders, ""),
        (config.inconsistent and kind != "pair", no_pairs, "inconsistent", config.inconsistent, ""),
        (
            one_order and config.inconsistent,
            "has no effect with orders: one", "inconsistent", config.inconsistent, "",
        ),
        (
            config.seed is not None and not (config.list or one_order),
            "has no effect without `list` or `orders: one`", "seed", config.seed, "",
        ),
    )  # fmt: skip


def _probability_problems(config: JudgeConfig, prompt: Prompt, rubric: Rubric) -> list[Problem]:
    # Whatever writes its reply has read the labels before, so its probabilities are independent
    # only where each metric has a request of its own.
    kind = kind_of(config.backend)
    alone = config.mode == "per_metric" or len(rubric.metrics) == 1
    return _broken(
        (
            prompt.shows != "answer",
            "are given for one answer at a time, not by a prompt that shows several texts",
            "probabilities", prompt.name, "",
        ),
        (
            prompt.reply != "json",
            "need a prompt whose reply is a JSON object of labels (reply: json)",
            "probabilities", f"{prompt.name}, {prompt.reply}", "",
        ),
        (
            lists := ", ".join(metric.id for metric in rubric.metrics if metric.several),
            "are of one label, and there are none of a list of labels (several: true)",
            "probabilities", lists, "metrics with one right label",
        ),
        (
            config.probabilities == "independent" and not alone and not kind.weighs_labels,
            f"a {kind.name} backend writes the labels one after another, so each depends on those "
            "before it", "probabilities", "independent",
            "chained; or mode: per_metric, where each metric has a request of its own",
        ),
    )  # fmt: skip


def _knowledge_problems(config: JudgeConfig, prompt: Prompt, rubric: Rubric) -> list[Problem]:
    metric = rubric.find(QUESTION) if prompt.reply not in ("brackets", "result") else None
    return _broken(
        (
            config.probabilities is not None,
            "cannot be had of a judge that may ask a question in place of its labels",
            "knowledge", "", "probabilities or knowledge, not both",
        ),
        (
            metric,
            f"a question would stand under the same key as the metric {metric and metric.id}",
            "knowledge", QUESTION, "",
        ),
    )  # fmt: skip


def _decision_problems(config: JudgeConfig, prompt: Prompt, rubric: Rubric) -> Iterator[Problem]:
    several_texts = prompt.shows == "criteria" or config.list
    faulty = {
        "prompt": prompt.reply != "json",
        "decoding": config.decoding != Decoding(),
        "knowledge": config.knowledge,
        "probabilities": config.probabilities == "chained",
        "mode": several_texts and config.mode == "one_pass" and len(rubric.metrics) > 1,
    }
    message = "cannot be asked of a decision model, which answers each question and writes no text"
    allowed = (
        "a prompt with `reply: json`, `probabilities: independent`, and `mode: per_metric` where "
        "several texts are shown; no `decoding`, no `knowledge`"
    )
    return (Problem(message, field=key, allowed=allowed) for key in faulty if faulty[key])


def threshold_problems(
    thresholds: dict[str, dict[str, float]], rubric: Rubric
) -> Iterator[Problem]:
    """Problems of the lowest scores of labels."""
    for metric in rubric.metrics:
        where, lowest = f"thresholds.{metric.id}", thresholds.get(metric.id)
        if lowest is None:
            yield Problem("is missing", field=where)
            continue
        allowed = ", ".join(metric.label_texts)
        for label in lowest:
            if label not in metric.label_texts:
                message = "is not a label of the metric"
                yield Problem(message, field=where, found=label, allowed=allowed)
        values = sorted(lowest.values())
        if not values or values[0] != LOWEST_SCORE:
            yield Problem(f"one label must begin at the score {LOWEST_SCORE}", field=where)
        if len(set(values)) != len(values) or any(v > HIGHEST_SCORE for v in values):
            scores = f"{LOWEST_SCORE} to {HIGHEST_SCORE}"
            yield Problem("must be different scores", "", None, where, str(values), scores)
