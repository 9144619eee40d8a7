"""The way of one verdict: it enters no more files than the last rebuild left, at every step.

A rebuild lowers what it made shorter, and the module names of benchmarks/house.py --files say which
files these are.
"""

from pathlib import Path

import pytest
from benchmark_scripts import benchmark

REPO = Path(__file__).resolve().parents[1]
MAX_FILES = {"judged": 17, "opened": 17, "decided": 20}
ONLY_SHOWN = ("decisions/context.py", "decisions/report.py", "alignment/")


@pytest.fixture(scope="module")
def files_by_step() -> dict[str, list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPO / "benchmarks"))
        return dict(benchmark("house").ways_of_a_verdict(REPO, REPO / "judgebench"))


@pytest.mark.parametrize("step", MAX_FILES)
def test_a_verdict_enters_few_files(files_by_step: dict[str, list[str]], step: str) -> None:
    assert len(files_by_step[step]) <= MAX_FILES[step], files_by_step[step]


def test_what_only_a_report_shows_decides_nothing(files_by_step: dict[str, list[str]]) -> None:
    assert not [file for file in files_by_step["decided"] if file.startswith(ONLY_SHOWN)]
