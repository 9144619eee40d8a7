from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from stress_report_case import alone, hostile_stress, make_stress

from judgebench.align import Alignment
from judgebench.report.old.contents import NO_LABELS
from judgebench.report.old.write import print_tables
from judgebench.stress.part import planted_sentences
from judgebench.stress.result import StressResult
from judgebench.stress.stress_tables import flips_table


def printed(alignment: Alignment, width: int = 120, stress: StressResult | None = None) -> str:
    out = io.StringIO()
    print_tables(alignment, Console(file=out, width=width, color_system=None), stress)
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


@pytest.mark.parametrize("width", [50, 80, 120, 200])
def test_a_stress_test_fits_the_terminal_and_tells_the_worst(width: int) -> None:
    stress = make_stress()
    text = printed(alone(), width, stress)
    assert max(map(len, text.split("\n"))) <= width
    words = " ".join(text.split())
    for expected in (*planted_sentences(stress), *stress.notes, NO_LABELS):
        assert expected in words
    shown = [row[0].text for row in flips_table(stress).rows]
    assert width < 80 or all(name in text for name in shown[:8])
    assert not any(name in text for name in shown[8:])


def test_the_alignment_follows_the_stress_test(realistic: Alignment) -> None:
    plain, both = printed(realistic), printed(realistic, stress=make_stress())
    tables = plain[plain.index("Accuracy against the human labels") : plain.index("! ")]
    assert both.index("How each judge fares in the stress test") < both.index(tables)
    assert NO_LABELS not in both
    assert "stress" not in plain


def test_hostile_names_of_a_stress_test_are_no_escape_codes() -> None:
    stress = replace(hostile_stress(), notes=("\x1b[31mred\x07",))
    text = printed(alone(), stress=stress)
    assert "\x1b" not in text
    assert "\x07" not in text
