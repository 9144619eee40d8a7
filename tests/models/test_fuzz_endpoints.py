"""Whatever an endpoint sends: a reply whose every number is sound, or an error of ours."""

import json
import math
from typing import Any

import pytest
from fuzz_budget import PIECES, TEXT, VALUES, fuzzed
from hypothesis import given
from hypothesis import strategies as st
from loopback import Loopback, completion, wire

from judgebench.errors import JudgebenchError
from judgebench.models.contract import Message, Request
from judgebench.models.litellm_backend import LiteLLM
from judgebench.models.openai_compatible import OpenAICompatible
from judgebench.models.settings import BackendSettings, Price
from judgebench.models.transport import Backoff

QUICK = Backoff(first=0.0, longest=0.001)
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -(10**400), 10**12, True, "7"])
ANY = NUMBERS | VALUES.map(lambda value: json.loads(json.dumps(value, default=str, skipkeys=True)))


@st.composite
def bodies(draw: st.DrawFn) -> Any:
    """A sound body of which a few parts are something else, or an error."""
    counts = st.fixed_dictionaries(dict.fromkeys(("prompt_tokens", "completion_tokens"), NUMBERS))
    parts = {
        "usage": counts | ANY, "created": NUMBERS, "model": ANY, "choices": ANY,
        "system_fingerprint": ANY, "error": ANY | st.fixed_dictionaries({"code": NUMBERS}),
        "cost": NUMBERS,
    }  # fmt: skip
    chosen = draw(st.lists(st.sampled_from(sorted(parts)), max_size=2, unique=True))
    return {**completion("x"), **{name: draw(parts[name]) for name in chosen}}


HEADERS = (NUMBERS.map(str) | TEXT | PIECES).filter(
    lambda text: len(text) < 4000 and not set(text) & set("\r\n") and text.isascii()
)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # pytest undoes our own
@pytest.mark.parametrize(
    "kind", ["openai-compatible", pytest.param("litellm", marks=pytest.mark.long)]
)
def test_whatever_an_endpoint_sends_is_a_sound_reply_or_an_error(kind: str) -> None:
    request = Request("1", (Message("user", "x"),), max_tokens=10)
    with Loopback([]) as server:
        settings = BackendSettings(
            base_url=server.base_url, max_retries=0, timeout_s=5, tokens_per_minute=1e12,
            price=Price(prompt=1, completion=1),
        )  # fmt: skip

        @given(bodies(), st.sampled_from([200, 200, 200, 400, 429, 503]), HEADERS)
        @fuzzed(0.1)
        def holds(body: Any, code: int, header: str) -> None:
            server.script = [wire(body, code, Retry_After=header, Date=header), wire({}, 400)]
            server.bodies.clear()
            make = LiteLLM if kind == "litellm" else OpenAICompatible
            name = "openai/loopback" if kind == "litellm" else "loopback"
            try:
                (reply,) = make(name, settings, QUICK).complete([request])
            except JudgebenchError as error:
                str(error)
                return
            assert len(reply.error) < 2000
            for count in (reply.usage.prompt_tokens, reply.usage.completion_tokens):
                assert count is None or 0 <= count <= 10**8
            assert reply.cost is None or (math.isfinite(reply.cost) and 0 <= reply.cost <= 200)
            assert reply.model.isprintable()

        holds()
