"""From tables as they are given to a layout: which holds labels, which verdicts, which answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from judgebench.data.draft import (
    ID_FORMS,
    VALUE,
    Draft,
    by_meaning,
    plain_label,
    side_of,
    yes_or_no,
)
from judgebench.data.exports import parts, recognise, reshaped, split_kinds, split_names
from judgebench.data.findings import USUAL, Findings
from judgebench.data.formats import Cell, Table
from judgebench.data.infer import (
    LABEL,
    Labels,
    Proposal,
    check_shares,
    judges_of,
    match_answers,
    propose,
    settle_probabilities,
)
from judgebench.data.layout import Layout, Sheet, Source
from judgebench.data.logs import log_columns, log_tables, read_log
from judgebench.data.named import OF_PROTOCOL, named_sheet
from judgebench.data.settings import (
    NOTHING_SAID,
    Ask,
    Question,
    Reading,
    TableSettings,
    Unsettled,
    check_names,
    each_as,
)
from judgebench.data.tables import check_frame, known_of, sheets_of, table_in
from judgebench.data.vocabulary import Column, has_word, plain_name, role_of
from judgebench.errors import Problem, SetupError, nearest, raise_any, some
from judgebench.files import validate
from judgebench.records import ADJUDICATED
from judgebench.rubric import BETWEEN, Metric, Rubric, normalise
from judgebench.text import plain_id

NO_ORDER = "none"  # in the place of an order: no label is worse than another
_ONLY_ONE = "(write the other labels here)"  # a metric has two
EXAMPLE = {"Quality": ("Good", "Acceptable", "Poor")}  # where a table holds no labels
_MAX_QUESTIONS = 12  # that are collected before they are put
_JUDGES_WORDS = {"verdict", "verdicts", "judge", "judges", "llm", "ai", "ki"}
_PEOPLES_WORDS = {"label", "labels", "human", "humans", "annotation", "annotations", "annotators",
                  "people", "experts"}  # fmt: skip


@dataclass(frozen=True)
class GivenTables:
    """Tables by what somebody says that they hold; `unsorted` in any order."""

    labels: Sequence[Source] = ()
    verdicts: Sequence[Source] = ()
    answers: Sequence[Source] = ()
    unsorted: Sequence[Source] = ()


def sources_of(given: Any, name: str) -> list[Source]:
    """The sources of a path, a DataFrame, several of them, or several by name. Raises SetupError
    for anything else."""
    if given is None:
        return []
    if isinstance(given, Mapping | list | tuple):
        parts_of = given.values() if isinstance(given, Mapping) else given
        for part in (part for part in parts_of if isinstance(part, Mapping | list | tuple)):
            check_frame(part, name)  # which it is not
    if isinstance(given, Mapping):
        return [
            replace(source, who=str(key))
            for key, one in given.items()
            for source in sources_of(one, str(key))
        ]
    if isinstance(given, list | tuple):
        several = len(given) > 1
        names = (f"{name} {n}" if several else name for n in range(1, len(given) + 1))
        return [s for one, own in zip(given, names, strict=True) for s in sources_of(one, own)]
    if not isinstance(given, str | Path):
        check_frame(given, name)
        return [Source(Path(name), given)]
    if "\n" in str(given):
        message = "is the text of a table, and no path of a file: pd.read_csv(io.StringIO(text))"
        raise SetupError(Problem(message, "", None, name, str(given)[:40]))
    path = Path(given)
    book, _, sheet = str(given).rpartition(", sheet ")  # as questions name it
    if book and not path.exists():
        return [Source(Path(book), None, sheet)]
    sheets = sheets_of(table_in(path))
    return [Source(path, None, sheet) for sheet in (sheets[1:] and sheets) or [""]]


def given_tables(paths: Sequence[Path], settings: TableSettings) -> GivenTables:
    """The tables of files, some of which are said to hold labels or verdicts."""
    labels, verdicts, rest = (
        [source for path in given for source in sources_of(path, str(path))]
        for given in (settings.labels, settings.verdicts, paths)
    )
    unsorted = [source for source in rest if source not in (*labels, *verdicts)]
    return GivenTables(labels, verdicts, unsorted=unsorted)


def infer_layout(
    given: GivenTables,
    settings: TableSettings = NOTHING_SAID,
    rubric: Rubric | None = None,
    *,
    labelled: bool = True,
) -> Layout:
    """The one layout that the tables have. Raises Unsettled where they may have several, with all
    questions that follow whatever the answers to others, and SetupError with every problem where
    they have none."""
    _check_twice([*given.labels, *given.verdicts, *given.answers, *given.unsorted])
    questions: list[Question] = []
    while len(questions) < _MAX_QUESTIONS:
        try:
            layout = _inferred(given, settings, rubric, labelled)
        except Ask as ask:
            question = ask.question
            if question.asks in [known.asks for known in questions]:
                break
            questions.append(question)
            first = question.readings[0].settings if question.readings else NOTHING_SAID
            if first == NOTHING_SAID or first.columns or first.labels:
                break  # of what else there is to ask, this decides
            settings = settings.with_more(first)
        except SetupError:
            if not questions:
                raise
            break  # which would be another problem, if the first reading held
        else:
            if not questions:
                return layout
            break
    raise Unsettled(questions)


def _inferred(
    given: GivenTables, settings: TableSettings, rubric: Rubric | None, labelled: bool
) -> Layout:
    findings = Findings()
    by_kind = {
        kind: [d for source in getattr(given, kind) for d in _drafts(source, settings, findings)]
        for kind in ("labels", "verdicts", "answers", "unsorted")
    }
    raise_any(findings.errors)
    every = [draft for drafts in by_kind.values() for draft in drafts]
    settings = check_names(settings, list(dict.fromkeys(c for d in every for c in d.columns)))
    for draft in every:
        settings = _with_study(settings, draft.table)
    for draft in every:
        draft.settle_said(settings)
    labels, verdicts, answers = _sorted_tables(by_kind, settings)
    _settle_shared_roles(labels, verdicts)
    gold = [draft for draft in labels if _is_gold(draft)]
    labels = [draft for draft in labels if draft not in gold] or labels
    whole = _combined(labels)
    known = rubric or _rubric_beside(labels)
    proposal = propose(whole, verdicts, known, labelled=labelled)
    for draft in answers:
        match_answers(proposal, draft)
    made, ids, spellings = _rubric(proposal, rubric, settings)
    if known is not None and rubric is None:
        made = _as_asked(made, known)
    for draft in verdicts:
        settle_probabilities(draft, made)
    for draft in (whole, *verdicts):
        check_shares(proposal, draft)
    _check_models_rows(whole, verdicts, settings)
    judges = _chosen_judges(proposal, settings)
    sheets = [
        *(_sheet(draft, whole, ids) for draft in labels),
        *(_sheet(draft, draft, ids) for draft in (*verdicts, *answers)),
    ]
    named = [named_sheet(draft.source, made, findings) for draft in gold if draft not in labels]
    raise_any(findings.errors)
    sheets += filter(None, named)
    if rubric is None:
        sheets = [_of_labelled_metrics(sheet, made, proposal) for sheet in sheets]
    return Layout(
        tuple(sheets), made, spellings, frozenset(settings.failed), settings.repeats,
        settings.only_common, settings.several, proposal.ids, tuple(judges),
        notes=(*proposal.notes, *(str(w) for w in findings.warnings if w.kind not in USUAL)),
    )  # fmt: skip


def _with_study(settings: TableSettings, table: Table) -> TableSettings:
    """What somebody says, and what the labels of an annotation study say of themselves: the items
    of a question, and the sign between several labels."""
    if not {"study", "queue_position"} <= table.columns.keys():
        return settings
    labels = table.texts("label") if "label" in table.columns else []
    is_joined = any(BETWEEN in label for label in labels)
    several = settings.several or (BETWEEN.strip() if is_joined else "")
    groups = {"group": Column("group")} if "group" in table.columns else {}
    return replace(settings, several=several, columns={**groups, **settings.columns})


# ------------------------------------------------------------------------------- tables as drafts


def _drafts(source: Source, settings: TableSettings, findings: Findings) -> Iterator[Draft]:
    """The tables in a source: people's rows and models' rows are two."""
    header, skip = (settings.rows(key, source.name) for key in ("header", "skip"))
    source = replace(source, header=header, skip=skip)
    log = read_log(source.path) if source.frame is None and source.path.is_file() else None
    if log is not None:
        for found in log_tables(log):
            yield Draft(replace(source, sheet=found.sheet), found, known=log_columns(found))
        return
    of_sheet = Findings() if source.sheet else findings
    table = source.read(of_sheet)
    if table is None or (source.sheet and not _holds_items(Draft(source, table))):
        return
    if table.headers and not source.header:
        _ask_header(source, table)
    if fill := tuple(column for column in settings.fill_down if column in table.columns):
        source = replace(source, fill_down=fill)
        table = source.read(findings) or table
    if export := recognise(table):
        source = replace(source, export=export.tool)
        table = reshaped(table, export.tool)
        split = parts(table, export)
    else:
        split = split_kinds(table, settings.columns) or split_names(table, settings.judge)
    for part in split:
        own = replace(source, only=part.only)
        yield Draft(own, own.narrowed(table), known=part.columns, spell=part.spell)


def _holds_items(draft: Draft) -> bool:
    """True of a sheet that is a table, and no text to read."""
    return len(draft.columns) > 1 and bool(
        draft.of("item", "group", "question", "annotator", "judge") or draft.free()
    )


def _ask_header(source: Source, table: Table) -> None:
    readings = []
    for header in sorted(table.headers, key=len, reverse=True):
        named = replace(source, header=header).read(Findings())
        if named is None:
            continue
        where = "rows" if header[1:] else "row"
        means = f"{where} {' and '.join(map(str, header))}: {some(named.columns, 5)}"
        readings.append(Reading(TableSettings(header={source.name: header}), means))
    raise Ask(source.name, "which row holds the names of the columns?", *readings)


def _check_twice(sources: Sequence[Source]) -> None:
    """Raise SetupError where the same table is given twice."""
    files = Counter((s.path.resolve(), s.sheet) for s in sources if s.frame is None)
    twice = [path.name for (path, _), n in files.items() if n > 1]
    raise_any([Problem("the same table is given twice", found=name) for name in twice[:1]])


# ------------------------------------------------------------------ which table holds what


def _sorted_tables(
    by_kind: Mapping[str, list[Draft]], settings: TableSettings
) -> tuple[list[Draft], list[Draft], list[Draft]]:
    """The tables of labels, of verdicts and of answers."""
    labels, verdicts, answers = ([*by_kind[k]] for k in ("labels", "verdicts", "answers"))
    if labels and not by_kind["unsorted"]:
        judged = [d for d in labels if d.of("judge") and not d.of("annotator", "label", VALUE)]
        own = [d for d in labels if d not in judged or d.source.export == ""]
        return own, [*verdicts, *(d for d in labels if d not in own)], answers
    if labels or verdicts:  # as somebody says: another file of the same name is not meant
        settings = replace(settings, labels=(), verdicts=())
    rest = by_kind["unsorted"]
    kinds = [_kind(draft, settings) for draft in rest]
    if len(rest) == 1 and not labels:
        _ask_who_judged(rest[0], settings)
        kinds = ["labels"]
    if "labels" not in kinds and not labels:
        first_kind = next((kind for kind in ("", "verdicts") if kind in kinds), "answers")
        kinds[kinds.index(first_kind)] = "labels"
    first = next((d for d, kind in zip(rest, kinds, strict=True) if kind == "labels"), None)
    for draft, kind in zip(rest, kinds, strict=True):
        {"labels": labels, "answers": answers}.get(kind, verdicts).append(draft)
    if first is not None:
        unsaid = verdicts[len(by_kind["verdicts"]) :]
        more = [d for d in _of_same_columns(first, unsaid) if _share_no_items([first, d])]
        labels, verdicts = [*labels, *more], [d for d in verdicts if d not in more]
        unsaid = [d for d in unsaid if d not in more]
        _check_alike(first, unsaid, settings)
        nobodys = [d for d, kind in zip(rest, kinds, strict=True) if kind == "" and d in unsaid]
        if len(nobodys) < len(unsaid) and not first.of("annotator", "adjudicated"):
            _ask_whose(first, nobodys)
    return labels, verdicts, answers


def _ask_who_judged(draft: Draft, settings: TableSettings) -> None:
    """Raise Ask where the only table says who judged, and holds no label of people."""
    judge = draft.first("judge")
    if not judge or settings.labels or draft.of("annotator", "label", "labels", VALUE, "verdict"):
        return
    raise Ask(
        draft.name,
        f"its rows are verdicts, of those named in {judge}, and no table holds labels of people: "
        "give one beside it",
        each_as("annotator", [judge]),
    )


def _settle_shared_roles(labels: Sequence[Draft], verdicts: Sequence[Draft]) -> None:
    """What is said of a column is said of every table: one that tables of verdicts have, too, holds
    labels in those of labels."""
    shared = {c for draft in verdicts for c in draft.columns}
    for draft in labels:
        for name in shared & {*draft.of("verdict")}:
            draft.columns[name] = replace(draft.columns[name], role="label")


def _kind(draft: Draft, settings: TableSettings) -> str:
    """What a table holds, by what is said, by its columns and by its name; empty where nothing
    says it."""
    for kind in ("labels", "verdicts"):
        said = {Path(name).name for name in getattr(settings, kind)}
        if not said.isdisjoint({draft.source.path.name, draft.source.name}):
            return kind
    name = {*plain_name(draft.table.stem).split("_")}
    is_models = has_word(draft.table.stem, "models") or bool(name & _JUDGES_WORDS)
    people = draft.first("annotator")
    if people and (named := [*dict.fromkeys(filter(None, draft.table.texts(people)))]):
        return "verdicts" if all(has_word(text, "models") for text in named) else "labels"
    if draft.of("judge", "status", "shown_first") and not draft.of("label"):
        return "verdicts"
    has_texts = bool(draft.of("text", "messages")) and not draft.free()
    # A judge's whole replies stand beside no question; `answers_for_judge.csv` is no judge's.
    is_models = is_models and not (has_texts and draft.of("question"))
    if is_models or draft.of("verdict", "reply"):
        return "verdicts"
    if name & _PEOPLES_WORDS or draft.of("label", "labels"):
        return "labels"
    return "answers" if has_texts else ""


def _check_alike(labels: Draft, others: Sequence[Draft], settings: TableSettings) -> None:
    """Raise Ask where other tables have the same columns as that of labels, and no name of a
    model: they may be other people's."""
    alike = _of_same_columns(labels, others)
    if not alike or labels.of("annotator") or settings.verdicts or settings.labels:
        return
    has = "has" if len(alike) == 1 else "have"
    _ask_whose(
        labels,
        alike,
        f"{some(d.name for d in alike)} {has} the same columns, and no column names annotators",
    )


