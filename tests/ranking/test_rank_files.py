from collections.abc import Mapping
from pathlib import Path

import pytest
from rank_case import SYSTEMS, by_reason, fill, items

from judgebench.errors import Problem, SetupError
from judgebench.ranking.human import HumanRank, read_ranks, write_sheets


@pytest.fixture
def sheets(tmp_path: Path) -> Path:
    """The sheets of two experts who ranked six items alike."""
    write_sheets(items(), ["anna", "ben"], tmp_path, n=None, seed=0)
    for name in ("anna", "ben"):
        fill(tmp_path / "sheets" / f"{name}.csv", by_reason)
    return tmp_path / "sheets"


def problems(*paths: Path, key: Path | None = None) -> tuple[Problem, ...]:
    with pytest.raises(SetupError) as caught:
        read_ranks(paths, key)
    return caught.value.problems


def plain(path: Path, *rows: str, header: str = "task,item_id,expert,system,rank") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_ranks_are_given_back_to_the_systems_behind_the_letters(sheets: Path) -> None:
    ranks = read_ranks([sheets])
    assert set(ranks.ranks) == {
        HumanRank("claims", item.item_id, expert, system, place)
        for item in items()
        for expert in ("anna", "ben")
        for place, system in enumerate(SYSTEMS, 1)
    }
    assert len(ranks.ranks) == 6 * 2 * 4
    assert (ranks.warnings, ranks.tasks) == ((), ("claims",))
    item = ranks.asked["claims", "claims-3"]
    assert (item.group, item.label) == ("page-1", "refuted")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_sheet_may_come_from_any_spreadsheet(sheets: Path, delimiter: str) -> None:
    before = read_ranks([sheets])
    forms = {"1": " 1 ", "2": "2.0", "3": "3,0", "4": "4"}
    fill(sheets / "anna.csv", lambda row: forms[by_reason(row)], delimiter)
    assert read_ranks([sheets]) == before


def test_a_blank_sheet_beside_a_filled_one_of_the_same_expert_does_no_harm(sheets: Path) -> None:
    before = read_ranks([sheets])
    (sheets / "anna (1).csv").write_bytes((sheets / "anna.csv").read_bytes())
    fill(sheets / "anna.csv", lambda row: "")
    assert set(read_ranks([sheets]).ranks) == set(before.ranks)


def test_the_key_is_found_beside_a_sheet_or_one_folder_up_or_named(sheets: Path) -> None:
    key = sheets.parent / "sheet-key.json"
    there = [sheets / "anna.csv"]
    above = read_ranks(there)
    key.rename(sheets / "sheet-key.json")
    assert read_ranks(there) == above
    (sheets / "sheet-key.json").rename(sheets.parent / "mine.json")
    assert read_ranks(there, sheets.parent / "mine.json") == above
    (problem,) = problems(*there)
    assert problem.message == "has no sheet-key.json beside it or one folder up"


@pytest.mark.parametrize("rank", ["0", "6", "first", "2.5", "-1", "1e0", "١"])
def test_what_is_no_rank_is_told_with_its_row(sheets: Path, rank: str) -> None:
    def change(row: Mapping[str, str]) -> str:
        return rank if (row["item"], row["letter"]) == ("2", "C") else "1"

    fill(sheets / "ben.csv", change)
    (problem,) = problems(sheets)
    assert (problem.line, problem.field) == (8, "rank")
    assert (problem.file, problem.message) == (str(sheets / "ben.csv"), "is no rank")
    assert problem.allowed == "1 (best) to 5 (clearly wrong), or blank"


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("letter", "E", "is no letter of this item"),
        ("letter", "", "is no letter of this item"),
        ("letter", "AB", "is no letter of this item"),
        ("item", "7", "is no item of the key"),
        ("item", "0", "is no item of the key"),
        ("item", "x", "is no item of the key"),
        ("expert", "dora", "is no expert of the key"),
        ("text_hash", "h0", "the text is not the key's: this is the sheet of other arguments"),
    ],
)
def test_a_row_that_does_not_fit_the_key_is_told(sheets, column, value, message) -> None:
    def change(row: dict[str, str]) -> str:
        if (row["item"], row["letter"]) == ("1", "B"):
            row[column] = value
        return "1"

    fill(sheets / "anna.csv", change)
    (problem,) = problems(sheets)
    assert (problem.line, problem.field, problem.message) == (3, column, message)


