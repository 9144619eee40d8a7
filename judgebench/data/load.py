"""Load a data set, report on files without failing, read labels and verdicts as they are given,
and keep what a run folder need not read again.

A run folder's answers.jsonl and labels.jsonl hold what was read from the user's files. Beside them
are `answers.index` (where each line begins, content hashes, lengths of texts) and `data.json`:
which files were read, with their hashes, and the warnings. As long as every hash is the one that
was noted, reading the files again would give the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import judgebench
from judgebench.data.answer_file import AnswerFile
from judgebench.data.findings import Findings
from judgebench.data.gather import (
    Collected,
    Said,
    VerdictSource,
    completed_all,
    report_lacking,
)
from judgebench.data.guess import stem
from judgebench.data.importers import read_log
from judgebench.data.importers.log import tables
from judgebench.data.open_table import (
    DataTable,
    files_of,
    frame_table,
    named_table,
    open_table,
    reader_of_wing,
    with_parts,
)
from judgebench.data.pairs import KnownPairs, WantedPairs, known_pairs
from judgebench.data.recognise import recognise
from judgebench.data.row_reader import read_table
from judgebench.data.spec import (
    DataSpec,
    Described,
    FileSpec,
    FileVerdictSpec,
    IdSource,
    LabelSpec,
    Spellings,
    resolve,
)
from judgebench.errors import Problem, SetupError, raise_any, some
from judgebench.files import open_bytes, read_lines, read_object, to_json, write_atomically
from judgebench.records import (
    Answer,
    Blindness,
    Dataset,
    HumanLabel,
    Kind,
    Origin,
    canonical_json,
    content_hash,
)
from judgebench.rubric import Rubric
from judgebench.yaml_file import load_model

_READER = 10  # to be raised whenever the same files are read differently


def load_data(
    source: DataSpec | Path | Sequence[Path], rubric: Rubric, *,
    metrics: Sequence[str] | None = None, folder: Path | None = None, kept_in: Path | None = None,
    pairs: WantedPairs | None = None,
) -> Dataset:  # fmt: skip
    """Answers and human labels from data.yaml files, a data.yaml's model, or plain files.

    All files named are one data set. Plain files are recognised by their columns (docs/data.md).
    `metrics` keeps the labels of those metrics only; an `items` entry all of whose labels belong
    to others is left out. `folder` is where the paths in a data.yaml start, instead of the file's
    own folder. `kept_in` is a run folder that may keep what an earlier call read (`keep_data`).
    `pairs` are made of the answers, as rows beside them. There are rows of those kinds alone that
    the metrics are about.
    Raises SetupError with every problem of every file.
    """
    reading = _reading(source, rubric, metrics, folder)
    if pairs is not None:
        reading = content_hash([reading, str(pairs.source), pairs.prefer, pairs.seed])
    if kept_in is not None and (kept := kept_data(kept_in, reading)):
        return kept
    wanted = rubric if metrics is None else rubric.only(metrics)
    gathered = Collected(rubric, wanted, Findings())
    if pairs is not None:
        gathered.want_pairs(pairs)
        if isinstance(pairs.source, Path):
            _note_source(str(pairs.source), pairs.source, gathered)
    if isinstance(source, DataSpec):
        _read_spec(source, "", folder or Path(), gathered)
    else:
        _read_paths([source] if isinstance(source, Path) else source, folder, gathered)
    gathered.settle()
    if not (gathered.has_answers or gathered.left_out or gathered.findings.errors):
        gathered.add_labelled_items()
    if not gathered.findings.errors:
        report_lacking(gathered)
    if not gathered.n_answers and not gathered.findings.errors:
        gathered.findings.add("no_answers", "there are no answers to judge", ("", None))
    raise_any(gathered.findings.errors)
    kept_metrics = {metric.id for metric in wanted.metrics}
    return Dataset(
        answers=gathered.answers(),
        labels=tuple(label for label in gathered.human_labels() if label.metric in kept_metrics),
        warnings=gathered.findings.warnings,
        sources=gathered.sources,
        textless=tuple(gathered.textless),
        blind=gathered.blindness,
        origin=Origin(reading, gathered.files),
    )


def _reading(
    source: DataSpec | Path | Sequence[Path], rubric: Rubric, metrics: Sequence[str] | None,
    folder: Path | None,
) -> str:  # fmt: skip
    """A hash of everything that decides what is read, except the contents of the files."""
    if isinstance(source, DataSpec):
        named: object = source.model_dump(mode="json")
    else:
        named = [str(p.absolute()) for p in ([source] if isinstance(source, Path) else source)]
    where = folder and str(folder.absolute())
    version = [judgebench.__version__, _READER]
    return content_hash([version, rubric.content_hash, metrics and [*metrics], named, where])


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The contents of files and the problems in them. `answers` counts pairs and criteria too, as
    `made` does by their kinds.

    `annotators` counts labels by annotator (the slots of a list cell under their common name),
    `metrics` by metric and label, with 0 for labels not given. Blank cells are not labels.
    """

    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    answers: int
    labels: int
    blank: int
    annotators: Mapping[str, int]
    metrics: Mapping[str, Mapping[str, int]]
    sources: Mapping[str, str]
    made: Mapping[Kind, int] = field(default_factory=dict)
    datasets: tuple[Dataset, ...] = field(default=(), compare=False)  # what the counts are of

    @property
    def ok(self) -> bool:
        return not self.errors


