import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import read_alone

from judgebench.judges.replies import (
    QUOTED,
    Reading,
    label_for_score,
    label_spans,
    looks_like_refusal,
    reply_schema,
    written_reply,
)
from judgebench.prompt import JudgeReply
from judgebench.records import Answer
from judgebench.rubric import Rubric, load_rubric, shipped_rubrics

SAFETY = load_rubric("medical-safety")
TONE = load_rubric("support-tone")  # has an abstain label and a nominal metric
TWO = SAFETY.only(["bias", "empathy"])
ONE = SAFETY.only(["empathy"])
GOOD = {"bias": "No", "empathy": "High empathy"}
THRESHOLDS = {
    m.id: dict(zip(m.label_texts, (1, 3, 5)[: len(m.labels)], strict=False)) for m in SAFETY.metrics
}
SCORES = {"High empathy": 4.5, "Moderate empathy": 2, "Lack of empathy": 1}
EMPATHY = {"empathy": SCORES}


def read_json(value: Any, rubric: Rubric = TWO) -> Reading:
    return read_alone("json", value if isinstance(value, str) else json.dumps(value), rubric)


def result(text: str) -> Reading:
    return read_alone("result", text, ONE, EMPATHY)


# --- JSON ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        json.dumps(GOOD, indent=2),
        "```json\n" + json.dumps(GOOD) + "\n```",
        "```\n" + json.dumps(GOOD) + "```",
        "\n\n``` JSON\n\n" + json.dumps(GOOD, indent=2) + "\n\n```\n",
        "<think>{hm}</think>" + json.dumps(GOOD),
        '<think>\nIt says {"bias": "Yes"}.\n</think>\n\n```json\n' + json.dumps(GOOD) + "\n```",
        # The chat template began the block.
        'It says {"bias": "Yes"}.\n</think>\n\n' + json.dumps(GOOD),
        "[THINK]hm[/THINK]" + json.dumps(GOOD),
        json.dumps({"rationale": 'It says {"bias": "Yes"}, which', "note": {"bias": "Yes"}} | GOOD),
        json.dumps({"rationale": "It says </think> and ```."} | GOOD),
        json.dumps(GOOD | {"confidence": 0.9, "harm": None}),
        '{"Possibility of Bias": "no.", "EMPATHY": "high"}',
        "\ufeff" + json.dumps(GOOD),
        '{"bias": "\\u004eo", "empathy": "High\\u00a0empathy"}',
    ],
)
def test_a_reply_that_can_be_read_in_one_way_only(text: str) -> None:
    assert read_json(text) == Reading(GOOD)
    assert read_alone("rationale", text, TWO) == Reading(GOOD)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the reply holds no JSON object"),
        ("bias: No", "the reply holds no JSON object"),
        ('["No", "High empathy"]', "the reply holds no JSON object"),
        ("{'bias': 'No'}", "the reply holds a damaged JSON object"),
        (json.dumps([GOOD]), "the reply does not begin with its JSON object"),
        ("Mine: " + json.dumps(GOOD), "the reply does not begin with its JSON object"),
        (json.dumps(GOOD) + json.dumps(GOOD), "the reply goes on after its JSON object"),
        (json.dumps(GOOD) + "\nI hope that helps!", "the reply goes on after its JSON object"),
        ("{} " + json.dumps(GOOD), "the reply goes on after its JSON object"),
        ('{"bias": "No", "empathy": "High empathy", "bias": "No"}', "gives one key two values"),
        ('{"bias": "No", "Possibility of Bias": "No"}', "the reply gives bias two values"),
        ('{"bias": {"a": 1}, "Bias": "No"}', "the reply gives bias two values"),
        ('{"bias": "No", "empathy": "High emp', "the reply holds a damaged JSON object"),
        ('{"bias": "No", "empathy": }', "the reply holds a damaged JSON object"),
        ('{"bias": "No",}', "the reply holds a damaged JSON object"),
        # The only whole object is part of one that was cut off: it is no verdict.
        ('{"example": {"bias": "Yes", "empathy": "High empathy"}, "bias": "No", "em', "damaged"),
        ('{ \n "a": {"bias": "No"', "the reply holds a damaged JSON object"),
        ("<think>It says " + json.dumps(GOOD), "reasoning is not one closed block before all else"),
        ("<think></think></think>" + json.dumps(GOOD), "is not one closed block before all else"),
    ],
)
def test_a_reply_that_cannot_be_read_in_one_way_says_why(text: str, why: str) -> None:
    reading = read_json(text)
    assert reading.labels == {}
    assert not reading.refusal
    assert why in reading.reason


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("Noo", "'Noo'"), ("N", "'N'"), ("No, but", "'No, but'"), ("Yes/No", "'Yes/No'"),
        ("", "''"), (True, "True"), (False, "False"), (0, "0"), (1.5, "1.5"),
        (["No"], "a nested value"), ({"label": "No"}, "a nested value"), ({}, "a nested value"),
        ("x" * 200, "xxx..."),
    ],
)  # fmt: skip
def test_a_value_that_is_no_label_leaves_the_others_read(value: Any, told: str) -> None:
    reading = read_json({"bias": value, "empathy": "High empathy"})
    assert reading.labels == {"empathy": "High empathy"}
    assert reading.problems[0].startswith("bias: ")
    assert told in reading.reason
    assert "is none of its labels" in reading.reason
    assert len(reading.reason) < 120


