"""A study is made, goes on with other items, or loses an annotator."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from judgebench.annotation import assignment
from judgebench.annotation.assignment import Built, Key, asked_of, build, item_of, secret_of
from judgebench.annotation.config import Setup, load_setup
from judgebench.annotation.export import key_of
from judgebench.annotation.screens import Gold
from judgebench.annotation.store import (
    ALSO_GOLD,
    KEY,
    LEAD,
    ROUNDS,
    SERVED,
    Store,
    known_person,
    link_of,
    open_store,
)
from judgebench.data.formats import mark_forbidden
from judgebench.errors import Problem, SetupError, raise_any, some
from judgebench.files import disk_errors, to_bytes, write_atomically
from judgebench.records import content_hash
from judgebench.text import counted

_FIXED = ("name", "task", "per_item", "calibration", "looks")  # figures rest on these
_ASK_BACKGROUND = (
    "Who are the annotators, with which training and experience? Reports ask for it: say it under "
    "`background`, also later (--new-version)."
)


@dataclass(frozen=True, repr=False)
class SetupReport:
    """A report of what was done to a study, in words, and the links by which people come in."""

    study: Path
    facts: tuple[str, ...]
    links: Mapping[str, str]

    def __repr__(self) -> str:
        links = [f"  {name}: {link}" for name, link in self.links.items()]
        told = ["Links, each for one person; each works once:", *links] if links else []
        following = [f"Next: judgebench annotate serve {self.study}"] if LEAD in self.links else []
        return "\n".join([*self.facts, *told, *following])


def annotate(file: str | Path, to: str | Path, *, new_version: bool = False) -> SetupReport:
    """Make the study in which people label the items of an annotate.yaml, or of a bench.yaml with
    the key `annotate`: blind screens, who labels what, and a link for everybody.

    With `new_version` the folder holds the study already, and goes on with the items as they are
    now: labels count as long as text and question stay the same. Raises SetupError with every
    problem; nothing is written then.

    >>> import judgebench as jb
    >>> made = jb.annotate("annotate.yaml", "studies/labels")
    >>> sorted(path.name for path in made.study.iterdir())
    ['key.json', 'served']
    """
    setup, folder = load_setup(Path(file)), Path(to)
    if new_version:
        return _renew(setup, folder)
    if there := [path for path in (folder / KEY, folder / SERVED) if path.exists()]:
        allowed = "another folder, or --new-version, which keeps the labels"
        raise SetupError(Problem("a study is there already", str(there[0]), allowed=allowed))
    key, built = named_screens(setup)
    plan, names = planned(setup, built), setup.config.annotators
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with disk_errors(folder), TemporaryDirectory(prefix=".study-", dir=folder.parent) as half:
        _write_key(Path(half), key)
        with closing(Store.create(Path(half) / SERVED, _meta(setup, key, built))) as store:
            store.put(
                [one.screen for one in built.values()], _rounds(setup, built, plan.calibration)
            )
            store.assign(plan.orders)
            links = {name: link_of(store, name) for name in (*names, LEAD)}
        folder.mkdir(exist_ok=True)
        for path in (KEY, SERVED.parent):
            os.rename(Path(half) / path, folder / path)
    items = len(built) - len(_gold(setup, built))
    rows = setup.dataset.answers
    asked = setup.config.task != "labels" or any(row.question or row.turns for row in rows)
    n = len(plan.calibration)
    first = f"{n} of them for everybody first (calibration), the others" if n else "each"
    facts = [
        *map(str, setup.dataset.warnings),
        f"{counted(items, 'item')}, {first} for {setup.config.per_item} of {len(names)} annotators",
        *_gold_in_words(setup, built, plan),
        *(() if asked else ["the page shows answers alone: no column holds questions"]),
        *(f"{name}: {counted(len(plan.orders[name]), 'item')}" for name in names),
        f"Items that two annotators share{', without calibration' * bool(n)}:",
        *assignment.overlap_lines(plan.given, names),
        *([] if setup.config.background else [_ASK_BACKGROUND]),
    ]
    return SetupReport(folder, tuple(facts), links)


def named_screens(setup: Setup, known: Key | None = None) -> tuple[Key, dict[str, Built]]:
    """The key of a study and its screens by id. Entries of an earlier key stay, and so do the ids
    of its items. Raises SetupError with every item that no screen can show."""
    before = known.screens if known else {}
    secret = known.secret if known else secret_of(setup)
    ids = {item_of(targets): name for name, targets in before.items()}
    built, screens = dict[str, Built](), dict(before)
    for one in build(setup, secret):
        name = ids.setdefault(item_of(one.targets), f"s{len(ids) + 1:04}")
        built[name] = replace(one, screen=one.screen.model_copy(update={"id": name}))
        gone = {k: v for k, v in before.get(name, {}).items() if k not in one.targets}
        screens[name] = {**gone, **one.targets}
    shown = {name: one.screen.hash for name, one in built.items()}
    study = known.study if known else content_hash([setup.config.model_dump(mode="json"), shown])
    return Key(study=study, task=setup.config.task, secret=secret, screens=screens), built


def planned(setup: Setup, built: Mapping[str, Built]) -> assignment.Assignment:
    """The assignment of all screens. Raises SetupError with every setting that does not fit the
    items."""
    config, problems = setup.config, list[Problem]()
    gold = _gold(setup, built)
    main = sum(name not in gold or gold[name].own for name in built)
    left, last = main - config.calibration, max(config.looks, default=0)
    if last > left >= 0:
        allowed = f"at most {left:,}, the items without calibration"
        problems.append(Problem("cannot be met", "", None, "looks", str(last), allowed))
    sizes = (config.per_item, config.calibration, config.seed)
    others = {name: one for name, one in built.items() if name not in gold}
    try:
        plan = assignment.assign(_strata(others), config.annotators, *sizes)
    except SetupError as error:
        problems += error.problems
    raise_any([replace(problem, file=str(setup.file)) for problem in problems])
    n = config.calibration
    orders = {
        name: (*own[:n], *assignment.mix(own[n:], _among(gold), config.seed, name))
        for name, own in plan.orders.items()
    }
    first = tuple(name for name, known in gold.items() if known.first)
    return replace(plan, orders={name: first + own for name, own in orders.items()})


def _gold(setup: Setup, built: Mapping[str, Built]) -> dict[str, Gold]:
    """What is known of screens, in the order of the table of gold items."""
    if not setup.gold:
        return {}
    screens = {item_of(one.targets)[-1]: name for name, one in built.items()}
    return {screens[item]: known for item, known in setup.gold.items()}


def _among(gold: Mapping[str, Gold]) -> list[str]:
    return [name for name, known in gold.items() if not known.first]


def _rounds(setup: Setup, built: Mapping[str, Built], calibration: Iterable[str]) -> dict[str, int]:
    """The rounds of the screens for everybody, as the file keeps them."""
    only = ROUNDS.index("gold")
    codes = {name: ALSO_GOLD if g.own else only for name, g in _gold(setup, built).items()}
    return dict.fromkeys(calibration, ROUNDS.index("calibration")) | codes


def _gold_in_words(
    setup: Setup, built: Mapping[str, Built], plan: assignment.Assignment
) -> Iterator[str]:
    if not (gold := _gold(setup, built)):
        return
    n, first = len(gold), len(gold) - len(_among(gold))
    most = max(len(own) for own in plan.orders.values())
    yield (
        f"{counted(n, 'gold item')} for everybody, {100 * n / most:.0f} % of the items of each: "
        f"{first} at first (qualification round), {n - first} among the others"
    )


def _strata(built: Mapping[str, Built]) -> dict[str, tuple[str, str]]:
    return {name: (one.systems, one.question) for name, one in built.items()}


def _meta(setup: Setup, key: Key, built: Mapping[str, Built]) -> dict[str, Any]:
    """The facts of the study that the served file holds besides its screens. Known labels are among
    them: the lead's page counts who found them."""
    config, rubric = setup.config, asked_of(setup).model_copy(update={"source": ""})
    return {
        **config.model_dump(mode="json", include={*_FIXED}),
        "seed": int(content_hash([config.seed, config.name])[:8], 16),
        "guidelines": mark_forbidden(setup.guidelines),
        "background": config.background,
        "auto_advance": config.auto_advance,
        "spans": config.spans,
        "gold": {name: asdict(known) for name, known in _gold(setup, built).items()},
        "rubric": rubric.model_dump(mode="json"),
        "study": key.study,
        "left": [],  # who gets no items any more
    }


