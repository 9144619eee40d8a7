"""The passages of a corpus, found for a question."""

from pathlib import Path

from judgebench.judges.retrieval import Corpus, Library

LONG = "A tick is pulled out with fine tweezers, straight up and without a twist of the hand. Wash."


def library(*texts: str, characters: int = 400) -> Library:
    return Library(Corpus(texts), "words", characters, Path("unused"))


def test_what_was_shown_is_not_shown_again() -> None:
    held = library("Iron is in beans.", "Iron makes blood.", "Flu is a fever.")
    first = held.find("iron", 1)
    second = held.find("iron", 1, first)
    assert {*first, *second} == {"Iron is in beans.", "Iron makes blood."}
    assert held.find("iron", 1, {*first, *second}) == ()


def test_a_question_without_a_word_finds_nothing() -> None:
    held = library("Iron is in beans.")
    assert held.find("", 3) == held.find(" ?! …", 3) == ()


def test_passages_are_cut_between_words_and_each_is_there_once() -> None:
    held = library(LONG, LONG + " ", characters=50)
    found = held.find("tick tweezers twist hand wash", 9)
    assert all(len(passage) <= 50 for passage in found)
    assert sorted(" ".join(found).split()) == sorted(LONG.split())


def test_the_description_changes_with_corpus_and_characters() -> None:
    about = library("a b", "c").describe()
    assert about == library("a b", "c").describe()
    assert about["embedder"] == {"name": "words"}
    others = [library("a b").describe(), library("a b", "c", characters=100).describe()]
    assert about not in others


def test_a_closed_library_opens_again() -> None:
    held = library("Iron is in beans.")
    first = held.find("iron", 1)
    held.close()
    assert held.find("iron", 1) == first
