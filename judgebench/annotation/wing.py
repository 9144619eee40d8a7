"""The annotate wing: human labels, collected blind and balanced by a small web app."""

from __future__ import annotations

from judgebench.features import Named
from judgebench.runs.wing import FileKind, Section, Wing

WING = Wing(
    name="annotate",
    section=Section("annotate", Named("judgebench.annotation.config:AnnotateConfig")),
    commands=Named("judgebench.annotation.commands:commands"),
    tables={".sqlite": Named("judgebench.annotation.export:table_rows")},
    studies={"served/study.sqlite": Named("judgebench.annotation.export:rubric_of")},
    collections={"served/study.sqlite": Named("judgebench.annotation.export:collected_as")},
    kinds=(
        FileKind(
            "annotation study",
            Named("judgebench.annotation.init:study_in_words"),
            keys=("annotators", "per_item"),
        ),
    ),
)