def test_all_problems_of_all_files_are_told_at_once(sheets: Path, tmp_path: Path) -> None:
    fill(sheets / "anna.csv", lambda row: "6")
    table = plain(tmp_path / "more.csv", "t,i,e,s,first", "t,,e,s,1", "t,i,e,s")
    kinds = [p.message for p in problems(sheets, table)]
    assert "is no rank (24 times, rows 2-25)" in kinds
    assert kinds.count("is no rank") == 1
    assert kinds.count("is blank") == 1
    assert any("cells where the header has 5" in message for message in kinds)


def test_an_argument_that_an_expert_ranked_twice_is_told(sheets: Path) -> None:
    (sheets / "again.csv").write_bytes((sheets / "anna.csv").read_bytes())
    told = problems(sheets)
    assert len(told) == 24
    assert told[0].message == f"anna ranked this argument before, in {sheets / 'again.csv'}:2"
    assert told[0].file == str(sheets / "anna.csv")


def test_items_ranked_in_part_or_not_at_all_are_left_out_and_told(sheets: Path) -> None:
    def change(row: dict[str, str]) -> str:
        if row["item"] in ("2", "3") or (row["item"], row["letter"]) == ("1", "A"):
            return ""
        return by_reason(row)

    fill(sheets / "ben.csv", change)
    ranks = read_ranks([sheets])
    by_ben = {rank.item_id for rank in ranks.ranks if rank.expert == "ben"}
    assert by_ben == {"claims-3", "claims-4", "claims-5"}
    assert [w.message for w in ranks.warnings] == [
        "ben ranked 3 of 4 arguments of 'claims-0': the item is left out for this expert",
        "ben left 2 items without any rank",
    ]
    assert len(ranks.asked) == 6


def test_rows_that_somebody_deleted_count_as_not_ranked(sheets: Path) -> None:
    lines = (sheets / "ben.csv").read_text("utf-8-sig").splitlines()
    (sheets / "ben.csv").write_text("\n".join(lines[:-2]) + "\n")
    ranks = read_ranks([sheets])
    assert [w.kind for w in ranks.warnings] == ["ranked in part"]
    assert not [r for r in ranks.ranks if (r.expert, r.item_id) == ("ben", "claims-5")]


def test_a_missing_column_is_told(sheets: Path, tmp_path: Path) -> None:
    lines = (sheets / "ben.csv").read_text("utf-8-sig").replace("text_hash", "hash", 1)
    (sheets / "ben.csv").write_text(lines)
    (problem,) = problems(sheets)
    assert (problem.line, problem.field, problem.message) == (
        1, "text_hash", "the column is missing; did you mean 'text'?",
    )  # fmt: skip
    told = problems(plain(tmp_path / "x.csv", "a,b", header="task,rank"))
    assert [p.field for p in told] == ["item_id", "expert", "system"]


def test_ranks_made_elsewhere_are_read_from_a_plain_table(tmp_path: Path) -> None:
    table = plain(
        tmp_path / "ranks.csv",
        "t,1,anna,gold,1,yes,g", "t,1,anna,m,2,yes,g", "t,1,ben,gold,1,yes,g", "t,1,ben,m,1,yes,g",
        "t,2,anna,gold,5,no,g", "t,2,anna,m,3,no,g", "t,2,ben,gold,4,no,g",
        header="task,item_id,expert,system,rank,label,group",
    )  # fmt: skip
    ranks = read_ranks([table])
    assert len(ranks.ranks) == 6
    assert ranks.experts("t") == ("anna", "ben")
    assert ranks.systems("t") == ("gold", "m")
    assert [w.message for w in ranks.warnings] == [
        "ben ranked 1 of 2 arguments of '2': the item is left out for this expert"
    ]
    assert {(i.label, i.group) for i in ranks.asked.values()} == {("yes", "g"), ("no", "g")}


def test_an_item_with_two_labels_is_told(tmp_path: Path) -> None:
    header = "task,item_id,expert,system,rank,label"
    table = plain(tmp_path / "r.csv", "t,1,a,s,1,yes", "t,1,a,r,1,no", header=header)
    (problem,) = problems(table)
    assert problem.message == "the item has another label or group in another row"


def test_without_a_group_an_item_is_its_own(tmp_path: Path) -> None:
    ranks = read_ranks([plain(tmp_path / "r.csv", "t,1,a,s,1", "t,2,a,s,1")])
    assert [i.group for i in ranks.asked.values()] == ["1", "2"]


def test_files_that_are_not_there_are_told(tmp_path: Path) -> None:
    assert "no such file" in problems(tmp_path / "no.csv")[0].message
    assert problems(tmp_path)[0].message == "holds no CSV file"
    assert problems()[0].message == "no file of ranks was named"
