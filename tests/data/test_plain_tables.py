"""Plain tables with side columns of any name are read right or asked about, and never misread."""

from collections import Counter

from benchmark_scripts import benchmark

plain_tables = benchmark("plain_tables")
N_TABLES = 150
MIN_RIGHT = 0.84


def test_no_plain_table_is_misread() -> None:
    drawn = [plain_tables.draw_tables(plain_tables.FIRST_SEED + n) for n in range(N_TABLES)]

    outcomes = [plain_tables.read_tables(tables) for tables in drawn]

    wrong = [
        f"{tables.seed} ({tables.sides}): {outcome.text}"
        for tables, outcome in zip(drawn, outcomes, strict=True)
        if outcome.kind in ("wrong", "crashed")
    ]
    assert not wrong
    assert Counter(outcome.kind for outcome in outcomes)["right"] >= MIN_RIGHT * N_TABLES
