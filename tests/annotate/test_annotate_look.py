"""Looks at a judge's decision: when one is due, at which level, and what is kept of it."""

from __future__ import annotations

import doctest
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

import judgebench as jb
from judgebench.annotate.folder import KEY, SERVED
from judgebench.annotate.key import Key, Target
from judgebench.annotate.lead import figures
from judgebench.annotate.look import due_look, labels_on
from judgebench.annotate.screens import Field, Option, Screen, Section
from judgebench.annotate.store import Event, Store
from judgebench.errors import SetupError
from judgebench.stats.sequential import look_levels

RUBRIC = jb.Rubric.from_labels({"harm": ["none", "some", "grave"]})
Call = Callable[..., tuple[int, str, str]]
SCREENS = 24
TRUTH = ("none", "some", "grave")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Ann and ben label 24 items after one of calibration; the judge says what they say."""
    folder = tmp_path / "studies" / "labels"
    options = tuple(Option(value=one, text=one) for one in TRUTH)
    field = Field(metric="harm", title="harm", question="?", options=options, ordinal=True)
    screens = [
        Screen(id=f"s{i}", group=f"g{i}", sections=(Section(heading="A", text=f"text {i}"),),
               fields=(field,)) for i in range(SCREENS + 1)
    ]  # fmt: skip
    meta = {"name": "labels", "task": "labels", "looks": [8, 16], "study": "x",
            "rubric": RUBRIC.model_dump(mode="json")}  # fmt: skip
    with closing(Store.create(folder / SERVED, meta)) as store:
        store.put(screens, [f"s{SCREENS}"])
        store.assign({who: [one.id for one in screens] for who in ("ann", "ben")})
    named = {
        f"s{i}": {"harm": Target(columns={"item_id": f"item-{i}"}, metric="harm")}
        for i in range(SCREENS + 1)
    }
    key = Key.model_validate({"study": "x", "task": "labels", "screens": named})
    (folder / KEY).write_text(key.model_dump_json())
    lines = [f"item-{i},m,{TRUTH[i % 3]}" for i in range(SCREENS)]
    (tmp_path / "m.csv").write_text("\n".join(["item_id,judge,harm", *lines]))
    return folder


@pytest.fixture
def store(study: Path) -> Iterator[Store]:
    with closing(Store(study / SERVED)) as opened:
        yield opened


def label(store: Store, screens: Sequence[int], *people: str, skip: bool = False) -> None:
    """These people label these screens as the judge does, or skip them."""
    for who in people or ("ann", "ben"):
        events = [
            Event(client_id=f"{who}-{i}-{skip}".ljust(16, "-"), screen=f"s{i}",
                  hash=store.screens[f"s{i}"].screen.hash, field="" if skip else "harm",
                  label="skip" if skip else TRUTH[i % 3], at="2026-01-01T00:00:00Z")
            for i in screens
        ]  # fmt: skip
        assert not store.save([(who, events)])[0].refused


def look(call: Call, study: Path) -> tuple[int, str, str]:
    return call("annotate", "look", study, "--verdicts", study.parents[1] / "m.csv")


def test_a_look_that_is_not_due_says_when_the_next_one_is(
    study: Path, store: Store, call: Call
) -> None:
    label(store, range(7))
    label(store, [7], "ann")  # not by both, and the calibration does not count
    label(store, [SCREENS])
    code, _, said = look(call, study)
    assert code == 2
    assert "the next one is at 8 complete items; 7 of 24 are complete" in said
    assert not store.looks


def test_each_declared_look_happens_once_at_its_level(
    study: Path, store: Store, call: Call
) -> None:
    label(store, range(9))
    label(store, [20], "ann")
    code, said, _ = look(call, study)
    assert code == 0
    (kept,) = store.looks
    assert (kept["items"], kept["share"]) == (9, 9 / 24)
    assert kept["level"] == pytest.approx(look_levels([9 / 24])[0])
    assert said.splitlines() == kept["said"]
    assert kept["said"][0].startswith("Look 1, at 9 of 24 items")
    assert "m: CAN'T TELL for harm." in said
    told = look(call, study)[2]
    assert "the next one is at 16 complete items; 9 of 24 are complete" in told
    assert "the last was at 9" in told
    label(store, range(9, SCREENS))
    assert look(call, study)[0] == 0
    assert store.looks[1]["level"] == pytest.approx(look_levels([9 / 24, 1])[1])
    assert look(call, study)[0] == 2
    assert len(store.looks) == 2


def test_only_complete_items_are_looked_at(store: Store) -> None:
    label(store, range(8))
    label(store, range(8, 20), "ann")
    due = due_look(store)
    assert (len(due.screens), due.of) == (8, 24)
    rows = labels_on(store, due.screens)
    assert sorted({row["item_id"] for row in rows}) == [f"item-{i}" for i in range(8)]
    assert len(rows) == 16


def test_without_declared_looks_the_only_one_is_at_the_end(store: Store) -> None:
    store.set(looks=[])
    label(store, range(22))
    label(store, [22], "ann")
    with pytest.raises(
        SetupError,
        match="the next one is at the end of all labels; 22 of 24 are complete, and none was",
    ):
        due_look(store)
    label(store, [22], "ben")
    label(store, [23], skip=True)  # nobody can label it: this is the end
    assert due_look(store).shares == [23 / 24]
    label(store, [SCREENS])
    assert figures(store)["end"] == {"date": None, "reason": "No item is left to label"}


def test_the_lead_sees_decisions_and_plan_of_a_look_and_no_verdict(
    study: Path, store: Store, call: Call
) -> None:
    label(store, range(12))
    assert look(call, study)[0] == 0
    seen = figures(store)["looks"]
    assert seen["declared"] == [8, 16]
    assert "settle" in seen["made"][0]["said"][-1]
    assert "item-" not in json.dumps(figures(store))


def test_status_is_one_screen_and_json(study: Path, store: Store, call: Call) -> None:
    label(store, range(12))
    label(store, [12], "ann")
    code, out, _ = call("annotate", "status", study)
    assert code == 0
    assert "12 of 24 items of the main round are complete." in out
    assert "Krippendorff" in out
    assert "ann" in out
    assert len(out.splitlines()) < 40
    (found,) = json.loads(call("annotate", "status", study, "--json")[1])["figures"]
    assert found["rounds"]["main"] == {"of": 24, "complete": 12}


def test_collected_in_python(study: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(study.parents[1])
    (test,) = doctest.DocTestFinder(recurse=False).find(jb.collected, "collected")
    assert doctest.DocTestRunner().run(test).failed == 0
    label(store, range(12))
    found = jb.collected(study)
    frame = found.to_frame()
    ann = frame[(frame.who == "ann") & (frame.statistic == "labels")].iloc[0]
    assert (ann.value, ann.n) == (12, 25)
    assert "12 of 24 items" in repr(found)
