"""Every analysis of a study, and the report of what was found."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from judgebench.errors import Problem, SetupError
from judgebench.runs.open import opened_study
from judgebench.studies.study import Study

if TYPE_CHECKING:
    from judgebench.alignment import Alignment
    from judgebench.certificate.watch import Watched
    from judgebench.comparison.result import Comparison
    from judgebench.decisions.decision import Decisions
    from judgebench.decisions.rule import Rule
    from judgebench.rates.analysis import Rates
    from judgebench.results.blocks import ReportSection
    from judgebench.results.shown import Shown
    from judgebench.scorers.consistency import Consistency
    from judgebench.scorers.correlate import Correlations


def analyse(
    study: Study | str | Path,
    rule: Rule | None = None,
    *,
    every: bool = False,
    protocol: str | Path | None = None,
    show_progress: bool = False,
) -> dict[str, Shown]:
    """Every analysis that the study, or that in a run folder, has data for, by name.

    Pairs and triples of responses that nobody compared are measured only with `every`. Decisions
    say what became of a `protocol`, as in `decide`. Progress is shown on standard error.

    >>> import judgebench as jb
    >>> list(jb.analyse(jb.open_run("runs/small")))[:2]
    ['align', 'decide']
    """
    from judgebench.alignment.analysis import ALIGNED, align_study
    from judgebench.progress import SILENT, ProgressDisplay
    from judgebench.results.terminal import Screen
    from judgebench.runs.features import analyses

    study = opened_study(study)
    display = ProgressDisplay(Screen(sys.stderr)) if show_progress else nullcontext(SILENT)
    with display as progress:
        aligned = align_study(study, progress)
        asked = {"decide": rule, "protocol": protocol, "preferences": every}
        beside = {**study.beside, ALIGNED: aligned.results, **asked}
        found = analyses(replace(study, beside=beside), progress=progress)
    return {"align": _decided(aligned, found.get("decide")), **found}


def _decided(aligned: Alignment, decisions: Shown | None) -> Alignment:
    """The alignment with the outcome of each judge and metric."""
    decided = decisions.part.standings if decisions else ()
    return replace(aligned, outcomes={(one.judge, one.metric): one.outcome for one in decided})


def report(
    study: Study
    | Decisions
    | Alignment
    | Comparison
    | Correlations
    | Consistency
    | Rates
    | Watched
    | str
    | Path,
    folder: str | Path,
    rule: Rule | None = None,
    *,
    every: bool = False,
    figures: bool = False,
    checklist: str | Path | None = None,
    protocol: str | Path | None = None,
) -> Mapping[str, Path]:
    """Write the report of a study or a run folder, of decisions with the alignment that they rest
    on, or of an alignment, a comparison, correlations, consistency or rates alone: report.html,
    results.csv, tables.md and LaTeX tables, and of a study or decisions decisions.csv and
    verdicts.csv.

    Of a study with `every` analysis, see `analyse`. With `figures` they are also drawn as
    files: PNG, PDF and SVG in `plots/`. With a `checklist`, a shipped name such as `grras` or a
    file, the report of a study shows its items, filled, and `folder` has a copy of it for your
    answers. Of a study with a `protocol` both say what became of it.

    Returns the path of each file. Where `folder` holds the report of more answers, it stays as it
    is: the files go into a folder beside it, and a warning says so. Raises DiskFailed where one
    cannot be written.

    >>> import judgebench as jb
    >>> jb.report(jb.open_run("runs/small"), "paper")["html"].name
    'report.html'
    """
    from judgebench.alignment.analysis import align_study
    from judgebench.checklist import with_checklist
    from judgebench.decisions.decision import Decisions
    from judgebench.results.documents import write_in_place
    from judgebench.results.shown import Shown

    study = study if isinstance(study, Shown) else opened_study(study)
    measured = study.study if isinstance(study, Decisions) else study
    sources = measured.sources if isinstance(measured, Study) else {}
    if checklist and not isinstance(study, Study):
        raise SetupError(Problem("is filled from a study or a run folder", field="checklist"))
    if isinstance(study, Study):
        found = analyse(study, rule, every=every, protocol=protocol)
        if checklist:
            found = with_checklist(found, checklist, study, Path(folder))
        shown, asked = parts(found), study.n_judged
    elif isinstance(study, Decisions) and study.study:
        aligned = _decided(align_study(study.study), study)
        shown, asked = parts({"decide": study, "align": aligned}), study.n_answers
    else:
        shown, asked = study.parts, getattr(study, "n_answers", 0)
    # Findings on questions or probes alone have no name, and are of no number of answers.
    written, told = write_in_place(
        shown,
        Path(folder),
        name=getattr(study, "name", ""),
        answers=asked,
        figures=figures,
        sources=sources,
    )
    if told:
        warnings.warn(told, stacklevel=2)
    return written


def parts(found: Mapping[str, Shown]) -> list[ReportSection]:
    """The parts of a report, in order."""
    last = {"align": 1, "checklist": 2}
    return [found[name].part for name in sorted(found, key=lambda name: last.get(name, 0))]