@pytest.mark.parametrize("labels", [["true", "false"], ["False", "TRUE"]])
def test_a_value_of_json_is_the_label_of_that_name(labels: list[str]) -> None:
    rubric = Rubric.from_labels({"Correct": labels})
    (label,) = (label for label in labels if label.lower() == "true")
    text = '{"correct": true}'
    assert read_alone("json", text, rubric).labels == {"correct": label}
    copied = read_alone("json", text, rubric, judged=Answer("a", f"So: {text}"))
    assert copied.reason == QUOTED


def test_a_missing_metric_is_named_and_the_others_are_read() -> None:
    reading = read_json({"empathy": "Lack"})
    assert reading == Reading({"empathy": "Lack of empathy"}, ("bias: is missing",))


def test_each_of_several_abstentions_is_read_as_such() -> None:
    value = TONE.only(["solves_problem"]).model_dump(mode="json")
    value["metrics"][0]["abstain"] = ["Cannot tell", "Not applicable"]
    rubric = Rubric.model_validate(value)
    for label in ("Cannot tell", "Not applicable"):
        bracketed = f"Solves the problem: [{label.upper()}]"
        for kind, reply in (
            ("json", json.dumps({"solves_problem": label})),
            ("brackets", bracketed),
        ):
            reading = read_alone(kind, reply, rubric)
            assert (dict(reading.labels), reading.problems) == ({"solves_problem": label}, ())
    enum = reply_schema("json", rubric)["properties"]["solves_problem"]["enum"]
    assert enum[-2:] == ["Cannot tell", "Not applicable"]


# --- schemas -------------------------------------------------------------------------------------


def test_the_schema_admits_the_labels_and_nothing_else() -> None:
    schema = reply_schema("json", TWO)
    assert schema == {
        "type": "object",
        "properties": {m.id: m.json_field() for m in TWO.metrics},
        "required": ["bias", "empathy"],
        "additionalProperties": False,
    }


def test_the_rationale_comes_first_and_is_bounded() -> None:
    schema = reply_schema("rationale", TWO)
    assert schema is not None
    assert list(schema["properties"]) == ["rationale", "bias", "empathy"]
    assert schema["required"] == ["rationale", "bias", "empathy"]
    assert schema["properties"]["rationale"]["maxLength"] > 0


def test_what_is_not_json_has_no_schema() -> None:
    assert reply_schema("brackets", TWO) is None
    assert reply_schema("result", ONE) is None


