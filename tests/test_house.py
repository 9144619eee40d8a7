"""What must never be imported by what: prohibitions, each with its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgebench.features import WINGS as NAMES

PACKAGE = Path(__file__).resolve().parents[1] / "judgebench"
GROUND = {"errors", "records", "files", "texts", "yaml_file", "shipped", "stats"}
CORE = {
    "rubric", "prompt", "data", "backends", "judges", "store", "study", "runner", "align",
    "report", "results", "web", "progress", "writer",
}  # fmt: skip
WINGS = set(NAMES)
ENTRANCE = {"", "__main__", "api", "cli", "check", "features"}
HEAVY = [
    "litellm", "torch", "transformers", "vllm", "outlines", "matplotlib", "pandas", "xllamacpp",
    "scipy.stats", "sklearn", "krippendorff", "pylate", "safetensors",
]  # fmt: skip
READS_FILES = {"judgebench.store", "judgebench.files", "judgebench.data"}
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


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def known_imports(path: Path) -> set[str]:
    """The modules of judgebench that a module imports, also inside functions."""
    return {m for m, _ in imports(parsed(path), path) if m.startswith("judgebench.")}


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_every_module_lies_in_a_room(path: Path) -> None:
    assert room(dotted(path)) in GROUND | CORE | WINGS | ENTRANCE


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_ground_floor_and_core_import_no_wing_and_no_entrance(path: Path) -> None:
    if room(dotted(path)) in GROUND | CORE:
        above = WINGS | ENTRANCE - {"", "features"}
        assert not {m for m in known_imports(path) if room(m) in above}


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_the_ground_floor_knows_nobody_above_it(path: Path) -> None:
    if room(dotted(path)) in GROUND:
        assert not {m for m in known_imports(path) if room(m) not in GROUND | {""}}


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_wing_imports_no_other_wing(path: Path) -> None:
    own = room(dotted(path))
    if own in WINGS:
        allowed = {own, "", "features", *({"cli", "api"} if path.stem == "commands" else ())}
        assert not {m for m in known_imports(path) if room(m) in (WINGS | ENTRANCE) - allowed}


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_report_knows_no_analysis(path: Path) -> None:
    if room(dotted(path)) == "report":
        assert not {m for m in known_imports(path) if room(m) in {"align", "runner", "study"}}


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_study_and_align_read_no_files(path: Path) -> None:
    if room(dotted(path)) in {"study", "align"}:
        found = known_imports(path)
        assert not {m for m in found if any(m.startswith(r) for r in READS_FILES)}


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_no_private_name_is_imported(path: Path) -> None:
    private = {m for m in known_imports(path) if m.rsplit(".", 1)[1].startswith("_")}
    assert private <= {"judgebench.__version__"}


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
