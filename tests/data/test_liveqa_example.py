import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from judgebench.data.conversation import PairsConfig
from judgebench.data.load import load_data
from judgebench.files import shipped_folder
from judgebench.rubric import load_rubric

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "medquad-cdc"


@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs {DATA.name}, which is not ours to distribute")
def test_the_answers_of_the_example_and_the_pairs_of_them(tmp_path: Path) -> None:
    """Twelve questions with four answers each make six pairs a question; who gave two answers the
    same grade prefers neither."""
    here = shutil.copytree(shipped_folder("examples") / "liveqa", tmp_path / "liveqa")
    subprocess.run([sys.executable, "prepare.py", str(DATA), "12"], cwd=here, check=True)
    rubric = load_rubric(here / "rubric.yaml")
    pairs = PairsConfig.model_validate({"from": "all", "prefer": "grade"})
    found = load_data(here / "answers.csv", rubric, pairs=pairs.wanted(here / "bench.yaml", 0))
    kinds = [answer.kind for answer in found.answers]
    assert (kinds.count("answer"), kinds.count("pair")) == (48, 72)
    grade = {
        label.item_id: int(label.label or 0) for label in found.labels if label.metric == "grade"
    }
    better = {label.item_id: label.label for label in found.labels if label.metric == "better"}
    for answer in found.answers:
        if answer.kind == "pair":
            first, second = (grade[part.item_id] for part in answer.responses)
            wanted = "tie" if first == second else "first" if first > second else "second"
            assert better[answer.item_id] == wanted
    assert (here / "cdc.jsonl").read_text("utf-8").count("\n") == 270
