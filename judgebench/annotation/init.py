"""A study is made, and goes on with other items."""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from judgebench.annotation import assignment
from judgebench.annotation.config import Setup, load_setup
from judgebench.annotation.export import key_of
from judgebench.annotation.pictures import ALLOWED, name_pictures
from judgebench.annotation.store import ANSWERS, KEY, LEAD, SERVED, Store, link_of, open_store
from judgebench.annotation.tasks import Built, Key, asked_of, build, item_of, secret_of
from judgebench.data.formats import mark_forbidden, to_csv
from judgebench.errors import Problem, SetupError, pip_install, raise_any, shorten
from judgebench.files import disk_errors, to_bytes, write_atomically
from judgebench.people.markdown import lacks_maths
from judgebench.records import content_hash
from judgebench.text import counted

_FIXED = ("name", "task", "per_item", "calibration")  # figures rest on these
_CHANGEABLE = ("guidelines", "background", "protocol", "rubric", "auto_advance", "anchors")
_ASK_BACKGROUND = (
    "Who are the annotators, with which training and experience? Reports ask for it: say it under "
    "`background`, also later (--new-version)."
)


_NO_LONGER = "the protocol is not that of before (--protocol): labels no longer carry its hash"


@dataclass(frozen=True, repr=False)
class SetupReport:
    """A report of what was done to a study, in words, and the links by which people come in."""

    study: Path
    facts: tuple[str, ...]
    links: Mapping[str, str]

    def __repr__(self) -> str:
        links = [f"  {name}: {link}" for name, link in self.links.items()]
        about = ["Links, each for one person; each works once:", *links] if links else []
        following = [f"Next: judgebench annotate serve {self.study}"] if LEAD in self.links else []
        return "\n".join([*self.facts, *about, *following])


def annotate(
    file: str | Path,
    to: str | Path,
    *,
    new_version: bool = False,
    protocol: str | Path | None = None,
    anchors: int | None = None,
    anchors_from: Sequence[str | Path] = (),
) -> SetupReport:
    """Make the study in which people label the items of an annotate.yaml: blind screens, who
    labels what, and a link for everybody.

    `anchors` is how many answers with known labels are hidden among the items of everybody, four
    fifths of them with a severe flaw, drawn from the tables and sets of altered answers
    `anchors_from`; default: these keys of the file, else a shipped set. The judge is then to judge
    `answers_for_judge.csv` in the folder, which has all items. With `new_version` the folder holds
    the study already, and goes on with the items as they are now: labels count as long as text and
    question stay the same.
    A `protocol` that a plan wrote says, in place of the file, by which rubric people label, how
    many of them each item, and how many items, which are drawn at random. Raises SetupError with
    every problem; nothing is written then.

    >>> import judgebench as jb
    >>> made = jb.annotate("annotate.yaml", "studies/labels")
    >>> sorted(path.name for path in made.study.iterdir())
    ['key.json', 'served']
    """
    changes: dict[str, Any] = {} if anchors is None else {"anchors": anchors}
    changes |= (
        {"anchors_from": [os.path.abspath(path) for path in anchors_from]} if anchors_from else {}
    )
    setup, folder = load_setup(Path(file), changes, protocol), Path(to)
    if new_version:
        return _renew(setup, folder)
    if there := [
        path for path in (folder / KEY, folder / SERVED, folder / ANSWERS) if path.exists()
    ]:
        allowed = "another folder, or --new-version, which keeps the labels"
        raise SetupError(Problem("a study is there already", str(there[0]), allowed=allowed))
    key, built = named_screens(setup)
    _check_sizes(setup, built)
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with disk_errors(folder), TemporaryDirectory(prefix=".study-", dir=folder.parent) as half:
        with closing(Store.create(Path(half) / SERVED, _meta(setup, key, built))) as store:
            _put_version(setup, store, key, built)
            facts = _facts(setup, store)
            links = {name: link_of(store, name) for name in (*setup.config.annotators, LEAD)}
        folder.mkdir(exist_ok=True)
        for path in Path(half).iterdir():
            os.rename(path, folder / path.name)
    return SetupReport(folder, tuple(facts), links)


