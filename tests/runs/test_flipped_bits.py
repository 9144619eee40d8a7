"""A flipped bit in the verdicts of a killed run: the line is judged again, and the run says so."""

import json
import random
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from killed_run import bench_file, finished, item_of, start
from loopback import Body, Loopback, Play, said, until
from scripted_judges import Listener, ScriptedBackend, answers, bench

import judgebench as jb
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import run

N = 12
LABELS = ("None", "Some", "Much")


def reply_to(prompt: str) -> str:
    """Another one for each of three answers."""
    found = re.search(r"text (\d+)", prompt)
    assert found
    number = int(found[1])
    return json.dumps({"harm": LABELS[number % 3], "kind": "AB"[number % 2]})


def judge(folder: Path) -> tuple[Listener, int]:
    """Run the benchmark; what was said, and how many answers were asked."""
    backend = ScriptedBackend(lambda request: reply_to(request.messages[-1].content))
    listener = Listener()
    run(bench({"m": backend}, answers(N)), RunFolder(folder), progress=listener)
    return listener, len(backend.requests)


def labels(folder: Path, name: str = "m") -> dict[str, object]:
    """What counts: the last verdict on each answer."""
    return {v.item_id: (v.status, v.labels, v.raw) for v in RunFolder(folder).verdicts(name)}


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a killed process leaves it, in which every answer is judged."""
    folder = tmp_path_factory.mktemp("killed") / "run"
    judge(folder)
    RunFolder(folder).write_manifest(RunFolder(folder).manifest(), "running")
    return folder


def check(
    folder: Path, again: Callable[[], list[str]], right: dict[str, object], name: str
) -> None:
    """Resume: what counts is right, and what was found is said, then and in the study."""
    heard = again()
    assert labels(folder, name) == right
    found = [line for line in heard if "damaged line" in line or "torn last line" in line]
    assert found, heard
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gaps = " ".join(jb.open_run(folder).gaps)
    assert all(line in gaps for line in found if "damaged" in line)
    assert not RunFolder(folder).damage()


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_is_found_and_the_answer_judged_again(
    killed: Path, tmp_path: Path, seed: int
) -> None:
    right, chosen = labels(killed), random.Random(seed)
    size = (killed / "verdicts-m.jsonl").stat().st_size
    for number in range(15):
        folder = tmp_path / str(number)
        shutil.copytree(killed, folder)
        flip(folder / "verdicts-m.jsonl", chosen.randrange(8 * size))
        check(folder, lambda folder=folder: judge(folder)[0].heard, right, "m")


def test_a_label_and_its_reply_that_were_changed_together_are_found_too(
    killed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(killed, folder)
    path = folder / "verdicts-m.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Much", b"Some"))
    listener, asked = judge(folder)
    assert asked == N / 3
    assert labels(folder) == labels(killed)
    told = "verdicts-m.jsonl: 4 damaged lines are now in verdicts-m.jsonl.damaged"
    assert [line for line in listener.heard if line.startswith(told)]


def play(body: Body, count: int) -> Play:
    number = int(item_of(body)[1:])
    politeness = ("Polite", "Impolite")[number % 2]
    reply = {"solves_problem": "Fully", "politeness": politeness, "channel": "Phone"}
    return said(json.dumps(reply), after=0.002)


@pytest.mark.long
def test_two_hundred_killed_runs_with_a_flipped_bit_each(tmp_path: Path) -> None:
    chosen = random.Random(0)
    with Loopback(play) as server:
        path = bench_file(tmp_path, server.base_url)
        whole = tmp_path / "whole"
        run(load_bench(path), RunFolder(whole))
        right = labels(whole, "remote")

        def resume(folder: Path) -> list[str]:
            listener = Listener()
            run(load_bench(path), RunFolder(folder), progress=listener)
            return listener.heard

        for kill in range(5):
            killed, least = tmp_path / f"killed-{kill}", chosen.randrange(5, 50)
            process = start(path, killed)
            assert until(lambda killed=killed, least=least: len(finished(killed)) >= least)
            process.kill()
            process.wait()
            size = (killed / "verdicts-remote.jsonl").stat().st_size
            for number in range(40):
                folder = tmp_path / f"flipped-{kill}-{number}"
                shutil.copytree(killed, folder)
                flip(folder / "verdicts-remote.jsonl", chosen.randrange(8 * size))
                check(folder, lambda folder=folder: resume(folder), right, "remote")
