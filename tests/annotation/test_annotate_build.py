"""Items as blind screens, and the key to what is behind them."""

from collections import Counter
from pathlib import Path

import pytest
import yaml
from built_case import HIDDEN, QUESTIONS, SYSTEMS, TASKS, answers, study_file, table

from judgebench.annotation.config import load_setup
from judgebench.annotation.init import annotate
from judgebench.annotation.screens import Screen, ScreenField
from judgebench.annotation.tasks import Built, build, item_of, secret_of
from judgebench.data.load import load_data
from judgebench.errors import SetupError
from judgebench.rubric import load_rubric


def built(folder: Path, task: str = "labels", **changes: object) -> list[Built]:
    setup = load_setup(study_file(folder, task, **changes))
    return build(setup, secret_of(setup))


def values(field: ScreenField) -> list[str]:
    return [option.value for option in field.options]


def texts(screen: Screen) -> list[tuple[str, str]]:
    return [(section.heading, section.text) for section in screen.sections]


@pytest.mark.parametrize("task", TASKS)
def test_what_the_server_opens_tells_nothing_of_the_data(tmp_path: Path, task: str) -> None:
    made = annotate(study_file(tmp_path, task), tmp_path / "study")
    served = b"".join(p.read_bytes() for p in (made.study / "served").rglob("*") if p.is_file())
    assert b"Answer 0" in served
    for name in HIDDEN:
        assert name.encode() not in served
    key = made.study / "key.json"
    assert any(name in key.read_text("utf-8") for name in HIDDEN)
    assert key.stat().st_mode & 0o777 == 0o600


def test_labels_ask_every_metric_of_every_answer(tmp_path: Path) -> None:
    found = built(tmp_path)
    assert len(found) == len(answers())
    one = next(b for b in found if item_of(b.targets)[-1] == "quartz-1h")
    assert texts(one.screen) == [
        ("Question", "Must I fast?"), ("Reference", "Ref 1."), ("Answer", "Answer 1a to you."),
    ]  # fmt: skip
    tone, truth = one.screen.fields
    assert (tone.key, truth.key) == ("tone", "truth")
    assert values(tone) == ["Kind", "Curt", "Rude", "No idea"]  # what gives no grade comes last
    assert tone.options[0].about == "as to a friend"
    assert one.targets["tone"].columns == {
        "item_id": "quartz-1h", "group": "Must I fast?", "system": "hiddenllama",
    }  # fmt: skip
    assert (one.question, one.systems) == ("Must I fast?", "hiddenllama")


def test_the_chance_of_a_drawn_item_goes_with_its_labels(tmp_path: Path) -> None:
    study_file(tmp_path)
    rows = [[f"a{n}", f"Q{n}?", f"Text {n}.", f"0.{n}"] for n in (2, 5)]
    table(tmp_path / "drawn.csv", ["item_id", "question", "text", "probability"], rows)
    found = [one.targets["tone"].columns for one in built(tmp_path, items="drawn.csv")]
    assert {(of["item_id"], of["probability"]) for of in found} == {("a2", "0.2"), ("a5", "0.5")}


def test_the_order_of_screens_and_texts_is_not_that_of_the_data(tmp_path: Path) -> None:
    found = built(tmp_path)
    in_file = [row[0] for row in answers()]
    order = [item_of(one.targets)[-1] for one in found]
    assert sorted(order) == sorted(in_file)
    assert order != in_file
    assert order == [item_of(one.targets)[-1] for one in built(tmp_path)]
    assert order != [item_of(one.targets)[-1] for one in built(tmp_path, seed=1)]
    questions = [f"Question {n}?" for n in range(60)]
    table(tmp_path / "many.csv", ["item_id", "question", "system", "text"],
          [row[:4] for row in answers(questions)])  # fmt: skip
    ranked = load_setup(study_file(tmp_path, "ranking", items="many.csv"))
    first = Counter(
        next(iter(one.targets.values())).columns["system"]
        for one in build(ranked, secret_of(ranked))
    )
    assert set(first) == set(SYSTEMS)
    assert min(first.values()) >= 10


