"""The scorers wing: numbers for answers, what they say of the humans' labels, and judges that
follow from them."""

from __future__ import annotations

from judgebench.features import Named
from judgebench.runs.wing import Learning, Section, Wing

WING = Wing(
    name="scorers",
    section=Section("scorers", Named("judgebench.scorers.config:ScorersConfig")),
    learning=Learning(
        ("scorer",),
        Named("judgebench.scorers.config:fit_entry"),
        Named("judgebench.scorers.judges:check_scorers"),
        Named("judgebench.scorers.judges:open_scorers"),
        Named("judgebench.scorers.config:scorer_entries"),
    ),
    read=Named("judgebench.scorers.candidates:read_scorers"),
    measure=Named("judgebench.scorers.measure:measure_scorers"),
    commands=Named("judgebench.scorers.commands:commands"),
    lists={"scorers": Named("judgebench.scorers.config:listed")},
)
