"""Whether two versions of judgebench print and write the same: every number, every word.

    python benchmarks/same_numbers.py --freeze OLD                # with the code as it was
    python benchmarks/same_numbers.py --freeze NEW --runs OLD     # with the code as it is
    python benchmarks/same_numbers.py OLD NEW                     # two frozen folders, or reports

Freezing runs the shipped examples with a small embedded model and keeps what every command prints
and writes, the help of all commands and the public names of Python; it takes some minutes. With
`--runs`, the run folders that OLD holds are gone on with instead of made anew: a version that reads
them otherwise asks its judges again. Freeze both versions from one checkout: the places of files
are part of signatures. Tables are compared cell by cell in all columns, rows in their order; of
everything else the lines that differ are printed. Times, the places of the frozen folders and what
a command says while it makes a run are left out.
Exits with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import csv
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click
import typer

import judgebench as jb
from judgebench.cli.app import app

EXAMPLES = Path(jb.__file__).resolve().parents[1] / "examples"
MOST = 20  # differences that are printed of one file
TIMES = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?|\b\d+(\.\d+)? (s|seconds|minutes)\b"
    r"| at 0x[0-9a-f]+"
)
FILES = "--labels labels.csv --verdicts qwen2.5-coder-1.5b.csv --rubric medical-safety"
# What makes a run folder or goes on with one, and what is then asked in the folder of the demo: a
# name, and the arguments.
RUNS = ("run demo --run {runs}/demo", "tune tune --run {runs}/tune", "stress --run {runs}/stress")
COMMANDS = {
    "run": "run demo --run {runs}/demo",
    "tune": "tune tune --run {runs}/tune -v",
    "stress": "stress --run {runs}/stress -v",
    "stress json": "stress --run {runs}/stress --json",
    "check": "check bench.yaml",
    "align": "align {runs}/demo -v",
    "align json": "align {runs}/demo --json",
    "align majority": "align {runs}/demo --truth majority --json",
    "align an annotator": "align {runs}/demo --as-judge annotator-1 --json",
    "decide": "decide {runs}/demo -v",
    "decide json": "decide {runs}/demo --json",
    "decide files": f"decide {FILES} -v",
    "decide files json": f"decide {FILES} --json",
    "compare": "compare {runs}/demo:smollm2-135m {runs}/demo:qwen2.5-coder-1.5b -v",
    "report": "report {runs}/demo --to {to}/report",
    "report files": f"report {FILES} --to {{to}}/files",
    "score": "score answers.csv --scorer chrf --scorer rouge-l --to {to}/scores.csv",
    "init": "init labels.csv --to {to}/init",
    **{f"list {what}": f"list {what}" for what in ("rubrics", "prompts", "attacks", "examples")},
}


def freeze(to: Path, runs: Path | None) -> None:
    """Write what this version prints and writes into the new folder `to`."""
    to.mkdir(parents=True)
    place = shutil.copytree(EXAMPLES / "demo", to / "demo")
    if runs is not None:
        shutil.copytree(runs / "runs", to / "runs")
    _write(to / "names.txt", names())
    _write(to / "help.txt", helps(typer.main.get_command(app), "judgebench"))
    kept = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    for name, arguments in (*((one, one) for one in RUNS), *COMMANDS.items()):
        asked = arguments.format(runs=to / "runs", to=to).split()
        done = subprocess.run(
            [sys.executable, "-m", "judgebench", *asked], cwd=place, env=kept,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        print(f"{name}: exit code {done.returncode}", flush=True)
        said = f"exit code {done.returncode}", done.stdout, done.stderr
        if name in COMMANDS:
            _write(to / "said" / f"{name}.txt", "\n".join(said).splitlines())


def _write(path: Path, lines: Sequence[str] | Iterator[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def names() -> Iterator[str]:
    """Every public name of judgebench with its signature or fields."""
    for name in sorted(jb.__all__ if hasattr(jb, "__all__") else dir(jb)):
        value: Any = getattr(jb, name)
        try:
            yield f"{name}{inspect.signature(value)}"
        except (TypeError, ValueError):
            yield name


def helps(command: click.Command, path: str) -> Iterator[str]:
    """The help of a command and of all below it."""
    with click.Context(command, info_name=path, terminal_width=100) as about:
        yield f"# {path}"
        yield from command.get_help(about).splitlines()
        below: Mapping[str, click.Command] = getattr(command, "commands", {})
    for name, one in sorted(below.items()):
        yield from helps(one, f"{path} {name}")


def compare(old: Path, new: Path) -> int:
    """Print how two folders differ and return in how many places."""
    files = {
        side: {path.relative_to(side).as_posix() for path in _files(side)} for side in (old, new)
    }
    wrong = 0
    for name in sorted(files[old] | files[new]):
        if name not in files[old] or name not in files[new]:
            found = [f"only {'before' if name in files[old] else 'after'}"]
        else:
            found = list(differences(old / name, new / name, {str(old): "", str(new): ""}))
        if found:
            print(f"{name}: {len(found)} differences", *found[:MOST], sep="\n  ")
        wrong += len(found)
    print(f"{len(files[old] | files[new]):,} files, {wrong:,} differences")
    return wrong


def _files(folder: Path) -> Iterator[Path]:
    """What users read: neither verdicts as they came nor what a run keeps for itself."""
    for path in folder.rglob("*"):
        of_run = "runs" in path.relative_to(folder).parts and "report" not in path.parts
        if path.is_file() and not of_run:
            yield path


def differences(old: Path, new: Path, places: Mapping[str, str]) -> Iterator[str]:
    """One line for each cell, row or line that is not the same in both files."""
    if old.suffix in (".png", ".pdf"):  # drawn from the numbers and words of the .svg
        return
    before, after = (_told(path, places) for path in (old, new))
    if before == after:
        return
    if old.suffix != ".csv":
        lines = unified_diff(before, after, n=0, lineterm="")
        yield from (line[:300] for line in lines if not line.startswith(("---", "+++", "@@")))
        return
    for number, (a, b) in enumerate(zip_longest(*map(_rows, (before, after)), fillvalue={}), 1):
        for column in dict.fromkeys((*a, *b)):
            if a.get(column) != b.get(column):
                was, now = (json.dumps(row.get(column), ensure_ascii=False) for row in (a, b))
                yield f"row {number}, {column}: was {was}, is {now}"


def _told(path: Path, places: Mapping[str, str]) -> list[str]:
    """The lines of a file without the times and places of its making."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    for place, name in places.items():
        text = text.replace(str(Path(place).resolve()), name).replace(place, name)
    return TIMES.sub("TIME", text).splitlines()


def _rows(lines: Sequence[str]) -> Iterator[Mapping[str, str]]:
    csv.field_size_limit(sys.maxsize)
    return csv.DictReader(line + "\n" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """1 where anything differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    parser.add_argument("--freeze", type=Path, metavar="FOLDER")
    parser.add_argument("--runs", type=Path, metavar="OLD")
    asked = parser.parse_args(arguments)
    if asked.freeze is not None:
        freeze(asked.freeze.resolve(), asked.runs)
        return 0
    if len(asked.folders) != 2:
        parser.error("name two folders")
    return 1 if compare(*asked.folders) else 0


if __name__ == "__main__":
    sys.exit(main())
