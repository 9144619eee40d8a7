"""Looks at a judge's decision: when one is due, at which level, and what is kept of it."""

import doctest
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from annotate_case import give_labels
from built_case import study_file

import judgebench as jb
from judgebench.annotation.export import label_rows
from judgebench.annotation.init import annotate
from judgebench.annotation.looks import due_look
from judgebench.annotation.screens import Option, Screen, ScreenField, Section
from judgebench.annotation.store import KEY, SERVED, Store, open_store
from judgebench.annotation.tasks import Key, Target
from judgebench.errors import SetupError
from judgebench.stats.intervals import look_levels

RUBRIC = jb.Rubric.from_labels({"harm": ["none", "some", "grave"]})
Call = Callable[..., tuple[int, str, str]]
SCREENS = 24
TRUTH = ("none", "some", "grave")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Ann and ben label 24 items after one of calibration; the judge says what they say."""
    folder = tmp_path / "studies" / "labels"
    options = tuple(Option(value=one, text=one) for one in TRUTH)
    field = ScreenField(metric="harm", title="harm", question="?", options=options)
    screens = [
        Screen(id=f"s{i}", group=f"g{i}", sections=(Section(heading="A", text=f"text {i}"),),
               fields=(field,)) for i in range(SCREENS + 1)
    ]  # fmt: skip
    meta = {"name": "labels", "task": "labels", "looks": [8, 16], "study": "x", "seed": 0,
            "per_item": 2, "calibration": 1, "background": "",
            "rubric": RUBRIC.model_dump(mode="json")}  # fmt: skip
    with closing(Store.create(folder / SERVED, meta)) as store:
        store.put(screens, {f"s{SCREENS}": "calibration"})
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
        for i in screens:
            give_labels(store, who, f"s{i}", {"": "skip"} if skip else {"harm": TRUTH[i % 3]})


def looks(store: Store) -> list[list[float]]:
    """The items and the share of each that was made."""
    return list(store.meta.get("looks_made", []))


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
    assert "No interim analysis is due: 7 of 24 items are complete; the next one is at 8" in said
    assert not looks(store)


def test_each_declared_look_happens_once_at_its_level(
    study: Path, store: Store, call: Call
) -> None:
    label(store, range(9))
    label(store, [20], "ann")
    code, said, _ = look(call, study)
    assert code == 0
    assert looks(store) == [[9, 9 / 24]]
    assert f"{100 * look_levels([9 / 24])[0]:.4g} %" in said
    assert said.startswith("Interim analysis 1, at 9 items")
    told = look(call, study)[2]
    assert "due: 9 of 24 items are complete; the next one is at 16" in told
    label(store, range(9, SCREENS))
    assert look(call, study)[0] == 0
    code, _, told = look(call, study)
    assert code == 2
    assert "due: 24 of 24 items are complete; the last one was made" in told
    assert len(looks(store)) == 2


def test_verdicts_under_other_names_are_read_as_decide_reads_them(
    study: Path, store: Store, call: Call
) -> None:
    label(store, range(9))
    m = study.parents[1] / "m.csv"
    m.write_text("\n".join(["Nr,Harm", *(f"item-{i},{TRUTH[i % 3]}" for i in range(SCREENS))]))
    code, said, _ = look(call, study)
    assert (code, "Interim analysis 1" in said) == (0, True)
    code, decided, _ = call("decide", study, m)
    assert (code, "verdict harm by m" in decided) == (0, True)


def test_only_complete_items_are_looked_at(store: Store) -> None:
    label(store, range(8))
    label(store, range(8, 20), "ann")
    due = due_look(store)
    assert (due.n_items, due.shares) == (8, [8 / 24])
    assert sorted({row["item_id"] for row in due.rows}) == [f"item-{i}" for i in range(8)]
    assert len(due.rows) == 16


def test_the_end_of_the_labels_allows_the_last_look(store: Store) -> None:
    store.set(looks=[24])
    label(store, range(22))
    label(store, [22], "ann")
    with pytest.raises(SetupError, match="22 of 24 items are complete; the next one is at 24"):
        due_look(store)
    label(store, [22], "ben")
    label(store, [23], skip=True)  # nobody can label it: this is the end
    assert due_look(store).shares == [23 / 24]


def test_a_study_without_looks_has_no_interim_analysis(
    study: Path, store: Store, call: Call
) -> None:
    store.set(looks=[])
    code, out, said = look(call, study)
    assert (code, out, looks(store)) == (2, "", [])
    assert "No interim analysis was planned" in said


HOW = (
    "annotator",
    "study",
    "labelled_at",
    "queue_position",
    "order_shown",
)  # of a label, not a verdict


@pytest.mark.parametrize("task", ["labels", "preference", "criteria"])
def test_a_look_knows_what_metrics_are_of_and_what_belongs_together(
    tmp_path: Path, call: Call, task: str
) -> None:
    study = annotate(study_file(tmp_path / "in", task, looks=[6]), tmp_path / "study").study
    with open_store(study) as store:
        for who, own in store.orders.items():
            for name in own:
                fields = enumerate(store.screens[name].screen.fields, int(name[1:]))
                given = {field.key: field.options[place % 2].value for place, field in fields}
                give_labels(store, who, name, given)
        rows = due_look(store).rows
    assert len({row["group"] for row in rows}) == 4
    said = {tuple(r[c] for c in r if c not in HOW): r for r in label_rows(study)}
    rows = [{**row, "judge": "m"} for row in said.values()]
    columns = [c for c in rows[0] if c not in HOW]
    lines = [",".join(columns), *(",".join(row[c] for c in columns) for row in rows)]
    (tmp_path / "m.csv").write_text("\n".join(lines), "utf-8")
    code, out, told = call("annotate", "look", study, "--verdicts", tmp_path / "m.csv")
    assert (code, "duplicate" in told) == (0, False)
    assert "Interim analysis 1, at 12 items" in out
    if task != "criteria":  # those of an answer are one group where no answers are given
        assert "Only 4 questions were labelled by two annotators" in out


def test_a_file_that_is_damaged_is_named(study: Path, store: Store, call: Call) -> None:
    store.rows("DROP TABLE links")
    code, _, said = call("annotate", "link", study, "ann")
    assert (code, f"{SERVED}: cannot be read or written: no such table" in said) == (2, True)


def test_status_is_one_screen_and_json(study: Path, store: Store, call: Call) -> None:
    label(store, range(12))
    label(store, [12], "ann")
    code, out, _ = call("annotate", "status", study)
    assert code == 0
    assert "12 of 24 items of the main round are complete." in out
    assert "Agreement" in out
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
    ann = frame[(frame.who == "ann") & (frame.statistic == "done")].iloc[0]
    assert (ann.value, ann.n) == (12, 25)
    assert "12 of 24 items" in repr(found)