def check_files(
    paths: Sequence[Path | Described], rubric: Rubric, *, folder: Path | None = None
) -> CheckReport:
    """Read the files as `load_data` would and report; never raises for their contents.

    The files are one data set, except that of several data.yaml each is one of its own, and all
    plain files beside them one more; counts are then summed. Labels without any answers are
    checked too, except for their items.
    """
    specs = [path for path in paths if isinstance(path, Path) and is_yaml(path)]
    plain = [path for path in paths if path not in specs]
    groups: Sequence[Sequence[Path | Described]] = [paths]
    if len(specs) > 1:
        groups = [*([path] for path in specs), plain]
    sets = []
    for group in filter(None, groups):
        sets.append(Collected(rubric, rubric, Findings()))
        for source in group:
            if isinstance(source, Path):
                _read_paths([source], folder, sets[-1])
            else:
                read_into(sets[-1], source, "")
        sets[-1].settle()
    metrics = {m.id: dict.fromkeys(m.options, 0) for m in rubric.metrics}
    annotators: Counter[str] = Counter()
    for one in sets:
        for label in one.human_labels():
            if label.label is not None and not label.adjudicated:
                metrics[label.metric][label.label] += 1
                annotators[label.annotator.split("#")[0]] += 1
    return CheckReport(
        errors=tuple(problem for one in sets for problem in one.findings.errors),
        warnings=tuple(problem for one in sets for problem in one.findings.warnings),
        answers=sum(one.n_answers for one in sets),
        labels=annotators.total(),
        blank=sum(one.blank for one in sets),
        annotators=dict(sorted(annotators.items())),
        metrics=metrics,
        sources={file: sha for one in sets for file, sha in one.sources.items()},
        made=Counter(kind for one in sets for kind in one.made.values()),
        datasets=tuple(Dataset(one.answers(), tuple(one.human_labels())) for one in sets),
    )


def is_yaml(path: Path) -> bool:
    """True where a file is YAML, by its name."""
    return path.suffix.lower() in (".yaml", ".yml")


def read_into(gathered: Collected, source: Any, name: str) -> None:
    """Read one more file, DataFrame or described table into what was gathered; `name` names a
    DataFrame."""
    if isinstance(source, Described):
        _read_spec(source.spec, "", Path(), gathered, source.frame)
    elif isinstance(source, str | Path):
        folder = gathered.source.folder if gathered.source else None
        _read_paths([Path(source)], folder, gathered)
    else:
        _read_table(frame_table(source, name, gathered.findings), name, gathered)


def _read_paths(paths: Sequence[Path], folder: Path | None, gathered: Collected) -> None:
    for path in paths:
        _note_source(str(path), path, gathered)
        if not is_yaml(path):
            table = open_table(path, gathered.findings)
            if table and "data" in table.columns and "item_id" not in table.columns:
                table = _tasks(path, table, gathered.findings)
            _read_table(table, stem(path), gathered)
            continue
        try:
            spec = load_model(path, DataSpec)
        except SetupError as error:
            gathered.findings.extend("bad_spec", error.problems)
        else:
            _read_spec(spec, str(path), folder or path.parent, gathered)


