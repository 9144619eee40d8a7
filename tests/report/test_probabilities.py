from __future__ import annotations

import csv
import io
from functools import cache, partial

import numpy as np
import pytest
from aligned import align

from judgebench.align import Alignment
from judgebench.records import Answer, HumanLabel, Status, Verdict
from judgebench.report.csv_file import to_csv
from judgebench.report.figure import draw_figures
from judgebench.report.old.html import to_html
from judgebench.report.old.markdown import to_markdown
from judgebench.report.plots import draw_all
from judgebench.report.probabilities import (
    draw_reliability,
    probability_tables,
    reliability_figures,
)
from judgebench.report.tables import all_tables
from judgebench.rubric import Rubric, load_rubric
from judgebench.stats.resample import Resampling
from judgebench.study.study import JudgeVerdicts


def simulated(rubric: Rubric, n: int, judges: dict[str, float], seed: int = 0) -> Alignment:
    """Annotators draw from a distribution that every judge knows, and tells too boldly."""
    rng = np.random.default_rng(seed)
    items = [Answer(f"i{i}", f"text {i}", f"question {i}") for i in range(n)]
    true = {m.id: rng.dirichlet(3.0 ** -np.arange(len(m.labels)), n) for m in rubric.metrics}
    labels = [
        HumanLabel(item.item_id, who, m.id, m.label_texts[rng.choice(len(m.labels), p=row)])
        for m in rubric.metrics
        for item, row in zip(items, true[m.id], strict=True)
        for who in ("ann", "bob", "cy")
    ]

    def judge(name: str, boldness: float) -> JudgeVerdicts:
        verdicts = {}
        for i, item in enumerate(items):
            given, said = {}, {}
            for m in rubric.metrics:
                p = np.maximum(true[m.id][i], 1e-6) ** boldness
                options = (*m.label_texts, *([m.abstain] if m.abstain else []))
                weights = [*(p / p.sum()).tolist(), 0.0]
                given[m.id] = dict(zip(options, weights, strict=False))
                said[m.id] = m.label_texts[int(p.argmax())]
            verdicts[item.item_id] = Verdict(
                item.item_id, item.content_hash, name, "s", Status.OK, said, given
            )
        return JudgeVerdicts(name, "judge", "s", verdicts)

    found = [judge(name, boldness) for name, boldness in judges.items()]
    return align("p", rubric, items, labels, found, resampling=Resampling(200))


@cache
def weighing() -> Alignment:
    judges = {"bold": 3.0, "honest <b>": 1.0}
    return simulated(load_rubric("medical-safety").only(["bias", "empathy"]), 150, judges)


def test_every_score_stands_in_a_table_and_in_the_csv() -> None:
    found = weighing()
    shown = [c.estimate for t in probability_tables(found) for r in t.rows for c in r if c.estimate]
    for score in found.probability_scores:
        assert score.estimate in shown, score
    rows = list(csv.DictReader(io.StringIO(to_csv(found))))
    by_table = {name: [r for r in rows if r["table"] == name] for name in
                ("probability", "calibration", "temperature")}  # fmt: skip
    assert len(by_table["probability"]) == len(found.probability_scores)
    assert len(by_table["calibration"]) == 2 * sum(len(c.bins) for c in found.calibration_curves)
    assert len(by_table["temperature"]) == 7 * len(found.temperatures)
    for row in [r for table in by_table.values() for r in table]:
        assert row["value"] or row["reason"]
        assert row["n"]


def test_tables_are_whole_and_their_keys_are_unique() -> None:
    tables = all_tables(weighing())
    keys = [table.key for table in tables]
    assert len(keys) == len(set(keys))
    for table in probability_tables(weighing()):
        assert table.key in keys
        for row in table.rows:
            assert len(row) == len(table.columns)
    assert any("honest" in table.title for table in tables if table.key == "calibration-2")


def test_the_page_and_markdown_have_the_section_only_where_there_are_probabilities(
    realistic: Alignment,
) -> None:
    assert probability_tables(realistic) == []
    assert reliability_figures(realistic) == {}
    assert 'id="probabilities"' not in to_html(realistic)
    page = to_html(weighing())
    assert 'id="probabilities"' in page
    assert 'href="#probabilities"' in page
    assert "honest <b>" not in page
    assert "Label probabilities against the human truth" in to_markdown(weighing())


def test_a_judge_with_probabilities_has_a_reliability_diagram() -> None:
    assert reliability_figures(weighing()) == {
        "reliability_1": "bold",
        "reliability_2": "honest <b>",
    }
    few = simulated(load_rubric("medical-safety").only(["bias"]), 50, {"m": 1.0})
    drawn = dict(draw_all(few))
    assert drawn["reliability_1.png"].startswith(b"\x89PNG")
    assert drawn["reliability_1.pdf"].startswith(b"%PDF")


@pytest.mark.parametrize("n", [1, 3])
def test_a_handful_of_answers_is_no_error(n: int) -> None:
    found = simulated(load_rubric("medical-safety").only(["bias"]), n, {"m": 1.0})
    for table in probability_tables(found):
        for row in table.rows:
            for cell in row:
                assert "nan" not in cell.value + cell.interval
    with_style = dict(draw_figures({"r": partial(draw_reliability, found, "m")}))
    assert with_style["r.png"].startswith(b"\x89PNG")
