"""A real language model judges, in process and behind a real server, through every lane."""

from pathlib import Path

import pytest
from gguf_server import serve_gguf
from lanes import judged, labels_of, remote

pytestmark = pytest.mark.model


def test_the_same_benchmark_through_every_lane(
    tmp_path: Path, smollm2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_gguf(smollm2, context=2048) as served:
        monkeypatch.setenv("SERVED_KEY", served.api_key)
        settings = remote(served.base_url, "SERVED_KEY")
        folder = judged(
            tmp_path,
            {
                "embedded": (f"llamacpp:{smollm2}", {"context": 2048}),
                "direct": ("openai-compatible:smollm2", settings),
                "litellm": ("litellm:openai/smollm2", settings),
            },
        )
    found = labels_of(folder, "embedded", "direct", "litellm")
    # One model, one schema, no other request in between: the lanes must agree.
    assert found["direct"] == found["litellm"]
    manifest = folder.manifest()
    assert manifest["judges"]["litellm"]["about"]["backend"]["structured"] == "json_schema"
    assert served.api_key not in (folder.path / "run.json").read_text()
