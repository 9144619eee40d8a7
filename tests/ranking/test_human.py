from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rank_case import ranks_of

from judgebench.errors import SetupError
from judgebench.ranking.human import human_scores

# Three items, two systems, two experts; the second item was ranked by the first expert alone.
VALUES = np.array([[[1, 2], [4, 5]], [[3, 0], [1, 0]], [[2, 2], [2, 1]]])
SYSTEMS = ("s1", "s0", "label-only")
GROUPS = {"i2": "b", "i0": "a", "i1": "b", "i9": "c"}


def test_the_score_of_all_is_minus_the_mean_rank() -> None:
    scores = human_scores(ranks_of(VALUES), "claims", SYSTEMS, GROUPS)
    assert (scores.ranker, scores.kind, scores.systems) == ("humans", "humans", SYSTEMS)
    assert scores.items == ("i2", "i0", "i1")  # in the order of the groups
    assert scores.clusters.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(
        scores.values, [[-1.5, -2, np.nan], [-4.5, -1.5, np.nan], [-1, -3, np.nan]]
    )
    assert scores.n_missing == 1
    assert scores.correct is None


def test_ranks_of_what_is_not_ranked_here_are_told() -> None:
    with pytest.raises(SetupError) as caught:
        human_scores(ranks_of(VALUES), "claims", ["s1"], {"i0": "a", "i1": "a"})
    assert [(p.field, p.found) for p in caught.value.problems] == [
        ("item_id", "'i2'"), ("system", "'s0'"),
    ]  # fmt: skip


def test_ranks_of_another_task_do_not_matter() -> None:
    here, there = ranks_of(VALUES), ranks_of(5 + 0 * VALUES, task="trials")
    both = replace(here, ranks=here.ranks + there.ranks, asked={**here.asked, **there.asked})
    alone = human_scores(here, "claims", SYSTEMS, GROUPS)
    np.testing.assert_array_equal(
        human_scores(both, "claims", SYSTEMS, GROUPS).values, alone.values
    )


def test_without_a_label_its_items_are_gone_from_ranks_and_asked() -> None:
    ranks = ranks_of(VALUES, labels=["yes", "no", "yes"]).without(["yes"])
    assert {rank.item_id for rank in ranks.ranks} == {"i1"}
    assert [item.item_id for item in ranks.asked.values()] == ["i1"]
    assert ranks.left_out == ("yes",)


def test_a_label_that_nobody_has_cannot_be_left_out() -> None:
    with pytest.raises(SetupError, match="no item has this label; found 'maybe'; allowed: no, yes"):
        ranks_of(VALUES, labels=["yes", "no", "yes"]).without(["maybe"])
    with pytest.raises(SetupError, match="no label of an item is known"):
        ranks_of(VALUES).without(["yes"])