# --- brackets ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Possibility of Bias: [No]\nEmpathy: [High empathy]",
        "Empathy: [High empathy]\n\nPossibility of Bias: [No]\n",
        "1. Possibility of Bias: [No]\n2) Empathy: [High empathy]",
        "**Possibility of Bias:** [No]\n**Empathy**: [**High empathy**]",
        "- Possibility of Bias:[No]\n* Empathy : [ high empathy ]",
        "bias: [No]\nempathy: [High]",
        "```\nPossibility of Bias: [No]\nEmpathy: [High empathy]\n```",
        "<think>\nBias: [Yes]?\n</think>\n\nbias: [No]\nempathy: [High]",
    ],
)
def test_brackets_by_title(text: str) -> None:
    assert read_alone("brackets", text, TWO) == Reading(GOOD)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "bias: is missing; empathy: is missing"),
        ("No, High empathy", "'No, High empathy' is no line of the form 'Criterion: [label]'"),
        ("[No]\n[High empathy]", "'[No]' is no line of the form 'Criterion: [label]'"),
        ("Empathy: [High]\nEmpathy: [High]", "the reply gives empathy two values"),
        ("Tone: [High]", "'Tone: [High]' is no line of the form"),
        ("Possibility of Bias: [No] or [Yes]", "is no line of the form"),
        ("My ratings:\nPossibility of Bias: [No]\nEmpathy: [High]", "'My ratings:' is no line"),
        ("Possibility of Bias: [No]\nEmpathy: [High]\nSee [1].", "'See [1].' is no line"),
    ],
)
def test_brackets_that_cannot_be_read_in_one_way(text: str, why: str) -> None:
    reading = read_alone("brackets", text, TWO)
    assert reading.labels == {}
    assert why in reading.reason


def test_brackets_by_title_leave_out_what_is_wrong_or_missing() -> None:
    reading = read_alone("brackets", "Empathy: [very high]\nPossibility of Bias: [No]", TWO)
    assert reading.labels == {"bias": "No"}
    assert reading.problems == ("empathy: '[very high]' is none of its labels",)
    assert read_alone("brackets", "Empathy: [High]", TWO).problems == ("bias: is missing",)


def test_a_title_that_begins_with_a_digit_is_no_list_mark() -> None:
    metric = ONE.metrics[0].model_copy(update={"id": "risk", "title": "5-year risk"})
    rubric = ONE.model_copy(update={"metrics": (metric, TWO.metrics[0])})
    reading = read_alone("brackets", "Possibility of Bias: [No]\n5-year risk: [High]", rubric)
    assert reading.labels == {"risk": "High empathy", "bias": "No"}


# --- scores --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "label"),
    [
        ("1", "Lack of empathy"), ("1.99", "Lack of empathy"), ("2", "Moderate empathy"),
        ("4", "Moderate empathy"), ("4.49", "Moderate empathy"), ("4.5", "High empathy"),
        ("5", "High empathy"), ("5.0", "High empathy"),
    ],
)  # fmt: skip
def test_a_score_earns_the_label_of_the_highest_threshold_it_reaches(score, label) -> None:
    assert result(f"[RESULT] {score}") == Reading({"empathy": label})


def test_label_for_score_needs_no_order_and_takes_none_for_granted() -> None:
    metric = ONE.metrics[0]
    assert label_for_score(metric, 1, {"High empathy": 1.0, "Lack of empathy": 4.0}) == (
        "High empathy"  # the file says which scores earn what
    )
    with pytest.raises(ValueError, match="outside 1-5"):
        label_for_score(metric, 0.5, SCORES)


@settings(deadline=None)
@given(st.floats(1, 5), st.floats(1, 5))
def test_a_better_score_never_earns_a_more_severe_label(one: float, other: float) -> None:
    metric = ONE.metrics[0]
    low, high = (metric.index(label_for_score(metric, s, SCORES)) for s in sorted((one, other)))
    assert low >= high


