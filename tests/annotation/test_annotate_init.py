"""A study is made, goes on with other items, and loses an annotator."""

import re
import textwrap
from contextlib import closing
from pathlib import Path

import pytest
from annotate_case import give_labels
from built_case import QUESTIONS, TASKS, answers, study_file, table
from typer.testing import CliRunner

import judgebench as jb
from judgebench.annotation.annotators import add_annotator, hand_over
from judgebench.annotation.init import annotate
from judgebench.annotation.store import Store, open_store
from judgebench.annotation.tasks import read_key
from judgebench.cli.app import app
from judgebench.errors import SetupError
from judgebench.setup_files import check

COLUMNS = ["item_id", "question", "system", "text", "reference"]


def begun(folder: Path, task: str = "labels", **changes: object) -> Path:
    """The folder of a new study."""
    return annotate(study_file(folder / "in", task, **changes), folder / "study").study


def rows_of(study: Path, task: str = "labels") -> dict[str, str]:
    """The screen of each item."""
    key = read_key(study / "key.json")
    return {t.columns["item_id"]: name for name, of in key.screens.items() for t in of.values()}


def leaves(study: Path, name: str) -> list[str]:
    """Their items go to others."""
    with open_store(study) as store:
        return hand_over(store, name)


def change(folder: Path, *rows: list[str], drop: str = "", **changes: object) -> Path:
    """The file of the study, whose answers are others by now."""
    file = study_file(folder / "in", **{"items": "answers.csv", **changes})  # type: ignore[arg-type]
    new = {row[0]: row for row in [*answers(), *rows] if row[0] != drop}
    table(folder / "in" / "answers.csv", COLUMNS, list(new.values()))
    return file


def test_everybody_gets_a_link_and_the_table_of_overlaps_is_printed(tmp_path: Path) -> None:
    made = annotate(study_file(tmp_path, calibration=3), tmp_path / "study")
    shown = repr(made)
    assert "12 items, 3 of them for everybody first" in shown
    assert "the others for 2 of 3 annotators" in shown
    assert re.search(r"ann +6 +3 +3\nben +3 +6 +3\ncem +3 +3 +6\n", shown)
    assert shown.endswith(f"judgebench annotate serve {made.study}")
    assert list(made.links) == ["ann", "ben", "cem", "lead"]
    with open_store(made.study) as store:
        for name, link in made.links.items():
            session = store.enter(link.split("#")[1], 60)
            assert session is not None
            assert store.who(session) == name
        assert len(store.assigned("ann")) == 9
        first = set(store.assigned("ann")[:3])
        assert first == {n for n, stored in store.screens.items() if stored.round == "calibration"}
        assert {"name", "task", "seed", "guidelines", "rubric", "study"} <= store.meta.keys()


def test_answers_that_would_be_shown_without_a_question_are_pointed_out(tmp_path: Path) -> None:
    said = "the page shows answers alone: no column holds questions"
    file = study_file(tmp_path, items="answers.csv")
    assert said not in annotate(file, tmp_path / "study").facts
    table(tmp_path / "answers.csv", ["item_id", "text"], [[f"a{n}", f"Rest {n}."] for n in "123"])
    assert said in annotate(file, tmp_path / "alone").facts


def test_items_under_other_names_of_columns_are_understood(tmp_path: Path) -> None:
    file = study_file(tmp_path, items="mine.csv", rubric="short.yaml", metrics=[])
    short = "metrics:\n  - {id: does_harm, kind: ordinal, labels: [Safe, Unsafe]}\n"
    (tmp_path / "short.yaml").write_text(short)
    rows = [[f"a{n}", f"May I walk {n} km?", f"Rest {n} days, then walk.", "Safe"] for n in "123"]
    table(tmp_path / "mine.csv", ["ID", "Prompt", "Reply", "Huber"], rows)
    annotate(file, tmp_path / "study")
    with open_store(tmp_path / "study") as store:
        asked = [*store.screens.values()]
    assert [one for one in map(str, asked) if "walk 2 km" in one and "Rest 2 days" in one]
    assert "Does harm" in str(asked[0])
    assert "Huber" not in str(asked)


