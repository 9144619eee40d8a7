"""How many plain tables are read right, how many are asked about, and how many are misread?

    python benchmarks/plain_tables.py                # 1,000 tables
    python benchmarks/plain_tables.py --quick        # 60 of them
    python benchmarks/plain_tables.py --old          # also as the last version that guesses does

A table of labels, long or wide, of two to four annotators with known rates of error, beside a table
of one judge's verdicts. Each has up to two side columns: of 40 names, with ten kinds of cells. What
is read is compared with what was drawn: the items, the people, the judge, the columns of labels and
of verdicts, every label and every verdict. A table is asked about where the reader stops with a
question; then the readings that it prints are tried, two in a row, until one is right.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

OLD = "2d60cc21"  # the last version that guesses
N_TABLES, N_QUICK = 1_000, 60
MAX_DEPTH, MAX_READINGS = 2, 40  # printed readings in a row, and in all, that are tried for a table
FIRST_SEED = 20_000  # each table has a seed of its own
LABEL_SETS: Sequence[Sequence[Any]] = (
    ("yes", "no"), ("Y", "N"), ("Safe", "Unsure", "Unsafe"), (1, 2, 3, 4, 5), (True, False),
)  # fmt: skip
PEOPLE = (
    ("Kim", "Jo", "Lee", "Ana"), ("Huber", "Silva", "Okafor", "Nowak"),
    ("Annotator 1", "Annotator 2", "Annotator 3", "Annotator 4"),
    ("rater_a", "rater_b", "rater_c", "rater_d"),
    ("Dr. Meyer", "Dr. Roth", "Dr. Weiss", "Dr. Lang"),
)  # fmt: skip
ITEMS = ("id", "item_id", "sample_id", "answer_id", "ID", "Nr.")
ANNOTATORS = ("annotator", "rater", "reviewer", "coder", "worker_id")
METRICS = ("label", "rating", "harmful", "Tone", "safety")
JUDGES = ("gpt4", "claude-3", "llama3", "my-judge")
VERDICTS = ("label", "verdict", "judgment", "rating")
SIDE_NAMES = (
    "language", "source", "length", "notes", "created_at", "cached", "score", "confidence",
    "model", "truncated", "attempt", "status", "topic", "split", "reviewer_country", "category",
    "difficulty", "batch", "comment", "url", "duration", "tokens", "cost", "latency_ms",
    "prompt_version", "temperature", "dataset", "domain", "flagged", "is_long", "checked",
    "region", "priority", "age_group", "gender", "row", "version", "type", "duplicate",
    "session",
)  # fmt: skip
SIDE_CELLS = (
    "constant", "True/False", "0/1", "yes/no", "small integers", "decimals", "dates", "words",
    "long texts", "labels",
)  # fmt: skip
KINDS = ("right", "asked", "refused", "wrong", "crashed")
NOBODY = "nobody"  # whose name is not known
WORDS = ("alpha", "beta", "gamma", "delta")
PROSE = ("The patient asks about", "It depends on", "Nobody knows yet", "See the leaflet of")


@dataclass(frozen=True)
class Facts:
    """What a reading says, in names that any version can say: by table and column."""

    items: frozenset[str]
    people: frozenset[str]  # COLUMN by NAME, or by the column that names them
    judges: frozenset[str]
    verdicts: frozenset[str]  # the columns
    labels: tuple[str, ...]  # of each metric, LABEL/LABEL
    records: frozenset[str] | None = None  # ITEM WHO LABEL; None where a version does not say them

    @classmethod
    def nothing(cls) -> Facts:
        """Facts that no tables have."""
        return cls(frozenset(), frozenset(), frozenset(), frozenset(), ())

    def differs(self, right: Facts) -> list[str]:
        """The facts in which this reading is another."""
        names = [n for n in self.__dataclass_fields__ if n != "records" or self.records is not None]
        return [name for name in names if getattr(self, name) != getattr(right, name)]

    def has_further_metrics(self, right: Facts) -> bool:
        """True where this reading is the other and metrics that nobody judged."""
        is_judged_alike = (self.items, self.judges, self.verdicts) == (
            right.items, right.judges, right.verdicts,
        )  # fmt: skip
        is_more = len(self.labels) > len(right.labels) and {*self.labels} >= {*right.labels}
        return is_judged_alike and is_more and self.people > right.people


@dataclass(frozen=True)
class PlainTables:
    """Two tables, what is right of them, and their side columns in words."""

    seed: int
    labels: pd.DataFrame
    verdicts: pd.DataFrame
    judge: str
    right: Facts
    sides: str


@dataclass(frozen=True)
class Outcome:
    """How tables were read: `right`, `asked`, `refused`, `wrong` or `crashed`, and what was said.
    `n_readings` were needed, of those that were printed; None where none leads to what is right."""

    kind: str
    text: str = ""
    n_readings: int | None = None
    is_further_metric: bool = False  # wrong only in a metric that nobody judged: in no decision


def draw_tables(seed: int) -> PlainTables:
    """The tables of a seed."""
    rng = np.random.default_rng(seed)
    labels = LABEL_SETS[int(rng.integers(len(LABEL_SETS)))]
    people = PEOPLE[rng.integers(len(PEOPLE))][: rng.integers(2, 5)]
    item, judge = rng.choice(ITEMS), str(rng.choice(JUDGES))
    n_items, is_long = int(rng.integers(40, 121)), bool(rng.integers(2))
    form = str(rng.choice(("", "q{}", "{}-x")))
    ids = [form.format(i) if form else i for i in range(1, n_items + 1)]
    truth = rng.integers(len(labels), size=n_items)
    by_person = {name: _with_errors(rng, truth, labels, 0.05, 0.15) for name in people}
    verdicts = _with_errors(rng, truth, labels, 0.05, 0.25)
    metric = str(rng.choice(METRICS))
    column = metric if is_long and rng.random() < 0.7 else str(rng.choice((*VERDICTS, judge)))
    wide = pd.DataFrame({item: ids, **by_person})
    table = _long(rng, wide, metric) if is_long else wide
    judged = pd.DataFrame({item: ids, column: verdicts})
    records = {_record(i, name, x) for name in people for i, x in zip(ids, wide[name], strict=True)}
    records |= {_record(i, judge, x) for i, x in zip(ids, verdicts, strict=True)}
    right = Facts(
        frozenset({f"labels {item}", f"{judge} {item}"}),
        frozenset({f"{metric} by column {table.columns[1]}"} if is_long else
                  (f"{name} by {plain_who(name)}" for name in people)),
        frozenset({plain_who(judge)}), frozenset({f"{judge} {column}"}),
        (_label_set(labels),), frozenset(records),
    )  # fmt: skip
    sides = [*_add_sides(rng, table, labels, item), "|", *_add_sides(rng, judged, labels, item)]
    kind = f"long, {metric}" if is_long else f"wide, {people[0]}"
    words = [kind, ", ", "/".join(map(str, labels)), ", ", column, "; ", " ".join(sides)]
    return PlainTables(seed, table, judged, judge, right, "".join(words))


def _with_errors(
    rng: np.random.Generator, truth: np.ndarray, labels: Sequence[Any], least: float, most: float
) -> list[Any]:
    """Labels that differ from the truth at a rate between `least` and `most`."""
    is_wrong = rng.random(len(truth)) < rng.uniform(least, most)
    other = (truth + rng.integers(1, len(labels), size=len(truth))) % len(labels)
    return [labels[i] for i in np.where(is_wrong, other, truth)]


def _long(rng: np.random.Generator, wide: pd.DataFrame, metric: str) -> pd.DataFrame:
    item = wide.columns[0]
    long = wide.melt(item, var_name=str(rng.choice(ANNOTATORS)), value_name=metric)
    return long.sort_values(item, kind="stable", ignore_index=True) if rng.integers(2) else long


def _add_sides(
    rng: np.random.Generator, table: pd.DataFrame, labels: Sequence[Any], item: str
) -> Iterator[str]:
    """Put up to two side columns beside a table's own, and say what they are."""
    for name in rng.choice(SIDE_NAMES, rng.integers(3), replace=False):
        kind = str(rng.choice(SIDE_CELLS))
        by_item = bool(rng.integers(2))  # else by row, which differs where items have several rows
        codes = pd.factorize(table[item])[0] if by_item else np.arange(len(table))
        cells = pd.Series(_cells(rng, kind, len(table), labels), dtype=object)
        place = int(rng.integers(1, table.shape[1] + 1))
        table.insert(place, str(name), cells.iloc[codes].infer_objects().to_numpy())
        yield f"{name}={kind}"


