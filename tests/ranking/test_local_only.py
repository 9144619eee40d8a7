"""`judgebench rank run --local-only` refuses models on other machines, before anything is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_generators_encoders_and_judges_on_other_machines_are_named(
    call: Any, tmp_path: Path
) -> None:
    hosted = {"name": "g", "backend": "litellm:openai/gpt-4o"}
    bench = {
        "name": "r",
        "rubric": "argument-quality",
        "judges": [{**hosted, "name": "j"}],
        "proxy": {
            "tasks": ["none.yaml"],
            "generators": [hosted],
            "evaluators": {"encoder": "owner/encoder"},
        },
    }
    (tmp_path / "bench.yaml").write_text(json.dumps(bench))
    code, _, err = call("rank", "run", tmp_path / "bench.yaml", "--local-only")
    assert code == 2
    message = "contacts another machine, which local-only forbids"
    for field in ("judges.j.backend", "proxy.generators.g.backend", "proxy.evaluators.encoder"):
        assert f"{field}: {message}" in err
