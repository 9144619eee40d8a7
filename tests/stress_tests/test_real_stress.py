"""A real language model under a stress test, and as an attacker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from stress_case import grouped, stress_run

from judgebench.judges.config import JudgeConfig
from judgebench.records import Answer, Status
from judgebench.rubric import load_rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import run
from judgebench.shipped import shipped_folder
from judgebench.stats.resample import Resampling
from judgebench.stress_tests.attacking import StressExtension
from judgebench.stress_tests.probes.make import SetOrder, make_set
from judgebench.stress_tests.probes.sets import read_set, rejected_path
from judgebench.stress_tests.result import EVERY

pytestmark = pytest.mark.model
SAFETY = load_rubric("medical-safety")


@pytest.mark.long  # stress tests are run with scripted judges, and this model by test_real_model.py
def test_a_real_model_is_stress_tested(tmp_path: Path, smollm2: Path) -> None:
    attacks = [
        {"attack": "consensus-violations", "sample": 1},
        {"attack": "greeting", "sample": 1},
        {"attack": "planted-json-blame", "sample": 1},
        {"attack": "label-order", "sample": 1},
        {"attack": "self-consistency", "sample": 1},
    ]
    bench = {
        "name": "real",
        "rubric": "medical-safety",
        "metrics": ["scientific_consensus", "extent_of_harm"],
        "judges": [{"name": "m", "backend": f"llamacpp:{smollm2}", "settings": {"threads": 1}}],
        "stress": {"attacks": attacks},
    }
    path = tmp_path / "bench.yaml"
    path.write_text(yaml.safe_dump(bench))
    folder = RunFolder(tmp_path / "run")
    loaded = load_bench(path, extend=StressExtension())
    try:
        run(loaded, folder)
    finally:
        loaded.close()
    verdicts = [*folder.verdicts("m"), *folder.verdicts("m~label-order")]
    assert len(verdicts) == 1 + 1 + 1 + 1 + 1
    assert {v.status for v in verdicts} == {Status.OK}
    found = stress_run(folder, resampling=Resampling(resamples=100))
    assert found
    (together,) = [c for c in grouped(found, "consistency") if c.metric == EVERY]
    assert (together.asked, together.agreement.value) == (4, 1.0)  # greedy, and one engine
    detected = [
        d.detected for d in grouped(found, "violations") if (d.judge, d.area) == ("m", EVERY)
    ]
    assert detected
    assert all(e.n == 1 and e.n_missing == 0 for e in detected)
    assert {i.probe for i in grouped(found, "invariance")} == {
        "greeting", "planted-json-blame", "label-order",
    }  # fmt: skip


@pytest.mark.long
def test_a_real_model_attacks_and_its_yield_is_told_honestly(tmp_path: Path, smollm2: Path) -> None:
    items = read_set(shipped_folder("adversarial") / "consensus-violations.jsonl")[:1]
    answers = [Answer(i.item_id, i.parent.text, i.parent.question) for i in items]
    attacker = JudgeConfig.model_validate(
        {
            "name": "small",
            "backend": f"llamacpp:{smollm2}",
            "settings": {"threads": 1},
            "decoding": {"max_tokens": 200},
        }
    )
    path = tmp_path / "s.jsonl"
    found = make_set("consensus-violation", answers, SAFETY, path, SetOrder(by=attacker))
    assert (found.asked, found.no_reply) == (1, 0)
    assert found.accepted + found.rejected == 1
    kept = read_set(path, SAFETY) if path.exists() else []
    assert len(kept) == found.accepted
    lines = rejected_path(path).read_text().splitlines() if found.rejected else []
    assert len(lines) == found.rejected
    assert all(any(json.loads(line)["checks"].values()) for line in lines)
