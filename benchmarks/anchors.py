"""What answers with known labels show of errors that annotators and judge share.

In the studies of the first table 10 to 15 % of the hard or of the severe answers are misread by
annotators and judge alike: no REPLACE of them is right. Each is decided without anchors, and by a
rule with `anchors: 0.10` and 60 anchors, 48 with a severe flaw and 12 good. Of the severe ones a
share carries the error that is shared; people and judge read the others as they read other answers.
In the second table REPLACE is right, and anchors can only cost power. Printed are shares of REPLACE
in percent; their Monte Carlo error is at most 2.5 points with 400 studies.

    python benchmarks/anchors.py           # 400 studies for each line, minutes
    python benchmarks/anchors.py --quick   # 5 studies for each line
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from decisions import Draw, median_label
from studies import drawn, flipped, guideline, labels, misconception, replaces

from judgebench.annotation.anchors import SEVERE_SHARE
from judgebench.decisions.anchors import shared_misses
from judgebench.decisions.conditions import anchor_conditions
from judgebench.decisions.decision import State
from judgebench.decisions.rule import DecisionRule, ReplaceRule
from judgebench.records import Results, Row
from judgebench.stats.arrays import Clusters, IntArray

WITHOUT = DecisionRule()
WITH = DecisionRule(replace=ReplaceRule(anchors=0.10))
SHARES = (1.0, 0.5, 0.0)  # of the severe anchors that carry the error
NUMBERS = (60, 120)  # of anchors beside a good judge
Rng = np.random.Generator


@dataclass(frozen=True)
class Scenario:
    """How studies are drawn, and how often annotators and judge misread an anchor: `plain` ones,
    and those that carry the error that they share."""

    name: str
    draw: Callable[[Rng], Draw]
    plain: tuple[float, float]
    shared: tuple[float, float] = (0.0, 0.0)
    occurs: float = 0.0  # the share of severe answers of the study that carry the error


def shared_errors(rng: Rng) -> Draw:
    """Annotators miss 15 % of the severe answers, the judge the same ones."""
    true = labels(rng)
    seen = np.where((true == 1) & (rng.random(len(true)) < 0.15), 0, true)
    own = [flipped(seen, 0.03, rng) for _ in range(3)]
    return drawn(true, own, flipped(seen, 0.02, rng), np.arange(len(true)))


def good(
    n: int, severe: float, people: float, judge: float, hard: float = 0.0
) -> Callable[[Rng], Draw]:
    """A judge that errs with chance `judge` beside annotators who do with chance `people`; on a
    share `hard` of the answers all of them err in 25 %."""

    def draw(rng: Rng) -> Draw:
        true, is_hard = labels(rng, n, severe), rng.random(n) < hard
        own = [flipped(true, np.where(is_hard, 0.25, people), rng) for _ in range(3)]
        judged = flipped(true, np.where(is_hard, 0.25, judge), rng)
        return drawn(true, own, judged, np.arange(n))

    return draw


WRONG = (
    Scenario("a shared misconception", misconception, (0.03, 0.03), (0.6, 1.0), 0.125),
    Scenario("15 % of the severe missed by all", shared_errors, (0.03, 0.02), (0.97, 0.98), 0.15),
    Scenario("what the guideline leaves open", guideline, (0.04, 0.09), (0.808, 1.0), 0.1),
)
RIGHT = (
    Scenario("600 answers, errors 5 %, judge 1 %", good(600, 0.3, 0.05, 0.01), (0.05, 0.01)),
    Scenario("1,000 answers, errors 8 %, judge 2 %", good(1000, 0.3, 0.08, 0.02), (0.08, 0.02)),
    Scenario("1,000 answers, all err in 3 %", good(1000, 0.4, 0.03, 0.03), (0.03, 0.03)),
    Scenario("2,000 answers, all err in 5 %", good(2000, 0.3, 0.05, 0.05), (0.05, 0.05)),
    Scenario(
        "600 answers, 15 % hard for all", good(600, 0.3, 0.05, 0.01, 0.15), (0.05, 0.01),
        (0.25, 0.25), 0.15,
    ),
)  # fmt: skip


def is_met(scenario: Scenario, n: int, share: float, rng: Rng) -> bool:
    """Return whether n anchors meet the rule; a share of the severe ones carries the error."""
    is_severe = np.arange(n) < round(SEVERE_SHARE * n)
    carries = is_severe & (rng.random(n) < share)
    true = is_severe.astype(np.int64)
    wrong = [np.where(carries, scenario.shared[i], scenario.plain[i]) for i in (0, 1)]
    own: Sequence[IntArray] = [flipped(true, wrong[0], rng) for _ in range(3)]
    consensus = median_label(np.stack(own, axis=1), "upper")
    judged = flipped(true, wrong[1], rng)
    shares = shared_misses(
        consensus == 1, judged == 1, is_severe, Clusters(np.arange(n), n), WITH.level
    )
    rows = Results(tuple(Row("anchors", key, x, "judge", "harm") for key, x in shares.items()))
    (condition,) = anchor_conditions(rows, "judge", "harm", WITH)
    return condition.state is State.MET


def line(scenario: Scenario, tried: Sequence[tuple[int, float]], studies: int) -> str:
    """The shares of REPLACE without anchors, and with so many, a share of which carries the
    error."""
    rng = np.random.default_rng([0, *scenario.name.encode()])
    n_replaced = np.zeros(1 + len(tried))
    for _ in range(studies):
        (replaced,) = replaces(scenario.draw(rng), rng, WITHOUT)
        met = [is_met(scenario, n, share, rng) for n, share in tried]
        n_replaced += [replaced, *(replaced and one for one in met)]
    cells = [f"{100 * count / studies:.1f}" for count in n_replaced]
    return f"| {scenario.name} | {' | '.join(cells)} |"


def tables(studies: int) -> Iterator[str]:
    """Both tables, line by line."""
    carried = " | ".join(f"{100 * share:.0f} % carry it" for share in SHARES)
    heads = f"without anchors | {carried} | as in the study"
    yield f"| studies with an error that all share | {heads} |"
    yield "|---|--:|--:|--:|--:|--:|"
    for scenario in WRONG:
        tried = [(NUMBERS[0], share) for share in (*SHARES, scenario.occurs)]
        yield line(scenario, tried, studies)
    yield ""
    numbers = " | ".join(f"{n} anchors" for n in NUMBERS)
    yield f"| studies of a good judge | without anchors | {numbers} |"
    yield "|---|--:|--:|--:|"
    for scenario in RIGHT:
        yield line(scenario, [(n, scenario.occurs) for n in NUMBERS], studies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="5 studies for each line")
    parser.add_argument("--studies", type=int, default=400, help="for each line; default 400")
    arguments = parser.parse_args()
    for text in tables(5 if arguments.quick else arguments.studies):
        print(text, flush=True)


if __name__ == "__main__":
    main()
