"""Questions with options are read from any table, and rules say which cannot be asked openly."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.errors import SetupError
from judgebench.features import FEATURES
from judgebench.scorers.open_questions import ExamQuestion, negative_term, read_questions, unfit

of_tasks = pytest.mark.skipif("ranking" not in FEATURES, reason="needs the feature `ranking`")


def frame(**columns: list[object]) -> pd.DataFrame:
    base = {"question": ["Q?"], "option_1": ["Liver"], "option_2": ["Lung"], "key": ["1"]}
    return pd.DataFrame({**base, **columns})


@pytest.mark.parametrize(
    ("key", "right"),
    [("1", "Liver"), ("2", "Lung"), ("0", "Liver"), ("b", "Lung"), ("Lung", "Lung")],
)
def test_a_key_is_a_number_a_letter_or_the_text(key: str, right: str) -> None:
    (one,) = read_questions(frame(key=[key]))
    assert (one.reference, one.item_id, one.group) == (right, "row-2", "row-2")
    assert one.closed["options"] == "A. Liver\nB. Lung"


def test_all_keys_of_a_column_are_read_in_one_way() -> None:
    """Options may be numbers themselves, and letters."""
    numbers = pd.DataFrame({"question": ["Q?"] * 3, "key": ["2", "1", "2"],
                            "option_1": ["1", "2", "x"], "option_2": ["3", "4", "y"]})  # fmt: skip
    assert [one.reference for one in read_questions(numbers)] == ["3", "2", "y"]
    texts = numbers.assign(key=["3", "2", "x"])
    assert [one.reference for one in read_questions(texts)] == ["3", "2", "x"]


def test_columns_may_be_called_otherwise_and_options_may_be_fewer(tmp_path: Path) -> None:
    path = tmp_path / "careqa.csv"
    path.write_text("exam,stem,op1,op2,op3,cop\nx,Q1?,a,b,c,3\nx,Q2?,a,b,,2\n")
    called = {"question": "stem", "key": "cop", "group": "exam"}
    called |= {f"option_{n}": f"op{n}" for n in (1, 2, 3)}
    found = read_questions(path, called)
    assert [(one.reference, one.options, one.group) for one in found] == [
        ("c", ("a", "b", "c"), "x"), ("b", ("a", "b"), "x"),
    ]  # fmt: skip


def test_everything_wrong_with_a_table_is_said_together(tmp_path: Path) -> None:
    path = tmp_path / "exam.csv"
    rows = ["i,Q?,a,b,3", "i,Q?,a,b,1", "j,Q?,2,1,1", "k,Q?,a,,2"]
    path.write_text("item_id,question,option_1,option_2,key\n" + "\n".join(rows) + "\n")
    with pytest.raises(SetupError) as caught:
        read_questions(path)
    assert str(caught.value).replace(str(path), "exam.csv").splitlines() == [
        "exam.csv:2: key: names no option; found '3'",
        "exam.csv:5: key: names no option; found '2'",
        "exam.csv: item_id: two questions have this id; found i",
    ]
    with pytest.raises(SetupError, match="cop: the column is missing"):
        read_questions(path, {"key": "cop"})
    path.write_text("question,option_1,option_2,key\n,a,b,1\n")
    with pytest.raises(SetupError, match="question: is blank"):
        read_questions(path)
    path.write_text("question,option_1,key\nQ?,a,1\n")
    with pytest.raises(SetupError, match="needs two columns of options or more"):
        read_questions(path)


@pytest.mark.parametrize(
    ("question", "term"),
    [
        ("Which is FALSE?", "FALSE"), ("Mark the incorrect option:", "incorrect"),
        ("All are signs of gout EXCEPT:", "EXCEPT"), ("Which treatment is NOT indicated?", "NOT"),
        ("Which is not correct? Mark one.", "not correct"),
        ("Which of these is incorrect", "incorrect"),
        ("Which is not indicated?", ""), ("An exceptional case. What is incorrectly said?", ""),
        ("The tests were normal, except for the pulse. What is the diagnosis?", ""),
        ("There were false positives before. What is the diagnosis?", ""),
    ],
)  # fmt: skip
def test_terms_of_negative_stems_are_whole_words(question: str, term: str) -> None:
    assert negative_term(question) == term


@given(
    st.text("aZé0 .?!:;-\n"),
    st.sampled_from(["incorrect", "Except", "false", "NOT", "not correct"]),
)
def test_a_term_in_the_last_sentence_is_always_found(before: str, term: str) -> None:
    assert negative_term(f"{before}\n\nWhich one is {term}: a or b?")


@of_tasks
def test_nine_exam_questions_of_casimedicos_ask_for_what_is_wrong(shared_data: Path) -> None:
    """The terms occur in 20 of them: the other 11 are cases that were normal except one finding."""
    from judgebench.ranking.task_file import load_task

    task = load_task("multiple-choice", data_folder=shared_data)
    found = [
        ExamQuestion(
            item_id=case.item_id, group=case.group, closed_question=case.text,
            options=case.options, reference="",
        )
        for case in task.instances
        if case.version == 0
    ]  # fmt: skip
    assert len(found) == 553
    assert {len(one.options) for one in found} == {4, 5}
    terms = [term for one in found if (term := negative_term(one.closed_question))]
    assert sorted(terms) == ["EXCEPT", *["FALSE"] * 5, *["NOT"] * 3]
    anywhere = [negative_term(one.closed_question.replace(".", ",") + "?") for one in found]
    assert sum(map(bool, anywhere)) == 20


def test_a_rewriting_that_points_to_options_or_tells_the_answer_is_unfit() -> None:
    (liver,) = read_questions(frame(question=["What does the capsule of Glisson cover?"]))
    assert unfit("", liver) == "a rewriting is blank"
    assert unfit("Which of the following does it cover?", liver) == "a rewriting points to options"
    assert unfit("What covers the liver?", liver) == "a rewriting gives the answer away"
    assert unfit("What do you know of living?", liver) == ""
    (told,) = read_questions(frame(question=["Is it the liver or the lung?"]))
    assert unfit("Is it the liver?", told) == ""


@pytest.mark.parametrize("given", ["key", "key=", "=cop"])
@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("score", "openqa", "{file}", "--backend", "x", "--to", "{file}.d"), "--called"),
        (("score", "{file}", "--scorer", "length"), "--role"),
    ],
)
def test_a_role_needs_a_column(call, command, option, given, tmp_path) -> None:
    table = tmp_path / "exam.csv"
    table.write_text("question,option_1,option_2,key\nWhat?,Liver,Lung,1\n")
    words = [word.format(file=table) for word in command]
    code, _, err = call(*words, option, given)
    told = f"{option}: needs two parts with = between them; found {given}"
    assert code != 0
    assert told in " ".join(err.split())
    assert list(tmp_path.iterdir()) == [table]
