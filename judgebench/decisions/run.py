"""A study, a rule and the rows of a stress test in; a decision for each judge and metric out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judgebench.alignment.alignment import accuracies
from judgebench.alignment.caveats import collapsed, constant_note, maker_notes
from judgebench.alignment.compared import bar_lines, compared_with
from judgebench.decisions.bar import bar_rows, rare_labels
from judgebench.decisions.beside import alternative_tests, jury_rows
from judgebench.decisions.conditions import assist_conditions, stress_conditions
from judgebench.decisions.held import Held, Measured
from judgebench.decisions.outcome import outcome_of
from judgebench.decisions.plan import more_data
from judgebench.decisions.result import (
    Condition,
    Decision,
    Decisions,
    InCamp,
    MoreData,
    Outcome,
    TriageCurve,
)
from judgebench.decisions.rule import DecisionRule
from judgebench.decisions.triage import triage_curves
from judgebench.decisions.words import (
    IN_SIGHT,
    NO_QUESTIONS,
    NOT_KNOWN_BLIND,
    OF_ONE,
    camps_sentence,
    reason_for,
)
from judgebench.errors import Problem, SetupError
from judgebench.results.rows import Results
from judgebench.stats.intervals import look_levels
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.words import counted


def decide(
    study: Study,
    rule: DecisionRule = DecisionRule(),
    stress: Results | None = None,
    looks: Sequence[float] = (),
) -> Decisions:
    """Every decision with its conditions, triage, the value of a jury, the alternative test.

    `stress` are the rows of a stress test of the same judges. `looks` are the shares of the planned
    items at each look so far, this one last; none: this is the end. Raises SetupError where the
    rule names a metric or label that the rubric lacks, and where the shares do not rise.
    """
    rule.check(study.rubric)
    _check_names(study, rule)
    tried = _tried(study, rule)
    rule = rule.model_copy(update={"level": 1 - (1 - rule.level) / tried})
    final, rule = rule, _at_look(rule, looks)
    kind = rule.replace.humans.bar
    truths = {m: humans.truth_of(humans.trusted(kind)) for m, humans in study.humans.items()}
    curves = tuple(triage_curves(study, rule, truths.__getitem__))
    tests = alternative_tests(study, rule)
    beside = Results((*bar_rows(study, kind), *accuracies(study), *jury_rows(study), *tests))
    made = tuple(decisions(study, final, curves, stress, rule.level))
    return Decisions(
        study.name, study.rubric, rule, made, curves,
        beside, {judge.name: judge.kind for judge in study.judges if judge.kind != "control"},
        (*_look_note(rule, looks), *_notes(study, rule, stress, tried)),
        compared_with(study),
        tuple(bar_lines(study, kind, rule.independent)),
        study.gaps,
        tuple(collapsed(study).values()),
        study.config.blind == "yes",
    )  # fmt: skip


_PER_METRIC = 0.025  # false REPLACE by chance, of all candidates on one metric


def _at_look(rule: DecisionRule, looks: Sequence[float]) -> DecisionRule:
    """The rule with the level of the last of the looks. Stress tests gain nothing by more labels,
    and keep theirs."""
    try:
        level = look_levels(looks, rule.level)[-1] if looks else rule.level
    except ValueError as error:
        raise SetupError(Problem(str(error), field="looks")) from None
    return rule.model_copy(update={"level": level})


def _look_note(rule: DecisionRule, looks: Sequence[float]) -> Iterator[str]:
    if looks:
        yield (
            f"This is look {len(looks)}, at {100 * looks[-1]:.0f} % of the planned answers: its "
            f"intervals are of {100 * rule.level:.7g} %, so that a false REPLACE at any look stays "
            "as rare as at one look at the end. How much more data is needed is said for the end."
        )


def _check_names(study: Study, rule: DecisionRule) -> None:
    """Raises SetupError with every name of `independent` that is nobody's here."""
    judges = {judge.name for judge in study.judges if judge.kind != "control"}
    known = judges | {a for humans in study.humans.values() for a in humans.makers}
    allowed = ", ".join(sorted(known))
    problems = [
        Problem("is neither a judge nor an annotator here", "", None, "independent", name, allowed)
        for name in rule.independent
        if name not in known
    ]
    if problems:
        raise SetupError(problems)


def _tried(study: Study, rule: DecisionRule) -> int:
    """Of how many decisions the best must not be good by luck."""
    real = [judge for judge in study.judges if judge.kind != "control"]
    tried = rule.candidates or max(1, len(real))
    return tried * (len(study.rubric.metrics) if rule.family else 1)