def test_a_ranking_shows_all_answers_to_a_question(tmp_path: Path) -> None:
    found = built(tmp_path, "ranking")
    assert sorted(one.question for one in found) == sorted(QUESTIONS)
    for one in found:
        shown = {s.slot: s.text for s in one.screen.sections if s.slot is not None}
        assert sorted(shown) == [0, 1, 2]
        for field in one.screen.fields:
            columns = one.targets[field.key].columns
            assert columns["task"] == "demo"
            assert columns["item_id"] == one.question
            place = QUESTIONS.index(one.question)
            assert field.slot is not None
            assert shown[field.slot] == f"Answer {place}{columns['system'][-1]} to you."
            assert values(field) == [*"12345"]
            assert field.options[4].text == "5 (clearly wrong)"


def test_answers_without_a_system_are_ranked_by_their_ids(tmp_path: Path) -> None:
    study_file(tmp_path)
    table(tmp_path / "plain.csv", ["item_id", "question", "text"],
          [["a", "Q", "One."], ["b", "Q", "Two."]])  # fmt: skip
    setup = load_setup(study_file(tmp_path, "ranking", items="plain.csv"))
    (one,) = build(setup, secret_of(setup))
    assert sorted(t.columns["system"] for t in one.targets.values()) == ["a", "b"]


def read_back(folder: Path, found: list[Built], *beside: str) -> dict[frozenset[str], str]:
    """Of each pair, by the texts of its responses, the one that ann prefers as the data are read
    with a table in which she always prefers what stands in slot 0."""
    rows = []
    for one in found:
        (target,) = one.targets.values()
        rows.append([*target.columns.values(), "ann", target.labels.get("first", "first")])
    table(folder / "out.csv", [*target.columns, "annotator", "preference"], rows)
    files = [folder / name for name in ("answers.csv", *beside, "out.csv")]
    data = load_data(files, load_rubric("preference"))
    pairs = {row.item_id: row for row in data.answers if row.kind == "pair"}
    assert len(pairs) == len(found)  # and none of them under another id
    chosen = {}
    for label in data.labels:
        if label.annotator == "ann":
            texts = [part.text for part in pairs[label.item_id].responses]
            chosen[frozenset(texts)] = texts[0 if label.label == "first" else 1]
    return chosen


@pytest.mark.parametrize("seed", range(4))
def test_a_preference_is_exported_as_the_pair_of_the_data(tmp_path: Path, seed: int) -> None:
    """Whoever prefers a text prefers, read back, the response that it is."""
    found = built(tmp_path, "preference", seed=seed)
    assert len(found) == 12
    shown = [[s.text for s in one.screen.sections if s.slot is not None] for one in found]
    assert read_back(tmp_path, found) == {frozenset(texts): texts[0] for texts in shown}
    for one in found:
        ((field,), (target,)) = one.screen.fields, one.targets.values()
        assert field.prefers
        assert values(field) == ["first", "second", "tie"]
        assert target.labels.get("tie", "tie") == "tie"
    assert 1 <= sum(bool(t.labels) for one in found for t in one.targets.values()) <= 11


def test_about_half_of_the_pairs_are_swapped(tmp_path: Path) -> None:
    study_file(tmp_path)
    rows = [row[:4] for row in answers([f"Question {n}?" for n in range(100)])]
    table(tmp_path / "many.csv", ["item_id", "question", "system", "text"], rows)
    found = built(tmp_path, "preference", items="many.csv")
    swapped = sum(bool(target.labels) for one in found for target in one.targets.values())
    assert len(found) == 300
    assert 110 <= swapped <= 190


