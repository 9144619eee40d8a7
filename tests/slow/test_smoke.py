"""Each heavy engine in a run of its own: it loads, answers, is killed, and the run is gone on with.

`make test-smoke` runs these, as the gate does; all tests of the engines are `make test-slow`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from loopback import until

REPO = Path(__file__).resolve().parents[2]
N_ANSWERS = 12
PATIENCE_S = 300.0
TEXT = "Restart the router and call us on number {} if the light stays red."
RUN = """
import sys
from pathlib import Path
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import run
run(load_bench(Path(sys.argv[1])), RunFolder(Path(sys.argv[2])))
"""


def write_bench(folder: Path, backend: str, settings: dict[str, Any]) -> Path:
    rows = [f"i{i},Why is it red?,{TEXT.format(i)}" for i in range(N_ANSWERS)]
    labels = [f"i{i},ann,Polite" for i in range(N_ANSWERS)]
    (folder / "answers.csv").write_text("\n".join(["item_id,question,text", *rows]))
    (folder / "labels.csv").write_text("\n".join(["item_id,annotator,politeness", *labels]))
    bench = {
        "name": "smoke",
        "rubric": "support-tone",
        "data": ["answers.csv", "labels.csv"],
        "judges": [{"name": "engine", "backend": backend, "settings": settings}],
    }
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(bench))
    return path


def start(bench: Path, run_folder: Path) -> subprocess.Popen[bytes]:
    """A run in a process group of its own, so that the engine's processes end with it."""
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(bench), str(run_folder)],
        env={**os.environ, "PYTHONPATH": str(REPO)},
        start_new_session=True,
    )


def verdict_lines(run_folder: Path) -> list[dict[str, Any]]:
    """The verdicts so far; a last line that is not whole yet is left out."""
    path = run_folder / "verdicts-engine.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.is_file() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def assert_survives_a_kill(tmp_path: Path, backend: str, settings: dict[str, Any]) -> None:
    bench, run_folder = write_bench(tmp_path, backend, settings), tmp_path / "run"
    process = start(bench, run_folder)
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        if until(lambda: len(verdict_lines(run_folder)) >= 2):
            break
    assert process.poll() is None, "the run ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = verdict_lines(run_folder)
    assert 2 <= len(before) < N_ANSWERS

    assert start(bench, run_folder).wait(PATIENCE_S) == 0
    verdicts = verdict_lines(run_folder)
    assert sorted(v["item_id"] for v in verdicts) == sorted(f"i{i}" for i in range(N_ANSWERS))
    assert verdicts[: len(before)] == before
    assert {v["status"] for v in verdicts} == {"ok"}
    assert all(len(v["labels"]) == 3 for v in verdicts)
    assert json.loads((run_folder / "run.json").read_text("utf-8"))["state"] == "finished"


@pytest.mark.smoke
@pytest.mark.transformers
@pytest.mark.skipif(find_spec("outlines") is None, reason="needs outlines (make test-smoke)")
def test_transformers_survives_a_kill(tmp_path: Path, smollm2_folder: Path) -> None:
    settings = {"context": 2048, "concurrency": 2, "threads": 2}
    assert_survives_a_kill(tmp_path, f"transformers:{smollm2_folder}", settings)


@pytest.mark.smoke
@pytest.mark.vllm
@pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM (make test-smoke)")
def test_vllm_survives_a_kill(tmp_path: Path, smollm2_folder: Path) -> None:
    settings = {"context": 2048, "concurrency": 2, "threads": 1}
    assert_survives_a_kill(tmp_path, f"vllm:{smollm2_folder}", settings)
