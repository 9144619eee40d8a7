"""Tables that come out of a study (labels, ranks or decisions under the names of the data), and the
offline sheet."""

from __future__ import annotations

import json
import sqlite3
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from judgebench.annotation.assignment import Key, Target, read_key
from judgebench.annotation.screens import SPANS, Screen, spans_in
from judgebench.annotation.store import (
    GOLD,
    KEY,
    ROUNDS,
    Event,
    Store,
    by_screen,
    known_person,
    open_store,
    page_of,
    screen_of,
    served_file,
    work_of,
)
from judgebench.data.formats import quoted, to_csv
from judgebench.errors import Problem, SetupError
from judgebench.files import (
    StrictModel,
    all_or_nothing,
    disk_errors,
    load_json,
    to_line,
    write_atomically,
)
from judgebench.records import ADJUDICATED, COLLECTED
from judgebench.rubric import Rubric
from judgebench.text import counted

Row = dict[str, str]
_IN_COLUMNS = ("preference", "criteria", "review")  # a column for each metric
_FILES = {"ranking": "ranks.csv", "review": "decisions.csv"}  # else labels.csv
_BLIND = {"review": "no"}  # the text may be a model's verdict; no other task shows one
_NAMES = {  # of columns, for the readers of these tables; "" leaves one out
    "ranking": {"annotator": "expert", "label": "rank", "metric": "", "made_blind": ""},
    "review": {"review": "decision"},
}


def label_rows(study: Path, *, calibration: bool = False) -> list[Row]:
    """The labels that count now: `item_id`, `annotator`, `metric`, `label`, `study` (its hash),
    and `made_blind`: `yes` where they were made without sight of any model's label.

    Preferences (`model_a`, `model_b`), criteria (`criterion`) and reviews (`decision`, `reason`)
    have a column for each metric; a ranking has `task`, `expert`, `system` and `rank`, of what
    an annotator ranked whole. A blank is "cannot tell". Labels on a screen that is not done or
    skipped count; what was taken back or is no longer asked does not. The lead's are of
    `adjudicated`, also those on the calibration round. Labels of gold items that are not among the
    items are left out. `spans` (JSON), where the study asks for them, are the words that somebody
    marked as the reason. Raises SetupError where there is no study,
    or no key of it.
    """
    with snapshot(study) as store:
        chosen = _screens(store, *_rounds(calibration))
        return rows_of(store, key_of(store), chosen, adjudicated=True)


def table_rows(path: Path) -> list[Row]:
    """The labels of a study that stands where a table of labels may. Raises SetupError."""
    rows = label_rows(path)
    if not rows:
        raise SetupError(Problem("holds no label yet", str(path)))
    if not rows[0].keys().isdisjoint(("rank", "decision")):
        message = "is no study of labels: `judgebench annotate export` writes what it holds"
        raise SetupError(Problem(message, str(path)))
    return rows


def rubric_of(path: Path) -> Rubric | None:
    """The rubric of a study, under the study's name, given its folder or its file. Raises
    SetupError."""
    with snapshot(path) as store:
        asked = store.meta.get("rubric")
        name = {"name": store.meta["name"]}  # of what is decided on, whatever rubric it borrows
    return Rubric.model_validate(asked).model_copy(update=name) if asked else None


def collected_as(path: Path) -> list[str]:
    """Say how the labels of a study were collected, given its folder or its file: sentences that
    begin as `records.COLLECTED` does; none of adjudicated labels. Raises SetupError."""
    with snapshot(path) as store:
        meta, n_items, annotators = store.meta, len(_screens(store, "main")), store.annotators
    if annotators == GOLD:
        return []
    looks = ", ".join(map(str, meta["looks"])) or "none"
    sentences = {
        "plan": f"{counted(n_items, 'item')}, each for {meta['per_item']} of {len(annotators)} "
        f"annotators; {meta['calibration']} more for all, as calibration; interim analyses at so "
        f"many items: {looks}",
        "rating_process": "judgebench annotate, with an order of each annotator's own, on pages "
        "that named no system and showed no verdict, and nobody else's label before theirs",
        "background": meta["background"].rstrip("."),
    }
    return [f"{COLLECTED[fact]}{text}." for fact, text in sentences.items() if text]


def snapshot(study: Path) -> closing[Store]:
    """The study as it is now, given its folder or its file, in memory: a server that writes it is
    not disturbed, and no file is made where it lies. Raises SetupError."""
    file = served_file(study).resolve()
    if not file.is_file():
        made = "no such file: `judgebench annotate init` makes a study"
        raise SetupError(Problem(made, str(file)))
    copy = sqlite3.connect(":memory:")
    # Without a log nobody writes it. With one, SQLite knows what of it counts, also after a kill.
    how = "mode=ro" + "&immutable=1" * (not file.with_name(f"{file.name}-wal").exists())
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?{how}", uri=True, timeout=30)) as source:
            source.backup(copy)
    except sqlite3.DatabaseError as error:
        raise SetupError(Problem(f"is no annotation study: {error}", str(file))) from None
    return closing(Store(file, copy))


