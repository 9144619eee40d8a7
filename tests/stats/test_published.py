"""Real human labels: numbers that others published, and a reference library on ragged data.

Zheng et al. (2023), agreement on MT-bench in the first turn, printed in whole percents: human
against human 63 % of 721 pairs of votes, 81 % of 479 without ties; GPT-4 against human 66 % of
1,343 votes, 85 % of 859 without ties. The third decimal here is recomputed from their votes.
"""

import ast
import csv
import gzip
import json
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from cluster_case import apart

from judgebench.stats.arrays import Clusters
from judgebench.stats.confusion import ACCURACY, confusion_by_cluster
from judgebench.stats.interrater import (
    OBSERVED_AGREEMENT,
    agreement_counts_by_cluster,
    coincidences_by_cluster,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    vote_pairs_by_cluster,
)
from judgebench.stats.resample import cluster_bootstrap

FIRST, SECOND, TIE = range(3)  # the winner, the two models in alphabetical order


def winner(vote: dict) -> int:
    if vote["winner"].startswith("tie"):
        return TIE
    return FIRST if vote[vote["winner"]] == min(vote["model_a"], vote["model_b"]) else SECOND


def first_turn(path: Path) -> list[tuple[tuple, str, int]]:
    """(comparison, judge, winner) of every vote on a first turn."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        votes = [json.loads(line) for line in lines]
    return [
        ((v["question_id"], *sorted([v["model_a"], v["model_b"]])), v["judge"], winner(v))
        for v in votes
        if v["turn"] == 1
    ]


@pytest.fixture(scope="module")
def mtbench(shared_data: Path):
    """Ratings (comparisons, experts), GPT-4's verdicts (comparisons,) and questions as clusters."""
    folder = shared_data / "mtbench-human"
    votes = [v for v in first_turn(folder / "human.jsonl.gz") if v[1].startswith("expert_")]
    gpt4 = {comparison: label for comparison, _, label in first_turn(folder / "gpt4_pair.jsonl.gz")}
    comparisons = sorted({comparison for comparison, _, _ in votes})
    row = {comparison: i for i, comparison in enumerate(comparisons)}
    column = {name: j for j, name in enumerate(sorted({name for _, name, _ in votes}))}
    ratings = np.full((len(row), len(column)), -1)
    for comparison, name, label in votes:
        ratings[row[comparison], column[name]] = label
    questions = sorted({comparison[0] for comparison in comparisons})
    clusters = np.array([questions.index(comparison[0]) for comparison in comparisons])
    return ratings, np.array([gpt4.get(c, -1) for c in comparisons]), clusters, len(questions)


@pytest.mark.parametrize(("ties", "pairs", "published"), [(True, 721, 0.630), (False, 479, 0.810)])
def test_agreement_between_experts_on_mtbench(mtbench, ties, pairs, published) -> None:
    ratings, _, clusters, n_clusters = mtbench
    if not ties:
        ratings = np.where(ratings == TIE, -1, ratings)
    counts = vote_pairs_by_cluster(ratings, Clusters(clusters, n_clusters), 3)
    found = cluster_bootstrap(counts, OBSERVED_AGREEMENT, n=int(counts.sum()))
    assert found.n == pairs
    assert found.value == pytest.approx(published, abs=0.0005)
    assert found.low < published < found.high


@pytest.mark.parametrize(("ties", "votes", "published"), [(True, 1343, 0.660), (False, 859, 0.846)])
def test_agreement_of_gpt4_with_experts_on_mtbench(mtbench, ties, votes, published) -> None:
    ratings, gpt4, clusters, n_clusters = mtbench
    if not ties:
        ratings, gpt4 = (np.where(labels == TIE, -1, labels) for labels in (ratings, gpt4))
    judged, of_question = (np.broadcast_to(x[:, None], ratings.shape) for x in (gpt4, clusters))
    counts = confusion_by_cluster(
        ratings.ravel(), judged.ravel(), Clusters(of_question.ravel(), n_clusters), 3
    )
    found = cluster_bootstrap(counts, ACCURACY, n=int(counts.sum()))
    assert found.n == votes
    assert found.value == pytest.approx(published, abs=0.0005)
    assert found.low < published < found.high


@pytest.fixture(scope="module")
def crowd_ratings(shared_data: Path) -> np.ndarray:
    """The 861 queries of Abercrombie and Rieser (2022), each with 3 to 12 crowd labels."""
    labels = ["Not medical", "Non-serious", "Serious", "Critical"]
    path = shared_data / "medical-safety-crowd" / "medicheck-crowd.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        crowd = [ast.literal_eval(row["query-cws"]) for row in csv.DictReader(file)]
    ratings = np.full((len(crowd), max(map(len, crowd))), -1)
    for i, given in enumerate(crowd):
        ratings[i, : len(given)] = [labels.index(label) for label in given]
    assert len(ratings) == 861
    return ratings


@pytest.mark.parametrize(("level", "expected"), [("nominal", 0.345), ("ordinal", 0.516)])
def test_alpha_of_the_crowd_on_the_severity_of_medical_queries(
    crowd_ratings, level, expected
) -> None:
    ratings = crowd_ratings
    counts = coincidences_by_cluster(ratings, apart(861), 4)
    found = cluster_bootstrap(counts, krippendorff_alpha(level), n=861)
    assert found.value == pytest.approx(expected, abs=0.0005)
    assert found.low < expected < found.high
    oracle = krippendorff.alpha(
        value_counts=np.stack([(ratings == label).sum(axis=1) for label in range(4)], axis=1),
        level_of_measurement=level,
    )
    assert found.value == pytest.approx(oracle, abs=1e-12)


@pytest.mark.parametrize(
    ("statistic", "value", "low", "high"),
    [
        (gwet_ac(), 0.482988306021946, 0.454227506392365, 0.511749105651527),
        (gwet_ac("quadratic"), 0.846829240823699, 0.830945584070126, 0.862712897577271),
        (fleiss_kappa(), 0.330297697082161, 0.292777454711581, 0.367817939452742),
        (fleiss_kappa("quadratic"), 0.488691617840367, 0.444902184218888, 0.532481051461845),
    ],
)
def test_the_crowds_agreement_and_its_interval_are_those_of_irrcac(
    crowd_ratings, statistic, value, low, high
) -> None:
    """Figures of irrCAC 0.4.4, whose interval is Gwet's, from a linearised variance."""
    counts = agreement_counts_by_cluster(crowd_ratings, apart(861), 4)
    found = cluster_bootstrap(counts, statistic, n=861)
    assert found.value == pytest.approx(value, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.003)