def _ask_whose(labels: Draft, others: Sequence[Draft], asks: str = "") -> None:
    """Ask whether tables beside one of labels hold more of these, or verdicts."""
    if not others:
        return
    tables = (d.source for d in (labels, *others))
    files = tuple(dict.fromkeys(str(s.path.with_name(s.name)) for s in tables))
    raise Ask(
        labels.name,
        asks or f"whose labels stand in {some(d.name for d in others)}?",
        TableSettings(labels=files),
        TableSettings(verdicts=files[1:] or files),
    )


def _of_same_columns(labels: Draft, others: Sequence[Draft]) -> list[Draft]:
    """The tables of the same columns without the name of a model."""
    columns = {*map(plain_name, labels.columns)}
    same = [d for d in others if {*map(plain_name, d.columns)} == columns]
    return [d for d in same if not has_word(d.table.stem, "models")]


def _combined(drafts: Sequence[Draft]) -> Draft:
    """Several tables of labels as one. Raises SetupError where their columns differ."""
    first, *others = drafts
    if not others:
        return first
    columns = {*map(plain_name, first.columns)}
    message = (
        f"has other columns than {first.name}, and both hold labels: write what each holds into a "
        "layout.yaml, make them alike, or give the sheets that count: 'FILE, sheet NAME'"
    )
    raise_any([
        Problem(message, draft.name, 1, "", some(draft.columns), some(first.columns))
        for draft in others if {*map(plain_name, draft.columns)} != columns
    ])  # fmt: skip
    whole = _stacked(drafts)
    is_named = first.of("annotator") or any(c.who for c in first.columns.values())
    if is_named or _share_no_items(drafts):
        return whole
    names = [d.source.who or d.table.stem for d in drafts for _ in d.table.lines]
    return _stacked(drafts, {"annotator": names})