def _tasks(path: Path, table: DataTable, findings: Findings) -> DataTable | None:
    """The answers of a Label Studio project's tasks; the table itself where it holds none."""
    try:
        found = tables(read_log(path))
    except SetupError:
        return table
    if found.labels or found.verdicts:
        findings.add(
            "unrecognised_file",
            "is another tool's export, with labels: `judgebench import` makes data files of it",
            (str(path), None),
        )
        return None
    rows = [{name: cell for name, cell in row.items() if cell} for row in found.answers]
    return named_table(str(path), rows, findings, header=0)


def _read_spec(
    spec: DataSpec, file: str, folder: Path, gathered: Collected, frame: Any = None
) -> None:
    spec = resolve(spec, gathered.rubric, gathered.findings, file)
    gathered.ignore_unknown |= spec.labels_for_unknown_items == "ignore"
    source = gathered.source
    if source and not source.columns:
        spec = of_verdicts(spec)
    for one in spec.files:
        if frame is not None:
            table = frame_table(frame, one.path, gathered.findings)
            _read_as(one, table, stem(folder / one.path), gathered)
            continue
        for name, named in _files_of(one, folder, gathered):
            path = folder / name
            _note_source(name, path, gathered)
            table = open_table(path, gathered.findings, one)
            table = table and with_parts(table, one, named, gathered.findings)
            _read_as(one, table, stem(path), gathered)


def _files_of(
    one: FileSpec, folder: Path, gathered: Collected
) -> Sequence[tuple[str, Mapping[str, str]]]:
    """The files that the path names; that there is none is reported."""
    found = files_of(folder, one.path)
    if not found:
        at = (str(folder / one.path), None)
        gathered.findings.add("unreadable_file", "no file fits this path", at)
    if [name for name, _ in found] != [one.path]:
        gathered.files[str((folder / one.path).absolute())] = ""  # more may come: never kept
    return found


def of_verdicts(spec: DataSpec) -> DataSpec:
    """The entries of verdicts alone. Where there are none, those of labels are the judges'."""
    has_verdicts = any(file.verdicts or any(i.verdicts for i in file.items) for file in spec.files)
    files = []
    for file in spec.files:
        kind = "verdicts" if has_verdicts else "labels"
        entries = [(one.item_id, one) for one in getattr(file, kind)]
        entries += [(item.item_id, one) for item in file.items for one in getattr(item, kind)]
        own = tuple(_at(item_id, entry) for item_id, entry in entries)
        if own:
            files.append(file.model_copy(update={"items": (), "labels": (), "verdicts": own}))
    return spec.model_copy(update={"files": tuple(files)})


def _at(item_id: IdSource, own: LabelSpec) -> FileVerdictSpec:
    known = FileVerdictSpec.model_fields
    values = {name: getattr(own, name) for name in type(own).model_fields if name in known}
    judge = values.pop("annotator")
    return FileVerdictSpec.model_validate({**values, "judge": judge, "item_id": item_id})


def beside_labels(
    file: FileSpec | None, table: DataTable, source: VerdictSource, findings: Findings
) -> FileSpec | None:
    """The columns of verdicts in a file of answers or labels, which stand in the rows of its
    items; None where it has none of them.

    Without an entry of a data.yaml, `item_id` says whose they are. Several items in a row are
    reported.
    """
    columns = {m: c for m, c in source.columns.items() if table.find(c) is not None}
    if not columns:
        return None
    items, labels = (file.items, file.labels) if file else ((), ())
    ids = {*(item.item_id for item in items), *(own.item_id for own in labels)}
    if len(ids) > 1:
        message = "several items stand in each row: name the verdicts of each in its data.yaml"
        column = next(iter(columns.values()))
        findings.add("bad_spec", message, (table.file, None), "column", column, "verdicts: [...]")
        return None
    spellings: dict[str, Spellings] = {}
    for one in (*labels, *(one for item in items for one in item.labels)):
        for metric, known in one.spellings.items():
            spellings[metric] = {**spellings.get(metric, {}), **known}
    item_id = ids.pop() if ids else IdSource(column="item_id")
    own = FileVerdictSpec(item_id=item_id, metrics=columns, spellings=spellings)
    return FileSpec(path=file.path if file else table.file, verdicts=(own,))


