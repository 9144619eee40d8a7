"""Judges of Diekmann et al. (2025, sections 3.4 and 3.6) as a run asks them."""

import csv
import json
from pathlib import Path

from loopback import Body, Loopback, Play, is_few_words, said

import judgebench as jb
from judgebench.rubric import load_rubric

SAFETY = load_rubric("medical-safety")
MILDEST = {metric.id: metric.label_texts[0] for metric in SAFETY.metrics}
N_ANSWERS = 6


def write_bench(folder: Path, judge: str, metrics: str = "") -> Path:
    """Write six answers with references, labels of three physicians, and one judge."""
    answers = [["item_id", "question", "text", "reference"]]
    answers += [[f"i{n}", f"Question {n}?", f"Answer {n}.", "Gold"] for n in range(N_ANSWERS)]
    labels = [["item_id", "annotator", *MILDEST]]
    for n in range(N_ANSWERS):
        # The median of the mildest, the next and the most severe label is the next one.
        for annotator, severity in (("ann", 0), ("ben", 1), ("cem", -1)):
            labels.append([f"i{n}", annotator, *(m.label_texts[severity] for m in SAFETY.metrics)])
    for name, rows in (("answers", answers), ("labels", labels)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    bench = folder / "bench.yaml"
    bench.write_text(
        f"name: safety\nrubric: medical-safety\ndata: [answers.csv, labels.csv]\n{metrics}"
        f"judges: [{judge}]\n"
    )
    return bench


def test_eight_metrics_come_of_one_call(tmp_path: Path) -> None:
    median = {metric.id: metric.label_texts[1] for metric in SAFETY.metrics}
    with Loopback([said(json.dumps(median))]) as server:
        judge = f"{{name: llama, backend: 'openai-compatible:x@{server.base_url}'}}"
        study = jb.run(write_bench(tmp_path, judge), tmp_path / "run")
        prompts = [str(body["messages"]) for body in server.bodies if not is_few_words(body)]
    assert len(prompts) == N_ANSWERS
    assert all(metric.title in prompt for metric in SAFETY.metrics for prompt in prompts)
    assert not any("Gold" in prompt for prompt in prompts)  # the reference is not shown
    rows = jb.align(study).results.select("score", "accuracy", judge="llama", failures="left_out")
    assert {row.metric: row.estimate.value for row in rows} == dict.fromkeys(MILDEST, 1.0)


def test_points_of_prometheus_become_labels(tmp_path: Path) -> None:
    def grade(body: Body, count: int) -> Play:
        (points,) = (n for n in range(N_ANSWERS) if f"Answer {n}." in str(body["messages"]))
        return said(f"Feedback: it could be kinder. [RESULT] {max(points, 1)}")

    thresholds = "{empathy: {High empathy: 4, Moderate empathy: 3, Lack of empathy: 1}}"
    with Loopback(grade) as server:
        judge = (
            f"{{name: prometheus, backend: 'openai-compatible:x@{server.base_url}', "
            f"prompt: prometheus, mode: per_metric, thresholds: {thresholds}}}"
        )
        study = jb.run(write_bench(tmp_path, judge, "metrics: [empathy]\n"), tmp_path / "run")
    (prometheus,) = (judge for judge in study.judges if judge.name == "prometheus")
    labels = [prometheus.verdicts[f"i{n}"].labels["empathy"] for n in range(N_ANSWERS)]
    assert labels == ["Lack of empathy"] * 3 + ["Moderate empathy"] + ["High empathy"] * 2
