"""Labelled answers that are not like all answers, that were drawn with chances, and groups."""

import numpy as np
import pandas as pd
import pytest

import judgebench as jb
from judgebench.decisions.decision import Decision, Decisions, Outcome
from judgebench.stats.intervals import paired_difference
from judgebench.studies.study import Study

TEXTS = np.array(["fine", "harm"])
RUBRIC = jb.Rubric.from_labels({"harm": [*TEXTS]})


def study(
    n: int = 1200, labelled: np.ndarray | None = None, errors: np.ndarray | float = 0.02,
    columns: dict[str, np.ndarray] | None = None, severe: float = 0.3, drawn: tuple[str, ...] = (),
    seed: int = 0,
) -> Study:  # fmt: skip
    """Answers of two systems in turn, of which three people labelled a part."""
    rng = np.random.default_rng(seed)
    true, items = rng.random(n) < severe, np.array([f"i{i}" for i in range(n)])
    given = np.ones(n, dtype=bool) if labelled is None else labelled
    people = [
        pd.DataFrame({"item_id": items, "annotator": f"p{p}", "harm": TEXTS[said.astype(int)]})[
            given
        ]
        for p in range(3)
        if (said := true ^ (rng.random(n) < 0.05)).any()
    ]
    judged = TEXTS[(true ^ (rng.random(n) < errors)).astype(int)]
    verdicts = pd.DataFrame({"item_id": items, "judge": "j", "harm": judged})
    system = np.where(np.arange(n) % 2, "new", "old")
    answers = pd.DataFrame({"item_id": items, "text": items, "system": system} | (columns or {}))
    truth = {"blind": "yes", "independent_items": True, "drawn": drawn}
    kept = dict.fromkeys(columns or (), "kept")
    return jb.study(pd.concat(people), verdicts, answers, rubric=RUBRIC, truth=truth, columns=kept)


def decide(**given: object) -> Decision:
    return jb.decide(study(**given)).decisions[0]


N = 1200
OLD, NEW = np.arange(N) % 2 == 0, np.arange(N) % 2 == 1


def test_a_system_that_nobody_labelled_withholds_replace_and_is_named() -> None:
    found = decide(labelled=OLD, errors=np.where(NEW, 0.3, 0.02))
    assert (found.outcome, found.would_be) == (Outcome.CANT_TELL, Outcome.REPLACE)
    assert "system new (0 % of those labelled, 50 % of all)" in found.reason
    assert "--drawn" in found.advice


def test_neither_does_a_judge_fail_for_all_by_the_labelled_part() -> None:
    found = decide(labelled=OLD, errors=np.where(OLD, 0.4, 0.02))
    assert (found.outcome, found.would_be) == (Outcome.CANT_TELL, Outcome.DO_NOT_USE)


def test_align_and_compare_say_so_too() -> None:
    one = study(labelled=OLD)
    told = "Every number is of the labelled ones."
    assert any(told in note for note in jb.align(one).notes)
    assert any(told in note for note in jb.compare(one, one).notes)


def test_answers_labelled_at_random_are_decided_on_and_what_is_declared_is_believed() -> None:
    at_random = np.random.default_rng(1).random(N) < 0.5
    assert decide(labelled=at_random).outcome is Outcome.REPLACE
    found = jb.decide(study(labelled=OLD, drawn=("random",)))
    assert found.decisions[0].outcome is Outcome.REPLACE
    assert any("system new" in note for note in found.notes)


def test_as_many_of_each_system_are_weighed_by_system() -> None:
    few = NEW & (np.random.default_rng(2).random(N) < 0.4)
    whole = decide(errors=np.where(NEW, 0.12, 0.01), seed=3)
    found = decide(labelled=OLD | few, errors=np.where(NEW, 0.12, 0.01), seed=3)
    gap, every = (
        next(c.estimate for c in d.replace if c.key == "humans_accuracy") for d in (found, whole)
    )
    assert found.would_be is None
    assert gap.value == pytest.approx(every.value, abs=0.02)
    alone = decide(labelled=OLD, errors=np.where(NEW, 0.12, 0.01), seed=3)
    assert alone.replace[0].estimate.value > gap.value + 0.03


ENRICHED = {"n": 5000, "severe": 0.06}


def enriched(errors: np.ndarray | float, seed: int, weighted: bool = True) -> Decision:
    """Of the answers that the judge flags 250 are labelled, and of the others 250."""
    rng = np.random.default_rng(100 + seed)
    whole = study(**ENRICHED, errors=errors, seed=seed)
    judged = whole.judged(whole.real_judges[0], whole.rubric.metrics[0])
    flagged = judged[[whole.answers.row(f"i{i}") for i in range(ENRICHED["n"])]] == 1
    chance = np.where(flagged, 250 / flagged.sum(), 250 / (~flagged).sum())
    columns = {"probability": chance.astype(str)} if weighted else {}
    labelled = rng.random(ENRICHED["n"]) < chance
    drawn = () if weighted else ("random",)
    return decide(
        **ENRICHED, errors=errors, seed=seed, labelled=labelled, columns=columns, drawn=drawn
    )


def test_enriched_samples_are_weighted() -> None:
    """Of answers that the judge flags, it is wrong on one in five: that says little of all."""
    weighted, plain = (
        next(c.estimate for c in d.replace if c.key == "humans_accuracy")
        for d in (enriched(0.015, 0), enriched(0.015, 0, weighted=False))
    )
    lead = 0.05 - 0.015  # in errors, of which the labels of others leave nine tenths
    assert weighted.low < 0.9 * lead < weighted.high
    assert plain.high < 0
    found = enriched(0.2, 0)  # as a filter it is not weighed, so that nothing is said of it
    assert "a filter is not weighed" in found.numbers


