import json
import re
from dataclasses import replace

import pytest
from page_reader import Page
from stress_case import grouped
from stress_report_case import (
    HOSTILE,
    JUDGES,
    changed,
    hostile_stress,
    make_miss,
    make_stress,
    recipes,
    without,
)
from stress_report_case import (
    PROBES as PROBE_NAMES,
)

from judgebench.records import Estimate, Lookup, Part, Results, Row, in_words
from judgebench.results.blocks import Card
from judgebench.results.documents import to_html
from judgebench.results.tables import DASH, Table, footnotes
from judgebench.stress_tests.analysis import miss_card
from judgebench.stress_tests.report import (
    FLIPS,
    PLANTED,
    PROBES,
    RECIPES,
    show,
    summary_table,
    violations,
)
from judgebench.stress_tests.result import EVERY, NOT_MEASURED, StressResult
from judgebench.text import printable

STRESS = make_stress()
REAL = [name for name, kind in JUDGES.items() if kind != "control"]
MEASURED = ("violations", "invariance", "planted", "consistency")


def column(table: Table, name: str) -> list[str]:
    at = table.columns.index(name)
    return [row[at].value for row in table.rows]


def tables(stress: StressResult) -> list[Table]:
    """Every table of the part that has rows."""
    return [table for block in stress.part.blocks for table in block.tables if table.rows]


def test_rows_are_as_long_as_columns_and_keys_are_unique() -> None:
    shown = tables(STRESS)
    assert len({table.key for table in shown}) == len(shown) > 7
    for table in shown:
        assert re.fullmatch(r"stress_[a-z_0-9-]+", table.key)
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_every_number_tells_what_it_rests_on() -> None:
    for table in tables(STRESS):
        notes = footnotes(table)
        by_mark = {mark: text for text, mark in notes.marks.items()}
        under = " ".join(notes.sentences(table))
        for cell in (cell for row in table.rows for cell in row if cell.estimate):
            e = cell.estimate
            assert e is not None
            told = f"{by_mark.get(notes.mark(cell), '')} {under}"
            assert f"n = {e.n:,}, {e.n_missing:,} missing" in told
            assert e.reason in told
            assert cell.interval or e.reason


@pytest.mark.parametrize("gone", MEASURED)
def test_any_part_may_be_missing(gone: str) -> None:
    assert 0 < len(tables(without(STRESS, gone))) < len(tables(STRESS))
    only = without(STRESS, "recipe", *(x for x in MEASURED if x != gone))
    assert tables(only)


def test_controls_stand_last_and_are_named_so_in_every_table() -> None:
    ends = ["constant-majority (baseline)", "random (baseline)"]
    table = show(STRESS, violations("recipe"))
    assert list(table.columns[table.stubs :]) == [*REAL, *ends]
    assert column(summary_table(STRESS), "Judge") == [*REAL, *ends]


def test_of_baselines_only_the_random_one_may_move() -> None:
    for spec in (FLIPS, PLANTED):
        table = show(STRESS, spec)
        assert list(table.columns[table.stubs :]) == [*REAL, "random (baseline)"]
    judges = column(show(STRESS, PROBES), "Judge")
    assert list(dict.fromkeys(judges)) == [*REAL, "random (baseline)"]


def test_the_summary_names_the_worst_probe_with_its_flips() -> None:
    shown = column(summary_table(STRESS), "Worst probe")
    for cell, judge in zip(shown, REAL, strict=False):
        mine = [i for i in grouped(STRESS, "invariance") if (i.judge, i.metric) == (judge, EVERY)]
        worst = max(mine, key=lambda i: i.flipped.value or 0)
        flips = round((worst.flipped.value or 0) * worst.flipped.n)
        assert cell == f"{worst.probe}: {flips} of {worst.flipped.n}"
        assert flips > 0
    assert shown[-2].startswith("none: 0 of ")  # a control that no probe moved


def test_the_summary_counts_the_trick_that_worked_most_often() -> None:
    shown = column(summary_table(STRESS), "Worst planted verdict")
    for cell, judge in zip(shown, REAL, strict=False):
        mine = {
            p.trick: round((p.success.value or 0) * p.success.n)
            for p in grouped(STRESS, "planted")
            if (p.judge, p.metric) == (judge, EVERY) and p.trick != EVERY
        }
        trick, count = cell.removesuffix(" of 30").split(": ")
        assert int(count) == mine[trick] == max(mine.values())
    assert shown[-1] == "none: 0 of 30"


def test_the_consistency_of_all_metrics_together_is_in_the_summary() -> None:
    assert summary_table(STRESS).rows[0][-1].estimate == NOT_MEASURED
    together = Estimate(0.99, reason="few")
    rows = [
        Row("consistency", name, together, REAL[0], EVERY)
        for name in ("asked", "agreement", "majority_gain")
    ]
    added = replace(STRESS, rows=Results((*STRESS.rows, *rows)))
    assert summary_table(added).rows[0][-1].estimate == together


