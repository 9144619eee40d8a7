"""A judge that was tuned on one data set judges another, and says what it was trained on."""

import csv
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from learning_case import write_bench
from loopback import Loopback, Play, said

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import tasks_of
from judgebench.runs.load import load_bench
from judgebench.studies.answers import indexed
from judgebench.tuning.judges import learner_of
from judgebench.tuning.tuned import TunedEntry, read_export

SYS = "  - {name: who, learn: by-system}"
MINE = "  - {name: mine, tuned: ../who}"


def elsewhere(
    folder: Path, judges: str, questions: int = 6, changed: Mapping[str, Mapping[str, str]] = {}
) -> Path:
    """The same two systems, on other questions and in other words; `changed` are cells of items."""
    bench = write_bench(folder, judges, questions)
    with (folder / "labels.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    for row in rows:
        row["question"] = row["question"].replace("Question", "What of")
        row["text"] = (
            f"On a subject of its own: {row['text'].split(' ', 1)[0]} remark {row['group']}"
        )
        row.update(changed.get(row["item_id"], {}))
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return bench


def exported(tmp_path: Path, judges: str = SYS) -> Path:
    bench = write_bench(tmp_path / "a", judges)
    jb.tune(bench, tmp_path / "run-a")
    folder = tmp_path / "who"
    return jb.export_judge(bench, "who", folder, folder=tmp_path / "run-a")


@pytest.fixture(scope="module")
def who(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(tmp_path_factory.mktemp("exported"))


@pytest.fixture
def placed(who: Path, tmp_path: Path) -> Path:
    """A copy of the export, to be spoilt."""
    import shutil

    return Path(shutil.copytree(who, tmp_path / "who"))


def verdicts(run: Path, judge: str = "mine") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / f"verdicts-{judge}.jsonl").open()]


def test_it_judges_other_data_as_what_it_learnt_says(placed: Path, tmp_path: Path) -> None:
    study = jb.run(elsewhere(tmp_path / "b", MINE), tmp_path / "run-b")
    counts = json.loads((placed / "counts.json").read_text())["tone"]
    assert counts == {"model-x": [10, 10, 0], "model-y": [0, 10, 10], "": [10, 20, 10]}
    (mine,) = (judge for judge in study.judges if judge.name == "mine")
    assert mine.kind == "judge"
    said = {item: verdict.labels["tone"] for item, verdict in mine.verdicts.items()}
    # Of two labels that are as likely, the less severe.
    assert said == {
        f"{system}-{q}": label
        for system, label in (("model-x", "Friendly"), ("model-y", "Curt"))
        for q in range(6)
    }
    assert mine.verdicts["model-x-0"].probabilities == {
        "tone": {"Friendly": 0.5, "Curt": 0.5, "Rude": 0.0}
    }


LLM = """
  - name: {name}
    backend: openai-compatible:loopback
    settings: {{base_url: "{url}", concurrency: 4}}
"""


def copied(body: Any, count: int) -> Play:
    """Says what people said of the last case shown before the question; without one, by its words,
    which are mild."""
    *before, last = body["messages"]
    if before[0]["content"].startswith("You improve"):
        keys = ("instructions", "tone: Friendly", "tone: Curt", "tone: Rude")
        return said(json.dumps(dict.fromkeys(keys, "about the tone")))
    if before[-1]["role"] == "assistant":
        return said(before[-1]["content"])
    rude = "remark" in last["content"] or "Rude" in last["content"]
    return said(json.dumps({"tone": "Curt" if rude else "Friendly"}))


@pytest.mark.parametrize(
    "way",
    [
        "bag-of-words",
        "head, encoder: words",
        pytest.param(
            "head, encoder: words, rounds: {n: 1, suggester: llm, objector: llm}",
            marks=pytest.mark.long,
        ),
        "recalibrate, from: llm",
        "examples, from: llm, k: 3",
        "instructions, from: llm, revisions: 1",
    ],
)
def test_it_says_what_the_learner_says(tmp_path: Path, way: str) -> None:
    """On other data."""
    pytest.importorskip("sklearn", reason="needs the extra `tuning`")
    with Loopback(copied) as server:
        llm = LLM.format(name="llm", url=server.base_url) * ("llm" in way)
        placed = exported(tmp_path, f"{llm}  - {{name: who, learn: {way}}}")
        bench = elsewhere(tmp_path / "b", f"{llm}  - {{name: mine, tuned: {placed}}}")
        jb.run(bench, tmp_path / "run-b")
        mine = {v["item_id"]: v for v in verdicts(tmp_path / "run-b")}
        (learnt,) = (tmp_path / "run-a" / "tuning").glob("who~in-sample/*/all")
        with closing(load_bench(bench)) as loaded:
            (entry,) = loaded.learning
            assert isinstance(entry, TunedEntry)
            learner = learner_of(entry.how, loaded, RunFolder(tmp_path / "run-b"))
            direct = [*learner.judge(tasks_of(indexed(loaded.answers)), learnt)]
            learner.close()
    assert len(direct) == 12
    for verdict in direct:
        assert mine[verdict.item_id]["status"] == verdict.status == "ok"
        assert mine[verdict.item_id]["labels"] == dict(verdict.labels)
        assert mine[verdict.item_id].get("probabilities") == verdict.probabilities


