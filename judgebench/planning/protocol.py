"""A plan as a protocol: what is promised before the first label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from judgebench.errors import Problem, raise_any
from judgebench.files import all_or_nothing, disk_errors, validate, write_atomically
from judgebench.protocol import Protocol
from judgebench.rubric import Rubric, load_rubric
from judgebench.stats.intervals import look_levels
from judgebench.studies.reference_labels import drawn_of

if TYPE_CHECKING:
    from judgebench.planning.plan import Plan


def write_protocol(
    plan: Plan, file: Path, rubric: Rubric | str | Path, answers: int | None,
    promised: Mapping[str, Any],
) -> Protocol:  # fmt: skip
    """Write the promises of a plan, with what else is `promised`. Raises SetupError, also where the
    file is there already: a protocol is written once."""
    rubric = rubric if isinstance(rubric, Rubric) else load_rubric(rubric)
    plan.rule.check(rubric)
    design = plan.chances.design
    n_answers = plan.needed[design] if answers is None else answers
    promised = {key: value for key, value in promised.items() if value}
    _check(n_answers, design.oversampled, **promised)
    chances = plan.chances.at(n_answers or 1).items()
    severe = {
        metric.id: metric.label_texts[place]
        for metric in rubric.metrics
        if (place := plan.rule.severe_index(metric)) is not None
    }
    keys = {
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "answers": n_answers, "annotators": design.annotators,
        "drawn": "random", **promised,
        "chances": {which.value: round(chance.value or 0.0, 3) for which, chance in chances},
        "assumed": asdict(design), "severe": severe,
        "rubric": rubric.as_plain(), "rule": plan.rule.model_dump(mode="json"),
    }  # fmt: skip
    protocol = validate(keys, Protocol, str(file))
    protocol = protocol.model_copy(update={"sha256": protocol.content_hash})
    values = protocol.model_dump(mode="json", exclude_unset=True) | {"sha256": protocol.sha256}
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)
    with disk_errors(file), all_or_nothing(file.parent, [file]):
        write_atomically(file, text.encode())
    return protocol


def _check(
    answers: int | None, oversampled: bool, drawn: str = "random", looks: Sequence[float] = (),
    **others: Any,
) -> None:  # fmt: skip
    """Raises SetupError with every promise that cannot be kept."""
    problems = []
    if answers is None:
        message = "no number of answers has a chance of 80 %: say how many get labels"
        problems.append(Problem(message, field="answers"))
    if oversampled and not drawn_of([drawn]).columns:
        message = "severe answers are oversampled: name the column of their probabilities"
        allowed = "probability=COLUMN, weight=COLUMN"
        problems.append(Problem(message, field="drawn", found=drawn, allowed=allowed))
    try:
        look_levels([*looks, 1.0])
    except ValueError as error:
        problems.append(Problem(f"{error}; the end is not among them", field="looks"))
    raise_any(problems)
