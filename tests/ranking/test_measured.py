"""A run folder is ranked again: every ranker, kin, and the sentences that a reader needs."""

import doctest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rank_bench_case
import rank_folder_case
from rank_folder_case import TEXTS, decided, judged, make, ranking, train, write
from rank_scores import told

import judgebench as jb
from judgebench.ranking.examples import evaluator_names
from judgebench.ranking.rankers import Rankings
from judgebench.records import Row
from judgebench.runs.folder import RunFolder

GOOD = {"reasons": "Strong", "truth": "True"}
BAD = {"reasons": "None", "truth": "False"}
JUDGES = [
    {"name": "same", "backend": "llamacpp:m"},
    {"name": "kin", "backend": "llamacpp:other"},
    {"name": "stranger", "backend": "llamacpp:stranger"},
]


def ranked(run: RunFolder) -> Rankings:
    found = rank_folder_case.ranked(run)
    assert found is not None
    return found


def fill(run: RunFolder) -> None:
    """Everybody ranks gold above m1 above noise; `kin` likes m1 best."""
    yes = {"gold": 0.9, "m1": 0.6, "noise": 0.2}
    for kind in ("baseline", "llm-trained"):
        for draw, name in enumerate(evaluator_names("t", kind, 2)):
            train(run, name, kind, draw)
            verdicts = [
                decided(name, item, system, 1 - p if item == "b" else p)
                for system, p in yes.items()
                for item in TEXTS[system]
            ]
            write(run, verdicts)
    for name in ("same", "kin", "stranger"):
        graded = {"gold": GOOD, "m1": GOOD | {"reasons": "Weak"}, "noise": BAD}
        if name == "kin":
            graded = {"gold": graded["m1"], "m1": GOOD, "noise": BAD}
        write(
            run,
            [judged(name, item, s, labels) for s, labels in graded.items() for item in TEXTS[s]],
        )


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    made = make(tmp_path, judges=JUDGES)
    fill(made)
    return made


def test_every_ranker_stands_there_in_order(run: RunFolder) -> None:
    found = ranked(run)
    assert [(r.ranker, r.kind) for r in found.of("t")] == [
        ("baseline", "baseline"), ("llm-trained", "llm-trained"), ("kin", "judge"),
        ("same", "judge"), ("stranger", "judge"), ("longest-argument", "control"),
        ("random", "control"),
    ]  # fmt: skip
    rankings = told(found)
    orders = {r.ranking.ranker: list(r.scores) for r in rankings}
    assert orders["baseline"] == orders["stranger"] == ["gold", "m1", "noise"]
    assert orders["kin"] == ["m1", "gold", "noise"]
    assert orders["longest-argument"] == ["noise", "gold", "m1"]
    baseline = rankings[0]
    assert [e.value for e in baseline.scores.values()] == [1.0, 1.0, 0.0]
    assert [e.value for e in baseline.average_ranks.values()] == [1, 2, 3]
    scores = found.rows.select("system", "score")
    assert {row["ranker"]: row.metric for row in scores[::3]} == {
        **dict.fromkeys(orders, ""), "baseline": "accuracy", "llm-trained": "accuracy",
    }  # fmt: skip
    assert baseline.whole["controls_below"].value == 1


def test_all_pairs_of_rankers_are_compared_on_real_arguments(run: RunFolder) -> None:
    found = ranked(run)
    agreements = found.rows.select("agreement", "tau_b")
    assert len(agreements) == 7 * 6 // 2
    assert {row["over"] for row in agreements} == {"gold, m1"}
    by_pair = {(row["ranker"], row["other"]): row.estimate.value for row in agreements}
    assert by_pair["baseline", "stranger"] == 1
    assert by_pair["baseline", "kin"] == -1
    assert len(found.rows.select("length_bias", "rho")) == 7


def preferences(found: Rankings) -> dict[tuple[str, str], Row]:
    return {
        (row["ranker"], row["system"]): row
        for row in found.rows.select("self_preference", "places")
    }


def test_rankers_are_held_against_those_that_are_not_akin(run: RunFolder) -> None:
    found = preferences(ranked(run))
    assert {pair: row["akin"] for pair, row in found.items()} == {
        ("llm-trained", "m1"): "trained on its arguments among others",
        ("same", "m1"): "the same model",
        ("kin", "m1"): "of the family fam",
    }
    assert {row["other"] for row in found.values()} == {"baseline, stranger"}
    assert found["kin", "m1"].estimate.value == 1  # first of two, where the others have it second
    assert found["same", "m1"].estimate.value == 0