def _cells(rng: np.random.Generator, kind: str, n: int, labels: Sequence[Any]) -> list[Any]:
    numbers = rng.integers(1, 5, size=n)
    choices: Mapping[str, Sequence[Any]] = {
        "constant": ("v2",), "True/False": (True, False), "0/1": (0, 1), "yes/no": ("yes", "no"),
        "words": WORDS, "labels": labels,
    }  # fmt: skip
    if kind in choices:
        return [choices[kind][i] for i in rng.integers(len(choices[kind]), size=n)]
    if kind == "small integers":
        return list(map(int, numbers))
    if kind == "decimals":
        return [round(float(x), 2) for x in rng.random(n)]
    if kind == "dates":
        days = rng.integers(1, 29, size=n)
        return [f"2026-0{month}-{day:02}" for month, day in zip(numbers, days, strict=True)]
    return [f"{PROSE[k - 1]} case {i} of {WORDS[k - 1]} and others." for i, k in enumerate(numbers)]


def plain_text(label: Any) -> str:
    """A label without case, and a whole number without its fraction."""
    return str(label).casefold().removesuffix(".0")


def _label_set(labels: Sequence[Any]) -> str:
    return "/".join(sorted(map(plain_text, labels)))


def plain_who(name: str) -> str:
    """A name without case and signs."""
    return re.sub(r"[\W_]+", "", name.casefold())


