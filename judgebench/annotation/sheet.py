"""The offline sheet: an annotator's page as one file, and the labels that come back from it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Literal

from judgebench.annotation.store import Event, Store, known_person, open_store
from judgebench.annotation.work import assignment_of, page_of
from judgebench.errors import Problem, SetupError
from judgebench.files import StrictModel, load_json
from judgebench.text import counted

_KIND = "judgebench annotation events"


class Returned(StrictModel):
    """The file that a sheet saves."""

    kind: Literal["judgebench annotation events"]
    study: str
    annotator: str
    events: tuple[Event, ...]


def sheet(store: Store, name: str) -> str:
    """The page of an annotator as one file that talks to nobody. It holds the screens and labels of
    this person, and nothing of others. Raises SetupError for somebody who is no annotator."""
    known_person(store, name)
    back = {"kind": _KIND, "study": store.meta["study"], "annotator": name, "events": []}
    own = assignment_of(store, name)
    text = str(own)
    pictures = {
        one.name: f"data:{one.kind};base64,{base64.b64encode(one.content).decode()}"
        for one in store.pictures
        if one.name in text
    }
    return page_of("annotate", {"sheet": {**own, "back": back, "pictures": pictures}})[0]


def import_events(study: Path, file: Path) -> tuple[str, list[str]]:
    """Keep the events that a sheet has saved, and say how many are new, and which are refused and
    why. A second time changes nothing.

    Raises SetupError with every problem of the file, by event and field; nothing is kept then.
    """
    if not file.exists():
        raise SetupError(Problem("no such file", str(file)))
    returned = load_json(file, Returned, "what a page of `judgebench annotate sheet` saved")
    name, events = returned.annotator, returned.events
    with open_store(study) as store:
        if returned.study != store.meta["study"]:
            wrong = Problem("is of another study", str(file), None, "study", returned.study)
            raise SetupError(wrong)
        known_person(store, name)
        before = store.n_events
        saved = store.save(name, events)
        n_new = store.n_events - before
    refused = [
        f"event {n} ({e.screen}, {e.field or 'item'}: {e.label!r}): {saved.refused[e.client_id]}"
        for n, e in enumerate(events, 1)
        if e.client_id in saved.refused
    ]
    n_kept = len(saved.saved) - n_new
    return f"{name}: {counted(n_new, 'new label')} taken, {n_kept:,} were there already", refused
