"""Markdown twins of the pages and llms.txt, for readers that are programs.

`page.md` lies beside `page.html`; llms.txt (https://llmstxt.org) lists the pages, each with a line.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import judgebench

_OBJECT = re.compile(r"^::: judgebench\.(\w+)\n(?:    .*\n)*", re.MULTILINE)
_NO_SENTENCE = ("#", "```", "|", "!", "-", "<", ":::", "---")  # how other blocks begin


def twin(markdown: str) -> str:
    """Return the page with the documentation of each object in the place of its name."""
    return _OBJECT.sub(lambda match: _documented(match[1]), markdown)


def _documented(name: str) -> str:
    documented = getattr(judgebench, name)
    try:
        signature = str(inspect.signature(documented))
    except (TypeError, ValueError):  # of a type that has none
        signature = ""
    text = inspect.getdoc(documented) or ""
    return f"### judgebench.{name}\n\n```python\n{name}{signature}\n```\n\n{text}\n\n"


def summary(markdown: str) -> str:
    """Return the first two sentences of a page that stand in a paragraph, without links."""
    prose = re.sub(r"^```.*?^```", "", markdown, flags=re.DOTALL | re.MULTILINE)
    for paragraph in map(str.strip, prose.split("\n\n")):
        if paragraph and not paragraph.startswith(_NO_SENTENCE):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
            sentences = re.split(r"(?<=[.?])\s", plain.replace("*", ""))
            return " ".join(sentences[:2]).rstrip(":")
    return ""


def llms_text(nav: list[Any], pages: dict[str, str], name: str, description: str) -> str:
    """Return llms.txt: every page of the navigation under the heading of its section."""
    lines = [f"# {name}", "", f"> {description}", ""]
    lines += [
        "Agents that run commands: `judgebench skill` prints which command fits which data.",
        "",
    ]
    return "\n".join([*lines, *_entries(nav, pages, "")]).rstrip() + "\n"


def _entries(nav: list[Any], pages: dict[str, str], heading: str) -> Iterator[str]:
    for entry in nav:
        for title, value in entry.items():
            if isinstance(value, list):
                yield from ("", f"## {title}", "")
                yield from _entries(value, pages, title)
            else:
                yield f"- [{title}]({value}): {summary(pages[value])}"


def on_post_build(config: Any) -> None:
    """Write the twins and llms.txt into the site; mkdocs calls it when all pages are there."""
    folder, site = Path(config["docs_dir"]), Path(config["site_dir"])
    pages = {path.name: path.read_text("utf-8") for path in folder.glob("*.md")}
    for name, markdown in pages.items():
        (site / name).write_text(twin(markdown), encoding="utf-8")
    text = llms_text(config["nav"], pages, config["site_name"], config["site_description"])
    (site / "llms.txt").write_text(text, encoding="utf-8")