def _stacked(drafts: Sequence[Draft], more: Mapping[str, Sequence[Cell]] = {}) -> Draft:
    """The rows of tables of the same columns, one table after the other, with `more` columns."""
    first = drafts[0]
    cells = {name: [x for d in drafts for x in d.cells(d.same(name))] for name in first.columns}
    lines = [line for d in drafts for line in d.table.lines]
    table = replace(first.table, columns={**cells, **more}, lines=lines)
    return Draft(first.source, table, first.said, known=first.known, spell=first.spell,
                 tables=drafts)  # fmt: skip


def _is_gold(draft: Draft) -> bool:
    """True of a table of adjudicated labels alone, as `judgebench annotate export` writes it."""
    column = draft.first("annotator")
    return {*draft.table.texts(column)} == {ADJUDICATED} if column else False


def _share_no_items(drafts: Sequence[Draft]) -> bool:
    """True of tables of other items each, with labels of several: more rows, and not other
    people's labels. Where no name says what an item is, no column that may be its id is shared."""
    whole = _stacked(drafts)
    labels, named = whole.free() + whole.of("label"), whole.of("item", "group")
    likely = named or [
        c
        for c in whole.of("", "question", "text")
        if c not in labels and not any(d.repeats(d.same(c)) for d in drafts)
    ]
    shared = [_is_shared(drafts, c) for c in likely]
    return len(labels) > 1 and False in shared and bool(named or True not in shared)


