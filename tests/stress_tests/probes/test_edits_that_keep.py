import re
from pathlib import Path
from random import Random

import pytest
from edits_case import cdc_answers, reason, text_after
from hypothesis import given
from hypothesis import strategies as st

from judgebench.errors import SetupError
from judgebench.records import Answer
from judgebench.rubric import load_rubric
from judgebench.stress_tests.attacks import edit_of
from judgebench.stress_tests.recipes import (
    Add,
    Edit,
    Edited,
    facts,
    load_list,
    load_recipe,
    mentions,
    word_names,
)
from judgebench.stress_tests.wording import Synonyms, add, bullets, markdown, reword
from judgebench.text import sentences

SAFETY = load_rubric("medical-safety")
NAMES = word_names()
SYNONYMS = load_list("synonyms", Synonyms)
drop_redundant = edit_of(load_recipe("shorten"), SAFETY)
EDITS: dict[str, Edit] = {
    "bullets": bullets,
    "markdown": markdown,
    "drop_redundant": drop_redundant,
    "reword": reword(SYNONYMS),
}
PADDINGS = [
    "verbosity", "tone-confident", "tone-hedged", "greeting", "authority", "authority-citation",
    "bandwagon", "compassion-fade",
]  # fmt: skip
CLAIMING_NOTHING = ["verbosity", "tone-confident", "tone-hedged", "greeting"]

PIECES = [
    "Take 200 mg twice a day for 5 days.", "Do not give it to children under 2 years.",
    "A doctor may begin with a lab test.", "It may occur more often in people with asthma.",
    "Warning signs", "What to do:", "- Rest", "* Drink 8 cups", "  - Sleep", "1. Call someone",
    "2) No antibiotics", "I hope this helps.", "Top of page", "More on: Rest",
    "Rest helps people recover completely.", "In general, rest helps people recover completely.",
    "The temperature is 38.5", "days", "mg", "Never mix it (e.g. with wine).", "**Bold**",
    "E. coli",
]  # fmt: skip
GAPS = st.sampled_from([" ", "\n", "\n\n", "\n   \n  ", "  "])
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.tuples(st.sampled_from(PIECES), GAPS), max_size=10).map(
        lambda pairs: "".join(piece + gap for piece, gap in pairs)
    ),
)


def folded(text: str) -> str:
    """Names that are broken over two lines are names all the same."""
    return " ".join(text.split())


