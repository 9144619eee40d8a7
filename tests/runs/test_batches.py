"""Judges that send batches: the verdicts of single calls, paid for once, whatever happens."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer, Fate, last_text
from loopback import PATIENCE, Body, cut, dropped, hanging, html, raw, status, until

import judgebench as jb
from judgebench.errors import BudgetSpent, JudgebenchError, SetupError
from judgebench.files import read_lines
from judgebench.models import batch
from judgebench.models.batch import OpenAI
from judgebench.models.transport import Backoff
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import left_behind

REPO = Path(__file__).resolve().parents[2]
N = 8
FRESH = multiprocessing.get_context("forkserver")
FRESH.set_forkserver_preload(["judgebench.runner", "judgebench.models.openai_compatible"])


def judge(bench: Path, run: Path) -> None:
    """What a process does that is killed."""
    jb.run(bench, run, batch=True)


def killed_once(bench: Path, run: Path, when: Callable[[], bool]) -> None:
    process = FRESH.Process(target=judge, args=(bench, run))
    process.start()
    assert until(when)
    process.kill()
    process.join()


def number(body: Body) -> int:
    found = re.search(r"reply number (\d+)\.", last_text(body))
    assert found
    return int(found[1])


def reply(body: Body) -> str:
    tone = "Polite" if number(body) % 2 else "Impolite"
    return json.dumps({"solves_problem": "Fully", "politeness": tone, "channel": "Phone"})


def bench_file(folder: Path, backend: str, **settings: Any) -> Path:
    rows = "".join(f"i{i},q{i},reply number {i}.\n" for i in range(N))
    (folder / "answers.csv").write_text("item_id,question,text\n" + rows)
    (folder / "labels.csv").write_text("item_id,annotator,politeness\ni0,ann,Polite\n")
    bench = {
        "name": "b",
        "rubric": "support-tone",
        "data": ["answers.csv", "labels.csv"],
        "controls": False,
        "judges": [{"name": "m", "backend": backend, "settings": settings}],
    }
    (folder / "bench.yaml").write_text(json.dumps(bench))
    return folder / "bench.yaml"


def lines(run: Path) -> dict[str, dict[str, Any]]:
    """The last verdict on each item, without what differs: when, and so the digest."""
    found = [value for _, value in read_lines(run / "verdicts-m.jsonl")]
    differs = {"latency", "crc"}
    return {v["item_id"]: {k: x for k, x in v.items() if k not in differs} for v in found}


def statuses(run: Path) -> dict[int, str]:
    return {int(item[1:]): v["status"] for item, v in lines(run).items()}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "WAITS", Backoff(0.05))


@pytest.fixture
def plain(tmp_path: Path) -> Callable[..., Path]:
    def make(server: BatchServer, **settings: Any) -> Path:
        url = server.base_url
        return bench_file(tmp_path, "openai-compatible:x", base_url=url, **settings)

    return make


def test_a_batch_gives_the_verdicts_of_single_calls(plain: Any, tmp_path: Path) -> None:
    with BatchServer(reply) as server:
        bench = plain(server, price={"prompt": 1, "completion": 2})
        jb.run(bench, tmp_path / "single")
        single, server.bodies = server.bodies, []
        study = jb.run(bench, tmp_path / "batch", batch=True)
        assert server.bodies == []
        (sent,) = server.created.values()
    bodies = sorted(json.dumps(one["body"], sort_keys=True) for one in sent)
    assert bodies == sorted(json.dumps(body, sort_keys=True) for body in single)
    assert lines(tmp_path / "batch") == lines(tmp_path / "single")
    assert len(lines(tmp_path / "batch")) == N
    about = {judge.name: judge.about for judge in study.judges}["m"]
    assert about["runtime"]["batch"] is True
    assert not list((tmp_path / "batch").glob("batches-*"))


FATES: dict[int, Fate] = {1: "missing", 3: "expired", 4: 500, 5: 400, 6: "garbled"}
FAILED = set(FATES)


def test_what_fails_in_a_batch_is_asked_again_by_the_next_run(plain: Any, tmp_path: Path) -> None:
    def fate(body: Body, before: int) -> Fate:
        return FATES.get(number(body), "ok") if not before else "ok"

    with BatchServer(reply, fate) as server:
        bench = plain(server)
        jb.run(bench, tmp_path / "run", batch=True)
        first = statuses(tmp_path / "run")
        assert {n for n, found in first.items() if found != "ok"} == FAILED
        reasons = {item: v.get("reason", "") for item, v in lines(tmp_path / "run").items()}
        jb.run(bench, tmp_path / "run", batch=True)
        asked = [sorted(number(o["body"]) for o in sent) for sent in server.created.values()]
    assert set(statuses(tmp_path / "run").values()) == {"ok"}
    assert asked == [list(range(N)), sorted(FAILED)]
    assert re.fullmatch(r"the batch \w+ has no result for this request", reasons["i1"])
    assert "expired" in reasons["i3"]
    assert "HTTP 500" in reasons["i4"]
    assert "HTTP 400" in reasons["i5"]
    assert reasons["i6"].endswith("has no result for this request")


def test_an_unreadable_reply_is_asked_for_in_a_second_batch(plain: Any, tmp_path: Path) -> None:
    def unclear_at_first(body: Body) -> str:
        again = "could not be read" in last_text(body)
        return reply(body) if number(body) != 3 or again else "I would say fully."

    with BatchServer(unclear_at_first) as server:
        jb.run(plain(server), tmp_path / "run", batch=True)
        assert [len(sent) for sent in server.created.values()] == [N, 1]
    assert set(statuses(tmp_path / "run").values()) == {"ok"}


def test_what_was_submitted_is_collected_by_the_next_run_and_paid_for_once(
    plain: Any, tmp_path: Path
) -> None:
    """The batch has not ended, and the run is killed without a chance to say anything."""
    with BatchServer(reply) as server:
        server.ready = False
        bench = plain(server)
        killed_once(bench, tmp_path / "run", lambda: server.asked["state"] > 0)
        (told,) = left_behind(load_bench(bench), RunFolder(tmp_path / "run"))
        assert told == (
            "m: batches were submitted and not collected (batches-m.json); they are paid for, so "
            "run as a batch again to collect them"
        )
        server.ready = True
        jb.run(bench, tmp_path / "run", batch=True)
        assert len(server.created) == 1
        assert set(server.paid.values()) == {1}
    assert set(statuses(tmp_path / "run").values()) == {"ok"}
    assert not list((tmp_path / "run").glob("batches-*"))


def test_a_submission_whose_answer_is_lost_is_found_and_not_made_again(
    plain: Any, tmp_path: Path
) -> None:
    with BatchServer(reply) as server:
        server.unanswered["create"] = [dropped()]
        jb.run(plain(server), tmp_path / "run", batch=True)
        assert len(server.created) == 1
        assert set(server.paid.values()) == {1}
    assert set(statuses(tmp_path / "run").values()) == {"ok"}


@pytest.mark.long
def test_a_submission_that_was_cut_off_by_a_crash_is_found(plain: Any, tmp_path: Path) -> None:
    """The endpoint has it, and the file does not yet say under which id."""
    with BatchServer(reply) as server:
        server.unanswered["create"] = [hanging()]
        bench = plain(server)
        killed_once(bench, tmp_path / "run", lambda: bool(server.created))
        jb.run(bench, tmp_path / "run", batch=True)
        assert len(server.created) == 1
    assert set(statuses(tmp_path / "run").values()) == {"ok"}


@pytest.mark.long
def test_a_submission_that_never_arrived_is_made(plain: Any, tmp_path: Path) -> None:
    with BatchServer(reply) as server:
        bench = plain(server)
        server.unheard["create"] = [hanging()]
        killed_once(bench, tmp_path / "run", lambda: server.asked["create"] > 0)
        jb.run(bench, tmp_path / "run", batch=True)
        assert len(server.created) == 1
    assert set(statuses(tmp_path / "run").values()) == {"ok"}


@pytest.mark.parametrize("kind", ["create", "state", "results"])
def test_faults_that_pass_are_waited_for(plain: Any, tmp_path: Path, kind: str) -> None:
    with BatchServer(reply) as server:
        server.unheard[kind] = [cut()]
        jb.run(plain(server), tmp_path / "run", batch=True)
        assert len(server.created) == 1
    assert set(statuses(tmp_path / "run").values()) == {"ok"}


def stopped(bench: Path, run: Path, *, match: str) -> str:
    """What ends the run."""
    with pytest.raises(JudgebenchError, match=match) as error:
        jb.run(bench, run, batch=True)
    return str(error.value)


def test_a_batch_that_fails_as_a_whole_is_submitted_again(plain: Any, tmp_path: Path) -> None:
    with BatchServer(reply) as server:
        server.failed_as_a_whole = "the model does not exist"
        jb.run(plain(server), tmp_path / "run", batch=True)
        reasons = {v["reason"] for v in lines(tmp_path / "run").values()}
        assert all("the model does not exist" in reason for reason in reasons)
        assert set(statuses(tmp_path / "run").values()) == {"failed"}
        server.failed_as_a_whole = ""
        jb.run(plain(server), tmp_path / "run", batch=True)
    assert set(statuses(tmp_path / "run").values()) == {"ok"}


@pytest.mark.parametrize("play", [status(401, "Incorrect API key"), status(404, "No such batch")])
def test_a_batch_that_is_not_known_is_kept_and_the_error_says_what_to_do(
    plain: Any, tmp_path: Path, play: Any
) -> None:
    with BatchServer(reply) as server:
        server.unheard["state"] = [play]
        said = stopped(plain(server), tmp_path / "run", match="HTTP 40")
        assert f"{tmp_path / 'run' / 'batches-m.json'} notes what was submitted: " in said
        assert said.endswith(
            "use the address and the key that it was submitted with, or delete that file to "
            "submit, and pay for, its requests again"
        )
        jb.run(plain(server), tmp_path / "run", batch=True)
        assert len(server.created) == 1
    assert set(statuses(tmp_path / "run").values()) == {"ok"}


def test_a_server_without_batches_is_said_before_anything_is_paid(
    plain: Any, tmp_path: Path
) -> None:
    with BatchServer(reply) as server:
        server.unheard["file"] = [status(404, "Not Found")]
        stopped(plain(server), tmp_path / "run", match="knows no such model or path .*/v1/files")
    stopped(plain(server), tmp_path / "run", match="no answer from .*/v1/files")
    assert not list((tmp_path / "run").glob("batches-*"))


def test_odd_answers_end_nothing(plain: Any, tmp_path: Path) -> None:
    odd = [{"status": 5}, {"request_counts": [], "errors": 1}, [], {"processing_status": {}}]
    with BatchServer(reply) as server:
        server.unheard["state"] = [*(raw(one) for one in odd), html(200)]
        server.unanswered["create"] = [raw([]), raw({"id": "../files"})]
        server.unheard["list"] = [raw({"data": [1, {"id": 2, "created_at": 3}]})]
        bench = plain(server)
        jb.run(bench, tmp_path / "run", batch=True)
        assert set(statuses(tmp_path / "run").values()) == {"ok"}


def test_results_that_are_none_are_failures(plain: Any, tmp_path: Path) -> None:
    with BatchServer(reply) as server:
        server.unheard["results"] = [html(200), raw(["no", "object"])]
        jb.run(plain(server), tmp_path / "run", batch=True)
        assert set(statuses(tmp_path / "run").values()) == {"failed"}
        jb.run(plain(server), tmp_path / "run", batch=True)
    assert set(statuses(tmp_path / "run").values()) == {"ok"}


def test_what_one_request_meets_is_the_reason_of_its_verdict(plain: Any, tmp_path: Path) -> None:
    with BatchServer(reply, lambda body, _: 401 if number(body) == 2 else "ok") as server:
        jb.run(plain(server), tmp_path / "run", batch=True)
    found = lines(tmp_path / "run")
    assert found["i2"]["reason"].startswith("HTTP 401: ")
    assert [item for item, v in found.items() if v["status"] != "ok"] == ["i2"]


def test_a_request_that_is_always_refused_does_not_stop_a_batch(plain: Any, tmp_path: Path) -> None:
    def any_reply(body: Body) -> str:
        return reply(body) if "reply number" in last_text(body) else "a short example"

    with BatchServer(any_reply, lambda body, _: 400 if number(body) == 2 else "ok") as server:
        server.complaint = "Unsupported value: 'temperature' does not support 0 with this model."
        for _ in range(2):
            jb.run(plain(server), tmp_path / "run", batch=True)
    found = statuses(tmp_path / "run")
    assert [n for n, status in found.items() if status != "ok"] == [2]
    assert found[2] == "failed"


def test_a_damaged_file_of_batches_is_an_error_that_names_it(plain: Any, tmp_path: Path) -> None:
    path = tmp_path / "run" / "batches-m.json"
    path.parent.mkdir()
    path.write_text("[]")
    with BatchServer(reply) as server:
        said = stopped(plain(server), tmp_path / "run", match="is damaged")
    assert said == f"{path}: is damaged: without it, its batches are submitted and paid for again"


def test_equal_requests_are_made_as_often_as_they_are_asked(plain: Any, tmp_path: Path) -> None:
    with BatchServer(reply) as server:
        bench = plain(server)
        rows = "".join(f"i{i},q,reply number 1.\n" for i in range(3))
        (tmp_path / "answers.csv").write_text("item_id,question,text\n" + rows)
        jb.run(bench, tmp_path / "run", batch=True)
        assert [len(sent) for sent in server.created.values()] == [3]
    assert statuses(tmp_path / "run") == dict.fromkeys(range(3), "ok")


def test_what_is_more_than_a_batch_may_hold_is_split(
    plain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BatchServer(reply) as server:
        monkeypatch.setattr(OpenAI, "limits", (3, 10**9))
        jb.run(plain(server), tmp_path / "few", batch=True)
        sizes = [len(sent) for sent in server.created.values()]
        assert sizes == [3, 3, 2]
        size = max(len(json.dumps(o)) for sent in server.created.values() for o in sent)
        monkeypatch.setattr(OpenAI, "limits", (100, 2 * size + 200))
        jb.run(plain(server), tmp_path / "small", batch=True)
        assert [len(sent) for sent in server.created.values()][3:] == [2, 2, 2, 2]
    assert set(statuses(tmp_path / "small").values()) == {"ok"}


def test_a_budget_is_kept_by_the_forecast_and_needs_a_price(plain: Any, tmp_path: Path) -> None:
    with BatchServer(reply) as server:
        run = partial(jb.run, folder=tmp_path / "run", batch=True)
        with pytest.raises(SetupError, match="is needed to keep a budget: a batch is submitted"):
            run(plain(server), budget=1.0)
        priced = plain(server, price={"prompt": 1e3, "completion": 1e3})
        with pytest.raises(BudgetSpent):
            run(priced, budget=1.0)
        assert 0 < server.paid.total() < N
        assert server.paid.total() * 0.12 <= 1.0
        run(priced, budget=1000.0)
        assert sum(map(len, server.created.values())) == N
    assert set(statuses(tmp_path / "run").values()) == {"ok"}


def test_what_has_no_batch_endpoint_is_refused_before_anything_is_asked(
    call: Any, plain: Any, tmp_path: Path
) -> None:
    bench = bench_file(tmp_path, "litellm:openai/x", api_key_env="NOT_SET")
    code, _, err = call("run", bench, "--batch", "--run", tmp_path / "run")
    assert code == 2
    assert "judges.m.backend: has no batch endpoint that is known" in err
    assert "allowed: openai-compatible:MODEL, without `knowledge`" in err
    (tmp_path / "corpus.jsonl").write_text('{"text": "one"}\n')
    knowledge = {"corpus": "corpus.jsonl", "embedder": "words"}
    bench = bench_file(tmp_path, "openai-compatible:x", base_url="http://127.0.0.1:9/v1")
    value = json.loads(bench.read_text())
    value["judges"][0]["knowledge"] = knowledge
    bench.write_text(json.dumps(value))
    code, _, err = call("run", bench, "--batch", "--run", tmp_path / "run")
    assert code == 2
    assert "without `knowledge`, which needs each reply before the next question" in err
    with BatchServer(reply) as server:
        code, _, err = call("run", plain(server), "--batch", "--engine", "ray")
        assert code == 2
        assert "batch: cannot be shared by several processes" in err
        assert not server.asked
    assert not (tmp_path / "run").exists()


def test_the_address_and_the_key_are_those_of_single_calls(
    plain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-0123456789abcdef0123456789"
    monkeypatch.setenv("A_KEY", key)
    with BatchServer(reply) as server:
        server.unheard["state"] = [status(500, f"the key {key} is mine"), status(401, key)]
        bench = plain(server, api_key_env="A_KEY")
        said = stopped(bench, tmp_path / "run", match="HTTP 401")
        assert "***" in said
        assert key[:8] not in said
        assert {headers.get("Authorization") for headers in server.headers} == {f"Bearer {key}"}
        host = server.base_url.removeprefix("http://").removesuffix("/v1")
        assert host in json.loads((tmp_path / "run" / "run.json").read_text())["hosts"]
    monkeypatch.delenv("A_KEY")
    with pytest.raises(SetupError, match="A_KEY is not set"):
        jb.run(bench, tmp_path / "other", batch=True)


def test_the_server_of_these_tests_speaks_with_the_client_of_openai() -> None:
    import openai  # takes seconds, and every worker collects this file

    with BatchServer(lambda body: "a reply") as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="none")
        body = {"model": "x", "messages": [{"role": "user", "content": "hi"}]}
        line = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": body}
        file = client.files.create(file=("b.jsonl", json.dumps(line).encode()), purpose="batch")
        made = client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
        found = client.batches.retrieve(made.id)
        assert (found.status, found.request_counts and found.request_counts.completed) == (
            "completed",
            1,
        )
        assert [one.id for one in client.batches.list(limit=100)] == [made.id]
        said = json.loads(client.files.content(str(found.output_file_id)).text)
        assert said["custom_id"] == "1"
        assert said["response"]["body"]["choices"][0]["message"]["content"] == "a reply"


def test_judges_in_this_process_are_asked_as_ever(tmp_path: Path) -> None:
    replies = "".join(json.dumps({"text": "no verdict"}) + "\n" for _ in range(2 * N))
    (tmp_path / "replies.jsonl").write_text(replies)
    bench = bench_file(tmp_path, f"scripted:{tmp_path / 'replies.jsonl'}")
    jb.run(bench, tmp_path / "run", batch=True)
    assert len(statuses(tmp_path / "run")) == N


@pytest.mark.long
def test_ctrl_c_leaves_the_batch_and_says_how_to_go_on(plain: Any, tmp_path: Path) -> None:
    with BatchServer(reply) as server:
        server.ready = False
        bench = plain(server)
        command = [sys.executable, "-m", "judgebench", "run", bench, "--run", tmp_path / "run"]
        process = subprocess.Popen(
            [*command, "--batch"],
            env={**os.environ, "PYTHONPATH": str(REPO)}, cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert until(lambda: server.asked["state"] > 0)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=PATIENCE)[0]
        assert process.returncode == 130
        where = server.base_url.removeprefix("http://").removesuffix("/v1")
        submitted = f"submitted batch_0 with {N} requests; results may take a day; stop and rerun"
        assert f"{where}: {submitted} at will" in said
        assert "what was submitted goes on at the provider; rerun to collect it" in said
        assert "To resume, rerun:" in said
        server.ready = True
        jb.run(bench, tmp_path / "run", batch=True)
        assert len(server.created) == 1
