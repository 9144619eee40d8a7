"""The comparative judge of AutoMedEval (section 2): it reads several responses, gives a reason and
a score for each, and is right on so many pairs and triples (section 4.3)."""

import json
import re
from itertools import permutations
from pathlib import Path

import pytest
from loopback import Body, Loopback, Play, is_few_words, said

import judgebench as jb

RUBRIC = """
metrics:
  - {id: quality, kind: ordinal, labels: ["5", "4", "3", "2", "1"]}
"""
SYSTEMS = ("doctor", "baize", "alpaca")
ORDERS = list(permutations((5, 3, 1)))  # the points of people on six questions


def compare(body: Body, count: int) -> Play:
    """Reads the points in each response; of the first question it mistakes 3 points for 1."""
    if is_few_words(body):
        return said("An example.")
    text = body["messages"][-1]["content"]
    points = re.findall(r"earned (\d) points", text)
    if "Question 0?" in text:
        points = ["1" if x == "3" else x for x in points]
    reply = {f"rationale_{n}": f"Worth {x}." for n, x in enumerate(points, 1)}
    reply |= {f"response_{n}": x for n, x in enumerate(points, 1)}
    return said(json.dumps(reply))


def test_pairs_triples_and_win_rates_follow_from_one_comparison(tmp_path: Path) -> None:
    (tmp_path / "quality.yaml").write_text(RUBRIC)
    answers, labels = ["item_id,question,system,text"], ["item_id,annotator,quality"]
    for n, points in enumerate(ORDERS):
        for system, x in zip(SYSTEMS, points, strict=True):
            answers.append(f"{n}-{system},Question {n}?,{system},It earned {x} points.")
            labels += [f"{n}-{system},dr-{who},{x}" for who in range(5)]
    (tmp_path / "answers.csv").write_text("\n".join(answers))
    (tmp_path / "labels.csv").write_text("\n".join(labels))
    bench = tmp_path / "bench.yaml"
    with Loopback(compare) as server:
        bench.write_text(
            "name: compare\nrubric: quality.yaml\ndata: [answers.csv, labels.csv]\njudges:\n"
            f"  - {{name: m, backend: 'openai-compatible:x@{server.base_url}', "
            "prompt: compare-steps, list: 3}\n"
        )
        study = jb.run(bench, tmp_path / "run")
        n_calls = sum(not is_few_words(body) for body in server.bodies)
    assert n_calls == len(ORDERS)
    (judge,) = (judge for judge in study.judges if judge.name == "m")
    assert "Worth 5." in judge.verdicts["1-doctor"].rationale
    find = jb.prefer(study).results.find
    pairs, triples = (
        find("right", "order", judge="m", size=size, failures="left_out") for size in "23"
    )
    assert (pairs.value, triples.value) == (pytest.approx(17 / 18), pytest.approx(5 / 6))
    people, judged = (
        find(side, "win_rate", judge=name, system="alpaca", against="baize")
        for side, name in (("humans", ""), ("judge", "m"))
    )
    assert (people.value, judged.value) == (pytest.approx(3 / 6), pytest.approx(3.5 / 6))