def _read_table(table: DataTable | None, name: str, gathered: Collected) -> None:
    if table and gathered.source and gathered.source.columns:
        _read_as(None, table, name, gathered)
    elif table and not _silver(table, gathered) and (spec := recognise(table, gathered)):
        _read_as(spec, table, name, gathered)


def _read_as(
    spec: FileSpec | None, table: DataTable | None, name: str, gathered: Collected
) -> None:
    source = gathered.source
    if table is None:
        return
    if source and source.columns:
        spec = beside_labels(spec, table, source, gathered.findings)
    if spec and not (
        (spec.labels or any(i.labels for i in spec.items)) and _silver(table, gathered)
    ):
        read_table(table, spec, (source and source.judge) or name, gathered)


def _silver(table: DataTable, gathered: Collected) -> bool:
    """True where a machine gave its labels (`judgebench tune data`), which is reported; those
    of a judge may be a machine's."""
    if "silver" not in table.columns or gathered.who != "annotator":
        return False
    gathered.findings.add(
        "silver_label",
        "holds labels of a machine, which never count as labels of people: name the file in "
        "`stages` of a judge that learns, or only its answers in a data.yaml",
        (table.file, None),
        "silver",
    )
    return True


def _note_source(name: str, path: Path, gathered: Collected) -> None:
    # A file that cannot be opened is reported where its rows are read.
    with suppress(OSError, SetupError):
        digest = file_hash(path)
        gathered.files[str(path.absolute())] = digest
        if gathered.sources.setdefault(name, digest) != digest:  # the same name, another folder
            gathered.sources[str(path)] = digest


# What is usual where tables are not written for judgebench, and changes nothing.
_USUAL = ("blank_label", "blank_question", "byte_order_mark", "duplicate_item", "float_label")
_MANY_MORE = 0.25  # as many more items of verdicts as are known, for a table of all that was judged

WHOLE_REPLY = ""  # in place of a metric


def has_verdicts(source: Any) -> bool:
    """True where it is a data.yaml with entries of verdicts; False where it cannot be read."""
    if not isinstance(source, str | Path) or not is_yaml(Path(source)):
        return False
    try:
        spec = load_model(Path(source), DataSpec)
    except SetupError:
        return False
    return any(file.verdicts or any(i.verdicts for i in file.items) for file in spec.files)


@dataclass(frozen=True)
class GivenData:
    """Labels, verdicts and answers as they were given. `verdicts` has one entry per source.
    Without answers, `answers` have no texts, and what labels and verdicts say of them."""

    answers: Sequence[Answer]
    labels: Sequence[HumanLabel]
    verdicts: Sequence[GivenVerdicts]
    has_texts: bool
    blind: Blindness
    warnings: Sequence[Problem]


_NAMED = (
    "without a rubric, columns of any name are understood, and the order of the labels is said "
    "instead"
)


def read_given(
    labels: Any, verdicts: Sequence[VerdictSource], answers: Any, rubric: Rubric
) -> GivenData:
    """Read labels, verdicts and answers, which may be None.

    Raises SetupError with every problem of all of them.
    """
    gathered = Collected(rubric, rubric, Findings())
    gathered.without_texts = answers is None
    gathered.keeps_empty = True  # no model reads them
    gathered.people_only = True
    if answers is not None:
        read_into(gathered, answers, "answers")
    read_into(gathered, labels, "labels")
    if gathered.without_texts:  # unless the labels bring their texts along
        gathered.without_texts = not gathered.n_answers or bool(gathered.textless)
    gathered.settle()
    people, findings = list(gathered.human_labels()), gathered.findings
    known = known_pairs(gathered.answers(), rubric)
    labelled = frozenset((one.item_id, one.metric) for one in people if one.label is not None)
    said = [_read_verdicts(source, rubric, findings, known, labelled) for source in verdicts]
    if not findings.errors:
        _check_given(people, said, findings)
    if {"unknown_column", "unrecognised_file"} & {one.kind for one in findings.errors}:
        raise SetupError([*findings.errors, Problem(_NAMED)])
    raise_any(findings.errors)
    named = gathered.what_is_said()
    for one in said:
        named = completed_all(named, one.named)
        gathered.complete(one.named)
    found = gathered.answers()
    by_id = {answer.item_id: answer for answer in found} if answers is None else {}
    if more := () if gathered.without_texts else _without_texts(by_id, said):
        found = [*found, *(named.get(item_id, Answer(item_id, "")) for item_id in more)]
    if gathered.without_texts:  # every item that has a label or a verdict
        for item_id in (*(x.item_id for x in people), *(i for one in said for i in one.items)):
            by_id.setdefault(item_id, named.get(item_id, Answer(item_id, "")))
        found = list(by_id.values())
    warnings = [w for w in findings.warnings if w.kind not in _USUAL]
    return GivenData(found, people, said, not gathered.without_texts, gathered.blindness, warnings)


