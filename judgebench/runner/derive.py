"""What follows from the judges' verdicts without asking for any answer again: juries, calibrations.

Their files are made anew each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from judgebench.judges import derived
from judgebench.judges.config import CalibrationConfig, JuryConfig
from judgebench.judges.derived import Judged
from judgebench.records import Verdict, content_hash
from judgebench.runner.bench import Bench
from judgebench.runner.judging import Work
from judgebench.store.folder import RunFolder
from judgebench.store.latest_verdicts import FiledVerdicts
from judgebench.store.verdict_file import VerdictWriter
from judgebench.study.answers import IndexedAnswers, indexed

Entries = dict[str, Any]  # what the manifest says of each judge, by name


def derive(bench: Bench, answers: IndexedAnswers, work: Work, manifest: dict[str, Any]) -> None:
    """Write the verdicts of juries and calibrations, and add both to the manifest."""
    entries: Entries = manifest["judges"]
    for jury in bench.juries:
        members = {name: entries[name]["signature"] for name in jury.jury}
        entries[jury.name] = _entry("jury", derived.jury_about(jury, bench.rubric, members))
        _write(work.folder, jury.name, _jury(jury, bench, answers, work.folder, entries))
    for calibration in bench.calibrations:
        free = _content_free(bench, calibration, work.folder)
        signature = entries[calibration.calibrate]["signature"]
        basis = free.answers if free else answers.all
        about = derived.calibration_about(calibration, bench.rubric, signature, basis)
        entries[calibration.name] = _entry("calibration", about)
        judged = _judged(answers, work.folder, calibration.calibrate, signature)
        signed = entries[calibration.name]["signature"]
        found = derived.calibrated_verdicts(calibration, bench.rubric, judged, free, signed)
        _write(work.folder, calibration.name, found)


def _entry(kind: str, about: Mapping[str, object]) -> dict[str, Any]:
    return {"kind": kind, "signature": content_hash(about), "about": about}


def _write(folder: RunFolder, name: str, verdicts: Iterable[Verdict]) -> None:
    path = folder.verdict_path(name)
    path.unlink(missing_ok=True)
    with VerdictWriter(path) as writer:
        for verdict in verdicts:
            writer.write(verdict)


def _jury(
    jury: JuryConfig, bench: Bench, answers: IndexedAnswers, folder: RunFolder, entries: Entries
) -> Iterator[Verdict]:
    metrics = bench.rubric.metrics
    members = []
    for name in jury.jury:
        files, member = folder.verdict_files(name), entries[name]["signature"]
        found = FiledVerdicts(files, member, answers, metrics)
        members.append({m.id: found.label_indices(m, answers) for m in metrics})
    signature = entries[jury.name]["signature"]
    return derived.jury_verdicts(jury, bench.rubric, answers.all, members, signature)


def _content_free(bench: Bench, calibration: CalibrationConfig, folder: RunFolder) -> Judged | None:
    """What the judge made of texts that say nothing, where the method asks for it."""
    if calibration.method != "content-free":
        return None
    (free,) = (f for f in bench.content_free if f.of == calibration.calibrate)
    return _judged(indexed(free.answers), folder, free.judge.name, free.judge.signature)


def _judged(answers: IndexedAnswers, folder: RunFolder, name: str, signature: str) -> Judged:
    ours = (v for v in folder.verdicts(name) if v.signature == signature)
    rows = ((answers.row_of(v.item_id, v.content_hash), v) for v in ours)
    return Judged(answers.all, (found for found in rows if found[0] >= 0))
