"""`kill -9` at random moments: every verdict exactly once, and nobody finished is asked again."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from loopback import PATIENCE, Body, Loopback, said, until
from scripted_judges import Listener

from judgebench.errors import RunLocked
from judgebench.files import read_lines
from judgebench.runner import run
from judgebench.runner.bench import load_bench
from judgebench.store.folder import RunFolder

ANSWERS = 60
IN_FLIGHT = 4
HELD = IN_FLIGHT + IN_FLIGHT // 4  # the most that a stream holds: see transport.py
REPLY = json.dumps({"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"})


def item_of(body: Body) -> str:
    found = re.search(r"reply number (\d+)\.", body["messages"][-1]["content"])
    assert found
    return f"i{found.group(1)}"


def bench_file(folder: Path, base_url: str) -> Path:
    with (folder / "answers.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["item_id", "question", "text"])
        writer.writerows([f"i{i}", f"question {i}", f"reply number {i}."] for i in range(ANSWERS))
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["item_id", "annotator", "politeness"])
        writer.writerows(
            [f"i{i}", "ann", "Polite" if i % 3 else "Impolite"] for i in range(ANSWERS)
        )
    bench = {
        "name": "killed",
        "rubric": "support-tone",
        "data": ["answers.csv", "labels.csv"],
        "judges": [
            {
                "name": "remote",
                "backend": f"openai-compatible:loopback@{base_url}",
                "settings": {"concurrency": IN_FLIGHT},
            }
        ],
        "report": {"resamples": 100},
    }
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(bench), encoding="utf-8")
    return path


def start(bench: Path, run: Path, *, report: bool = False) -> subprocess.Popen[bytes]:
    code = "from judgebench.cli.app import main; main()"
    if not report:  # the tables take longer than the run and are not what is tested here
        code = (
            "import sys; from pathlib import Path; from judgebench.runner.bench import load_bench; "
            "from judgebench.runner import run; from judgebench.store.folder import RunFolder; "
            "run(load_bench(Path(sys.argv[2])), RunFolder(Path(sys.argv[4])))"
        )
    arguments = [sys.executable, "-c", code, "run", str(bench), "--run", str(run)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    return subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def finished(run: Path) -> list[str]:
    path = run / "verdicts-remote.jsonl"
    return [value["item_id"] for _, value in read_lines(path)] if path.is_file() else []


def judge(bench: Path, run_folder: Path) -> None:
    """What a killed process was doing: a whole run, without the report."""
    run(load_bench(bench), RunFolder(run_folder))


FRESH = multiprocessing.get_context("forkserver")
# Imports are made once; each process is a clean one that has them.
FRESH.set_forkserver_preload(["judgebench.runner", "judgebench.backends.openai_compatible"])


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))]
)
def test_kill_at_fifty_random_moments(tmp_path: Path, seed: int) -> None:
    """Moments of any kind: while inputs are written, while verdicts are, between judges."""
    moments = random.Random(seed)
    kills = runs = 0
    with Loopback(lambda body, count: said(REPLY, after=0.01)) as server:
        bench = bench_file(tmp_path, server.base_url)
        while kills < 50:
            runs += 1
            folder = tmp_path / f"run{runs}"
            done: list[str] = []
            asked: Counter[str] = Counter()
            while len(done) < ANSWERS:
                before = len(server.bodies)
                process = FRESH.Process(target=judge, args=(bench, folder))
                process.start()
                process.join(moments.uniform(0, 0.6) if kills < 50 else PATIENCE)
                if process.is_alive():
                    process.kill()
                    kills += 1
                process.join()
                called = [item_of(body) for body in server.bodies[before:]]
                assert not set(called) & set(done), "finished answers were called again"
                asked.update(called)
                done = finished(folder)
                assert len(done) == len(set(done))
            # Only what was in flight when the process died was asked for more than once, and
            # replies on their way from the one thread to the other.
            assert sum(asked.values()) - ANSWERS <= HELD * kills
            judge(bench, folder)  # whatever was torn, the run is whole in the end
            assert sorted(finished(folder)) == sorted(f"i{i}" for i in range(ANSWERS))
            assert RunFolder(folder).manifest()["state"] == "finished"
            assert len(list(RunFolder(folder).verdicts("prior"))) == ANSWERS


def test_a_torn_last_line_is_dropped_and_told(tmp_path: Path) -> None:
    with Loopback([said(REPLY)]) as server:
        bench, folder = bench_file(tmp_path, server.base_url), tmp_path / "run"
        judge(bench, folder)
        path = folder / "verdicts-remote.jsonl"
        whole = path.read_bytes()
        path.write_bytes(whole[:-9])
        told = Listener()
        run(load_bench(bench), RunFolder(folder), progress=told)
        assert len(server.bodies) == ANSWERS + 1
    assert any("dropped a torn last line" in line for line in told.heard)
    assert sorted(finished(folder)) == sorted(f"i{i}" for i in range(ANSWERS))


def test_a_second_process_is_turned_away(tmp_path: Path) -> None:
    with Loopback(lambda body, count: said(REPLY, after=0.2)) as server:
        bench, run = bench_file(tmp_path, server.base_url), tmp_path / "run"
        process = start(bench, run)
        assert until(lambda: len(server.bodies) > 0)
        with pytest.raises(RunLocked), RunFolder(run).locked():
            pass
        process.kill()
        process.communicate()
    with RunFolder(run).locked():
        assert RunFolder(run).manifest()["state"] == "running"
