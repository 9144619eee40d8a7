"""A study, a rule and the rows of a stress test in; a decision for each judge and metric out.

How much more data would make a decision clear: larger studies are drawn from this one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.decisions.alone import not_alone
from judgebench.decisions.anchors import anchor_rows
from judgebench.decisions.conditions import (
    anchor_conditions,
    assist_conditions,
    findings,
    stress_conditions,
    triage_curves,
)
from judgebench.decisions.context import context_of
from judgebench.decisions.counts import StudyCounts
from judgebench.decisions.decision import (
    KINDS,
    Condition,
    Conditions,
    Decision,
    Decisions,
    MoreData,
    Outcome,
    ShareAlone,
    State,
    SubgroupDecision,
    TriageCurve,
    outcome_of,
)
from judgebench.decisions.guards import AnnotatorComparison, Blocker, Measured
from judgebench.decisions.promises import promises
from judgebench.decisions.rule import DecisionRule, Rule, rule_for
from judgebench.decisions.sentences import (
    AGREE_FIRST,
    IN_SIGHT,
    OF_ONE,
    Declaration,
    camps_sentence,
    reason_for,
    undeclared,
    without_groups,
)
from judgebench.errors import Problem, SetupError, some
from judgebench.protocol import load_protocol
from judgebench.records import SEVERAL, AnswerKind, Results
from judgebench.results.shown import Shown
from judgebench.runs.features import analyses
from judgebench.runs.from_tables import Tables, study_from, with_anchors
from judgebench.runs.open import Truth
from judgebench.stats.annotator_bar import BarKind
from judgebench.stats.arrays import FloatArray
from judgebench.stats.intervals import look_levels
from judgebench.studies.reference_labels import Labels
from judgebench.studies.study import ANCHORS, Humans, JudgeVerdicts, Study
from judgebench.text import counted, listed, percent

if TYPE_CHECKING:
    from judgebench.data.layout import Layout


_FEW = 50  # answers; from fewer, studies of another size are not simulated well
# Questions; from fewer, benchmarks/planning.py finds the simulated chance of a plan far too high.
_FEW_QUESTIONS = 20
_NOT_SURE = "whether that is enough, nobody can say from fewer than 20 questions"
_CELLS = 1 << 22  # of multiplicities drawn at once: 32 MiB


def plan_sample_size(
    counts: StudyCounts, rule: DecisionRule, conditions: Sequence[Condition], seed: int = 0
) -> MoreData:
    """The least number of further items with which a share `rule.plan.chance` of simulated studies
    ends clear: every condition met, or one failed.

    A larger study has more clusters like those there are: shares of the kinds of clusters are drawn
    by the Bayesian bootstrap (Rubin, 1981), so that what is not known of them counts, and then
    the clusters. Human labels for each item and failures are as frequent as now. What the labels
    cannot tell (robustness) is taken as it stands, and left out where it is open.
    """
    plan = _now(counts)
    if blocked := _blocked(counts, rule, conditions):
        return replace(plan, reason=blocked)
    others = _open_elsewhere(conditions)
    conditions = [c for c in conditions if c not in others]
    simulate = partial(_simulate, counts, rule, conditions, seed=seed)
    n_clusters = round(float(counts.how_many.sum()))
    too_few, enough = 0, n_clusters * (rule.plan.most - 1)
    share, towards = simulate(enough)
    plan = replace(plan, clear=share, towards=towards)
    if share < rule.plan.chance:
        return replace(plan, reason=_unsettled(counts, rule, share))
    while enough - too_few > max(1, n_clusters // 20):
        middle = (too_few + enough) // 2
        share, towards = simulate(middle)
        if share >= rule.plan.chance:
            enough, plan = middle, replace(plan, clear=share, towards=towards)
        else:
            too_few = middle

    def further(column: FloatArray) -> int:
        return math.ceil(enough / n_clusters * float(counts.how_many @ column))

    asked, severe = counts.asked[:, 0], counts.severe[:, 0]
    reason = _left_open(others)
    if n_clusters < _FEW_QUESTIONS:
        plan, reason = replace(plan, clear=None), "; ".join(filter(None, (_NOT_SURE, reason)))
    return replace(
        plan, items=further(asked), labels=further(counts.labels),
        severe=further(severe) if counts.has_severity else None,
        questions=further((asked > 0).astype(np.float64)), reason=reason,
    )  # fmt: skip


def _now(counts: StudyCounts, reason: str = "") -> MoreData:
    """What a decision rests on."""
    questions = round(float(counts.how_many @ (counts.asked[:, 0] > 0)))
    return MoreData(reason=reason, answers_now=counts.total_asked, questions_now=questions)


def _unsettled(counts: StudyCounts, rule: DecisionRule, share: float) -> str:
    """Say what to do where even the most data that is simulated leaves too many studies open."""
    if (n := counts.total_asked) < _FEW:
        few = counted(n, "answer")
        return f"label more and decide again: from {few}, nobody can say how many it takes"
    studies = (
        f"with {rule.plan.most} times as much data only {percent(share)} of simulated studies "
        "reach a decision"
    )
    better = "improve the judge"
    if counts.how_many @ counts.labels <= 2 * n:  # where two differ, nobody knows who is wrong
        better = f"have a third annotator label each answer, or {better}"
    if share > 0.5:
        return f"label many more, or {better}: {studies}"
    return f"{better}: labels alone may not settle it, because even {studies}"


def _blocked(counts: StudyCounts, rule: DecisionRule, conditions: Sequence[Condition]) -> str:
    """Say why no larger study can be simulated; empty where one can."""
    if counts.how_many.sum() < rule.questions:
        return f"fewer than {rule.questions} questions have human labels: too few to plan from"
    of_study = [c for c in conditions if KINDS[c.key].of_labels]
    if undefined := [c.estimate.reason for c in of_study if c.estimate.value is None]:
        return f"nothing to plan from: {undefined[0]}"
    return (
        ""
        if State.UNCLEAR in {c.state for c in of_study}
        else _left_open(_open_elsewhere(conditions))
    )


def _open_elsewhere(conditions: Sequence[Condition]) -> list[Condition]:
    """The conditions that are unclear and that no further human label would clear."""
    is_open = (c for c in conditions if c.state is State.UNCLEAR)
    return [c for c in is_open if not KINDS[c.key].of_labels]


def _left_open(others: Sequence[Condition]) -> str:
    """Say what human labels do not settle and what would; empty where they settle all."""
    parts = list(dict.fromkeys(c.estimate.reason for c in others if c.estimate.value is None))
    few = [c for c in others if c.estimate.value is not None]
    if few:
        titles = "; ".join(f"{c.title} ({c.missing})" if c.missing else c.title for c in few)
        parts.append(f"more human labels do not settle what other tests leave open: {titles}")
    return "; ".join(parts)


def _simulate(
    counts: StudyCounts, rule: DecisionRule, conditions: Sequence[Condition], further: int,
    seed: int,
) -> tuple[float, Outcome | None]:  # fmt: skip
    """The share of studies with `further` clusters more that end clear, and where most do."""
    kinds = counts.how_many
    rng = np.random.default_rng(seed)
    studies = max(20, min(rule.plan.studies, _CELLS // len(kinds)))
    shares = rng.dirichlet(kinds, size=studies)
    simulated = list(findings(counts, rule, kinds + rng.multinomial(further, shares)))
    keys = {finding.key for finding in simulated}
    fixed = {c.state for c in conditions if c.key not in keys}
    met = np.all([f.met for f in simulated], axis=0) & (fixed <= {State.MET})
    failed = np.any([f.not_met for f in simulated], axis=0) | (State.NOT_MET in fixed)
    towards = Outcome.REPLACE if met.mean() >= failed.mean() else Outcome.DO_NOT_USE
    clear = float((met | failed).mean())
    return clear, towards if clear > 0 else None


def decide_study(
    study: Study,
    rule: DecisionRule = DecisionRule(),
    stress: Results | None = None,
    looks: Sequence[float] = (),
) -> Decisions:
    """Every decision with its conditions and triage; what only a report shows is computed when it
    is shown.

    `stress` are the rows of a stress test of the same judges. `looks` are the shares of the planned
    items at each look so far, this one last; none: this is the end. Raises SetupError where the
    rule names a metric or label that the rubric lacks, and where the shares do not rise.
    """
    rule.check(study.rubric)
    _check_names(study, rule)
    # Of so many the best must not be good by luck.
    tried = rule.candidates or max(1, len(study.real_judges))
    tried *= len(study.rubric.metrics) if rule.family else 1
    rule = rule.model_copy(update={"level": 1 - (1 - rule.level) / tried})
    final, rule = rule, _at_look(rule, looks)
    kind = rule.replace.humans.bar
    truths = {m: _settled(humans, kind) for m, humans in study.humans.items()}
    curves = tuple(triage_curves(study, rule, truths))
    anchors = anchor_rows(study, rule) if ANCHORS in study.beside else Results()
    tested = Results((*(stress or ()), *anchors))
    made = tuple(decisions(study, final, curves, tested, rule.level))
    return Decisions(
        study.name, study.rubric, rule, made, curves,
        {judge.name: judge.kind for judge in study.real_judges},
        partial(context_of, study, rule, tried, looks, stress is not None),
        study.gaps, study.n_judged, study, anchors=anchors,
    )  # fmt: skip


def _settled(humans: Humans, kind: BarKind) -> Labels:
    """The labels that a filter is held against: adjudicated, and without one those of the bar."""
    truth, known = humans.truth_of(humans.trusted(kind)).copy(), humans.gold >= 0
    truth[humans.ratings.rows[known]] = humans.gold[known]
    return truth


def measure_decisions(study: Study, stress: Shown | None) -> Decisions | None:
    """Decide by the rule that stands beside the study, or the shipped one. None without human
    labels or a judge: then there is nothing to decide on, and a report is silent."""
    if not (study.n_labels and study.real_judges):
        return None
    given = study.beside.get
    return _decide_by(study, given("decide"), given("protocol"), stress)


def _decide_by(
    study: Study, rule: Rule | None, protocol: str | Path | None, stress: Shown | None,
    looks: Sequence[float] = (),
) -> Decisions:  # fmt: skip
    """Decide by a rule and at looks, else by those of a protocol; with what became of its
    promises."""
    written = load_protocol(protocol) if protocol else None
    if written and rule is None:
        rule = written.rule
    planned = (*written.looks, 1.0) if written and written.looks else ()
    chosen = rule_for(rule, study.rubric)
    decisions = decide_study(study, chosen, stress.results if stress else None, looks or planned)
    became = promises(written, study, chosen, looks) if written else ()
    return replace(decisions, promises=tuple(became))


def _at_look(rule: DecisionRule, looks: Sequence[float]) -> DecisionRule:
    """The rule with the level of the last of the looks. Stress tests gain nothing by more labels,
    and keep theirs."""
    try:
        level = look_levels(looks, rule.level)[-1] if looks else rule.level
    except ValueError as error:
        raise SetupError(Problem(str(error), field="looks")) from None
    return rule.model_copy(update={"level": level})


def _check_names(study: Study, rule: DecisionRule) -> None:
    """Raises SetupError with every name of `independent` that is nobody's here."""
    judges = {judge.name for judge in study.real_judges}
    known = judges | {a for humans in study.humans.values() for a in humans.makers}
    allowed = ", ".join(sorted(known))
    problems = [
        Problem("is neither a judge nor an annotator here", "", None, "independent", name, allowed)
        for name in rule.independent
        if name not in known
    ]
    if problems:
        raise SetupError(problems)


