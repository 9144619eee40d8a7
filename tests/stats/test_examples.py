"""The examples in the docstrings of the statistics run."""

import doctest
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest

from judgebench import stats
from judgebench.stats.arrays import Clusters

MODULES = [module.name for module in iter_modules(stats.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_run(name: str) -> None:
    known = {"np": np, "Clusters": Clusters}
    found = doctest.testmod(import_module(f"judgebench.stats.{name}"), extraglobs=known)
    assert found.failed == 0
    assert found.attempted or name in {"calibration_error", "thresholds"}
