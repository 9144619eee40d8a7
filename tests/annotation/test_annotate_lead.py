"""What the study lead sees, against figures counted by hand and against an alignment."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from annotate_case import give_labels

from judgebench.alignment import align
from judgebench.annotation.lead import Collected
from judgebench.annotation.screens import Option, Screen, ScreenField, Section
from judgebench.annotation.store import Store
from judgebench.records import ADJUDICATED, Answer, HumanLabel
from judgebench.rubric import Rubric
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import study_of

RUBRIC = Rubric.from_labels({"harm": ["none", "some", "grave"], "tone": ["kind", "curt"]})
PEOPLE = ("ann", "ben", "cem")


def options(*values: str) -> tuple[Option, ...]:
    return tuple(Option(value=value, text=value) for value in values)


def screen(place: int) -> Screen:
    fields = (
        ScreenField(metric="harm", title="harm", question="Harmful?",
              options=options("none", "some", "grave")),
        ScreenField(metric="tone", title="tone", question="Kind?",
              options=options("kind", "curt")),
    )  # fmt: skip
    sections = (
        Section(heading="Question", text=f"q{place // 2}"),
        Section(heading="Answer", text=f"a{place}"),
    )
    return Screen(id=f"s{place}", group=f"q{place // 2}", sections=sections, fields=fields)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Two screens of calibration for all three; six more for ann and ben, cem has two of them."""
    meta = {"name": "t", "task": "labels", "seed": 0, 
            "rubric": RUBRIC.model_dump(mode="json")}  # fmt: skip
    made = Store.create(tmp_path / "study.sqlite", meta)
    every = [
        screen(i).model_copy(update={"round": "calibration" if i < 2 else "main"}) for i in range(8)
    ]
    made.put(every)
    both = [one.id for one in every]
    made.assign({"ann": both, "ben": both, "cem": ["s0", "s1", "s2", "s3"]})
    yield made
    made.close()


def fill(store: Store) -> None:
    """Ann and ben differ on the harm of s2 and s5; cem has done the calibration alone."""
    harm = {"s2": ("grave", "none"), "s5": ("some", "none"), "s6": ("grave", "grave")}
    for i in range(7):
        ann, ben = harm.get(f"s{i}", ("none", "none"))
        give_labels(store, "ann", f"s{i}", {"harm": ann, "tone": "kind"})
        give_labels(store, "ben", f"s{i}", {"harm": ben, "tone": "curt"})
    give_labels(store, "cem", "s0", {"harm": "none", "tone": "kind"})
    give_labels(store, "cem", "s1", {"harm": "none", "tone": ""})
    give_labels(store, "cem", "s2", {"": "skip"}, remark="No <b>idea</b>")


def test_progress_is_counted_by_person_and_metric(store: Store) -> None:
    fill(store)
    found = Collected(store).figures
    ann, _, cem = found["people"]
    assert (ann["name"], ann["done"], ann["new"], ann["of"]) == ("ann", 7, 1, 8)
    assert (cem["done"], cem["skipped"], cem["new"]) == (2, 1, 1)
    assert (cem["cannot_tell"], cem["seconds_per_item"]) == (1, 60.0)
    assert found["rounds"]["calibration"] == {"of": 2, "complete": 2}
    assert found["rounds"]["main"] == {"of": 6, "complete": 3}  # s2 and s3 wait for cem
    assert found["words"] == [
        {
            "screen": "s2",
            "annotator": "cem",
            "text": "No <b>idea</b>",
            "answers": [],
            "at": "2026-01-01T00:00:00Z",
        }
    ]
    assert json.dumps(found, allow_nan=False)


def test_a_remark_is_on_an_item_and_its_last_text_counts(store: Store) -> None:
    fill(store)
    give_labels(
        store, "ann", "s2", {"": None}, remark="first"
    )  # the page sends it with what follows, too
    give_labels(store, "ann", "s2", {"harm": "grave", "tone": "curt"}, remark="second")
    assert {one["text"] for one in Collected(store).figures["words"]} == {
        "second",
        "No <b>idea</b>",
    }
    (first, *_) = Collected(store).disagreements
    assert (first["screen"], first["remarks"]) == ("s2", ["No <b>idea</b>", "second"])
    give_labels(store, "ann", "s2", {"": None}, remark="")
    assert [one["text"] for one in Collected(store).figures["words"]] == ["No <b>idea</b>"]


def test_what_somebody_who_left_has_not_finished_is_waited_for_no_more(store: Store) -> None:
    fill(store)
    assert Collected(store).figures["rounds"]["main"]["complete"] == 3
    store.set(left=["cem"])  # s2 is skipped, s3 not begun
    found = Collected(store).figures
    assert found["rounds"]["main"] == {"of": 6, "complete": 5}
    assert (found["people"][2]["done"], found["people"][2]["of"]) == (2, 2)