def _notes(
    study: Study, rule: DecisionRule, stress: Results | None, tried: int = 1
) -> Iterator[str]:
    """What a reader of the decisions must not overlook."""
    yield from maker_notes(study)
    yield from constant_note(study)
    real = [judge for judge in study.judges if judge.kind != "control"]
    made = sum(judge.judges(metric) for judge in real for metric in study.rubric.metrics)
    if tried > 1:
        yield (
            f"{counted(tried, 'candidate')} for one place: intervals are of "
            f"{100 * rule.level:.4g} %, so that a false REPLACE of any of them is as rare as with "
            "one. To spend less, choose on one half of the questions and decide on the other."
        )
    if made and not study.knows_questions:
        yield f"{NO_QUESTIONS}."
    metrics = len(study.rubric.metrics)
    if made > 1 and metrics > 1 and not rule.family:
        yield (
            f"{metrics} metrics are decided, each with its own chance of error: up to "
            f"{_PER_METRIC * metrics:.2g} false REPLACE are expected by chance where no judge may "
            "replace anybody. `family: true` in the rule controls them together."
        )
    if made and stress is None:
        yield "There was no stress test: how the judges respond to altered answers is unknown."
    for metric in study.rubric.metrics if made else ():
        yield from rare_labels(study, metric, rule)


def decisions(
    study: Study, rule: DecisionRule, curves: Sequence[TriageCurve] = (),
    stress: Results | None = None, level: float | None = None,
) -> Iterator[Decision]:  # fmt: skip
    """One for each metric and each judge that is not a control judge, in that order.

    `level` is that of a look, and more data is planned for the rule's own: the end.
    """
    here = rule.model_copy(update={"level": level or rule.level})
    for metric in study.rubric.metrics:
        humans = study.humans[metric.id]
        bar, *camps = (
            Held(study, metric, here, names)
            for names in (humans.in_bar(rule.replace.humans.bar), *humans.camps)
        )
        for judge in study.judges:
            if judge.kind == "control" or not judge.judges(metric):
                continue
            about = (judge.name, metric.id, rule)
            stressed = tuple(stress_conditions(stress, *about))
            assist = assist_conditions(curves, *about) if metric.kind == "ordinal" else ()
            measured = bar.measure(judge, stressed)
            in_camps = tuple(_in_camp(camp, camp.measure(judge, stressed)) for camp in camps)
            guard = "", False
            if not measured.gate:
                guard = _guard(study, bar, judge, measured.conditions, in_camps)
            yield _decided(study, about, measured, assist, in_camps, guard)


def _guard(
    study: Study, bar: Held, judge: JudgeVerdicts, conditions: Sequence[Condition],
    camps: Sequence[InCamp],
) -> tuple[str, bool]:  # fmt: skip
    """Why the judge can neither replace nor assist, whatever its numbers; empty where it may. And
    whether it fails all the same: no guard saves it from that. Beside annotators who may be
    copies of each other it fails only by what does not rest on how often these agree."""
    if study.config.blind == "no":
        return f"{IN_SIGHT}: agreement with them shows nothing", _fails(conditions)
    if camps:
        fails = all(camp.outcome is Outcome.DO_NOT_USE for camp in camps)
        return camps_sentence(camps), fails
    if bar.copied:
        conditions = [c for c in conditions if not c.key.startswith(("humans_", "severe_gap"))]
    why = bar.copied or bar.derived(judge)
    if not why and not study.knows_questions and _replaces(conditions):
        why = NO_QUESTIONS
    return why, _fails(conditions)


def _replaces(conditions: Sequence[Condition]) -> bool:
    return outcome_of(conditions, ()) is Outcome.REPLACE


def _fails(conditions: Sequence[Condition]) -> bool:
    return outcome_of(conditions, ()) is Outcome.DO_NOT_USE


def _in_camp(camp: Held, found: Measured) -> InCamp:
    """Triage has no part in it: it rests on the truth of all."""
    outcome = Outcome.CANT_TELL if found.gate else outcome_of(found.conditions, ())
    return InCamp(camp.names, outcome, found.conditions)


def _decided(
    study: Study, about: tuple[str, str, DecisionRule], found: Measured,
    assist: tuple[Condition, ...], camps: tuple[InCamp, ...], guard: tuple[str, bool],
) -> Decision:  # fmt: skip
    judge, metric, rule = about
    if found.counts is None:
        return Decision(judge, metric, Outcome.CANT_TELL, f"{found.gate}.")
    guarded, fails = guard
    more, outcome = None, Outcome.DO_NOT_USE if guarded else outcome_of(found.conditions, assist)
    if why := found.gate or ("" if fails else guarded):
        more = MoreData(reason=f"Nothing to plan from: {why}")
        reason, numbers, outcome = f"{why}.", "", Outcome.CANT_TELL
    else:
        reason, numbers = reason_for(outcome, found.conditions, assist)
        reason = f"{reason} {guarded}." if guarded else reason
        if outcome is Outcome.REPLACE and study.config.blind == "unknown":
            reason += f" {NOT_KNOWN_BLIND}"
        if outcome is Outcome.ASSIST and not found.counts.pairs.any():
            reason += f" {OF_ONE}"
        numbers = f"{numbers} · {found.basis}"
    if outcome is Outcome.CANT_TELL and more is None:
        more = more_data(found.counts, rule, found.conditions, study.resampling.seed)
    return Decision(judge, metric, outcome, reason, numbers, found.conditions, assist, more, camps)
