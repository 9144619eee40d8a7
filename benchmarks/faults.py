"""How do answers end when the endpoint fails in every known way? Prints the fault table.

10,000 answers go through the fault server of the tests (tests/cases/fault_server.py, real HTTP on
loopback) with the whole runner and an `openai-compatible:` judge, and 500 through `litellm:`. Every
answer's fault, ending and number of calls follow from the seed and are known beforehand; whatever
came out otherwise is printed, and the exit status is then 1.

    python benchmarks/faults.py          # the table that docs/faults.md shows, as Markdown
    python benchmarks/faults.py --quick  # 500 answers, one kind of judge

Needs no more than judgebench itself.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "cases"))

from fault_account import Ending, complaints, endings, judge_all, table, write_bench
from fault_server import FaultServer

from judgebench.runs.folder import RunFolder

SEEDS = {"openai-compatible": 1, "litellm": 4}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of 500 answers")
    quick = parser.parse_args().quick
    wrong = 0
    for kind, answers in (("openai-compatible", 500 if quick else 10_000), ("litellm", 500)):
        if not (quick and kind == "litellm"):
            wrong += shown(kind, answers)
    sys.exit(1 if wrong else 0)


def shown(kind: str, answers: int) -> int:
    """Run, print what came of it, and return how many answers ended otherwise than expected."""
    with TemporaryDirectory() as name, FaultServer(SEEDS[kind]) as server:
        folder = RunFolder(Path(name) / "run")
        began = time.perf_counter()
        judge_all(write_bench(Path(name), server, answers, kind), folder)
        seconds = time.perf_counter() - began
        found = endings(server, folder)
    wrong = complaints(server, found, answers)
    print(table(found))
    print(summary(kind, server, found, seconds))
    print("\n".join(wrong) or "Every answer ended as it was to end.", end="\n\n")
    return len(wrong)


def summary(kind: str, server: FaultServer, found: dict[int, Ending], seconds: float) -> str:
    """How many calls were made, and where those went that the server did not answer."""
    calls = sum(ending.calls for ending in found.values())
    came, cut_off = server.received.total(), server.cut_off.total()
    return (
        f"{len(found)} answers through {kind} in {seconds:.0f} s: {calls} calls by the verdicts' "
        f"own count = {came - cut_off} that met their fault or reply + {cut_off} cut off as the "
        f"server died + {calls - came} that found nobody listening ({server.deaths} deaths)."
    )


if __name__ == "__main__":
    main()
