"""What `judgebench check` and `judgebench list` find of attacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgebench.checks import check_all, listing
from judgebench.shipped import find_file, shipped_folder
from judgebench.stress_tests.probes.attacks import SHIPPED_SETS


def test_the_listing_names_attacks_that_can_be_used() -> None:
    for name, about in listing("attacks")["attacks"]:
        assert about
        find_file("adversarial", name, ".jsonl" if name in SHIPPED_SETS else ".yaml")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bandwagon.yaml", "the recipe bandwagon, version 1, an edit of the kind add"),
        ("words/drugs.yaml", "the word list drugs, version 1, 4"),
        ("words/synonyms.yaml", "the word list synonyms, version 1, "),
        ("consensus-violations.jsonl", "a set of 40 altered answers that pass every check"),
    ],
)
def test_attacks_are_told_as_what_they_are(name: str, told: str) -> None:
    found = check_all([shipped_folder("adversarial") / name], "medical-safety")
    assert not found.errors
    assert told in found.facts[0]


def test_a_set_that_fails_its_checks_is_an_error_for_each(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(
        '{"item_id": "x", "parent": "Rest.", "text": "Rest.", "must_worsen": {"bias": "Yes"}}\n'
    )
    found = check_all([path], "medical-safety")
    assert {error.field for error in found.errors} == {"x"}
    assert any("has the words of its parent" in error.message for error in found.errors)


def test_a_bench_of_sets_alone_is_checked_as_a_stress_test(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text("name: b\nrubric: medical-safety\nstress: {attacks: [consensus-violations]}\n")
    found = check_all([path], "medical-safety")
    assert not found.errors
    assert "40 answers and 40 altered ones" in found.facts[0]
