"""One Ctrl-C while something is learnt: the command ends soon, and what was done is kept."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from learning_case import RUBRIC

from judgebench.files import read_lines

REPO = Path(__file__).resolve().parents[2]
ENDS_S = 30  # what is learnt takes minutes


def start(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    )  # fmt: skip


def stopped(process: subprocess.Popen[bytes], once: bytes) -> tuple[float, bytes]:
    """Seconds until it ended after one Ctrl-C, sent when it has said this; and what it said."""
    assert process.stdout is not None
    said = b""
    while once not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    rest, _ = process.communicate(timeout=100)
    return time.monotonic() - began, said + rest


def test_what_takes_long_is_cut_off_after_a_while() -> None:
    code = (
        "import time; from judgebench.progress import NoProgress; "
        "from judgebench.runs.judging import Interrupted, Stop, ctrl_c, run_lanes\n"
        "stop, lanes = Stop(), {'fit': lambda: time.sleep(60)}\n"
        "try:\n"
        "    with ctrl_c(stop, print, 0.5):\n"
        "        print('begun', flush=True)\n"
        "        run_lanes(lanes, stop, NoProgress(), lambda: None)\n"
        "except Interrupted as end:\n"
        "    print('at once' if end.at_once else 'softly')\n"
    )
    seconds, said = stopped(start(code), b"begun")
    assert b"at once" in said
    assert seconds < ENDS_S


def slow_to_learn(folder: Path) -> Path:
    """A judge that learns quickly, and one whose regression takes minutes."""
    (folder / "tone.yaml").write_text(RUBRIC)
    rng, labels = np.random.default_rng(0), ("Friendly", "Curt", "Rude")
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("item_id", "question", "text", "system", "annotator", "tone"))
        for i in range(1200):
            text = " ".join(f"w{n}" for n in rng.integers(0, 60_000, 1000))
            label = labels[rng.integers(3)]
            writer.writerow((f"i{i}", f"Question {i}?", text, f"s{i % 2}", "Ann", label))
    with (folder / "said.csv").open("w") as file:
        file.write("item_id,tone\n")
        file.writelines(f"i{i},{labels[i % 3]}\n" for i in range(1200))
    judges = (
        "[{name: given, verdicts: said.csv}, {name: who, learn: recalibrate, from: given}, "
        "{name: own, learn: head, encoder: words}]"
    )
    (folder / "bench.yaml").write_text(
        f"name: tone\nrubric: tone.yaml\ndata: labels.csv\njudges: {judges}\n"
        "tuning: {folds: 2}\ncontrols: false\n"
    )
    return folder / "bench.yaml"


@pytest.mark.long
def test_one_ctrl_c_ends_tune_soon_and_keeps_what_is_done(tmp_path: Path) -> None:
    bench, run = slow_to_learn(tmp_path), tmp_path / "run"
    code = "from judgebench.cli.app import main; main()"
    given = ("tune", str(bench), "--run", str(run))
    process = start(code, *given)
    seconds, said = stopped(process, b"own: learns from")
    assert seconds < ENDS_S, said
    assert process.returncode == 130, said
    assert b"To resume, rerun" in said
    assert json.loads((run / "run.json").read_text())["state"] == "running"  # as after a kill
    assert len(list(read_lines(run / "verdicts-who.jsonl"))) == 1200
    ahead = subprocess.run(
        [sys.executable, "-c", code, *given, "--dry-run"], capture_output=True, check=True,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    ).stdout  # fmt: skip
    assert b"who: learns 0 times" in ahead
    assert b"own: learns 2 times" in ahead