def _without_texts(known: Collection[str], said: Sequence[GivenVerdicts]) -> list[str]:
    """The items that every judge has, beside the `known` ones, whose texts the labels bring along:
    none where they are few, and rather slips in the ids of these."""
    judges = [rows for one in said for rows in one.judges.values()]
    found = [i for i in judges[0] if all(i in rows for rows in judges)] if judges and known else []
    more = [item_id for item_id in found if item_id not in known]
    return more if len(more) >= _MANY_MORE * len(known) else []


def _check_given(
    labels: Sequence[HumanLabel], verdicts: Sequence[GivenVerdicts], findings: Findings
) -> None:
    """Labels and verdicts that can be compared; what prevents it is reported."""
    labelled = {label.item_id for label in labels if label.label is not None}
    if not labelled:
        findings.add("no_rows", "holds no human label", ("labels", None))
    for one in verdicts if labelled else ():
        if labelled.isdisjoint(one.items):
            message = "no item of the verdicts has a human label"
            first = next(iter(one.items), "")
            findings.add(
                "unknown_item",
                message,
                (one.file, None),
                "item_id",
                first,
                f"item ids of the labels, such as {min(labelled)!r}",
            )


@dataclass(frozen=True)
class GivenVerdicts:
    """The verdicts of a source, by judge and item, and what was noticed in reading them.
    `file` names the first of its files, `named` holds the pairs and criteria that are named there,
    and items of which the source says more than their ids, without texts."""

    judges: Mapping[str, Mapping[str, Sequence[tuple[str, Said]]]]
    file: str
    named: Mapping[str, Answer] = field(default_factory=dict)
    warnings: Sequence[Problem] = ()

    @property
    def metrics(self) -> set[str]:
        """The metrics that any judge labelled, WHOLE_REPLY among them where replies were read."""
        return {m for rows in self.judges.values() for said in rows.values() for m, _ in said}

    @property
    def items(self) -> dict[str, None]:
        """Every item of any judge, in the order in which they were read."""
        return dict.fromkeys(item for of_judge in self.judges.values() for item in of_judge)


def read_verdicts(
    source: VerdictSource, rubric: Rubric, answers: Iterable[Answer]
) -> GivenVerdicts:
    """The verdicts of a source on the metrics of a rubric. Raises SetupError with every problem.

    Those on pairs, which a table names by question and responses, are on the pairs among `answers`
    that have these responses.
    """
    findings = Findings()
    found = _read_verdicts(source, rubric, findings, known_pairs(answers, rubric))
    raise_any(findings.errors)
    return replace(found, warnings=findings.warnings)


def _read_verdicts(
    source: VerdictSource, rubric: Rubric, findings: Findings, pairs: KnownPairs,
    labelled: frozenset[tuple[str, str]] | None = None,
) -> GivenVerdicts:  # fmt: skip
    gathered = Collected(rubric, rubric, findings, source)
    gathered.known_pairs, gathered.labelled = pairs, labelled
    for file in source.files:
        read_into(gathered, file, "verdicts")
    first = source.files[0]
    first = first.spec.files[0].path if isinstance(first, Described) else first
    file = str(first) if isinstance(first, str | Path) else "verdicts"
    judges: dict[str, dict[str, list[tuple[str, Said]]]] = {}
    for key, said in gathered.verdicts.items():
        judges.setdefault(key.annotator, {}).setdefault(key.item_id, []).append((key.metric, said))
    for name, rows in judges.items() if not (findings.errors or source.may_fail) else ():
        _check_read(
            name, [one for of_item in rows.values() for _, one in of_item], rubric, findings
        )
    if source.columns and not judges and not findings.errors:
        message = "no file of the data has this column"
        for column in source.columns.values():
            findings.add("missing_column", message, (file, None), "column", column)
    if source.judge and not findings.errors:
        judges = _only(source.judge, judges, file, findings)
    pairs_and_criteria = {item_id: row for item_id, (row, _) in gathered.named.items()}
    named = {**gathered.said_by_judges, **pairs_and_criteria}
    return GivenVerdicts(judges, file, named)


