"""Ranks of people: plain tables, those that a bench.yaml names, and the study of a run."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import rank_case
from rank_bench_case import write
from rank_folder_case import make, ranked
from rank_scores import told

import judgebench.models.checkpoints as encoder
from judgebench.errors import Problem, SetupError
from judgebench.features import FEATURES
from judgebench.ranking.human import copy_ranks, human_scores, ranks_of, read_ranks, write_studies
from judgebench.ranking.rank_bench import load_rank_bench
from judgebench.runs.folder import RunFolder

Call = Callable[..., tuple[int, str, str]]

HEAD = "task,item_id,annotator,system,rank"
WHOLE = ("t,a,anna,gold,1", "t,a,anna,m1,2", "t,a,ben,gold,1", "t,a,ben,m1,1")


def plain(path: Path, *rows: str, header: str = HEAD) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def problems(*paths: Path) -> tuple[Problem, ...]:
    with pytest.raises(SetupError) as caught:
        read_ranks(paths)
    return caught.value.problems


def test_ranks_are_read_with_labels_and_groups(tmp_path: Path) -> None:
    table = plain(
        tmp_path / "ranks.csv",
        "t,1,anna,gold,1,yes,g", "t,1,anna,m,2.0,yes,g",
        "t,1,ben,gold,1,yes,g", "t,1,ben,m,1,yes,g",
        "t,2,anna,gold,5,no,g", "t,2,anna,m,3,no,g", "t,2,ben,gold,4,no,g",
        header=f"{HEAD},label,group",
    )  # fmt: skip
    ranks = read_ranks([table])
    assert len(ranks.ranks) == 6
    assert ranks.annotators("t") == ("anna", "ben")
    assert ranks.systems("t") == ("gold", "m")
    assert ranks.warnings == (
        "t: ben ranked 1 of 2 arguments of '2': the item is left out for this annotator",
    )
    assert {(i.label, i.group) for i in ranks.asked.values()} == {("yes", "g"), ("no", "g")}


def test_without_a_group_an_item_is_its_own(tmp_path: Path) -> None:
    ranks = read_ranks([plain(tmp_path / "r.csv", "t,1,a,s,1", "t,2,a,s,1")])
    assert [i.group for i in ranks.asked.values()] == ["1", "2"]


@pytest.mark.parametrize("rank", ["0", "6", "first", "2.5", "-1", "1e0", "١"])
def test_what_is_no_rank_is_told_with_its_row(tmp_path: Path, rank: str) -> None:
    (problem,) = problems(plain(tmp_path / "r.csv", *WHOLE, f"t,b,anna,gold,{rank}"))
    assert (problem.line, problem.field, problem.message) == (6, "rank", "is no rank")
    assert problem.allowed == "1 (best) to 5 (clearly wrong), or blank"


def test_all_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    first = plain(tmp_path / "a.csv", "t,a,anna,gold,6", ",a,anna,m1,1", *WHOLE[2:], *WHOLE[2:])
    second = plain(tmp_path / "b.csv", "t,1", header="task,rank")
    found = [(Path(p.file).name, p.line, p.field) for p in problems(first, second)]
    assert found == [
        ("a.csv", 2, "rank"), ("a.csv", 3, "task"), ("a.csv", 6, "rank"),
        ("b.csv", 1, "item_id"), ("b.csv", 1, "annotator"), ("b.csv", 1, "system"),
    ]  # fmt: skip
    assert "no such file" in problems(tmp_path / "no.csv")[0].message


def test_tables_in_a_run_are_the_ranker_humans(tmp_path: Path) -> None:
    run = make(tmp_path / "run")
    part = ("t,b,anna,gold,1", "t,b,anna,m1,")
    copy_ranks(run.path, [plain(tmp_path / "ranks.csv", *WHOLE, *part)])
    ranks = ranks_of(run.path)
    assert ranks is not None
    assert ranks.asked["t", "a"].label == "yes"  # of the run, where the table says nothing
    assert ranks.asked["t", "a"].group == "g1"
    found = ranked(run)
    assert found is not None
    assert any("anna ranked 1 of 2 arguments of 'b'" in note for note in found.notes)
    (humans,) = [r for r in told(found) if r.ranking.ranker == "humans"]
    assert (humans.whole["p"].n, humans.whole["p"].n_missing) == (1, 2)
    copy_ranks(run.path, [])
    assert ranks_of(run.path) is None


@pytest.mark.parametrize(
    "row",
    ["claims,z,anna,gold,1", "claims,{q},anna,m9,1", "claims,{q},a,noise,1", "u,{q},a,gold,1"],
)
def test_ranks_of_what_is_not_ranked_are_told(
    row: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "import_torch", lambda: None)
    item = load_rank_bench(write(here)).tasks[0].ranked[0].item_id
    plain(here / "ranks.csv", row.format(q=item))
    with pytest.raises(SetupError, match="is no argument that this run ranks"):
        load_rank_bench(write(here, {"human_ranks": ["ranks.csv"]}))
    plain(here / "ranks.csv", f"claims,{item},anna,gold,1")
    assert load_rank_bench(write(here, {"human_ranks": ["ranks.csv"]}))


@pytest.mark.skipif("annotate" not in FEATURES, reason="needs the feature `annotate`")
def test_from_a_run_to_human_ranks_in_its_report(tmp_path: Path, call: Call) -> None:
    """init, serve and export: the second is what two people do on its pages."""
    from annotate_case import give_labels

    from judgebench.annotation.store import open_store

    run: RunFolder = make(tmp_path / "run")
    (config,) = write_studies(run.path, 0)
    study = tmp_path / "study"
    code, _, err = call("annotate", "init", config, "--to", study)
    assert code == 0, err
    with open_store(study) as store:
        for annotator in ("expert-1", "expert-2"):
            for name in store.assigned(annotator):
                screen = store.screens[name]
                assert not {"gold", "m1"} & set(screen.model_dump_json().split('"'))
                texts = {s.slot: s.text for s in screen.sections if s.slot is not None}
                ranks = {
                    f.key: "1" if texts[f.slot].startswith("Gold") else "3" for f in screen.fields
                }
                give_labels(store, annotator, name, ranks)
    code, out, err = call(
        "annotate", "export", study, "--calibration", "--to", run.path / "human" / "t.csv"
    )
    assert code == 0, err
    with (run.path / "human" / "t.csv").open(encoding="utf-8-sig", newline="") as file:
        assert {(r["system"], r["rank"]) for r in csv.DictReader(file)} == {
            ("gold", "1"), ("m1", "3"),
        }  # fmt: skip
    code, out, err = call("report", run.path)
    assert code == 0, err
    assert "humans" in out
    code, out, _ = call("rank", "suitability", run.path)
    assert code == 0
    assert "t: can't tell" in out
    assert "alpha of 1.00" in out
    assert "experts: expert-1 and expert-2" in out


# Three items, two systems, two annotators; the second item was ranked by the first one alone.
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
    assert scores.trainings is None