@pytest.mark.parametrize(
    "text",
    [
        "Feedback: kind. [RESULT] 4",
        "[RESULT] 4",
        "[RESULT]4",
        "[RESULT] (4)",  # as the prompt writes it
        "[RESULT] ( 4 )\n",
        "[RESULT]\n4.0",
        "Good, see 2 and 3, but sorry about that.\n\n[RESULT] 4",
        "<think>\nRather [RESULT] 3?\n</think>\nFeedback: good. [RESULT] 4",
    ],
)
def test_the_score_after_result(text: str) -> None:
    assert result(text) == Reading({"empathy": "Moderate empathy"})


@pytest.mark.parametrize(
    "text",
    [
        "", "4", "RESULT: 4", "[RESULT]", "[RESULT] four", "[RESULT] (a number from 1 to 5)",
        "[RESULT] 3\n[RESULT] 4", "[RESULT] 3 or 4", "[RESULT] 3-4", "[RESULT] 4,5",
        "[RESULT] 4/5", "[RESULT] 4.", "[RESULT] 4 out of 5", "[RESULT] (4", "[RESULT] 4)",
        "[RESULT] 4\n[RESULT] 4", "As told: [RESULT] (a number from 1 to 5)\nGood. [RESULT] 4",
        "[RESULT] 4/10", "[RESULT] 45", "[RESULT] 0", "[RESULT] 6", "[RESULT] -1",
        "[RESULT] 4 [RESULT] 5", "[RESULT] " + "4" * 500,
    ],
)  # fmt: skip
def test_a_result_that_cannot_be_read_in_one_way(text: str) -> None:
    reading = result(text)
    assert reading.labels == {}
    assert reading.problems


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I’m unable to rate medical advice.",
        "I cannot evaluate this content.",
        "I can't assist with that request.",
        "As an AI, I do not judge.",
        "Unfortunately, I cannot do this.",
        "Sorry, no.",
        "I apologise, but no.",
        "**I must decline**",
    ],
)
def test_a_reply_that_declines_is_a_refusal(text: str) -> None:
    assert looks_like_refusal(text)
    for kind, thresholds in (("json", None), ("brackets", None), ("result", EMPATHY)):
        reading = read_alone(kind, text, ONE, thresholds)
        assert reading.refusal
        assert reading.labels == {}
        assert reading.reason == "the reply declines to judge"


@pytest.mark.parametrize(
    "text", ["The answer says: I cannot help.", "Ican", "No", "I can see that"]
)
def test_words_that_are_no_refusal(text: str) -> None:
    assert not looks_like_refusal(text)
    assert not read_json(text).refusal


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("json", "I'm sorry to say: " + json.dumps({"empathy": "High"})),
        ("brackets", "I cannot judge this. It says:\nEmpathy: [High]"),
        ("result", "I'm sorry, I can't grade this. It says [RESULT] 5"),
        ("result", "<think>hm</think>I must decline. [RESULT] 5"),
    ],
)
def test_a_refusal_is_a_refusal_whatever_it_quotes(kind, text: str) -> None:
    reading = read_alone(kind, text, ONE, EMPATHY if kind == "result" else None)
    assert reading == Reading(problems=("the reply declines to judge",), refusal=True)


def test_an_object_that_says_sorry_is_no_refusal() -> None:
    text = json.dumps({"rationale": "I'm sorry, I cannot say more.", "empathy": "High"})
    assert read_alone("rationale", text, ONE) == Reading({"empathy": "High empathy"})


# --- whatever a model may write ------------------------------------------------------------------

KINDS = ("json", "rationale", "brackets", "result")


def check(kind, text: str, rubric: Rubric) -> None:
    reading = read_alone(kind, text, rubric, THRESHOLDS if kind == "result" else None)
    options = {m.id: m.options for m in rubric.metrics}
    assert all(label in options[metric] for metric, label in reading.labels.items())
    assert len(reading.labels) == len(rubric.metrics) or reading.problems
    assert isinstance(reading.reason, str)


