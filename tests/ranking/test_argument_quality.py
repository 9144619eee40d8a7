"""The shipped rubric by which LLM judges rate arguments."""

from __future__ import annotations

import pytest

from judgebench.prompt import load_prompt
from judgebench.records import Answer
from judgebench.rubric import load_rubric

RUBRIC = load_rubric("argument-quality")

# What a control case of a ranking deserves: a place among the labels of each metric.
FITS = {
    "no-argument": ("Something else", "Nothing for this question", "Nothing sound", "Not helpful"),
    "label-only": ("On the question", "Bare claim", "Sound", "Not helpful"),
    "noise": ("Something else", "Nothing for this question", "Sound", "Not helpful"),
    "passages": ("Same subject only", "Background facts only", "Sound", "Slightly helpful"),
}


def test_every_metric_is_ordinal_with_four_or_five_labels_that_are_described() -> None:
    assert len(RUBRIC.metrics) == 4
    for metric in RUBRIC.metrics:
        assert metric.kind == "ordinal"
        assert metric.severities == tuple(range(len(metric.labels)))
        assert 4 <= len(metric.labels) <= 5
        assert all(label.description for label in metric.labels)


def test_it_says_that_no_clinician_has_reviewed_it() -> None:
    assert "synthetic, not clinically reviewed" in RUBRIC.source


def worth(labels: tuple[str, ...]) -> float:
    """1 for the best labels, 0 for the worst, as a ranking scores a judge."""
    shares = [
        1 - m.index(label) / (len(m.labels) - 1)
        for m, label in zip(RUBRIC.metrics, labels, strict=True)
    ]
    return sum(shares) / len(shares)


@pytest.mark.parametrize("case", FITS)
def test_a_control_case_that_gets_what_fits_it_stands_below_a_fair_argument(case: str) -> None:
    fair = ("On the question", "Some reasons", "Small flaws", "Helpful")
    assert worth(FITS[case]) < worth(fair)
    assert worth(FITS["no-argument"]) < worth(FITS["noise"]) < worth(FITS["passages"])


def test_an_empty_text_is_named_where_a_label_fits_it() -> None:
    for metric, label in zip(RUBRIC.metrics, FITS["no-argument"], strict=True):
        described = {found.text: found.description for found in metric.labels}
        assert "empty" in described[label]
        assert sum("empty" in text for text in described.values()) == 1


def test_a_small_models_prompt_stays_short() -> None:
    prompt = load_prompt("structured")
    system, user = prompt.render(RUBRIC, Answer("i", "It does.", "Does it?"))
    assert len((system + user).split()) < 700
