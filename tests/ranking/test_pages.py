from dataclasses import replace

from ranking_case import (
    PAPER,
    RANKERS,
    bare_rankings,
    paper_rankings,
    planted_rankings,
)

from judgebench.ranking.rankers import Rankings
from judgebench.records import Estimate, Results
from judgebench.results.tables import Cell, Table, footnotes

PAPER_RANKINGS, PLANTED = paper_rankings(), planted_rankings()


def all_tables(rankings: Rankings) -> list[Table]:
    return [table for block in rankings.part.blocks for table in block.tables if table.rows]


def tables(rankings: Rankings = PLANTED) -> dict[str, Table]:
    return {table.key: table for table in all_tables(rankings)}


def by_ranker(table: Table) -> dict[str, tuple[Cell, ...]]:
    return {row[0].text: row for row in table.rows}


def test_keys_are_unique_and_rows_fit_their_columns() -> None:
    for rankings in (PAPER_RANKINGS, PLANTED, bare_rankings()):
        found = all_tables(rankings)
        keys = [table.key for table in found]
        assert len(keys) == len(set(keys))
        assert all(key.startswith("ranking_") for key in keys)
        for table in found:
            assert table.rows
            assert all(len(row) == len(table.columns) for row in table.rows)


def test_the_scores_are_the_paper_s_and_the_best_of_each_row_is_marked() -> None:
    for number, (_, systems, rankers) in enumerate(PAPER.values(), start=1):
        table = tables(PAPER_RANKINGS)[f"ranking_scores-{number}"]
        assert [c.removesuffix(" (control)") for c in table.columns[1:]] == list(systems)
        for ranker, percent in rankers.items():
            row = by_ranker(table)[ranker]
            assert [cell.value for cell in row[1:]] == [f"{x / 100:.3f}" for x in percent]
            assert [cell.best for cell in row[1:]] == [x == max(percent) for x in percent]
    equal = by_ranker(tables()["ranking_scores-1"])["constant (control ranker)"]
    assert not any(cell.best for cell in equal)


def test_a_system_that_was_not_ranked_is_undefined_with_a_reason() -> None:
    row = by_ranker(tables()["ranking_scores-1"])["humans"]
    assert [cell.value for cell in row[1:]] == ["-1.200", "-2.600", "-2.200", *["–"] * 4]
    assert "this ranker did not rank it" in row[4].provenance


def test_ranks_stand_system_by_system_with_their_groups() -> None:
    found = tables()
    row = by_ranker(found["ranking_average_ranks-1"])["expert-trained"]
    assert row[1].value == "1.400"
    assert row[1].interval == "[1.100, 1.700]"
    assert [cell.remark for cell in row[1:4]] == ["group a", "group b", "group c"]
    assert by_ranker(found["ranking_average_ranks-1"])["humans"][7].value == "–"
    row = by_ranker(found["ranking_neighbours-1"])["humans"]
    assert [cell.text for cell in row[1:3]] == ["gold (0.239)", "qwen-1.5b (0.637)"]


def test_agreement_with_the_humans_comes_first() -> None:
    table = tables()["ranking_agreement"]
    pairs = [(row[1].text, row[2].text) for row in table.rows]
    assert all(other == "humans" for _, other in pairs[:10])
    assert not any("humans" in pair for pair in pairs[10:])
    assert len(pairs) == 2 * 15
    assert table.rows[1][3].value == "+0.620"
    assert "over gold, smollm2-135m, qwen-1.5b" in table.rows[1][3].provenance
    undefined = next(row for row in table.rows if row[1].text.startswith("constant"))
    assert undefined[3].value == "–"
    assert any("all ranks are tied" in text for text in footnotes(table).marks)


def test_biases_and_training_are_told() -> None:
    found = tables()
    assert len(found["ranking_length_bias"].rows) == 2 * len(RANKERS)
    assert found["ranking_length_bias"].rows[3][2].value == "+0.310"
    own = found["ranking_self_preference"].rows[0]
    assert [cell.value for cell in own[2:]] == ["qwen-1.5b", "of the family qwen", "+0.500"]
    assert "beside baseline, expert-trained" in own[4].provenance
    trained = found["ranking_trained"].rows
    assert [row[1].text for row in trained[:5]] == [
        "baseline", "expert-trained", *(f"llm-trained-{i}" for i in range(3)),
    ]  # fmt: skip
    assert [cell.text for cell in trained[0][2:]] == [
        "minilm, draw 0", "518", "111", "7", "4", "0.613", "123", "31", "5",
    ]  # fmt: skip
    systems = found["ranking_argument"].rows
    assert [cell.text for cell in systems[0][1:]] == ["gold", "41.5", "–", "3"]
    extracts = next(row for row in systems if row[3].text == "42.0%")
    assert [cell.text for cell in extracts[2:]] == ["88.0", "42.0%", "–"]


def test_a_ranker_without_any_score_still_has_its_row() -> None:
    failed = Estimate(None, reason="all failed")
    rows = PLANTED.rows.select(task="claims", ranker="baseline")
    kept = [row for row in rows if row.analysis in ("system", "ranking")]
    made = replace(
        PLANTED,
        rows=Results(
            tuple(replace(r, estimate=failed) if r.analysis == "system" else r for r in kept)
        ),
    )
    found = tables(made)
    assert "ranking_medals-1" not in found
    assert "all failed" in found["ranking_scores-1"].rows[0][1].provenance
