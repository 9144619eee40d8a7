"""What must never be imported by what: prohibitions, each with its name."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from judgebench.features import FEATURES as DECLARED
from judgebench.runs.features import FeatureParts

PACKAGE = Path(__file__).resolve().parents[1] / "judgebench"
GROUND = {
    "errors", "text", "records", "files", "stats", "features",
    "version",
}  # fmt: skip
CORE = {
    "rubric", "prompt", "data", "models", "judges", "studies", "runs", "alignment",
    "results", "people", "progress", "writer", "learning", "protocol",
}  # fmt: skip
FEATURES = {"comparison", *(feature.package for feature in DECLARED.values())}
ENTRANCE = {
    "",
    "__main__",
    "checklist",
    "cli",
    "exporting",
    "planning",
    "reporting",
    "setup_files",
    "supported",
}
HEAVY = [
    "litellm", "torch", "transformers", "vllm", "outlines", "matplotlib", "pandas", "xllamacpp",
    "scipy.stats", "sklearn", "krippendorff", "safetensors", "peft", "accelerate",
    "rouge_score", "sacrebleu", "nltk", "bert_score", "ot",
]  # fmt: skip
PART_OF = {
    "yaml": "pyyaml", "markdown_it": "markdown-it-py", "pydantic_core": "pydantic",
    "markupsafe": "jinja2",
}  # fmt: skip
READS_FILES = {"judgebench.runs", "judgebench.files", "judgebench.data"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def room(dotted: str) -> str:
    """The room that `judgebench.x.y` belongs to; empty for the package itself."""
    return [*dotted.split("."), ""][1]


def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, path: Path) -> Iterator[tuple[str, int]]:
    """(module, line) of every import below `tree`; `from a import b` names a and a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            assert node.module is not None
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def at_import(tree: ast.Module) -> ast.Module:
    """The statements that run when a module is imported: function bodies and `if TYPE_CHECKING`
    are left out."""

    class Bare(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> None: ...

        def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None: ...

        def visit_Lambda(self, node: ast.Lambda) -> ast.Constant:
            return ast.Constant(None)

        def visit_If(self, node: ast.If) -> ast.AST | None:
            return None if "TYPE_CHECKING" in ast.unparse(node.test) else self.generic_visit(node)

    return Bare().visit(tree)


def known_imports(tree: ast.Module, path: Path) -> set[str]:
    """The modules of judgebench that a module imports, also inside functions."""
    return {m for m, _ in imports(tree, path) if m.startswith("judgebench.")}


@cache
def parsed() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


@cache
def known() -> dict[str, set[str]]:
    """What each module imports of judgebench."""
    return {dotted(path): known_imports(tree, path) for path, tree in parsed().items()}


def offenders(rooms: set[str], forbidden: Callable[[str, str], bool]) -> str:
    """A line `module imports module` for each forbidden import of the modules in these rooms."""
    return "\n".join(
        f"{module} imports {found}"
        for module, imported in known().items()
        if room(module) in rooms
        for found in sorted(imported)
        if forbidden(module, found)
    )


def test_every_module_lies_in_a_room() -> None:
    assert {room(module) for module in known()} <= GROUND | CORE | FEATURES | ENTRANCE


def test_ground_floor_and_core_import_no_feature_and_no_entrance() -> None:
    above = FEATURES | ENTRANCE - {""}
    assert not offenders(GROUND | CORE, lambda _, found: room(found) in above)


def test_the_ground_floor_knows_nobody_above_it() -> None:
    assert not offenders(GROUND, lambda _, found: room(found) not in GROUND | {""})


def test_a_feature_imports_no_other_feature() -> None:
    def forbidden(module: str, found: str) -> bool:
        return room(found) in (FEATURES | ENTRANCE) - {room(module), ""}

    assert not offenders(FEATURES, forbidden)


def test_results_know_no_analysis() -> None:
    assert not offenders(
        {"results"}, lambda _, found: room(found) in {"alignment", "runs", "studies"}
    )


def test_studies_and_alignment_read_no_files() -> None:
    def forbidden(module: str, found: str) -> bool:
        if module == "judgebench.alignment.analysis":  # jb.align takes a run folder or tables too
            return False
        return any(found.startswith(reader) for reader in READS_FILES)

    assert not offenders({"studies", "alignment"}, forbidden)


def circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Names that lead to each other, also by way of others."""
    below: dict[str, set[str]] = {}
    for module in graph:
        reached, waiting = set[str](), [*graph[module]]
        while waiting:
            if (found := waiting.pop()) not in reached:
                reached.add(found)
                waiting += graph[found]
        below[module] = reached
    return [
        circle
        for module in sorted(graph)
        if (circle := {m for m in below[module] if module in below[m]}) and module == min(circle)
    ]


def test_no_modules_import_each_other() -> None:
    """Also inside functions and under TYPE_CHECKING: findings name what presents them."""
    graph = {module: imported & known().keys() for module, imported in known().items()}
    assert not [sorted(circle) for circle in circles(graph)]


def test_no_import_runs_against_the_order_of_rooms() -> None:
    """Rooms import each other in one direction only, inside functions too."""
    graph = {room(module): set[str]() for module in known()}
    for module, imported in known().items():
        graph[room(module)] |= graph.keys() & {room(found) for found in imported} - {room(module)}
    assert not circles(graph)


def test_every_presentation_that_findings_name_is_there() -> None:
    named = [
        node.value.value
        for tree in parsed().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "presented_by"
    ]
    assert named
    for module, _, function in (name.partition(":") for name in named):
        assert callable(getattr(import_module(module), function))


def test_no_private_name_is_imported() -> None:
    every = {room(module) for module in known()}
    assert not offenders(every, lambda _, found: found.rsplit(".", 1)[1].startswith("_"))


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    found = [
        f"{dotted(path)} imports {module} at module level (line {line})"
        for path, tree in parsed().items()
        for module, line in imports(at_import(deepcopy(tree)), path)
        if any(module == heavy or module.startswith(f"{heavy}.") for heavy in HEAVY)
    ]
    assert not found


def test_what_is_imported_at_once_is_declared() -> None:
    """A package that another one happens to bring along is missing on somebody else's machine."""
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.split(r"[^\w.-]", line)[0] for line in project["dependencies"]}
    found = {
        f"{dotted(path)} imports {top}"
        for path, tree in parsed().items()
        for module, _ in imports(at_import(deepcopy(tree)), path)
        if (top := module.partition(".")[0]) not in {"judgebench", *sys.stdlib_module_names}
        if PART_OF.get(top, top) not in declared
    }
    assert not found


