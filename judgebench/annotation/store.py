"""The one file of a running study: blind screens, who is to label them, and every event.

Nothing in it is overwritten: an event is added, and the latest one is the label. What tells which
answer, system or pair is behind a screen lies elsewhere (`key.json`).
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Annotated, Any, Literal

from pydantic import AfterValidator
from pydantic import Field as Limits

from judgebench.annotation.pictures import Picture
from judgebench.annotation.screens import MARK, MARKED, SKIP, WHOLE, Round, Screen
from judgebench.errors import Problem, SetupError
from judgebench.files import StrictModel
from judgebench.records import ADJUDICATED

KEY, SERVED = Path("key.json"), Path("served/study.sqlite")  # in the folder of a study
ANSWERS = "answers_for_judge.csv"  # beside them where there are anchors: these among the items
LEAD = "lead"  # the name behind the lead's link
GOLD = (ADJUDICATED,)  # the annotators of a study whose labels are gold
WEEK = 7 * 24 * 3600
ADDRESS = "http://127.0.0.1:8765"
FORMAT = "judgebench annotation 3"
Role = Literal["annotator", "lead"]
Reason = Literal["ambiguous", "guideline gap", "slip", "genuine"]  # of an adjudication
MAX_TEXT = 10_000  # characters of a label or of a remark
_HANDED_OVER = -1  # the place of an item that is another's now; what was labelled offline is taken

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE screens (
  id TEXT NOT NULL, version INTEGER NOT NULL, content TEXT NOT NULL,
  PRIMARY KEY (id, version)
);
CREATE TABLE pictures (name TEXT PRIMARY KEY, kind TEXT NOT NULL, content BLOB NOT NULL);
CREATE TABLE annotators (name TEXT PRIMARY KEY);
CREATE TABLE assignments (
  annotator TEXT NOT NULL, screen TEXT NOT NULL, place INTEGER NOT NULL,
  PRIMARY KEY (annotator, screen)
);
CREATE TABLE events (
  n INTEGER PRIMARY KEY, client_id TEXT NOT NULL UNIQUE, annotator TEXT NOT NULL,
  screen TEXT NOT NULL, hash TEXT NOT NULL, field TEXT NOT NULL, label TEXT,
  remark TEXT NOT NULL, reason TEXT NOT NULL, visible_ms INTEGER NOT NULL, at TEXT NOT NULL,
  saved_at TEXT NOT NULL
);
CREATE INDEX events_of ON events (annotator, screen);
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER events_last BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TABLE notes (
  n INTEGER PRIMARY KEY, annotator TEXT NOT NULL, screen TEXT NOT NULL, text TEXT NOT NULL,
  after INTEGER NOT NULL, at TEXT NOT NULL
);
CREATE INDEX notes_of ON notes (annotator, screen);
CREATE VIEW latest AS
  SELECT max(n) AS n, annotator, screen, field, hash, label, remark, reason, at
  FROM events WHERE n > coalesce((
    SELECT max(after) FROM notes
    WHERE notes.annotator = events.annotator AND notes.screen = events.screen
  ), 0) GROUP BY annotator, screen, field, hash;
CREATE TABLE tokens (
  hash TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, until REAL NOT NULL
);
"""


def _checked_time(at: str) -> str:
    datetime.fromisoformat(at)  # the pattern lets a month 99 through
    return at


class Event(StrictModel):
    """One act of one person, as the page sends it. `label` is None where a label is taken back."""

    client_id: Annotated[str, Limits(pattern=r"^[A-Za-z0-9_-]{16,64}$")]
    screen: Annotated[str, Limits(max_length=64)]
    hash: Annotated[str, Limits(max_length=64)]
    field: Annotated[str, Limits(max_length=300)]
    label: Annotated[str, Limits(max_length=MAX_TEXT)] | None
    remark: Annotated[str, Limits(max_length=MAX_TEXT)] = ""
    reason: Annotated[str, Limits(max_length=40)] = ""
    visible_ms: Annotated[int, Limits(ge=0, le=86_400_000)] = 0
    at: Annotated[
        str,
        Limits(pattern=r"^\d{4}-\d\d-\d\dT[\d:.]{5,20}(Z|[+-]\d\d:\d\d)$"),
        AfterValidator(_checked_time),
    ]


