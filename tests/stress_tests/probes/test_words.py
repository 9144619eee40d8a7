from pathlib import Path

import pytest

from judgebench.errors import SetupError
from judgebench.stress_tests.recipes import WordList, load_list

LEAST = {"pathogens": 30, "drugs": 25, "tests": 15, "risk-groups": 20}
GOOD = """\
name: x
version: "1"
about: what causes it
notice: synthetic, not clinically reviewed
forms:
  parasite: [parasite, parasites]
  virus: [virus, viruses]
facts:
  - about: [malaria]
    says: parasite
    instead: {virus: [virus, [phage, phages]], fungus: [[fungus, fungi]]}
    fact: Malaria is caused by parasites.
    source: Malaria, WHO
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "list.yaml"
    path.write_text(text)
    return path


def test_forms_stand_for_their_name_and_alternatives_for_their_kind(tmp_path: Path) -> None:
    words = load_list(write(tmp_path, GOOD), WordList)
    (fact,) = words.facts
    assert words.forms_of(fact.says) == ("parasite", "parasites")
    assert words.forms_of("quinine") == ("quinine",)
    assert words.alternatives(fact, "virus") == [("virus", "viruses"), ("phage", "phages")]
    assert words.alternatives(fact) == [*words.alternatives(fact, "virus"), ("fungus", "fungi")]
    assert words.alternatives(fact, "bacterium") == []
    assert words.kinds == ("fungus", "virus")


def test_a_path_is_seen_from_the_file_that_names_it(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    assert load_list("list.yaml", WordList, tmp_path).name == "x"


def test_every_contradiction_of_a_list_is_told_at_once(tmp_path: Path) -> None:
    bad = GOOD.replace("[phage, phages]", "[phage, phages, phagic]").replace(
        "[fungus, fungi]", "[Parasite, fungi]"
    )
    bad = bad.replace("Malaria is caused by parasites.", "Malaria is caught from mosquitoes.")
    with pytest.raises(SetupError) as caught:
        load_list(write(tmp_path, bad), WordList)
    (problem,) = caught.value.problems
    assert problem.file == str(tmp_path / "list.yaml")
    assert "'Malaria is caught from mosquitoes.' must hold the term: parasite" in problem.message
    assert (
        "must have one form instead, or as many as `says`: phage, phages, phagic" in problem.message
    )
    assert "says already what stands instead: Parasite, fungi" in problem.message


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("notice:", "note:", "note"),  # one cause, one message
        ("    says: parasite\n", "", "facts.0.says"),
        ("fact: Malaria is caused by parasites.", "fact: caused by parasites", "facts.0.fact"),
        ("[virus, viruses]", "[]", "forms.virus"),
        ("fungus: [[fungus, fungi]]", "fungus: []", "facts.0.instead.fungus"),
    ],
)
def test_a_list_that_lacks_a_part_is_refused(tmp_path, old, new, field) -> None:
    assert old in GOOD
    with pytest.raises(SetupError) as caught:
        load_list(write(tmp_path, GOOD.replace(old, new)), WordList)
    assert field in [p.field for p in caught.value.problems]


@pytest.mark.parametrize("name", LEAST)
def test_the_shipped_lists_are_sound(name: str) -> None:
    words = load_list(name, WordList)
    assert words.name == name
    assert "synthetic" in words.notice
    assert "not clinically reviewed" in words.notice
    assert len(words.facts) >= LEAST[name]
    assert len({fact.fact for fact in words.facts}) == len(words.facts)


@pytest.mark.parametrize("name", LEAST)
def test_no_shipped_swap_leads_to_what_another_fact_says_of_the_same_subject(name: str) -> None:
    words = load_list(name, WordList)
    for fact in words.facts:
        subjects = {subject.lower() for subject in fact.about}
        right = {
            form.lower()
            for other in words.facts
            if subjects & {subject.lower() for subject in other.about}
            for form in words.forms_of(other.says)
        }
        wrong = {form.lower() for forms in words.alternatives(fact) for form in forms}
        assert not right & wrong, fact.fact
