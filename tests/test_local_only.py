"""`--local-only` refuses what would contact another machine; run.json lists who was contacted."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, said, status

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.models import hosts_of, is_local
from judgebench.models.settings import BackendSettings, host_of

REPLY = said(json.dumps({"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"}))


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "HF_HUB_OFFLINE", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def bench_file(folder: Path, *judges: dict[str, Any], n: int = 2) -> Path:
    rows = "".join(f"i{i},q{i},reply {i}\n" for i in range(n))
    (folder / "answers.csv").write_text("item_id,question,text\n" + rows)
    labels = "".join(f"i{i},{who},Polite\n" for i in range(n) for who in "ab")
    (folder / "labels.csv").write_text("item_id,annotator,politeness\n" + labels)
    bench = {
        "name": "b",
        "rubric": "support-tone",
        "data": ["answers.csv", "labels.csv"],
        "judges": list(judges),
    }
    (folder / "bench.yaml").write_text(json.dumps(bench))
    return folder / "bench.yaml"


def served(name: str, url: str, **settings: Any) -> dict[str, Any]:
    return {
        "name": name,
        "backend": "openai-compatible:x",
        "settings": {"base_url": url, **settings},
    }


def refused(bench: Path) -> list[str]:
    with pytest.raises(SetupError) as error:
        jb.load_bench(bench, local_only=True)
    return [f"{problem.field}: {problem.found}" for problem in error.value.problems]


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True), ("LOCALHOST:80", True), ("a.localhost", True), ("127.0.0.1:1", True),
        ("127.8.9.1", True), ("[::1]:8000", True), ("localhost.example.org", False),
        ("127.0.0.1.example.org", False), ("10.0.0.1", False), ("0.0.0.0", False),
        ("[2001:db8::1]:80", False), ("the provider of litellm:openai/x", False), ("", False),
    ],
)  # fmt: skip
def test_local_is_the_loopback_interface_and_nothing_else(host: str, local: bool) -> None:
    assert is_local(host) is local


def test_the_host_of_a_url_holds_no_password() -> None:
    assert host_of("http://me:secret@proxy.example:3128/x") == "proxy.example:3128"
    assert host_of("me:secret@proxy.example:3128") == "proxy.example:3128"


def test_every_judge_and_host_is_named_before_any_key_is_asked_for(
    call: Any, tmp_path: Path
) -> None:
    with Loopback([REPLY]) as server:
        bench = bench_file(
            tmp_path,
            served("here", server.base_url),
            served("there", "https://api.example.org/v1", api_key_env="NOT_SET"),
            {"name": "hosted", "backend": "litellm:openai/gpt-4o"},
            {"name": "address", "backend": "openai-compatible:m@http://192.0.2.1:8000/v1"},
            {"name": "hub", "backend": "transformers:owner/name"},
        )
        code, _, err = call("run", bench, "--run", tmp_path / "run", "--local-only")
        assert server.bodies == []
    assert code == 2
    assert "contacts another machine, which local-only forbids" in err
    found = re.findall(r"judges\.(\w+)\.backend: .*?; found (.*?); allowed", err)
    assert found == [
        ("there", "api.example.org"),
        ("hosted", "the provider of litellm:openai/gpt-4o"),
        ("address", "192.0.2.1:8000"),
        ("hub", "huggingface.co"),
    ]
    assert "NOT_SET" not in err
    assert not (tmp_path / "run").exists()


def test_a_proxy_between_here_and_here_is_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_file(tmp_path, served("m", "http://127.0.0.1:9/v1"))
    jb.load_bench(bench, local_only=True).close()
    monkeypatch.setenv("http_proxy", "http://u:p@proxy.example:3128")
    assert refused(bench) == ["judges.m.backend: proxy.example:3128"]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    jb.load_bench(bench, local_only=True).close()


def test_weights_in_the_cache_of_the_hub_contact_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hosts_of("vllm:owner/name", BackendSettings()) == ["huggingface.co"]
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example")
    assert hosts_of("vllm:owner/name", BackendSettings()) == ["mirror.example"]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert hosts_of("vllm:owner/name", BackendSettings()) == []


def test_a_cluster_is_other_machines(call: Any, tmp_path: Path, monkeypatch: Any) -> None:
    bench = bench_file(tmp_path, served("m", "http://127.0.0.1:9/v1"))
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.7:6379")
    code, _, err = call("run", bench, "--engine", "ray", "--local-only")
    assert code == 2
    assert "found the Ray cluster at 10.0.0.7:6379" in err


def test_run_json_lists_who_was_contacted_in_any_run(tmp_path: Path) -> None:
    def hosts() -> list[str]:
        found: list[str] = json.loads((tmp_path / "run" / "run.json").read_text())["hosts"]
        return found

    with Loopback([REPLY]) as first, Loopback([REPLY]) as second:
        one, two = (host_of(server.base_url) for server in (first, second))
        run = tmp_path / "run"
        jb.run(bench_file(tmp_path, served("a", first.base_url)), run)
        assert hosts() == [one]
        litellm = {"name": "b", "backend": "litellm:openai/x"}
        judges = served("a", first.base_url), {**served("b", second.base_url), **litellm}
        jb.run(bench_file(tmp_path, *judges), run)
        assert hosts() == sorted([one, two])
        asked = len(first.bodies)
        jb.run(bench_file(tmp_path, served("a", first.base_url)), run)
        assert hosts() == sorted([one, two])
        assert len(first.bodies) == asked


def test_who_was_asked_in_vain_was_contacted_and_who_had_nothing_to_do_was_not(
    tmp_path: Path,
) -> None:
    with Loopback([status(401)]) as server, Loopback([REPLY]) as idle:
        with pytest.raises(SetupError):
            jb.run(bench_file(tmp_path, served("a", server.base_url)), tmp_path / "run")
        found = json.loads((tmp_path / "run" / "run.json").read_text())
        assert found["hosts"] == [host_of(server.base_url)]
        jb.run(bench_file(tmp_path, served("b", idle.base_url)), tmp_path / "idle")
        manifest = tmp_path / "idle" / "run.json"
        kept = json.loads(manifest.read_text())
        kept["hosts"] = []
        manifest.write_text(json.dumps({k: v for k, v in kept.items() if k != "seal"}))
        jb.run(bench_file(tmp_path, served("b", idle.base_url)), tmp_path / "idle")
        assert json.loads(manifest.read_text())["hosts"] == []
