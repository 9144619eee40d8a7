"""The shipped demo set keeps what its README promises."""

import csv
import json
import socket
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path
from statistics import median_low
from typing import Any

import pytest
import python_api
import yaml

import judgebench as jb
from judgebench.models.checkpoints import WEIGHTS

REPO = Path(__file__).resolve().parents[1]
DEMO = REPO / "examples" / "demo"
NOTE = "synthetic, not clinically reviewed"

Rows = list[dict[str, str]]


def read(name: str) -> Rows:
    with (DEMO / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


@pytest.fixture(scope="module")
def answers() -> Rows:
    return read("answers.csv")


@pytest.fixture(scope="module")
def labels() -> Rows:
    return read("labels.csv")


@pytest.fixture(scope="module")
def severities() -> dict[str, dict[str, int]]:
    """Metric id -> label text -> severity, from the rubric that the labels belong to."""
    rubric = yaml.safe_load((REPO / "rubrics" / "medical-safety.yaml").read_text("utf-8"))
    return {
        metric["id"]: {label["text"]: label["severity"] for label in metric["labels"]}
        for metric in rubric["metrics"]
    }


def by_item(labels: Rows, metric: str) -> dict[str, list[str]]:
    """Item -> the filled cells of one metric."""
    cells: dict[str, list[str]] = defaultdict(list)
    for row in labels:
        if row[metric]:
            cells[row["item_id"]].append(row[metric])
    return cells


def test_counts_and_unique_ids(answers: Rows) -> None:
    assert len(answers) == 66
    assert len({row["item_id"] for row in answers}) == len(answers)
    per_question = Counter(row["question"] for row in answers)
    assert len(per_question) == 20
    assert set(per_question.values()) == {3, 4}
    assert {row["system"] for row in answers} == {f"system-{letter}" for letter in "abcd"}


def test_every_row_has_its_warning_and_the_reference_of_its_question(answers: Rows) -> None:
    assert {row["note"] for row in answers} == {NOTE}
    references = {(row["question"], row["reference"]) for row in answers}
    assert len(references) == 20
    assert all(len(reference.split()) >= 20 for _, reference in references)


def test_readme_warns() -> None:
    readme = (DEMO / "README.md").read_text("utf-8")
    for promise in ("synthetic", "not clinically reviewed", "annotators are not people"):
        assert promise in readme


def test_labels_are_those_of_the_rubric(
    labels: Rows, severities: dict[str, dict[str, int]]
) -> None:
    blank = 0
    for row in labels:
        for metric, allowed in severities.items():
            blank += not row[metric]
            assert row[metric] in {"", *allowed}, (row["item_id"], metric)
    assert blank == 6


def test_annotators_overlap_partly(answers: Rows, labels: Rows) -> None:
    pairs = [(row["item_id"], row["annotator"]) for row in labels]
    assert len(set(pairs)) == len(pairs) == 172
    assert {item for item, _ in pairs} == {row["item_id"] for row in answers}
    per_item = Counter(item for item, _ in pairs)
    assert Counter(per_item.values()) == {3: 40, 2: 26}
    per_annotator = Counter(annotator for _, annotator in pairs)
    assert set(per_annotator) == {"annotator-1", "annotator-2", "annotator-3"}
    assert max(per_annotator.values()) < len(answers)


@pytest.mark.parametrize(
    ("metric", "at_least"), [("scientific_consensus", 10), ("extent_of_harm", 6), ("bias", 3)]
)
def test_most_answers_are_fine_and_enough_are_severe(
    labels: Rows, severities: dict[str, dict[str, int]], metric: str, at_least: int
) -> None:
    severity = severities[metric]
    truth = Counter(
        median_low(sorted(severity[cell] for cell in cells))
        for cells in by_item(labels, metric).values()
    )
    assert truth[0] > sum(truth.values()) / 2
    assert truth[max(severity.values())] >= at_least


def test_recorded_verdicts_are_whole_and_their_labels_the_most_probable(
    answers: Rows, severities: dict[str, dict[str, int]]
) -> None:
    recorded = read("qwen2.5-coder-1.5b.csv")
    assert [row["item_id"] for row in recorded] == sorted(row["item_id"] for row in answers)
    assert {row["status"] for row in recorded} == {"ok"}
    for row, (metric, allowed) in product(recorded, severities.items()):
        p = {label: float(row[f"probability_{metric}_{label}"]) for label in allowed}
        assert sum(p.values()) == pytest.approx(1, abs=0.001)
        assert p[row[metric]] == max(p.values()), (row["item_id"], metric)


def test_what_is_recorded_of_the_larger_model_stands_in_readme_and_report(tmp_path: Path) -> None:
    bench = yaml.safe_load((DEMO / "bench.yaml").read_text("utf-8"))
    (about,) = (judge["about"] for judge in bench["judges"] if "verdicts" in judge)
    readme = (DEMO / "README.md").read_text("utf-8")
    for fact in (about["weights"].split()[1], about["signature"], about["date"], about["model"]):
        assert fact in readme, fact
    data = [str(DEMO / name) for name in ("answers.csv", "labels.csv")]
    judge = {"name": "larger", "verdicts": str(DEMO / "qwen2.5-coder-1.5b.csv"), "about": about}
    bench = {"name": "larger", "rubric": "medical-safety", "data": data, "judges": [judge]}
    (tmp_path / "bench.yaml").write_text(yaml.safe_dump(bench), "utf-8")
    study = jb.run(tmp_path / "bench.yaml", tmp_path / "run")
    page = jb.report(study, tmp_path / "report")["html"].read_text("utf-8")
    assert f"larger: recorded verdicts, {about['model']}, {about['date']}" in page


def test_recorded_yaml_is_the_demo_with_verdicts_for_a_model() -> None:
    demo, recorded = (
        yaml.safe_load((DEMO / f"{name}.yaml").read_text("utf-8")) for name in ("bench", "recorded")
    )
    (model, *others), (verdicts, *recorded_others) = demo.pop("judges"), recorded.pop("judges")
    assert (recorded, recorded_others) == (demo, others)
    assert verdicts["name"] == model["name"]
    assert {row["status"] for row in read(verdicts["verdicts"])} == {"ok"}
    readme = (DEMO / "README.md").read_text("utf-8")
    for key in ("model", "signature", "date"):
        assert verdicts["about"][key] in readme, key
    assert verdicts["about"]["weights"] == f"sha256 {WEIGHTS['smollm2'].sha256}"


def test_the_recorded_demo_has_four_outcomes_and_calls_no_model(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model or the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr("judgebench.models.open_backend", refuse)
    monkeypatch.setattr("judgebench.models.checkpoints.fetch", refuse)
    monkeypatch.chdir(tmp_path)

    code, out, _ = call("demo", "--recorded", "--json")

    assert "is not read" not in out  # of metrics that the demo leaves out
    shown = json.loads(out)
    outcomes = [
        {(row["judge"], row["metric"]): row["outcome"] for row in rows["decisions"]}
        for rows in (shown, shown["synthetic study"])
    ]
    assert code == 0
    assert outcomes == [
        {
            ("smollm2-135m", "scientific_consensus"): "DO NOT USE",
            ("smollm2-135m", "empathy"): "DO NOT USE",
            ("qwen2.5-coder-1.5b", "scientific_consensus"): "DO NOT USE",
            ("qwen2.5-coder-1.5b", "empathy"): "CAN'T TELL",
        },
        {
            ("my-judge", "refused"): "REPLACE",
            ("my-judge", "harmful"): "ASSIST",
            ("my-judge", "tone"): "DO NOT USE",
            ("my-judge", "false_claim"): "CAN'T TELL",
        },
    ]
    assert not list(tmp_path.iterdir())


def test_a_recorded_run_says_what_the_run_said(tmp_path: Path) -> None:
    """The lines of the README for verdicts of one's own, with a judge that needs no model."""
    python_api.write_tables(tmp_path)
    python_api.write_bench(tmp_path)
    run = jb.run(tmp_path / "bench.yaml", tmp_path / "run")
    recorded = tmp_path / f"{python_api.JUDGE}.csv"
    script = [sys.executable, DEMO / "record.py", tmp_path / "run", python_api.JUDGE, recorded]
    subprocess.run(script, check=True)
    read_again = jb.study(tmp_path / "labels.csv", recorded, rubric=python_api.rubric())
    rows = [
        jb.align(study).results.find("accuracy", "score", judge=python_api.JUDGE, metric=metric)
        for study in (run, read_again)
        for metric in python_api.METRICS
    ]
    n = len(python_api.METRICS)
    assert [row.value for row in rows[:n]] == [row.value for row in rows[n:]]
    assert all(row.n == python_api.ITEMS for row in rows)
