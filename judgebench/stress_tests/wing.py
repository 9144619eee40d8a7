"""The stress wing: does a judge see what was made worse, and stay where nothing was?"""

from __future__ import annotations

from judgebench.features import Named
from judgebench.runs.wing import FileKind, Section, Wing

_PROBES = "judgebench.stress_tests.probes"
WING = Wing(
    name="stress",
    section=Section(
        "stress",
        Named(f"{_PROBES}.attacks:StressSettings"),
        Named("judgebench.stress_tests.attacking:stress_in_words"),
    ),
    left=lambda folder: bool(folder.manifest().get("stress")),
    read=Named("judgebench.stress_tests.attacking:read_stress"),
    measure=Named("judgebench.stress_tests.measure:measure_stress"),
    commands=Named("judgebench.cli.stress:commands"),
    kinds=(
        FileKind("recipe", Named(f"{_PROBES}.altered:recipe_in_words"), keys=("edit",)),
        FileKind("word list", Named(f"{_PROBES}.text:words_in_words"), keys=("facts",)),
        FileKind("synonyms", Named(f"{_PROBES}.edits.wording:synonyms_in_words"), keys=("pairs",)),
        FileKind(
            "set", Named(f"{_PROBES}.attacks:set_in_words"), fits=Named(f"{_PROBES}.sets:is_set")
        ),
    ),
    lists={"attacks": Named(f"{_PROBES}.attacks:listed")},
)
