"""The offline sheet: the annotator's page as one file, and the events that come back from it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from judgebench.annotation.folder import open_store
from judgebench.annotation.store import Event, Store, page_of, screen_of, work_of
from judgebench.errors import Problem, SetupError
from judgebench.words import counted
from judgebench.yaml_file import Strict, load_json


class Returned(Strict):
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
    _check_annotator(store, name)
    shown = {key: screen_of(store, name, key) for key in store.assigned(name)}
    if any(one and one["screen"]["parts"] > 1 for one in shown.values()):
        message = "the task two-part has no offline sheet: it would show the assessment beforehand"
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
    found = load_json(file, Returned, "the labels of a sheet")
    with open_store(study) as store:
        if found.study != store.meta["study"]:
            raise SetupError(Problem("is of another study", str(file), None, "study", found.study))
        _check_annotator(store, found.annotator, str(file))
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


def _check_annotator(store: Store, name: str, file: str = "") -> None:
    if name not in store.annotators:
        allowed = ", ".join(store.annotators)
        raise SetupError(Problem("is no annotator", file, None, "annotator", name, allowed))
