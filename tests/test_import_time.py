"""What is slow to import is imported by whoever uses it, and not by `import judgebench`."""

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
HEAVY = {
    "litellm", "torch", "transformers", "vllm", "outlines", "matplotlib", "pandas", "pyarrow",
    "xllamacpp", "scipy.stats", "sklearn", "krippendorff", "openai",
}  # fmt: skip
# The command line comes first: it is the last to import what others import.
MODULES = (
    ".".join(path.relative_to(REPO).with_suffix("").parts).removesuffix(".__init__")
    for path in (REPO / "judgebench").rglob("*.py")
    if path.stem != "__main__"
)
ALL = ["judgebench.cli.app", *sorted(MODULES)]


FIRST = {"numpy", "pydantic", "scipy", "yaml", "typer"}  # which `import judgebench` leaves alone


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [(["judgebench"], HEAVY | FIRST), (["judgebench.cli.app"], HEAVY), (ALL, HEAVY)],
    ids=["judgebench", "cli", "all"],
)
def test_importing_brings_no_heavy_library_along(modules: list[str], heavy: set[str]) -> None:
    script = f"import {', '.join(modules)}; import sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=REPO, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert modules[-1] in loaded
    assert not loaded & heavy


def test_help_needs_neither_rich_nor_anything_else_that_is_slow() -> None:
    script = (
        "import sys; from judgebench.cli.app import app; "
        "app(['--help'], standalone_mode=False); print(*sys.modules, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=REPO, capture_output=True, text=True, check=False
    )
    assert "judgebench decide" in done.stdout, done.stderr
    assert not set(done.stdout.split()) & (HEAVY | {"rich", "pydantic", "pydantic_core", "numpy"})