def _write_key(folder: Path, key: Key) -> None:
    write_atomically(folder / KEY, to_bytes(key.model_dump(mode="json")))
    (folder / KEY).chmod(0o600)


# --- a running study ------------------------------------------------------------------------------


def _renew(setup: Setup, folder: Path) -> SetupReport:
    """The study with its items as they are now."""
    with open_store(folder) as store, store.writing():
        _check_fixed(setup, store)
        known = key_of(store)
        key, built = named_screens(setup, known)
        now, before = store.screens, _counting(store)
        gone, gold = now.keys() - built.keys(), _gold(setup, built)
        calibration = ROUNDS.index("calibration")
        drawn = [name for name, n in store.for_everybody.items() if n == calibration]
        rounds = _rounds(setup, built, drawn)
        first = rounds.keys()
        put = [
            one.screen
            for name, one in built.items()
            if name not in now
            or now[name].screen.hash != one.screen.hash
            or now[name].kept != rounds.get(name, 0)
        ]
        absent = store.absent
        people = [n for n in setup.config.annotators if n not in absent]
        added = [name for name in people if name not in store.annotators]
        orders = store.orders
        begin = [name for name in sorted(first - gold.keys()) if name in built]
        orders |= dict.fromkeys(added, begin)
        strata = {name: at for name, at in _strata(built).items() if name not in first}
        per_item, seed = setup.config.per_item, setup.config.seed
        given = assignment.extend(strata, _given(orders, first), people, per_item, seed)
        for name in people:
            new = [screen for screen, names in given.items() if name in names]
            own, more = assignment.order(new, strata, name, seed), gold.keys() - orders[name]
            sooner = [screen for screen in gold if screen in more and gold[screen].first]
            later = assignment.mix(own, more.difference(sooner), seed, name)
            orders[name] = [*(sooner if name in added else ()), *orders[name], *later]
            orders[name] += sooner if name not in added else ()
        _write_key(folder, key)
        store.assign(orders)
        told = ("guidelines", "background", "rubric", "auto_advance", "spans", "gold")
        said = {k: v for k, v in _meta(setup, key, built).items() if k in told}
        if put or gone or any(store.meta.get(name) != value for name, value in said.items()):
            store.set(**said)
            store.put(put, rounds, gone)
        fresh = sum(screen.id not in known.screens for screen in put)
        labels = counted(len(people), "label")
        few = f"new items get {labels} each, not {per_item}: too few annotators are left"
        facts = (
            f"version {store.version}: {counted(len(built) - len(put), 'item')} unchanged, "
            f"{len(put) - fresh} changed, {fresh} new, {len(gone)} gone",
            f"{_counting(store)} of {counted(before, 'label')} count on; all are kept",
            *(f"{name}: {counted(len(orders[name]), 'item')}" for name in added),
            *([few] if fresh and len(people) < per_item else ()),
        )
        return SetupReport(folder, facts, {name: link_of(store, name) for name in added})


