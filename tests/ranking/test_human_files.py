"""Ranks of people in a run folder: given with the benchmark, or from its own sheets."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rank_case
from rank_case import fill
from rank_folder_case import make, ranked, ranking

from judgebench.errors import SetupError
from judgebench.judges.retrieval import Corpus
from judgebench.ranking.human import (
    GIVEN,
    human_scores,
    items_of_run,
    keep_ranks,
    ranks_of,
    write_sheets,
)
from judgebench.ranking.rank_bench import RankBench, RankedEntry, given_ranks
from judgebench.ranking.task import (
    EvaluatorConfig,
    GeneratorConfig,
    ProxyConfig,
    ProxyTask,
    TaskEntry,
    TaskInstance,
)

HEAD = "task,item_id,expert,system,rank,label,group\n"


def bench(folder: Path, *files: str) -> RankBench:
    from judgebench.runs.load import bench_model

    prompt: Any = None
    instances = [TaskInstance(i, f"Is {i} so?", "yes", "why", "test", group="g") for i in "abc"]
    task = ProxyTask("t", "T", ("yes", "no"), "accuracy", instances, prompt)
    model = GeneratorConfig(name="m1", backend="scripted:x.jsonl")
    entry = RankedEntry(task, TaskEntry(task="t"), (model,), (), EvaluatorConfig())
    proxy = {"tasks": ["t"], "human_ranks": list(files)}
    settings = {"name": "b", "rubric": "r", "proxy": proxy}
    config = bench_model(settings).model_validate(settings)
    section = ProxyConfig.model_validate(proxy)
    return RankBench(config, section, folder / "bench.yaml", (entry,), Corpus())


def given(folder: Path, *rows: str) -> str:
    (folder / "ranks.csv").write_text(HEAD + "".join(f"{row}\n" for row in rows))
    return "ranks.csv"


WHOLE = ("t,a,anna,gold,1,yes,g", "t,a,anna,m1,2,yes,g")


def test_no_spreadsheet_runs_what_is_kept(tmp_path: Path) -> None:
    ranks = given_ranks(bench(tmp_path, given(tmp_path, *WHOLE)))
    assert ranks is not None
    item = replace(ranks.asked["t", "a"], item_id="=cmd()", group="'+g", label="-yes")
    hostile = replace(
        ranks,
        ranks=tuple(replace(r, item_id="=cmd()", expert="@anna") for r in ranks.ranks),
        asked={("t", "=cmd()"): item},
    )
    keep_ranks(tmp_path, hostile)
    cells = (tmp_path / GIVEN).read_text(encoding="utf-8-sig").replace("\n", ",").split(",")
    assert not any(cell.strip('"')[:1] in ("=", "+", "-", "@") for cell in cells if cell)
    found = ranks_of(tmp_path)
    assert found is not None
    assert (found.ranks, found.asked) == (hostile.ranks, hostile.asked)


def test_what_was_left_out_of_given_ranks_is_still_told(tmp_path: Path) -> None:
    name = given(tmp_path, *WHOLE, "t,b,anna,gold,1,yes,g", "t,b,anna,m1,,yes,g")
    ranks = given_ranks(bench(tmp_path, name))
    assert ranks is not None
    assert len(ranks.ranks) == 2
    run = make(tmp_path / "run")
    keep_ranks(run.path, ranks)
    found = ranked(run)
    assert found is not None
    assert any("anna ranked 1 of 2 arguments of 'b'" in note for note in found.notes)
    (humans,) = [r for r in found.rankings if r.ranker == "humans"]
    assert (humans.whole["p"].n, humans.whole["p"].n_missing) == (1, 2)


def test_a_run_without_given_ranks_forgets_those_of_an_earlier_one(tmp_path: Path) -> None:
    keep_ranks(tmp_path, given_ranks(bench(tmp_path, given(tmp_path, *WHOLE))))
    assert ranks_of(tmp_path) is not None
    assert given_ranks(bench(tmp_path)) is None
    keep_ranks(tmp_path, None)
    assert ranks_of(tmp_path) is None
    assert list((tmp_path / "human").iterdir()) == []


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("t,z,anna,gold,1,yes,g", "is no ranked item of t"),
        ("t,a,anna,m9,1,yes,g", "writes no arguments on t"),
        ("t,a,anna,noise,1,yes,g", "writes no arguments on t"),
        ("u,a,anna,gold,1,yes,g", "is no task of this benchmark"),
    ],
)
def test_ranks_of_what_is_not_ranked_are_told(row: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=told):
        given_ranks(bench(tmp_path, given(tmp_path, row)))


def by_length(row: dict[str, str]) -> str:
    return "1" if row["text"].startswith("Gold") else "2"


def test_filled_sheets_of_a_run_are_found(tmp_path: Path) -> None:
    run = make(tmp_path)
    write_sheets(items_of_run(run.path), ["anna"], tmp_path / "human", n=None, seed=0)
    blank = ranks_of(tmp_path)
    assert blank is not None
    assert blank.ranks == ()
    fill(tmp_path / "human" / "sheets" / "anna.csv", by_length)
    found = ranks_of(tmp_path)
    assert found is not None
    assert {(r.item_id, r.system, r.rank) for r in found.ranks} == {
        (item, system, place)
        for item in "abc"
        for system, place in (("gold", 1), ("m1", 2))
    }  # fmt: skip


def test_ranks_of_arguments_that_changed_since_do_not_count(tmp_path: Path) -> None:
    run = make(tmp_path)
    write_sheets(items_of_run(run.path), ["anna"], tmp_path / "human", n=None, seed=0)
    fill(tmp_path / "human" / "sheets" / "anna.csv", by_length)
    content = ranking()
    content["tasks"][0]["arguments"]["m1"]["b"] = {"text": "Something new."}
    content["tasks"][0]["instances"] = content["tasks"][0]["instances"][:2]  # c is no longer there
    make(tmp_path, content)
    found = ranks_of(tmp_path)
    assert found is not None
    assert {r.item_id for r in found.ranks} == {"a"}
    told = "2 of 3 items of the sheets have other arguments by now: their ranks are left out"
    assert [w.message for w in found.warnings] == [told]


def test_given_ranks_go_before_the_sheets(tmp_path: Path) -> None:
    run = make(tmp_path)
    write_sheets(items_of_run(run.path), ["anna"], tmp_path / "human", n=None, seed=0)
    fill(tmp_path / "human" / "sheets" / "anna.csv", by_length)
    keep_ranks(tmp_path, given_ranks(bench(tmp_path, given(tmp_path, *WHOLE))))
    found = ranks_of(tmp_path)
    assert found is not None
    assert {r.item_id for r in found.ranks} == {"a"}


# Three items, two systems, two experts; the second item was ranked by the first expert alone.
VALUES = np.array([[[1, 2], [4, 5]], [[3, 0], [1, 0]], [[2, 2], [2, 1]]])
SYSTEMS = ("s1", "s0", "label-only")
GROUPS = {"i2": "b", "i0": "a", "i1": "b", "i9": "c"}


def test_the_score_of_all_is_minus_the_mean_rank() -> None:
    scores = human_scores(rank_case.ranks_of(VALUES), "claims", SYSTEMS, GROUPS)
    assert (scores.ranker, scores.kind, scores.systems) == ("humans", "humans", SYSTEMS)
    assert scores.items == ("i2", "i0", "i1")  # in the order of the groups
    assert scores.clusters.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(
        scores.values, [[-1.5, -2, np.nan], [-4.5, -1.5, np.nan], [-1, -3, np.nan]]
    )
    assert scores.n_missing == 1
    assert scores.correct is None
