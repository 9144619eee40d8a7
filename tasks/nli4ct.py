"""NLI4CT: statements on clinical trials that the record of the trial entails or contradicts.

Jullien et al. (2023), "NLI4CT: Multi-Evidence Natural Language Inference for Clinical Trial
Reports", EMNLP; SemEval-2023 task 7. One JSON file per split, and the trials, one JSON object per
line. Only statements on a single trial are read.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from judgebench.data.tables import collect_table
from judgebench.errors import Problem, SetupError, shorten
from judgebench.files import open_bytes
from judgebench.ranking.task import SPLITS, Split, SplitSizes, TaskInstance

FILES, SEEDED_SPLIT = (*SPLITS, "trials"), False
LABELS = ("Entailment", "Contradiction")
SECTIONS = ("Intervention", "Eligibility", "Adverse Events", "Results")
_TRIAL = "Clinical Trial ID"
_JOIN = "\n"  # the lines of a section stand below each other


class _Item(BaseModel):
    """A statement as the file has it. Keys of no use here are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    Type: Literal["Single", "Comparison"]
    Section_id: Literal["Intervention", "Eligibility", "Adverse Events", "Results"]
    Primary_id: str
    Statement: str
    Label: Literal["Entailment", "Contradiction"]
    Primary_evidence_index: tuple[int, ...] = ()


_ITEMS = TypeAdapter(dict[str, _Item])
_Trials = Mapping[str, Mapping[str, tuple[str, ...]]]


def read(
    files: Mapping[str, Path], split: SplitSizes | None, seed: int
) -> tuple[list[TaskInstance], tuple[str, ...]]:
    """The statements of the files `train`, `development` and `test` on the trials of the file
    `trials`, and sentences for the report.

    The context is the section that a statement is about, the argument its lines of evidence, both
    line by line. Raises SetupError with every problem in the files.
    """
    problems: list[Problem] = []
    trials = _read_trials(files["trials"], problems)
    instances: list[TaskInstance] = []
    skipped = 0
    for part in SPLITS:
        for key, item in _read_items(files[part], problems).items():
            if item.Type != "Single":
                skipped += 1
            elif trials:
                found = _instance(key, item, trials, part)
                if isinstance(found, TaskInstance):
                    instances.append(found)
                else:
                    problems.append(replace(found, file=str(files[part])))
    if problems:
        raise SetupError(problems)
    return instances, (
        f"{skipped} statements that compare two trials are left out.",
        _shared_trials(instances),
    )


def _read_trials(path: Path, problems: list[Problem]) -> _Trials:
    """The sections of each trial, each a sequence of lines; empty where the file is faulty."""
    trials: dict[str, Mapping[str, tuple[str, ...]]] = {}
    before = len(problems)
    table = collect_table(path, (_TRIAL, *SECTIONS), problems)
    if table is None:
        return {}
    for place, name in enumerate(table.contents(_TRIAL)):
        at = (table.file, table.lines[place])
        if not name:
            problems.append(Problem("is blank", *at, _TRIAL))
        if name in trials:
            problems.append(Problem("duplicate id", *at, _TRIAL, shorten(name)))
        sections: dict[str, tuple[str, ...]] = {}
        for section in SECTIONS:
            lines = table.columns[section][place] or ()
            if not isinstance(lines, tuple):
                message = "must be a list of lines"
                problems.append(Problem(message, *at, section, shorten(lines)))
                lines = ()
            sections[section] = lines
        trials[name] = sections
    return trials if len(problems) == before else {}


def _read_items(path: Path, problems: list[Problem]) -> Mapping[str, _Item]:
    try:
        return _ITEMS.validate_json(_content(path))
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problems.append(Problem(f"cannot be read: {reason}", str(path)))
    except ValidationError as error:
        for item in error.errors():
            missing = item["type"] in ("missing", "json_invalid")
            found = "" if missing else shorten(str(item["input"]))
            field = ".".join(map(str, item["loc"]))
            problems.append(Problem(item["msg"], str(path), None, field, found))
    return {}


def _content(path: Path) -> bytes:
    with open_bytes(path) as file:
        content = file.read()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def _instance(key: str, item: _Item, trials: _Trials, split: Split) -> TaskInstance | Problem:
    """The instance, or what is wrong where the trial or its evidence is missing."""
    if item.Primary_id not in trials:
        message, field = "is no trial of the file", f"{key}.Primary_id"
        return Problem(message, field=field, found=item.Primary_id)
    lines = trials[item.Primary_id][item.Section_id]
    evidence = sorted(set(item.Primary_evidence_index))
    if not evidence or evidence[0] < 0 or evidence[-1] >= len(lines):
        return Problem(
            f"points to no lines of the section {item.Section_id}",
            field=f"{key}.Primary_evidence_index",
            found=str(evidence),
            allowed=f"one or more of 0 to {len(lines) - 1}",
        )
    return TaskInstance(
        key, item.Statement.strip(), item.Label, _joined([lines[i] for i in evidence]), split,
        context=_joined(lines), group=item.Primary_id,
    )  # fmt: skip


def _joined(lines: Sequence[str]) -> str:
    return _JOIN.join(" ".join(line.split()) for line in lines if line.strip())


def _shared_trials(instances: Sequence[TaskInstance]) -> str:
    """How many trials of the test split are trained on as well: a trap of these files."""
    of = {split: {i.group for i in instances if i.split == split} for split in SPLITS}
    shared = of["test"] & of["train"]
    n = sum(i.split == "test" and i.group in shared for i in instances)
    return (
        f"{len(shared)} of the {len(of['test'])} trials in the test split also occur in training "
        f"({n} of {sum(i.split == 'test' for i in instances)} test statements are about them)."
    )
