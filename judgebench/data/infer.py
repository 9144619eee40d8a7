"""Propose a layout of tables: by what is said, by known exports, by the published names of columns,
and by the labels that columns share.

Where one reading is possible it is taken, and said; where several are, a question is asked, with
the settings that choose each. Nothing falls back to a guess.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, product
from math import fsum
from shlex import quote

from judgebench.data.draft import (
    BY_NAME,
    FEW_BLANK,
    ID_FORMS,
    LONGEST_LABEL,
    MAX_LABELS,
    VALUE,
    Draft,
    are_yes_and_no,
    by_meaning,
    entries_of,
    is_failure_word,
    is_path,
    plain_label,
    yes_or_no,
)
from judgebench.data.formats import number_in
from judgebench.data.named import PROBABILITY, probabilities
from judgebench.data.settings import (
    Ask,
    Reading,
    TableSettings,
    columns_as,
    each_as,
)
from judgebench.data.vocabulary import (
    Column,
    has_word,
    is_model,
    is_person,
    last_word,
    plain_name,
    role_of,
    words,
)
from judgebench.errors import Problem, SetupError, nearest, shorten, some
from judgebench.records import ADJUDICATED, Status, group_by_key
from judgebench.rubric import Rubric, normalise
from judgebench.studies.verdicts import is_like_a_model
from judgebench.text import counted, listed

LABEL = "Label"  # the metric of labels that no name says
_DENIED = re.compile(r"\b(not|non|nicht|kein\w*|pas|sin)\b")
RARE_AMONG = 40  # labels, among which one that was used once may be a slip of the pen
LEAST_SPLITS = 5  # items on which annotators split, for a column that says what most of them do
MIN_KAPPA = 0.25  # of a person with any other: less may be no person
KEY_ROLES = ("item", "group", "question", "text", "system")
MAX_KEY = 4  # columns by which items are known together
MAX_READINGS = 4  # that a question lists of one kind
_SHARES_LABELS = "it shares labels"
_PAIRS_OF_NAMES = (  # how a column's name is made of a metric and a person
    r"(.+?)\s+[-–|]\s+(.+)", r"(.+?):\s+(.+)", r"(.+?)\s*[(\[](.+)[)\]]", r"(.+)\.(\S+)",
    r"(.+)_(.+)", r"(.+?)_(.+)", r"(.+)\s(.+)", r"(.+?)\s(.+)", r"(.*\D)(\d+)",
)  # fmt: skip

Labels = dict[str, str]  # the plain labels of a metric, each as it is first spelt


@dataclass
class Proposal:
    """What is known so far: the columns by which items are known, the labels of each metric, and
    the judges."""

    labels: Draft
    verdicts: Sequence[Draft]
    rubric: Rubric | None = None
    item: tuple[str, ...] = ()
    metrics: dict[str, Labels] = field(default_factory=dict)
    judges: list[str] = field(default_factory=list)
    spell: dict[str, dict[str, str | None]] = field(default_factory=dict)  # by metric
    ids: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def about(self) -> tuple[str, ...]:
        """The columns that say what a label is about: the item, its responses, its criterion."""
        return (*self.item, *self.labels.of("first", "second", "criterion"))

    @property
    def every_label(self) -> Labels:
        """The labels of all metrics."""
        return {plain: text for labels in self.metrics.values() for plain, text in labels.items()}

    def metric_named(self, column: str) -> str:
        """The metric that a column is called like, the longest of several; empty where none is."""
        name = f"_{plain_name(column)}_"
        fits = [m for m in self.metrics if len(plain_name(m)) > 1 and _stands_in(m, name)]
        return max(fits, key=len, default="")


def _stands_in(metric: str, name: str) -> bool:
    plain = plain_name(metric)
    return plain in name if len(plain) > 3 else f"_{plain}_" in name


def propose(
    labels: Draft, verdicts: Sequence[Draft], rubric: Rubric | None, *, labelled: bool = True
) -> Proposal:
    """What the columns of these tables are. Raises Ask where nobody said it and several readings
    are possible, and SetupError where none is."""
    proposal = Proposal(labels, verdicts, rubric)
    _settle_names(proposal)
    _check_models(labels)
    for draft in (labels, *verdicts):
        _settle_statuses(draft)
        _settle_sides(draft)
    who = _annotator_column(labels)
    metric = _metric_column(proposal)
    aside = [c for c in (who, metric, *labels.of("first", "second", "criterion")) if c]
    proposal.item = _item_columns(labels, aside, verdicts)
    _settle_items(proposal)
    _match_labels(proposal)
    _settle_labels(proposal, who, metric, labelled)
    _settle_by_rubric(proposal)
    _settle_spellings(proposal)
    _check_agreed(proposal)
    _settle_adjudicated(proposal)
    _check_labels(proposal)
    for draft in (labels, *verdicts):
        _settle_said_metrics(proposal, draft)
    _set_verdicts(proposal, labels, _beside_columns(proposal))
    for draft in verdicts:
        _settle_verdicts(proposal, draft)
    _check_judges(proposal)
    for draft in (labels, *verdicts):
        for column in draft.of("reply") if draft.of("verdict") else ():
            if draft.columns[column].why == BY_NAME:
                draft.set(column, "raw")
        _check_unread(proposal, draft)
    return proposal


def settle_probabilities(draft: Draft, rubric: Rubric) -> None:
    """Take the columns of probabilities of the labels of a rubric."""
    shares = probabilities(draft.table, rubric, bool(draft.of("metric")))
    draft.columns.update({c: x for c, x in shares.items() if not draft.is_said(c)})


def _settle_names(proposal: Proposal) -> None:
    """Take the names of columns as a rubric means them, whatever else the words may mean."""
    rubric = proposal.rubric
    if rubric is None:
        return
    of_criteria = "criterion" in rubric.kinds
    for draft in (proposal.labels, *proposal.verdicts):
        settle_probabilities(draft, rubric)
        for column in draft.of("", "about", "ignored", "metric"):
            if draft.is_said(column):
                continue
            if _is_metric_name(proposal, column):
                draft.set(column, VALUE)
            elif of_criteria and plain_name(column) == "criterion":
                draft.set(column, "criterion", why="the rubric is about criteria")


def _settle_statuses(draft: Draft) -> None:
    """A column called status says how a verdict ended if all its words do."""
    for column in draft.of("status"):
        cells = {text.casefold() for text in draft.table.texts(column)} - {""}
        known = words("failed") | words("ended") | {*Status}
        if draft.columns[column].why == BY_NAME and not cells <= known:
            draft.set(column, "ignored", why="its words are no statuses of verdicts")


def _settle_sides(draft: Draft) -> None:
    """Of several columns of a side of a pair, texts and names, that of the fewest names it."""
    for role in ("first", "second"):
        columns = sorted(draft.of(role), key=draft.n_different)
        for column in columns[1:]:
            if draft.columns[column].why == BY_NAME:
                draft.set(column, "ignored", why=f"{columns[0]} names the response")


# ------------------------------------------------------------------------------- what is an item


def _item_columns(draft: Draft, aside: Sequence[str], others: Sequence[Draft]) -> tuple[str, ...]:
    """The columns that say what a row is about. Raises Ask."""
    named = [c for c in draft.of("item") if draft.is_said(c) or c in draft.known]
    for other in others if named else ():
        ids = [c for c in other.of("item") if other.is_said(c)]
        if len(ids) > len(named):
            lacking = some(c for c in ids if not draft.same(c))
            message = f"lacks the column {lacking}, by which items are to be known"
            raise SetupError(Problem(message, draft.name, 1, "--item", some(draft.columns)))
    if named:
        return tuple(named)
    shared = [c for c in draft.columns if others and all(_common(draft, c, o) for o in others)]
    has_labels = bool(draft.of("label"))  # as somebody says: no others do
    loose = [c for c in draft.of("") if c in shared and (has_labels or not draft.labels(c))]
    able = [c for c in draft.of(*KEY_ROLES) if c not in aside] + loose
    ids = [c for c in able if draft.columns[c].role not in ("question", "text")]
    among = [[c for c in ids if c in shared], [c for c in able if c in shared], ids, able]
    about = {*draft.of("item", "group", "question", "text"), *loose}
    for columns, size in product(among, range(1, MAX_KEY + 1)):
        keys = [
            key
            for key in combinations(columns, size)
            if about & {*key} and draft.tells_apart(key, *aside)
        ]
        if keys and len({draft.parts(key) for key in keys}) == 1:
            key = min(keys, key=lambda key: _rank(draft, key))
            if {*key} <= {*shared}:
                sure = {*chain(*keys), *draft.of("group", "question", "text")}
                _check_rows(draft, key, [c for c in shared if c in sure - {*key, *aside}], others)
            return key
        if keys:
            raise Ask(
                draft.name,
                "several columns may say which item a row is about: "
                + some(" and ".join(key) for key in keys),
                *(each_as("item", key) for key in keys),
            )
    likely = [c for c in draft.of("item") if c in shared] or draft.of("item")
    if len(likely) == 1:
        return (likely[0],)  # whose rows repeat: asked about, or reported, later
    _ask_item(draft, aside, shared)
    return ()


def _check_rows(
    draft: Draft, key: Sequence[str], about: Sequence[str], others: Sequence[Draft]
) -> None:
    """Raise Ask where rows of two tables that have the same key say different things of the item,
    each of which both tables know: a running number in each is no id."""
    form = ID_FORMS["case, spaces and accents"]
    for column, other in product(about, others):
        here, there = (
            [tuple(map(form, row)) for row in d.table.rows(*map(d.same, (*key, column)))]
            for d in (draft, other)
        )
        rows, keys, known = {*here}, {row[:-1] for row in here}, {row[-1] for row in here}
        both = [row for row in there if row[:-1] in keys and row[-1] in known]
        wrong = [row for row in both if row not in rows]
        if len(wrong) * FEW_BLANK > len(both):
            raise Ask(
                draft.name,
                f"{len(wrong):,} rows of {other.name} have another {column} than the row of this "
                f"{' and '.join(key)}: by what are items known?",
                *_each(about, "item"),
                each_as("item", [*key, column]),
                each_as("item", key),
            )


def _ask_item(draft: Draft, aside: Sequence[str], shared: Sequence[str]) -> None:
    """Ask by which columns items are known: one, or two together, that tell rows apart."""
    labels = {*draft.free()} - {*shared}
    if len(labels) > max(MAX_KEY, len(draft.table)):
        message = (
            f"has {len(labels)} columns of labels and {counted(len(draft.table), 'row')}: "
            "are its columns items, and its rows people? Write a row for each item and "
            "person (in pandas: table.melt), with the columns item, annotator and label"
        )
        raise SetupError(Problem(message, draft.name, 1, "", some(labels)))
    no_ids = {*aside, *labels, *draft.of("label", "verdict", "ignored")}
    able = [c for c in draft.columns if c not in no_ids]
    able = sorted(able, key=lambda c: -draft.n_different(c))[: 2 * MAX_READINGS]
    single, pairs = (
        [key for key in combinations(able, size) if not draft.repeats(*key, *aside)]
        for size in (1, 2)
    )
    keys = single or pairs or [(column,) for column in able[:1]]
    message = f"no column says which item a row is about ({some(draft.columns)})"
    raise Ask(draft.name, message, *(each_as("item", key) for key in keys[:MAX_READINGS]))


def _check_models(draft: Draft) -> None:
    """Raise Ask where an annotator is named like a model."""
    said = {*draft.said.person, *draft.said.as_judge}
    for column in draft.of("annotator"):
        names = tuple(n for n in dict.fromkeys(draft.table.texts(column)) if n)
        models = tuple(n for n in names if is_like_a_model(n) and n not in said)
        if models and not draft.said.person:
            raise Ask(
                draft.name,
                f"{some(models)} in column {column} is named like a model: a judge, or a person?",
                TableSettings(judge=models),
                TableSettings(as_judge=models),
                TableSettings(person=names),
            )


def _rank(draft: Draft, key: Sequence[str]) -> list[int]:
    roles = [draft.columns[c].role for c in key]
    return [KEY_ROLES.index(role) if role in KEY_ROLES else len(KEY_ROLES) for role in roles]


def _common(draft: Draft, column: str, other: Draft) -> bool:
    """True where two tables have a column, and cells of it, in common."""
    same, form = other.same(column), ID_FORMS["case, spaces and accents"]
    return bool(same) and bool(
        {*map(form, draft.table.texts(column))} & {*map(form, other.table.texts(same))} - {""}
    )


def _settle_items(proposal: Proposal) -> None:
    """Give the columns of the item this role; another id is none, and never a question."""
    draft, item = proposal.labels, proposal.item
    _settle_other_ids(draft, item)
    for column in item if len(item) == 1 else ():
        _check_blank(draft, column)
    for column in item:
        known = draft.columns[column]
        _set_item(draft, column, known.why if known.role else "its ids are those of the verdicts")
    _propose_group(draft, item)
    for column in draft.of("group"):
        if draft.table.texts(column)[0]:
            _check_blank(draft, column)
    draft.key = item


def _propose_group(draft: Draft, item: Sequence[str]) -> None:
    """Propose the column beside the system's as the question that several systems answer."""
    others = [c for c in item if draft.columns[c].metric != "system"]
    if len(item) == 2 and len(others) == 1 and not draft.of("group", "question"):
        column = others[0]
        known = draft.columns[column]
        if not known.metric and not draft.is_said(column):
            draft.set(column, "item", "group")


