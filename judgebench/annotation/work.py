"""What the page of an annotator shows: which items, how far they are, and each screen; and the page
itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from judgebench.annotation.screens import Screen
from judgebench.annotation.store import Store
from judgebench.people.markdown import markdown_tree
from judgebench.people.page import local_page
from judgebench.rubric import Rubric

_HERE = Path(__file__).parent
_Said = Mapping[str, Mapping[str, Any]]


def page_of(name: str, data: Any, connect: str = "'none'") -> tuple[str, str]:
    """The page of that name with its data, and its policy, as `people.page.local_page` does."""
    data = {**data, "strings": yaml.safe_load((_HERE / "strings.yaml").read_text("utf-8"))}
    return local_page(_HERE / name, data, _HERE / "asking.js", connect=connect)


def work_of(store: Store, name: str) -> dict[str, Any]:
    """The study and somebody's items in their order, as JSON."""
    with store.reading():
        meta, times, said = store.meta, store.times(), _said_by(store, name)
        stored = {key: store.screens[key] for key in store.assigned(name)}
    items = [
        {
            "id": key,
            "round": "calibration" if one.round == "calibration" else "",
            **_item(one, said[key]),
        }
        for key, one in stored.items()
    ]
    done = [item["id"] for item in items if item["state"] == "done"]
    seconds = median(times.get((name, key), 0) for key in done) / 1000 if done else None
    return {
        "study": meta["name"], "annotator": name, "task": meta["task"],
        "guidelines": {"text": meta["guidelines"], "tree": markdown_tree(meta["guidelines"])},
        "instructions": _instructions(meta), "auto_advance": meta.get("auto_advance", False),
        "total": len(items), "done": len(done),
        "seconds_per_item": seconds and round(seconds, 1), "items": items,
    }  # fmt: skip


def screen_of(store: Store, name: str, key: str) -> dict[str, Any] | None:
    """A screen of somebody's with the labels so far, as JSON. None where it is not theirs."""
    with store.reading():
        if key not in store.assigned(name):
            return None
        return _screen(store, name, key, _said_by(store, name, key))


def assignment_of(store: Store, name: str) -> dict[str, Any]:
    """All that somebody needs to label without a connection: their work and every screen."""
    with store.reading():
        said = _said_by(store, name)
        screens = {key: _screen(store, name, key, said) for key in store.assigned(name)}
        return {"work": work_of(store, name), "screens": screens}


def _screen(store: Store, name: str, key: str, said: _Said) -> dict[str, Any]:
    screen = store.screens[key]
    shown = screen.shown_to(name, store.meta["seed"])
    return {"screen": shown, "hash": screen.hash, **_item(screen, said[key])}


def _said_by(store: Store, name: str, key: str = "") -> defaultdict[str, dict[str, Any]]:
    """The labels and the remark of somebody on each screen, and the answers of the lead."""
    said = defaultdict[str, dict[str, Any]](lambda: {"labels": {}, "remark": "", "notes": []})
    for event in store.given(name, key):
        if event.label is not None:
            said[event.screen]["labels"][event.field] = event.label
    for (annotator, screen), (remark, _) in store.remarks.items():
        if annotator == name:
            said[screen]["remark"] = remark
    for note in store.notes:
        if note["annotator"] == name:
            answer = {key: note[key] for key in ("at", "text", "sent_back")}
            said[note["screen"]]["notes"].append(answer)
    return said


def _item(screen: Screen, said: Mapping[str, Any]) -> dict[str, Any]:
    state = screen.state(said["labels"])
    is_sent_back = state != "done" and any(note["sent_back"] for note in said["notes"])
    return {**said, "state": state, "sent_back": is_sent_back}


def _instructions(meta: Mapping[str, Any]) -> dict[str, Any] | None:
    """The part of the rubric that judges read, for people; None of a ranking, whose rubric nobody
    wrote. Of two answers, labels are named as on the screen, and so not here."""
    if "rubric" not in meta or meta["task"] == "ranking":
        return None
    metrics = [
        {
            "title": metric.title,
            "question": metric.question,
            "labels": [
                {"text": label.text, "about": label.description, "examples": label.examples}
                for label in metric.labels
                if not metric.preference or label.description or label.examples
            ],
        }
        for metric in Rubric.model_validate(meta["rubric"]).metrics
    ]
    return {"text": meta["rubric"]["instructions"], "metrics": metrics}
