from __future__ import annotations

from dataclasses import replace

from judgebench.align import Alignment
from judgebench.records import Estimate
from judgebench.report.comparisons import comparison_table, ranking_table
from judgebench.report.old.html import to_html
from judgebench.report.tables import all_tables
from judgebench.results.tables import DASH

CONTROL = " (control)"


def test_real_pairs_are_all_shown_and_of_the_controls_the_nearest(realistic: Alignment) -> None:
    table = comparison_table(realistic)
    assert len(table.rows) == 8 * (10 + 5)  # metrics, pairs of five judges, five judges
    controls = {j.name for j in realistic.judges if j.kind == "control"}
    beside = [row for row in table.rows if row[1].text.endswith(CONTROL)]
    assert len(beside) == 8 * 5
    titles = {m.title: m.id for m in realistic.rubric.metrics}
    for row in beside:
        metric, name = titles[row[0].text], row[1].text.split(" − ")[0]
        leads = [
            c.difference.value
            for c in realistic.comparisons
            if (c.metric, c.first) == (metric, name) and c.second in controls
        ]
        assert len(leads) == 5
        assert row[2].estimate.value == min(leads)


def test_a_small_p_is_not_shown_as_zero_and_a_missing_one_says_why(realistic: Alignment) -> None:
    few = [replace(c, permutation_p=1e-9) for c in realistic.comparisons[:1]]
    same = Estimate(0.0, n=9, reason="every resample gives the same value")
    none = Estimate(None, reason="no item has a truth and a label of both")
    few += [
        replace(few[0], difference=e, mcnemar_p=None, permutation_p=None, p_holm=None)
        for e in (same, none)
    ]
    shown = comparison_table(replace(realistic, comparisons=tuple(few))).rows
    assert shown[0][4].text == "< 0.001"
    assert [cell.text for cell in shown[1][3:]] == [DASH] * 3
    assert shown[1][5].remark == ("undefined: the two are right equally often on every question")
    assert shown[2][5].remark == "undefined: no item has a truth and a label of both"


def test_the_ranking_goes_from_the_best_down_and_names_its_test(realistic: Alignment) -> None:
    table = ranking_table(realistic)
    ranks = [float(row[1].text) for row in table.rows]
    assert ranks == sorted(ranks)
    assert len(ranks) == len(realistic.judges)
    assert table.rows[0][2].text == "a"
    assert sum(row[0].text.endswith(CONTROL) for row in table.rows) == 5
    distance = realistic.rankings[0].critical_difference
    assert "Friedman's test over 8 metrics: p" in table.notes[0]
    assert f"critical difference {distance:.2f}" in table.notes[0]


def test_ties_and_metrics_left_out_are_told(realistic: Alignment) -> None:
    tied = [
        replace(r, friedman_p=None, average_rank=replace(r.average_rank, n=5, n_missing=3))
        for r in realistic.rankings
    ]
    told = ranking_table(replace(realistic, rankings=tuple(tied))).notes[0]
    assert told == (
        "Friedman's test over 5 metrics, 3 left out because a judge's accuracy is undefined: "
        "all judges tie on every metric."
    )


def test_where_nothing_can_be_compared_there_is_no_table(tiny: Alignment) -> None:
    assert comparison_table(tiny).rows == ranking_table(tiny).rows == ()
    assert not {"comparisons", "ranking"} & {table.key for table in all_tables(tiny)}
    assert "Judges against each other" not in to_html(tiny)


def test_the_page_holds_both_tables_closed(realistic: Alignment) -> None:
    page = to_html(realistic)
    for table in (comparison_table(realistic), ranking_table(realistic)):
        assert f"<details><summary>{table.title}</summary>" in page