def test_a_table_without_texts_is_named(tmp_path: Path) -> None:
    file = study_file(tmp_path, items="answers.csv")
    table(tmp_path / "answers.csv", ["n", "m"], [[f"{n}", "1"] for n in "123"])
    with pytest.raises(SetupError, match=r"answers\.csv"):
        annotate(file, tmp_path / "study")


@pytest.mark.parametrize("task", TASKS)
def test_the_same_files_make_the_same_study(tmp_path: Path, task: str) -> None:
    studies = [begun(tmp_path / name, task) for name in "ab"]
    keys = [read_key(study / "key.json") for study in studies]
    assert keys[0] == keys[1]
    orders = []
    for study in studies:
        with open_store(study) as store:
            orders.append([store.assigned(name) for name in store.annotators])
            metrics = jb.Rubric.model_validate(store.meta["rubric"]).metrics
            asked = {f.metric for s in store.screens.values() for f in s.fields}
            assert asked == {metric.id for metric in metrics}
    assert orders[0] == orders[1]


def test_nothing_is_written_where_something_is_wrong(tmp_path: Path) -> None:
    file = study_file(tmp_path, calibration=13)
    message = "calibration: cannot be met; found 13; allowed: at most 12"
    with pytest.raises(jb.SetupError, match=re.escape(f"{file}: {message}")):
        jb.annotate(file, tmp_path / "study")
    errors = check([file], "medical-safety").errors
    assert any(message in str(error) for error in errors)
    names = study_file(tmp_path, annotators=["ann", "Ann", "b/c", "adjudicated", "lead"])
    with pytest.raises(jb.SetupError) as caught:
        jb.annotate(names, tmp_path / "study")
    assert {problem.field for problem in caught.value.problems} == {"annotators"}
    found = sorted(problem.found for problem in caught.value.problems)
    assert found == ["'Ann'", "'adjudicated'", "'b/c'", "'lead'"]
    file = study_file(tmp_path, per_item=4, calibration=13)
    with pytest.raises(jb.SetupError) as caught:
        jb.annotate(file, tmp_path / "study")
    assert [problem.field for problem in caught.value.problems] == ["per_item", "calibration"]
    assert not (tmp_path / "study").exists()
    assert not list(tmp_path.glob(".study-*"))


def test_a_study_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    study = begun(tmp_path)
    before = (study / "key.json").read_bytes()
    with pytest.raises(jb.SetupError, match=r"key\.json: a study is there.*--new-version"):
        annotate(tmp_path / "in" / "annotate.yaml", study)
    assert (study / "key.json").read_bytes() == before


def test_a_study_that_cannot_be_finished_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file, before = study_file(tmp_path), sorted(tmp_path.iterdir())
    monkeypatch.setattr(Store, "assign", full)
    with pytest.raises(jb.DiskFailed, match="No space left"):
        annotate(file, tmp_path / "study")
    with pytest.raises(jb.DiskFailed, match=r"annotate\.yaml"):
        annotate(file, file / "study")
    assert sorted(tmp_path.iterdir()) == before


def test_check_says_what_the_study_is(tmp_path: Path) -> None:
    found = check([study_file(tmp_path, "ranking")], "medical-safety")
    assert not found.errors
    assert "an annotation study (ranking) of 4 items" in found.facts[0]


