"""The worlds of `benchmarks/decisions.py`."""

from types import ModuleType

from benchmark_scripts import benchmark


def decisions(name: str) -> ModuleType:
    """The script as a module of that name, which nobody else has."""
    return benchmark("decisions", name)
