"""Load a data set: tables by a layout, or by their own names; and report on files."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgebench.data.conversation import WantedPairs, known_pairs
from judgebench.data.dataset import (
    DatasetBuilder,
    VerdictCell,
    report_lacking,
)
from judgebench.data.findings import USUAL, Findings
from judgebench.data.formats import Table
from judgebench.data.layout import Layout, Sheet, Source, is_layout, load_layout, read_sheet
from judgebench.data.named import is_silver, named_sheet
from judgebench.data.rows import SheetReader
from judgebench.data.tables import known_of, reader_of_feature, table_in
from judgebench.errors import MissingExtra, Problem, SetupError, raise_any, some
from judgebench.files import open_bytes
from judgebench.records import (
    COLLECTED,
    Answer,
    Blindness,
    Dataset,
    HumanLabel,
    sha256_of,
)
from judgebench.rubric import Rubric
from judgebench.studies.answers import text_lengths
from judgebench.text import as_name

_MANY_MORE = 0.25  # as many more items of verdicts as are known, for a table of all that was judged

JudgeRows = Mapping[str, Mapping[str, Sequence[tuple[str, VerdictCell]]]]
"""By judge and item: what stands on each metric, in each draw."""


def load_data(
    paths: Path | Sequence[Path | Layout], rubric: Rubric, *,
    metrics: Sequence[str] | None = None, folder: Path | None = None,
    pairs: WantedPairs | None = None,
) -> Dataset:  # fmt: skip
    """Answers and human labels from layouts and from plain tables, all of them one data set.

    Plain tables are read by the names of their columns (docs/data_reference.md). `metrics` keeps
    the labels of those metrics only. `folder` is where the tables of a layout lie, instead of its
    own folder. `pairs` are made of the answers, as rows beside them. There are rows of those kinds
    alone that the metrics are about. Raises SetupError with every problem of every file.
    """
    wanted = rubric if metrics is None else rubric.only(metrics)
    dataset = DatasetBuilder(rubric, wanted)
    if pairs is not None:
        dataset.want_pairs(pairs)
        if isinstance(pairs.source, Path):
            note_source(dataset, pairs.source)
    for layout in layouts_of([paths] if isinstance(paths, Path) else paths, dataset, folder):
        read_people(layout, dataset)
    dataset.settle()
    if "answer" in dataset.kinds and not (dataset.plain_answers() or dataset.findings.errors):
        dataset.add_labelled_items()
    if not dataset.findings.errors:
        report_lacking(dataset)
    if not dataset.answers() and not dataset.findings.errors:
        dataset.findings.add("no_answers", "there are no answers to judge", ("", None))
    raise_any(dataset.findings.errors)
    _note_blank_groups(dataset.answers(), dataset.findings)
    kept_metrics = {metric.id for metric in wanted.metrics}
    return Dataset(
        answers=dataset.answers(),
        labels=tuple(label for label in dataset.human_labels() if label.metric in kept_metrics),
        warnings=dataset.findings.warnings,
        sources=dataset.sources,
        textless=tuple(dataset.textless),
        blind=dataset.blindness,
        collected=tuple(dataset.collected),
    )


def layouts_of(
    paths: Sequence[Path | Layout], dataset: DatasetBuilder, folder: Path | None,
    who: str = "annotator",
) -> Iterator[Layout]:  # fmt: skip
    """The layouts of files: those that a layout.yaml says, and of plain tables that of their names,
    in which `who` gave the labels. What is wrong is reported."""
    for path in paths:
        if isinstance(path, Layout):
            yield path
            continue
        note_source(dataset, path)
        try:
            if is_layout(path):
                layout = load_layout(path, dataset.rubric, folder)
                for sheet in layout.sheets:
                    note_source(dataset, sheet.source.path)
                yield layout
            elif named := named_sheet(Source(path), dataset.rubric, dataset.findings, who):
                yield Layout((named,), dataset.rubric)
        except MissingExtra:
            raise
        except SetupError as error:
            dataset.findings.extend("bad_spec", error.problems)


def read_people(layout: Layout, dataset: DatasetBuilder) -> None:
    """Read the items and people's labels of a layout."""
    dataset.repeats = layout.repeats
    dataset.only_labelled |= layout.only_common
    for sheet in layout.sheets:
        reader = _reader(sheet, layout, dataset)
        if reader and (reader.sheet.has_labels or not reader.sheet.has_verdicts):
            if reader.sheet.has_labels and is_silver(reader.table, dataset.findings):
                continue
            reader.read_items()
            reader.read_labels()
            dataset.collected |= dict.fromkeys(known_of(sheet.source.path, "collected"))
            dataset.collected |= dict.fromkeys(_carried(reader.table))


