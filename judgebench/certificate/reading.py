"""What is new, as rows: of a study, or of tables of verdicts and of human labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgebench.certificate.record import Certificate
from judgebench.certificate.seen import Seen, chance_of, hash_of_text, judge_of, seen_of
from judgebench.data.columns import Columns, read_columns
from judgebench.data.findings import Findings
from judgebench.data.gather import Collected, VerdictSource
from judgebench.data.guess import plain_name, roles_by_name
from judgebench.data.load import read_into, read_verdicts
from judgebench.data.spec import DataSpec, Described
from judgebench.errors import Problem, SetupError, raise_any, some
from judgebench.records import CHANCES, WEIGHTS, Answer
from judgebench.rubric import Metric, Rubric, normalise
from judgebench.studies.study import Study


@dataclass(frozen=True)
class Batch:
    """Rows from one place, which `source` names; empty where nothing does. `blind` says whether
    labels of people were made without sight of a model's."""

    rows: Sequence[Seen]
    source: str = ""
    blind: str = "unknown"


_READ = ("question", "text", "reference")
_MODEL = ("judge_model", "model_version", "fingerprint", "model")


def batches(
    given: Sequence[Any], certificate: Certificate, sources: Sequence[str] = ()
) -> list[Batch]:
    """The rows of studies and tables, in their order, from these `sources`.

    Human labels (a column `annotator`) belong to the verdicts of any other table. Raises SetupError
    with every problem of all tables, and for labels without any verdict.
    """
    rubric, name = certificate.of_rubric, certificate.judge.name
    found, labels, problems = list[Batch](), list[_Labels](), list[Problem]()
    for one, source in zip(given, sources or [""] * len(given), strict=True):
        try:
            if isinstance(one, Study):
                _check(one.rubric, certificate)
                found.append(Batch(rows_of(one, rubric, name), source, one.config.blind))
                continue
            columns = _columns(one)
            shape = _shape(columns, rubric, name)
            if shape.people or "annotator" in roles_by_name(columns.cells):
                labels.append(_labels(one, columns, rubric, shape))
            else:
                found.append(Batch([*_verdicts(one, columns, rubric, name, shape)], source))
        except SetupError as error:
            problems += error.problems
    raise_any(problems)
    if labels and not found:
        message = "holds labels alone: give the judge's verdicts on these answers beside it"
        raise SetupError(Problem(message, labels[0].file))
    made = {one.blind for one in labels}
    blind = made.pop() if len(made) == 1 else "unknown"
    return [
        replace(one, rows=[_with(row, labels) for row in one.rows],
                blind=blind if labels else one.blind)
        for one in found
    ]  # fmt: skip


def answers_of(given: Sequence[Any], certificate: Certificate) -> list[tuple[Seen, dict[str, Any]]]:
    """The rows of `batches`, each with what is known of its answer: question, text and the like."""
    told: dict[str, dict[str, Any]] = {}
    for one in given:
        if isinstance(one, Study):
            for a in one.answers:
                told[a.item_id] = {"question": a.question, "text": a.text, "reference": a.reference}
        else:
            columns = _columns(one)
            shape = _shape(columns, certificate.of_rubric, certificate.judge.name)
            told |= _told(columns, (), shape.item)
    return [
        (row, {"item_id": row.item, "system": row.system, "group": row.group,
               **{k: v for k, v in told.get(row.item, {}).items() if v and k in _READ}})
        for batch in batches(given, certificate)
        for row in batch.rows
    ]  # fmt: skip


def rows_of(one: Any, rubric: Rubric, name: str) -> list[Seen]:
    """The verdicts of the judge of that name in a study or a table."""
    if isinstance(one, Study):
        return seen_of(one, judge_of(one, name))
    columns = _columns(one)
    return [*_verdicts(one, columns, rubric, name, _shape(columns, rubric, name))]


def _columns(table: Any) -> Columns:
    return read_columns(table, name=Path(table).name if isinstance(table, str | Path) else "table")


