"""Parts of a report that hold one of everything, plain or hostile."""

from collections.abc import Callable
from typing import Any

from alignment_case import HOSTILE

from judgebench.records import Estimate, Results, Row
from judgebench.results.blocks import (
    Block,
    Card,
    Drawing,
    Intervals,
    LabelledInterval,
    ReportSection,
)
from judgebench.results.tables import Cell, Table

UNDEFINED = Estimate(None, n=3, n_missing=1, reason="no item has a reference label")


def estimate(value: float, **more: Any) -> Estimate:
    given = {"low": value - 0.1, "high": value + 0.1, "method": "bootstrap", "n": 10, **more}
    return Estimate(value, **given)


def table(key: str, title: str, names: list[str]) -> Table:
    """Three columns of judges; one row with estimates, one with words."""
    numbers = (
        Cell(estimate=estimate(0.5)), Cell(estimate=UNDEFINED), Cell(estimate=estimate(0.25)),
    )  # fmt: skip
    words = (Cell(names[0], look="good"), Cell("fine", remark="why"), Cell("1,204", best=True))
    return Table(
        key, title, ("Metric", *names), ((Cell(names[1]), *numbers), (Cell("in words"), *words)),
        (f"About {names[2]}.",),
    )  # fmt: skip


def draw(name: str) -> Callable[[], Any]:
    def drawn() -> Any:
        from judgebench.results.figures import new_figure
        from judgebench.text import wrapped

        figure = new_figure(2, 2)
        figure.subplots().set_title(wrapped(name, 20))
        return figure

    return drawn


def make_part(
    key: str = "alignment", names: tuple[str, ...] = ("judge-1", "a control", "humans"),
    notes: tuple[str, ...] = ("Read this.",),
) -> ReportSection:  # fmt: skip
    one, two, three = names[:3]
    grid = table(f"{key}-grid", f"Scores of {one}", list(names[:3]))
    rows = (
        Row("score", "accuracy", estimate(0.5), one, "tone", {"failures": "left_out"}),
        Row("score", "accuracy", UNDEFINED, two, "tone", {"failures": "left_out"}),
        Row("distribution", "count", Estimate(7, n=10), "", "tone", {"human_label": three}),
    )
    lanes = (
        LabelledInterval(one, "judge", estimate(0.5)),
        LabelledInterval(two, "control", UNDEFINED),
        LabelledInterval(three, "human", Estimate(0.9, n=4, reason="one cluster")),
    )
    cards = tuple(
        Card(
            f"item-{i} {one}", (f"by {two}",),
            (("Question", f"number {i}? {three}"), ("Answer", (("", "a "), ("ins", one)))),
            (("Raw reply", two),) if i % 2 else (), grid,
            ({"Judge": one, "Metric": "tone"}, {"Judge": two, "Metric": ("harm", "tone")[i % 2]}),
        )
        for i in range(45)
    )  # fmt: skip
    return ReportSection(
        key, f"what {key} says", Results(rows),
        (
            Block("Summary", ("One sentence.", "2. another"), on_screen=True),
            Block("First of all", (), (grid,), lead=True, on_screen=True),
            Block("Empty", tables=(Table("none", "No rows", ("Metric",)),)),
            Block(
                "Figures", ("Look.",), (),
                (
                    Intervals(f"{key}_lanes", f"Lanes {two}", ((three, lanes),), "Accuracy",
                              {f"at least {one}": 0.7}),
                    Drawing(f"{key}_drawing", f"Drawing {three}", draw(three)),
                ),
            ),
            Block("Folded", (), (table(f"{key}-more", "More", list(names[:3])),), folded=True),
            Block(f"Cards of {one}", cards=cards),
        ),
        notes,
    )  # fmt: skip


def hostile_part(key: str = "alignment") -> ReportSection:
    """Every text that comes from outside is an attack on the page or on the file formats."""
    names = ("=cmd|'/C calc'!A0", HOSTILE[0], HOSTILE[2] + " $x_1$ \\ 50 % & #1 | `x` 中 é")
    return make_part(key, names, (*HOSTILE, "1. one"))
