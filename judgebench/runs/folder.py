"""The run folder: everything a benchmark did, enough to resume it and to score it again offline.

    run.json              manifest: versions, seeds, settings, content hashes, judges, and what each
                          file holds; rewritten whole
    rubric.json           the rubric as used
    answers.jsonl         the answers as judged
    labels.jsonl          the human labels as read
    verdicts-NAME.jsonl   one line per verdict, append-only, one file per judge
    batches-NAME.json     batches that were submitted and not yet collected (`models.batch`)
    attacks.jsonl         answers judged beside the study, such as altered ones; answers.jsonl
                          holds them too
    knowledge/            vectors of the texts that judges look things up in

A line that a killed process left torn is dropped when the file is next opened, and told. Lines that
are damaged in another way are put into `FILE.damaged` when the run is resumed, and told.

run.json notes under `files` how many lines each has and the SHA-256 of its bytes, and under `seal`
the SHA-256 of itself. Files that a run under way writes to are not among them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from judgebench.data.conversation import answer_line, read_answers
from judgebench.errors import DamagedRun, Problem, RunLocked, SetupError
from judgebench.files import (
    disk_errors,
    read_errors,
    read_lines,
    read_object,
    to_json,
    to_line,
    validate,
    write_atomically,
)
from judgebench.records import Answer, HumanLabel, Verdict
from judgebench.rubric import Rubric
from judgebench.runs.verdict_log import FiledVerdicts, read_verdicts, verdict_line, verdict_path
from judgebench.studies.answers import IndexedAnswers

BESIDE = "attacks.jsonl"
_DATA = ("rubric.json", "answers.jsonl", "labels.jsonl", BESIDE)
_AGAIN = "run `judgebench run BENCH` (or `stress`, `rank run`) again in the same run folder"


class RunFolder:
    """A run on disk. Reading needs no lock; writing goes through `locked`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def existing(cls, path: Path) -> RunFolder:
        """A run to be read, whose files are those that the run wrote.

        Raises SetupError where `path` holds no run, or a link, and DamagedRun with every file that
        is not as the run left it.
        """
        check_links(path)
        if not (path / "run.json").is_file():
            why = "is not a run folder: it holds no run.json" if path.exists() else "no such folder"
            if (bench := path / "bench.yaml").is_file():
                why = f"is not a run folder: judge it first (judgebench run {bench})"
            raise SetupError(Problem(why, file=str(path)))
        folder = cls(path)
        if problems := folder.damage():
            raise DamagedRun([folder.repairable(problem) for problem in problems])
        return folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for writing.

        Raises RunLocked where another process holds it, DiskFailed where the folder cannot be
        written to, and SetupError where it holds a link.
        """
        import fcntl  # a run can be read where there is no such module

        check_links(self.path)
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("w")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunLocked(f"another process is writing to {self.path}; wait for it") from None
            yield

    def manifest(self) -> dict[str, Any]:
        """The manifest; empty before the first write."""
        path = self.path / "run.json"
        found = _read_object(path) if path.is_file() else {}
        found.pop("seal", None)
        return found

    def write_manifest(
        self, manifest: Mapping[str, Any], state: str = "", more: Iterable[str] = ()
    ) -> None:
        """Replace run.json. Raises DiskFailed.

        With a `state` it also notes what the files hold that numbers depend on and that no run
        writes to in that state: the data and, unless it is `running`, the verdicts and `more`.
        """
        path = self.path / "run.json"
        with disk_errors(path):
            if state:
                ended = state != "running"
                names = (*_DATA, *(self._of_judges(manifest) if ended else ()), *more)
                manifest = {**manifest, "state": state, "files": noted(self.path, names)}
            write_atomically(path, sealed(manifest))

    def note_hosts(self, hosts: Iterable[str]) -> None:
        """Add to the hosts that run.json says were contacted. Raises DiskFailed."""
        manifest = self.manifest()
        known = manifest.get("hosts", [])
        every = sorted({*known, *hosts})
        if manifest and every != known:
            self.write_manifest({**manifest, "hosts": every})

    def note_change(self, name: str, sentence: str) -> None:
        """Add to what run.json says of a file that was found changed and was repaired. Raises
        DiskFailed."""
        manifest = self.manifest()
        known = manifest.get("changed", {})
        if sentence not in known.get(name, ""):
            known[name] = f"{known.get(name, '')} {sentence}".strip()
            self.write_manifest({**manifest, "changed": known})

    def reopen(self, inside: str = "") -> dict[str, Any]:
        """Note, before files are changed that are `inside` such a path, that the run goes on; the
        manifest as it was."""
        if found := self.manifest():
            kept = {k: v for k, v in found.get("files", {}).items() if not k.startswith(inside)}
            self.write_manifest({**found, "state": "running", "files": kept})
        return found

    def damage(self) -> list[Problem]:
        """Each file that is not as the run left it; run.json alone where that is one of them
        (`Problem.file` is below `path`).

        Raises SetupError where run.json is no JSON.
        """
        manifest, path = self.manifest(), self.path / "run.json"
        if not manifest:
            return []
        if not is_sealed(path.read_bytes()):
            return [Problem("was changed after the run", str(path))]
        others = self._of_judges(manifest) if manifest.get("state") != "running" else []
        return list(damage(self.path, manifest.get("files", {}), (*others, BESIDE)))

    def repairable(self, problem: Problem) -> Problem:
        """The problem with what to do about it, where it is one of the folder's own files."""
        if not problem.file.startswith(str(self.path)):
            return problem
        return replace(problem, message=f"{problem.message}; to repair it, {_AGAIN}")

    def _of_judges(self, manifest: Mapping[str, Any]) -> list[str]:
        return [self.verdict_path(name).name for name in manifest.get("judges", {})]

    def write_data(
        self, rubric: Rubric, answers: Iterable[Answer], labels: Iterable[HumanLabel]
    ) -> None:
        """The rubric as used, the answers as judged and the human labels as read."""
        text = to_json(rubric.as_plain(), indent=2, sort_keys=True) + "\n"
        self._write("rubric.json", [text.encode()])
        self._write("answers.jsonl", (answer_line(answer).encode() for answer in answers))
        self._write("labels.jsonl", (to_line(asdict(label)).encode() for label in labels))

    def write_verdicts(self, judge: str, verdicts: Iterable[Verdict]) -> None:
        """Write all verdicts of a judge that needs no model, in place of those that are there."""
        self._write(self.verdict_path(judge).name, map(verdict_line, verdicts))

    def write_beside(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Write the answers beside the study; without any, the file of an earlier run goes."""
        if lines:
            self._write(BESIDE, (to_line(line).encode() for line in lines))
        else:
            (self.path / BESIDE).unlink(missing_ok=True)

    def _write(self, name: str, lines: Iterable[bytes]) -> None:
        """Write a file, which takes its place once it is whole. Raises DiskFailed."""
        temporary = self.path / f".{name}.{os.getpid()}.tmp"
        with disk_errors(self.path / name):
            try:
                with temporary.open("wb") as file:
                    file.writelines(lines)
                os.replace(temporary, self.path / name)
            finally:
                temporary.unlink(missing_ok=True)

    @property
    def has_beside(self) -> bool:
        """True where answers were judged that are no part of the study."""
        return (self.path / BESIDE).is_file()

    def ids_beside(self) -> set[str]:
        """The ids of the answers that were judged and are no part of the study."""
        if not self.has_beside:
            return set()
        return {str(line.get("item_id")) for _, line in read_lines(self.path / BESIDE)}

    def rubric(self) -> Rubric:
        """The rubric as used. Raises SetupError where it is missing or damaged."""
        path = self.path / "rubric.json"
        return validate(_read_object(path), Rubric, file=str(path))

    def answers(self) -> Sequence[Answer]:
        """The answers as judged."""
        return read_answers(self.path / "answers.jsonl")

    def indexed_answers(self) -> IndexedAnswers:
        """The answers as judged, by row and by item id."""
        return IndexedAnswers(self.answers())

    def latest_verdicts(self, judge: str, signature: str, answers: IndexedAnswers) -> FiledVerdicts:
        """The last verdict of this signature on each of these answers as it stands."""
        return FiledVerdicts(self.verdict_path(judge), signature, answers, self.rubric().metrics)

    def labels(self) -> list[HumanLabel]:
        """The human labels as read."""
        path = self.path / "labels.jsonl"
        return [_label(value, path, number) for number, value in read_lines(path)]

    def verdict_path(self, judge: str) -> Path:
        """The file of this judge's verdicts."""
        return verdict_path(self.path, judge)

    def verdicts(self, judge: str) -> Iterator[Verdict]:
        """Every verdict of one judge, in the order written; none where it gave none."""
        return read_verdicts(self.verdict_path(judge))


def check_links(folder: Path) -> None:
    """Raises SetupError for every link in a run folder: what is read or written through it lies
    elsewhere."""
    message = (
        "is a link, which may lead out of the run folder: remove it, or put the file itself there"
    )
    links = sorted(path for path in folder.rglob("*") if path.is_symlink())
    if links:
        raise SetupError([Problem(message, str(path)) for path in links])


def _read_object(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise SetupError(Problem("no such file", file=str(path)))
    with read_errors(path):
        return read_object(path.read_bytes(), path)


def _label(value: dict[str, Any], path: Path, number: int) -> HumanLabel:
    try:
        return HumanLabel(**value)
    except TypeError as error:
        raise SetupError(Problem(f"is damaged: {error}", str(path), number)) from None


Noted = Mapping[str, Mapping[str, Any]]  # lines and SHA-256, by the file's path in the folder

_SEAL = re.compile(rb'\n  "seal": "([0-9a-f]*)"')
_LINES = {"answers.jsonl": "answers", "labels.jsonl": "labels"}


def noted(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The entries of run.json on those of these files that exist. Raises OSError."""
    return {name: _digest(folder / name) for name in names if (folder / name).is_file()}


def sealed(manifest: Mapping[str, Any]) -> bytes:
    """The text of run.json, which no change of a byte leaves sealed."""
    content = (to_json({**manifest, "seal": ""}, indent=2, sort_keys=True) + "\n").encode("utf-8")
    return _SEAL.sub(b'\n  "seal": "%s"' % _sum_of(content), content, count=1)


def is_sealed(content: bytes) -> bool:
    """True where the text of a run.json is as it was written."""
    seal = _SEAL.search(content)
    plain = _SEAL.sub(b'\n  "seal": ""', content, count=1)
    return seal is not None and _sum_of(plain) == seal[1]


def damage(folder: Path, known: Noted, others: Iterable[str] = ()) -> Iterator[Problem]:
    """The problems of the known files, and of each of the `others` that is there
    and is not among them."""
    for name in sorted(known):
        if message := _wrong(folder / name, known[name], lines_of(name)):
            yield Problem(message, str(folder / name))
    for name in sorted(set(others) - known.keys()):
        if (folder / name).exists():
            yield Problem("was put here after the run", str(folder / name))


def lines_of(name: str) -> str:
    """The plural noun for the lines of a file: `labels`."""
    return _LINES.get(name, "verdicts" if name.startswith("verdicts-") else "lines")


def _wrong(path: Path, known: Mapping[str, Any], lines: str) -> str:
    """The difference between a file and its entry in words; empty where there is none."""
    wrote = f"the run wrote {known['lines']:,} {lines}"
    try:
        found = _digest(path)
    except FileNotFoundError:
        return f"is missing; {wrote}"
    except OSError as error:
        return f"cannot be read ({error.strerror}); {wrote}"
    if found == known:
        return ""
    return f"was changed after the run; {wrote}, it holds {found['lines']:,}"


def _digest(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        return {"lines": sum(1 for line in file if line.endswith(b"\n")), "sha256": digest}


def _sum_of(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
