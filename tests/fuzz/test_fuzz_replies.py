"""Whatever an engine says: labels that it gave, or none; a reply of ours, or an error of ours."""

import json
from typing import Any, get_args

from fuzz_budget import PIECES, TEXT, VALUES, fuzzed
from hypothesis import assume, example, given
from hypothesis import strategies as st
from reading import read_alone

from judgebench.errors import SetupError
from judgebench.models.chat import (
    TransientError,
    UnreadableBodyError,
    error_text,
    failure,
    read_chat,
    wait_asked_for,
)
from judgebench.models.contract import Reply
from judgebench.prompt import JudgeReply
from judgebench.rubric import Metric, Rubric, load_rubric, normalise, shipped_rubrics

KINDS: tuple[JudgeReply, ...] = get_args(JudgeReply)
RUBRICS = [load_rubric(name) for name in shipped_rubrics()]
BY_SCORE = ("result",)


def spellings(metric: Metric) -> list[str]:
    aliases = [alias for label in metric.labels for alias in label.aliases]
    return [*metric.options, *aliases]


def thresholds(rubric: Rubric) -> dict[str, dict[str, float]]:
    return {m.id: {text: 1.0 + i for i, text in enumerate(m.options[:5])} for m in rubric.metrics}


@st.composite
def said_of(draw: st.DrawFn, rubric: Rubric, metric: Metric) -> object:
    """What may stand where a metric's label belongs."""
    whole = st.sampled_from(spellings(metric))
    other = st.sampled_from(spellings(draw(st.sampled_from(rubric.metrics))))
    near = whole.flatmap(lambda t: st.sampled_from([t.upper(), f" {t}. ", f'"{t}"', t[:-1], t + t]))
    score = st.sampled_from([1, 2, 3, 4, 5, 0, 6, 2.5, "3", "4/5", True, -1, 10**400])
    return draw(st.one_of(whole, whole, near, other, score, VALUES))


SCORES = st.sampled_from(["1", "5", "3.5", "(4)", "6", "4/5", "", "4 of 7", "9" * 400])


@st.composite
def replies(draw: st.DrawFn, rubric: Rubric) -> str:
    """Sound replies, nearly sound ones, and noise, of all kinds."""
    said = {
        draw(st.sampled_from([m.id, m.title, m.id.upper()])): draw(said_of(rubric, m))
        for m in rubric.metrics
        if draw(st.integers(0, 9))
    }
    pieces = [
        json.dumps(said, default=str),
        json.dumps(said, default=str, indent=1),
        "\n".join(f"{title}: [{text}]" for title, text in said.items()),
        " ".join(f"[{text}]" for text in said.values()),
        "Feedback: fine. [RESULT] " + draw(SCORES),
        draw(TEXT),
        draw(PIECES),
        draw(st.sampled_from(["```json\n", "\n```", "<think>", "I'm sorry, but no.", "{}", "[]"])),
    ]
    chosen = draw(st.lists(st.sampled_from(pieces), min_size=1, max_size=3))
    text = draw(st.sampled_from(["", "\n", " "])).join(chosen)
    start = draw(st.integers(0, len(text)))
    cut = draw(st.sampled_from([0, 0, 0, 1, 7]))
    return text[:start] + text[start + cut :]


@given(st.data(), st.sampled_from(RUBRICS), st.sampled_from(KINDS))
@fuzzed()
def test_what_is_read_was_said(data: st.DataObject, rubric: Rubric, kind: JudgeReply) -> None:
    by_score = kind in BY_SCORE
    rubric = rubric.only([rubric.metrics[0].id]) if kind == "result" else rubric
    text = data.draw(replies(rubric))
    reading = read_alone(kind, text, rubric, thresholds(rubric) if by_score else None)
    reading.reason.encode("utf-8", "surrogatepass")
    assert reading.labels.keys() <= {m.id for m in rubric.metrics}
    for metric in rubric.metrics:
        label = reading.labels.get(metric.id)
        if label is None:
            continue
        assert label in metric.options
        if not by_score:
            said = unescaped(text)
            assert any(
                normalise(s) in said for s in spellings(metric) if metric.parse(s) == label
            ), "a label was read that the reply does not hold"
    if len(reading.labels) < len(rubric.metrics):
        assert reading.problems
    if reading.refusal:
        assert not reading.labels


def unescaped(text: str) -> str:
    r"""`text` folded as labels are, with the escapes of JSON (`\u2013`) read."""
    for escape in {text[i : i + 6] for i in range(len(text)) if text[i : i + 2] == "\\u"}:
        try:
            text = text.replace(escape, json.loads(f'"{escape}"'))
        except ValueError:
            continue
    return normalise(text.replace("\\n", " ").replace("\\t", " ").replace('\\"', '"'))