def _facts(setup: Setup, store: Store) -> list[str]:
    """The study in words: its size, everybody's items and those that two annotators share."""
    config, rows, orders = setup.config, setup.dataset.answers, store.orders
    n_anchors, n_pictures = len(store.meta["anchors"]), len(store.pictures)
    size = counted(len(store.screens) - n_anchors, "item")
    has_questions = config.task != "labels" or any(row.question or row.turns for row in rows)
    first, without = "each", ""
    if n := config.calibration:
        first, without = (
            f"{n} of them for everybody first (calibration), the others",
            ", without calibration",
        )
    facts = [f"{size}, {first} for {config.per_item} of {len(orders)} annotators"]
    if n_anchors:
        facts.append(
            f"{counted(n_anchors, 'anchor')} hidden among the items of everybody: have the judge "
            f"label {ANSWERS} of the study, which has all of them"
        )
    if not has_questions:
        facts.append("the page shows answers alone: no column holds questions")
    if n_pictures:
        facts.append(f"{counted(n_pictures, 'picture')} shown")
    own = {name: {*order} - store.for_everybody for name, order in orders.items()}
    return [
        *map(str, setup.dataset.warnings), *facts, *_notes(setup),
        *(f"{name}: {counted(len(order), 'item')}" for name, order in orders.items()),
        f"Items that two annotators share{without}:", *assignment.overlap_lines(own),
        *([] if config.background else [_ASK_BACKGROUND]),
    ]  # fmt: skip


def _notes(setup: Setup) -> Iterator[str]:
    """Notes on what a protocol replaces, and on pictures and formulas that are shown as text."""
    if setup.protocol:
        yield f"rubric and per_item are those of the protocol, whatever {setup.file.name} says"
    if setup.not_shown:
        addresses = ", ".join(map(shorten, setup.not_shown))
        yield f"not shown, since {ALLOWED} are pictures here: {addresses}"
    if lacks_maths(setup.texts):
        yield f"formulas are shown as TeX; to show them as formulas: {pip_install('maths')}"


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
        screens[name] = {**before.get(name, {}), **one.targets}
    shown = {name: one.screen.hash for name, one in built.items()}
    study = known.study if known else content_hash([setup.config.model_dump(mode="json"), shown])
    return Key(study=study, task=setup.config.task, secret=secret, screens=screens), built


def _check_sizes(setup: Setup, built: Mapping[str, Built]) -> None:
    """Raises SetupError with every setting that does not fit the items."""
    config = setup.config
    limits = {
        "per_item": (config.per_item, len(config.annotators)),
        "calibration": (config.calibration, len(built) - len(_known(built))),
    }
    raise_any([
        Problem("cannot be met", str(setup.file), None, key, str(n), f"at most {most:,}")
        for key, (n, most) in limits.items()
        if n > most
    ])  # fmt: skip


def _known(built: Mapping[str, Built]) -> dict[str, Mapping[str, str]]:
    """The right labels of anchors, by screen and metric."""
    return {name: screen.known for name, screen in built.items() if screen.known}


def _meta(setup: Setup, key: Key, built: Mapping[str, Built]) -> dict[str, Any]:
    """The facts of the study that the served file holds besides its screens. Known labels are among
    them: the lead's page counts who found them."""
    config, rubric = setup.config, asked_of(setup).model_copy(update={"source": ""})
    return {
        **config.model_dump(mode="json", include={*_FIXED}),
        "seed": int(content_hash([config.seed, config.name])[:8], 16),
        "guidelines": mark_forbidden(name_pictures(setup.guidelines, setup.pictures)),
        "background": config.background,
        "protocol": setup.protocol.sha256 if setup.protocol else "",
        "auto_advance": config.auto_advance,
        "anchors": _known(built),
        "rubric": rubric.model_dump(mode="json"),
        "study": key.study,
        "left": [],  # who gets no items any more
    }


def _write_key(folder: Path, key: Key) -> None:
    write_atomically(folder / KEY, to_bytes(key.model_dump(mode="json")))
    (folder / KEY).chmod(0o600)


