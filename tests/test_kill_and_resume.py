"""`kill -9` at random moments: every verdict exactly once, and nobody finished is asked again."""

import multiprocessing
import random
from collections import Counter
from pathlib import Path

import pytest
from killed_run import ANSWERS, HELD, IN_FLIGHT, REPLY, bench_file, finished, item_of, start
from loopback import PATIENCE, Body, Loopback, Play, said, status, until
from scripted_judges import Listener

from judgebench.errors import RunLocked, SetupError
from judgebench.records import Status
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import run


def judge(bench: Path, run_folder: Path) -> None:
    """What a killed process was doing: a whole run, without the report."""
    run(load_bench(bench), RunFolder(run_folder))


FRESH = multiprocessing.get_context("forkserver")
# Imports are made once; each process is a clean one that has them.
FRESH.set_forkserver_preload(["judgebench.runs.run_bench", "judgebench.models.openai_compatible"])


@pytest.mark.parametrize(
    ("seed", "most"),
    [(0, 12), *(pytest.param(seed, 60, marks=pytest.mark.long) for seed in (1, 2, 3))],
)
def test_kill_at_random_moments(tmp_path: Path, seed: int, most: int) -> None:
    """Moments of any kind: while inputs are written, while verdicts are, between judges."""
    moments = random.Random(seed)
    kills = runs = 0
    with Loopback(lambda body, count: said(REPLY, after=0.01)) as server:
        bench = bench_file(tmp_path, server.base_url)
        while kills < most:
            runs += 1
            folder = tmp_path / f"run{runs}"
            done: list[str] = []
            asked: Counter[str] = Counter()
            while len(done) < ANSWERS:
                before = len(server.bodies)
                process = FRESH.Process(target=judge, args=(bench, folder))
                process.start()
                process.join(moments.uniform(0, 0.6) if kills < most else PATIENCE)
                if process.is_alive():
                    process.kill()
                    kills += 1
                elif process.exitcode:
                    pytest.fail(f"a run ended with {process.exitcode}: see its traceback")
                process.join()
                called = [item_of(body) for body in server.bodies[before:]]
                assert not set(called) & set(done), "finished answers were called again"
                asked.update(called)
                done = finished(folder)
                assert len(done) == len(set(done))
            # Only what was in flight when the process died was asked for more than once, and
            # replies on their way from the one thread to the other.
            assert sum(asked.values()) - ANSWERS <= HELD * kills
            judge(bench, folder)  # whatever was torn, the run is whole in the end
            assert sorted(finished(folder)) == sorted(f"i{i}" for i in range(ANSWERS))
            assert RunFolder(folder).manifest()["state"] == "finished"
            assert len(list(RunFolder(folder).verdicts("prior"))) == ANSWERS


def test_a_torn_last_line_is_dropped_and_told(tmp_path: Path) -> None:
    with Loopback([said(REPLY)]) as server:
        bench, folder = bench_file(tmp_path, server.base_url), tmp_path / "run"
        judge(bench, folder)
        path = folder / "verdicts-remote.jsonl"
        whole = path.read_bytes()
        path.write_bytes(whole[:-9])
        told = Listener()
        run(load_bench(bench), RunFolder(folder), progress=told)
        assert len(server.bodies) == ANSWERS + 1
    assert any("dropped a torn last line" in line for line in told.heard)
    assert sorted(finished(folder)) == sorted(f"i{i}" for i in range(ANSWERS))


def test_a_second_process_is_turned_away(tmp_path: Path) -> None:
    with Loopback(lambda body, count: said(REPLY, after=0.2)) as server:
        bench, run = bench_file(tmp_path, server.base_url), tmp_path / "run"
        process = start(bench, run)
        assert until(lambda: len(server.bodies) > 0)
        with pytest.raises(RunLocked), RunFolder(run).locked():
            pass
        process.kill()
        process.communicate()
    with RunFolder(run).locked():
        assert RunFolder(run).manifest()["state"] == "running"


def test_an_answer_that_is_always_refused_does_not_stop_a_resume(tmp_path: Path) -> None:
    refused = status(400, "Unsupported value: 'temperature' does not support 0 with this model")

    def play(body: Body, count: int) -> Play:
        return refused if "reply number 7." in str(body["messages"]) else said(REPLY)

    with Loopback(play) as server:
        bench, folder = bench_file(tmp_path, server.base_url), tmp_path / "run"
        for _ in range(3):
            judge(bench, folder)
            assert RunFolder(folder).manifest()["state"] == "finished"
        found = {v.item_id: v.status for v in RunFolder(folder).verdicts("remote")}
    assert Counter(found.values()) == {Status.OK: ANSWERS - 1, Status.FAILED: 1}
    assert found["i7"] is Status.FAILED


def test_what_hits_every_answer_stops_a_resume_early(tmp_path: Path) -> None:
    with Loopback([said(REPLY)]) as server:
        bench, folder = bench_file(tmp_path, server.base_url), tmp_path / "run"
        judge(bench, folder)
        path = folder / "verdicts-remote.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:10]))
        server.script = [status(400, "`temperature` is deprecated for this model.")]
        del server.bodies[:]
        with pytest.raises(SetupError, match="does not take the request as it is; write `decoding"):
            judge(bench, folder)
        assert len(server.bodies) <= IN_FLIGHT + 2
    assert len(finished(folder)) == 10
