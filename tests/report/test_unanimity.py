from __future__ import annotations

import io

import pandas as pd
from align_case import aligned, metric
from page_reader import Page

from judgebench.align import PARTS, Alignment
from judgebench.report.csv_file import to_csv
from judgebench.report.old.html import to_html
from judgebench.report.tables import all_tables
from judgebench.report.unanimity import unanimity_table, unanimity_tables

HUMANS = {"ann": "aabbcca.", "bob": "aabbac.."}
FOUND = aligned(HUMANS, {"m": "aabacc.a"}, controls={"const": "aaaaaaaa"})


def shown(alignment: Alignment, statistic: str) -> list[list[str]]:
    return [[cell.value for cell in row] for row in unanimity_table(alignment, statistic).rows]


def test_each_part_has_a_row_with_its_items_and_controls_are_told_apart() -> None:
    assert unanimity_table(FOUND, "accuracy").columns == (
        "Metric", "Items on which", "Items", "m", "const (control)",
    )  # fmt: skip
    assert shown(FOUND, "accuracy") == [
        ["Harm", PARTS["unanimous"], "5", "0.800", "0.400"],
        ["Harm", PARTS["split"], "1", "1.000", "0.000"],
        ["Harm", PARTS["single"], "1", "–", "1.000"],
    ]
    assert [row[3] for row in shown(FOUND, "soft_agreement")] == ["0.800", "0.500", "–"]


def test_a_nominal_metric_has_no_row_of_severe_recall() -> None:
    nominal = aligned(HUMANS, {"m": "aabacc.a"}, measured=metric("nominal"))
    assert [t.key for t in unanimity_tables(nominal)] == [
        "unanimity-accuracy", "unanimity-soft_agreement",
    ]  # fmt: skip


def test_with_one_label_an_item_nothing_is_shown_apart() -> None:
    single = aligned({"ann": "abc"}, {"m": "abc"})
    assert unanimity_tables(single) == []
    assert "Unanimous and split items" not in to_html(single)


def test_the_tables_stand_in_every_report(realistic: Alignment) -> None:
    tables = unanimity_tables(realistic)
    assert [t.key for t in tables] == [
        "unanimity-accuracy", "unanimity-severe_recall", "unanimity-soft_agreement",
    ]  # fmt: skip
    assert [t.key for t in all_tables(realistic) if t.key.startswith("unanimity")] == [
        t.key for t in tables
    ]
    html = to_html(realistic)
    page = Page(html)
    assert any(attrs.get("id") == "unanimity" for _, attrs in page.elements)
    assert all(table.title in html for table in tables)


def test_items_of_the_parts_add_up_to_those_with_a_label(realistic: Alignment) -> None:
    for metric_id in (m.id for m in realistic.rubric.metrics):
        found = [x for x in realistic.by_unanimity if x.metric == metric_id]
        judge = found[0].judge
        soft = [x.estimate for x in found if (x.judge, x.statistic) == (judge, "soft_agreement")]
        share = next(x for x in realistic.distribution if x.metric == metric_id)
        assert sum(e.n + e.n_missing for e in soft) == share.n


def test_every_number_is_a_row_of_the_csv() -> None:
    table = pd.read_csv(io.StringIO(to_csv(FOUND)), keep_default_na=False, na_values=[""])
    rows = table.query("table == 'unanimity'")
    assert len(rows) == len(FOUND.by_unanimity) == 2 * 3 * 3
    (value,) = rows.query("judge == 'm' and who == 'unanimous' and statistic == 'accuracy'")[
        "value"
    ]
    assert value == 0.8
