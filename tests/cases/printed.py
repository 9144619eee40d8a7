"""Files and commands that a page of the documentation prints.

A block that begins with ```csv title="labels.csv" is a file, a block ```console holds commands
(`$ judgebench …`) with what they print. Both are taken in the page's order, in one folder. A line
`…` stands for any lines. UPDATE_DOCS=1 writes what is printed now into the page.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
TITLE = re.compile(r'title="([^"]+)"')
LEFT_OUT = "…"
GOES_ON = "\0"  # where a command is continued on the next line


@dataclass(frozen=True)
class Block:
    """A fenced block: its first line, its text, and where the text lies in the page."""

    info: str
    text: str
    start: int

    @property
    def file(self) -> str:
        """The name of the file that the block is, or ""."""
        named = TITLE.search(self.info)
        return named[1] if named else ""

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """Each command of a console block with the lines under it."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.replace("\\\n", GOES_ON).splitlines():
            if line.startswith("$ "):
                found.append((line[2:].replace(GOES_ON, "\\\n"), []))
            else:
                found[-1][1].append(line)
        return found


def blocks(page: str) -> list[Block]:
    return [Block(m[1].strip(), m[2], m.start(2)) for m in FENCE.finditer(page)]


def lines_of(printed: str) -> list[str]:
    """The lines without space at their ends, and without blank lines around all."""
    return "\n".join(line.rstrip() for line in printed.splitlines()).strip("\n").splitlines()


DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")


def same(shown: list[str], printed: list[str]) -> bool:
    """Is this what a page shows, where `…` stands for any lines, and a date for any date?"""
    wanted, found = ([DATE.sub("DATE", line) for line in lines] for lines in (shown, printed))
    wanted = lines_of("\n".join(wanted))
    if LEFT_OUT not in wanted:
        return wanted == found
    first, last = wanted.index(LEFT_OUT), len(wanted) - 1 - wanted[::-1].index(LEFT_OUT)
    before, after = wanted[:first], wanted[last + 1 :]
    if found[:first] != before or found[len(found) - len(after) :] != after:
        return False
    place = first
    for part in split_at(wanted[first + 1 : last], LEFT_OUT):
        fits = (at for at in range(place, len(found)) if found[at : at + len(part)] == part)
        if (place := next(fits, -1)) < 0:
            return False
        place += len(part)
    return place <= len(found) - len(after)


def split_at(lines: list[str], mark: str) -> list[list[str]]:
    """The lines between marks."""
    parts: list[list[str]] = [[]]
    for line in lines:
        if line == mark:
            parts.append([])
        else:
            parts[-1].append(line)
    return [part for part in parts if part]


def again(shown: list[str], printed: list[str]) -> list[str]:
    """What to show instead: as many lines before the first `…` and after the last one as now."""
    if LEFT_OUT not in shown:
        return printed
    before = shown.index(LEFT_OUT)
    after = shown[::-1].index(LEFT_OUT)
    return [*printed[:before], LEFT_OUT, *printed[len(printed) - after :]]


def rewritten(page: str, printed_by: Callable[[str], list[str]]) -> str:
    """The page with what its commands print; `printed_by` calls one."""
    for block in reversed([b for b in blocks(page) if b.info == "console"]):
        lines: list[str] = []
        for command, shown in block.commands:
            printed = printed_by(command)
            lines += [f"$ {command}", *(shown if same(shown, printed) else again(shown, printed))]
        end = block.start + len(block.text)
        page = page[: block.start] + "\n".join(lines) + "\n" + page[end:]
    return page
