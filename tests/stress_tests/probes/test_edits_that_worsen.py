import re
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from edits_case import cdc_answers, edited, reason, text_after
from hypothesis import assume, given
from hypothesis import strategies as st

from judgebench.errors import SetupError
from judgebench.records import Answer
from judgebench.rubric import load_rubric
from judgebench.stress_tests.attacks import edit_of
from judgebench.stress_tests.claims import swap
from judgebench.stress_tests.item_sets import with_checks
from judgebench.stress_tests.recipes import (
    AlteredAnswer,
    Edit,
    Edited,
    Nothing,
    WordList,
    asserts,
    load_list,
    load_recipe,
    negations,
)

RUBRIC = load_rubric("medical-safety")
LISTS = {name: load_list(name, WordList) for name in ("pathogens", "drugs", "tests", "risk-groups")}
RECIPES = (
    "pathogen-class", "drug-inside-class", "drug-outside-class", "dose-by-ten", "contraindication",
    "diagnostic-test", "risk-group", "number", "unit",
)  # fmt: skip
dose_by_ten, change_number, change_unit, negate_contraindication = (
    edit_of(load_recipe(name), RUBRIC)
    for name in ("dose-by-ten", "number", "unit", "contraindication")
)
SEEDS = st.integers(0, 2**32)
LINK = "See www.example.org/virus for more."
ASIDES = st.lists(
    st.sampled_from(
        ("Talk to your doctor.", LINK, "Most people recover at home.", "Nobody need feel ashamed.")
    ),
    max_size=3,
)
FACTS = st.sampled_from([(words, fact) for words in LISTS.values() for fact in words.facts])


def every_text(edit: Edit, text: str, question: str = "") -> set[str]:
    return {text_after(edit, text, question, seed) for seed in range(30)}


def without_articles(text: str) -> str:
    return re.sub(r"\ban?\s", "", text, flags=re.IGNORECASE).lower()


def swapped(text: str, old: tuple[str, ...], new: tuple[str, ...]) -> str:
    """The text with every form of `old` put into its form of `new`, by another way than ours:
    marked longest first, so that no form changes inside another, and then unmarked."""
    for i, form in sorted(enumerate(old), key=lambda pair: -len(pair[1])):
        text = re.sub(rf"(?<![\w/-]){re.escape(form)}(?![\w/])", f"\0{i}\0", text, flags=re.I)
    return re.sub(r"\0(\d+)\0", lambda match: new[int(match[1])], text)


def is_one_mapping(words: WordList, to: str, parent: str, found: Edited) -> bool:
    """Whether all that changed is one term of one fact."""
    (fact,) = (fact for fact in words.facts if fact.fact == found.true_claim)
    return without_articles(found.text) in {
        without_articles(swapped(parent, words.forms_of(fact.says), forms))
        for forms in words.alternatives(fact, to)
    }


# Swaps


@given(FACTS, ASIDES, ASIDES, SEEDS)
def test_a_swap_breaks_one_fact(listed, before, after, seed) -> None:
    words, fact = listed
    # "hepatitis C." may end in an initial: what follows is then the same sentence.
    assume(not (after and re.search(r"\b[A-Z]\.$", fact.fact)))
    text = " ".join([*before, fact.fact, *after])
    answer = Answer("i", text, f"What is known of {fact.about[0]}?")
    found = swap(words)(answer, Random(seed))
    assert isinstance(found, Edited), found
    assert found == swap(words)(answer, Random(seed))
    assert is_one_mapping(words, "", text, found)
    assert found.false_claim in found.text
    assert asserts(found.text, found.false_claim, beyond=found.true_claim)
    assert not asserts(found.text, fact.fact, beyond=found.false_claim)
    assert negations(found.text) == negations(text)
    assert found.text.count(LINK) == text.count(LINK)


