"""The size of judgebench may only fall: budgets, the counts of the last rebuild, in size.yaml.

A rebuild lowers what it made smaller. Whoever must raise a budget says in CHANGELOG.md what for.
"""

from functools import cache
from pathlib import Path

import house_size
import pytest
import yaml

REPO = Path(__file__).resolve().parents[1]
BUDGETS = yaml.safe_load((REPO / "tests" / "size.yaml").read_text("utf-8"))
SLACK = 0.02  # a budget so far above its count is to be lowered


@cache
def counts() -> dict[str, int]:
    """Every count by the name of its budget."""
    n_commands, n_parameters = house_size.leaves()
    nodes, statements = (
        count(REPO) for count in (house_size.nodes_by_package, house_size.statements_by_package)
    )
    return {
        **{f"nodes of {package}": n for package, n in nodes.items()},
        **{f"statements of {package}": n for package, n in statements.items()},
        **{f"uses of the name {name}": n for name, n in house_size.name_uses(REPO).items()},
        "files": house_size.n_files(REPO),
        "commands": n_commands,
        "parameters": n_parameters,
        "keys of config models": house_size.n_config_keys(REPO),
        "lines of tests": house_size.n_test_lines(REPO),
    }


def budgets() -> dict[str, int]:
    flat = {name: value for name, value in BUDGETS.items() if isinstance(value, int)}
    for of in ("nodes of", "statements of", "uses of the name"):
        flat |= {f"{of} {key}": value for key, value in BUDGETS[of].items()}
    return flat


def test_every_count_has_a_budget() -> None:
    assert counts().keys() == budgets().keys()


@pytest.mark.parametrize("name", budgets())
def test_size_is_within_budget(name: str) -> None:
    count, budget = counts()[name], budgets()[name]
    assert count <= budget, f"{name}: {count:,}, allowed {budget:,} (tests/size.yaml)"
    assert budget - count <= max(20, SLACK * budget), f"{name}: lower the budget to {count:,}"
