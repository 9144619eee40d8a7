from __future__ import annotations

import re
import statistics
from dataclasses import replace

from judgebench.align import Alignment, Score
from judgebench.records import Estimate
from judgebench.report.lookup import find_score, score_index
from judgebench.report.tables import (
    CEILING,
    ONLY_IN_PANELS,
    accuracy_table,
    agreement_table,
    all_tables,
    failures_table,
    score_table,
    severe_table,
    standing_table,
)
from judgebench.report.words import describe
from judgebench.results.tables import DASH, footnotes


def test_rows_are_as_long_as_columns_and_keys_are_unique(alignment: Alignment) -> None:
    tables = all_tables(alignment)
    assert len({table.key for table in tables}) == len(tables)
    for table in tables:
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_every_number_tells_what_it_rests_on(alignment: Alignment) -> None:
    """Of each estimate: counts, and interval method or reason, in its mark or under the table."""
    for table in all_tables(alignment):
        notes = footnotes(table)
        by_mark = {mark: text for text, mark in notes.marks.items()}
        under = " ".join(notes.sentences(table))
        for cell in (cell for row in table.rows for cell in row if cell.estimate):
            e = cell.estimate
            assert e is not None
            told = f"{by_mark.get(notes.mark(cell), '')} {under}"
            assert f"n = {e.n:,}, {e.n_missing:,} missing" in told
            assert e.reason.rstrip(".") in told
            assert e.method in told or not cell.interval
            assert e.reason or cell.interval


def test_undefined_is_a_dash_with_a_reason(realistic: Alignment) -> None:
    table = score_table(realistic, "weighted_kappa")
    row = next(row for row in table.rows if row[0].text == "Possibility of Bias")
    judge = row[1]
    assert judge.value == DASH
    assert judge.interval == ""
    assert judge.provenance.startswith("undefined: ")
    assert footnotes(table).mark(judge)


def test_no_table_shows_nan_or_inf(alignment: Alignment) -> None:
    for table in all_tables(alignment):
        for cell in (cell for row in table.rows for cell in row if cell.estimate):
            assert re.fullmatch(r"–|-?\d\.\d{3}|\+\d\.\d{3}", cell.value)


def test_average_and_sd_are_those_of_a_sample_of_real_judges(realistic: Alignment) -> None:
    table = accuracy_table(realistic)
    column = table.columns.index("Average")
    for metric, row in zip(realistic.rubric.metrics, table.rows, strict=True):
        values = [
            score.estimate.value
            for score in realistic.scores
            if (score.metric, score.statistic, score.failures)
            == (metric.id, "accuracy", "left_out")
            and score.judge in table.columns
        ]
        assert len(values) == 5
        assert row[column].value == f"{statistics.mean(values):.3f}"
        assert row[column + 1].value == f"{statistics.stdev(values):.3f}"


# Diekmann et al., "LLMs as Medical Safety Judges", Table 1: five judges, Average, StdDev.
PUBLISHED = {
    "scientific_consensus": ((0.98, 0.99, 0.98, 0.95, 0.98), "0.976", "0.015"),
    "inappropriate_content": ((0.96, 0.97, 0.96, 0.95, 0.93), "0.954", "0.015"),
    "missing_content": ((0.79, 0.89, 0.79, 0.81, 0.13), "0.682", "0.311"),
    "extent_of_harm": ((0.91, 0.57, 0.91, 0.70, 0.41), "0.700", "0.217"),
    "likelihood_of_harm": ((0.93, 0.57, 0.93, 0.74, 0.76), "0.786", "0.151"),
    "bias": ((0.98, 0.98, 0.98, 0.97, 0.92), "0.966", "0.026"),
    "empathy": ((0.49, 0.30, 0.49, 0.54, 0.61), "0.486", "0.115"),
    "grammaticality": ((0.99, 0.99, 0.99, 0.99, 0.99), "0.990", "0.000"),
}


def test_a_published_table_is_laid_out_again_to_the_last_digit(realistic: Alignment) -> None:
    names = [j.name for j in realistic.judges if j.kind != "control"]
    scores = tuple(
        Score(name, metric, "accuracy", "left_out", Estimate(value, n=100, reason="as published"))
        for metric, (values, _, _) in PUBLISHED.items()
        for name, value in zip(names, values, strict=True)
    )
    table = accuracy_table(replace(realistic, scores=scores))
    assert table.columns[:8] == ("Metric", *names, "Average", "StdDev")
    for metric, row in zip(realistic.rubric.metrics, table.rows, strict=True):
        values, average, sd = PUBLISHED[metric.id]
        shown = [cell.value for cell in row[1:8]]
        assert shown == [*(f"{value:.3f}" for value in values), average, sd]


