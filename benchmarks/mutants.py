"""How many seeded faults the tests find: an operator or number changed, then its room tested.

    python benchmarks/mutants.py FAULTS.json --make 60      # draw faults from this checkout
    python benchmarks/mutants.py FAULTS.json                # seed each, run the tests

A fault is kept as the name of its function and its statement before and after, so that the same
faults can be seeded in another version, wherever the function stands there. Tests run in a copy.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
# Where faults are seeded, and the tests that are to find them (names of old and new folders).
ROOMS = {
    "stats": ("stats", "alignment", "align"),
    "studies": ("studies", "study", "stats", "alignment", "align", "api/test_study.py"),
    "study": ("studies", "study", "stats", "alignment", "align", "api/test_study.py"),
    "decisions": ("decisions", "decide"), "decide": ("decisions", "decide"),
    "runs": ("runs", "runner", "store"), "store": ("runs", "runner", "store"),
    "learning": ("tuning",),
}  # fmt: skip
OF_RUNS = {"folder", "verdict_log"}
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}  # fmt: skip


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node


def faults_of(path: Path) -> Iterator[dict[str, str]]:
    """Every fault that can be seeded in a module, in simple statements of functions."""
    for name, function in functions(ast.parse(path.read_text("utf-8"))):
        for statement in ast.walk(function):
            if isinstance(statement, ast.Return | ast.Assign | ast.AugAssign | ast.Expr):
                before = ast.unparse(statement)
                for after in changed(statement):
                    yield {"function": name, "room": path.parent.name, "before": before,
                           "after": after}  # fmt: skip


def changed(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        match node:
            case ast.Compare(ops=[op]) if type(op) in SWAPS:
                node.ops = [SWAPS[type(op)]()]  # type: ignore[list-item]
                yield ast.unparse(statement)
                node.ops = [op]
            case ast.BinOp(op=kind) | ast.BoolOp(op=kind) if type(kind) in SWAPS:
                node.op = SWAPS[type(kind)]()  # type: ignore[assignment]
                yield ast.unparse(statement)
                node.op = kind  # type: ignore[assignment]
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                node.value = number + 1
                yield ast.unparse(statement)
                node.value = number


def draw(n: int) -> list[dict[str, str]]:
    """As many from each room, from the verdict log and the folds as well."""
    by_room: dict[str, list[dict[str, str]]] = {}
    for path in sorted((REPO / "judgebench").rglob("*.py")):
        room = path.relative_to(REPO / "judgebench").parts[0]
        if room in ROOMS and (room not in ("runs", "store") or path.stem in OF_RUNS):
            by_room.setdefault(room, []).extend(faults_of(path))
    rng = random.Random(1)
    share = -(-n // len(by_room))
    return [fault for room in by_room.values() for fault in rng.sample(room, share)][:n]


def seed(fault: dict[str, str], package: Path) -> bool:
    """Seed a fault; False where this version has no such statement."""
    for path in sorted(package.rglob("*.py")):
        text = path.read_text("utf-8")
        for name, function in functions(ast.parse(text)) if fault["before"][:9] else ():
            for node in ast.walk(function) if name == fault["function"] else ():
                if isinstance(node, ast.stmt) and ast.unparse(node) == fault["before"]:
                    lines = text.splitlines(keepends=True)
                    assert node.end_lineno is not None
                    lines[node.lineno - 1 : node.end_lineno] = [
                        " " * node.col_offset + line + "\n" for line in fault["after"].splitlines()
                    ]
                    path.write_text("".join(lines), "utf-8")
                    return True
    return False


def is_found(fault: dict[str, str]) -> bool | None:
    """Whether a test fails with the fault; None where it cannot be seeded."""
    with tempfile.TemporaryDirectory() as place:
        copy = shutil.copytree(
            REPO, Path(place) / "copy", ignore=shutil.ignore_patterns(".git", ".venv*", "*cache*")
        )
        if not seed(fault, copy / "judgebench"):
            return None
        where = [str(p) for n in ROOMS[fault["room"]] if (p := copy / "tests" / n).exists()]
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider",
                   "-m", "not long and not model", *where]  # fmt: skip
        env = {**os.environ, "PYTHONPATH": str(copy), "OPENBLAS_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                command, cwd=copy, env=env, capture_output=True, timeout=3600, check=False
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", type=Path)
    parser.add_argument("--make", type=int)
    arguments = parser.parse_args()
    if arguments.make:
        arguments.faults.write_text(json.dumps(draw(arguments.make), indent=1))
        return
    counts = {True: 0, False: 0, None: 0}
    for fault in json.loads(arguments.faults.read_text()):
        found = is_found(fault)
        counts[found] += 1
        if not found:
            word = "lives" if found is False else "is not in this version"
            print(f"{word}: {fault['function']}: {fault['before']!r} -> {fault['after']!r}")
        print(f"{counts[True]} found, {counts[False]} live, {counts[None]} not seeded", flush=True)


if __name__ == "__main__":
    main()
