"""The preferences wing: do judges order the responses to one question as people do?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from judgebench.runs.wing import Wing

if TYPE_CHECKING:
    from judgebench.results.shown import Shown
    from judgebench.studies.study import Study


def _measure(study: Study, found: Mapping[str, Shown]) -> Shown | None:
    from judgebench.preferences.measure import measure_preferences

    return measure_preferences(study, every=bool(study.beside.get(WING.name)))


WING = Wing(name="preferences", measure=_measure)
