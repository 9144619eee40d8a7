"""What reaches the terminal: strangers' text commands nothing, and no error is a traceback."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

from judgebench.cli.show import Stream
from judgebench.progress import ProgressDisplay
from judgebench.results.terminal import Screen
from judgebench.text import for_terminal

REPO = Path(__file__).resolve().parents[2]
HOSTILE = {
    "colours": "\x1b[31mred\x1b[0m",
    "the screen cleared": "\x1b[2J\x1b[H",
    "a title": "\x1b]0;title\x07",
    "a link": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "the clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "C1 controls": "\x9b31mred\x9d0;title\x9c",
    "a question to the terminal": "\x1b[6n\x05",
    "writing from right to left": "\u202egnp.exe\u202c \u2066x\u2069",
    "a line overwritten": "error\rNo errors.",
    "backspaces": "error\b\b\b\b\bfine!",
}


def commands(shown: str) -> list[str]:
    """What a terminal would obey."""
    return re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


def test_an_error_that_quotes_a_stranger_commands_no_terminal(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    text = "".join(HOSTILE.values())
    code, out, err = call("list", text)
    assert code == 2
    assert "is not a kind of what ships" in err
    assert not commands(out + err)
    path = tmp_path / "judge.yaml"
    path.write_text(f"name: x\nbackend: {ascii_json(text)}\n")
    code, out, err = call("check", path)
    assert code == 2
    assert not commands(out + err)


def test_a_stranger_writes_no_line_of_ours_and_no_key(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    key = "sk-proj-4f9a0b7c2d8e6f1a3b5c"
    for command in ("list", "check"):
        code, out, err = call(command, tmp_path / f"x\nNo errors.\n{key}")
        assert code == 2
        assert "error: " in out + err
        assert "\nNo errors." not in f"\n{out}\n{err}"
        assert key not in out + err


def ascii_json(text: str) -> str:
    return '"' + "".join(f"\\u{ord(c):04x}" for c in text) + '"'


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_screen_shows_text_as_text(text: str) -> None:
    out = io.StringIO()
    screen = Screen(out)
    table = Table(title=text)
    table.add_column(text)
    table.add_row(f"[link=http://evil.example]{text}[/link]")
    screen.print(table, f"[red]{text}[/nonsense] :skull:", soft_wrap=True)
    with ProgressDisplay(screen) as display:
        display.start(f"[red]{text}[/nonsense]", 2, 1)
        display.say(text)
    assert not commands(out.getvalue())
    assert "[/nonsense]" in out.getvalue()
    assert ":skull:" in out.getvalue()


def test_a_screen_still_has_colours_and_bars_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    out = io.StringIO()
    screen = Screen(out)
    with ProgressDisplay(screen) as display:
        display.start("judge [bold]", 4, 2)
        screen.print("a \x1b[31m", style="bold")
    assert "judge [bold]" in out.getvalue()
    assert "\x1b[31m" not in out.getvalue()
    assert "\x1b[" in out.getvalue()


def test_a_librarys_progress_bar_may_return_to_the_start_of_its_line() -> None:
    assert for_terminal("\r 10%|#") == "\r 10%|#"
    assert for_terminal("one\r\ntwo\r") == "one\r\ntwo\ufffd"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_every_character_is_written_in_every_encoding(encoding: str) -> None:
    raw = io.BytesIO()
    stream = Stream(io.TextIOWrapper(raw, encoding, errors="strict"))
    stream.write("κ ≥ −0.5… “x” 火 🥇 \udcff")
    stream.flush()
    shown = raw.getvalue().decode(encoding)
    if encoding == "ascii":
        assert shown == 'kappa >= -0.5... "x" \\u706b \\U0001f947 ?'
    assert "0.5" in shown


def run(arguments: str, cwd: Path = REPO, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command line in a shell, where it has standard streams of its own."""
    command = f"{sys.executable} -m judgebench {arguments}"
    environment = {**os.environ, "PYTHONPATH": str(REPO), **variables}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=cwd, env=environment, capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_one_line() -> None:
    done = run("list > /dev/full")
    assert done.returncode == 1
    assert done.stderr == (
        "stopped: standard output cannot be read or written: No space left on device\n"
    )


def test_a_reader_that_goes_away_or_was_never_there_is_no_error() -> None:
    assert run("list | true").stderr == ""
    done = run("list >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_where_nothing_can_be_written_is_one_line(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    labels = tmp_path / "labels.csv"
    rows = [f"i{n},{who},{'Kind' if n % 2 else 'Rude'}\n" for n in range(6) for who in "ab"]
    labels.write_text("item_id,annotator,tone\n" + "".join(rows))
    (tmp_path / "file").write_text("kept")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        code, _, err = call("init", labels, "--to", folder)
        assert code == 1
        assert err.startswith(f"stopped: {tmp_path / 'file'}")
        assert err.count("\n") == 1
        assert "cannot be read or written: " in err
    assert (tmp_path / "file").read_text() == "kept"
