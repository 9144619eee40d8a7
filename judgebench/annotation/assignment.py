"""Assignment of items to annotators: every item to r of v annotators, fixed before the first label.

A table of overlaps counts the items that two annotators share and, on its diagonal, those of one.
It is the more even, the smaller the sum of its squares; balanced, two of v annotators share
N r (r - 1) / (v (v - 1)) of N items.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress, permutations
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Limits

from judgebench.annotation.config import Setup, Task
from judgebench.annotation.screens import IN_QUESTION, Option, Screen, ScreenField, Section
from judgebench.data.conversation import pair_of_names
from judgebench.data.formats import mark_forbidden
from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.files import StrictModel, load_json
from judgebench.records import CHANCES, SEVERAL, Answer, AnswerKind, Part, content_hash
from judgebench.rubric import BETWEEN, Metric, Rubric

Strata = Mapping[str, tuple[str, str]]  # the system and the question of every item
Given = Mapping[str, Sequence[str]]  # the annotators of every item
_Ints = NDArray[np.int64]

_OVERALL, _SYSTEM, _QUESTION = 1000, 1, 10  # how much it matters where the table is even
_TRIES, _EXCHANGES, _PASSES, _PARTNERS = 300, 10_000, 4, 8  # more gain nothing


@dataclass(frozen=True, slots=True)
class Assignment:
    """The annotators of every item beside the `calibration`, which is everybody's, and the
    orders."""

    calibration: tuple[str, ...]
    given: dict[str, tuple[str, ...]]
    orders: dict[str, tuple[str, ...]]  # of everybody, the calibration first


def assign(
    strata: Strata, annotators: Sequence[str], per_item: int, calibration: int, seed: int
) -> Assignment:
    """The assignment of all items. Raises SetupError with every setting that cannot be met."""
    limits = [
        ("per_item", per_item, 1, len(annotators)),
        ("calibration", calibration, 0, len(strata)),
    ]
    problems = [
        Problem("cannot be met", "", None, key, str(n), f"{least} to {max(least, most):,}")
        for key, n, least, most in limits
        if not least <= n <= most
    ]
    raise_any(problems)
    drawn = order(_drawn(strata, calibration, seed), strata, "", seed)
    rest = {item: strata[item] for item in strata.keys() - set(drawn)}
    given = extend(rest, {}, annotators, per_item, seed)
    own = {name: [item for item in given if name in given[item]] for name in annotators}
    orders = {name: drawn + order(own[name], strata, name, seed) for name in annotators}
    return Assignment(drawn, given, orders)


def _shuffled(items: Iterable[str], *seed: object) -> list[str]:
    return sorted(items, key=lambda item: content_hash([*seed, item]))


def _drawn(strata: Strata, size: int, seed: int) -> list[str]:
    """`size` items: of as many questions as possible, and of systems in proportion."""
    left = {item: strata[item] for item in _shuffled(strata, seed, "calibration")}
    of, used = Counter(system for system, _ in strata.values()), Counter[tuple[int, str]]()
    drawn: list[str] = []
    for _ in range(size):
        use = {x: (used[1, q], (used[0, s] + 0.5) / of[s]) for x, (s, q) in left.items()}
        drawn.append(min(use, key=use.__getitem__))
        used.update(enumerate(left.pop(drawn[-1])))
    return drawn


def order(items: Collection[str], strata: Strata, annotator: str, seed: int) -> tuple[str, ...]:
    """The items shuffled for an annotator. Two of a question follow each other only where there is
    no other way."""
    waiting, ordered = _shuffled(items, seed, "order", annotator), [""]
    of = {"": "", **{item: strata[item][1] for item in waiting}}
    left = Counter(of[item] for item in waiting)
    most = max(left.values(), default=0)
    while waiting:
        # What is more than half of the rest must come now, or it would follow itself later.
        close = left if len(waiting) < 2 * most else ()
        now = next((question for question in close if 2 * left[question] > len(waiting)), None)
        fits = (of[x] == now if now is not None else of[x] != of[ordered[-1]] for x in waiting)
        ordered.append(waiting.pop(next((at for at, fit in enumerate(fits) if fit), 0)))
        left[of[ordered[-1]]] -= 1
    return tuple(ordered[1:])


def mix(items: Sequence[str], gold: Collection[str], *seed: object) -> tuple[str, ...]:
    """The items in their order with the gold ones among them: one in each of as many equal
    stretches, shuffled, at a place that the seed decides."""
    stretch = len(items) / max(len(gold), 1)
    shares = [int(content_hash([*seed, "place", n])[:13], 16) / 16**13 for n in range(len(gold))]
    at = [(float(n), item) for n, item in enumerate(items)]
    among = enumerate(zip(_shuffled(gold, *seed, "gold"), shares, strict=True))
    at += [((n + share) * stretch - 0.5, item) for n, (item, share) in among]
    return tuple(item for _, item in sorted(at))


def extend(
    strata: Strata, given: Given, annotators: Sequence[str], per_item: int, seed: int
) -> dict[str, tuple[str, ...]]:
    """The annotators of the items of `strata` that are not `given`, continuing that balance."""
    groups = {question: content_hash([seed, question]) for _, question in strata.values()}
    new = sorted(_shuffled(strata.keys() - given.keys(), seed), key=lambda x: groups[strata[x][1]])
    board = _Board([strata.get(item, ("", "")) for item in [*given, *new]], len(annotators))
    for item, names in enumerate(given.values()):
        board.put(item, np.array([int(name in names) for name in annotators]))
    board.fill(len(given), per_item, np.random.default_rng(int(content_hash([seed]), 16)))
    rows = zip(new, board.chosen[len(given) :].tolist(), strict=True)
    return {item: tuple(compress(annotators, row)) for item, row in rows}


class _Board:
    """`chosen` has a row for every item. `tables` are the overlaps over all items, in every system
    and in every question; `of` says in which three of them an item counts."""

    def __init__(self, strata: Sequence[tuple[str, str]], v: int) -> None:
        keys = [[("", 0), (system, 1), (question, 2)] for system, question in strata]
        codes = {key: at for at, key in enumerate(dict.fromkeys(chain([("", 0)], *keys)))}
        self.of = np.array([[codes[key] for key in of] for of in keys])
        self.chosen = np.zeros((len(keys), v), np.int64)
        self.tables = np.zeros((len(codes), v, v), np.int64)
        even = np.ones((v, v), np.int64)
        self.weights = np.array([_OVERALL * even, _SYSTEM * even, _QUESTION * np.eye(v)], np.int64)

    def put(self, item: int, row: _Ints) -> None:
        old = self.chosen[item]
        self.tables[self.of[item]] += np.outer(row, row) - np.outer(old, old)
        self.chosen[item] = row

    def fill(self, first: int, r: int, rng: np.random.Generator) -> None:
        """Gives the items from `first` on to r annotators each: greedily, then improved."""
        n, v = self.chosen.shape
        table, pairs = self.tables[0], np.triu_indices(v, int(v > 1))
        for item in range(first, n):
            self._choose(item, r, rng)
        for _ in range(_TRIES):
            if max(np.ptp(table.diagonal()), np.ptp(table[pairs])) <= 1:
                break
            some, squares = first + rng.permutation(n - first)[:3], (table * table).sum()
            before = self.chosen[some]
            for item in some:
                self.put(item, 0 * before[0])
            for item in some:
                self._choose(item, r, rng)
            if (table * table).sum() > squares:
                for item, row in zip(some, before, strict=True):
                    self.put(item, row)
        for item in [*range(first, n)] * min(_PASSES, 1 + _EXCHANGES // max(n, 1)):
            # Its neighbours are of the same question, if any are.
            near = range(max(first, item - _PARTNERS), min(n, item + _PARTNERS))
            self._exchange(item, [*near, *rng.integers(first, n, _PARTNERS)])

    def _choose(self, item: int, r: int, rng: np.random.Generator) -> None:
        """Gives an item of nobody to those who keep the tables most even, one by one."""
        costs = (self.weights * self.tables[self.of[item]]).sum(0)
        v = len(costs)
        now, row = v * costs.diagonal() + rng.permutation(v), np.zeros(v, np.int64)
        for _ in range(r):  # the draw decides where two cost the same, and only there
            added = np.where(row, np.iinfo(np.int64).max, now).argmin()
            row[added] = 1
            now += 2 * v * costs[added]
        self.put(item, row)

    def _exchange(self, item: int, partners: list[int]) -> None:
        """Exchanges the annotators of two items where that makes their strata more even."""
        of, theirs, mine = self.of[partners, 1:], self.chosen[partners], self.chosen[item].copy()
        change = theirs[:, :, None] * theirs[:, None] - np.outer(mine, mine)
        gap = self.tables[self.of[item, 1:]] - self.tables[of]
        gap += change[:, None] * (of != self.of[item, 1:])[:, :, None, None]
        gain = ((self.weights[1:] * gap).sum(1) * change).sum((1, 2))
        best = gain.argmin()
        if gain[best] < 0:
            self.put(item, theirs[best])
            self.put(partners[best], mine)


def reassign(
    given: Given, gone: str, unstarted: Collection[str], annotators: Sequence[str], seed: int
) -> tuple[dict[str, str], list[str]]:
    """Distribute among `annotators` each `unstarted` item of somebody who is `gone`, and the items
    that all of them have. First comes who has the fewest items, then who shares the fewest."""
    has = Counter(chain.from_iterable(given.values()))
    shared = Counter[tuple[str, ...]](
        pair for names in given.values() for pair in permutations(names, 2)
    )
    moved: dict[str, str] = {}
    theirs = _shuffled((item for item in unstarted if gone in given.get(item, ())), seed, gone)
    for item in theirs:
        others = set(given[item]) - {gone}
        free = _shuffled(set(annotators) - {gone, *others}, seed, item)
        use = {x: (has[x], sum(shared[x, other] for other in others)) for x in free}
        if free:
            new = moved[item] = min(use, key=use.__getitem__)
            has[new] += 1
            shared.update(pair for other in others for pair in permutations((new, other), 2))
    return moved, [item for item in theirs if item not in moved]


def overlaps(given: Given, annotators: Sequence[str]) -> list[list[int]]:
    """The number of items that two annotators share; on the diagonal, of those that one has."""
    has = [{item for item, names in given.items() if name in names} for name in annotators]
    return [[len(one & other) for other in has] for one in has]


def overlap_lines(given: Given, annotators: Sequence[str]) -> list[str]:
    """The table of overlaps as lines of text."""
    table = zip(annotators, overlaps(given, annotators), strict=True)
    rows = [["", *annotators], *([name, *(f"{n:,}" for n in row)] for name, row in table)]
    width = max(len(cell) for row in rows for cell in row)
    return ["  ".join([row[0].ljust(width), *(x.rjust(width) for x in row[1:])]) for row in rows]


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
_OWN: Mapping[Task, Rubric] = {  # of the tasks that need no rubric
    "ranking": Rubric.from_labels({"Rank": list("12345")}),
    "review": Rubric.from_labels({"Review": ["accept", "reject"]}, nominal=["Review"]),
}
_RANKS = ("1 (best)", "2", "3", "4", "5 (clearly wrong)")
_RANK = {
    "question": "How good is it? Equally good ones get the same rank.",
    "options": [Option(value=text[0], text=text) for text in _RANKS],
}
_REVIEW: Mapping[str, Any] = {"question": "Can this text be used as it is?"}
_REASON: Mapping[str, Any] = {
    "metric": "reason", "title": "Reason", "question": "What is wrong with it?", "options": (),
    "when": ("review", "reject"),
}  # fmt: skip
_Asked = tuple[ScreenField, Target]


@dataclass(frozen=True, slots=True)
class Built:
    """A screen, which has no id yet, and what is behind it: the targets of its fields, the question
    that it belongs to, the systems whose texts it shows."""

    screen: Screen
    targets: Mapping[str, Target]
    question: str
    systems: str


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
    built = [*_TASKS.get(setup.config.task, _labels)(work)]
    if not rows:
        work.tell(f"hold no {SEVERAL[kind]} to label", "none")
    if work.problems:
        raise SetupError(work.problems)
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
        group, fields = rows[0].group, tuple(one for one, _ in asked)
        screen = Screen(id="", group=self.hidden(group), sections=tuple(sections), fields=fields)
        targets = {one.key: target for one, target in asked}
        return Built(screen, targets, group, ", ".join(sorted(names)))

    def slots(
        self, heading: str, texts: Mapping[str, Answer | Part],
        columns: Mapping[str, Mapping[str, str]] = {}, metrics: Sequence[Metric] = (), **more: Any,
    ) -> tuple[list[Section], list[_Asked]]:  # fmt: skip
        """Texts that are compared, by id, in an order that says nothing, and what is asked of each,
        which has these `columns`. An assessment may speak of the first one: then they stay in the
        order of the data."""
        ids = list(texts) if self.setup.assessments else sorted(texts, key=self.hidden)
        return [_text(heading, texts[one].text, slot=slot) for slot, one in enumerate(ids)], [
            _ask(metric, columns[one], slot=slot, about=self.hidden(one)[:8], **more)
            for slot, one in enumerate(ids)
            for metric in metrics
        ]


def _text(heading: str, text: str, **more: int) -> Section:
    return Section(heading=heading, text=mark_forbidden(text), **more)


def _context(rows: Sequence[Answer]) -> list[Section]:
    """The sections before the answers to a question: it, or the conversation, and references."""
    first = rows[0]
    said = [] if first.is_conversation else [_text(p.role.title(), p.text) for p in first.turns]
    question = [_text("Question", first.question)] if first.question else []
    references = dict.fromkeys(row.reference for row in rows if row.reference)
    return [*(said or question), *(_text("Reference", text) for text in references)]


def _whole(row: Answer) -> list[Section]:
    """An answer under its question; of a conversation every turn."""
    if row.is_conversation:
        return [_text(turn.role.title(), turn.text) for turn in row.turns]
    return [*_context([row]), _text("Answer", row.text)]


def _ask(metric: Metric, columns: Mapping[str, str], /, **more: Any) -> _Asked:
    """A metric as it is asked of what has these columns; labels that give no grade come last."""
    options = [Option(value=x.text, text=x.text, about=x.description) for x in metric.labels]
    options += [Option(value=text, text=text) for text in metric.abstain]
    given = {
        "metric": metric.id, "title": metric.title, "question": metric.question,
        "options": options, "ordinal": metric.kind == "ordinal", "prefers": metric.preference,
        "together": len(metric.labels) if metric.several else 0,
    }  # fmt: skip
    asked = ScreenField(**{**given, **more})
    return asked, Target(columns=dict(columns), metric=asked.metric)


def _chance(work: _Work, row: Answer) -> dict[str, str]:
    """The chance with which a chosen item was drawn, as a column of its labels."""
    chance = row.metadata.get(CHANCES[0], "")  # none of a gold item that was not drawn
    return {CHANCES[0]: chance} if work.setup.config.choose else {}


def _in_question(work: _Work) -> Mapping[str, list[str]]:
    """The labels among which whoever adjudicates chooses, by item, whosever they are; those of
    `judgebench annotate draw disagreements`. Nobody else sees them."""
    cells = {row.item_id: row.metadata.get(IN_QUESTION) for row in work.rows}
    if not (work.setup.config.makes_gold and any(cells.values())):
        return {}
    if len(work.metrics) > 1:  # the others would be adjudicated on items that are no draw of theirs
        names = ", ".join(metric.id for metric in work.metrics)
        work.tell(f"{IN_QUESTION} are those of one metric", names, "its id", "metrics")
    return {item: [", ".join(cell.split(BETWEEN))] for item, cell in cells.items() if cell}


def _labels(work: _Work) -> Iterator[Built]:
    """A screen for each answer, with all metrics; or with its review and the reason. What is known
    is kept back until the labels are given."""
    config, gold = work.setup.config.gold, work.setup.gold
    # Labels alone say which items belong together; gold labels are never alone.
    is_grouped = work.setup.rubric is not None and not work.setup.config.makes_gold
    in_question = _in_question(work)
    for row in work.rows:
        asking = [_REVIEW, _REASON] if work.setup.rubric is None else [{}]
        columns = {"item_id": row.item_id, **_chance(work, row)}
        if is_grouped and row.group != row.item_id:
            columns["group"] = row.group
        asked = [_ask(metric, columns, **more) for metric in work.metrics for more in asking]
        known = gold.get(row.item_id) if config and config.feedback else None
        told = [known.told(work.metrics)] if known and known.first else []
        texts = [
            *_whole(row),
            *(_text("Labels in question", text) for text in in_question.get(row.item_id, ())),
            *(_text("Known label", text, part=1) for text in told),
        ]
        yield work.built([row], texts, asked)


def _preference(work: _Work) -> Iterator[Built]:
    """A screen for each pair, the sides drawn."""
    for row in work.rows:
        a, b = row.responses
        texts, _ = work.slots("Answer", {a.item_id: a, b.item_id: b})
        by_name = row.item_id == pair_of_names(row.group, (a.name, b.name)).item_id
        names = (a.name, b.name) if by_name else (a.item_id, b.item_id)  # as the data name it
        columns = {"item_id": row.group, "model_a": names[0], "model_b": names[1]}
        asked = [_ask(metric, columns) for metric in work.metrics]
        if work.hidden(b.item_id) < work.hidden(a.item_id):
            for metric, (_, target) in zip(work.metrics, asked, strict=True):
                target.labels.update((x, metric.swapped(x)) for x in metric.label_texts)
        yield work.built([row], [*_context([row]), *texts], asked)


def _criteria(work: _Work) -> Iterator[Built]:
    """A screen for each answer, with all its criteria."""
    by_answer = defaultdict[str, list[tuple[Answer, Part]]](list)
    for row in work.rows:
        if one := row.criterion:
            by_answer[one.item_id].append((row, one))
    for item_id, of_answer in by_answer.items():
        asked = [
            _ask(metric, {"item_id": item_id, "criterion": one.name},
                 title=mark_forbidden(one.text), about=work.hidden(one.name)[:8])
            for _, one in of_answer
            for metric in work.metrics
        ]  # fmt: skip
        yield work.built([of_answer[0][0]], _whole(of_answer[0][0]), asked)


def _questions(work: _Work, least: int) -> Mapping[tuple[str, str], Mapping[str, Answer]]:
    """The answers by group and question, by id: a group may hold several questions."""
    found = defaultdict[tuple[str, str], dict[str, Answer]](dict)
    for row in work.rows:
        found[row.group, row.question][row.item_id] = row
    for (group, _), by_id in found.items():
        if not least <= len(by_id) <= _MOST:
            message = f"a question with {len(by_id)} answers does not fit a screen"
            work.tell(message, group, f"{least} to {_MOST} answers")
    return found


def _ranking(work: _Work) -> Iterator[Built]:
    """A screen for each question, with a rank for every answer."""
    found, task = _questions(work, 2), work.setup.config.name
    groups = Counter(group for group, _ in found)
    for (group, question), by_id in found.items():
        names = {one: row.system for one, row in by_id.items()}
        if "" in names.values() or len({*names.values()}) < len(names):
            names = {one: one for one in names}
        item_id = group if groups[group] == 1 else question
        columns = {
            one: {"task": task, "item_id": item_id, "system": name} for one, name in names.items()
        }
        sections, asked = work.slots("Answer", by_id, columns, work.metrics, **_RANK)
        yield work.built([*by_id.values()], [*_context([*by_id.values()]), *sections], asked)


def _two_part(work: _Work) -> Iterator[Built]:
    """A screen for each assessment: first the responses that it is about, then its text."""
    found, chosen = _questions(work, 1), work.setup.config.assessment_metrics
    later = [metric for metric in work.metrics if metric.id in chosen]
    sooner = [metric for metric in work.metrics if metric.id not in chosen]
    if not sooner:
        work.tell("leave no metric for the responses", ", ".join(chosen), "", "assessment_metrics")
    known, left = {name: key for key in found for name in key if name}, dict(found)
    for about in work.setup.assessments.answers if work.setup.assessments else ():
        keys = [(about.group, about.question), known.get(about.question), known.get(about.group)]
        by_id = left.pop(next((key for key in keys if key in left), ("", "")), {})
        if not by_id:
            message = "has no responses, or another is about them"
            work.tell(message, about.item_id, "one for each question", "assessments")
            continue
        columns = {one: {"item_id": one} for one in by_id}
        sections, asked = work.slots("Response", by_id, columns, sooner)
        sections.append(_text("Assessment", about.text, part=1))
        asked += [_ask(metric, {"item_id": about.item_id}, part=1) for metric in later]
        yield work.built([*by_id.values()], [*_context([*by_id.values()]), *sections], asked)
    for group, question in left:
        work.tell("has responses and no assessment", question or group, "", "assessments")


_TASKS: Mapping[Task, Callable[[_Work], Iterator[Built]]] = {
    "ranking": _ranking, "preference": _preference, "criteria": _criteria, "two-part": _two_part,
}  # fmt: skip
