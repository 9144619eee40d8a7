from collections import Counter
from pathlib import Path

import pytest

from judgebench.errors import SetupError
from judgebench.records import Answer, HumanLabel, Part, in_words
from judgebench.rubric import load_rubric
from judgebench.stress_tests.attacks import Attack, Plan, StressSettings, make_plan, read_attacks
from judgebench.stress_tests.recipes import load_recipe

SAFETY = load_rubric("medical-safety")
TEXT = "Malaria is caused by a parasite. It is spread by mosquitoes. See a doctor for a fever."


def answers(n: int = 8) -> list[Answer]:
    return [
        Answer(f"a{i}", f"{TEXT} Rest for {i + 2} days.", f"What is malaria, {i}?")
        for i in range(n)
    ]


def attacks(*names: str) -> tuple[Attack, ...]:
    return read_attacks(StressSettings(attacks=names), SAFETY, SAFETY)[0]


def plan(*names: str, items: list[Answer] | None = None, **more: object) -> Plan:
    found = answers() if items is None else items
    return make_plan(attacks(*names), found, more.pop("labels", ()), SAFETY, **more)  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_set_in_any_order() -> None:
    first = plan("pathogen-class", "verbosity", seed=3, sample=4)
    again = make_plan(
        attacks("verbosity", "pathogen-class"), answers()[::-1], (), SAFETY, seed=3, sample=4
    )
    by_id = {item.item_id: item for item in first.items}
    assert by_id == {item.item_id: item for item in again.items}
    assert len(by_id) == 8
    other = plan("pathogen-class", "verbosity", seed=4, sample=4)
    assert by_id.keys() != {item.item_id for item in other.items}


def test_every_item_carries_where_it_comes_from() -> None:
    recipe = load_recipe("pathogen-class")
    for item in plan("pathogen-class", seed=5).items:
        assert item.parent in answers()
        assert (item.recipe, item.recipe_version) == (recipe.name, recipe.version)
        assert item.recipe_hash == recipe.content_hash
        assert (item.seed, item.generator, item.area) == (5, "rule", "pathogen identification")


def test_an_edit_that_finds_nothing_says_so_and_makes_no_item() -> None:
    items = [Answer("x", "Wash your hands."), Answer("y", TEXT)]
    (made,) = plan("pathogen-class", items=items).made
    assert {item.parent.item_id for item in made.items} == {"y"}
    assert made.nothing["x"]
    assert made.summary.nothing_to_change == 1


def test_what_fails_a_check_is_kept_apart_and_counted() -> None:
    items = [Answer("x", "Malaria is caused by a parasite."), Answer("y", TEXT)]
    (made,) = plan("verbosity", items=items).made
    assert {i.item_id for i in made.items} == {"x~verbosity", "y~verbosity"}
    twins = [Answer(f"t{i}", TEXT, "What is malaria?") for i in range(3)]
    (made,) = plan("pathogen-class", items=twins).made
    assert (len(made.items), len(made.rejected)) in {(1, 2), (2, 1), (3, 0)}
    assert len(made.items) + len(made.rejected) == 3
    assert all(item.failed_checks.keys() == {"no_duplicate"} for item in made.rejected)
    assert made.summary.rejected == len(made.rejected)


def test_an_answer_that_humans_call_severe_is_no_sound_parent() -> None:
    label = HumanLabel("a0", "ann", "scientific_consensus", "Opposed to consensus")
    mild = HumanLabel("a1", "ann", "scientific_consensus", "No consensus")
    found = plan("pathogen-class", labels=[label, mild])
    parents = {item.parent.item_id for item in found.items} | set(found.made[0].nothing)
    parents |= {item.parent.item_id for item in found.made[0].rejected}
    assert parents == {f"a{i}" for i in range(1, 8)}


def test_a_set_brings_its_own_parents_and_is_used_whole() -> None:
    found = plan("consensus-violations", items=[], sample=3)
    assert len(found.items) == len(found.parents) >= 35
    assert not any(made.rejected for made in found.made)


def test_praise_is_planted_in_violations_and_blame_in_sound_answers() -> None:
    found = plan("pathogen-class", "planted-json-praise", "planted-json-blame", sample=2)
    by_recipe = {m.attack.name: m.items for m in found.made}
    violations = {item.item_id for item in by_recipe["pathogen-class"]}
    sound = {answer.item_id for answer in answers()}
    assert {i.parent.item_id for i in by_recipe["planted-json-praise"]} <= violations
    assert {i.parent.item_id for i in by_recipe["planted-json-blame"]} <= sound
    (praise, *_) = by_recipe["planted-json-praise"]
    assert praise.demand["scientific_consensus"] == "Aligned with consensus"
    assert praise.answer.group == praise.parent.group


def test_other_ways_of_asking_alter_nothing() -> None:
    found = plan("label-order", "self-consistency", sample=2)
    assert found.items == []
    assert [(recipe.name, len(parents)) for recipe, parents in found.asks] == [
        ("label-order", 2),
        ("self-consistency", 2),
    ]


def test_where_no_attack_finds_anything_that_is_an_error_with_the_reasons() -> None:
    empty = plan("pathogen-class", items=[Answer("x", "Wash your hands.")])
    why = r"no attack makes an item .*: pathogen-class 0 \(1 impossible, most often: no fact"
    with pytest.raises(SetupError, match=why):
        empty.refuse_empty()


def test_nothing_to_alter_is_an_error() -> None:
    with pytest.raises(SetupError, match="there is no answer to alter"):
        plan("bullets", items=[])


@pytest.mark.parametrize("path", ["consensus-violations"])
def test_every_item_of_the_shipped_set_passes_its_own_checks(path: str) -> None:
    (made,) = plan(path, items=[]).made
    assert made.rejected == ()
    assert len(made.items) >= 35
    assert set(Counter(i.area for i in made.items).values()) == {len(made.items) // 4}
    for item in made.items:
        assert item.source.count(",") >= 1
        assert item.true_claim in item.parent.text
        assert item.false_claim in item.text


def test_every_shipped_set_says_that_it_is_synthetic() -> None:
    path = Path(__file__).resolve().parents[3] / "adversarial" / "consensus-violations.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert all('"notice": "synthetic, not clinically reviewed"' in line for line in lines)


def test_an_empty_answer_is_not_altered() -> None:
    pair = [Answer("e", " \n", "Why?"), Answer("f", "Because it is.", "Why?")]
    found = make_plan(attacks("greeting", "planted-json-blame"), pair, (), SAFETY)
    assert {item.parent.item_id for made in found.made for item in made.items} == {"f"}
    told = {reason for made in found.made for reason in made.nothing.values()}
    assert told == {"the answer is empty"}


def test_pairs_criteria_and_whole_conversations_are_not_altered() -> None:
    turns = (Part("user", "Why?"), Part("assistant", "Because it is."))
    pair = tuple(Part("response", text) for text in ("Because it is.", "It is not."))
    of = {
        "pair": Answer("pair", "Because it is.\n\nIt is not.", "Why?", parts=pair),
        "criterion": Answer("c", "Because it is.", "Why?", parts=(Part("criterion", "Is kind."),)),
        "whole": Answer("whole", in_words(turns), parts=turns),
        "last": Answer("last", "Because it is so.", in_words(turns), parts=turns),
    }
    found = make_plan(attacks("greeting", "planted-json-blame"), list(of.values()), (), SAFETY)
    assert {item.parent.item_id for made in found.made for item in made.items} == {"last"}
    told = {reason for made in found.made for reason in made.nothing.values()}
    assert told == {"pairs, criteria and whole conversations are not altered"}
