"""The figures of triage, drawn from curves as `decide` makes them."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from align_case import answers, labels, metric, rubric, verdicts

from judgebench.decisions.figures import triage_drawings
from judgebench.decisions.result import Decisions
from judgebench.decisions.rule import DecisionRule
from judgebench.decisions.triage import triage_curves
from judgebench.results.figure import drawn
from judgebench.studies.study import study_of
from judgebench.studies.truth import TruthConfig

RULE = DecisionRule(assist={"sent": 0.4, "missed": 0.2})
HOSTILE = "=m/../<b>$x_1$ & 50 %\n中"


def decisions(*names: str, metrics=None) -> Decisions:
    """Judges that see 8 of 10 labels, on two ordinal metrics; nothing is severe on the second."""
    metrics = metrics or (metric(), metric(id="care", title=f"Care {HOSTILE}"))
    rng = np.random.default_rng(0)
    truth = {m.id: "aab" * 40 if m.id == "care" else "abc" * 40 for m in metrics}
    items = answers(120)
    judges = []
    for name in names:
        rows = {
            m: "".join(x if rng.random() < 0.8 else "b" for x in row) for m, row in truth.items()
        }
        judges.append(verdicts(name, rows, items))
    said = [label for m, row in truth.items() for label in labels({"ann": row}, m)]
    study = study_of(rubric(*metrics), items, said, TruthConfig())
    curves = tuple(triage_curves(replace(study, judges=tuple(judges)), RULE))
    return Decisions("case", rubric(*metrics), RULE, (), curves)


def figures(decisions: Decisions):
    return {drawing.key: drawing.draw for drawing in triage_drawings(decisions)}


def test_one_figure_for_each_judge_and_signal_with_a_plain_name() -> None:
    assert set(figures(decisions("first", "second"))) == {
        "triage_1_first_severity", "triage_2_second_severity",
    }  # fmt: skip
    empty = Decisions("case", rubric(), RULE, ())
    assert figures(empty) == {}
    assert (len(empty), list(empty), bool(empty)) == (0, [], True)
    (name,) = figures(decisions(HOSTILE))
    assert not set(name) & set("/\\<>|'\" $&=\n")


def test_the_line_is_the_curve_and_the_corner_is_the_rule() -> None:
    found = decisions("m", metrics=(metric(),))
    (curve,) = found.curves
    (draw,) = figures(found).values()
    (axes,) = draw().axes
    (line,) = [x for x in axes.lines if x.get_drawstyle() == "steps-post"]
    expected = [(p.sent.value, p.caught.value) for p in curve.points]
    assert list(zip(*line.get_data(), strict=True)) == expected
    (chance,) = [x for x in axes.lines if x.get_label() == "sent at random"]
    assert [list(x) for x in chance.get_data()] == [[0, 1], [0, 1]]
    (corner,) = axes.patches
    assert corner.get_bbox().bounds == pytest.approx((0, 0.8, 0.4, 0.2))
    here = (curve.choice.sent.value, 1 - curve.choice.missed.value)
    assert here in expected  # on the curve
    assert here in marked(axes, "D")
    new = (curve.choice.expected_sent.value, 1 - curve.choice.expected_missed.value)
    assert new in marked(axes, "o")


def marked(axes, marker: str) -> list[tuple[float, ...]]:
    return [tuple(np.ravel(x.get_data())) for x in axes.lines if x.get_marker() == marker]


def test_where_nothing_is_recommended_the_reason_is_written() -> None:
    (draw,) = figures(decisions("m")).values()
    written = [text.get_text() for axes in draw().axes for text in axes.texts]
    assert [" ".join(text.split()) for text in written] == [
        "no item is severe: what would be missed is unknown"
    ]


def test_figures_are_drawn_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        (saved,) = drawn(triage_drawings(decisions(HOSTILE))).values()
    assert saved.keys() == {"svg", "png", "pdf"}
