"""Preferences between two responses: votes, triples, positions, and whom a judge favours."""

import doctest
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest
from preference_case import PREFERENCE, QUALITY, answer, mtbench, pair, rubric, study

import judgebench as jb
from judgebench.preferences.analysis import HUMANS, Preferences, by_scores, measure_preferences
from judgebench.records import Estimate, Showing
from judgebench.results.blocks import figures_of

QUESTIONS = ("q", "r", "s", "t")


def three(labels: str) -> dict[str, dict[str, str]]:
    """One label for A-B, A-C and B-C of each question: 1, 2 or t; `.` is none."""
    said = {"1": "first", "2": "second", "t": "tie"}
    pairs = [f"{q}/{a} vs {b}" for q in QUESTIONS for a, b in combinations("ABC", 2)]
    return {i: {"better": said[x]} for i, x in zip(pairs, labels, strict=True) if x != "."}


def measured(people: dict[str, str], judge: str, **more: object) -> Preferences:
    answers = [pair(q, a, b) for q in QUESTIONS for a, b in combinations("ABC", 2)]
    humans = {who: three(labels) for who, labels in people.items()}
    found = measure_preferences(
        study(rubric(PREFERENCE), answers, humans, {"m": three(judge)}, **more)
    )
    assert found is not None
    return found


def order(found: Preferences, statistic: str, size: int, **keys: str) -> Estimate:
    keys = {"judge": "m", **({"failures": "left_out"} if statistic == "right" else {}), **keys}
    return found.rows.find(statistic, "order", size=str(size), **keys)


def test_mtbench_gives_the_published_agreement(shared_data: Path, tmp_path: Path) -> None:
    found = jb.prefer(mtbench(shared_data / "mtbench-human", tmp_path))
    shares = {
        (row.judge or row["who"], row["ties"]): round(row.estimate.value, 3)
        for row in found.results.select("vote", "agreement")
        if row["who"] or row.judge == "gpt-4"
    }
    assert shares == {
        (HUMANS, "counted"): 0.630, (HUMANS, "left out"): 0.810,
        ("gpt-4", "counted"): 0.660, ("gpt-4", "left out"): 0.846,
    }  # fmt: skip
    own = found.results.select("own_system", judge="gpt-4")
    assert {row["system"] for row in own} == {"gpt-4"}
    difference = found.results.find("difference", "own_system", judge="gpt-4")
    assert 0 < difference.low < difference.value < difference.high
    ranked = found.results.find("tau_b", "ranking", judge="gpt-4")
    assert (ranked.value, ranked.n) == (1, 6)


def test_triples_and_preferences_that_go_round_in_a_circle() -> None:
    # A > B > C; a circle; A = B > C; A > B = C
    found = measured({"p1": "111" + "121" + "t11" + "11t"}, "111" + "111" + "111" + "121")
    assert order(found, "right", 2).value == pytest.approx(8 / 12)
    assert order(found, "right", 3).value == pytest.approx(1 / 3)
    assert order(found, "right", 3).n == 3  # the humans' circle is no order
    assert order(found, "intransitive", 3, judge="", who=HUMANS).value == 0.25
    assert order(found, "intransitive", 3).value == pytest.approx(1 / 3)


def test_two_responses_of_one_system_are_two() -> None:
    answers = [pair(q, a, b) for q in QUESTIONS for a, b in combinations("ABC", 2)]
    alike = {"A": "gpt", "B": "gpt", "C": "llama"}
    answers = [
        replace(one, parts=tuple(replace(part, name=alike[part.name]) for part in one.parts))
        for one in answers
    ]
    humans = {"p": three("111" * len(QUESTIONS))}
    found = measure_preferences(study(rubric(PREFERENCE), answers, humans, {"m": humans["p"]}))
    assert found is not None
    right = order(found, "right", 3)
    assert (right.value, right.n) == (1, len(QUESTIONS))


def test_every_vote_counts_and_a_missing_verdict_is_a_third_outcome() -> None:
    found = measured({"p1": "111" * 4, "p2": "11t" * 4, "p3": "2" * 12}, "11." * 4)
    agreed = {
        (row["ties"], row["failures"]): row.estimate
        for row in found.rows.select("vote", "agreement", judge="m")
    }
    both = agreed["counted", "left_out"]
    assert (both.value, both.n, both.n_missing) == (pytest.approx(2 / 3), 24, 12)
    assert agreed["counted", "worst"].value == pytest.approx(16 / 36)
    assert agreed["counted", "best"].value == pytest.approx(28 / 36)
    assert agreed["left out", "best"].value == pytest.approx(24 / 32)
    people = found.rows.find("agreement", "vote", who=HUMANS, ties="counted")
    assert (people.value, people.n) == (pytest.approx(8 / 36), 36)
    people = found.rows.find("agreement", "vote", who=HUMANS, ties="left out")
    assert (people.value, people.n) == (pytest.approx(8 / 28), 28)


