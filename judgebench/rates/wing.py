"""The estimate wing: how often does each label occur, by system?"""

from __future__ import annotations

from judgebench.features import Named
from judgebench.runs.wing import Wing

WING = Wing(
    name="estimate",
    measure=Named("judgebench.rates.analysis:measure_rates"),
    commands=Named("judgebench.rates.commands:commands"),
)