def decisions(
    study: Study, rule: DecisionRule, curves: Sequence[TriageCurve] = (),
    stress: Results | None = None, level: float | None = None,
) -> Iterator[Decision]:  # fmt: skip
    """One for each metric and each judge that is not a baseline, in that order.

    `stress` are the rows of a stress test and of anchors. `level` is that of a look, and more data
    is planned for the rule's own: the end.
    """
    here = rule.model_copy(update={"level": level or rule.level})
    for metric in study.rubric.metrics:
        humans = study.humans[metric.id]
        bar = AnnotatorComparison(study, metric, here, humans.in_bar(rule.replace.humans.bar))
        camps = [AnnotatorComparison(study, metric, here, names) for names in humans.camps]
        for judge in (judge for judge in study.real_judges if judge.judges(metric)):
            about = (judge.name, metric.id, rule)
            stressed = tuple(
                c
                for c in stress_conditions(stress, *about)
                if metric.kind == "ordinal" or c.key == "robustness"  # no label is good
            )
            if metric.has_severe and not metric.several:
                stressed += tuple(anchor_conditions(stress or Results(), *about))
            measured = bar.measure(judge, stressed)
            assist: Conditions = ()
            if metric.has_severe and not metric.several:
                assist = assist_conditions(curves, *about, measured.no_filter)
            in_camps = tuple(_in_camp(camp, camp.measure(judge, stressed)) for camp in camps)
            unclear = Decision(
                judge.name, metric.id, Outcome.CANT_TELL, "", replace=measured.conditions,
                assist=assist if measured.counts else (), camps=in_camps, groups=measured.groups,
                measure_alone=partial(_alone, bar, judge, measured, in_camps),
            )  # fmt: skip
            yield _decided(bar, judge, measured, unclear, rule)


