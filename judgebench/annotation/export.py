"""Tables that come out of a study: labels or ranks under the names of the data."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote

from judgebench.annotation.screens import Round, Screen
from judgebench.annotation.store import ANSWERS, GOLD, KEY, Store, by_screen, snapshot
from judgebench.annotation.tasks import Key, Target, item_of, read_key
from judgebench.data.formats import quoted, to_csv
from judgebench.errors import Problem, SetupError
from judgebench.files import disk_errors, write_atomically
from judgebench.records import ADJUDICATED, COLLECTED
from judgebench.rubric import BETWEEN, Rubric
from judgebench.text import counted

Row = dict[str, str]
_ROUNDS: tuple[tuple[Round, ...], ...] = (("main",), ("main", "calibration"))
_IN_COLUMNS = ("preference", "criteria")  # a column for each metric
_FIELDS = {"Question": "question", "Answer": "text", "Reference": "reference"}  # by heading
_RANKS = {"annotator": "expert", "label": "rank", "metric": "", "made_blind": ""}  # "": left out


def table_rows(path: Path) -> list[Row]:
    """The labels of a study that stands where a table of labels may. Raises SetupError."""
    with snapshot(path) as store:
        key = key_of(store)
        rows = rows_of(store, key, _screens(store, _ROUNDS[False]))
        unlabelled = [*_unlabelled(store, key, rows)]
    if not rows:
        raise SetupError(Problem("holds no label yet", str(path)))
    if "rank" in rows[0]:
        message = "is no study of labels: `judgebench annotate export` writes what it holds"
        raise SetupError(Problem(message, str(path)))
    return [*rows, *unlabelled]


def anchor_rows(path: Path) -> list[Row]:
    """The labels of annotators on anchors, and the right ones, of `adjudicated`, given the folder
    of a study or its file. Raises SetupError."""
    with snapshot(path) as store:
        return [*_anchor_rows(store, key_of(store))]


def texts_of(path: Path) -> dict[str, Row]:
    """The `text` of each answer that people label by itself, and its `question` and `reference`
    where it has them, by item id, given the file of a study. Raises SetupError."""
    with snapshot(path) as store:
        key, screens = key_of(store), store.screens
    return {
        max(item_of(key.screens[name])): {
            _FIELDS[part.heading]: part.text for part in screen.sections if part.heading in _FIELDS
        }
        for name, screen in screens.items()
        if key.task == "labels"
    }


def rubric_of(path: Path) -> Rubric:
    """The rubric of a study, under the study's name, given its folder or its file. Raises
    SetupError."""
    with snapshot(path) as store:
        meta = store.meta
    # What is decided on is called as the study is, whatever rubric it borrows.
    return Rubric.model_validate({**meta["rubric"], "name": meta["name"]})


def collected_as(path: Path) -> list[str]:
    """Say how the labels of a study were collected, given its folder or its file: sentences that
    begin as `records.COLLECTED` does; none of adjudicated labels. Raises SetupError."""
    with snapshot(path) as store:
        meta, n_items, annotators = store.meta, len(_screens(store, ["main"])), store.annotators
    if annotators == GOLD:
        return []
    sentences = {
        "plan": f"{counted(n_items, 'item')}, each for {meta['per_item']} of {len(annotators)} "
        f"annotators; {meta['calibration']} more for all, as calibration",
        "rating_process": "judgebench annotate, with an order of each annotator's own, on pages "
        "that named no system and showed no verdict, and nobody else's label before theirs",
        "background": meta["background"].rstrip("."),
    }
    return [f"{COLLECTED[fact]}{text}." for fact, text in sentences.items() if text]


def key_of(store: Store) -> Key:
    """The key of a study. Raises SetupError where it is not there, or of another study."""
    path, own = store.path.parents[1] / KEY, str(store.meta.get("study"))
    key = read_key(path)
    if key.study != own or store.screens.keys() - key.screens.keys():
        message = "is the key of another study, or of a version before"
        raise SetupError(Problem(message, str(path), None, "study", key.study, own))
    return key


def _screens(store: Store, rounds: Collection[Round]) -> set[str]:
    return {name for name, one in store.screens.items() if one.round in rounds}


def rows_of(store: Store, key: Key, screens: Collection[str]) -> list[Row]:
    """Return the labels that count now on these screens: `item_id`, `annotator`, `metric`, `label`,
    `study` (its hash), and how each was made: `made_blind` (`yes` where it was made without sight
    of any model's label), `labelled_at` (the time in ISO 8601), `queue_position` (of the item among
    the annotator's, from 1), `order_shown` (the names of texts that were compared, as they stood)
    and `protocol_sha256` (of the protocol that the study was made by).

    Preferences (`model_a`, `model_b`) and criteria (`criterion`) have a column for each metric; a
    ranking has `task`, `expert`, `system` and `rank`, of what an annotator ranked whole. A blank is
    "cannot tell". Labels on a screen that is not done or skipped count; what was taken back or is
    no longer asked does not. The lead's are of `adjudicated`.
    """
    events = [event for event in store.given() if event.screen in screens]
    at = {(e.annotator, e.screen, e.field): e.at for e in events}
    positions = {
        (name, screen): str(n)
        for name, order in store.orders.items()
        for n, screen in enumerate(order, 1)
    }
    # Whoever adjudicates may have seen a judge's label among those in question.
    blind = {} if store.annotators == GOLD else {"made_blind": "yes"}
    protocol = store.meta.get("protocol")
    promised = {"protocol_sha256": protocol} if protocol else {}
    rows: list[Row] = []
    for (who, name), labels in sorted(by_screen(events).items(), key=lambda at: at[0][::-1]):
        screen, targets = store.screens[name], key.screens[name]
        is_whole = all(labels.get(field.key) for field in screen.fields)
        if key.task == "ranking" and (who == ADJUDICATED or not is_whole):
            continue  # a rank means something beside all others of one expert
        shown = _order_shown(screen, targets, screen.slots_for(who, store.meta["seed"]))
        for field in screen.fields:
            label, target = labels.get(field.key), targets.get(field.key)
            if label is None or target is None:
                continue
            rows.append({
                **target.columns, "annotator": who, **blind,
                "metric": target.metric, "label": target.labels.get(label, label),
                "labelled_at": at[who, name, field.key],
                "queue_position": positions.get((who, name), ""),
                **({"order_shown": shown} if shown else {}), **promised, "study": key.study,
            })  # fmt: skip
    rows = _in_columns(rows) if key.task in _IN_COLUMNS else rows
    names = _RANKS if key.task == "ranking" else {}
    return [{names.get(c, c): text for c, text in row.items() if names.get(c, c)} for row in rows]


def _unlabelled(store: Store, key: Key, rows: Sequence[Row]) -> Iterator[Row]:
    """A row without a label for each other item: where items are grouped, it says of which question
    a verdict on it is."""
    labelled = {row.get("item_id") for row in rows}
    first, same = next(iter(rows), {}), ("made_blind", "metric", "study")
    blank = {column: text if column in same else "" for column, text in first.items()}
    for name in sorted(store.screens):
        target = next(iter(key.screens[name].values()))
        if "group" in target.columns and target.columns["item_id"] not in labelled:
            yield {**blank, **target.columns}


def _anchor_rows(store: Store, key: Key) -> Iterator[Row]:
    screens = _screens(store, ["anchor"])
    yield from (r for r in rows_of(store, key, screens) if r["annotator"] != ADJUDICATED)
    for name in sorted(screens):
        labels = store.meta["anchors"][name]
        for target in key.screens[name].values():
            row = {**target.columns, "annotator": ADJUDICATED, "metric": target.metric}
            if target.metric in labels:
                yield {**row, "label": labels[target.metric], "study": key.study}


def _order_shown(screen: Screen, targets: Mapping[str, Target], slots: Sequence[int]) -> str:
    """The names of the texts that are compared, in the order of these slots."""
    names = dict[int, str]()
    for field in screen.fields:
        target = targets[field.key]
        if field.slot is not None:
            names[field.slot] = target.columns["system"]
        elif "model_a" in target.columns:
            pair = [target.columns["model_a"], target.columns["model_b"]]
            names = dict(enumerate(reversed(pair) if target.labels else pair))
    return BETWEEN.join(names[slot] for slot in slots if slot in names)


def _in_columns(rows: Sequence[Row]) -> list[Row]:
    """One row for all that somebody said of the same, with a column for each metric. It was said
    when the last of it was."""
    wide: dict[tuple[str, ...], Row] = {}
    for row in rows:
        label = {row["metric"]: row["label"], "labelled_at": row["labelled_at"]}
        keys = {c: text for c, text in row.items() if c not in ("metric", "label", "labelled_at")}
        wide.setdefault(tuple(keys.values()), keys).update(label)
    return list(wide.values())


def export(study: Path, to: Path | None = None, *, calibration: bool = False) -> list[str]:
    """Write the labels of a study as a table, by default into its folder; those of the calibration
    round only on demand. Return in words what was written and what was left out. Raises SetupError
    where there is nothing to write, or the file is something else, which is not overwritten."""
    with snapshot(study) as store:
        key, folder = key_of(store), store.path.parents[1]
        rows = rows_of(store, key, _screens(store, _ROUNDS[calibration]))
        n_left_out = len(rows_of(store, key, store.screens)) - len(rows)
        table = [*rows, *_unlabelled(store, key, rows)]
        anchors = [*_anchor_rows(store, key)]
        beside = "LABELS.csv " if store.annotators == GOLD else ""
    left_out = f"left out: {counted(n_left_out, 'label')} of calibration or of anchors"
    if not rows:
        raise SetupError([Problem("holds nothing to export", str(study)), Problem(left_out)])
    is_ranking = key.task == "ranking"
    file = to or folder / ("ranks.csv" if is_ranking else "labels.csv")
    _write(file, table, is_ranking)
    written = [f"{file}: {counted(len(rows), 'row')}"]
    if anchors:
        path = file.with_name("anchors.csv")
        _write(path, anchors, is_ranking)
        size = counted(len(anchors), "row")
        written.append(f"{path}: {size}, of anchors; the judge is to judge {ANSWERS}")
    following = (
        f"Next: judgebench rank suitability {file}" if is_ranking
        else f"Next: judgebench decide {beside}{quote(str(study))} VERDICTS.csv; "
        "or name the file under `data` of a bench.yaml, beside the answers"
    )  # fmt: skip
    return [*written, *([left_out] if n_left_out else []), following]


def _write(file: Path, rows: Sequence[Row], is_ranking: bool) -> None:
    """Write a table. Raises SetupError where another file than an earlier export lies there."""
    with disk_errors(file):
        if file.exists() and b',"study"\n' not in file.read_bytes():
            raise SetupError(Problem("is no export, and is not overwritten", str(file)))
        write_atomically(file, _table(rows, is_ranking))


def _table(rows: Sequence[Row], is_ranking: bool) -> bytes:
    """As CSV. Ranks are safe to open as a spreadsheet; labels have their texts as they are."""
    columns = [*dict.fromkeys(c for row in rows for c in row if c != "study"), "study"]
    texts = [[row.get(column, "") for column in columns] for row in rows]
    if is_ranking:
        return to_csv(columns, [[*map(quoted, row)] for row in texts])
    return to_csv(columns, texts).removeprefix(BOM_UTF8)
