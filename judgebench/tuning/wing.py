"""The tuning wing: judges that learn from human labels, and what that is worth."""

from __future__ import annotations

from judgebench.features import Named
from judgebench.runs.wing import Learning, Section, Wing

WING = Wing(
    name="tuning",
    section=Section("tuning", Named("judgebench.tuning.config:TuningConfig")),
    read=Named("judgebench.tuning.reading:read_tuning"),
    measure=Named("judgebench.tuning.measure:measure_tuning"),
    learning=Learning(
        ("learn", "tuned"),
        Named("judgebench.tuning.tuned:learning_entry"),
        Named("judgebench.tuning.judges:check_judges"),
        Named("judgebench.tuning.judges:open_judges"),
    ),
    commands=Named("judgebench.tuning.commands:commands"),
)
