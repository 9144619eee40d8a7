"""The votes of MT-bench (Zheng et al., 2023) on first turns, as records."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from judgebench.records import Answer, HumanLabel, Status, Verdict
from judgebench.study.study import JudgeVerdicts

METRIC = "better"  # labels: a, the model of the lower name; b, the other; t, a tie


def votes(path: Path) -> list[tuple[str, str, str, str]]:
    """(comparison, question, voter, label) on first turns: `a` is the model of the lower name."""
    found = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for vote in map(json.loads, lines):
            models = sorted([vote["model_a"], vote["model_b"]])
            label = "t"
            if not vote["winner"].startswith("tie"):
                label = "ab"[models.index(vote[vote["winner"]])]
            if vote["turn"] == 1:
                question = str(vote["question_id"])
                found.append((f"{question}/{'/'.join(models)}", question, vote["judge"], label))
    return found


def comparisons(
    folder: Path, kept: str = "abt"
) -> tuple[list[Answer], list[HumanLabel], JudgeVerdicts]:
    """What experts and GPT-4 said of each comparison; labels not in `kept` are left out."""
    experts = [v for v in votes(folder / "human.jsonl.gz") if v[2].startswith("expert_")]
    gpt4 = {comparison: label for comparison, _, _, label in votes(folder / "gpt4_pair.jsonl.gz")}
    items = {c: Answer(c, "two answers", group=question) for c, question, _, _ in experts}
    human = [HumanLabel(c, who, METRIC, label) for c, _, who, label in experts if label in kept]
    said = {
        c: Verdict(c, item.content_hash, "gpt-4", "s", Status.OK, {METRIC: gpt4[c]})
        for c, item in items.items()
        if gpt4.get(c, "?") in kept
    }
    return list(items.values()), human, JudgeVerdicts("gpt-4", "judge", "s", said)
