"""A real language model under a stress test, and as an attacker."""

import json
from pathlib import Path

import pytest

from judgebench.files import shipped_folder
from judgebench.judges.config import JudgeConfig
from judgebench.records import Answer
from judgebench.rubric import load_rubric
from judgebench.stress_tests.item_sets import read_set
from judgebench.stress_tests.make import SetOrder, make_set

pytestmark = pytest.mark.model
SAFETY = load_rubric("medical-safety")


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
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    failed = [any(line["checks"].values()) for line in lines]
    assert (failed.count(False), failed.count(True)) == (found.accepted, found.rejected)
