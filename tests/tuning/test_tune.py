"""What `judgebench tune` shows of judges that learnt."""

import doctest
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from learning_case import SYSTEMS, hide_labels, write_bench

import judgebench as jb
from judgebench.records import Answer, HumanLabel, Status, Verdict
from judgebench.results.documents import write_report
from judgebench.results.tables import Cell
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import JudgeVerdicts, Study, study_of
from judgebench.tuning.measure import Learnt, Tuned, measure_tuning

WORDS = "  - {name: plain, learn: bag-of-words}"
MORE = "tuning: {folds: 4, curve: [6, 12], holdout_systems: [model-x]}"
LABELS = ("Kind", "Curt", "Rude")
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    jb.tune(write_bench(folder, WORDS, questions=24, more=MORE), folder / "run")
    return folder / "run"


def scripted(folder: Path) -> str:
    """A judge that finds all curt, and one that shows it labelled answers."""
    (folder / "script.jsonl").write_text('{"text": "{\\"tone\\": \\"Curt\\"}"}\n')
    return (
        f"  - {{name: curt, backend: 'scripted:{folder}/script.jsonl'}}\n"
        "  - {name: shots, learn: examples, from: curt, k: 2}"
    )


def study_with(said: Mapping[str, np.ndarray], truth: np.ndarray) -> Study:
    """A study of single answers and these judges, by the places of their labels, -1 for none."""
    rubric = jb.Rubric.from_labels({"tone": LABELS})
    ids = [f"q{place}" for place in range(len(truth))]
    answers = [Answer(i, f"answer {i}", f"question {i}", group=i) for i in ids]
    labels = [HumanLabel(i, "Ann", "tone", LABELS[t]) for i, t in zip(ids, truth, strict=True)]
    study = study_of(rubric, answers, labels, TruthConfig())

    def verdicts(name: str, places: np.ndarray) -> JudgeVerdicts:
        found = {
            a.item_id: Verdict(
                a.item_id, a.content_hash, name, name,
                Status.OK if p >= 0 else Status.UNPARSED, {"tone": LABELS[p]} if p >= 0 else {},
            )
            for a, p in zip(answers, places, strict=True)
        }  # fmt: skip
        return JudgeVerdicts(name, "control" if "control" in name else "judge", name, found)

    return replace(study, judges=tuple(verdicts(*one) for one in said.items()))


def tuned(study: Study, *taught: Learnt) -> Tuned:
    found = measure_tuning(replace(study, beside={"tuning": taught}))
    assert found is not None
    return found


def shown(found: Tuned, judge: str, statistic: str = "accuracy") -> str:
    (row,) = found.rows.select(
        "gain", statistic, judge=judge, side="difference", failures="left_out"
    )
    return row["shown"]


def gains(found: Tuned, judge: str) -> tuple[Cell, ...]:
    """The line of the accuracy of a judge in the first table."""
    rows = found.part.blocks[0].tables[0].rows
    (line,) = (row for row in rows if [c.text for c in row[1:3]] == [judge, "Accuracy"])
    return line