def test_pairs_that_were_not_read_in_both_orders_are_missing() -> None:
    """Of twenty pairs thirteen were read in both orders, four in one, and three never."""
    items = [f"q{i}/A vs B" for i in range(20)]
    said = (
        [("first", "second")] * 9 + [("first", "first")] * 3 + [("tie", "second")] + [("tie",)] * 4
    )
    shown = {
        item: [Showing(place, 2, {"better": label}) for place, label in enumerate(labels)]
        for item, labels in zip(items, said, strict=False)
    }
    shown |= {item: [Showing(0, 2), Showing(1, 2)] for item in items[17:]}
    answers = [pair(f"q{i}", "A", "B") for i in range(20)]
    labels = {"p": {item: {"better": "first"} for item in items}}
    judged = {"m": {item: {} for item in items}}
    found = measure_preferences(study(rubric(PREFERENCE), answers, labels, judged, shown))
    counts = {
        row.statistic: (row.estimate.value, row.estimate.n, row.estimate.n_missing)
        for row in found.rows.select("position", judge="m")
    }
    assert counts["flipped"] == (pytest.approx(3 / 13), 13, 7)
    assert counts["changed"] == (pytest.approx(4 / 13), 13, 7)  # a tie that is first then too
    assert counts["first_place"] == (pytest.approx(15 / 25), 25, 10)


def _recorded(first: list[str]) -> jb.Study:
    """GPT-4's verdicts on A against B of eight questions, by whom it was shown first."""
    said = {"item_id": [f"q{i}" for i in range(8)], "model_a": "A", "model_b": "B"}
    people = pd.DataFrame({**said, "annotator": "p", "better": ["A"] * 4 + ["B"] * 4})
    swayed = ["A", "A", "A", "tie", "A", "B", "A", "B"]
    judged = {**said, "judge": "gpt-4", "better": swayed, "shown_first": first}
    return jb.study(people, pd.DataFrame(judged), rubric=rubric(PREFERENCE))


def test_recorded_verdicts_have_a_place_where_a_column_says_who_was_shown_first() -> None:
    """By name or by column; the first of the pair is drawn by a hash."""
    study = _recorded(["A", "B", "model_a", "A", "model_b", "B", "A", ""])
    first = jb.prefer(study).rows.find("first_place", "position", judge="gpt-4")
    # Shown first and preferred: q0, q2, q5, q6; shown first and not: q1, q4; a tie; unknown.
    assert (first.value, first.n, first.n_missing) == (pytest.approx(4 / 6), 6, 1)
    flipped = jb.prefer(study).rows.find("flipped", "position", judge="gpt-4")
    assert (flipped.value, flipped.reason) == (None, "no pair has two verdicts, one in each order")
    (plain,) = (j for j in _recorded([""] * 8).judges if j.name == "gpt-4")
    (told,) = (j for j in study.judges if j.name == "gpt-4")
    assert plain.signature != told.signature
    with pytest.raises(jb.SetupError, match=r":3: shown_first: is neither response .* 'C'"):
        _recorded(["A", "C", *["A"] * 6])


def test_a_report_of_preferences_alone_is_written(tmp_path: Path) -> None:
    written = jb.report(jb.prefer(_recorded(["A"] * 8)), tmp_path / "out")
    assert "Preference for a place" in written["html"].read_text("utf-8")


def test_the_place_in_a_list() -> None:
    answers = [answer(q, system) for q in QUESTIONS for system in "AB"]
    labels = {a.item_id: {"quality": "53"[i % 2]} for i, a in enumerate(answers)}
    shown = {a.item_id: [Showing(i % 2, 2, labels[a.item_id])] for i, a in enumerate(answers)}
    shown["q/A"].append(Showing(4, 5, {"quality": "1"}))
    shown["q/B"].append(Showing(0, 1, {"quality": "1"}))  # alone it has no place
    found = measure_preferences(
        study(rubric(QUALITY), answers, {"p": labels}, {"m": labels}, shown)
    )
    places = {row["place"]: row.estimate for row in found.rows.select("place", "severity")}
    assert {place: (e.value, e.n) for place, e in places.items()} == {
        "1": (0, 4),
        "2": (2, 4),
        "5": (4, 1),
    }


def test_scores_of_single_responses_are_preferences_too() -> None:
    answers = [answer(q, s) for q in QUESTIONS for s in "AB"] + [
        pair(q, "A", "B") for q in QUESTIONS
    ]
    humans = {"p": {f"{q}/A vs B": {"better": "first"} for q in QUESTIONS}}
    points = {"q": "53", "r": "44", "s": "35", "t": "5."}
    said = {
        f"{q}/{s}": {"quality": x}
        for q, of in points.items()
        for s, x in zip("AB", of, strict=True)
        if x != "."
    }
    found = measure_preferences(study(rubric(PREFERENCE, QUALITY), answers, humans, {"m": said}))
    name = by_scores("m", "Quality")
    right = order(found, "right", 2, judge=name)
    assert (right.value, right.n, right.n_missing) == (pytest.approx(1 / 3), 3, 1)
    assert found.judges[name] == "judge"
    assert not found.rows.select("order", judge=by_scores("random", "Quality"))
    rate = found.rows.find("judge", "win_rate", judge=name, system="A", against="B")
    assert rate.value == 0.5


