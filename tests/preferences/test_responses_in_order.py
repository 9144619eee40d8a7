"""Pairs and triples of responses that people scored, beside chance and the format's ceiling."""

import numpy as np
import pytest
from preference_case import POINTS, QUALITY, answer, rubric, study

import judgebench as jb
from judgebench.preferences.analysis import FORMAT_CEILING, HUMANS, Preferences, measure_preferences
from judgebench.records import Estimate

# Points of three people for systems A, B and C: clear, close, and a tie of A and B.
RATED = {"q1": ("555", "333", "111"), "q2": ("554", "544", "222"), "q3": ("444", "444", "333")}


def measured(points: dict[str, str], **more: object) -> Preferences:
    """`points` are a judge's for A, B and C on each question; `.` is a missing verdict."""
    answers = [answer(q, system) for q in RATED for system in "ABC"]
    humans = {
        f"p{i}": {
            f"{q}/{s}": {"quality": said[i]}
            for q, of in RATED.items()
            for s, said in zip("ABC", of, strict=True)
        }
        for i in range(3)
    }  # fmt: skip
    said = {
        f"{q}/{s}": {"quality": point}
        for q, of in points.items()
        for s, point in zip("ABC", of, strict=True)
        if point != "."
    }
    found = measure_preferences(study(rubric(QUALITY, **more), answers, humans, {"m": said}))
    assert found is not None
    return found


def right(found: Preferences, size: int, **keys: str) -> Estimate:
    keys = {"judge": "m", "failures": "left_out", **keys}
    return found.rows.find("right", "order", size=str(size), **keys)


def test_a_tie_must_be_answered_by_a_tie() -> None:
    perfect = measured({"q1": "531", "q2": "543", "q3": "441"})
    assert right(perfect, 2).value == right(perfect, 3).value == 1
    assert right(perfect, 2).n == 9
    blurred = measured({"q1": "531", "q2": "552", "q3": "543"})
    assert right(blurred, 2).value == pytest.approx(7 / 9)
    assert right(blurred, 3).value == pytest.approx(1 / 3)


def test_the_ceiling_of_the_format_and_chance_stand_beside_every_judge() -> None:
    found = measured({"q1": "531", "q2": "543", "q3": "441"})
    keys = {"judge": "", "who": FORMAT_CEILING}
    # q2: means 4.67, 4.33 and 2 are said as 5, 4 and 2
    assert right(found, 2, **keys).value == right(found, 3, **keys).value == 1
    for judge in ("m", "random"):
        chance = found.rows.find("chance", "order", size="2", judge=judge)
        assert 0 < chance.value < 1
    mine = found.rows.find("chance", "order", size="2", judge="m").value
    # strict questions: one half; q3: 1/3 of pairs tied on each side, 1/9 + (2/3)^2 / 2
    assert mine == pytest.approx((0.5 + 0.5 + 1 / 9 + 2 / 9) / 3)


def test_a_missing_verdict_is_a_third_outcome() -> None:
    found = measured({"q1": "5.1", "q2": "543", "q3": "441"})
    assert (right(found, 2).value, right(found, 2).n, right(found, 2).n_missing) == (1, 7, 2)
    assert right(found, 3).n_missing == 1
    assert right(found, 2, failures="worst").value == pytest.approx(7 / 9)
    assert right(found, 2, failures="best").value == 1
    assert right(found, 2, failures="worst").n_missing == 0


def test_scores_beside_the_mean_and_people_beside_each_other() -> None:
    found = measured({"q1": "531", "q2": "543", "q3": "441"})
    scores = {row.statistic: row.estimate for row in found.rows.select("response", judge="m")}
    assert set(scores) == {"pearson", "spearman", "icc", "alpha"}
    means = [0, 2, 4, 1 / 3, 2 / 3, 3, 1, 1, 2]  # severities: 5 points are 0
    wanted = np.corrcoef(means, [0, 2, 4, 0, 1, 2, 1, 1, 4])[0, 1]
    assert scores["pearson"].value == pytest.approx(wanted)
    people = found.rows.select("response", who=HUMANS)
    assert [row.statistic for row in people] == ["alpha", "icc"]
    assert all(row.estimate.n == 9 for row in people)


def test_win_rates_follow_from_the_scores() -> None:
    found = measured({"q1": "531", "q2": "543", "q3": "431"})
    keys = {"system": "A", "against": "B", "metric": "quality"}
    assert found.rows.find("humans", "win_rate", judge="", **keys).value == pytest.approx(2.5 / 3)
    assert found.rows.find("judge", "win_rate", judge="m", **keys).value == 1
    difference = found.rows.find("difference", "win_rate", judge="m", **keys)
    assert difference.value == pytest.approx(0.5 / 3)
    strength = found.rows.find("humans", "strength", judge="", system="A", metric="quality")
    assert strength.reason == (
        "no Bradley-Terry strengths exist: some systems won, or lost, every comparison with the "
        "others, or were never compared with them"
    )


