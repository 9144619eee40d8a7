"""A run finds its folder damaged: what can be made anew is, the rest is asked for again, and all of
it is said."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from judgebench.errors import SetupError
from judgebench.files import disk_errors
from judgebench.judges.judge import Judge
from judgebench.progress import Progress
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.latest_verdicts import FiledVerdicts, LinesByFile
from judgebench.runs.verdict_file import check_lines, set_aside
from judgebench.studies.answers import IndexedAnswers


class Noted(NamedTuple):
    """What is known of a run's files: the names of those that are as it left them, and whether it
    was killed, so that nothing is known of the others."""

    sound: Collection[str]
    killed: bool


def note_damage(bench: Bench, folder: RunFolder, progress: Progress) -> Noted:
    """Say what is damaged, which stays in the manifest, and note that the run goes on."""
    try:
        found = folder.damage()
    except SetupError as error:
        found = list(error.problems)
        (folder.path / "run.json").unlink()
    before = folder.reopen()
    asked = {f"verdicts-{judge.name}.jsonl" for judge in _asked(bench)}
    changed = dict[str, str]()
    for problem in found:
        path = folder.path / problem.file.removeprefix(f"{folder.path}/")
        does, did = "it is made anew", "It was made anew."
        if path.name in asked:
            does, did = "what it lacks is asked for again", "What it lacked was asked for again."
            if path.is_file() and path.stat().st_size:
                did = "The verdicts in it count as they stood."
        progress.say(f"{problem}; {does}")
        changed[path.name] = (
            f"{path.name} was not as the run had left it ({problem.message}). {did}"
        )
    folder.note_changes(changed)
    if "run.json" in changed:  # what it says of the others cannot be trusted
        return Noted(set(), killed=False)
    return Noted(before.get("files", {}).keys() - changed, before.get("state") == "running")


def set_lines_aside(
    bench: Bench,
    answers: IndexedAnswers,
    folder: RunFolder,
    progress: Progress,
    noted: Noted,
) -> None:
    """Take damaged lines out of the files of the judges that are asked, and remove those of control
    judges, which are soon made anew; unless the file is known to be sound. What was found stays in
    the manifest. Only for who holds the folder alone."""
    for control in bench.controls:
        path = folder.verdict_path(control.name)
        if path.name not in noted.sound:
            with disk_errors(path):
                path.unlink(missing_ok=True)
    for judge in _asked(bench):
        lines: LinesByFile = {}
        files = [path for path in folder.verdict_files(judge.name) if path.name not in noted.sound]
        if noted.killed:  # nothing says what the file held; its lines do, and quickly
            checked = {path: check_lines(path) for path in files}
            lines = {path: found.damaged for path, found in checked.items() if found.damaged}
            for path, found in checked.items():
                _note_unsigned(path, found.unsigned, folder, progress)
        else:
            FiledVerdicts(files, judge.signature, answers, bench.rubric.metrics, lines)
        for path, numbers in lines.items():
            take_out(path, numbers, folder, progress)


def take_out(path: Path, numbers: Collection[int], folder: RunFolder, progress: Progress) -> None:
    """Move the damaged lines of these numbers from a file of verdicts into `FILE.damaged`, say so
    and note it in the manifest. Raises DiskFailed."""
    set_aside(path, numbers)
    n = f"{len(numbers):,} damaged {'line is' if len(numbers) == 1 else 'lines are'}"
    said = f"{path.name}: {n} now in {path.name}.damaged; what it judged is asked again"
    progress.say(said)
    folder.note_changes({path.name: f"{said}."}, beside=True)


def _note_unsigned(path: Path, n: int, folder: RunFolder, progress: Progress) -> None:
    if n:
        lines = f"{n:,} {'line' if n == 1 else 'lines'}"
        said = (
            f"{path.name}: {lines} of an older version hold no digest; damage does not show there"
        )
        progress.say(said)
        folder.note_changes({path.name: f"{said}."}, beside=True)


def _asked(bench: Bench) -> Iterator[Judge]:
    yield from (*bench.judges, *bench.others, *bench.learnt)
    yield from (variant.judge for variant in bench.variants)
    yield from (free.judge for free in bench.content_free)
