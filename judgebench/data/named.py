"""Plain tables whose columns are named as judgebench names them, beside a rubric: nothing is asked
and nothing inferred."""

from __future__ import annotations

from collections.abc import Mapping

from judgebench.data.findings import Findings
from judgebench.data.formats import Table
from judgebench.data.layout import Sheet, Source
from judgebench.data.vocabulary import Column, plain_name, role_words
from judgebench.errors import nearest, some
from judgebench.rubric import Rubric

PROBABILITY = "probability_"
_OF_ITEMS = (
    "messages", "text", "question", "system", "reference", "group", "criteria", "criterion",
    "first", "second", "blind",
)  # fmt: skip
# What an annotation study adds to its labels, beside whether they were made blind.
OF_PROTOCOL = "protocol_sha256"
_OF_STUDY = ("study", "labelled_at", "queue_position", "order_shown", OF_PROTOCOL)
_OF_VERDICTS = ("status", "repeat", "shown_first", "rationale")
_NEEDED = (
    "item_id and text (answers); item_id, annotator, metric and label (long labels); item_id, "
    "annotator and a column for each metric (wide labels)"
)
_WHY = "its name"


def named_sheet(
    source: Source, rubric: Rubric, findings: Findings, who: str = "annotator"
) -> Sheet | None:
    """The sheet of a table by the names of its columns; None where they do not say what it holds,
    which is reported. `who` gave the labels: annotators, or judges."""
    table = source.read(findings)
    if table is None or (who == "annotator" and is_silver(table, findings)):
        return None
    columns = named_columns(table, rubric, who)
    kinds = {column.role for column in columns.values()}
    unread = [
        name for name, column in columns.items()
        if column.role == "ignored" and plain_name(name) not in _OF_STUDY
    ]  # fmt: skip
    if "item" not in kinds or kinds.isdisjoint(("label", "verdict", "reply", "text", "messages")):
        message = (
            f"unrecognised columns ({some(table.columns)}): say what they are in a "
            "layout.yaml, as `judgebench init FILE` writes it"
        )
        allowed = _NEEDED.replace("annotator", who)
        findings.add("unrecognised_file", message, (table.file, None), allowed=allowed)
        return None
    titles = [title for m in rubric.metrics for title in (m.id, m.title)]
    has_labels = not kinds.isdisjoint(("label", "verdict"))
    # Labels of a study bring along the columns that its protocol names.
    is_kept = who == "annotator" and (not has_labels or OF_PROTOCOL in table.columns)
    for name in unread:
        near = nearest(name, titles, 0.7)
        if near or (has_labels and not is_kept):
            what = "is kept beside the answers, and no metric" if is_kept else "is not read"
            findings.add("unused_column", f"{what}{near}", (table.file, 1), name)
    if is_kept:
        columns |= dict.fromkeys(unread, Column("kept", why=_WHY))
    return Sheet(source, columns, table=table)


def is_silver(table: Table, findings: Findings) -> bool:
    """True of labels that a model gave to learn from, which is reported."""
    if "silver" not in table.columns:
        return False
    message = (
        "holds labels of a machine, which never count as labels of people: name the file "
        "in `stages` of a judge that learns"
    )
    findings.add("silver_label", message, (table.file, None), "silver")
    return True


def named_columns(table: Table, rubric: Rubric, who: str) -> dict[str, Column]:
    """What each column is, by its name."""
    role = "label" if who == "annotator" else "verdict"
    by_name = {plain_name(name): name for name in reversed([*table.columns])}
    is_long = {"metric", "label"} <= by_name.keys()
    roles = dict.fromkeys(table.columns, Column("ignored", why=_WHY))
    metrics = {
        name: metric.id for name in table.columns if (metric := rubric.find(name)) is not None
    }
    preferences = [metric.id for metric in rubric.metrics if metric.preference]
    if is_long:
        metrics[by_name["label"]] = ""
        roles[by_name["metric"]] = Column("metric", why=_WHY)
    elif not metrics and "winner" in by_name and len(preferences) == 1:
        metrics[by_name["winner"]] = preferences[0]
    roles |= {name: Column(role, metric_id, why=_WHY) for name, metric_id in metrics.items()}
    kinds = ["item", *_OF_ITEMS, who]
    if who == "judge":
        # A reply beside verdicts is the text behind them.
        roles |= probabilities(table, rubric, is_long)
        kinds = ["raw" if metrics else "reply", *_OF_VERDICTS, *kinds]
        kinds.remove("text")
    for kind in kinds:
        word_list = "reply" if kind == "raw" else kind
        named = [by_name[word] for word in (word_list, *role_words()[word_list]) if word in by_name]
        if named and roles[named[0]].role == "ignored":
            roles[named[0]] = Column(kind, why=_WHY)
    for name in table.columns:
        if plain_name(name) in role_words()["weight"] and roles[name].role == "ignored":
            roles[name] = Column("kept", why=_WHY)
    return roles


def probabilities(table: Table, rubric: Rubric, is_long: bool) -> Mapping[str, Column]:
    """The columns `probability_LABEL` of a long table, `probability_METRIC_LABEL` of a wide one."""
    shares = {}
    for name in table.columns:
        rest = name[len(PROBABILITY) :] if name.casefold().startswith(PROBABILITY) else ""
        if rest and is_long:
            shares[name] = Column("probability", rest, why=_WHY)
        for metric in rubric.metrics if rest and not is_long else ():
            for start in (metric.id, metric.title):
                text = rest[len(start) + 1 :]
                if rest.casefold().startswith(f"{start.casefold()}_") and metric.parse(text):
                    shares[name] = Column("probability", f"{metric.id}={text}", why=_WHY)
    return shares
