"""From what other judges said to human labels."""

import csv
import json
from collections.abc import Collection
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest
from learning_case import write_bench
from sklearn.metrics import log_loss

import judgebench as jb
from judgebench.errors import JudgesStopped, SetupError
from judgebench.records import Status
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.studies.study import JudgeVerdicts
from judgebench.tuning.judges import open_judges

TONES = ("Friendly", "Curt", "Rude")
QUESTIONS = 100  # of two answers each
TRUTH = np.array([(row // 2) % 2 + row % 2 for row in range(2 * QUESTIONS)])
RECORDED = "  - {name: bold, verdicts: bold.csv}"
AGAIN = "  - {name: again, learn: recalibrate, from: bold}"


def opinions(seed: int, temperature: float = 1.0) -> np.ndarray:
    """A judge that often knows better, and favours the last label; the colder the bolder."""
    noise = np.random.default_rng(seed).gumbel(size=(2 * QUESTIONS, 3))
    logits = (1.7 * np.eye(3)[TRUTH] + noise + [0.0, 0.0, 1.5]) / temperature
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def write_verdicts(
    path: Path, p: np.ndarray, weighed: Collection[int] = range(1000), **gone: Collection[int]
) -> None:
    """Recorded verdicts on the answers of `learning_case`; `weighed` rows have probabilities."""
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["item_id", "tone", "status", *(f"probability_tone_{t}" for t in TONES)])
        for row, shares in enumerate(p):
            status = next((name for name, rows in gone.items() if row in rows), "")
            told = [""] * 3 if status or row not in weighed else [f"{x:.9f}" for x in shares]
            label = "" if status else TONES[int(shares.argmax())]
            out.writerow([f"model-{'xy'[row % 2]}-{row // 2}", label, status, *told])


def ran(folder: Path, *judges: str) -> jb.Study:
    more = "tuning: {folds: 2}\ncontrols: false"
    bench = write_bench(folder, "\n".join(judges), questions=QUESTIONS, more=more)
    return jb.run(bench, folder / "run")


def named(study: jb.Study, name: str) -> JudgeVerdicts:
    return next(judge for judge in study.judges if judge.name == name)


def scores(study: jb.Study, name: str) -> tuple[float, float]:
    """Accuracy and log loss."""
    metric, judge = study.rubric.metrics[0], named(study, name)
    p = study.probabilities(judge, metric)
    assert p is not None
    return (study.judged(judge, metric) == TRUTH).mean(), log_loss(TRUTH, p, labels=range(3))


def test_probabilities_are_put_right(tmp_path: Path) -> None:
    write_verdicts(tmp_path / "bold.csv", opinions(1, temperature=0.2))
    study = ran(tmp_path, RECORDED, AGAIN)
    (before, bold), (after, calm) = scores(study, "bold"), scores(study, "again")
    assert bold > 2  # nats: far worse than the shares of the labels, which cost 1.04
    assert calm < 0.9
    assert after > before + 0.05  # the favour for the last label is gone
    (cell,) = (tmp_path / "run" / "tuning" / "again").glob("*/fold-1")
    assert json.loads((cell / "learnt.json").read_text())["metrics"]["tone"]["n"] == 100


def test_several_judges_are_stacked_by_labels_alone(tmp_path: Path) -> None:
    for seed, name in enumerate(("bold", "other", "third"), start=1):
        write_verdicts(
            tmp_path / f"{name}.csv", opinions(seed), weighed=() if seed < 3 else range(90)
        )
    several = "  - {name: several, learn: recalibrate, from: [bold, other, third]}"
    judges = [f"  - {{name: {name}, verdicts: {name}.csv}}" for name in ("bold", "other", "third")]
    study = ran(tmp_path, *judges, several, AGAIN)
    alone, together = scores(study, "again"), scores(study, "several")
    assert together[0] > alone[0] + 0.03
    assert together[1] < alone[1] - 0.05


def test_what_nobody_labelled_stays_without_a_label(tmp_path: Path) -> None:
    failed, unparsed = {0, 1, 2, 3}, {4, 5, 6}
    write_verdicts(tmp_path / "bold.csv", opinions(1), failed=failed, unparsed=unparsed)
    write_verdicts(tmp_path / "other.csv", opinions(2), failed={0, 4}, weighed=())
    other = "  - {name: other, verdicts: other.csv}"
    both = "  - {name: both, learn: recalibrate, from: [bold, other]}"
    study = ran(tmp_path, RECORDED, other, AGAIN, both)
    alone, two = named(study, "again").verdicts, named(study, "both").verdicts
    ids = [answer.item_id for answer in study.answers]
    assert {row for row, i in enumerate(ids) if alone[i].status is Status.FAILED} == failed
    assert {row for row, i in enumerate(ids) if alone[i].status is Status.UNPARSED} == unparsed
    assert alone[ids[4]].reason == "nothing to go by for tone"
    assert not alone[ids[4]].labels
    assert [row for row, i in enumerate(ids) if two[i].status is not Status.OK] == [0, 4]


def test_its_signature_covers_those_of_the_others(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, f"{RECORDED}\n{AGAIN}", questions=QUESTIONS)
    signed = []
    for temperature in (1.0, 1.0, 0.5):
        write_verdicts(tmp_path / "bold.csv", opinions(1, temperature))
        judges = open_judges(load_bench(bench), RunFolder(tmp_path / "run"))
        signed += [judge.signature for judge in judges if judge.name == "again"]
    assert signed[0] == signed[1] != signed[2]


def test_altered_answers_are_judged_by_what_was_said_of_them(tmp_path: Path) -> None:
    attacking = pytest.importorskip("judgebench.stress_tests.make")
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"text": json.dumps({"tone": "Rude"})}) + "\n")
    judge = f"  - {{name: rude, backend: 'scripted:{script}'}}"
    again = "  - {name: again, learn: recalibrate, from: [rude]}"
    more = "stress: {attacks: [greeting]}\ncontrols: false"
    bench = write_bench(tmp_path, f"{judge}\n{again}", questions=20, more=more)
    run = tmp_path / "run"
    jb.run(load_bench(bench, extend=attacking.StressExtension()), run)
    altered = {json.loads(line)["item_id"] for line in (run / "attacks.jsonl").open()}
    said = [json.loads(line) for line in (run / "verdicts-again.jsonl").open()]
    assert altered
    assert {v["item_id"] for v in said} > altered
    assert {v["labels"]["tone"] for v in said} == {"Curt"}  # what is behind that judge's one label


