"""The text of a label's cell as a label of the rubric."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from judgebench.data.cells import clean, spreadsheet_damage
from judgebench.data.findings import nearest
from judgebench.rubric import Metric, Rubric

_WHOLE_FLOAT = re.compile(r"(-?\d+)\.0+")


class CellLabel(NamedTuple):
    """A cell's label, None where it is blank or wrong, and the problem met, if any."""

    label: str | None
    kind: str = ""
    message: str = ""
    allowed: str = ""


def read_label(metric: Metric, raw: str, spelt: Mapping[str, str | None]) -> CellLabel:
    """The label that a cell holds: by the data's own spellings first, then by the rubric's."""
    text, unseen, _ = clean(raw)
    for candidate in (text, _whole_number(text)):
        label = spelt[candidate] if candidate in spelt else metric.parse(candidate)
        if candidate == "" or (candidate in spelt and label is None):
            return CellLabel(None, "blank_label", "blank cell, counted as no label")
        if label is not None:
            break
    else:
        return _unknown(metric, text, spelt)
    if candidate != text:
        return CellLabel(
            label, "float_label", "a number with .0, as a table writes it beside blanks"
        )
    if unseen:
        return CellLabel(label, "invisible_characters", "left out of a label")
    return CellLabel(label)


def _whole_number(text: str) -> str:
    """`2` for `2.0`, which is how many tables write the code 2 once a cell is blank."""
    match = _WHOLE_FLOAT.fullmatch(text)
    return match[1] if match else text


def _unknown(metric: Metric, text: str, spelt: Mapping[str, str | None]) -> CellLabel:
    allowed = ", ".join((*metric.options, *spelt))
    if damage := spreadsheet_damage(text):
        return CellLabel(None, "spreadsheet_label", damage, allowed)
    aliases = [alias for label in metric.labels for alias in label.aliases]
    near = nearest(text, [*metric.options, *aliases, *spelt])
    message = f"is not a label of {metric.id}{near}"
    return CellLabel(None, "unknown_label", message, allowed)


def find_metric(name: str, rubric: Rubric) -> Metric | str:
    """The metric of that id or title, else what is wrong with the name."""
    metric = rubric.find(name)
    if metric is not None:
        return metric
    names = [name for m in rubric.metrics for name in (m.id, m.title)]
    return f"is not a metric of the rubric{nearest(name, names)}"
