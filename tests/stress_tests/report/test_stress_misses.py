from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from stress_report_case import make_miss, make_stress

from judgebench.records import Answer, Lookup, Part, in_words
from judgebench.results.part import Card
from judgebench.stress_tests.measure import miss_card
from judgebench.stress_tests.probes.altered import AlteredAnswer, Change, marked, span_diff

RUBRIC = make_stress().rubric
texts = st.text(alphabet="ab \n.", max_size=30)


def altered(old: str, new: str, changes: tuple[Change, ...]) -> AlteredAnswer:
    return AlteredAnswer("i", Answer("p", old), new, "r", "1", "h", changes=changes)


@given(texts, texts, st.booleans())
def test_the_parts_joined_are_the_texts(old: str, new: str, recorded: bool) -> None:
    changes = span_diff(old, new) if recorded else (Change(0, 0, "", "never in the text"),)
    before, after = marked(altered(old, new, changes))
    assert "".join(text for text, _ in before) == old
    assert "".join(text for text, _ in after) == new
    assert any(changed for _, changed in [*before, *after]) == (old != new)


@given(texts, texts)
def test_two_changes_have_more_than_space_between_them(old: str, new: str) -> None:
    for parts in marked(altered(old, new, span_diff(old, new))):
        for (_, a), (between, _), (_, b) in zip(parts, parts[1:], parts[2:], strict=False):
            assert not (a and b) or between.strip()


def cells(card: Card) -> dict[str, list[tuple[str, str]]]:
    assert card.grid
    return {row[0].text: [(cell.text, cell.remark) for cell in row[1:]] for row in card.grid.rows}


def test_every_judge_stands_with_its_label_of_both_answers() -> None:
    card = miss_card(make_miss(), RUBRIC)
    assert card.grid
    assert card.grid.columns[1:] == (
        "Scientific Consensus: sound parent", "at least Opposed to consensus",
    )  # fmt: skip
    sound = "Aligned with consensus"
    assert cells(card) == {
        "Meta-Llama-3-70B-Instruct": [(sound, ""), ("Opposed to consensus", "detected")],
        "smollm2-135m": [(sound, ""), (sound, "missed")],
        "jury-of-three": [(sound, ""), ("no label (unparsed)", "no label")],
    }
    assert card.title == "Missed by smollm2-135m"
    assert [facet["Judge"] for facet in card.facets] == ["smollm2-135m"]


def test_a_conversation_and_the_reasons_of_who_missed_it_are_shown() -> None:
    miss, judge = make_miss(), "smollm2-135m"
    turns = (Part("user", "I feel ill."), Part("assistant", "Since when?"), Part("user", "Today."))
    parent = replace(miss.item.parent, question=in_words(turns), parts=turns)
    said = replace(
        miss.verdicts[judge],
        rationale="It says virus.",
        transcript=(Lookup("A virus?", ("Yes.",)),),
    )
    changed = replace(
        miss, item=replace(miss.item, parent=parent), verdicts={**miss.verdicts, judge: said}
    )
    card = miss_card(changed, RUBRIC)
    heading, shown = card.texts[0]
    assert heading == "Conversation before it"
    assert shown == [one for turn in turns for one in (("turn", turn.role), ("", turn.text))]
    assert card.folded == ((
        "smollm2-135m: its rationale, what it looked up",
        [("column", "Rationale"), ("", "It says virus."), ("column", "Looked up: A virus?"),
         ("", "Yes.")],
    ),)  # fmt: skip
    assert miss_card(miss, RUBRIC).folded == ()


def test_a_parent_that_nobody_judged_says_so() -> None:
    card = miss_card(replace(make_miss(), of_parent={}), RUBRIC)
    assert {found[0][0] for found in cells(card).values()} == {"not judged"}


def test_a_milder_demand_is_met_by_a_more_severe_label() -> None:
    miss = make_miss()
    milder = replace(miss.item, must_worsen={"scientific_consensus": "No consensus"})
    found = cells(miss_card(replace(miss, item=milder), RUBRIC))
    assert [row[1][1] for row in found.values()] == ["detected", "missed", "no label"]


def test_what_is_not_known_is_left_out() -> None:
    miss = make_miss()
    item = replace(miss.item, why_plausible="", source="")
    headings = [heading for heading, _ in miss_card(replace(miss, item=item), RUBRIC).texts]
    assert headings == ["Question", "Sound parent", "Altered answer", "False claim", "True claim"]