def test_what_a_judge_was_never_asked_is_no_lost_vote() -> None:
    def agreed(unasked: object) -> list[tuple[float | None, int, int]]:
        items = [pair(q, "A", "B") for q in QUESTIONS]
        humans = {"p": {x.item_id: {"better": "first"} for x in items}}
        judges = {"m": {**humans["p"], items[-1].item_id: unasked}}
        found = measure_preferences(study(rubric(PREFERENCE), items, humans, judges))
        rows = found.rows.select("vote", "agreement", judge="m", ties="counted")
        return [(r.estimate.value, r.estimate.n, r.estimate.n_missing) for r in rows]

    assert agreed(None) == [(1, 3, 0)]
    assert agreed({}) == [(1, 3, 1), (3 / 4, 4, 0), (1, 4, 0)]


def test_a_judge_that_likes_long_answers() -> None:
    found = measured({"p": "112" * 4}, "111" * 4)  # the first of a pair is the longer
    by = {row.statistic: row.estimate for row in found.rows.select("longer", judge="m")}
    assert by["judge"].value == 1
    assert by["humans"].value == pytest.approx(2 / 3)
    assert by["difference"].value == pytest.approx(1 / 3)
    assert {e.n for e in by.values()} == {12}


def test_what_is_shown_of_it() -> None:
    found = measured({"p1": "112" + "211" + "121" + "11t", "p2": "111" * 4}, "112" + "21t" * 3)
    assert "in the humans&#39; order" in found._repr_html_()
    frame = found.to_frame()
    assert set(frame.analysis) == {"order", "vote", "win_rate", "strength", "ranking", "longer"}
    undefined = frame.value.isna()
    assert (frame.reason[undefined] != "").all()
    assert (frame.method[~undefined & frame.low.notna()] != "").all()
    (figure,) = figures_of([found.part])
    lanes = {(system, lane.name): lane.estimate for system, of in figure.lines for lane in of}
    assert lanes.keys() == {(system, name) for system in "ABC" for name in ("Humans", "m")}
    keys = {"system": "A", "against": ""}
    assert lanes["A", "m"] == found.rows.find("judge", "win_rate", judge="m", **keys)


def test_a_study_without_several_responses_is_told() -> None:
    answers = [answer(q, "A") for q in "qrs"]
    labels = {a.item_id: {"quality": "3"} for a in answers}
    alone = study(rubric(QUALITY), answers, {"p": labels}, {"m": labels})
    with pytest.raises(jb.SetupError, match="holds no question with several responses"):
        jb.prefer(alone)


def test_more_systems_than_can_be_shown_are_left_out_and_that_is_said() -> None:
    answers = [pair("q", "s0", f"s{i}") for i in range(1, 22)]
    labels = {a.item_id: {"better": "first"} for a in answers}
    found = measure_preferences(study(rubric(PREFERENCE), answers, {"p": labels}, {"m": labels}))
    assert not found.rows.select("win_rate")
    assert found.part.notes == (
        "Better: win rates and rankings of 22 systems, more than 20, are left out.",
    )


def test_a_judge_that_always_names_the_first_it_sees(tmp_path, monkeypatch) -> None:
    rows = [f"{q}-{s},What of {q}?,{s},{s} says {q}" for q in "qrs" for s in ("m1", "m2")]
    tables = {
        "answers.csv": "\n".join(["item_id,question,system,text", *rows]),
        "votes.csv": "\n".join(
            ["item_id,model_a,model_b,annotator,winner"]
            + [f"What of {q}?,m1,m2,{who},m1" for q in "qrs" for who in ("ann", "bob")]
        ),
        "replies.jsonl": '{"text": "{\\"preference\\": \\"first\\"}"}\n',
        "bench.yaml": "name: sided\nrubric: preference\npairs: all\n"
        "data: [answers.csv, votes.csv]\n"
        "judges: [{name: sided, backend: 'scripted:replies.jsonl', prompt: compare}]\n",
    }
    for name, text in tables.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    study = jb.run("bench.yaml", "runs/small")
    found = jb.analyse(study)["preferences"].results
    flipped = found.find("flipped", "position", judge="sided")
    assert (flipped.value, flipped.n) == (1, 3)
    first = found.find("first_place", "position", judge="sided")
    assert (first.value, first.n) == (1, 6)
    keys = {"judge": "sided", "system": "m1", "against": "m2"}
    assert found.find("judge", "win_rate", **keys).value == 0.5  # inconsistent is a tie
    assert found.find("difference", "win_rate", **keys).value == -0.5
    (test,) = doctest.DocTestFinder().find(jb.prefer, "prefer")
    assert doctest.DocTestRunner().run(test).failed == 0
