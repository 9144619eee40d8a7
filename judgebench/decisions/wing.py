"""The decide wing: may a judge replace annotators, assist them, or neither?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from judgebench.runs.wing import FileKind, Wing

if TYPE_CHECKING:
    import typer

    from judgebench.results.shown import Shown
    from judgebench.studies.study import Study


def _measure(study: Study, found: Mapping[str, Shown]) -> Shown | None:
    """By the rule that stands beside the study, or the shipped one. None without human labels:
    then there is nothing to decide on, and a report is silent."""
    from judgebench.decisions.rule import rule_for
    from judgebench.decisions.run import decide

    if not study.n_labels:
        return None
    rule = rule_for(study.beside.get("decide"), study.rubric)
    return decide(study, rule, found["stress"].results if "stress" in found else None)


def _commands(app: typer.Typer) -> None:
    from judgebench.decisions import commands

    epilog = "Example: judgebench decide runs/demo --require REPLACE:scientific_consensus"
    app.command(epilog=epilog)(commands.decide)


def _check_rule(path: Path, rubric: str) -> str:
    from judgebench.decisions.rule import load_rule

    rule = load_rule(path)
    margin, bar = rule.replace.humans.margin, rule.replace.humans.bar
    who = f"the {bar} annotator"
    return f"a decision rule: within {margin:g} of {who}, intervals of {rule.level:.0%}"


WING = Wing(
    name="decide",
    measure=_measure,
    needs=("stress",),
    commands=_commands,
    kinds=(FileKind("decision rule", _check_rule, keys=("replace", "assist", "severe_from")),),
)
