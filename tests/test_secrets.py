"""A planted key is in nothing that a run writes, logs, prints or raises."""

import base64
import gzip
import html
import json
import logging
import os
import random
import re
import string
import time
import traceback
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from aiohttp import web
from aligned import align_run
from fault_account import QUICK
from fuzz_budget import fuzzed
from hypothesis import example, given
from hypothesis import strategies as st
from loopback import Body, Loopback, Play, completion, is_few_words, raw, said, status

from judgebench.errors import SetupError
from judgebench.models.contract import Request
from judgebench.models.litellm_backend import LiteLLM
from judgebench.models.openai_compatible import OpenAICompatible
from judgebench.models.settings import BackendSettings, Secrets
from judgebench.models.transport import FEW_WORDS
from judgebench.results import documents
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import run

# With what URLs quote, what JSON escapes and what base64 writes with "+" and "/".
KEY = 'sk-planted/5f3"a9c7+e1b2d4=~x?y'
PASSWORD = "proxy-pa55word-71f3"
LOOKS = "sk-proj-4f9a0b7c2d8e6f1a3b5c"
VERDICT = {"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"}


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def forms(secret: str) -> list[str]:
    """How a secret, or eight characters of it, may stand in a file, also as a part of something in
    base64."""
    inside = [in_base64("x" * n + secret)[4:-4] for n in range(3)]
    parts = [secret[i : i + 8] for i in range(len(secret) - 7)]
    return [*parts, quote(secret, safe=""), json.dumps(secret)[1:-1], *inside]


def in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def holds(text: str, secret: str) -> bool:
    unescaped = text.replace("\\\\", "\\").replace('\\"', '"')
    return any(form in one for one in (text, unescaped) for form in forms(secret))


def found_in(folder: Path, secret: str) -> list[str]:
    """Files below that folder that hold the secret."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    assert paths
    return [str(p) for p in paths if holds(p.read_bytes().decode("utf-8", "replace"), secret)]


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and all that stand behind it, also those that Python would not show."""
    while error is not None:
        yield error
        if error.__cause__ is not None and error.__cause__ is not error.__context__:
            yield from chain(error.__cause__)
        error = error.__context__


# What a server may do with the key that it was sent ---------------------------------------------


def page(text: str, code: int = 200, **headers: str) -> Play:
    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        return web.Response(text=text, status=code, content_type="text/html", headers=named)

    return play


