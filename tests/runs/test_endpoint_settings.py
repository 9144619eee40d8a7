"""The settings that an endpoint needs, from a judge's file to what the endpoint gets."""

import json
import math
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from batch_server import BatchServer
from killed_run import REPLY
from loopback import Body, Loopback, Play, said, status

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.files import load_model
from judgebench.judges.config import JudgeConfig

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"  # looks like any other number


class Gateway(BatchServer):
    """An endpoint that takes only what has its version in the query."""

    def __init__(self) -> None:
        super().__init__(lambda body: REPLY)
        self.paths: list[str] = []

    def _add_routes(self, app: web.Application) -> None:
        @web.middleware
        async def versioned(request: web.Request, handler: Any) -> web.StreamResponse:
            self.paths.append(request.path)
            known = request.query.get("api-version") == "2024-10-21"
            return await handler(request) if known else web.json_response({}, status=400)

        app.middlewares.append(versioned)
        super()._add_routes(app)


def bench_file(folder: Path, url: str, n: int = 2, **judge: Any) -> Path:
    rows = "".join(f"i{i},q{i},reply {i}\n" for i in range(n))
    (folder / "answers.csv").write_text("item_id,question,text\n" + rows)
    labels = "".join(f"i{i},{who},Polite\n" for i in range(n) for who in "ab")
    (folder / "labels.csv").write_text("item_id,annotator,politeness\n" + labels)
    settings = {"base_url": url, **judge.pop("settings", {})}
    entry = {"name": "m", "backend": "openai-compatible:x", "settings": settings, **judge}
    bench = {
        "name": "b", "rubric": "support-tone", "data": ["answers.csv", "labels.csv"],
        "controls": False, "judges": [entry],
    }  # fmt: skip
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(bench))
    return path


def verdicts(run: Path) -> list[dict[str, Any]]:
    lines = (run / "verdicts-m.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if '"item_id"' in line]


def backend_of(run: Path) -> dict[str, Any]:
    """The facts on which verdicts depend, as the manifest has them."""
    judges = json.loads((run / "run.json").read_text())["judges"]
    found: dict[str, Any] = judges["m"]["about"]["backend"]
    return found


# --- what is sent --------------------------------------------------------------------------------


def test_our_own_neutral_values_are_not_sent_and_written_ones_are(tmp_path: Path) -> None:
    with Loopback([said(REPLY)]) as server:
        jb.run(bench_file(tmp_path, server.base_url), tmp_path / "a")
        decoding = {"top_p": 1, "seed": 0}
        jb.run(bench_file(tmp_path, server.base_url, decoding=decoding), tmp_path / "b")
        plain, written = server.bodies[0], server.bodies[-1]
    assert plain["temperature"] == 0
    assert not {"top_p", "seed"} & plain.keys()
    assert (written["top_p"], written["seed"]) == (1, 0)
    signatures = {line["signature"] for run in "ab" for line in verdicts(tmp_path / run)}
    assert len(signatures) == 2


def test_headers_and_extra_body_are_sent_and_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_API_KEY", KEY)
    settings = {
        "headers": {"api-key": "${GATEWAY_API_KEY}", "X-Title": "judges"},
        "extra_body": {"top_k": 20, "provider": {"order": ["a"]}, "min_p": None},
    }

    def play(body: Body, count: int) -> Play:
        return said(REPLY + f" {KEY}") if count else said(REPLY)

    with Loopback(play) as server:
        jb.run(bench_file(tmp_path, server.base_url, settings=settings), tmp_path / "run")
    assert (server.headers[0]["api-key"], server.headers[0]["X-Title"]) == (KEY, "judges")
    assert "Authorization" not in server.headers[0]
    (body, *_) = server.bodies
    assert (body["top_k"], body["provider"]) == (20, {"order": ["a"]})
    assert "min_p" not in body
    about = backend_of(tmp_path / "run")
    assert about["headers"] == settings["headers"]
    assert about["extra_body"]["top_k"] == 20
    for path in tmp_path.rglob("*.json*"):
        assert KEY not in path.read_text()


def test_a_header_whose_variable_is_not_set_is_told_by_check(call: Any, tmp_path: Path) -> None:
    settings = {"headers": {"api-key": "${NO_SUCH_KEY}"}}
    bench = bench_file(tmp_path, "http://127.0.0.1:9/v1", settings=settings)
    _, out, err = call("check", bench)
    message = "judges.m.settings.headers.api-key: the environment variable NO_SUCH_KEY is not set"
    assert message in out + err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"headers": {"api-key": KEY}}, "api-key must name the variable"),
        ({"headers": {"X-Tag": "sk-0123456789abcdef0123"}}, "X-Tag must name the variable"),
        ({"headers": {"X-Tag": "${HOME}"}}, "variables that are named as a key is"),
        ({"headers": {"Authorization": "Bearer ${A_KEY}"}}, "by `api_key_env`"),
        ({"headers": {"X-Tag": "a\r\nX-Other: b"}}, "match pattern"),
        ({"headers": {"X-Tag": "a $ b"}}, "match pattern"),
        ({"headers": {"X-Tag": "${\u00e9_KEY}"}}, "match pattern"),
        ({"extra_body": {"model": "other"}}, "'model' is settled by backend"),
        ({"extra_body": {"messages": []}}, "'messages' is settled by prompt"),
        ({"extra_body": {"temperature": 1}}, "'temperature' is settled by decoding.temperature"),
        ({"extra_body": {"response_format": {}}}, "is settled by settings.structured"),
        ({"extra_body": {"logprobs": True}}, "'logprobs' is settled by probabilities"),
        ({"extra_body": {"max_completion_tokens": 9}}, "is settled by settings.max_tokens_as"),
        ({"extra_body": {"stream": True}}, "'stream' is settled by judgebench"),
        ({"extra_body": {"reasoning_effort": "low"}}, "is settled by settings.thinking.send"),
        ({"extra_body": {"user": "sk-0123456789abcdef0123"}}, "must hold no key"),
        ({"extra_body": {"provider": {"api_key": KEY}}}, "must hold no key"),
        ({"headers": {"Cookie": f"session={KEY}"}}, "Cookie must name the variable"),
        ({"headers": {"Proxy-Authorization": KEY}}, "Proxy-Authorization must name the variable"),
        ({"extra_body": {"input": "Say yes."}}, "'input' is settled by prompt"),
        ({"extra_body": {"state": "Say yes."}}, "'state' is settled by prompt"),
        ({"extra_body": {"questions": []}}, "'questions' is settled by rubric"),
        ({"extra_body": {"max_output_tokens": 9}}, "is settled by decoding.max_tokens"),
        ({"extra_body": {"since": date(2026, 11, 29)}}, "must hold what JSON can"),
        ({"extra_body": {"bias": {"x": math.nan}}}, "must hold what JSON can"),
    ],
)
def test_what_is_settled_elsewhere_or_holds_a_key_is_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    bench = bench_file(tmp_path, "http://127.0.0.1:9/v1", settings=settings)
    with pytest.raises(SetupError) as refused:
        jb.load_bench(bench)
    (problem,) = refused.value.problems
    assert message in problem.message
    assert re.search(r"bench.yaml:\d+: settings\.(headers|extra_body)", str(problem))
    assert KEY not in str(refused.value)
    assert "sk-0123456789" not in str(refused.value)


