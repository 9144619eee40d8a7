"""What comes out of a study: the labels that count, under the names of the data."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import pytest
from annotate_case import give_labels, label_rows

import judgebench as jb
from judgebench.annotation.export import export
from judgebench.annotation.screens import Screen, ScreenField, Section
from judgebench.annotation.store import Store, snapshot
from judgebench.data.layout import layout_notes
from judgebench.data.load import load_data
from judgebench.data.reading import GivenTables, infer_layout, sources_of
from judgebench.data.settings import settings_of
from judgebench.errors import SetupError
from judgebench.records import ADJUDICATED
from judgebench.rubric import Rubric

HASH = "0123456789abcdef"
META = {"study": HASH, "per_item": 2, "calibration": 0, "background": "",
        "seed": 0}  # fmt: skip
NOBODY = 65534  # a user who may write nothing, where the tests are run by root


def field(metric: str, *values: str, **more: object) -> ScreenField:
    options = [{"value": value, "text": value.title()} for value in values]
    given = {"metric": metric, "title": metric, "question": "?", "options": options, **more}
    return ScreenField.model_validate(given)


def screen(name: str, *fields: ScreenField, text: str = "Rest.") -> Screen:
    slots = sorted({field.slot for field in fields if field.slot is not None}) or [None]
    sections = tuple(Section(heading="Answer", text=text, slot=slot) for slot in slots)
    return Screen(id=name, group="g", sections=sections, fields=fields or (HARM, TONE))


HARM, TONE = field("harm", "yes", "no"), field("tone", "kind", "curt")


def write_key(folder: Path, task: str, behind: object, study: str = HASH) -> None:
    key = {"study": study, "task": task, "screens": behind}
    (folder / "key.json").write_text(json.dumps(key))


def made(folder: Path, *screens: Screen, first: Sequence[str] = ()) -> Store:
    """A study of those screens, labelled by ann and ben; s1 is the item i1."""
    store = Store.create(folder / "served" / "study.sqlite", META)
    store.put([
        one.model_copy(update={"round": "calibration"}) if one.id in first else one
        for one in screens
    ])  # fmt: skip
    store.assign({name: [one.id for one in screens] for name in ("ann", "ben")})
    behind = {
        one.id: {
            f.key: {"columns": {"item_id": one.id.replace("s", "i")}, "metric": f.metric}
            for f in one.fields
        }
        for one in screens
    }
    write_key(folder, "labels", behind)
    return store


def brief(rows: Sequence[dict[str, str]]) -> list[str]:
    return [" ".join(row[c] for c in ("item_id", "annotator", "metric", "label")) for row in rows]


def test_the_labels_that_count(tmp_path: Path) -> None:
    with closing(made(tmp_path, screen("s2"), screen("s1"))) as store:
        give_labels(store, "ben", "s1", {"harm": "yes", "tone": "kind"})
        give_labels(store, "ann", "s1", {"harm": "yes"})  # and no more: it counts
        give_labels(store, "ann", "s1", {"harm": "no"})
        give_labels(store, "ann", "s2", {"harm": "yes", "tone": ""})
        give_labels(store, "ann", "s2", {"harm": None})
        give_labels(store, "ben", "s2", {"tone": "curt", "": "skip"})
        give_labels(store, ADJUDICATED, "s1", {"harm": "yes"})
        rows = label_rows(tmp_path)
    assert brief(rows) == [
        "i1 adjudicated harm yes", "i1 ann harm no", "i1 ben harm yes", "i1 ben tone kind",
        "i2 ann tone ", "i2 ben tone curt",
    ]  # fmt: skip
    assert {row["study"] for row in rows} == {HASH}
    assert {row["made_blind"] for row in rows} == {"yes"}
    assert {row["labelled_at"] for row in rows} == {"2026-01-01T00:00:00Z"}
    assert [row["queue_position"] for row in rows if row["annotator"] == "ann"] == ["2", "1"]
    assert [*rows[0]] == [
        "item_id", "annotator", "made_blind", "metric", "label", "labelled_at", "queue_position",
        "study",
    ]  # fmt: skip


def test_a_decision_on_the_folder_of_a_study_knows_its_rubric(tmp_path: Path) -> None:
    tone = {"id": "tone", "title": "Kindness", "question": "?", "kind": "ordinal"}
    tone["labels"] = ["Kind", "Curt", "Cruel"]
    rubric = {"name": "pilot", "version": "1", "instructions": "Label.", "metrics": [tone]}
    names = [f"s{i}" for i in range(1, 9)]
    with closing(made(tmp_path, *(screen(n, field("tone", "Kind", "Curt")) for n in names))) as s:
        s.set(rubric=Rubric.model_validate(rubric).model_dump(mode="json"), name="ward-7")
        for i, name in enumerate(names):
            for who in ("ann", "ben", ADJUDICATED):
                give_labels(s, who, name, {"tone": ("Curt", "Kind")[i % 2]})
    rows = "".join(f"i{i},{('Curt', 'Kind')[i % 2]}\n" for i in range(1, 9))
    (tmp_path / "judge.csv").write_text(f"ID,verdict\n{rows}")
    for order in ([tmp_path, tmp_path / "judge.csv"], [tmp_path / "judge.csv", tmp_path]):
        tables = GivenTables(unsorted=sources_of(order, "tables"))
        layout = infer_layout(tables)
        (metric,) = layout.rubric.metrics
        assert jb.study(layout).name == "ward-7"  # the study's name, and not that of the rubric
        assert metric.label_texts == ("Kind", "Curt", "Cruel")
        assert any("annotator = annotator" in note for note in layout_notes(layout))
    other = infer_layout(tables, settings_of({"order": "Cruel < Curt < Kind"}))
    assert other.rubric.metrics[0].label_texts == ("Cruel", "Curt", "Kind")
    assert f"judgebench decide {tmp_path} VERDICTS.csv" in export(tmp_path)[-1]


def test_a_study_brings_the_texts_that_baselines_go_by(tmp_path: Path) -> None:
    labels = {f"s{i}": ("kind", "curt")[i % 2] for i in range(1, 21)}
    screens = [screen(name, TONE, text=f"Rest, {name}.") for name in labels]
    with closing(made(tmp_path, *screens)) as store:
        rubric = Rubric.from_labels({"tone": ["kind", "curt"]})
        store.set(rubric=rubric.model_dump(mode="json"), name="ward-7")
        for name, label in labels.items():
            for who in ("ann", "ben"):
                give_labels(store, who, name, {"tone": label})
    verdicts = tmp_path / "judge.csv"
    rows = (f"{name.replace('s', 'i')},{label}\n" for name, label in labels.items())
    verdicts.write_text(f"item_id,tone\n{''.join(rows)}")
    decisions = jb.decide(tmp_path / "served" / "study.sqlite", verdicts)
    assert decisions.study is not None
    assert {answer.text for answer in decisions.study.answers} == {f"Rest, {n}." for n in labels}
    assert "longest-answer" in decisions.part.terms[-1]
    export(tmp_path, tmp_path / "labels.csv")
    of_export = jb.decide(tmp_path / "labels.csv", verdicts)
    assert "longest-answer" not in of_export.part.terms[-1]
    untried = "No baseline by the length of answers was tried"
    assert [untried in str(d.part.urgent) for d in (decisions, of_export)] == [False, True]


def test_the_calibration_round_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    with closing(made(tmp_path, screen("s1"), screen("s2"), first=["s1"])) as store:
        for name in ("s1", "s2"):
            give_labels(store, "ann", name, {"harm": "yes"})
        assert brief(label_rows(tmp_path)) == ["i2 ann harm yes"]
        assert len(label_rows(tmp_path, calibration=True)) == 2
        give_labels(store, ADJUDICATED, "s1", {"harm": "no"})
        assert brief(label_rows(tmp_path)) == ["i2 ann harm yes"]
        assert len(label_rows(tmp_path, calibration=True)) == 3
        said = export(tmp_path)
    assert "left out: 2 labels of calibration or of anchors" in said


def test_labels_of_what_has_changed_are_left_out(tmp_path: Path) -> None:
    with closing(made(tmp_path, screen("s1"), screen("s2"))) as store:
        for name in ("s1", "s2"):
            give_labels(store, "ann", name, {"harm": "yes", "tone": "kind"})
        store.put([screen("s1", text="Run."), screen("s2", HARM, field("tone", "kind", "rude"))])
        assert brief(label_rows(tmp_path)) == ["i2 ann harm yes"]


def test_a_study_without_its_own_key_gives_no_labels(tmp_path: Path) -> None:
    made(tmp_path, screen("s1")).close()
    write_key(tmp_path, "labels", {"s1": {}}, study="another")
    with pytest.raises(SetupError, match=r"key\.json.*of another study.*another.*allowed: 0123"):
        label_rows(tmp_path)
    write_key(tmp_path, "labels", {"s2": {}})
    with pytest.raises(SetupError, match="version before"):
        label_rows(tmp_path)
    (tmp_path / "key.json").unlink()
    with pytest.raises(SetupError, match=r"key\.json: the key of the study cannot be read"):
        label_rows(tmp_path / "served" / "study.sqlite")


def test_other_files_are_no_study(tmp_path: Path) -> None:
    file = tmp_path / "notes.sqlite"
    with pytest.raises(SetupError, match=r"nothing: no such file: `judgebench annotate init`"):
        label_rows(tmp_path / "nothing")
    for content in (b"", b"no database " * 100):
        file.write_bytes(content)
        with pytest.raises(SetupError, match=rf"{file}: is no annotation study"):
            label_rows(file)
    sqlite3.connect(file.with_name("other.sqlite")).execute("CREATE TABLE t (a)").connection.close()
    with pytest.raises(SetupError, match=r"other\.sqlite: is no annotation study"):
        label_rows(file.with_name("other.sqlite"))


# --- while a server writes, after a kill, where nobody may write --------------------------------


@contextmanager
def as_nobody() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that anybody may read, and in which only its owner may write."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)
        for folder in (Path(name), *Path(name).rglob("served")):
            folder.chmod(0o755)


KILLED = """
import os, sys
from pathlib import Path
from judgebench.annotation.store import Event, Store
store = Store(Path(sys.argv[1]))
hash = store.screens["s1"].hash
for n, label in enumerate(("yes", "no")):
    event = Event(client_id=f"event-of-a-server-{n}", screen="s1", hash=hash, field="harm",
                  label=label, at="2026-01-01T00:00:00Z")
    assert not store.save("ann", [event]).refused
