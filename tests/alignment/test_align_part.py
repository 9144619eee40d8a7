"""What is shown of an alignment: its tables, sentences, figures and items."""

import re
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from align_case import aligned, answers, drawn_people, labels, rubric, saying
from aligned import align

from judgebench.alignment import Alignment
from judgebench.alignment import tables as tables
from judgebench.alignment.report import confusion_figures, describe, reliability_figures
from judgebench.alignment.tables import USUAL
from judgebench.records import Estimate, Results, Row
from judgebench.results.blocks import SIGNS, Block, figures_of
from judgebench.results.figures import drawn
from judgebench.results.tables import DASH, Table, footnotes
from judgebench.rubric import load_rubric

CONTROL = " (baseline)"


def all_tables(a: Alignment) -> list[Table]:
    return [t for block in a.part.blocks for t in block.tables if t.rows]


def table(a: Alignment, key: str) -> Table:
    (found,) = [t for t in all_tables(a) if t.key == key]
    return found


def block(a: Alignment, heading: str) -> Block:
    (found,) = [b for b in a.part.blocks if b.heading == heading]
    return found


def with_rows(a: Alignment, change) -> Alignment:
    return replace(a, found=Results(tuple(change(row) for row in a.results)))


def test_rows_are_as_long_as_columns_and_keys_are_unique(alignment: Alignment) -> None:
    shown = all_tables(alignment)
    assert len({t.key for t in shown}) == len(shown)
    for t in shown:
        assert all(len(row) == len(t.columns) for row in t.rows)
    keys = [figure.key for figure in figures_of([alignment.part])]
    assert len(keys) == len(set(keys))


def test_every_number_tells_what_it_rests_on(alignment: Alignment) -> None:
    """Of each estimate: counts, and interval method or reason, in its mark or under the table."""
    for t in all_tables(alignment):
        notes = footnotes(t)
        by_mark = {mark: text for text, mark in notes.marks.items()}
        under = " ".join(notes.sentences(t))
        for cell in (cell for row in t.rows for cell in row if cell.estimate):
            e = cell.estimate
            told = f"{by_mark.get(notes.mark(cell), '')} {under}"
            assert f"n = {e.n:,}, {e.n_missing:,} missing" in told
            assert e.reason.rstrip(".") in told
            assert e.method in told or not cell.interval
            assert e.reason or cell.interval
            assert re.fullmatch(r"–|-?\d\.\d{3}|\+\d\.\d{3}", cell.value)


def test_every_score_agreement_and_ceiling_stands_in_a_table(realistic: Alignment) -> None:
    shown = [c.estimate for t in all_tables(realistic) for r in t.rows for c in r if c.estimate]
    for analysis in ("score", "agreement", "ceiling"):
        for row in realistic.results.select(analysis):
            control = row.judge in {j.name for j in realistic.controls}
            if row["failures"] in ("worst", "best") and (control or row.statistic != "accuracy"):
                continue
            assert row.estimate in shown, row


def test_undefined_is_a_dash_with_a_reason(realistic: Alignment) -> None:
    t = table(realistic, "kappa_quadratic-left_out")
    judge = next(row for row in t.rows if row[0].text == "Possibility of Bias")[1]
    assert (judge.value, judge.interval) == (DASH, "")
    assert judge.provenance.startswith("undefined: ")
    assert footnotes(t).mark(judge)


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
    names = [j.name for j in realistic.real_judges]
    key = {"failures": "left_out"}
    rows = tuple(
        Row("score", "accuracy", Estimate(value, n=100, reason="as published"), name, m, key)
        for m, (values, _, _) in PUBLISHED.items()
        for name, value in zip(names, values, strict=True)
    )
    t = tables.table_of(replace(realistic, found=Results(rows)), tables.ACCURACY)
    assert t.columns == ("Metric", *names, "Average", "StdDev")
    for m, row in zip(realistic.rubric.metrics, t.rows, strict=True):
        values, average, sd = PUBLISHED[m.id]
        assert [cell.estimate.value for cell in row[1:-2]] == [*values]
        assert [cell.value for cell in row[-2:]] == [average, sd]


