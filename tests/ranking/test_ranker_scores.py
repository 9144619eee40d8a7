"""From a run folder to scores, against figures worked out on paper."""

from pathlib import Path

import numpy as np
import pytest
from rank_folder_case import TEXTS, decided, judged, make, ranking, train, write

from judgebench.ranking.rank import control_scores, evaluator_scores, judge_scores
from judgebench.ranking.rankers import (
    KeptTask,
    RankerScores,
    read_ranking,
    read_tasks,
    read_trained,
)
from judgebench.records import Status
from judgebench.runs.folder import RunFolder
from judgebench.runs.open import open_folder
from judgebench.stats.arrays import Clusters

BASE = "t-baseline"
GOOD = {"reasons": "Strong", "truth": "True", "side": "No"}
JUDGE = [{"name": "j", "backend": "llamacpp:j"}]
NAN = np.nan


def every(name: str, yes: float = 0.5) -> list:  # type: ignore[type-arg]
    return [decided(name, item, system, yes) for system in TEXTS for item in TEXTS[system]]


def only_task(run: RunFolder) -> KeptTask:
    (task,) = read_tasks(run.path)
    return task


def names_of(run: RunFolder) -> list[str]:
    return [name for _, name in read_ranking(run.path).evaluators("t")]


def evaluators(run: RunFolder) -> tuple[list[RankerScores], dict[str, int]]:
    trained = [found for name in names_of(run) if (found := read_trained(run.path, name))]
    return evaluator_scores(run.path, only_task(run), trained)


def of(run: RunFolder) -> RankerScores:
    ((found,), _) = evaluators(run)
    return found


def of_judges(run: RunFolder) -> list[RankerScores]:
    return list(judge_scores(open_folder(run), only_task(run)))


def of_judge(run: RunFolder) -> np.ndarray:
    (found,) = of_judges(run)
    assert (found.kind, found.trainings, found.systems) == ("judge", None, ("gold", "m1", "noise"))
    return found.values


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make(tmp_path)


@pytest.fixture
def with_judge(tmp_path: Path) -> RunFolder:
    return make(tmp_path, judges=JUDGE)


def test_a_task_has_its_items_systems_groups_and_words(run: RunFolder) -> None:
    task = only_task(run)
    assert task.items == ("a", "b", "c")
    assert Clusters.of(task.groups.values()).codes.tolist() == [0, 1, 0]
    assert [(s.name, s.kind) for s in task.systems] == [
        ("gold", "gold"), ("m1", "model"), ("noise", "control"),
    ]  # fmt: skip
    assert task.words.tolist() == [[4, 2, 5]] * 3


def test_an_evaluator_gives_the_probability_of_the_gold_label(run: RunFolder) -> None:
    train(run, BASE, "baseline")
    yes = {
        ("a", "gold"): 0.9, ("b", "gold"): 0.2, ("c", "gold"): 0.6,
        ("a", "m1"): 0.4, ("b", "m1"): 0.7, ("c", "m1"): 1.0,
        ("a", "noise"): 0.3, ("b", "noise"): 0.1, ("c", "noise"): 0.0,
    }  # fmt: skip
    # Written in another order than that of the table: what counts is the id.
    write(run, [decided(BASE, item, system, p) for (item, system), p in reversed(yes.items())])
    found = of(run)
    assert (found.ranker, found.kind, found.items) == ("baseline", "baseline", ("a", "b", "c"))
    np.testing.assert_allclose(found.values, [[0.9, 0.4, 0.3], [0.8, 0.3, 0.9], [0.6, 1, 0]])
    np.testing.assert_array_equal(found.trainings.mean(axis=0), [[1, 0, 0], [1, 0, 1], [1, 1, 0]])


def test_draws_are_averaged(run: RunFolder) -> None:
    for draw, yes in enumerate((0.8, 0.3)):
        name = f"t-llm-trained-{draw}"
        train(run, name, "llm-trained", draw)
        write(run, every(name, yes))
    found = of(run)
    assert (found.ranker, found.kind) == ("llm-trained", "llm-trained")
    np.testing.assert_allclose(found.values, [[0.55] * 3, [0.45] * 3, [0.55] * 3])
    np.testing.assert_array_equal(found.trainings.mean(axis=0), np.full((3, 3), 0.5))
    np.testing.assert_array_equal(found.trainings[:, :, 0], [[1, 0, 1], [0, 1, 0]])


def test_every_kind_is_trained_as_often_as_asked(run: RunFolder) -> None:
    names = ["t-baseline", "t-baseline-1", "t-llm-trained-0", "t-llm-trained-1"]
    assert names_of(run) == names


def test_where_one_draw_lacks_a_verdict_there_is_no_mean(run: RunFolder) -> None:
    for draw in (0, 1):
        train(run, f"t-llm-trained-{draw}", "llm-trained", draw)
        write(run, every(f"t-llm-trained-{draw}")[draw:])
    missing = np.isnan(of(run).values)
    assert missing.sum() == 1
    assert missing[0, 0]


def test_verdicts_of_another_training_or_on_another_text_do_not_count(run: RunFolder) -> None:
    train(run, BASE, "baseline")
    stale = decided(BASE, "a", "gold", 0.9, signature="sig-older")
    other = decided(BASE, "b", "gold", 0.1, text="What it said before.")
    write(run, [decided(BASE, "c", "gold", 0.6), stale, other])
    found = of(run)
    np.testing.assert_allclose(found.values, [[NAN] * 3, [NAN] * 3, [0.6, NAN, NAN]])
    np.testing.assert_array_equal(np.isnan(found.values), np.isnan(found.trainings.mean(axis=0)))


