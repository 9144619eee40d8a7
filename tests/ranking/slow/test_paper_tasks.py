"""The three proxy tasks of the paper, from the published files, by the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.transformers
pytest.importorskip("transformers", reason="needs the extra `proxy`")


def test_three_tasks_have_the_sizes_of_the_published_data(
    shared_data: Path, minilm: Path, tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    (tmp_path / "replies.jsonl").write_text('{"text": "Argument: so."}\n')
    proxy = {
        "data_folder": str(shared_data),
        "tasks": ["misinformation", "nli", "multiple-choice"],
        "generators": [{"name": "writer", "backend": f"scripted:{tmp_path / 'replies.jsonl'}"}],
        "evaluators": {"encoder": str(minilm), "draws": 1},
    }
    bench = tmp_path / "bench.yaml"
    bench.write_text(yaml.safe_dump({"name": "p", "rubric": "argument-quality", "proxy": proxy}))
    code, out, err = call("rank", "run", bench, "--dry-run")
    assert code == 0, err
    for sizes in (
        "misinformation: train 518, development 111, test 112; 49 instances ranked",
        "nli: train 1,035, development 140, test 229; 229 instances ranked",
        "multiple-choice: train 1,698, development 245, test 524; 117 instances ranked",
    ):
        assert f"{sizes}; 1 generator; 3 evaluators" in out
