"""Tables as people have them are read right at once, or once the flags that are printed are given.

`tests/tables/cases` holds them. A case.yaml says what is right of its table; `flags` are those that
lead there.
"""

import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from benchmark_scripts import benchmark

follow_questions = benchmark("follow_questions")
TABLES = Path(__file__).resolve().parents[1] / "tables"
NAMES = sorted(path.parent.name for path in (TABLES / "cases").glob("*/case.yaml"))
QUICK = (
    "001-good-wide", "004-good-metric-and-label", "016-good-replies", "023-good-pair-votes",
    "034-gate-id", "065-doccano-hash", "071-total-row-no-order", "097-failure-not-parsable",
    "116-two-encodings",
)  # fmt: skip
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="commands run in forks")


@pytest.fixture(scope="module")
def pack() -> Any:
    follow_questions.warm_up()
    return follow_questions.Pack.load(TABLES)


@pytest.mark.parametrize("name", QUICK)
def test_a_table_is_read_right(pack: Any, name: str) -> None:
    _check(pack, name)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in NAMES if name not in QUICK])
def test_every_table_is_read_right(pack: Any, name: str) -> None:
    _check(pack, name)


def _check(pack: Any, name: str) -> None:
    source, case = pack.case(name)
    kind, text, printed = pack.try_case(source, case, ())
    if "flags" not in case:
        assert kind in ("ok", "refused well"), text
        return
    assert kind != "ok"
    flags = tuple(shlex.split(case["flags"]))
    assert {*re.findall(r"--[a-z-]+", case["flags"])} & {*re.findall(r"--[a-z-]+", printed)}
    kind, text, _ = pack.try_case(source, case, flags)
    assert kind == "ok", text
