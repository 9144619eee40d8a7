"""Annotators who come and go while a study runs: who labels what then."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from typing import NamedTuple

from judgebench.annotation import assignment
from judgebench.annotation.config import check_reserved
from judgebench.annotation.store import Store, known_person
from judgebench.errors import Problem, SetupError
from judgebench.people.page import check_people
from judgebench.text import counted


class Seat(NamedTuple):
    """An item that an annotator has not begun, and that others could label."""

    annotator: str
    screen: str


def add_annotator(store: Store, name: str) -> list[str]:
    """Let one more person label, or somebody who had left: what everybody labels, and an even share
    of what others have not begun, the last items of each. Returns who has how many more items.
    Raises SetupError for a name that no annotator can have, or has."""
    with store.writing():
        if name in store.present:
            raise SetupError(Problem("labels already", field="name", found=name))
        check_people([name], "name")
        check_reserved([name])
        labelled, n_present = store.orders.get(name, []), len(store.present) + 1
        common = [
            key for key in store.screens if key in store.for_everybody and key not in labelled
        ]
        by_annotator = defaultdict[str, list[Seat]](list)
        for seat in _unbegun(store, store.present):
            by_annotator[seat.annotator].append(seat)
        seats = [
            seat
            for own in by_annotator.values()
            for seat in own[len(own) - round(len(own) / n_present) :]
        ]
        store.set(left=[other for other in store.meta.get("left", ()) if other != name])
        store.assign({name: [*labelled, *common]})
        return _give_to_others(store, seats)


def hand_over(store: Store, name: str) -> list[str]:
    """Give the items that somebody has not begun to the others, and no new ones to them. Labels
    stay. Returns who has how many more items. Raises SetupError for a name that is no annotator's.
    """
    with store.writing():
        known_person(store, name, also=())
        store.set(left=sorted({*store.meta.get("left", ()), name}))
        seats = [*_unbegun(store, [name])]
        begun = {key for key in store.orders[name] if store.labels(name, key)}
        common = store.for_everybody - begun
        store.assign({name: [key for key in store.orders[name] if key not in common]})
        return _give_to_others(store, seats)


def _unbegun(store: Store, names: Collection[str]) -> Iterator[Seat]:
    common, screens = store.for_everybody, store.screens
    for name in names:
        for key in store.assigned(name):
            state = screens[key].screen.state(store.labels(name, key))
            if key not in common and state == "new":
                yield Seat(name, key)


def _give_to_others(store: Store, seats: Collection[Seat]) -> list[str]:
    """Take these items from those who have them, and share them among all who are present."""
    orders, people = store.orders, store.present
    for seat in seats:
        orders[seat.annotator].remove(seat.screen)
    freed = {seat.screen for seat in seats}
    # The server does not know systems: items of one question are all that it can keep apart.
    strata = {key: ("", store.screens[key].screen.group) for key in freed}
    given, seed = annotators_by_item(orders, store.for_everybody), store.meta["seed"]
    filled = assignment.fill(strata, given, people, store.meta["per_item"], seed)
    more = Counter[str]()
    for name in people:
        new = [key for key in freed if name in filled[key] and name not in given.get(key, ())]
        orders[name] += assignment.order(new, strata, name, seed)
        more[name] = len(new)
    store.assign(orders)
    facts = [f"{name}: {counted(n, 'more item', 'more items')}" for name, n in more.items() if n]
    return facts or ["no item goes to somebody else"]


def annotators_by_item(
    orders: dict[str, list[str]], common: Collection[str]
) -> dict[str, list[str]]:
    """The annotators of each item but those that are `common` to everybody."""
    annotators = defaultdict[str, list[str]](list)
    for name, screens in orders.items():
        for screen in screens:
            if screen not in common:
                annotators[screen].append(name)
    return annotators
