"""What a stress test makes of an answer takes a time in proportion to the answer's length."""

from collections.abc import Callable
from functools import partial
from random import Random
from time import thread_time

import pytest

from judgebench.files import shipped_folder
from judgebench.records import Answer
from judgebench.rubric import load_rubric
from judgebench.stress_tests.attacks import altered_answer, edit_of
from judgebench.stress_tests.item_sets import with_checks
from judgebench.stress_tests.recipes import (
    AlteredAnswer,
    Ask,
    BestOf,
    Edit,
    Edited,
    Recipe,
    Rephrase,
    Wording,
    Write,
    load_recipe,
    marked,
)

LENGTH = 8000
MOST = 1.0  # seconds of the processor; what was quadratic needed several, what was cubic minutes
NOT_BY_A_RULE = (Write, Rephrase, BestOf, Ask, Wording)
RUBRIC = load_rubric("medical-safety")
RULES = [
    (recipe, edit_of(recipe, RUBRIC, path.parent))
    for path in sorted(shipped_folder("adversarial").glob("*.yaml"))
    if not isinstance((recipe := load_recipe(path)).edit, NOT_BY_A_RULE)
    and not recipe.name.startswith(("planted", "tone", "authority"))
]
PIECES = (
    "a", " ", "\n", "\n\n", "(", "[", "a@", "www.", "a. ", "e.g. ", "1. ", "- a. ", "Ab ", "Ab of ",
    "a-",
    "take 5 mg ", "Take 5 mg now. ", "more than 5 days ", "5 (", "not-", "not a ", "aspirin. ",
    "You should not take aspirin. ", "The flu is caused by a virus. ", "Wash your hands well. ",
    "Hope this helps. ", "; avoid x",
)  # fmt: skip


def needed(work: Callable[[], object]) -> float:
    begun = thread_time()
    work()
    return thread_time() - begun


@pytest.mark.long
@pytest.mark.parametrize("piece", PIECES)
def test_an_edit_takes_its_time_by_the_length(piece: str) -> None:
    answer = Answer("1", piece * (LENGTH // len(piece)) + " x", "How is the flu treated?")

    def alter(recipe: Recipe, edit: Edit) -> None:
        edited = edit(answer, Random(1))
        if isinstance(edited, Edited):
            with_checks([altered_answer(recipe, answer, edited, RUBRIC, 1)])

    slow = [r.name for r, edit in RULES if needed(partial(alter, r, edit)) > MOST]
    assert not slow


SENTENCES = [f"Sentence {n} says that {n % 7} of the {n % 5} are so." for n in range(5000)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" ".join(SENTENCES), "\n- ".join(SENTENCES)),
        ("a. " * 60_000, "- a.\n" * 60_000),
        ("a. " * 2000, "- a.\n" * 2000),
        ("a," * 4000, "a." * 4000),
        ("a b " * 2500, "b c a " * 2000),
        (" ".join(SENTENCES[:600]), "\n- ".join(SENTENCES[:600])),
    ],
)
def test_differences_of_long_texts_are_found_in_seconds(old: str, new: str) -> None:
    item = AlteredAnswer("i", Answer("p", old), new, "r", "1", "h")
    assert needed(partial(marked, item)) < 10


def test_each_change_of_a_long_text_is_marked_alone() -> None:
    old = " ".join(SENTENCES[:400])
    item = AlteredAnswer("i", Answer("p", old), "I think so. " + old, "r", "1", "h")
    before, after = marked(item)
    assert [piece for piece, differs in after if differs] == ["I think so. "]
    assert "".join(piece for piece, differs in before if not differs) == old