def test_no_judge_stands_without_the_controls(realistic: Alignment, tiny: Alignment) -> None:
    assert len(realistic.controls) == 5
    for statistic in ("accuracy", "severity_error", "severe_recall"):
        columns = table(realistic, f"{statistic}-left_out").columns
        assert all(f"{judge.name}{CONTROL}" in columns for judge in realistic.controls)
    assert {"Best baseline", tables.ONE_ANNOTATOR} < {*table(realistic, "accuracy").columns}
    assert table(realistic, "severe").columns[-1] == "Best baseline"
    assert "no baseline" in describe(tiny)[-1]
    assert not any("no baseline" in sentence for sentence in describe(realistic))


def test_three_ways_are_shown_where_verdicts_are_missing_and_only_there(
    realistic: Alignment, tiny: Alignment
) -> None:
    t = table(realistic, "accuracy-failures")
    assert {row[0].text for row in t.rows} == {"OpenBioLLM-70B", "smollm2-135m", "jury-of-three"}
    for row in t.rows:
        plain, worst, best = (cell.estimate for cell in row[2:])
        assert plain.n_missing > 0
        assert worst.value <= plain.value <= best.value
    assert not [t for t in all_tables(tiny) if t.key.endswith("-failures")]
    name = realistic.study.judges[0].name
    assert realistic.score("accuracy", name, "empathy", "worst") is realistic.score(
        "accuracy", name, "empathy"
    )
    missing = realistic.score("accuracy", "nobody", "empathy")
    assert missing.value is None
    assert missing.reason


@pytest.mark.parametrize(
    ("statistic", "values", "best"),
    [
        ("accuracy", [0.2, 0.9, 0.5], 0.9),
        ("underestimated", [0.2, 0.9, 0.5], 0.2),
        ("severity_error", [-0.9, 0.1, -0.3], 0.1),
        ("kappa", [None, -0.5, -0.1], -0.1),
        ("kappa", [None, None, None], None),
    ],
)
def test_the_best_control_is_the_one_nearest_to_the_ideal(
    realistic: Alignment, statistic: str, values: list[float | None], best: float | None
) -> None:
    key = {"failures": "left_out"}
    rows = tuple(
        Row("score", statistic, Estimate(value, reason="none"), judge.name, "m", key)
        for judge, value in zip(realistic.controls[:3], values, strict=True)
    )
    found = replace(realistic, found=Results(rows)).best_control(statistic, "m")
    assert (found[1].value if found else None) == best


def test_severe_items_are_counted_and_scarcity_is_reported(
    realistic: Alignment, long_labels: Alignment
) -> None:
    shown = table(realistic, "severe")
    row = {row[0].text: row for row in shown.rows}["Extent of Possible Harm"]
    about = {"metric": "extent_of_harm", "human_label": "Death or severe harm"}
    count = realistic.results.find("count", "distribution", **about)
    assert "Extent of Possible Harm: Death or severe harm" in shown.notes[0]
    assert row[-1].estimate.n == count.value
    assert "more for an interval within" in row[2].provenance
    assert [row[0].text for row in table(long_labels, "severe").rows] == ["Query risk"]


def test_agreement_has_intraclass_correlations_only_where_there_are_any(
    long_labels: Alignment, tiny: Alignment
) -> None:
    t = table(long_labels, "agreement")
    column = t.columns.index("ICC(2,1)")
    cells = {row[0].text: row[column] for row in t.rows}
    ordinal = {m.title for m in long_labels.rubric.metrics if m.kind == "ordinal"}
    assert {title for title, cell in cells.items() if cell.value != DASH} == ordinal
    assert {*cells} == {m.title for m in long_labels.rubric.metrics}  # nothing is pooled
    assert not any(column.startswith("ICC") for column in table(tiny, "agreement").columns)


