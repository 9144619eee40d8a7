from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from judgebench.errors import SetupError
from judgebench.files import shipped_names
from judgebench.records import Answer
from judgebench.rubric import load_rubric
from judgebench.stress_tests.recipes import (
    BY_HAND,
    AlteredAnswer,
    Recipe,
    check_demand,
    load_recipe,
    marked,
)

TEXT = st.text(alphabet=st.sampled_from("ab .,é\n1"), max_size=60)


def altered(old: str, new: str) -> AlteredAnswer:
    return AlteredAnswer("a~x", Answer("a", old), new, "x", "1", "h")


def changes(old: str, new: str) -> list[tuple[str, str]]:
    pairs = zip(*marked(altered(old, new)), strict=True)
    return [(before, after) for (before, differs), (after, _) in pairs if differs]


@given(TEXT, TEXT)
def test_the_pieces_are_the_two_texts_and_what_is_not_marked_is_equal(old: str, new: str) -> None:
    before, after = marked(altered(old, new))
    assert "".join(piece for piece, _ in before) == old
    assert "".join(piece for piece, _ in after) == new
    for (a, differs), (b, also) in zip(before, after, strict=True):
        assert differs == also
        assert differs or a == b


def test_changes_are_whole_words() -> None:
    assert changes("It is a parasite.", "It is a virus.") == [("parasite", "virus")]


def test_an_altered_answer_shares_its_parents_cluster_and_reference() -> None:
    parent = Answer("a", "sound", question="q", system="s", reference="r", group="g")
    item = AlteredAnswer("a~x", parent, "false", "x", "1", "h")
    answer = item.answer
    assert (answer.item_id, answer.text) == ("a~x", "false")
    assert (answer.group, answer.question, answer.reference) == ("g", "q", "r")


def test_who_altered_it_is_said_in_words() -> None:
    item = AlteredAnswer("a~x", Answer("a", "sound"), "false", "x", "1", "h")
    assert item.made_by == "altered by rule"
    assert replace(item, generator=BY_HAND).made_by == "altered by hand"
    assert replace(item, generator="m:1a2b").made_by == "altered by m:1a2b"


SAFETY = load_rubric("medical-safety")
PADDING = {
    "name": "padding", "version": "1", "about": "Adds words.", "must_not_change": True,
    "edit": {"kind": "add", "where": "after", "texts": ["Be well."]},
}  # fmt: skip


def problems_of(folder: Path, **changes: object) -> str:
    path = folder / "r.yaml"
    path.write_text(yaml.safe_dump({**PADDING, **changes}))
    with pytest.raises(SetupError) as error:
        load_recipe(path)
    return str(error.value)


@pytest.mark.parametrize("name", shipped_names("adversarial", ".yaml"))
def test_every_shipped_recipe_loads_under_its_own_name(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    check_demand(recipe.must_worsen, SAFETY)


def test_a_recipe_says_either_worse_or_the_same(tmp_path: Path) -> None:
    both = problems_of(tmp_path, must_worsen={"bias": "Yes"})
    neither = problems_of(tmp_path, must_not_change=False)
    assert "either must_worsen" in both
    assert "either must_worsen" in neither


def test_a_placeholder_needs_a_demand(tmp_path: Path) -> None:
    edit = {"kind": "add", "where": "after", "texts": ["Hello.", "It is {score}."]}
    assert "has a placeholder" in problems_of(tmp_path, edit=edit)


def test_another_way_of_asking_makes_nothing_worse(tmp_path: Path) -> None:
    said = problems_of(
        tmp_path, must_not_change=False, must_worsen={"bias": "Yes"}, edit={"kind": "repeat"}
    )
    assert "must not change" in said


def test_an_unknown_kind_of_edit_is_told_with_those_that_are_known(tmp_path: Path) -> None:
    said = problems_of(tmp_path, edit={"kind": "explode"})
    assert "explode" in said
    assert "dose-by-ten" in said


def test_all_problems_of_a_recipe_are_told_at_once(tmp_path: Path) -> None:
    said = problems_of(tmp_path, name="Has Spaces", colour="red", area="surgery")
    assert all(word in said for word in ("name", "colour", "area"))


def test_the_hash_changes_with_the_recipe_and_not_with_its_description() -> None:
    recipe = Recipe.model_validate(PADDING)
    assert recipe.content_hash == recipe.model_copy(update={"about": "x"}).content_hash
    assert recipe.content_hash != recipe.model_copy(update={"version": "2"}).content_hash


@pytest.mark.parametrize(
    ("demand", "told"),
    [
        (
            {"charm": "Yes"},
            "medical-safety; `--rubric`, .* names another; found charm; allowed: sci",
        ),
        ({"bias": "Maybe"}, "found Maybe; allowed: Yes"),
        ({"bias": "No"}, "is not a label of bias that a verdict could worsen to"),
    ],
)
def test_a_demand_that_no_verdict_can_meet_is_refused(demand: dict[str, str], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        check_demand(demand, SAFETY, "r.yaml", 3)


def test_a_nominal_metric_cannot_worsen() -> None:
    metric = SAFETY.metrics[0].model_copy(update={"kind": "nominal"})
    rubric = SAFETY.model_copy(update={"metrics": (metric,)})
    with pytest.raises(SetupError, match="has no severe label"):
        check_demand({"scientific_consensus": "Opposed to consensus"}, rubric)
