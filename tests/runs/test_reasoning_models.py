"""A judge whose model thinks, caches prompts and takes no temperature, from end to end."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from aligned import align_run
from killed_run import ANSWERS, REPLY, bench_file
from loopback import Body, Loopback, Play, completion, raw, status

from judgebench.runs.folder import RunFolder
from judgebench.runs.forecast import forecast
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import run

NO_TEMPERATURE = "Unsupported value: 'temperature' does not support 0 with this model."
USAGE = {
    "prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200,
    "completion_tokens_details": {"reasoning_tokens": 150},
    "prompt_tokens_details": {"cached_tokens": 800},
}  # fmt: skip


def thinker(body: Body, n: int) -> Play:
    if "temperature" in body:
        return status(400, NO_TEMPERATURE)
    reply: dict[str, Any] = {**completion(REPLY, reasoning_content="Is it?"), "usage": USAGE}
    return raw(reply)


def test_thoughts_and_cached_prompts_are_kept_and_priced(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with Loopback(thinker) as server:
        path = bench_file(tmp_path, server.base_url)
        bench = yaml.safe_load(path.read_text(encoding="utf-8"))
        bench["judges"][0] |= {
            "decoding": {"temperature": None},
            "settings": {
                "price": {"prompt": 2, "completion": 10, "cached": 0.2},
                "thinking": {"budget": 500},
            },
        }
        path.write_text(yaml.safe_dump(bench), encoding="utf-8")
        (expected,) = forecast(load_bench(path), folder)
        run(load_bench(path), folder)
    found = list(folder.verdicts("remote"))
    assert len(found) == ANSWERS
    assert {v.reasoning for v in found} == {"Is it?"}
    assert sum(v.cost or 0 for v in found) == pytest.approx(
        ANSWERS * (200 * 2 + 800 * 0.2 + 200 * 10) / 1e6
    )
    assert expected.completion_tokens > 500 * ANSWERS
    assert expected.cost is not None
    assert expected.cost > 500 * ANSWERS * 10 / 1e6
    usage = align_run(folder).results
    counts = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")
    tokens = [usage.find(key, "usage", judge="remote").value for key in counts]
    assert tokens == [60_000, 48_000, 12_000, 9_000]