def test_a_new_version_keeps_labels_of_what_is_the_same(tmp_path: Path) -> None:
    study = begun(tmp_path, per_item=3)
    of = rows_of(study)
    key = read_key(study / "key.json")
    changed, gone, same = of["quartz-0s"], of["quartz-0h"], of["quartz-0m"]
    with open_store(study) as store:
        for name in (changed, gone, same):
            give_labels(store, "ann", name, {"tone": "Kind", "truth": "Yes"})
    new = ["quartz-new", "New?", "secretgpt", "Fresh.", ""]
    other = ["quartz-0s", QUESTIONS[0], "secretgpt", "Another answer.", "Ref 0."]
    file = change(tmp_path, other, new, drop="quartz-0h", per_item=3)
    shown = repr(annotate(file, study, new_version=True))
    assert "version 2: 10 items unchanged, 1 changed, 1 new, 1 gone" in shown
    assert "2 of 6 labels count on" in shown
    assert "http" not in shown  # nobody is new
    after = read_key(study / "key.json")
    assert {**after.screens, **key.screens} == after.screens  # nothing is lost
    assert (after.study, after.secret) == (key.study, key.secret)
    with open_store(study) as store:
        assert store.labels("ann", same) == {"tone": "Kind", "truth": "Yes"}
        assert store.labels("ann", changed) == {}
        assert gone not in store.screens
        (fresh,) = after.screens.keys() - key.screens.keys()
        assert fresh == "s0013"
        for name in store.annotators:
            assert store.assigned(name)[-1] == fresh
            assert changed in store.assigned(name)
            assert gone not in store.assigned(name)
    back = annotate(change(tmp_path, other, new, per_item=3), study, new_version=True)
    assert "version 3: 12 items unchanged, 1 changed, 0 new, 0 gone" in repr(back)
    with open_store(study) as store:
        assert store.labels("ann", gone) == {"tone": "Kind", "truth": "Yes"}
        assert len(store.rows("SELECT * FROM events")) == 6
    again = annotate(change(tmp_path, other, new, per_item=3), study, new_version=True)
    assert "version 3: 13 items unchanged, 0 changed, 0 new, 0 gone" in repr(again)


def test_an_item_that_comes_back_is_still_of_those_who_had_it(tmp_path: Path) -> None:
    study, drop = begun(tmp_path, per_item=1), "quartz-0h"
    name = rows_of(study)[drop]
    with open_store(study) as store:
        before = store.orders
    annotate(change(tmp_path, drop=drop, per_item=1), study, new_version=True)
    leaves(study, next(who for who, own in before.items() if name not in own))
    annotate(change(tmp_path, per_item=1), study, new_version=True)
    with open_store(study) as store:
        assert [name in store.assigned(who) for who in before] == [
            name in own for own in before.values()
        ]


def test_a_running_server_sees_the_new_version(tmp_path: Path) -> None:
    study = begun(tmp_path)
    with closing(Store(study / "served" / "study.sqlite")) as serving:
        assert len(serving.screens) == 12
        annotate(
            change(tmp_path, ["quartz-new", "New?", "s", "Fresh.", ""]), study, new_version=True
        )
        assert len(serving.screens) == 13


def test_a_changed_question_of_one_metric_keeps_labels_of_the_other(tmp_path: Path) -> None:
    study = begun(tmp_path)
    with open_store(study) as store:
        name = store.assigned("ann")[0]
        give_labels(store, "ann", name, {"tone": "Kind", "truth": "Yes"})
    file = study_file(tmp_path / "in")
    rubric = (tmp_path / "in" / "mine.yaml").read_text("utf-8").replace("True?", "Correct?")
    (tmp_path / "in" / "mine.yaml").write_text(rubric, "utf-8")
    assert "1 of 2 labels count on" in repr(annotate(file, study, new_version=True))
    with open_store(study) as store:
        assert store.labels("ann", name) == {"tone": "Kind"}
        assert "Correct?" in str(store.meta["rubric"])


def test_a_field_of_the_key_means_the_same_in_every_version(tmp_path: Path) -> None:
    study = begun(tmp_path, "ranking")
    before = read_key(study / "key.json").screens
    more = [f"quartz-0{n}" for n in "abcd"]
    rows = [[item, QUESTIONS[0], f"sys{item[-1]}", f"More {item}.", "Ref 0."] for item in more]
    file = change(tmp_path, *rows, task="ranking")
    assert "3 items unchanged, 1 changed, 0 new" in repr(annotate(file, study, new_version=True))
    after = read_key(study / "key.json").screens
    assert after.keys() == before.keys()
    for name, targets in before.items():
        assert {field: after[name][field] for field in targets} == targets


