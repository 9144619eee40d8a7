import json
from pathlib import Path
from typing import Any

import pytest

from judgebench.errors import SetupError
from judgebench.models import KINDS, open_backend
from judgebench.models.settings import BackendSettings

URL = "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize("spec", ["", "gpt-4o", "openai:gpt-4o", "litellm:", "LITELLM:gpt-4o"])
def test_unknown_spec_lists_what_is_allowed(spec: str) -> None:
    with pytest.raises(SetupError) as caught:
        open_backend(spec)
    assert all(kind.spelling in str(caught.value) for kind in KINDS)


def test_address_in_the_settings_or_in_the_spec() -> None:
    by_settings = open_backend("openai-compatible:org/m", BackendSettings(base_url=URL))
    by_spec = open_backend(f"openai-compatible:org/m@{URL}/")
    assert by_settings.describe() == by_spec.describe()
    assert by_spec.describe()["model"] == "org/m"
    assert by_spec.describe()["base_url"] == URL
    assert by_spec.describe()["structured"] == "json_schema"


def test_model_names_may_hold_an_at_sign() -> None:
    backend = open_backend("openai-compatible:m@2024-01-01", BackendSettings(base_url=URL))
    assert backend.describe()["model"] == "m@2024-01-01"


def test_two_addresses_contradict() -> None:
    settings = BackendSettings(base_url="http://127.0.0.1:9000/v1")
    with pytest.raises(SetupError, match="another address"):
        open_backend(f"openai-compatible:m@{URL}", settings)


@pytest.mark.parametrize(
    "url",
    [
        None,
        "127.0.0.1:8000",
        "ftp://host/v1",
        "http://",
        "http://user:secret-word@host/v1",
        "http://host/v1?key=secret-word",
        "http://host:port/v1",
        "http://[::1/v1",
    ],
)
def test_an_address_that_is_none(url: str | None) -> None:
    with pytest.raises(SetupError, match="base_url") as caught:
        open_backend("openai-compatible:m", BackendSettings(base_url=url))
    assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "settings", "name"),
    [
        ("openai-compatible:m", {"base_url": URL, "threads": 2}, "threads"),
        ("openai-compatible:m", {"base_url": URL, "context": 2048}, "context"),
        ("litellm:gpt-4o", {"threads": 2}, "threads"),
        ("litellm:gpt-4o", {"headers": {"X-Title": "t"}}, "headers"),
        ("llamacpp:smollm2", {"base_url": URL}, "base_url"),
        ("llamacpp:smollm2", {"max_retries": 4}, "max_retries"),
        ("vllm:m", {"api_key_env": "KEY"}, "api_key_env"),
        ("transformers:m", {"price": {"prompt": 1, "completion": 1}}, "price"),
        ("scripted:x.jsonl", {"timeout_s": 1}, "timeout_s"),
    ],
)
def test_settings_that_mean_nothing_are_refused(
    spec: str, settings: dict[str, Any], name: str
) -> None:
    with pytest.raises(SetupError, match=f"settings.{name}: means nothing"):
        open_backend(spec, BackendSettings.model_validate(settings))


def test_a_key_in_place_of_a_variables_name_is_not_shown() -> None:
    settings = BackendSettings(api_key_env="sk-secret-word")
    with pytest.raises(SetupError, match="name of an environment variable") as caught:
        open_backend(f"openai-compatible:m@{URL}", settings)
    assert "secret-word" not in str(caught.value)


def test_litellm_takes_the_lane_that_the_provider_declares() -> None:
    def lane(model: str, **settings: Any) -> str:
        backend = open_backend(f"litellm:{model}", BackendSettings.model_validate(settings))
        json.dumps(dict(backend.describe()))
        return str(backend.describe()["structured"])

    assert lane("openai/gpt-4o") == "json_schema"
    assert lane("openai/gpt-3.5-turbo") == "tool"
    assert lane("ollama/llama3") == "json_object"
    assert lane("openai/anything", base_url=URL) == "json_schema"
    assert lane("openai/gpt-4o", structured="none") == "none"


def test_litellm_says_whether_a_seed_is_sent() -> None:
    assert open_backend("litellm:openai/gpt-4o").describe()["seed_sent"] is True
    assert open_backend("litellm:anthropic/claude-sonnet-4-5").describe()["seed_sent"] is False


def test_litellm_model_without_a_provider() -> None:
    with pytest.raises(SetupError, match="provider"):
        open_backend("litellm:no-such-model-at-all")


def test_scripted_file_and_a_missing_one(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    path.write_text('{"text": "hello"}\n')
    assert open_backend(f"scripted:{path}").describe()["engine"] == "scripted"
    with pytest.raises(SetupError, match="cannot be read"):
        open_backend(f"scripted:{tmp_path}/none.jsonl")