def _carried(table: Table) -> Iterator[str]:
    """What an export of labels carries, as `records.COLLECTED`: the time of the first of them, in
    UTC and ISO 8601, and the hash of their protocol."""
    for fact, column in (("first_label", "labelled_at"), ("protocol", "protocol_sha256")):
        texts = table.texts(column) if column in table.columns else ()
        if any(texts):
            yield f"{COLLECTED[fact]}{min(filter(None, texts))}."


def read_judges(layout: Layout, dataset: DatasetBuilder) -> None:
    """Read judges' verdicts of a layout, once its items and labels are read."""
    for sheet in layout.sheets:
        if sheet.has_verdicts and (reader := _reader(sheet, layout, dataset)):
            reader.read_verdicts()


def _reader(sheet: Sheet, layout: Layout, dataset: DatasetBuilder) -> SheetReader | None:
    whole = read_sheet(sheet, dataset.findings)
    if whole is None or whole.table is None:
        return None
    return SheetReader(whole, whole.table, layout, dataset)


def note_source(dataset: DatasetBuilder, path: Path) -> None:
    """Keep the hash of a file. One that cannot be opened is reported where its rows are read."""
    with suppress(OSError, SetupError):
        digest = file_hash(path)
        if dataset.sources.setdefault(path.name, digest) != digest:
            dataset.sources[str(path)] = digest  # the same name, another folder