def sent(reply: Callable[[str], Play]) -> Play:
    """A play that says the Authorization header which really came."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        return await reply(request.headers["Authorization"])(request, body)

    return play


LONG = "x" * 980  # so that our limit on messages cuts the key in two
PLAYS: dict[str, Play] = {
    "an error": sent(lambda key: status(500, f"no: {key}")),
    "an error, cut in two": sent(lambda key: status(400, LONG + key)),
    "an error, cut without a mark": sent(lambda key: status(400, f"Incorrect: {key[:27]}")),
    "an error, without its start": sent(lambda key: status(400, f"Incorrect: {key[18:]}")),
    "an error, with stars": sent(lambda key: status(400, f"Wrong: {key[:22]}***{key[-4:]}")),
    "an error, in base64": status(400, f"no: {in_base64('Bearer ' + KEY)}"),
    "an error, quoted": status(400, f"no: /v1?key={quote(KEY, safe='')}"),
    "an error's code": sent(lambda key: raw({"error": {"message": "x", "code": key}}, 400)),
    "a 429": sent(lambda key: status(429, key, Retry_After="0")),
    "a header": sent(lambda key: raw(completion(json.dumps(VERDICT)), X_Sent=key)),
    "HTML": sent(lambda key: page(f"<p>{key}</p>")),
    "damaged JSON": sent(lambda key: page('{"choices": [' + json.dumps(key))),
    "a body without choices": sent(lambda key: raw({"object": "x", "you": key})),
    "the same, cut in two": sent(lambda key: raw({"object": "x" * 140, "you": key})),
    "a refusal": sent(lambda key: said(None, refusal=f"I refuse: {key}")),
    "a reply": sent(lambda key: said(f"The key is {key}.")),
    "a label": sent(lambda key: said(json.dumps({**VERDICT, "channel": key}))),
    "a key of the reply": sent(lambda key: said(json.dumps({**VERDICT, key: "x"}))),
}
FATAL: dict[str, Play] = {
    "a 401": sent(lambda key: status(401, f"Incorrect API key provided: {key}")),
    "a 403": sent(lambda key: status(403, key)),
    "a redirect": sent(lambda key: page(key, 302, Location=f"/v2?key={key}")),
}


def by_question(body: Body, count: int) -> Play:
    """The play that the answer names; a 429 is for the first time only."""
    if is_few_words(body):
        return said("an example")
    (name,) = re.findall(r"says it in <(.*?)>", body["messages"][-1]["content"])
    if name == "a 429" and name in _LIMITED:
        return said(json.dumps(VERDICT))
    _LIMITED.add(name)
    return PLAYS[name]


_LIMITED: set[str] = set()


@pytest.fixture(params=["openai-compatible", "litellm", "litellm, its own variable"])
def judge(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """The judge's lines of a bench.yaml, for a server's URL."""
    monkeypatch.setattr(
        "judgebench.models.openai_compatible.OpenAICompatible",
        partial(OpenAICompatible, waits=QUICK),
    )
    monkeypatch.setattr("judgebench.models.litellm_backend.LiteLLM", partial(LiteLLM, waits=QUICK))
    own = request.param == "litellm, its own variable"
    monkeypatch.setenv("OPENAI_API_KEY" if own else "PLANTED", KEY)

    def lines(url: str) -> str:
        monkeypatch.setenv("OPENAI_BASE_URL", url if own else "http://127.0.0.1:9/v1")
        kind = "openai-compatible:x" if request.param == "openai-compatible" else "litellm:openai/x"
        settings = "max_retries: 1, concurrency: 2, structured: json_schema"
        if not own:
            settings += f", base_url: '{url}', api_key_env: PLANTED"
        return f"[{{name: m, backend: '{kind}', settings: {{{settings}}}}}]"

    return lines


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


def written_bench(folder: Path, judges: str) -> Path:
    """A bench.yaml with an answer for each play."""
    rows = [f'{n},"It says it in <{name}>.",Text {n}' for n, name in enumerate(PLAYS)]
    (folder / "answers.csv").write_text("\n".join(["item_id,question,text", *rows]))
    (folder / "labels.csv").write_text("item_id,annotator,politeness\n1,ann,Polite\n2,ann,Polite\n")
    path = folder / "bench.yaml"
    path.write_text(
        f"name: b\nrubric: support-tone\ndata: [answers.csv, labels.csv]\njudges: {judges}\n"
    )
    return path


def check_told(
    error: BaseException | None, logged: pytest.LogCaptureFixture, shown: tuple[str, str]
) -> None:
    """Neither the exception with all behind it, nor logs, nor what was printed hold the key."""
    told = "".join(traceback.format_exception(error)) if error else ""
    for one in chain(error):
        told += f"{one} {one!r} {one.args!r} {vars(one)!r}"
    assert not holds(told, KEY)
    ours = (record for record in logged.records if record.name != "aiohttp.access")
    for record in ours:  # that one is the test's own server
        line = f"{record.getMessage()} {record.args!r} {record.exc_text}"
        assert not holds(line, KEY), record.name
    assert not holds("".join(shown), KEY)


def test_a_key_that_the_server_says_is_nowhere(
    judge: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    everything_logged: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("JUDGEBENCH_CACHE", str(tmp_path / "out" / "cache"))
    _LIMITED.clear()
    folder = RunFolder(tmp_path / "out" / "run")
    with Loopback(by_question) as server:
        run(load_bench(written_bench(tmp_path, judge(server.base_url))), folder)
    assert all(headers["Authorization"] == f"Bearer {KEY}" for headers in server.headers)
    ended = {v.item_id: v for v in folder.verdicts("m")}
    assert len(ended) == len(PLAYS)
    assert {v.status for v in ended.values()} == {"ok", "failed", "unparsed", "refused"}
    assert (
        sum("***" in v.raw + v.reason for v in ended.values()) >= 8
    )  # litellm keeps some to itself
    monkeypatch.setattr(documents, "drawn", lambda *_: {})  # takes long
    documents.write_report([align_run(folder).part], tmp_path / "out" / "report")
    assert found_in(tmp_path / "out", KEY) == []
    check_told(None, everything_logged, capfd.readouterr())


@pytest.mark.parametrize("play", FATAL.values(), ids=FATAL.keys())
def test_an_error_that_ends_the_run_holds_no_key(
    play: Play,
    judge: Callable[[str], str],
    tmp_path: Path,
    everything_logged: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Loopback([play]) as server:
        bench = load_bench(written_bench(tmp_path, judge(server.base_url)))
        with pytest.raises(SetupError) as caught:
            run(bench, RunFolder(tmp_path / "out"))
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert "***" in str(caught.value) or play is FATAL["a redirect"]
    assert found_in(tmp_path / "out", KEY) == []
    check_told(caught.value, everything_logged, capfd.readouterr())


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_proxys_password_is_nowhere(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: Callable[[str], str]
) -> None:
    """The proxy answers in the server's place, and says what it was sent."""
    said_back = 0

    def script(body: Body, count: int) -> Play:
        async def play(request: web.Request, body: Body) -> web.StreamResponse:
            nonlocal said_back
            said_back += 1
            heard = request.headers.get("Proxy-Authorization", "")
            return web.json_response({"error": {"message": f"{heard} {PASSWORD}"}}, status=400)

        return said("an example") if is_few_words(body) else play

    with Loopback(script) as proxy:
        address = proxy.base_url.removeprefix("http://").removesuffix("/v1")
        monkeypatch.setenv("http_proxy", f"{scheme}user:{PASSWORD}@{address}")
        monkeypatch.setenv("no_proxy", "")
        bench = written_bench(tmp_path, judge("http://judge.invalid/v1"))
        folder = RunFolder(tmp_path / "out")
        run(load_bench(bench), folder)
    assert said_back > 0
    assert found_in(tmp_path / "out", PASSWORD) == []
    assert found_in(tmp_path / "out", f"user:{PASSWORD}") == []


