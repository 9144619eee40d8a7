"""Doctests in docstrings become Python blocks of the API pages."""

from __future__ import annotations

import griffe


def fenced(text: str) -> str:
    """The text with each run of doctest lines, up to a blank line, in a fence of its own."""
    lines: list[str] = []
    inside = False
    for line in [*text.splitlines(), ""]:
        if not inside and line.startswith(">>> "):
            inside = True
            lines.append("```pycon")
        elif inside and not line.strip():
            inside = False
            lines.append("```")
        lines.append(line)
    return "\n".join(lines).rstrip()


class Doctests(griffe.Extension):
    """Rewrites docstrings as they are read; the modules themselves stay as they are."""

    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
