"""What a generator is tuned on is checked whole before any model is loaded."""

import json
from pathlib import Path

import pytest

from judgebench.errors import SetupError
from judgebench.tuning.rounds import read_pairs

GOOD = {"messages": [{"role": "user", "content": "Argue."}], "target": "So.", "item_id": "a"}


def test_every_unsound_line_is_said(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    lines = [
        GOOD, {**GOOD, "target": ""}, {"target": "So."},
        {**GOOD, "messages": [{"role": "boss", "content": "x"}]},
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(SetupError) as caught:
        read_pairs(path)
    said = str(caught.value)
    assert f"{path}:2: target: String should have at least 1 character" in said
    assert f"{path}:3: messages: Field required" in said
    assert f"{path}:4: messages.0.role: must be 'system', 'user' or 'assistant'" in said
    path.write_text("")
    with pytest.raises(SetupError, match="holds no pair to learn from"):
        read_pairs(path)
    path.write_text(json.dumps(GOOD) + "\n")
    assert read_pairs(path)[0].target == "So."


def test_a_rank_is_a_number_or_full(tmp_path, call) -> None:
    asked = ("tune", "generator", "p", "--model", "m", "--to", tmp_path)
    code, _, err = call(*asked, "--recipe", "rank=big")
    assert code == 2
    assert "rank" in err
    assert "must be 'full'" in err
