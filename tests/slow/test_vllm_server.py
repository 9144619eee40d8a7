"""Judging through a real vLLM server, as most users of large open models do."""

import math
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from engine_requests import TOO_LONG, ask, assert_meets_schema, replies_of
from lanes import judged, labels_of, remote

from judgebench.errors import SetupError
from judgebench.models import open_backend
from judgebench.models.checkpoints import ChatEncoder
from judgebench.models.contract import Backend, LabelField, LabelsAsked
from judgebench.models.settings import BackendSettings

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM (make test-vllm)"),
]


@pytest.fixture(params=["openai-compatible:smollm2", "litellm:openai/smollm2"])
def backend(request: pytest.FixtureRequest, vllm_server: str) -> Iterator[Backend]:
    settings = BackendSettings(
        base_url=vllm_server, api_key_env="VLLM_TEST_KEY", concurrency=2, timeout_s=300
    )
    backend = open_backend(request.param, settings)
    yield backend
    backend.close()


def test_a_schema_of_eight_labels_binds_every_reply(backend: Backend, smollm2_folder: Path) -> None:
    from transformers import AutoTokenizer

    encode = ChatEncoder(AutoTokenizer.from_pretrained(smollm2_folder), "smollm2")
    texts = ["Drink water.", "Take forty aspirins at once and tell nobody of it.", 'Say "{}".']
    requests = [ask(text, str(i)) for i, text in enumerate(texts)]
    replies = replies_of(backend, requests)
    for request in requests:
        reply = replies[request.key]
        assert_meets_schema(reply)
        # The server and the engines inside this process make the same prompt of a request.
        assert reply.usage.prompt_tokens == len(encode(request))
        assert (reply.usage.completion_tokens or 0) > 16


def test_free_text_and_a_cut_reply(backend: Backend) -> None:
    reply = replies_of(backend, [ask("Count to a hundred.", schema=None, max_tokens=5)])["k"]
    assert (reply.finish, reply.usage.completion_tokens) == ("length", 5)
    assert reply.text


def test_an_over_long_prompt_is_told_and_spoils_no_other(backend: Backend) -> None:
    short = ask("Rest.", "short", max_tokens=2)
    replies = replies_of(backend, [ask(TOO_LONG * 2, "long"), short])
    assert replies["long"].finish == "too_long", replies["long"]
    assert replies["short"].finish == "length"


def test_a_wrong_key_is_a_setup_error(vllm_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_TEST_KEY", "wrong")
    settings = BackendSettings(base_url=vllm_server, api_key_env="VLLM_TEST_KEY")
    with pytest.raises(SetupError):
        replies_of(open_backend("openai-compatible:smollm2", settings), [ask("Rest.")])


def test_the_same_benchmark_through_the_server_and_in_process(
    tmp_path: Path, vllm_server: str, smollm2_folder: Path
) -> None:
    settings = remote(vllm_server, "VLLM_TEST_KEY")
    folder = judged(
        tmp_path,
        {
            "direct": ("openai-compatible:smollm2", settings),
            "litellm": ("litellm:openai/smollm2", settings),
            "in_process": (f"vllm:{smollm2_folder}", {"context": 2048, "threads": 1}),
        },
    )
    found = labels_of(folder, "direct", "litellm", "in_process")
    assert found["direct"] == found["litellm"]
    about = folder.manifest()["judges"]
    assert about["direct"]["about"]["backend"]["structured"] == "json_schema"
    assert about["in_process"]["about"]["backend"]["engine"] == "vllm"


def test_label_probabilities_beside_a_reply(backend: Backend) -> None:
    """Labels that part at their first letter: a list of 20 tokens tells each."""
    labels = ("yes", "no", "maybe")
    schema = {
        "type": "object",
        "properties": {"fit": {"type": "string", "enum": list(labels)}},
        "required": ["fit"],
        "additionalProperties": False,
    }
    asked = LabelsAsked((LabelField("fit", labels),), "chained")
    reply = replies_of(backend, [ask("Rest well.", schema=schema, labels_asked=asked)])["k"]
    assert reply.error == ""
    found = (reply.log_probabilities or {})["fit"]
    assert math.fsum(map(math.exp, found.values())) == pytest.approx(1)