def _check(rubric: Rubric, certificate: Certificate) -> None:
    """Raises SetupError where a certified metric has other labels, or is not there."""
    known, theirs = certificate.of_rubric, {m.id: m for m in rubric.metrics}
    problems = []
    for metric in (m for m in known.metrics if m.id in certificate.certified):
        other = theirs.get(metric.id)
        if other is None or [*other.label_texts] != [*metric.label_texts]:
            found = " < ".join(other.label_texts) if other else "no such metric"
            message = "the labels are not those of the certificate"
            allowed = " < ".join(metric.label_texts)
            problems.append(Problem(message, "", None, metric.id, found, allowed))
    raise_any(problems)


def _verdicts(
    table: Any, columns: Columns, rubric: Rubric, name: str, shape: _Shape
) -> Iterator[Seen]:
    """The rows of a table of verdicts; what it says of answers beside them is theirs."""
    described = _described(table, columns, rubric, shape, "verdicts")
    judges = read_verdicts(VerdictSource([described], may_fail=True), rubric, ()).judges
    if name not in judges and len(judges) != 1:
        message, found = "has no verdict of the certified judge", ", ".join(judges)
        raise SetupError(Problem(message, columns.file, None, "judge", found, name))
    told = _told(columns, (*_MODEL, *CHANCES, *WEIGHTS), shape.item)
    for item, rows in (judges.get(name) or next(iter(judges.values()))).items():
        of, about = dict(rows), told.get(item, {})
        text = about.get("text", "")
        answer = Answer(
            item, text, about.get("question", ""), about.get("system", ""),
            about.get("reference") or None, about.get("group", ""),
        )  # fmt: skip
        yield Seen(
            item, answer.group, answer.system, hash_of_text(answer), len(text) if text else None,
            {m: said.label or "" for m, said in of.items()},
            {m: said.probabilities or {} for m, said in of.items()},
            {}, chance_of(about, columns.file),
            next((about[key] for key in _MODEL if about.get(key)), ""), text,
            all(said.label is None and not said.text for said in of.values()),
        )  # fmt: skip


@dataclass(frozen=True)
class _Shape:
    """What the columns of a table are: of ids, of metrics (by their ids), and of `people`, each of
    whom has a column of the only metric."""

    item: str
    metrics: Mapping[str, str]
    people: Sequence[str] = ()


def _shape(columns: Columns, rubric: Rubric, judge: str) -> _Shape:
    """Columns of metrics are known by an id or title, or as the only ones that hold its labels; of
    several such columns the one that the judge heads, else they are people's. Raises SetupError
    where there is none, or no column of ids."""
    roles, plain = _roles(columns)
    found = {
        metric.id: plain[name]
        for metric in rubric.metrics
        for name in (plain_name(metric.title), plain_name(metric.id))
        if name in plain
    }
    people: list[str] = []
    free = [c for c in columns.cells if c not in (*found.values(), *roles.values())]
    for metric in (m for m in rubric.metrics if m.id not in found and "metric" not in roles):
        held = [c for c in free if _holds(columns.cells[c], metric)]
        if len(rubric.metrics) > 1:
            held = [c for c in held if plain_name(metric.title) in plain_name(c)]
        headed = [c for c in held if plain_name(judge) in plain_name(c)] if len(held) > 1 else held
        if len(headed) == 1:
            found[metric.id] = headed[0]
        elif len(held) > 1 and len(rubric.metrics) == 1:
            people = held
    problems = []
    if not (found or people or "metric" in roles):
        titles = ", ".join(metric.title for metric in rubric.metrics)
        message = "no column holds labels of the certificate's metrics, or which does is not clear"
        allowed = f"columns called {titles}"
        problems.append(Problem(message, columns.file, 1, "", some(columns.cells), allowed))
    unlike = [c for c, cells in columns.cells.items() if len({*cells} - {""}) == len(cells)]
    item = roles.get("item_id") or next((c for c in unlike if c not in found.values()), "")
    if not item:
        message = "no column of ids is recognised"
        found_ = some(columns.cells)
        problems.append(Problem(message, columns.file, 1, "", found_, "a column called item_id"))
    raise_any(problems)
    return _Shape(item, found, people)