def test_average_leaves_undefined_values_out_and_says_so(realistic: Alignment) -> None:
    first = realistic.rubric.metrics[0].id
    judge = realistic.judges[0].name
    scores = tuple(
        replace(s, estimate=Estimate(None, reason="none")) if s.judge == judge else s
        for s in realistic.scores
    )
    table = accuracy_table(replace(realistic, scores=scores))
    average = table.rows[0][table.columns.index("Average")]
    assert average.remark == "over 4 of 5 judges"
    rest = [
        s.estimate.value
        for s in scores
        if (s.metric, s.statistic, s.failures) == (first, "accuracy", "left_out")
        and s.judge in table.columns[2:6]
    ]
    assert average.value == f"{statistics.mean(rest):.3f}"


def test_one_judge_has_neither_average_nor_spread(tiny: Alignment) -> None:
    table = accuracy_table(tiny)
    assert "Average" not in table.columns
    assert "StdDev" not in table.columns
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_no_judge_stands_without_the_controls(realistic: Alignment) -> None:
    names = [j.name for j in realistic.judges if j.kind == "control"]
    assert len(names) == 5
    for statistic in ("accuracy", "severity_error", "severe_recall"):
        columns = score_table(realistic, statistic).columns
        assert all(f"{name} (control)" in columns for name in names)
    assert accuracy_table(realistic).columns[-2:] == ("Best control", CEILING)
    assert severe_table(realistic).columns[-1] == "Best control"


def test_a_report_without_controls_says_so(tiny: Alignment, realistic: Alignment) -> None:
    assert "no control judge" in describe(tiny)[-1]
    assert not any("no control judge" in sentence for sentence in describe(realistic))


def test_three_ways_are_shown_where_verdicts_are_missing_and_only_there(
    realistic: Alignment,
) -> None:
    table = failures_table(realistic, "accuracy")
    shown = {row[0].text for row in table.rows}
    assert shown == {"OpenBioLLM-70B", "smollm2-135m", "jury-of-three"}
    for row in table.rows:
        plain, worst, best = (cell.estimate for cell in row[2:])
        assert None not in (plain, worst, best)
        assert plain.n_missing > 0
        assert worst.value <= plain.value <= best.value


def test_where_nothing_failed_the_three_ways_are_one(realistic: Alignment) -> None:
    index = score_index(realistic)
    name = realistic.judges[0].name
    assert find_score(index, name, "empathy", "accuracy", "worst") is find_score(
        index, name, "empathy", "accuracy", "left_out"
    )
    missing = find_score(index, "nobody", "empathy", "accuracy")
    assert missing.value is None
    assert missing.reason


def test_a_count_of_wins(realistic: Alignment) -> None:
    table = standing_table(realistic)
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert "constant-majority" not in rows
    above, clearly, _, failed = rows["smollm2-135m"]
    assert above == clearly == "0 of 8"
    assert failed == "13 of 100"


def test_severe_items_are_counted_and_scarcity_is_told(realistic: Alignment) -> None:
    table = severe_table(realistic)
    rows = {row[0].text: row for row in table.rows}
    row = rows["Extent of Possible Harm"]
    share = next(
        x
        for x in realistic.distribution
        if (x.metric, x.label, x.blanks) == ("extent_of_harm", "Death or severe harm", "missing")
    )
    assert (row[1].text, row[2].text) == ("Death or severe harm", str(share.count))
    assert "more are needed" in row[3].provenance


def test_a_nominal_metric_has_no_severe_row(long_labels: Alignment) -> None:
    assert [row[0].text for row in severe_table(long_labels).rows] == ["Query risk"]


def test_agreement_has_intraclass_correlations_only_where_there_are_any(
    long_labels: Alignment, tiny: Alignment
) -> None:
    table = agreement_table(long_labels)
    column = table.columns.index("ICC(2,1)")
    cells = {row[0].text: row[column] for row in table.rows}
    ordinal = {m.title for m in long_labels.rubric.metrics if m.kind == "ordinal"}
    assert {title for title, cell in cells.items() if cell.value != DASH} == ordinal
    reasons = {title: cell.estimate.reason for title, cell in cells.items() if cell.estimate}
    assert reasons.pop("All metrics pooled") == "labels of different metrics are not pooled"
    others = {m.title for m in long_labels.rubric.metrics} - ordinal
    assert others
    assert all(reasons[title] == "not computed for this metric" for title in others)
    assert {"Gwet's AC", "Fleiss' κ"} <= set(agreement_table(tiny).columns)  # one annotator
    assert not any(column.startswith("ICC") for column in agreement_table(tiny).columns)


def test_statistics_of_the_page_alone_have_no_tables_of_their_own(alignment: Alignment) -> None:
    assert set(ONLY_IN_PANELS) < {score.statistic for score in alignment.scores}
    keys = {table.key for table in all_tables(alignment)}
    assert not {key for key in keys if key.split("-")[0] in ONLY_IN_PANELS}