@pytest.fixture(scope="module")
def drawn() -> tuple[Mapping[str, np.ndarray], np.ndarray]:
    """Who is right on 60 % of the answers, on 90 %, on other 60 %, and on 20 %."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 300)

    def right(share: float) -> np.ndarray:
        wrong = (truth + rng.integers(1, 3, len(truth))) % 3
        return np.where(rng.random(len(truth)) < share, truth, wrong)

    said = {"base": right(0.6), "better": right(0.9), "same": right(0.6), "worse": right(0.2)}
    return said, truth


def test_a_gain_is_shown_only_where_there_is_one(drawn) -> None:
    study = study_with(*drawn)
    taught = [Learnt(name, ("base",)) for name in ("better", "same", "worse")]
    found = tuned(study, *taught)
    for statistic in ("accuracy", "balanced_accuracy", "kappa_quadratic"):
        assert shown(found, "better", statistic) == "shown"
        assert shown(found, "same", statistic) == "not shown"
        assert shown(found, "worse", statistic) == "loss shown"
    for row in found.rows.select("gain", side="difference"):
        about = {"judge": row.judge, "metric": "tone", "failures": "left_out"}
        before = found.rows.find(row.statistic, "gain", side="baseline", **about)
        learnt = found.rows.find(row.statistic, "gain", side="learnt", **about)
        assert row["who"] == "base"
        assert row.estimate.value == pytest.approx(learnt.value - before.value)
    baseline, _, _, is_shown = gains(found, "same")[3:]
    assert baseline.remark == "baseline: base"
    assert is_shown.text == "not shown"


def test_p_values_are_corrected(drawn: tuple[Mapping[str, np.ndarray], np.ndarray]) -> None:
    taught = [Learnt(name, ("base",)) for name in ("better", "same", "worse")]
    found = tuned(study_with(*drawn), *taught)
    p = {
        s: [found.rows.find(s, "test", judge=one.name, of="accuracy").value for one in taught]
        for s in ("permutation_p", "p_holm")
    }
    assert min(p["p_holm"]) == pytest.approx(3 * min(p["permutation_p"]))


def test_the_best_control_is_the_baseline(drawn) -> None:
    said, truth = drawn
    study = study_with({**said, "control-a": said["worse"], "control-b": said["same"]}, truth)
    found = tuned(study, Learnt("better", ()), Learnt("control-b", ()))
    assert {row["who"] for row in found.rows.select("gain", judge="better")} == {"control-b"}
    # A control that is fitted in the same folds is beside those that are not.
    assert {row["who"] for row in found.rows.select("gain", judge="control-b")} == {"control-a"}


def test_no_loss_is_shown_beside_a_control_that_was_picked_afterwards() -> None:
    """A judge that is as good as twelve controls, of which one happens to be far better here."""
    rng = np.random.default_rng(14)
    truth = rng.integers(0, 3, 200)

    def said() -> np.ndarray:
        wrong = (truth + rng.integers(1, 3, len(truth))) % 3
        return np.where(rng.random(len(truth)) < 0.5, truth, wrong)

    named = {"learnt": said(), **{f"control-{n}": said() for n in range(12)}}
    picked = tuned(study_with(named, truth), Learnt("learnt", ()))
    about = {"judge": "learnt", "of": "accuracy", "failures": "left_out"}
    (gain,) = picked.rows.select("gain", "accuracy", judge="learnt", side="difference")
    tests = {key: picked.rows.select("test", key, **about) for key in ("permutation_p", "p_holm")}
    assert {key: len(rows) for key, rows in tests.items()} == {"permutation_p": 12, "p_holm": 12}
    p = {key: picked.rows.find(key, "test", who=gain["who"], **about).value for key in tests}
    assert gain.estimate.high < 0
    assert p["permutation_p"] < 0.05 < p["p_holm"]
    assert shown(picked, "learnt") == "not shown"
    assert re.fullmatch(r"strongest baseline: control-\d+", gains(picked, "learnt")[3].remark)


def test_silence_on_what_is_hard_is_no_gain(drawn) -> None:
    said, truth = drawn
    base = said["base"]
    silent = np.where(base == truth, -1, truth)  # right where base is wrong, and else says nothing
    study = study_with({"base": base, "silent": silent}, truth)
    found = tuned(study, Learnt("silent", ("base",)))
    rows = {
        row["failures"]: row
        for row in found.rows.select("gain", "accuracy", judge="silent", side="difference")
    }
    assert rows["left_out"].estimate.value == 1
    assert rows["left_out"].estimate.n_missing == int((base == truth).sum())
    assert rows["worst"].estimate.high < 0
    assert {row["shown"] for row in rows.values()} == {"not shown"}


def test_every_way_to_teach_stands_beside_the_judge(drawn) -> None:
    said, truth = drawn
    study = study_with(said, truth)
    by_name = {judge.name: judge for judge in study.judges}
    part = replace(by_name["worse"], verdicts=dict(list(by_name["worse"].verdicts.items())[:100]))
    ways = {
        "in-sample": by_name["better"], "n50": by_name["worse"], "round-1": by_name["better"],
        "without-model-x": part,
    }  # fmt: skip
    taught = Learnt("same", ("base",), ways)
    found = tuned(study, taught)
    rows = {
        (row["as"], row["side"]): row
        for row in found.rows.select("otherwise", "accuracy", judge="same")
    }
    for (way, side), row in rows.items():
        asked = slice(0, 100 if way == "without-model-x" else None)
        other = {"in-sample": "better", "round-1": "better"}.get(way, "worse")
        reached = {
            "learnt": (said["same"] == truth)[asked].mean(),
            "otherwise": (said[other] == truth)[asked].mean(),
        }
        reached["difference"] = reached["otherwise"] - reached["learnt"]
        assert row.estimate.value == pytest.approx(reached[side])
        assert row.estimate.low < row.estimate.value < row.estimate.high
    tables = {t.key: t for block in found.part.blocks for t in block.tables}
    table = tables["tuning_otherwise"]
    assert {row[2].text for row in table.rows} == {"n50", "round-1", "without-model-x"}
    assert table.rows[0][-1].value.startswith("-")


def test_tune_shows_what_the_run_found(run: Path) -> None:
    found = jb.tune(jb.open_run(run))
    rows = found.results
    assert set(rows.values("as", "otherwise")) == {"in-sample", "n6", "n12", "without-model-x"}
    about = {"judge": "plain", "metric": "tone"}
    held = {
        row["side"]: row.estimate
        for row in rows.select("otherwise", "accuracy", **about) if row["as"] == "without-model-x"
    }  # fmt: skip
    assert held["learnt"].n == held["otherwise"].n == 24  # the answers of model-x alone
    written = write_report([found.part], run / "paper", name="tone")
    page = written["html"].read_text()
    assert "Without folds" in page
    assert "n12" in page
    assert len(found.to_frame()) == len(written["results.csv"].read_text().splitlines()) - 1


def test_who_wrote_it_is_the_control_of_a_taught_judge(tmp_path: Path, call: Call) -> None:
    """Of each system 3 of 4 answers have one label, and texts tell the system alone."""
    bench = write_bench(tmp_path, "  - {name: own, learn: head, encoder: words}", 24)
    hide_labels(tmp_path)
    table = pd.read_csv(tmp_path / "labels.csv")
    is_usual = table["group"].str[1:].astype(int) % 4 > 0
    is_kind = is_usual == (table["system"] == "model-x")
    table.assign(tone=np.where(is_kind, "Friendly", "Rude")).to_csv(tmp_path / "labels.csv")
    code, out, err = call("tune", bench, "--run", tmp_path / "run")
    assert code == 0, err
    assert "48 answers with" in " ".join(out.split())
    assert "altered answer" not in out
    report = (tmp_path / "run" / "report" / "report.html").read_text()
    assert "strongest baseline: by-system" in report
    study = jb.open_run(tmp_path / "run")
    assert jb.align(study).score("accuracy", "by-system", "tone").value == 0.75
    found = jb.tune(study)
    (gain,) = found.results.select("gain", "accuracy", judge="own", side="difference")
    assert gain["who"] == "by-system"
    assert gain["shown"] == "not shown"


def test_folds_can_be_audited(tmp_path: Path) -> None:
    """From the table alone: who is judged in which fold, and what ties answers together."""
    bench = write_bench(tmp_path, "  - {name: own, learn: head, encoder: words}", 24)
    labels = tmp_path / "labels.csv"
    labels.write_text(
        re.sub(r"(?m)^(model-x-\d+,[^,]*),[^,]*", r"\1,I cannot help", labels.read_text())
    )
    jb.tune(bench, tmp_path / "run")
    own = pd.read_csv(tmp_path / "run" / "tuning" / "own.folds.csv", dtype=str).fillna("")
    assert sorted(own["item_id"]) == sorted(f"{s}-{q}" for s in SYSTEMS for q in range(24))
    assert own.groupby("question")["fold"].nunique().eq(1).all()
    stock = own["item_id"].str.startswith("model-x")
    assert own["text"][stock].nunique() == 1
    assert own["text"][~stock].nunique() == 24


def test_fewer_labels_are_some_of_the_more(tmp_path: Path) -> None:
    jb.tune(write_bench(tmp_path, scripted(tmp_path), 24, MORE), tmp_path / "run")
    cases: dict[str, list[set[str]]] = {}
    for n in (6, 12):
        for path in (tmp_path / "run" / "tuning" / f"shots~n{n}").glob("*/*/cases.jsonl"):
            ids = {json.loads(line)["item_id"] for line in path.open()}
            cases.setdefault(path.parent.name, []).append(ids)
    assert len(cases) == 4
    for few, more in cases.values():
        assert (len(few), len(more)) == (6, 12)
        assert few < more


def test_texts_that_tie_too_much_together_are_told(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, WORDS, questions=24)
    labels = tmp_path / "labels.csv"
    lines = labels.read_text().splitlines()
    stock = [
        ",".join([*line.split(",")[:2], "I cannot help with that", *line.split(",")[3:]])
        if line.startswith("model-x") else line for line in lines
    ]  # fmt: skip
    labels.write_text("\n".join(stock) + "\n")
    found = jb.tune(bench, tmp_path / "run")
    assert "Texts that say nearly the same tie too many answers together" in found.part.notes[-1]


def test_all_that_is_wrong_is_said_before_anything_is_learnt(tmp_path: Path) -> None:
    more = "tuning: {folds: 4, curve: [6, 400], holdout_systems: [model-x, model-z]}"
    bench = write_bench(tmp_path, WORDS, more=more)
    outcome = jb.check([bench])
    said = [str(problem).removeprefix(f"{bench}: ") for problem in outcome.errors]
    assert said == [
        "tuning.holdout_systems: is no system of an answer; found model-z; "
        "allowed: model-x, model-y",
        "tuning.curve: is more than the 30 answers with a label that a fold learns from; found 400",
    ]
    bench = write_bench(tmp_path, WORDS, questions=3)
    (folds,) = map(str, jb.check([bench]).errors)
    assert "tuning.folds: is more than the 3 groups of questions that share no answer" in folds
    bench = write_bench(tmp_path, WORDS)
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    kept = [*lines[:7], *(line.rpartition(",")[0] + "," for line in lines[7:])]
    (tmp_path / "labels.csv").write_text("\n".join(kept))
    (few,) = map(str, jb.check([bench]).errors)
    assert (
        "rubric.tone: has fewer answers with a human label to learn from than there are fo" in few
    )
    assert "found 2 of 5" in few


def test_a_dry_run_says_what_would_be_learnt(call: Call, tmp_path: Path) -> None:
    judges = f"{WORDS}\n{scripted(tmp_path)}"
    bench = write_bench(tmp_path, judges, more="tuning: {folds: 4}")
    code, out, _ = call("tune", bench, "--run", tmp_path / "run", "--dry-run")
    said = " ".join(out.split())
    assert code == 0
    assert "plain: learns 4 times, judges 40 answers." in said
    assert "plain~in-sample: learns 1 time, judges 40 answers." in said
    learns = "shots: learns 4 times, judges 40 answers, with up to 40 calls of"
    assert f"{learns} a model." in said
    assert not (tmp_path / "run").exists()


def test_a_study_in_which_no_judge_learnt_has_nothing_to_show(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, "  - {name: always, verdicts: v.csv}")
    (tmp_path / "v.csv").write_text("item_id,tone\nmodel-x-0,Curt\n")
    study = jb.run(bench, tmp_path / "run")
    with pytest.raises(jb.SetupError, match="tone holds no judge that learns"):
        jb.tune(study)
    assert "tuning" not in jb.analyse(study)


@pytest.mark.parametrize("name", ["tune", "export_judge"])
def test_the_example_of_a_function_runs(tmp_path, monkeypatch, name) -> None:
    write_bench(tmp_path, "  - {name: my-judge, learn: bag-of-words}", more="tuning: {folds: 4}")
    monkeypatch.chdir(tmp_path)
    found = doctest.DocTestFinder(recurse=False).find(getattr(jb, name), name)
    (test,) = (test for test in found if test.examples)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


def test_without_a_difference_a_gain_is_hardly_ever_shown() -> None:
    rng, n, found = np.random.default_rng(11), 40, []
    for _ in range(10):
        truth = rng.choice(3, n, p=[0.7, 0.2, 0.1])
        said = {
            name: np.where(rng.random(n) < 0.7, truth, (truth + rng.integers(1, 3, n)) % 3)
            for name in ("base", "same")
        }
        one = tuned(study_with(said, truth), Learnt("same", ("base",)))
        found += [shown(one, "same", key) for key in ("accuracy", "balanced_accuracy")]
    assert found.count("not shown") >= 18  # of 20; 19 expected
    assert found.count("shown") <= 1
