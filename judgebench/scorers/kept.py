"""Scores that were computed once, kept on disk by what was read for them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.files import disk_errors, drop_torn_line, read_lines, to_line
from judgebench.judges.judge import Task
from judgebench.records import Answer, Status, content_hash
from judgebench.scorers.scorer import Scored, Scorer


def signature_of(scorer: Scorer) -> str:
    """The hash of all that its numbers depend on."""
    return content_hash({k: v for k, v in scorer.about.items() if k != "runtime"})


def _finite(one: Scored) -> Scored:
    """A number that no mean and no rank can take is no score."""
    whole = one.value is None or math.isfinite(one.value)
    return one if whole else Scored.none("its score is no finite number")


class KeptScores:
    """The scores of a scorer, below `folder`, or only in memory where that is None. Each text is
    scored once; what is killed between two blocks has kept those before."""

    def __init__(self, scorer: Scorer, folder: Path | None) -> None:
        self.scorer, self.signature = scorer, signature_of(scorer)
        self._path = folder and folder / f"{self.signature}.jsonl"
        self._held: dict[str, Scored] | None = None

    def of(
        self, answers: Sequence[Answer], advance: Callable[[int], None] = lambda n: None
    ) -> Sequence[Scored]:
        """One score for each answer; `advance` hears how many more are done. Raises DiskFailed and
        what the scorer raises."""
        held = self._read()
        keys = [content_hash(self.scorer.key(answer)) for answer in answers]
        new = {k: a for k, a in zip(keys, answers, strict=True) if k not in held}
        times = Counter(keys)
        advance(len(keys) - sum(times[key] for key in new))
        left = list(new.items())
        for start in range(0, len(left), self.scorer.at_once):
            block = left[start : start + self.scorer.at_once]
            made = map(_finite, self.scorer.score([answer for _, answer in block]))
            self._keep({key: one for (key, _), one in zip(block, made, strict=True)})
            advance(sum(times[key] for key, _ in block))
        return [held[key] for key in keys]

    def along(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Scored]]:
        """Each task with the score of its answer."""
        coming = iter(tasks)
        while block := list(islice(coming, self.scorer.at_once)):
            yield from zip(block, self.of([task.answer for task in block]), strict=True)

    def _read(self) -> dict[str, Scored]:
        if self._held is None:
            self._held = {}
            if self._path and self._path.is_file():
                drop_torn_line(self._path)
                for number, line in read_lines(self._path):
                    self._held |= _scored(line, self._path, number)
        return self._held

    def _keep(self, made: dict[str, Scored]) -> None:
        self._read().update(made)
        if self._path is None:
            return
        lines = [
            to_line(
                {
                    "key": key, "value": one.value,
                    **({"status": one.status.value} if one.status is not Status.OK else {}),
                    **({"reason": one.reason} if one.reason else {}),
                }
            )
            for key, one in made.items()
        ]  # fmt: skip
        with disk_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write("".join(lines))

    def close(self) -> None:
        """Give back the scorer's engine and what was read; may be used again."""
        self.scorer.close()
        self._held = None


def _scored(line: dict[str, Any], path: Path, number: int) -> dict[str, Scored]:
    """The score that a line holds, by its key. Raises SetupError where it holds none."""
    try:
        status, value = Status(line.get("status", Status.OK)), line.get("value")
        found = None if value is None else float(value)
        return {str(line["key"]): Scored(found, status, str(line.get("reason", "")))}
    except (KeyError, TypeError, ValueError):
        message = "is no score; delete the line to have it computed again"
        raise SetupError(Problem(message, str(path), number)) from None
