"""Before a file outside the current folder sends a key anywhere, the command says so."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from loopback import Loopback, said, status

REPO = Path(__file__).resolve().parents[2]
REPLY = said(json.dumps({"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"}))


def written(folder: Path, url: str) -> Path:
    folder.mkdir()
    rows = "".join(f"i{n},q{n},reply {n}\n" for n in range(4))
    (folder / "answers.csv").write_text("item_id,question,text\n" + rows)
    labels = "".join(f"i{n},{who},Polite\n" for n in range(4) for who in "ab")
    (folder / "labels.csv").write_text("item_id,annotator,politeness\n" + labels)
    settings = f"{{base_url: '{url}', api_key_env: SOME_VARIABLE}}"
    (folder / "bench.yaml").write_text(
        "name: b\nrubric: support-tone\ndata: [answers.csv, labels.csv]\n"
        f"judges: [{{name: m, backend: 'openai-compatible:x', settings: {settings}}}]\n"
    )
    return folder / "bench.yaml"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder is none of the benchmark's."""
    monkeypatch.setenv("SOME_VARIABLE", "0123456789abcdef")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def test_the_first_run_of_a_file_from_elsewhere_says_where_keys_go(  # type: ignore[no-untyped-def]
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Loopback(lambda body, count: REPLY) as server:
        bench = written(tmp_path / "theirs", server.base_url)
        host = server.base_url.removeprefix("http://").removesuffix("/v1")
        sent = f"sends the value of $SOME_VARIABLE to {host}."
        sentence = f"{bench} lies outside the current folder and {sent}"
        judged = ("run", bench, "-q")
        assert call(*judged, "--dry-run")[2] == ""
        assert call("check", bench)[2] == ""
        assert call(*judged) == (0, "", sentence + "\n")
        assert call(*judged) == (0, "", ""), "it resumes the first"
        monkeypatch.chdir(tmp_path / "theirs")
        assert call(*judged) == (0, "", ""), "a file of the current folder is one's own"


def test_an_error_of_a_server_commands_nothing_and_holds_no_key(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    key = os.environ["SOME_VARIABLE"]
    error = f"\x1b[2J\x1b]52;c;eA==\x07[red]Incorrect API key: {key[:13]}\r"
    with Loopback([status(401, error)]) as server:
        bench = written(tmp_path / "theirs", server.base_url)
        code, out, err = call("run", bench)
    assert code == 2
    assert "[red]Incorrect API key: ***" in err
    assert not set("\x1b\x07\r") & set(out + err)
    assert not any(part in out + err for part in (key[:4], key[4:8]))


def test_a_terminal_is_asked_and_may_say_no(tmp_path: Path) -> None:
    with Loopback(lambda body, count: REPLY) as server:
        bench = written(tmp_path / "theirs", server.base_url)
        ours, theirs = pty.openpty()
        os.write(ours, b"n\n")
        done = subprocess.run(
            [sys.executable, "-m", "judgebench", "run", str(bench)],
            stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, check=False,
            env={**os.environ, "PYTHONPATH": str(REPO)},
        )  # fmt: skip
        told = os.read(ours, 10_000).decode()
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 1
    assert "sends the value of $SOME_VARIABLE to 127.0.0.1:" in told
    assert "Go on? [y/N]:" in told
    assert not server.headers
    assert not (tmp_path / "here" / "runs").exists()