def words_only(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def below_heading(text: str) -> str:
    heading, body = text.split("\n\n", 1)
    assert heading.startswith("# ")
    return body


@pytest.mark.parametrize("name", EDITS)
@given(text=TEXTS, seed=st.integers(0, 99))
def test_numbers_units_and_negations_stay(name: str, text: str, seed: int) -> None:
    found = EDITS[name](Answer("a1", text, "How is it treated?"), Random(seed))
    if isinstance(found, Edited):
        assert facts(found.text) == facts(text)
        assert found.text != text


@given(text=TEXTS)
def test_another_layout_keeps_every_word_in_its_place(text: str) -> None:
    answer = Answer("a1", text)
    listed, marked = bullets(answer, Random(0)), markdown(answer, Random(0))
    if isinstance(listed, Edited):
        assert words_only(listed.text) == words_only(text)
    if isinstance(marked, Edited):
        assert words_only(below_heading(marked.text)) == words_only(text)


@pytest.mark.parametrize("name", EDITS)
def test_real_answers_keep_their_facts_and_names(name: str, shared_data: Path) -> None:
    made = [(a, EDITS[name](a, Random(a.item_id))) for a in cdc_answers(shared_data)]
    found = [(answer, new.text) for answer, new in made if isinstance(new, Edited)]
    assert len(found) > 50
    for answer, text in found:
        both = folded(answer.text + text).lower()
        here = [name for name in NAMES if name.lower() in both]
        assert facts(folded(text), here) == facts(folded(answer.text), here), answer.item_id


def test_sentences_become_bullets() -> None:
    assert text_after(bullets, "Rest well.  Drink\nwater! Why not?") == (
        "- Rest well.\n- Drink water!\n- Why not?"
    )


def test_a_list_stays_below_its_lead_in_and_a_heading_above_its_section() -> None:
    text = (
        "Rest.\n\nAt home\n\nDo not:\n * smoke\n   - at night\n * drink. Not even wine.\n\nBe well."
    )
    assert text_after(bullets, text) == (
        "- Rest.\n\nAt home\n- Do not:\n  - smoke\n    - at night\n  - drink. Not even wine.\n"
        "- Be well."
    )


def test_bullets_find_nothing_in_one_sentence_or_a_list() -> None:
    assert reason(bullets, "Rest well.") == "the text is one sentence"
    assert reason(bullets, "  ") == "the text is one sentence"
    assert reason(bullets, "- Rest.\n- Drink. Eat.") == "the text is a list already"


def test_a_layout_that_tears_a_number_from_its_unit_is_left_alone() -> None:
    assert "a number from its unit" in reason(markdown, "Nobody knows why it is 38.5\n\ndays. Yes.")


def test_markdown_has_a_heading_bold_type_and_lists() -> None:
    text = (
        "Warning signs\n\nSee a doctor. Call first.\n\nTake along:\n * water\n   * cold\n * bread"
    )
    assert text_after(markdown, text, "What are the symptoms of flu?") == (
        "# Symptoms\n\n## Warning signs\n\n**See a doctor.** Call first.\n\nTake along:\n\n"
        "- water\n  - cold\n- bread"
    )


@pytest.mark.parametrize(
    ("question", "heading"),
    [
        ("How to prevent Rabies ?", "Prevention"),
        ("Does treatment of Rabies prevent death?", "Answer"),
        ("", "Answer"),
    ],
)
def test_the_heading_names_the_kind_of_question(question: str, heading: str) -> None:
    assert text_after(markdown, "Rest. Drink.", question).startswith(f"# {heading}\n\n")


def test_markdown_finds_nothing_in_one_sentence_or_in_markdown() -> None:
    assert reason(markdown, "Rest well.") == "the text is one sentence"
    for text in ("# Rest\n\nSleep. Eat.", "Sleep **well**. Eat.", "Eat.\n```\nx\n```"):
        assert reason(markdown, text) == "the text is in Markdown already"


@pytest.mark.parametrize(
    "dropped",
    [
        "I hope this helps.", "Thank you for your question!", "Feel free to ask.", "Top of page.",
        "Please let me know if you have any other questions.",
        "For more information, visit the page on soap.",
    ],
)  # fmt: skip
def test_a_redundant_sentence_is_dropped(dropped: str) -> None:
    kept = "Hands washed thoroughly are safe.", "Clean and washed hands spread fewer bad germs."
    assert text_after(drop_redundant, f"{kept[0]} {kept[1]} {dropped}") == f"{kept[0]} {kept[1]}"
    assert text_after(drop_redundant, f"{kept[0]}\n\n{dropped}\n\n{kept[1]}") == "\n\n".join(kept)


@pytest.mark.parametrize(
    "text",
    [
        "For more information, call. For more information, see a doctor.",
        "Wash your hands.\n1. I hope this helps.",
        "More on: amoxicillin\n\nRest.",
        "More on: 3 days\n\nRest.",
        "Rest. Rest.",
    ],
)
def test_what_says_something_of_its_own_stays(text: str) -> None:
    assert "amoxicillin" in NAMES
    assert reason(drop_redundant, text).startswith("no sentence is a courtesy")


def test_what_the_next_sentence_refers_to_stays() -> None:
    text = "Rest. I hope this helps. {} works."
    assert text_after(drop_redundant, text.format("Water")) == "Rest. Water works."
    assert reason(drop_redundant, text.format("This")).startswith("no sentence is a courtesy")


@given(text=TEXTS, seed=st.integers(0, 99))
def test_one_sentence_is_dropped_and_no_other_is_touched(text: str, seed: int) -> None:
    found = drop_redundant(Answer("a1", text), Random(seed))
    if isinstance(found, Edited):
        before = [sentence.text for sentence in sentences(text)]
        shorter = [before[:i] + before[i + 1 :] for i in range(len(before))]
        assert "".join(found.text.split()) in ["".join("".join(s).split()) for s in shorter]


def test_a_single_sentence_is_never_dropped() -> None:
    assert reason(drop_redundant, "I hope this helps.").startswith("no sentence is a courtesy")


def synonyms(*pairs: tuple[str, str]) -> Synonyms:
    return Synonyms(name="own", version="1", about="Made for this test.", pairs=pairs)


PEOPLE = reword(synonyms(("ill person", "sick person"), ("doctor", "physician")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ask a doctor.", "Ask a physician."),
        ("Doctor or nurse?", "Physician or nurse?"),
        ("- Doctor or nurse?", "- Physician or nurse?"),
        ("He is an ill\nperson.", "He is a sick person."),
        ("A sick person rests.", "An ill person rests."),
        ("The doctor's note.", "The physician's note."),
    ],
)
def test_case_and_article_go_with_the_synonym(old: str, new: str) -> None:
    assert text_after(PEOPLE, old) == new


@pytest.mark.parametrize(
    "text",
    [
        "Rest well.", "", "Doctors know.", "The non-doctor.", "See Dr Doctor.", "Doctor Who is it?",
        "Ask a doctor, that is, a physician.", "DOCTOR", "An Ill Person",
    ],
)  # fmt: skip
def test_names_titles_and_parts_of_words_stay(text: str) -> None:
    assert reason(PEOPLE, text) == "no word or phrase of the list own stands in the text"


def test_at_most_six_words_are_replaced_and_the_seed_says_which() -> None:
    text = "Ask a doctor. " * 10
    found = {text_after(PEOPLE, text, seed=seed) for seed in range(9)}
    assert len(found) > 1
    assert {new.count("physician") for new in found} == {6}


def test_each_pair_of_the_shipped_list_is_put_for_the_other_both_ways() -> None:
    assert len(SYNONYMS.pairs) >= 60
    for a, b in SYNONYMS.pairs:
        for old, new in ((a, b), (b, a)):
            assert text_after(reword(synonyms((a, b))), f"x {old} y") == f"x {new} y"


def test_no_pair_of_the_shipped_list_touches_a_name() -> None:
    phrases = [phrase for pair in SYNONYMS.pairs for phrase in pair]
    for name in NAMES:
        assert not any(mentions(phrase, name) or mentions(name, phrase) for phrase in phrases), name


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("[[safe, not dangerous]]", "one of the two denies something: safe / not dangerous"),
        ("[[five, '5']]", "should match pattern"),
        ("[]", "at least 1 item"),
    ],
)
def test_a_list_that_could_change_a_meaning_is_refused(tmp_path, pairs, message) -> None:
    (tmp_path / "own.yaml").write_text(f"name: own\nversion: '1'\nabout: Mine.\npairs: {pairs}\n")
    with pytest.raises(SetupError, match=message):
        load_list("own.yaml", Synonyms, tmp_path)