def test_an_expert_trained_evaluator_is_akin_to_gold(tmp_path: Path) -> None:
    run = make(tmp_path, ranking(kinds=["baseline", "expert-trained"]))
    for kind, yes in (("baseline", 0.5), ("expert-trained", 0.9)):
        train(run, f"t-{kind}", kind)
        write(
            run,
            [decided(f"t-{kind}", item, system, yes) for system in TEXTS for item in TEXTS[system]],
        )
    found = preferences(ranked(run))
    assert {pair: row["akin"] for pair, row in found.items()} == {
        ("expert-trained", "gold"): "trained on its arguments"
    }


def test_a_judge_that_is_a_file_of_its_own_breaks_nothing(tmp_path: Path) -> None:
    run = make(tmp_path, judges=["my-name-judge.yaml"])
    write(run, [judged("filed", item, s, GOOD) for s in TEXTS for item in TEXTS[s]])
    assert "filed" in {r.ranker for r in ranked(run).rankings}


def test_missing_verdicts_are_counted_and_hide_no_system(tmp_path: Path) -> None:
    run = make(tmp_path, judges=JUDGES)
    verdicts = [judged("same", item, s, GOOD) for s in TEXTS for item in TEXTS[s]]
    write(run, [v for v in verdicts if v.item_id != "t/b/m1"])
    (ranking_,) = [r for r in told(ranked(run)) if r.ranking.ranker == "same"]
    assert set(ranking_.scores) == set(TEXTS)
    every = [ranking_.whole["p"], *ranking_.scores.values()]
    assert {(e.n, e.n_missing) for e in every} == {(2, 1)}


def notes(content: dict[str, Any], path: Path) -> str:
    return "\n".join(ranked(make(path, content)).notes)


def test_notes_tell_what_a_reader_must_know(tmp_path: Path) -> None:
    content = ranking(generators=["m1", "mute"])
    del content["tasks"][0]["arguments"]["m1"]["b"]
    text = notes(content, tmp_path)
    for part in (
        "Task: Made by hand.",
        "Task: only 2 groups of instances:",
        "Task: m1 has no argument on 1 of 3 instances",
        "Task: mute has no argument on 3 of 3 instances",
        "Task: baseline: 0 of 2 evaluators are trained.",
        "Task: llm-trained: 0 of 2 evaluators are trained.",
    ):
        assert part in text, part


def test_labels_that_are_not_ranked_are_kept(tmp_path: Path) -> None:
    found = ranked(make(tmp_path))
    assert found.tasks[0].n_instances == 3
    assert found.tasks[0].left_out == ("open",)


def test_one_system_alone_is_compared_with_nobody(tmp_path: Path) -> None:
    content = ranking()
    content["tasks"][0]["arguments"] = {"gold": content["tasks"][0]["arguments"]["gold"]}
    found = ranked(make(tmp_path, content))
    assert set(found.rows.values("analysis")) == {"system", "ranking", "argument"}
    assert found.rankings


def test_the_example_of_rank_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    make(tmp_path / "runs" / "ranked")
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder().find(jb.rank, "rank")
    assert doctest.DocTestRunner().run(test).failed == 0


def test_run_ranks_a_bench_of_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, asked = rank_bench_case.write(tmp_path), []

    def rank_all(bench: Any, folder: Any, progress: Any, budget: Any) -> None:
        asked.append((bench.config.name, budget))
        make(folder.path)

    loaded = SimpleNamespace(config=SimpleNamespace(name="b"))  # encoders are not opened
    monkeypatch.setattr("judgebench.ranking.rank_bench.load_rank_bench", lambda path: loaded)
    monkeypatch.setattr("judgebench.ranking.rank_bench.rank_all", rank_all)
    study = jb.run(bench, tmp_path / "run", budget=2.0)
    assert asked == [("b", 2.0)]
    assert jb.rank(study) is not None
    with pytest.raises(jb.SetupError, match="judges: can only be given where answers are judged"):
        jb.run(bench, tmp_path / "run", judges={"a": object()})  # type: ignore[dict-item]
