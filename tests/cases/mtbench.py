"""The votes of MT-bench (Zheng et al., 2023) on first turns, as anybody would read them."""

from pathlib import Path

import pandas as pd

import judgebench as jb
from judgebench.studies.study import Study

METRIC = "preference"


def first_turns(folder: Path, rule: str, *, ties: bool = True) -> Study:
    """What experts and GPT-4 said of which two answers; without `ties`, those are no labels."""
    human = pd.read_json(folder / "human.jsonl.gz", lines=True)
    gpt4 = pd.read_json(folder / "gpt4_pair.jsonl.gz", lines=True)
    tie = "tie" if ties else ""
    human, gpt4 = (
        table[table.turn == 1]
        .rename(columns={"question_id": "item_id"})
        .replace({"winner": {"tie": tie, "tie (inconsistent)": tie}})
        .filter(["item_id", "model_a", "model_b", "judge", "winner"])
        for table in (human, gpt4)
    )
    experts = human[human.judge.str.startswith("expert_")].rename(columns={"judge": "annotator"})
    verdicts = gpt4.assign(judge="gpt-4")
    return jb.study(experts, verdicts, rubric=METRIC, truth=rule)
