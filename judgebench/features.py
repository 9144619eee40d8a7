"""The features, and what judgebench must know of each before it is used.

What a feature adds is in the module `feature` of its package, which is imported when it is needed:
`PARTS`, a `runs.features.FeatureParts`. To take a feature out, delete its package, its module in
`cli/`, its tests, and the lines here, in `judgebench/__init__.py` and in `cli/app.py` that name it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class FileKind:
    """A kind of file that `judgebench check` reads, and the keys that only this kind has.

    YAML files have one of the keys, the first line of other files has all of them.
    """

    name: str
    keys: tuple[str, ...] = ()
    suffix: str = ".yaml"


@dataclass(frozen=True)
class Feature:
    """What a feature declares. All but name and package may be left out."""

    name: str
    package: str  # the folder of `judgebench/`
    section: str = ""  # its key of bench.yaml
    lists_judges: bool = False  # under that key
    judge_keys: tuple[str, ...] = ()  # an entry of `judges` with one of them is read by the feature
    other_command: str = ""  # what to call in place of `judgebench run` where the key is there
    run_files: tuple[str, ...] = ()  # a run folder with one of them holds what the feature measures
    run_keys: tuple[str, ...] = ()  # so does a run.json with one of these keys
    keeps_section: bool = False  # or with its section among the settings
    judge_facts: tuple[str, ...] = ()  # or with one of them in what a judge says of itself
    measures_every_study: bool = False
    needs: tuple[str, ...] = ()  # the features whose findings it measures with
    files: tuple[FileKind, ...] = ()
    lists: tuple[str, ...] = ()  # headings of `judgebench list`
    table: str = ""  # the table of labels in a folder that the feature made

    @cached_property
    def parts(self) -> Any:
        """Return the functions of the feature, a `runs.features.FeatureParts`."""
        return import_module(f"judgebench.{self.package}.feature").PARTS

    @property
    def reads_runs(self) -> bool:
        """True where it measures what a run folder holds."""
        return bool(self.run_files or self.run_keys or self.judge_facts or self.keeps_section)


_DECLARED: Sequence[Feature] = (
    Feature(
        "annotate", "annotation", table="served/study.sqlite",
        files=(FileKind("annotation study", ("annotators", "per_item")),),
    ),
    Feature("certificate", "certificate", section="alone", keeps_section=True),
    Feature(
        "decide", "decisions", measures_every_study=True, needs=("stress",),
        files=(FileKind("decision rule", ("replace", "assist", "severe_from")),),
    ),
    Feature("estimate", "rates", measures_every_study=True),
    Feature("preferences", "preferences", measures_every_study=True),
    Feature(
        "ranking", "ranking", section="proxy", run_files=("proxy/ranking.json",), lists=("tasks",),
        other_command="ranks arguments: call `judgebench rank run`",
        files=(FileKind("task", ("prompt",)),),
    ),
    Feature(
        "scorers", "scorers", section="scorers", lists_judges=True, judge_keys=("scorer",),
        judge_facts=("scorer", "cuts"), lists=("scorers",),
    ),
    Feature(
        "stress", "stress_tests", section="stress", run_keys=("stress",), lists=("attacks",),
        files=(
            FileKind("recipe", ("edit",)),
            FileKind("word list", ("facts",)),
            FileKind("synonyms", ("pairs",)),
            FileKind("set", ("parent", "text"), suffix=".jsonl"),
        ),
    ),
    Feature(
        "tuning", "tuning", section="tuning", judge_keys=("learn", "tuned"),
        judge_facts=("learn",),
    ),
)  # fmt: skip
FEATURES = {feature.name: feature for feature in _DECLARED}
"""Every feature by its name, in the order in which they are shown."""