def test_without_human_labels_there_is_only_what_the_judges_did() -> None:
    found = aligned({"ann": "..."}, {"m": "abc"})
    assert found.study.n_labels == 0
    assert [t.key for t in all_tables(found)] == ["label-use", "judges"]
    assert "Without human labels" in found.part.blocks[0].text[-1]
    use = table(found, "label-use")
    assert use.columns == ("Metric", "Label", "m (judge)")
    assert [row[-1].text for row in use.rows] == ["1 of 3 (33 %)"] * 3 + ["0 of 3 (0 %)"]
    assert align("x", load_rubric("medical-safety"), [], [], []).part.blocks == ()


# --- judges against each other --------------------------------------------------------------------


def test_real_pairs_are_all_shown_and_of_the_controls_the_best(realistic: Alignment) -> None:
    t = table(realistic, "comparisons")
    assert len(t.rows) == 8 * (10 + 5)  # metrics, pairs of five judges, five judges
    beside = [row for row in t.rows if row[1].text.endswith(CONTROL)]
    assert len(beside) == 8 * 5
    titles = {m.title: m.id for m in realistic.rubric.metrics}
    for row in beside:
        judge, control = row[1].text.removesuffix(CONTROL).split(" − ")
        metric = titles[row[0].text]
        assert control == realistic.best_control("accuracy", metric)[0]
        keys = {"judge": judge, "metric": metric, "who": control}
        difference = realistic.results.find("accuracy_difference", "comparison", **keys)
        assert row[2].estimate == difference


def test_a_small_p_is_not_shown_as_zero_and_a_missing_one_says_why(realistic: Alignment) -> None:
    def change(row: Row) -> Row:
        if row.statistic == "permutation_p":
            return replace(row, estimate=Estimate(1e-9, n=9))
        if row.statistic == "p_holm":
            return replace(row, estimate=Estimate(None, reason="no item has labels of both"))
        return row

    row = tables.table_of(with_rows(realistic, change), tables.COMPARISONS).rows[0]
    assert row[3].text == "< 0.001"
    assert (row[4].text, row[4].remark) == (DASH, "undefined: no item has labels of both")


# --- probabilities --------------------------------------------------------------------------------


@cache
def weighing(n: int = 150) -> Alignment:
    """Judges who know the distribution that annotators draw from; one tells it too boldly."""
    humans, p = drawn_people(n)
    items, bold = answers(n), p**3 / (p**3).sum(axis=1, keepdims=True)
    judges = [saying(bold, items, "bold"), saying(p, items, "honest <b>")]
    return align("p", rubric(), items, labels(humans), judges)


def test_every_score_of_probabilities_stands_in_a_table(realistic: Alignment) -> None:
    found = weighing()
    scores, curves = (tables.table_of(found, t) for t in (tables.PROBABILITIES, tables.CALIBRATION))
    shown = [cell for row in (*scores.rows, *curves.rows) for cell in row]
    estimates = [cell.estimate for cell in shown if cell.estimate]
    for row in found.results.select("probability"):
        assert row.estimate in estimates, row
    texts = [cell.text for cell in shown]
    for row in found.results.select("calibration", "confidence"):
        assert f"{row.estimate.value:.3f}" in texts
    assert {row[0].text for row in curves.rows} == {"bold", "honest <b>"}
    assert [*reliability_figures(realistic)] == []
    assert not [t for t in all_tables(realistic) if t.key in ("probabilities", "calibration")]


def test_an_annotator_may_have_any_name_and_that_of_a_judge() -> None:
    found = aligned({"label": "aab", "annotator": "abb", "m": "aab"}, {"m": "abb"})
    names = ("label", "annotator", "m")
    assert {*names} < {*table(found, "ceiling").columns}
    use = table(found, "label-use")
    assert use.columns[2:] == ("Reference label", *sorted(names), "m (judge)")


@pytest.mark.parametrize("n", [1, 3, 50])
def test_a_handful_of_answers_is_no_error(n: int) -> None:
    found = weighing(n)
    for cell in (c for t in all_tables(found) for r in t.rows for c in r):
        assert "nan" not in cell.value + cell.interval
    assert list(drawn(reliability_figures(found))) == ["reliability_1", "reliability_2"]