def _answer_table(setup: Setup, key: Key) -> bytes:
    """All items for the judge, in an order that tells nothing."""
    columns = ("item_id", "question", "reference", "text")
    rows = sorted(setup.dataset.answers, key=lambda row: content_hash([key.secret, row.item_id]))
    cells = ([getattr(row, column) or "" for column in columns] for row in rows)
    return to_csv(columns, cells).removeprefix(BOM_UTF8)


def _put_version(
    setup: Setup, store: Store, key: Key, built: Mapping[str, Built]
) -> tuple[list[str], int]:
    """Keep what is new or has changed, and give new items to people, behind those they have. Who is
    new has the calibration round first. Returns the ids of new and changed screens, and how many
    are gone."""
    config, anchors = setup.config, _known(built)
    strata = {name: (one.systems, one.question) for name, one in built.items()}
    before, meta = store.screens, _meta(setup, key, built)
    drawn = store.in_round("calibration")
    calibration = [name for name in built if name in drawn]
    if not before:
        others = [name for name in built if name not in anchors]
        calibration = [*assignment.order(others, strata, "", config.seed)[: config.calibration]]
    rounds = dict.fromkeys(calibration, "calibration") | dict.fromkeys(anchors, "anchor")
    screens = {
        name: one.screen.model_copy(update={"round": rounds.get(name, "main")})
        for name, one in built.items()
    }
    put = [screen for name, screen in screens.items() if before.get(name) != screen]
    gone = before.keys() - built.keys()
    changed = {k: meta[k] for k in _CHANGEABLE if store.meta.get(k) != meta[k]}
    if put or gone or changed:
        store.set(**changed)
        store.put(put, gone)
        store.add_pictures(setup.pictures.values())
    people = [name for name in config.annotators if name not in store.meta["left"]]
    orders = dict.fromkeys(people, calibration) | store.orders
    new = {name: at for name, at in strata.items() if name not in calibration}
    common = store.for_everybody
    store.assign(assignment.extend(orders, new, common, people, config.per_item, config.seed))
    folder = store.path.parents[1]
    _write_key(folder, key)
    if anchors:
        write_atomically(folder / ANSWERS, _answer_table(setup, key))
    return [screen.id for screen in put], len(gone)


# --- a running study ------------------------------------------------------------------------------


def _renew(setup: Setup, folder: Path) -> SetupReport:
    """The study with its items as they are now."""
    with open_store(folder) as store, store.writing():
        _check_fixed(setup, store)
        known = key_of(store)
        key, built = named_screens(setup, known)
        added = [name for name in setup.config.annotators if name not in store.annotators]
        n_before, protocol = _n_labels(store), store.meta.get("protocol")
        put, gone = _put_version(setup, store, key, built)
        orders = store.orders
        fresh = sum(name not in known.screens for name in put)
        facts = (
            f"version {store.version}: {counted(len(built) - len(put), 'item')} unchanged, "
            f"{len(put) - fresh} changed, {fresh} new, {gone} gone",
            f"{_n_labels(store)} of {counted(n_before, 'label')} count on; all are kept",
            *(f"{name}: {counted(len(orders[name]), 'item')}" for name in added),
            *([_NO_LONGER] if protocol and store.meta["protocol"] != protocol else []),
            *_notes(setup),
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
    message = "still has items: hand them over on the lead's page, or name them here"
    problems += [
        Problem(message, file, None, "annotators", name)
        for name in sorted({*store.present} - {*config["annotators"]})
    ]
    raise_any(problems)


def _n_labels(store: Store) -> int:
    """The number of labels that count."""
    return sum(given.label is not None and bool(given.field) for given in store.given())


def study_in_words(path: Path, rubric: str) -> str:
    """Check an annotate.yaml and say what is collected. Raises SetupError."""
    setup = load_setup(path)
    _, built = named_screens(setup)
    _check_sizes(setup, built)
    summary = f"an annotation study ({setup.config.task}) of {counted(len(built), 'item')}"
    return "\n".join([summary, *map(str, setup.dataset.warnings)])
