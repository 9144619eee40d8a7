"""What a ranking finds: rankers' scores go in, rows come out, read back one ranker at a time.

Every number is a row of one of these analyses, keyed by `task`:

system           score, place (with its range over the resamples) and average_rank of a `system`
                 (of a control case: where it would stand among the real arguments); `group` holds
                 Nemenyi's letters of the real arguments
ranking          chi_square, p and critical_difference of one `ranker` over the real arguments;
                 controls_below (share of the control cases below all real arguments); average
                 (score over real arguments)
above            share_of_resamples in which `system` scores above `other`, ties counted half; p
                 that their scores are equal
agreement        tau_b and its p, spearman, tau_b_of_averages, top_1 of `ranker` and `other`
length_bias      rho of words and rank and its p, longest_first
self_preference  places by which a ranker ranks the generator `system` higher than the rankers
                 `other` do that are not `akin` to it, and p
trained          what training an evaluator took
task, argument   instances ranked; mean_words, verbatim and cut of what a `system` wrote
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, cast, get_args

import numpy as np

from judgebench.records import Estimate
from judgebench.results.part import Part, incomplete
from judgebench.results.rows import Results
from judgebench.results.shown import Shown
from judgebench.stats.arrays import FloatArray, IntArray

SystemKind = Literal["gold", "model", "control"]
RankerKind = Literal["baseline", "expert-trained", "llm-trained", "judge", "control", "humans"]
WRONG_CLAIMS = 0.05  # of studies in which a report claims what is not so, by kind of sentence
ONCE = "it was trained once, and another training may turn the order round"
_ASKED: Mapping[RankerKind, str] = {"judge": " (judge)", "control": " (control ranker)"}


@dataclass(frozen=True, slots=True)
class System:
    """Who wrote arguments: the experts (`gold`), a model, or a control case. The first two write
    real arguments, the primary ones of the paper."""

    name: str
    kind: SystemKind

    @property
    def is_argument(self) -> bool:
        """Whether what it writes are real arguments."""
        return self.kind != "control"


@dataclass(frozen=True)
class RankerScores:
    """One ranker's scores on one task, the input of every ranking.

    `values` is (instances, systems), higher is better and NaN is missing: the probability of the
    gold label (mean over draws), a judge's mean severity turned round to 0..1 with 1 the best, or
    minus the humans' mean rank. `correct` is (instances, systems), the share of draws that decide
    rightly with this argument, None for judges and humans; `trainings` is the same of each of them
    (draws, instances, systems), as `drawn` is the `values` of each. `clusters` (instances,) numbers
    the groups that are resampled whole. `systems` are names, in the order of the columns.
    """

    task: str
    ranker: str
    kind: RankerKind
    systems: tuple[str, ...]
    items: tuple[str, ...]
    clusters: IntArray
    values: FloatArray
    correct: FloatArray | None = None
    trainings: FloatArray | None = None
    n_missing: int = 0  # instances that were to be ranked and are not here
    drawn: FloatArray | None = None

    def but(self, draw: int, draws: int) -> FloatArray:
        """The values over the first so many draws but this one; all of a judge, or of one draw."""
        return np.asarray(
            self.values if self.drawn is None or draws < 2
            else np.delete(self.drawn[:draws], draw, axis=0).mean(axis=0)
        )  # fmt: skip

    @property
    def keys(self) -> dict[str, str]:
        """What its rows are found by."""
        return {"task": self.task, "ranker": self.ranker, "ranker_kind": self.kind}


@dataclass(frozen=True, slots=True)
class RankedTask:
    """One task of the ranking: how it is scored, which systems wrote, which labels are not
    ranked."""

    name: str
    title: str
    metric: str
    systems: tuple[System, ...]
    left_out: tuple[str, ...] = ()

    @property
    def metric_words(self) -> str:
        """`micro-F1`; an unknown metric by its own name."""
        return "micro-F1" if self.metric == "micro_f1" else self.metric

    @property
    def arguments(self) -> list[str]:
        """The systems that wrote real arguments."""
        return [system.name for system in self.systems if system.is_argument]

    @property
    def controls(self) -> list[str]:
        """The control cases."""
        return [system.name for system in self.systems if not system.is_argument]


@dataclass(frozen=True)
class OneRanking:
    """One ranker on one task, as its rows tell it: estimates by system in the order of their
    places, those of the whole ranking by statistic, and shares of resamples and p values by pair,
    both ways. `claims` is by how many rankers of the task a claim of this one is divided; `unsure`
    says why there is no p value and nothing is claimed."""

    task: str
    ranker: str
    kind: RankerKind
    scores: dict[str, Estimate] = field(default_factory=dict)
    places: dict[str, Estimate] = field(default_factory=dict)
    average_ranks: dict[str, Estimate] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    whole: dict[str, Estimate] = field(default_factory=dict)
    shares: dict[tuple[str, str], float] = field(default_factory=dict)
    p: dict[tuple[str, str], float | None] = field(default_factory=dict)
    controls: set[str] = field(default_factory=set)
    claims: int = 1
    unsure: str = ""

    @property
    def title(self) -> str:
        """The ranker's name, and for a judge that it is one."""
        return f"{self.ranker}{_ASKED.get(self.kind, '')}"

    @property
    def placed(self) -> dict[str, float]:
        """The systems that have a place, best first."""
        found = {s: e.value for s, e in self.places.items() if e.value is not None}
        return dict(sorted(found.items(), key=lambda pair: pair[1]))

    def clearly_above(self, upper: str, lower: str) -> bool:
        """Whether it may be claimed that the one ranks above the other.

        That the first of all ranks above every other one is one claim of a ranker, as is that all
        control cases rank below; that some control case ranks above some argument is one for each
        such pair (Bonferroni). Of a control ranker, which reads nothing, nothing is claimed.
        """
        p, place = self.p.get((upper, lower)), self.placed
        if self.kind == "control" or p is None or place[upper] >= place[lower]:
            return False
        misled = upper in self.controls
        pairs = len(self.controls) * (len(place) - len(self.controls)) if misled else 1
        return p * self.claims * pairs < WRONG_CLAIMS