def _check_blank(draft: Draft, column: str) -> None:
    """Raise Ask where rows lack their item, or the question that they share, as in merged cells."""
    blank = [i for i, text in enumerate(draft.table.texts(column)) if not text]
    if blank:
        readings = [TableSettings(fill_down=(column,)), TableSettings(skip=draft.lines_of(blank))]
        few = len(blank) <= len(draft.table) / FEW_BLANK
        raise Ask(
            draft.name,
            f"{counted(len(blank), 'row')} have a blank cell in {column}, the first of them row "
            f"{draft.table.lines[blank[0]]}",
            *(readings[::-1] if few else readings),
        )


def _set_item(draft: Draft, column: str, why: str) -> None:
    """Make a column one of the item, which may say something else of it, too."""
    role = draft.columns[column].role
    aspect = role if role in ("question", "text", "system", "group") else ""
    draft.set(column, "item", aspect or draft.columns[column].metric, why=why)


def _each(columns: Iterable[str], role: str, among: Sequence[str] = ()) -> list[TableSettings]:
    """A reading for each column: that it has this role, and the others among them none."""
    return [columns_as({**dict.fromkeys(among, "ignored"), c: role}) for c in columns]


# ------------------------------------------------------------------------------------- labels


def _annotator_column(draft: Draft) -> str:
    """The column that names annotators; a column of labels is none, whatever it is called."""
    if column := next((c for c in draft.of("annotator") if draft.columns[c].why != BY_NAME), ""):
        return column
    said = draft.of("label")
    who = draft.columns[said[0]].who if said else ""
    if len(said) == 1 and not who and role_of(said[0]) == "annotator" and draft.repeats(*said):
        raise Ask(
            draft.name,
            f"{said[0]} is named as a column of annotators' names: does it hold labels?",
            each_as("annotator", said),
            columns_as({said[0]: f"label by {said[0]}"}),
        )
    by_name = [c for c in draft.of("annotator") if draft.repeats(c)]
    if any(draft.columns[c].who or not (draft.columns[c].metric or by_name) for c in said):
        return ""  # each has a column
    free = draft.free()
    for column in draft.of("annotator"):
        labels = draft.labels(column)
        texts = {*labels.values()}  # an annotator `A` is no label `a`
        alike = any(texts and texts <= {*draft.labels(other).values()} for other in free)
        if alike and not all(label.isdigit() for label in labels):
            draft.set(column, "", why="its cells are labels")
    named = [c for c in draft.of("annotator") if draft.repeats(c)] or draft.of("annotator")[:1]
    if len({draft.parts([c]) for c in named}) > 1:
        raise Ask(
            draft.name,
            f"several columns may name the annotators: {some(named)}",
            *_each(named, "annotator", named),
        )
    return named[0] if named else ""


def _metric_column(proposal: Proposal) -> str:
    """The column of the metric's name, beside one of labels."""
    draft, rubric = proposal.labels, proposal.rubric
    column = draft.first("metric")
    by_name = [c for c in draft.of("criterion") if draft.columns[c].why == BY_NAME]
    of_items = draft.of("criteria") or (rubric and "criterion" in rubric.kinds)
    if not column and not of_items:
        column = next((c for c in by_name if draft.labels(c)), "")
    return column or _column_of_heads(draft, proposal.verdicts)


def _column_of_heads(draft: Draft, verdicts: Sequence[Draft]) -> str:
    """The column, such as `Question`, in which stand several names of columns of verdicts."""
    heads = {plain_name(column) for other in verdicts for column in other.of("", "verdict")}
    for column in draft.of("question", "group", "about", ""):
        shared = heads & {*map(plain_name, draft.table.texts(column))}
        if len(shared) > 1 and not draft.is_said(column):
            draft.set(column, "metric", why="its cells are columns of verdicts")
            return column
    return ""


def _settle_labels(proposal: Proposal, who: str, metric: str, labelled: bool) -> None:
    """Settle which columns hold labels of people, of whom, and of which metric. Raises Ask."""
    draft = proposal.labels
    judge = draft.first("judge")
    others = {plain for c in (*draft.free(), *draft.of("label")) for plain in draft.labels(c)}
    if judge and not who and {*draft.filled(judge)} and {*draft.filled(judge)} <= others:
        draft.set(judge, "verdict", "", judge, why="its cells are labels")
    if who:
        draft.set(who, "annotator")
        _settle_varying(proposal)
    known = [] if metric else [c for c in draft.of("", VALUE) if _is_metric_name(proposal, c)]
    columns = (
        draft.of("label")
        or [c for c in known if draft.filled(c)]
        or [c for c in draft.free() if not _is_models(c)]
    )
    if not columns and proposal.rubric:
        columns = draft.of(VALUE)
    if (not who or draft.of("labels")) and (lists := _lists_of_labels(draft)):
        for column, labels in lists.items():
            draft.set(column, "labels", column)
            proposal.metrics[column] = labels
        return
    is_open = not metric and who and not draft.said.repeats
    if is_open and draft.repeats(*proposal.about, who):
        _ask_metric(proposal, who)
    if metric and not who and draft.repeats(*proposal.about, metric) and not proposal.rubric:
        _ask_who(draft, (*proposal.about, metric))
    if metric and columns:
        draft.set(metric, "metric", why=draft.columns[metric].why or "rows differ in it")
        _check_repeats(draft, [*proposal.about, *filter(None, (who, metric))], columns)
        _settle_long_by_metric(proposal, metric, columns)
    elif who and (columns or labelled):
        _settle_long(proposal, who, columns)
    elif columns:
        _check_repeats(draft, proposal.about, columns)
        _settle_wide(proposal, columns)
    elif labelled:
        _ask_labels(draft)


