"""A real language model judges, in process and behind a real server, through every lane."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from judgebench.align import align_run
from judgebench.backends.llamacpp import serve_gguf
from judgebench.bench import load_bench
from judgebench.records import Status, Verdict
from judgebench.runner import run
from judgebench.store import RunFolder

pytestmark = [pytest.mark.model, pytest.mark.xdist_group("model")]

TEXTS = [
    "Restart the router, then call us on the number on your bill if the light stays red.",
    "We don't care. Read the manual.",
    "Thank you for writing. Your parcel will reach you on Friday; the link shows where it is.",
]


def bench_file(folder: Path, weights: Path, base_url: str) -> Path:
    lines = "".join(f'i{i},Where is it?,"{text}"\n' for i, text in enumerate(TEXTS))
    (folder / "answers.csv").write_text("item_id,question,text\n" + lines)
    (folder / "labels.csv").write_text(
        "item_id,annotator,politeness\ni0,ann,Polite\ni1,ann,Impolite\ni2,ann,Polite\n"
    )
    remote = {"base_url": base_url, "api_key_env": "SERVED_KEY", "concurrency": 1}
    judges = [
        {"name": "embedded", "backend": f"llamacpp:{weights}", "settings": {"context": 2048}},
        {"name": "direct", "backend": "openai-compatible:smollm2", "settings": remote},
        {"name": "litellm", "backend": "litellm:openai/smollm2", "settings": remote},
        {"name": "jury", "jury": ["embedded", "direct", "litellm"]},
    ]
    bench = {
        "name": "lanes",
        "rubric": "support-tone",
        "data": ["answers.csv", "labels.csv"],
        "judges": judges,
        "report": {"resamples": 100},
    }
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(bench))
    return path


def test_the_same_benchmark_through_every_lane(
    tmp_path: Path, smollm2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_gguf(smollm2, context=2048) as served:
        monkeypatch.setenv("SERVED_KEY", served.api_key)
        folder = RunFolder(tmp_path / "run")
        run(load_bench(bench_file(tmp_path, smollm2, served.base_url)), folder)
    found: dict[str, dict[str, Verdict]] = {
        name: {v.item_id: v for v in folder.verdicts(name)}
        for name in ("embedded", "direct", "litellm", "jury")
    }
    for name, verdicts in found.items():
        assert sorted(verdicts) == ["i0", "i1", "i2"]
        assert {v.status for v in verdicts.values()} == {Status.OK}, name
        assert {len(v.labels) for v in verdicts.values()} == {3}
    # One model, one schema, no other request in between: the lanes must agree.
    for item in found["direct"]:
        assert found["direct"][item].labels == found["litellm"][item].labels
    assert all(v.usage.prompt_tokens for v in found["embedded"].values())
    manifest = folder.manifest()
    assert manifest["judges"]["litellm"]["about"]["backend"]["structured"] == "json_schema"
    assert served.api_key not in (folder.path / "run.json").read_text()
    alignment = align_run(folder)
    assert {j.name for j in alignment.judges if j.kind == "judge"} == {
        "embedded",
        "direct",
        "litellm",
    }
