import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from review_case import altered, hostile

from judgebench.errors import Problem, SetupError
from judgebench.stress_tests.item_sets import (
    COLUMNS,
    ReviewDecision,
    ReviewKey,
    only_accepted,
    read_decisions,
    read_set,
    review_hash,
    write_review,
)
from judgebench.stress_tests.recipes import marked, span_diff

NOTICE = "synthetic, not clinically reviewed"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def fill_in(path: Path, said: Mapping[str, Mapping[str, str]], delimiter: str = ",") -> None:
    """Give the rows of these item ids other cells, as a spreadsheet would save them."""
    rows = [{**row, **said.get(row["item_id"], {})} for row in rows_of(path)]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def problems_of(path: Path) -> tuple[Problem, ...]:
    with pytest.raises(SetupError) as caught:
        read_decisions(path)
    return caught.value.problems


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    """The table of four items, nothing decided."""
    return write_review(altered(), tmp_path / "violations.jsonl")["csv"]


def test_a_fresh_table_holds_every_item_undecided(sheet: Path) -> None:
    items = altered()
    rows = rows_of(sheet)
    assert tuple(rows[0]) == COLUMNS
    for row, item in zip(rows, items, strict=True):
        assert (row["item_id"], row["parent"], row["text"]) == (
            item.item_id, item.parent.text, item.text,
        )  # fmt: skip
        assert (row["decision"], row["reviewer"], row["remark"]) == ("", "", "")
        assert (row["false_claim"], row["true_claim"]) == (item.false_claim, item.true_claim)
    assert only_accepted(items, read_decisions(sheet)) == []


def test_decisions_are_read_and_count(sheet: Path) -> None:
    items = altered()
    said = {"decision": " Accept ", "reviewer": "A. Person", "remark": "-5 would be\nclearer"}
    fill_in(sheet, {"cv-01": said, "cv-03": {"decision": "REJECT"}})
    decisions = read_decisions(sheet)
    first = review_hash(items[0])
    assert decisions["cv-01", first] == ReviewDecision(True, "A. Person", "-5 would be\nclearer")
    assert [decisions[item.item_id, review_hash(item)].accepted for item in items] == [
        True, None, False, None,
    ]  # fmt: skip
    assert only_accepted(items, decisions) == [items[0]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_writing_again_keeps_what_people_said(sheet: Path, delimiter: str) -> None:
    said = {"decision": "accept", "reviewer": "A", "remark": "=1+1"}
    fill_in(sheet, {"cv-02": said, "cv-04": {"remark": "not sure"}}, delimiter)
    before = read_decisions(sheet)
    write_review(altered(), sheet.with_name("violations.jsonl"))
    assert read_decisions(sheet) == before
    once = sheet.read_bytes()
    write_review(altered(), sheet.with_name("violations.jsonl"))
    assert sheet.read_bytes() == once
    assert rows_of(sheet)[1]["remark"] == "'=1+1"


def test_a_decision_never_counts_for_a_text_that_has_changed(sheet: Path) -> None:
    fill_in(sheet, {f"cv-0{i}": {"decision": "accept"} for i in (1, 2, 3, 4)})
    one, two, three, four = altered()
    changed = [
        replace(one, text=one.text + " Really."),
        replace(two, parent=replace(two.parent, text="Another answer.")),
        replace(three, parent=replace(three.parent, question="Another question?")),
        replace(four, source="Another page"),
    ]
    assert only_accepted(changed, read_decisions(sheet)) == [changed[3]]


def test_decisions_on_what_is_gone_or_changed_are_kept_at_the_end(sheet: Path) -> None:
    fill_in(sheet, {"cv-01": {"decision": "accept"}, "cv-04": {"decision": "reject"}})
    one, two, _, _ = altered()
    before = read_decisions(sheet)
    changed = [replace(one, text="Something else."), two]
    page = write_review(changed, sheet.with_name("violations.jsonl"))["html"]
    rows = rows_of(sheet)
    assert [row["item_id"] for row in rows] == ["cv-01", "cv-02", "cv-01", "cv-04"]
    assert [row["decision"] for row in rows] == ["", "", "accept", "reject"]
    assert rows[2]["text"] == one.text
    after = read_decisions(sheet)
    assert {key: d for key, d in before.items() if d.accepted is not None}.items() <= after.items()
    assert only_accepted(changed, after) == []
    assert "2 rows of the table are about a text that is gone or has changed" in page.read_text()
    # Back to the old text: the old decision counts again.
    write_review(altered(), sheet.with_name("violations.jsonl"))
    assert only_accepted(altered(), read_decisions(sheet)) == [one]


def test_every_fault_of_a_table_is_told_at_once(sheet: Path) -> None:
    hashes = [row["content_hash"] for row in rows_of(sheet)]
    said = {
        "cv-01": {"decision": "yes"},
        "cv-02": {"item_id": ""},
        "cv-03": {"content_hash": ""},
        "cv-04": {"item_id": "cv-01", "content_hash": hashes[0]},
    }
    fill_in(sheet, said)
    found = [(p.line, p.field, p.message) for p in problems_of(sheet)]
    assert found == [
        (2, "decision", "is no answer"),
        (3, "item_id", "is blank"),
        (4, "content_hash", "is blank"),
        (5, "item_id", "the item stands in row 2 too"),
    ]
    assert all(p.file == str(sheet) for p in problems_of(sheet))
    assert problems_of(sheet)[0].allowed == "accept, reject, or blank"


def test_missing_and_unknown_columns_are_told(sheet: Path) -> None:
    rows = rows_of(sheet)
    names = {"decision": "Decision", "remark": "second reviewer"}
    with sheet.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([names.get(column, column) for column in COLUMNS])
        writer.writerows(row.values() for row in rows)
    assert [(p.line, p.field) for p in problems_of(sheet)] == [
        (1, "decision"), (1, "remark"), (1, "Decision"), (1, "second reviewer"),
    ]  # fmt: skip


def test_a_table_that_cannot_be_read_is_never_written_over(sheet: Path) -> None:
    broken = sheet.read_bytes() + b'"cv-05","accept\n'
    sheet.write_bytes(broken)
    with pytest.raises(SetupError, match="quotes"):
        write_review(altered(), sheet.with_name("violations.jsonl"))
    assert sheet.read_bytes() == broken
    assert problems_of(sheet.with_name("nowhere.csv"))[0].kind == "unreadable_file"


def test_text_columns_may_be_deleted(sheet: Path) -> None:
    with sheet.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["content_hash", "item_id", "decision", "reviewer", "remark"])
        writer.writerow([review_hash(altered()[0]), "cv-01", "accept", "", ""])
    assert only_accepted(altered(), read_decisions(sheet)) == [altered()[0]]


