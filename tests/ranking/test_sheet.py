import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from odd_texts import HOSTILE
from page_reader import Page
from rank_case import SYSTEMS, by_reason, fill, items

from judgebench.data.formats import unquoted
from judgebench.errors import Problem, SetupError
from judgebench.ranking.human import COLUMNS, RankedItem, draw, read_key, text_hash, write_sheets

TWO = ["anna", "ben"]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def problems(*arguments: object, **options: object) -> tuple[Problem, ...]:
    with pytest.raises(SetupError) as caught:
        write_sheets(*arguments, **options)  # type: ignore[arg-type]
    return caught.value.problems


def test_a_sheet_names_no_system_anywhere(tmp_path: Path) -> None:
    found = write_sheets(items(), TWO, tmp_path, n=None, seed=0)
    assert [p.relative_to(tmp_path).as_posix() for p in found.written] == [
        "sheet-key.json", "sheets/anna.csv", "sheets/anna.html", "sheets/ben.csv",
        "sheets/ben.html",
    ]  # fmt: skip
    for path in (tmp_path / "sheets").iterdir():
        assert not [s for s in SYSTEMS if s in path.read_text("utf-8")]
    assert all(s in (tmp_path / "sheet-key.json").read_text() for s in SYSTEMS)


def test_a_sheet_holds_every_argument_once_with_an_empty_rank(tmp_path: Path) -> None:
    drawn = items()
    write_sheets(drawn, TWO, tmp_path, n=None, seed=0)
    rows = rows_of(tmp_path / "sheets" / "anna.csv")
    assert tuple(rows[0]) == COLUMNS
    assert {(row["rank"], row["remark"], row["expert"]) for row in rows} == {("", "", "anna")}
    for number, item in enumerate(drawn, 1):
        own = [row for row in rows if row["item"] == str(number)]
        assert [row["letter"] for row in own] == list("ABCD")
        assert sorted(row["text"] for row in own) == sorted(item.arguments.values())
        assert [row["question"] for row in own] == [item.question, "", "", ""]
        assert (own[0]["right_answer"], own[0]["document"]) == (item.label_text, item.context)
        assert {row["text_hash"] for row in own} == {
            text_hash(item, system) for system in item.arguments
        }


def test_the_key_tells_who_stands_behind_a_letter(tmp_path: Path) -> None:
    drawn = items()
    write_sheets(drawn, TWO, tmp_path, n=None, seed=0)
    key = read_key(tmp_path / "sheet-key.json")
    for expert in TWO:
        for row in rows_of(tmp_path / "sheets" / f"{expert}.csv"):
            place = int(row["item"]) - 1
            system = key.letters[expert][place]["ABCD".index(row["letter"])]
            assert drawn[place].arguments[system] == row["text"]


def test_letters_are_shuffled_for_every_item_and_every_expert(tmp_path: Path) -> None:
    write_sheets(items(60), TWO, tmp_path, n=None, seed=0)
    letters = read_key(tmp_path / "sheet-key.json").letters
    firsts = Counter(systems[0] for expert in TWO for systems in letters[expert])
    assert set(firsts) == set(SYSTEMS)
    assert min(firsts.values()) > 15  # 30 each if even
    assert sum(a == b for a, b in zip(letters["anna"], letters["ben"], strict=True)) < 15


