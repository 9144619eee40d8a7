"""What the page of an annotator shows: which items, how far they are, and each screen."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from judgebench.annotation.screens import PART, Labels
from judgebench.annotation.store import Store, by_screen
from judgebench.people.page import local_page, page_script

_HERE = Path(__file__).parent


def page_of(name: str, data: Any, connect: str = "'none'") -> tuple[str, str]:
    """The page of that name with its data, and its policy, as `people.page.local_page` does."""
    script = page_script(_HERE / "asking.js", _HERE / f"{name}.js")
    return local_page(_HERE / name, script, data, connect=connect)


def work_of(store: Store, name: str) -> dict[str, Any]:
    """The study and somebody's items in their order, as JSON."""
    with store.reading():
        meta, screens, times = store.meta, store.screens, store.times(name)
        labels = by_screen(store.given(name))
        own = [(key, screens[key]) for key in store.assigned(name)]
    states = {key: stored.screen.state(labels[name, key]) for key, stored in own}
    done = [key for key, state in states.items() if state == "done"]
    return {
        "study": meta["name"], "annotator": name, "task": meta["task"],
        "guidelines": meta["guidelines"], "total": len(own), "done": len(done),
        "seconds_per_item":
            round(median(times[name, key]["ms"] for key in done) / 1000, 1) if done else None,
        "items": [
            {"id": key, "state": states[key], "calibration": stored.calibration}
            for key, stored in own
        ],
    }  # fmt: skip


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