@dataclass(frozen=True, repr=False)
class Rankings(Shown):
    """All that a ranking run finds; `rows` are described at the top of this module."""

    name: str
    tasks: tuple[RankedTask, ...]
    rows: Results
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @cached_property
    def part(self) -> Part:
        from judgebench.ranking.pages import rankings_part

        return incomplete(rankings_part(self), self.gaps)

    @cached_property
    def rankings(self) -> list[OneRanking]:
        """Every ranker of every task: evaluators first, then judges, humans last."""
        found: dict[tuple[str, str], OneRanking] = {}
        for row in self.rows:
            if row.analysis not in ("system", "ranking", "above"):
                continue
            kind = cast(RankerKind, row["ranker_kind"])
            ranking = OneRanking(row["task"], row["ranker"], kind)
            ranking = found.setdefault((ranking.task, ranking.ranker), ranking)
            system, other, e = row["system"], row["other"], row.estimate
            if row.analysis == "ranking":
                ranking.whole[row.statistic] = e
            elif row.analysis == "above" and row.statistic == "p":
                ranking.p[system, other] = ranking.p[other, system] = e.value
            elif row.analysis == "above" and e.value is not None:
                ranking.shares[system, other] = e.value
                ranking.shares[other, system] = 1 - e.value
            elif row.analysis == "system":
                by_system = {
                    "score": ranking.scores, "place": ranking.places,
                    "average_rank": ranking.average_ranks,
                }  # fmt: skip
                by_system[row.statistic][system] = e
                ranking.groups[system] = row["group"]
                if row["system_kind"] == "control":
                    ranking.controls.add(system)
        claiming = Counter(ranking.task for ranking in found.values() if ranking.kind != "control")
        unsure = {
            (r["task"], r["ranker"]): r.estimate.reason for r in self.rows.select("above", "p")
        }
        return [
            replace(ranking, claims=claiming[ranking.task], unsure=unsure.get(key, ""))
            for key, ranking in found.items()
        ]

    def of(self, task: str) -> list[OneRanking]:
        """The rankings of one task."""
        return [ranking for ranking in self.rankings if ranking.task == task]

    @property
    def titles(self) -> dict[str, str]:
        """Every ranker's name as it is shown: evaluators first, then judges, humans last."""
        order = get_args(RankerKind)
        ordered = sorted(self.rankings, key=lambda ranking: order.index(ranking.kind))
        return {ranking.ranker: ranking.title for ranking in ordered}

    def instances(self, task: str) -> int:
        """How many instances of a task were ranked."""
        return int(self.rows.find("instances", "task", task=task).value or 0)
