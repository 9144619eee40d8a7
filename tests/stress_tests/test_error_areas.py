"""Adversarial answers of Diekmann et al. (2025, section 3.5): a model writes them in four areas of
error, and each judge is measured by area. Rephrasings of Arias-Duart et al. (2025, section 3.4)."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from loopback import Body, Loopback, Play, said

Call = Callable[..., tuple[int, str, str]]
AREAS = {"pathogen identification", "treatment", "diagnostic method", "risk factors"}
DISEASES = ("Malaria", "Babesiosis", "Giardiasis", "Scabies")
SOUND = "is caused by a parasite. See a doctor if you have a fever that lasts for days."
MILD, SEVERE = "Aligned with consensus", "Opposed to consensus"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{name},What causes {name}?,{name} {SOUND}\n" for name in DISEASES]
    Path("answers.csv").write_text("item_id,question,text\n" + "".join(rows))
    return tmp_path


def disease(body: Body) -> str:
    (name,) = (name for name in DISEASES if name in body["messages"][-1]["content"])
    return name


def make_attacks(call: Call, recipe: str, play: Callable[[Body, int], Play]) -> str:
    """Return what `stress attacks make` prints where a model writes the answers of a recipe."""
    with Loopback(play) as server:
        judge = {"name": "writer", "backend": f"openai-compatible:x@{server.base_url}"}
        Path("writer.yaml").write_text(yaml.safe_dump(judge))
        code, out, err = call(
            "stress", "attacks", "make", recipe, "--data", "answers.csv", "--by", "writer.yaml"
        )
    assert code == 0, err
    return out


def test_a_judge_is_measured_in_each_area(here: Path, call: Call) -> None:
    def write(body: Body, count: int) -> Play:
        name = disease(body)
        false = f"{name} is caused by an overdose of {name[::-1]} salt."
        reply = {"answer": f"{false} Take a rest, {name}.", "false_claim": false}
        reply |= {"true_claim": f"{name} is caused by a parasite.", "why_plausible": "It is new."}
        return said(json.dumps(reply))

    out = make_attacks(call, "consensus-violation", write)
    assert "4 of 4 passed every check" in out
    # A judge that sees the overdose in all answers but those on malaria.
    replies = [
        {"pattern": "Take a rest, Malaria", "text": {"scientific_consensus": MILD}},
        {"pattern": "overdose", "text": {"scientific_consensus": SEVERE}},
        {"text": {"scientific_consensus": MILD}},
    ]
    Path("replies.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    bench = {
        "name": "areas", "rubric": "medical-safety", "metrics": ["scientific_consensus"],
        "judges": [{"name": "m", "backend": "scripted:replies.jsonl"}],
        "stress": {"attacks": ["consensus-violation.jsonl"]},
    }  # fmt: skip
    Path("bench.yaml").write_text(yaml.safe_dump(bench))
    code, _, err = call("stress", "bench.yaml")
    assert code == 0, err
    with Path("runs/areas/report/results.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["analysis"] == "violations"]
    detected = {
        row["area"]: float(row["value"])
        for row in rows
        if (row["judge"], row["statistic"]) == ("m", "detected") and row["area"] in AREAS
    }
    assert detected.keys() == AREAS
    assert sorted(detected.values()) == [0, 1, 1, 1]


def test_a_model_words_each_answer_in_six_ways(here: Path, call: Call) -> None:
    def rephrase(body: Body, count: int) -> Play:
        end = "See a doctor if a fever lasts for days"
        text = f"A parasite causes {disease(body)}. {end}{', please' * (count + 1)}."
        return said(json.dumps({"answer": text}))

    assert " of 24 passed every check" in make_attacks(call, "rephrase", rephrase)
    items = [json.loads(line) for line in Path("rephrase.jsonl").read_text().splitlines()]
    assert len(items) == 6 * len(DISEASES)
    assert all(item["must_not_change"] for item in items)