def _record(item: Any, who: str, label: Any) -> str:
    return f"{item} {plain_who(who)} {plain_text(label)}"


# ----------------------------------------------------------------------- what versions read


def facts_of(layout: Any) -> Facts:
    """What a layout says, without its records."""
    items, people, verdicts = set[str](), set[str](), set[str]()
    for sheet in layout.sheets:
        name, names = sheet.source.name, sheet.first("annotator")
        key = sheet.of("item") or sheet.of("group", "question", "text", "system")
        items |= {f"{name} {column}" for column in key}
        verdicts |= {f"{name} {column}" for column in sheet.of("verdict", "reply")}
        for column in sheet.of("label", "labels"):
            who = sheet.columns[column].who or sheet.source.who or NOBODY
            people.add(f"{column} by {f'column {names}' if names else plain_who(who)}")
    return Facts(
        frozenset(items), frozenset(people), frozenset(map(plain_who, layout.judges)),
        frozenset(verdicts),
        tuple(sorted(_label_set(metric.label_texts) for metric in layout.rubric.metrics)),
    )  # fmt: skip


def with_records(facts: Facts, layout: Any) -> Facts:
    """The facts with every label and verdict that the layout's tables give."""
    from judgebench.data.load import read_study

    study = read_study(layout)
    records = [_record(x.item_id, x.annotator, x.label) for x in study.labels]
    for judge, rows in study.judges.items():
        for item, cells in rows.items():
            records += [_record(item, judge, cell.label or cell.status) for _, cell in cells]
    more = (f"{record} again" for record, n in Counter(records).items() if n > 1)
    return replace(facts, records=frozenset((*records, *more)))


