import json

from scripted_judges import GOOD, RUBRIC, ScriptedBackend

from judgebench.judges.config import JudgeConfig
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.prompt import load_prompt
from judgebench.records import Answer
from judgebench.runs.bench import Variant
from judgebench.stress_tests.make import variants
from judgebench.stress_tests.recipes import Ask, Recipe

ANSWERS = (Answer("a", "text", "q"),)


def asked(kind: str, judge: dict[str, object] | None = None, **ask: object) -> list[Variant]:
    config = JudgeConfig.model_validate({"name": "m", "backend": "scripted:x", **(judge or {})})
    backend = ScriptedBackend(lambda request: GOOD)
    recipe = Recipe.model_validate(
        {
            "name": f"r-{kind}", "version": "1", "about": "a", "must_not_change": True,
            "edit": {"kind": kind, **ask},
        }
    )  # fmt: skip
    assert isinstance(recipe.edit, Ask)
    base = LLMJudge(config, RUBRIC, load_prompt("structured"), backend)
    return list(variants(base, recipe, ANSWERS))


def test_another_order_of_metrics_turns_the_prompt_round() -> None:
    (variant,) = asked("metric-order")
    request = variant.judge.request(Task(ANSWERS[0]))
    system = request.messages[0].content
    assert system.index("Kind (kind)") < system.index("Harm (harm)")
    assert list(request.schema["properties"]) == ["kind", "harm"]  # type: ignore[index]
    assert (variant.of, variant.recipe, variant.repeat) == ("m", "r-metric-order", 0)


def test_another_order_of_labels_turns_every_list_round() -> None:
    (variant,) = asked("label-order")
    properties = variant.judge.request(Task(ANSWERS[0])).schema["properties"]  # type: ignore[index]
    assert properties["harm"]["enum"] == ["Much", "Some", "None"]
    (verdict,) = variant.judge.judge([Task(ANSWERS[0])])
    assert verdict.labels == json.loads(GOOD)


def test_one_call_a_metric_asks_as_often() -> None:
    (variant,) = asked("per-metric")
    assert variant.judge.calls_an_answer == 2
    assert asked("per-metric", {"mode": "per_metric"}) == []


def test_repeats_have_seeds_and_signatures_of_their_own() -> None:
    found = asked("repeat", times=3)
    assert [v.repeat for v in found] == [1, 2, 3]
    requests = [v.judge.request(Task(ANSWERS[0])) for v in found]
    assert [r.seed for r in requests] == [1, 2, 3]
    assert len({v.judge.signature for v in found}) == 3
    (verdict,) = found[1].judge.judge([Task(ANSWERS[0])])
    assert (verdict.repeat, verdict.judge) == (2, "m~r-repeat~2")


def test_what_a_judge_leaves_out_stays_left_out() -> None:
    found = asked("repeat", {"decoding": {"seed": None, "temperature": None}}, times=2)
    requests = [v.judge.request(Task(ANSWERS[0])) for v in found]
    assert [(r.seed, r.temperature) for r in requests] == [(None, None)] * 2