@pytest.mark.parametrize("kind", ["openai-compatible:x", "litellm:openai/x"])
@pytest.mark.parametrize(
    "settings",
    [
        f"api_key_env: '{KEY}', base_url: 'http://127.0.0.1:9/v1'",
        f"base_url: 'http://user:{PASSWORD}@127.0.0.1:9/v1'",
        f"base_url: 'http://127.0.0.1:9/v1?key={PASSWORD}'",
        f"api_key: '{KEY}', base_url: 'http://127.0.0.1:9/v1'",
        f"api_key_env: ['{KEY}'], base_url: 'http://127.0.0.1:9/v1'",
        f"api_key_env: {{'{KEY}': x}}, base_url: 'http://127.0.0.1:9/v1'",
        f"base_url: 'http://127.0.0.1:9/v1;key={PASSWORD}'",
        f"base_url: ['http://user:{PASSWORD}@127.0.0.1:9/v1']",
        f"base_url: 'http://127.0.0.1:9/{LOOKS}/v1'",
    ],
    ids=[
        "key for its variable",
        "password in the URL",
        "key in the URL",
        "key as a setting",
        "key in a list",
        "key in a mapping",
        "parameter of the URL",
        "URL in a list",
        "key in the path",
    ],
)
def test_a_key_in_a_file_is_refused_and_not_repeated(
    kind: str, settings: str, tmp_path: Path
) -> None:
    bench = written_bench(tmp_path, f"[{{name: m, backend: '{kind}', settings: {{{settings}}}}}]")
    with pytest.raises(SetupError) as caught:
        load_bench(bench)
    told = "".join(str(one) + repr(one) for one in chain(caught.value))
    assert not any(holds(told, secret) for secret in (KEY, PASSWORD, LOOKS))


@pytest.mark.parametrize(
    "model",
    [
        f"gpt?api_key={PASSWORD}",
        f"gpt;token={PASSWORD}",
        LOOKS,
        f"m@http://u:{PASSWORD}@h.example/v1",
        f"anna:{PASSWORD}@host.example",
        f"anna:{quote(PASSWORD).replace('-', '%2D')}@localhost",
    ],
)
def test_a_key_in_a_models_name_is_refused_and_not_repeated(model: str, tmp_path: Path) -> None:
    backend = f"openai-compatible:{model}"
    settings = "{base_url: 'http://127.0.0.1:9/v1'}"
    bench = written_bench(tmp_path, f"[{{name: m, backend: '{backend}', settings: {settings}}}]")
    with pytest.raises(SetupError, match="must hold no key or password") as caught:
        load_bench(bench)
    assert not any(holds(str(caught.value), secret) for secret in (PASSWORD, LOOKS))


def test_a_known_key_in_a_url_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "0123456789abcdefghij")
    monkeypatch.setenv("LM_KEY", "lm-studio")  # too short to be told from a host's name
    BackendSettings(base_url="http://lm-studio:1234/v1").checked_base_url()
    with pytest.raises(SetupError, match="hold no user, password or key"):
        BackendSettings(base_url="http://h.example/0123456789abcdefghij").checked_base_url()


