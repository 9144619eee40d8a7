"""How often a planned study suffices: worlds of decisions.py, with the data that a plan asks for.

A world whose studies are mostly clear is made smaller, by four, until enough of them end in CAN'T
TELL. Worlds without such studies are left out, and so are those whose judge must never replace
annotators. Each study is planned (`more_data`), as many further questions as the plan says are
drawn from the same world, and the larger study is decided. The plan promises that a share
`plan.chance` ends clear; reported is the share that does, the share that ends with the outcome that
the plan named, and how many times as large the planned study is as one that suffices: the smallest
of which a share SUFFICES ends clear when it is drawn afresh. The last column is the share of fresh
studies that end clear with as much as a plan may ask for at most: where that is small, the judge
lies close to the bar, and every plan is a mistake. First-pass filters are left out.

    python benchmarks/planning.py            # 150 plans a world, minutes
    python benchmarks/planning.py --quick    # 5 plans
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import partial

import numpy as np
from decisions import RULE, WORLDS, Draw, World, conditions, draw, settled, side_of, study

from judgebench.decisions.counts import StudyCounts
from judgebench.decisions.decide import plan_sample_size
from judgebench.decisions.decision import Condition, Outcome

PILOT = 20  # studies that show how often a world ends in CAN'T TELL
OFTEN = 0.3  # of the studies
SMALLEST = 40  # items
FRESH = 40  # studies of each size up to the largest that a plan may ask for
SUFFICES = 0.8  # of the fresh studies end clear
TIMES = np.geomspace(1, RULE.plan.most, 9)[1:]  # as many items as the pilot has
HEADS = (
    "world", "items", "unclear studies", "of these planned", "times as large (median)",
    "times the size that suffices (median)", "promised", "ended clear", "as named",
    f"{RULE.plan.most} times as large",
)  # fmt: skip
PATIENCE = 8  # studies drawn for each plan, at most


@dataclass
class Tally:
    """What became of a world's plans."""

    unclear: int = 0
    planned: int = 0
    clear: int = 0
    as_named: int = 0
    promised: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)  # how many times as large the study becomes
    times_enough: list[float] = field(default_factory=list)  # as large as one that suffices; or NaN
    fresh: int = 0
    fresh_clear: int = 0


def outcome_of(conditions: Sequence[Condition]) -> Outcome:
    """REPLACE, DO NOT USE or CAN'T TELL by what REPLACE requires of the labels."""
    states = {c.state.value for c in conditions}
    if states == {"met"}:
        return Outcome.REPLACE
    return Outcome.DO_NOT_USE if "not met" in states else Outcome.CANT_TELL


def decided(found: Draw, rng: np.random.Generator) -> tuple[StudyCounts, list[Condition]]:
    """The study's counts and its conditions."""
    side, bar = side_of(found)
    counts: StudyCounts = study(found, side, rng)
    return counts, conditions(found, side, bar, counts)


def joined(first: Draw, second: Draw) -> Draw:
    """Both as one study; no question is in both."""
    after = replace(second, clusters=second.clusters + first.clusters[-1] + 1)
    arrays = [f.name for f in fields(Draw) if isinstance(getattr(first, f.name), np.ndarray)]
    return replace(
        first, **{name: np.concatenate([getattr(d, name) for d in (first, after)])
                  for name in arrays},
    )  # fmt: skip


