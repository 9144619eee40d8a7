"""The file of a running study: events, labels that count, and who may come in."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, nullcontext, suppress
from pathlib import Path

import pytest
from annotate_case import plain, small_study
from pydantic import ValidationError

from judgebench.annotation.lead import collected
from judgebench.annotation.screens import MARK, MARKED, Screen
from judgebench.annotation.store import SERVED, Event, Store, open_store, snapshot
from judgebench.errors import SetupError
from judgebench.records import ADJUDICATED


def screen(name: str = "s1", text: str = "Rest.", **changes: object) -> Screen:
    return plain(name, text).model_copy(update=changes)


def event(of: Screen, field: str, label: str | None, number: int = 0, **more: object) -> Event:
    name = f"{of.id}-{field or 'whole'}-{label}-{number}".ljust(16, "-").replace(" ", "-")
    given = {"client_id": name, "screen": of.id, "hash": of.hash, "field": field, "label": label}
    return Event.model_validate({**given, "at": "2026-01-01T00:00:00Z", **more})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.create(tmp_path / "served" / "study.sqlite", {"name": "test"})
    made.put([screen("s1"), screen("s2")])
    made.assign({"ann": ["s1", "s2"], "ben": ["s2"]})
    yield made
    made.close()


def save(store: Store, who: str, *events: Event) -> dict[str, str]:
    return dict(store.save(who, events).refused)


def test_the_latest_label_counts_and_nothing_is_overwritten(store: Store) -> None:
    one = screen("s1")
    assert not save(store, "ann", event(one, "harm", "yes"), event(one, "harm", "no"))
    assert not save(store, "ann", event(one, "harm", None))
    assert store.labels("ann", "s1") == {"harm": None}
    assert not save(store, "ann", event(one, "harm", "yes", 2))
    assert store.labels("ann", "s1") == {"harm": "yes"}
    assert len(store.rows("SELECT * FROM events")) == 4
    with pytest.raises(sqlite3.IntegrityError, match="append only"), store.writing() as connection:
        connection.execute("UPDATE events SET label = 'no'")
    with pytest.raises(sqlite3.IntegrityError, match="append only"), store.writing() as connection:
        connection.execute("DELETE FROM events")


def test_an_event_sent_twice_is_kept_once(store: Store) -> None:
    same = event(screen("s1"), "harm", "yes")
    first, second = store.save("ann", [same]), store.save("ann", [same])
    assert first.saved == second.saved == (same.client_id,)
    assert len(store.rows("SELECT * FROM events")) == 1
    other = same.model_copy(update={"screen": "s2", "hash": screen("s2").hash})
    assert save(store, "ben", other) == {same.client_id: "has the id of another label"}


def test_an_id_with_another_label_is_refused(store: Store) -> None:
    one = screen("s1")
    kept = event(one, "harm", "yes", remark="odd")
    assert not save(store, "ann", kept)
    for other in ({"label": "no"}, {"label": None}, {"field": "tone"}, {"remark": ""}):
        changed = kept.model_copy(update=other)
        assert save(store, "ann", changed) == {kept.client_id: "has the id of another label"}
    later = kept.model_copy(update={"visible_ms": 7, "at": "2026-01-02T00:00:00Z"})
    assert not save(store, "ann", later)  # it is the same label
    first = event(one, "tone", "yes")
    second = first.model_copy(update={"label": "no"})
    assert save(store, "ann", first, second) == {first.client_id: "has the id of another label"}
    assert store.labels("ann", "s1") == {"harm": "yes", "tone": "yes"}
    assert len(store.rows("SELECT * FROM events")) == 2


@pytest.mark.parametrize(
    ("at", "is_a_time"),
    [
        ("2026-99-99T99:99:99Z", False), ("2026-02-29T10:00:00Z", False),
        ("2026-01-01T24:01:00Z", False), ("2026-01-01T10::::00Z", False),
        ("0000-01-01T10:00:00Z", False), ("2026-01-01T10:00:00+99:00", False),
        ("2024-02-29T23:59:59.123Z", True), ("2026-01-01T10:00+05:30", True),
    ],
)  # fmt: skip
def test_a_time_is_one_of_the_calendar(at: str, is_a_time: bool) -> None:
    given = event(screen("s1"), "harm", "yes").model_dump() | {"at": at}
    with nullcontext() if is_a_time else pytest.raises(ValidationError, match="at"):
        assert Event.model_validate(given).at == at


def test_what_does_not_fit_is_refused_and_the_rest_is_kept(store: Store) -> None:
    one, changed = screen("s1"), screen("s1", "Other.")
    good = event(one, "tone", "no")
    refused = save(
        store, "ann", event(one, "harm", "perhaps"), event(one, "colour", "yes"), good,
        event(changed, "harm", "yes", 7), event(one, "", "yes"),
    )  # fmt: skip
    assert sorted(refused.values()) == [
        "is no label", "is no label", "is not asked", "the item has changed: load it again",
    ]  # fmt: skip
    assert store.labels("ann", "s1") == {"tone": "no"}
    assert list(save(store, "ben", event(one, "harm", "yes", 9)).values()) == [
        "is not yours to label"
    ]
    assert not save(store, ADJUDICATED, event(one, "harm", "yes", 8, reason="slip"))


def test_states_of_a_screen(store: Store) -> None:
    one = screen("s1")
    states = []
    for field, label in [("", "skip"), ("harm", "yes"), ("", None), ("tone", ""), ("harm", None)]:
        save(store, "ann", event(one, field, label))
        states.append(one.state(store.labels("ann", "s1")))
    assert states == ["skipped", "skipped", "begun", "done", "begun"]


def test_an_item_that_is_sent_back_is_labelled_again(store: Store) -> None:
    one = screen("s1")
    assert not save(store, "ann", event(one, "harm", "yes"), event(one, "tone", "no"))
    store.add_note("ann", "s1", "Read page 2.", False)
    assert store.labels("ann", "s1") == {"harm": "yes", "tone": "no"}
    store.add_note("ann", "s1", "Please again.", True)
    assert store.labels("ann", "s1") == {}
    assert not save(store, "ann", event(one, "harm", "no", 2))
    assert store.labels("ann", "s1") == {"harm": "no"}
    assert len(store.rows("SELECT * FROM events")) == 3  # the log holds the labels of before
    assert [(note["text"], note["sent_back"]) for note in store.notes] == [
        ("Read page 2.", False), ("Please again.", True),
    ]  # fmt: skip


def test_a_mark_is_kept_and_taken_back(store: Store) -> None:
    one = screen("s1")
    assert not save(store, "ann", event(one, MARK, MARKED))
    assert store.labels("ann", "s1") == {MARK: MARKED}
    assert not save(store, "ann", event(one, MARK, None))
    assert list(save(store, "ann", event(one, MARK, "no")).values()) == ["is no label"]


def test_labels_of_what_was_handed_over_meanwhile_are_taken(store: Store) -> None:
    store.assign({"ann": ["s2"], "ben": ["s1", "s2"]})
    assert store.assigned("ann") == ["s2"]
    assert not save(store, "ann", event(screen("s1"), "harm", "yes"))  # made without a connection


def test_the_latest_label_comes_last_in_every_version(store: Store) -> None:
    old = screen("s1")
    more = old.fields[0].model_copy(update={"metric": "more"})
    assert not save(store, "ann", event(old, "harm", "yes"), event(old, "tone", "no", remark="a"))
    store.put([screen("s1", fields=(*old.fields, more))])
    now = store.screens["s1"]
    assert not save(store, "ann", event(now, "harm", "no", 2, remark="b"))
    assert [(one.field, one.remark) for one in store.given()] == [("tone", "a"), ("harm", "b")]


def test_what_is_read_together_is_of_one_moment(store: Store) -> None:
    with closing(Store(store.path)) as other:
        with store.reading():
            assert store.version == 1
            other.put([], gone=["s1"])
            assert store.assigned("ann") == ["s1", "s2"]
            assert store.screens.keys() == {"s1", "s2"}
        assert store.assigned("ann") == ["s2"]


def test_a_transaction_within_another_is_kept_with_it(store: Store) -> None:
    with suppress(LookupError), store.writing():
        store.set(name="other")
        raise LookupError
    assert store.meta["name"] == "test"


def test_a_link_works_once_and_can_be_revoked(store: Store) -> None:
    token = store.make_link("ann", 60)
    session = store.enter(token, 60)
    assert session is not None
    assert store.who(session) == "ann"
    assert store.enter(token, 60) is None
    assert store.enter(store.make_link("ann", -1), 60) is None
    assert token not in store.path.read_bytes().decode("latin-1")
    waiting = store.make_link("ann", 60)
    store.revoke("ann")
    assert store.who(session) == ""
    assert store.enter(waiting, 60) is None


def test_a_damaged_file_is_named_before_anything_is_read(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    whole = (study / SERVED).read_bytes()
    with pytest.raises(SetupError, match="not overwritten"):
        Store.create(study / SERVED, {})
    for damaged in (whole[: len(whole) // 2], whole[:8192] + b"\x5a" * (len(whole) - 8192)):
        (study / SERVED).write_bytes(damaged)
        for opens in (open_store, snapshot):
            expected = r"study\.sqlite: is .*(go on with a backup|malformed)"
            with pytest.raises(SetupError, match=expected), opens(study):
                pass


def test_looking_at_figures_writes_nothing(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / SERVED).parent.iterdir()}
    assert collected(study).figures["rounds"]["main"]["complete"] == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert before.keys() == {*(tmp_path / SERVED).parent.iterdir()}
