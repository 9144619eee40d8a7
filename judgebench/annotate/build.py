"""Items as blind screens, and what of the data stands behind each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgebench.annotate.config import Setup, Task
from judgebench.annotate.key import Target
from judgebench.annotate.screens import Field, Option, Screen, Section
from judgebench.data.cells import mark_forbidden
from judgebench.errors import Problem, SetupError, shorten
from judgebench.records import SEVERAL, Answer, Kind, Part, content_hash
from judgebench.rubric import Metric, Rubric

MOST = 9  # texts on a screen: there are as many digits to choose by
_KINDS: Mapping[Task, Kind] = {"preference": "pair", "criteria": "criterion"}  # else answers
_OWN: Mapping[Task, Rubric] = {  # of the tasks that need no rubric
    "ranking": Rubric.from_labels({"Rank": list("12345")}),
    "review": Rubric.from_labels({"Review": ["accept", "reject"]}, nominal=["Review"]),
}
_RANKS = tuple(
    Option(value=n, text=n, about=about)
    for n, about in zip("12345", ("best", "", "", "", "clearly wrong"), strict=True)
)
_REASON = Field(
    metric="reason", title="Reason", question="What is wrong with it?", when=("review", "reject")
)
_Asked = tuple[Field, Target]


@dataclass(frozen=True, slots=True)
class Built:
    """A screen, which has no id yet, and what is behind it: the targets of its fields, the question
    that it belongs to, the systems whose texts it shows."""

    screen: Screen
    targets: Mapping[str, Target]
    question: str
    systems: str


def item_of(targets: Mapping[str, Target]) -> tuple[str, ...]:
    """Which item, or which pair in either order, the fields of a screen are about."""
    columns = [*targets.values()][-1].columns
    return tuple(sorted({columns.get(name, "") for name in ("item_id", "model_a", "model_b")}))


def secret_of(setup: Setup) -> str:
    """What decides the order of screens and texts. It follows from the seed and from all items, so
    that nobody can compute it who has only some of them."""
    rows = [[a.item_id, a.system, a.content_hash] for a in setup.dataset.answers]
    return content_hash([setup.config.seed, setup.config.name, rows])


def asked_of(setup: Setup) -> Rubric:
    """The metrics that are asked. Raises SetupError where the rubric has none for the task, or the
    study names others."""
    config, kind = setup.config, _KINDS.get(setup.config.task, "answer")
    if setup.rubric is None:
        return _OWN[config.task]
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
    made = [*_MAKERS[setup.config.task](work)]
    problems = [replace(one, file=str(setup.file)) for one in made if isinstance(one, Problem)]
    if not made:
        message = f"there are no {SEVERAL[kind]} to label"
        problems = [Problem(message, str(setup.file), None, "items")]
    if problems:
        raise SetupError(problems)
    built = [one for one in made if isinstance(one, Built)]
    return sorted(built, key=lambda one: content_hash([secret, item_of(one.targets)]))


@dataclass(frozen=True, slots=True)
class _Work:
    """What screens are made of. `hidden` turns a name into one that tells nothing, and stays the
    same when others come or go."""

    setup: Setup
    metrics: Sequence[Metric]
    rows: Sequence[Answer]
    hidden: Callable[[str], str]

    def built(
        self, rows: Sequence[Answer], sections: Sequence[Section], asked: Sequence[_Asked]
    ) -> Built:
        """The screen of these rows."""
        names = {n for row in rows for n in [part.name for part in row.responses] or [row.system]}
        screen = Screen(
            id="",
            group=self.hidden(rows[0].group),
            sections=tuple(sections),
            fields=tuple(field for field, _ in asked),
        )
        targets = {field.key: target for field, target in asked}
        return Built(screen, targets, rows[0].group, ", ".join(sorted(names)))

    def slots(self, texts: Mapping[str, str], heading: str) -> tuple[list[str], list[Section]]:
        """The ids of texts that are compared, in an order that says nothing, and the texts."""
        ids = sorted(texts, key=self.hidden)
        return ids, [_text(heading, texts[one], slot=slot) for slot, one in enumerate(ids)]


_Made = Iterator[Built | Problem]


def _problem(message: str, found: str, allowed: str = "", field: str = "items") -> Problem:
    return Problem(message, "", None, field, shorten(found), allowed)


def _text(heading: str, text: str, **more: int) -> Section:
    return Section(heading=heading, text=mark_forbidden(text), **more)


def _context(rows: Sequence[Answer]) -> list[Section]:
    """What is known before the answers to a question: it, or the conversation, and references."""
    first = rows[0]
    said = [] if first.is_conversation else [_text(p.role.title(), p.text) for p in first.turns]
    question = [_text("Question", first.question)] if first.question else []
    references = dict.fromkeys(row.reference for row in rows if row.reference)
    return [*(said or question), *(_text("Reference", text) for text in references)]


def _whole(row: Answer, heading: str = "Answer") -> list[Section]:
    """An answer under its question; of a conversation every turn."""
    if row.is_conversation:
        return [_text(turn.role.title(), turn.text) for turn in row.turns]
    return [*_context([row]), _text(heading, row.text)]


def _ask(metric: Metric, columns: Mapping[str, str], **more: Any) -> _Asked:
    """A metric as it is asked of what has these columns; labels that give no grade come last."""
    options = [Option(value=x.text, text=x.text, about=x.description) for x in metric.labels]
    options += [Option(value=text, text=text) for text in metric.abstain]
    given = {
        "metric": metric.id, "title": metric.title, "question": metric.question,
        "options": options, "ordinal": metric.kind == "ordinal", "prefers": metric.preference,
    }  # fmt: skip
    return Field(**{**given, **more}), Target(columns=dict(columns), metric=metric.id)


def _questions(rows: Iterable[Answer]) -> dict[tuple[str, str], dict[str, Answer]]:
    """The answers by group and question, by their ids; a group may hold several questions."""
    found = defaultdict[tuple[str, str], dict[str, Answer]](dict)
    for row in rows:
        found[row.group, row.question][row.item_id] = row
    return found


def _labels(work: _Work) -> _Made:
    """A screen for each answer, with all metrics."""
    for row in work.rows:
        asked = [_ask(metric, {"item_id": row.item_id}) for metric in work.metrics]
        yield work.built([row], _whole(row), asked)


def _review(work: _Work) -> _Made:
    """A screen for each text: whether it is accepted, and why it is not."""
    for row in work.rows:
        columns, question = {"item_id": row.item_id}, "Can this text be used as it is?"
        reason = _REASON, Target(columns=columns, metric=_REASON.metric)
        asked = [_ask(work.metrics[0], columns, question=question), reason]
        yield work.built([row], _whole(row, "Text"), asked)


def _ranking(work: _Work) -> _Made:
    """A screen for each question, with a rank for every answer."""
    found, task = _questions(work.rows), work.setup.config.name
    groups = [group for group, _ in found]
    asking = {"question": "How good is it? Equally good ones get the same rank.", "options": _RANKS}
    for (group, question), by_id in found.items():
        if not 2 <= len(by_id) <= MOST:
            message = f"a question with {len(by_id)} answers cannot be ranked"
            yield _problem(message, group, f"2 to {MOST}")
            continue
        names = {one: row.system for one, row in by_id.items()}
        if "" in names.values() or len({*names.values()}) < len(names):
            names = {one: one for one in names}
        columns = {"task": task, "item_id": group if groups.count(group) == 1 else question}
        ids, texts = work.slots({one: row.text for one, row in by_id.items()}, "Answer")
        asked = [
            _ask(work.metrics[0], {**columns, "system": names[one]}, **asking, slot=slot,
                 about=work.hidden(one)[:8])
            for slot, one in enumerate(ids)
        ]  # fmt: skip
        rows = [*by_id.values()]
        yield work.built(rows, [*_context(rows), *texts], asked)


def _preference(work: _Work) -> _Made:
    """A screen for each pair, the sides drawn."""
    for row in work.rows:
        a, b = row.responses
        ids, texts = work.slots({a.item_id: a.text, b.item_id: b.text}, "Answer")
        columns = {"item_id": row.group, "model_a": a.item_id, "model_b": b.item_id}
        asked = []
        for metric in work.metrics:
            field, target = _ask(metric, columns)
            if metric.preference and ids[0] == b.item_id:
                labels = {label: metric.swapped(label) for label in metric.label_texts[:2]}
                target = target.model_copy(update={"labels": labels})
            asked.append((field, target))
        yield work.built([row], [*_context([row]), *texts], asked)


def _criteria(work: _Work) -> _Made:
    """A screen for each answer, with all its criteria."""
    by_answer = defaultdict[str, list[tuple[Answer, Part]]](list)
    for row in work.rows:
        if one := row.criterion:
            by_answer[one.item_id].append((row, one))
    for item_id, of_answer in by_answer.items():
        asked = [
            _ask(metric, {"item_id": item_id, "criterion": one.name},
                 title=f"{number}. {metric.title}", about=work.hidden(row.item_id)[:8],
                 question=f"{mark_forbidden(one.text)}\n{metric.question}")
            for number, (row, one) in enumerate(of_answer, start=1)
            for metric in work.metrics
        ]  # fmt: skip
        yield work.built([of_answer[0][0]], _whole(of_answer[0][0]), asked)


def _two_part(work: _Work) -> _Made:
    """A screen for each assessment: first the responses that it is about, then its text."""
    config, found = work.setup.config, _questions(work.rows)
    later = [m for m in work.metrics if m.id in config.assessment_metrics]
    sooner = [m for m in work.metrics if m not in later]
    if not sooner:
        yield _problem("leaves no metric for the responses", "all", field="assessment_metrics")
    known = {name: key for key in found for name in key if name}
    left = dict(found)
    for about in work.setup.assessments.answers if work.setup.assessments else ():
        key = known.get(about.question) or known.get(about.group)
        by_id = left.pop(key, {}) if key else {}
        if not 1 <= len(by_id) <= MOST:
            message = f"has {len(by_id)} responses that no other assessment is about"
            yield _problem(message, about.item_id, f"1 to {MOST}", "assessments")
            continue
        ids, texts = work.slots({one: row.text for one, row in by_id.items()}, "Response")
        asked = [
            _ask(metric, {"item_id": one}, slot=slot, about=work.hidden(one)[:8])
            for slot, one in enumerate(ids)
            for metric in sooner
        ]
        asked += [_ask(metric, {"item_id": about.item_id}, part=1) for metric in later]
        rows, text = [*by_id.values()], _text("Assessment", about.text, part=1)
        yield work.built(rows, [*_context(rows), *texts, text], asked)
    for group, question in left:
        yield _problem("has responses and no assessment", question or group, "", "assessments")


_MAKERS: Mapping[Task, Callable[[_Work], _Made]] = {
    "labels": _labels, "ranking": _ranking, "preference": _preference, "criteria": _criteria,
    "two-part": _two_part, "review": _review,
}  # fmt: skip
