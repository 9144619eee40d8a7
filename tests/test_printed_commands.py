"""Every command that the documentation prints exists, and prints what the page shows."""

import csv
import os
import re
import runpy
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from printed import FENCE, Block, blocks, lines_of, rewritten, same
from typer.main import get_command

from judgebench.cli.app import app
from judgebench.data.settings import TableSettings
from judgebench.data.vocabulary import Column

REPO = Path(__file__).resolve().parents[1]
PAGES = [
    REPO / "README.md",
    *sorted((REPO / "docs").glob("*.md")),
    *REPO.glob("examples/*/README.md"),
]
NAMES = [page.relative_to(REPO).as_posix() for page in PAGES]
TABLES = REPO / "docs" / "tables"
LOG = REPO / "tests" / "importers" / "files" / "lm-eval-choices.jsonl"
JUDGEBENCH: Any = get_command(app)
# These commands go with a feature that may be taken out.
OF_FEATURES = (
    "annotate", "compare", "estimate", "rank", "score", "stress", "tune", "watch",
)  # fmt: skip
# Blocks of these kinds show no commands.
NO_COMMANDS = ("python", "yaml", "json", "csv", "jinja", "nginx", "mermaid", "text")


def printed_lines(page: str) -> list[str]:
    """Every command line of judgebench, in a block or in a sentence, without prompt and remark."""
    found = re.findall(r"`(judgebench [^`]+)`", FENCE.sub("", page).replace("\n", " "))
    for block in blocks(page):
        if block.info.startswith(NO_COMMANDS):
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            line = re.sub(r"\s+(#|\||>).*", "", line.removeprefix("$ "))
            if re.match(r"judgebench( |$)", line):
                found.append(line)
    return found


def faults(line: str) -> list[str]:
    """The words of a command line that are no command or option."""
    words = shlex.split(line)[1:]
    command = JUDGEBENCH
    while words and hasattr(command, "commands"):
        if command.default and words[0] not in command.commands:
            words.insert(0, command.default)
        if words[0].startswith("-") or words[0].isupper():
            break
        if words[0] not in command.commands:
            return [] if words[0] in OF_FEATURES else [words[0]]
        command = command.commands[words.pop(0)]
    known = {option for param in command.params for option in param.opts} | {"-h", "--help"}
    options = [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    return [option for option in options if option not in known]


def absent(command: str) -> bool:
    """Does the command go with a feature that was taken out?"""
    name = "watch" if " --certificate " in command else command.split()[1]
    return name in OF_FEATURES and name not in JUDGEBENCH.commands


@pytest.mark.parametrize("name", NAMES)
def test_every_printed_command_and_option_exists(name: str) -> None:
    lines = printed_lines((REPO / name).read_text("utf-8"))
    assert not [(line, found) for line in lines if (found := faults(line))]


def test_a_misprint_would_be_found() -> None:
    assert faults("judgebench decde labels.csv") == ["decde"]
    assert faults("judgebench decide runs/x --requires REPLACE") == ["--requires"]
    assert printed_lines("```\n$ judgebench list rubrics  # all\n```\n") == [
        "judgebench list rubrics"
    ]


def test_every_option_that_a_question_prints_is_one_of_the_command() -> None:
    texts, rows = ("a",), {"labels.csv": (1,)}
    of_columns = {"a": Column("label"), "b": Column("group")}
    every = TableSettings(
        of_columns, texts, texts, {"a": "b"}, texts, texts, ";", rows, rows, texts, "last", True,
        texts, texts, texts, texts, texts,
    )  # fmt: skip
    assert not [one.name for one in fields(every) if not getattr(every, one.name)]
    of_tables = [
        name for name, command in JUDGEBENCH.commands.items()
        if {"column", "spell"} <= {param.name for param in command.params}
    ]  # fmt: skip
    assert {"check", "init", "align", "decide", "report"} <= {*of_tables}
    assert not [line for name in of_tables if faults(line := f"judgebench {name} {every.flags()}")]


class Reader:
    """Somebody who follows a page: writes the files that it shows and types its commands."""

    def __init__(self, folder: Path, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.call = call
        self.monkeypatch = monkeypatch
        self.folder = folder
        self.sheets: dict[str, dict[str, list[list[str]]]] = {}
        for table in TABLES.glob("*.csv"):
            shutil.copy(table, folder)
        shutil.copy(LOG, folder / "samples_library.jsonl")
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "80")

    def take(self, block: Block) -> None:
        """A file that the page shows is written; a workbook's sheets are `FILE, sheet NAME`."""
        name, _, sheet = block.file.partition(", sheet ")
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if sheet:
            self.sheets.setdefault(name, {})[sheet] = list(csv.reader(block.text.splitlines()))
            write_workbook(path, self.sheets[name])
        else:
            path.write_text(block.text, encoding="utf-8")

    def type(self, command: str) -> list[str]:
        """What a command prints; an error's message too."""
        words = shlex.split(command.replace("\\\n", " "))
        if words[0] == "judgebench" and not {"|", ">", "&&"} & set(words):
            self.monkeypatch.setenv("COLUMNS", "80")
            _, out, err = self.call(*words[1:])
            return lines_of(err + out)  # what is said while it works comes first
        if words[0] == "cd":
            self.go(words[1])
            return []
        if words[0] == "python":
            with redirect_stdout(StringIO()) as printed:
                runpy.run_path(words[1])
            return lines_of(printed.getvalue())
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
        return lines_of(done.stdout + done.stderr)

    def go(self, name: str) -> None:
        """Into a folder of the repository, of which a copy is enough."""
        folder = Path(name).parts[0]
        if not Path(folder).exists():
            shutil.copytree(REPO / folder, folder)
        os.chdir(name)


def write_workbook(path: Path, sheets: Mapping[str, Sequence[Sequence[str]]]) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)


