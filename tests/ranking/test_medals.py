from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranking_case import SYSTEMS, planted_rankings, ranked, ranking_rows

from judgebench.ranking.rankers import Rankings
from judgebench.ranking.suitability import against_arguments, medal_grid, medals_table, ordinal
from judgebench.records import Results

PLANTED = planted_rankings()
CLAIMS = PLANTED.tasks[0]


def names(rankings: Rankings, task: int) -> dict[str, list[list[str]]]:
    of = rankings.tasks[task]
    grid = medal_grid(rankings.of(of.name), of)
    return {name: [[p.system for p in cell] for cell in cells] for name, cells in grid.items()}


@pytest.mark.parametrize(
    ("number", "shown"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"),
                          (12, "12th"), (13, "13th"), (21, "21st"), (112, "112th")]
)  # fmt: skip
def test_places_are_written_as_in_english(number: int, shown: str) -> None:
    assert ordinal(number) == shown


def test_who_ties_shares_a_cell_and_the_places_after_it_stay_empty() -> None:
    rows = names(PLANTED, 0)
    assert rows["llm-trained"][:3] == [["gold", "smollm2-135m"], [], ["qwen-1.5b"]]
    assert rows["constant (control ranker)"] == [list(SYSTEMS), *[[]] * (len(SYSTEMS) - 1)]
    grid = medal_grid(PLANTED.of("claims"), CLAIMS)
    tied = {p.system: p.tied for cell in grid["llm-trained"][:3] for p in cell}
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
    table = medals_table(PLANTED.of("claims"), CLAIMS, "k")
    rows = {row[0].text: row for row in table.rows}
    assert rows["expert-trained"][2].text == "label-only (control, above 2)"
    assert rows["expert-trained"][5].text == "passages (control)"
    assert rows["judge/one-8b (judge)"][4].text == "passages (control, unclear)"
    assert rows["humans"][4].text == ""
    looks = [rows[name][at].look for name, at in (("expert-trained", 2), ("expert-trained", 5))]
    assert [*looks, rows["judge/one-8b (judge)"][4].look] == ["bad", "", "unclear"]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=7))
def test_every_system_stands_once_behind_as_many_as_are_better(scores: list[int]) -> None:
    found = {name: score / 4 for name, score in zip(SYSTEMS, scores, strict=False)}
    task = ranked("t", "T", "accuracy", tuple(found))
    rows = ranking_rows(("t", "x", "baseline"), found)
    rankings = Rankings("r", (task,), Results(tuple(rows)))
    cells = names(rankings, 0)["x"]
    assert sorted(name for cell in cells for name in cell) == sorted(found)
    for place, cell in enumerate(cells):
        for name in cell:
            assert sum(score > found[name] for score in found.values()) == place
