"""Published agreement of real people and of GPT-4, through `align` itself.

Zheng et al. (2023), MT-bench, first turn: human against human 63 % of 721 pairs of votes and 81 %
of 479 without ties; GPT-4 against human 66 % of 1,343 votes and 85 % of 859 without ties.
Abercrombie and Rieser (2022): alpha of the crowd on 861 queries, recomputed from their labels.
"""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from align_case import agreed, ceiling, score
from aligned import align
from crowd_tables import crowd_tables
from mtbench import METRIC, first_turns

import judgebench as jb
from judgebench.alignment import Alignment
from judgebench.data.load import load_data
from judgebench.rubric import load_rubric
from judgebench.studies.reference_labels import TruthConfig

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", params=[True, False], ids=["ties", "no-ties"])
def mtbench(request: pytest.FixtureRequest, shared_data: Path) -> tuple[bool, Alignment]:
    """Experts and GPT-4 compared vote by vote; without ties, their ties are left out."""
    study = first_turns(shared_data / "mtbench-human", "each", ties=request.param)
    return request.param, jb.align(study)


def test_votes_agree_as_often_as_published(mtbench: tuple[bool, Alignment]) -> None:
    ties, found = mtbench
    experts = (721, 0.630) if ties else (479, 0.810)
    gpt4 = (1343, 0.660) if ties else (859, 0.846)
    observed = agreed(found, "observed", of=METRIC)
    assert f"{80 if ties else 77} clusters" in observed.method  # questions with such a pair
    for estimate, (n, share) in (
        (observed, experts),
        (ceiling(found, "accuracy", of=METRIC), experts),
        (score(found, "accuracy", "gpt-4", of=METRIC), gpt4),
    ):
        assert estimate.n == n
        assert estimate.value == pytest.approx(share, abs=0.0005)
        assert estimate.low < share < estimate.high


@pytest.mark.parametrize(("kind", "alpha"), [("nominal", 0.345), ("ordinal", 0.516)])
def test_alpha_of_the_crowd(shared_data: Path, tmp_path: Path, kind: str, alpha: float) -> None:
    severity = load_rubric("medical-query-risk").only(["query_risk"])
    dataset = load_data(crowd_tables(shared_data, tmp_path) / "queries.csv", severity)
    (asked,) = severity.metrics
    labels = tuple(label.model_copy(update={"severity": None}) for label in asked.labels)
    measured = asked.model_copy(update={"kind": kind, "labels": labels})
    found = align(
        "crowd", severity.model_copy(update={"metrics": (measured,)}), dataset.answers,
        dataset.labels, [], TruthConfig(annotators=("crowd#*",)),
    )  # fmt: skip
    estimate = agreed(found, "alpha", of="query_risk")
    assert estimate.value == pytest.approx(alpha, abs=0.0005)
    assert (estimate.n, estimate.n_missing) == (861, 0)
    assert len(found.study.makers) == 12
    expert = ceiling(found, "accuracy", "expert", of="query_risk")  # nominal ties are no truth
    assert (expert.n, expert.n_missing) == ((861, 0) if kind == "ordinal" else (803, 58))


# Diekmann et al., Table 4, and the labels of data/annotated_MedQuAD.csv, from which it was made:
# the counts of each label in the table's order, then those of blank cells.
TABLE_4 = {
    "scientific_consensus": ((95.3, 4.6, 0.1), (1003, 50, 1, 26)),
    "inappropriate_content": ((79.0, 18.6, 2.4), (827, 201, 26, 26)),
    "missing_content": ((85.9, 10.4, 3.7), (902, 112, 40, 26)),
    "extent_of_harm": ((99.2, 0.8, 0), (1045, 9, 0, 26)),
    "likelihood_of_harm": ((100.0, 0, 0), (1054, 0, 0, 26)),
    "bias": ((100.0, 0), (1054, 0, 26)),
    "empathy": ((96.4, 3.2, 0.4), (1015, 35, 4, 26)),
    "grammaticality": ((99.8, 0.2), (1050, 2, 28)),
}
OTHER_ORDER = {"scientific_consensus": (0, 2, 1), "empathy": (2, 1, 0)}  # than the rubric's


def test_table_4_follows_from_the_lines_that_the_rubric_gives(tmp_path: Path) -> None:
    safety = load_rubric("medical-safety")
    text = (REPO / "rubrics" / "medical-safety.yaml").read_text("utf-8")
    lines = text[text.index("#   spell") : text.index("# Read as missing")].splitlines()
    given = yaml.safe_load("\n".join(line[4:] for line in lines))
    columns, printed = {}, {}
    for asked in safety.metrics:
        shares, counts = TABLE_4[asked.id]
        order = OTHER_ORDER.get(asked.id, tuple(range(len(asked.labels))))
        texts = [*(asked.label_texts[place] for place in order), ""]
        columns[asked.id] = [t for t, n in zip(texts, counts, strict=True) for _ in range(n)]
        printed |= {(asked.id, t): p for t, p in zip(texts[:-1], shares, strict=True)}
    answers = [""] * 4 + [f"Answer {i}" for i in range(1076)]
    frame = pd.DataFrame({"item_id": range(1080), "text": answers, **columns})
    frame.to_csv(tmp_path / "table.csv", index=False)
    roles = {"item_id": "item", "text": "text", **{name: f"label {name}" for name in columns}}
    layout = {"tables": [{"file": "table.csv", "columns": roles}], **given}
    (tmp_path / "layout.yaml").write_text(yaml.safe_dump(layout))
    dataset = load_data(tmp_path / "layout.yaml", safety)
    found = align("t4", safety, dataset.answers, dataset.labels, [])
    cells = {
        (row.metric, row["human_label"]): round(100 * row.estimate.value / row.estimate.n, 1)
        for row in found.results.select("distribution", "count")
    }
    assert cells == printed
    assert len(cells) + 2 == 24  # Bias and Grammaticality have two labels