# The others take long.
FIRST = ("README.md", "docs/tutorial.md", "docs/certificate.md", "docs/data.md")
CONSOLE = [
    name if name in FIRST else pytest.param(name, marks=pytest.mark.long)
    for name in NAMES
    if "```console" in (REPO / name).read_text("utf-8")
]


@pytest.mark.parametrize("name", CONSOLE)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_commands_print_what_the_page_shows(
    name: str, tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (REPO / name).read_text("utf-8")
    reader = Reader(tmp_path, call, monkeypatch)
    wrong: list[str] = []
    printed: dict[str, list[str]] = {}
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        if block.file:
            reader.take(block)
        elif block.info == "python" and name in ("docs/tutorial.md", "docs/estimate.md"):
            exec(compile(block.text, name, "exec"), names)
        elif block.info == "console":
            for command, shown in block.commands:
                if command.startswith("judgebench") and absent(command):
                    pytest.skip(f"this installation of judgebench lacks {command.split()[1]}")
                printed[command] = reader.type(command)
                if not same(shown, printed[command]):
                    wrong.append("\n".join([f"$ {command}", *printed[command]]))
    if os.environ.get("UPDATE_DOCS"):
        (REPO / name).write_text(rewritten(page, printed.__getitem__), encoding="utf-8")
    elif wrong:
        pytest.fail(f"{name} shows something else; UPDATE_DOCS=1 writes:\n" + "\n\n".join(wrong))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_python_on_the_tutorial_decides_as_its_command_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TABLES)
    page = (REPO / "docs" / "tutorial.md").read_text("utf-8")
    (code,) = (block.text for block in blocks(page) if block.info == "python")
    exec(compile(code, "tutorial", "exec"), {"__name__": "page"})
    numbers = r"^  my-judge  \S.* judge \d+ %.*$"
    printed = re.findall(numbers, capsys.readouterr().out, re.MULTILINE)
    assert printed == re.findall(numbers, page, re.MULTILINE)
    assert len(printed) == 4


def test_what_is_left_out_may_be_anything_and_nothing_else() -> None:
    assert same(["a", "…", "d"], ["a", "b", "c", "d"])
    assert same(["a", "…"], ["a", "b"])
    assert not same(["a", "…", "d"], ["a", "b"])
    assert not same(["a"], ["b"])
    page = "```console\n$ x \\\n  y\na\n…\n```\n"
    assert rewritten(page, lambda _: ["b", "c"]) == page.replace("a\n", "b\n")
