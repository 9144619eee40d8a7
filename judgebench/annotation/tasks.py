"""The screens of each task, made of the data, and the key that says what is behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field as Limits

from judgebench.annotation.config import Setup, Task, cell_of, columns_of, text_of
from judgebench.annotation.pictures import name_pictures
from judgebench.annotation.screens import Option, Screen, ScreenField, Section
from judgebench.data.conversation import pair_of_names
from judgebench.data.formats import mark_forbidden
from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.files import StrictModel, load_json
from judgebench.records import CHANCES, SEVERAL, Answer, AnswerKind, content_hash, group_by_key
from judgebench.rubric import BETWEEN, Metric, Rubric
from judgebench.text import counted

IN_QUESTION = "labels_in_question"  # a column of items, which is shown to `adjudicated` alone


class Target(StrictModel):
    """The meaning of a field in the data: the `columns` of its row (`item_id`, and where there are
    any `model_a`, `model_b`, `criterion`, `system`, `task`), the metric, and what each stored label
    is called where that is another text."""

    columns: dict[str, str]
    metric: str
    labels: dict[str, str] = Limits(default_factory=dict)


class Key(StrictModel):
    """`screens` holds, by screen and field, what was labelled. `study` is the hash of the study;
    `secret` decides the order of screens and texts."""

    kind: Literal["judgebench annotation key"] = "judgebench annotation key"
    study: str
    task: Task
    secret: str = ""
    screens: dict[str, dict[str, Target]]


def read_key(path: Path) -> Key:
    """The key of that path. Raises SetupError where it is none."""
    return load_json(path, Key, "the key of the study")


_MOST = 9  # texts on a screen: there are as many digits to choose by
_KINDS: Mapping[Task, AnswerKind] = {"preference": "pair", "criteria": "criterion"}  # else answers
_RANKING = Rubric.from_labels({"Rank": list("12345")})
_RANKS = ("1 (best)", "2", "3", "4", "5 (clearly wrong)")
_RANK = {
    "question": "How good is it? Equally good ones get the same rank.",
    "options": [Option(value=text[0], text=text) for text in _RANKS],
}
_Asked = tuple[ScreenField, Target]


@dataclass(frozen=True, slots=True)
class Built:
    """A screen, which has no id yet, and what is behind it: the targets of its fields, the question
    that it belongs to, the systems whose texts it shows, and the right labels of an anchor."""

    screen: Screen
    targets: Mapping[str, Target]
    question: str
    systems: str
    known: Mapping[str, str]


def item_of(targets: Mapping[str, Target]) -> tuple[str, ...]:
    """The item, or the pair in either order, that the fields of a screen are about."""
    columns = [*targets.values()][-1].columns
    return tuple(sorted({columns.get(name, "") for name in ("item_id", "model_a", "model_b")}))


def secret_of(setup: Setup) -> str:
    """The seed of the order of screens and texts. It follows from the seed and from all items, so
    that nobody can compute it who has only some of them."""
    rows = [[a.item_id, a.system, a.content_hash] for a in setup.dataset.answers]
    return content_hash([setup.config.seed, setup.config.name, rows])


def asked_of(setup: Setup) -> Rubric:
    """The metrics that are asked. Raises SetupError where the rubric has none for the task, or the
    study names others."""
    config, kind = setup.config, _KINDS.get(setup.config.task, "answer")
    if setup.rubric is None:
        return _RANKING
    fit = setup.rubric.of_kind(kind)
    if fit is None or (config.metrics and fit.metrics != setup.rubric.metrics):
        found = ", ".join(metric.id for metric in setup.rubric.metrics if metric.of != kind)
        message = f"the task {config.task} needs metrics of {SEVERAL[kind]}"
        raise SetupError(Problem(message, str(setup.file), None, "metrics", found))
    return fit


def build(setup: Setup, secret: str) -> list[Built]:
    """Every screen of a study, in an order that the secret decides.

    Raises SetupError with every item that no screen can show.
    """
    kind = _KINDS.get(setup.config.task, "answer")
    rows = [row for row in setup.dataset.answers if row.kind == kind]
    work = _Work(setup, asked_of(setup).metrics, rows, lambda name: content_hash([secret, name]))
    built = [*_TASKS[setup.config.task](work)]
    if blank := [row.item_id for row in rows if not text_of(row).strip()]:
        work.tell(f"hold {counted(len(blank), 'row')} without any text", blank[0])
    if not rows:
        work.tell(f"hold no {SEVERAL[kind]} to label", "none")
    raise_any(work.problems)
    return sorted(built, key=lambda one: content_hash([secret, item_of(one.targets)]))


@dataclass(frozen=True, slots=True)
class _Work:
    """The data that screens are made of. `hidden` turns a name into one that tells nothing, and
    stays the same when others come or go."""

    setup: Setup
    metrics: Sequence[Metric]
    rows: Sequence[Answer]
    hidden: Callable[[str], str]
    problems: list[Problem] = field(default_factory=list)

    def tell(self, message: str, found: str, allowed: str = "", key: str = "items") -> None:
        """Report what no screen can show."""
        file = str(self.setup.file)
        self.problems.append(Problem(message, file, None, key, shorten(found), allowed))

    def built(
        self, rows: Sequence[Answer], sections: Sequence[Section], asked: Sequence[_Asked]
    ) -> Built:
        """The screen of these rows."""
        names = {n for row in rows for n in [part.name for part in row.responses] or [row.system]}
        group, fields = rows[0].group, tuple(shown for shown, _ in asked)
        texts = [
            s.model_copy(update={"text": name_pictures(s.text, self.setup.pictures)})
            for s in sections
        ]
        screen = Screen(id="", group=self.hidden(group), sections=tuple(texts), fields=fields)
        targets = {shown.key: target for shown, target in asked}
        known = self.setup.known.get(rows[0].item_id, {})
        question = "" if known else group  # anchors are spread as items of one question are
        return Built(screen, targets, question, ", ".join(sorted(names)), known)

    def compared(self, texts: Mapping[str, str]) -> tuple[list[str], list[Section]]:
        """The ids of texts that are compared, in an order that says nothing, and the texts."""
        ids = sorted(texts, key=self.hidden)
        return ids, [_text("Answer", texts[name], slot=slot) for slot, name in enumerate(ids)]


def _text(heading: str, text: str, slot: int | None = None) -> Section:
    return Section(heading=heading, text=mark_forbidden(text), slot=slot)


def _context(rows: Sequence[Answer]) -> list[Section]:
    """The sections before the answers to a question: it, or the conversation, and references."""
    first = rows[0]
    turns = [] if first.is_conversation else [_text(p.role.title(), p.text) for p in first.turns]
    question = [_text("Question", first.question)] if first.question else []
    references = dict.fromkeys(row.reference for row in rows if row.reference)
    return [*(turns or question), *(_text("Reference", text) for text in references)]


def _whole(row: Answer) -> list[Section]:
    """An answer under its question; of a conversation every turn."""
    if row.is_conversation:
        return [_text(turn.role.title(), turn.text) for turn in row.turns]
    return [*_context([row]), _text("Answer", row.text)]


def _ask(metric: Metric, columns: Mapping[str, str], /, **more: Any) -> _Asked:
    """A metric as it is asked of what has these columns; labels that give no grade come last."""
    options = [Option(value=x.text, text=x.text, about=x.description) for x in metric.labels]
    options += [Option(value=text, text=text) for text in metric.abstain]
    values = {
        "metric": metric.id, "title": metric.title, "question": metric.question,
        "options": options, "prefers": metric.preference,
        "together": len(metric.labels) if metric.several else 0,
    }  # fmt: skip
    return ScreenField(**{**values, **more}), Target(columns=dict(columns), metric=metric.id)


def _in_question(work: _Work) -> Mapping[str, list[Section]]:
    """The labels among which whoever adjudicates chooses, by item, whosever they are; those of
    `judgebench annotate draw disagreements`. Nobody else sees them."""
    cells = {row.item_id: row.metadata.get(IN_QUESTION) for row in work.rows}
    if not (work.setup.config.makes_gold and any(cells.values())):
        return {}
    if len(work.metrics) > 1:  # the others would be adjudicated on items that are no draw of theirs
        names = ", ".join(metric.id for metric in work.metrics)
        work.tell(f"{IN_QUESTION} are those of one metric", names, "its id", "metrics")
    return {
        item: [_text("Labels in question", ", ".join(cell.split(BETWEEN)))]
        for item, cell in cells.items()
        if cell
    }


def _labels(work: _Work) -> Iterator[Built]:
    """A screen for each answer, with all metrics."""
    in_question = _in_question(work)
    for row in work.rows:
        kept = (CHANCES[0], *columns_of(work.setup.protocol))  # with which chance it was drawn
        columns = {"item_id": row.item_id}
        columns |= {name: text for name in kept if (text := cell_of(row, name))}
        # Labels alone say which items belong together; gold labels are never alone.
        if row.group != row.item_id and not work.setup.config.makes_gold:
            columns["group"] = row.group
        if row.system and not work.setup.config.makes_gold:
            columns["system"] = row.system
        asked = [_ask(metric, columns) for metric in work.metrics]
        yield work.built([row], [*_whole(row), *in_question.get(row.item_id, ())], asked)


def _preference(work: _Work) -> Iterator[Built]:
    """A screen for each pair, the sides drawn."""
    for row in work.rows:
        a, b = row.responses
        ids, texts = work.compared({a.item_id: a.text, b.item_id: b.text})
        by_name = row.item_id == pair_of_names(row.group, (a.name, b.name)).item_id
        names = (a.name, b.name) if by_name else (a.item_id, b.item_id)  # as the data name it
        columns = {"item_id": row.group, "model_a": names[0], "model_b": names[1]}
        asked = [_ask(metric, columns) for metric in work.metrics]
        if ids[0] != a.item_id:
            for metric, (_, target) in zip(work.metrics, asked, strict=True):
                target.labels.update((x, metric.swapped(x)) for x in metric.label_texts)
        yield work.built([row], [*_context([row]), *texts], asked)


def _criteria(work: _Work) -> Iterator[Built]:
    """A screen for each answer, with all its criteria."""
    by_answer = group_by_key(
        (row.criterion.item_id if row.criterion else "", row) for row in work.rows
    )
    for item_id, rows in by_answer.items():
        asked = [
            _ask(metric, {"item_id": item_id, "criterion": part.name},
                 title=mark_forbidden(part.text), about=work.hidden(part.name)[:8])
            for part in (row.criterion for row in rows) if part
            for metric in work.metrics
        ]  # fmt: skip
        yield work.built([rows[0]], _whole(rows[0]), asked)


def _ranking(work: _Work) -> Iterator[Built]:
    """A screen for each question, with a rank for every answer. A group may hold several
    questions."""
    questions = group_by_key(((row.group, row.question), row) for row in work.rows)
    groups = Counter(group for group, _ in questions)
    for (group, question), rows in questions.items():
        if not 2 <= len(rows) <= _MOST:
            message = f"a question with {len(rows)} answers does not fit a screen"
            work.tell(message, group, f"2 to {_MOST} answers")
            continue
        names = {row.item_id: row.system for row in rows}
        if not all(names.values()) or len({*names.values()}) < len(names):
            names = {name: name for name in names}
        item_id = group if groups[group] == 1 else question
        columns = {"task": work.setup.config.name, "item_id": item_id}
        ids, texts = work.compared({row.item_id: row.text for row in rows})
        asked = [
            _ask(metric, {**columns, "system": names[name]},
                 slot=slot, about=work.hidden(name)[:8], **_RANK)
            for slot, name in enumerate(ids)
            for metric in work.metrics
        ]  # fmt: skip
        yield work.built(rows, [*_context(rows), *texts], asked)


_TASKS: Mapping[Task, Callable[[_Work], Iterator[Built]]] = {
    "labels": _labels, "ranking": _ranking, "preference": _preference, "criteria": _criteria,
}  # fmt: skip