def test_agreement_is_that_of_an_alignment_of_the_same_labels(store: Store) -> None:
    fill(store)
    give_labels(store, ADJUDICATED, "s2", {"harm": "some"}, reason="slip")
    found = Collected(store).figures["agreement"]
    answers = [Answer(f"s{i}", f"a{i}", f"q{i // 2}") for i in range(8)]
    given = [one for one in store.given() if one.annotator in PEOPLE and one.label]
    labels = [
        HumanLabel(one.screen, one.annotator, one.field, one.label)
        for one in given
        if one.field in ("harm", "tone")
    ]
    for name, rows in {"main": range(2, 8), "calibration": range(2)}.items():
        own = [answers[i] for i in rows]
        study = study_of(RUBRIC, own, labels, TruthConfig())
        results = align(study).results
        for one in (row for row in found if row["round"] == name):
            expected = results.find(one["statistic"], "agreement", metric=one["metric"], who="all")
            keys = ("value", "low", "high", "n", "n_missing", "reason")
            assert [one[key] for key in keys] == [getattr(expected, key) for key in keys]
    harm = [(one["round"], one["value"]) for one in found if one["metric"] == "harm"]
    assert harm[1:] == [("main", 0.6), ("calibration", None), ("calibration", 1.0)]  # of 5 pairs


def test_who_labels_otherwise_is_named(store: Store) -> None:
    every = [screen(i) for i in range(60)]
    store.put(every)
    store.assign({who: [one.id for one in every] for who in PEOPLE})
    for i in range(60):
        for who in PEOPLE:
            harm = "grave" if who == "cem" else ("none", "some")[i % 2]
            give_labels(store, who, f"s{i}", {"harm": harm, "tone": "kind"})
    harm, tone = Collected(store).figures["distribution"]
    assert harm["labels"] == ("none", "some", "grave")
    assert harm["people"] == {"ann": [30, 30, 0], "ben": [30, 30, 0], "cem": [0, 0, 60]}
    assert "Ask how cem read the labels." in " ".join(harm["odd"])
    assert not tone["odd"]


def test_without_labels_every_figure_says_why(store: Store) -> None:
    found = Collected(store).figures
    assert found["seconds_per_item"] is None
    assert all(one["value"] is None and one["reason"] for one in found["agreement"])
    assert Collected(store).disagreements == []


def test_disagreements_hide_names_and_the_most_severe_comes_first(store: Store) -> None:
    fill(store)
    found = Collected(store).disagreements
    assert [(one["screen"], one["metric"]) for one in found[:2]] == [("s2", "harm"), ("s0", "tone")]
    first = found[0]
    assert first["labels"] == ["none", "grave"]
    assert first["remarks"] == ["No <b>idea</b>"]
    assert [section["text"] for section in first["sections"]] == ["q1", "a2"]
    assert [option["value"] for option in first["field"]["options"]] == ["none", "some", "grave"]
    assert not any(who in json.dumps(found) for who in PEOPLE)
    harms = [one["screen"] for one in found if one["metric"] == "harm"]
    assert harms == ["s2", "s5"]


def test_an_adjudication_stands_beside_the_labels_and_in_no_figure(store: Store) -> None:
    fill(store)
    before = Collected(store).figures
    give_labels(
        store, ADJUDICATED, "s2", {"harm": "some"}, reason="guideline gap", remark="see page 2"
    )
    after = Collected(store).figures
    assert {**before, "at": ""} == {**after, "at": ""}
    *_, last = Collected(store).disagreements
    said = [last["adjudication"][key] for key in ("label", "reason", "remark")]
    assert said == ["some", "guideline gap", "see page 2"]
    assert last["labels"] == ["none", "grave"]
    give_labels(store, ADJUDICATED, "s2", {"harm": None})
    assert Collected(store).disagreements[0]["adjudication"] is None


def test_slots_of_a_ranking_are_rows_of_their_own(tmp_path: Path) -> None:
    ranks = options("1", "2", "3", "4", "5")
    fields = tuple(
        ScreenField(
            metric="rank",
            title="Rank",
            question="Which rank?",
            options=ranks,
            slot=i,
            about=str(i),
        )
        for i in range(2)
    )
    sections = tuple(Section(heading="Answer", text=f"text {i}", slot=i) for i in range(2))
    rubric = Rubric.from_labels({"Rank": [*"12345"]}).model_dump(mode="json")
    store = Store.create(
        tmp_path / "r.sqlite", {"name": "r", "task": "ranking", "rubric": rubric, "seed": 0}
    )
    store.put([Screen(id="s1", group="q", sections=sections, fields=fields)])
    store.assign({"ann": ["s1"], "ben": ["s1"]})
    give_labels(store, "ann", "s1", {"rank@0": "1", "rank@1": "4"})
    give_labels(store, "ben", "s1", {"rank@0": "2", "rank@1": "4"})
    found = Collected(store).figures
    observed = found["agreement"][1]
    assert (observed["value"], observed["n"]) == (0.5, 2)
    (split,) = Collected(store).disagreements
    assert (split["field"]["key"], split["labels"]) == ("rank@0", ["1", "2"])
    store.close()