def test_ids_must_differ_and_not_be_blank(tmp_path: Path) -> None:
    one, two, three, _ = altered()
    items = [one, replace(two, item_id="cv-01"), replace(three, item_id="")]
    with pytest.raises(SetupError) as caught:
        write_review(items, tmp_path / "x.jsonl")
    assert [p.message for p in caught.value.problems] == ["stands more than once", "is blank"]
    assert list(tmp_path.iterdir()) == []


def test_hostile_texts_go_through_the_table(tmp_path: Path) -> None:
    items = hostile()
    sheet = write_review(items, tmp_path / "hostile.jsonl")["csv"]
    rows = rows_of(sheet)
    for row in rows:
        assert not any(cell.startswith(tuple("=+-@\t\r")) for cell in row.values())
    for row in rows:
        row["decision"] = "accept"
    fill_in(sheet, {row["item_id"]: row for row in rows})
    assert only_accepted(items, read_decisions(sheet)) == items


@given(
    st.lists(st.sampled_from([None, True, False])),
    st.lists(st.booleans(), min_size=20),
)
def test_only_the_present_text_is_accepted(said: list[bool | None], is_current: list[bool]) -> None:
    items = altered(max(len(said), 3))
    decisions: dict[ReviewKey, ReviewDecision] = {}
    for item, accepted, current in zip(items, said, is_current, strict=False):
        key = item.item_id, review_hash(item) if current else "hold"
        decisions[key] = ReviewDecision(accepted)
    judged = zip(items, said, is_current, strict=False)
    wanted = [item for item, accepted, current in judged if accepted and current]
    assert only_accepted(items, decisions) == wanted


def test_a_changed_phrase_is_one_mark_and_wrong_spans_are_found_anew() -> None:
    item = altered(2)[1]
    assert item.changes == span_diff(item.parent.text, item.text)
    wrong = replace(item, changes=item.changes[:1])
    for case in (item, wrong):
        before, after = marked(case)
        assert next(t for t, changed in before if changed) == "Please wait"
        assert next(t for t, changed in after if changed) == "Yes, you may"


def test_the_page_says_what_the_set_says_of_itself(tmp_path: Path) -> None:
    to = tmp_path / "own.jsonl"
    line = '{"item_id": "a", "parent": "x", "text": "y", "must_not_change": true'
    to.write_text(f'{line}, "notice": "{NOTICE} <b>"}}\n')
    page = write_review(read_set(to), to)["html"].read_text()
    assert f'<p class="notice">{NOTICE} &lt;b&gt;</p>' in page
    to.write_text(line + "}\n")
    assert '<p class="notice">' not in write_review(read_set(to), to)["html"].read_text()


def test_no_markup_of_an_item_stands_in_the_page(tmp_path: Path) -> None:
    page = write_review(hostile(), tmp_path / "hostile.jsonl")["html"].read_text()
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert "<!--" not in page
    assert "://" not in page.split('id="data"')[0]
