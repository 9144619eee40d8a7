from __future__ import annotations

from typing import Any

import pytest

from judgebench.ranking.proxy.task_file import load_reader
from judgebench.shipped import shipped_folder

READER: Any = load_reader(shipped_folder("tasks") / "casimedicos.py")
names_a_place, neutralise = READER.names_a_place, READER.neutralise

OPTIONS = (
    "Acute otitis media.", "Chest X-ray.", "Cushing's syndrome.", "Mastoiditis.", "Waiting.",
)  # fmt: skip


@pytest.mark.parametrize(
    "sentence",
    [
        "The correct answer is 3.",
        "The correct answer is: 3.",
        "I think the correct answer is 4.",
        "Therefore, the answer is 1.",
        "Correct answer, 3.",
        "Answer 4 correct.",
        "So the correct option is option 2.",
        "Option 2: the correct one.",
        "Therefore, option 2 is correct.",
    ],
)
def test_a_sentence_that_says_only_which_option_is_right_is_left_out(sentence: str) -> None:
    assert names_a_place(sentence, 5)
    assert neutralise(f"There is pus.\n{sentence}\nNo fever.", OPTIONS) == "There is pus. No fever."


@pytest.mark.parametrize(
    ("sentence", "rewritten"),
    [
        ("Answers 1, 2 and 5 are fine.", "Acute otitis media, chest X-ray and waiting are fine."),
        (
            "We rule out options 2 to 4.",
            "We rule out chest X-ray, Cushing's syndrome and mastoiditis.",
        ),
        (
            "The correct answer is 4, since it hurts.",
            "The correct answer is mastoiditis, since it hurts.",
        ),
        (
            "There is no swelling, so we discard 4.",
            "There is no swelling, so we discard mastoiditis.",
        ),
        ("The bone is intact (answer 4 is false).", "The bone is intact (mastoiditis is false)."),
        ("The bone is intact (wrong answer 4).", "The bone is intact (mastoiditis is wrong)."),
        ("The bone is intact (4 false).", "The bone is intact (mastoiditis is false)."),
        (
            "It is not mastoiditis (4), as there is no pain.",
            "It is not mastoiditis, as there is no pain.",
        ),
        ("The answer is 4, mastoiditis.", "The answer is mastoiditis."),
        ("1 and 4 are not even close.", "Acute otitis media and mastoiditis are not even close."),
        (
            "The 1 should not be, for it is mild.",
            "Acute otitis media should not be, for it is mild.",
        ),
        ("4: There is no swelling.", "Mastoiditis: There is no swelling."),
        (
            "The doubt is between 1 and 4.",
            "The doubt is between acute otitis media and mastoiditis.",
        ),
        ("Number 3 fits the picture.", "Cushing's syndrome fits the picture."),
        ("Answers 2,4 and 5 fit.", "Chest X-ray, mastoiditis and waiting fit."),
        ("The fourth is more complete.", "Mastoiditis is more complete."),
    ],
)
def test_the_number_of_an_option_becomes_its_text(sentence: str, rewritten: str) -> None:
    assert neutralise(sentence, OPTIONS) == rewritten
    assert names_a_place(sentence, 5)
    assert not names_a_place(rewritten, 5)


@pytest.mark.parametrize(
    "sentence",
    [
        "The patient has type 2 diabetes mellitus.",
        "Factor 5 is low and factor 2 is normal.",
        "He has been ill for 3 weeks and 2 days.",
        "A dose of 4 mg every 2 h is usual.",
        "Stage 5 is the last stage.",
        "Pauses are not longer than 3 seconds.",
        "Any of the 4 options can be the cause.",
        "Ocular response 3 out of 4 was seen.",
        "Growth is 2.5 cm in 1 to 2 years.",
        "In 2014 a score of 5/10 was found.",
        "Cortisol (5 mg) and DM-2 are not linked.",
        "Types 1 and 2 are rare.",
        "Receptors 5-HT4 and HER2 are not found.",
        "why not start in lower case...",
    ],
)
def test_other_numbers_stay(sentence: str) -> None:
    assert neutralise(sentence, OPTIONS) == sentence
    assert not names_a_place(sentence, 5)


def test_a_place_beyond_the_last_option_is_no_place() -> None:
    assert neutralise("Answer 5 is far away.", OPTIONS[:4]) == "Answer 5 is far away."


def test_a_capital_stays_where_the_text_uses_it_as_a_name() -> None:
    options = ("Dengue fever.", "Rash.")
    text = "It looks like Dengue to me. Answer 1 fits."
    assert neutralise(text, options) == "It looks like Dengue to me. Dengue fever fits."
    assert neutralise("We prefer option 2 here.", options) == "We prefer rash here."


def test_nothing_may_be_left() -> None:
    assert neutralise("The correct answer is 2.", OPTIONS) == ""