def padding(name: str) -> Add:
    spec = load_recipe(name).edit
    assert isinstance(spec, Add)
    return spec


@given(name=st.sampled_from(PADDINGS), text=TEXTS, seed=st.integers(0, 99))
def test_the_parent_stays_word_for_word(name: str, text: str, seed: int) -> None:
    spec = padding(name)
    found = text_after(add(spec, {}, SAFETY), text, seed=seed)
    added = found.removesuffix(text) if spec.where == "before" else found.removeprefix(text)
    assert added.strip() in spec.texts
    assert len(found) == len(added) + len(text)


@pytest.mark.parametrize("name", PADDINGS)
def test_every_text_of_a_padding_is_drawn(name: str) -> None:
    spec = padding(name)
    found = {text_after(add(spec, {}, SAFETY), "", seed=seed) for seed in range(99)}
    assert found == set(spec.texts)
    assert len(spec.texts) >= 4


@pytest.mark.parametrize("name", CLAIMING_NOTHING)
def test_padding_has_no_fact(name: str) -> None:
    assert [facts(text, NAMES) for text in padding(name).texts] == [{} for _ in padding(name).texts]


@pytest.mark.parametrize(
    ("where", "text", "parent", "joined"),
    [
        ("before", "Hello.", "Rest.", "Hello. Rest."),
        ("before", "Hello.", "Rest.\n\nDrink.", "Hello.\n\nRest.\n\nDrink."),
        ("before", "Answer by X:", "Rest.", "Answer by X:\nRest."),
        ("before", "Hello.", "\n Rest.", "Hello.\n Rest."),
        ("after", "Bye.", "Rest (a lot.)", "Rest (a lot.) Bye."),
        ("after", "Bye.", "Rest. ", "Rest. Bye."),
        ("after", "Bye.", "Topics", "Topics\n\nBye."),
        ("after", "A: [x]\nB: [y]", "Rest. ", "Rest. \n\nA: [x]\nB: [y]"),
        ("after", "Bye.", "", "Bye."),
    ],
)
def test_added_text_stands_apart(where: str, text: str, parent: str, joined: str) -> None:
    spec = Add.model_validate({"kind": "add", "where": where, "texts": [text]})
    assert text_after(add(spec, {}, SAFETY), parent) == joined