# --- figures and items ----------------------------------------------------------------------------


def test_what_is_drawn(tiny: Alignment, hostile: Alignment) -> None:
    assert [figure.key for figure in figures_of([tiny.part])] == [
        *(f"judges_and_controls_{key}" for key in USUAL), "confusion_1_m",
    ]  # fmt: skip
    assert len(drawn(confusion_figures(hostile))) == 2


def test_every_block_answers_a_question_of_a_reader(realistic: Alignment) -> None:
    asked = [block.asks for block in realistic.part.blocks]
    assert list(dict.fromkeys(asked)) == ["sure", "people", "wrong", "what_if"]


def test_every_item_stands_with_what_everybody_said(realistic: Alignment) -> None:
    assert realistic.part.items
    items, judge = realistic.part.items(), "smollm2-135m"
    assert len(items.ids) == realistic.n_answers
    for said, m in zip(items.said, realistic.rubric.metrics, strict=True):
        assert (said.title, tuple(said.labels)) == (m.title, m.label_texts)
        signs = (said.reference, *said.annotators.values(), *said.judges.values())
        assert {len(one) for one in signs} == {len(items.ids)}
        assert set(said.judges) == {one.name for one in realistic.real_judges}
        counted = {
            (row["human_label"], row["label"]): row.estimate.value
            for row in realistic.results.select("confusion", judge=judge, metric=m.id)
        }
        pairs = Counter(
            (m.label_texts[int(human)], m.label_texts[int(label)] if label >= "0" else "")
            for human, label in zip(said.reference, said.judges[judge], strict=True)
            if human >= "0"
        )
        assert {pair: count for pair, count in counted.items() if count} == dict(pairs)


def test_a_judge_without_a_label_is_shown_with_the_reason() -> None:
    found = aligned({"ann": "aabc"}, {"m": "ab.c"})
    assert found.part.items
    items = found.part.items()
    (said,) = items.said
    assert said.judges == {"m": f"01{SIGNS['unparsed']}2"}
    folded = [folded for _, folded in items.texts]
    assert [len(one) for one in folded] == [0, 0, 1, 0]
    assert folded[2][0][0].startswith("m gave no usable verdict (unparsed)")


def test_the_settings_of_each_judge_can_be_read(realistic: Alignment) -> None:
    shown = block(realistic, "Settings of the judges").cards
    first = {row[0].text: row[1].text for row in shown[0].grid.rows}
    assert first["backend.model"] == "made-up"
    assert first["runtime.concurrency"] == "8"


def test_label_use_counts_the_same_items_for_humans_and_judges() -> None:
    found = table(aligned({"ann": "aab_"}, {"m": "abb.", "other": "aaa."}), "label-use")
    assert found.columns == (
        "Metric", "Label", "Reference label", "ann", "m (judge)", "other (judge)",
    )  # fmt: skip
    assert [cell.text for cell in found.rows[0][1:]] == [
        "a", "2 of 3 (67 %)", "2 of 3 (67 %)", "1 of 3 (33 %)", "3 of 3 (100 %)",
    ]  # fmt: skip
    assert [cell.text for cell in found.rows[-1][1:]] == [
        "No label", DASH, DASH, "0 of 3 (0 %)", "0 of 3 (0 %)",
    ]  # fmt: skip


def test_a_confusion_matrix_frames_where_judge_and_humans_agree(tiny: Alignment) -> None:
    (figure,) = confusion_figures(tiny)
    (panel, *_) = [axes for axes in figure.draw().axes if axes.get_visible()]
    frames = [p for p in panel.patches if type(p).__name__ == "Rectangle"]
    middles = [(p.get_x() + p.get_width() / 2, p.get_y() + p.get_height() / 2) for p in frames]
    assert middles == [(i, i) for i in range(len(tiny.rubric.metrics[0].labels))]
