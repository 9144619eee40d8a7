"""Anchors: drawn, hidden among the items of everybody, exported apart, and counted by decide."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from annotate_case import served
from built_case import study_file, table

import judgebench as jb
from judgebench.annotation.export import export, key_of
from judgebench.annotation.store import open_store
from judgebench.annotation.tasks import item_of
from judgebench.features import FEATURES

Call = Callable[..., tuple[int, str, str]]
PEOPLE = ("ann", "ben", "cem")
GOOD = [[f"fine-{n}", f"Is {n} good?", f"Yes, take {n}.", "Kind"] for n in range(6)]
FLAWED = [[f"bad-{n}", f"Is {n} bad?", f"Go away, {n}.", "Rude"] for n in range(6)]
ONE_FLAW = {"item_id": "set-1", "question": "Why?", "parent": "Please sit.", "text": "Get lost."}


def anchor_table(folder: Path, rows: list[list[str]] = GOOD + FLAWED) -> Path:
    table(folder / "known.csv", ["item_id", "question", "text", "tone"], rows)
    return folder / "known.csv"


def altered_set(folder: Path, *changes: dict[str, object]) -> Path:
    """A set of altered answers, one of each question."""
    lines = [
        {**ONE_FLAW, "item_id": f"set-{n}", "question": f"Why {n}?", "parent": f"Sit, {n}.",
         "must_worsen": {"tone": "Rude"}, **change}
        for n, change in enumerate(changes)
    ]  # fmt: skip
    (folder / "set.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "set.jsonl"


def made(folder: Path, **options: object) -> Path:
    file = study_file(folder, metrics=["tone"], per_item=3)
    return jb.annotate(file, folder / "study", **options).study  # type: ignore[arg-type]


def anchor_ids(study: Path) -> dict[str, str]:
    """The ids of anchors, by screen."""
    with open_store(study) as store:
        screens = key_of(store).screens
        anchors = [name for name, screen in store.screens.items() if screen.round == "anchor"]
    return {name: item_of(screens[name])[-1] for name in anchors}


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def label_all(study: Path, labels: Callable[[str, str], str]) -> None:
    """Everybody labels all their screens, by the text of the answer."""
    with served(study) as site:
        for name in PEOPLE:
            person = site.enters(name)
            for item in person.gets("/api/work")["items"]:
                shown = person.gets(f"/api/screen/{item['id']}")
                text = shown["screen"]["sections"][-1]["text"]
                event = person.event(item["id"], "tone", labels(name, text), hash=shown["hash"])
                assert person.save(event)["saved"]


def careful(name: str, text: str) -> str:
    return "Rude" if "Go away" in text or "away to you" in text else "Kind"


def test_everybody_labels_the_anchors_and_nothing_tells_them(tmp_path: Path) -> None:
    study = made(tmp_path, anchors=8, anchors_from=[anchor_table(tmp_path)])
    anchors = anchor_ids(study)

    with served(study) as site:
        people = {name: site.enters(name) for name in PEOPLE}
        work = {name: person.gets("/api/work") for name, person in people.items()}
        shown = [people["ann"].gets(f"/api/screen/{item['id']}") for item in work["ann"]["items"]]

    assert len(anchors) == 8
    orders = {name: [item["id"] for item in one["items"]] for name, one in work.items()}
    assert all(anchors.keys() <= {*order} for order in orders.values())
    assert len({tuple(s for s in order if s in anchors) for order in orders.values()}) == 3
    places = sorted(orders["ann"].index(screen) for screen in anchors)
    assert places[2] < len(orders["ann"]) / 2 < places[-3]
    shapes = {json.dumps([sorted(one), sorted(one["screen"])]) for one in shown}
    kinds = {json.dumps({**item, "id": ""}, sort_keys=True) for item in work["ann"]["items"]}
    assert len(shapes) == len(kinds) == 1
    sent = json.dumps([work, shown])
    hidden = [*anchors.values(), "anchor", "gold", "fine-", "bad-", "known.csv"]
    assert not [word for word in hidden if word in sent]


def test_the_judge_gets_them_in_the_same_table(tmp_path: Path) -> None:
    study = made(tmp_path, anchors=8, anchors_from=[anchor_table(tmp_path)])

    rows = read(study / "answers_for_judge.csv")

    texts = [row["text"] for row in rows if row["item_id"] in anchor_ids(study).values()]
    assert (len(rows), len(texts)) == (12 + 8, 8)
    assert sum("Go away" in text for text in texts) == 6
    assert {*rows[0]} == {"item_id", "question", "reference", "text"}
    is_anchor = [row["text"] in texts for row in rows]
    assert True in is_anchor[:12]
    assert False in is_anchor[-12:]


def test_the_same_seed_draws_the_same_and_another_does_not(tmp_path: Path) -> None:
    drawn = []
    for n, seed in enumerate((0, 0, 1)):
        file = study_file(tmp_path / str(n), metrics=["tone"], seed=seed)
        source = anchor_table(tmp_path / str(n))
        study = jb.annotate(file, tmp_path / f"study-{n}", anchors=4, anchors_from=[source]).study
        drawn.append({*anchor_ids(study).values()})
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("answers", ["", "answers.csv", "study/answers_for_judge.csv"])
def test_from_labels_to_a_decision(tmp_path: Path, call: Call, answers: str) -> None:
    """People miss half of the flaws and the judge sees all: the decision says so, whether a table
    of answers has the anchors or not."""
    study = made(tmp_path, anchors_from=[anchor_table(tmp_path)])

    def blind(name: str, text: str) -> str:
        is_seen = text[-2] in "012"
        return careful(name, text) if is_seen else "Kind"

    label_all(study, blind)
    code, out, _ = call("annotate", "export", study)
    assert code == 0
    assert f"Next: judgebench decide {study} VERDICTS.csv;" in out
    labels, anchors = read(study / "labels.csv"), read(study / "anchors.csv")
    labelled = {row["item_id"] for row in labels if row["label"]}
    assert not labelled & {row["item_id"] for row in anchors}
    right = [row for row in anchors if row["annotator"] == "adjudicated"]
    assert sorted(row["label"] for row in right) == ["Kind"] * 6 + ["Rude"] * 6
    assert len(anchors) == 12 * 4

    verdicts = tmp_path / "verdicts.csv"
    rows = [
        [row["item_id"], careful("", row["text"])] for row in read(study / "answers_for_judge.csv")
    ]
    table(verdicts, ["item_id", "tone"], rows)
    rule = tmp_path / "rule.yaml"
    rule.write_text("replace: {anchors: 0.1}\n")
    command = ["decide", study, verdicts, *([tmp_path / answers] if answers else [])]
    code, out, err = call(*command, "--rule", rule, "--json")

    assert code == 0, err
    (decision,) = json.loads(out)["decisions"]
    (condition,) = [c for c in decision["conditions"] if c["key"] == "anchors"]
    assert (condition["state"], condition["value"], condition["n"]) == ("unclear", 0.0, 6)
    assert decision["accuracy"]["n"] == 12
    code, out, err = call("report", *command[1:], "--rule", rule, "--to", tmp_path / "report", "-q")
    assert code == 0, err
    results = pd.read_csv(tmp_path / "report" / "results.csv")
    found = results[(results.analysis == "anchors") & (results.statistic == "found")]
    raters = found.who.fillna(found.judge)
    shares = dict(zip(raters, found.value, strict=True))
    assert shares == {**dict.fromkeys((*PEOPLE, "consensus"), 0.5), "verdicts": 1.0}


def test_labels_and_anchors_in_files_decide_as_the_study_does(tmp_path: Path) -> None:
    study = made(tmp_path, anchors_from=[anchor_table(tmp_path)])
    label_all(study, careful)
    export(study)
    answers = pd.read_csv(study / "answers_for_judge.csv")
    verdicts = answers[["item_id"]].assign(tone=[careful("", text) for text in answers.text])

    def anchors_of(frame: pd.DataFrame) -> pd.DataFrame:
        keys = ["statistic", "who", "judge", "metric", "value", "n"]
        return frame[frame.analysis == "anchors"][keys].reset_index(drop=True)

    by_study = anchors_of(jb.decide(study, verdicts).to_frame())
    assert len(by_study) > 0
    for items in (None, tmp_path / "answers.csv"):  # which hold no anchor
        tables = jb.study(study / "labels.csv", verdicts, items, rubric=tmp_path / "mine.yaml")
        by_files = jb.decide(tables, anchors=study / "anchors.csv").to_frame()
        pd.testing.assert_frame_equal(by_study, anchors_of(by_files))


@pytest.mark.skipif("stress" not in FEATURES, reason="needs the feature `stress`")
def test_a_set_gives_flawed_answers_and_sound_parents_of_people(tmp_path: Path) -> None:
    failed = {"checks": {"length": "it is too long"}}
    mild = {"must_worsen": {"tone": "Curt"}}
    source = altered_set(tmp_path, {}, {}, failed, mild)
    study = made(tmp_path, anchors_from=[source])
    texts = {row["item_id"]: row["text"] for row in read(study / "answers_for_judge.csv")}
    kinds = sorted(texts[item] for item in anchor_ids(study).values())
    assert kinds == ["Get lost.", "Get lost.", "Sit, 0.", "Sit, 1."]


@pytest.mark.skipif("stress" not in FEATURES, reason="needs the feature `stress`")
def test_parents_of_a_generated_set_are_not_known_to_be_good(tmp_path: Path) -> None:
    source = altered_set(tmp_path, *[{"generator": "rule"}] * 4)
    with pytest.raises(jb.SetupError, match="lacking are 0 with a severe flaw and 1 good"):
        made(tmp_path, anchors=4, anchors_from=[source])
    study = made(tmp_path, anchors=4, anchors_from=[source, anchor_table(tmp_path, GOOD)])
    assert len(anchor_ids(study)) == 4


@pytest.mark.skipif("stress" not in FEATURES, reason="needs the feature `stress`")
def test_the_shipped_set_is_the_default(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples"
    for name in ("annotate", "demo"):
        shutil.copytree(example / name, tmp_path / name)
    made = jb.annotate(tmp_path / "annotate" / "annotate.yaml", tmp_path / "study", anchors=40)
    assert len(anchor_ids(made.study)) == 40


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (GOOD, "lacking are 3 with a severe flaw and 0 good ones;.*--anchors-from"),
        ([*FLAWED, [*GOOD[0][:3], ""]], "known.csv: has no known label; found fine-0"),
        ([*FLAWED, [*GOOD[0][:3], "Lovely"]], "known.csv:8: tone: .*'Lovely'"),
    ],
)
def test_bad_tables_are_named(
    rows: list[list[str]], reason: str, tmp_path: Path, call: Call
) -> None:
    file, source = study_file(tmp_path, metrics=["tone"]), anchor_table(tmp_path, rows)
    options = ["--anchors", "4", "--anchors-from", source]
    code, _, err = call("annotate", "init", file, "--to", tmp_path / "study", *options)
    assert code == 2
    assert re.search(reason, err), err
    assert not (tmp_path / "study").exists()


def test_a_new_version_keeps_the_anchors_of_the_file(tmp_path: Path) -> None:
    anchor_table(tmp_path)
    keys = {"anchors_from": ["known.csv"], "anchors": 4, "metrics": ["tone"]}
    study = jb.annotate(study_file(tmp_path, **keys), tmp_path / "study").study
    before = anchor_ids(study)
    told = repr(jb.annotate(tmp_path / "annotate.yaml", study, new_version=True))
    assert "0 changed, 0 new, 0 gone" in told
    assert anchor_ids(study) == before


def test_no_anchors_are_none_wherever_they_would_come_from(tmp_path: Path, call: Call) -> None:
    anchor_table(tmp_path)
    file = study_file(tmp_path, anchors_from=["known.csv"], metrics=["tone"])
    code, out, _ = call("annotate", "init", file, "--to", tmp_path / "study", "--anchors", "0")
    assert (code, "hidden" in out) == (0, False)
    file = study_file(tmp_path, anchors_from=["known.csv"], metrics=["tone"], anchors=0)
    assert not anchor_ids(jb.annotate(file, tmp_path / "other").study)


def test_without_a_number_all_are_anchors_and_are_exported(tmp_path: Path) -> None:
    study = made(tmp_path, anchors_from=[anchor_table(tmp_path)])
    label_all(study, careful)
    export(study)
    exported = {row["item_id"] for row in read(study / "anchors.csv")}
    assert len(exported) == len(GOOD + FLAWED)
    assert exported == {*anchor_ids(study).values()}
