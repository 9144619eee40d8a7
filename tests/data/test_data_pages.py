"""The pages on data files: what people look for is there, every table is tried, and the lists of
the reference are those of the code."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from printed import blocks

from judgebench.cli.options import Named
from judgebench.data.draft import ID_FORMS
from judgebench.data.exports import exports
from judgebench.data.findings import ERRORS, WARNINGS
from judgebench.data.layout import LayoutModel, SheetModel
from judgebench.data.settings import SETTINGS
from judgebench.data.vocabulary import ROLES, role_words, words

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "data_reference.md"
CELL_WORDS = (
    "blank",
    "failed",
    "yes",
    "no",
    "human",
    "machine",
    "people",
    "titles",
    "agreed",
    "models",
    "good",
    "bad",
)
SEARCHED = (
    "ids differ", "NA is no grade", "my Agreed column", "leave a column out", "Google Forms",
    "Qualtrics", "MTurk", "is my data sent anywhere?",
)  # fmt: skip


@pytest.mark.parametrize("words", SEARCHED)
def test_what_people_look_for_is_a_heading(words: str) -> None:
    headings = re.findall("^## (.+)$", (DOCS / "data.md").read_text("utf-8"), re.MULTILINE)
    assert words.casefold() in [heading.casefold() for heading in headings]


def test_every_table_of_the_gallery_is_tried() -> None:
    page = blocks((DOCS / "data.md").read_text("utf-8"))
    consoles = [block for block in page if block.info == "console"]
    commands = [command for block in consoles for command, _ in block.commands]
    written = [block.text for block in page if block.file.endswith((".yaml", ".py"))]
    named = " ".join([*commands, *written])
    assert [block.file for block in page if block.file.partition(",")[0] not in named] == []


def tables_under(heading: str) -> list[str]:
    """The rows of the tables under a heading of the reference."""
    page = REFERENCE.read_text("utf-8")
    section = re.split("^## ", page.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]
    heads = re.compile(r"^\|.*\n\|[-|]+\|\n", re.MULTILINE)
    return [line for line in heads.sub("", section).splitlines() if line.startswith("|")]


def keys_under(heading: str) -> list[str]:
    """The names in the first cells of the tables under a heading."""
    first = [re.split(r"(?<!\\)\|", row)[1] for row in tables_under(heading)]
    return [name for cell in first for name in re.findall("`([^`]+)`", cell)]


def row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


GENERATED = {
    "Roles of columns": [row(f"`{role}`", about) for role, about in ROLES.items()],
    "Names of columns": [
        row(f"`{role}`", f"`{', '.join(names)}`") for role, names in role_words().items()
    ],
    "Words in cells": [
        row(f"`{k}`", " ".join(f"`{w}`" for w in sorted(words(k)))) for k in CELL_WORDS
    ],
    "Exports of other tools": [
        row(tool, f"`{one.has}`", " ".join(one.source.split())) for tool, one in exports().items()
    ],
}


@pytest.mark.parametrize("heading", GENERATED)
def test_the_lists_are_those_of_the_code(heading: str) -> None:
    if os.environ.get("UPDATE_DOCS"):
        write_rows(heading, GENERATED[heading])
    assert tables_under(heading) == GENERATED[heading]


def write_rows(heading: str, rows: Sequence[str]) -> None:
    before, mark, after = REFERENCE.read_text("utf-8").partition(f"\n## {heading}\n")
    start = re.search(r"^\|[-|]+\|\n", after, re.MULTILINE)
    assert start
    rest = after[start.end() :].splitlines(keepends=True)
    while rest and rest[0].startswith("|"):
        rest.pop(0)
    body = "".join(f"{line}\n" for line in rows)
    REFERENCE.write_text(before + mark + after[: start.end()] + body + "".join(rest), "utf-8")


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("Keys of a layout.yaml", [*LayoutModel.model_fields, *SheetModel.model_fields]),
        ("Ids", ID_FORMS),
        ("What is an error and what a warning", ERRORS | WARNINGS),
    ],
)
def test_the_keys_are_those_of_the_code(heading: str, known: Iterable[str]) -> None:
    assert sorted(keys_under(heading)) == sorted(known)


def test_every_option_and_setting_is_explained() -> None:
    rows = " ".join(tables_under("Settings"))
    options = [f"--{one.name.replace('_', '-')}" for one in fields(Named)]
    assert {*options} <= {*re.findall("--[a-z-]+", rows)}
    assert {*SETTINGS} <= {*re.findall("`([a-z_]+)`", rows)}


@pytest.mark.parametrize(
    ("kind", "names"), [("roles", ROLES), ("columns", role_words()), ("exports", exports())]
)
def test_the_lists_are_printed(kind: str, names: Iterable[str], call: Any) -> None:
    _, printed, _ = call("list", kind)
    lines = printed.splitlines()[1:]
    assert all(line.startswith(f"  {name} ") for line, name in zip(lines, names, strict=True))
