"""How does this version read the tables that another version's tests understood?

    python benchmarks/replay_tables.py CORPUS            # a folder that record_tables.py filled
    python benchmarks/replay_tables.py CORPUS --quick    # every tenth table
    python benchmarks/replay_tables.py CORPUS -v         # also what is asked, and not led on

What was named then is said now: columns of annotators, items, questions and judges, and orders.
Readings are compared by the columns of items and of people's labels, by whose labels they are, the
sets of labels, and the judges. Where this version asks, readings that it prints are tried, two in a
row.
"""

from __future__ import annotations

import argparse
import pickle
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from plain_tables import Facts, Outcome, facts_of, facts_of_old, outcome_of

KINDS = ("same at once", "asked, same after one reading", "asked, same after two",
         "asked, not led on", "refused", "crashed", "otherwise")  # fmt: skip
LIMIT_S = 20  # for one table, with all that it asks
LONGEST = 400  # characters of what is different

Recorded = Mapping[str, Any]


class TooLongError(BaseException):
    """A table takes longer than LIMIT_S: nobody catches it on the way."""


def tables_of(given: Recorded, folder: Path) -> Any:
    """The recorded tables; those that were files lie in the folder."""
    from judgebench.data.layout import Source
    from judgebench.data.reading import GivenTables, sources_of

    def sources(table: Recorded, place: str) -> list[Source]:
        path = Path(table["name"])
        if "bytes" not in table:
            return [Source(path, table["frame"], table["sheet"], who=table["judge"])]
        path = folder / place / path
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(table["bytes"])
        if table["sheet"]:
            return [Source(path, None, table["sheet"], who=table["judge"])]
        return [replace(s, who=table["judge"]) for s in sources_of(path, path.name)]

    answers = [given["answers"]] if given["answers"] else []
    return GivenTables(
        sources(given["labels"], "labels"),
        [s for n, table in enumerate(given["verdicts"]) for s in sources(table, f"verdicts-{n}")],
        [s for table in answers for s in sources(table, "answers")],
    )


def settings_of(given: Recorded, read: Recorded, columns: Sequence[str]) -> Any:
    """What was named of tables with these columns, as it is said now."""
    from judgebench.data.settings import TableSettings
    from judgebench.data.vocabulary import Column

    named = given["named"]
    names, replies = _columns_of(read, "annotator"), _columns_of(read, "raw")
    roles = {c: "annotator" if c in names else "label" for c in named["annotators"]}
    roles |= dict.fromkeys(named["item"], "item") | dict.fromkeys(named["question"], "group")
    roles |= dict.fromkeys(named["keep"], "kept")
    roles |= {c: "reply" if c in replies else "verdict" for c in named["judge"] if c in columns}
    return TableSettings(
        {column: Column(role) for column, role in roles.items()},
        order=tuple(named["order"]),
        judge=tuple(name for name in named["judge"] if name not in columns),
    )


def _columns_of(read: Recorded, key: str) -> set[str]:
    """The columns that entries of the recorded reading have under a key."""
    files = read["columns"]["files"] if not read["error"] else ()
    entries = [e for file in files for role in ("labels", "verdicts") for e in file.get(role, ())]
    return {entry[key] for entry in entries if isinstance(entry.get(key), str)}


def replayed(given: Recorded, read: Recorded) -> Outcome:
    """How this version reads tables, against how they were read."""
    from judgebench.data.findings import Findings
    from judgebench.data.reading import infer_layout
    from judgebench.errors import SetupError

    with tempfile.TemporaryDirectory() as folder:
        try:
            tables = tables_of(given, Path(folder))
        except SetupError as error:
            return Outcome("refused", str(error))
        sources = (*tables.labels, *tables.verdicts, *tables.answers)
        try:
            opened = [source.read(Findings()) for source in sources]
            columns = [column for table in opened if table for column in table.columns]
        except Exception:  # which infer_layout reports
            columns = []
        labelled = given["labelled"]

        def facts(settings: Any) -> Facts:
            return comparable(facts_of(infer_layout(tables, settings, labelled=labelled)))

        right = comparable(facts_of_old(read)) if not read["error"] else Facts.nothing()
        return outcome_of(facts, settings_of(given, read, columns), right)


def replayed_in_time(given: Recorded, read: Recorded) -> Outcome:
    """The same, or that it has no end."""

    def stop(*_: Any) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT_S)
    try:
        return replayed(given, read)
    except TooLongError:
        return Outcome("crashed", f"no end within {LIMIT_S} s")
    finally:
        signal.alarm(0)


def comparable(facts: Facts) -> Facts:
    """The facts that are compared: a corpus does not name columns of verdicts beside labels."""
    return replace(facts, verdicts=frozenset())


def kind_of(outcome: Outcome) -> str:
    """The kind of an outcome where the recorded version read the tables."""
    if outcome.n_readings:
        return KINDS[outcome.n_readings]
    by_kind = {"right": "same at once", "asked": "asked, not led on", "wrong": "otherwise"}
    return by_kind.get(outcome.kind, outcome.kind)


def report(corpus: Sequence[Path], verbose: bool) -> Iterator[str]:
    """A line for each table that is read otherwise; then the counts."""
    counts, errors = Counter[str](), Counter[str]()
    for path in corpus:
        given, read = pickle.loads(path.read_bytes())
        if Path(given["labels"]["name"]).suffix == ".sqlite":
            continue  # a study's, whose key lies in a file beside it and was not recorded
        outcome = replayed_in_time(given, read)
        if read["error"]:
            errors["read" if outcome.kind in ("right", "wrong") else outcome.kind] += 1
            if outcome.kind == "crashed":
                yield f"{path.stem} {outcome.kind}, was an error: {outcome.text[:LONGEST]}"
            continue
        kind = kind_of(outcome)
        counts[kind] += 1
        if kind in ("otherwise", "crashed") or (verbose and kind != KINDS[0]):
            yield f"{path.stem} {kind}: {outcome.text[:LONGEST]}"
    yield f"\n{counts.total():,} that were read: " + ", ".join(
        f"{counts[kind]:,} {kind} ({100 * counts[kind] / max(1, counts.total()):.0f} %)"
        for kind in KINDS
    )
    yield f"{errors.total():,} that ended in errors: " + ", ".join(
        f"{n:,} now {kind}" for kind, n in errors.most_common()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", type=Path, help="a folder of pickles")
    parser.add_argument("--quick", action="store_true", help="only every tenth table")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what is asked, too")
    arguments = parser.parse_args()
    corpus = sorted(arguments.corpus.glob("*.pickle"))[:: 10 if arguments.quick else 1]
    for line in report(corpus, arguments.verbose):
        print(line, flush=True)


if __name__ == "__main__":
    main()
