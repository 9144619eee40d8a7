"""The one file of a running study: blind screens, who is to label them, and every event.

Nothing in it is overwritten: an event is added, and the latest one is the label. What tells which
answer, system or pair is behind a screen lies elsewhere (`key.json`).

What the page of an annotator shows: which items, how far they are, and each screen.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from threading import RLock
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator
from pydantic import Field as Limits

from judgebench.annotation.screens import PART, SKIP, SPANS, WHOLE, Labels, Screen, State, spans_in
from judgebench.errors import Problem, SetupError
from judgebench.files import StrictModel
from judgebench.people.markdown import markdown_tree
from judgebench.people.page import local_page
from judgebench.records import ADJUDICATED
from judgebench.rubric import Rubric

KEY, SERVED = Path("key.json"), Path("served/study.sqlite")  # in the folder of a study
LEAD = "lead"  # the name behind the lead's link
GOLD = (ADJUDICATED,)  # the annotators of a study whose labels are gold
WITHOUT_RUBRIC = ("ranking", "review")  # tasks
WEEK = 7 * 24 * 3600
# The round of a screen, by the number that the file keeps. All but the first are for everybody; the
# last is that of gold items which are items of the study as well.
ROUNDS = ("main", "calibration", "gold")
_ROUNDS = (*ROUNDS, "main")
ALSO_GOLD = 3
ADDRESS = "http://127.0.0.1:8765"
_HERE = Path(__file__).parent


def page_of(name: str, data: Any, connect: str = "'none'") -> tuple[str, str]:
    """The page of that name with its data, and its policy, as `people.page.local_page` does."""
    strings = yaml.safe_load((_HERE / "strings.yaml").read_text("utf-8"))
    data = {**data, "strings": strings}
    return local_page(_HERE / name, _HERE / "asking.js", data, connect=connect)


def work_of(store: Store, name: str) -> dict[str, Any]:
    """The study and somebody's items in their order, as JSON."""
    with store.reading():
        meta, screens, times = store.meta, store.screens, store.times(name)
        labels = by_screen(store.given(name))
        own = [(key, screens[key]) for key in store.assigned(name)]
    gold = meta.get("gold", {})
    first = {key for key, known in gold.items() if known["first"]}
    states = {key: stored.screen.state(labels[name, key]) for key, stored in own}
    done = [key for key, state in states.items() if state == "done"]
    return {
        "study": meta["name"], "annotator": name, "task": meta["task"],
        "guidelines": {
            "text": meta["guidelines"], "tree": markdown_tree(meta["guidelines"]),
        },
        "instructions": _instructions(meta),
        "auto_advance": bool(meta.get("auto_advance")), "spans": bool(meta.get("spans")),
        "total": len(own), "done": len(done),
        "seconds_per_item":
            round(median(times[name, key] for key in done) / 1000, 1) if done else None,
        "items": [
            {
                "id": key, "state": states[key], "remark": "", "notes": [], "sent_back": False,
                "labels": labels[name, key],
                "round": "qualification" if key in first
                else "calibration" * (stored.round == "calibration"),
            }
            for key, stored in own
        ],
    }  # fmt: skip


def _instructions(meta: Mapping[str, Any]) -> dict[str, Any] | None:
    """The part of the rubric that judges read, for people; None where a task has no rubric. Of
    two answers, labels are named as on the screen, and so not here."""
    if "rubric" not in meta or meta["task"] in WITHOUT_RUBRIC:
        return None
    metrics = [
        {
            "title": metric.title,
            "question": metric.question,
            "labels": [
                {"text": one.text, "about": one.description, "examples": one.examples}
                for one in metric.labels
                if not metric.preference or one.description or one.examples
            ],
        }
        for metric in Rubric.model_validate(meta["rubric"]).metrics
    ]
    return {"text": meta["rubric"]["instructions"], "metrics": metrics}


def screen_of(store: Store, name: str, key: str) -> dict[str, Any] | None:
    """A screen of somebody's with the labels so far, as JSON; later parts are not in it. None where
    it is not theirs."""
    with store.reading():
        if key not in store.assigned(name):
            return None
        screen, given = store.screens[key].screen, store.given(name, key)
    labels: Labels = {one.field: one.label for one in given if one.label is not None}
    part = screen.revealed(labels)
    return {
        "screen": screen.shown_to(name, store.meta["seed"], part), "hash": screen.hash,
        "labels": {field: label for field, label in labels.items() if field != PART},
        "remark": given[-1].remark if given else "", "part": part,
        "locked": [field.key for field in screen.fields if field.part < part],
    }  # fmt: skip


