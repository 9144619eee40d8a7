"""The tuning wing: judges that learn from human labels, and what that is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judgebench.features import Named
from judgebench.runs.wing import Learning, Section, Wing

if TYPE_CHECKING:
    from judgebench.runs.folder import RunFolder


def _learnt(folder: RunFolder) -> bool:
    judges = folder.manifest()["judges"].values()
    return any("learn" in (one.get("about") or {}) for one in judges)


WING = Wing(
    name="tuning",
    section=Section("tuning", Named("judgebench.tuning.config:TuningConfig")),
    left=_learnt,
    read=Named("judgebench.tuning.reading:read_tuning"),
    measure=Named("judgebench.tuning.measure:measure_tuning"),
    learning=Learning(
        ("learn", "tuned"),
        Named("judgebench.tuning.tuned:learning_entry"),
        Named("judgebench.tuning.judges:check_judges"),
        Named("judgebench.tuning.judges:open_judges"),
    ),
    commands=Named("judgebench.cli.tune:commands"),
)