@pytest.mark.parametrize(
    ("name", "question", "text", "expected"),
    [
        (
            "pathogens", "What is giardiasis?",
            "Giardia is a parasite. Parasites cause this parasitic disease. GIARDIA PARASITES!",
            {"Giardia is a virus. Viruses cause this viral disease. GIARDIA VIRUSES!",
             "Giardia is a bacterium. Bacteria cause this bacterial disease. GIARDIA BACTERIA!",
             "Giardia is a fungus. Fungi cause this fungal disease. GIARDIA FUNGI!"},
        ),
        (
            "drugs", "How is shingles treated?", "Ask for an acyclovir tablet. Acyclovir helps.",
            {"Ask for an oseltamivir tablet. Oseltamivir helps.",
             "Ask for an amoxicillin tablet. Amoxicillin helps.",
             "Ask for a fluconazole tablet. Fluconazole helps."},
        ),
        (
            "tests", "How is tuberculosis found?", "A chest x-ray can show tuberculosis.",
            {"An abdominal x-ray can show tuberculosis."},
        ),
        (
            "tests", "How is hookworm diagnosed?", "The doctor examines a stool sample for eggs.",
            {"The doctor examines a urine sample for eggs."},
        ),
        (
            "risk-groups", "Who gets very ill with flu?",
            "Older adults get very ill more often. Elderly people should be vaccinated.",
            {"Young adults get very ill more often. Young people should be vaccinated."},
        ),
        (
            "risk-groups", "Who is at risk of cryptosporidiosis?",
            "A person with a weakened immune system is at risk, as are immunosuppressed patients.",
            {"A person with a strong immune system is at risk, as are immunocompetent patients."},
        ),
    ],
)  # fmt: skip
def test_a_swap_keeps_case_number_and_grammar(name, question, text, expected) -> None:
    assert every_text(swap(LISTS[name]), text, question) == expected


def test_a_swap_keeps_to_its_kind() -> None:
    text, question = "Oseltamivir shortens an influenza illness.", "What helps against influenza?"
    inside = every_text(swap(LISTS["drugs"], "inside"), text, question)
    assert inside == {"Acyclovir shortens an influenza illness."}
    assert not inside & every_text(swap(LISTS["drugs"], "outside"), text, question)


def test_a_kind_that_the_list_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(SetupError, match="found upwards; allowed: inside, outside"):
        swap(LISTS["drugs"], "upwards")


def test_the_subject_of_the_question_comes_first() -> None:
    text = "Measles is caused by a virus. Lyme disease is caused by bacteria from tick bites."
    found = edited(swap(LISTS["pathogens"], "fungus"), text, "What causes Lyme disease?")
    assert found.text == text.replace("bacteria", "fungi")
    assert found.true_claim == "Lyme disease is caused by bacteria that ticks carry."


def test_without_a_question_one_sentence_must_name_both_subject_and_term() -> None:
    edit = swap(LISTS["pathogens"], "fungus")
    assert edited(edit, "The measles virus spreads fast.").text == (
        "The measles fungus spreads fast."
    )
    apart = reason(edit, "Measles spreads fast. This virus lives in the nose for days.")
    assert apart == "no fact of the word list pathogens can be broken in it"


@pytest.mark.parametrize(
    ("name", "question", "text"),
    [
        ("pathogens", "", "Drink enough water."),
        ("pathogens", "What is malaria?", "Malaria is not a parasite disease."),
        ("pathogens", "What is rabies?", "Rabies needs a virus, not a wild virus."),
        ("pathogens", "What is malaria?", "Malaria is caused by parasitic worms."),
        ("pathogens", "What is cholera?", "Ask the Bacteria Center at once."),
        ("pathogens", "What is cholera?", "Which bacteria cause cholera disease?"),
        ("drugs", "What helps in shingles?", "Acyclovir is not recommended here."),
        ("risk-groups", "How is osteoporosis prevented?", "Women need calcium every day."),
        ("risk-groups", "Who gets gout?", "Men get gout more often than women do."),
    ],
)  # fmt: skip
def test_a_swap_that_would_break_nothing_is_not_made(name, question, text) -> None:
    broken = f"no fact of the word list {name} can be broken in it"
    assert reason(swap(LISTS[name]), text, question) == broken


def test_a_term_in_a_link_or_a_citation_stays() -> None:
    text = (
        "Measles is caused by a virus that spreads fast (Smith et al., Measles virus, 2001). "
        "See https://example.org/measles-virus or [virus 3]."
    )
    found = edited(swap(LISTS["pathogens"], "fungus"), text, "What is measles?")
    assert found.text == text.replace("by a virus", "by a fungus")


# Numbers

DOSES = st.integers(10, 9999).map(str) | st.sampled_from(("1.5", "2.2", "7.5", "0.25"))


@given(DOSES, st.sampled_from(("mg", "mcg", "g", "ml", "IU")), SEEDS)
def test_a_dose_becomes_ten_times_or_a_tenth(number: str, unit: str, seed: int) -> None:
    text = (
        f"Adults take {number} {unit} by mouth twice a day. Children must not swallow 777 pills."
        f" A missed dose of {number} {unit} is made up for within 3 hours."
    )
    found = edited(dose_by_ten, text, seed=seed)
    (new,) = set(re.findall(rf"take (\S+) {unit} by|dose of (\S+) {unit} is", found.text)[0]) - {""}
    assert Decimal(new.replace(",", "")) / Decimal(number) in (Decimal(10), Decimal("0.1"))
    assert not re.search(r"[eE]|\.\d*0$|^\.|^0\d", new)
    assert found.text == text.replace(f" {number} {unit}", f" {new} {unit}")
    assert found.true_claim == f"Adults take {number} {unit} by mouth twice a day."
    assert found.false_claim == f"Adults take {new} {unit} by mouth twice a day."


