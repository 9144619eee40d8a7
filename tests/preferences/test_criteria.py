"""Criteria that items bring: scores of items, agreement by tag and by criterion."""

import pytest
from preference_case import rubric, study

from judgebench.preferences.analysis import Preferences, measure_preferences
from judgebench.preferences.criteria import ALL
from judgebench.records import Answer, Part

MET = {"id": "met", "kind": "nominal", "of": "criterion", "labels": ["met", "not met"]}
# criterion -> points, tags
CRITERIA = {"dose": ("5", "safety|facts"), "referral": ("3", "safety"), "invented": ("-4", "facts")}
ITEMS = ("a", "b", "c", "d")


def row(item: str, name: str) -> Answer:
    points, tags = CRITERIA[name]
    part = Part("criterion", f"about the {name}", name, item)
    about = {"points": points, "tags": tags}
    return Answer(f"{item}#{name}", f"text {item}", group=item, metadata=about, parts=(part,))


def labels(said: str) -> dict[str, dict[str, str]]:
    """`+`, `-` or `.` for each criterion of each item."""
    ids = [f"{item}#{name}" for item in ITEMS for name in CRITERIA]
    words = {"+": "met", "-": "not met"}
    return {i: {"met": words[x]} for i, x in zip(ids, said, strict=True) if x != "."}


def measured(people: dict[str, str], judge: str) -> Preferences:
    answers = [row(item, name) for item in ITEMS for name in CRITERIA]
    humans = {who: labels(said) for who, said in people.items()}
    found = measure_preferences(study(rubric(MET), answers, humans, {"m": labels(judge)}))
    assert found is not None
    return found


def test_an_item_scores_the_points_it_earned_over_the_positive_ones() -> None:
    found = measured({"p": "++-+----+-+-"}, "++-++---+-+-")
    score = {
        row.statistic: row.estimate
        for row in found.rows.select("item_score", judge="m", failures="left_out")
    }
    assert score["humans"].value == pytest.approx((1 + 5 / 8 - 4 / 8 + 3 / 8) / 4)
    assert score["judge"].value == pytest.approx((1 + 1 - 4 / 8 + 3 / 8) / 4)
    assert score["difference"].value == pytest.approx(3 / 8 / 4)
    assert 0.9 < score["pearson"].value < 1
    assert score["icc"].n == 4
    random = found.rows.find("difference", "item_score", judge="random")
    assert random.n == 4


def test_agreement_by_tag_and_by_criterion() -> None:
    found = measured({"p": "++-+----+-+-"}, "++-++---+-+.")

    def agreed(**keys: str) -> tuple[float | None, int, int]:
        e = found.rows.find("agreement", "criterion", judge="m", **keys)
        return e.value, e.n, e.n_missing

    assert agreed(tag=ALL) == (pytest.approx(10 / 11), 11, 1)
    assert agreed(tag="safety") == (pytest.approx(7 / 8), 8, 0)
    assert agreed(tag="facts") == (1, 7, 1)
    assert agreed(criterion="referral") == (0.75, 4, 0)
    tables = {t.key: t.rows for block in found.part.blocks for t in block.tables}
    tags, criteria = (
        [row[2].text for row in tables[f"preferences_{by}"] if row[1].text == "m"]
        for by in ("tag", "criterion")
    )
    assert (tags, criteria) == ([ALL, "facts", "safety"], ["dose", "referral", "invented"])


def test_an_item_without_some_label_of_the_humans_is_missing() -> None:
    found = measured({"p": "++-+--.--..."}, "++-++---+-+-")  # of c some labels, of d none
    for row in found.rows.select("item_score", judge="m", failures="left_out"):
        assert (row.estimate.n, row.estimate.n_missing) == (2, 1)


def test_an_item_without_some_label_of_the_judge_is_a_third_outcome() -> None:
    found = measured({"p": "++-+----+-+-"}, "++-+-.--+-+-")
    by = {
        row["failures"]: row.estimate
        for row in found.rows.select("item_score", "difference", judge="m")
    }
    assert (by["left_out"].value, by["left_out"].n, by["left_out"].n_missing) == (0, 3, 1)
    assert by["best"].value == 0
    assert by["worst"].value == pytest.approx(-4 / 8 / 4)  # as if it found what nobody invented
