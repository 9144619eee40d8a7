from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from ranking_case import SYSTEMS, planted_rankings, ranked, ranking_rows

from judgebench.ranking.rankers import Rankings
from judgebench.ranking.report import against_arguments, medals_table
from judgebench.records import Results

PLANTED = planted_rankings()
CLAIMS = PLANTED.tasks[0]


def medals(rankings: Rankings) -> dict[str, list[str]]:
    table = medals_table(rankings, rankings.tasks[0], "k")
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}


def test_who_ties_shares_a_cell_and_the_places_after_it_stay_empty() -> None:
    rows = medals(PLANTED)
    assert rows["llm-trained"][:3] == ["gold, smollm2-135m (tied)", "", "qwen-1.5b"]
    first, *others = rows["constant (control ranker)"]
    assert all(system in first for system in SYSTEMS)
    assert set(others) == {""}


def test_a_control_case_is_said_to_stand_above_only_where_it_may_be_claimed() -> None:
    found = {ranking.ranker: ranking for ranking in PLANTED.of("claims")}
    assert against_arguments(found["expert-trained"], CLAIMS, "label-only") == (2, 0)
    assert against_arguments(found["llm-trained"], CLAIMS, "label-only") == (0, 0)
    assert against_arguments(found["judge/one-8b"], CLAIMS, "passages") == (0, 1)
    assert against_arguments(found["baseline"], CLAIMS, "label-only") == (0, 3)
    unknown = replace(found["expert-trained"], p={})
    assert against_arguments(unknown, CLAIMS, "label-only") == (0, 3)


def test_control_cases_are_marked_in_words() -> None:
    table = medals_table(PLANTED, CLAIMS, "k")
    assert table.columns[:5] == ("Ranker", "🥇", "🥈", "🥉", "4.")
    rows = {row[0].text: row for row in table.rows}
    assert rows["expert-trained"][2].text == "label-only (control, above 2)"
    assert rows["expert-trained"][5].text == "passages (control)"
    assert rows["judge/one-8b (judge)"][4].text == "passages (control, unclear)"
    assert rows["humans"][4].text == ""
    looks = [rows[name][at].look for name, at in (("expert-trained", 2), ("expert-trained", 5))]
    assert [*looks, rows["judge/one-8b (judge)"][4].look] == ["bad", "", "unclear"]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=3))
def test_every_system_stands_once_behind_as_many_as_are_better(scores: list[int]) -> None:
    found = {name: score / 4 for name, score in zip(SYSTEMS, scores, strict=False)}
    task = ranked("t", "T", tuple(found))
    rows = ranking_rows(("t", "x", "baseline"), found)
    cells = medals(Rankings("r", (task,), Results(tuple(rows))))["x"]
    for system, score in found.items():
        place = sum(other > score for other in found.values())
        assert [system in cell for cell in cells] == [i == place for i in range(len(found))]
