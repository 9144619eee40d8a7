"""The offline sheet: the annotator's page as one file, and the events that come back from it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from judgebench.annotate.folder import open_store
from judgebench.annotate.store import Event, Given, Store
from judgebench.errors import Problem, SetupError
from judgebench.files import open_bytes, read_errors, read_object
from judgebench.web.page import local_page, page_script
from judgebench.yaml_file import Strict, validate

_PAGE = Path(__file__).with_name("annotate")
_KIND: Literal["judgebench annotation events"] = "judgebench annotation events"


class Returned(Strict):
    """The file that a sheet saves."""

    kind: Literal["judgebench annotation events"]
    study: str
    annotator: str
    events: tuple[Event, ...]


@dataclass(frozen=True)
class Imported:
    """How many events of an annotator were new, how many were there already, and what was refused:
    the event's number in the file, its item and field, and why."""

    annotator: str
    new: int
    known: int
    refused: tuple[str, ...]


def sheet(store: Store, name: str) -> tuple[str, int]:
    """The page of an annotator as one file that talks to nobody, and how many items are on it.

    It holds this person's screens and labels, and nobody else's. Raises SetupError for somebody who
    is no annotator, and where a second part must not be in a file.
    """
    meta, screens = store.meta, store.screens
    _check_annotator(store, name)
    ids, given = store.assigned(name), defaultdict[str, list[Given]](list)
    if any(screens[key].screen.parts > 1 for key in ids):
        message = "the task two-part has no offline sheet: it would show the assessment beforehand"
        raise SetupError(Problem(message, str(store.path)))
    for one in store.given(name):
        given[one.screen].append(one)
    items, shown = list[dict[str, Any]](), {}
    for key in ids:
        screen = screens[key].screen
        labels = {one.field: one.label for one in given[key] if one.label is not None}
        remark = given[key][-1].remark if given[key] else ""
        seen = screen.shown_to(name, meta.get("seed", 0))
        shown[key] = {"screen": seen, "hash": screen.hash, "labels": labels, "remark": remark}
        state, calibration = screen.state(labels), screens[key].calibration
        items.append({"id": key, "state": state, "calibration": calibration})
    own = {"study": meta.get("name", ""), "annotator": name, "guidelines": meta.get("guidelines")}
    back = {"kind": _KIND, "study": meta.get("study", ""), "annotator": name, "events": []}
    data = {"work": {**own, "items": items}, "screens": shown, "back": back}
    script = page_script(_PAGE.with_suffix(".js"))
    return local_page(_PAGE, script, {"sheet": data})[0], len(items)


def import_events(study: Path, file: Path) -> Imported:
    """Keep the events that a sheet has saved; a second time changes nothing.

    Raises SetupError with every problem of the file, by event and field; nothing is kept then.
    """
    with read_errors(file), open_bytes(file) as opened:
        found = validate(read_object(opened.read(), file), Returned, str(file))
    with open_store(study) as store:
        if found.study != store.meta.get("study", ""):
            raise SetupError(Problem("is of another study", str(file), None, "study", found.study))
        _check_annotator(store, found.annotator, str(file))
        before = store.rows("SELECT client_id FROM events WHERE annotator = ?", found.annotator)
        saved = store.save([(found.annotator, found.events)])[0]
    known = {row["client_id"] for row in before} & set(saved.saved)
    refused = [
        f"event {n} ({e.screen}, {e.field or 'item'}): {saved.refused[e.client_id]}"
        for n, e in enumerate(found.events, 1)
        if e.client_id in saved.refused
    ]
    return Imported(found.annotator, len(saved.saved) - len(known), len(known), tuple(refused))


def _check_annotator(store: Store, name: str, file: str = "") -> None:
    if name not in store.annotators:
        allowed = ", ".join(store.annotators)
        raise SetupError(Problem("is no annotator", file, None, "annotator", name, allowed))
