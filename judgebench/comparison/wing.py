"""The compare wing: is one run, or one judge, better or worse than another on the same items?"""

from __future__ import annotations

from judgebench.features import Named
from judgebench.runs.wing import Wing

WING = Wing(name="compare", commands=Named("judgebench.cli.compare:commands"))