def test_the_check_sees_what_it_is_to_see() -> None:
    source = """
import judgebench.cli
if TYPE_CHECKING:
    import torch
def f():
    from judgebench import alignment
    import pandas
class C:
    import scipy.stats as s
    def g(self): import vllm
"""
    tree = ast.parse(source)
    assert {m for m, _ in imports(tree, PACKAGE)} == {
        "judgebench", "judgebench.alignment", "judgebench.cli", "pandas", "scipy.stats", "torch",
        "vllm",
    }  # fmt: skip
    assert {m for m, _ in imports(at_import(tree), PACKAGE)} == {"judgebench.cli", "scipy.stats"}


@pytest.mark.parametrize("name", DECLARED)
def test_a_feature_has_what_it_declares(name: str) -> None:
    feature = DECLARED[name]
    parts = feature.parts

    assert isinstance(parts, FeatureParts)
    assert bool(parts.settings) == bool(feature.section)
    assert bool(parts.learning) == bool(feature.judge_keys)
    assert bool(parts.run) == bool(feature.other_command)
    assert bool(parts.rows) == bool(feature.table)
    assert bool(parts.read) == feature.reads_runs
    assert bool(parts.measure) or not feature.measures_every_study
    assert parts.checks.keys() == {kind.name for kind in feature.files}
    assert parts.lists.keys() == {*feature.lists}


def test_a_feature_is_not_imported_before_it_is_used() -> None:
    script = "import judgebench as jb, sys; jb.load_bench('demo').close(); print(*sys.modules)"
    asked = [sys.executable, "-c", script]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    unused = {f"judgebench.{feature.package}" for feature in DECLARED.values() if feature.section}

    assert "judgebench.runs.load" in done.stdout.split()
    assert not unused.intersection(done.stdout.split())
