"""The votes of MT-bench (Zheng et al., 2023) on first turns, as anybody would read them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import judgebench as jb
from judgebench.stats.resample import Resampling
from judgebench.study.study import Study

METRIC = "preference"


def first_turns(folder: Path, rule: str, resampling: Resampling, *, ties: bool = True) -> Study:
    """What experts and GPT-4 said of which two answers; without `ties`, those are no labels."""
    human = pd.read_json(folder / "human.jsonl.gz", lines=True)
    gpt4 = pd.read_json(folder / "gpt4_pair.jsonl.gz", lines=True)
    of = {
        "item_id": "question_id",
        "pair": ["model_a", "model_b"],
        "only": {"turn": 1},
        "metrics": {METRIC: "winner"},
    }
    tie = "tie" if ties else None
    data = {
        "files": [
            {
                "path": human[human.judge.str.startswith("expert_")],
                "labels": {**of, "annotator": "judge"},
            },
            {"path": gpt4, "verdicts": {**of, "judge": {"value": "gpt-4"}}},
        ],
        "spellings": {METRIC: {"tie": tie, "tie (inconsistent)": tie}},
    }
    return jb.study(data, rubric="preference", truth=rule, resampling=resampling)
