"""How much a command prints: one screen, everything, nothing but errors, or JSON alone."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from judgebench.rubric import load_rubric
from judgebench.text import percent

METRICS = ("scientific_consensus", "bias", "empathy")
JUDGES = {"as-good": 1.0, "worse": 0.5, "random-like": 0.2, "meta-llama-3-70b-instruct": 0.7}
ANSWERS = 300


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three metrics, three annotators and four judges of different skill."""
    folder, rng = tmp_path_factory.mktemp("screen"), random.Random(0)
    labels = {m.id: m.label_texts for m in load_rubric("medical-safety").only(METRICS).metrics}

    def said(truth: dict[str, str], skill: float) -> dict[str, str]:
        return {m: t if rng.random() < skill else rng.choice(labels[m]) for m, t in truth.items()}

    truths = [{m: rng.choice(texts) for m, texts in labels.items()} for _ in range(ANSWERS)]
    rows = [f"i{i},q{i},reply {i}." for i in range(ANSWERS)]
    (folder / "answers.csv").write_text("\n".join(["item_id,question,text", *rows]) + "\n")
    rows = [
        ",".join([f"i{i}", who, *(f'"{text}"' for text in said(truth, 0.95).values())])
        for who in ("ann", "bob", "cem")
        for i, truth in enumerate(truths)
    ]
    header = ",".join(["item_id", "annotator", *labels])
    (folder / "labels.csv").write_text("\n".join([header, *rows]) + "\n")
    for judge, skill in JUDGES.items():
        lines = [
            json.dumps({"pattern": f"reply {i}\\.", "text": json.dumps(said(truth, skill))})
            for i, truth in enumerate(truths)
        ]
        (folder / f"{judge}.jsonl").write_text("\n".join(lines) + "\n")
    judges = [{"name": j, "backend": f"scripted:{folder}/{j}.jsonl"} for j in JUDGES]
    value: dict[str, Any] = {
        "name": "screen", "rubric": "medical-safety", "metrics": METRICS, "judges": judges,
        "data": ["answers.csv", "labels.csv"], "truth": {"blind": True},
    }  # fmt: skip
    (folder / "bench.yaml").write_text(json.dumps(value))
    return folder / "bench.yaml"


@pytest.fixture
def run_folder(call, bench: Path) -> Path:  # type: ignore[no-untyped-def]
    folder = bench.parent / "run"
    if not (folder / "run.json").exists():
        assert call("run", bench, "--run", folder, "-q") == (0, "", "")
    return folder