def _check_read(name: str, said: Sequence[Said], rubric: Rubric, findings: Findings) -> None:
    """Report a judge of whom nothing that is there can be read."""
    texts = [one for one in said if one.text]
    if texts and not any(one.label or one.raw or one.status for one in said):
        message = f"none of {len(texts):,} verdicts of {name} is a label"
        found = some(dict.fromkeys(one.text for one in texts))
        allowed = some(dict.fromkeys(text for m in rubric.metrics for text in m.label_texts))
        findings.add("unknown_label", message, texts[0].place, "", found, allowed)


def _only(name: str, judges: dict[str, Any], file: str, findings: Findings) -> dict[str, Any]:
    """The verdicts of that judge: by its name, or whoever is the only one there."""
    if name not in judges and len(judges) > 1:
        findings.add(
            "unknown_judge",
            "no verdict of this judge",
            (file, None),
            "judge",
            name,
            ", ".join(judges),
        )
    found = judges.get(name) or next(iter(judges.values()), None)
    if found is None and not findings.errors:
        findings.add("no_rows", "holds no verdict", (file, None))
    return {name: found or {}}


ANSWERS, LABELS, _INDEX, _DATA = "answers.jsonl", "labels.jsonl", "answers.index", "data.json"


def keep_data(folder: Path, dataset: Dataset) -> None:
    """Note that the run folder's answers and labels, which are written, are those of `dataset`.

    Small data sets, and those that are not just what files hold, are not kept. One that was taken
    from the folder is kept there already. Raises OSError.
    """
    if is_kept(folder, dataset):
        return
    (folder / _DATA).unlink(missing_ok=True)
    if dataset.origin is None or not isinstance(dataset.answers, AnswerFile):
        (folder / _INDEX).unlink(missing_ok=True)
        return
    write_atomically(folder / _INDEX, dataset.answers.index_bytes())
    noted = {
        "reading": dataset.origin.reading,
        "files": dict(dataset.origin.files),
        "kept": _hashes(folder),
        "sources": dict(dataset.sources),
        "textless": list(dataset.textless),
        "blind": dataset.blind,
        "warnings": [asdict(problem) for problem in dataset.warnings],
    }
    write_atomically(folder / _DATA, to_json(noted, indent=2).encode("utf-8"))


def is_kept(folder: Path, dataset: Dataset) -> bool:
    """True where the data set was taken from that run folder, whose files need not be
    written."""
    answers = dataset.answers
    taken = isinstance(answers, AnswerFile) and answers.is_all_of(folder / ANSWERS)
    return taken and dataset.origin is not None and (folder / _DATA).is_file()


def kept_data(folder: Path, reading: str) -> Dataset | None:
    """The data set that the run folder keeps; None unless reading would give just the same."""
    try:
        noted = read_object((folder / _DATA).read_bytes(), folder / _DATA)
        if noted["reading"] != reading or noted["kept"] != _hashes(folder):
            return None
        if any(file_hash(Path(path)) != known for path, known in noted["files"].items()):
            return None
        return Dataset(
            answers=AnswerFile.open(folder / ANSWERS, (folder / _INDEX).read_bytes()),
            labels=tuple(HumanLabel(**value) for _, value in read_lines(folder / LABELS)),
            warnings=tuple(Problem(**value) for value in noted["warnings"]),
            sources=noted["sources"],
            textless=tuple(noted["textless"]),
            blind=noted["blind"],
            origin=Origin(reading, noted["files"]),
        )
    except (OSError, SetupError, KeyError, TypeError, AttributeError):
        return None


def file_hash(path: Path) -> str:
    """The SHA-256 of a file's bytes as hex digits; of a wing's table, of its rows, which a
    database may hold in a file beside it. Raises OSError, and SetupError for such a table."""
    if read := reader_of_wing(path):
        rows = canonical_json(read(path)).encode("utf-8", "surrogatepass")
        return hashlib.sha256(rows).hexdigest()
    with open_bytes(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hashes(folder: Path) -> Mapping[str, str]:
    return {name: file_hash(folder / name) for name in (ANSWERS, LABELS, _INDEX)}
