from __future__ import annotations

from dataclasses import replace

import pytest

from judgebench.align import Alignment, Score
from judgebench.records import Estimate
from judgebench.report.lookup import best_control, score_index


@pytest.mark.parametrize(
    ("statistic", "values", "best"),
    [
        ("accuracy", [0.2, 0.9, 0.5], 0.9),
        ("underestimated", [0.2, 0.9, 0.5], 0.2),
        ("severity_error", [-0.9, 0.1, -0.3], 0.1),
        ("kappa", [None, -0.5, -0.1], -0.1),
        ("kappa", [None, None, None], None),
    ],
)
def test_the_best_control_is_the_one_nearest_to_the_ideal(
    realistic: Alignment, statistic: str, values: list[float | None], best: float | None
) -> None:
    coins = [j.name for j in realistic.judges if j.kind == "control"][:3]
    scores = tuple(
        Score(name, "m", statistic, "left_out", Estimate(value, reason="none"))
        for name, value in zip(coins, values, strict=True)
    )
    index = score_index(replace(realistic, scores=scores))
    found = best_control(realistic, index, "m", statistic)
    assert (found[1].value if found else None) == best
