"""What a stress test found: rows of numbers, and the violations that judges missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from judgebench.records import Estimate, Verdict
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.rubric import Metric, Rubric
from judgebench.stress_tests.probes.altered import AlteredAnswer
from judgebench.studies.study import JudgeKind

EVERY = "all"  # as a recipe, an area or a metric: all of them together
NOT_MEASURED = Estimate(None, reason="not measured for this judge")


@dataclass(frozen=True)
class Miss:
    """A violation that at least one real judge did not detect, with every judge's verdicts."""

    item: AlteredAnswer
    missed_by: tuple[str, ...]
    verdicts: Mapping[str, Verdict]  # judge -> verdict on the violation; controls left out
    of_parent: Mapping[str, Verdict]  # judge -> verdict on the sound parent


@dataclass(frozen=True)
class RecipeSummary:
    """One recipe or set in one run: what it made, and what became of it."""

    name: str
    version: str
    hash: str
    about: str
    bias: str
    kind: str  # violations, invariance, planted, asked otherwise
    made: int  # items that count
    nothing_to_change: int = 0  # parents the rule found nothing to change in
    # check -> how many items failed it (an item may fail several)
    rejected: Mapping[str, int] = field(default_factory=dict)
    n_rejected: int = 0
    undecided: int = 0  # items that nobody has accepted, where only accepted ones count

    def rows(self) -> Iterator[Row]:
        """Its counts as rows of the results table."""
        counts = {
            "made": self.made, "nothing_to_change": self.nothing_to_change,
            "rejected": self.n_rejected, "undecided": self.undecided,
        }  # fmt: skip
        for statistic, n in counts.items():
            yield Row("recipe", statistic, Estimate(n), keys={"recipe": self.name})
        for check, n in self.rejected.items():
            keys = {"recipe": self.name, "who": check}
            yield Row("recipe", "rejected_by_check", Estimate(n), keys=keys)


@dataclass(frozen=True, repr=False)
class StressResult(Shown):
    """Everything that a stress test shows. The rows, by their `analysis`, for each judge:

    - `violations`, of one `recipe`, `area` and metric (or EVERY), each beside its own parent.
      `detected` is the share of verdicts at least as severe as `label` (empty where it differs
      between items), `false_alarms` the share of parents judged so too, `told_apart` that of pairs
      with a detection and no false alarm, `advantage` the detection rate minus the false alarm
      rate, `worsened` the share of pairs whose violation is judged more severe than its parent: a
      judge that gives one label to everything has 0 of the last three. `more_needed` counts
      further violations until the exact interval of `detected` is no wider than wished.
      `failures` says how missing labels are counted.
    - `invariance`, of one `recipe` that must not move a verdict, on one metric (or EVERY, where a
      pair is the same only if all metrics are). `flipped` is the share of pairs whose label
      differs, `robustness` 1 minus that, the robustness rate of Ye et al. (2024); `shift` is the
      mean change of severity, `p` of an exact sign test on the direction of the shifts, cluster by
      cluster, and `p_holm` corrected over the judge's probes on the metric.
    - `planted`, of one trick as `recipe` (or EVERY): `success` is the share of items on which it
      got what it asks for, of those where the judge had not said so. For EVERY metric: on at
      least one.
    - `consistency` of a judge that was `asked` the same so often: `agreement` is the share of
      pairs of an item's verdicts that are equal, `majority_gain` the accuracy of the majority
      minus that of the first verdict.
    - `halo`: the mean `correlation` over pairs of metrics of the labels of `who` (`one pass`, `per
      metric` or `humans`) on the same items; `beyond_humans` is it minus that of the humans.
    """

    presented_by = "judgebench.stress_tests.part:stress_part"

    rubric: Rubric
    judges: Mapping[str, JudgeKind]
    rows: Results
    recipes: tuple[RecipeSummary, ...] = ()
    misses: tuple[Miss, ...] = ()
    n_misses: int = 0  # of which `misses` lists the first
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def real_judges(self) -> list[str]:
        """The names of judges and juries, without the controls."""
        return [name for name, kind in self.judges.items() if kind != "control"]

    @property
    def demanded_metrics(self) -> list[Metric]:
        """The metrics that some violation must worsen, in the rubric's order."""
        demanded = set(self.rows.values("metric", "violations"))
        return [metric for metric in self.rubric.metrics if metric.id in demanded]

    def number(self, analysis: str, statistic: str, **keys: str) -> Estimate:
        """One number of a judge, undefined with a reason where it was not measured."""
        found = self.rows.select(analysis, statistic, **keys)
        return found[0].estimate if found else NOT_MEASURED

    def violations(self, statistic: str, **keys: str) -> Estimate:
        """One number of the violations: of all recipes and areas, failures left out, unless
        `keys` say otherwise."""
        usual = {"recipe": EVERY, "area": EVERY, "failures": "left_out"}
        return self.number("violations", statistic, **{**usual, **keys})
