"""How long does it take until `judgebench --help` answers, and until `import judgebench` is done?

Each is a process of its own, in turn with a bare `python -c pass`, after one turn that counts for
nothing. The limits are 300 ms and 150 ms, Python's own start included.

    python benchmarks/startup.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from statistics import median

BARE = "python -c pass"
COMMANDS = {
    BARE: ["-c", "pass"],
    "import judgebench": ["-c", "import judgebench"],
    "judgebench --help": ["-m", "judgebench", "--help"],
}
LIMITS_S = {"import judgebench": 0.150, "judgebench --help": 0.300}


def timed(arguments: list[str]) -> float:
    """Seconds until the process has ended."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def show(name: str, seconds: list[float], bare: float) -> None:
    middle, limit = median(seconds), LIMITS_S.get(name)
    print(f"  {name:20}{1000 * middle:7.0f} ms", end="")
    print(f"{1000 * min(seconds):7.0f}-{1000 * max(seconds):<6.0f}{middle / bare:10.1f}", end="")
    print(f"{1000 * limit:9.0f} ms{middle / limit:8.2f}" if limit else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three turns, not twenty-one")
    turns = 3 if parser.parse_args().quick else 21
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for turn in range(turns + 1):
        for name, arguments in COMMANDS.items():
            taken = timed(arguments)
            if turn:
                seconds[name].append(taken)
    print(f"  {f'median of {turns}':20}{'':10}{'min-max':>14}{'/ bare':>10}", end="")
    print(f"{'limit':>12}{'/ limit':>8}")
    for name, found in seconds.items():
        show(name, found, median(seconds[BARE]))


if __name__ == "__main__":
    main()
