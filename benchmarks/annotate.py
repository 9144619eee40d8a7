"""How many labels does the annotation server keep a second, and how soon are they acknowledged?

The server of a study runs as a process of its own; 50 annotators save labels over HTTP, each save
acknowledged once it is on the disk. Two loads: every annotator sends 20 saves at once, 1,000 in
all; and every annotator sends the next save when the last one is acknowledged. Beside it, on the
same disk in the same run:

    bare SQLite    one connection that commits one event after the other: the disk's limit

A save takes from its first byte to the end of its answer; `cpu` is the processor time of the server
for one save. The repetitions alternate.

    python benchmarks/annotate.py
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import aiohttp

from judgebench.annotation.screens import Option, Screen, ScreenField, Section
from judgebench.annotation.store import SERVED, Store, open_store

PEOPLE, FIELDS = 50, 8
SAVES = 4 if "--quick" in sys.argv else 20
OPTIONS = tuple(Option(value=label, text=label) for label in ("none", "mild", "severe"))
NUMBERS = count(1)
SERVE = (
    "import sys, time; from pathlib import Path; from judgebench.annotation import server;"
    "begin = time.process_time();"
    "server.serve(Path(sys.argv[1]), port=0); print(time.process_time() - begin)"
)
# Saves in flight for each annotator.
LOADS = {f"{PEOPLE * SAVES:,} at once": SAVES, f"{PEOPLE} in turn": 1}


class Round(NamedTuple):
    """All saves of one repetition."""

    a_second: float
    seconds: list[float]
    processor_s: float  # of the server, for one save


def screen(name: str) -> Screen:
    fields = tuple(
        ScreenField(metric=f"m{n}", title=f"M{n}", question="How bad is it?", options=OPTIONS)
        for n in range(FIELDS)
    )
    section = Section(heading="Answer", text="Drink water and rest. " * 50)
    return Screen(id=name, group=name, sections=(section,), fields=fields)


def make_study(folder: Path) -> Path:
    meta = {"name": "bench", "task": "labels", "seed": 0, "guidelines": ""}
    with closing(Store.create(folder / SERVED, meta)) as store:
        store.put([screen(f"s{n}") for n in range(SAVES)])
        store.assign({f"p{n}": [f"s{n}" for n in range(SAVES)] for n in range(PEOPLE)})
    return folder


def measured(study: Path, in_flight: int) -> Round:
    """One repetition with a server in a process of its own."""
    arguments = [sys.executable, "-c", SERVE, str(study)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().partition(" at ")[2].strip()
            a_second, seconds = asyncio.run(saves_of_all(study, address, in_flight))
        finally:
            process.send_signal(signal.SIGINT)
            told = process.stdout.read().split()
    return Round(a_second, seconds, float(told[-1]) / len(seconds))


def event(number: int) -> dict[str, Any]:
    of = screen(f"s{number % SAVES}")
    return {
        "client_id": f"{next(NUMBERS):020}", "screen": of.id, "hash": of.hash,
        "field": f"m{number % FIELDS}", "label": "mild", "visible_ms": 900,
        "at": "2026-01-01T00:00:00Z",
    }  # fmt: skip


async def saves_of_all(study: Path, address: str, in_flight: int) -> tuple[float, list[float]]:
    """50 annotators send 20 saves each, so many of them at once: saves a second, and the seconds
    that each took."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        seconds: list[float] = []

        async def saves(cookie: str, bodies: Iterator[dict[str, Any]]) -> None:
            headers = {"X-Judgebench": "1", "Origin": address, "Cookie": cookie}
            for body in bodies:
                begin = time.perf_counter()
                url = f"{address}/api/events"
                async with session.post(url, json=body, headers=headers) as answer:
                    told = await answer.json()
                seconds.append(time.perf_counter() - begin)
                assert told.get("saved") == [body["events"][0]["client_id"]], told

        work = []
        port = address.rpartition(":")[2]
        with open_store(study) as store:
            for n in range(PEOPLE):
                token = store.enter(store.make_link(f"p{n}", 600), 600)
                bodies = iter([{"events": [event(k)]} for k in range(SAVES)])
                cookie = f"judgebench-{port}-annotator={token}"
                work += [saves(cookie, bodies) for _ in range(in_flight)]
        begin = time.perf_counter()
        await asyncio.gather(*work)
        return len(seconds) / (time.perf_counter() - begin), seconds


def bare_commits(folder: Path, commits: int) -> float:
    """Commits a second of one event each, with the settings of a study."""
    (folder / "bare").mkdir(exist_ok=True)
    path = make_study(folder / "bare" / str(next(NUMBERS))) / SERVED
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        sql = "INSERT INTO events VALUES (NULL, ?, 'a', 's', 'h', 'f', 'l', '', '', 1, '', '')"
        begin = time.perf_counter()
        for _ in range(commits):
            connection.execute(sql, (f"{next(NUMBERS):020}",))
        return commits / (time.perf_counter() - begin)


def show(name: str, rounds: list[Round], bare: float) -> None:
    rates = sorted(one.a_second for one in rounds)
    times = [s for one in rounds for s in one.seconds]
    rate, p95 = median(rates), quantiles(times, n=20)[-1]
    noise = f"{rates[0]:.0f}-{rates[-1]:.0f}"
    print(f"  {name:26}{rate:8.0f}{noise:>12}{rate / bare:8.2f}", end="")
    print("".join(f"{1000 * value:9.0f}" for value in (median(times), p95, max(times))), end="")
    print(f"{1000 * median(one.processor_s for one in rounds):10.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="one repetition of 4 saves each, not five of 20"
    )
    parser.add_argument("--folder", type=Path, help="where the files go: the disk to measure")
    asked = parser.parse_args()
    repetitions = 1 if asked.quick else 5
    found: dict[str, list[Round]] = {load: [] for load in LOADS}
    bare = []
    with TemporaryDirectory(dir=asked.folder) as name:
        for repetition in range(repetitions + 1):
            bare.append(bare_commits(Path(name), 100 if asked.quick else 1000))
            for n, load in enumerate(found):
                study = make_study(Path(name) / f"{repetition}-{n}")
                one = measured(study, LOADS[load])
                if repetition:  # the first is to warm up
                    found[load].append(one)
    limit = median(bare)
    print(f"  bare SQLite: {limit:.0f} commits a second ({min(bare):.0f}-{max(bare):.0f})")
    print(f"  {'':26}{'saves/s':>8}{'min-max':>12}{'/ bare':>8}", end="")
    print(f"{'median':>9}{'p95':>9}{'max ms':>9}{'cpu ms':>10}")
    for load, rounds in found.items():
        show(load, rounds, limit)


if __name__ == "__main__":
    main()
