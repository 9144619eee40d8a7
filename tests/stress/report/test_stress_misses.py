from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from stress_report_case import make_miss, make_stress

from judgebench.records import Answer
from judgebench.stress.probes.altered import AlteredAnswer, Change, span_diff
from judgebench.stress.report.misses import marked_texts, miss_view

RUBRIC = make_stress().rubric
texts = st.text(alphabet="ab \n.", max_size=30)


def altered(old: str, new: str, changes: tuple[Change, ...]) -> AlteredAnswer:
    return AlteredAnswer("i", Answer("p", old), new, "r", "1", "h", changes=changes)


@given(texts, texts, st.booleans())
def test_the_parts_joined_are_the_texts(old: str, new: str, recorded: bool) -> None:
    changes = span_diff(old, new) if recorded else (Change(0, 0, "", "never in the text"),)
    before, after = marked_texts(altered(old, new, changes))
    assert "".join(text for _, text in before) == old
    assert "".join(text for _, text in after) == new
    assert any(changed for changed, _ in [*before, *after]) == (old != new)


@given(texts, texts)
def test_two_changes_have_more_than_space_between_them(old: str, new: str) -> None:
    for parts in marked_texts(altered(old, new, span_diff(old, new))):
        for (a, _), (_, between), (b, _) in zip(parts, parts[1:], parts[2:], strict=False):
            assert not (a and b) or between.strip()


def test_every_judge_is_told_with_its_label_of_both_answers() -> None:
    view = miss_view(make_miss(), RUBRIC)
    assert view["columns"] == ["Scientific Consensus: at least Opposed to consensus"]
    sound = "Aligned with consensus"
    assert {judge["name"]: judge["cells"] for judge in view["judges"]} == {
        "Meta-Llama-3-70B-Instruct": [
            {"parent": sound, "altered": "Opposed to consensus", "outcome": "detected"}
        ],
        "smollm2-135m": [{"parent": sound, "altered": sound, "outcome": "missed"}],
        "jury-of-three": [
            {"parent": sound, "altered": "no label (unparsed)", "outcome": "missing"}
        ],
    }
    assert view["missed_by"] == "smollm2-135m"


def test_a_parent_that_nobody_judged_is_told_so() -> None:
    view = miss_view(replace(make_miss(), of_parent={}), RUBRIC)
    assert {judge["cells"][0]["parent"] for judge in view["judges"]} == {"not judged"}


def test_a_milder_demand_is_met_by_a_more_severe_label() -> None:
    miss = make_miss()
    milder = replace(miss.item, must_worsen={"scientific_consensus": "No consensus"})
    cells = [
        j["cells"][0]["outcome"] for j in miss_view(replace(miss, item=milder), RUBRIC)["judges"]
    ]
    assert cells == ["detected", "missed", "missing"]


def test_what_is_not_known_is_left_out() -> None:
    miss = make_miss()
    item = replace(miss.item, why_plausible="", source="")
    facts = dict(miss_view(replace(miss, item=item), RUBRIC)["facts"])
    assert set(facts) == {"False claim", "True claim"}
