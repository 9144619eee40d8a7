"""What a watch has seen so far: one small SQLite file beside the certificate.

Every update is one transaction: whole or not there at all, also after kill -9, and two writers wait
for each other. Rows that were counted are known by 64-bit hashes, so that nothing counts twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from judgebench.certificate.record import Certificate
from judgebench.errors import Problem, SetupError
from judgebench.records import canonical_json
from judgebench.stats.betting import Evidence, Sums

_WAIT = 60.0  # seconds for another writer
_MOST_POINTS = 400  # of the curves


@dataclass
class State:
    """Everything but the hashes of rows. Times are ISO texts in UTC. `evidence` is that of each
    test, `sums` those of each watched share (and `among` of annotators beside each other);
    `rising` those of each test since its evidence was the `lowest`, which is about since when
    something changed, if it did. `new` counts categories that the certificate has never seen, by
    feature; `model` is who last said to reply; `labelled` new labels by day; `points`
    the evidence over time."""

    started: str = ""
    last: str = ""
    answers: int = 0
    anchors: int = 0
    evidence: dict[str, Evidence] = field(default_factory=dict)
    sums: dict[str, Sums] = field(default_factory=dict)
    rising: dict[str, Sums] = field(default_factory=dict)
    lowest: dict[str, float] = field(default_factory=dict)
    new: dict[str, dict[str, int]] = field(default_factory=dict)
    model_changes: int = 0
    model: str = ""
    labelled: dict[str, int] = field(default_factory=dict)
    least_chance: float | None = None
    points: list[tuple[str, dict[str, float]]] = field(default_factory=list)
    told: str = "valid"

    def add_point(self) -> None:
        """Keep the evidence of now; where there are many points, every other one goes."""
        now = {key: round(one.log_capital, 3) for key, one in self.evidence.items()}
        if self.points and self.points[-1][0][:13] == self.last[:13]:  # of the same hour
            self.points.pop()
        self.points.append((self.last, now))
        if len(self.points) > _MOST_POINTS:
            self.points = [*self.points[:-1][::2], self.points[-1]]


def _load(text: str) -> State:
    values: dict[str, Any] = json.loads(text)
    tests, points = values.pop("evidence"), values.pop("points")
    sums, rising = ({k: Sums(**v) for k, v in values.pop(x).items()} for x in ("sums", "rising"))
    return State(
        **values,
        points=[(time, found) for time, found in points],
        evidence={k: Evidence(**{**v, "running": tuple(v["running"])}) for k, v in tests.items()},
        sums=sums, rising=rising,
    )  # fmt: skip


def _connected(path: Path | str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
    db.execute("PRAGMA synchronous=FULL")
    return db


def _make_tables(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE seen (hash INTEGER PRIMARY KEY)")
    db.execute("CREATE TABLE state (key TEXT PRIMARY KEY, value)")


def _create(path: Path) -> None:
    """Make the file with its tables, whole or not at all, so that an empty one is a damaged one.
    Another writer's that was made in the meantime stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        db = _connected(temporary)
        _make_tables(db)
        db.close()
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


class StateFile:
    """The file of a watch; in memory where `path` is None.

    `transaction` gives the state, and keeps what was made of it and of `seen`.
    """

    def __init__(self, path: Path | None, certificate: Certificate) -> None:
        self._path, self._hash = path, certificate.hash
        try:
            if path is not None and not path.exists():
                _create(path)
            self._db = _connected(path or ":memory:")
            if path is None:
                _make_tables(self._db)
            elif not path.stat().st_size:
                raise self._damaged("is empty")
            with self._immediate():
                self._check()
        except (sqlite3.Error, OSError) as error:
            raise self._damaged(str(error)) from None

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[State]:
        """The state as it is now, to be changed; whatever fails, the file stays as it was."""
        try:
            with self._immediate():
                state = self.read()
                yield state
                text = canonical_json(asdict(state))
                values = {
                    "state": text, "sha256": hashlib.sha256(text.encode()).hexdigest(),
                    "certificate": self._hash, "seen": self._summary(),
                }  # fmt: skip
                self._db.executemany("REPLACE INTO state VALUES (?, ?)", values.items())
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from None

    def unseen(self, hashes: Iterable[int]) -> list[bool]:
        """Whether each is new; from now on it is not. Within a transaction."""
        return [
            self._db.execute("INSERT OR IGNORE INTO seen VALUES (?)", (one,)).rowcount == 1
            for one in hashes
        ]

    def read(self) -> State:
        """The state as it is now. Raises SetupError where it is damaged, or of another
        certificate."""
        try:
            values: Mapping[str, Any] = dict(self._db.execute("SELECT key, value FROM state"))
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from None
        if not values:
            return State()
        if values.get("certificate") != self._hash:
            message = "is the state of another certificate"
            found = str(values.get("certificate"))[:16]
            raise SetupError(
                Problem(message, str(self._path), None, "hash", found, self._hash[:16])
            )
        text = str(values.get("state"))
        if hashlib.sha256(text.encode()).hexdigest() != values.get("sha256"):
            raise self._damaged("the state does not have its hash")
        return _load(text)

    def _summary(self) -> str:
        """The number of hashes and their sum, which say whether one was lost."""
        n, high, low = self._db.execute(
            "SELECT count(*), sum(hash >> 32), sum(hash & 4294967295) FROM seen"
        ).fetchone()
        return f"{n} {high} {low}"

    def _check(self) -> None:
        (said,) = self._db.execute("PRAGMA quick_check").fetchone()
        if said != "ok":
            raise self._damaged(str(said))
        self.read()
        kept = self._db.execute("SELECT value FROM state WHERE key = 'seen'").fetchone()
        if kept and kept[0] != self._summary():
            raise self._damaged("rows that were counted are missing")

    @contextmanager
    def _immediate(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    def _damaged(self, why: str) -> SetupError:
        if "locked" in why:
            message = f"another watch has been writing for {_WAIT:g} seconds: try again"
            return SetupError(Problem(message, str(self._path)))
        message = "the state of the watch cannot be used; restore it from a copy, or remove it to "
        message += "start anew, without what it had seen"
        return SetupError(Problem(message, str(self._path or ""), found=why))