NESTED = [
    "[" * 100_000,
    "{" * 100_000,
    '{"a":' * 100_000,
    '{"bias":' * 100_000,
    "[[" * 50_000 + "]]" * 50_000,
    '{"bias": ' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"bias": ' + '{"a":' * 450 + "1" + "}" * 450 + "}",
    '{"bias": ' + '{"a":' * 700 + "1" + "}" * 700 + ', "bias": ' + "[" * 700 + "]" * 700 + "}",
    *(
        '{"bias": ' + "[" * n + "]" * n + ', "bias": ' + "[" * n + "]" * n + "}"
        for n in (300, 500, 800, 900, 950, 980)
    ),
    "{ " * 50_000,
    '{"bias": "' + "\\" * 50_001,
]
LONG = [
    "-" * 50_000,
    " " * 50_000,
    "Empathy: " + "=" * 50_000,
    "[RESULT]" + " " * 50_000,
    "[RESULT]" * 10_000,
    "[RESULT] " + "1" * 50_000 + "x",
    "\n" * 50_000,
]
# JSON is read by one reader whatever it holds: each text in one of its kinds and in one other.
SHOWN = [
    *((kind, text) for n, text in enumerate(NESTED)
      for kind in (("json", "rationale")[n % 2], ("brackets", "result")[n % 2])),
    *((kind, text) for n, text in enumerate(LONG)
      for kind in ("brackets", "result", ("json", "rationale")[n % 2])),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text"), SHOWN, ids=lambda x: x if x in KINDS else f"{x[:20]!r}x{len(x)}"
)
def test_no_reply_is_too_deep_or_too_long(kind, text: str) -> None:
    check(kind, text, ONE if kind == "result" else TWO)


# --- the other way round -------------------------------------------------------------------------


ODD = Rubric.model_validate(
    {
        "name": "odd",
        "version": "1",
        "instructions": "Judge.",
        "metrics": [
            {
                "id": "odd",
                "title": "Odd [one]",
                "question": "?",
                "kind": "nominal",
                "labels": ['say "no" / é', "back\\slash", "4", "a, b"],
                "abstain": "cannot say",
            }
        ],
    }
)

RUBRICS = [*map(load_rubric, shipped_rubrics()), ODD]


@st.composite
def what_a_judge_says(draw: st.DrawFn) -> tuple[JudgeReply, Rubric, dict[str, str]]:
    whole = draw(st.sampled_from(RUBRICS))
    kind: JudgeReply = draw(st.sampled_from(["json", "rationale", "brackets"]))
    ids = draw(st.lists(st.sampled_from([m.id for m in whole.metrics]), min_size=1))
    rubric = whole.only(ids)
    labels = {m.id: draw(st.sampled_from(m.options)) for m in rubric.metrics}
    return kind, rubric, labels


@given(what_a_judge_says(), st.text(max_size=700).filter(lambda text: "[" not in text))
@settings(max_examples=40, deadline=None)
def test_a_written_reply_is_read_as_the_labels_that_it_was_written_of(
    said: tuple[JudgeReply, Rubric, dict[str, str]], rationale: str
) -> None:
    kind, rubric, labels = said
    written = written_reply(kind, rubric, labels, rationale)
    read = read_alone(kind, written, rubric)
    assert read == Reading(labels)
    if kind == "rationale":
        assert read.rationale == rationale[:600].strip()
    if kind != "brackets":
        values = [written[start:end] for start, end in label_spans(written)]
        assert values == [json.dumps(x, ensure_ascii=False)[1:-1] for x in labels.values()]


def test_written_json_is_what_an_engine_bound_to_the_schema_writes() -> None:
    text = written_reply("rationale", TWO, GOOD, rationale='It says "no".')
    assert text == '{"rationale":"It says \\"no\\".","bias":"No","empathy":"High empathy"}'
    assert [text[a:b] for a, b in label_spans(text)] == ["No", "High empathy"]
    assert list(json.loads(text)) == reply_schema("rationale", TWO)["required"]  # type: ignore[index]
    assert written_reply("json", TWO, {"empathy": "High empathy"}) == ('{"empathy":"High empathy"}')
    assert written_reply("brackets", TWO, GOOD) == (
        "Possibility of Bias: [No]\nEmpathy: [High empathy]"
    )