def backup(study: Path, to: Path) -> str:
    """Write a copy of the study's file as it is now, also while it is served, and say what it
    holds. Raises SetupError where there is no study, and where the file is there already."""
    with snapshot(study) as store, disk_errors(to), all_or_nothing(to.parent, [to]):
        write_atomically(to, store.to_bytes())
        events = counted(int(store.rows("SELECT count(*) FROM events")[0][0]), "event")
    return f"{to}: {events}. Keep {KEY} as well: without it no label can be read"


def key_of(store: Store) -> Key:
    """The key of a study. Raises SetupError where it is not there, or of another study."""
    path, own = store.path.parents[1] / KEY, str(store.meta.get("study"))
    key = read_key(path)
    if key.study != own or store.screens.keys() - key.screens.keys():
        message = "is the key of another study, or of a version before"
        raise SetupError(Problem(message, str(path), None, "study", key.study, own))
    return key


def _screens(store: Store, *rounds: str) -> set[str]:
    return {name for name, one in store.screens.items() if one.round in rounds}


def _rounds(calibration: bool) -> Sequence[str]:
    return ROUNDS[: 1 + calibration]


def rows_of(
    store: Store, key: Key, screens: Collection[str], adjudicated: bool = False
) -> list[Row]:
    """`label_rows` of these screens; where `adjudicated`, with what the lead said of others."""
    rows: list[Row] = []
    spans = store.meta.get("spans")
    # Whoever adjudicates may have seen a judge's label among those in question.
    blind = {} if store.annotators == GOLD else {"made_blind": _BLIND.get(key.task, "yes")}
    lead = {ADJUDICATED} if adjudicated else {}
    kept = (one for one in store.given() if one.screen in screens or one.annotator in lead)
    given = by_screen(kept)
    for (who, name), labels in sorted(given.items(), key=lambda at: at[0][::-1]):
        asked = [field.key for field in store.screens[name].screen.asked(labels)]
        if key.task == "ranking" and (who == ADJUDICATED or not all(map(labels.get, asked))):
            continue  # a rank means something beside all others of one expert
        for field in asked:
            label, target = labels.get(field), key.screens[name].get(field)
            if label is not None and target is not None:
                said = {"metric": target.metric, "label": target.labels.get(label, label)}
                if spans:
                    said["spans"] = _spans(store.screens[name].screen, labels.get(SPANS + field))
                rows.append(
                    {**target.columns, "annotator": who, **blind, **said, "study": key.study}
                )
    rows = _in_columns(rows) if key.task in _IN_COLUMNS else rows
    names = _NAMES.get(key.task, {})
    return [{names.get(c, c): text for c, text in row.items() if names.get(c, c)} for row in rows]


def _spans(screen: Screen, said: str | None) -> str:
    found = spans_in(screen, said)
    return json.dumps(found, ensure_ascii=False) if found else ""


