"""How long until two tables are a decision, beside a bare pandas script that computes its core?

Labels of two annotators on 2,250 answers to 450 questions and a judge's verdicts, as CSV. Each
command is a process of its own. The script reads both tables and computes accuracy, kappa and a
bootstrap over questions of the judge's and each annotator's agreement, 2,000 resamples.

    python benchmarks/first_screen.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

LABELS = np.array(["Safe", "Unsure", "Unsafe"])
BARE = "pandas script"
SCRIPT = """
import numpy as np, pandas as pd
both = pd.read_csv("labels.csv").merge(pd.read_csv("gpt-4.csv"), on=["id", "system"])
names = ("Huber", "Okafor", "verdict")
codes = {name: both[name].map({"Safe": 0, "Unsure": 1, "Unsafe": 2}).to_numpy() for name in names}
pairs = [("Huber", "Okafor"), ("Huber", "verdict"), ("Okafor", "verdict")]
agree = np.array([codes[a] == codes[b] for a, b in pairs], dtype=float)
for (a, b), same in zip(pairs, agree):
    table = pd.crosstab(codes[a], codes[b], normalize=True).to_numpy()
    chance = table.sum(0) @ table.sum(1)
    print(a, b, same.mean(), (np.trace(table) - chance) / (1 - chance))
question = both.groupby("id").ngroup().to_numpy()
sums = np.array([np.bincount(question, same) for same in agree])
sizes = np.bincount(question)
drawn = np.random.default_rng(0).integers(0, len(sizes), (2000, len(sizes)))
print(np.quantile(sums[:, drawn].sum(2) / sizes[drawn].sum(1), [0.025, 0.975], axis=1))
"""
JUDGEBENCH = ["-m", "judgebench"]
COMMANDS = {
    BARE: ["-c", SCRIPT],
    "decide": [*JUDGEBENCH, "decide", "labels.csv", "gpt-4.csv", "-q"],
    "init": [*JUDGEBENCH, "init", "labels.csv", "gpt-4.csv", "--to", "mine{turn}"],
    "check": [*JUDGEBENCH, "check", "mine{turn}/bench.yaml"],
    "report": [*JUDGEBENCH, "report", "labels.csv", "gpt-4.csv", "--to", "out{turn}", "-q"],
}
LIMITS_S = {"decide": 2.0, "init": 1.5, "check": 1.5, "report": 5.0}


def write_tables(folder: Path) -> None:
    rng = np.random.default_rng(1)
    items = [(f"q{i}", f"model-{k}") for i in range(450) for k in range(5)]
    truth = rng.choice(3, len(items), p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame(items, columns=["id", "system"])
    columns = {}
    for name, right in (("Huber", 0.95), ("Okafor", 0.93), ("verdict", 0.9)):
        own = np.where(rng.random(len(items)) < right, truth, rng.choice(3, len(items)))
        columns[name] = LABELS[own]
    people = frame.assign(Huber=columns["Huber"], Okafor=columns["Okafor"])
    people.to_csv(folder / "labels.csv", index=False)
    frame.assign(verdict=columns["verdict"]).to_csv(folder / "gpt-4.csv", index=False)


def timed(arguments: list[str], folder: Path, turn: int) -> float:
    """Seconds until the process has ended."""
    start = time.perf_counter()
    words = [word.replace("{turn}", str(turn)) for word in arguments]
    subprocess.run(
        [sys.executable, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one turn, not seven")
    turns = 1 if parser.parse_args().quick else 7
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as place:
        write_tables(Path(place))
        for turn in range(turns + 1):  # the first fills the caches of files
            for name, arguments in COMMANDS.items():
                taken = timed(arguments, Path(place), turn)
                if turn:
                    seconds[name].append(taken)
    bare = median(seconds[BARE])
    print(f"  {f'median of {turns}':16}{'':8}{'/ script':>10}{'limit':>10}{'/ limit':>9}")
    for name, found in seconds.items():
        middle, limit = median(found), LIMITS_S.get(name)
        print(f"  {name:16}{middle:6.2f} s{middle / bare:10.1f}", end="")
        print(f"{limit:8.1f} s{middle / limit:9.2f}" if limit else "")


if __name__ == "__main__":
    main()