def _is_shared(drafts: Sequence[Draft], column: str) -> bool:
    """True where two tables have a cell of a column in common, or none has any."""
    form = ID_FORMS["leading zeros"]
    ids = [x for d in drafts for x in {*map(form, d.table.texts(d.same(column)))} if x]
    return len({*ids}) < len(ids) or not ids


# ------------------------------------------------------------------------------- the layout


def _sheet(draft: Draft, whole: Draft, ids: Mapping[str, str]) -> Sheet:
    """The sheet of a draft, whose columns were settled in `whole`; every column gets one role."""
    key, unread = filter(None, map(draft.same, whole.key)), Column("", why="not read")
    is_promised = OF_PROTOCOL in draft.table.columns
    columns = {
        name: _final(whole.columns.get(whole.same(name), unread), ids, is_promised)
        for name in dict.fromkeys((*key, *draft.table.columns))  # ids alike everywhere
    }
    source = draft.source
    if "annotator" in whole.columns and "annotator" not in draft.columns and not source.who:
        source = replace(source, who=draft.table.stem)
    return Sheet(source, columns, table=draft.table)


def _of_labelled_metrics(sheet: Sheet, rubric: Rubric, proposal: Proposal) -> Sheet:
    """The sheet without the verdicts on metrics that nobody labelled, which is noted."""
    column, table = sheet.first("metric"), sheet.table
    if not (column and sheet.has_verdicts and table):
        return sheet
    names = dict.fromkeys(filter(None, table.texts(column)))
    known = tuple(name for name in names if rubric.find(name))
    if not known or len(known) == len(names):
        return sheet
    others = some(name for name in names if name not in known)
    proposal.notes.append(
        f"{table.name}: verdicts on {others}, which nobody labelled, are left out"
    )
    source = replace(sheet.source, only={**sheet.source.only, column: known})
    return replace(sheet, source=source, table=source.narrowed(table))