def test_the_same_seed_gives_the_same_sheets_and_another_one_others(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_sheets(items(), TWO, tmp_path / name, n=3, seed=seed)
    a, b, c = ((tmp_path / name / "sheets" / "anna.csv").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_every_task_gets_its_number_of_items_and_a_larger_draw_keeps_a_smaller_one() -> None:
    both = [*items(10), *items(4, "trials")]
    few, more = draw(both, 3, seed=5), draw(both, 6, seed=5)
    assert Counter(i.task for i in few) == {"claims": 3, "trials": 3}
    assert Counter(i.task for i in more) == {"claims": 6, "trials": 4}
    assert [i for i in more if i in few] == few
    assert draw(both, None, seed=5) == both


def test_items_without_an_argument_of_every_system_are_passed_over(tmp_path: Path) -> None:
    first, *others = items(4)
    part = replace(first, arguments={s: first.arguments[s] for s in SYSTEMS[1:]})
    found = write_sheets([part, *others], TWO, tmp_path, n=2, seed=0)
    assert (found.items, found.passed_over) == ({"claims": 2}, 1)


def test_a_sheet_that_is_there_is_kept_and_a_new_expert_is_added(tmp_path: Path) -> None:
    write_sheets(items(), ["anna"], tmp_path, n=None, seed=0)
    anna = tmp_path / "sheets" / "anna.csv"
    fill(anna, by_reason)
    before, letters = anna.read_bytes(), read_key(tmp_path / "sheet-key.json").letters["anna"]
    found = write_sheets(items(), ["anna", "carol"], tmp_path, n=None, seed=0)
    assert found.kept == (anna,)
    assert anna.read_bytes() == before
    key = read_key(tmp_path / "sheet-key.json")
    assert key.letters["anna"] == letters
    assert set(key.letters) == {"anna", "carol"}
    # The names of old experts stay in the key also where they are not named again.
    write_sheets(items(), ["dora"], tmp_path, n=None, seed=0)
    assert set(read_key(tmp_path / "sheet-key.json").letters) == {"anna", "carol", "dora"}


@pytest.mark.parametrize("change", [{"seed": 1}, {"n": 3}])
def test_a_key_of_other_items_is_never_written_over(tmp_path: Path, change: dict[str, int]) -> None:
    write_sheets(items(), TWO, tmp_path, n=None, seed=0)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    (problem,) = problems(items(), ["carol"], tmp_path, **{"n": None, "seed": 0, **change})
    assert problem.message.startswith("belongs to sheets of other items")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_what_cannot_be_ranked_is_told_all_at_once(tmp_path: Path) -> None:
    one, other = items(2, "halves")
    halves = [
        replace(one, arguments={"gold": "a", "m": "b"}),
        replace(other, arguments={"gold": "a", "n": "c"}),
    ]
    many = items(1, "crowd", [f"m{i}" for i in range(27)])
    told = problems([*halves, *many, *items(1, "alone", ["gold"])], TWO, tmp_path, n=5, seed=0)
    assert [(p.field, p.message) for p in told] == [
        ("halves", "has no item on which every system says something"),
        ("crowd", "a sheet cannot hold so many systems"),
        ("alone", "a sheet cannot hold so many systems"),
    ]
    assert not list(tmp_path.iterdir())
    assert "no item to rank" in problems([], TWO, tmp_path, n=5, seed=0)[0].message


@pytest.mark.parametrize("name", ["", "../anna", "a/b", ".hidden", "anna smith", "x" * 65])
def test_an_experts_name_must_name_a_file(tmp_path: Path, name: str) -> None:
    (problem,) = problems(items(), [name], tmp_path, n=None, seed=0)
    assert (problem.field, problem.message) == ("experts", "cannot name a file")


def test_an_expert_is_named_once(tmp_path: Path) -> None:
    (problem,) = problems(items(), ["anna", "Anna"], tmp_path, n=None, seed=0)
    assert problem.message == "is named twice"
    assert problems(items(), [], tmp_path, n=None, seed=0)[0].message == "name somebody"


def test_hostile_texts_are_data_in_the_table_and_on_the_page(tmp_path: Path) -> None:
    hostile = RankedItem("t", "i", "", HOSTILE[0], HOSTILE[1], HOSTILE[2],
                         {f"system-{i}": text for i, text in enumerate(HOSTILE)})  # fmt: skip
    write_sheets([hostile], ["anna"], tmp_path, n=None, seed=0)
    table = tmp_path / "sheets" / "anna.csv"
    rows = rows_of(table)
    assert not any(row["text"].startswith(tuple("=+-@\t\r")) for row in rows)
    shown = sorted(unquoted(row["text"]) for row in rows)
    marked = (text.replace("\u0000", "\ufffd").replace("\ud800", "\ufffd") for text in HOSTILE)
    assert shown == sorted(marked)
    page = Page(table.with_suffix(".html").read_text("utf-8"))
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert "pwned" not in page.words
    data = json.loads(page.scripts[0])
    assert data["items"][0]["question"] == HOSTILE[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda key: key.update(kind="other"), "judgebench sheet key"),
        (lambda key: key.update(letters={"anna": []}), "the letters do not fit the items"),
        (lambda key: key["letters"]["anna"][0].pop(), "the letters do not fit the items"),
        (lambda key: key.update(more=1), "is not a known key"),
    ],
)
def test_a_damaged_key_is_told(tmp_path: Path, change, message: str) -> None:  # type: ignore[no-untyped-def]
    write_sheets(items(), TWO, tmp_path, n=None, seed=0)
    path = tmp_path / "sheet-key.json"
    key = json.loads(path.read_text())
    change(key)
    path.write_text(json.dumps(key))
    with pytest.raises(SetupError, match=message):
        read_key(path)


def test_a_missing_key_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"the key of the sheets cannot be read: No such file"):
        read_key(tmp_path / "sheet-key.json")
