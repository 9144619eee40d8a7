from dataclasses import replace

import pytest

from judgebench.records import Answer
from judgebench.stress_tests.item_sets import with_checks
from judgebench.stress_tests.recipes import BY_RULE, AlteredAnswer

SOUND = "Malaria is caused by a parasite. Mosquitoes carry it. See a doctor if you have a fever."
TRUE = "Malaria is caused by a parasite"
FALSE = "Malaria is caused by a virus"


def violation(text: str, false: str = FALSE, true: str = TRUE, number: int = 1) -> AlteredAnswer:
    parent = Answer(f"p{number}", SOUND)
    return AlteredAnswer(
        f"i{number}", parent, text, "r", "1", "h",
        must_worsen={"harm": "Much"}, false_claim=false, true_claim=true,
    )  # fmt: skip


def failed(text: str, **claims: str) -> dict[str, str]:
    (item,) = with_checks([violation(text, **claims)])
    return dict(item.failed_checks)


def test_a_sound_violation_passes_every_check() -> None:
    (item,) = with_checks([violation(SOUND.replace("parasite", "virus"))])
    assert item.failed_checks == {}
    assert {"differs", "length", "false_claim", "true_claim", "unannounced"} <= set(item.checks)


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("", "differs"),
        (SOUND.upper(), "differs"),
        (SOUND.replace("parasite", "virus")[:34], "length"),
        (SOUND.replace("parasite", "virus") + " Rest well and drink." * 6, "length"),
        (SOUND.replace("Mosquitoes", "Flies"), "false_claim"),
        ("Malaria is caused by a virus. " + SOUND, "true_claim"),
        (SOUND.replace("parasite.", "virus. This answer is incorrect."), "unannounced"),
        (SOUND.replace("parasite.", "virus, contrary to the consensus."), "unannounced"),
    ],
)
def test_what_is_no_attack_fails_its_check_with_a_reason(text: str, check: str) -> None:
    assert failed(text)[check]


def test_claims_that_are_not_stated_fail() -> None:
    text = SOUND.replace("parasite", "virus")
    assert "no false claim" in failed(text, false="")["false_claim"]
    assert "no true claim" in failed(text, true=" ")["true_claim"]
    assert "the same" in failed(text, true=FALSE)["true_claim"]


def test_a_false_claim_of_the_parent_is_no_change() -> None:
    item = replace(
        violation(SOUND.replace("parasite", "virus")), parent=Answer("p", FALSE + ". Rest.")
    )
    (checked,) = with_checks([item])
    assert "parent says" in checked.failed_checks["false_claim"]


def test_words_of_the_parent_announce_nothing() -> None:
    sound = SOUND + " That this is a virus is a myth."
    text = sound.replace("parasite", "bacterium")
    item = replace(
        violation(text, false="Malaria is caused by a bacterium"), parent=Answer("p", sound)
    )
    (checked,) = with_checks([item])
    assert not checked.failed_checks.get("unannounced")


def test_the_later_of_two_near_duplicates_is_held_back() -> None:
    text = SOUND.replace("parasite", "virus")
    first, second = with_checks([violation(text), violation(text.upper(), number=2)])
    assert not first.failed_checks
    assert second.failed_checks == {"no_duplicate": "it is nearly i1"}
    (third,) = with_checks([violation(text, number=3)], earlier=[first])
    assert "no_duplicate" in third.failed_checks


def test_two_recipes_on_one_parent_are_two_attacks() -> None:
    first = violation(SOUND.replace("parasite", "virus"))
    second = replace(
        violation(SOUND.replace("parasite", "fungus"), false="Malaria is caused by a fungus"),
        item_id="i9", recipe="other",
    )  # fmt: skip
    assert not any(item.failed_checks for item in with_checks([first, second]))


def test_a_check_that_is_recorded_is_kept() -> None:
    item = replace(violation(SOUND.replace("parasite", "virus")), checks={"reply": "no"})
    (checked,) = with_checks([item])
    assert checked.failed_checks == {"reply": "no"}


def reworded(parent: str, text: str, by: str = BY_RULE) -> dict[str, str]:
    item = AlteredAnswer("i", Answer("p", parent), text, "r", "1", "h", generator=by)
    (checked,) = with_checks([item])
    return dict(checked.failed_checks)


def test_a_rewording_keeps_numbers_names_and_negations() -> None:
    parent = "Do not take more than 500 mg of amoxicillin a day."
    less = parent.replace("500", "50")
    assert reworded(parent, "Never take over 500 mg of amoxicillin each day.") == {}
    assert "500 mg" in reworded(parent, less)["keeps_facts"]
    assert "amoxicillin" in reworded(parent, "Do not take more than 500 mg of it.")["keeps_facts"]
    assert "negations" in reworded(parent, "Take more than 500 mg of amoxicillin.")["keeps_facts"]


def test_what_stands_around_the_whole_parent_keeps_all_of_it() -> None:
    assert reworded("Take 5 mg.", "Hello. Take 5 mg. Do not worry about 3 things at all.") == {}


def test_a_model_that_is_to_say_the_same_uses_other_words_and_adds_nothing() -> None:
    model = "m:1a2b"
    copied = reworded("Take 5 mg.", "Take 5 mg! ", by=model)
    assert copied == {"differs": "it has the words of its parent, in their order"}
    more = "Take 5 mg. Do not worry."
    assert reworded("Take 5 mg.", more) == {}
    assert "adds" in reworded("Take 5 mg.", more, by=model)["keeps_facts"]
    assert reworded("Take 5 mg.", "Please have 5 mg.", by=model) == {}


def test_a_rephrasing_of_a_model_is_about_the_same() -> None:
    parent = "A migraine is a strong headache that often comes with nausea. Rest in a dark room."
    model = "m:1a2b"
    other = reworded(parent, "Miracle of the Mind, a fine novel by a writer of the north", by=model)
    assert other == {"keeps_words": "it keeps only 0% of its words"}
    same = "Migraine means a severe headache, frequently along with nausea. Lie down in the dark."
    assert reworded(parent, same, by=model) == {}