WORDS = st.text(st.characters(codec="utf-8"), max_size=30)
MARKS = st.sampled_from(["", "***", "…", '"', "\\", "\n"])


@given(
    secret=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=60),
    cuts=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=4),
    between=st.tuples(WORDS, MARKS, WORDS, MARKS),
)
def test_no_eight_characters_of_a_secret_leave(
    secret: str, cuts: list[tuple[int, int]], between: tuple[str, ...]
) -> None:
    pieces = [secret, *(secret[start:end] for start, end in cuts)]
    text = "".join(f"{between[i % 4]}{piece}" for i, piece in enumerate(pieces))
    secrets = with_secret(secret)
    for written in (text, quote(text), html.escape(text)):
        left = secrets.scrubbed(written)
        assert not any(secret[i : i + 8] in left for i in range(len(secret) - 7))


NAMED = {"/": "sol", "+": "plus", "=": "equals", "_": "lowbar", ".": "period", "&": "amp"}
# How one character may be written.
ESCAPES: dict[str, Callable[[str], str]] = {
    "as it is": lambda c: c,
    "in a URL": lambda c: f"%{ord(c):02X}",
    "in a URL, small": lambda c: f"%{ord(c):02x}",
    "in a URL, twice": lambda c: f"%25{ord(c):02x}",
    "in an old URL": lambda c: f"%u{ord(c):04x}",
    "in JSON": lambda c: f"\\u{ord(c):04x}",
    "in JSON, large": lambda c: f"\\u{ord(c):04X}",
    "in JSON in JSON": lambda c: f"\\\\u{ord(c):04x}",
    "in JavaScript": lambda c: f"\\u{{{ord(c):x}}}",
    "in Python": lambda c: f"\\x{ord(c):02x}",
    "in Python, long": lambda c: f"\\U{ord(c):08X}",
    "with a backslash": lambda c: f"\\{c}" if c in "/\"'" else c,
    "in HTML": lambda c: f"&#{ord(c)};",
    "in HTML, hexadecimal": lambda c: f"&#x{ord(c):x};",
    "in HTML, large": lambda c: f"&#X{ord(c):04X};",
    "in HTML, named": lambda c: f"&{NAMED[c]};" if c in NAMED else c,
    "in HTML in HTML": lambda c: f"&amp;#{ord(c)};",
    "in HTML in a URL": lambda c: f"%26%23{ord(c)}%3B",
    "in a URL in JSON": lambda c: f"\\u0025{ord(c):02x}",
    "behind what nobody sees": lambda c: f"\u200b\u2060{c}",
    "before what nobody sees": lambda c: f"{c}\ufe0f\u034f\U000e0041",
    "before what nobody sees in JSON": lambda c: f"{c}\\u200b",
}
LETTERS = st.text(st.sampled_from(string.ascii_letters + string.digits), min_size=16)
KEYS = st.builds(
    "{}/{}{}".format, LETTERS, LETTERS, st.text(st.sampled_from("-_./+=~"), max_size=4)
)


def with_secret(secret: str) -> Secrets:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLANTED", secret)
        return Secrets("PLANTED")


def read_wholly(text: str) -> str:
    """`text` with every escape read, as the libraries of these formats read them."""
    digits = r"\\+(?:u\{(\w+)\}|u(\w{4})|U(\w{8})|x(\w\w))|%u(\w{4})"
    for _ in range(9):
        text = html.unescape(unquote(text))
        text = re.sub(digits, lambda m: chr(int(m[m.lastindex or 0], 16)), text, flags=re.ASCII)
        text = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Mn", "Cs"))
    return re.sub(r"\\+([\"'/\\])", r"\1", text)


def parts(secret: str, length: int) -> list[str]:
    return [secret[i : i + length] for i in range(len(secret) - length + 1)]


ALIKE = st.sampled_from([*ESCAPES]).map(lambda name: [name] * 60)
HALF = st.sampled_from([*ESCAPES]).flatmap(
    lambda name: st.lists(st.sampled_from([name, "as it is"]), min_size=60, max_size=60)
)
MIXED = st.lists(st.sampled_from([*ESCAPES]), min_size=60, max_size=60)


