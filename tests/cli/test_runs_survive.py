"""What a run leaves behind when part of it fails, is smaller than before, or has no judge."""

import json
import os
import re
import shlex
import socket
from pathlib import Path

import pytest
import yaml
from loopback import Body, Loopback, Play, html, said, status

import judgebench as jb

REPLY = json.dumps({"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"})
ITEMS = 12


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [f"i{i},Is this reply {i} fine?,reply {i}" for i in range(ITEMS)]
    (tmp_path / "answers.csv").write_text("\n".join(["item_id,question,text", *rows]) + "\n")
    rows = [f"i{i},{who},{'Polite' if i % 3 else 'Impolite'}" for i in range(ITEMS) for who in "ab"]
    (tmp_path / "labels.csv").write_text("\n".join(["item_id,annotator,politeness", *rows]) + "\n")
    (tmp_path / "script.jsonl").write_text(json.dumps({"text": REPLY}) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


GOOD = {"name": "good", "backend": "scripted:script.jsonl"}


def remote(url: str, name: str = "remote") -> dict[str, object]:
    settings = {"base_url": url, "max_retries": 1, "concurrency": 4, "down_for_s": 0.3}
    return {"name": name, "backend": "openai-compatible:m", "settings": settings}


def write(place: Path, *judges: object, **more: object) -> Path:
    bench = {
        "name": "tiny", "rubric": "support-tone", "data": ["answers.csv", "labels.csv"],
        "metrics": ["politeness"], "judges": list(judges), **more,
    }  # fmt: skip
    (place / "bench.yaml").write_text(yaml.safe_dump(bench))
    return place / "bench.yaml"


def nobody_listens() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


def names(run: Path) -> set[str]:
    return {judge.name for judge in jb.open_run(run).judges if judge.kind != "control"}


# --- one dead judge ------------------------------------------------------------------------------


@pytest.mark.long
def test_one_dead_judge_does_not_cost_the_others_their_report(call, place: Path) -> None:  # type: ignore[no-untyped-def]
    gone = nobody_listens()
    juries = (
        {"name": "both", "jury": ["good", "remote"]},
        {"name": "own", "jury": ["good", "random"]},
    )
    bench = write(place, GOOD, remote(gone), *juries)
    code, out, err = call("run", bench, "--run", "run")
    assert code == 1
    assert "Report: run/report/report.html" in out
    told = "stopped: left out, because not every answer is judged: remote (no server answers at"
    assert f"{told} {gone}: " in err
    assert f"To resume, rerun:\n  judgebench run {shlex.quote(str(bench))} --run run\n" in err
    assert names(place / "run") == {"good", "own"}
    page = (place / "run" / "report" / "tables.md").read_text()
    assert "remote is left out: it stopped before it had judged every answer (" in page
    assert "both is left out: it needs remote." in page

    with Loopback([said(REPLY)]) as server:
        write(place, GOOD, remote(server.base_url), *juries)
        code, _, err = call("run", bench, "--run", "run")
    assert (code, err) == (0, "")
    assert names(place / "run") == {"good", "remote", "both", "own"}
    assert "left out: it" not in (place / "run" / "report" / "tables.md").read_text()


def test_a_dead_judge_does_not_cost_recorded_verdicts_their_report(call, place: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [f"i{i},Polite" for i in range(ITEMS)]
    (place / "have.csv").write_text("\n".join(["item_id,politeness", *rows]) + "\n")
    bench = write(place, remote(nobody_listens()), {"name": "have", "verdicts": "have.csv"})
    code, out, err = call("run", bench, "--run", "run", "--json")
    assert code == 1
    assert [d["judge"] for d in json.loads(out)["decisions"]] == ["have"]
    assert "stopped: left out, because not every answer is judged: remote" in err
    assert names(place / "run") == {"have"}


def test_what_a_judge_said_before_it_died_is_kept(call, place: Path) -> None:  # type: ignore[no-untyped-def]
    answered = 3
    with Loopback(lambda body, n: said(REPLY) if n < 3 or recovered else status(500)) as server:
        recovered = False
        bench = write(place, GOOD, remote(server.base_url))
        code, _, err = call("run", bench, "--run", "run")
        assert code == 1
        assert "has answered nothing for 0.3 s" in err
        assert names(place / "run") == {"good"}
        asked, recovered = len(server.bodies), True
        assert call("run", bench, "--run", "run")[0] == 0
        assert len(server.bodies) == asked + ITEMS - answered
    assert names(place / "run") == {"good", "remote"}


def test_one_answer_that_a_filter_refuses_stops_no_judge(call, place: Path) -> None:  # type: ignore[no-untyped-def]
    """Neither at first nor at a resume, which asks about it alone."""

    def script(body: Body, n: int) -> Play:
        return html(403) if "reply 7" in str(body["messages"]) else said(REPLY)

    with Loopback(script) as server:
        bench = write(place, remote(server.base_url))
        for _ in range(3):
            assert call("run", bench, "--run", "run")[0] == 0
    lines = (place / "run" / "verdicts-remote.jsonl").read_text().splitlines()
    verdicts = {verdict["item_id"]: verdict for verdict in map(json.loads, lines)}
    reasons = [v["reason"] for v in verdicts.values() if v["status"] != "ok"]
    assert len(verdicts) == ITEMS
    assert reasons == ["HTTP 403: <html><body>Bad gateway</body></html>"]


def test_without_any_judge_that_is_done_there_is_no_report(call, place: Path) -> None:  # type: ignore[no-untyped-def]
    code, _, err = call("run", write(place, remote(nobody_listens())), "--run", "run")
    assert code == 1
    assert "stopped: no server answers" in err
    assert not (place / "run" / "report").exists()


def test_python_is_told_which_judges_are_left_out(place: Path) -> None:
    write(place, GOOD, remote(nobody_listens()))
    with pytest.raises(jb.JudgesStopped) as stopped:
        jb.run("bench.yaml", "run")
    assert list(stopped.value.left_out) == ["remote"]
    assert names(place / "run") == {"good"}


def test_two_judges_spend_a_budget_to_its_last_call(call, place: Path) -> None:  # type: ignore[no-untyped-def]
    """What is set apart for calls in flight, of either judge, is spent once they have ended."""
    rows = [f"i{i},Is this reply {i} fine?,reply {i}" for i in range(60)]
    (place / "answers.csv").write_text("\n".join(["item_id,question,text", *rows]) + "\n")
    price, cost = {"prompt": 10, "completion": 10}, (100 + 20) * 10 / 1e6  # as Loopback counts
    with Loopback([said(REPLY, after=0.02)]) as server:
        judges = [remote(server.base_url, name) for name in ("one", "two")]
        for judge in judges:
            judge["settings"] |= {"price": price, "concurrency": 8}  # type: ignore[operator]
        bench = write(place, *judges, controls=False)
        code, _, err = call("run", bench, "--run", "run", "--budget", 100 * cost)
        n_calls = len(server.bodies)
        again = call("run", bench, "--run", "run", "--budget", 100 * cost)
        assert len(server.bodies) == n_calls
    assert code == again[0] == 1
    (highest,) = set(re.findall(r"one more call may cost \$(\d\.\d+)", err))
    assert f"${n_calls * cost:.4f} spent" in err
    assert 100 * cost - float(highest) - 1e-4 <= n_calls * cost <= 100 * cost


# --- a folder that somebody else made -------------------------------------------------------------

LINKS = (
    ".lock", "run.json", "rubric.json", "answers.jsonl", "labels.jsonl", "verdicts-good.jsonl",
    "verdicts-good+1.jsonl", ".run.json.PID.tmp", ".answers.jsonl.PID.tmp",
    "verdicts-good.jsonl.damaged", ".verdicts-good.jsonl.rest", "knowledge", "report",
)  # fmt: skip


@pytest.mark.parametrize("name", LINKS)
def test_nothing_is_written_through_a_link_in_a_run_folder(call, place: Path, name: str) -> None:  # type: ignore[no-untyped-def]
    bench, name = write(place, GOOD), name.replace("PID", str(os.getpid()))
    outside, run = place / "outside", place / "run"
    run.mkdir()
    if "." in name:
        outside.write_text('{"precious": 1}\nand torn')
    else:
        outside.mkdir()
    (run / name).symlink_to(outside)
    code, _, err = call("run", bench, "--run", "run")
    assert code == 2
    assert f"run/{name}: is a link" in err or name == "run.json"  # which is read before
    assert call("report", "run")[0] == 2
    assert outside.is_dir() or outside.read_text() == '{"precious": 1}\nand torn'
    assert not outside.is_dir() or not list(outside.iterdir())
    assert {path.name for path in run.iterdir()} == {name}


# --- a smaller report beside a larger one --------------------------------------------------------


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["run", "stress"])
def test_fewer_answers_never_change_what_is_decided_on_more(
    call,  # type: ignore[no-untyped-def]
    place: Path,
    command: str,
) -> None:
    if command == "stress":
        pytest.importorskip("judgebench.stress_tests")
    bench = write(place, GOOD)
    assert call("run", bench, "--run", "run")[0] == 0
    before, decided = files_of(place / "run"), call("decide", "run", "--json")
    code, out, err = call(command, bench, "--run", "run", "--limit", 5)
    assert (code, err) == (0, "")
    assert (
        "! run holds a run on 12 answers and was left as it is: this one, on 5, is in "
        "run-5-answers."
    ) in out
    assert "Report: run-5-answers/report/report.html" in out
    assert files_of(place / "run") == before
    assert call("decide", "run", "--json") == decided
    assert len(jb.open_run("run-5-answers").answers) == 5
    code, out, _ = call(command, bench, "--run", "run-5-answers", "--limit", 5)
    assert (code, "was left as it is" in out) == (0, False)
    code, out, _ = call("run", bench, "--run", "run-5-answers")  # more answers: it grows
    assert (code, len(jb.open_run("run-5-answers").answers)) == (0, ITEMS)
    assert "was left as it is" not in out


def test_python_leaves_a_run_on_more_answers_alone_too(place: Path) -> None:
    write(place, GOOD)
    assert len(jb.run("bench.yaml", "run").answers) == ITEMS
    with pytest.warns(UserWarning, match="run holds a run on 12 answers and was left as it is"):
        study = jb.run(jb.load_bench("bench.yaml", limit=3), "run")
    assert (len(study.answers), len(jb.open_run("run").answers)) == (3, ITEMS)


@pytest.mark.long
def test_a_report_on_fewer_answers_leaves_the_larger_one_alone(
    call,  # type: ignore[no-untyped-def]
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = write(place, GOOD)
    assert call("run", bench, "--run", "run")[0] == 0
    assert call("run", bench, "--run", "few", "--limit", 5)[0] == 0
    before = files_of(place / "run" / "report")
    told = "run/report holds the report of 12 answers and was left as it is: this one, of 5, is in"
    code, out, _ = call("report", "few", "--to", "run/report")
    assert code == 0
    assert f"! {told} run/report-5-answers." in out
    assert files_of(place / "run" / "report") == before
    monkeypatch.chdir(place / "run" / "report")
    with pytest.warns(UserWarning, match="^. holds the report of 12 answers"):
        written = jb.report(jb.open_run(place / "few"), ".")
    assert written["html"] == place / "run" / "report-5-answers" / "report.html"


@pytest.mark.long
def test_a_report_of_as_many_answers_replaces_the_old_one(call, place: Path) -> None:  # type: ignore[no-untyped-def]
    call("run", write(place, GOOD), "--run", "run")
    code, out, err = call("report", "run", "--to", "run/report", "--truth", "majority")
    assert (code, err) == (0, "")
    assert "Report: run/report/report.html" in out
    (place / "paper").mkdir()
    (place / "paper" / "report.json").write_text("[")  # damaged: the folder is taken as new
    assert call("report", "run", "--to", "paper")[0] == 0
    assert json.loads((place / "paper" / "report.json").read_text()) == {"answers": ITEMS}
    code, _, err = call("report", "run", "--to", "answers.csv")
    assert code == 1
    assert "stopped: answers.csv cannot be written: File exists" in err


# --- no judge ------------------------------------------------------------------------------------


def test_a_run_without_judges_says_what_can_be_done(call, place: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("run", write(place), "--run", "run")
    assert code == 0
    assert "! bench.yaml names no judge: the report is about annotators and baselines alone." in out
    assert call("decide", "run", "--as-judge", "a")[0] == 0