@dataclass(frozen=True, slots=True)
class Given:
    """The latest event of somebody on a field, as it counts for the present version."""

    annotator: str
    screen: str
    field: str
    label: str | None
    remark: str
    reason: str
    at: str


def by_screen(events: Iterable[Given]) -> defaultdict[tuple[str, str], dict[str, str | None]]:
    """Labels by annotator and screen, and then by field."""
    labels = defaultdict[tuple[str, str], dict[str, str | None]](dict)
    for event in events:
        labels[event.annotator, event.screen][event.field] = event.label
    return labels


@dataclass(frozen=True, slots=True)
class Saved:
    """The client ids of events that are kept, the reasons of the refused ones, and the labels that
    were there `before` them."""

    saved: tuple[str, ...]
    before: Mapping[str, str | None]
    refused: Mapping[str, str]


class Store:
    """An open study. One connection, which threads share."""

    def __init__(self, path: Path, copy: sqlite3.Connection | None = None) -> None:
        """The study in that file, or a `copy` of it. Raises SetupError where it is none."""
        self.path = path
        if not path.is_file():
            raise SetupError(Problem("no such file", str(path)))
        self._lock = RLock()
        self._cache: tuple[int, Mapping[str, Screen]] = (-1, {})
        self._connection = copy or sqlite3.connect(path, timeout=30, check_same_thread=False)
        self._connection.isolation_level = None
        self._connection.row_factory = sqlite3.Row
        try:
            self._connection.execute("PRAGMA synchronous = FULL")
            found = self.meta.get("format")
            if self.rows("PRAGMA quick_check(1)")[0][0] != "ok":
                found = "a damaged file"
        except sqlite3.DatabaseError as error:
            found = str(error)
        if found != FORMAT:
            self.close()
            wrong = "is no annotation study that can be read; if it is damaged, go on with a backup"
            raise SetupError(Problem(wrong, str(path), found=str(found), allowed=FORMAT))

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, Any]) -> Store:
        """A new study without screens. Raises SetupError where the file is there."""
        if path.exists():
            raise SetupError(Problem("exists and is not overwritten", str(path)))
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_TABLES)
            connection.execute("INSERT INTO meta VALUES (?, ?)", ("format", json.dumps(FORMAT)))
            connection.commit()
        store = cls(path)
        store.set(**meta)
        return store

    def close(self) -> None:
        self._connection.close()

    def to_bytes(self) -> bytes:
        """The contents of the file, as SQLite would write them."""
        with self._lock:
            return self._connection.serialize()

    @contextmanager
    def writing(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """A transaction, kept as a whole or not at all; it is on the disk when the block ends. One
        within another is a part of it."""
        with self._lock:
            if self._connection.in_transaction:
                yield self._connection
                return
            self._connection.execute(begin)
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """All that the block reads is of one moment, whatever others write meanwhile."""
        return self.writing("BEGIN")

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """The rows that a query finds."""
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    # --- what does not change while the study runs, but for a new version ------------------------

    @property
    def meta(self) -> dict[str, Any]:
        """The settings of the study: name, task, seed, guidelines and the like."""
        return {row["key"]: json.loads(row["value"]) for row in self.rows("SELECT * FROM meta")}

    @property
    def annotators(self) -> tuple[str, ...]:
        """The annotators, in the order of the study's file."""
        return tuple(row["name"] for row in self.rows("SELECT name FROM annotators ORDER BY rowid"))

    @property
    def present(self) -> list[str]:
        """The annotators who get items: all but those who have left."""
        left = self.meta.get("left", ())
        return [name for name in self.annotators if name not in left]

    @property
    def version(self) -> int:
        """The present one, from 1; 0 while there are no screens."""
        rows = self.rows("SELECT value FROM meta WHERE key = 'version'")
        return int(rows[0]["value"]) if rows else 0

    @property
    def screens(self) -> Mapping[str, Screen]:
        """The screens of the present version, by id."""
        version = self.version
        if self._cache[0] != version:
            sql = "SELECT * FROM screens WHERE version <= ? ORDER BY version, rowid"
            gone = set(self.meta.get("gone", ()))
            now = {row["id"]: row for row in self.rows(sql, version) if row["id"] not in gone}
            screens = {n: Screen.model_validate_json(row["content"]) for n, row in now.items()}
            self._cache = version, screens
        return self._cache[1]

    def put(self, screens: Sequence[Screen], gone: Iterable[str] = ()) -> None:
        """Add a version: these screens are new or have changed, those of the ids `gone` are asked
        no more."""
        version = self.version + 1
        gone = sorted({*self.meta.get("gone", ()), *gone} - {screen.id for screen in screens})
        rows = [(screen.id, version, screen.model_dump_json()) for screen in screens]
        with self.writing() as connection:
            connection.executemany("INSERT INTO screens VALUES (?, ?, ?)", rows)
            self.set(version=version, gone=gone)

    def set(self, **values: Any) -> None:
        """Change what was said of the study."""
        sql = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
        with self.writing() as connection:
            connection.executemany(sql, [(k, json.dumps(v)) for k, v in values.items()])

    def add_pictures(self, pictures: Iterable[Picture]) -> None:
        """Keep pictures."""
        with self.writing() as connection:
            connection.executemany("INSERT OR IGNORE INTO pictures VALUES (?, ?, ?)", pictures)

    @property
    def pictures(self) -> list[Picture]:
        """All pictures."""
        return [Picture(*row) for row in self.rows("SELECT * FROM pictures")]

    def picture(self, name: str) -> Picture | None:
        """The picture of that name."""
        rows = self.rows("SELECT * FROM pictures WHERE name = ?", name)
        return Picture(*rows[0]) if rows else None

    def assigned(self, annotator: str) -> list[str]:
        """The ids of a person's screens, in that person's order."""
        sql = "SELECT screen FROM assignments WHERE annotator = ? AND place >= 0 ORDER BY place"
        screens = self.screens
        return [row["screen"] for row in self.rows(sql, annotator) if row["screen"] in screens]

    @property
    def orders(self) -> dict[str, list[str]]:
        """The screens of each annotator, in that person's order; also those that are gone, and may
        come back."""
        orders: dict[str, list[str]] = {name: [] for name in self.annotators}
        sql = "SELECT annotator, screen FROM assignments WHERE place >= 0 ORDER BY place"
        for row in self.rows(sql):
            orders[row["annotator"]].append(row["screen"])
        return orders

    @property
    def for_everybody(self) -> Set[str]:
        """The screens that everybody labels, of any version: of calibration, and anchors."""
        return self.in_round("calibration") | self.in_round("anchor")

    def in_round(self, name: Round) -> Set[str]:
        """The screens of a round, of any version."""
        sql = "SELECT DISTINCT id FROM screens WHERE json_extract(content, '$.round') = ?"
        return {row["id"] for row in self.rows(sql, name)}

    def assign(self, orders: Mapping[str, Sequence[str]]) -> None:
        """Give these people these screens in this order, and no others."""
        with self.writing() as connection:
            for name, screens in orders.items():
                connection.execute("INSERT OR IGNORE INTO annotators VALUES (?)", (name,))
                sql = "UPDATE assignments SET place = ? WHERE annotator = ?"
                connection.execute(sql, (_HANDED_OVER, name))
                rows = [(name, screen, place) for place, screen in enumerate(screens)]
                connection.executemany("INSERT OR REPLACE INTO assignments VALUES (?, ?, ?)", rows)

    # --- events -----------------------------------------------------------------------------------

    def save(self, annotator: str, events: Sequence[Event]) -> Saved:
        """Keep the events of somebody, all in one transaction; a second time changes nothing.

        An event is refused, with the reason, where it is not for this person or does not fit the
        screen as it is now.
        """
        with self.writing():
            screens = self.screens
            sql = "SELECT screen FROM assignments WHERE annotator = ?"
            own = {row["screen"] for row in self.rows(sql, annotator)}
            allowed = screens.keys() if annotator == ADJUDICATED else screens.keys() & own
            refused, before = dict[str, str](), dict[str, str | None]()
            for event in events:
                before[event.client_id] = self.labels(annotator, event.screen).get(event.field)
                screen = screens[event.screen] if event.screen in allowed else None
                if reason := self._insert(annotator, event, screen):
                    refused[event.client_id] = reason
            saved = tuple(e.client_id for e in events if e.client_id not in refused)
            return Saved(saved, before, refused)

    @property
    def n_events(self) -> int:
        """The number of events in the log, which is that of the last one."""
        return int(self.rows("SELECT coalesce(max(n), 0) FROM events")[0][0])

    def _insert(self, annotator: str, event: Event, screen: Screen | None) -> str:
        """Keep an event, unless it is kept already. Returns why it is refused."""
        given = event.model_dump(include={"screen", "field", "label", "remark", "reason"})
        same = {"annotator": annotator, **given}
        sql = f"SELECT {', '.join(same)} FROM events WHERE client_id = ?"
        if before := self.rows(sql, event.client_id):
            return "" if dict(before[0]) == same else "has the id of another label"
        if screen is None:
            return "is not yours to label"
        if not (refusal := _refusal(event, screen)):
            values = {
                **same, "client_id": event.client_id, "hash": screen.field_hashes[event.field],
                "visible_ms": event.visible_ms, "at": event.at, "saved_at": now("milliseconds"),
            }  # fmt: skip
            places = ", ".join("?" * len(values))
            sql = f"INSERT INTO events ({', '.join(values)}) VALUES ({places})"
            self.rows(sql, *values.values())
        return refusal

    def labels(self, annotator: str, screen: str) -> dict[str, str | None]:
        """Somebody's labels on one screen, by field."""
        return {given.field: given.label for given in self.given(annotator, screen)}

    def given(self, annotator: str = "", screen: str = "") -> list[Given]:
        """The labels that count now, of one person or of all, on one screen or on all: the latest
        whose texts and question are still the same, in the order in which they were kept. Also
        those that were taken back."""
        found: dict[tuple[str, str, str], Given] = {}
        chosen = {"annotator": annotator, "screen": screen}
        where = "".join(f" AND {column} = ?" for column, value in chosen.items() if value)
        sql = f"SELECT * FROM latest WHERE true{where} ORDER BY n"
        screens = self.screens
        for row in self.rows(sql, *filter(None, chosen.values())):
            now = screens.get(row["screen"])
            if now and now.field_hashes.get(row["field"]) == row["hash"]:
                key = (row["annotator"], row["screen"], row["field"])
                found.pop(key, None)  # so that the latest comes last
                found[key] = Given(*key, row["label"], row["remark"], row["reason"], row["at"])
        return list(found.values())

    def times(self) -> Mapping[tuple[str, str], int]:
        """For how many milliseconds each (annotator, screen) was looked at."""
        sql = "SELECT annotator, screen, sum(visible_ms) AS ms FROM events GROUP BY 1, 2"
        return {(row["annotator"], row["screen"]): row["ms"] for row in self.rows(sql)}

    @property
    def remarks(self) -> dict[tuple[str, str], tuple[str, str]]:
        """The latest remark of each (annotator, screen), and its time. Each event on a screen holds
        it, and it outlives labels that were sent back."""
        sql = "SELECT annotator, screen, remark, at, max(n) FROM events GROUP BY 1, 2"
        return {(who, name): (text, at) for who, name, text, at, _ in self.rows(sql) if text}

    # --- what the lead answers --------------------------------------------------------------------

    def add_note(self, annotator: str, screen: str, text: str, send_back: bool) -> None:
        """Answer an annotator about an item. Where it is sent back, labels so far count no more,
        and stay in the log."""
        with self.writing() as connection:
            values = (annotator, screen, text, self.n_events if send_back else 0, now())
            connection.execute("INSERT INTO notes VALUES (NULL, ?, ?, ?, ?, ?)", values)

    @property
    def notes(self) -> list[dict[str, Any]]:
        """All answers of the lead, in their order: `annotator`, `screen`, `text`, `at`, and whether
        the item was `sent_back`, so that its labels so far count no more."""
        rows = self.rows("SELECT annotator, screen, text, at, after FROM notes ORDER BY n")
        return [{**row, "sent_back": row["after"] > 0} for row in map(dict, rows)]

    # --- who may come in --------------------------------------------------------------------------

    def make_link(self, name: str, seconds: float) -> str:
        """A new token that lets a person in once."""
        token = secrets.token_urlsafe(32)
        sql = "INSERT INTO tokens VALUES (?, ?, 'link', ?)"
        self.rows(sql, _hashed(token), name, time.time() + seconds)
        return token

    def enter(self, token: str, seconds: float) -> str | None:
        """Trade a token for that of a session; None where it is unknown, used or too old."""
        session, at = secrets.token_urlsafe(32), time.time()
        sql = (
            "UPDATE tokens SET hash = ?, kind = 'session', until = ?"
            " WHERE hash = ? AND kind = 'link' AND until > ? RETURNING name"
        )
        return (
            session if self.rows(sql, _hashed(session), at + seconds, _hashed(token), at) else None
        )

    def who(self, session: str) -> str:
        """The name behind a session's token; empty where there is none."""
        sql = "SELECT name FROM tokens WHERE hash = ? AND kind = 'session' AND until > ?"
        rows = self.rows(sql, _hashed(session), time.time())
        return str(rows[0]["name"]) if rows else ""

    def leave(self, session: str) -> None:
        """End a session."""
        self.rows("DELETE FROM tokens WHERE hash = ?", _hashed(session))

    def revoke(self, name: str) -> None:
        """End all sessions and links of a person. Labels stay."""
        self.rows("DELETE FROM tokens WHERE name = ?", name)

    @property
    def access(self) -> dict[str, str]:
        """Each annotator and the lead: `is in`, `has a link` or `needs a link`."""
        access = dict.fromkeys((*self.annotators, LEAD), "needs a link")
        sql = "SELECT name, kind FROM tokens WHERE until > ? ORDER BY kind"  # sessions come last
        words = {"link": "has a link", "session": "is in"}
        return access | {row["name"]: words[row["kind"]] for row in self.rows(sql, time.time())}


def _refusal(event: Event, screen: Screen) -> str:
    """The reason why an event does not fit its screen; empty where it does."""
    if event.hash != screen.hash:
        return "the item has changed: load it again"
    if event.field in (WHOLE, MARK):
        allowed = {WHOLE: SKIP, MARK: MARKED}[event.field]
        return "" if event.label in (allowed, None) else "is no label"
    field = screen.field(event.field)
    if field is None:
        return "is not asked"
    return "" if not event.label or field.admits(event.label) else "is no label"


def _hashed(token: str) -> str:
    """Tokens have 256 random bits, so that a plain hash cannot be reversed."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def now(timespec: str = "seconds") -> str:
    """The time in UTC, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec=timespec)