def _final(column: Column, ids: Mapping[str, str], is_promised: bool) -> Column:
    """The column with a role that a layout knows, and its metric's id. What an export holds beside
    its labels `is_promised` by the protocol of the study."""
    role, why = column.role, column.why
    if is_promised and role in ("", "about"):
        role, why = "kept", "an export names it for its protocol"
    elif role in ("", VALUE):
        role, why = "ignored", "not read"
    elif role == "about":
        role, why = "ignored", "says something of the item; the role kept keeps it"
    elif role == "weight":
        role, why = "kept", "says how items were sampled, by its name"
    return Column(role, ids.get(column.metric, column.metric), column.who, why)


def _chosen_judges(proposal: Proposal, settings: TableSettings) -> list[str]:
    """The judges that count; the only one gets the name that somebody gives it. Raises SetupError
    for one that is nobody's name."""
    judged = [d for d in (proposal.labels, *proposal.verdicts) if d.of("verdict", "reply")]
    heads = {c: d.columns[c].who for d in judged for c in d.of("verdict", "reply")}
    asked = [name for one in settings.judge if (name := heads.get(one, one))]
    names = [n for n in proposal.judges if any(_alike(n, one) for one in asked)]
    unknown = [one for one in asked if not any(_alike(n, one) for n in proposal.judges)]
    if not unknown:
        return names or proposal.judges
    people = {column.who for column in proposal.labels.columns.values() if column.role == "label"}
    if len(proposal.judges) != 1 or settings.judge[1:] or unknown[0] in people:
        message = f"no judge is called so{nearest(unknown[0], proposal.judges)}"
        if unknown[0] in people:
            message = "is an annotator, whom --as-judge (as_judges=) puts in a judge's place"
        raise SetupError(Problem(message, "", None, "--judge", unknown[0], some(proposal.judges)))
    if any(draft.of("judge") for draft in judged):
        return proposal.judges  # whom rows name
    for draft in judged:
        for column in draft.of("verdict", "reply"):
            draft.columns[column] = replace(draft.columns[column], who=unknown[0])
    return unknown


