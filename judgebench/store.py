"""The run folder: everything a benchmark did, enough to resume it and to score it again offline.

    run.json              manifest: versions, seeds, content hashes, judges (rewritten whole)
    bench.json            the settings in full
    rubric.json           the rubric as used
    answers.jsonl         the answers as judged
    labels.jsonl          the human labels as read
    verdicts-NAME.jsonl   one line a verdict, append-only, one file a judge
    attacks.jsonl         of a stress test: the altered answers, which answers.jsonl holds too
    attacks-rejected.jsonl   those that failed a check of validity, with the reasons

A line that a killed process left torn is dropped when the file is next opened, and told.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar

from judgebench.errors import Problem, RunLocked, SetupError
from judgebench.files import (
    drop_torn_line,
    read_lines,
    read_object,
    to_json,
    to_line,
    write_atomically,
)
from judgebench.probes.altered import AlteredAnswer
from judgebench.probes.sets import read_set, to_set_line
from judgebench.records import Answer, HumanLabel, Status, Usage, Verdict
from judgebench.rubric import Rubric
from judgebench.yaml_file import validate

Record = TypeVar("Record", Answer, HumanLabel)
ATTACKS, REJECTED = "attacks.jsonl", "attacks-rejected.jsonl"


class RunFolder:
    """A run on disk. Reading needs no lock; writing goes through `locked`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def existing(cls, path: Path) -> RunFolder:
        """Raises SetupError where `path` holds no run."""
        if not (path / "run.json").is_file():
            raise SetupError(Problem("is no run folder: it holds no run.json", file=str(path)))
        return cls(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for writing. Raises RunLocked where another process does."""
        import fcntl

        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunLocked(f"another process is writing to {self.path}") from None
            yield

    def manifest(self) -> dict[str, Any]:
        """The manifest; empty before the first write."""
        path = self.path / "run.json"
        return _read_object(path) if path.is_file() else {}

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        self._write_json("run.json", manifest)

    def write_inputs(
        self, rubric: Rubric, answers: Iterable[Answer], labels: Iterable[HumanLabel]
    ) -> None:
        self._write_json("rubric.json", rubric.model_dump(mode="json"))
        self._write_lines("answers.jsonl", answers)
        self._write_lines("labels.jsonl", labels)

    def write_attacks(
        self, items: Sequence[AlteredAnswer], rejected: Sequence[AlteredAnswer]
    ) -> None:
        """The altered answers of a stress test; without any, those of an earlier one go."""
        for name, found in ((ATTACKS, items), (REJECTED, rejected)):
            if found:
                lines = "".join(to_line(to_set_line(item)) for item in found)
                write_atomically(self.path / name, lines.encode("utf-8"))
            else:
                (self.path / name).unlink(missing_ok=True)

    @property
    def has_attacks(self) -> bool:
        """Whether the run is a stress test with altered answers."""
        return (self.path / ATTACKS).is_file()

    def attacks(self) -> list[AlteredAnswer]:
        """The altered answers that were judged; none where no stress test was run."""
        return read_set(self.path / ATTACKS) if self.has_attacks else []

    def rubric(self) -> Rubric:
        path = self.path / "rubric.json"
        return validate(_read_object(path), Rubric, file=str(path))

    def answers(self) -> list[Answer]:
        return list(_records(self.path / "answers.jsonl", Answer))

    def labels(self) -> list[HumanLabel]:
        return list(_records(self.path / "labels.jsonl", HumanLabel))

    def verdict_path(self, judge: str) -> Path:
        return self.path / f"verdicts-{judge}.jsonl"

    def verdicts(self, judge: str) -> Iterator[Verdict]:
        """Every line of one judge's file, in the order written; none where there is no file."""
        path = self.verdict_path(judge)
        if path.is_file():
            for number, value in read_lines(path):
                yield _verdict(value, path, number)

    def _write_json(self, name: str, value: Mapping[str, Any]) -> None:
        text = to_json(value, indent=2, sort_keys=True) + "\n"
        write_atomically(self.path / name, text.encode("utf-8"))

    def _write_lines(self, name: str, records: Iterable[Answer | HumanLabel]) -> None:
        temporary = self.path / f".{name}.{os.getpid()}.tmp"
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(to_line(asdict(record)) for record in records)
        os.replace(temporary, self.path / name)


def _read_object(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise SetupError(Problem("no such file", file=str(path)))
    return read_object(path.read_bytes(), path)


def _records(path: Path, shape: type[Record]) -> Iterator[Record]:
    for number, value in read_lines(path):
        try:
            yield shape(**value)
        except TypeError as error:
            raise SetupError(Problem(f"is damaged: {error}", str(path), number)) from None


class VerdictWriter:
    """Appends verdicts to one judge's file; each is with the operating system when `write` returns,
    so that killing the process loses none."""

    def __init__(self, path: Path) -> None:
        self.torn_bytes = drop_torn_line(path)
        self._file: IO[str] = path.open("a", encoding="utf-8", newline="\n")

    def write(self, verdict: Verdict) -> None:
        self._file.write(to_line(_plain(verdict)))
        self._file.flush()

    def __enter__(self) -> VerdictWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def _plain(verdict: Verdict) -> dict[str, Any]:
    """A verdict without the fields that hold their default; a cost of 0 is not an unknown one."""
    told = {f.name for f in fields(Verdict) if getattr(verdict, f.name) != f.default}
    value = {k: v for k, v in asdict(verdict).items() if k in told}
    if "usage" in value:
        value["usage"] = {k: v for k, v in value["usage"].items() if v is not None}
    if "latency" in value:
        value["latency"] = round(verdict.latency, 6)
    return value


def _verdict(value: dict[str, Any], path: Path, number: int) -> Verdict:
    try:
        status = Status(value.pop("status"))
        usage = Usage(**value.pop("usage", {}))
        return Verdict(**value, status=status, usage=usage)
    except (KeyError, TypeError, ValueError) as error:
        raise SetupError(Problem(f"is no verdict: {error}", str(path), number)) from None