@fuzzed(2)
@given(key=KEYS, names=ALIKE | HALF | MIXED, quoted=st.booleans())
@example(key="sk-planted/5f3a9c7+e1b2", names=["in JSON in JSON", "as it is"] * 30, quoted=True)
def test_no_part_of_an_escaped_key_leaves(key: str, names: list[str], quoted: bool) -> None:
    written = "".join(ESCAPES[name](c) for c, name in zip(key, names, strict=False))
    assert read_wholly(written) == key[:60]
    text = f"Bearer {written}, and 5 % of them"
    left = with_secret(key[:60]).scrubbed(json.dumps({"why": text}) if quoted else text)
    assert not any(eight in left for eight in parts(key, 8))
    assert not any(part in read_wholly(left) for part in parts(key, 17))  # 12 letters and digits


@fuzzed()
@given(key=KEYS, between=st.sampled_from(["", " ", ":", "-"]), seed=st.integers(0, 2**32))
def test_no_eight_characters_of_a_key_leave_in_hexadecimal_digits(
    key: str, between: str, seed: int
) -> None:
    rng = random.Random(seed)
    digits = "".join(rng.choice([c, c.upper()]) for c in key.encode().hex(between or "x"))
    digits = digits.replace("x", "").replace("X", "")
    before = rng.choice(["", "0", "ab", "7f3"]) + between
    left = with_secret(key).scrubbed(f"key {before}{digits}: unknown")
    said = left.lower().replace(between or "x", "")
    assert not any(eight.encode().hex() in said for eight in parts(key, 8))


def test_nothing_is_left_of_a_text_that_holds_a_key_in_another_form() -> None:
    scrubbed = with_secret(KEY).scrubbed
    assert scrubbed(f"a {KEY} b") == "a *** b"
    for text in (quote(KEY), "_".join(KEY), KEY.swapcase(), in_base64(f"ab{KEY}cd")):
        assert (
            scrubbed(f"a {text} b") == "*** (a text that holds a key or password in another form)"
        )