def _holds(cells: Sequence[str], metric: Metric) -> bool:
    """True where nearly all cells that are filled are labels of the metric."""
    known = {normalise(text) for text in metric.label_texts}
    filled = [cell for cell in cells if cell]
    return bool(filled) and sum(normalise(c) in known for c in filled) >= 0.9 * len(filled)


def _described(table: Any, columns: Columns, rubric: Rubric, shape: _Shape, kind: str) -> Described:
    """The table with what its columns are."""
    roles, plain = _roles(columns)
    item = {"item_id": {"column": shape.item}}
    entries: list[dict[str, Any]] = [{**item, "metrics": shape.metrics}]
    if "metric" in roles:
        entries = [{**item, "metric": roles["metric"], "label": roles["label"]}]
    if kind == "labels" and shape.people:
        (metric,) = rubric.metrics
        entries = [
            {**item, "annotator": {"value": who}, "metrics": {metric.id: who}}
            for who in shape.people
        ]
    elif kind == "labels":
        entries[0]["annotator"] = roles["annotator"]
    else:
        chances = dict(_probabilities(rubric, plain, long="metric" in roles))
        entries[0] |= {"probabilities": chances} if chances else {}
        entries[0] |= {name: plain[name] for name in ("judge", "status", "raw") if name in plain}
    is_file = isinstance(table, str | Path)
    path = str(table) if is_file else columns.file
    spec = DataSpec.model_validate({"files": [{"path": path, kind: entries}]})
    return Described(spec, None if is_file else table)


def _probabilities(
    rubric: Rubric, plain: Mapping[str, str], *, long: bool
) -> Iterator[tuple[str, Any]]:
    """The columns of probabilities, `probability_LABEL` or `probability_METRIC_LABEL`, and what
    they are of."""
    for metric in rubric.metrics:
        for label in metric.label_texts:
            name = f"probability_{label}" if long else f"probability_{metric.id}_{label}"
            if (column := plain.get(plain_name(name))) is not None:
                yield column, label if long else (metric.id, label)


def _roles(columns: Columns) -> tuple[dict[str, str], dict[str, str]]:
    """The columns by their roles, and all by their plain names."""
    return roles_by_name(columns.cells), {plain_name(c): c for c in columns.cells}


def _told(columns: Columns, others: Sequence[str], item: str) -> dict[str, dict[str, str]]:
    """The cells of each item by their role, and those of other columns by their names."""
    roles, plain = _roles(columns)
    ids = columns.cells[item]
    free = {name: c for name, c in plain.items() if c not in roles.values()}
    named = {**roles, **{name: free[name] for name in others if name in free}}
    return {
        item: {role: columns.cells[column][place] for role, column in named.items()}
        for place, item in enumerate(ids)
    }


@dataclass(frozen=True)
class _Labels:
    """The labels of a table, by item, metric and annotator, and the items' chances."""

    file: str
    by_item: Mapping[str, Mapping[str, Mapping[str, str]]]
    chances: Mapping[str, float]
    blind: str


def _labels(table: Any, columns: Columns, rubric: Rubric, shape: _Shape) -> _Labels:
    gathered = Collected(rubric, rubric, Findings())
    gathered.without_texts = gathered.people_only = True
    read_into(gathered, _described(table, columns, rubric, shape, "labels"), "")
    gathered.settle()
    raise_any(gathered.findings.errors)
    found: dict[str, dict[str, dict[str, str]]] = {}
    for one in gathered.human_labels():
        if one.label is not None and not one.adjudicated:
            found.setdefault(one.item_id, {}).setdefault(one.metric, {})[one.annotator] = one.label
    told = _told(columns, (*CHANCES, *WEIGHTS), shape.item)
    chances = {item: chance_of(about, columns.file) for item, about in told.items()}
    return _Labels(columns.file, found, chances, gathered.blindness)


def _with(row: Seen, labels: Sequence[_Labels]) -> Seen:
    """The row with the labels that tables give its item."""
    for one in labels:
        if given := one.by_item.get(row.item):
            both = {m: {**row.labels.get(m, {}), **people} for m, people in given.items()}
            chance = one.chances.get(row.item, 1.0)
            row = replace(
                row, labels={**row.labels, **both}, chance=row.chance if chance == 1 else chance
            )
    return row