def _check_models_rows(labels: Draft, verdicts: Sequence[Draft], settings: TableSettings) -> None:
    """Raise Ask where a table of labels has rows of models, beside a table of verdicts."""
    own = [d for d in verdicts if d.source.only and d.source.path == labels.source.path]
    others = [d for d in verdicts if d not in own]
    if settings.judge or not own or not others:
        return
    models, judges = ([name for d in drafts for name in judges_of(d)] for drafts in (own, others))
    column = next(iter(own[0].source.only))
    raise Ask(
        labels.name,
        f"the rows of {some(models)}, by column {column}, are a model's, and {others[0].name} "
        "holds verdicts: is it a judge, too?",
        TableSettings(judge=tuple(judges)),
        TableSettings(judge=(*judges, *models)),
    )


def _alike(a: str, b: str) -> bool:
    return re.sub(r"[\W_]", "", a.casefold()) == re.sub(r"[\W_]", "", b.casefold())


# ------------------------------------------------------------------------------- the rubric


def _rubric_beside(drafts: Sequence[Draft]) -> Rubric | None:
    """The rubric of the labels where a feature knows it."""
    files = (draft.source.path for draft in drafts if draft.source.frame is None)
    return next(filter(None, (known_of(path, "rubric") for path in files)), None)


def _rubric(
    proposal: Proposal, rubric: Rubric | None, settings: TableSettings
) -> tuple[Rubric, dict[str, str], dict[str, dict[str, str | None]]]:
    """The rubric of the metrics, their ids, and what texts mean that are no label's spelling."""
    titles = _titles(proposal)
    if rubric is not None:
        if settings.severe and not any(metric.severe for metric in rubric.metrics):
            message = "is said by the rubric: write `severe: none` under a metric of it"
            raise SetupError(Problem(message, "", None, "--severe", settings.severe[0]))
        ids = {m: metric.id for m in proposal.metrics if (metric := _in_rubric(rubric, m))}
        return rubric, ids, _spellings(proposal, rubric, ids, settings)
    by_title = metric_ids([*titles.values()] or [*EXAMPLE])
    ids = {m: by_title[title] for m, title in titles.items()}
    orders = _orders(proposal, titles, settings.order)
    without_severe = _without_severe(titles, orders, settings.severe)
    known = {m: [*labels.values()] for m, labels in proposal.metrics.items()}
    metrics = [
        _metric(by_title, titles.get(name, name), labels, orders.get(name), proposal)
        | ({"severe": "none"} if name in without_severe else {})
        for name, labels in (known or EXAMPLE).items()
    ]
    stem = re.sub("[^A-Za-z0-9_-]+", "-", proposal.labels.source.path.name.split(".")[0])
    value = {"name": stem.strip("-_")[:60] or "mine", "version": "1", "metrics": metrics}
    made = validate(value, Rubric, file=proposal.labels.name)
    return made, ids, _spellings(proposal, made, ids, settings)


def _in_rubric(rubric: Rubric, name: str) -> Metric | None:
    """The metric of this name; the only one for a name that says nothing, such as `winner`."""
    says_nothing = name == LABEL or role_of(name) == VALUE
    alone = says_nothing and len(rubric.metrics) == 1
    return rubric.metrics[0] if alone else rubric.find(name)


