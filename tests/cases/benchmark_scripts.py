"""Scripts of `benchmarks/` as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def benchmark(script: str, name: str = "") -> ModuleType:
    """The script as a module, of a name that nobody else has."""
    spec = importlib.util.spec_from_file_location(name or script, FOLDER / f"{script}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
