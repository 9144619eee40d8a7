"""The house stands on its floors: a room uses only what is above it in the list."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "judgebench"
FLOORS = [
    "errors", "records", "shipped", "files", "answer_file", "yaml_file", "web_page", "rubric",
    "prompt", "data", "stats", "truth", "backends", "judges", "probes", "proxy", "verdict_file",
    "store", "bench", "runner", "proxy_run", "align", "stress", "decide", "ranking", "report",
    "check", "progress", "cli_attack", "cli_score", "cli_rank", "cli",
]  # fmt: skip
HEAVY = [
    "litellm", "torch", "transformers", "vllm", "outlines", "matplotlib", "pandas", "xllamacpp",
    "scipy.stats", "sklearn", "krippendorff", "faiss", "pylate", "safetensors",
]  # fmt: skip
MODULES = sorted(PACKAGE.rglob("*.py"))


def room(dotted: str) -> str:
    """The floor that `judgebench.x.y` belongs to; empty for the package itself."""
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


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_every_module_has_its_floor(path: Path) -> None:
    assert room(dotted(path)) in ("", "__main__", *FLOORS)


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_imports_only_run_down_the_floors(path: Path) -> None:
    own = room(dotted(path))
    if own in ("", "__main__"):
        return
    known = [m for m in map(dotted, MODULES) if m]
    offenders = {
        f"{module} (line {line})"
        for module, line in imports(parsed(path), path)
        if module in known and room(module) and FLOORS.index(room(module)) > FLOORS.index(own)
    }
    assert not offenders, f"{dotted(path)} stands above {', '.join(sorted(offenders))}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_heavy_libraries_are_imported_where_they_are_used(path: Path) -> None:
    offenders = {
        f"{module} (line {line})"
        for module, line in imports(at_import(parsed(path)), path)
        for heavy in HEAVY
        if module == heavy or module.startswith(f"{heavy}.")
    }
    assert not offenders, f"{dotted(path)} imports {', '.join(sorted(offenders))} at module level"


def test_the_check_sees_what_it_is_to_see() -> None:
    source = """
import judgebench.cli
if TYPE_CHECKING:
    import torch
def f():
    from judgebench import align
    import pandas
class C:
    import scipy.stats as s
    def g(self): import vllm
"""
    tree = ast.parse(source)
    assert {m for m, _ in imports(tree, PACKAGE)} == {
        "judgebench", "judgebench.align", "judgebench.cli", "pandas", "scipy.stats", "torch",
        "vllm",
    }  # fmt: skip
    assert {m for m, _ in imports(at_import(tree), PACKAGE)} == {"judgebench.cli", "scipy.stats"}