@pytest.mark.parametrize("verb", ["run", "decide"])
def test_one_screen_has_the_outcomes_the_reasons_and_the_paths(
    call,  # type: ignore[no-untyped-def]
    bench: Path,
    run_folder: Path,
    verb: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = ("run", bench, "--run", run_folder) if verb == "run" else (verb, run_folder)
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = call(*asked)
    assert code == 0
    lines = out[out.index("\nscreen · ") if verb == "run" else 0 :].splitlines()
    assert len(lines) <= 66  # twelve outcomes with their reasons, and the next steps
    assert max(len(line) for line in lines if not line.startswith("Report:")) <= 100
    told = " ".join(out.split())
    assert "the median of ann, bob and cem; ties go to the more severe label." in told
    assert all(judge in told for judge in JUDGES)
    assert re.search(r"best baseline \d+ %", told)
    assert "REPLACE" in told
    assert re.search(r"DO NOT USE judge \d+ %", told)
    assert "agree with each other" in told
    assert "The annotators labelled without seeing a judge's labels (as declared)." in told
    page = f"Report: {run_folder / 'report' / 'report.html'}"
    assert (page if verb == "run" else "For a page with every item: judgebench report") in told
    assert "More with -v: all tables, the numbers behind each reason" in told
    assert "required ≥" not in told


def test_verbose_prints_every_table_number_and_caveat(call, run_folder: Path) -> None:  # type: ignore[no-untyped-def]
    _, everything, _ = call("align", run_folder, "-v")
    assert "required ≥" in everything
    assert "! There was no stress test" in everything
    assert "Agreement among the annotators" in everything
    assert len(everything.splitlines()) > 100


def test_the_screen_shows_the_numbers_of_the_alignment(call, run_folder: Path) -> None:  # type: ignore[no-untyped-def]
    found = json.loads(call("align", run_folder, "--json")[1])
    scores = {
        (row["judge"], row["metric"]): row["value"]
        for row in found["alignment"]
        if (row["analysis"], row["statistic"], row.get("failures"))
        == ("score", "accuracy", "left_out")
    }
    ceilings = {
        row["metric"]: row["value"]
        for row in found["alignment"]
        if (row["analysis"], row["statistic"], row.get("who")) == ("ceiling", "accuracy", "all")
    }
    for decision in found["decisions"]:
        judge, metric = decision["judge"], decision["metric"]
        assert decision["accuracy"]["value"] == scores[judge, metric]
        assert decision["human_ceiling"]["value"] == ceilings[metric]
        controls = [v for (j, m), v in scores.items() if m == metric and j not in JUDGES]
        assert decision["best_control"]["value"] == max(controls)
    screen = " ".join(call("decide", run_folder, "-v")[1].split())
    for decision in found["decisions"]:
        shown = (percent(decision["shares"][who]) for who in ("judge", "humans", "best_baseline"))
        assert "judge {} humans {} best baseline {}".format(*shown) in screen
        next_step = decision["next"].partition("worst misses")[0]
        assert f"Next: {next_step[:1].lower()}{next_step[1:]}".rstrip() in screen


@pytest.mark.parametrize("verb", ["align", "decide"])
def test_json_is_alone_on_stdout_and_says_why_a_number_is_undefined(
    call,  # type: ignore[no-untyped-def]
    bench: Path,
    run_folder: Path,
    verb: str,
) -> None:
    asked = ("run", bench, "--run", run_folder) if verb == "run" else (verb, run_folder)
    code, out, _ = call(*asked, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["name"] == "screen"
    assert len(found["decisions"]) == len(METRICS) * len(JUDGES)
    assert {d["outcome"] for d in found["decisions"]} >= {"REPLACE", "DO NOT USE"}
    assert all(d["reason"] for d in found["decisions"])
    assert found["notes"]
    assert found["bars"]
    conditions = [c for d in found["decisions"] for c in d["conditions"]]
    assert {c["state"] for c in conditions} >= {"met", "not met"}
    assert {"key", "title", "bound", "value", "low", "high", "n", "required_for"} <= {
        key for c in conditions for key in c
    }
    assert all(c["reason"] for c in conditions if c["value"] is None)


def test_a_demand_that_is_not_reached_is_an_exit_code_and_stands_in_the_json(
    call,  # type: ignore[no-untyped-def]
    run_folder: Path,
) -> None:
    demand = ("--require", "REPLACE:bias:worse")
    assert call("decide", run_folder, *demand, "-q") == (3, "", "")
    code, out, _ = call("decide", run_folder, *demand, "--json")
    assert code == 3
    assert json.loads(out)["not_reached"] == ["REPLACE:bias:worse"]


def test_quiet_prints_errors_alone(call, run_folder: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert (run_folder / "report" / "report.html").is_file()  # by a quiet run
    code, out, err = call("decide", tmp_path, "-q")
    assert (code, out) == (2, "")
    assert "run.json" in err


def test_only_one_way_of_printing_can_be_asked_for(call, run_folder: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, err = call("decide", run_folder, "--json", "-v")
    assert (code, out) == (2, "")
    assert "choose one of --verbose, --quiet and --json" in err


@pytest.mark.parametrize(("annotators", "shown"), [(3, False), (41, True)])
def test_progress_of_many_annotators_is_on_standard_error(
    call, tmp_path: Path, annotators: int, shown: bool
) -> None:  # type: ignore[no-untyped-def]
    labels, verdicts = tmp_path / "labels.csv", tmp_path / "gpt.csv"
    given = [
        (i, a, "Kind" if (i + a) % 3 else "Rude") for i in range(12) for a in range(annotators)
    ]
    cells = "".join(f"i{i},ann-{a},{label}\n" for i, a, label in given)
    labels.write_text(f"item_id,annotator,tone\n{cells}")
    verdicts.write_text("item_id,tone\n" + "".join(f"i{i},Kind\n" for i in range(12)))
    code, out, err = call("align", str(labels), str(verdicts))
    assert code == 0
    assert ("judges on metrics: " in err) is shown
    assert "to do" not in out