def test_an_exported_one_knows_which_judge_is_which(tmp_path: Path) -> None:
    """Here they come in another order."""
    bench = tmp_path / "a"
    bench.mkdir()
    noise = opinions(2)[np.random.default_rng(0).permutation(2 * QUESTIONS)]
    write_verdicts(bench / "bold.csv", opinions(1))
    write_verdicts(bench / "noise.csv", noise)
    both = "  - {name: both, learn: recalibrate, from: [bold, noise]}"
    study = ran(bench, RECORDED, "  - {name: noise, verdicts: noise.csv}", both)
    jb.tune(bench / "bench.yaml", bench / "run")
    jb.export_judge(bench / "bench.yaml", "both", tmp_path / "both", folder=bench / "run")

    other = tmp_path / "b"
    mine = "  - {name: mine, tuned: ../both}"
    judges = ["  - {name: noise, verdicts: noise.csv}", RECORDED, mine]
    write_bench(other, "\n".join(judges), questions=QUESTIONS, more="controls: false")
    for name in ("bold", "noise"):
        copyfile(bench / f"{name}.csv", other / f"{name}.csv")
    labels = (other / "labels.csv").read_text()
    for old, new in (("words number", "is what I call"), ("Question", "So"), ("about matter", "")):
        labels = labels.replace(old, new)
    (other / "labels.csv").write_text(labels)
    again = jb.run(other / "bench.yaml", tmp_path / "run-b")
    assert scores(again, "mine")[0] == pytest.approx(scores(study, "both")[0], abs=0.06)
    assert scores(again, "mine")[0] > scores(again, "bold")[0] + 0.05


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    write_verdicts(tmp_path / "bold.csv", opinions(1), failed=range(1000))
    said = "recalibrate: nothing is known of the answers that have a human label"
    with pytest.raises(JudgesStopped, match=said):
        ran(tmp_path, RECORDED, AGAIN)
    with pytest.raises(SetupError, match=r"judges\.again\.from: is no judge of this bench"):
        ran(tmp_path, AGAIN)
    with pytest.raises(SetupError, match="from"):
        ran(tmp_path, "  - {name: again, learn: recalibrate}")


def test_labels_and_verdicts_without_texts_suffice(tmp_path: Path) -> None:
    """On the metric that the judge judges, as verdicts from a file often are."""
    rows = ["item_id,group,annotator,tone,length,gpt"]
    for n in range(40):
        right = ("Friendly", "Rude")[n % 2]
        length = ("Long", "Short")[n % 3 == 0]
        said = right if n % 5 else ("Rude", "Friendly")[n % 2]
        rows += [f"i{n},q{n},{who},{right},{length},{said}" for who in ("Ann", "Bob")]
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    (tmp_path / "layout.yaml").write_text(
        "tables: [{file: labels.csv, columns: {item_id: item, group: group, annotator: annotator,\n"
        "  tone: label tone, length: label length, gpt: verdict tone by gpt}}]\n"
    )
    (tmp_path / "rubric.yaml").write_text(
        "name: two\nversion: '1'\ninstructions: Judge.\nmetrics:\n"
        "  - {id: tone, title: Tone, question: 'How?', kind: ordinal,\n"
        "     labels: [{text: Friendly}, {text: Rude}]}\n"
        "  - {id: length, title: Length, question: 'How long?', kind: nominal,\n"
        "     labels: [{text: Long}, {text: Short}]}\n"
    )
    more = "  - {name: words, learn: head, encoder: words}\n"
    text = (
        "name: two\nrubric: rubric.yaml\ndata: layout.yaml\njudges:\n"
        "  - {name: gpt, verdicts: layout.yaml}\n"
        "  - {name: better, learn: recalibrate, from: gpt}\n"
    )
    (tmp_path / "bench.yaml").write_text(text)
    found = jb.tune(tmp_path / "bench.yaml", tmp_path / "run")
    sides = found.results.select("gain", "accuracy", judge="better", failures="left_out")
    assert {row["side"]: row.estimate.value for row in sides if row.estimate.n == 40} == {
        "baseline": 0.8, "learnt": 0.8, "difference": 0.0,
    }  # fmt: skip
    assert not found.results.select("gain", judge="better", metric="length")
    (tmp_path / "words.yaml").write_text(text + more)
    with pytest.raises(SetupError, match=r"judges\.words: it reads answers, whose texts"):
        jb.load_bench(tmp_path / "words.yaml")
