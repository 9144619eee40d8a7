"""Understand tables that nobody described: who labelled what, and whose verdicts stand where.

What is understood is a data.yaml's model, so that it is read as any other file is, and can be
written down.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from judgebench.data.findings import NEAR_AMONG, nearest
from judgebench.data.guess import (
    CROWD,
    JUDGES,
    MOSTLY,
    NAMES,
    NO_HINTS,
    NOBODYS,
    NOT_THEIRS,
    Guess,
    Hints,
    Look,
    as_name,
    by_judge,
    gives_labels,
    guess,
    is_like_a_program,
    judge_of,
    look_at,
    metric_in,
    names_of_judges,
    ordered,
    plain_label,
    plain_name,
    read_as,
    replying,
    sheets_of,
    stem,
    with_scores,
)
from judgebench.data.open_table import check_frame, rubric_beside, table_in
from judgebench.data.recognise import probability_columns
from judgebench.data.spec import DataSpec, Described, FileSpec, columns_of, read_label
from judgebench.errors import Problem, SetupError, raise_any, some
from judgebench.records import ADJUDICATED, CHANCES, WEIGHTS, columns_named
from judgebench.rubric import Metric, Rubric, normalise
from judgebench.studies.verdicts import may_be_a_model
from judgebench.words import counted, listed, plain_id, subject

_MOST_HEADS = 4  # columns of several metrics that a line lists
NO_ORDER = "none"  # in the place of an order: no label is worse than another
ONLY_ONE = "(write the other labels here)"  # a metric has two
EXAMPLE = {"Quality": ("Good", "Acceptable", "Poor")}  # where a table holds no labels
_COMMON = 3  # times as often as a misspelt one is a label used
_MOST_SAID = 8  # columns that are not read
_ITEM = ("question", "text", "system", "reference", "group")
_OF_A_STUDY = ("made_blind", "study", "spans")  # beside the labels that `annotate` exports
_REASONS = ("rationale", "explanation", "reasoning", "reason", "justification")
_MANY, _PART = 5, 0.05  # ids of either table, from which on they may be written differently
_SHARED = 0.2  # of the ids of one table are those of another
_LABEL = re.compile(r"[^\s.,;!?]+(?: [^\s.,;!?]+){0,3}")  # and no sentence
_WORD = re.compile(r"[^\W_]+")
_GRADE = re.compile(r"[ivx]+|(.)\1*")
_TIES = ("tie", "both", "equal", "draw", "neither", "same", "none", "0")


class Table(NamedTuple):
    """A file, or a DataFrame with the name that messages call it by; or a sheet of a workbook."""

    path: Path
    frame: Any = None
    sheet: str = ""
    judge: str = ""  # the name that somebody gives the one judge in it

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"{self.path.name}, sheet {self.sheet}" if self.sheet else self.path.name

    @property
    def stem(self) -> str:
        """The name that says what is in it."""
        return self.sheet or stem(self.path)

    def look(self, hints: Hints = NO_HINTS, *, of_judges: bool = False) -> Look:
        """The look of its columns."""
        return look_at(self.path, self.frame, hints, self.sheet, of_judges=of_judges)


def table_of(given: Any, name: str) -> Table:
    """The table of a path or a DataFrame. Raises SetupError for anything else."""
    if isinstance(given, str | Path):
        return Table(table_in(Path(given)))
    check_frame(given, name)
    return Table(Path(name), given)


@dataclass(frozen=True)
class JudgeTable:
    """The verdicts of one judge, or of all that a column names, in a table."""

    names: Sequence[str]
    table: Table
    spec: dict[str, Any]  # as in `verdicts` of a data.yaml
    look: Look
    columns: Mapping[str, str] = field(default_factory=dict)  # of the labels' own table, by metric
    replies: str = ""  # what is said of whole replies

    @property
    def called(self) -> str:
        """The judge by name; several by their table."""
        return self.names[0] if len(self.names) == 1 else f"the judges of {self.table.name}"

    @property
    def read(self) -> list[str]:
        """The columns of its verdicts."""
        column = self.spec.get("raw") if self.replies else self.spec.get("label")
        return [*self.spec.get("metrics", {}).values()] or [column or ""]

    def fits(self, name: str) -> bool:
        """True where a judge or a column of it has this name, whatever its case and signs."""
        who = self.spec.get("judge")
        known = (*self.names, *self.read, who if isinstance(who, str) else "")
        return _bare(name) in map(_bare, known)

    @property
    def is_free(self) -> bool:
        """True of one judge that no head of a column names."""
        name, *others = self.names
        headed = _is_like_a_judge(name) and any(_bare(name) in _bare(c) for c in self.read)
        return not (others or headed)

    @property
    def described(self) -> Described:
        entry = {**_settings(self.look.source), "verdicts": [self.spec]}
        spec = DataSpec.model_validate({"files": [entry]})
        return Described(spec, self.table.frame)


@dataclass(frozen=True)
class Understood:
    """The contents of tables: a rubric, the tables as files of a data.yaml, judges, and what was
    understood in a few lines. `labels` is None where nobody labelled anything."""

    rubric: Rubric
    labels: Described
    judges: Sequence[JudgeTable]
    lines: Sequence[str]
    found: Guess
    ids: Mapping[str, str]  # of each metric as the table calls it
    answers: Described | None = None
    expected: str = "items"

    @property
    def lacks_labels(self) -> bool:
        """True where nobody's labels are there, or nobody knows whose they are."""
        whose = any(self.found.columns) or "annotator" in self.found.roles
        return not (self.found.metrics and whose)

    @property
    def tables(self) -> list[str]:
        """The names of the tables."""
        return list(dict.fromkeys(Path(file["path"]).name for file in self.as_spec()["files"]))

    def as_spec(self) -> dict[str, Any]:
        """A data.yaml that reads all tables."""
        described = [self.labels, *([self.answers] if self.answers else [])]
        files = [plain_spec(file) for one in described for file in one.spec.files]
        for judge in self.judges:
            if not judge.columns:
                files.append(plain_spec(judge.described.spec.files[0]))
        spellings = self.labels.spec.spellings
        return {"files": files, **({"spellings": spellings} if spellings else {})}

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The judges as `study` takes them."""
        return [
            {
                "verdicts": judge.described,
                "expected": self.expected,
                **({"name": judge.names[0]} if len(judge.names) == 1 else {}),
                **({"reply": "label"} if judge.replies else {}),
            }
            for judge in self.judges
        ]


def understand_given(
    labels: Any, verdicts: Any = None, answers: Any = None, hints: Hints = NO_HINTS
) -> Understood:
    """Understand tables as they are given in Python: paths and DataFrames; `verdicts` may be one or
    several, also by the names of their judges. Raises SetupError."""
    if verdicts is None and answers is None and isinstance(labels, str | Path):
        return understand_files([Path(labels)], hints)
    if isinstance(verdicts, Mapping) and "verdicts" not in verdicts:
        given = [table_of(v, str(name))._replace(judge=str(name)) for name, v in verdicts.items()]
    else:
        several = verdicts if isinstance(verdicts, list | tuple) else [verdicts]
        names = [f"judge {i}" if several[1:] else "judge" for i in range(1, len(several) + 1)]
        given = [table_of(v, name) for v, name in zip(several, names, strict=True) if v is not None]
    beside = None if answers is None else table_of(answers, "answers")
    return understand(table_of(labels, "labels"), given, beside, hints)


def understand_files(
    paths: Sequence[Path], hints: Hints = NO_HINTS, *, labelled: bool = True
) -> Understood:
    """Understand files in any order, which are `labelled` or may hold answers alone. Raises
    SetupError."""
    tables = [Table(path, None, sheet) for path in map(table_in, paths) for sheet in _sheets(path)]
    labels, verdicts, answers = sorted_tables(tables, hints)
    return understand(labels, verdicts, answers, hints, labelled=labelled)


def _sheets(path: Path) -> list[str]:
    """The sheets to be read as tables of their own; [""] where the file is one table. Raises
    SetupError where people's labels are in several."""
    found = sheets_of(path)
    looks = {name: look_at(path, sheet=name) for name in found if len(found) > 1}
    people = [name for name, look in looks.items() if not _is_of_judges(name, look)]
    if len(people) > 1 and not _is_like_a_judge(stem(path)):
        message = (
            "several sheets hold labels of people, and no name or column says which is a judge's"
        )
        allowed = "save the sheet that is meant as a file of its own, or name the judge's sheet "
        allowed += "after it, such as gpt-4; labels of several annotators belong in one sheet"
        raise SetupError(Problem(message, str(path), None, "sheet", some(people), allowed))
    return found if len(found) > 1 else [""]


