"""A judge that learns is an ordinary judge, out of fold; `judgebench tune` examines it."""

import json
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from benchmark_scripts import benchmark
from learning_case import write_bench
from typer.testing import CliRunner

import judgebench as jb
from judgebench.cli.app import app
from judgebench.errors import SetupError
from judgebench.runs.load import load_bench
from judgebench.tuning.config import Learn, RoundsConfig

WORDS = "  - {name: plain, learn: bag-of-words}"


def test_it_learns_once(tmp_path: Path) -> None:
    bench, run = write_bench(tmp_path, WORDS), tmp_path / "run"
    jb.run(bench, run)
    (home,) = (run / "tuning" / "plain").iterdir()
    facts = {cell.name: (cell / "learnt.json").read_bytes() for cell in home.iterdir()}
    assert sorted(facts) == [f"fold-{n}" for n in range(1, 6)]
    verdicts = (run / "verdicts-plain.jsonl").read_bytes()
    jb.run(bench, run)
    assert (run / "verdicts-plain.jsonl").read_bytes() == verdicts
    assert len(list((run / "tuning" / "plain").iterdir())) == 1


def test_a_changed_label_is_another_judge(tmp_path: Path) -> None:
    bench, run = write_bench(tmp_path, WORDS), tmp_path / "run"
    before = {judge.name: judge.signature for judge in jb.run(bench, run).judges}
    labels = (tmp_path / "labels.csv").read_text()
    (tmp_path / "labels.csv").write_text(labels.replace("Cat,Rude", "Cat,Curt", 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        after = {judge.name: judge.signature for judge in jb.run(bench, tmp_path / "two").judges}
    assert before["plain"] == after["plain"]  # the median is what it was
    (tmp_path / "labels.csv").write_text(labels.replace("Rude\n", "Curt\n", 3))
    changed = {judge.name: judge.signature for judge in jb.run(bench, tmp_path / "three").judges}
    assert before["plain"] != changed["plain"]


def test_an_altered_answer_is_judged_by_the_fold_of_its_parent(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, WORDS, more="stress: {attacks: [greeting]}")
    attacking = pytest.importorskip("judgebench.stress_tests.make")
    jb.run(load_bench(bench, extend=attacking.StressExtension()), tmp_path / "run")
    beside = [json.loads(x) for x in (tmp_path / "run" / "attacks.jsonl").open()]
    ids = {line["item_id"]: line["parent_id"] for line in beside}
    said = {}
    for line in (tmp_path / "run" / "verdicts-plain.jsonl").open():
        verdict = json.loads(line)
        said[verdict["item_id"]] = verdict["probabilities"]["tone"]
    assert ids
    assert all(said[altered] == said[parent] for altered, parent in ids.items())


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, "  - {name: a, learn: by-heart}")
    with pytest.raises(SetupError, match="learn: is no way to learn; found by-heart; allowed: bag"):
        jb.load_bench(bench)
    bench = write_bench(tmp_path, WORDS, more="tuning: {folds: 30}")
    with pytest.raises(SetupError, match="is more than the 20 groups of questions"):
        jb.run(bench, tmp_path / "run")
    bench = write_bench(tmp_path, "  - {name: always, verdicts: v.csv}")
    (tmp_path / "v.csv").write_text("item_id,tone\nmodel-x-0,Curt\n")
    done = CliRunner().invoke(app, ["tune", str(bench), "--run", str(tmp_path / "run")])
    assert done.exit_code != 0
    assert "has no judge that learns: give one the key `learn`" in str(done.exception)


def test_the_page_names_every_key_of_every_way_to_learn() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text()
    table = page.split("Keys of an entry")[1].split("\n\n")[1]
    models = [
        model for model in Learn.__subclasses__() if model.__module__.endswith("tuning.config")
    ]
    assert len(models) == 6
    for model in (*models, RoundsConfig):
        for name, key in model.model_fields.items():
            assert name in ("name", "learn") or f"`{key.alias or name}`" in table, (model, name)


@pytest.fixture(scope="module")
def bed() -> ModuleType:
    return benchmark("decisions", "learnt_worlds")


def test_copies_are_learnt_by_folds_of_questions_alone(bed: ModuleType) -> None:
    for name in ("5 near-copies of 40 texts", "… that tie 40 questions together"):
        (world,) = (w for w in bed.TAUGHT if w.name == name)
        tally = bed.teach(world, 2, 0)
        assert np.mean(tally.right) < 0.75
        assert np.mean(tally.right_leaking) > 0.85
        assert tally.outcomes["REPLACE"] == 0


def test_a_keyword_is_learnt_from_200_labels(bed: ModuleType) -> None:
    (world,) = (w for w in bed.TAUGHT if w.rule == "keyword")
    assert np.mean(bed.teach(world, 3, 0).right) >= 0.9
