from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranking_case import (
    SYSTEMS,
    bare_rankings,
    paper_rankings,
    planted_rankings,
    ranked,
    ranking_rows,
)

from judgebench.ranking.rankers import Rankings
from judgebench.ranking.suitability import (
    against_arguments,
    has_controls,
    medal,
    medal_grid,
    medals_table,
    ordinal,
)
from judgebench.records import Estimate
from judgebench.results.rows import Results

PLANTED = planted_rankings()
CLAIMS = PLANTED.tasks[0]


def names(rankings: Rankings, task: int, with_controls: bool) -> dict[str, list[list[str]]]:
    of = rankings.tasks[task]
    grid = medal_grid(rankings.of(of.name), of, with_controls=with_controls)
    return {name: [[p.system for p in cell] for cell in cells] for name, cells in grid.items()}


@pytest.mark.parametrize(
    ("number", "shown"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"),
                          (12, "12th"), (13, "13th"), (21, "21st"), (112, "112th")]
)  # fmt: skip
def test_places_are_written_as_in_english(number: int, shown: str) -> None:
    assert ordinal(number) == shown


def test_three_places_have_a_medal() -> None:
    assert [medal(i) for i in range(1, 6)] == ["🥇", "🥈", "🥉", "4th", "5th"]


def test_the_paper_s_rankings_of_arguments() -> None:
    paper = paper_rankings()
    assert names(paper, 0, False)["llm-trained"] == [["GPT-4o"], ["gold"], ["OpenBioLLM"],
                                                      ["Llama3"]]  # fmt: skip
    assert names(paper, 1, False)["llm-trained"][0] == ["Llama3"]
    assert names(paper, 2, False)["expert-trained"][0] == ["gold"]


def test_the_paper_s_baseline_is_led_by_control_cases() -> None:
    places = names(paper_rankings(), 0, True)["baseline"]
    assert places[:3] == [["noise"], ["label-only"], ["no-argument"]]
    assert places[5:] == [["passages", "Llama3"], [], ["GPT-4o"]]


def test_who_ties_shares_a_cell_and_the_places_after_it_stay_empty() -> None:
    rows = names(PLANTED, 0, False)
    assert rows["llm-trained"] == [["gold", "smollm2-135m"], [], ["qwen-1.5b"]]
    assert rows["constant (control ranker)"] == [list(SYSTEMS[:3]), [], []]
    grid = medal_grid(PLANTED.of("claims"), CLAIMS, with_controls=False)
    tied = {p.system: p.tied for cell in grid["llm-trained"] for p in cell}
    assert tied == {"gold": True, "smollm2-135m": True, "qwen-1.5b": False}


def test_a_control_case_is_said_to_stand_above_only_where_it_may_be_claimed() -> None:
    found = {ranking.ranker: ranking for ranking in PLANTED.of("claims")}
    assert against_arguments(found["expert-trained"], CLAIMS, "label-only") == (2, 0)
    assert against_arguments(found["llm-trained"], CLAIMS, "label-only") == (0, 0)
    assert against_arguments(found["judge/one-8b"], CLAIMS, "passages") == (0, 1)
    assert against_arguments(found["baseline"], CLAIMS, "label-only") == (0, 3)
    unknown = replace(found["expert-trained"], p={})
    assert against_arguments(unknown, CLAIMS, "label-only") == (0, 3)


def test_control_cases_are_marked_in_words() -> None:
    table = medals_table(PLANTED.of("claims"), CLAIMS, "k", with_controls=True)
    rows = {row[0].text: row for row in table.rows}
    assert rows["expert-trained"][2].text == "label-only (control, above 2)"
    assert rows["expert-trained"][5].text == "passages (control)"
    assert rows["judge/one-8b (judge)"][4].text == "passages (control, unclear)"
    assert rows["humans"][4].text == ""
    looks = [rows[name][at].look for name, at in (("expert-trained", 2), ("expert-trained", 5))]
    assert [*looks, rows["judge/one-8b (judge)"][4].look] == ["bad", "", "unclear"]


def test_without_control_cases_there_is_one_grid() -> None:
    bare = bare_rankings()
    assert not has_controls(bare.of("claims"), bare.tasks[0])
    assert has_controls(PLANTED.of("claims"), CLAIMS)
    assert names(bare, 0, True) == names(bare, 0, False) == {"baseline": [["gold"], ["m"]]}


def test_a_system_without_a_score_has_no_place() -> None:
    undefined = Estimate(None, reason="no argument")
    rows = tuple(
        replace(row, estimate=undefined) if row["system"] == "gold" else row
        for row in PLANTED.rows.select(task="claims", ranker="expert-trained")
    )
    made = replace(PLANTED, rows=Results(rows))
    assert names(made, 0, False) == {"expert-trained": [["smollm2-135m"], ["qwen-1.5b"]]}


@given(st.lists(st.integers(0, 4), min_size=1, max_size=7))
def test_every_system_stands_once_behind_as_many_as_are_better(scores: list[int]) -> None:
    found = {name: score / 4 for name, score in zip(SYSTEMS, scores, strict=False)}
    task = ranked("t", "T", "accuracy", tuple(found))
    rows = ranking_rows(("t", "x", "baseline"), found)
    rankings = Rankings("r", (task,), Results(tuple(rows)))
    cells = names(rankings, 0, True)["x"]
    assert sorted(name for cell in cells for name in cell) == sorted(found)
    for place, cell in enumerate(cells):
        for name in cell:
            assert sum(score > found[name] for score in found.values()) == place