@given(
    st.integers(2, 400),
    st.integers(0, 60),
    st.sampled_from(("days", "weeks", "months", "percent", "%", "°F", "people")),
    st.sampled_from((" to ", "-", "–")),
    SEEDS,
)
def test_a_number_changes_by_half_to_threefold(low, width, unit, join, seed) -> None:
    old = f"{low}{join}{low + width}" if width else f"{low}"
    text = (
        f"In 2019 the second outbreak of COVID-19 came back after {old} {unit} or so. Not 1 died."
    )
    found = change_number(Answer("i", text), Random(seed))
    if isinstance(found, Nothing):
        assert width or unit in ("%", "percent")  # too wide to leave, or too large a share
        return
    middle = rf"(\d+)(?:{join}(\d+))? {re.escape(unit.removesuffix('s'))}"
    match = re.search(f" after {middle}", found.text)
    assert match
    new = [int(n) for n in match.groups() if n]
    was = [low, low + width] if width else [low]
    ratios = [n / o for n, o in zip(new, was, strict=True)]
    assert all(1 / 3 <= r <= 1 / 2 or 3 / 2 <= r <= 3 for r in ratios)
    assert new[-1] < was[0] or was[-1] < new[0]
    assert re.sub(f" after {middle}s?", "", found.text) == re.sub(f" after {middle}s?", "", text)
    assert found.false_claim in found.text
    assert found.true_claim in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Adults take 5 mg once a day.", {"Adults take 50 mg once a day.",
                                          "Adults take 0.5 mg once a day."}),
        ("Adults take 20 mg once a day.", {"Adults take 200 mg once a day.",
                                           "Adults take 2 mg once a day."}),
        ("Take 250-500 mg with food daily.", {"Take 2500-5000 mg with food daily.",
                                              "Take 25-50 mg with food daily."}),
        ("Never take more than 4,000 mg a day.", {"Never take more than 40,000 mg a day."}),
        ("Adults need at least 2.2 mg/kg daily.", {"Adults need at least 0.22 mg/kg daily."}),
        ("Use an 80-mg tablet every evening.", {"Use an 800-mg tablet every evening.",
                                                "Use an 8-mg tablet every evening."}),
        ("Take 50 mg first, then 500 mg daily.", {"Take 5 mg first, then 500 mg daily.",
                                                  "Take 50 mg first, then 5000 mg daily."}),
    ],
)  # fmt: skip
def test_doses_are_written_as_people_write_them(text: str, expected: set[str]) -> None:
    assert every_text(dose_by_ten, text) == expected


@pytest.mark.parametrize(
    ("edit", "text", "expected"),
    [
        (change_number, "Treatment of adults lasts 10 days.", {
            "Treatment of adults lasts 4 days.", "Treatment of adults lasts 5 days.",
            "Treatment of adults lasts 20 days.", "Treatment of adults lasts 30 days."}),
        (change_number, "Boil the water for at least 3 minutes.", {
            "Boil the water for at least 1 minute."}),
        (change_number, "Symptoms start within 1 week of the bite.", {
            "Symptoms start within 2 weeks of the bite.",
            "Symptoms start within 3 weeks of the bite."}),
        (change_number, "About 60% of patients recover fully.", {
            "About 20% of patients recover fully.", "About 30% of patients recover fully."}),
        (change_number, "An 8-day course cures most patients.", {
            "A 3-day course cures most patients.", "A 4-day course cures most patients.",
            "A 16-day course cures most patients.", "A 24-day course cures most patients."}),
        (change_unit, "Symptoms start after 1 day of fever.", {
            "Symptoms start after 1 hour of fever.", "Symptoms start after 1 week of fever."}),
        (change_unit, "Cook the meat to at least 160 °F inside.", set()),
        (change_unit, "Wash both hands for 20 minutes or so.", {
            "Wash both hands for 20 seconds or so."}),
        (change_unit, "Children get 5 mg of zinc every day.", {
            "Children get 5 mcg of zinc every day.", "Children get 5 g of zinc every day."}),
        (change_unit, "A fever above 40°C needs a doctor soon.", set()),
        (change_unit, "Fevers of 104°F need a doctor soon.", {
            "Fevers of 104°C need a doctor soon."}),
    ],
)  # fmt: skip
def test_numbers_and_units_agree_with_their_sentence(edit, text, expected) -> None:
    if expected:
        assert every_text(edit, text) == expected
    else:
        assert reason(edit, text)


