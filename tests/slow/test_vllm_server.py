"""Judging through a real vLLM server, as most users of large open models do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from engine_requests import TOO_LONG, ask, assert_meets_schema, replies_of

from judgebench.backends import open_backend
from judgebench.backends.checkpoint import ChatEncoder
from judgebench.backends.contract import Backend
from judgebench.backends.settings import BackendSettings
from judgebench.errors import SetupError

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM (make test-vllm)"),
]

KEY = "loopback-key-of-this-test"
PATIENCE = 400.0  # seconds that a loaded machine may take to start the server
# Only the CPU build reads these; see judgebench/backends/vllm_backend.py.
CPU = {
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


@pytest.fixture(scope="module")
def base_url(smollm2_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    log = tmp_path_factory.mktemp("vllm") / "server.log"
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--api-key", KEY]
    command += ["--model", str(smollm2_folder), "--served-model-name", "smollm2"]
    command += ["--max-model-len", "512", "--dtype", "float32", "--enforce-eager"]
    command += ["--structured-outputs-config", '{"backend": "xgrammar"}']
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, stdout=out, stderr=out, env=os.environ | CPU, start_new_session=True
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/health", server, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        stop(server)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the server did not come up:\n{log.read_text(errors='replace')[-4000:]}")


def stop(server: subprocess.Popen[bytes]) -> None:
    """End the server and the engine that it started, which share a process group."""
    for last_word in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, last_word)
            server.wait(timeout=30)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


@pytest.fixture(params=["openai-compatible:smollm2", "litellm:openai/smollm2"])
def backend(
    request: pytest.FixtureRequest, base_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Backend]:
    monkeypatch.setenv("VLLM_TEST_KEY", KEY)
    settings = BackendSettings(
        base_url=base_url, api_key_env="VLLM_TEST_KEY", concurrency=2, timeout_s=300
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
    replies = replies_of(backend, [ask(TOO_LONG, "long"), short])
    assert replies["long"].finish == "too_long", replies["long"]
    assert replies["short"].finish == "length"


def test_a_wrong_key_is_a_setup_error(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_TEST_KEY", "wrong")
    settings = BackendSettings(base_url=base_url, api_key_env="VLLM_TEST_KEY")
    with pytest.raises(SetupError):
        replies_of(open_backend("openai-compatible:smollm2", settings), [ask("Rest.")])