def test_pairs_that_people_compared_by_system_are_exported_by_system(tmp_path: Path) -> None:
    study_file(tmp_path)
    votes = [[q, SYSTEMS[0], SYSTEMS[1], "bob", "first"] for q in QUESTIONS]
    columns = ["item_id", "model_a", "model_b", "annotator", "preference"]
    table(tmp_path / "votes.csv", columns, votes)
    found = built(tmp_path, "preference", items=["answers.csv", "votes.csv"], pairs=None)
    assert len(found) == 4
    shown = [[s.text for s in one.screen.sections if s.slot is not None] for one in found]
    wanted = {frozenset(texts): texts[0] for texts in shown}
    assert read_back(tmp_path, found, "votes.csv") == wanted


def test_criteria_of_an_answer_are_on_one_screen(tmp_path: Path) -> None:
    found = built(tmp_path, "criteria")
    assert len(found) == len(answers())
    for one in found:
        assert [field.title for field in one.screen.fields] == ["Names a dose", "Warns"]
        assert {field.question for field in one.screen.fields} == {
            "Does the answer meet the criterion?"
        }
        assert len({t.columns["item_id"] for t in one.targets.values()}) == 1
        names = [one.targets[field.key].columns["criterion"] for field in one.screen.fields]
        assert names == ["quartz-x", "quartz-y"]


def test_a_conversation_is_shown_turn_by_turn(tmp_path: Path) -> None:
    chat = '[{"role": "user", "content": "Hi\\u2028"}, {"role": "assistant", "content": "Yes?"}]'
    study_file(tmp_path)
    table(tmp_path / "chats.csv", ["id", "chat"], [["c1", chat]])
    columns = {"id": "item", "chat": "messages"}
    for turns, headings in {"last": ["User", "Answer"], "whole": ["User", "Assistant"]}.items():
        layout = {"tables": [{"file": "chats.csv", "turns": turns, "columns": columns}]}
        (tmp_path / "chats.yaml").write_text(yaml.safe_dump(layout), "utf-8")
        (one,) = built(tmp_path, items="chats.yaml")
        assert [heading for heading, _ in texts(one.screen)] == headings
        assert one.screen.sections[0].text == "Hi\u2028"  # texts stay as they are


BAD = {
    "one answer": ("ranking", {}, [["a", "Q", "s", "Text."]], "items.*1 answers.*'Q'.*2 to 9"),
    "many": (
        "ranking", {}, [[f"i{n}", "Q", f"s{n}", f"Text {n}."] for n in range(10)],
        "items: a question with 10 answers",
    ),
    "no metric": ("labels", {"rubric": "criteria"}, [], "holds? none|hold none"),
    "other metric": (
        "preference", {"rubric": "mine.yaml", "pairs": None}, [],
        "metrics: the task preference needs metrics of pairs; found tone, truth",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_no_screen_can_show_is_reported_with_file_and_field(tmp_path: Path, name: str) -> None:
    task, changes, rows, message = BAD[name]
    study_file(tmp_path)
    table(tmp_path / "bad.csv", ["item_id", "question", "system", "text"], rows or [
        [f"x{n}", QUESTIONS[0], f"s{n}", f"Text {n}."] for n in range(3)])  # fmt: skip
    with pytest.raises(SetupError, match=message) as caught:
        built(tmp_path, task, items="bad.csv", **changes)
    assert all(problem.file or not problem.field for problem in caught.value.problems)


def test_all_items_that_cannot_be_shown_are_reported_together(tmp_path: Path) -> None:
    study_file(tmp_path)
    table(tmp_path / "some.csv", ["item_id", "question", "system", "text"], [
        ["a", "Q1", "s", "T."], ["b", "Q2", "s", "T."]])  # fmt: skip
    with pytest.raises(SetupError) as caught:
        built(tmp_path, "ranking", items="some.csv")
    assert [problem.found for problem in caught.value.problems] == ["'Q1'", "'Q2'"]
