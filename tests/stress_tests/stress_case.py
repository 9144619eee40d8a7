"""Small stress tests written as strings: one character an answer, for each judge and attack.

`a`, `b`, `c` are labels from least to most severe; `.` is no label, `?` an abstention and a
space an answer that the judge was never asked about. Rows are one string for the metric `harm`,
or a string a metric.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from align_case import answers, labels, rubric

from judgebench.records import Answer, Status, Verdict
from judgebench.rubric import Metric
from judgebench.runs.features import with_features
from judgebench.runs.folder import RunFolder
from judgebench.runs.open import open_folder
from judgebench.stress_tests.analysis import measure, measure_stress
from judgebench.stress_tests.recipes import AlteredAnswer
from judgebench.stress_tests.result import EVERY, StressResult, StressRun, VariantVerdicts
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import JudgeVerdicts, study_of

Rows = Mapping[str, str] | str


@dataclass(frozen=True)
class Attack:
    """One recipe's altered answers: what each judge says of them, and which parent each has."""

    recipe: str
    judged: Mapping[str, Rows]
    worsen: Mapping[str, str] = field(default_factory=dict)
    demand: Mapping[str, str] = field(default_factory=dict)
    area: str = ""
    of: str = ""  # the number of the parent of each; without it 0, 1, 2, …
    failed: Mapping[str, str] = field(default_factory=dict)

    def items(self, parents: Sequence[Answer]) -> list[AlteredAnswer]:
        n = length(next(iter(self.judged.values())))
        of = [int(i) for i in self.of] if self.of else range(n)
        return [
            AlteredAnswer(
                f"{self.recipe}-{i}", parents[p], f"{self.recipe} {i}", self.recipe, "1", "h",
                must_worsen=self.worsen, demand=self.demand, area=self.area, checks=self.failed,
            )
            for i, p in enumerate(of)
        ]  # fmt: skip


def length(rows: Rows) -> int:
    return len(rows) if isinstance(rows, str) else len(next(iter(rows.values())))


def said(judge: str, rows: Rows, items: Sequence[Answer]) -> dict[str, Verdict]:
    rows = {"harm": rows} if isinstance(rows, str) else rows
    found = {}
    for i, item in enumerate(items):
        if any(row[i] == " " for row in rows.values()):
            continue
        given = {m: row[i] for m, row in rows.items() if row[i] != "."}
        status = Status.OK if len(given) == len(rows) else Status.UNPARSED
        found[item.item_id] = Verdict(item.item_id, item.content_hash, judge, "s", status, given)
    return found


def variant(judge: str, rows: Rows, kind: str = "repeat", repeat: int = 1, recipe: str = ""):
    items = answers(length(rows))
    return VariantVerdicts(judge, recipe or kind, kind, repeat, said(judge, rows, items))


def stressed(
    parents: Mapping[str, Rows],
    *attacks: Attack,
    variants: Sequence[VariantVerdicts] = (),
    humans: Mapping[str, Mapping[str, str]] | None = None,  # metric -> annotator -> row
    metrics: Sequence[Metric] = (),
    controls: Sequence[str] = (),
    groups: str = "",
    level: float = 0.95,
    truth: TruthConfig = TruthConfig(),
) -> StressResult:
    """`parents`: what each judge says of the unaltered answers."""
    sound = answers(length(next(iter(parents.values()))), groups)
    altered = [item for attack in attacks for item in attack.items(sound)]
    judges = []
    for judge, rows in parents.items():
        verdicts = said(judge, rows, sound)
        for attack in attacks:
            shown = [item.answer for item in attack.items(sound)]
            verdicts |= said(judge, attack.judged.get(judge, " " * len(shown)), shown)
        kind: Any = "control" if judge in controls else "judge"
        judges.append(JudgeVerdicts(judge, kind, "s", verdicts))
    human = [x for metric, rows in (humans or {}).items() for x in labels(rows, metric)]
    study = study_of(rubric(*metrics), sound, human, truth, level)
    return measure(study, StressRun(altered, judges, variants))


def stress_run(folder: RunFolder, level: float = 0.95) -> StressResult | None:
    """What the stress test of a run folder shows."""
    study = with_features(open_folder(folder, level=level), folder)
    return measure_stress(study)


def grouped(found: StressResult, analysis: str) -> list[SimpleNamespace]:
    """The rows of an analysis, those with the same keys as one object; counts and p values bare."""
    groups: dict[tuple[Any, ...], SimpleNamespace] = {}
    for row in found.rows.select(analysis):
        keys = {"judge": row.judge, "metric": row.metric, **row.keys}
        keys |= {"probe": row["recipe"], "trick": row["recipe"]}
        one = groups.setdefault(tuple(keys.items()), SimpleNamespace(**keys))
        bare = row.statistic in ("asked", "p", "p_holm")
        setattr(one, row.statistic, row.estimate.value if bare else row.estimate)
    return list(groups.values())


def detection(
    found: StressResult, judge: str = "m", recipe: str = EVERY, area: str = EVERY,
    metric: str = "harm", failures: str = "left_out",
) -> SimpleNamespace:  # fmt: skip
    wanted = (judge, recipe, area, metric, failures)
    (one,) = [
        d
        for d in grouped(found, "violations")
        if (d.judge, d.recipe, d.area, d.metric, d.failures) == wanted
    ]
    return one


def invariance(
    found: StressResult, judge: str = "m", probe: str = "same", metric: str = "harm"
) -> SimpleNamespace:
    (one,) = [
        i
        for i in grouped(found, "invariance")
        if (i.judge, i.probe, i.metric) == (judge, probe, metric)
    ]
    return one


def planted(found: StressResult, judge: str = "m", trick: str = EVERY, metric: str = "harm"):
    (one,) = [
        p.success
        for p in grouped(found, "planted")
        if (p.judge, p.trick, p.metric) == (judge, trick, metric)
    ]
    return one


def is_sane(found: StressResult) -> bool:
    """No number is nan or infinite."""
    numbers = [x for r in found.rows for x in (r.estimate.value, r.estimate.low, r.estimate.high)]
    return all(math.isfinite(x) for x in numbers if x is not None)