def _in_camp(camp: AnnotatorComparison, measured: Measured) -> SubgroupDecision:
    """Triage has no part in it: it rests on the truth of all."""
    outcome = Outcome.CANT_TELL if measured.gate else outcome_of(measured.conditions, ())
    return SubgroupDecision(camp.names, outcome, measured.conditions)


def _decided(
    bar: AnnotatorComparison,
    judge: JudgeVerdicts,
    measured: Measured,
    unclear: Decision,
    rule: DecisionRule,
) -> Decision:
    """The decision with its outcome, once nothing stands in its way."""
    if measured.gate:
        return _stopped(unclear, measured.gate, measured)
    guard, fails = _guard(bar, judge, measured, unclear.camps)
    if guard and not fails:
        return _stopped(unclear, guard, measured)
    outcome = Outcome.DO_NOT_USE if guard else outcome_of(unclear.replace, unclear.assist)
    reason, numbers = reason_for(outcome, unclear.replace, unclear.assist)
    decision = replace(
        unclear, outcome=outcome, reason=reason, numbers=f"{numbers} · {measured.basis}"
    )
    assert measured.counts is not None
    if guard:
        decision = replace(decision, advice=f"{guard.why}. {guard.advice}")
        if all(c.state is not State.NOT_MET for c in unclear.replace):  # by each subgroup
            decision = replace(decision, reason=f"{guard.why}.", advice=guard.advice)
    elif outcome is Outcome.ASSIST and not measured.counts.pairs.any():
        decision = replace(decision, advice=OF_ONE)
    elif outcome is Outcome.CANT_TELL:
        plan = partial(_plan, measured, measured.counts, rule, bar.metric.of)
        decision = replace(decision, plan=plan, advice=_of_waiting(bar, judge))
    if decision.left_out:
        decision = replace(decision, reason=f"{reason} {without_groups(decision.left_out)}")
    missing = undeclared(bar.study, bar.humans.metric, outcome, measured.part)
    return _until_declared(decision, missing, measured.counts) if missing else decision