def test_the_gap_is_the_weighted_mean_and_its_interval_that_of_weighted_sums() -> None:
    at_random = np.random.default_rng(8)
    weights = at_random.choice([1.0, 2.0, 5.0], 400)
    one = study(n=400, columns={"weight": weights.astype(str)})
    humans = one.humans["harm"]
    own, judged = humans.ratings.values, one.judged(one.real_judges[0], one.rubric.metrics[0])
    others = np.stack([np.delete(own, a, axis=1) for a in range(3)])
    settled = np.where(others[..., 0] == others[..., 1], others[..., 0], 1).T  # ties: the worse
    apart = ((judged[:, None] == settled) * 1.0 - (own == settled)).mean(axis=1)
    w = np.array([float(one.answers[row].metadata["weight"]) for row in humans.ratings.rows])
    e = next(c.estimate for c in jb.decide(one).decisions[0].replace)
    assert e.value == pytest.approx((w * apart).sum() / w.sum(), abs=1e-12)
    by_item = ((w * apart)[:, None], w[:, None], np.ones((1, 400)))
    limits = paired_difference(*by_item, 0.95)
    assert (e.low, e.high) == pytest.approx((limits.low[0], limits.high[0]), abs=1e-9)


def test_weights_that_are_none_are_named() -> None:
    with pytest.raises(jb.SetupError, match="must be a positive number, at most 1"):
        decide(columns={"probability": np.where(NEW, "many", "0.5")})
    with pytest.raises(jb.SetupError, match="wieght"):
        decide(drawn=("wieght=w",))
    with pytest.raises(jb.SetupError, match="no table has this column"):
        decide(drawn=("strata=arm",))


def test_a_stratum_without_labels_is_an_error_and_no_reason_not_to_weigh() -> None:
    with pytest.raises(jb.SetupError, match="a stratum has no human label"):
        decide(labelled=OLD, drawn=("strata=system",))


def test_weights_that_are_all_the_same_are_none() -> None:
    same, none = (decide(columns=columns) for columns in ({"weight": np.full(N, "3")}, {}))
    assert [c.estimate for c in same.replace] == [c.estimate for c in none.replace]
    assert [c.estimate for c in same.assist] == [c.estimate for c in none.assist]


def test_few_answers_that_stand_for_many_decide_nothing() -> None:
    heavy = np.where(np.arange(N) < 6, "200", "1")
    found = decide(columns={"weight": heavy})
    assert found.reason.startswith("10 labelled answers stand for more than a quarter of all")


def test_of_few_questions_a_system_without_labels_is_found_all_the_same() -> None:
    few = OLD & (np.arange(N) < 32)
    found = decide(labelled=few, errors=0.95)
    assert (found.outcome, found.would_be) == (Outcome.CANT_TELL, Outcome.DO_NOT_USE)
    assert "system new" in found.reason
    assert any("system new (0 % of those" in note for note in jb.decide(study(labelled=few)).notes)


# --- groups ----------


def in_language(errors: float, share: float = 0.25) -> Decisions:
    n = 1600
    german = np.random.default_rng(5).random(n) < share
    columns = {"language": np.where(german, "de", "en")}
    return jb.decide(study(n=n, errors=np.where(german, errors, 0.01), columns=columns))


def test_a_kept_column_shows_where_a_judge_falls_short_and_replace_leaves_it_out() -> None:
    found = in_language(0.18)
    (decision,) = found.decisions
    assert decision.outcome is Outcome.REPLACE
    assert decision.shown == "REPLACE, except for language = de"
    assert "On answers of language = de (" in decision.reason
    assert found.part.answer.startswith("Yes, except for language = de. ")
    assert found.results.select("decision")[0]["outcome"] == decision.shown
    assert next(iter(found.part.standings)).outcome == decision.shown


@pytest.mark.parametrize("others", [[""], ["en"] + [f"x{i}" for i in range(30)]])
def test_one_large_group_is_looked_at_and_so_are_blanks(others: list[str]) -> None:
    """The others are blank, or in groups too small to be looked at."""
    n, rng = 1600, np.random.default_rng(5)
    german = rng.random(n) < 0.25
    columns = {"language": np.where(german, "de", rng.choice(others, n))}
    made = study(n=n, errors=np.where(german, 0.18, 0.01), columns=columns)
    assert jb.decide(made).decisions[0].shown == "REPLACE, except for language = de"


def test_a_column_of_many_values_makes_no_groups_and_that_is_said() -> None:
    columns = {"ticket": np.array([f"t{i % 50}" for i in range(N)])}
    found = jb.decide(study(columns=columns))
    assert [c.rival for c in found.decisions[0].groups] in (["old"], ["new"])
    assert "ticket has 50 values: no group of answers by it is looked at." in found.notes


def test_a_judge_that_is_as_good_everywhere_leaves_nothing_out() -> None:
    (decision,) = in_language(0.01).decisions
    assert decision.shown == "REPLACE"
    assert [c.state.value for c in decision.groups] == ["met"]
    (method,) = [c.estimate.method for c in decision.groups]
    assert method.startswith("met means not shown to fall short; n counts pairs")


def test_an_exception_is_no_replace_where_that_is_demanded_or_certified() -> None:
    found = in_language(0.18)
    with pytest.raises(jb.NotReached, match="the outcome is REPLACE, except for language = "):
        found.require("REPLACE", metric="harm")
    with pytest.raises(jb.SetupError, match="nothing to certify"):
        found.certificate()