def _check_fixed(setup: Setup, store: Store) -> None:
    """Raises SetupError for what cannot change while a study runs."""
    config, file, meta = setup.config.model_dump(mode="json"), str(setup.file), store.meta
    problems = [
        Problem("cannot change now", file, None, n, str(config[n]), str(meta[n]))
        for n in _FIXED
        if config[n] != meta[n]
    ]
    message = "still has items, which `judgebench annotate reassign` gives to others"
    problems += [
        Problem(f"{message}; `revoke` ends the access", file, None, "annotators", name)
        for name in {*store.annotators} - {*config["annotators"], *meta["left"]}
    ]
    if not {*config["annotators"]} - store.absent:
        message = "have all left: name somebody who labels, or `link` somebody who is revoked"
        problems.append(Problem(message, file, None, "annotators"))
    raise_any(problems)


def _counting(store: Store) -> int:
    """The number of labels that count."""
    return sum(given.label is not None and bool(given.field) for given in store.given())


def _given(orders: Mapping[str, Iterable[str]], first: Set[str]) -> dict[str, list[str]]:
    """The annotators of each screen but the `first` ones, which are for everybody."""
    found = defaultdict[str, list[str]](list)
    for name, screens in orders.items():
        for screen in (screen for screen in screens if screen not in first):
            found[screen].append(name)
    return found


def reassign(study: str | Path, name: str) -> SetupReport:
    """Give the items that somebody has not begun to others, and no new ones to them. Nobody who has
    left or is revoked gets any. Raises SetupError for a name that is no annotator's."""
    with open_store(Path(study)) as store, store.writing():
        known_person(store, name, also=())
        orders, first = store.orders, store.for_everybody.keys()
        left, screens = {*store.meta["left"], name}, store.screens
        own = ((n, screens[n].screen.state(store.labels(name, n))) for n in store.assigned(name))
        new = {n for n, state in own if state == "new"}
        people = [other for other in orders if other not in left | store.absent]
        given, seed = _given(orders, first), store.meta["seed"]
        moved, nobody = assignment.reassign(given, name, new - first, people, seed)
        for screen, other in moved.items():
            orders[other].append(screen)
        orders[name] = [n for n in orders[name] if n not in moved and n not in new & first]
        store.set(left=sorted(left))
        store.assign(orders)
    facts = [
        f"{other}: {counted(n, 'more item', 'more items')}"
        for other, n in Counter(moved.values()).items()
    ]
    why = "which all others have" if people else "since everybody has left or is revoked"
    facts += [f"nobody: {len(nobody)}, {why}: {some(nobody)}"] if nobody else []
    return SetupReport(Path(study), tuple(facts or [f"{name} has nothing that is not begun"]), {})


def study_in_words(path: Path, rubric: str) -> str:
    """Check an annotate.yaml and say what is collected. Raises SetupError."""
    setup = load_setup(path)
    _, built = named_screens(setup)
    planned(setup, built)
    config, n = setup.config, len(built)
    told = (
        f"an annotation study ({config.task}) of {counted(n, 'item')}, {config.per_item} of "
        f"{counted(len(config.annotators), 'annotator')} for each"
    )
    return "\n".join([told, *map(str, setup.dataset.warnings)])
