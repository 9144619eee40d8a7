"""What people say of the altered answers of a set, and what counts by it."""

from dataclasses import replace
from pathlib import Path

import pytest
from review_case import altered, decide, hostile, written

from judgebench.errors import SetupError
from judgebench.stress_tests.item_sets import accepted_ids


def test_what_people_accepted_counts(tmp_path: Path) -> None:
    path = written(tmp_path, altered())
    decide(path, {"cv-01": " Accept ", "cv-02": "", "cv-03": "REJECT"})
    assert accepted_ids(path) == {"cv-01"}


def test_an_item_that_has_changed_since_is_told(tmp_path: Path) -> None:
    items = altered()
    path = written(tmp_path, items)
    decide(path, {"cv-01": "accept", "cv-02": "accept"})
    written(tmp_path, [replace(items[0], text="Another text."), *items[1:]])
    with pytest.raises(SetupError, match="has changed since it was reviewed; found 'cv-01'"):
        accepted_ids(path)


def test_a_decision_on_what_failed_a_check_is_no_decision_on_the_set(tmp_path: Path) -> None:
    items = altered()
    path = written(tmp_path, items)
    decide(path, {"cv-01": "accept", "cv-02": "accept"})
    written(tmp_path, [replace(items[0], checks={"length": "too long"}), *items[1:]])
    with pytest.raises(SetupError, match="is not among the items; found 'cv-01'"):
        accepted_ids(path)


def test_without_a_table_its_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"violations\.decisions\.csv"):
        accepted_ids(written(tmp_path, altered()))


def test_hostile_texts_go_through_page_and_table(tmp_path: Path) -> None:
    items = [item for item in hostile() if "\ud800" not in item.area]
    path = written(tmp_path, items)
    decide(path, {item.item_id: "accept" for item in items[:3]})
    assert accepted_ids(path) == {item.item_id for item in items[:3]}