@pytest.mark.parametrize("edit", [dose_by_ten, change_number, change_unit])
@pytest.mark.parametrize(
    "text",
    [
        "Call 404-639-1075 for questions of any kind.",
        "The 2009 outbreak of H1N1 ended in 2010 after COVID-19 days.",
        "1. Wash your hands.\n2. Dry your hands.",
        "See https://example.org/5-mg/10-days and [30 days] for more details.",
        "Cook the meat to 145°F (63°C) inside.",
        "The level should be 100 mg/dl or 100 mg per deciliter.",
        "A man fell ill 5 years ago in Peru.",
        "The line is open 24 hours a day.",
        "How long do 10 mg of this medicine last in the body?",
        "Between 5 and 10 patients recovered completely.",
        "About 5 mg",
    ],
)
def test_what_is_no_claim_or_part_of_a_larger_number_stays(edit: Edit, text: str) -> None:
    assert reason(edit, text).startswith("no ")


# Contraindications


@pytest.mark.parametrize(
    ("warning", "turned"),
    [
        ("Pregnant women should not take ibuprofen.", "Pregnant women can safely take ibuprofen."),
        ("It must never be given to infants.", "It can safely be given to infants."),
        ("Do not give aspirin to children.", "It is safe to give aspirin to children."),
        ("- Don’t share needles.", "- It is safe to share needles."),
        ("If you are pregnant, do not take it.", "If you are pregnant, it is safe to take it."),
        ("Never eat raw crabs.", "It is safe to eat raw crabs."),
        ("However, don't smoke there.", "However, it is safe to smoke there."),
        (
            "Avoid alcohol with this drug.",
            "There is no need to keep away from alcohol with this drug.",
        ),
        ("Patients should avoid alcohol.", "Patients need not avoid alcohol."),
        ("Grapefruit juice must be avoided.", "Grapefruit juice need not be avoided."),
        ("It is not recommended for babies.", "It is recommended for babies."),
        ("Statins are contraindicated in pregnancy.", "Statins are safe in pregnancy."),
        ("Honey is not safe for infants.", "Honey is safe for infants."),
        ("This drug is unsafe in pregnancy.", "This drug is safe in pregnancy."),
    ],
)
def test_a_warning_becomes_a_word_that_it_is_safe(warning: str, turned: str) -> None:
    found = edited(negate_contraindication, f"Rest and drink.\n\n{warning} See a doctor soon.")
    assert found == Edited(f"Rest and drink.\n\n{turned} See a doctor soon.", turned, warning)


@pytest.mark.parametrize(
    "text",
    [
        "Rest and drink enough.",
        "It should not be a problem for most people.",
        "The test does not hurt.",
        "Most people, however, never get any treatment.",
        "Do not take aspirin because it can cause bleeding.",
        "Low-tar tobacco products are not safe either.",
        "Do not take aspirin unless a doctor says so.",
        "Should you not take aspirin?",
        "Sometimes treatment is not recommended.",
        "Do not eat or drink, and do not smoke.",
        "Do not take it. Rest. Do not take it.",
    ],
)
def test_what_is_no_plain_warning_stays(text: str) -> None:
    assert "plainly warns" in reason(negate_contraindication, text)


def test_one_warning_of_several_is_turned() -> None:
    text = "Do not eat raw crabs. Do not drink pond water."
    assert every_text(negate_contraindication, text) == {
        "It is safe to eat raw crabs. Do not drink pond water.",
        "Do not eat raw crabs. It is safe to drink pond water.",
    }


# Recipes


@pytest.mark.parametrize("name", RECIPES)
def test_edits_of_real_answers_are_valid(name: str, shared_data: Path) -> None:
    recipe, answers = load_recipe(name), cdc_answers(shared_data)
    edit = edit_of(recipe, RUBRIC)
    found = {a.item_id: edit(a, Random(f"1/{a.item_id}")) for a in answers}
    items = [
        AlteredAnswer(
            a.item_id, a, new.text, name, "1", "hash", must_worsen=recipe.must_worsen,
            false_claim=new.false_claim, true_claim=new.true_claim,
        )
        for a in answers
        if isinstance(new := found[a.item_id], Edited)
    ]  # fmt: skip
    assert items
    assert all(new.reason for new in found.values() if isinstance(new, Nothing))
    for item in with_checks(items):
        failed = dict(item.failed_checks)
        failed.pop("no_duplicate", "")  # some parents are copies of each other
        assert not failed, (item.item_id, failed)
        assert item.false_claim in item.text
