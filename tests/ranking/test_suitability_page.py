from __future__ import annotations

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rank_case import ranks_of, world
from rich.console import Console

from judgebench.ranking.suitability import (
    Fitness,
    Suitability,
    TaskFitness,
    fitness_sentences,
    headline,
    suitability,
)
from judgebench.records import Estimate
from judgebench.results.markdown import to_markdown
from judgebench.results.rows import Results, Row
from judgebench.results.terminal import print_parts
from judgebench.stats.resample import Resampling


@pytest.fixture(scope="module")
def whole() -> Suitability:
    """Experts who agree on seven items of a task with a name that would be markup."""
    values = world(1, 8, noise=0.6)
    values[0, :, 1] = 0
    ranks = ranks_of(values, labels=["yes", "no"] * 4, task="claims|<b>")
    return replace(suitability(ranks, Resampling(resamples=200)), notes=("ben left 1 item",))


@pytest.fixture
def found(whole: Suitability) -> TaskFitness:
    return whole.tasks[0]


def printed(found: Suitability) -> str:
    out = StringIO()
    print_parts([found.part], Console(file=out, width=200))
    return out.getvalue()


def test_the_terminal_shows_verdict_reasons_and_numbers(whole: Suitability) -> None:
    text, (found,) = printed(whole), whole.tasks
    assert f"claims|<b>: {headline(found)}" in text
    assert all(sentence in text for sentence in fitness_sentences(found))
    for statistic in ("alpha", "p"):
        assert f"{found.rows.find(statistic, 'suitability').value:.3f}" in text
    assert "Agreement by label" in text
    assert "! ben left 1 item" in text
    assert "nan" not in text.lower()


def test_the_markdown_shows_the_same_escaped(whole: Suitability) -> None:
    text, (found,) = to_markdown([whole.part], ""), whole.tasks
    assert text.startswith("# is the task fit to rank arguments by?\n\n## Caveats\n\n- ben left")
    assert f"## claims\\|&lt;b&gt;: {headline(found)}" in text
    assert "<b>" not in text
    assert f"| {found.alpha.value:.3f} [" in text
    for row in found.rows.select("mean_rank"):
        assert f"| {row['system']} | {row.estimate.value:.2f} |" in text


def test_what_a_verdict_rests_on_is_told(found: TaskFitness) -> None:
    told = " ".join(fitness_sentences(found))
    assert "It rests on 7 items ranked by two experts or more, 1 not; experts: e0 and e1." in told
    assert "An interval from fewer than 20 items is too narrow" in told


def test_a_verdict_whose_interval_leaves_it_open_holds_for_now(found: TaskFitness) -> None:
    for fitness, firm, words in [
        (Fitness.SUITABLE, True, "suitable"),
        (Fitness.SUITABLE, False, "suitable, for now"),
        (Fitness.NOT_SUITABLE, False, "not suitable, for now"),
        (Fitness.CANT_TELL, False, "can't tell"),
    ]:
        assert headline(replace(found, fitness=fitness, is_firm=firm)) == words


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (None, "How many more items would clear the bar cannot be said"),
        (1, "With about 1 more item the interval would clear the bar"),
        (40, "With about 40 more items the interval would clear the bar"),
    ],
)
def test_how_many_more_items_it_takes_is_told(
    found: TaskFitness, more: int | None, words: str
) -> None:
    told = " ".join(fitness_sentences(replace(found, more_items=more)))
    assert words in told
    assert "simple projection" in told or more is None


def test_a_firm_verdict_asks_for_no_more_items(found: TaskFitness) -> None:
    rows = Results((Row("suitability", "alpha", Estimate(0.8, 0.7, 0.9, n=30)),))
    told = " ".join(fitness_sentences(replace(found, more_items=0, rows=rows)))
    assert "more item" not in told
    assert "too narrow" not in told


def test_labels_left_out_are_named(found: TaskFitness) -> None:
    assert "Left out: items of no and yes." in fitness_sentences(
        replace(found, left_out=("no", "yes"))
    )


def test_an_undefined_number_is_a_dash_with_its_reason() -> None:
    ties = suitability(ranks_of(np.full((6, 4, 2), 3)), Resampling(resamples=50))
    measures = ties.part.blocks[-1].tables[0].rows[0]
    assert [cell.value for cell in measures] == ["claims", "0.67", "–", "–", "–", "6"]
    text = printed(ties)
    assert "the systems tie on every item" in text
    assert "nan" not in text.lower()
