"""Ctrl-C once: answers in flight are kept. Twice: at once, and nothing written is lost."""

import json
import re
import signal
from pathlib import Path

from killed_run import ANSWERS, REPLY, bench_file, finished, start
from loopback import Loopback, said, status, until

from judgebench.files import read_lines


def test_once_waits_for_answers_in_flight_and_says_how_to_go_on(tmp_path: Path) -> None:
    with Loopback(lambda body, count: said(REPLY, after=0.5)) as server:
        bench, run = bench_file(tmp_path, server.base_url), tmp_path / "run"
        process = start(bench, run, report=True)
        assert until(lambda: len(server.bodies) >= 6 and server.serving > 0)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 130, output.decode()
        kept = finished(run)
        assert len(kept) == len(server.bodies) < ANSWERS  # whatever was asked for was kept
        assert b"Finishing the answers in flight" in output
        assert f"remote: {len(kept)} of {ANSWERS} answers judged".encode() in output
        assert f"judgebench run {bench} --run {run}".encode() in output
        assert json.loads((run / "run.json").read_text())["state"] == "stopped"
        server.script = [said(REPLY)]
        process = start(bench, run, report=True)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, output.decode()
        assert len(server.bodies) == ANSWERS
    assert (run / "report" / "report.html").is_file()


def test_twice_ends_at_once_and_keeps_what_was_written(tmp_path: Path) -> None:
    plays = [said(REPLY)] * 8 + [said(REPLY, after=30)]
    with Loopback(plays) as server:
        bench, run = bench_file(tmp_path, server.base_url), tmp_path / "run"
        process = start(bench, run, report=True)
        assert until(lambda: len(finished(run)) == 8 and server.serving == 4)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        heard = b""
        while b"again to stop at once" not in heard:
            heard += process.stdout.readline()
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)  # far less than the replies would take
        assert process.returncode == 130, output.decode()
        assert b"To resume, rerun" in output
    assert len(list(read_lines(run / "verdicts-remote.jsonl"))) == 8
    assert json.loads((run / "run.json").read_text())["state"] == "running"  # as after a kill


def test_once_ends_at_once_what_only_waits(tmp_path: Path) -> None:
    plays = [said(REPLY)] * 8 + [status(429, "come back later", Retry_After="1000000000")]
    with Loopback(plays) as server:
        bench, run = bench_file(tmp_path, server.base_url), tmp_path / "run"
        process = start(bench, run, report=True)
        assert until(lambda: len(finished(run)) == 8 and len(server.bodies) >= 9)
        assert until(lambda: server.serving == 0)
        assert process.stdout is not None
        heard = next(line for line in process.stdout if b"waiting for" in line)
        assert re.search(rb"waiting for 60\d s \(HTTP 429: come back later", heard)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
        assert process.returncode == 130, output.decode()
    assert b"To resume, rerun" in output
    assert len(finished(run)) == 8
    assert json.loads((run / "run.json").read_text())["state"] == "stopped"
