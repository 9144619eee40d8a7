"""Read labels, verdicts and answers as they are given, from files or from memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judgebench.data.findings import Findings
from judgebench.data.gather import Collected, Said, VerdictSource
from judgebench.data.load import is_yaml, read_into
from judgebench.data.pairs import KnownPairs, known_pairs
from judgebench.data.spec import DataSpec
from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, Blindness, HumanLabel
from judgebench.rubric import Rubric
from judgebench.yaml_file import load_model

# What is usual where tables are not written for judgebench, and changes nothing.
_USUAL = ("blank_label", "blank_question", "duplicate_item")

WHOLE_REPLY = ""  # in place of a metric


def has_verdicts(source: Any) -> bool:
    """Whether it is a data.yaml with entries of verdicts; False where it cannot be read."""
    if not isinstance(source, str | Path) or not is_yaml(Path(source)):
        return False
    try:
        spec = load_model(Path(source), DataSpec)
    except SetupError:
        return False
    return any(file.verdicts or any(i.verdicts for i in file.items) for file in spec.files)


@dataclass(frozen=True)
class GivenData:
    """What was given. `verdicts` has one entry per source. Without answers, `answers` have ids and
    groups alone."""

    answers: Sequence[Answer]
    labels: Sequence[HumanLabel]
    verdicts: Sequence[GivenVerdicts]
    has_texts: bool
    blind: Blindness
    warnings: Sequence[Problem]


def read_given(
    labels: Any, verdicts: Sequence[VerdictSource], answers: Any, rubric: Rubric
) -> GivenData:
    """Read labels, verdicts and answers, which may be None.

    Raises SetupError with every problem of all of them.
    """
    gathered = Collected(rubric, rubric, Findings())
    gathered.without_texts = answers is None
    gathered.keeps_empty = True  # no model reads them
    gathered.people_only = True
    if answers is not None:
        read_into(gathered, answers, "answers")
    read_into(gathered, labels, "labels")
    if gathered.without_texts:  # unless the labels bring their texts along
        gathered.without_texts = not gathered.n_answers or bool(gathered.textless)
    gathered.settle()
    people, findings = list(gathered.human_labels()), gathered.findings
    found = gathered.answers()
    known = known_pairs(found, rubric)
    said = [_read_verdicts(source, rubric, findings, known) for source in verdicts]
    if not findings.errors:
        _check_given(people, said, findings)
    if findings.errors:
        raise SetupError(findings.errors)
    if gathered.without_texts:  # every item that has a label or a verdict
        by_id = {answer.item_id: answer for answer in found}
        named = {item_id: row for item_id, (row, _) in gathered.said.items()}
        named |= {item_id: row for one in said for item_id, row in one.named.items()}
        for item_id in (*(x.item_id for x in people), *(i for one in said for i in one.items)):
            by_id.setdefault(item_id, named.get(item_id, Answer(item_id, "")))
        found = list(by_id.values())
    warnings = [w for w in findings.warnings if w.kind not in _USUAL]
    texts = not gathered.without_texts
    return GivenData(found, people, said, texts, gathered.blindness, warnings)


def _check_given(
    labels: Sequence[HumanLabel], verdicts: Sequence[GivenVerdicts], findings: Findings
) -> None:
    """Labels and verdicts that can be compared; what prevents it is reported."""
    labelled = {label.item_id for label in labels if label.label is not None}
    if not labelled:
        findings.add("no_rows", "holds no human label", ("labels", None))
    for one in verdicts if labelled else ():
        if labelled.isdisjoint(one.items):
            message = "no item of the verdicts has a human label"
            some = next(iter(one.items), "")
            allowed = f"item ids of the labels, such as {min(labelled)!r}"
            findings.add("unknown_item", message, (one.file, None), "item_id", some, allowed)


@dataclass(frozen=True)
class GivenVerdicts:
    """The verdicts of a source, by judge and item, and what was noticed in reading them.
    `file` names the first of its files, `named` holds the pairs and criteria that are named there,
    without texts."""

    judges: Mapping[str, Mapping[str, Sequence[tuple[str, Said]]]]
    file: str
    named: Mapping[str, Answer] = field(default_factory=dict)
    warnings: Sequence[Problem] = ()

    @property
    def metrics(self) -> set[str]:
        """The metrics that any judge labelled, WHOLE_REPLY among them where replies were read."""
        return {m for rows in self.judges.values() for said in rows.values() for m, _ in said}

    @property
    def items(self) -> dict[str, None]:
        """Every item of any judge, in the order in which they were read."""
        return dict.fromkeys(item for of_judge in self.judges.values() for item in of_judge)


def read_verdicts(
    source: VerdictSource, rubric: Rubric, answers: Iterable[Answer]
) -> GivenVerdicts:
    """The verdicts of a source on the metrics of a rubric. Raises SetupError with every problem.

    Those on pairs, which a table names by question and responses, are on the pairs among `answers`
    that have these responses.
    """
    findings = Findings()
    found = _read_verdicts(source, rubric, findings, known_pairs(answers, rubric))
    if findings.errors:
        raise SetupError(findings.errors)
    return replace(found, warnings=findings.warnings)


def _read_verdicts(
    source: VerdictSource, rubric: Rubric, findings: Findings, pairs: KnownPairs
) -> GivenVerdicts:
    gathered = Collected(rubric, rubric, findings, source)
    gathered.known_pairs = pairs
    for file in source.files:
        read_into(gathered, file, "verdicts")
    file = str(source.files[0]) if isinstance(source.files[0], str | Path) else "verdicts"
    judges: dict[str, dict[str, list[tuple[str, Said]]]] = {}
    for key, said in gathered.verdicts.items():
        of_item = judges.setdefault(key.annotator, {}).setdefault(key.item_id, [])
        of_item.append((key.metric, said))
    if source.columns and not judges and not findings.errors:
        message = "no file of the data has this column"
        for column in source.columns.values():
            findings.add("missing_column", message, (file, None), "column", column)
    if source.judge and not findings.errors:
        judges = _only(source.judge, judges, file, findings)
    named = {item_id: row for item_id, (row, _) in gathered.named.items()}
    return GivenVerdicts(judges, file, named)


def _only(name: str, judges: dict[str, Any], file: str, findings: Findings) -> dict[str, Any]:
    """The verdicts of that judge: by its name, or whoever is the only one there."""
    if name not in judges and len(judges) > 1:
        message = "no verdict of this judge"
        findings.add("unknown_judge", message, (file, None), "judge", name, ", ".join(judges))
    found = judges.get(name) or next(iter(judges.values()), None)
    if found is None and not findings.errors:
        findings.add("no_rows", "holds no verdict", (file, None))
    return {name: found or {}}