def _is_models(column: str) -> bool:
    return has_word(column, "models") and role_of(column) == ""


def _settle_varying(proposal: Proposal) -> None:
    """What differs between the annotators of one item says nothing of the item: it is a label where
    the verdicts have a column of the same name."""
    draft = proposal.labels
    by_name = [
        c
        for c in draft.of("group", "question", "system", "text", "reference")
        if draft.columns[c].why == BY_NAME and c not in proposal.item
    ]
    varying = [c for c in by_name if draft.varies(c, proposal.item)]
    draft.ignore(varying, "it differs between the rows of one item")
    for column in draft.of("kept", "about"):
        labels = {*draft.labels(column)}
        shared = any(
            labels & {*d.labels(d.same(column))} for d in proposal.verdicts if d.same(column)
        )
        by_chance = _agree_by_chance(draft, proposal.item, column)
        if shared and not draft.is_said(column) and not by_chance:
            draft.set(column, "", why="annotators differ in it")


def _lists_of_labels(draft: Draft) -> dict[str, Labels]:
    """The columns of lists of labels of several people, with their labels: said, or of a name that
    labels have, where no other column holds any."""
    named = draft.of("labels")
    free = draft.free() or draft.of("label")
    lists: dict[str, Labels] = {}
    for column in named or ([] if free else draft.of("", VALUE)):
        cells = [draft.entries(cell) for cell in draft.table.columns[column]]
        labels = {plain_label(x): x for entries in cells for x in entries if x}
        full = sum(map(bool, cells)) > len(cells) / 2
        if named or (full and 1 < len(labels) <= RARE_AMONG // 2):
            lists[column] = labels
    return lists


def _ask_metric(proposal: Proposal, who: str) -> None:
    """Ask which rows of one annotator on one item count, or which column parts them."""
    draft, key = proposal.labels, (*proposal.about, who)
    fits = [c for c in draft.of("", "about") if draft.labels(c) and not draft.repeats(*key, c)]
    fits = [c for c in fits if {*draft.free()} - {c}]
    _ask_repeats(draft, key, *_each(fits, "metric"))


def _check_repeats(draft: Draft, key: Sequence[str], columns: Sequence[str]) -> None:
    """Raise Ask where rows about the same have other labels in these columns."""
    if draft.said.repeats or draft.n_different(*key) == draft.n_different(*key, *columns):
        return
    if not draft.of("annotator"):
        _ask_who(draft, key)
    _ask_repeats(draft, key)


def _ask_repeats(draft: Draft, columns: Sequence[str], *readings: TableSettings) -> None:
    """Raise Ask where rows are alike in these columns, and nobody said which of them counts."""
    last, first = TableSettings(repeats="last"), TableSettings(repeats="first")
    raise Ask(draft.name, _alike_rows(draft, columns), last, first, *readings)


def _ask_who(draft: Draft, about: Sequence[str]) -> None:
    names = [c for c in draft.of("", "annotator", "judge") if not draft.repeats(*about, c)]
    raise Ask(
        draft.name,
        "it has several rows about one item, and no column names annotators: "
        f"{_alike_rows(draft, about)}",
        *_each(names[:MAX_READINGS], "annotator"),
        TableSettings(repeats="last"),
    )


def _alike_rows(draft: Draft, columns: Sequence[str]) -> str:
    """The first two rows that are alike in these columns."""
    lines = group_by_key(zip(draft.table.rows(*columns), draft.table.lines, strict=True))
    key = max(lines, key=lambda cells: len(lines[cells]) > 1)
    return f"rows {lines[key][0]} and {lines[key][1]} are both about {' · '.join(key)}"


def _ask_labels(draft: Draft) -> None:
    others = [c for c in draft.columns if c not in draft.key and draft.columns[c].role != "ignored"]
    few = sorted(others, key=draft.n_different)[:MAX_READINGS]
    alike = [c for c in few if {*draft.filled(c)} & {*draft.filled(few[0])}]
    raise Ask(
        draft.name,
        f"no column holds labels that people gave ({some(draft.columns)})",
        *(each_as("label", of) for of in [alike] if len(of) > 1),
        *_each(few, "label"),
    )


def _settle_long_by_metric(proposal: Proposal, metric: str, columns: Sequence[str]) -> None:
    """Rows of a metric's name and a label."""
    draft = proposal.labels
    values = [c for c in columns if draft.columns[c].role in (VALUE, "label")] or [*columns]
    value = _only(draft, values, "label")
    names, first = dict.fromkeys(draft.table.texts(metric)), dict[str, str]()
    titles = {name: first.setdefault(normalise(name), name) for name in names}
    for name, text in zip(draft.table.texts(metric), draft.texts(value), strict=True):
        for part in draft.apart(text) if name else ():
            if part and not is_failure_word(part):
                proposal.metrics.setdefault(titles[name], {})[plain_label(part)] = part
    draft.set(value, "label")


def _only(draft: Draft, columns: Sequence[str], role: str) -> str:
    """The only one of columns that may have a role. Raises Ask."""
    filled = [c for c in columns if any(draft.texts(c))]
    if len(filled) != 1:
        asks = f"which column holds the {role}s? {some(columns)}"
        raise Ask(draft.name, asks, *_each(columns, role, columns))
    return filled[0]


def _settle_long(proposal: Proposal, who: str, columns: Sequence[str]) -> None:
    """A column names the annotators: which of the others are metrics?"""
    draft, verdicts = proposal.labels, proposal.verdicts
    sure = [c for c in columns if draft.columns[c].role == "label" or _is_metric_name(proposal, c)]
    sure = sure or [c for c in columns if any(other.same(c) for other in verdicts)]
    named = [c for c in columns if draft.columns[c].role == VALUE]
    known = draft.of("label") or proposal.rubric
    if not known:
        _check_still(proposal, sure)
    sure = sure or (named if len(named) == 1 else [])
    doubted = [c for c in columns if c not in sure and draft.columns[c].role == ""]
    if sure and doubted and not known and {*sure} <= {*named}:
        _ask_beside(draft, sure, doubted, f"what is {doubted[0]} beside {sure[0]}?")
    for column in sure or _varying_labels(proposal, who, columns, named):
        metric = draft.columns[column].metric or _end_of_path(draft, column)
        proposal.metrics[metric] = dict(draft.labels(column)) or _texts_of(draft, column)
        draft.set(column, "label", metric, why=draft.columns[column].why or "its cells")


def _end_of_path(draft: Draft, column: str) -> str:
    """The name of a column without the path into nested values, where other columns share it."""
    root = f"{column.partition('.')[0]}."
    shared = is_path(column) and any(c != column and c.startswith(root) for c in draft.columns)
    return column.rpartition(".")[2] if shared else column


def _is_metric_name(proposal: Proposal, column: str) -> bool:
    return proposal.rubric is not None and proposal.rubric.find(column) is not None


def _settle_by_rubric(proposal: Proposal) -> None:
    """Take labels that no name of the rubric says for those of its only metric; of every metric the
    rubric's labels are known, used or not. Raises Ask."""
    draft, rubric = proposal.labels, proposal.rubric
    if rubric is None:
        return
    labels = [c for c in draft.of("label", "labels") if draft.columns[c].metric]
    unnamed = [c for c in labels if not _is_metric_name(proposal, draft.columns[c].metric)]
    people = {c: draft.columns[c].who or (c if unnamed[1:] else "") for c in unnamed}
    if unnamed and len(rubric.metrics) > 1:
        readings = [
            columns_as({c: str(Column("label", m.id, w)) for c, w in people.items()})
            for m in rubric.metrics[: 2 * MAX_READINGS]
        ]
        raise Ask(
            draft.name,
            f"which metric of the rubric are the labels in {some(unnamed)} about?",
            *readings,
        )
    for column, who in people.items():
        settled = draft.columns[column]
        proposal.metrics.pop(settled.metric, None)
        draft.set(column, settled.role, rubric.metrics[0].id, who)
    for name in [*proposal.metrics] or [rubric.metrics[0].id]:
        metric = rubric.find(name)
        known = proposal.metrics.setdefault(name, {})
        for label in metric.labels if metric else ():
            for text in (label.text, *label.aliases):
                known.setdefault(plain_label(text), text)


def _settle_spellings(proposal: Proposal) -> None:
    """Spell labels, numbers aside, as most cells do."""
    draft = proposal.labels
    texts = Counter(text for column in draft.of("label") for text in draft.pieces(column))
    for (text, _), labels in product(reversed(texts.most_common()), proposal.metrics.values()):
        if plain_label(text) in labels and not _is_number(text):
            labels[plain_label(text)] = text


def _texts_of(draft: Draft, column: str) -> Labels:
    texts = [text for text in draft.texts(column) if text and not is_failure_word(text)]
    return {plain_label(text): text for text in texts}


def _check_still(proposal: Proposal, sure: Sequence[str]) -> None:
    """Raise Ask where nobody ever disagrees in some columns and somebody does in others."""
    draft = proposal.labels
    still = [c for c in sure if not draft.varies(c, proposal.item)]
    several = draft.n_different(*proposal.item) < len(draft.table)
    if still and len(still) < len(sure) and several:
        others = [c for c in sure if c not in still]
        _ask_beside(draft, others, still, f"nobody ever disagrees on {some(still)}")


def _ask_beside(draft: Draft, sure: Sequence[str], doubted: Sequence[str], asks: str) -> None:
    raise Ask(
        draft.name,
        asks,
        each_as("metric", doubted[:1]),
        each_as("label", [*sure, *doubted]),
        each_as("ignored", doubted),
    )


def _varying_labels(
    proposal: Proposal, who: str, columns: Sequence[str], named: Sequence[str]
) -> list[str]:
    """The columns of labels where no name says it: in which annotators of one item differ."""
    draft = proposal.labels
    doubted = [c for c in columns if draft.columns[c].role == ""]
    if len(columns) > 1:
        fixed = [c for c in doubted if not draft.varies(c, [who])]
        draft.ignore(fixed, "each annotator has one")
        doubted = [c for c in doubted if c not in fixed]
    sure = [c for c in doubted if draft.varies(c, proposal.item)]
    if len(sure) > 1:
        unshared = [c for c in sure if not _shares_labels(proposal, c)]
        by_chance = [c for c in unshared if _agree_by_chance(draft, proposal.item, c)]
        why = "annotators agree on it by chance alone, and no verdict shares its labels"
        draft.ignore(by_chance, why)
        sure = [c for c in sure if c not in by_chance]
    rest = [c for c in doubted if c not in sure]
    every = [*sure, *rest, *named]
    if (rest and sure) or len(rest) > 1 or not every or len(named) > 1:
        if not every:
            _ask_labels(draft)
        raise Ask(
            draft.name,
            f"which columns hold labels? {some(every)}",
            each_as("label", every),
            *_each(every[:MAX_READINGS], "label", every),
        )
    return sure or rest


def _shares_labels(proposal: Proposal, column: str) -> bool:
    labels = {*proposal.labels.labels(column)}
    return any(labels & {*draft.labels(c)} for draft, c in _judges_columns(proposal))


def _agree_by_chance(draft: Draft, item: Sequence[str], column: str) -> bool:
    """True where rows of one item have the same label hardly more often than any two rows."""
    labels = map(plain_label, draft.texts(column))
    by_item = group_by_key(zip(draft.table.rows(*item), labels, strict=True))
    return _are_by_chance([p for texts in by_item.values() for p in combinations(texts, 2)])


def _are_by_chance(pairs: Sequence[tuple[str, str]]) -> bool:
    """True where pairs of labels are alike hardly more often than any two of these labels."""
    counts = Counter(label for pair in pairs for label in pair)
    chance = sum((n / counts.total()) ** 2 for n in counts.values())
    agree = sum(a == b for a, b in pairs) / max(1, len(pairs))
    return agree - chance <= MIN_KAPPA * (1 - chance)


# ------------------------------------------------------------- columns by annotator, by metric


def _settle_wide(proposal: Proposal, columns: Sequence[str]) -> None:
    """Columns by annotator, by metric, or by both."""
    draft = proposal.labels
    _check_counts(draft, columns)
    for column, (metric, who) in _wide_cells(proposal, columns).items():
        labels = proposal.metrics.setdefault(metric, {})
        labels |= draft.labels(column) or _texts_of(draft, column)
        why = draft.columns[column].why if draft.columns[column].role == "label" else ""
        draft.set(column, "label", metric, who, why or _SHARES_LABELS)


def _wide_cells(proposal: Proposal, columns: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The metric and the annotator of each column; raises Ask where they may be either."""
    draft = proposal.labels
    given = {c: draft.columns[c] for c in columns if draft.columns[c].role == "label"}
    if given:
        alone = [c for c, column in given.items() if not column.metric and not column.who]
        by_pairs = _pairs_of_names(proposal, alone, are_people=True)
        return {
            c: by_pairs.get(c)
            or (column.metric or LABEL, column.who or ("" if column.metric else c))
            for c, column in given.items()
        }
    metrics = [c for c in columns if _is_metric_name(proposal, c)]
    if metrics:
        return {c: (c, "") for c in metrics}
    sharing = [c for c in columns if _shares_labels(proposal, c)] or columns
    pairs = _pairs_of_names(proposal, columns) or _pairs_of_names(proposal, sharing)
    return pairs or _people_or_metrics(proposal, sharing)


def _judges_columns(proposal: Proposal, *more: str) -> list[tuple[Draft, str]]:
    """The columns in which verdicts may stand, and those of more roles."""
    heads = [(proposal.labels, c) for c in proposal.labels.columns if _is_models(c)]
    own = [(d, c) for d in proposal.verdicts for c in d.of("", VALUE, "verdict", *more)]
    return [*heads, *own]


def _pairs_of_names(
    proposal: Proposal, columns: Sequence[str], are_people: bool = False
) -> dict[str, tuple[str, str]]:
    """Columns as metric and annotator, where their names are all pairs of both. Where columns
    `are_people`, what their names share is the metric."""
    if len(columns) < 2 or (are_people and all(map(is_person, columns))):
        return {}
    for form in _PAIRS_OF_NAMES:
        matches = [re.fullmatch(form, c.strip()) for c in columns]
        if not all(matches):
            continue
        pairs = {
            c: (m[1].strip(), m[2].strip()) for c, m in zip(columns, matches, strict=True) if m
        }
        sides = [list(dict.fromkeys(pair[side] for pair in pairs.values())) for side in (0, 1)]
        n_pairs, fewest = len(sides[0]) * len(sides[1]), min(map(len, sides))
        if len({*pairs.values()}) != len(columns) or n_pairs != len(columns):
            continue
        are_metrics = [_are_metrics(proposal, pairs, sides, side) for side in (0, 1)]
        if are_people and fewest == 1:
            are_metrics = [len(side) == 1 and not has_word(side[0], "people") for side in sides]
        if are_metrics[0] != are_metrics[1]:
            side = are_metrics.index(True)
            return {c: (pair[side], _as_annotator(pair[1 - side])) for c, pair in pairs.items()}
        if fewest > 1:
            _ask_side(proposal.labels, pairs, sides)
    return {}


def _as_annotator(name: str) -> str:
    return f"annotator-{name}" if name.isdigit() else name


def _ask_side(
    draft: Draft, pairs: Mapping[str, tuple[str, str]], sides: Sequence[Sequence[str]]
) -> None:
    def reading(side: int) -> Reading:
        settings = columns_as({c: f"label {p[side]} by {p[1 - side]}" for c, p in pairs.items()})
        return Reading(settings, f"{some(sides[1 - side], 3)} are people")

    asks = f"which part of these names is a person: {some(pairs, 4)}?"
    raise Ask(draft.name, asks, reading(0), reading(1))


def _are_metrics(
    proposal: Proposal, pairs: Mapping[str, tuple[str, str]], sides: Sequence[Sequence[str]],
    side: int,
) -> bool:  # fmt: skip
    """True where something says that one side of the columns' names are metrics."""
    names, others = sides[side], sides[1 - side]
    heads = [f"_{plain_name(c)}_" for _, c in _judges_columns(proposal)]
    if any(len(plain_name(n)) > 1 and _stands_in(n, head) for n, head in product(names, heads)):
        return True
    if len(others) > 1 and all(has_word(o, "people") for o in others):
        return not all(has_word(n, "people") for n in names)
    if all(role_of(name) == VALUE for name in names):
        return True
    marks = [is_person(o) or re.fullmatch(r"\d+|[a-z]", plain_name(o)) for o in others]
    return len(others) > 1 and len(names) > 1 and all(marks)


def _people_or_metrics(proposal: Proposal, columns: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Whether columns are people who share a metric, or metrics of one person. Raises Ask."""
    draft = proposal.labels
    sets = [{*draft.labels(c)} for c in columns]
    as_metrics = {c: (_end_of_path(draft, c), "") for c in columns}
    as_people = {c: (LABEL, c) for c in columns}
    named = {*draft.said.person, *draft.said.as_judge}
    are_people = all(map(is_person, columns)) or not named.isdisjoint(columns)
    if len(columns) > 1 and set.intersection(*sets) and are_people:
        return as_people
    judged = [c for c in columns if any(other.same(c) for other in proposal.verdicts)]
    if len(columns) == 1 or len(judged) == len(columns):
        return as_metrics
    if judged:
        _ask_people_or_metrics(draft, columns, f"{some(judged)} stands in the verdicts, too")
    if not set.intersection(*sets) and not all(map(are_yes_and_no, sets)):
        if any(a & b for a, b in combinations(sets, 2)):
            _ask_people_or_metrics(draft, columns, "some share labels")
        return as_metrics
    judged_in = _judges_columns(proposal, "reply", "text")
    is_known = _is_only_metric(proposal.rubric, set.union(*sets))
    if not is_known and not any(d.n_different(c) > 1 for d, c in judged_in):
        _ask_people_or_metrics(draft, columns, "they share labels")
    for column in columns:
        generic = draft.columns[column].role == VALUE or _is_tools(column, columns)
        if generic or _agrees_with_nobody(draft, column, columns):
            agrees = "" if generic else ": it agrees with nobody more often than by chance"
            people = [c for c in columns if c != column]
            asks = f"is {column} an annotator, as {some(people)} are{agrees}?"
            _ask_whose(draft, asks, column, people)
    return _pairs_of_names(proposal, columns, are_people=True) or as_people


def _is_only_metric(rubric: Rubric | None, labels: set[str]) -> bool:
    """True where a rubric has one metric, with all of these labels."""
    metrics = rubric.metrics if rubric else ()
    return len(metrics) == 1 and labels <= {*map(plain_label, metrics[0].label_texts)}


def _is_tools(column: str, columns: Sequence[str]) -> bool:
    """True of a column that is called like the labels of a tool, or alone among others like labels:
    `Keyword filter`, `Previous label`."""
    values = [c for c in columns if role_of(last_word(c)) == VALUE]
    return has_word(column, "tools") or values == [column]


def _check_counts(draft: Draft, columns: Sequence[str]) -> None:
    """Raise SetupError where columns of one path hold counts of votes, and no labels."""
    paths = {column.rpartition(".")[0] for column in columns}
    rows = [[cell for cell in row if cell] for row in draft.table.rows(*columns)]
    if len(paths) == 1 and "" not in paths and all(c.isdigit() for row in rows for c in row):
        sums = {sum(map(int, row)) for row in rows}
        if len(sums) == 1 and max(sums) > 1:
            message = (
                "holds counts of votes, and no labels: write a row, or an entry of a list, "
                "for each vote"
            )
            raise SetupError(Problem(message, draft.name, None, paths.pop(), some(columns)))


def _ask_people_or_metrics(draft: Draft, columns: Sequence[str], why: str) -> None:
    others = [f"column {c}: {x.role}" for c, x in draft.columns.items() if x.role]
    every = dict.fromkeys(columns, "label")
    raise Ask(
        draft.name,
        f"are {some(columns)} people, or questions that one person answered? {why} "
        f"({some(others)}); say of a column that is neither what it is, as in "
        f"{quote(f'{columns[-1]}=ignored')}, or verdict where it is a judge's",
        Reading(columns_as(every), "people, a column each"),
        Reading(columns_as({c: f"label {c}" for c in columns}), "questions"),
        *(columns_as({**every, c: "verdict"}) for c in columns if draft.of("judge")),
    )


def _agrees_with_nobody(draft: Draft, column: str, columns: Sequence[str]) -> bool:
    """True of a column beside people's whose kappa with each of them is too small."""
    if len(draft.table) < RARE_AMONG // 2 or len(columns) < 2:
        return False
    texts = {c: [*map(plain_label, draft.texts(c))] for c in columns}
    return all(
        _are_by_chance([p for p in zip(texts[column], texts[c], strict=True) if all(p)])
        for c in columns
        if c != column
    )


# -------------------------------------------------------------------------- checks of the labels


def _settle_adjudicated(proposal: Proposal) -> None:
    """A column that is named as settled labels, where its cells are labels: of the metric that it
    is named by, or of the only one. Any other is not read, and said so."""
    draft = proposal.labels
    for column in draft.of("adjudicated", "reference"):
        is_named, cells = draft.columns[column].role == "adjudicated", draft.filled(column)
        least = len(cells) / 2 if is_named else len(cells)  # another text is then an error
        fits = [
            metric for metric, labels in proposal.metrics.items()
            if cells and sum(cell in labels for cell in cells) >= least
        ]  # fmt: skip
        metric = draft.columns[column].metric or proposal.metric_named(column)
        metric = metric if metric in fits else "".join(fits) if len(fits) == 1 else ""
        if metric:
            draft.set(column, "adjudicated", metric, ADJUDICATED)
            proposal.notes.append(
                f"{draft.name}: {column} holds adjudicated labels of nobody: decisions are made by "
                "them, and they are the reference labels with --adjudicated"
            )
        elif is_named:
            draft.set(column, "ignored", why="its cells are no labels of one metric")


def _check_agreed(proposal: Proposal) -> None:
    """Raise Ask where a column is called like labels settled on, or is always what most of the
    others say, as these are."""
    draft = proposal.labels
    by_metric = group_by_key((draft.columns[c].metric, c) for c in draft.of("label"))
    for column in draft.of("reference"):
        right = {*draft.filled(column)}
        for metric, known in proposal.metrics.items():
            if right and right <= {*known} and draft.columns[column].why == BY_NAME:
                _ask_agreed(draft, column, f"holds labels of {metric}, by its name right ones")
    for columns in by_metric.values():
        for column in columns if len(columns) > 1 else ():
            others = [c for c in columns if c != column]
            if draft.is_said(column):
                continue
            if has_word(column, "agreed"):
                _ask_agreed(draft, column, "is called like labels that people settled on")
            if len(others) > 2 and _is_majority(draft, column, others):
                _ask_agreed(draft, column, "is always what most of the others say")


def _is_majority(draft: Draft, column: str, others: Sequence[str]) -> bool:
    """True of a column that is always what most of the others say, though they do not all agree."""
    n_splits = 0
    for text, *cells in zip(draft.texts(column), *map(draft.texts, others), strict=True):
        counts = Counter(filter(None, cells)).most_common(2)
        is_tie = len(counts) == 2 and counts[0][1] == counts[1][1]
        if text and counts and not is_tie:
            if counts[0][0] != text:
                return False
            n_splits += len(counts) == 2
    return n_splits >= LEAST_SPLITS


def _ask_agreed(draft: Draft, column: str, why: str) -> None:
    metric, who = draft.columns[column].metric, draft.columns[column].who
    person = [columns_as({column: f"label {metric} by {who}"})] if who else []
    raise Ask(
        draft.name,
        f"{column} {why}: whose labels are they?",
        columns_as({column: f"adjudicated {metric}".strip()}),
        *person,
        each_as("ignored", [column]),
    )


def _check_labels(proposal: Proposal) -> None:
    """Raise Ask where a text in a column of labels may be none."""
    draft, said = proposal.labels, proposal.labels.said
    if proposal.rubric:
        return
    ordered, named = _ordered_labels(said), _named_labels(said)
    counts = Counter(plain for c in draft.of("label") for plain in draft.filled(c))
    _check_unjudged(proposal, counts)
    doubles = {p for labels in proposal.metrics.values() for p in _doubles(labels, counts)}
    for column in draft.of("label"):
        unclear = next((t for t in draft.texts(column) if t and _is_unclear(t, said)), "")
        if unclear and plain_label(unclear) not in named:
            _ask_text(proposal, draft, column, plain_label(unclear))
        has_order = len(ordered & proposal.metrics.get(draft.columns[column].metric, {}).keys()) > 1
        for plain in dict.fromkeys(draft.filled(column)):
            is_rare = counts[plain] == 1 and len(draft.table) >= RARE_AMONG - 1
            if (has_order or is_rare or plain in doubles) and plain not in named:
                _ask_text(proposal, draft, column, plain)


def _doubles(labels: Labels, counts: Counter[str]) -> set[str]:
    """The plain labels, such as `n`, beside which another that more cells hold means the same."""
    by_use = sorted(labels, key=counts.__getitem__)
    usual = by_meaning({plain: plain for plain in by_use})
    return {plain for plain in by_use if usual.get(yes_or_no(plain), plain) != plain}


def _ordered_labels(said: TableSettings) -> set[str]:
    """The plain labels that an order names."""
    return {plain_label(part) for order in said.order for part in re.split("[<:]", order)}


def _named_labels(said: TableSettings) -> set[str]:
    """The plain labels that an order or a spelling names."""
    return _ordered_labels(said) | {plain_label(label) for label in said.spell.values()}


def _is_unclear(text: str, said: TableSettings) -> bool:
    """True of texts that may be no label: a word for a failure, none, signs, or several labels."""
    plain = plain_label(text)
    listed = not said.several and re.fullmatch(r"\d+(,\s?\d+)+|[^;|]+[;|][^;|].*", plain)
    is_list = not said.several and bool(entries_of(text)[1:])
    odd = is_failure_word(text) or plain == "none" or not re.search(r"\w", plain)
    return text not in said.failed and bool(odd or listed or is_list)


def _ask_text(proposal: Proposal, draft: Draft, column: str, plain: str) -> None:
    """Ask what a text means that stands where a label should."""
    row, text = draft.first_cell(column, plain)
    known = proposal.metrics.get(draft.columns[column].metric, proposal.every_label)
    labels = [t for p, t in known.items() if p != plain and not _is_unclear(t, draft.said)]
    n = [*map(plain_label, draft.texts(column))].count(plain)
    sign = next((sign for sign in ";|," if sign in text), "")
    is_label = re.search(r"\w", plain)
    respelt = _respelt([text], labels, is_other=False)
    each_label = [TableSettings(spell={text: t}) for t in _spelt_as(text, labels)]
    readings = [
        *(TableSettings(several=s) for s in [sign] if s),
        *respelt,
        TableSettings(blank=(text,)),
        *[x for x in each_label if x not in respelt][: 2 * MAX_READINGS],
        *(TableSettings(spell={t: t}) for t in [text] if is_label),
    ]
    cells = "" if n == 1 else f" ({n:,} such cells)"
    raise Ask(draft.name, f"row {row} of {column} holds {text!r}{cells}: is it a label?", *readings)


def _check_unjudged(proposal: Proposal, counts: Counter[str]) -> None:
    """Raise Ask where rows that no table of verdicts has are blank otherwise, as notes are, or hold
    labels that no other row has, as totals do."""
    draft, item = proposal.labels, proposal.item[0]
    columns = [(d, d.same(item) or d.first("item")) for d in proposal.verdicts]
    judged = {text for d, name in columns if name for text in d.table.texts(name)}
    if not judged or draft.said.only_common or any(map(draft.is_said, proposal.item)):
        return
    labels, others = draft.of("label"), [c for c in draft.columns if c not in proposal.item]
    odd = list[int]()
    ids, beside = draft.table.texts(item), draft.table.rows(*others)
    rows = zip(ids, beside, *map(draft.texts, labels), strict=True)
    for place, (key, row, *cells) in enumerate(rows):
        own = [plain_label(text) for text in cells if text]
        is_odd = all(counts[plain] == own.count(plain) for plain in own) if own else not any(row)
        odd += [place] if is_odd and key not in judged else []
    if odd and 2 * len(odd) < len(ids):
        raise Ask(
            draft.name,
            f"row {draft.table.lines[odd[0]]}, {ids[odd[0]][:60]!r}, is in no "
            "table of verdicts, and has no label that another row has: is it an item?",
            TableSettings(skip=draft.lines_of(odd)),
            each_as("item", proposal.item),
        )


# ------------------------------------------------------------------------------------ verdicts


def _settle_said_metrics(proposal: Proposal, draft: Draft) -> None:
    """Spell the metrics of verdicts that somebody says as the labels' are. Raises SetupError."""
    known = proposal.rubric.metrics if proposal.rubric else ()
    by_name = {normalise(name): metric.id for metric in known for name in (metric.id, metric.title)}
    by_name |= {normalise(metric): metric for metric in proposal.metrics}
    for column in draft.of("verdict"):
        said = draft.columns[column]
        if said.metric and normalise(said.metric) not in by_name:
            message = f"no labels are about this{nearest(said.metric, [*by_name])}"
            raise SetupError(
                Problem(message, draft.name, None, column, said.metric, some(proposal.metrics))
            )
        draft.set(column, "verdict", by_name.get(normalise(said.metric), ""), said.who)


def _judges_beside(proposal: Proposal) -> list[str]:
    """The columns of judges' verdicts in the table of labels."""
    draft = proposal.labels
    if named := draft.of("verdict", "reply"):
        return named
    heads = [c for c in draft.of("") if _is_models(c) and draft.filled(c)]
    for column in heads:
        if (role := role_of(last_word(column))) in ("rationale", "ignored"):
            draft.set(column, role, why="the end of its name")
    heads = [c for c in heads if draft.columns[c].role == ""]
    _check_first_names(proposal, heads)
    every = {*proposal.every_label}
    fits = [c for c in heads if {*draft.filled(c)} & every or are_yes_and_no({*draft.filled(c)})]
    sure = [*fits]
    for column in [c for c in heads if c not in fits]:
        if _holds_replies(proposal, draft, column):
            draft.set(column, "reply", why="labels stand in its texts")
            fits.append(column)
        elif len(draft.labels(column)) > 1 and (not sure or is_model(column)):
            fits.append(column)
        else:
            draft.set(column, "ignored", why="its cells are no labels")
    return fits


def _check_first_names(proposal: Proposal, heads: Sequence[str]) -> None:
    """Raise Ask where a column beside those of people may be a person's, called Claude or Gemma."""
    draft, labels = proposal.labels, {*proposal.every_label}
    for column in heads if draft.of("label") else ():
        name, _, initial = plain_name(column).partition("_")  # as in `Claude M.`
        is_open = proposal.verdicts or (initial and len(heads) > 1)
        is_name = name in words("models") and (not initial or re.fullmatch("[a-z]", initial))
        if is_open and is_name and {*draft.filled(column)} <= labels:
            _ask_whose(draft, f"is {column} a model, or a person?", column, draft.of("label"))


def _beside_columns(proposal: Proposal) -> dict[str, str]:
    """The columns of judges' verdicts in the table of labels, each with its metric. Raises Ask."""
    draft, columns = proposal.labels, dict[str, str]()
    for column in _judges_beside(proposal):
        given, named = draft.columns[column], _metric_of(proposal, draft, column)
        if given.role == "reply":
            columns[column] = ""
            continue
        metrics = [named] if named else [*proposal.metrics]
        fits = [m for m in metrics if _fits(proposal, draft, column, m)]
        if not fits and not given.metric:
            _ask_odd(proposal, draft, column, metrics[0] if len(metrics) == 1 else "")
        if len(fits) != 1:
            about = "which metric is it about?" if fits else "its cells are other labels"
            raise Ask(
                draft.name,
                f"{column} is named as a model's: {about}",
                *(columns_as({column: f"verdict {m}"}) for m in fits),
                *_each([column], "reply"),
                *_each([column], "ignored"),
            )
        columns[column] = fits[0]
    return columns


def _set_verdicts(proposal: Proposal, draft: Draft, columns: Mapping[str, str]) -> None:
    """Settle columns of verdicts, each on its metric: whose they are, and what their texts mean.
    Where several are on one metric, none is called as the table."""
    is_named = bool(draft.of("judge"))
    uses = Counter(columns.values())
    for column, metric in columns.items():
        given = draft.columns[column]
        who = given.who or ("" if is_named else _judge_named(proposal, draft, column))
        if uses[metric] > 1 and who == (draft.source.who or draft.table.stem):
            who = column
        if given.role == "reply":
            draft.set(column, "reply", "", who)
            continue
        draft.set(column, "verdict", metric, who, given.why or _SHARES_LABELS)
        if metric:
            _check_polarity(proposal, draft, column, metric)
        _spell_verdicts(proposal, draft, column, metric)


def _settle_verdicts(proposal: Proposal, draft: Draft) -> None:
    """The verdicts of a table of their own. Raises Ask."""
    labels = proposal.labels
    for column in draft.of("label"):  # as somebody says of both tables
        draft.set(column, "verdict", draft.columns[column].metric)
    if not labels.pair:
        draft.ignore(draft.of("first", "second"), f"{labels.name} names no responses")
    draft.key = _key_in(proposal, draft)
    _match_ids(proposal, draft)
    metric = draft.first("metric") or next(map(draft.same, labels.of("metric")), "")
    if labels.of("first", "second") and not draft.of("first", "second"):
        message = (
            f"names no responses, as {labels.name} does in its columns "
            f"{some(labels.of('first', 'second'))}: add these columns"
        )
        raise SetupError(Problem(message, draft.name, 1, "", some(draft.columns)))
    aside = [c for c in (metric, *draft.of("repeat", "first", "second", "criterion")) if c]
    _settle_judge_column(proposal, draft, aside)
    if not metric:
        _set_verdicts(proposal, draft, _verdict_columns(proposal, draft))
        return
    draft.set(metric, "metric")
    column = _only(draft, draft.of("verdict", VALUE) or draft.free(), "verdict")
    cells, known = {*draft.filled(column)}, {*proposal.every_label}
    if cells.isdisjoint(known) and not (are_yes_and_no(cells) and are_yes_and_no(known)):
        _ask_odd(proposal, draft, column)
    _set_verdicts(proposal, draft, {column: ""})


def _key_in(proposal: Proposal, draft: Draft) -> tuple[str, ...]:
    """The columns of a table that hold the items of the labels. Raises Ask."""
    labels, key = proposal.labels, list[str]()
    named = [c for c in draft.of("item") if draft.is_said(c) or c in draft.known]
    if len(named) == len(proposal.item):
        in_order = [draft.same(c) for c in proposal.item]  # of the labels
        _settle_other_ids(draft, named)
        return tuple(in_order if {*in_order} == {*named} else named)
    form = ID_FORMS["case, spaces and accents"]
    for column in proposal.item:
        same = draft.same(column)
        ids = {*map(form, labels.table.texts(column))} - {""}
        if not same:
            shares = {c: len(ids & {*map(form, draft.table.texts(c))}) for c in draft.columns}
            fits = [c for c, n in shares.items() if n > len(ids) / 2 and c not in key]
            fits = [c for c in fits if draft.columns[c].role == "item"] or fits
            if len(fits) != 1:
                raise Ask(
                    draft.name,
                    f"no column holds the items of {labels.name}, by its column {column}",
                    *_each(fits or [*draft.columns][:MAX_READINGS], "item"),
                )
            same = fits[0]
        key.append(same)
    for item, column in zip(proposal.item, key, strict=True):
        _set_item(draft, column, f"the items of {labels.name}")
        if labels.columns[item].metric == "group" and not draft.columns[column].metric:
            draft.set(column, "item", "group")
    _settle_other_ids(draft, key)
    return tuple(key)


def _settle_other_ids(draft: Draft, key: Sequence[str]) -> None:
    """Another id is none, and never a question."""
    draft.ignore([c for c in draft.of("item") if c not in key], "another id")


def _match_labels(proposal: Proposal) -> None:
    """Ids of several tables of labels that one named form makes the same are the same."""
    tables = proposal.labels.tables
    sides = [{*d.table.rows(*map(d.same, proposal.item))} for d in tables]
    n_ids = len(set().union(*sides))
    for name in [*ID_FORMS][:-1]:
        alike = _in_form(sides, name)
        if alike and len(set().union(*alike)) < n_ids:
            _note_form(proposal, name, tables)
            return


def _match_ids(proposal: Proposal, draft: Draft) -> None:
    """Ids must be the same, or be made so by one named form. Raises Ask."""
    labels, written = proposal.labels, ID_FORMS.get(proposal.ids, str)
    people, judged = (
        {tuple(map(written, ids)) for ids in rows}
        for rows in (labels.table.rows(*proposal.item), draft.table.rows(*draft.key))
    )
    more, lacking = judged - people, people - judged
    if not more or not lacking:
        return
    digits = any(all("".join(ids).isdigit() for ids in side) for side in (people, judged))
    for name in ID_FORMS if not proposal.ids else ():
        alike = _in_form((people, judged), name)
        is_safe = name != "what is no digit" or (digits and alike[:1] == alike[1:])
        if alike and is_safe and not (alike[0] - alike[1] and alike[1] - alike[0]):
            _note_form(proposal, name, (labels, draft))
            return
    if draft.said.only_common:
        return
    here, there = (
        ", ".join(" · ".join(ids) for ids in sorted(side)[:2]) for side in (more, lacking)
    )
    parts_of_ids = {x for ids in people for x in ids}
    others = [c for c in draft.of("") if {*draft.table.texts(c)} & parts_of_ids]
    ids = counted(len(people & judged), "id")
    says = f"only what both tables have counts: {ids}, taken as the same items"
    common = [Reading(TableSettings(only_common=True), says)] if people & judged else []
    raise Ask(
        draft.name,
        f"{len(more):,} of its ids are not in {labels.name} ({here}), and {len(lacking):,} of "
        f"{labels.name} not here ({there}): are they written differently?",
        *common,
        *_each(others, "item"),
    )


def _in_form(sides: Sequence[set[tuple[str, ...]]], name: str) -> list[set[tuple[str, ...]]]:
    """The ids of each table in a form; none where it makes two of one table the same."""
    alike = [{tuple(map(ID_FORMS[name], ids)) for ids in side} for side in sides]
    return alike if [*map(len, alike)] == [*map(len, sides)] else []


def _note_form(proposal: Proposal, name: str, tables: Sequence[Draft]) -> None:
    proposal.ids = name
    names = listed([draft.name for draft in tables])
    proposal.notes.append(f"ids of {names} are compared without {name}")


def _settle_judge_column(proposal: Proposal, draft: Draft, aside: Sequence[str]) -> None:
    """The column that names the judge of a row, if there is one. Raises Ask."""
    judge = draft.first("judge")
    every = {*proposal.every_label}
    if judge and draft.columns[judge].why == BY_NAME and {*draft.filled(judge)} <= every:
        draft.set(judge, VALUE, why="its cells are labels")
        judge = ""
    repeats = not judge and draft.repeats(*draft.key, *aside)
    able = draft.of("annotator", "system", "", "kept") if repeats else []
    fits = [
        c
        for c in able
        if not draft.repeats(*draft.key, *aside, c) and not {*draft.filled(c)} <= every
    ]
    sure = [
        c
        for c in fits
        if draft.columns[c].role == "annotator"
        or (draft.columns[c].role == "" and all(_is_models(t) for t in draft.table.texts(c)))
        or (draft.columns[c].role == "system" and not proposal.labels.same(c))
    ]
    if len(sure) == 1:
        judge = sure[0]
    elif repeats and not draft.said.repeats and (fits or not draft.of("repeat")):
        raise Ask(
            draft.name,
            "it has several rows about one item, and no column names the judge or numbers its "
            "draws",
            *_each(fits[:MAX_READINGS], "judge"),
            *(each_as("item", [*draft.key, c]) for c in fits if c in draft.of("system")),
            *_each(fits[:MAX_READINGS], "repeat"),
        )
    if judge:
        draft.set(judge, "judge")
    systems = [c for c in draft.of("system") if draft.columns[c].why == BY_NAME]
    single = [c for c in systems if draft.n_different(c) == 1 and not proposal.labels.same(c)]
    draft.ignore(single, "one model, which may be the judge")
    people = {c.who for c in proposal.labels.columns.values() if c.role == "label"}
    if column := proposal.labels.first("annotator"):
        people |= {*proposal.labels.table.texts(column)}
    both = sorted({*(draft.table.texts(judge) if judge else ())} & people - {""})
    if both and "judge" not in draft.said.columns:
        message = (
            f"{both[0]} labelled, too, in {proposal.labels.name}: --as-judge {both[0]} puts "
            "an annotator in a judge's place, and needs no table of verdicts"
        )
        raise SetupError(Problem(message, draft.name, None, judge, both[0]))


def _verdict_columns(proposal: Proposal, draft: Draft) -> dict[str, str]:
    """The columns of verdicts, each with its metric. Raises Ask."""
    replies, given = draft.of("reply"), draft.of("verdict")
    if any(draft.columns[c].why != BY_NAME for c in replies):
        return dict.fromkeys(replies, "")
    able = given or [
        c
        for c in draft.of("", VALUE, "reply", "text", "reference", "kept", "about")
        if c not in draft.key and not c.casefold().startswith(PROBABILITY)
        and (draft.columns[c].role != "about" or proposal.metric_named(c))
    ]  # fmt: skip
    by_name = {c: _metric_of(proposal, draft, c) for c in able}
    named = {c: metric for c, metric in by_name.items() if metric}
    if named and proposal.rubric:
        return named
    if len(proposal.metrics) > 1 and named:
        fits = {c: m for c, m in named.items() if given or _fits(proposal, draft, c, m)}
        if fits:
            return fits
    likely = given or [
        c for c in able
        if draft.columns[c].role == VALUE or _is_models(c) or c in named
        or plain_name(c) == plain_name(draft.table.stem)
    ]  # fmt: skip
    good = [c for c in likely if _fits_any(proposal, draft, c)]
    if not likely:
        every = {*proposal.every_label}
        good = [c for c in able if {*draft.filled(c)} and {*draft.filled(c)} <= every]
        good = good or [c for c in able if len(able) == 1 and _fits_any(proposal, draft, c)]
    metrics = {c: _metrics_of(proposal, draft, c) for c in good}
    alone = len(good) == 1 or bool(given) or all(map(_is_models, good))
    if good and alone and all(len(of_column) == 1 for of_column in metrics.values()):
        return {c: metrics[c][0] for c in good}
    replies = [c for c in able if _holds_replies(proposal, draft, c)]
    if not good and len(replies) == 1:
        draft.set(replies[0], "reply", why="labels stand in its texts")
        return {replies[0]: ""}
    for column in likely if not good else ():
        _ask_odd(proposal, draft, column)
    if len(proposal.metrics) == 1 and (given or (len(likely) == 1 and not good)):
        return dict.fromkeys(likely, *proposal.metrics)  # though hardly a cell is a label
    _ask_verdicts(proposal, draft, good or likely or able, replies)
    return {}


def _metric_of(proposal: Proposal, draft: Draft, column: str) -> str:
    """The metric of a column of verdicts, as somebody says or as it is called."""
    return draft.columns[column].metric or proposal.metric_named(column)


def _metrics_of(proposal: Proposal, draft: Draft, column: str) -> list[str]:
    """The metrics that a column may be about."""
    if metric := _metric_of(proposal, draft, column):
        return [metric]
    return [m for m in proposal.metrics if _fits(proposal, draft, column, m)]


def _ask_verdicts(
    proposal: Proposal, draft: Draft, columns: Sequence[str], replies: Sequence[str]
) -> None:
    metrics = [*proposal.metrics]
    columns = columns or [c for c in draft.columns if c not in draft.key]
    readings = _each(columns[: 2 * MAX_READINGS], "verdict", draft.of("verdict"))
    if len(metrics) > 1:
        both = product(columns[:MAX_READINGS], metrics[:MAX_READINGS])
        readings = [columns_as({c: f"verdict {metric}"}) for c, metric in both]
    long = [c for c in columns if any(len(t) > LONGEST_LABEL for t in draft.table.texts(c))]
    asks = f"which column holds the verdicts? {some(columns)}"
    raise Ask(draft.name, asks, *readings, *_each([*replies, *long][:3], "reply"))


def _fits_any(proposal: Proposal, draft: Draft, column: str) -> bool:
    return any(_fits(proposal, draft, column, metric) for metric in proposal.metrics)


def _fits(proposal: Proposal, draft: Draft, column: str, metric: str) -> bool:
    """True where at least half of the cells are labels of the metric, or one in a column that is
    called like a metric of the rubric. Raises Ask where others are not."""
    cells, labels = draft.filled(column), proposal.metrics[metric]
    if not cells:
        return False
    if are_yes_and_no({*cells}) and are_yes_and_no(labels):
        return True
    least = 1 if _is_metric_name(proposal, column) else len(cells) / 2
    if sum(cell in labels for cell in cells) < least:
        return False
    if not proposal.rubric:
        _ask_odd(proposal, draft, column, metric)
    return True


def _ask_odd(proposal: Proposal, draft: Draft, column: str, metric: str = "") -> None:
    """Ask what texts mean that are no label, in a column of verdicts."""
    labels = proposal.metrics[metric] if metric else proposal.every_label
    known = {*labels} | _named_labels(draft.said)
    odd = Counter(t for t in draft.pieces(column) if plain_label(t) not in known)
    if not odd or "*" in draft.said.failed:
        return
    (text, n), names = odd.most_common(1)[0], [*labels.values()]
    row, _ = draft.first_cell(column, plain_label(text))
    others = some([shorten(t) for t, _ in odd.most_common()[1:]])
    cells = counted(n, "such cell") + (f"; also {others}" if others else "")
    is_other = labels.keys().isdisjoint(draft.filled(column))
    spelt = [t for t in odd if not is_failure_word(t)]
    no_label = Reading(TableSettings(failed=("*",)), "whatever is no label counts as failed")
    respelt = _respelt(spelt, names, is_other)
    each_label = [TableSettings(spell={text: x}) for x in _spelt_as(text, names)[:MAX_LABELS]]
    readings: list[Reading | TableSettings] = [
        *respelt,
        *_each([column] if _holds_replies(proposal, draft, column) else [], "reply"),
        *([no_label] if others and not is_other else []),
        TableSettings(failed=(text,)),
        *(x for x in each_label if len(text) <= LONGEST_LABEL and x not in respelt),
        TableSettings(spell={text: text}),
        each_as("ignored", [column]),
    ]
    raise Ask(
        draft.name,
        f"row {row} of {column} holds {text[:60]!r} ({cells}), and the labels of people are "
        f"{some(names)}",
        *readings,
    )


def _spelt_as(text: str, labels: Sequence[str]) -> list[str]:
    """The labels that a text may be another spelling of: no number is one of another number."""
    has_number = re.search(r"\d", text)
    return [x for x in labels if not (has_number and _is_number(x)) or _is_named_in(x, text)]


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"-?\d+([.,]\d+)?(e-?\d+)?", text))


def _respelt(odd: Sequence[str], labels: Sequence[str], is_other: bool) -> list[TableSettings]:
    """The settings by which every odd text is another spelling of a label: of the one that stands
    in it, or, of two texts and two labels, either way round."""
    fits = [[x for x in labels if _is_named_in(x, t)] for t in odd if len(t) <= LONGEST_LABEL]
    ways: Sequence[Sequence[str]] = []
    if 0 < len(odd) == len(fits) <= MAX_LABELS and all(len(one) == 1 for one in fits):
        ways = [[label for (label,) in fits]]
    elif is_other and len(odd) == len(labels) == 2:
        ways = [labels, labels[::-1]]
    return [TableSettings(spell=dict(zip(odd, way, strict=True))) for way in ways]


def _is_named_in(label: str, text: str) -> bool:
    """True where a label stands in a text as words of its own, and is not denied in it, or where
    both mean yes, or no."""
    plain, meaning = plain_label(text), yes_or_no(text)
    if meaning and meaning == yes_or_no(label) and not label.isdigit():
        return True
    stands = re.search(rf"(?<![\w-]){re.escape(plain_label(label))}(?![\w-])", plain)
    return bool(stands) and not _DENIED.search(plain)


def _holds_replies(proposal: Proposal, draft: Draft, column: str) -> bool:
    """True where most cells are texts in which one label of a metric stands."""
    texts = [text for text in draft.table.texts(column) if text]
    if not texts:
        return False
    metrics = [
        Rubric.from_labels({LABEL: [*labels.values()]}).metrics[0]
        for labels in proposal.metrics.values()
        if len(labels) > 1
    ]
    alone = len(metrics) == 1
    given = sum(any(metric.said_in(text, alone) for metric in metrics) for text in texts)
    return given > len(texts) / 2


def _spell_verdicts(proposal: Proposal, draft: Draft, column: str, metric: str) -> None:
    """Say what other spellings of yes and no mean that a judge uses."""
    declared = {plain_label(label): label for label in draft.said.spell.values()}
    for name in [metric] if metric else [*proposal.metrics]:
        labels = proposal.metrics[name]
        cells = {*draft.filled(column)}
        if metric:
            labels |= {plain: declared[plain] for plain in cells if plain in declared}
        if cells <= {*labels} or not (are_yes_and_no(cells) and are_yes_and_no(labels)):
            continue
        spelt = by_meaning(labels)
        texts = {t: spelt.get(yes_or_no(t)) for t in draft.texts(column) if yes_or_no(t)}
        proposal.spell.setdefault(name, {}).update(texts)


def _check_polarity(proposal: Proposal, draft: Draft, column: str, metric: str) -> None:
    """Raise Ask where yes and no stand in a column whose name says the opposite of the metric's, as
    `safe` and `harmful` do, or where one of both has 0 and 1 for them."""
    labels, cells = proposal.metrics[metric], {*draft.filled(column)}
    is_yes_no = len(labels) == 2 and are_yes_and_no(labels) and are_yes_and_no(cells)
    means = {kind for kind in ("good", "bad") for c in (metric, column) if has_word(c, kind)}
    is_coded = {*map(str.isdigit, cells)} != {*map(str.isdigit, labels)}
    is_same = plain_name(metric) == plain_name(column)
    is_open = len(means) == 2 or (is_coded and not is_same)
    if not is_yes_no or not is_open or draft.is_said(column):
        return
    verdict = columns_as({column: f"verdict {metric}"})
    no, yes = (by_meaning(labels)[meaning] for meaning in ("no", "yes"))
    spell = {t: no if yes_or_no(t) == "yes" else yes for t in draft.texts(column) if yes_or_no(t)}
    raise Ask(
        draft.name,
        f"{column} holds {some(sorted(cells))}, and {metric} {some(labels.values())}: does yes "
        "mean the same in both?",
        *(replace(verdict, spell=opposite) for opposite in [spell] if not cells <= {*labels}),
        verdict,
        each_as("ignored", [column]),
    )


def _judge_named(proposal: Proposal, draft: Draft, column: str) -> str:
    """The judge that a table is given as; else that a column is called after, less the metric and
    words for a verdict; else the table's name."""
    if draft.source.who and draft is not proposal.labels:
        return draft.source.who
    metric = proposal.metric_named(column)
    rest = re.sub(re.escape(metric), "", column, flags=re.I) if metric else column
    parts = [
        w for w in re.split(r"[\s_]+", rest)
        if role_of(w) not in (VALUE, "reply", "text") and plain_name(w) != plain_name(metric)
    ]  # fmt: skip
    name = re.sub(r"^[\s.:–-]*[(\[](.*)[)\]]\s*$", r"\1", " ".join(parts)).strip(" .:–-|")
    if name and (is_model(name) or draft is proposal.labels):
        return name
    return draft.table.stem


def match_answers(proposal: Proposal, draft: Draft) -> None:
    """The columns of a table of answers: its items are those of the labels. Raises Ask."""
    draft.key = _key_in(proposal, draft)
    _match_ids(proposal, draft)
    others = draft.of("", VALUE, "reply", "status", "annotator", "judge", "metric")
    draft.ignore(others, "not read of answers")


# ------------------------------------------------------------------------------------- at the end


def judges_of(draft: Draft) -> Iterator[str]:
    """The judges whose verdicts stand in a table, each once for each table."""
    if judge := draft.first("judge"):
        yield from dict.fromkeys(filter(None, draft.table.texts(judge)))
    else:
        yield from dict.fromkeys(draft.columns[c].who for c in draft.of("verdict", "reply"))


def _check_judges(proposal: Proposal) -> None:
    """Settle which judges count. Raises Ask, and SetupError for two of one name."""
    tables = (proposal.labels, *proposal.verdicts)
    names = [name for draft in tables if draft.of("verdict", "reply") for name in judges_of(draft)]
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        message = (
            "two tables have verdicts of a judge of this name: name them apart, in Python "
            "verdicts={'NAME': table, …}"
        )
        raise SetupError(Problem(message, proposal.labels.name, None, "judge", twice[0]))
    proposal.judges = names


def _check_unread(proposal: Proposal, draft: Draft) -> None:
    """Raise Ask where a column that nobody reads holds nothing but labels of a metric."""
    if proposal.rubric:
        return
    for column in draft.of(""):
        cells = {*draft.filled(column)}
        if not cells or not any(cells <= {*labels} for labels in proposal.metrics.values()):
            continue
        if draft is proposal.labels or draft.labels(column):
            asks = f"{column} holds labels, too ({some(sorted(cells), 3)}): whose?"
            _ask_whose(draft, asks, column, draft.of("label"))


def check_shares(proposal: Proposal, draft: Draft) -> None:
    """Raise Ask where unread columns, each called after a label of the only metric, hold numbers
    that add up to 1."""
    labels = sorted(proposal.every_label.values(), key=len)
    shares = {
        column: label
        for label, column in product(labels, draft.of(""))
        if _stands_in(label, f"_{plain_name(column)}_")
    }
    rows = draft.table.rows(*shares) if len(proposal.metrics) == 1 and draft.of("verdict") else []
    if shares and {round(fsum(map(number_in, row)), 1) for row in rows if any(row)} == {1}:
        raise Ask(
            draft.name,
            f"each row of {some(shares)} adds up to 1: are they probabilities of labels?",
            columns_as({c: f"probability {label}" for c, label in shares.items()}),
            each_as("ignored", shares),
        )


def _ask_whose(draft: Draft, asks: str, column: str, people: Sequence[str]) -> None:
    """Ask whether a column is one more annotator's, a judge's or nobody's."""
    raise Ask(
        draft.name,
        asks,
        *(each_as("label", [*of, column]) for of in [people] if of),
        each_as("verdict", [*draft.of("verdict"), column]),
        each_as("ignored", [column]),
    )
