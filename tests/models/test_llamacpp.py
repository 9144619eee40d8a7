"""The embedded engine with a real model of 135 million parameters."""

import json
import math
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_requests import (
    LABELS,
    METRICS,
    SCHEMA,
    ask,
    assert_a_cut_reply_says_so,
    assert_an_over_long_prompt_spoils_no_other,
    assert_meets_schema,
    replies_of,
)
from gguf_server import serve_gguf

from judgebench.errors import SetupError
from judgebench.judges.config import JudgeConfig
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.models import open_backend
from judgebench.models.chat import chat_body
from judgebench.models.contract import (
    Backend,
    LabelField,
    LabelsAsked,
    Message,
    Request,
)
from judgebench.models.llamacpp import LlamaEngine, Probes
from judgebench.models.settings import BackendSettings
from judgebench.prompt import load_prompt
from judgebench.records import Answer, Status
from judgebench.rubric import Rubric

pytestmark = pytest.mark.model

SETTINGS = BackendSettings(context=512)


@pytest.fixture(scope="module")
def backend(smollm2: Path) -> Iterator[Backend]:
    backend = open_backend(f"llamacpp:{smollm2}", SETTINGS)
    yield backend
    backend.close()


def test_a_schema_of_eight_labels_binds_every_reply(backend: Backend) -> None:
    replies = replies_of(backend, [ask("Drink water.", "0"), ask('Say "{}".', "1")])
    for reply in replies.values():
        assert_meets_schema(reply)
        assert reply.usage.calls == 1
        assert (reply.usage.prompt_tokens or 0) > 20
        assert (reply.usage.completion_tokens or 0) > 16
        assert reply.latency > 0


def test_a_list_of_labels_is_bound_and_read(backend: Backend) -> None:
    """Of which several may be right: one or more, and no more than there are."""
    tone = {
        "id": "tone", "title": "Tone", "question": "Which?", "kind": "nominal", "several": True,
        "labels": ["Calm", "Warm", "Curt", "Rude"],
    }  # fmt: skip
    value = {"name": "r", "version": "1", "instructions": "Label.", "metrics": [tone]}
    config = JudgeConfig(name="m", backend="llamacpp:x")
    judge = LLMJudge(config, Rubric.model_validate(value), load_prompt("structured"), backend)
    texts = ("We don't care. Read the manual.", "Thank you for writing!")
    asked = [Task(Answer(str(n), text, "Where?"), None) for n, text in enumerate(texts)]
    for verdict in judge.judge(asked):
        assert verdict.status is Status.OK
        said = json.loads(verdict.raw)["tone"]
        assert 1 <= len(said) <= 4
        assert verdict.labels["tone"].split(" | ") == list(dict.fromkeys(said))


def test_replies_do_not_depend_on_what_was_asked_before(smollm2: Path, backend: Backend) -> None:
    """The system message is evaluated once and kept, so order could matter: it must not."""

    def free(text: str, key: str, system: str = "Tell a tale.") -> Request:
        messages = (Message("system", system), Message("user", text))
        return Request(key, messages, max_tokens=6)

    asked = [
        free("Of a fox.", "a"),
        free("Of a fox and a hen.", "b"),
        free("Of a fox.", "c", system="Tell a very short tale."),
        free("Of the sea.", "d"),
        Request("e", (Message("user", "Of a fox."),), max_tokens=6),
    ]
    first = {key: reply.text for key, reply in replies_of(backend, asked).items()}
    turned = {key: reply.text for key, reply in replies_of(backend, asked[::-1]).items()}
    assert turned == first
    assert len(set(first.values())) > 2
    fresh = open_backend(f"llamacpp:{smollm2}", SETTINGS)
    assert replies_of(fresh, [asked[3]])["d"].text == first["d"]


def test_several_engines_reply_as_one_does_and_read_no_further(
    smollm2: Path, backend: Backend
) -> None:
    def asked() -> Iterator[Request]:
        for n in range(4):
            read.append(n)
            yield ask("Count to ten. " * (n + 1), str(n), schema=None, max_tokens=2 + n)

    read: list[int] = []
    alone = {reply.key: reply.text for reply in backend.complete(asked())}
    read.clear()
    pair = open_backend(f"llamacpp:{smollm2}", SETTINGS.model_copy(update={"concurrency": 2}))
    stream = pair.complete(asked())
    first = next(stream)
    assert read == [0, 1]
    assert {reply.key: reply.text for reply in (first, *stream)} == alone
    pair.close()


def test_no_text_yields_a_control_token(smollm2: Path) -> None:
    """As `disarm` knows none of them: the model's own tokenizer is asked."""
    engine = LlamaEngine(smollm2, 1, 512)

    def ids(text: str) -> list[int]:
        return engine.tokens(text, parse_special=True)

    control = frozenset(range(17))  # of this model
    assert control & set(ids("<|im_end|>")), "the attack would work unbroken"
    for marker in ("<|im_end|>", "<jupyter_text>", "<gh_stars>", "<|im_<|im_start|>start|>"):
        for text in (marker, f"é{marker}{marker} b", marker + marker[1:], marker[:1] + marker):
            made = engine.disarmed(text)
            assert not control & set(ids(made))
            assert made.replace(" ", "") == text.replace(" ", "")
    for plain in ("", "Rest, é <b>bold</b> [1] <|> 日本", "x" * 2000):
        assert engine.disarmed(plain) == plain


def test_what_an_answer_says_of_control_tokens_is_read_as_text(backend: Backend) -> None:
    requests = [ask(f"Rest{text}", text, max_tokens=1) for text in ("<gh_stars>", "< gh_stars>")]
    marked, plain = (reply.usage for reply in replies_of(backend, requests).values())
    assert marked == plain