def _metric(
    ids: Mapping[str, str], title: str, labels: Sequence[str], order: Sequence[str] | None,
    proposal: Proposal,
) -> dict[str, Any]:  # fmt: skip
    if proposal.labels.pair:
        question = "Which response is better?"
        return {"id": ids[title], "title": title, "question": question, "kind": "preference"}
    if not labels:
        raise SetupError(Problem(f"no cell holds a label of {title}", proposal.labels.name))
    metric = unordered_metric(ids[title], title, labels)
    if order is not None:
        metric |= {"order": None, "labels": order or metric["labels"]}
    if order:
        metric["kind"] = "ordinal"
    if proposal.labels.said.several:
        metric["several"] = True
    return metric


def unordered_metric(metric_id: str, title: str, labels: Sequence[str]) -> dict[str, Any]:
    """A metric of which nobody has said more than what its labels are."""
    return {
        "id": metric_id,
        "title": title,
        "question": f"Which label does the answer deserve for {title}?",
        "kind": "nominal",
        "labels": [*ordered(labels), *[_ONLY_ONE][len(labels) - 1 :]],
        "order": "unknown",
    }


def ordered(texts: Sequence[str]) -> tuple[str, ...]:
    """Numbers by size; other texts in their order."""
    try:
        return tuple(sorted(texts, key=float))
    except ValueError:
        return tuple(texts)


def _titles(proposal: Proposal) -> dict[str, str]:
    """The title of each metric; where labels have none, the name of the column of verdicts."""
    titles = {metric: metric for metric in proposal.metrics}
    if LABEL in titles and len(titles) == 1:
        heads = [
            c for d in proposal.verdicts for c in d.of("verdict")
            if plain_name(c) != plain_name(d.table.stem)
            and not role_of(c) and not has_word(c, "models")
        ]  # fmt: skip
        titles[LABEL] = heads[0] if heads else LABEL
    return titles


def metric_ids(titles: Sequence[str]) -> dict[str, str]:
    """The id of each metric by its title; no two ids or titles are the same."""
    ids: dict[str, str] = {}
    plain = {title: normalise(title) for title in titles}
    for title in titles:
        slug = plain_id(title)
        slug = slug if slug[:1].isalpha() else f"metric_{slug}".rstrip("_")
        taken = {*ids.values(), *(plain[t] for t in titles if t != title), *_TAKEN}
        candidates = chain([slug], (f"{slug}_{number}" for number in count(2)))
        ids[title] = next(name for name in candidates if name not in taken)
    return ids


_TAKEN = ("item_id", "annotator", "judge", "text", "question", "system", "reference", "group",
          "silver", "status", "raw", "repeat")  # fmt: skip


def _as_asked(rubric: Rubric, asked: Rubric) -> Rubric:
    """The rubric with metrics as annotators were asked, unless somebody gives another order."""
    metrics = [
        known.model_copy(update={"id": one.id})
        if one.kind == "nominal" and (known := asked.find(one.id))
        else one
        for one in rubric.metrics
    ]
    return rubric.model_copy(update={"name": asked.name, "metrics": tuple(metrics)})


def _spellings(
    proposal: Proposal, rubric: Rubric, ids: Mapping[str, str], settings: TableSettings
) -> dict[str, dict[str, str | None]]:
    """By metric what texts mean: as said, as yes and no, as the side of a pair; None for none."""
    blank: dict[str, str | None] = dict.fromkeys(settings.blank)
    spellings: dict[str, dict[str, str | None]] = {}
    for name, metric_id in ids.items():
        metric = rubric.find(metric_id)
        texts = {**blank, **proposal.spell.get(name, {})}
        said = {t: metric.parse(x) for t, x in settings.spell.items()} if metric else {}
        texts |= {text: label for text, label in said.items() if label and text != label}
        if metric and metric.preference:
            texts |= _sides(proposal, metric_id)
        if texts:
            spellings[metric_id] = texts
    return spellings


def _sides(proposal: Proposal, metric: str) -> dict[str, str | None]:
    """What texts mean that name neither column nor response of a pair."""
    sides: dict[str, str | None] = {}
    for draft in (proposal.labels, *proposal.verdicts):
        names = {*draft.pair, *(name for row in draft.table.rows(*draft.pair) for name in row)}
        for column in draft.of("label", "verdict"):
            for text in {*draft.table.texts(column)} - names:
                if side := side_of(draft.spell.get(text, text)) or draft.spell.get(text, ""):
                    sides[text] = side
    return sides


# ------------------------------------------------------------------------------- the order


