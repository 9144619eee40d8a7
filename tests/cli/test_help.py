"""The help of every command: plain words, and the same name, word and help for the same thing."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from judgebench.cli.app import app
from judgebench.cli.exit_codes import EXIT_CODES
from judgebench.features import FEATURES

REPO = Path(__file__).resolve().parents[2]
TYPES = re.compile(
    r"\b(PATH|INTEGER|FLOAT|BOOLEAN|FILENAME|DIRECTORY|UUID|DATETIME)\b|<[a-z][^>]*>"
    r"|Optional|Annotated|Literal|list\[|None\b|\bstr\b|\bint\b"
)
# Options whose value is another thing in one command than in another.
DIFFERENT = {
    "--all", "--anchors", "--by", "--column", "--judge", "--key", "--metric", "--repeats",
    "--sample", "--score", "--to",
}  # fmt: skip


def commands(group: Any, name: str = "judgebench") -> Iterator[tuple[str, Any]]:
    """Every group and command, with what is typed to call it."""
    yield name, group
    for key, below in getattr(group, "commands", {}).items():
        yield from commands(below, f"{name} {key}")


EVERY = dict(commands(get_command(app)))


@pytest.mark.parametrize("name", EVERY)
def test_help_shows_an_example_and_no_python_types_and_minus_h_is_help(call, name: str) -> None:  # type: ignore[no-untyped-def]
    words = name.split()[1:]
    code, out, err = call(*words, "-h")
    assert (code, err) == (0, "")
    assert call(*words, "--help") == (0, out, "")
    assert not [match.group(0) for match in TYPES.finditer(out)]
    group = EVERY[name.rpartition(" ")[0] or name]
    typed = name.removesuffix(f" {getattr(group, 'default', '')}")  # which may be left out
    assert f"Example: {typed}" in out or hasattr(EVERY[name], "commands")


@pytest.mark.parametrize("name", EVERY)
def test_help_is_one_screen(call, monkeypatch: pytest.MonkeyPatch, name: str) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("COLUMNS", "80")

    lines = call(*name.split()[1:], "--help")[1].splitlines()

    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80


def test_exit_codes_are_one_table(call) -> None:  # type: ignore[no-untyped-def]
    page = (REPO / "docs" / "commands.md").read_text("utf-8")
    shown = call("--help")[1].partition("Exit codes:\n")[2].splitlines()

    assert re.findall(r"^\| (\d+) \| (.*) \|$", page, re.MULTILINE) == [
        (str(code), meaning) for code, meaning in EXIT_CODES.items()
    ]
    assert [line.split(maxsplit=1) for line in shown] == [
        [str(code), meaning] for code, meaning in EXIT_CODES.items()
    ]


def test_what_takes_a_value_says_what_the_value_is() -> None:
    for name, command in EVERY.items():
        for param in command.params:
            if not getattr(param, "is_flag", False) and "completion" not in str(param.name):
                assert param.metavar, f"{name}: {param.name} has no metavar"
                assert getattr(param, "help", ""), f"{name}: {param.name} has no help"


def test_the_same_option_has_the_same_value_and_the_same_help_everywhere() -> None:
    said: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for command in EVERY.values():
        for param in command.params:
            for option in param.opts if param.param_type_name == "option" else ():
                said[option].add((str(param.metavar), str(param.help)))
    several = {option: found for option, found in said.items() if len(found) > 1}
    assert several.keys() <= DIFFERENT
    assert len({metavar for metavar, _ in said["--sample"]}) <= 1


def test_every_command_that_prints_results_has_verbose_quiet_and_json() -> None:
    printing = {"demo", "run", "compare", "decide", "align", "report", "stress bench", "rank run"}
    for name in printing & {typed.removeprefix("judgebench ") for typed in EVERY}:
        options = {o for param in EVERY[f"judgebench {name}"].params for o in param.opts}
        assert {"-v", "--verbose", "-q", "--quiet", "--json"} <= options, name


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_is_shown(call, option: str) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call(option)
    assert (code, out.split()[0]) == (0, "judgebench")


def test_the_module_is_the_command_and_shells_are_completed() -> None:
    def python(*words: str) -> str:
        asked = [sys.executable, "-m", "judgebench", *words]
        # which shell runs a test differs; here the shell is named
        named = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
        ran = subprocess.run(asked, capture_output=True, text=True, check=True, env=named)
        return ran.stdout

    assert python("-V").startswith("judgebench ")
    assert "completion" in python("--show-completion", "bash")


def test_commands_stand_in_groups_and_no_summary_is_cut(
    call, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    shown = {}
    for width in (60, 80, 110):
        monkeypatch.setenv("COLUMNS", str(width))
        _, shown[width], _ = call("--help")
        lines = shown[width].splitlines()
        assert "..." not in shown[width].partition("Start:")[2]
        assert width - 20 < max(map(len, lines)) <= width
        headings = [line[:-1] for line in lines if line and line[0] != " " and line[-1] == ":"]
        assert headings == ["Start", "Judge", "Labels", "Report", "More", "Options", "Exit codes"]
    below = {re.split(r"\s+", line)[1] for line in shown[110].splitlines() if line[:2] == "  "}
    assert set(get_command(app).commands) <= below
    start = shown[80].partition("Start:\n")[2].partition("\n\n")[0]
    named = re.findall(r"^  (\w+)", start, re.MULTILINE)
    assert named == [name for name in ("decide", "init", "check", "demo") if name in named]


def test_what_decide_align_and_report_share_stands_in_the_same_order() -> None:
    names = [name for name in ("decide", "align", "report") if f"judgebench {name}" in EVERY]
    options = {n: [p.opts[0] for p in EVERY[f"judgebench {n}"].params] for n in names}
    shared = set.intersection(*map(set, options.values()))
    assert {"--labels", "--truth", "--blind", "--as-judge", "--rule", "--json"} <= shared
    assert len({tuple(o for o in found if o in shared) for found in options.values()}) == 1


GROUPS = {name: group.default for name, group in EVERY.items() if getattr(group, "default", "")}


@pytest.mark.parametrize("name", GROUPS)
def test_usage_leaves_out_the_default_command(call, name: str) -> None:  # type: ignore[no-untyped-def]
    code, _, err = call(*name.split()[1:], "--nonsense")
    assert code == 2
    assert f"{name} [OPTIONS]" in err
    assert f"{name} {GROUPS[name]} " not in err


@pytest.mark.skipif("scorers" not in FEATURES, reason="asks a group with a command of its own")
def test_arguments_that_name_no_command_are_those_of_the_default(call, tmp_path) -> None:  # type: ignore[no-untyped-def]
    table = tmp_path / "answers.csv"
    table.write_text("item_id,text\na,one two\n")
    asked = (table, "--scorer", "length", "--kept", tmp_path / "kept", "-q")
    assert call("score", *asked) == (0, "", "")
    assert call("score", *asked[1:], table) == call("score", "table", *asked) == (0, "", "")
    assert "Missing argument 'QUESTIONS'" in call("score", "answers")[2]
    assert "judgebench score [OPTIONS] ANSWERS | COMMAND" in call("score", "--help")[1]
