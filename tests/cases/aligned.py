"""Alignments in one call, from parts or from a run folder."""

from collections.abc import Sequence
from dataclasses import replace

from judgebench.alignment import Alignment
from judgebench.alignment import align as align_study
from judgebench.records import Answer, HumanLabel
from judgebench.rubric import Rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.open import open_folder
from judgebench.stats.intervals import LEVEL
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import JudgeVerdicts, study_of


def align(
    name: str,
    rubric: Rubric,
    answers: Sequence[Answer],
    labels: Sequence[HumanLabel],
    judges: Sequence[JudgeVerdicts],
    truth: TruthConfig = TruthConfig(),
    level: float = LEVEL,
    notes: Sequence[str] = (),
) -> Alignment:
    study = study_of(rubric, answers, labels, truth, level)
    return align_study(replace(study, name=name, judges=tuple(judges), notes=tuple(notes)))


def align_run(
    folder: RunFolder,
    truth: TruthConfig = TruthConfig(),
    level: float = LEVEL,
) -> Alignment:
    return align_study(open_folder(folder, truth, level))
