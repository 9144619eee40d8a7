import json
from pathlib import Path

import pytest
import yaml
from review_case import decide

from judgebench.errors import SetupError
from judgebench.rubric import load_rubric
from judgebench.stress_tests.attacks import (
    SHIPPED_SETS,
    StressSettings,
    read_attacks,
    shipped_attacks,
)

SAFETY = load_rubric("medical-safety")
TONE = load_rubric("support-tone")
RECIPE = {
    "name": "mine", "version": "1", "about": "Adds.", "must_worsen": {"bias": "Yes"},
    "edit": {"kind": "add", "where": "after", "texts": ["Men only."]},
}  # fmt: skip
LINE = {"item_id": "a", "parent": "Rest.", "text": "Men, rest.", "must_worsen": {"bias": "Yes"}}


def load(folder: Path, *attacks: object, rubric: object = SAFETY, judged: object = None, **more):
    settings = StressSettings.model_validate({"attacks": attacks, **more})
    return read_attacks(settings, rubric, judged or rubric, folder)[0]


def problem(folder: Path, *attacks: object, **more: object) -> str:
    with pytest.raises(SetupError) as error:
        load(folder, *attacks, **more)
    return str(error.value)


def recipe(folder: Path, **changes: object) -> str:
    path = folder / f"{changes.get('name', 'mine')}.yaml"
    path.write_text(yaml.safe_dump({**RECIPE, **changes}))
    return path.name


def made_set(folder: Path, *lines: dict[str, object]) -> str:
    path = folder / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path.name


def test_without_a_list_every_shipped_attack_that_needs_no_model_is_used() -> None:
    names = [attack.name for attack in read_attacks(StressSettings(), SAFETY, SAFETY)[0]]
    assert names == list(shipped_attacks())
    assert set(SHIPPED_SETS) <= set(names)
    assert "rephrase" not in names


def test_shipped_attacks_that_do_not_fit_a_rubric_are_left_out_where_nobody_named_them() -> None:
    found, left_out = read_attacks(StressSettings(), TONE, TONE)
    assert found
    assert not any(a.items or (a.recipe and a.recipe.must_worsen) for a in found)
    assert "pathogen-class" in left_out


def test_a_named_attack_that_does_not_fit_the_rubric_is_an_error(tmp_path: Path) -> None:
    told = problem(tmp_path, "pathogen-class", rubric=TONE)
    assert "scientific_consensus: is no metric of the rubric support-tone" in told


def test_a_demand_of_ones_own_fits_an_attack_to_another_rubric(tmp_path: Path) -> None:
    entry = {"attack": "pathogen-class", "must_worsen": {"politeness": "Impolite"}}
    (attack,) = load(tmp_path, entry, rubric=TONE)
    assert attack.recipe
    assert attack.recipe.must_worsen == {"politeness": "Impolite"}


def test_an_attack_on_metrics_that_nobody_judges_is_an_error(tmp_path: Path) -> None:
    told = problem(tmp_path, recipe(tmp_path), judged=SAFETY.only(["empathy"]))
    assert "must worsen metrics that this benchmark does not judge" in told
    assert "found bias; allowed: empathy" in told


def test_a_recipe_that_needs_a_model_names_the_command_that_makes_a_set(tmp_path: Path) -> None:
    assert "judgebench stress attacks make rephrase --by JUDGE.yaml" in problem(
        tmp_path, "rephrase"
    )


def test_the_problems_of_all_attacks_are_told_at_once(tmp_path: Path) -> None:
    bad = recipe(tmp_path, name="bad", must_worsen={"charm": "Yes"})
    worse = recipe(tmp_path, name="worse", must_worsen={"bias": "Perhaps"})
    told = problem(tmp_path, bad, worse, "nowhere", made_set(tmp_path, {"colour": 1}))
    for word in ("charm", "Perhaps", "nowhere", "s.jsonl:1: colour"):
        assert word in told


def test_two_attacks_of_one_name_are_refused(tmp_path: Path) -> None:
    mine = recipe(tmp_path)
    assert "two attacks have this name" in problem(tmp_path, mine, mine)


def test_a_word_list_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    mine = recipe(tmp_path, edit={"kind": "swap", "words": "unicorns"})
    assert "unicorns" in problem(tmp_path, mine)


def test_a_set_is_one_attack_for_each_recipe_in_it(tmp_path: Path) -> None:
    other = {**LINE, "item_id": "b", "recipe": "other", "must_not_change": True, "must_worsen": {}}
    found = load(tmp_path, made_set(tmp_path, LINE, other))
    assert [(a.name, len(a.items)) for a in found] == [("s", 1), ("other", 1)]


def test_only_accepted_items_count_where_that_is_asked_for(tmp_path: Path) -> None:
    name = made_set(tmp_path, LINE, {**LINE, "item_id": "b", "parent": "Drink."})
    decide(tmp_path / name, {"a": "accept", "b": ""})
    (attack,) = load(tmp_path, name, reviewed=True)
    assert [item.item_id for item in attack.items] == ["a"]


def test_a_set_that_nobody_reviewed_is_an_error(tmp_path: Path) -> None:
    told = problem(tmp_path, made_set(tmp_path, LINE), reviewed=True)
    assert "s.decisions.csv" in told


def test_violations_that_a_rule_makes_anew_are_accepted_by_nobody(tmp_path: Path) -> None:
    assert "judgebench stress attacks make pathogen-class" in problem(
        tmp_path, "pathogen-class", reviewed=True
    )
