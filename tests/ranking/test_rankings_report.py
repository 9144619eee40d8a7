"""The rankings in Markdown, LaTeX and CSV."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from latex_case import compile_tables, needs_latex
from rank_scores import told
from ranking_case import (
    bare_rankings,
    hostile_rankings,
    paper_rankings,
    planted_rankings,
)

from judgebench.ranking.rankers import Rankings
from judgebench.ranking.report import NO_RANKINGS
from judgebench.records import Results
from judgebench.results.documents import part_csv, to_markdown

PLANTED = planted_rankings()
NOTHING = replace(bare_rankings(), rows=Results())


def markdown(rankings: Rankings = PLANTED) -> str:
    return to_markdown([rankings.part], rankings.name)


def test_where_nothing_was_ranked_one_sentence_says_so() -> None:
    assert NO_RANKINGS in markdown(NOTHING)


def test_a_ranking_of_which_nothing_is_claimed_is_a_ranking() -> None:
    one_training = replace(bare_rankings(), tasks=(replace(bare_rankings().tasks[0], systems=()),))
    assert NO_RANKINGS not in markdown(one_training)


@needs_latex
@pytest.mark.parametrize("made", [paper_rankings, planted_rankings, hostile_rankings])
def test_the_tables_compile_and_fit_the_page(made: object, tmp_path: Path) -> None:
    log = compile_tables([made().part], tmp_path)  # type: ignore[operator]
    assert "Float too large" not in log or made is hostile_rankings
    too_wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert made is hostile_rankings or max(too_wide, default=0) < 1  # its names cannot be broken


def read(rankings: Rankings = PLANTED) -> pd.DataFrame:
    text = part_csv(rankings.part)
    assert "nan" not in text
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])


def test_every_number_is_one_row() -> None:
    table = read()
    assert len(table) == len(PLANTED.rows.rows)
    rows = table.query("analysis == 'system'").set_index(["task", "ranker", "system", "statistic"])
    for r in told(PLANTED):
        for system, score in r.scores.items():
            at = rows.sort_index().loc[(r.ranking.task, r.ranking.ranker, system)]
            assert tuple(at.loc["score", ["value", "low", "high"]]) == (
                score.value, score.low, score.high,
            )  # fmt: skip
            assert at.loc["place", "value"] == r.places[system].value
            assert at.loc["average_rank", "value"] == r.average_ranks[system].value
    assert set(rows["system_kind"]) == {"gold", "model", "control"}