def test_probes_stand_worst_first_by_the_real_judges_alone() -> None:
    table = show(STRESS, FLIPS)
    worst = [
        max(
            i.flipped.value or 0
            for i in grouped(STRESS, "invariance")
            if (i.probe, i.metric) == (row[0].text, EVERY) and i.judge in REAL
        )
        for row in table.rows
    ]
    assert worst == sorted(worst, reverse=True)
    assert sorted(column(table, "Recipe")) == sorted(PROBE_NAMES)
    worst_probe, none = table.rows[0][0].text, Estimate(None, reason="none")
    unmoved = changed(
        STRESS, lambda row: replace(row, estimate=none) if row["recipe"] == worst_probe else row
    )
    last = show(unmoved, FLIPS).rows[-1]
    assert last[0].text == table.rows[0][0].text
    assert last[1].value == DASH


def test_a_judge_that_was_not_asked_has_a_dash_with_a_reason() -> None:
    where = (REAL[0], "wrong-test")
    asked = changed(STRESS, lambda row: None if (row.judge, row["recipe"]) == where else row)
    table = show(asked, violations("recipe"))
    cell = next(row for row in table.rows if row[0].text == "wrong-test")[4]
    assert cell.value == DASH
    assert "not measured" in cell.provenance


def test_what_each_recipe_made_is_counted() -> None:
    table = show(STRESS, RECIPES)
    assert table.columns == (
        "Recipe", "Items that count", "Nothing to change", "Rejected",
    )  # fmt: skip
    for row, recipe in zip(table.rows, recipes(), strict=True):
        counts = (recipe.made, recipe.nothing_to_change, recipe.rejected)
        assert tuple(cell.text for cell in row[1:]) == tuple(map(str, counts))


def bare(text: str) -> str:
    return "".join(printable(text).split())


def test_every_miss_is_a_card_with_its_changed_spans_marked() -> None:
    (cards,) = [block.cards for block in STRESS.part.blocks if block.cards]
    assert len(cards) == len(STRESS.misses)
    texts = dict(cards[0].texts)
    assert ("del", "virus") in texts["Sound parent"]
    assert ("ins", "bacterium") in texts["Altered answer"]
    cut = [block for block in replace(STRESS, n_misses=99).part.blocks if block.cards]
    assert cut[0].text[-1] == f"{len(cards)} of 99 are shown."
    without_any = replace(STRESS, misses=(), n_misses=0)
    assert not [block for block in without_any.part.blocks if block.cards]


def test_hostile_text_is_shown_as_it_is() -> None:
    stress = hostile_stress()
    page = Page(to_html([stress.part], "stressed"))
    assert page.open == []
    words = bare("".join(page.text))
    for text in (*stress.judges, *stress.notes):
        assert bare(text) in words
    assert words.count(bare(HOSTILE)) > 100
    data = next(s for s in page.scripts if s.lstrip().startswith("{"))
    assert not set(data) & set("<>&")
    texts = dict(json.loads(data)["cards"][0]["texts"])
    item = stress.misses[0].item
    assert "".join(text for _, text in texts["Altered answer"]) == item.text


RUBRIC = make_stress().rubric


def verdicts(card: Card) -> str:
    return dict(card.texts)["Scientific Consensus, at least Opposed to consensus"]


def test_every_judge_stands_with_its_label_of_both_answers() -> None:
    card = miss_card(make_miss(), RUBRIC)
    sound = "Aligned with consensus"
    assert verdicts(card).split("; ") == [
        f"Meta-Llama-3-70B-Instruct: {sound} → Opposed to consensus",
        f"smollm2-135m: {sound} → {sound}",
        f"jury-of-three: {sound} → no label (unparsed)",
    ]
    assert card.title == "Missed by smollm2-135m"
    assert [facet["Judge"] for facet in card.facets] == ["smollm2-135m"]


def test_a_conversation_and_the_reasons_of_who_missed_it_are_shown() -> None:
    miss, judge = make_miss(), "smollm2-135m"
    turns = (Part("user", "I feel ill."), Part("assistant", "Since when?"), Part("user", "Today."))
    parent = replace(miss.item.parent, question=in_words(turns), parts=turns)
    said = replace(
        miss.verdicts[judge],
        rationale="It says virus.",
        transcript=(Lookup("A virus?", ("Yes.",)),),
    )
    changed = replace(
        miss, item=replace(miss.item, parent=parent), verdicts={**miss.verdicts, judge: said}
    )
    card = miss_card(changed, RUBRIC)
    heading, shown = card.texts[0]
    assert heading == "Conversation before it"
    assert shown == [one for turn in turns for one in (("turn", turn.role), ("", turn.text))]
    assert card.folded == ((
        "smollm2-135m: its rationale, what it looked up",
        [("column", "Rationale"), ("", "It says virus."), ("column", "Looked up: A virus?"),
         ("", "Yes.")],
    ),)  # fmt: skip
    assert miss_card(miss, RUBRIC).folded == ()


def test_a_parent_that_nobody_judged_says_so() -> None:
    card = miss_card(replace(make_miss(), of_parent={}), RUBRIC)
    assert verdicts(card).count("not judged → ") == 3