def _alone(
    bar: AnnotatorComparison,
    judge: JudgeVerdicts,
    measured: Measured,
    camps: Sequence[SubgroupDecision],
) -> ShareAlone:
    """How much the judge may decide alone; nothing where it could not replace annotators, whatever
    its numbers, or where what REPLACE waits for is not declared."""
    blocker = measured.gate or _guard(bar, judge, measured, camps)[0]
    if blocker or bar.metric.several:
        return not_alone(blocker.why if blocker else "several labels may be right")
    if missing := undeclared(bar.study, bar.metric, Outcome.REPLACE, measured.part):
        return not_alone(f"declare {listed([one.advice for one in missing])}")
    return bar.alone(judge, measured.part)


def _of_waiting(bar: AnnotatorComparison, judge: JudgeVerdicts) -> str:
    """Say that items with human labels wait for the judge: they need no more of these."""
    study, metric = bar.study, bar.metric
    waits = study.owed(judge, metric) & ~study.asked(judge, metric)
    n = int(waits[bar.rows].sum())
    others = f"{n:,} other {SEVERAL[metric.of]}"
    return f"Have the judge label the {others} that have human labels." if n else ""


def _stopped(unclear: Decision, why: Blocker, measured: Measured) -> Decision:
    plan = partial(MoreData, reason=f"Nothing to plan from: {why.why}") if measured.counts else None
    return replace(unclear, reason=f"{why.why}.", advice=why.advice, plan=plan)


def _guard(
    bar: AnnotatorComparison,
    judge: JudgeVerdicts,
    measured: Measured,
    camps: Sequence[SubgroupDecision],
) -> tuple[Blocker | None, bool]:
    """Say why the judge can neither replace nor assist, whatever its numbers; None where it may.
    And whether it fails all the same: no guard saves it from that. Beside annotators who may be
    copies of each other it fails only by what does not rest on how often these agree: copies seem
    to agree more than people can, overall and on the answers of each system."""
    conditions = measured.conditions
    if bar.study.config.blind == "no":
        return Blocker(*IN_SIGHT), _fails(conditions)
    if camps and not measured.gold:
        divided = Blocker(camps_sentence(camps), AGREE_FIRST)
        return divided, all(c.outcome is Outcome.DO_NOT_USE for c in camps)
    if bar.copied:
        conditions = tuple(c for c in conditions if not KINDS[c.key].of_agreement)
    return bar.copied or bar.derived(judge), _fails(conditions)