def file_hash(path: Path) -> str:
    """The SHA-256 of a file's bytes as hex digits; of a feature's table, of its rows, which a
    database may hold in a file beside it. Raises OSError, and SetupError for such a table."""
    if read := reader_of_feature(path):
        return sha256_of(read(table_in(path)))
    with open_bytes(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class StudyData:
    """Labels, verdicts and answers of tables. Without texts, the answers have what labels and
    verdicts say of them."""

    answers: Sequence[Answer]
    labels: Sequence[HumanLabel]
    judges: JudgeRows
    has_texts: bool
    blind: Blindness
    warnings: Sequence[Problem]
    collected: Sequence[str]
    sources: Mapping[str, str]  # the SHA-256 of each file by name; empty of a data frame

    @property
    def metrics(self) -> set[str]:
        """The metrics of any label or verdict; "" among them where whole replies are read."""
        judged = {m for rows in self.judges.values() for cells in rows.values() for m, _ in cells}
        return judged | {label.metric for label in self.labels}


def _note_blank_groups(answers: Sequence[Answer], findings: Findings) -> None:
    """Note how many items say nothing of the question, though others name one."""
    has_group = [a.group != a.item_id for a in answers if a.kind == "answer"]
    n, n_blank = len(has_group), has_group.count(False)
    if 0 < n_blank < n:
        message = (
            f"{n_blank:,} of {n:,} items name no question, though others do: each of them counts "
            "as a question of its own"
        )
        findings.add("blank_group", message, ("", None))


def read_study(layout: Layout) -> StudyData:
    """Read everything that a layout's tables hold. Raises SetupError with every problem."""
    dataset = DatasetBuilder(layout.rubric, layout.rubric)
    with_items = [sheet for sheet in layout.sheets if sheet.has_labels or not sheet.has_verdicts]
    dataset.without_texts = not any(sheet.of("text", "messages") for sheet in with_items)
    for source in (sheet.source for sheet in layout.sheets):
        if source.frame is None:
            note_source(dataset, source.path)
        else:
            dataset.sources[source.name] = ""
    read_people(layout, dataset)
    dataset.settle()
    people = list(dataset.human_labels())
    dataset.labelled = frozenset((x.item_id, x.metric) for x in people if x.label is not None)
    named = (row for row, _ in dataset.named.values())
    dataset.known_pairs = known_pairs([*dataset.answers(), *named])
    read_judges(layout, dataset)
    judges = _judge_rows(dataset, layout.judges)
    _check_read(judges, dataset)
    if not dataset.findings.errors:
        _check_study(people, judges, layout, dataset.findings)
    raise_any(dataset.findings.errors)
    answers = _answers_of(dataset, people, judges, layout.only_common)
    if dataset.without_texts:
        answers = _with_texts(answers, layout)
    _note_blank_groups(answers, dataset.findings)
    warnings = [w for w in dataset.findings.warnings if w.kind not in USUAL]
    return StudyData(
        answers, people, judges, any(text_lengths(answers)), dataset.blindness, warnings,
        tuple(dataset.collected), dataset.sources,
    )  # fmt: skip


def _judge_rows(dataset: DatasetBuilder, judges: Sequence[str] = ()) -> JudgeRows:
    rows: Any = defaultdict(lambda: defaultdict(list))
    for (key, _), cell in dataset.verdicts.items():
        if not judges or key.annotator in judges:
            rows[key.annotator][key.item_id].append((key.metric, cell))
    return dict(rows)


def _check_study(
    labels: Sequence[HumanLabel], judges: JudgeRows, layout: Layout, findings: Findings
) -> None:
    """Labels and verdicts that can be compared; what prevents it is reported."""
    labelled = {label.item_id for label in labels if label.label is not None}
    file = layout.sheets[0].source.name
    if not labelled:
        findings.add("no_rows", "holds no human label", (file, None))
    for name, rows in judges.items() if labelled else ():
        if labelled.isdisjoint(rows):
            message = f"no item of the verdicts of {name} has a human label"
            allowed = f"item ids of the labels, such as {min(labelled)!r}"
            findings.add("unknown_item", message, (file, None), "item", next(iter(rows)), allowed)


def _answers_of(
    dataset: DatasetBuilder, labels: Sequence[HumanLabel], judges: JudgeRows, only_common: bool
) -> list[Answer]:
    """The items of a study: the answers, where there are texts, and what judges have beside them;
    otherwise every item that has a label or a verdict."""
    dataset.complete()
    about = {item_id: said for item_id, (said, _) in dataset.about.items()}
    answers = {answer.item_id: answer for answer in dataset.answers()}
    for row, _ in dataset.named.values():
        about.setdefault(row.item_id, row)
    if dataset.without_texts or not answers:
        more: Iterable[str] = (
            *(label.item_id for label in labels), *(i for rows in judges.values() for i in rows)
        )  # fmt: skip
    else:
        more = _judged_beside(answers, judges)
    for item_id in more:
        answers.setdefault(item_id, about.get(item_id, Answer(item_id, "")))
    if only_common and judges:
        common = {x.item_id for x in labels}.intersection(*map(set, judges.values()))
        answers = {item_id: one for item_id, one in answers.items() if item_id in common}
    return list(answers.values())


def _with_texts(answers: Sequence[Answer], layout: Layout) -> list[Answer]:
    """The answers with the texts that a feature keeps beside their labels."""
    texts: dict[str, Any] = {}
    for sheet in layout.sheets:
        texts |= known_of(sheet.source.path, "answers")
    return [replace(answer, **texts.get(answer.item_id, {})) for answer in answers]


def _judged_beside(known: Collection[str], judges: JudgeRows) -> list[str]:
    """The items that every judge has, beside the `known` ones, whose texts the labels bring along:
    none where they are few, and rather slips in the ids of these."""
    rows = [*judges.values()]
    shared = [i for i in rows[0] if all(i in one for one in rows)] if rows and known else []
    more = [item_id for item_id in shared if item_id not in known]
    return more if len(more) >= _MANY_MORE * len(known) else []


def read_verdicts(
    path: Path, rubric: Rubric, answers: Sequence[Answer], judge: str = "",
    folder: Path | None = None,
) -> tuple[JudgeRows, Sequence[Problem]]:  # fmt: skip
    """The verdicts in a table, or in the tables of a layout.yaml, on the metrics of a rubric, and
    warnings: those of one `judge`, or of all. Raises SetupError with every problem.

    Those on pairs, which a table names by question and responses, are on the pairs among `answers`
    that have these responses. Raises SetupError with every problem.
    """
    dataset = DatasetBuilder(rubric, rubric)
    dataset.judge = judge
    dataset.known_pairs = known_pairs(answers)
    for layout in layouts_of([path], dataset, folder, "judge"):
        for answer in answers if layout.ids else ():
            dataset.known_id(answer.item_id, layout.ids)  # whose spelling the data have
        read_judges(layout, dataset)
    judges = _judge_rows(dataset)
    _check_read(judges, dataset)
    raise_any(dataset.findings.errors)
    if judge:
        judges = _only(judge, judges, str(path))
    return judges, dataset.findings.warnings


def _check_read(judges: JudgeRows, dataset: DatasetBuilder) -> None:
    """Report judges of whom nothing that is there can be read."""
    for name, rows in judges.items() if not dataset.findings.errors else ():
        cells = [cell for of_item in rows.values() for _, cell in of_item]
        texts = [cell for cell in cells if cell.text]
        if texts and not any(cell.label or cell.raw or cell.status for cell in cells):
            message = f"none of {len(texts):,} verdicts of {name} is a label"
            found = some(dict.fromkeys(cell.text for cell in texts))
            allowed = some(dict.fromkeys(t for m in dataset.rubric.metrics for t in m.label_texts))
            dataset.findings.add("unknown_label", message, texts[0].place, "", found, allowed)


def _only(name: str, judges: JudgeRows, file: str) -> JudgeRows:
    """The verdicts of that judge: by its name, or whoever is the only one there. Raises
    SetupError."""
    judges = {name if as_name(known) == name else known: rows for known, rows in judges.items()}
    if name not in judges and len(judges) > 1:
        message, allowed = "no verdict of this judge", ", ".join(judges)
        raise SetupError(Problem(message, file, None, "judge", name, allowed))
    if not judges:
        raise SetupError(Problem("holds no verdict", file))
    return {name: judges.get(name) or next(iter(judges.values()))}