def _is_of_judges(sheet: str, look: Look) -> bool:
    """True where a sheet, or all that it holds beside items, is named like a program's."""
    said = {*plain_name(sheet).split("_"), *map(plain_name, look.usable)}
    named = said & {*JUDGES, "verdict", "verdicts", "llm", "ai", "ki"} or _is_like_a_judge(sheet)
    return bool(named) or all(map(is_like_a_program, look.like_labels))


def plain_spec(file: FileSpec) -> dict[str, Any]:
    """A file of a data.yaml as people write it."""
    dumped = file.model_dump(mode="json", exclude_defaults=True, by_alias=True)
    return {key: _short(value) for key, value in dumped.items()}


def _short(value: Any) -> Any:
    """A column by its name alone, a list of one entry as that entry."""
    if isinstance(value, dict):
        if len(value) == 1 and {*value} <= {"column", "template"}:
            return next(iter(value.values()))
        return {key: _short(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [_short(inside) for inside in value]
    return value


def understand(
    labels: Table, verdicts: Sequence[Table] = (), answers: Table | None = None,
    hints: Hints = NO_HINTS, *, labelled: bool = True,
) -> Understood:  # fmt: skip
    """Understand a table of labels, or of labels and verdicts, tables of verdicts, and one of
    answers. Raises SetupError where a column has to be named."""
    given = [(one.path.resolve(), one.sheet) for one in (labels, *verdicts) if one.frame is None]
    if twice := [path for path, n in Counter(given).items() if n > 1]:
        raise SetupError(Problem("the same table is given twice", found=twice[0][0].name))
    looks = [(table, table.look(hints, of_judges=True)) for table in verdicts]
    theirs = answers and answers.look(hints)
    if hints != NO_HINTS:
        with_items = [labels.look(hints), *(look for _, look in looks)]
        hints = _with_heads(hints, [column for look in with_items for column in look.columns])
        _check_hints(hints, with_items, theirs)
    found = guess(labels.path, labels.frame, hints, [look for _, look in looks], labels.sheet)
    if not found.metrics and (verdicts or labelled):
        message = "no column looks like labels that people gave"
        columns, message = some(found.look.columns), message + with_scores(found.look)
        raise SetupError(Problem(message, str(labels.path), None, "annotators", columns))
    if found.pair and hints.keep:
        message = "columns are kept with items, and these rows compare two responses"
        raise SetupError(Problem(message, str(labels.path), None, "keep", some(hints.keep)))
    if found.pair and hints.question and hints.question != found.by:
        message = (
            f"what two responses answer is known by {some(found.by)}, and is grouped no further"
        )
        raise SetupError(Problem(message, str(labels.path), None, "question", some(hints.question)))
    found = _with_labels_of_judges(found, [look for _, look in looks], hints.order)
    metrics = _renamed(found, looks)
    rubric, ids, spellings = _rubric(stem_of(labels.path), metrics, found, hints.order, looks)
    beside_labels = rubric_beside(labels.path) if labels.frame is None else None
    if asked := hints.rubric or beside_labels:
        rubric = _as_asked(rubric, asked)
    roles = _carried(found, theirs)
    own = _own_judges(labels, found, rubric, ids, spellings)
    judges = [*own, *_judges(looks, found, roles, rubric, hints)]
    if hints.judge:
        judges = _named(judges, hints, found, [look for _, look in looks])
    raise_any([
        Problem(f"{column} {why}", str(one.table.path), None, "judge", ", ".join(one.names))
        for one in judges
        for column in one.read
        if (why := _decimals(one.look, column, found))
    ])  # fmt: skip
    _check_names(judges, labels)
    entry = {**_settings(found.source), **entries(found, ids, theirs)}
    spec = DataSpec.model_validate({"files": [entry], "spellings": spellings})
    beside = _answers(answers, theirs, found, hints) if answers and theirs else None
    known = Understood(rubric, Described(spec, labels.frame), judges, (), found, ids, beside)
    every = [(labels, found.look), *looks, *([(answers, theirs)] if answers and theirs else [])]
    return replace(known, lines=[*_notices(known, every, hints)])


def _notices(known: Understood, looks: Sequence[tuple[Table, Look]], hints: Hints) -> Iterator[str]:
    """Lines on what was understood: of the labels, the answers if they have a table, and the
    judges; then what is not read, or not as it may be meant. `looks` are of the labels, the
    verdicts and the answers."""
    found, judges, rubric = known.found, known.judges, known.rubric
    (labels, _), *others = looks
    answers = others.pop() if known.answers else None
    first, *rest = _in_words(labels, found, rubric, judges, known.ids)
    yield first
    if answers:
        text = "" if judges else answers[1].roles.get("text", "")
        ask = f", in column {text} (if it holds a judge's replies: --judge {quote(text)})"
        yield f"{answers[0].name}: the answers{ask * bool(text)}"
    yield from rest
    every_one = any("raw" in one.spec or "metric" in one.spec for one in judges)
    judged = {metric for one in judges for metric in one.spec.get("metrics", {})}
    if judges and not every_one and (alone := [m for m in rubric.metrics if m.id not in judged]):
        yield f"no judge labelled {some(m.title for m in alone)}: nothing is decided there"
    yield from _not_read(_unread_of_labels(found))
    for table, look in others:
        yield from _without_labels(table, look, found, hints, labels.name)
        read = [one for one in judges if one.table is table]
        yield from _not_read(_unread(look, read, found), f"{table.name}: ")
    for name in hints.judge:
        safe = as_name(name)[:64]
        if (
            safe != name
            and any(safe in one.names for one in judges)
            and not any(name in one.read for one in judges)
        ):
            yield f"the judge {name!r} is called {safe}: names hold letters, digits and - . _ alone"
    sources = {look.source.path: look.source for _, look in looks}
    for table, look in [(labels, found.look), *others, *([answers] if answers else [])]:
        if look.source.sheet and not table.sheet:
            yield f"{table.name}: read sheet {look.source.sheet}, and no other"
    for path in (path for path, one in sources.items() if getattr(one, "encoding", None)):
        yield f"{Path(path).name}: read as Windows-1252, for not all of it is UTF-8"
    if kept := [] if found.pair else list(dict.fromkeys(c for _, look in looks for c in look.kept)):
        yield f"kept with each item: {some(kept)}"
        for column in columns_named(kept, (*WEIGHTS, *CHANCES)):
            yield (
                f"{column} is taken for how items were sampled, because of its name: if it says "
                "something else, rename the column"
            )


def stem_of(path: Path) -> str:
    """The file's name as the name of a benchmark and a rubric."""
    return re.sub("[^A-Za-z0-9_-]+", "-", path.name.split(".")[0]).strip("-_")[:60] or "mine"


def sorted_tables(
    tables: Sequence[Table], hints: Hints = NO_HINTS
) -> tuple[Table, list[Table], Table | None]:
    """The table of labels, those of verdicts and that of answers, in whatever order they are given.

    A table is of verdicts where its name, or a column, is that of a judge; of labels where a column
    names annotators. What neither says, the order says: labels first.
    """
    if len(tables) == 1:
        return tables[0], [], None
    looks = [table.look(Hints(keep=hints.keep)) for table in tables]
    said = [look.columns[column].labels() for look in looks for column in look.like_labels]
    kinds = [_kind(table, look, said, hints) for table, look in zip(tables, looks, strict=True)]
    texts = [t for t, kind in zip(tables, kinds, strict=True) if kind == "answers"]
    rest = [(t, kind) for t, kind in zip(tables, kinds, strict=True) if t not in texts[:1]]
    rest = rest or [(table, "labels") for table in texts]
    first = next((t for t, kind in rest if kind == "labels"), None)
    first = first or next((t for t, kind in rest if kind != "verdicts"), rest[0][0])
    others = [t for t, _ in rest if t is not first]
    return first, others, texts[0] if texts and texts[0] is not first else None


def _kind(table: Table, look: Look, labels: Sequence[Sequence[str]], hints: Hints) -> str:
    who = look.roles.get("annotator", "")
    models = [is_like_a_program(name) for name in look.different(who)] if who else []
    if (
        is_like_a_program(table.stem)
        or (models and (any if plain_name(who) in JUDGES else all)(models))
        or look.roles.get("text") in hints.judge
    ):
        return "verdicts"
    if who or re.search("label|human|annotat|expert", table.stem, re.I):
        return "labels"
    if look.like_labels or "text" not in look.roles:
        return ""
    texts = look.columns[look.roles["text"]].often
    replies = "question" not in look.roles and gives_labels(texts, labels)
    return "verdicts" if replies else "answers"


def _check_hints(hints: Hints, looks: Sequence[Look], answers: Look | None) -> None:
    """Raise SetupError for named columns that are in no table; only what is kept may stand in that
    of the answers alone."""
    every = sorted({column for look in looks for column in (*look.columns, *look.kept)})
    more = sorted({*every, *answers.columns, *answers.kept}) if answers else every
    named = {
        "annotators": (hints.annotators, every), "item": (hints.item, every),
        "question": (hints.question, every), "keep": (hints.keep, more),
    }  # fmt: skip
    message = "is not a column of the tables"
    raise_any([
        Problem(message + nearest(column, known), "", None, key, column, some(known))
        for key, (columns, known) in named.items()
        for column in columns
        if column not in known
    ])  # fmt: skip


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _with_heads(hints: Hints, columns: Sequence[str]) -> Hints:
    """The hints with the column of each judge that is named by its head, whatever its case and
    signs, or as messages name it; and of each annotator who is named by the end of a path."""
    bare = {_bare(judge_of(c)): c for c in reversed(columns)} | {_bare(c): c for c in columns}
    heads = (name if name in columns else bare.get(_bare(name), name) for name in hints.judge)
    ends = {c.rpartition(".")[2].casefold(): c for c in reversed(columns) if "." in c}
    people = (w if w in columns else ends.get(w.strip().casefold(), w) for w in hints.annotators)
    return replace(hints, judge=tuple(heads), annotators=tuple(people))


def _named(
    judges: Sequence[JudgeTable], hints: Hints, found: Guess, looks: Sequence[Look]
) -> list[JudgeTable]:
    """The judges that somebody names by a column or by name. As many other names as there are
    judges named by their files alone are the names of these. Raises SetupError."""
    names = [name for one in judges for name in one.names]
    heads = {column: look for look in (*looks, found.look) for column in look.columns}
    chosen = [one for one in judges if any(map(one.fits, hints.judge))]
    new = [name for name in hints.judge if not any(one.fits(name) for one in chosen)]
    free = [one for one in judges if one.is_free and one not in chosen]
    wrong = {
        name: "is one of several judges in a column: give a table of its rows alone"
        for one in chosen
        for name in hints.judge
        if one.names[1:] and _bare(name) in map(_bare, one.names)
    }
    who = found.roles.get("annotator", "")
    people = found.look.different(who) if who else ()
    slips = [name for name in new if any(_is_slip(name, one.names[0]) for one in free)]
    for name in slips or (new if len(new) != len(free) or heads.keys() & {*new} else ()):
        wrong[name] = f"no such judge{nearest(name, names)}"
        if name in heads:
            why = found.unused.get(name) or heads[name].columns[name].why_no_labels or NOT_THEIRS
            wrong[name] = _decimals(heads[name], name, found) or f"is no judge: {why}"
        elif name in people:
            wrong[name] = (
                f"is one of the annotators: --as-judge {quote(name)} puts it in a judge's place "
                "(in Python as_judges of jb.study)"
            )
    allowed = some(names) or "a column of verdicts"
    raise_any([Problem(why, "", None, "judge", name, allowed) for name, why in wrong.items()])
    called = [as_name(name)[:64] or "judge" for name in new]
    return chosen + [
        replace(one, names=[name], spec={**one.spec, "judge": {"value": name}})
        for name, one in zip(called, free if new else (), strict=True)
    ]


def _is_slip(name: str, of: str) -> bool:
    """True where the name has the letters of another, but for one of them, and no digits."""
    letters = Counter(_bare(name))
    letters.subtract(_bare(of))
    return f"{_bare(name)}{_bare(of)}".isalpha() and sum(map(abs, letters.values())) < 2


def _decimals(look: Look, column: str, found: Guess) -> str:
    """`holds decimals …`, and the commands for them; empty where a column holds none."""
    labels = [text for own in found.metrics.values() for text in own]
    if found.pair or not look.columns[column].has_decimals(labels):
        return ""
    message = f"holds decimals, and the labels are {some(labels)}: round them"
    return message + with_scores(look, *_heads_of_people(found), [column])


def _heads_of_people(found: Guess) -> tuple[str, str]:
    """A column of labels and the one of questions or items, of numbers that people gave."""
    heads = [head for own in found.columns.values() for head in own.values()]
    group = found.roles.get("group") or next(iter(found.by), "COLUMN")
    return found.roles.get("label") or next(iter(heads), "COLUMN"), group


def _renamed(found: Guess, looks: Sequence[tuple[Table, Look]]) -> dict[str, str]:
    """The title of each metric: where the labels' columns do not say it, a judge's column may."""
    rows = f"{found.source.rows}."  # the list that the labels stand in
    titles = {metric: metric.removeprefix(rows) for metric in found.metrics or EXAMPLE}
    if list(titles) == ["Label"]:
        names = [
            column
            for _, look in looks
            for column, about in look.usable.items()
            if _fits(about.often, found.metrics["Label"]) and not _says_nothing(column)
        ]
        titles["Label"] = names[0] if names else subject(stem(found.path)) or "Label"
    return titles


def _with_labels_of_judges(found: Guess, looks: Sequence[Look], orders: Sequence[str]) -> Guess:
    """The metrics with what judges alone gave as labels, in columns that hold few values: no slips,
    unless an order names them."""
    metrics = dict(found.metrics)
    named = [part for order in orders for part in re.split("[<:]", order)]
    long = [look.roles["label"] if "metric" in look.roles else "" for look in looks]
    columns = [
        about
        for look, whole in zip(looks, long, strict=True)
        for column, about in look.usable.items()
        if column != whole  # whose cells are labels of several metrics
    ]
    columns += [found.look.columns[c] for own in found.judges.values() for c in own.values()]
    for about in () if found.pair else columns:
        for metric, labels in metrics.items():
            if not about.why_no_labels and _fits(about.often, labels):
                spelt = {*map(plain_label, (*labels, *_meant(about.often, labels, named)))}
                more = [
                    text
                    for text in about.labels()
                    if plain_label(text) not in spelt
                    and about.often[text] > 1
                    and _LABEL.fullmatch(text)
                ]
                metrics[metric] = ordered((*labels, *more))
    alone = {m: {*labels} - {*found.metrics[m]} for m, labels in metrics.items()}
    return replace(found, metrics=metrics, of_judges=alone)


def _says_nothing(column: str) -> bool:
    usual = (*NAMES["label"], *NAMES["text"], *JUDGES)
    return {*plain_name(column).split("_")} <= {*usual} or _is_like_a_judge(column)


def _is_like_a_judge(name: str, metric: str = "") -> bool:
    return is_like_a_program(name) or may_be_a_model(judge_of(name, metric))


def _fits(often: Mapping[str, int], labels: Collection[str]) -> bool:
    """True where at least half of the cells are labels, and two of these occur or all cells are."""
    plain, meant = set(map(plain_label, labels)), read_as(often, labels)
    known = {text: n for text, n in often.items() if plain_label(text) in plain or text in meant}
    total = sum(often.values())
    return (
        bool(known)
        and sum(known.values()) >= MOSTLY * total
        and (len(known) > 1 or len(known) == len(often))
    )


def metric_ids(metrics: Collection[str]) -> dict[str, str]:
    """The id of each metric by what the file calls it; no two ids or titles are the same."""
    titles = {title: normalise(title) for title in metrics}
    taken, numbers = set(titles.values()), Counter[str]()
    ids: dict[str, str] = {}
    used = {*NAMES, "silver"} - {"metric", "label"}  # columns that are never of labels
    for title, plain in titles.items():
        slug = plain_id(plain)
        slug = slug if slug[:1].isalpha() else f"metric_{slug}".rstrip("_")
        found_id = slug
        while found_id in used or (found_id in taken and found_id != plain):
            numbers[slug] += 1
            found_id = f"{slug}_{numbers[slug] + 1}"
        used.add(found_id)
        ids[title] = found_id
    return ids


def _rubric(
    name: str,
    titles: Mapping[str, str],
    found: Guess,
    orders: Sequence[str],
    looks: Sequence[tuple[Table, Look]],
) -> tuple[Rubric, dict[str, str], dict[str, dict[str, str | None]]]:
    """The rubric of the metrics, their ids, and the spellings of cells that are no label."""
    named = subject(stem(found.path))  # in no id, for by these baselines are drawn
    by_title = metric_ids([m if title == named else title for m, title in titles.items()])
    ids = dict(zip(titles, by_title.values(), strict=True))
    ordered = {**_of_categories(found), **_orders(orders, titles, found.metrics)}
    spellings: dict[str, dict[str, str | None]] = {
        ids[metric]: dict.fromkeys(texts) for metric, texts in found.strays.items()
    }
    cells = {} if found.pair else found.look.columns
    of_judges = (pair for own in found.judges.values() for pair in own.items())
    for metric, column in of_judges if cells else ():
        if other := _meant(cells[column].often, found.metrics[metric]):
            spellings[ids[metric]] = {**spellings.get(ids[metric], {}), **other}
    metrics, problems = [], []
    for metric, labels in (found.metrics or EXAMPLE).items():
        base: dict[str, Any] = {"id": ids[metric], "title": titles[metric]}
        base["question"] = f"Which label does the answer deserve for {titles[metric]}?"
        if found.pair:
            metrics.append({**base, "question": "Which response is better?", "kind": "preference"})
            spellings[ids[metric]] = {
                **spellings.get(ids[metric], {}),
                **_sides(labels, found.pair),
            }
            continue
        order = _spelt(ordered.get(metric, ()), labels)
        if order and {*labels} - {*order}:
            problems.append(_wrong_order(found, metric, order, looks))
        two = (*labels, *[ONLY_ONE][len(labels) - 1 :])
        kind = "ordinal" if order else "nominal"
        heads = [own[metric] for own in found.columns.values() if metric in own]
        several = any(x.several for name, x in found.look.columns.items() if name in heads)
        more: dict[str, Any] = {"several": True} if several else {}
        more |= {"order": "unknown"} if metric not in ordered else {}
        metrics.append({**base, "kind": kind, "labels": order or two, **more})
    raise_any(problems)
    value = {"name": name, "version": "1", "metrics": metrics}
    value["instructions"] = "Give each answer one label for each metric."
    return Rubric.model_validate(value), ids, spellings


def _as_asked(rubric: Rubric, asked: Rubric) -> Rubric:
    """The rubric with the metrics as annotators were asked, unless somebody gives another order."""
    metrics = [
        known.model_copy(update={"id": one.id})
        if one.kind == "nominal" and (known := asked.find(one.id))
        else one
        for one in rubric.metrics
    ]
    return rubric.model_copy(update={"name": asked.name, "metrics": tuple(metrics)})


def _wrong_order(
    found: Guess, metric: str, order: Sequence[str], looks: Sequence[tuple[Table, Look]]
) -> Problem:
    """The problem of an order that leaves out labels of the table: its own words that are none, or
    the cells to be corrected; of the first table of verdicts that alone holds what it leaves
    out."""
    labels, typos = found.metrics[metric], _typos(found, metric)
    lacking = [text for text in labels if text not in order]
    unknown = [text for text in order if text not in labels]
    people, file = _used_by_people(found, metric), found.source.path
    of_people = [text for text in lacking if not people or people[plain_label(text)]]
    if not (of_people or unknown):
        hold = (look.source.path for _, look in looks if look.holds(lacking))
        file = next(hold, file)
    lacking = of_people or lacking
    odd = [text for text in lacking if text in typos or not any(map(str.isalnum, text))]
    message = "the order leaves out labels that the table holds"
    near = {text: nearest(text, order)[2:] * (not of_people) for text in lacking}
    if unknown:
        message = "the order names labels that the table does not hold"
        near = {text: nearest(text, lacking)[2:] for text in unknown}
    said = some(f"{text} ({how})" if how else text for text, how in near.items())
    if odd or typos.keys() & {*order}:
        message += f"; first correct these in the table: {_cells(found, metric, typos, odd)}"
    right = [text for text in _corrected(order, labels, typos) if text not in odd]
    added = [text for text in right if text not in order]  # nobody knows where these belong
    put = len([text for text in order if text not in right])  # in whose places
    allowed = f"as in {_flag(right)}" if len(added) <= put else ""
    return Problem(message, file, None, "order", said, allowed)


def _cells(found: Guess, metric: str, typos: Mapping[str, str], odd: Collection[str] = ()) -> str:
    """The cells of odd labels: `'Beach' (Silva, row 7; did you mean 'Breach'?)`."""
    wrong = dict.fromkeys((*typos, *odd))
    places = found.look.places(
        [own[metric] for own in found.columns.values() if metric in own], wrong
    )
    said = []
    for text in wrong:
        meant = f"did you mean {typos[text]!r}?" if text in typos else ""
        about = "; ".join(filter(None, [places.get(text, ""), meant]))
        said.append(f"{text!r} ({about})" if about else f"{text!r}")
    return ", ".join(said)


def _typos(found: Guess, metric: str) -> dict[str, str]:
    """The rare labels of people that are like common ones."""
    return _slips(_used_by_people(found, metric), found.metrics.get(metric, ()))


def _used_by_people(found: Guess, metric: str) -> Counter[str]:
    """The number of times that people gave each label; none where labels are in rows."""
    wide = [] if "metric" in found.roles else [*found.columns.values()]
    cells = [found.look.columns[own[metric]].often for own in wide if metric in own]
    uses = Counter[str]()
    for text, n in (pair for often in cells for pair in often.items()):
        uses[plain_label(text)] += n
    return uses


def _slips(uses: Mapping[str, int], labels: Sequence[str]) -> dict[str, str]:
    """The rare labels that have the letters of a common one, but for one of them and for signs, by
    that label. What one begins with is no slip: unsafe, amoral; nor is another end or grade: grade
    a, grade II, AA."""
    return {
        text: other
        for text in labels
        for other in (labels if uses[plain_label(text)] else ())
        if uses[plain_label(other)] >= _COMMON * uses[plain_label(text)]
        and _is_misspelt(text, other)
    }


def _is_misspelt(text: str, label: str) -> bool:
    own, meant = _bare(text), _bare(label)
    letters = Counter(own)
    letters.subtract(meant)
    apart = sum(map(abs, letters.values()))
    another = apart == 2 and len(own) == len(meant) > 3 and own[-1] == meant[-1]
    words = {*_WORD.findall(text.casefold())} ^ {*_WORD.findall(label.casefold())}
    alike = (apart < 2 or another) and own[:1] == meant[:1]
    return own.isalpha() and len(own) > 2 and alike and not any(map(_GRADE.fullmatch, words))


def _meant(
    texts: Iterable[str], labels: Sequence[str], but: Collection[str] = ()
) -> dict[str, str]:
    """The label that each text of a judge means, of those that are none: also one that is misspelt,
    `but` for those that somebody names as labels."""
    known = {*map(plain_label, (*labels, *but))}
    near = {
        text: [label for label in labels if _is_misspelt(text, label)]
        for text in texts
        if plain_label(text) not in known
    }
    slips = {text: fits[0] for text, fits in near.items() if len(fits) == 1}
    return {**slips, **read_as(near, labels)}


def _corrected(order: Sequence[str], labels: Sequence[str], typos: Mapping[str, str]) -> list[str]:
    """The order with labels of the table for what is misspelt, if it has them all then; else the
    labels."""
    lacking = [text for text in labels if text not in (*order, *typos)]
    wrong = (text for text in order if text not in labels)
    near = {text: get_close_matches(text, lacking, n=1) for text in wrong}
    right = [typos.get(text, next(iter(near.get(text, ())), text)) for text in order]
    spelt = [text for text in labels if text not in typos]
    return right if {*right} >= {*spelt} and len({*right}) == len(right) else spelt


def _flag(labels: Sequence[str], title: str = "") -> str:
    """The option that gives these labels an order, to be pasted once they are sorted."""
    return f"--order {quote(f'{title}: ' * bool(title) + ' < '.join(labels))}"


def _spelt(order: Sequence[str], labels: Sequence[str]) -> list[str]:
    """The labels in this order, as the table spells them: also as 0 and 1 for no and yes."""
    known = {**read_as(order, labels), **{plain_label(text): text for text in labels}}
    return [known.get(plain_label(text), known.get(text, text)) for text in order]


def _orders(
    given: Sequence[str], titles: Mapping[str, str], known: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """The labels from the least to the most severe, by metric; without a metric's name, of each
    whose labels are all among them. No order for all leaves those alone that have one, wherever it
    stands. Raises SetupError."""
    otherwise: dict[str, list[str]] = {}
    found: dict[str, list[str]] = {}
    problems = []
    for text in given:
        head, colon, rest = text.partition(":")
        named = [m for m, t in titles.items() if normalise(head) in (normalise(m), normalise(t))]
        of = named if colon and "<" not in head else list(titles)
        labels = [part.strip() for part in (rest if colon and "<" not in head else text).split("<")]
        if labels == [NO_ORDER]:
            (found if colon else otherwise).update({metric: [] for metric in of})
            continue
        if several := len(of) > 1:
            of = [m for m in of if {*known.get(m, labels)} <= {*_spelt(labels, known.get(m, ()))}]
        if of and len(labels) > 1 and all(labels):
            own = dict.fromkeys(of, labels)
            found = {**own, **found} if several else {**found, **own}
            continue
        allowed = f"LABEL < LABEL < …, the least severe first, or {NO_ORDER}"
        if len(titles) > 1:
            allowed = f"METRIC: {allowed}; metrics: {some(titles.values())}"
        near = nearest(head.strip(), [*titles.values()]) if colon and not of else ""
        problems.append(Problem(f"is no order of labels{near}", "", None, "order", text, allowed))
    raise_any(problems)
    return {**otherwise, **found}


def _of_categories(found: Guess) -> dict[str, list[str]]:
    """The labels in the order of a DataFrame's ordered categories, by metric. Where one column
    holds the labels of several metrics, of each its own alone."""
    types = {} if found.look.table is None else dict(found.look.table.dtypes.items())
    scales = {
        str(column): [*map(str, dtype.categories)]
        for column, dtype in types.items()
        if getattr(dtype, "ordered", False)
    }
    orders = {}
    for metric, labels in found.metrics.items():
        columns = (own[metric] for own in found.columns.values() if metric in own)
        for column in (*columns, found.roles.get("label", "")):
            order = _spelt(scales.get(column, ()), labels)
            if {*labels} <= {*order}:
                own_alone = "metric" in found.roles
                orders[metric] = [x for x in order if x in labels or not own_alone]
    return orders


def _sides(labels: Sequence[str], pair: Sequence[str]) -> dict[str, str | None]:
    """The preference that cells mean which name neither column nor response."""
    found: dict[str, str | None] = {}
    for text in labels:
        last = plain_name(text).split("_")
        if last[0] in _TIES:
            found[text] = "tie"
        elif text not in pair and last[-1] in ("a", "1", "first", "left"):
            found[text] = "first"
        elif text not in pair and last[-1] in ("b", "2", "second", "right"):
            found[text] = "second"
    return found


def item_of(key: Sequence[str], look: Look | None = None) -> dict[str, Any]:
    """The id of items that these columns tell apart, as in a data.yaml: of short cells readable."""
    if not key:
        return {"row": True}
    if len(key) == 1:
        return {"column": key[0]}
    short = look is not None and all(
        look.columns[c].longest <= 40 for c in key if c in look.columns
    )
    braces = any("{" in c or "}" in c for c in key)
    if short and not braces:
        return {"template": " · ".join(f"{{{c}}}" for c in key)}
    return {"hash_of": list(key)}


def _carried(found: Guess, answers: Look | None) -> dict[str, str]:
    """The columns of the labels' table, by role, that say of an item what the table of answers, if
    there is one, does not say."""
    roles = {r: found.roles[r] for r in ("question", "group", "system") if r in found.roles}
    if answers:  # which alone say what belongs together
        roles = {r: c for r, c in roles.items() if r == "system" and r not in answers.roles}
    return {} if found.pair else roles


def _kept(look: Look | None, by: Sequence[str] = ()) -> dict[str, Any]:
    """The columns of a table that are kept with each item, as in a data.yaml; of several columns
    `by` which items are known, those that say nothing else of an item, such as what was asked."""
    kept = [*look.kept] if look else []
    if look and len(by) > 1:
        kept += [c for c in by if c not in (*kept, *look.roles.values())]
    return {"metadata": kept} if kept else {}


def entries(found: Guess, ids: Mapping[str, str], answers: Look | None = None) -> dict[str, Any]:
    """The items and labels of a table, as in a data.yaml; its labels alone where `answers` are in
    another."""
    item = item_of(found.by, found.look)
    if "metric" in found.roles:
        rows = {"metric": found.roles["metric"], "label": found.roles["label"]}
        labels = [{**_who("", found), **rows}]
    else:
        labels = [
            {
                **_who(who, found),
                "metrics": {ids[m]: column for m, column in own.items()},
                **({"list": True} if who == CROWD else {}),
            }
            for who, own in found.columns.items()
            if own
        ]
    about: dict[str, Any] = {role: found.roles[role] for role in _ITEM if role in found.roles}
    if several := found.responses:
        texts = (f"Response {i}: {{{column}}}" for i, column in enumerate(several, start=1))
        about["text"] = {"template": "\n\n".join(texts)}
    if found.pair or answers or not found.has_texts:
        with_them = {**_carried(found, answers), **_kept(found.look, found.by)}
        with_them = {"pair": list(found.pair)} if found.pair else with_them
        return {"labels": [{"item_id": item, **with_them, **one} for one in labels]}
    empty = {"if_empty": "keep"} if found.blank_texts else {}
    labels = labels if found.metrics else []
    about |= _kept(found.look, found.by)
    return {"items": [{"item_id": item, **about, **empty, "labels": labels}]}


def _who(who: str, found: Guess) -> dict[str, Any]:
    if who or "annotator" not in found.roles:
        return {"annotator": {"value": who or "annotator"}}
    return {"annotator": found.roles["annotator"]}


def _settings(source: FileSpec) -> dict[str, Any]:
    """The file and the settings by which it is read."""
    names = ("path", "quoting", "sheet", "encoding", "rows")
    values = {name: getattr(source, name, None) for name in names}
    return {name: value for name, value in values.items() if value}


def _own_judges(
    labels: Table, found: Guess, rubric: Rubric, ids: Mapping[str, str],
    spellings: Mapping[str, Any],
) -> Iterator[JudgeTable]:  # fmt: skip
    """The judges whose verdicts stand beside the labels."""
    item = item_of(found.by, found.look)
    for name, own in found.judges.items():
        columns = {ids[metric]: column for metric, column in own.items()}
        about = {"pair": list(found.pair)} if found.pair else {}
        spec = {"item_id": item, **about, "judge": {"value": name}, "metrics": columns}
        every = {m: spellings[m] for m in columns if spellings.get(m)}
        if found.pair:
            cells = ((m, [*found.look.columns[c].often]) for m, c in columns.items())
            every = {m: sides for m, texts in cells if (sides := _sides(texts, found.pair))}
        spec |= {"spellings": every} if every else {}
        yield JudgeTable([name], labels, spec, found.look, columns)
    replies = [c for c in found.look.replies if judge_of(c) not in found.judges and not found.pair]
    rows = [*found.look.rows()] if replies else []
    for column in replies:
        spec = {"item_id": item, "judge": {"value": judge_of(column)}, "raw": column}
        said = replying(rows, column, rubric)
        yield JudgeTable([judge_of(column)], labels, spec, found.look, replies=said)


def _judges(
    looks: Sequence[tuple[Table, Look]], found: Guess, roles: Mapping[str, str], rubric: Rubric,
    hints: Hints,
) -> Iterator[JudgeTable]:  # fmt: skip
    """The judges of tables of their own, with the columns that say of items what those of the
    labels' table with these `roles` say. Raises SetupError with every problem."""
    problems: list[Problem] = []
    heads = Counter(column for _, look in looks for column in look.columns)
    rater = found.roles.get("annotator", "")
    people = {*found.columns, *(found.look.different(rater) if looks and rater else ())}
    for table, look in looks:
        try:
            columns, pair = same_item(look, found, hints), found.pair
            item = _item_in(look, columns, found)
            who = _who_judged(look, (*columns, *pair), hints, people)
            shared = (c for c in look.columns if c in found.look.columns and c != who)
            alike = [c for c in shared if look.shared(c, found.look, c) > 0]
            same = {r: c for r, c in roles.items() if c in alike}
            with_them = {"pair": list(pair)} if pair else {**same, **_kept(look)}
            about = {"item_id": item, **with_them}
            for one in _verdicts_of(table, look, rubric, found, hints, who):
                whole = replace(one, spec={**about, **one.spec})
                yield _headed(whole, Counter() if who else heads, rubric)
        except SetupError as error:
            problems += error.problems
    raise_any(problems)


def _headed(judge: JudgeTable, heads: Mapping[str, int], rubric: Rubric) -> JudgeTable:
    """The judge of a table: the one in it by the name that somebody gives it, else by that of a
    model that heads its column, and none elsewhere."""
    columns = {column: m for m, column in judge.spec.get("metrics", {}).items()}
    titles = {metric.id: metric.title for metric in rubric.metrics}
    names = list({judge_of(c, titles[m]): c for c, m in columns.items()})
    alone = len(names) == 1 and all(heads[c] == 1 for c in columns)
    names = names if alone and may_be_a_model(names[0]) else []
    if judge.table.judge and not judge.names[1:]:
        names = [as_name(judge.table.judge)[:64] or "judge"]
    about = {**judge.spec, "judge": {"value": names[0]}} if names else judge.spec
    return replace(judge, names=names or judge.names, spec=about)


def same_item(look: Look, found: Guess, hints: Hints = NO_HINTS) -> tuple[str, ...]:
    """The columns of a table that name the items of another: those of the same names, else those
    that share the most ids. Raises SetupError where there are none."""
    theirs, of, file = found.look, Path(found.source.path).name, look.source.path
    if not found.by:
        message = f"no column of {of} says which item a row is about"
        raise SetupError(Problem(message, file, None, "item", some(theirs.columns)))
    columns, missing = [], []
    for name in found.by:
        chosen = next((c for c in hints.item if c in look.columns), "") if not found.key[1:] else ""
        chosen = chosen or look.same(theirs, name) or (name if name in look.columns else "")
        both = [0.0]
        if chosen:
            both = [look.shared(chosen, theirs, name), theirs.shared(name, look, chosen)]
        if not chosen or (not hints.item and max(both) < _SHARED):
            near = chosen or look.roles.get("item_id", "")
            ids = f"{theirs.first(name)!r} there, {look.first(near)!r} here"
            missing.append(f"{name} ({ids})" if near else name)
        columns.append(chosen)
    if missing:
        message = f"no column holds the items of {of}, by its column {some(missing)}"
        raise SetupError(Problem(message, file, None, "item", some(look.columns)))
    return tuple(columns)


def _item_in(look: Look, columns: Sequence[str], found: Guess) -> dict[str, Any]:
    """The ids of items by these columns of a table, as the labels' table makes them."""
    same = columns == found.by
    return item_of(columns, found.look if same else _with(look, found.look, columns, found.by))


def _with(look: Look, theirs: Look, columns: Sequence[str], key: Sequence[str]) -> Look:
    """The columns as long as those of the labels, so that both tables make ids in one way."""
    same = {c: theirs.columns[name] for c, name in zip(columns, key, strict=True)}
    return replace(look, columns={**look.columns, **same})


def _who_judged(look: Look, item: Sequence[str], hints: Hints, people: Set[str]) -> str:
    """The column that says whose verdict a row is, none of `people`; empty where each item has one.
    Raises SetupError where several rows, and no copies of one, are about an item and no column
    says it."""
    plain = {plain_name(column): column for column in look.columns}
    metric = [look.roles["metric"]] if {"metric", "label"} <= look.roles.keys() else []
    named = names_of_judges(look)
    scores = [c for c, about in look.columns.items() if about.holds_scores]
    verdicts = (*look.like_labels, look.roles.get("text"), *scores)
    named = next((c for c in hints.judge if c in look.columns and c not in verdicts), named)
    aside = (*item, *metric, *(plain[n] for n in ("repeat",) if n in plain))
    if named or look.tells_apart(aside) or look.count(aside) == look.count([*look.columns]):
        return named
    free = [c for c in look.usable if c not in aside and look.tells_apart((*aside, c))]
    models = [c for c in free if all(map(is_like_a_program, look.columns[c].often))]
    usual = [plain[n] for n in NAMES["system"] if plain.get(n) in free]
    raters = [plain[n] for n in NAMES["annotator"] if plain.get(n) in free]
    others = [c for c in raters if not people & {*look.columns[c].often}]
    if likely := [*(c for c in hints.judge if c in free), *models, *usual, *others]:
        return likely[0]
    message = f"several rows are about the same item ({look.repeated(aside)}), "
    message += "and no column says whose verdicts they are"
    allowed = "a column of the judges' names: name it: --judge COLUMN"
    raise SetupError(Problem(message, look.source.path, None, "judge", some(look.columns), allowed))


def _verdicts_of(
    table: Table, look: Look, rubric: Rubric, found: Guess, hints: Hints, named: str
) -> Iterator[JudgeTable]:
    """The judges of a table: named in a column, one column each, or the one of the file."""
    plain = {plain_name(column): column for column in look.columns}
    roles = look.roles
    default = as_name(table.stem)[:64] or "judge"
    who: dict[str, Any] = {"judge": named or {"value": default}}
    several_names = (as_name(text)[:64] for text in look.different(named)) if named else ()
    names = list(dict.fromkeys(several_names)) if named else [default]
    beside: dict[str, Any] = {n: plain[n] for n in ("status", "raw", "repeat") if n in plain}
    own = {column.casefold(): column for column in look.columns}
    if shares := probability_columns(own, rubric, {"metric", "label"} <= roles.keys()):
        beside["probabilities"] = shares
    aside = {named, *shares, *(plain[n] for n in ("status", "raw", "repeat") if n in plain)}
    own = {} if found.pair else dict(_replies(look, aside, rubric, hints))
    reasons = (plain[name] for name in _REASONS if name in plain)
    if why := [c for c in reasons if c not in own and look.columns[c].why_no_labels]:
        beside["rationale"] = why[0]
    if "metric" in roles and "label" in roles:
        spec = {**who, "metric": roles["metric"], "label": roles["label"], **beside}
        yield JudgeTable(names, table, spec, look)
        return
    for column, said in own.items():
        judge = judge_of(column) if own.keys() - {column} or _is_like_a_judge(column) else ""
        spec = {**who, **({"judge": {"value": judge}} if judge and not named else {}), **beside}
        called = names if named or not judge else [judge]
        yield JudgeTable(called, table, {**spec, "raw": column}, look, replies=said)
    aside |= {*own, *why}
    free = {c: x for c, x in look.usable.items() if c not in aside and not x.of_crowd}
    taken = {roles[r] for r in ("item_id", "question", "text", "group", "reference") if r in roles}
    taken -= {*hints.judge}
    held_by = {
        c: [m.title for m in rubric.metrics if _holds(free[c].often, m)]
        for c in free
        if c not in taken
    }
    of = {c: metric_in(c, fits) for c, fits in held_by.items()}
    fitting = {
        m.id: [c for c, fits in held_by.items() if m.title in ([of[c]] if of[c] else fits)]
        for m in rubric.metrics
    }
    asked = {m: [c for c in columns if c in hints.judge] for m, columns in fitting.items()}
    several = {
        m.id: asked[m.id] or [c for c in fitting[m.id] if _is_like_a_judge(c, m.title)]
        for m in rubric.metrics
    }

    def read(metrics: dict[str, str]) -> dict[str, Any]:
        held = {m: [*free[metrics[m.id]].often] for m in rubric.metrics if m.id in metrics}
        read_so = {
            m.id: _sides(texts, found.pair) if found.pair else _meant(texts, m.label_texts)
            for m, texts in held.items()
        }
        spelt = {metric: of for metric, of in read_so.items() if of}
        return {"metrics": metrics, **({"spellings": spelt} if spelt else {})}

    if not named and any(len(columns) > 1 for columns in several.values()):
        ids = {metric.title: metric.id for metric in rubric.metrics}
        pairs = ((column, title) for title, m in ids.items() for column in several[m])
        for judge, judged in by_judge(pairs):
            spec = {"judge": {"value": judge}, **read({ids[m]: c for m, c in judged.items()})}
            yield JudgeTable([judge], table, spec, look)
        return
    chosen = {m.id: _best(m, asked[m.id] or fitting[m.id], look) for m in rubric.metrics}
    metrics = {metric: column for metric, column in chosen.items() if column}
    if own and not metrics:
        return
    if not metrics:
        message = "no column holds verdicts with the labels of the annotators: rename the labels, "
        message += "or give them as `spellings: {METRIC: {TEXT: LABEL}}` in a data.yaml (--save)"
        if scores := with_scores(look, *_heads_of_people(found)):
            message = f"holds scores, and annotators gave labels: cut scores into labels{scores}"
        if {*hints.judge} & {look.roles.get("text", "")}:
            first = rubric.metrics[0].label_texts[0]
            message = "holds replies of which less than half give a label alone in a line, such as "
            message += f"`Verdict: {first}`: add a column of the labels that they give"
        few = {c: look.columns[c].labels() for c in look.like_labels if c not in taken}
        held = [f"{column} ({some(texts, 4)})" for column, texts in few.items()]
        allowed = some(dict.fromkeys(text for m in rubric.metrics for text in m.label_texts))
        raise SetupError(
            Problem(message, look.source.path, None, "judge", some(held or look.columns), allowed)
        )
    yield JudgeTable(names, table, {**who, **read(metrics), **beside}, look)


def _replies(
    look: Look, aside: Collection[str], rubric: Rubric, hints: Hints
) -> Iterator[tuple[str, str]]:
    """The columns of whole replies, and how many give a label: of judges by their heads, or where
    labels stand among the replies; where no column holds labels, any."""
    labels = [metric.label_texts for metric in rubric.metrics]
    among = {c: about for c, about in look.columns.items() if about.filled and c not in aside}
    fits = {c for c, about in among.items() for own in labels if _fits(about.often, own)}
    known = {judge_of(c) for c in fits}
    for column, about in among.items():
        if column not in fits and judge_of(column) in known:
            continue  # the reply behind a label
        named = is_like_a_program(column) or column in (*hints.judge, *fits)
        spelt = any(read_as(about.often, own) for own in labels)
        reads = (named or not fits) and not spelt and gives_labels(about.often, labels)
        if reads and (said := replying([*look.rows()], column, rubric)):
            yield column, said


def _holds(often: Mapping[str, int], metric: Metric) -> bool:
    if metric.preference:
        return any(
            plain_name(text).split("_")[0] in (*_TIES, "model", "response", "a", "b", "system")
            for text in often
        )
    return _fits(often, metric.label_texts)


def _best(metric: Metric, columns: Sequence[str], look: Look) -> str:
    """The column of a metric's verdicts: of its name, else of a usual one. Raises SetupError where
    several will do."""
    wanted = (plain_name(metric.title), metric.id, *NAMES["label"], "judgement", "judgment",
              "prediction", "winner")  # fmt: skip
    plain = {plain_name(column): column for column in columns}
    best = next((plain[name] for name in wanted if name in plain), "")
    best = best or next((c for c in columns if is_like_a_program(c)), "")
    if best or len(columns) < 2:
        return best or next(iter(columns), "")
    message = f"several columns could be the verdicts on {metric.title}"
    allowed = f"a column called {metric.title!r}: rename the one that is meant"
    raise SetupError(Problem(message, look.source.path, None, "judge", some(columns), allowed))


def _check_names(judges: Sequence[JudgeTable], labels: Table) -> None:
    """Raise SetupError where two judges have one name."""
    twice = [
        n
        for n, count in Counter(name for judge in judges for name in judge.names).items()
        if count > 1
    ]
    message = "two judges would have this name"
    raise_any([Problem(message, str(labels.path), None, "judge", name) for name in twice])


def _answers(answers: Table, look: Look, found: Guess, hints: Hints) -> Described:
    item = _item_in(look, same_item(look, found, hints), found)
    about = {role: look.roles[role] for role in _ITEM if role in look.roles}
    own = {"item_id": item, **about, **_kept(look), "if_empty": "keep"}
    entry = {**_settings(look.source), "items": [own]}
    return Described(DataSpec.model_validate({"files": [entry]}), answers.frame)


def _in_words(
    labels: Table, found: Guess, rubric: Rubric, judges: Sequence[JudgeTable],
    ids: Mapping[str, str],
) -> Iterator[str]:  # fmt: skip
    """A line on the labels, one on the judges, one on items and questions."""
    who = [name for name in found.columns if name]
    if who:
        headed = [column for name in who for column in found.columns[name].values()]
        people = f"{counted(len(who), 'annotator')} in the columns {some(headed)}"
        if len(headed) > max(len(who), _MOST_HEADS):
            there = f"{len(headed)} columns such as {headed[0]}"
            people = f"{counted(len(who), 'annotator')} ({some(who)}) in {there}"
        if CROWD in who:
            people = f"lists of the labels of several annotators in column {some(headed)}"
    elif column := found.roles.get("annotator", ""):
        named = {*found.look.different(column)}
        people = f"{counted(len(named - {ADJUDICATED}), 'annotator')} in column {column}"
        people += " (and adjudicated labels)" * (ADJUDICATED in named)
    else:
        people = "one annotator (no column says who labelled)"
    alone = {ids[name]: texts for name, texts in found.of_judges.items()}

    def labels_of(m: Metric) -> str:
        if m.kind == "ordinal":
            return " < ".join(m.label_texts)
        return ", ".join(text for text in m.label_texts if text not in alone.get(m.id, ()))

    metrics = "; ".join(
        f"metric {m.title} with ".replace("metric Label with ", "")
        + f"labels {labels_of(m)}"
        + ", of which a cell may hold several" * m.several
        for m in rubric.metrics
    )
    if not found.metrics:
        people, metrics = "no labels", f"answers in column {found.roles['text']}"
    yield f"{labels.name}: {people}; {metrics}"
    columns = [column for own in found.columns.values() for column in own.values()]
    if in_lists := [column for column in columns if "[0]" in column]:
        yield (
            f"{labels.name}: of each list the first label alone is read, the labels of all others "
            f"are lost: give each annotator a row or a column of their own ({some(in_lists)}), or "
            f"a data.yaml (--save) with `rows: {in_lists[0].partition('[0]')[0]}`"
        )
    heads = () if "annotator" in found.roles or who else found.metrics
    if not who and (like := [x for x in (labels.stem, *heads) if _is_like_a_judge(x)]):
        yield (
            f"{labels.name}: {like[0]} is named like a judge, and its labels are taken for "
            "those of people: give the table of human labels as well"
        )
    by_table: dict[str, dict[str, int]] = {}
    for judge in judges:
        read = ", ".join(judge.read)
        where = f"{some(judge.names)} in {'columns' if ', ' in read else 'column'} {read}"
        where += f" ({judge.replies})" * bool(judge.replies)
        where += "".join(f" (read {slip})" for slip in _slips_of(judge))
        if why := judge.spec.get("rationale"):
            where += f", with its reasons in column {why}"
        by_table.setdefault(judge.table.name, {})[where] = len(judge.names)
    for table, said in by_table.items():
        several = "s" * (sum(said.values()) > 1)
        line = f"{table}: judge{several} {'; '.join(said)}"
        yield line.replace(": judge judge in", ": one judge in")
    sides = [own for judge in judges for own in judge.spec.get("spellings", {}).values()]
    pairs = [pair for own in sides for pair in own.items() if pair[1] not in (None, pair[0])]
    meant = {text: label for text, label in pairs if not _is_slip_of(text, label)}
    read_so = [f"{text!r} as {label}" for text, label in meant.items()]
    if read_so := [*read_so, *_in_other_case(found, judges, ids)]:
        yield f"read {some(read_so)}"
    if lone := list(_one_sided(found, rubric, judges, ids)):
        yield f"labels that one side never gives: {'; '.join(lone)}; each use is a disagreement"
    for name in found.metrics if not found.pair else ():
        if typos := _typos(found, name):
            wrong = _cells(found, name, typos)
            yield f"{labels.name}: correct rare labels that look like others: {wrong}"
    cells = [found.look.columns[c] for own in found.columns.values() for c in own.values() if who]
    blank = sum(len(one.codes) - one.filled for one in cells)
    other = sum((Counter({t: one.often[t] for t in one.strays}) for one in cells), Counter[str]())
    without = [f"{n:,} {text}" for text, n in {"blank": blank, **other}.items() if n]
    if without and not found.pair:
        yield f"{labels.name}: cells of annotators without a label: {', '.join(without)}"
    yield f"{labels.name}: {_items_in_words(found)}"
    known = rubric.metrics if found.metrics else ()
    if unordered := [m for m in known if m.order == "unknown"]:
        one, *others = unordered
        odd = next((_typos(found, name) for name in ids if ids[name] == one.id), {})
        right = [t for t in one.label_texts if t not in odd and any(map(str.isalnum, t))]
        title = one.title * (len(known) > 1)
        flag = f"{_flag(right, title)} or {_flag(right[::-1], title)}"
        if len(right) > 2 and not all(map(str.isdecimal, right)):  # to be sorted, not pasted
            flag = f"{_flag(['BEST', '…', 'WORST'], title)} with {listed(right)}"
        of = f"of {some(m.title for m in unordered)} " * (len(known) > 1)
        none = f"{one.title}: {NO_ORDER}" if title else NO_ORDER
        yield (
            f"no label {of}counts as severe, because the order "
            f"of the labels is not known: say {flag}{', and so for each' * bool(others)}; where no "
            f"label is worse than another, --order {quote(none)} (in Python columns={{'order': …}})"
        )


def _is_slip_of(text: str, label: str) -> bool:
    return _bare(text) != _bare(label) and _is_misspelt(text, label)


def _slips_of(judge: JudgeTable) -> Iterator[str]:
    """The misspelt labels of a judge, and how often each is read as another."""
    for metric, spelt in judge.spec.get("spellings", {}).items():
        often = judge.look.columns[judge.spec["metrics"][metric]].often
        for text in (t for t, label in spelt.items() if often[t] and _is_slip_of(t, label or "")):
            yield f"{text!r} as {spelt[text]}, {counted(often[text], 'time')}"


def _without_labels(
    table: Table, look: Look, found: Guess, hints: Hints, people: str
) -> Iterator[str]:
    """The items of a table of verdicts that nobody labelled, by their one column; or that its ids
    and those of the table of `people` may be written differently."""
    columns = same_item(look, found, hints)
    if found.pair or len(columns) > 1:
        return
    if look.shared(columns[0], found.look, found.by[0]) < 1:  # else nothing need be read again
        theirs, own = found.look.different(found.by[0]), look.different(columns[0])
        more, lacking = _but(own, theirs), _but(theirs, own)
        which = f": {some(more)}" * (len(more) < 6)
        if all(
            len(odd) >= max(_MANY, _PART * len(ids))
            for odd, ids in ((more, own), (lacking, theirs))
        ):
            like = get_close_matches(more[0], lacking[:NEAR_AMONG], n=1) or lacking
            yield (
                f"{len(more):,} ids of {table.name} are not in {people} (such as {more[0]!r}), and "
                f"{len(lacking):,} of {people} not in {table.name} (such as {like[0]!r}): are they "
                "written differently?"
            )
        elif more:
            yield f"{table.name}: {counted(len(more), 'item')} that nobody labelled{which}"


def _but(ids: Iterable[str], known: Iterable[str]) -> list[str]:
    there = {*known}
    return [one for one in ids if one not in there]


def _not_read(why: Mapping[str, str], table: str = "") -> Iterator[str]:
    said = [f"{column}, because {reason}" for column, reason in why.items()]
    if said:
        more = f"; and {counted(len(said) - _MOST_SAID, 'more column')}" * (len(said) > _MOST_SAID)
        yield f"{table}not read: {'; '.join(said[:_MOST_SAID])}{more}"


def _unread_of_labels(found: Guess) -> dict[str, str]:
    """The columns beside the labels that may be thought to be read, and why they are not."""
    like = [c for c in found.unused if found.unused[c] == NOBODYS or _is_like_a_judge(c)]
    decimals = {c: why for c in like if (why := _decimals(found.look, c, found))}
    return {
        column: f"it {decimals[column]}" if column in decimals else reason
        for column, reason in found.unused.items()
        if column not in (*found.by, *found.look.replies, *found.responses, *_OF_A_STUDY)
        and found.look.columns[column].filled
    }


def _unread(look: Look, judges: Sequence[JudgeTable], found: Guess) -> dict[str, str]:
    """The columns of a table of verdicts that nothing reads, and why: none that the table of labels
    has too."""
    aside = {c for one in judges for c, _ in columns_of(one.described.spec.files[0])}
    aside |= {*found.look.columns, *look.roles.values()}
    rest = {column: about for column, about in look.usable.items() if column not in aside}
    fits = {c for c in rest for own in found.metrics.values() if _fits(rest[c].often, own)}
    read = [column for one in judges for column in one.read]
    both = "another column is read; where it is a judge as well: --judge "
    return {
        c: both + quote(",".join([*read, c])) if c in fits else about.why_no_labels or NOT_THEIRS
        for c, about in rest.items()
    }


def _one_sided(
    found: Guess, rubric: Rubric, judges: Sequence[JudgeTable], ids: Mapping[str, str]
) -> Iterator[str]:
    """The labels that people never gave, or a judge never, and how often others did."""
    for name, metric in ((name, rubric.find(m)) for name, m in ids.items()):
        if metric is None or metric.preference or "metric" in found.roles:
            continue
        heads = (columns[name] for columns in found.columns.values() if name in columns)
        people = sum((_uses(found.look, head, metric) for head in heads), Counter[str]())
        said = {
            judge.called: _uses(judge.look, columns[metric.id], metric, judge.spec)
            for judge in judges
            if metric.id in (columns := judge.spec.get("metrics", {}))
        }
        for text in metric.label_texts if people else ():
            by = [f"{who} {counted(n[text], 'time')}" for who, n in said.items() if n[text]]
            without = [who for who, n in said.items() if n and not n[text]]
            if by and not people[text]:
                yield f"{text!r} (given by {listed(by)}, never by people)"
            elif people[text] and without:
                times = counted(people[text], "time")
                yield f"{text!r} (given {times} by people, never by {listed(without)})"


def _in_other_case(
    found: Guess, judges: Sequence[JudgeTable], ids: Mapping[str, str]
) -> Iterator[str]:
    """The spellings of labels that differ from these in upper and lower case, and how often."""
    for name, metric in ids.items() if "metric" not in found.roles else ():
        held = [found.look.columns[own[name]] for own in found.columns.values() if name in own]
        of_judges = ((one.look.columns, one.spec.get("metrics", {})) for one in judges)
        held += [columns[own[metric]] for columns, own in of_judges if metric in own]
        often = sum((one.often for one in held if one.has_few), Counter[str]())
        yield from (
            f"{text!r} as {label} ({counted(n, 'time')})"
            for label in found.metrics.get(name, ())
            for text, n in often.items()
            if text != label and text.casefold() == label.casefold()
        )


def _uses(look: Look, column: str, metric: Metric, spec: Mapping[str, Any] = {}) -> Counter[str]:
    """The number of times that a column holds each label; none where it holds too many texts."""
    spelt = spec.get("spellings", {}).get(metric.id, {})
    uses = Counter[str]()
    for text, n in look.columns[column].often.items() if look.columns[column].has_few else ():
        uses[read_label(metric, text, spelt).label or ""] += n
    return uses


def _repeated(found: Guess) -> str:
    """The first column of an item's id, of those that repeat."""
    look = found.look
    several = [c for c in found.by if found.by[1:] and c != found.roles.get("system")]
    return next((c for c in several if 1 < look.columns[c].different < look.count(found.by)), "")


def _items_in_words(found: Guess) -> str:
    key, look = " and ".join(found.by), found.look
    of = f"column{'s' * (len(found.by) > 1)} {key}"
    n = look.count(found.by) if key else 0
    if found.pair:
        return f"{n:,} questions by {of}; pairs of {' and '.join(found.pair)}"
    items = f"{counted(n, 'item')} by {of}" if n else "each row is an item"
    about = found.roles.get("group") or found.roles.get("question", "")
    if not about and (like := _repeated(found)):
        return f"{items}, each a question of its own (if not: --question {quote(like)})"
    if not about or about == key:
        return items
    texts = [look.columns[c] for c in found.responses or filter(None, [found.roles.get("text")])]
    merged = texts and all(column.repeats for column in texts)  # equal answers are one group
    known = not merged and 0 not in look.columns[about].codes
    asked = counted(look.columns[about].different, "question") if known else "questions"
    return f"{items}; {asked} in column {about}"
