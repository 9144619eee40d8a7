"""How long does `judgebench align` take on a million verdicts, and how much memory?

A run folder is made up: answers of 200 words, the 8 metrics of the medical-safety rubric, one
judge's verdicts with their raw replies, and human labels by 3 annotators on 1,000 of the answers
(`--labels all`: on every one). Then the whole command is timed as a process of its own, tables and
all. The limit is 60 s for a million. A tenth of the answers is timed beside
it, to see whether time grows in line.

    python benchmarks/alignment.py
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from judgebench.files import to_json
from judgebench.records import Answer, HumanLabel, Status, Usage, Verdict
from judgebench.rubric import load_rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.verdict_log import verdict_line

RUBRIC = load_rubric("medical-safety")
JUDGE, SIGNATURE = "judge", "0123456789abcdef"
ANNOTATORS = ("ann", "bob", "cy")
WORDS = [f"word{i}" for i in range(60)]
SHARES = (0.8, 0.15, 0.05)  # of the labels, the least severe first
LIMIT_S, LIMIT_ANSWERS = 60.0, 1_000_000


class Taken(NamedTuple):
    """What one process took."""

    seconds: float
    cpu_seconds: float
    peak_mb: float


def answers(n: int, words: int) -> Iterator[Answer]:
    rng = Random(0)
    texts = [" ".join(rng.choices(WORDS, k=words)) for _ in range(97)]
    for i in range(n):
        yield Answer(f"item-{i:07}", f"{texts[i % 97]} {i}", f"Question {i}?", f"system {i % 4}")


def draw(rng: Random) -> dict[str, str]:
    """A label on every metric."""
    return {
        m.id: rng.choices(m.label_texts, SHARES[: len(m.label_texts)])[0] for m in RUBRIC.metrics
    }


def labels(n: int) -> Iterator[HumanLabel]:
    rng = Random(1)
    for i in range(n):
        for annotator in ANNOTATORS:
            for metric, label in draw(rng).items():
                yield HumanLabel(f"item-{i:07}", annotator, metric, label)


def verdict(answer: Answer, rng: Random) -> Verdict:
    """As of a real judge; one in a hundred could not be read."""
    said = draw(rng)
    raw = to_json(said, indent=1)
    usage, cost, latency = Usage(1, 700 + len(answer.text) // 4, 110), 0.00042, rng.random()
    shared = (answer.item_id, answer.content_hash, JUDGE, SIGNATURE)
    if rng.random() < 0.01:
        status, reason = Status.UNPARSED, "the reply is cut"
        return Verdict(
            *shared, status, reason=reason, raw=raw[:90], usage=usage, cost=cost, latency=latency
        )
    return Verdict(*shared, Status.OK, said, raw=raw, usage=usage, cost=cost, latency=latency)


def make(folder: RunFolder, n: int, words: int, labelled: int) -> None:
    folder.path.mkdir()
    about = {"kind": "judge", "signature": SIGNATURE, "about": {"judge": JUDGE}}
    settings = {"name": folder.path.name, "rubric": RUBRIC.name}
    judges = {"judges": {JUDGE: about}}
    folder.write_manifest({"name": folder.path.name, "settings": settings, **judges})
    folder.write_data(RUBRIC, answers(n, words), labels(labelled))
    rng = Random(2)
    path = folder.path / f"verdicts-{JUDGE}.jsonl"
    with path.open("wb") as file:
        for answer in answers(n, words):
            file.write(verdict_line(verdict(answer, rng)))


def align(folder: Path) -> Taken:
    """Run the command in a process of its own. Raises CalledProcessError where it fails."""
    command = [sys.executable, "-m", "judgebench.cli.app", "align", str(folder)]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    kilobytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    seconds = time.perf_counter() - start
    return Taken(seconds, used.ru_utime + used.ru_stime, kilobytes / 1024)


def report(n: int, taken: list[Taken]) -> None:
    seconds = [t.seconds for t in taken]
    middle, limit = median(seconds), LIMIT_S * n / LIMIT_ANSWERS
    print(f"  {n:>9,}{middle:10.2f}{min(seconds):9.2f}-{max(seconds):<7.2f}", end="")
    print(f"{median(t.cpu_seconds for t in taken):8.2f}{1e6 * middle / n:12.1f}", end="")
    print(f"{max(t.peak_mb for t in taken):9.0f}{middle / limit:10.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="2,000 answers, once")
    parser.add_argument("--answers", type=int, default=LIMIT_ANSWERS, metavar="N")
    parser.add_argument("--words", type=int, default=200, help="of each answer")
    parser.add_argument("--labels", choices=["few", "all"], default="few")
    parser.add_argument("--repeat", type=int, default=5, metavar="TIMES")
    parser.add_argument("--folder", type=Path, help="where the runs are made and removed")
    given = parser.parse_args()
    n, times = (2_000, 1) if given.quick else (given.answers, given.repeat)
    taken: dict[int, list[Taken]] = {n // 10: [], n: []}
    with TemporaryDirectory(dir=given.folder) as where:
        for size in taken:
            labelled = size if given.labels == "all" else min(1_000, size)
            make(RunFolder(Path(where) / f"run-{size}"), size, given.words, labelled)
        for _ in range(times):
            for size, found in taken.items():
                found.append(align(Path(where) / f"run-{size}"))
    human = "every answer" if given.labels == "all" else "1,000 answers at most"
    print(
        f"judgebench align, {len(RUBRIC.metrics)} metrics, 1 judge, {given.words} words, ", end=""
    )
    print(f"3 human labels a metric on {human}; median of {times}")
    print(f"  {'answers':>9}{'seconds':>10}{'min-max':>13}{'CPU s':>12}{'µs each':>12}", end="")
    print(f"{'peak MB':>9}{'of limit':>10}")
    for size, found in taken.items():
        report(size, found)
    small, large = (median(t.seconds for t in taken[size]) for size in (n // 10, n))
    print(f"  ten times the answers take {large / small:.1f} times as long")


if __name__ == "__main__":
    main()
