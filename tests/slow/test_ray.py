"""A local Ray cluster of two workers, one of which is killed in the middle."""

import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from killed_run import ANSWERS, REPLY, bench_file, item_of
from lanes import judged, labels_of
from loopback import PATIENCE, Body, Loopback, said, status

from judgebench.errors import RunError, SetupError
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import Engine, Parallelism, run

pytestmark = pytest.mark.ray

ray = pytest.importorskip("ray", reason="pip install 'judgebench-eval[ray]'")


TWO_WORKERS = Parallelism(engine="ray", workers=2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1")
    yield
    ray.shutdown()


def workers() -> set[int]:
    """The process ids of the actors that judge."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"ray::_Worker" in (process / "cmdline").read_bytes():
                found.add(int(process.name))
        except OSError:
            continue
    return found


def kill_one_after(asked: list[Body], calls: int, killed: list[int]) -> threading.Thread:
    """Kills one of two workers once the server was called so often."""

    def wait_and_kill() -> None:
        end = time.monotonic() + 6 * PATIENCE
        while time.monotonic() < end and not (len(asked) >= calls and len(workers()) == 2):
            time.sleep(0.02)
        victim = min(workers(), default=0)
        if victim:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    thread = threading.Thread(target=wait_and_kill)
    thread.start()
    return thread


@pytest.mark.smoke
def test_a_killed_worker_costs_no_verdict_and_doubles_none(tmp_path: Path, cluster) -> None:
    killed: list[int] = []
    with Loopback(lambda body, count: said(REPLY, after=0.3)) as server:
        bench = load_bench(bench_file(tmp_path, server.base_url))
        killer = kill_one_after(server.bodies, 20, killed)
        folder = RunFolder(tmp_path / "run")
        run(bench, folder, parallelism=TWO_WORKERS)
        killer.join()
        asked = Counter(item_of(body) for body in server.bodies)
        assert killed
        found = Counter(v.item_id for v in folder.verdicts("remote"))
        assert found == Counter(f"i{i}" for i in range(ANSWERS))
        # Only the batch of the killed worker was asked for again.
        assert sum(asked.values()) - ANSWERS <= ANSWERS // 8
        before = len(server.bodies)
        run(
            load_bench(bench_file(tmp_path, server.base_url)),
            folder,
            parallelism=TWO_WORKERS,
        )
        assert len(server.bodies) == before
    assert folder.manifest()["state"] == "finished"
    assert len(list(folder.verdicts("prior"))) == ANSWERS


def test_unreadable_replies_are_asked_again_by_workers(tmp_path: Path, cluster) -> None:
    def script(body: Body, count: int):
        again = "could not be read" in body["messages"][-1]["content"]
        return said(REPLY if again or item_of(body) != "i7" else "hm")

    with Loopback(script) as server:
        folder = RunFolder(tmp_path / "run")
        run(
            load_bench(bench_file(tmp_path, server.base_url)),
            folder,
            parallelism=TWO_WORKERS,
        )
        assert len(server.bodies) == ANSWERS + 1
    assert Counter(v.attempt for v in folder.verdicts("remote")) == {0: ANSWERS, 1: 1}


def test_a_worker_that_reaches_no_server_ends_the_run(tmp_path: Path, cluster) -> None:
    bench = bench_file(tmp_path, "http://127.0.0.1:9/v1")
    bench.write_text(bench.read_text().replace("concurrency:", "max_retries: 0\n    concurrency:"))
    with pytest.raises(RunError, match=re.escape("127.0.0.1:9")):
        run(load_bench(bench), RunFolder(tmp_path / "run"), parallelism=TWO_WORKERS)


def test_what_must_be_set_is_told_as_a_worker_met_it(tmp_path: Path, cluster) -> None:
    with Loopback(lambda body, count: status(401)) as server:
        bench = load_bench(bench_file(tmp_path, server.base_url))
        with pytest.raises(SetupError, match=r"refuses the key.*api_key_env"):
            run(bench, RunFolder(tmp_path / "run"), parallelism=TWO_WORKERS)


def test_an_engine_inside_each_worker_judges(tmp_path: Path, cluster) -> None:
    """Two actors, each with the embedded model, say what one engine in this process says."""
    settings: dict[str, Any] = {"threads": 1}
    judges = dict.fromkeys(("first", "second"), ("llamacpp:smollm2", settings))
    engines: tuple[Engine, ...] = ("ray", "threads")
    found = {}
    for engine in engines:
        folder = tmp_path / engine
        folder.mkdir()
        found[engine] = labels_of(
            judged(folder, judges, parallelism=Parallelism(engine=engine)), *judges
        )
    assert found["ray"] == found["threads"]