def test_who_is_not_trained_is_left_out(run: RunFolder) -> None:
    write(run, every(BASE))
    assert evaluators(run)[0] == []
    assert read_trained(run.path, BASE) is None
    train(run, BASE, "baseline")
    assert of(run).ranker == "baseline"
    about = read_trained(run.path, BASE)
    assert about is not None
    assert (about.evaluator, about.train, about.best_epoch) == (BASE, 8, 1)


def test_an_instance_counts_once_whose_input_was_cut_by_several(run: RunFolder) -> None:
    for draw in (0, 1):
        name = f"t-llm-trained-{draw}"
        train(run, name, "llm-trained", draw)
        write(run, [decided(name, "a", "gold", 0.5, reason="cut")])
        write(run, [decided(name, "b", "m1", 0.5)])
    write(run, [decided("t-llm-trained-1", "b", "gold", 0.5, reason="cut")])
    assert evaluators(run)[1] == {"gold": 2, "m1": 0, "noise": 0}


def test_a_judge_gives_the_mean_of_its_severities_turned_round(with_judge: RunFolder) -> None:
    write(
        with_judge,
        [
            judged("j", "a", "gold", GOOD),  # (1 + 1) / 2
            judged("j", "a", "m1", GOOD | {"reasons": "Weak"}),  # (0.5 + 1) / 2
            judged("j", "a", "noise", GOOD | {"reasons": "None", "truth": "False"}),
            judged("j", "c", "gold", GOOD | {"truth": "False", "side": "Yes"}),
        ],
    )
    expected = [[1, 0.75, 0], [NAN] * 3, [0.5, NAN, NAN]]
    np.testing.assert_allclose(of_judge(with_judge), expected)


def test_probabilities_give_the_expected_severity(with_judge: RunFolder) -> None:
    asked = {
        "reasons": {"Strong": 0.5, "Weak": 0.3, "None": 0.2, "Cannot say": 0.0},
        "truth": {"True": 0.25, "False": 0.75},
        "side": {"Yes": 1.0, "No": 0.0},
    }
    write(with_judge, [judged("j", "a", "gold", GOOD, probabilities=asked)])
    # reasons: 1 - (0.3 + 2 * 0.2) / 2 = 0.65; truth: 1 - 0.75
    assert of_judge(with_judge)[0, 0] == pytest.approx((0.65 + 0.25) / 2)


def test_the_mass_of_an_abstention_is_not_counted_as_the_best_label(with_judge: RunFolder) -> None:
    asked = {"reasons": {"Strong": 0.0, "Weak": 0.3, "None": 0.3, "Cannot say": 0.4}}
    verdict = judged("j", "a", "gold", GOOD | {"reasons": "Weak"}, probabilities=asked)
    write(with_judge, [verdict])
    # reasons: 1 - (0.5 * 1 + 0.5 * 2) / 2 = 0.25, of the mass on labels; truth: 1
    assert of_judge(with_judge)[0, 0] == pytest.approx((0.25 + 1) / 2)


@pytest.mark.parametrize(
    ("labels", "status"),
    [
        (GOOD | {"reasons": "Cannot say"}, Status.OK),
        ({"reasons": "Strong"}, Status.UNPARSED),
        ({}, Status.FAILED),
        ({}, Status.REFUSED),
        (GOOD | {"reasons": "Of another rubric"}, Status.OK),
    ],
)
def test_a_judge_without_a_grade_has_no_score(labels, status, with_judge) -> None:
    write(with_judge, [judged("j", "a", "gold", labels, status=status)])
    write(with_judge, [judged("j", "b", "gold", GOOD)])
    np.testing.assert_array_equal(of_judge(with_judge)[:, 0], [NAN, 1, NAN])


def test_a_judge_s_last_verdict_counts_and_stale_ones_do_not(with_judge: RunFolder) -> None:
    bad = GOOD | {"truth": "False"}
    write(
        with_judge,
        [
            judged("j", "a", "gold", {}, status=Status.UNPARSED),
            judged("j", "a", "gold", GOOD, attempt=1),
            judged("j", "b", "gold", GOOD),
            judged("j", "b", "gold", bad, signature="sig-older"),
            judged("j", "c", "gold", GOOD),
            judged("j", "c", "gold", bad, text="What it said before."),
        ],
    )
    np.testing.assert_allclose(of_judge(with_judge)[:, 0], [1, 1, 1])


def test_who_was_not_asked_is_no_ranker(with_judge: RunFolder) -> None:
    assert of_judges(with_judge) == [], "nothing was said yet"
    write(with_judge, [judged("constant", "a", "gold", GOOD)])
    assert of_judges(with_judge) == [], "controls learn from labels, not here"


def test_control_rankers_like_length_or_nothing(tmp_path: Path) -> None:
    content = ranking()
    del content["tasks"][0]["arguments"]["m1"]["b"]
    task = only_task(make(tmp_path, content))
    longest, coin = control_scores(task, 0)
    np.testing.assert_array_equal(longest.values, [[4, 2, 5], [4, NAN, 5], [4, 2, 5]])
    assert (longest.ranker, coin.ranker) == ("longest-argument", "random")
    assert {longest.kind, coin.kind} == {"control"}
    np.testing.assert_array_equal(np.isnan(coin.values), np.isnan(longest.values))
    np.testing.assert_array_equal(coin.values, list(control_scores(task, 0))[1].values)
    assert not np.array_equal(coin.values, list(control_scores(task, 1))[1].values, equal_nan=True)