def test_another_judge_than_the_one_it_learnt_with(tmp_path: Path) -> None:
    with Loopback(copied) as server:
        llm = LLM.format(name="llm", url=server.base_url)
        exported(tmp_path, f"{llm}  - {{name: who, learn: examples, from: llm, k: 3}}")
        bench = elsewhere(tmp_path / "b", f"{llm}    prompt: rationale\n{MINE}")
        why = "from: has another signature than the judge with which it was learnt; found llm"
        with pytest.raises(SetupError, match=why):
            jb.run(bench, tmp_path / "run-b")
        with pytest.raises(SetupError, match=r"mine\.from: is no judge of this benchmark"):
            jb.load_bench(elsewhere(tmp_path / "b", MINE))
    card = (tmp_path / "who" / "README.md").read_text()
    assert "- {name: who, tuned: PATH-OF-THIS-FOLDER}" in card
    assert "**It holds labelled answers word for word**" in card


def test_what_it_was_trained_on_is_skipped_and_not_due(who: Path, tmp_path: Path) -> None:
    changed = {
        "model-x-0": {"question": "  question 0 "},
        "model-x-1": {"text": "curt words, number 1: of MODEL-X about matter 1!"},
        "model-x-2": {"text": "Friendly words number 4 of model-x about matter 4 indeed"},
        "model-x-3": {"text": "Curt words of quite another kind, number 3"},
    }
    bench = elsewhere(tmp_path / "b", f"  - {{name: mine, tuned: {who}}}", 8, changed)
    study = jb.run(bench, tmp_path / "run-b")
    found = {v["item_id"]: v for v in verdicts(tmp_path / "run-b")}
    known = {item for item, v in found.items() if v["status"] == "skipped"}
    assert known == {"model-x-0", "model-x-1", "model-x-2"}
    assert {found[item]["reason"] for item in known} == {"trained on it"}
    assert len(found) == 16
    (mine,) = (judge for judge in study.judges if judge.name == "mine")
    (metric,) = study.rubric.metrics
    assert study.asked(mine, metric).sum() == 13
    aligned = jb.align(study)
    assert aligned.score("accuracy", "mine", "tone").n == 13
    assert aligned.score("accuracy", "mine", "tone").n_missing == 0
    statuses = {r.statistic: r.estimate for r in aligned.results.select("verdicts", judge="mine")}
    assert {status: e.value for status, e in statuses.items()} == {"ok": 13, "trained on it": 3}
    assert statuses["ok"].n == 13
    decided = jb.decide(study).to_frame()
    assert decided[decided.statistic == "failures"].n.tolist() == [13]


def test_an_altered_answer_of_a_known_one_is_known(who: Path, tmp_path: Path) -> None:
    attacking = pytest.importorskip("judgebench.stress_tests.make")
    changed = {"model-x-0": {"text": "Friendly words number 0 of model-x about matter 0"}}
    judges = f"  - {{name: mine, tuned: {who}}}\nstress: {{attacks: [greeting]}}"
    bench = elsewhere(tmp_path / "b", judges, 4, changed)
    jb.run(load_bench(bench, extend=attacking.StressExtension()), tmp_path / "run-b")
    beside = [json.loads(line) for line in (tmp_path / "run-b" / "attacks.jsonl").open()]
    parents = {line["item_id"]: line["parent_id"] for line in beside}
    statuses = {v["item_id"]: v["status"] for v in verdicts(tmp_path / "run-b")}
    altered = [item for item, parent in parents.items() if parent == "model-x-0"]
    assert altered
    assert {statuses[item] for item in altered} == {"skipped"}
    assert {statuses[item] for item in parents if item not in altered} == {"ok"}


@pytest.mark.parametrize(
    ("file", "old", "new", "why"),
    [
        ("judgebench.json", "", "", "an exported judge cannot be read: No such file"),
        ("counts.json", "10", "11", "a file is missing, or was changed after the export"),
        ("README.md", "", "", "a file is missing, or was changed after the export"),
    ],
)
def test_a_folder_that_is_not_whole(placed, tmp_path, file, old, new, why) -> None:
    path = placed / file
    text = path.read_text()
    path.unlink()
    if old:
        path.write_text(text.replace(old, new, 1))
    with pytest.raises(SetupError, match=why):
        jb.load_bench(elsewhere(tmp_path / "b", MINE))


def test_another_rubric(placed: Path, tmp_path: Path) -> None:
    bench = elsewhere(tmp_path / "b", MINE)
    rubric = (tmp_path / "b" / "tone.yaml").read_text()
    (tmp_path / "b" / "tone.yaml").write_text(rubric.replace("an insult", "two insults"))
    why = "who: rubric: is for another rubric than this: compare it with that in judgebench.json"
    with pytest.raises(SetupError, match=why):
        jb.run(bench, tmp_path / "run-b")
    (tmp_path / "b" / "tone.yaml").write_text(rubric.replace("id: tone", "id: sound"))
    with pytest.raises(SetupError, match=why):
        jb.run(bench, tmp_path / "run-b")


