"""A study in which systems answered several times, and whose answers were written anew."""

import csv
import json
from pathlib import Path

import pytest
from study_case import RUBRIC

import judgebench as jb
from judgebench.features import FEATURES
from judgebench.records import Results
from judgebench.runs.features import analyses

# Answers that are written anew are those of a stress test.
pytestmark = pytest.mark.skipif("stress" not in FEATURES, reason="needs the feature `stress`")
SYSTEMS, QUESTIONS, RUNS = ("ann-net", "bob-net"), 12, 3
FULL, SPARE = {"omission": "None", "hallucination": "None"}, {"omission": "Most"}


def write_runs(folder: Path) -> Path:
    """Three answers of two systems to twelve questions; those of bob-net are longer. The judge
    minds every second answer of ann-net, and versions that say `briefly`."""
    rows = [["item_id", "question", "system", "text"]]
    altered = []
    for q in range(QUESTIONS):
        for s, system in enumerate(SYSTEMS):
            for r in range(RUNS):
                words = ["word"] * (q + 10 * s + (r if s else 0) + 3)
                text = f"{system} answers {q}. " + " ".join(words) + (" odd" * (r % 2) * (1 - s))
                item = f"q{q}-{s}-{r}"
                rows.append([item, f"What is {q}?", system, text])
                if r == 0:
                    for version in range(3):  # the last changes a number, and is left out
                        altered.append(
                            {
                                "item_id": f"{item}~{version}", "parent_id": item, "parent": text,
                                "question": f"What is {q}?", "system": system,
                                "text": f"Briefly: {text}" + ["", " and more", " 99 mg"][version],
                                "must_not_change": True, "recipe": "rephrase",
                                "generator": "m:1a2b",
                            }
                        )  # fmt: skip
    with (folder / "answers.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    (folder / "set.jsonl").write_text("".join(json.dumps(x) + "\n" for x in altered))
    script = [
        {"pattern": "Briefly|odd", "text": {**FULL, **SPARE}},
        {"text": FULL},
    ]
    (folder / "replies.jsonl").write_text("".join(json.dumps(x) + "\n" for x in script))
    (folder / "notes.yaml").write_text(RUBRIC)
    bench = folder / "bench.yaml"
    bench.write_text(
        "name: notes\nrubric: notes.yaml\ndata: answers.csv\n"
        "scorers: [length]\ncontrols: false\n"
        f"judges: [{{name: m, backend: 'scripted:{folder}/replies.jsonl'}}]\n"
        f"stress: {{attacks: [{folder}/set.jsonl, bullets]}}\n"
    )
    return bench


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("steady")
    bench = jb.load_bench(write_runs(folder), stress=True)
    study = jb.run(bench, folder / "run")
    return analyses(study, "scorers")["scorers"]


def find(found: Results, statistic: str, runs: str, judge: str, metric: str = "") -> float | None:
    return found.find(statistic, "repeated", runs=runs, judge=judge, metric=metric).value


def test_scorers_and_judges_are_measured_on_both_kinds_of_runs(shown) -> None:
    rows = shown.results
    assert rows.values("runs", "repeated") == ["answers", "rephrase", "bullets"]
    assert [find(rows, key, "answers", "") for key in ("units", "most")] == [24, 3]
    assert [find(rows, key, "rephrase", "") for key in ("units", "most")] == [24, 3]
    # Of each question 0, 1 and 0 odd words more, or 0, 1 and 2 words.
    within = (QUESTIONS * (2 / 3) + QUESTIONS * 2) / (2 * 24)
    assert find(rows, "within_sd", "answers", "length") == pytest.approx(within**0.5)
    # The judge minds one of three answers of ann-net: severities 0, 3 and 0.
    assert find(rows, "within_sd", "answers", "m", "omission") == pytest.approx((6 / 4) ** 0.5)
    assert find(rows, "within_sd", "answers", "m", "hallucination") == 0
    # Each version but the answer itself has the severity 3.
    assert find(rows, "within_sd", "rephrase", "m", "omission") == pytest.approx(3**0.5)
    assert find(rows, "icc", "rephrase", "m", "omission") == pytest.approx(-0.5)
    assert find(rows, "icc", "rephrase", "length") > 0.8


def test_the_report_says_so(shown) -> None:
    said = {block.heading: " ".join(block.text) for block in shown.part.blocks}
    again = said["Is one answer enough?"]
    assert "24 pairs of system and question with up to 3 answers each." in again
    robust = said["Robust to rephrase?"]
    assert "24 answers with up to 2 versions each." in robust
    assert "noise" not in robust  # every question shows the same, so that there is no interval