@given(TEXT | PIECES, st.sampled_from(RUBRICS), st.sampled_from(["json", "rationale", "brackets"]))
@fuzzed()
def test_a_text_without_a_label_gives_none(text: str, rubric: Rubric, kind: JudgeReply) -> None:
    said = unescaped(text)
    known = {normalise(s) for m in rubric.metrics for s in spellings(m)}
    assume(not any(spelling in said for spelling in known))
    assert not read_alone(kind, text, rubric).labels


@given(st.data(), st.sampled_from(RUBRICS))
@fuzzed(0.5)
def test_two_labels_for_a_metric_are_none(data: st.DataObject, rubric: Rubric) -> None:
    metric = data.draw(st.sampled_from(rubric.metrics))
    one, two = data.draw(st.permutations(metric.options).map(lambda options: options[:2]))
    sound = {m.id: m.options[0] for m in rubric.metrics}
    as_json = json.dumps({**sound, metric.id: one})
    keys = st.sampled_from([metric.id, metric.title, metric.title.upper(), f" {metric.id} "])
    twice = as_json[:-1] + f", {json.dumps(data.draw(keys))}: {json.dumps(two)}}}"
    assert metric.id not in read_alone("json", twice, rubric).labels
    both = as_json + data.draw(st.sampled_from(["", "\n", " or "])) + json.dumps(sound)
    assert not read_alone("json", both, rubric).labels
    lines = f"{metric.title}: [{one}]\n{metric.title}: [{two}]"
    assert metric.id not in read_alone("brackets", lines, rubric).labels


# Bodies that are no reply ---------------------------------------------------------------------


@st.composite
def bodies(draw: st.DrawFn) -> Any:
    """A chat completion of which some part is something else."""

    def some(value: Any) -> Any:
        return draw(VALUES) if draw(st.integers(0, 6)) == 0 else value

    def call(arguments: str) -> Any:
        return some({"function": some({"name": "reply", "arguments": some(arguments)})})

    given = draw(st.lists(st.sampled_from(["{}", "{ }", '{"a": 1}']), max_size=2))
    calls = some(list(map(call, given)))
    part = some({"type": "text", "text": some("x")})
    content = some("{}") if draw(st.booleans()) else some([part])
    message = {"content": content, "refusal": some(None), "tool_calls": calls}
    choice = some({"message": some(message), "finish_reason": some("stop")})
    choices = some([choice] * draw(st.integers(1, 2)))
    usage = some({"prompt_tokens": some(3), "completion_tokens": some(1)})
    about = {"model": some("m"), "system_fingerprint": some("fp_1")}
    return some({"choices": choices, "usage": usage, **about})


@given(bodies())
@example({"choices": [{"message": {"content": "x" * 1_000_001}}]})
@example({"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": -1}})
@example({"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 10**400}})
@fuzzed()
def test_a_body_is_read_or_is_unreadable(body: Any) -> None:
    try:
        completion = read_chat(body)
    except UnreadableBodyError:
        return
    assert isinstance(completion.text, str)
    assert len(completion.text) <= 1_000_000
    assert completion.finish in ("stop", "length", "refused", "unclear")
    assert (completion.finish == "stop") is (completion.error == "")
    said = [c["message"].get("tool_calls") for c in body["choices"]]
    told = {json.dumps(call["function"]["arguments"]) for calls in said for call in calls or ()}
    if {'"{}"', '"{\\"a\\": 1}"'} <= told:
        assert completion.finish in ("unclear", "refused")
    for tokens in (completion.usage.prompt_tokens, completion.usage.completion_tokens):
        assert tokens is None or 0 <= tokens <= 10**8
    assert len(completion.model) < 250
    assert completion.model.isprintable()


@given(
    st.integers(300, 1000), VALUES | st.dictionaries(st.sampled_from(["error", "detail"]), VALUES),
    TEXT | PIECES | st.floats().map(str),
)  # fmt: skip
@fuzzed()
def test_an_error_means_something(status: int, body: Any, header: str) -> None:
    after = wait_asked_for({"retry-after": header})
    assert after is None or 0 <= after <= 86_400
    try:
        outcome = failure(status, error_text(body), "about", after)
    except (TransientError, SetupError):
        return
    assert isinstance(outcome, Reply)
    assert outcome.finish in ("failed", "refused", "too_long")
