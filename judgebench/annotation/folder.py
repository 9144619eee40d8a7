"""The folder of a study: what the server opens, and apart from it the key."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from judgebench.annotation.store import Role, Store
from judgebench.errors import Problem, SetupError

KEY, SERVED = Path("key.json"), Path("served/study.sqlite")
LEAD = "lead"  # the name behind the lead's link
WEEK = 7 * 24 * 3600
ADDRESS = "http://127.0.0.1:8765"


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
            problem = Problem(f"cannot be read or written: {error}", str(file))
            raise SetupError(problem) from None


def known_person(store: Store, name: str, also: tuple[str, ...] = (LEAD,)) -> str:
    """The name of an annotator or, unless `also` says otherwise, of the lead. Raises SetupError for
    any other."""
    people = (*store.annotators, *also)
    if name not in people:
        problem = Problem("is not among the annotators", field=name, allowed=", ".join(people))
        raise SetupError(problem)
    return name


def link_of(store: Store, name: str) -> str:
    """A new address that lets a person in once. What follows the # never reaches a log."""
    role: Role = "lead" if known_person(store, name) == LEAD else "annotator"
    page = "/lead" if role == "lead" else "/"
    address = store.meta.get("address", ADDRESS)
    return f"{address}{page}#{store.make_link(name, role, WEEK)}"