def run_world(world: World, plans: int, seed: int) -> tuple[World, Tally]:
    """The world at the size that was planned in, and what became of that many plans."""
    rng = np.random.default_rng([seed, *world.name.encode()])
    world = settled(world)
    while True:
        pilot = [decided(draw(world, world.items, rng), rng)[1] for _ in range(PILOT)]
        if sum(outcome_of(c) is Outcome.CANT_TELL for c in pilot) >= OFTEN * PILOT:
            return world, _planned(world, plans, rng)
        if world.items // 4 < SMALLEST:
            return world, Tally()
        world = replace(world, items=world.items // 4)


def _planned(world: World, plans: int, rng: np.random.Generator) -> Tally:
    chances = _fresh(world, rng)
    tally = Tally(fresh=FRESH, fresh_clear=round(FRESH * float(chances[-1])))
    enough = math.nan
    if chances[-1] >= SUFFICES:
        enough = float(np.interp(SUFFICES, [0, *chances], [1, *TIMES]))
    for drawn in range(PATIENCE * plans):
        if tally.unclear == plans:
            break
        first = draw(world, world.items, rng)
        counts, conditions = decided(first, rng)
        if outcome_of(conditions) is not Outcome.CANT_TELL:
            continue
        tally.unclear += 1
        more = plan_sample_size(counts, RULE, conditions, drawn)
        if more.items is None or more.clear is None:
            continue
        larger = joined(first, draw(world, _whole(world, more.items), rng))
        ends = outcome_of(decided(larger, rng)[1])
        tally.planned += 1
        tally.clear += ends is not Outcome.CANT_TELL
        tally.as_named += ends is more.towards
        tally.promised.append(more.clear)
        times = 1 + more.items / world.items
        tally.times.append(times)
        tally.times_enough.append(times / enough)
    return tally


def _fresh(world: World, rng: np.random.Generator) -> np.ndarray:
    """The share of fresh studies of each of the sizes TIMES that end clear, none less than that of
    a smaller one."""
    clear = np.zeros(len(TIMES))
    for _ in range(FRESH):
        largest = draw(world, _whole(world, world.items * RULE.plan.most), rng)
        for size, times in enumerate(TIMES):
            study = _first(largest, _whole(world, times * world.items))
            clear[size] += outcome_of(decided(study, rng)[1]) is not Outcome.CANT_TELL
    return np.maximum.accumulate(clear / FRESH)


def _first(found: Draw, items: int) -> Draw:
    """The study's first items."""
    arrays = [f.name for f in fields(Draw) if isinstance(getattr(found, f.name), np.ndarray)]
    return replace(found, **{name: getattr(found, name)[:items] for name in arrays})


def _whole(world: World, items: float) -> int:
    """As many items as whole questions have."""
    return math.ceil(items / world.a_question) * world.a_question


def table(results: Sequence[tuple[World, Tally]]) -> Iterator[str]:
    """A row for each world that was planned in, and one for those that can be settled and one for
    the others, in Markdown."""
    yield f"| {' | '.join(HEADS)} |"
    yield f"|---|{'--:|' * (len(HEADS) - 1)}"
    sums = {"that can be settled": Tally(), "that cannot": Tally()}
    for world, tally in results:
        if not tally.unclear:
            continue
        yield _row(world.name, f"{world.items:,}", tally)
        can = tally.fresh_clear >= SUFFICES * tally.fresh
        total = sums["that can be settled" if can else "that cannot"]
        for name, value in vars(tally).items():
            setattr(total, name, getattr(total, name) + value)
    for name, total in sums.items():
        if total.unclear:
            yield _row(f"**{name}**", "", total)


def _row(name: str, items: str, tally: Tally) -> str:
    n = tally.planned
    cells = [name, items, f"{tally.unclear:,}", _percent(n, tally.unclear)]
    if n:
        enough = np.median(tally.times_enough)  # NaN where no size suffices
        cells += [f"{np.median(tally.times):.1f}", "–" if np.isnan(enough) else f"{enough:.1f}"]
        cells += [f"{100 * np.mean(tally.promised):.0f} %"]
        cells += [_with_error(tally.clear, n), _with_error(tally.as_named, n)]
    else:
        cells += ["–"] * 5
    cells.append(_percent(tally.fresh_clear, tally.fresh))
    return f"| {' | '.join(cells)} |"


def _percent(count: int, of: int) -> str:
    return f"{100 * count / of:.0f} %" if of else "–"


def _with_error(count: int, n: int) -> str:
    """`81 ± 3 %`, with one standard error of so many draws."""
    p = count / n
    return f"{100 * p:.0f} ± {100 * math.sqrt(p * (1 - p) / n):.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plans", type=int, default=150, help="unclear studies a world")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--world", default="", help="only worlds whose name holds this")
    parser.add_argument("--quick", action="store_true", help="5 unclear studies a world")
    asked = parser.parse_args()
    plans = 5 if asked.quick else asked.plans
    worlds = [w for w in WORLDS if asked.world in w.name and not w.never]
    with ProcessPoolExecutor(asked.workers) as pool:
        results = list(pool.map(partial(run_world, plans=plans, seed=asked.seed), worlds))
    print(f"up to {plans} plans a world, seed {asked.seed}; promised is {RULE.plan.chance:.0%}\n")
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
