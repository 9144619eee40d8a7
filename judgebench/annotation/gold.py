"""Gold items: items whose labels are known, among everybody's others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from judgebench.data.findings import Findings
from judgebench.data.load import load_data
from judgebench.data.tables import open_table
from judgebench.errors import Problem, raise_any
from judgebench.records import Dataset
from judgebench.rubric import Metric, Rubric
from judgebench.yaml_file import Strict


class GoldConfig(Strict):
    """The key `gold` of annotate.yaml: a table of `items` with their known labels, the `first` of
    which make a qualification round. With `feedback` each of these then shows what is known."""

    items: str
    first: int = Field(default=0, ge=0)
    feedback: bool = False


@dataclass(frozen=True, slots=True)
class Gold:
    """The known labels of an item by metric, and their reason. `first`: in the qualification round.
    `own`: one of the study's items as well."""

    labels: Mapping[str, str]
    reason: str
    first: bool
    own: bool

    def told(self, metrics: Sequence[Metric]) -> str:
        """The known labels and their reason, as text for annotators."""
        lines = [f"{m.title}: {self.labels[m.id]}" for m in metrics if m.id in self.labels]
        return "\n\n".join(filter(None, ["\n".join(lines), self.reason]))


def read_gold(
    config: GoldConfig, items: Dataset, rubric: Rubric, folder: Path
) -> tuple[Dataset, dict[str, Gold]]:
    """The items of a study and, behind them, the gold items that are not among them; what is known,
    by item id in the order of the table. Raises SetupError with every problem of the table."""
    path = folder / config.items
    found = load_data([path], rubric)
    labels = defaultdict[str, dict[str, str]](dict)
    problems = list[Problem]()
    for one in found.labels:
        if one.label and labels[one.item_id].setdefault(one.metric, one.label) != one.label:
            problems.append(Problem("has several known labels", "", None, one.metric, one.item_id))
    own = {row.item_id for row in items.answers}
    others = [row for row in found.answers if row.item_id not in own]
    for row in others if found.textless else ():
        problems.append(Problem("has no text and is none of the items", found=row.item_id))
    names = [row.item_id for row in found.answers if labels[row.item_id]]
    unknown = [row.item_id for row in found.answers if not labels[row.item_id]]
    problems += [Problem("has no known label", found=name) for name in unknown]
    if config.first > len(names):
        allowed = f"0 to {len(names):,}, the items with a known label"
        problems.append(Problem("cannot be met", "", None, "first", str(config.first), allowed))
    if config.feedback and not config.first:
        wrong = "is for the qualification round: say with `first` how many items it has"
        problems.append(Problem(wrong, field="feedback"))
    raise_any([replace(problem, file=problem.file or str(path)) for problem in problems])
    reasons = dict(_reasons(path))
    gold = {
        name: Gold(labels[name], reasons.get(name, ""), n < config.first, name in own)
        for n, name in enumerate(names)
    }
    return replace(items, answers=(*items.answers, *others)), gold


def _reasons(path: Path) -> Iterator[tuple[str, str]]:
    table = open_table(path, Findings())
    for _, row in table.records() if table else ():
        yield row.get("item_id", ""), row.get("reason", "")
