"""A stress test whose judge sends batches: every way of asking has batches of its own."""

from __future__ import annotations

import json
from pathlib import Path

from batch_server import BatchServer

import judgebench as jb


def test_variants_are_asked_in_batches_too(tmp_path: Path) -> None:
    reply = json.dumps({"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"})
    (tmp_path / "answers.csv").write_text("item_id,question,text\ni1,q,one\ni2,q,two\n")
    (tmp_path / "labels.csv").write_text("item_id,annotator,politeness\ni1,ann,Polite\n")
    with BatchServer(lambda body: reply) as server:
        backend = f"openai-compatible:x@{server.base_url}"
        bench = {
            "name": "b",
            "rubric": "support-tone",
            "data": ["answers.csv", "labels.csv"],
            "controls": False,
            "judges": [{"name": "m", "backend": backend}],
            "stress": {"attacks": ["self-consistency"]},
        }
        (tmp_path / "bench.yaml").write_text(json.dumps(bench))
        loaded = jb.load_bench(tmp_path / "bench.yaml", stress=True)
        jb.run(loaded, tmp_path / "run", batch=True)
        assert [len(sent) for sent in server.created.values()] == [2, 2, 2, 2]
        assert server.bodies == []
    assert len(list((tmp_path / "run").glob("verdicts-m~self-consistency~*.jsonl"))) == 3