def test_people_give_aspects_and_a_judge_one_label() -> None:
    """As in AutoMedEval: five doctors and three aspects, against one score of the judge's."""
    aspects = ("relevancy", "fluency", "knowledge")
    asked = rubric(
        *({**QUALITY, "id": name} for name in ("overall", *aspects)),
        composite={"overall": f"mean of [{', '.join(aspects)}]"},
    )
    answers = [answer(q, system) for q in ("q1", "q2") for system in "ABC"]
    points = {"q1/A": "543", "q1/B": "444", "q1/C": "222", "q2/A": "555", "q2/B": "554"}
    points["q2/C"] = "111"
    people = {
        f"doctor {i}": {
            item: dict(zip(aspects, said, strict=True)) for item, said in points.items()
        }
        for i in range(5)
    }
    people["doctor 4"]["q2/C"] = {"relevancy": "5"}  # not all three, so no score
    people["doctor 3"]["q2/C"]["overall"] = "5"  # is not asked for
    said = {"q1/A": "4", "q1/B": "4", "q1/C": "1", "q2/A": "5", "q2/B": "3", "q2/C": "4"}
    judge = {"m": {item: {"overall": point} for item, point in said.items()}}
    found = measure_preferences(study(asked, answers, people, judge))
    assert right(found, 2, metric="overall").value == pytest.approx(5 / 6)
    assert right(found, 3, metric="overall").value == 0.5
    people_scores = found.rows.find("alpha", "response", who=HUMANS, metric="overall")
    assert (people_scores.value, people_scores.n) == (1, 6)
    scores = found.rows.find("pearson", "response", judge="m", metric="overall")
    means = [4, 4, 2, 5, 14 / 3, 1]
    assert scores.value == pytest.approx(np.corrcoef(means, [4, 4, 1, 5, 3, 4])[0, 1])
    ceiling = right(found, 2, judge="", who=FORMAT_CEILING, metric="overall")
    assert ceiling.value == pytest.approx(5 / 6)  # 4.67 points are said as 5
    keys = {"metric": "overall", "system": "A", "against": "B"}
    assert found.rows.find("humans", "win_rate", judge="m", **keys).value == 0.75
    assert found.rows.find("judge", "win_rate", judge="m", **keys).value == 0.75
    assert found.titles["overall"] == "Overall"


def test_all_responses_at_once_where_there_are_more_than_three() -> None:
    answers = [answer(q, system) for q in "qr" for system in "ABCDE"]
    labels = {a.item_id: {"quality": POINTS[i % 5]} for i, a in enumerate(answers)}
    found = measure_preferences(study(rubric(QUALITY), answers, {"p": labels}, {"m": labels}))
    assert right(found, 5).value == 1
    assert right(found, 5).n == 2
    chance = found.rows.find("chance", "order", size="5", judge="m")
    assert chance.value == pytest.approx(1 / 120)
    assert np.isclose(right(found, 3).n, 20)


def test_places_in_a_list_are_nobody_whose_agreement_could_be_compared() -> None:
    answers = [answer(q, system) for q in "qrs" for system in "AB"]
    labels = [
        {a.item_id: {"quality": POINTS[(i * k) % 5]} for i, a in enumerate(answers)} for k in (1, 2)
    ]
    people = {f"crowd#{k}": given for k, given in enumerate(labels)}
    found = measure_preferences(study(rubric(QUALITY), answers, people, {"m": labels[0]}))
    assert [row.statistic for row in found.rows.select("response", who=HUMANS)] == ["alpha"]


def test_responses_that_nobody_compared_are_measured_where_it_is_asked_for() -> None:
    answers = [answer(q, system) for q in "qrs" for system in "AB"]
    labels = {a.item_id: {"quality": POINTS[i % 5]} for i, a in enumerate(answers)}
    given = study(rubric(QUALITY), answers, {"p": labels}, {"m": labels})
    assert "preferences" not in jb.analyse(given)
    assert "preferences" in jb.analyse(given, every=True)
    assert jb.prefer(given).results.select("order")
    whole = study(
        rubric(QUALITY, composite={"overall": "mean of [quality]"}),
        answers,
        {"p": labels},
        {"m": labels},
    )
    assert "preferences" in jb.analyse(whole)
