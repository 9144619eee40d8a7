"""The size of a checkout in numbers that no change of layout moves: what tests/test_size.py holds
and benchmarks/house.py prints.

Expression nodes and statements are those of `ast`, without imports and docstrings, by the folder
of `judgebench/` that they are in ("(top)" for the files that are in none).
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import click
import typer

VAGUE_NAMES = ("found", "one", "said", "told", "own")
FILE_MODEL = "StrictModel"  # every file of settings is read by a class that descends from it


@dataclass(frozen=True)
class _Package:
    nodes: Counter[str] = field(default_factory=Counter)  # by folder, as are statements and files
    statements: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    classes: list[ast.ClassDef] = field(default_factory=list)

    def add(self, folder: str, node: ast.AST) -> None:
        if isinstance(node, ast.expr):
            self.nodes[folder] += 1
            self.names[node.id if isinstance(node, ast.Name) else ""] += 1
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstring = isinstance(node.value.value, str)
            self.nodes[folder] -= docstring
            self.statements[folder] += not docstring
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom):
            self.statements[folder] += 1
        if isinstance(node, ast.ClassDef):
            self.classes.append(node)


@cache
def _package(root: Path) -> _Package:
    package, counts = root / "judgebench", _Package()
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        folder = parts[0] if len(parts) > 1 else "(top)"
        counts.files[folder] += 1
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            counts.add(folder, node)
    return counts


def nodes_by_package(root: Path) -> dict[str, int]:
    """Expression nodes: neither dense lines nor long ones make them fewer."""
    return dict(_package(root).nodes)


def statements_by_package(root: Path) -> dict[str, int]:
    return dict(_package(root).statements)


def n_files(root: Path) -> int:
    return _package(root).files.total()


def n_test_lines(root: Path) -> int:
    return sum(path.read_text("utf-8").count("\n") for path in (root / "tests").rglob("*.py"))


def name_uses(root: Path) -> dict[str, int]:
    """How often the package reads or binds a variable of a name that says nothing."""
    return {name: _package(root).names[name] for name in VAGUE_NAMES}


def n_config_keys(root: Path) -> int:
    """Fields of the classes that read files of settings; an inherited field counts once."""
    classes = _package(root).classes
    models, n = {FILE_MODEL}, 0
    while n < len(models):
        n = len(models)
        models |= {c.name for c in classes if models & {ast.unparse(base) for base in c.bases}}
    fields = [
        ast.unparse(line.annotation)
        for c in classes
        if c.name in models
        for line in c.body
        if isinstance(line, ast.AnnAssign)
    ]
    return sum(not annotation.startswith("ClassVar") for annotation in fields)


def leaves() -> tuple[int, int]:
    """How many commands the package that is imported has, and how many parameters they have."""
    from judgebench.cli.app import app

    commands = list(_commands(typer.main.get_command(app)))
    parameters = [p for command in commands for p in command.params if p.name != "help"]
    return len(commands), len(parameters)


def _commands(command: click.Command) -> Iterator[click.Command]:
    inner = getattr(command, "commands", None)  # typer's groups are no click.Group in every version
    if not inner:
        yield command
    for each in (inner or {}).values():
        yield from _commands(each)
