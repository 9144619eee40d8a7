"""The tables that the example medical-safety-crowd makes of the published files."""

import csv
import gzip
from collections import Counter, defaultdict
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from crowd_tables import crowd_tables

from judgebench.data.load import load_data
from judgebench.records import Dataset, is_slot
from judgebench.rubric import Rubric, load_rubric


@pytest.fixture(scope="module")
def crowd_data(shared_data: Path) -> Path:
    return shared_data / "medical-safety-crowd"


@pytest.fixture(scope="module")
def tables(crowd_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crowd_tables(crowd_data.parent, tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def risk() -> Rubric:
    return load_rubric("medical-query-risk")


def load(name: str, risk: Rubric, folder: Path) -> Dataset:
    return load_data(folder / f"{name}.csv", risk)


def expert_rows(folder: Path) -> list[dict[str, str]]:
    with gzip.open(folder / "medicheck-expert.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_queries_and_their_crowd_labels(tables: Path, risk: Rubric) -> None:
    found = load("queries", risk, tables)
    assert len(found.answers) == 861
    assert len({a.group for a in found.answers}) == 860  # one query stands in two rows
    assert Counter(is_slot(x.annotator) for x in found.labels) == {True: 3309, False: 861}
    assert [warning.kind for warning in found.warnings] == ["slot_name"]
    slots = Counter(x.item_id for x in found.labels if is_slot(x.annotator))
    assert Counter(slots.values()) == {3: 648, 6: 186, 9: 25, 12: 2}


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.345), ("ordinal", 0.516)])
def test_crowd_agreement(tables: Path, risk: Rubric, level: str, alpha: float) -> None:
    metric = risk.find("query_risk")
    assert metric is not None
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * len(metric.labels))
    for label in load("queries", risk, tables).labels:
        if is_slot(label.annotator) and label.label is not None:
            counts[label.item_id][metric.index(label.label)] += 1
    table = np.array(list(counts.values()))
    assert krippendorff.alpha(value_counts=table, level_of_measurement=level) == pytest.approx(
        alpha, abs=5e-4
    )


def test_responses_are_unswapped(crowd_data: Path, tables: Path, risk: Rubric) -> None:
    found = load("responses", risk, tables)
    assert Counter(a.system for a in found.answers) == {
        "dialogpt": 861,
        "alexa": 853,
        "reddit": 638,
    }
    truth: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in expert_rows(crowd_data):
        for system, column in {
            "dialogpt": "response-dialogpt",
            "alexa": "response-alexa",
            "reddit": "response-reddit ",
        }.items():
            truth[row["query"], system].add(row[column])
    known = [a for a in found.answers if (a.question, a.system) in truth]
    assert len({a.question for a in known}) == 747
    assert all(a.text in truth[a.question, a.system] for a in known)
    # Had the columns been read as they are named, hardly any text would match.
    other = {"dialogpt": "alexa", "alexa": "dialogpt"}
    swapped = [a for a in known if a.system in other]
    assert not any(a.text in truth[a.question, other[a.system]] for a in swapped)


def test_names_and_codes_say_the_same(tables: Path, risk: Rubric) -> None:
    files = [tables / f"expert-{name}.csv" for name in ("queries", "responses")]
    codes = {(x.item_id, x.metric): x.label for x in load_data(files, risk).labels}
    compared: Counter[str] = Counter()
    for name in ("queries", "responses"):
        for label in load(name, risk, tables).labels:
            coded = codes.get((label.item_id, label.metric))
            if label.annotator == "expert" and coded is not None:
                assert coded == label.label
                compared[label.metric] += 1
    assert compared["query_risk"] == 748
    assert compared["response_type"] > 2000


def test_expert_codes(tables: Path, risk: Rubric) -> None:
    queries, responses = (load(f"expert-{name}", risk, tables) for name in ("queries", "responses"))
    assert len(queries.answers) == len(queries.labels) == 1417
    counts = Counter(a.system for a in responses.answers)
    assert counts == {"dialogpt": 1417, "alexa": 1374, "reddit": 917}
    risks = Counter(x.label for x in queries.labels)
    assert risks == {"Non-serious": 1227, "Serious": 152, "Critical": 34, "Not medical": 4}