def _fails(conditions: Sequence[Condition]) -> bool:
    return outcome_of(conditions, ()) is Outcome.DO_NOT_USE


def _until_declared(d: Decision, missing: Sequence[Declaration], counts: StudyCounts) -> Decision:
    """The decision that waits for what is declared, and not labelled."""
    assumptions, declare = zip(*missing, strict=True)
    return replace(
        d, outcome=Outcome.CANT_TELL, would_be=d.outcome,
        reason=f"It would be {d.shown} if {listed(assumptions)}. {d.reason}",
        advice=f"Declare what is true: {'; '.join(declare)}. {d.advice}".rstrip(),
        plan=partial(_now, counts, "What is missing is declared, not labelled"),
    )  # fmt: skip


def _plan(
    measured: Measured, counts: StudyCounts, rule: DecisionRule, kind: AnswerKind
) -> MoreData:
    """The further data that would settle it: of adjudicated labels first those of what is at
    hand."""
    if measured.gold and (left := measured.gold.of - measured.gold.known):
        plan = MoreData(
            reason=f"Adjudicate the other {left:,} disagreements (`judgebench annotate draw "
            "disagreements`)",
            answers_now=counts.total_asked,
        )  # fmt: skip
    else:
        plan = plan_sample_size(counts, rule, measured.conditions)
    return replace(plan, of=kind)


def decide(
    study: Study | Tables | Layout,
    verdicts: Tables | None = None,
    rule: Rule | None = None,
    *,
    truth: Truth | None = None,
    columns: Mapping[str, Any] = {},
    looks: Sequence[float] = (),
    protocol: str | Path | None = None,
    anchors: Tables | None = None,
) -> Decisions:
    """Decide whether each judge can replace the annotators, assist them, or neither, metric by
    metric: of a study or a run folder, or of tables of labels and verdicts, which are
    understood as in `study`.

    `rule` is a YAML file, a shipped rule or a mapping with the keys of one, such as
    `{"replace": {"humans": {"margin": 0.1}}}`, and `truth` of tables as in `study`. `columns` names
    what cannot be guessed, such as the labels from the least to the most severe:
    `columns={"order": "Safe < Unsure < Unsafe"}`. Where the study has a stress test, it counts.

    Of a study that is not complete, `looks` are the shares of its planned answers that were
    labelled at each look so far, this one last: `looks=[0.33, 0.67]` is the second look. Early
    looks need clearer evidence.

    `anchors` is a table of labels of answers whose right label is known, as `judgebench annotate
    export` writes it: the right ones are those of the annotator `adjudicated`. These answers leave
    the study; what annotators and judges made of them is reported, and counts where the rule says
    so (`{"replace": {"anchors": 0.1}}`). Raises SetupError where the shares do not rise, up to 1,
    and where `anchors` has no known label.

    Of a `protocol` that a plan wrote, the decisions say in `promises` what became of it; its rule
    and its looks, up to the end, are taken where none are given.

    >>> import judgebench as jb
    >>> frame = jb.decide(jb.open_run("runs/small")).to_frame()
    >>> frame[frame.analysis == "decision"].outcome.to_list()
    ["CAN'T TELL", "CAN'T TELL", "CAN'T TELL"]
    """
    try:
        shares = [float(share) for share in looks]
    except (TypeError, ValueError):
        message = "give a list, the share of the planned answers at each analysis: [0.33, 0.67]"
        raise SetupError(Problem(message, field="looks", found=repr(looks))) from None
    study = study_from(study, verdicts, truth, columns)
    if not study.real_judges:
        message = "no judge to decide on: give a table of verdicts as well, or name its column "
        message += "with --column 'COLUMN=verdict' (in Python columns={'COLUMN': 'verdict'})"
        raise SetupError(Problem(message, found=f"annotators {some(study.makers)}"))
    if anchors is not None:
        study = with_anchors(study, anchors)
    found = analyses(study, "stress") if "stress" in study.beside else None
    return _decide_by(study, rule, protocol, found["stress"] if found else None, shares)