@pytest.mark.parametrize("between", ["\n", "\t", "\r\n", "bold"])
def test_a_key_inside_a_verdicts_reason_is_not_kept(
    between: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reason is read from JSON, which writes a line's end as a letter and a bold one as two
    escapes."""
    monkeypatch.setenv("PLANTED", KEY)
    bold = {ord(c): ord(c) + 0x1D400 - 65 for c in string.ascii_uppercase}
    bold |= {ord(c): ord(c) + 0x1D41A - 97 for c in string.ascii_lowercase}
    written = KEY.translate(bold) if between == "bold" else between.join(KEY)
    reply = json.dumps({"rationale": f"The key is {written}.", **VERDICT})
    with Loopback([said(reply)]) as server:
        settings = f"{{base_url: '{server.base_url}', api_key_env: PLANTED}}"
        backend = "openai-compatible:x"
        lines = f"[{{name: m, backend: '{backend}', prompt: rationale, settings: {settings}}}]"
        folder = RunFolder(tmp_path / "out")
        run(load_bench(written_bench(tmp_path, lines)), folder)
    assert {v.rationale for v in folder.verdicts("m")} == {""}
    kept = unicodedata.normalize("NFKC", folder.verdict_path("m").read_text()).replace("\\", "")
    assert "planted" not in re.sub(r"(?<=[a-z])[rnt]+(?=[a-z])", "", kept)
    assert "***" in kept


@pytest.mark.parametrize(
    "most", [100, pytest.param(20_000, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_ordinary_texts_are_not_changed(shared_data: Path, most: int) -> None:
    """Of public texts, as they are, in JSON and escaped for a page or a URL, none changes."""
    secrets, seen = with_secret("sk-planted-5f3a9c7e1b2d4"), 0
    for path in shared_data.glob("*/*.gz"):
        if path.suffixes[-2] in (".csv", ".jsonl"):
            lines = gzip.decompress(path.read_bytes()).decode().split("\n")[:most]
            for escape in (str, json.dumps, html.escape, quote):
                texts = [escape(line[:2_000]) for line in lines]
                assert [text for text in texts if secrets.scrubbed(text) != text] == []
            seen += len(lines)
    assert seen >= min(3 * most, 20_000)


def test_a_models_name_with_a_login_is_not_kept() -> None:
    secrets = Secrets()
    for name in (
        "anna:pa55word@host.example", "gpt:anna:pa55word@localhost", "x:s3cret@10.0.0.1:8000/m",
        "anna:pa55word@[::1]", "https%3A%2F%2Fanna%3Apa55word%40host.example/m",
    ):  # fmt: skip
        assert secrets.stands_in(name), name
        assert secrets.scrubbed_name(name) == "***"
    for name in (
        "claude-3-5-sonnet@20240620", "vertex:claude@001", "llama3:8b@sha256:0a1b2c3d4e5f6a7b",
        "@cf/meta/llama-3-8b", "org/model:Q4_K_M", "gpt-4o-2024-08-06, engine fp_44709d6fcb",
        "ft:gpt-4o:org:name:id",
    ):  # fmt: skip
        assert not secrets.stands_in(name), name
        assert secrets.scrubbed_name(name) == name


def ways_to_name(key: str) -> dict[str, str]:
    """How an endpoint may write a key into its model's name."""
    joined = ("\u200b", "\x01", "\x7f", "\u0301", "\u2028", "\U000e0041", "\\", '"')
    ways = {f"joined by {mark!r}": mark.join(key) for mark in joined}
    return ways | {
        "JSON": "".join(f"\\u{ord(c):04x}" for c in key),
        "Python": "".join(f"\\x{ord(c):02x}" for c in key),
        "Python, long": "".join(f"\\U{ord(c):08x}" for c in key),
        "full width": "".join(chr(ord(c) + 0xFEE0) for c in key),
        "in quotes": f'"{key}"',
        "after a long name": "m" * 95 + key,
    }


@pytest.mark.parametrize("way", ways_to_name(KEY))
def test_a_key_in_the_name_of_the_model_that_replied_is_not_kept(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    name = ways_to_name(KEY)[way]
    with Loopback([raw({**completion("x"), "model": name, "system_fingerprint": name})]) as server:
        settings = BackendSettings(base_url=server.base_url, api_key_env="A_KEY")
        (reply,) = OpenAICompatible("m", settings).complete([Request("1", FEW_WORDS)])
    assert reply.model == "***"


def test_what_looks_like_a_key_or_stands_before_a_host_is_hidden() -> None:
    models = "sk-learn-based-classifiers of 2026 and hf_llama3-8b-instruct-v2"
    text = f"{LOOKS} at https://anna:pw@host.example/a and {models}"
    assert Secrets().scrubbed(text) == f"*** at https://***@host.example/a and {models}"


@pytest.mark.parametrize("text", [
    "sk-", "*", "abcd", "https://a", "abcd***", "abcd12", "/*@:", "%25", "25", "\\\\", "\\u0061b",
    "&#97;", "61", "61 ", "\u200b", ":aaaa@",
])  # fmt: skip
def test_a_hostile_text_is_scrubbed_in_linear_time(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", "abcd1234567890wxyz")
    secrets = Secrets("PLANTED")
    began = time.process_time()
    secrets.scrubbed(text * (200_000 // len(text)))
    assert time.process_time() - began < 5


def test_a_path_is_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY_FILE", str(tmp_path))
    assert Secrets().scrubbed(f"{tmp_path}/file: no such file") == f"{tmp_path}/file: no such file"


def test_a_key_that_no_header_can_hold_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("sk-plan\nted", "schlüssel-42"):
        monkeypatch.setenv("PLANTED", wrong)
        with pytest.raises(SetupError, match="PLANTED holds what no key holds") as caught:
            BackendSettings(api_key_env="PLANTED").api_key()
        assert wrong not in str(caught.value)


def test_text_without_a_secret_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", KEY)
    monkeypatch.setenv("SHORT_KEY", "none")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "disabled-by-hand")
    secrets = Secrets("PLANTED")
    text = "There is none, disabled-by-hand: sk-plain…"
    assert secrets.scrubbed(text) == text
    assert secrets.scrubbed(f"a {KEY} b") == "a *** b"
    assert KEY not in repr(secrets) + repr(vars(Secrets))
    assert with_secret("github_pat_11ABCDEFG0").scrubbed("on GitHub Pages") == "on GitHub Pages"


def test_the_search_finds_what_it_is_to_find(tmp_path: Path) -> None:
    for number, text in enumerate(
        [KEY, json.dumps({"a": KEY}), json.dumps(json.dumps(KEY)), in_base64(f"ab{KEY}cd"),
         quote(KEY, safe=""), KEY[:20] + "…"]
    ):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "file").write_text(text)
        assert found_in(folder, KEY), text
    assert "PLANTED" not in os.environ


def test_a_dump_of_the_transport_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", KEY)
    settings = BackendSettings(base_url="http://127.0.0.1:9/v1", api_key_env="PLANTED")
    shown: Any = OpenAICompatible("x", settings)
    assert not holds(repr(shown) + repr(vars(shown._transport)), KEY)
