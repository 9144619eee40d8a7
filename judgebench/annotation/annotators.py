"""Annotators who come and go while a study runs: who labels what then."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from judgebench.annotation import assignment
from judgebench.annotation.config import check_annotators
from judgebench.annotation.store import Store, known_person
from judgebench.errors import Problem, SetupError
from judgebench.text import counted


def add_annotator(store: Store, name: str) -> list[str]:
    """Let one more person label, or somebody who had left: what everybody labels, and an even share
    of what others have not begun, the last items of each. Returns who has how many more items.
    Raises SetupError for a name that no annotator can have, or has."""
    with store.writing():
        if name in store.present:
            raise SetupError(Problem("labels already", field="name", found=name))
        others = [other for other in store.annotators if other != name]
        check_annotators([*others, name], "name")
        labelled, everybodys = store.orders.get(name, []), store.for_everybody
        common = [key for key in store.screens if key in everybodys and key not in labelled]
        freed, n_present = dict[str, list[str]](), len(store.present) + 1
        for other in store.present:
            own = [key for key in _unbegun(store, other) if key not in everybodys]
            freed[other] = own[len(own) - round(len(own) / n_present) :]
        n_common = counted(len(common), "item")
        store.set(left=[other for other in store.meta.get("left", ()) if other != name])
        store.assign({name: [*labelled, *common]})
        none = f"{name}: {n_common} that everybody labels; of others, nobody has one to give"
        return _give_to_others(store, freed) or [none]


def hand_over(store: Store, name: str) -> list[str]:
    """Give the items that somebody has not begun to the others, and no new ones to them. Labels
    stay. Returns who has how many more items. Raises SetupError for a name that is no annotator's.
    """
    with store.writing():
        known_person(store, name)
        store.set(left=sorted({*store.meta.get("left", ()), name}))
        facts = _give_to_others(store, {name: _unbegun(store, name)})
        return facts or ["no item goes to somebody else"]


def _unbegun(store: Store, name: str) -> list[str]:
    screens = store.screens
    return [
        key for key in store.assigned(name) if screens[key].state(store.labels(name, key)) == "new"
    ]


def _give_to_others(store: Store, freed: Mapping[str, Collection[str]]) -> list[str]:
    """Take these items from those who have them, and share them among all who are present."""
    common, people, meta = store.for_everybody, store.present, store.meta
    orders = {
        name: [key for key in own if key not in freed.get(name, ())]
        for name, own in store.orders.items()
    }
    # The server does not know systems: items of one question are all that it can keep apart.
    strata = {
        key: ("", store.screens[key].group)
        for keys in freed.values()
        for key in keys
        if key not in common
    }
    extended = assignment.extend(orders, strata, common, people, meta["per_item"], meta["seed"])
    store.assign(extended)
    n_more = {name: len(extended[name]) - len(orders[name]) for name in people}
    return [f"{name}: {counted(n, 'more item', 'more items')}" for name, n in n_more.items() if n]
