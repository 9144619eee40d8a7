"""Sets of altered answers as JSONL: one line an item, readable and writable by hand.

A line needs `item_id`, `parent` (the sound answer), `text` (the altered one) and either
`must_worsen` or `must_not_change: true`; usually also `question`, and a violation `false_claim` and
`true_claim`. What a generator knows beside is kept; of a line without it, the set's name and
content stand in.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, content_hash
from judgebench.rubric import Rubric
from judgebench.stress.probes.altered import BY_HAND, AlteredAnswer, Change, span_diff
from judgebench.stress.probes.recipe import check_demand
from judgebench.yaml_file import Strict, read_text, validate

Text = Annotated[str, StringConstraints(pattern=r"\S")]
# Words of the person who made the set, repeated by reports: such as that it is synthetic.
MOST_NOTICES = 3


class _Change(Strict):
    start: int
    end: int
    old: str
    new: str


class _Line(Strict):
    item_id: Text
    question: str = ""
    parent: Text
    text: Text
    must_worsen: dict[str, str] = Field(default_factory=dict)
    must_not_change: bool = False
    demand: dict[str, str] = Field(default_factory=dict)
    area: str = ""
    false_claim: str = ""
    true_claim: str = ""
    why_plausible: str = ""
    source: str = ""
    notice: str = ""
    parent_id: str = ""
    system: str = ""
    reference: str | None = None
    group: str = ""
    recipe: str = ""
    recipe_version: str = ""
    recipe_hash: str = ""
    seed: int = 0
    generator: str = ""
    changes: tuple[_Change, ...] | None = None
    checks: dict[str, str] = Field(default_factory=dict)


def read_set(
    path: Path, rubric: Rubric | None = None, instead: Mapping[str, str] | None = None
) -> list[AlteredAnswer]:
    """The altered answers of a set file, with labels as the rubric spells them.

    `instead` stands in for what the violations' lines say under must_worsen.

    Raises SetupError with every problem of the file: what is no JSON, unknown or missing keys, an
    id that stands twice, a metric or label that the rubric does not have, an empty set.
    """
    problems: list[Problem] = []
    lines = list(_lines(path, problems))
    counts = Counter(line.item_id for _, line in lines)
    items = []
    for number, line in lines:
        problems += _line_problems(line, path, number, counts)
        must_worsen: Mapping[str, str] = line.must_worsen and (instead or line.must_worsen)
        if rubric is not None:
            try:
                must_worsen = check_demand(must_worsen, rubric, str(path), number)
            except SetupError as error:
                problems += error.problems
        items.append(_item(line, path, must_worsen))
    if not items and not problems:
        problems.append(Problem("is an empty set: it holds no altered answer", file=str(path)))
    if problems:
        raise SetupError(sorted(problems, key=lambda problem: problem.line or 0))
    return items


def notices(path: Path) -> list[str]:
    """What a set says of itself, each once: that it is synthetic, say."""
    found = dict.fromkeys(line.notice for _, line in _lines(path, []) if line.notice)
    return list(found)[:MOST_NOTICES]


def _lines(path: Path, problems: list[Problem]) -> Iterator[tuple[int, _Line]]:
    for number, row in enumerate(read_text(path).split("\n"), 1):
        if not row.strip():
            continue
        try:
            yield number, validate(json.loads(row), _Line, str(path))
        except SetupError as error:
            problems += [replace(problem, line=number) for problem in error.problems]
        except (ValueError, RecursionError) as error:
            problems.append(Problem(f"is not JSON: {error}", str(path), number))


def _line_problems(
    line: _Line, path: Path, number: int, counts: Mapping[str, int]
) -> Iterator[Problem]:
    if counts[line.item_id] > 1:
        message = "stands in more than one line of the set"
        yield Problem(message, str(path), number, "item_id", line.item_id)
    if bool(line.must_worsen) == line.must_not_change:
        message = "give either must_worsen (metric: label) or must_not_change: true"
        yield Problem(message, str(path), number)


def _item(line: _Line, path: Path, must_worsen: Mapping[str, str]) -> AlteredAnswer:
    parent = Answer(
        item_id=line.parent_id or f"{line.item_id}-parent",
        text=line.parent,
        question=line.question,
        system=line.system,
        reference=line.reference,
        group=line.group,
    )
    changes = line.changes
    return AlteredAnswer(
        item_id=line.item_id,
        parent=parent,
        text=line.text,
        recipe=line.recipe or path.stem,
        recipe_version=line.recipe_version or "1",
        recipe_hash=line.recipe_hash or content_hash([line.question, line.parent, line.text]),
        seed=line.seed,
        generator=line.generator or BY_HAND,
        must_worsen=must_worsen,
        demand=line.demand,
        area=line.area,
        false_claim=line.false_claim,
        true_claim=line.true_claim,
        why_plausible=line.why_plausible,
        source=line.source,
        changes=(
            span_diff(line.parent, line.text)
            if changes is None
            else tuple(Change(**change.model_dump()) for change in changes)
        ),
        checks=line.checks,
    )


def to_set_line(item: AlteredAnswer) -> dict[str, Any]:
    """One item as the JSON object of a set's line; what is empty is left out."""
    parent = item.parent
    value = {
        "item_id": item.item_id,
        "question": parent.question,
        "area": item.area,
        "parent": parent.text,
        "text": item.text,
        "must_worsen": dict(item.must_worsen),
        "must_not_change": not item.must_worsen,
        "demand": dict(item.demand),
        "false_claim": item.false_claim,
        "true_claim": item.true_claim,
        "why_plausible": item.why_plausible,
        "source": item.source,
        "parent_id": parent.item_id,
        "system": parent.system,
        "reference": parent.reference,
        "group": parent.group,
        "recipe": item.recipe,
        "recipe_version": item.recipe_version,
        "recipe_hash": item.recipe_hash,
        "seed": item.seed,
        "generator": item.generator,
        "changes": [asdict(change) for change in item.changes],
        "checks": dict(item.checks),
    }
    return {key: v for key, v in value.items() if v not in ("", None, {}, False, [])}