FORMAT = "judgebench annotation 1"
Role = Literal["annotator", "lead"]
Reason = Literal["ambiguous", "guideline gap", "slip", "genuine"]  # of an adjudication
_LONGEST = 10_000  # characters of a label in words, or of a remark

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE screens (
  id TEXT NOT NULL, version INTEGER NOT NULL, hash TEXT NOT NULL, content TEXT NOT NULL,
  calibration INTEGER NOT NULL, PRIMARY KEY (id, version)
);
CREATE TABLE people (name TEXT PRIMARY KEY, role TEXT NOT NULL);
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
CREATE VIEW latest AS
  SELECT max(n) AS n, annotator, screen, field, hash, label, remark, reason, at
  FROM events GROUP BY annotator, screen, field, hash;
CREATE TABLE links (
  hash TEXT PRIMARY KEY, name TEXT NOT NULL, until REAL NOT NULL, used INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE sessions (hash TEXT PRIMARY KEY, name TEXT NOT NULL, until REAL NOT NULL);
CREATE TABLE looks (n INTEGER PRIMARY KEY, at TEXT NOT NULL, items INTEGER NOT NULL, found TEXT);
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
    label: Annotated[str, Limits(max_length=_LONGEST)] | None
    remark: Annotated[str, Limits(max_length=_LONGEST)] = ""
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


def by_screen(given: Iterable[Given]) -> defaultdict[tuple[str, str], dict[str, str | None]]:
    """Labels by annotator and screen, and then by field."""
    found = defaultdict[tuple[str, str], dict[str, str | None]](dict)
    for one in given:
        found[one.annotator, one.screen][one.field] = one.label
    return found


@dataclass(frozen=True, slots=True)
class Saved:
    """The client ids of events that are kept, the reasons of the refused ones, and the states."""

    saved: tuple[str, ...]
    refused: Mapping[str, str]
    states: Mapping[str, State]


@dataclass(frozen=True)
class Stored:
    """A screen and its place among the rounds, as the file keeps it."""

    screen: Screen
    kept: int = 0

    @property
    def round(self) -> str:
        """`main`, `calibration`, or `gold` where its labels are not the study's."""
        return _ROUNDS[self.kept]


class Store:
    """An open study. One connection, which threads share."""

    def __init__(self, path: Path, copy: sqlite3.Connection | None = None) -> None:
        """The study in that file, or a `copy` of it. Raises SetupError where it is none."""
        self.path = path
        if not path.is_file():
            raise SetupError(Problem("no such file", str(path)))
        self._lock = RLock()
        self._known: tuple[int, Mapping[str, Stored], Mapping[tuple[str, str], str]] = (-1, {}, {})
        self._connection = copy or sqlite3.connect(path, timeout=30, check_same_thread=False)
        self._connection.isolation_level = None
        self._connection.row_factory = sqlite3.Row
        try:
            self._connection.execute("PRAGMA synchronous = FULL")
            found = self.meta.get("format")
            state = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            found = state = str(error)
        if found == FORMAT and state == "ok":
            return
        self.close()
        if found == FORMAT or "malformed" in str(found):
            raise SetupError(Problem("is damaged: go on with a backup of it", str(path)))
        if "readonly" in str(found):
            raise SetupError(Problem("cannot be written: no permission", str(path)))
        problem = Problem("is no annotation study", str(path), found=str(found), allowed=FORMAT)
        raise SetupError(problem)

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, Any]) -> Store:
        """A new study without screens. Raises SetupError where the file is there."""
        if path.exists():
            raise SetupError(Problem("exists and is not overwritten", str(path)))
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_TABLES)
            rows = {**meta, "format": FORMAT}.items()
            sql = "INSERT INTO meta VALUES (?, ?)"
            connection.executemany(sql, [(k, json.dumps(v)) for k, v in rows])
            connection.commit()
        finally:
            connection.close()
        return cls(path)

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
        sql = "SELECT name FROM people WHERE role = 'annotator' ORDER BY rowid"
        return tuple(row["name"] for row in self.rows(sql))

    @property
    def absent(self) -> frozenset[str]:
        """The people who get no items: those who have left, and those whose access is revoked."""
        return frozenset([*self.meta.get("left", ()), *self.meta.get("revoked", ())])

    @property
    def version(self) -> int:
        """The present one, from 1; 0 while there are no screens."""
        found = self.rows("SELECT value FROM meta WHERE key = 'version'")
        return int(found[0]["value"]) if found else 0

    @property
    def screens(self) -> Mapping[str, Stored]:
        """The screens of the present version, by id."""
        version = self.version
        if self._known[0] != version:
            sql = "SELECT * FROM screens WHERE version <= ? ORDER BY version, rowid"
            every = self.rows(sql, version)
            gone = set(self.meta.get("gone", ()))
            now = {row["id"]: row for row in every if row["id"] not in gone}
            screens = {
                key: Stored(Screen.model_validate_json(row["content"]), row["calibration"])
                for key, row in now.items()
            }
            contents = {(row["id"], row["hash"]): row["content"] for row in every}
            self._known = version, screens, contents
        return self._known[1]

    def put(
        self, screens: Sequence[Screen], rounds: Mapping[str, int] = {}, gone: Iterable[str] = ()
    ) -> int:
        """Add a version: these screens are new or have changed, those of the ids `gone` are asked
        no more. `rounds` are those that are not main, by id. Returns the version's number."""
        version = self.version + 1
        gone = sorted({*self.meta.get("gone", ()), *gone} - {screen.id for screen in screens})
        rows = [(s.id, version, s.hash, s.model_dump_json(), rounds.get(s.id, 0)) for s in screens]
        with self.writing() as connection:
            connection.executemany("INSERT INTO screens VALUES (?, ?, ?, ?, ?)", rows)
            self.set(version=version, gone=gone)
        return version

    def set(self, **values: Any) -> None:
        """Change what was said of the study."""
        sql = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
        with self.writing() as connection:
            connection.executemany(sql, [(k, json.dumps(v)) for k, v in values.items()])

    def assigned(self, annotator: str, gone: bool = False) -> list[str]:
        """The ids of a person's screens, in that person's order; also of those that are `gone`, and
        may come back."""
        sql = "SELECT screen FROM assignments WHERE annotator = ? ORDER BY place"
        known = self.screens
        own = (row["screen"] for row in self.rows(sql, annotator))
        return [screen for screen in own if gone or screen in known]

    @property
    def orders(self) -> dict[str, list[str]]:
        """The screens that each annotator was ever given, in that person's order."""
        return {name: self.assigned(name, gone=True) for name in self.annotators}

    @property
    def for_everybody(self) -> dict[str, int]:
        """The rounds of the screens for everybody, by id, of any version."""
        rows = self.rows("SELECT id, calibration FROM screens WHERE calibration ORDER BY version")
        return {row["id"]: row["calibration"] for row in rows}

    def assign(self, orders: Mapping[str, Sequence[str]]) -> None:
        """Give these people these screens in this order, and no others."""
        with self.writing() as connection:
            for name, screens in orders.items():
                sql = "INSERT OR IGNORE INTO people VALUES (?, 'annotator')"
                connection.execute(sql, (name,))
                connection.execute("DELETE FROM assignments WHERE annotator = ?", (name,))
                rows = [(name, screen, place) for place, screen in enumerate(screens)]
                connection.executemany("INSERT INTO assignments VALUES (?, ?, ?)", rows)

    # --- events -----------------------------------------------------------------------------------

    def save(self, batches: Sequence[tuple[str, Sequence[Event]]]) -> list[Saved]:
        """Keep the events of each person, all in one transaction; a second time changes nothing.

        An event is refused, with the reason, where it is not for this person or does not fit the
        screen as it is now.
        """
        with self.writing() as connection:
            return [self._save(connection, who, events) for who, events in batches]

    def _save(self, connection: sqlite3.Connection, who: str, events: Sequence[Event]) -> Saved:
        known = self.screens
        spans = any(e.field.startswith(SPANS) for e in events) and self.meta.get("spans")
        own = set(known) if who == ADJUDICATED else set(self.assigned(who))
        saved, refused = list[str](), dict[str, str]()
        labels = {screen: self.labels(who, screen) for screen in {e.screen for e in events}}
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        for e in events:
            same = (who, e.screen, e.hash, e.field, e.label, e.remark, e.reason)
            columns = "annotator, screen, hash, field, label, remark, reason"
            sql = f"SELECT {columns} FROM events WHERE client_id = ?"
            before = connection.execute(sql, (e.client_id,)).fetchone()
            why = "is not yours to label"
            if e.screen in own:
                screen = known[e.screen].screen
                why = _refusal(e, screen, labels[e.screen], every=who == ADJUDICATED)
                why = "is not asked" if e.field.startswith(SPANS) and not spans else why
            if before is not None:
                why = "" if tuple(before) == same else "has the id of another label"
            if why:
                refused[e.client_id] = why
                continue
            saved.append(e.client_id)
            if before is None:
                values = (
                    e.client_id, who, e.screen, e.hash, e.field, e.label, e.remark, e.reason,
                    e.visible_ms, e.at, now,
                )  # fmt: skip
                sql = "INSERT INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                connection.execute(sql, values)
                labels[e.screen][e.field] = e.label
        states = {key: known[key].screen.state(of) for key, of in labels.items() if key in own}
        return Saved(tuple(saved), refused, states)

    def labels(self, annotator: str, screen: str) -> dict[str, str | None]:
        """Somebody's labels on one screen, by field."""
        return {given.field: given.label for given in self.given(annotator, screen)}

    def given(self, annotator: str | None = None, screen: str | None = None) -> list[Given]:
        """The labels that count now, of one person or of all, on one screen or on all: the latest
        whose texts and question are still the same, in the order in which they were kept. Also
        those that were taken back."""
        sql = "SELECT * FROM latest"
        if annotator is not None:
            sql += " WHERE annotator = ?" + (" AND screen = ?" if screen is not None else "")
        values = [value for value in (annotator, screen) if value is not None]
        found: dict[tuple[str, str, str], Given] = {}
        known = self.screens
        for row in self.rows(f"{sql} ORDER BY n", *values):
            if self._counts(known.get(row["screen"]), row):
                at = (row["annotator"], row["screen"], row["field"])
                found.pop(at, None)  # so that the latest comes last
                found[at] = Given(*at, row["label"], row["remark"], row["reason"], row["at"])
        return list(found.values())

    def _counts(self, now: Stored | None, row: sqlite3.Row) -> bool:
        """True where an event counts for the screen as it is now, too."""
        if now is None or now.screen.hash == row["hash"]:
            return now is not None
        before = self._known[2].get((row["screen"], row["hash"]))
        if before is None:
            return False
        old = Screen.model_validate_json(before)
        return old.field_hash(row["field"]) == now.screen.field_hash(row["field"])

    def times(self, annotator: str = "") -> Mapping[tuple[str, str], int]:
        """For how many milliseconds each (annotator, screen) was looked at, of one person or of
        all."""
        of = "WHERE annotator = ?" * bool(annotator)
        sql = f"SELECT annotator, screen, sum(visible_ms) AS ms FROM events {of} GROUP BY 1, 2"
        return {
            (row["annotator"], row["screen"]): row["ms"]
            for row in self.rows(sql, *filter(None, [annotator]))
        }

    # --- who may come in --------------------------------------------------------------------------

    def make_link(self, name: str, role: Role, seconds: float) -> str:
        """A new token that lets a person in once."""
        token = secrets.token_urlsafe(32)
        with self.writing() as connection:
            self.set(revoked=sorted({*self.meta.get("revoked", ())} - {name}))
            connection.execute("INSERT OR IGNORE INTO people VALUES (?, ?)", (name, role))
            sql = "INSERT INTO links (hash, name, until) VALUES (?, ?, ?)"
            connection.execute(sql, (_hashed(token), name, time.time() + seconds))
        return token

    def enter(self, token: str, seconds: float) -> str | None:
        """Trade a token for that of a session; None where it is unknown, used or too old."""
        session, now = secrets.token_urlsafe(32), time.time()
        with self.writing() as connection:
            sql = (
                "UPDATE links SET used = 1 WHERE hash = ? AND used = 0 AND until > ? RETURNING name"
            )
            found = connection.execute(sql, (_hashed(token), now)).fetchall()
            if not found:
                return None
            connection.execute("DELETE FROM sessions WHERE until < ?", (now,))
            values = (_hashed(session), found[0]["name"], now + seconds)
            connection.execute("INSERT INTO sessions VALUES (?, ?, ?)", values)
        return session

    def who(self, session: str) -> tuple[str, Role] | None:
        """Name and role behind a session's token."""
        sql = (
            "SELECT people.name, role FROM sessions JOIN people USING (name)"
            " WHERE hash = ? AND until > ?"
        )
        found = self.rows(sql, _hashed(session), time.time())
        return (found[0]["name"], found[0]["role"]) if found else None

    def leave(self, session: str) -> None:
        """End a session."""
        with self.writing() as connection:
            connection.execute("DELETE FROM sessions WHERE hash = ?", (_hashed(session),))

    def revoke(self, name: str) -> int:
        """End all sessions and links of a person, who gets no items until the next link; how many
        there were."""
        with self.writing() as connection:
            self.set(revoked=sorted({*self.meta.get("revoked", ()), name}))
            ended = connection.execute("DELETE FROM sessions WHERE name = ?", (name,)).rowcount
            sql = "DELETE FROM links WHERE name = ? AND used = 0"
            return ended + connection.execute(sql, (name,)).rowcount

    @property
    def access(self) -> dict[str, str]:
        """Each annotator and the lead: `is in`, `has a link` or `needs a link`."""
        now, found = time.time(), dict.fromkeys((*self.annotators, LEAD), "needs a link")
        waiting = self.rows("SELECT name FROM links WHERE used = 0 AND until > ?", now)
        inside = self.rows("SELECT name FROM sessions WHERE until > ?", now)
        found |= {row["name"]: "has a link" for row in waiting}
        return found | {row["name"]: "is in" for row in inside}

    # --- looks ------------------------------------------------------------------------------------

    @property
    def looks(self) -> list[dict[str, Any]]:
        """The findings of each look at a judge's decision so far, with `at` and `items`."""
        rows = self.rows("SELECT * FROM looks ORDER BY n")
        return [{**json.loads(r["found"]), "at": r["at"], "items": r["items"]} for r in rows]

    def add_look(self, items: int, found: Mapping[str, Any]) -> None:
        """Keep what a look found, with so many complete items."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self.writing() as connection:
            sql = "INSERT INTO looks (at, items, found) VALUES (?, ?, ?)"
            connection.execute(sql, (now, items, json.dumps(found)))


def _refusal(event: Event, screen: Screen, labels: Labels, every: bool) -> str:
    """The reason why an event does not fit its screen; empty where it does. The lead sees every
    part."""
    if event.hash != screen.hash:
        return "the item has changed: load it again"
    if event.field == WHOLE:
        return "" if event.label in (SKIP, None) else "is no label"
    if event.field == "come back":
        return "" if event.label in ("yes", None) else "is no label"
    if event.field == PART:
        following = screen.revealed(labels) + 1
        fits = event.label == str(following) and following < screen.parts
        fits = fits and screen.complete(labels, following - 1)
        return "" if fits or event.label == labels.get(PART) else "this part is not complete"
    asked = event.field.removeprefix(SPANS)
    field = screen.field(asked)
    revealed = field.part if field and every else screen.revealed(labels)
    if field is None or field.part > revealed:
        return "is not asked"
    if field.part < revealed:
        return "can no longer be changed: the next part was shown"
    if asked != event.field:
        return (
            "" if event.label is None or spans_in(screen, event.label) else "is no part of a text"
        )
    if event.label and field.options and not field.admits(event.label):
        return "is no label"
    return ""


def _hashed(token: str) -> str:
    """Tokens have 256 random bits, so that a plain hash cannot be reversed."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


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


def known_person(store: Store, name: str, also: tuple[str, ...] = (LEAD,)) -> str:
    """The name of an annotator or, unless `also` says otherwise, of the lead. Raises SetupError for
    any other."""
    people = (*store.annotators, *also)
    if name not in people:
        allowed = ", ".join(people)
        raise SetupError(Problem("is not among the annotators", field=name, allowed=allowed))
    return name


def link_of(store: Store, name: str) -> str:
    """A new address that lets a person in once. What follows the # never reaches a log."""
    role: Role = "lead" if known_person(store, name) == LEAD else "annotator"
    page = "/lead" if role == "lead" else "/"
    return f"{store.meta.get('address', ADDRESS)}{page}#{store.make_link(name, role, WEEK)}"
