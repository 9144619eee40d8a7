"""The quality classifier on the vectors of a real encoder."""

from pathlib import Path
from typing import Any

import pytest

from judgebench.tuning.quality import Classifier

pytestmark = pytest.mark.transformers
pytest.importorskip("transformers", reason="needs the extra `tuning`")
GOOD = ("The answer is right about the dose.", "It names the danger and refers to a doctor.")
BAD = ("My favourite football team won.", "The weather on Sunday was lovely and warm.")


def items(reasons: tuple[str, str], start: int) -> list[dict[str, Any]]:
    return [
        {
            "item_id": f"{start + k}", "question": f"What of matter {k % 8}?", "system": "alexa",
            "text": f"Number {start + k}.", "labels": {"risk": "Low"}, "rationale": reasons[k % 2],
            "teacher": {"name": "gpt"},
        }
        for k in range(16)
    ]  # fmt: skip


def test_it_tells_reasons_apart_by_their_meaning(minilm: Path) -> None:
    classifier = Classifier(items(GOOD, 0), items(BAD, 50), "minilm")
    assert classifier.measured().find("classifier").value == 1.0
    new = ("The advice on the medicine is sound.", "They scored twice in the second half.")
    parts = classifier.split(items(new, 90)[:4])
    assert {item["rationale"] for item in parts["better"]} == {new[0]}
    assert {item["rationale"] for item in parts["worse"]} == {new[1]}