# --- the folder of a study: what the server opens, and apart from it the key ---------------------


def served_file(study: Path) -> Path:
    """The file of a study, given its folder or the file itself."""
    return study / SERVED if study.is_dir() else study


@contextmanager
def open_store(study: Path) -> Iterator[Store]:
    """The labels of a study, given its folder or the file itself. Raises SetupError, also where
    they cannot be read or written."""
    file = served_file(study)
    with closing(Store(file)) as store:
        try:
            yield store
        except sqlite3.DatabaseError as error:
            raise SetupError(Problem(f"cannot be read or written: {error}", str(file))) from None


def snapshot(study: Path) -> closing[Store]:
    """The study as it is now, given its folder or its file, in memory: a server that writes it is
    not disturbed, and no file is made where it lies. Raises SetupError."""
    file = served_file(study).resolve()
    if not file.is_file():
        message = "no such file: `judgebench annotate init` makes a study"
        raise SetupError(Problem(message, str(file)))
    copy = sqlite3.connect(":memory:")
    # Without a log nobody writes it. With one, SQLite knows what of it counts, also after a kill.
    mode = "mode=ro" + "&immutable=1" * (not file.with_name(f"{file.name}-wal").exists())
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?{mode}", uri=True, timeout=30)) as source:
            source.backup(copy)
    except sqlite3.DatabaseError as error:
        raise SetupError(Problem(f"is no annotation study: {error}", str(file))) from None
    return closing(Store(file, copy))


def known_person(store: Store, name: str) -> None:
    """Raises SetupError for a name that is no annotator's."""
    if name not in store.annotators:
        allowed = ", ".join(store.annotators)
        raise SetupError(Problem("is not among the annotators", field=name, allowed=allowed))


def link_of(store: Store, name: str) -> str:
    """A new address that lets a person in once. What follows the # never reaches a log."""
    if name != LEAD:
        known_person(store, name)
    page = "/lead" if name == LEAD else "/"
    return f"{store.meta.get('address', ADDRESS)}{page}#{store.make_link(name, WEEK)}"


def role_of(name: str) -> Role:
    """The role of somebody who may come in."""
    return "lead" if name == LEAD else "annotator"
