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


def test_keys_are_unique_and_rows_fit_their_columns() -> None:
    for rankings in (PAPER_RANKINGS, PLANTED, bare_rankings()):
        found = all_tables(rankings)
        keys = [table.key for table in found]
        assert len(keys) == len(set(keys))
        assert all(key.startswith("ranking_") for key in keys)
        for table in found:
            assert table.rows
            assert all(len(row) == len(table.columns) for row in table.rows)


def by_task(table: Table) -> dict[tuple[str, str], dict[str, Cell]]:
    """The cells of a table of systems, by task and ranker."""
    return {
        (row[0].text, row[1].text): dict(zip(table.columns[2:], row[2:], strict=True))
        for row in table.rows
    }


def test_the_scores_are_the_paper_s_and_the_best_of_each_row_is_marked() -> None:
    rows = by_task(tables(PAPER_RANKINGS)["ranking_scores"])
    for title, systems, rankers in PAPER.values():
        for ranker, percent in rankers.items():
            cells = {name.removesuffix(" (control)"): c for name, c in rows[title, ranker].items()}
            for system, score in zip(systems, percent, strict=True):
                assert cells[system].value == f"{score / 100:.3f}"
                assert cells[system].best == (score == max(percent))
    equal = by_task(tables()["ranking_scores"])["Claims about health", "constant (control ranker)"]
    assert not any(cell.best for cell in equal.values())


def test_a_system_that_was_not_ranked_is_undefined_with_a_reason() -> None:
    row = by_task(tables()["ranking_scores"])["Claims about health", "humans"]
    assert [cell.value for cell in row.values()] == ["-1.200", "-2.600", "-2.200", *["–"] * 4]
    assert "this ranker did not rank it" in row["noise (control)"].provenance


def test_ranks_stand_system_by_system() -> None:
    rows = by_task(tables()["ranking_average_ranks"])
    cells = rows["Claims about health", "expert-trained"]
    assert cells["gold"].value == "1.400"
    assert cells["gold"].interval == "[1.100, 1.700]"
    assert rows["Claims about health", "humans"]["noise (control)"].value == "–"


def test_agreement_is_of_every_pair() -> None:
    table = tables()["ranking_agreement"]
    pairs = {(row[1].text, row[2].text): row[3] for row in table.rows}
    assert len(table.rows) == 2 * 15
    assert pairs["expert-trained", "humans"].value == "+0.620"
    assert "over gold, smollm2-135m, qwen-1.5b" in pairs["expert-trained", "humans"].provenance
    undefined = next(row for row in table.rows if row[2].text.startswith("constant"))
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
        "minilm, draw 0", "518", "111", "7", "4", "0.613", "123", "31",
    ]  # fmt: skip
    systems = found["ranking_argument"].rows
    assert [cell.text for cell in systems[0][1:]] == ["gold", "41.5", "3"]


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
    assert "all failed" in found["ranking_scores"].rows[0][2].provenance
