"""A study, a rule and the rows of a stress test in; a decision for each judge and metric out.

How much more data would make a decision clear: larger studies are drawn from this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from judgebench.alignment.alignment import accuracies
from judgebench.alignment.caveats import (
    bar_lines,
    collapsed,
    constant_note,
    headline,
    maker_notes,
    reference_labels,
)
from judgebench.decisions.beside import (
    alternative_tests,
    bar_rows,
    rare_labels,
)
from judgebench.decisions.conditions import assist_conditions, findings, stress_conditions
from judgebench.decisions.counts import StudyCounts
from judgebench.decisions.held import Held, Measured, Obstacle
from judgebench.decisions.kinds import KINDS
from judgebench.decisions.result import (
    Condition,
    Decision,
    Decisions,
    InCamp,
    MoreData,
    Outcome,
    State,
    TriageCurve,
    outcome_of,
)
from judgebench.decisions.rule import DecisionRule, rule_for
from judgebench.decisions.triage import triage_curves
from judgebench.decisions.words import (
    AGREE_FIRST,
    IN_SIGHT,
    OF_ONE,
    camps_sentence,
    reason_for,
    undeclared,
    without_groups,
)
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.results.rows import Results
from judgebench.results.shown import Shown
from judgebench.stats.arrays import FloatArray
from judgebench.stats.copies import BarKind
from judgebench.stats.intervals import look_levels
from judgebench.studies.labelled import MOST_GROUPS, population_notes
from judgebench.studies.study import Humans, JudgeVerdicts, Study
from judgebench.studies.truth import Labels
from judgebench.words import counted, listed, percent

_FEW = 50  # answers; from fewer, studies of another size are not simulated well
_CELLS = 1 << 22  # of multiplicities drawn at once: 32 MiB


def more_data(
    counts: StudyCounts, rule: DecisionRule, conditions: Sequence[Condition], seed: int = 0
) -> MoreData:
    """The least number of further items with which a share `rule.plan.chance` of simulated studies
    ends clear: every condition met, or one failed.

    A larger study has more clusters like those there are: shares of the kinds of clusters are drawn
    by the Bayesian bootstrap (Rubin, 1981), so that what is not known of them counts, and then
    the clusters. Human labels for each item and failures are as frequent as now. What the labels
    cannot tell (robustness) is taken as it stands.
    """
    answers, asked = counts.total_asked, counts.asked[:, 0] > 0
    questions = round(float(counts.how_many @ asked))
    now = MoreData(answers_now=answers, questions_now=questions)
    if blocked := _blocked(counts, rule, conditions):
        return replace(now, reason=blocked)
    clusters = round(float(counts.how_many.sum()))
    least, most = 0, clusters * (rule.plan.most - 1)
    share, towards = _simulate(counts, rule, conditions, most, seed)
    if share < rule.plan.chance:
        reason = _unsettled(counts, rule, share)
        return replace(now, clear=share, towards=towards, reason=reason)
    now = replace(now, clear=share, towards=towards)
    while most - least > max(1, clusters // 20):
        middle = (least + most) // 2
        share, towards = _simulate(counts, rule, conditions, middle, seed)
        if share >= rule.plan.chance:
            most, now = middle, replace(now, clear=share, towards=towards)
        else:
            least = middle
    factor = most / clusters
    totals = (counts.how_many @ x for x in (counts.asked[:, 0], counts.labels, counts.severe[:, 0]))
    items, labels, severe = (int(np.ceil(factor * total)) for total in totals)
    return replace(
        now, items=items, labels=labels, severe=severe if counts.has_severity else None,
        questions=int(np.ceil(factor * questions)),
    )  # fmt: skip


def _unsettled(counts: StudyCounts, rule: DecisionRule, share: float) -> str:
    """Say what to do where even the most data that is simulated leaves too many studies open."""
    answers = counts.total_asked
    if answers < _FEW:
        said = counted(answers, "answer")
        return f"label more and decide again: from {said}, nobody can say how many it takes"
    reach = "just under" if percent(share) == percent(rule.plan.chance) else "only"
    studies = (
        f"with {rule.plan.most} times as much data {reach} {percent(share)} of simulated studies "
        "reach a decision"
    )
    if share > 0.5:
        return f"label many more, or improve the judge: {studies}"
    agree = counts.annotator_pairs.sum() == counts.pairs.sum()  # on everything
    people = "" if agree else " or the agreement of the annotators"
    return f"improve the judge{people}: labels alone may not settle it, because even {studies}"


def _blocked(counts: StudyCounts, rule: DecisionRule, conditions: Sequence[Condition]) -> str:
    """Say why no larger study can be simulated; empty where one can."""
    if counts.how_many.sum() < rule.questions:
        return f"fewer than {rule.questions} questions have human labels: too few to plan from"
    of_study = [c for c in conditions if KINDS[c.key].of_labels]
    if undefined := [c.estimate.reason for c in of_study if c.estimate.value is None]:
        return f"nothing to plan from: {undefined[0]}"
    others = [c for c in conditions if c not in of_study and c.state is State.UNCLEAR]
    if others:
        told = "more human labels do not settle what the stress test leaves open"
        return f"{told}: {others[0].title}"
    return ""


def _simulate(
    counts: StudyCounts,
    rule: DecisionRule,
    conditions: Sequence[Condition],
    further: int,
    seed: int,
) -> tuple[float, Outcome | None]:
    """The share of studies with `further` clusters more that end clear, and where most do."""
    how_many = _larger(counts.how_many, further, rule.plan.studies, seed)
    found = list(findings(counts, rule, how_many))
    own = {finding.key for finding in found}
    fixed = [c for c in conditions if c.key not in own]
    met = np.all([f.met for f in found], axis=0) & all(c.state is State.MET for c in fixed)
    failed = np.any([f.not_met for f in found], axis=0)
    failed |= any(c.state is State.NOT_MET for c in fixed)
    towards = Outcome.REPLACE if met.mean() >= failed.mean() else Outcome.DO_NOT_USE
    clear = float((met | failed).mean())
    return clear, towards if clear > 0 else None


def _larger(how_many: FloatArray, further: int, studies: int, seed: int) -> FloatArray:
    """The number of clusters of each kind that larger studies hold: (studies, U)."""
    rng = np.random.default_rng(seed)
    studies = max(20, min(studies, _CELLS // len(how_many)))
    weights = rng.standard_gamma(how_many, size=(studies, len(how_many)))
    shares = weights / weights.sum(axis=1, keepdims=True)
    return how_many + rng.multinomial(further, shares).astype(np.float64)


def decide(
    study: Study,
    rule: DecisionRule = DecisionRule(),
    stress: Results | None = None,
    looks: Sequence[float] = (),
) -> Decisions:
    """Every decision with its conditions, triage, the alternative test.

    `stress` are the rows of a stress test of the same judges. `looks` are the shares of the planned
    items at each look so far, this one last; none: this is the end. Raises SetupError where the
    rule names a metric or label that the rubric lacks, and where the shares do not rise.
    """
    rule.check(study.rubric)
    _check_names(study, rule)
    tried = rule.candidates or max(
        1, len(study.real_judges)
    )  # of so many the best must not be good by luck
    tried *= len(study.rubric.metrics) if rule.family else 1
    rule = rule.model_copy(update={"level": 1 - (1 - rule.level) / tried})
    final, rule = rule, _at_look(rule, looks)
    kind = rule.replace.humans.bar
    truths = {m: _settled(humans, kind) for m, humans in study.humans.items()}
    curves = tuple(triage_curves(study, rule, truths.__getitem__))
    tests = alternative_tests(study, rule)
    beside = Results((*bar_rows(study, kind), *accuracies(study), *tests))
    made = tuple(decisions(study, final, curves, stress, rule.level))
    look_note = [
        f"This is interim analysis {len(looks)}, at {100 * share:.0f} % of the planned answers: "
        "its "
        f"intervals are of {100 * rule.level:.7g} %, so that a false REPLACE at any analysis stays "
        "as rare as with one at the end. How much more data is needed is said for the end."
        for share in looks[-1:]
    ]
    return Decisions(
        study.name, study.rubric, rule, made, curves,
        beside, {judge.name: judge.kind for judge in study.real_judges},
        (*look_note, *_notes(study, rule, stress, tried), *study.notes),
        reference_labels(study),
        tuple(bar_lines(study, kind, rule.independent)),
        study.gaps,
        tuple(collapsed(study).values()),
        study.config.blind,
        headline(study),
        study.n_judged,
        study,
    )  # fmt: skip


def _settled(humans: Humans, kind: BarKind) -> Labels:
    """The labels that a filter is held against: adjudicated, and without one those of the bar."""
    truth, known = humans.truth_of(humans.trusted(kind)).copy(), humans.gold >= 0
    truth[humans.ratings.rows[known]] = humans.gold[known]
    return truth


_PER_METRIC = 0.025  # false REPLACE by chance, of all candidates on one metric


def measure_decisions(study: Study, stress: Shown | None) -> Decisions | None:
    """Decide by the rule that stands beside the study, or the shipped one. None without human
    labels or a judge: then there is nothing to decide on, and a report is silent."""
    if not (study.n_labels and study.real_judges):
        return None
    rule = rule_for(study.beside.get("decide"), study.rubric)
    return decide(study, rule, stress.results if stress else None)


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
    raise_any(problems)


def _notes(study: Study, rule: DecisionRule, stress: Results | None, tried: int) -> Iterator[str]:
    """The caveats of the decisions."""
    yield from filter(None, [study.drawn.in_words()])
    yield from population_notes(study)
    drawn = (study.drawn.weight, study.drawn.probability)
    many = {c: n for c, x in study.cells.items() if (n := len({*x.tolist()})) > MOST_GROUPS}
    for column in (column for column in many if column not in drawn):
        yield f"{column} has {many[column]:,} values: no group of answers by it is looked at."
    yield from maker_notes(study)
    yield from constant_note(study)
    metrics = study.rubric.metrics
    made = sum(judge.judges(metric) for judge in study.real_judges for metric in metrics)
    if tried > 1:
        yield (
            f"{counted(tried, 'judge')} were tried: intervals are widened to "
            f"{100 * rule.level:.4g} %, so that the risk of a false REPLACE is no higher than "
            "with one. To lose less, choose on one half of the questions and decide on the other."
        )
    if made and not study.knows_questions:
        column = study.unconfirmed_question
        taken = f" (taken from the column {column})" if column else ""
        yield f"Nobody declared which items share a question{taken}: intervals may be too narrow."
    if made > 1 and len(metrics) > 1 and not rule.family:
        yield (
            f"{len(metrics)} metrics are decided, each with its own risk of a false REPLACE: the "
            f"risk of at least one is up to {min(100, 100 * _PER_METRIC * len(metrics)):g} %. "
            "`family: true` in the rule controls them together."
        )
    if made and stress is None:
        yield "There was no stress test: how the judges respond to altered answers is unknown."
    for metric in (metric for metric in metrics if made and not metric.several):
        yield from rare_labels(study, metric, rule)


def decisions(
    study: Study, rule: DecisionRule, curves: Sequence[TriageCurve] = (),
    stress: Results | None = None, level: float | None = None,
) -> Iterator[Decision]:  # fmt: skip
    """One for each metric and each judge that is not a baseline, in that order.

    `level` is that of a look, and more data is planned for the rule's own: the end.
    """
    here = rule.model_copy(update={"level": level or rule.level})
    for metric in study.rubric.metrics:
        humans = study.humans[metric.id]
        bar, *camps = (
            Held(study, metric, here, names)
            for names in (humans.in_bar(rule.replace.humans.bar), *humans.camps)
        )
        for judge in (judge for judge in study.real_judges if judge.judges(metric)):
            about = (judge.name, metric.id, rule)
            stressed = tuple(stress_conditions(stress, *about))
            sorts = metric.has_severe and not metric.several
            measured = bar.measure(judge, stressed)
            assist = assist_conditions(curves, *about, measured.no_filter) if sorts else ()
            in_camps = tuple(_in_camp(camp, camp.measure(judge, stressed)) for camp in camps)
            guard: tuple[Obstacle | None, bool] = None, False
            if not measured.gate:
                guard = _guard(study, bar, judge, measured, in_camps)
            decided = _decided(study, about, measured, assist, in_camps, guard)
            yield _with_rows_to_come(study, decided, judge, bar)


def _with_rows_to_come(study: Study, d: Decision, judge: JudgeVerdicts, bar: Held) -> Decision:
    """The decision, with the labelled answers on which the judge was not asked: they need no more
    human labels."""
    if d.more is None:
        return d
    waiting = int((~study.asked(judge, bar.metric)[bar.rows]).sum())
    return replace(d, more=replace(d.more, of=bar.metric.of, waiting=waiting))


def _guard(
    study: Study, bar: Held, judge: JudgeVerdicts, measured: Measured, camps: Sequence[InCamp],
) -> tuple[Obstacle | None, bool]:  # fmt: skip
    """Say why the judge can neither replace nor assist, whatever its numbers; None where it may.
    And whether it fails all the same: no guard saves it from that. Beside annotators who may be
    copies of each other it fails only by what does not rest on how often these agree: copies seem
    to agree more than people can, overall and on the answers of each system."""
    conditions = measured.conditions
    if study.config.blind == "no":
        return Obstacle(*IN_SIGHT), _fails(conditions)
    if camps and not measured.gold:
        divided = Obstacle(camps_sentence(camps), AGREE_FIRST)
        return divided, all(c.outcome is Outcome.DO_NOT_USE for c in camps)
    if bar.copied:
        conditions = tuple(c for c in conditions if not KINDS[c.key].of_agreement)
    return bar.copied or bar.derived(judge), _fails(conditions)


def _fails(conditions: Sequence[Condition]) -> bool:
    return outcome_of(conditions, ()) is Outcome.DO_NOT_USE


def _in_camp(camp: Held, found: Measured) -> InCamp:
    """Triage has no part in it: it rests on the truth of all."""
    outcome = Outcome.CANT_TELL if found.gate else outcome_of(found.conditions, ())
    return InCamp(camp.names, outcome, found.conditions)


def _decided(
    study: Study, about: tuple[str, str, DecisionRule], found: Measured,
    assist: tuple[Condition, ...], camps: tuple[InCamp, ...], guard: tuple[Obstacle | None, bool],
) -> Decision:  # fmt: skip
    judge, metric, rule = about
    guarded, fails = guard
    counts, conditions = found.counts, found.conditions
    made = Decision(judge, metric, Outcome.CANT_TELL, "", camps=camps, groups=found.groups)
    if stop := found.gate or (None if fails else guarded):
        made = replace(made, reason=f"{stop.why}.", advice=stop.advice)
        if counts is None:
            return made
        more = MoreData(reason=f"Nothing to plan from: {stop.why}")
        return replace(made, replace=conditions, assist=assist, more=more)
    assert counts is not None
    made = replace(made, replace=conditions, assist=assist)
    outcome = Outcome.DO_NOT_USE if guarded else outcome_of(conditions, assist)
    reason, numbers = reason_for(outcome, conditions, assist)
    advice = f"{guarded.why}. {guarded.advice}" if guarded else ""
    if guarded and all(c.state is not State.NOT_MET for c in conditions):
        reason, advice = f"{guarded.why}.", guarded.advice  # by each subgroup, and not by all
    if outcome is Outcome.ASSIST and not counts.pairs.any():
        advice = OF_ONE
    made = replace(made, outcome=outcome, advice=advice, numbers=f"{numbers} · {found.basis}")
    if made.left_out:
        reason = f"{reason} {without_groups(made.left_out)}"
    if outcome is Outcome.CANT_TELL:
        made = replace(made, more=_more(found, counts, rule))
    if missing := undeclared(study, study.humans[metric].metric, outcome, found.part):
        assumptions, declare = zip(*missing, strict=True)
        reason = f"It would be {made.shown} if {listed(assumptions)}. {reason}"
        advice = f"Declare what is true: {'; '.join(declare)}. {advice}".rstrip()
        questions = round(float(counts.how_many @ (counts.asked[:, 0] > 0)))
        more = MoreData(
            reason="What is missing is declared, not labelled",
            answers_now=counts.total_asked, questions_now=questions,
        )  # fmt: skip
        made = replace(made, outcome=Outcome.CANT_TELL, would_be=outcome, advice=advice, more=more)
    return replace(made, reason=reason)


def _more(found: Measured, counts: StudyCounts, rule: DecisionRule) -> MoreData:
    """The further data that would settle it: of adjudicated labels first those of what is at
    hand."""
    if found.gold and (left := found.gold.of - found.gold.known):
        return MoreData(
            reason=f"Adjudicate the other {left:,} disagreements (`judgebench annotate draw "
            "disagreements`)",
            answers_now=counts.total_asked,
        )  # fmt: skip
    return more_data(counts, rule, found.conditions)
