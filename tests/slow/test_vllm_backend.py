"""The vLLM backend with a real model of 135 million parameters, on a CPU or a GPU."""

import json
import math
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import pytest
from engine_requests import (
    LABELS,
    METRICS,
    TOO_LONG,
    ask,
    assert_a_cut_reply_says_so,
    assert_meets_schema,
    replies_of,
)

from judgebench.errors import SetupError
from judgebench.models import open_backend
from judgebench.models.contract import Backend, LabelField, LabelsAsked, Reply, Request
from judgebench.models.settings import BackendSettings
from judgebench.models.vllm_backend import VllmBackend

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


def test_requests_are_read_no_further_than_one_batch(backend: Backend) -> None:
    read = 0

    def endless() -> Iterator[Request]:
        nonlocal read
        while True:
            read += 1
            yield ask("Rest.", str(read), schema=None, max_tokens=1)

    assert next(backend.complete(endless())).key == "1"
    assert read == SETTINGS.concurrency


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


FIELDS = tuple(LabelField(metric, tuple(LABELS)) for metric in METRICS)


def test_label_probabilities_of_a_reply(backend: Backend) -> None:
    plain = replies_of(backend, [ask("Drink water.")])["k"]
    labels = LabelsAsked(FIELDS, "chained")
    reply = replies_of(backend, [ask("Drink water.", labels_asked=labels)])["k"]
    assert (reply.text, reply.usage) == (plain.text, plain.usage)
    assert reply.error == ""
    assert list(reply.log_probabilities or ()) == METRICS
    for values in (reply.log_probabilities or {}).values():
        assert set(values) == set(LABELS)
        assert math.fsum(map(math.exp, values.values())) == pytest.approx(1)


def test_label_probabilities_agree_with_prompt_log_probabilities(
    backend: Backend, smollm2_folder: Path
) -> None:
    """Labels that part at their first letter. The probabilities of the real text, which vLLM
    tells of a prompt's tokens, are asked of the same engine: those of each token that a label can
    begin with, behind the reply's own beginning."""
    labels = ("yes", "no", "maybe")
    schema = {
        "type": "object",
        "properties": {"fit": {"type": "string", "enum": list(labels)}},
        "required": ["fit"],
        "additionalProperties": False,
    }
    asked = LabelsAsked((LabelField("fit", labels),), "independent")
    request = ask("Rest well.", schema=schema, labels_asked=asked)
    reply = replies_of(backend, [request])["k"]
    found = (reply.log_probabilities or {})["fit"]
    expected = from_prompt(cast(VllmBackend, backend), request, reply, labels)
    # Keys and values of a prompt are computed in other batches than those of a reply.
    assert found == pytest.approx(expected, abs=0.02)


def from_prompt(
    backend: VllmBackend, request: Request, reply: Reply, labels: tuple[str, ...]
) -> dict[str, float]:
    """ln P of each label, from `prompt_logprobs` of the reply up to the label's quote and each
    token that begins the label."""

    engine = backend._engine
    assert engine is not None
    encoded, pieces = engine.encode(request), engine.pieces
    (output,) = engine._generated([encoded], [engine._sampling(request)])
    written = list(output.outputs[0].token_ids)
    label_at = reply.text.index(json.loads(reply.text)["fit"])
    before = next(
        written[:n]
        for n in range(len(written))
        if b"".join(pieces[i] for i in written[:n]).decode() == reply.text[:label_at]
    )
    weights = dict.fromkeys(labels, 0.0)
    for label in labels:
        for begun in {label[:n].encode() for n in range(1, len(label) + 1)} & set(pieces):
            text = [*encoded, *before, pieces.index(begun)]
            ((log_p,),) = engine.log_p([[(text, len(text) - 1)]])
            weights[label] += math.exp(log_p[0])
    total = sum(weights.values())
    return {label: math.log(weight / total) for label, weight in weights.items()}


def test_several_independent_labels_are_refused(backend: Backend) -> None:
    with pytest.raises(SetupError, match="one metric a request"):
        replies_of(backend, [ask("Rest.", labels_asked=LabelsAsked(FIELDS, "independent"))])
    assert replies_of(backend, [ask("Rest.", max_tokens=2)])["k"].finish == "length"