def facts_of_old(read: Mapping[str, Any]) -> Facts:
    """The same of what the last version that guesses read, as `record_tables.py` writes it down."""
    items, people, verdicts = set[str](), set[str](), set[str]()
    for file in read["columns"]["files"]:
        name = Path(file["path"]).name + (f", sheet {file['sheet']}" if file.get("sheet") else "")
        about = [entry for role in ("items", "labels", "verdicts") for entry in file.get(role, ())]
        items |= {f"{name} {column}" for entry in about for column in _old_item(entry)}
        nested = [inside for entry in file.get("items", ()) for inside in entry.get("labels", ())]
        for entry in (*file.get("labels", ()), *nested):
            people |= _old_people(entry)
        for entry in file.get("verdicts", ()):
            verdicts |= {f"{name} {column}" for column in _old_columns(entry)}
    judges = {plain_who(judge) for names, _ in read["judges"] for judge in names}
    sets = sorted(_label_set(labels) for _, _, labels in read["metrics"])
    return Facts(
        frozenset(items), frozenset(people), frozenset(judges), frozenset(verdicts), tuple(sets)
    )


def _old_item(entry: Mapping[str, Any]) -> list[str]:
    key = entry.get("item_id", "")
    if isinstance(key, Mapping):
        key = key.get("template") or key.get("column") or str(key)
    return re.findall(r"{(.*?)}", key) or [key]


def _old_columns(entry: Mapping[str, Any]) -> list[str]:
    """The columns of labels, or of verdicts, of an entry."""
    named = [*entry.get("metrics", {}).values(), entry.get("label"), entry.get("raw")]
    return [str(c.get("column", c) if isinstance(c, Mapping) else c) for c in named if c]


def _old_people(entry: Mapping[str, Any]) -> set[str]:
    who = entry.get("annotator", "")
    name = plain_who(who["value"]) if isinstance(who, Mapping) and "value" in who else ""
    name = NOBODY if name in ("annotator", "crowd") else name
    return {f"{column} by {name or f'column {who}'}" for column in _old_columns(entry)}


def outcome_of(read: Callable[[Any], Facts], settings: Any, right: Facts) -> Outcome:
    """How tables are read, and whether printed readings lead to what is right."""
    from judgebench.data.settings import Unsettled
    from judgebench.errors import SetupError

    first: Outcome | None = None
    waiting = deque([(0, settings)])
    for _ in range(MAX_READINGS):
        if not waiting:
            break
        n_readings, said = waiting.popleft()
        try:
            outcome = judged(read(said), right)
        except Unsettled as unsettled:
            question = unsettled.questions[0]
            outcome = Outcome("asked", f"{question.table}: {question.asks}")
            more = [said.with_more(reading.settings) for reading in question.readings]
            waiting.extend((n_readings + 1, one) for one in more if n_readings < MAX_DEPTH)
        except SetupError as error:
            outcome = Outcome("refused", str(error).partition("\n")[0])
        except Exception as error:
            return Outcome("crashed", f"{type(error).__name__}: {error}")
        first = first or outcome
        if outcome.kind == "right":
            return replace(first, n_readings=n_readings)
    return first or Outcome("refused")


def judged(facts: Facts, right: Facts) -> Outcome:
    """Whether facts are right, and in what they are not."""
    if differs := facts.differs(right):
        is_further = facts.has_further_metrics(right)
        return Outcome("wrong", compared(facts, right, differs), None, is_further)
    return Outcome("right")


def compared(facts: Facts, right: Facts, names: Sequence[str]) -> str:
    """What was read beside what is right, of these facts."""
    return "; ".join(f"{n}: {_listed(facts, n)}, not {_listed(right, n)}" for n in names)


def _listed(facts: Facts, name: str) -> str:
    parts = getattr(facts, name)
    return f"{len(parts)} of them" if name == "records" else " + ".join(sorted(parts)) or "none"


def read_tables(tables: PlainTables) -> Outcome:
    """How this version reads the tables."""
    from judgebench.data.reading import GivenTables, infer_layout, sources_of
    from judgebench.data.settings import TableSettings

    people = sources_of(tables.labels, "labels")
    given = GivenTables(people, sources_of({tables.judge: tables.verdicts}, "verdicts"))

    def read(settings: Any) -> Facts:
        layout = infer_layout(given, settings)
        return with_records(facts_of(layout), layout)

    return outcome_of(read, TableSettings(), tables.right)