def test_a_query_of_the_address_stays_behind_every_path(tmp_path: Path) -> None:
    with Gateway() as server:
        url = f"{server.base_url}/?api-version=2024-10-21"
        jb.run(bench_file(tmp_path, url), tmp_path / "single")
        jb.run(bench_file(tmp_path, url), tmp_path / "batch", batch=True)
        server.unanswered["create"].append(status(500))  # so that it is looked for in the list
        jb.run(bench_file(tmp_path, url, n=3), tmp_path / "found", batch=True)
    for run, n in {"single": 2, "batch": 2, "found": 3}.items():
        assert [v["status"] for v in verdicts(tmp_path / run)] == ["ok"] * n
    assert {path.split("/")[2] for path in server.paths} == {"chat", "files", "batches"}
    base_url = backend_of(tmp_path / "single")["base_url"]
    assert base_url == f"{server.base_url}?api-version=2024-10-21"


def test_litellm_refuses_a_query_that_it_would_drop(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/v1?api-version=1"
    with pytest.raises(SetupError, match="holds a query, which only an openai-compatible"):
        jb.load_bench(bench_file(tmp_path, url, backend="litellm:openai/x"))


SEVERAL = """
name: tags
version: "1"
instructions: Which tags fit?
metrics:
  - {id: tag, kind: nominal, several: true, labels: [Red, Blue, Green]}
"""


@pytest.mark.parametrize("backend", ["openai-compatible:x", "litellm:openai/x"])
def test_a_strict_schema_has_no_bounds_and_replies_are_read(tmp_path: Path, backend: str) -> None:
    reply = json.dumps({"rationale": "w" * 900, "tag": ["Red", "Red", "Blue", "Red"]})

    def strict(body: Body, count: int) -> Play:
        schema = json.dumps(body.get("response_format", body.get("tools")))
        keyword = re.search("maxLength|minItems|maxItems", schema)
        return status(400, f"{keyword[0]} is not permitted") if keyword else said(reply)

    (tmp_path / "tags.yaml").write_text(SEVERAL)
    with Loopback(strict) as server:
        bench = bench_file(tmp_path, server.base_url, backend=backend, prompt="rationale")
        found = yaml.safe_load(bench.read_text()) | {"rubric": "tags.yaml"}
        bench.write_text(yaml.safe_dump(found))
        (tmp_path / "labels.csv").write_text("item_id,annotator,tag\ni0,a,Red\ni1,a,Blue\n")
        jb.run(bench, tmp_path / "run")
    assert [v["labels"] for v in verdicts(tmp_path / "run")] == [{"tag": "Red | Blue"}] * 2
    assert "strict" in json.dumps(server.bodies[0])


# --- what is refused -----------------------------------------------------------------------------


REFUSALS = {
    "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
    "max_tokens": "Unsupported parameter: 'max_tokens': use 'max_completion_tokens'.",
    "top_k": "Unrecognized request argument supplied: top_k",
    "json_schema": "Invalid parameter: 'response_format' of type 'json_schema'",
    "tools": '"auto" tool choice requires --enable-auto-tool-choice to be set',
}


def choosy(body: Body, count: int) -> Play:
    """An endpoint that refuses one parameter after another."""
    asked = {*body, body.get("response_format", {}).get("type")}
    refused = [message for name, message in REFUSALS.items() if name in asked]
    return status(400, refused[0]) if refused else said(REPLY)


@pytest.mark.parametrize("kind", ["openai-compatible", "litellm"])
def test_the_lines_of_one_error_are_all_that_was_wrong(tmp_path: Path, kind: str) -> None:
    judge: dict[str, Any] = {"backend": f"{kind}:openai/x"}
    if kind != "litellm":
        judge["settings"] = {"extra_body": {"top_k": 9}}
    with Loopback(choosy) as server:
        with pytest.raises(SetupError) as refused:
            jb.run(bench_file(tmp_path, server.base_url, **judge), tmp_path / "run")
        assert len(server.bodies) <= 9
        for line in re.findall("`([a-z]+: {.*?})`", str(refused.value)):
            judge |= yaml.safe_load(line)
        assert judge["decoding"] == {"temperature": None}
        named = {"max_tokens_as": "max_completion_tokens", "structured": "json_object"}
        assert judge["settings"].items() >= named.items()
        jb.run(bench_file(tmp_path, server.base_url, **judge), tmp_path / "run")
    assert {v["status"] for v in verdicts(tmp_path / "run")} == {"ok"}
    assert str(refused.value).count("HTTP 400: ") == len(REFUSALS) - (kind == "litellm")


@pytest.mark.parametrize(
    ("lines", "field", "place"),
    [
        ("temperature: 0", "temperature", "decoding.temperature"),
        ("settings: {temperature: 0}", "settings.temperature", "decoding.temperature"),
        ("settings: {max_tokens: 9}", "settings.max_tokens", "decoding.max_tokens"),
        ("reasoning_effort: low", "reasoning_effort", "settings.thinking.send"),
        ("decoding: {reasoning_effort: low}", "decoding.reasoning_effort",
         "settings.thinking.send"),
        ("settings: {chat_template_kwargs: {}}", "settings.chat_template_kwargs",
         "settings.thinking.send"),
        ("headers: {a: b}", "headers", "settings.headers"),
        ("base_url: x", "base_url", "settings.base_url"),
        ("decoding: {concurrency: 4}", "decoding.concurrency", "settings.concurrency"),
        ("decoding: {top_k: 4}", "decoding.top_k", "settings.extra_body"),
        ("settings: {structured_outputs: {}}", "settings.structured_outputs",
         "settings.extra_body"),
        ("settings: {response_format: {}}", "settings.response_format", "settings.structured"),
        ("decoding: {logprobs: true}", "decoding.logprobs", "probabilities"),
        ("decoding: {max_completion_tokens: 9}", "decoding.max_completion_tokens",
         "settings.max_tokens_as"),
        ("model: gpt", "model", "backend"),
    ],
)  # fmt: skip
def test_a_misplaced_key_names_its_place(
    tmp_path: Path, lines: str, field: str, place: str
) -> None:
    (tmp_path / "judge.yaml").write_text(f"name: m\nbackend: openai-compatible:x\n{lines}\n")
    with pytest.raises(SetupError) as refused:
        load_model(tmp_path / "judge.yaml", JudgeConfig)
    (problem,) = refused.value.problems
    assert (problem.field, problem.line) == (field, 3)
    assert problem.message == f"is not a known key; it is settled by {place}"
