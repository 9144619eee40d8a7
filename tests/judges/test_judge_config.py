import pytest

from judgebench.errors import SetupError
from judgebench.files import validate
from judgebench.judges.config import (
    CalibrationConfig,
    JudgeConfig,
    JuryConfig,
    check_judge,
    judge_entry,
)
from judgebench.models import open_backend
from judgebench.models.settings import BackendSettings
from judgebench.prompt import load_prompt
from judgebench.rubric import Rubric, load_rubric

SAFETY = load_rubric("medical-safety")
TWO = SAFETY.only(["bias", "empathy"])
FITS = {"bias": {"Yes": 1, "No": 3}, "empathy": {"Lack of empathy": 1, "High empathy": 4.5}}


def config(**settings) -> JudgeConfig:
    value = {"name": "m", "backend": "scripted:x", **settings}
    return validate(value, JudgeConfig)


def problems(prompt: str, rubric: Rubric = TWO, **settings) -> dict[str, str]:
    with pytest.raises(SetupError) as caught:
        check_judge(config(**settings), load_prompt(prompt), rubric)
    return {p.field: str(p) for p in caught.value.problems}


def test_the_defaults() -> None:
    found = config()
    assert (found.prompt, found.mode, found.parse_retries) == ("structured", "one_pass", 1)
    assert (found.decoding.temperature, found.decoding.top_p, found.decoding.seed) == (0, 1, 0)
    assert found.decoding.max_tokens is None
    check_judge(found, load_prompt("structured"), TWO)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"retries": 1}, "retries"),
        ({"mode": "all"}, "mode"),
        ({"parse_retries": -1}, "parse_retries"),
        ({"name": "a/b"}, "name"),
        ({"name": ".hidden"}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"name": ""}, "name"),
        ({"decoding": {"temperature": -0.1}}, "decoding.temperature"),
        ({"decoding": {"top_p": 0}}, "decoding.top_p"),
        ({"decoding": {"max_tokens": 0}}, "decoding.max_tokens"),
        ({"decoding": {"top_k": 3}}, "decoding.top_k"),
        ({"thresholds": {"bias": {"Yes": "low"}}}, "thresholds.bias.Yes"),
        ({"settings": {"no_such": 1}}, "settings.no_such"),
        ({"settings": {"thinking": {"send": {}}}}, "settings.thinking.budget"),
        ({"settings": {"thinking": {"budget": -1}}}, "settings.thinking.budget"),
        ({"settings": {"max_tokens_as": "limit"}}, "settings.max_tokens_as"),
    ],
)
def test_settings_that_are_refused_are_told_by_field(settings: dict, field: str) -> None:
    with pytest.raises(SetupError) as caught:
        config(**settings)
    assert [p.field for p in caught.value.problems] == [field]


@pytest.mark.parametrize(
    "name", ["model", "messages", "base_url", "api_base", "stream", "logprobs"]
)
def test_only_what_asks_for_thinking_may_be_sent_besides(name: str) -> None:
    with pytest.raises(SetupError) as caught:
        config(settings={"thinking": {"budget": 9, "send": {"reasoning_effort": "low", name: "x"}}})
    (problem,) = caught.value.problems
    assert problem.field == "settings.thinking.send"
    assert f"'{name}' is settled by" in str(problem)


def test_an_engine_in_this_process_takes_no_thinking() -> None:
    settings = BackendSettings.model_validate({"thinking": {"budget": 9}})
    with pytest.raises(SetupError, match="thinking: means nothing to a llamacpp backend"):
        open_backend("llamacpp:smollm2", settings)


def test_scores_need_thresholds_and_labels_take_none() -> None:
    assert "thresholds: are needed by the prompt prometheus" in problems("prometheus")["thresholds"]
    assert (
        "have no effect with the prompt structured"
        in (problems("structured", thresholds=FITS)["thresholds"])
    )
    check_judge(config(thresholds=FITS, mode="per_metric"), load_prompt("prometheus"), TWO)


def test_all_problems_are_told_at_once() -> None:
    found = problems("prometheus", thresholds={"bias": {"Maybe": 2}})
    assert set(found) == {"mode", "thresholds.bias", "thresholds.empathy"}
    assert "must be per_metric" in found["mode"]
    assert "needs labels" in found["thresholds.empathy"]