def test_a_rubric_with_more_metrics_is_judged_in_part(placed: Path, tmp_path: Path) -> None:
    bench = elsewhere(tmp_path / "b", MINE)
    with (tmp_path / "b" / "tone.yaml").open("a") as file:
        file.write("  - {id: length, title: Length, question: Long, kind: nominal,")
        file.write(" labels: [Short, Long]}\n")
    study = jb.run(bench, tmp_path / "run-b")
    (mine,) = (judge for judge in study.judges if judge.name == "mine")
    assert [mine.judges(metric) for metric in study.rubric.metrics] == [True, False]


def test_the_entry_is_checked(placed: Path, tmp_path: Path) -> None:
    for keys, why in {
        "tuned: ../nowhere": "an exported judge cannot be read",
        "tuned: ../who, from: a": "from: is not a known key",
        "tuned: ../who, learn: by-system": "learn: is not a known key",
    }.items():
        with pytest.raises(SetupError, match=why):
            jb.load_bench(elsewhere(tmp_path / "b", f"  - {{name: mine, {keys}}}"))


def test_a_folder_is_not_overwritten_by_chance(who: Path, tmp_path: Path, call: Any) -> None:
    bench, run = write_bench(tmp_path / "a", SYS), tmp_path / "run"
    jb.run(bench, run)
    given = ("tune", bench, "--run", run, "--export", "who", "--to", tmp_path / "to")
    code, _, err = call(*given)
    assert code == 0, err
    assert f"who is in {tmp_path / 'to'}; for its entry, read {tmp_path}/to/README.md" in err
    before = (tmp_path / "to" / "judgebench.json").read_bytes()
    code, _, err = call(*given)
    assert code != 0
    assert f"{tmp_path / 'to'}: is there already, and is not overwritten" in err
    assert (tmp_path / "to" / "judgebench.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "run", "to"]


def test_what_cannot_be_exported(tmp_path: Path, call: Any) -> None:
    bench, run = write_bench(tmp_path / "a", SYS), tmp_path / "run"
    to = tmp_path / "to"
    with pytest.raises(SetupError, match="run: has no verdicts of who as the benchmark stands"):
        jb.export_judge(bench, "who", to, folder=run)
    code, _, err = call("tune", bench, "--run", run, "--export", "who")
    assert code == 2
    assert "--export and --to are given together" in err
    _, _, err = call("tune", bench, "--run", run, "--export", "whom", "--to", to)
    assert "judges: is no judge of this benchmark that learns; found whom; allowed: who" in err
    # What cannot be exported is refused before anything runs.
    assert not run.exists() or not [*run.rglob("verdicts*")]
    jb.tune(bench, run)
    write_bench(tmp_path / "a", SYS, questions=21)
    with pytest.raises(SetupError, match="has no verdicts of who as the benchmark stands"):
        jb.export_judge(bench, "who", to, folder=run)
    assert not to.exists()


def test_the_card_and_the_rubric_are_for_people(who: Path) -> None:
    card = (who / "README.md").read_text()
    assert "**It is not clinically\nreviewed**" in card
    assert "40 answers with labels of 3 annotators (hash `" in card
    assert "- {name: who, tuned: PATH-OF-THIS-FOLDER}" in card
    assert re.search(r"^\| Tone \| who \(baseline\) \| 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]", card, re.M)
    manifest = json.loads((who / "judgebench.json").read_text())
    assert manifest["rubric"]["metrics"][0]["title"] == "Tone"


def test_no_text_lies_in_the_folder(who: Path) -> None:
    for path in who.rglob("*"):
        if path.is_file():
            assert "matter" not in path.read_text()
            assert "Question 1" not in path.read_text()


@pytest.mark.long
def test_a_killed_export_leaves_nothing_half_written(tmp_path: Path) -> None:
    bench, run = write_bench(tmp_path / "a", SYS), tmp_path / "run"
    jb.run(bench, run)
    given = [bench, "--run", run, "--export", "who", "--to", tmp_path / "to"]
    command = [sys.executable, "-m", "judgebench", "tune", *map(str, given)]
    slowed = "import time, judgebench.tuning.export as e; e.card = lambda *_: time.sleep(60)"
    called = f"sys.argv = {command[2:]!r}; from judgebench.cli.app import main; main()"
    source = f"import sys; {slowed}; {called}"
    part = tmp_path / ".to.part"
    with subprocess.Popen([sys.executable, "-c", source]) as process:
        for _ in range(600):
            if (part / "counts.json").exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert part.is_dir()
    assert not (tmp_path / "to").exists()
    subprocess.run(command, check=True, capture_output=True)
    assert read_export(tmp_path / "to").recipe["name"] == "who"
    assert not part.exists()
