from __future__ import annotations

import csv
import io
import warnings
from dataclasses import replace

import pytest
from align_case import FEW, aligned, answers, labels, rubric, verdicts
from aligned import align

from judgebench.align import Alignment
from judgebench.report.csv_file import to_csv
from judgebench.report.old.html import to_html
from judgebench.report.plots import draw_all
from judgebench.report.rates import HEADINGS, SAVED, rate_figures, rate_tables
from judgebench.report.tables import all_tables

HUMAN = "aaaaaabbbbcc" + "." * 24
JUDGE = "aaaaabbbbbca" + "aaaaaaaaaaaabbbbbbbbcccc"


@pytest.fixture(scope="module")
def partly_labelled() -> Alignment:
    """One judge with rates, one on labelled answers alone, one that nobody can check, a coin."""
    judges = {"m": JUDGE, "k": JUDGE[:12] + "." * 24, "u": "." * 12 + JUDGE[12:]}
    return aligned({"ann": HUMAN}, judges, controls={"random": JUDGE[::-1]})


def test_each_judge_with_more_than_human_labels_has_a_table(partly_labelled: Alignment) -> None:
    tables = rate_tables(partly_labelled)
    assert [t.key for t in tables] == ["rates-1", "rates-2"]
    assert [t.title.rsplit(" ", 1)[1] for t in tables] == ["m", "u"]
    assert all(t in all_tables(partly_labelled) for t in tables)
    table = tables[0]
    assert table.columns == ("Metric", "Label", *HEADINGS.values(), SAVED)
    assert [(row[0].text, row[1].text) for row in table.rows] == [("Harm", x) for x in "abc"]
    shown = {(r.label, r.method): r.estimate for r in partly_labelled.rates if r.judge == "m"}
    for row in table.rows:
        found = {method: row[2 + i].estimate for i, method in enumerate(HEADINGS)}
        assert found == {method: shown[row[1].text, method] for method in HEADINGS}


def test_labels_saved_are_told_with_how_many_times_as_many(partly_labelled: Alignment) -> None:
    (saved,) = [r.saved for r in partly_labelled.rates
                if (r.judge, r.label, r.method) == ("m", "a", "ppi")]  # fmt: skip
    cell = rate_tables(partly_labelled)[0].rows[0][-1]
    assert cell.text == f"{saved:+.0f} ({1 + saved / 12:.2f} ×)"
    assert saved > 0.5
    none = rate_tables(partly_labelled)[1].rows[0][-1]
    assert (none.text, none.remark) == ("–", "undefined: no judged answer has a human label")


def test_a_metric_without_more_than_human_labels_says_so_in_each_cell() -> None:
    found = aligned({"ann": HUMAN}, {"m": JUDGE})
    only_human = tuple(r for r in found.rates if r.label != "b" or r.method == "human")
    row = rate_tables(replace(found, rates=only_human))[0].rows[1]
    assert row[2].estimate is not None
    for cell in row[3:]:
        assert cell.text == "–"
        assert cell.remark.startswith("not needed: every answer")


def test_where_every_answer_has_a_human_label_nothing_is_shown(tiny: Alignment) -> None:
    assert {r.method for r in tiny.rates} == {"human"}
    assert rate_tables(tiny) == []
    assert rate_figures(tiny) == {}
    assert 'id="rates"' not in to_html(tiny)


def test_the_page_has_a_section_with_every_rate(partly_labelled: Alignment) -> None:
    page = to_html(partly_labelled)
    assert '<a href="#rates">True rates</a>' in page
    section = page.split('<section id="rates">')[1].split("</section>")[0].replace("<wbr>", "")
    for table in rate_tables(partly_labelled):
        assert table.title in section
        for row in table.rows:
            assert all(cell.value in section for cell in row)


def test_alignment_csv_holds_every_rate_and_the_labels_saved(partly_labelled: Alignment) -> None:
    rows = [r for r in csv.DictReader(io.StringIO(to_csv(partly_labelled))) if r["table"] == "rate"]
    rates = [r for r in rows if r["statistic"] != "labels_saved"]
    for row, rate in zip(rates, partly_labelled.rates, strict=True):
        assert (row["judge"], row["metric"], row["human_label"], row["statistic"]) == (
            rate.judge, rate.metric, rate.label, rate.method,
        )  # fmt: skip
        assert row["value"] == ("" if rate.estimate.value is None else str(rate.estimate.value))
        assert int(row["n"]) == rate.estimate.n
    saved = [float(r["value"]) for r in rows if r["statistic"] == "labels_saved"]
    assert saved == [r.saved for r in partly_labelled.rates if r.saved is not None]


def test_the_figures_are_drawn_whatever_is_undefined_or_named(partly_labelled: Alignment) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dict(draw_all(partly_labelled))
    assert {f"label_rates_{i}.{kind}" for i in (1, 2) for kind in ("png", "pdf")} <= set(found)
    assert found["label_rates_1.png"] != found["label_rates_2.png"]


def test_hostile_names_stay_text() -> None:
    items = answers(36)
    name = "=m $x_1$ <script>alert(1)</script> {{ 7*7 }}"
    judge = verdicts(name, JUDGE, items)
    found = align("x", rubric(), items, labels({"ann": HUMAN}), [judge], resampling=FEW)
    assert "<script>alert" not in to_html(found)
    assert all(name.startswith("label_rates_1.") for name, _ in draw_all(found) if "rates" in name)
    text = to_csv(found)
    assert "rate,'=m" in text
    assert "rate,=m" not in text
