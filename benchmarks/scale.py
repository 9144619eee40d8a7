"""Can a million answers be judged? Time and memory of reading, judging and resuming them.

Answers of 60 words in JSONL, four to a question, are read and judged by the scripted backend under
the 8 metrics of the medical-safety rubric; 3 annotators label 100 of them. Every line of the table
is a process of its own: its seconds and processor seconds, its answers a second, and the most
memory that it ever held.

    read           the data set is read and checked
    run            `judgebench run`, to the report: one judge
    run, controls  the same with the baselines beside it
    resume         the finished run again: seconds until the judge has started

The limit for a million is 1 GB, with time in line. Half of the
answers, a fifth and a tenth are taken beside them. Files go to the folder for temporary ones, some
2.5 GB for a million.

    python benchmarks/scale.py
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from judgebench.rubric import load_rubric

RUBRIC = "medical-safety"
WORDS, A_QUESTION, LABELLED = 60, 4, 100
SHARES = (0.1, 0.2, 0.5, 1.0)  # of the answers
LIMIT_MB = 1000.0
CONTROLS = {"run": "false", "run, controls": "true"}


class Taken(NamedTuple):
    """What one process took. `started_s` is None where it tells of no start."""

    seconds: float
    processor_s: float
    most_mb: float
    started_s: float | None = None


def measured(arguments: list[str], folder: Path) -> Taken:
    """Run Python with these arguments in that folder. Raises RuntimeError where it fails."""
    begin = time.time()
    with (folder / "output.txt").open("w+b") as output:
        child = subprocess.Popen(
            [sys.executable, *arguments], cwd=folder, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.time() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        told = output.read().decode("utf-8", "replace")
    if child.returncode:
        raise RuntimeError(f"{' '.join(arguments)}\n{told[-3000:]}")
    starts = [float(line.split()[1]) for line in told.splitlines() if line.startswith("started ")]
    started = starts[0] - begin if starts else None
    return Taken(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, started)


# What is measured ----------------------------------------------------------------------------


def write_bench(folder: Path, answers: int) -> None:
    """A benchmark of that many answers in a folder of its own."""
    folder.mkdir()
    with (folder / "answers.jsonl").open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows(answers))
    rng, rubric = Random(1), load_rubric(RUBRIC)
    labels = ["item_id,annotator," + ",".join(m.id for m in rubric.metrics)]
    for i in range(min(LABELLED, answers)):
        for annotator in ("ann", "bob", "cy"):
            said = (f'"{rng.choice(m.label_texts)}"' for m in rubric.metrics)
            labels.append(f"item-{i},{annotator},{','.join(said)}")
    (folder / "labels.csv").write_text("\n".join(labels) + "\n")
    reply = {"text": {m.id: m.label_texts[0] for m in rubric.metrics}}
    (folder / "replies.jsonl").write_text(json.dumps(reply) + "\n")
    for name, controls in CONTROLS.items():
        (folder / f"{name}.yaml").write_text(
            f"name: scale\nrubric: {RUBRIC}\ndata: [answers.jsonl, labels.csv]\n"
            f"judges: [{{name: judge, backend: 'scripted:{folder}/replies.jsonl'}}]\n"
            f"controls: {controls}\n"
        )


def rows(answers: int) -> Iterator[dict[str, str]]:
    rng = Random(0)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(3000)]
    for i in range(answers):
        question = f"What may I do about number {i // A_QUESTION}?"
        yield {
            "item_id": f"item-{i}",
            "question": question,
            "system": f"system-{i % A_QUESTION}",
            "text": " ".join(rng.choices(words, k=WORDS)),
            "group": f"q{i // A_QUESTION}",
        }


def lines_of(folder: Path) -> Iterator[tuple[str, Taken]]:
    """The lines of the table for one benchmark, as they are measured."""
    own = str(Path(__file__).resolve())
    yield "read", measured([own, "--only-read", "run.yaml"], folder)
    for name in CONTROLS:
        command = ["-m", "judgebench", "run", f"{name}.yaml", "--run", name]
        yield name, measured(command, folder)
    for name in CONTROLS:
        line = name.replace("run", "resume")
        yield line, measured([own, "--only-resume", f"{name}.yaml", name], folder)


# In a process of its own ---------------------------------------------------------------------


def only_read(bench: Path) -> None:
    """Read and check the data set, as every command begins."""
    from judgebench.runs.load import load_bench

    load_bench(bench).close()


def only_resume(bench: Path, run: Path) -> None:
    """Resume a run and say when its judge has started."""
    from judgebench.progress import NoProgress
    from judgebench.runs import run_bench
    from judgebench.runs.folder import RunFolder
    from judgebench.runs.load import load_bench

    class Told(NoProgress):
        def start(self, name: str, total: int, done: int) -> None:
            if total != done:
                raise RuntimeError(f"{name} has done {done} of {total}")
            print(f"started {time.time()}", flush=True)

    loaded = load_bench(bench, run_folder=run)
    print(f"read {time.time()}", flush=True)
    try:
        run_bench.run(loaded, RunFolder(run), progress=Told())
    finally:
        loaded.close()


# The table -----------------------------------------------------------------------------------


def show(name: str, answers: int, taken: Taken) -> None:
    print(f"  {name:18}{answers:>10,}{taken.seconds:>9.1f}{taken.processor_s:>9.1f}", end="")
    print(f"{answers / taken.seconds:>11,.0f}{taken.most_mb:>9.0f}", end="")
    print(f"{taken.started_s:>10.1f}" if taken.started_s is not None else "", flush=True)


def show_ratios(found: dict[tuple[str, int], Taken], sizes: list[int]) -> None:
    """How the largest is beside the smallest, and beside the limits."""
    least, most = sizes[0], sizes[-1]
    print(f"\n  of {most:,} answers beside {least:,}: processor time an answer, most memory")
    for name in dict.fromkeys(name for name, _ in found):
        few, many = found[name, least], found[name, most]
        line = (many.processor_s / most) / (few.processor_s / least)
        print(f"  {name:18}{line:>10.2f}{many.most_mb / few.most_mb:>10.2f}", end="")
        print(f"{many.most_mb / LIMIT_MB:>10.2f} of {LIMIT_MB:.0f} MB", end="")
        print()


def measure_all(answers: int) -> None:
    sizes = [int(share * answers) for share in SHARES]
    found: dict[tuple[str, int], Taken] = {}
    heads = ("seconds", "cpu s", "answers/s", "MB", "started s")
    print(f"  {'':18}{'answers':>10}{heads[0]:>9}{heads[1]:>9}{heads[2]:>11}{heads[3]:>9}", end="")
    print(f"{heads[4]:>10}")
    for size in sizes:
        with TemporaryDirectory(prefix="judgebench-scale-") as folder:
            write_bench(Path(folder) / "bench", size)
            for name, taken in lines_of(Path(folder) / "bench"):
                found[name, size] = taken
                show(name, size, taken)
    show_ratios(found, sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--answers", type=int, default=1_000_000, help="how many at most")
    parser.add_argument("--quick", action="store_true", help="2,000 answers")
    parser.add_argument("--only-read", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--only-resume", type=Path, nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.only_read:
        only_read(chosen.only_read)
    elif chosen.only_resume:
        only_resume(*chosen.only_resume)
    else:
        measure_all(2000 if chosen.quick else chosen.answers)


if __name__ == "__main__":
    main()
