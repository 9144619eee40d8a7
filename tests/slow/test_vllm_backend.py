"""The vLLM backend with a real model of 135 million parameters, on a CPU or a GPU."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import pytest
from engine_requests import (
    TOO_LONG,
    ask,
    assert_a_cut_reply_says_so,
    assert_meets_schema,
    replies_of,
)

from judgebench.backends import open_backend
from judgebench.backends.contract import Backend, Reply, Request
from judgebench.backends.settings import BackendSettings
from judgebench.errors import SetupError

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM (make test-vllm)"),
]

SETTINGS = BackendSettings(context=512, concurrency=3, threads=1)


@pytest.fixture(scope="module")
def backend(smollm2_folder: Path) -> Iterator[Backend]:
    backend = open_backend(f"vllm:{smollm2_folder}", SETTINGS)
    yield backend
    backend.close()


def test_a_schema_of_eight_labels_binds_every_reply(backend: Backend) -> None:
    texts = ["Drink water.", "Take forty aspirins at once and tell nobody of it.", 'Say "{}".', ""]
    replies = replies_of(backend, [ask(text, str(i)) for i, text in enumerate(texts)])
    for reply in replies.values():
        assert_meets_schema(reply)
        assert reply.usage.calls == 1
        assert reply.latency > 0
    prompts = [replies[key].usage.prompt_tokens or 0 for key in "0123"]
    assert prompts[1] > prompts[0] > prompts[3] > 20
    assert all((r.usage.completion_tokens or 0) > 16 for r in replies.values())


def test_the_schema_binds_samples_too(backend: Backend) -> None:
    requests = [ask("Rest.", str(seed), temperature=1.5, seed=seed) for seed in range(2)]
    replies = replies_of(backend, requests)
    for reply in replies.values():
        assert_meets_schema(reply)
    assert replies["0"].text != replies["1"].text


def test_a_cut_reply_says_so(backend: Backend) -> None:
    assert_a_cut_reply_says_so(backend)


def test_over_long_prompts_are_told_and_spoil_no_other(backend: Backend) -> None:
    long = [ask(TOO_LONG, f"long{i}") for i in range(4)]
    replies = replies_of(backend, [*long, ask("Rest.", "short", max_tokens=2)])
    assert replies.pop("short").finish == "length"
    assert {reply.finish for reply in replies.values()} == {"too_long"}
    assert "512" in replies["long0"].error


def test_free_text_under_the_same_key_twice(backend: Backend) -> None:
    free = ask("Name the capital of France.", schema=None, max_tokens=8)
    first, second = backend.complete([free, free])
    assert first.text == second.text != ""
    assert not first.text.startswith("{")


def test_closing_the_iterator_ends_what_is_under_way(backend: Backend) -> None:
    read = 0

    def endless() -> Iterator[Request]:
        nonlocal read
        while True:
            read += 1
            # The first is done at once, while the ones after it would take long.
            yield ask("Rest.", f"old{read}", schema=None, max_tokens=1 if read == 1 else 400)

    replies = cast(Generator[Reply], backend.complete(endless()))
    assert next(replies).key == "old1"
    replies.close()
    assert read == SETTINGS.concurrency
    assert set(replies_of(backend, [ask("Rest.", "new", max_tokens=2)])) == {"new"}


def test_a_schema_that_cannot_be_enforced_is_a_setup_error(backend: Backend) -> None:
    with pytest.raises(SetupError, match="vllm refuses"):
        replies_of(backend, [ask("Rest.", schema={"type": "no such type"})])
    assert replies_of(backend, [ask("Rest.", max_tokens=2)])["k"].finish == "length"


def test_the_description_names_the_weights(backend: Backend) -> None:
    about = backend.describe()
    assert (about["engine"], about["structured"]) == ("vllm", "xgrammar")
    assert len(about["sha256"]) == 16
    assert json.loads(json.dumps(about)) == about


def test_a_model_that_cannot_be_loaded_is_a_setup_error(
    smollm2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(SetupError, match="owner/none"):
        open_backend("vllm:owner/none", SETTINGS)
    for part in smollm2_folder.glob("*.json"):
        shutil.copy(part, tmp_path)
    bare = open_backend(f"vllm:{tmp_path}", SETTINGS)
    with pytest.raises(SetupError, match="cannot load"):
        replies_of(bare, [ask("Rest.")])


def test_a_closed_backend_can_be_opened_again(backend: Backend) -> None:
    backend.close()
    backend.close()
    assert replies_of(backend, [ask("Rest.", max_tokens=2)])["k"].finish == "length"
