"""The decide wing: may a judge replace annotators, assist them, or neither?"""

from __future__ import annotations

from judgebench.features import Named
from judgebench.runs.wing import FileKind, Wing

WING = Wing(
    name="decide",
    measure=Named("judgebench.decisions.run:measure_decisions"),
    needs=("stress",),
    commands=Named("judgebench.decisions.commands:commands"),
    kinds=(
        FileKind(
            "decision rule",
            Named("judgebench.decisions.words:rule_in_words"),
            keys=("replace", "assist", "severe_from"),
        ),
    ),
)
