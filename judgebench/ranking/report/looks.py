"""Which colour stands for which system: the same in every grid of a report."""

from __future__ import annotations

from judgebench.ranking.result import Rankings

# Okabe and Ito's colours, then Tol's muted ones; all are told apart with every common kind of
# colour blindness, and a name stands beside each. section.css holds the same.
ARGUMENTS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#332288",
    "#117733", "#882255", "#88ccee", "#999933",
)  # fmt: skip
CONTROLS = ("#d0d4d8", "#8d949b", "#eceef0", "#5d646b")


def system_steps(rankings: Rankings) -> dict[str, tuple[str, int]]:
    """For each system of any task `argument` or `control`, and which colour of these it has."""
    steps: dict[str, tuple[str, int]] = {}
    counts = {"argument": 0, "control": 0}
    sizes = {"argument": len(ARGUMENTS), "control": len(CONTROLS)}
    for task in rankings.tasks:
        for system in task.systems:
            kind = "argument" if system.is_argument else "control"
            if system.name not in steps:
                steps[system.name] = kind, counts[kind] % sizes[kind]
                counts[kind] += 1
    return steps


def colour(step: tuple[str, int]) -> str:
    """The colour of a step, as `#0072b2`."""
    kind, number = step
    return (ARGUMENTS if kind == "argument" else CONTROLS)[number]