@pytest.mark.parametrize(
    ("lowest", "told"),
    [
        ({}, "needs labels, each with a score of its own, the lowest 1; found {}; allowed: No"),
        ({"Yes": 2, "No": 4}, "needs labels"),
        ({"Yes": 0, "No": 4}, "needs labels"),
        ({"Yes": 1, "No": 1}, "needs labels"),
        ({"Yes": 1, "No": 5.5}, "needs labels"),
        ({"Yes": 1, "no": 4}, "found {'Yes': 1.0, 'no': 4.0}; allowed: No, Yes"),
    ],
)
def test_thresholds_that_leave_a_score_without_a_label(lowest: dict, told: str) -> None:
    found = problems("prometheus", thresholds={**FITS, "bias": lowest}, mode="per_metric")
    assert told in found["thresholds.bias"]


def test_thresholds_of_metrics_left_out_do_no_harm() -> None:
    judge = config(thresholds=FITS, mode="per_metric")
    check_judge(judge, load_prompt("prometheus"), SAFETY.only(["bias"]))


def test_a_metric_named_as_the_rationale_needs_another_prompt() -> None:
    metric = TWO.metrics[0].model_copy(update={"id": "soundness", "title": "Rationale"})
    rubric = TWO.model_copy(update={"metrics": (metric, TWO.metrics[1])})
    assert "the metric soundness" in problems("rationale", rubric)["prompt"]
    check_judge(config(), load_prompt("structured"), rubric)
    check_judge(config(prompt="rationale"), load_prompt("rationale"), TWO)


def test_a_jury() -> None:
    found = validate({"name": "j", "jury": ["a", "b"]}, JuryConfig)
    assert (found.jury, found.rule, found.ties) == (("a", "b"), "majority", None)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"jury": ["a"]}, "jury"),
        ({"jury": ["a", "a"]}, "jury"),
        ({"jury": ["a", "b"], "rule": "mean"}, "rule"),
        ({"jury": ["a", "b"], "backend": "x"}, "backend"),
    ],
)
def test_a_jury_that_is_refused(value: dict, field: str) -> None:
    with pytest.raises(SetupError) as caught:
        validate({"name": "j", **value}, JuryConfig)
    assert [p.field for p in caught.value.problems] == [field]


def test_an_entry_is_what_its_keys_say() -> None:
    found = [
        judge_entry(value, "f.yaml", None)
        for value in (
            {"name": "a", "backend": "scripted:x"},
            {"name": "j", "jury": ["a", "b"]},
            {"name": "c", "calibrate": "a"},
        )
    ]
    assert [type(entry) for entry in found] == [JudgeConfig, JuryConfig, CalibrationConfig]


@pytest.mark.parametrize("prompt", ["rationale", "brackets", "prometheus"])
def test_probabilities_need_a_reply_of_labels_in_json(prompt: str) -> None:
    found = problems(prompt, mode="per_metric", probabilities="independent")
    assert "need a prompt whose reply is a JSON object" in found["probabilities"]


@pytest.mark.parametrize(
    ("backend", "rubric", "settings", "fits"),
    [
        ("transformers:x", TWO, {"probabilities": "independent"}, True),
        ("scripted:x", TWO, {"probabilities": "independent"}, True),
        ("vllm:x", TWO, {"probabilities": "independent"}, False),
        ("llamacpp:x", TWO, {"probabilities": "independent"}, False),
        ("openai-compatible:x", TWO, {"probabilities": "independent"}, False),
        ("vllm:x", TWO, {"probabilities": "chained"}, True),
        ("vllm:x", TWO, {"probabilities": "independent", "mode": "per_metric"}, True),
        ("vllm:x", SAFETY.only(["bias"]), {"probabilities": "independent"}, True),
    ],
)
def test_what_writes_its_reply_gives_no_independent_probabilities_of_many_metrics(
    backend: str, rubric: Rubric, settings: dict, fits: bool
) -> None:
    judge = config(**settings).model_copy(update={"backend": backend})
    if fits:
        check_judge(judge, load_prompt("structured"), rubric)
        return
    with pytest.raises(SetupError, match="allowed: chained; or mode: per_metric"):
        check_judge(judge, load_prompt("structured"), rubric)
