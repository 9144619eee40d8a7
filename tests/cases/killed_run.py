"""A benchmark of sixty answers against a loopback server, in a process that can be killed."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml
from loopback import Body

from judgebench.files import read_lines

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
    }
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(bench), encoding="utf-8")
    return path


def start(bench: Path, run: Path, *, report: bool = False) -> subprocess.Popen[bytes]:
    code = "from judgebench.cli.app import main; main()"
    if not report:  # the tables take longer than the run and are not what is tested here
        code = (
            "import sys; from pathlib import Path; from judgebench.runs.load import load_bench; "
            "from judgebench.runs.folder import RunFolder; "
            "from judgebench.runs.run_bench import run; "
            "run(load_bench(Path(sys.argv[2])), RunFolder(Path(sys.argv[4])))"
        )
    arguments = [sys.executable, "-c", code, "run", str(bench), "--run", str(run)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    return subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def finished(run: Path) -> list[str]:
    path = run / "verdicts-remote.jsonl"
    return [value["item_id"] for _, value in read_lines(path)] if path.is_file() else []
