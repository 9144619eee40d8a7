"""The tables that a version's tests have understood, and how: a corpus to hold another reader to.

    python benchmarks/record_tables.py --to FOLDER [--commit 3ab020b5]
    python benchmarks/record_tables.py --to FOLDER --quick     # of one folder of tests

The quick tests of that commit run in a temporary worktree, with this file as a plugin. Each call of
`judgebench.data.understand.understand` that differs from the others leaves a pickle of `(given,
read)`: the tables, bytes or DataFrames, with the columns that were named; and the columns, metrics,
judges and sentences that were understood, or the error. A pickle needs pandas and nothing of
judgebench. Files of more than 2 MB and DataFrames of more than 5,000 rows are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
COMMIT = "3ab020b5"  # the last version that guesses
QUICK = "tests/first_ten_minutes"
FOLDER = "JUDGEBENCH_CALLS"  # the variable that tells the plugin where to write
MOST_BYTES, MOST_ROWS = 2_000_000, 5_000


def pytest_configure(config: Any) -> None:
    """Record every call while tests run."""
    module: Any = import_module("judgebench.data.understand")
    understand, folder = module.understand, Path(os.environ[FOLDER])

    def recorded(
        labels: Any,
        verdicts: Any = (),
        answers: Any = None,
        hints: Any = module.NO_HINTS,
        *,
        labelled: bool = True,
    ) -> Any:
        tables = [labels, *verdicts, *([] if answers is None else [answers])]
        given = {
            "labels": _copy(labels),
            "verdicts": [_copy(table) for table in verdicts],
            "answers": answers and _copy(answers),
            "named": asdict(hints),
            "labelled": labelled,
        }
        try:
            known = understand(labels, [*verdicts], answers, hints, labelled=labelled)
        except Exception as error:
            _keep(folder, tables, given, {"error": f"{type(error).__name__}: {error}"})
            raise
        _keep(folder, tables, given, reading_of(known))
        return known

    module.understand = recorded


def _copy(table: Any) -> dict[str, Any] | None:
    """What a table holds; None where it is too large or not there."""
    about = {"name": table.path.name, "sheet": table.sheet, "judge": table.judge}
    if table.frame is not None:
        small = len(table.frame) <= MOST_ROWS
        return {**about, "frame": table.frame.copy()} if small else None
    there = table.path.is_file() and table.path.stat().st_size <= MOST_BYTES
    return {**about, "bytes": table.path.read_bytes()} if there else None


def reading_of(known: Any) -> dict[str, Any]:
    """What was understood, as plain data."""
    return {
        "error": None,
        "columns": known.as_spec(),
        "metrics": [(m.id, m.kind, [x.text for x in m.labels]) for m in known.rubric.metrics],
        "judges": [([*judge.names], judge.table.name) for judge in known.judges],
        "sentences": [*known.lines],
        "ids": dict(known.ids),
    }


def _keep(folder: Path, tables: list[Any], given: dict[str, Any], read: dict[str, Any]) -> None:
    """Write the call unless the same tables were understood the same way before. A line of `calls`
    counts it all the same."""
    copies = [given["labels"], *given["verdicts"], *([given["answers"]] * (len(tables) > 1))]
    whole = len([c for c in copies if c]) == len(tables)
    parts = [
        frame.to_json(orient="split", default_handler=str)
        if (frame := (copy or {}).get("frame")) is not None
        else (copy or {}).get("bytes")
        for copy in copies
    ]
    names = [{k: v for k, v in (c or {}).items() if k not in ("frame", "bytes")} for c in copies]
    key = repr((parts, names, given["named"], given["labelled"]))
    name = hashlib.sha256(key.encode()).hexdigest()[:16] if whole else "left-out"
    with (folder / "calls").open("a", encoding="utf-8") as calls:
        calls.write(f"{name} {'error' if read['error'] else 'read'}\n")
    path = folder / f"{name}.pickle"
    if whole and not path.exists():
        path.write_bytes(pickle.dumps((given, read)))


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """A checkout of a commit, for a while."""
    git = ["git", "-C", str(REPO), "worktree"]
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "judgebench"
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def record(commit: str, tests: str, folder: Path) -> str:
    """Run the tests of a commit, and say what they left in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "calls").unlink(missing_ok=True)
    with worktree(commit) as tree:
        plugin = ["-p", Path(__file__).stem, "-p", "no:cacheprovider"]
        paths = os.pathsep.join((str(tree), str(Path(__file__).parent)))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", tests, "-q", "-m", "not long", *plugin],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": paths, FOLDER: str(folder)},
            check=False,
        )
    if not (folder / "calls").exists():
        sys.exit(f"The tests ended with {done.returncode}, and understood no table.")
    lines = (folder / "calls").read_text(encoding="utf-8").splitlines()
    names = Counter(line.partition(" ")[0] for line in lines)
    left_out = names.pop("left-out", 0)
    errors = {line.split()[0] for line in lines if line.endswith(" error")} & {*names}
    return (
        f"{len(lines):,} calls, {len(names):,} distinct ({left_out:,} left out as too large or not "
        f"there), {len(errors):,} of them ended in errors"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--to", type=Path, required=True, help="the folder of the pickles")
    parser.add_argument("--commit", default=COMMIT, help=f"the version, {COMMIT} by default")
    parser.add_argument("--tests", default="tests", help="a folder or file of tests: only these")
    parser.add_argument("--quick", action="store_true", help=f"the same as --tests {QUICK}")
    arguments = parser.parse_args()
    tests = QUICK if arguments.quick else arguments.tests
    print(record(arguments.commit, tests, arguments.to.resolve()))


if __name__ == "__main__":
    main()
