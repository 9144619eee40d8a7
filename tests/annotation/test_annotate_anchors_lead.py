"""Anchors from a table: hidden among the items, and counted on the lead's page."""

import json
from pathlib import Path

import pytest
from annotate_case import Person, Running, label_rows, served
from built_case import study_file, table

from judgebench.annotation import server
from judgebench.annotation.export import export, key_of
from judgebench.annotation.init import annotate
from judgebench.annotation.lead import Collected
from judgebench.annotation.store import open_store
from judgebench.annotation.tasks import item_of
from judgebench.errors import SetupError

COLUMNS = ["item_id", "question", "text", "tone", "truth"]
ROWS = [
    ["known-1", "Is tea good?", "Drink some.", "Kind", ""],
    ["known-2", "Is salt good?", "Go away.", "Rude", "No"],
    ["known-3", "Is fat good?", "A little.", "Kind", "Yes"],
    ["known-0", "Is rice good?", "Hm.", "Curt", ""],
]
LATER = ["known-4", "Is ice good?", "No.", "Curt", ""]
LABELS = {"known-1": "Kind", "known-2": "Rude", "known-3": "Kind", "known-0": "Curt"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_FIGURES_S", 0)


def anchor_file(folder: Path, rows: list[list[str]] = ROWS) -> Path:
    """An annotate.yaml of 12 answers and these anchors, two of which are known on one metric."""
    file = study_file(folder, anchors_from="known.csv", metrics=["tone", "truth"], calibration=1)
    table(folder / "known.csv", COLUMNS, rows)
    return file


def made(folder: Path) -> Path:
    return annotate(anchor_file(folder), folder / "study").study


def ids(study: Path) -> dict[str, str]:
    """The items by screen: those of the data, and anchors by their ids in the table."""
    with open_store(study) as store:
        names = {name: item_of(of)[-1] for name, of in key_of(store).screens.items()}
        texts = {name: screen.sections[-1].text for name, screen in store.screens.items()}
    anchors = {text: item_id for item_id, _, text, *_ in [*ROWS, LATER]}
    return {name: anchors.get(texts[name], item_id) for name, item_id in names.items()}


def by_item(study: Path, name: str) -> list[str]:
    of = ids(study)
    with open_store(study) as store:
        return [of[screen] for screen in store.assigned(name)]


def label_item(person: Person, screen: str, tone: str, truth: str = "Yes") -> None:
    shown = person.gets(f"/api/screen/{screen}")["hash"]
    given = {"tone": tone, "truth": truth}.items()
    saved = person.save(*(person.event(screen, key, x, hash=shown) for key, x in given))
    assert len(saved["saved"]) == 2, saved


def test_anchors_of_a_table_are_hidden_among_everybodys_others(tmp_path: Path) -> None:
    report = repr(annotate(anchor_file(tmp_path), tmp_path / "study"))
    assert "4 anchors hidden among the items of everybody" in report
    orders = {name: by_item(tmp_path / "study", name) for name in ("ann", "ben", "cem")}
    for own in orders.values():
        rest = own[1:]  # behind the item for calibration
        places = sorted(rest.index(item) for item in LABELS)
        assert places[1] < len(rest) / 2 < places[-1]
    assert len({tuple(own[1:]) for own in orders.values()}) == 3
    with served(tmp_path / "study") as site:
        ann, of = site.enters("ann"), ids(tmp_path / "study")
        work = ann.gets("/api/work")
        rounds = {of[item["id"]]: item["round"] for item in work["items"]}
        assert {rounds[item] for item in LABELS} == {""}
        assert "Kind" not in json.dumps(work["items"])
        shown = {of[i["id"]]: ann.gets(f"/api/screen/{i['id']}") for i in work["items"]}
        keys = {json.dumps([sorted(one), sorted(one["screen"])]) for one in shown.values()}
        assert len(keys) == 1
        assert "known" not in json.dumps([*shown.values()])


def test_anchors_are_not_exported_with_the_labels(tmp_path: Path) -> None:
    study = made(tmp_path)
    of = ids(study)
    with served(study) as site:
        for name in ("ann", "ben"):
            person = site.enters(name)
            for item in person.gets("/api/work")["items"]:
                label_item(person, item["id"], "Kind")
        with open_store(study) as store:
            calibration = {of[s] for s, one in store.screens.items() if one.round == "calibration"}
        exported = {row["item_id"] for row in label_rows(study)}
        assert not exported & {*LABELS, *calibration}
        assert {x["item_id"] for x in label_rows(study, calibration=True)} == exported | calibration
        said = export(study)
        assert "left out: 20 labels of calibration or of anchors" in said


def answered(site: Running, of: dict[str, str]) -> None:
    """ann knows all anchors but one; ben misses two, and cannot tell of another."""
    for name, wrong in (("ann", {"known-3": "Rude"}), ("ben", {"known-1": "Rude", "known-3": ""})):
        person = site.enters(name)
        for item in person.gets("/api/work")["items"]:
            known = LABELS.get(of[item["id"]], "Kind")
            label_item(person, item["id"], wrong.get(of[item["id"]], known))


def test_the_lead_sees_hits_and_misses_and_nobody_is_left_out(tmp_path: Path) -> None:
    study = made(tmp_path)
    of = ids(study)
    with served(study) as site:
        answered(site, of)
        lead = site.enters("lead")
        figures, items = lead.gets("/api/lead"), lead.gets("/api/lead/items")
        disputed = {case["screen"] for case in lead.gets("/api/lead/disagreements")}
    assert {of[item["screen"]] for item in items if item["round"] == "anchor"} == {*LABELS}
    assert not [item for item in items if item["differ"] and item["round"] == "anchor"]
    assert not [name for name in disputed if of[name].startswith("known")]
    rows = figures["anchors"]
    hits = {(x["who"], x["metric"]): (round(x["value"] * x["n"]), x["n"]) for x in rows}
    assert hits == {
        ("ann", "tone"): (3, 4), ("ann", "truth"): (1, 2),
        ("ben", "tone"): (2, 4), ("ben", "truth"): (1, 2),
    }  # fmt: skip
    one = next(x for x in rows if (x["who"], x["metric"]) == ("ann", "tone"))
    assert (round(one["low"], 2), round(one["high"], 2)) == (0.19, 0.99)  # exact, of 3 of 4
    missed = {(of[x["screen"]], x["metric"]): (x["known"], x["said"]) for x in figures["missed"]}
    assert missed == {
        ("known-1", "tone"): ("Kind", {"ben": "Rude"}),
        ("known-2", "truth"): ("No", {"ann": "Yes", "ben": "Yes"}),
        ("known-3", "tone"): ("Kind", {"ann": "Rude", "ben": ""}),
    }
    assert {name: of["of"] for name, of in figures["rounds"].items()} == {
        "main": 11 + 4, "calibration": 1,
    }  # fmt: skip
    # Labels of anchors alone are in no other figure.
    used = next(x for x in figures["distribution"] if x["metric"] == "tone")
    assert sum(used["people"]["ann"]) == len(by_item(study, "ann")) - 4
    assert {row["annotator"] for row in label_rows(study)} == {"ann", "ben"}
    with open_store(study) as store:
        assert "Anchors: right labels given" in str(Collected(store))


def test_an_anchor_that_nobody_labelled_is_open(tmp_path: Path) -> None:
    study = made(tmp_path)
    of = ids(study)
    with served(study) as site:
        for name in ("ann", "ben", "cem"):
            person = site.enters(name)
            for item in person.gets("/api/work")["items"]:
                if of[item["id"]] != "known-2":
                    label_item(person, item["id"], "Kind")
    with open_store(study) as store:
        collected = Collected(store)
    assert collected.figures["rounds"]["main"] == {"of": 15, "complete": 14}
    assert "14 of 15 items of the main round are complete." in str(collected)


def test_anchors_can_come_later_and_new_people_have_them_too(tmp_path: Path) -> None:
    study = made(tmp_path)
    with served(study) as site:
        ann = site.enters("ann")
        for item in ann.gets("/api/work")["items"]:
            label_item(ann, item["id"], "Kind")
    file = anchor_file(tmp_path, [*ROWS, LATER])
    text = file.read_text().replace("- cem", "- cem\n- dot")
    file.write_text(text)
    before = {name: by_item(study, name) for name in ("ann", "ben", "cem")}
    annotate(file, study, new_version=True)
    for name, own in before.items():
        now = by_item(study, name)
        assert now[: len(own)] == own
        assert {*now[len(own) :]} == {"known-4"}
    dot = by_item(study, "dot")
    assert {*LABELS, "known-4"} < {*dot}
    # Labels of before count on.
    kept = {row["item_id"] for row in label_rows(study) if row["annotator"] == "ann"}
    assert kept == {x for x in before["ann"] if x.startswith("quartz")} - {before["ann"][0]}


WRONG = {
    "no label": ([*ROWS, ["x", "Q?", "A.", "", ""]], "has no known label; found x"),
    "two labels": ([*ROWS, [*ROWS[0][:3], "Rude", ""]], "Kind"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_study_can_hold_is_reported(tmp_path: Path, name: str) -> None:
    rows, message = WRONG[name]
    with pytest.raises(SetupError, match=message):
        annotate(anchor_file(tmp_path, rows), tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_anchors_are_of_the_task_labels(tmp_path: Path) -> None:
    file = study_file(tmp_path, "ranking", anchors_from="known.csv")
    with pytest.raises(SetupError, match="anchors: is for other tasks"):
        annotate(file, tmp_path / "study")
