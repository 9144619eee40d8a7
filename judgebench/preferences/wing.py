"""The preferences wing: do judges order the responses to one question as people do?"""

from __future__ import annotations

from judgebench.features import Named
from judgebench.runs.wing import Wing

WING = Wing(
    name="preferences", measure=Named("judgebench.preferences.analysis:measure_preferences")
)
