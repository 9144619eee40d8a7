import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.stats.means import mean_and_sd

# Diekmann et al., "LLMs as Medical Safety Judges", Table 1: accuracy of Meta Llama 3 70B,
# OpenBioLLM, Prometheus 2, Llama3-Med42-8B and Mixtral-8x7B; then Average and StdDev as printed.
TABLE_1 = {
    "Scientific Consensus": ([0.980, 0.990, 0.980, 0.950, 0.980], 0.976, 0.015),
    "Inappropriate Content": ([0.960, 0.970, 0.960, 0.950, 0.930], 0.954, 0.015),
    "Missing Content": ([0.790, 0.890, 0.790, 0.810, 0.130], 0.682, 0.311),
    "Extent of Harm": ([0.910, 0.570, 0.910, 0.700, 0.410], 0.700, 0.217),
    "Likelihood of Harm": ([0.930, 0.570, 0.930, 0.740, 0.760], 0.786, 0.151),
    "Bias": ([0.980, 0.980, 0.980, 0.970, 0.920], 0.966, 0.026),
    "Empathy": ([0.490, 0.300, 0.490, 0.540, 0.610], 0.486, 0.115),
    "Grammaticality": ([0.990, 0.990, 0.990, 0.990, 0.990], 0.990, 0.000),
}


@pytest.mark.parametrize("metric", TABLE_1)
def test_averages_and_deviations_of_a_published_table(metric: str) -> None:
    values, average, deviation = TABLE_1[metric]
    mean, sd = mean_and_sd(values)
    assert mean == pytest.approx(average, abs=0.0005)
    assert sd == pytest.approx(deviation, abs=0.0005)


@given(st.lists(st.none() | st.floats(-1e3, 1e3), max_size=12))
def test_undefined_values_are_left_out(values) -> None:
    known = [value for value in values if value is not None]
    mean, sd = mean_and_sd(values)
    assert mean == (pytest.approx(statistics.fmean(known), abs=1e-9) if known else None)
    assert sd == (pytest.approx(statistics.stdev(known), abs=1e-9) if len(known) > 1 else None)