os._exit(0)
"""


def test_after_a_kill_every_label_is_there(open_folder: Path) -> None:
    made(open_folder / "killed", screen("s1")).close()
    file = open_folder / "killed" / "served" / "study.sqlite"
    subprocess.run([sys.executable, "-c", KILLED, str(file)], check=True)
    for case in ("whole", "whole, read-only", "no index"):
        folder = shutil.copytree(open_folder / "killed", open_folder / case)
        served = folder / "served"
        if "no index" in case:  # as where somebody copied the file with its log alone
            (served / "study.sqlite-shm").unlink()
        kept = [served / "study.sqlite", served / "study.sqlite-wal"]
        before = [path.read_bytes() for path in kept]
        served.chmod(0o555 if "read-only" in case else 0o755)
        with as_nobody() if "read-only" in case else nullcontext():
            assert brief(label_rows(folder)) == ["i1 ann harm no"], case
        assert [path.read_bytes() for path in kept] == before, case


def test_a_closed_study_is_read_where_nobody_may_write_and_nothing_is_left_there(
    open_folder: Path,
) -> None:
    with closing(made(open_folder, screen("s1"))) as store:
        give_labels(store, "ann", "s1", {"harm": "yes"})
    served = open_folder / "served"
    served.chmod(0o555)
    with as_nobody():
        assert brief(label_rows(open_folder)) == ["i1 ann harm yes"]
    served.chmod(0o755)
    label_rows(open_folder)
    assert [path.name for path in served.iterdir()] == ["study.sqlite"]


def test_a_server_that_writes_is_not_disturbed(tmp_path: Path) -> None:
    with closing(made(tmp_path, screen("s1"))) as store:
        give_labels(store, "ann", "s1", {"harm": "yes"})
        with store.writing() as connection:  # in the middle of the next label
            connection.execute("UPDATE meta SET value = '9' WHERE key = 'seed'")
            connection.execute("INSERT INTO meta VALUES ('half', '1')")
            assert brief(label_rows(tmp_path)) == ["i1 ann harm yes"]
            with snapshot(tmp_path) as seen:
                assert "half" not in seen.meta
        assert store.meta["half"] == 1
        give_labels(store, "ann", "s1", {"harm": "no"})
        assert brief(label_rows(tmp_path)) == ["i1 ann harm no"]


# --- tables of the other tasks --------------------------------------------------------------------


def test_a_ranking_gives_screens_that_were_ranked_whole(tmp_path: Path) -> None:
    ranks = [field("rank", "1", "2", "3", about=letter, slot=n) for n, letter in enumerate("ab")]
    with closing(made(tmp_path, screen("s1", *ranks))) as store:
        behind = {
            f"rank@{letter}": {
                "columns": {"task": "ferries", "item_id": "i1", "system": f"system-{letter}"},
                "metric": "rank",
            }
            for letter in "ab"
        }
        write_key(tmp_path, "ranking", {"s1": behind})
        give_labels(store, "ann", "s1", {"rank@a": "2", "rank@b": "2"})
        give_labels(store, "ben", "s1", {"rank@a": "1", "rank@b": ""})
        give_labels(store, ADJUDICATED, "s1", {"rank@a": "1", "rank@b": "1"})  # who is no expert
        rows = label_rows(tmp_path)
        shown = store.screens["s1"].slots_for("ann", META["seed"])
        order = " | ".join(f"system-{'ab'[slot]}" for slot in shown)
        about = {"task": "ferries", "item_id": "i1", "expert": "ann", "rank": "2", "study": HASH}
        about |= {
            "labelled_at": "2026-01-01T00:00:00Z",
            "queue_position": "1",
            "order_shown": order,
        }
        assert rows == [{**about, "system": f"system-{s}"} for s in "ab"]


# --- files ----------------------------------------------------------------------------------------


def test_the_table_says_what_was_left_out_and_is_read_as_data(
    tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    with closing(made(tmp_path, *map(screen, ("s1", "s2", "s3")), first=["s1"])) as store:
        for name in ("s1", "s2", "s3"):
            give_labels(store, "ann", name, {"harm": "yes", "tone": "kind"})
        give_labels(store, "ann", "s3", {"": "skip"})
        store.put([screen("s3", text="Run.")])
        code, out, _ = call("annotate", "export", tmp_path)
    file = tmp_path / "labels.csv"
    assert code == 0
    assert out.startswith(f"{file}: 2 rows\n")
    assert "left out: 2 labels of calibration or of anchors" in out
    read = load_data([file], RUBRIC)
    assert [(label.item_id, label.label) for label in read.labels] == [
        ("i2", "yes"),
        ("i2", "kind"),
    ]
    assert not read.warnings
    assert call("annotate", "export", tmp_path, "--calibration")[0] == 0
    assert "i1" in file.read_text("utf-8")


def test_no_other_file_is_overwritten_and_nothing_is_written_without_a_label(
    tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    with closing(made(tmp_path, screen("s1"), first=["s1"])) as store:
        give_labels(store, "ann", "s1", {"harm": "yes"})
        code, _, err = call("annotate", "export", tmp_path)
        assert code == 2
        assert "left out: 1 label of calibration" in err
        assert not (tmp_path / "labels.csv").exists()
    answers = tmp_path / "answers.csv"
    answers.write_text("item_id,text\n")
    code, _, err = call("annotate", "export", tmp_path, "--calibration", "--to", answers)
    assert code == 2
    assert "not overwritten" in err
    assert answers.read_text() == "item_id,text\n"


RUBRIC = Rubric.from_labels({"harm": ["yes", "no"], "tone": ["kind", "curt"]})


def test_the_file_of_a_study_is_named_like_a_table_of_labels(tmp_path: Path) -> None:
    file = tmp_path / "served" / "study.sqlite"
    with closing(made(tmp_path, screen("s1"), screen("s2"))) as store:
        give_labels(store, "ann", "s1", {"harm": "yes", "tone": "kind"})
        give_labels(store, "ben", "s1", {"harm": "no", "tone": ""})
        before = load_data([file], RUBRIC)
        assert [(x.annotator, x.label) for x in before.labels if x.metric == "harm"] == [
            ("ann", "yes"), ("ben", "no"),
        ]  # fmt: skip
        give_labels(store, "ben", "s2", {"harm": "no"})
        again = load_data([file], RUBRIC)
        assert again.n_labels == before.n_labels + 1
        assert again.sources != before.sources  # and so a run reads it again
        export(tmp_path)
    table = load_data([tmp_path / "labels.csv"], RUBRIC)
    assert table.labels == again.labels


def test_a_study_that_nobody_has_begun_says_so(tmp_path: Path) -> None:
    made(tmp_path, screen("s1")).close()
    file = tmp_path / "served" / "study.sqlite"
    with pytest.raises(SetupError, match=rf"{file}: holds no label yet"):
        load_data([file], RUBRIC)
    with pytest.raises(SetupError, match=r"gone\.sqlite: no such file: `judgebench annotate init`"):
        load_data([tmp_path / "gone.sqlite"], RUBRIC)
    assert not (tmp_path / "gone.sqlite").exists()


def test_a_study_that_holds_no_labels_says_how_to_get_what_it_holds(tmp_path: Path) -> None:
    with closing(made(tmp_path, screen("s1", field("rank", "1", "2")))) as store:
        columns = {"task": "t", "item_id": "i1", "system": "a"}
        write_key(tmp_path, "ranking", {"s1": {"rank": {"columns": columns, "metric": "rank"}}})
        give_labels(store, "ann", "s1", {"rank": "1"})
    with pytest.raises(SetupError, match=r"study\.sqlite: .*judgebench annotate export"):
        load_data([tmp_path / "served" / "study.sqlite"], RUBRIC)
    (tmp_path / "key.json").unlink()
    with pytest.raises(SetupError, match=r"key\.json: the key of the study cannot be read"):
        load_data([tmp_path / "served" / "study.sqlite"], RUBRIC)