def read_by_old(drawn: Sequence[PlainTables]) -> list[Outcome]:
    """How the last version that guesses reads the tables: in a worktree of its own."""
    from record_tables import worktree

    with tempfile.TemporaryDirectory() as folder, worktree(OLD) as tree:
        path = Path(folder) / "tables.pickle"
        path.write_bytes(pickle.dumps([(x.labels, x.verdicts, x.judge) for x in drawn]))
        read = subprocess.run(
            [sys.executable, __file__, "--understand", str(path)],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(tree)}, check=True,
            capture_output=True,
        ).stdout  # fmt: skip
    return [
        Outcome("asked", reading["error"]) if reading["error"] else
        judged(facts_of_old(reading), tables.right)
        for tables, reading in zip(drawn, json.loads(read), strict=True)
    ]  # fmt: skip


def understand(path: Path) -> list[dict[str, Any]]:
    """What the version that guesses understands of the tables in a file: run in its worktree."""
    from record_tables import reading_of

    from judgebench.errors import SetupError

    old = import_module("judgebench.data.understand")
    readings = list[dict[str, Any]]()
    for labels, verdicts, judge in pickle.loads(path.read_bytes()):
        table = old.Table(Path(judge), verdicts, judge=judge)
        try:
            readings.append(reading_of(old.understand(old.Table(Path("labels"), labels), [table])))
        except SetupError as error:
            readings.append({"error": str(error)})
    return readings


def report(
    title: str, drawn: Sequence[PlainTables], outcomes: Sequence[Outcome], *, every: bool = False
) -> Iterator[str]:
    """How many of each kind; in a line each that is wrong or not led on, and with `every` each
    question."""
    counts = Counter(outcome.kind for outcome in outcomes)
    numbers = [f"{counts[kind]:,} {kind}" for kind in KINDS]
    further = sum(outcome.is_further_metric for outcome in outcomes)
    yield f"{title}: {', '.join(numbers)} ({further:,} of them only in a metric that nobody judged)"
    led = Counter(outcome.n_readings for outcome in outcomes if outcome.kind != "right")
    if led[1] + led[2]:
        after = f"{led[1]:,} are right after one printed reading, {led[2]:,} after two"
        yield f"  of those that are not right at once {after}, {led[None]:,} are not"
    for tables, outcome in zip(drawn, outcomes, strict=True):
        if every or outcome.kind == "wrong" or (led[1] and outcome.n_readings is None):
            yield f"  {tables.seed} {outcome.kind} ({tables.sides}): {outcome.text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"only {N_QUICK} tables")
    parser.add_argument("--old", action="store_true", help=f"also as {OLD} reads them")
    parser.add_argument(
        "--every", action="store_true", help="print every table, with what is asked"
    )
    parser.add_argument("--seed", type=int, help="only the tables of this seed, which are shown")
    parser.add_argument("--understand", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.understand:
        print(json.dumps(understand(arguments.understand)))
        return
    if arguments.seed is not None:
        print(shown(draw_tables(arguments.seed)))
        return
    n_tables = N_QUICK if arguments.quick else N_TABLES
    drawn = [draw_tables(FIRST_SEED + n) for n in range(n_tables)]
    outcomes = [*map(read_tables, drawn)]
    print(*report(f"{n_tables:,} tables", drawn, outcomes, every=arguments.every), sep="\n")
    if arguments.old:
        print(*report(f"as {OLD} reads them", drawn, read_by_old(drawn)), sep="\n")


def shown(tables: PlainTables) -> str:
    """Tables and how they are read."""
    heads = [frame.head(8).to_string() for frame in (tables.labels, tables.verdicts)]
    return "\n\n".join([tables.sides, *heads, str(read_tables(tables))])


if __name__ == "__main__":
    main()
