"""What comes out of a study: labels, ranks or decisions under the names of the data."""

from __future__ import annotations

import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from judgebench.annotate.folder import KEY, SERVED
from judgebench.annotate.key import Key, Target, read_key
from judgebench.annotate.store import Store
from judgebench.errors import Problem, SetupError
from judgebench.files import read_errors

Row = dict[str, str]
_IN_COLUMNS = ("preference", "criteria", "review")  # a column for each metric
_NAMES = {  # of columns, for the readers of these tables; "" leaves one out
    "ranking": {"annotator": "expert", "label": "rank", "metric": ""},
    "review": {"review": "decision"},
}


def label_rows(study: Path, *, calibration: bool = False) -> list[Row]:
    """The labels that count now, as rows of a table: `item_id`, `annotator`, `metric`, `label` and
    `study`, the hash of the study.

    Preferences, criteria and reviews have a column for each metric instead of the last two; the
    first two name the responses (`model_a`, `model_b`) and the `criterion`. A ranking gives
    `task`, `item_id`, `expert`, `system` and `rank` of the screens that somebody ranked whole, a
    review `decision` and `reason`.

    A blank label is "cannot tell". Labels on a screen that is not done yet, or was skipped later,
    count too; labels that were taken back, or are of something that is no longer asked, do not.
    The calibration round is left out unless asked for. `adjudicated` is among the annotators.
    `study` is the folder or the file in it, which is read as it is at this moment, also while it is
    served. Raises SetupError where it is no study, or the key is not there or of another one.
    """
    with snapshot(study) as store:
        return _rows(store, key_of(study, store), calibration)


@contextmanager
def snapshot(study: Path) -> Iterator[Store]:
    """A copy of the study as it is at this moment. A server that writes it is not disturbed, no
    file is made beside it, and it may lie where nobody may write. Raises SetupError."""
    file = (study if study.is_file() else study / SERVED).resolve()
    with TemporaryDirectory(prefix="judgebench-") as folder:
        copy = Path(folder) / file.name
        with read_errors(file):
            _copy(file, copy)
        try:
            store = Store(copy)
        except SetupError as error:
            raise SetupError([replace(one, file=str(file)) for one in error.problems]) from None
        with closing(store):
            yield store


def _copy(file: Path, copy: Path) -> None:
    log = file.with_name(f"{file.name}-wal")
    if log.exists():  # of a server that is running or was killed: SQLite knows what counts of it
        with (
            suppress(sqlite3.DatabaseError),  # no index of it, and none can be made: as below
            closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=30)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
            return
        shutil.copyfile(log, copy.with_name(f"{copy.name}-wal"))
    shutil.copyfile(file, copy)


def key_of(study: Path, store: Store) -> Key:
    """The key of a study. Raises SetupError where it is not there, or of another study."""
    path = study.resolve().parent.parent / KEY if study.is_file() else study / KEY
    key = read_key(path)
    if key.study != store.meta.get("study") or store.screens.keys() - key.screens.keys():
        message = "is the key of another study, or of a version before"
        allowed = str(store.meta.get("study"))
        raise SetupError(Problem(message, str(path), None, "study", key.study, allowed))
    return key


def _rows(store: Store, key: Key, calibration: bool) -> list[Row]:
    given: dict[tuple[str, str], dict[str, str | None]] = defaultdict(dict)
    for one in store.given():
        given[one.screen, one.annotator][one.field] = one.label
    place = {name: n for n, name in enumerate(store.screens)}
    rows: list[Row] = []
    for name, who in sorted(given, key=lambda at: (place[at[0]], at[1])):
        stored, labels = store.screens[name], given[name, who]
        if stored.calibration and not calibration:
            continue
        asked = [field.key for field in stored.screen.asked(labels)]
        if key.task == "ranking" and not all(map(labels.get, asked)):
            continue  # a rank means something beside all others alone
        for field in asked:
            label, target = labels.get(field), key.screens[name].get(field)
            if label is not None and target is not None:
                rows.append({**_row(target, label), "annotator": who, "study": key.study})
    if key.task in _IN_COLUMNS:
        rows = _in_columns(rows)
    names = _NAMES.get(key.task, {})
    return [{names.get(c, c): text for c, text in row.items() if names.get(c, c)} for row in rows]


def _row(target: Target, label: str) -> Row:
    """A label under the names of the data."""
    named = target.labels.get(label, label)
    return {**target.columns, "metric": target.metric, "label": named}


def _in_columns(rows: Sequence[Row]) -> list[Row]:
    """One row for all that somebody said of the same, with a column for each metric."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        about = {column: row[column] for column in row if column not in ("metric", "label")}
        found.setdefault(tuple(about.values()), about)[row["metric"]] = row["label"]
    return list(found.values())
