"""Every public function has an example in its docstring, and the example runs."""

import doctest
import inspect
from pathlib import Path

import pytest

import judgebench as jb

# Those of features are tested with them.
OF_FEATURES = (
    "annotate", "collected", "compare", "consistency", "correlate", "count_drawn", "draw",
    "estimate", "export_judge", "prefer", "rank", "score", "stress", "tune", "watch",
)  # fmt: skip
FUNCTIONS = sorted(
    name for name in jb.__all__ if inspect.isfunction(getattr(jb, name)) and name not in OF_FEATURES
)


def examples(found: object, name: str) -> list[doctest.DocTest]:
    return [t for t in doctest.DocTestFinder(recurse=False).find(found, name) if t.examples]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_public_function_runs(here: Path, name: str) -> None:
    (test,) = examples(getattr(jb, name), name)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


def test_the_other_examples_run() -> None:
    assert doctest.testmod(jb).failed == 0
    (test,) = examples(jb.Rubric.from_labels, "from_labels")
    test.globs["Rubric"] = jb.Rubric
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_example_of_a_required_outcome_runs(here: Path) -> None:
    decisions = jb.decide(jb.open_run("runs/small"))
    (test,) = examples(type(decisions).require, "require")
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0
