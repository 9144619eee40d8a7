"""`kill -9` at random moments: every verdict exactly once, and nobody finished is asked again."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from loopback import Body, Loopback, Play, said, until

from judgebench.errors import RunLocked
from judgebench.files import read_lines
from judgebench.store import RunFolder

ANSWERS = 60
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
                "settings": {"concurrency": 4},
            }
        ],
        "report": {"resamples": 100},
    }
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(bench), encoding="utf-8")
    return path


def start(bench: Path, run: Path, *, report: bool = False) -> subprocess.Popen[bytes]:
    code = "from judgebench.cli import main; main()"
    if not report:  # the tables take longer than the run and are not what is tested here
        code = (
            "import sys; from pathlib import Path; from judgebench.bench import load_bench; "
            "from judgebench.runner import run; from judgebench.store import RunFolder; "
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


@pytest.mark.parametrize("seed", [1, 2])
def test_kill_at_random_moments(tmp_path: Path, seed: int) -> None:
    moments = random.Random(seed)

    def script(body: Body, count: int) -> Play:
        return said(REPLY, after=0.01)

    with Loopback(script) as server:
        bench, run = bench_file(tmp_path, server.base_url), tmp_path / "run"
        done: list[str] = []
        for _ in range(4):
            before = len(server.bodies)
            process = start(bench, run)
            more = before + moments.randint(1, 15)
            assert until(lambda more=more: len(server.bodies) >= more)  # type: ignore[misc]
            process.kill()
            process.communicate()
            asked = [item_of(body) for body in server.bodies[before:]]
            assert not set(asked) & set(done)
            done = finished(run)
        assert 0 < len(done) < ANSWERS
        before = len(server.bodies)
        process = start(bench, run)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output.decode()
        asked = [item_of(body) for body in server.bodies[before:]]
    assert not set(asked) & set(done)
    assert len(asked) == ANSWERS - len(done)
    assert sorted(finished(run)) == sorted(f"i{i}" for i in range(ANSWERS))


def test_interrupt_says_how_to_go_on_and_the_command_does(tmp_path: Path) -> None:
    with Loopback(lambda body, count: said(REPLY, after=0.05)) as server:
        bench, run = bench_file(tmp_path, server.base_url), tmp_path / "run"
        process = start(bench, run, report=True)
        assert until(lambda: len(finished(run)) >= 3)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 130, output.decode()
        assert b"goes on from there" in output
        kept = finished(run)
        assert json.loads((run / "run.json").read_text())["state"] == "stopped"
        before = len(server.bodies)
        process = start(bench, run, report=True)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, output.decode()
        assert len(server.bodies) - before == ANSWERS - len(kept)
    assert (run / "report" / "report.html").is_file()


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