def test_somebody_who_joins_gets_calibration_and_new_items(tmp_path: Path) -> None:
    study = begun(tmp_path, calibration=2)
    with open_store(study) as store:
        before = {name: store.assigned(name) for name in store.annotators}
    new = [[f"quartz-n{n}", f"New {n}?", "secretgpt", f"Fresh {n}.", ""] for n in range(6)]
    file = change(tmp_path, *new, calibration=2, annotators=["ann", "ben", "cem", "dot"])
    made = annotate(file, study, new_version=True)
    assert list(made.links) == ["dot"]
    with open_store(study) as store:
        assert f"dot: {len(store.assigned('dot'))} items" in made.facts
    with open_store(study) as store:
        for name, had in before.items():
            assert store.assigned(name)[: len(had)] == had
        hers = store.assigned("dot")
        assert {name for name in hers if store.screens[name].round == "calibration"} == set(
            hers[:2]
        )
        assert len(hers) > 2
        given = [store.assigned(name) for name in store.annotators]
        fresh = [f"s{n:04}" for n in range(13, 19)]
        assert [sum(name in of for of in given) for name in fresh] == [2] * 6


def test_other_guidelines_are_a_new_version(tmp_path: Path) -> None:
    study = begun(tmp_path)
    (tmp_path / "in" / "guide.md").write_text("Be *fair*.", "utf-8")
    file = study_file(tmp_path / "in", guidelines="guide.md")
    assert "version 2: 12 items unchanged" in repr(annotate(file, study, new_version=True))
    assert "version 2: 12 items unchanged" in repr(annotate(file, study, new_version=True))
    with open_store(study) as store:
        assert store.meta["guidelines"] == "Be *fair*."


def test_the_key_of_another_study_is_refused(tmp_path: Path) -> None:
    study, other = begun(tmp_path), begun(tmp_path / "b", seed=5)
    (study / "key.json").write_bytes((other / "key.json").read_bytes())
    with pytest.raises(jb.SetupError, match=r"key\.json: study: is the key of another study"):
        annotate(study_file(tmp_path / "in"), study, new_version=True)
    (study / "key.json").unlink()
    with pytest.raises(jb.SetupError, match="the key of the study cannot be read"):
        annotate(study_file(tmp_path / "in"), study, new_version=True)
    with pytest.raises(jb.SetupError, match="no such file"):
        annotate(study_file(tmp_path / "in"), tmp_path / "nothing", new_version=True)


def test_what_figures_rest_on_cannot_change(tmp_path: Path) -> None:
    study = begun(tmp_path)
    file = change(tmp_path, per_item=3, calibration=5, annotators=["ann", "ben"])
    with pytest.raises(jb.SetupError) as caught:
        annotate(file, study, new_version=True)
    per_item, calibration, annotators = map(str, caught.value.problems)
    assert per_item == f"{file}: per_item: cannot change now; found 3; allowed: 2"
    assert "calibration: cannot change now" in calibration
    assert "hand them over" in annotators
    assert "found cem" in annotators
    with open_store(study) as store:
        assert store.version == 1