def _orders(
    proposal: Proposal, titles: Mapping[str, str], said: Sequence[str]
) -> dict[str, list[str]]:
    """The labels from the least to the most severe, by metric; empty where none is worse. Raises
    SetupError with every order that is none."""
    orders: dict[str, list[str]] = {}
    problems = list[Problem]()
    for metric, labels in proposal.metrics.items():
        scale = _spelt(_categories(proposal, metric), labels)
        if scale and {*labels} <= {*map(plain_label, scale)}:
            orders[metric] = scale
    for text in sorted(said, key=lambda text: ":" in text):
        of, order = _of_metrics(titles, text)
        parts_ = [part.strip() for part in order.split("<")]
        if parts_ == [NO_ORDER]:
            orders |= {metric: [] for metric in of}
            continue
        spelt = {m: _spelt(parts_, proposal.metrics[m]) for m in of}
        fits = [m for m in of if {*proposal.metrics[m]} <= {*map(plain_label, spelt[m])}]
        if len(parts_) > 1 and all(parts_) and fits:
            orders |= {metric: spelt[metric] for metric in fits}
        else:
            problems.append(_wrong_order(proposal, titles, of, text))
    raise_any(problems)
    return orders


def _of_metrics(titles: Mapping[str, str], text: str) -> tuple[list[str], str]:
    """The metrics that are meant by what stands before a colon, all without one; and the rest."""
    head, colon, rest = text.partition(":")
    if not colon or "<" in head:
        return [*titles], text
    names = {m: (normalise(m), normalise(title)) for m, title in titles.items()}
    return [m for m in titles if normalise(head) in names[m]], rest


def _without_severe(
    titles: Mapping[str, str], orders: Mapping[str, Sequence[str]], texts: Sequence[str]
) -> set[str]:
    """The metrics of which no label is severe. Raises SetupError with every text that says so of no
    metric with ordered labels."""
    metrics, problems = set[str](), list[Problem]()
    for text in texts:
        named, rest = _of_metrics(titles, text)
        ordered_metrics = [metric for metric in named if orders.get(metric)]
        metrics |= {*ordered_metrics}
        message = ""
        if rest.strip() != NO_ORDER or not named:
            message = (
                "must say `none`, or `METRIC: none`, of ordered labels of which none is severe"
            )
        elif not ordered_metrics:
            message = "is for ordered labels: give their order with --order, or leave this out"
        if message:
            problems.append(Problem(message, "", None, "--severe", text, some(titles.values())))
    raise_any(problems)
    return metrics


def _categories(proposal: Proposal, metric: str) -> list[str]:
    """The ordered categories of a DataFrame's column of the metric's labels; of a column of several
    metrics those that are this metric's."""
    draft = proposal.labels
    for column in (c for c in draft.of("label") if c in draft.table.orders):
        categories = [*draft.table.orders[column]]
        if draft.columns[column].metric == metric:
            return categories
        if not draft.columns[column].metric:
            return [text for text in categories if plain_label(text) in proposal.metrics[metric]]
    return []


def _spelt(order: Sequence[str], labels: Labels) -> list[str]:
    """An order's labels as tables spell them: also as other words for yes and no."""
    spelt = by_meaning(labels)
    return [labels.get(plain_label(text)) or spelt.get(yes_or_no(text)) or text for text in order]


def _wrong_order(
    proposal: Proposal, titles: Mapping[str, str], of: Sequence[str], text: str
) -> Problem:
    """The problem of an order that is none, or leaves out labels."""
    allowed = f"LABEL < LABEL < …, the least severe first, or {NO_ORDER}"
    if len(titles) > 1:
        allowed = f"METRIC: {allowed}; metrics: {some(titles.values())}"
    if "<" not in text or not of:
        near = "" if of else nearest(text.partition(":")[0].strip(), [*titles.values()])
        return Problem(f"is no order of labels{near}", "", None, "--order", text, allowed)
    labels = proposal.metrics[of[0]]
    named = {plain_label(part) for part in text.rpartition(":")[2].split("<")}
    lacking = [label for plain, label in labels.items() if plain not in named]
    return Problem(
        f"leaves out labels that {proposal.labels.name} holds: {some(lacking)}", "", None,
        "--order", text, f"all of {some(labels.values())} (or --blank TEXT for what is no label)",
    )  # fmt: skip
