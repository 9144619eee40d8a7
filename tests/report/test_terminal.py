from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from judgebench.align import Alignment
from judgebench.report import print_tables


def printed(alignment: Alignment, width: int = 120) -> str:
    out = io.StringIO()
    print_tables(alignment, Console(file=out, width=width, color_system=None))
    return out.getvalue()


@pytest.mark.parametrize("width", [50, 80, 120, 200])
def test_nothing_is_wider_than_the_terminal_or_cut(realistic: Alignment, width: int) -> None:
    text = printed(realistic, width)
    assert max(map(len, text.split("\n"))) <= width
    assert "…" not in text.replace("… with", "")
    for expected in ("0.970", "[0.940, 1.000]", "Human ceiling", "Best control"):
        assert expected in text or width < 80


def test_failures_caveats_and_scarcity_are_told(realistic: Alignment) -> None:
    text = printed(realistic)
    assert "smollm2-135m: 87 of 100 verdicts read; 3 unparsed, 7 refused, 3 failed" in text
    assert "no clinical weight" in text
    assert "more are needed" in text
    assert "Worst case" in text
    assert "undefined: " in text
    assert "nan" not in text.lower().replace("annan", "")


def test_names_are_neither_markup_nor_escape_codes(realistic: Alignment) -> None:
    name = "[bold]x[/bold]\x1b[31mred\x07"
    text = printed(replace(realistic, name=name, notes=(name,)))
    assert text.startswith("[bold]x[/bold]\ufffd[31mred\ufffd\n")
    assert "\x1b" not in text