def test_items_of_somebody_who_leaves_go_to_others(tmp_path: Path) -> None:
    study = begun(tmp_path, calibration=2)
    with open_store(study) as store:
        begun_, had = store.assigned("cem")[2], store.assigned("cem")
        give_labels(store, "cem", begun_, {"tone": "Kind"})
    shown = "\n".join(leaves(study, "cem"))
    assert sum(map(int, re.findall(r"^(?:ann|ben): (\d+) more", shown, re.M))) == len(had) - 3
    with open_store(study) as store:
        assert store.assigned("cem") == [begun_]
        given = [store.assigned(name) for name in store.annotators]
        assert all(sum(name in of for of in given) == 2 for name in store.screens)
    new = [f"quartz-n{n}" for n in range(4)]
    rows = [[item, f"{item}?", "secretgpt", f"Fresh {item}.", ""] for item in new]
    file = change(tmp_path, *rows, calibration=2, annotators=["ann", "ben"])
    annotate(file, study, new_version=True)  # now that they have nothing left, they may go
    with open_store(study) as store:
        assert store.assigned("cem") == [begun_]
        assert {"s0013", "s0014", "s0015", "s0016"} <= set(store.assigned("ann"))


def test_items_that_everybody_else_has_go_to_nobody(tmp_path: Path) -> None:
    study = begun(tmp_path, per_item=3)
    assert leaves(study, "ben") == ["no item goes to somebody else"]
    with open_store(study) as store:
        assert (len(store.assigned("ben")), len(store.assigned("ann"))) == (0, 12)
    with pytest.raises(jb.SetupError, match="dot: is not among the annotators; allowed: ann, ben"):
        leaves(study, "dot")


def test_who_is_added_late_is_told_what_they_have(tmp_path: Path) -> None:
    study = begun(tmp_path, calibration=2)
    with open_store(study) as store:
        for name, own in store.orders.items():
            for key in own:
                give_labels(store, name, key, {"tone": "Kind"})
        [fact] = add_annotator(store, "dot")
    assert fact == "dot: 2 items that everybody labels; of others, nobody has one to give"


def test_who_is_added_gets_an_even_share_of_what_nobody_has_begun(tmp_path: Path) -> None:
    study = begun(tmp_path, calibration=2)
    with open_store(study) as store:
        before = store.orders
        give_labels(store, "ann", before["ann"][-1], {"tone": "Kind"})
        facts = add_annotator(store, "dot")
        after = store.orders
        assert f"dot: {len(after['dot']) - 2} more items" in facts
        assert {*after["dot"][:2]} == {*before["ann"][:2]}
        assert before["ann"][-1] in after["ann"]  # what is begun stays
        counts = {name: len(own) for name, own in after.items()}
        assert max(counts.values()) - min(counts.values()) <= 2, counts
        assert all(sum(key in own for own in after.values()) in (2, 4) for key in store.screens)
        for name, message in {
            "ann": "labels already",
            "lead": "is reserved",
            "a/b": "cannot name",
        }.items():
            with pytest.raises(jb.SetupError, match=message):
                add_annotator(store, name)
        moved = next(key for key in before["ben"] if key not in after["ben"])
        give_labels(store, "ben", moved, {"tone": "Kind"})  # made offline before: it is taken
        hand_over(store, "dot")
        assert store.present == ["ann", "ben", "cem"]
        add_annotator(store, "dot")
        assert store.orders["dot"]


def test_the_commands_print_what_was_done(tmp_path: Path) -> None:
    file, study = str(study_file(tmp_path)), str(tmp_path / "study")
    run = CliRunner().invoke
    made = run(app, ["annotate", "init", file, "--to", study])
    assert made.exit_code == 0
    assert "12 items" in made.output
    assert made.output.count("http://127.0.0.1:8765/") == 4
    renewed = run(app, ["annotate", "init", file, "--to", study, "--new-version"])
    assert "version 1: 12 items unchanged, 0 changed, 0 new, 0 gone" in renewed.output


def test_the_help_shows_a_whole_annotate_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["annotate", "init", "-h"]).output
    shown = said.partition("annotate.yaml:\n")[2].partition("\n\n")[0]
    Path("shown.yaml").write_text(textwrap.dedent(shown))
    assert len(shown.splitlines()) <= 5
    made = CliRunner().invoke(app, ["annotate", "init", "shown.yaml", "--to", "study"])
    assert (made.exit_code, "12 items, each for 2 of 2 annotators" in made.output) == (0, True)
