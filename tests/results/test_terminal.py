import io
from dataclasses import replace

import pytest
from part_case import hostile_part, make_part
from rich.cells import cell_len
from rich.console import Console

from judgebench.alignment import Alignment
from judgebench.records import Estimate
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.tables import Cell, Table
from judgebench.results.terminal import print_parts, print_table


def printed(
    *parts: ReportSection, width: int = 120, name: str = "study", colours: bool = False
) -> str:
    out = io.StringIO()
    system = "standard" if colours else None
    console = Console(file=out, width=width, color_system=system, force_terminal=colours)
    print_parts(parts, console, name)
    return out.getvalue()


@pytest.mark.parametrize("width", [50, 80, 120, 200])
def test_nothing_is_wider_than_the_terminal_or_cut(realistic: Alignment, width: int) -> None:
    text = printed(realistic.part, width=width)
    assert max(map(len, text.split("\n"))) <= width
    assert "…" not in text.replace("… with", "")
    for expected in ("0.970", "[0.915, 0.994]", "One annotator", "Best baseline"):
        assert expected in text or width < 80


def test_what_is_on_screen_is_printed_lead_first_and_caveats_last() -> None:
    text = printed(make_part(), make_part("stress"))
    order = [text.index(x) for x in ("study", "Scores of judge-1", "One sentence.", "! Read this.")]
    assert order == sorted(order)
    assert text.count("Read this.") == 1
    assert "More" not in text
    assert "a: undefined: no item has a reference label; n = 3, 1 missing" in text


def test_names_are_neither_markup_nor_escape_codes() -> None:
    name = "[bold]x[/bold]\x1b[31mred\x07"
    text = printed(replace(make_part(), notes=(name,)), hostile_part("b"), name=name)
    assert text.startswith("[bold]x[/bold]\ufffd[31mred\ufffd\n")
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [60, 80, 100])
def test_wide_characters_are_counted_as_two(width: int) -> None:
    table = Table(
        "wide", "宽", ("指标名称很长很长很长", *(f"评审模型{i}号" for i in range(4))),
        (tuple(Cell(text) for text in ("语气与礼貌程度以及其他方面", *["不要使用 0.512"] * 4)),),
    )  # fmt: skip
    part = replace(make_part(), blocks=(Block(tables=(table,), on_screen=True),))
    assert max(map(cell_len, printed(part, width=width).split("\n"))) <= width


def test_a_brief_table_fits_and_keeps_names_apart() -> None:
    def score(value: float, low: float, high: float) -> Cell:
        return Cell(estimate=Estimate(value, low, high, n=9))

    names = ("gpt-4o-2024-08-06-few-shot", "gpt-4o-2024-08-06-zero-shot")
    rows = [(Cell("Harm"), Cell(name), *[score(0.9831, 0.97, 0.9949)] * 3) for name in names]
    table = Table("main", "Main", ("Metric", "Judge", "A", "B", "C"), tuple(rows), stubs=2)
    out = io.StringIO()
    print_table(table, Console(file=out, width=72, color_system=None), is_brief=True)
    text = out.getvalue()
    assert max(map(len, text.split("\n"))) <= 72
    assert text.count(".98 [.97, .99]") == 6
    assert {"few-shot", "zero-shot"} <= {*text.split()}
