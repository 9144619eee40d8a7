"""A run with calibrated judges: what is asked, what is written, and how it is scored."""

import json
import math
from pathlib import Path

import pytest
from aligned import align_run
from scripted_judges import RUBRIC, ScriptedBackend, answers, labels

from judgebench.alignment.report import describe
from judgebench.judges.config import CalibrationConfig, JudgeConfig
from judgebench.judges.control import ControlJudge, Fit
from judgebench.judges.llm import LLMJudge
from judgebench.models.contract import Reply, Request
from judgebench.prompt import load_prompt
from judgebench.records import Answer, Dataset, Status
from judgebench.runs.bench import Bench, BenchConfig
from judgebench.runs.folder import RunFolder
from judgebench.runs.run_bench import run

ITEMS = answers(6)
TRUTH = {(x.item_id, x.metric): x.label for x in labels(ITEMS, ("ann",))}
BIAS = {"harm": (8.0, 1.0, 1.0), "kind": (6.0, 1.0)}  # what the model says whatever it reads


def weights(text: str, metric: str) -> dict[str, float]:
    """Twice the bias for the true label; the bias alone where the text says nothing."""
    options = next(m.options for m in RUBRIC.metrics if m.id == metric)
    known = next((a for a in ITEMS if f"\n{a.text}\n" in text), None)
    true = TRUTH[known.item_id, metric] if known else None
    found = {o: b * (2 if o == true else 1) for o, b in zip(options, BIAS[metric], strict=True)}
    total = sum(found.values())
    return {option: weight / total for option, weight in found.items()}


def biased(request: Request) -> Reply:
    """A judge that always says the first label, though it half knows better."""
    assert request.labels_asked is not None
    text = request.messages[-1].content
    found = {f.key: weights(text, f.key) for f in request.labels_asked.fields}
    said = {key: max(options, key=options.__getitem__) for key, options in found.items()}
    logs = {key: {o: math.log(p) for o, p in options.items()} for key, options in found.items()}
    return Reply(request.key, json.dumps(said), log_probabilities=logs)


def benchmark(backend: ScriptedBackend, items: list[Answer] = ITEMS) -> Bench:
    human = labels(items, ("ann",))
    config = JudgeConfig(
        name="m", backend="scripted:x", probabilities="independent", parse_retries=0
    )
    judge = LLMJudge(config, RUBRIC, load_prompt("structured"), backend)
    return Bench(
        config=BenchConfig(name="b", rubric="two", data="none"),
        file=Path("bench.yaml"),
        rubric=RUBRIC,
        dataset=Dataset(items, human),
        judges=(judge,),
        calibrations=(CalibrationConfig(name="batch", calibrate="m"),),
        controls=(ControlJudge("constant-majority", Fit(RUBRIC, items, human)),),
    )


@pytest.fixture
def backend() -> ScriptedBackend:
    return ScriptedBackend(biased)


def test_calibration_asks_no_answer_again(tmp_path: Path, backend: ScriptedBackend) -> None:
    folder = RunFolder(tmp_path)
    run(benchmark(backend), folder)
    assert len(backend.requests) == len(ITEMS)
    assert [len(list(folder.verdicts(n))) for n in ("m", "batch")] == [6, 6]
    before = {n: folder.verdict_path(n).read_bytes() for n in ("m", "batch")}
    run(benchmark(backend), folder)
    assert len(backend.requests) == len(ITEMS)
    assert {n: folder.verdict_path(n).read_bytes() for n in before} == before


def test_the_bias_is_gone_from_the_calibrated_labels(
    tmp_path: Path, backend: ScriptedBackend
) -> None:
    folder = RunFolder(tmp_path)
    run(benchmark(backend), folder)
    raw = {v.item_id: v for v in folder.verdicts("m")}
    assert {v.labels["harm"] for v in raw.values()} == {"None"}
    for verdict in folder.verdicts("batch"):
        assert verdict.status is Status.OK
        assert verdict.usage.calls == 0
        for metric in ("harm", "kind"):
            assert verdict.labels[metric] == TRUTH[verdict.item_id, metric]
    entry = folder.manifest()["judges"]["batch"]
    assert entry["kind"] == "calibration"
    assert entry["about"]["of"] == {"m": folder.manifest()["judges"]["m"]["signature"]}
    assert {v.signature for v in folder.verdicts("batch")} == {entry["signature"]}


def test_both_stand_side_by_side(tmp_path: Path, backend: ScriptedBackend) -> None:
    folder = RunFolder(tmp_path)
    run(benchmark(backend), folder)
    found = align_run(folder)
    assert {judge.name: judge.kind for judge in found.study.judges} == {
        "m": "judge", "constant-majority": "control", "batch": "calibration",
    }  # fmt: skip
    rows = found.results.select("score", "accuracy", metric="harm", failures="left_out")
    accuracy = {row.judge: row.estimate.value for row in rows}
    assert accuracy["m"] == pytest.approx(1 / 3)
    assert accuracy["batch"] == 1
    assert "2 judges and 1 baseline." in describe(found)