def _in_columns(rows: Sequence[Row]) -> list[Row]:
    """One row for all that somebody said of the same, with a column for each metric."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        about = {column: row[column] for column in row if column not in ("metric", "label")}
        found.setdefault(tuple(about.values()), about)[row["metric"]] = row["label"]
    return list(found.values())


def _events(store: Store, key: Key) -> Iterator[dict[str, Any]]:
    """Every event; `item_id` of the whole screen is that of its last field."""
    for event in map(dict, store.rows("SELECT * FROM events ORDER BY n")):
        targets = key.screens[event["screen"]]
        whole = {"item_id": [*targets.values()][-1].columns["item_id"]}
        target = targets.get(event["field"], Target(columns=whole, metric=""))
        label = target.labels.get(event["label"], event["label"])
        yield {"study": key.study, **target.columns, **event, "label": label}


def export(
    study: Path, to: Path | None = None, *, calibration: bool = False, events: bool = False
) -> list[str]:
    """Write `label_rows` as a table, or the log of all `events` as JSONL, by default into the
    folder of the study. Returns in words what was written and what was left out. Raises SetupError
    where there is nothing to write, or the file is something else, which is not overwritten."""
    with snapshot(study) as store:
        key, chosen = key_of(store), _screens(store, *_rounds(calibration))
        labels = rows_of(store, key, chosen, adjudicated=True)
        rows = [*_events(store, key)] if events else labels
        others = (name for name in ROUNDS if name not in _rounds(calibration))
        more = {name: chosen | _screens(store, name) for name in others}
        left = {
            name: len(rows_of(store, key, screens, adjudicated=True)) - len(labels)
            for name, screens in more.items()
        }
        now = {(one.annotator, one.screen, one.field) for one in store.given()}
        sql = "SELECT DISTINCT annotator, screen, field FROM latest WHERE label IS NOT NULL"
        label_table = "LABELS.csv " if store.annotators == GOLD else ""
        ever = {tuple(row) for row in store.rows(f"{sql} AND field NOT IN ('', 'part')")}
    gone = {
        "of the calibration round (--calibration)": left.get("calibration", 0),
        "of gold items that are not among the items": left["gold"],
        "of what has changed": len(ever - now),
    }
    left_out = [f"left out: {counted(n, 'label')} {why}" for why, n in gone.items() if n]
    if not rows:
        raise SetupError([Problem("holds nothing to export", str(study)), *map(Problem, left_out)])
    name = "events.jsonl" if events else _FILES.get(key.task, "labels.csv")
    file = to or store.path.parents[1] / name
    content = "".join(map(to_line, rows)).encode() if events else _table(rows, key)
    with disk_errors(file):
        if file.exists() and b'"study"' not in file.open("rb").readline():
            raise SetupError(Problem("is no export, and is not overwritten", str(file)))
        write_atomically(file, content)
    if events:
        return [f"{file}: {counted(len(rows), 'event')}"]
    data = (
        f"Next: judgebench decide {label_table}{quote(str(study))} VERDICTS.csv; or name the file "
        "under `data` of a bench.yaml, beside the answers"
    )
    then = {
        "ranking": f"Next: judgebench rank suitability {file}",
        "review": "Next: keep what is accepted",
    }
    return [f"{file}: {counted(len(rows), 'row')}", *left_out, then.get(key.task, data)]


def _table(rows: Sequence[Row], key: Key) -> bytes:
    """As CSV. What people read is safe to open as a spreadsheet; data has its texts as they are."""
    columns = [*dict.fromkeys(c for row in rows for c in row if c != "study"), "study"]
    texts = [[row.get(column, "") for column in columns] for row in rows]
    if key.task in _FILES:
        return to_csv(columns, [[*map(quoted, row)] for row in texts])
    return to_csv(columns, texts).removeprefix(BOM_UTF8)


# --- the offline sheet: an annotator's page as one file, and the events that come back from it ----


class Returned(StrictModel):
    """The file that a sheet saves."""

    kind: Literal["judgebench annotation events"]
    study: str
    annotator: str
    events: tuple[Event, ...]


def sheet(store: Store, name: str) -> str:
    """The page of an annotator as one file that talks to nobody. It holds the screens and labels of
    this person, and nothing of others.

    Raises SetupError for somebody who is no annotator, and where a second part is to be kept back.
    """
    known_person(store, name, also=())
    shown = {key: screen_of(store, name, key) for key in store.assigned(name)}
    if any(one and one["screen"]["parts"] > 1 for one in shown.values()):
        what = "the known labels" if store.meta.get("gold") else "the assessment"
        message = f"has no offline sheet: it would show {what} beforehand"
        raise SetupError(Problem(message, str(store.path)))
    kind, study = "judgebench annotation events", store.meta["study"]
    back = {"kind": kind, "study": study, "annotator": name, "events": []}
    data = {"work": work_of(store, name), "screens": shown, "back": back}
    return page_of("annotate", {"sheet": data})[0]


def import_events(study: Path, file: Path) -> tuple[str, list[str]]:
    """Keep the events that a sheet has saved, and say how many are new, and which are refused and
    why. A second time changes nothing.

    Raises SetupError with every problem of the file, by event and field; nothing is kept then.
    """
    if not file.exists():
        raise SetupError(Problem("no such file", str(file)))
    try:
        found = load_json(file, Returned, "the labels of a sheet")
    except SetupError as error:
        takes = "what a page of `judgebench annotate sheet` saved: NAME.events.json"
        raise SetupError([
            replace(one, allowed=takes) if "JSON" in one.message else one for one in error.problems
        ]) from None  # fmt: skip
    with open_store(study) as store:
        if found.study != store.meta["study"]:
            raise SetupError(Problem("is of another study", str(file), None, "study", found.study))
        known_person(store, found.annotator, also=())
        sql = "SELECT client_id FROM events WHERE annotator = ?"
        before = {row["client_id"] for row in store.rows(sql, found.annotator)}
        saved = store.save([(found.annotator, found.events)])[0]
        new = len({*saved.saved} - before)
    refused = [
        f"event {n} ({e.screen}, {e.field or 'item'}: {e.label!r}): {saved.refused[e.client_id]}"
        for n, e in enumerate(found.events, 1)
        if e.client_id in saved.refused
    ]
    known = len(saved.saved) - new
    return f"{found.annotator}: {counted(new, 'new event')}, {known} there already", refused
