"""Verdicts with outcomes where teams look, each read back by what reads it there."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import judgebench as jb
from judgebench.decisions.decision import Decisions

Call = Callable[..., tuple[int, str, str]]
SETTINGS = {"order": "Harm: no < yes", "judge": "gpt-4"}


def tables(folder: Path, ids: list[str]) -> tuple[Path, Path]:
    """Two annotators who agree, and a judge that repeats them, without a label of the last item."""
    labels, verdicts = ["id,annotator,Harm,Tone"], ["id,Harm,Tone"]
    for place, item in enumerate(ids):
        cells = f"{'yes' if place % 2 else 'no'},{'curt' if place % 3 else 'mild'}"
        labels += [f"{item},{who},{cells}" for who in ("Ann", "Ben")]
        verdicts.append(f"{item},{cells if item != ids[-1] else ','}")
    paths = folder / "labels.csv", folder / "gpt-4.csv"
    for path, lines in zip(paths, (labels, verdicts), strict=True):
        path.write_text("\n".join(lines) + "\n")
    return paths


@pytest.fixture
def decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Decisions:
    monkeypatch.chdir(tmp_path)
    return jb.decide(*tables(tmp_path, [f"r{i}" for i in range(12)]), columns=SETTINGS)


def events(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and attributes of each event in a file of OTLP lines."""
    for line in Path(path).read_text().splitlines():
        (resource,) = json.loads(line)["resourceLogs"]
        (record,) = resource["scopeLogs"][0]["logRecords"]
        assert int(record["timeUnixNano"]) > 10**18
        values = ((x["key"], next(iter(x["value"].values()))) for x in record["attributes"])
        yield record["eventName"], dict(values)


def test_events_hold_label_score_and_outcome(decisions: Decisions) -> None:
    assert jb.export(decisions, "otel:events.jsonl") == 24
    names, attributes = zip(*events("events.jsonl"), strict=True)
    assert {*names} == {"gen_ai.evaluation.result"}
    harm, tone = attributes[1], attributes[12]
    assert harm == {
        "gen_ai.evaluation.name": "harm",
        "gen_ai.evaluation.score.label": "yes",
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.response.id": "r1",
        "judgebench.judge": "gpt-4",
        "judgebench.outcome": "CAN'T TELL",
    }
    assert "gen_ai.evaluation.score.value" not in tone  # its labels have no order


def test_a_verdict_that_failed_is_an_event_with_an_error(decisions: Decisions) -> None:
    jb.export(decisions, "otel:events.jsonl")
    failed = [a for _, a in events("events.jsonl") if a["gen_ai.response.id"] == "r11"]
    assert [a["error.type"] for a in failed] == ["failed", "failed"]
    assert not [a for a in failed if "gen_ai.evaluation.score.label" in a]


def test_inspect_reads_the_scores(decisions: Decisions) -> None:
    scorer = pytest.importorskip("inspect_ai.scorer")
    jb.export(decisions, "inspect:scores.jsonl")
    score = scorer.precomputed_scores("scores.jsonl", on_missing="error")

    def scored(item: str) -> Any:
        return asyncio.run(score(SimpleNamespace(sample_id=item, epoch=1), scorer.Target("")))

    assert scored("r1").value == {"gpt-4: harm": 1.0, "gpt-4: tone": "curt"}
    assert scored("r11").value == {"gpt-4: harm": None, "gpt-4: tone": None}
    assert scored("r1").metadata["gpt-4: harm"]["judgebench.outcome"] == "CAN'T TELL"


def test_scores_name_their_judge(tmp_path: Path) -> None:
    labels, verdicts = tables(tmp_path, ["a", "b", "c", "d"])
    (tmp_path / "old.csv").write_text(verdicts.read_text())
    decisions = jb.decide(labels, [verdicts, tmp_path / "old.csv"], columns={"order": "none"})
    jb.export(decisions, f"inspect:{tmp_path / 'scores.jsonl'}")
    record = json.loads((tmp_path / "scores.jsonl").read_text().splitlines()[0])
    assert record["id"] == "a"
    assert record["value"]["old: harm"] == record["value"]["gpt-4: harm"]


def test_mlflow_shows_assessments_of_its_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    mlflow = pytest.importorskip("mlflow")
    uri = (tmp_path / "mlruns").as_uri()
    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("chat")
    traces = []
    for _ in range(6):
        with mlflow.start_span("answer"):
            pass
        traces.append(mlflow.get_last_active_trace_id())
    decisions = jb.decide(*tables(tmp_path, traces), columns=SETTINGS)
    assert jb.export(decisions, f"mlflow:{uri}") == 12
    assessments = mlflow.get_trace(traces[1]).info.assessments
    harm, tone = sorted(assessments, key=lambda assessment: assessment.name)
    assert (harm.name, harm.value, tone.name) == ("harm", "yes", "tone")
    assert (harm.source.source_type, harm.source.source_id) == ("LLM_JUDGE", "gpt-4")
    assert harm.metadata["judgebench.outcome"] == "CAN'T TELL"
    failed = mlflow.get_trace(traces[-1]).info.assessments
    assert [one.error.error_code for one in failed] == ["failed", "failed"]
    others = jb.decide(*tables(tmp_path, ["tr-1", "tr-2", "tr-3"]), columns=SETTINGS)
    with pytest.raises(jb.SetupError, match=r"must be that of a trace.*found tr-1"):
        jb.export(others, f"mlflow:{uri}")


def test_without_mlflow_the_line_that_installs_it_is_named(
    decisions: Decisions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(jb.MissingExtra, match=r"mlflow-skinny.*\[mlflow\]"):
        jb.export(decisions, "mlflow:http://127.0.0.1:5000")


def test_the_command_line_writes_and_overwrites_nothing(call: Call, decisions: Decisions) -> None:
    command = ("decide", "labels.csv", "gpt-4.csv", "--to", "otel:events.jsonl")
    code, out, _ = call(*command)
    assert code == 0
    assert "Wrote 24 verdicts to otel:events.jsonl" in out
    code, _, err = call(*command)
    assert (code, "events.jsonl: exists and is not overwritten" in err) == (2, True)
    code, _, err = call("decide", "labels.csv", "gpt-4.csv", "--to", "csv:events.csv")
    assert (code, "allowed: mlflow:URI, otel:FILE, inspect:FILE" in err) == (2, True)
    assert "judgebench report --to" in err


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("csv:x", "is no place"),
        ("mlflow:x", "mlflow-skinny"),
        ("otel:labels.csv/x", "cannot be written"),
    ],
)
def test_nothing_is_written_unless_all_of_it_can_be(
    call: Call, decisions: Decisions, monkeypatch: pytest.MonkeyPatch, place: str, message: str
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    there = sorted(Path().iterdir())
    wanted = ("--certificate", "c.json", "--to", "otel:events.jsonl", "--to", place)
    code, out, err = call("decide", "labels.csv", "gpt-4.csv", *wanted)
    assert (code, out) in ((1, ""), (2, ""))
    assert message in err
    assert sorted(Path().iterdir()) == there