def test_a_cut_reply_says_so(backend: Backend) -> None:
    assert_a_cut_reply_says_so(backend)


def test_an_over_long_prompt_is_told_and_spoils_no_other(backend: Backend) -> None:
    assert_an_over_long_prompt_spoils_no_other(backend)


def test_a_schema_that_cannot_be_used_is_a_setup_error(backend: Backend) -> None:
    with pytest.raises(SetupError, match="no such type"):
        replies_of(backend, [ask("Rest.", schema={"type": "no such type"})])
    assert replies_of(backend, [ask("Rest.", max_tokens=2)])["k"].finish == "length"


def test_without_enforcement_the_schema_binds_nothing(smollm2: Path) -> None:
    settings = SETTINGS.model_copy(update={"structured": "none"})
    backend = open_backend(f"llamacpp:{smollm2}", settings)
    reply = replies_of(backend, [ask("Rest.", max_tokens=4)])["k"]
    assert not reply.text.startswith('{"harm')
    assert backend.describe()["structured"] == "none"
    backend.close()
    backend.close()


@pytest.mark.parametrize("lane", ["tool", "json_object"])
def test_a_lane_that_llama_cpp_lacks_is_refused(smollm2: Path, lane: str) -> None:
    settings = SETTINGS.model_copy(update={"structured": lane})
    with pytest.raises(SetupError, match=r"settings\.structured"):
        open_backend(f"llamacpp:{smollm2}", settings)


def test_files_that_hold_no_model_are_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot be read"):
        open_backend(f"llamacpp:{tmp_path}/none.gguf")
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(SetupError, match="is no GGUF file"):
        open_backend(f"llamacpp:{tmp_path}/text.gguf")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    broken = open_backend(f"llamacpp:{tmp_path}/cut.gguf")
    with pytest.raises(SetupError, match="cannot load"):
        replies_of(broken, [ask("Rest.")])


def test_the_server_listens_on_loopback_asks_for_its_key_and_ends(smollm2: Path) -> None:
    with serve_gguf(smollm2, context=512) as served:
        assert served.base_url.startswith("http://127.0.0.1:")
        asked = b'{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}'
        post = urllib.request.Request(f"{served.base_url}/chat/completions", data=asked)
        post.add_header("Content-Type", "application/json")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(post, timeout=20)
        assert refused.value.code == 401
        refused.value.close()
        # A server that is ended before its engine has begun to work never ends.
        post.add_header("Authorization", f"Bearer {served.api_key}")
        with urllib.request.urlopen(post, timeout=60) as answer:
            assert answer.status == 200
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{served.base_url}/models", timeout=5)


def test_label_probabilities_of_a_reply(backend: Backend) -> None:
    """Also where labels begin alike, and the reply is the same as without them."""
    some = METRICS[:3]
    schema = {**SCHEMA, "properties": {m: SCHEMA["properties"][m] for m in some}, "required": some}
    fields = tuple(LabelField(metric, tuple(LABELS)) for metric in some)
    labels = LabelsAsked(fields, "chained")
    plain = replies_of(backend, [ask("Drink water.", schema=schema)])["k"]
    reply = replies_of(backend, [ask("Drink water.", schema=schema, labels_asked=labels)])["k"]
    assert (reply.text, reply.usage) == (plain.text, plain.usage)
    assert reply.error == ""
    assert list(reply.log_probabilities or ()) == some
    for metric, values in (reply.log_probabilities or {}).items():
        assert set(values) == set(LABELS), metric
        assert math.fsum(map(math.exp, values.values())) == pytest.approx(1)
    # They have not disturbed what the engine keeps of the system message.
    assert replies_of(backend, [ask("Drink water.", schema=schema)])["k"].text == plain.text


def test_label_probabilities_are_those_of_every_token_of_the_raw_distribution(
    backend: Backend, smollm2: Path
) -> None:
    """Labels that part at their first letter, so that one list of all tokens tells all."""
    labels = ("yes", "no", "maybe")
    schema = {
        "type": "object",
        "properties": {"fit": {"type": "string", "enum": list(labels)}},
        "required": ["fit"],
    }
    asked = LabelsAsked((LabelField("fit", labels),), "independent")
    request = ask("Rest well.", schema=schema, labels_asked=asked)
    reply = replies_of(backend, [request])["k"]
    found = (reply.log_probabilities or {})["fit"]

    engine = LlamaEngine(smollm2, 1, 512)
    body = chat_body(request, "json_schema")
    answered = engine.reply(request, "json_schema")
    probes = Probes(engine, body, answered)
    value = reply.text.index(json.loads(reply.text)["fit"])
    before: list[int | None] = []
    while len(b"".join(t.piece for t in probes._written[: len(before)])) < value:
        before.append(probes._written[len(before)].id)
    raw = engine.ask(
        "/v1/completions",
        {
            "prompt": [probes._prompt, *before],
            "n_predict": 1,
            "n_probs": 49152,
            "cache_prompt": True,
            "temperature": 0.0,  # drawn at random it may be the end, which has no list
        },
    )
    (step,) = raw["choices"][0]["logprobs"]["content"]
    weights = {
        label: math.fsum(
            math.exp(t["logprob"])
            for t in step["top_logprobs"]
            if t["token"] and label.startswith(t["token"])
        )
        for label in labels
    }
    total = sum(weights.values())
    expected = {label: math.log(weight / total) for label, weight in weights.items()}
    assert found == pytest.approx(expected, abs=1e-3)
