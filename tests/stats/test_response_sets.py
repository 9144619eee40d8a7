"""Response sets against definitions written out with Python's sets."""

import numpy as np
import pytest

from judgebench.stats.agreement import (
    SET_STATISTICS,
    accepted_shares,
    as_sets,
    fill_missing,
    hits,
    members,
    response_sets,
    set_scores,
    shares_of_others,
)

K, ITEMS, PEOPLE = 4, 60, 5


def drawn(seed):
    """Sets of labels, -1 where an annotator gave none."""
    rng = np.random.default_rng(seed)
    sets = rng.integers(1, 1 << K, (ITEMS, PEOPLE))
    return np.where(rng.random((ITEMS, PEOPLE)) < 0.2, -1, sets)


def labels_of(code):
    return {label for label in range(K) if code >> label & 1} if code >= 0 else None


def response_set(people, accepted_by):
    """Labels that enough of the people accept, and one at least, by the definition."""
    given = [labels for labels in map(labels_of, people) if labels is not None]
    accept = {label: sum(label in labels for labels in given) for label in range(K)}
    enough = {x for x, n in accept.items() if n and n >= accepted_by * len(given)}
    return enough or None


@pytest.mark.parametrize("accepted_by", [0, 0.5, 0.8, 1])
def test_scores_are_those_of_the_definitions(accepted_by):
    people, judged = drawn(1), drawn(2)[:, 0]
    shares = accepted_shares(people, K)
    found = set_scores(judged, shares, accepted_by)
    for row, code, scores in zip(people.tolist(), judged.tolist(), found, strict=True):
        responses, said = response_set(row, accepted_by), labels_of(code)
        given = [x for x in map(labels_of, row) if x is not None]
        if said is None or not given:
            assert np.isnan(scores).all()
            continue
        accept = [sum(label in x for x in given) / len(given) for label in range(K)]
        mse = sum(((label in said) - accept[label]) ** 2 for label in range(K))
        assert scores[3] == pytest.approx(mse)
        if responses is None:
            assert np.isnan(scores[:3]).all()
            continue
        both = len(said & responses)
        assert scores[:3] == pytest.approx(
            [both / len(said), both / len(responses), float(said == responses)]
        )


def test_an_annotator_is_held_against_the_others_alone():
    people = drawn(3)
    found = response_sets(shares_of_others(people, K), 0.5)
    for i in range(ITEMS):
        for a in range(PEOPLE):
            expected = response_set(np.delete(people[i], a).tolist(), 0.5)
            assert labels_of(found[i, a]) == expected


def test_one_label_is_a_hit_or_none_and_to_name_all_wins_nothing():
    responses = response_sets(accepted_shares(drawn(4), K))
    known = responses >= 0
    one = hits(as_sets(np.zeros(ITEMS, dtype=np.int64)), responses, K)
    assert {*one[known]} == {0.0, 1.0}
    assert one[known].tolist() == (members(responses, K)[known, 0] * 1.0).tolist()
    everything = hits(np.full(ITEMS, (1 << K) - 1), responses, K)
    assert everything[known] == pytest.approx(members(responses, K)[known].sum(axis=1) / K)


def test_a_missing_set_is_filled_between_all_that_it_could_be():
    shares = accepted_shares(np.where(drawn(5) < 0, 1, drawn(5)), K)
    missing = np.ones(ITEMS, dtype=bool)
    scores = set_scores(np.full(ITEMS, -1), shares)
    worst, best = (fill_missing(scores, shares, missing, way) for way in (True, False))
    for code in range(1, 1 << K):
        could = set_scores(np.full(ITEMS, code), shares)
        for place, key in enumerate(SET_STATISTICS):
            low, high = (best, worst) if key == "mse" else (worst, best)
            known = ~np.isnan(could[:, place])
            assert (could[known, place] >= low[known, place] - 1e-12).all()
            assert (could[known, place] <= high[known, place] + 1e-12).all()
