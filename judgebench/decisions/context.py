"""What stands beside decisions and decides nothing: who sets the bar, accuracies, the Alternative
Annotator Test, caveats. It is computed when it is shown.

By itself the test is passed by a judge that always gives the common label: its guard is a paired
test against every baseline. docs/decide_alternative_test.md shows the trap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from judgebench.alignment.analysis import accuracies
from judgebench.alignment.notes import (
    bar_lines,
    collapsed,
    constant_note,
    headline,
    improbable_labels,
    maker_notes,
    reference_labels,
    reversed_labels,
)
from judgebench.alignment.raters import Outcomes
from judgebench.decisions.counts import estimable
from judgebench.decisions.decision import Context
from judgebench.decisions.rule import DecisionRule
from judgebench.records import Estimate, Results, Row, is_slot
from judgebench.rubric import Metric
from judgebench.stats.annotator_bar import BarKind, gap
from judgebench.stats.arrays import value_counts
from judgebench.stats.intervals import SMOOTHED_T
from judgebench.stats.paired_tests import (
    DuelTerms,
    alternative_annotator_test,
    average_advantage,
    mcnemar_clustered,
)
from judgebench.studies.answers import text_lengths
from judgebench.studies.study import MOST_GROUPS, JudgeVerdicts, Study, population_notes
from judgebench.text import counted, listed, percent

_PER_METRIC = 0.025  # false REPLACE by chance, of all candidates on one metric


def context_of(
    study: Study, rule: DecisionRule, tried: int, shares: Sequence[float], stressed: bool
) -> Context:
    """What stands beside the decisions by a rule, at its level: of the best of so many judges that
    were `tried`, at the last of these `shares` of the planned answers."""
    kind = rule.replace.humans.bar
    rows = (*bar_rows(study, kind), *accuracies(study), *alternative_tests(study, rule))
    notes = (
        *_level_notes(rule, tried, shares),
        *filter(None, [study.drawn.in_words()]),
        *population_notes(study),
        *maker_notes(study),
        *constant_note(study),
        *_decision_notes(study, rule, stressed),
        *study.notes,
    )
    return Context(
        Results(rows), headline(study), reference_labels(study),
        tuple(bar_lines(study, kind, rule.independent)), study.config.blind,
        study.drawn.in_words(), notes,
        (
            *collapsed(study).values(), *improbable_labels(study), *reversed_labels(study),
            *_mostly_severe(study, rule), *_without_texts(study),
        ),
    )  # fmt: skip


def _level_notes(rule: DecisionRule, tried: int, shares: Sequence[float]) -> Iterator[str]:
    """Why intervals are wider than those of one judge at the end of a study."""
    if shares:
        outside = float(f"{100 - 100 * rule.level:.2g}")  # so that 99.99989 % is not 100 %
        yield (
            f"This is interim analysis {len(shares)}, at {100 * shares[-1]:.0f} % of the planned "
            f"answers: its intervals are of {100 - outside:.9g} %, so that a false REPLACE at "
            "any analysis stays as rare as with one at the end. How much more data is needed is "
            "said for the end."
        )
    if tried > 1:
        yield (
            f"{counted(tried, 'judge')} were tried: intervals are widened to "
            f"{100 * rule.level:.4g} %, so that the risk of a false REPLACE is no higher than "
            "with one. To lose less, choose on one half of the questions and decide on the other."
        )


def _decision_notes(study: Study, rule: DecisionRule, stressed: bool) -> Iterator[str]:
    """The caveats of what was not declared, tested or looked at."""
    drawn, metrics = (study.drawn.weight, study.drawn.probability), study.rubric.metrics
    for column, texts in study.cells.items():
        if column not in drawn and (n := len({*texts.tolist()})) > MOST_GROUPS:
            yield f"{column} has {n:,} values: no group of answers by it is looked at."
    n_decided = sum(judge.judges(metric) for judge in study.real_judges for metric in metrics)
    if not n_decided:
        return
    if not study.knows_questions:
        column = study.unconfirmed_question
        taken = f" (taken from the column {column})" if column else ""
        yield f"Nobody declared which items share a question{taken}: intervals may be too narrow."
    if n_decided > 1 and len(metrics) > 1 and not rule.family:
        yield (
            f"{len(metrics)} metrics are decided, each with its own risk of a false REPLACE: the "
            f"risk of at least one is up to {min(100, 100 * _PER_METRIC * len(metrics)):g} %. "
            "`family: true` in the rule controls them together."
        )
    if not stressed:
        yield "There was no stress test: how the judges respond to altered answers is unknown."
    for metric in (metric for metric in metrics if not metric.several):
        yield from rare_labels(study, metric, rule)


def rare_labels(study: Study, metric: Metric, rule: DecisionRule) -> Iterator[str]:
    """Name the labels that are too rare for balanced agreement, and what to do about it."""
    humans, severe_from = study.humans[metric.id], rule.severe_index(metric)
    truth = humans.truth_of(humans.trusted(rule.replace.humans.bar))
    labelled = np.flatnonzero(truth >= 0)
    by_question = study.clusters[labelled].table(truth[labelled], len(metric.labels))
    questions = np.count_nonzero(by_question, axis=0)
    is_rare = (questions > 0) & ~estimable(questions, rule.rare, severe_from)
    for label in np.flatnonzero(is_rare).tolist():
        yield (
            f'{metric.title}: "{metric.label_texts[label]}" is the reference label of '
            f"{by_question[:, label].sum():.0f} of {len(labelled):,} answers, too few to estimate "
            "agreement on it: it counts in plain and not in balanced agreement. If it is no "
            "judgement, list it under `abstain` in the rubric."
        )


def _mostly_severe(study: Study, rule: DecisionRule) -> Iterator[str]:
    """A sentence on each metric with more severe reference labels than others, as it has where the
    order of the labels is given the wrong way round."""
    for metric in study.rubric.metrics:
        truth, severe_from = study.humans[metric.id].truth, rule.severe_index(metric)
        known = truth[truth >= 0]
        share = 0.0 if severe_from is None or not len(known) else (known >= severe_from).mean()
        if share > 0.5:
            severe = listed([*map(repr, metric.label_texts[severe_from:])])
            yield (
                f"{percent(share)} of the reference labels of {metric.title} count as severe "
                f"({severe}): does the order go from the least to the most severe label?"
            )


def _without_texts(study: Study) -> Iterator[str]:
    """A sentence where no text of an answer is known, and so no baseline could use one."""
    if not any(text_lengths(study.answers)):
        yield (
            "No baseline by the length of answers was tried, as no table has their texts: a judge "
            "may lead only because of that. Give the table of the answers as well (in Python "
            "`answers=` of `jb.study`), or of `judgebench annotate` the folder of the study."
        )


def bar_rows(study: Study, kind: BarKind) -> Iterator[Row]:
    """`gap`: how much more often an annotator, or a judge, agrees with those in the bar than these
    agree with each other on the same items. `weight`: how much a label of an annotator counts in
    the bar, 1 for one of average weight; nothing where each of two is a bar by themselves.

    Nothing for places in a list, which are nobody in particular.
    """
    for metric in study.rubric.metrics:
        humans = study.humans[metric.id]
        if humans.has_places:
            continue
        bar, labels = humans.bar(kind), humans.made.values
        for a, name in enumerate(humans.makers):
            limits = (bar.gap.value[a], bar.gap.low[a], bar.gap.high[a])
            keys = {"who": name, "in_bar": "yes" if bar.kept[a] else "no"}
            n = (labels[:, a] >= 0).sum()
            yield Row("bar", "gap", _estimate(limits, n), "", metric.id, keys)
            if len(bar.weights) == 1:
                weight = Estimate(float(bar.weights[0, a]), n=int(n))
                yield Row("bar", "weight", weight, "", metric.id, keys)
        in_bar = humans.ratings.of(humans.in_bar(kind))
        votes = value_counts(in_bar.values, len(metric.labels))
        for judge in study.real_judges:
            judged = study.judged(judge, metric)[in_bar.rows]
            limits = gap(judged, False, votes, humans.clusters)
            yield Row("bar", "gap", _estimate(limits, (judged >= 0).sum()), judge.name, metric.id)


def _estimate(limits: tuple[float, float, float], n: int) -> Estimate:
    if np.isnan(limits[0]):
        return Estimate(None, n=n, reason="no item has labels of two others")
    value, low, high = map(float, limits)
    return Estimate(value, low, high, SMOOTHED_T, int(n))


def alternative_tests(study: Study, rule: DecisionRule) -> Iterator[Row]:
    """The test of Calderon et al. (2025) for each judge that is not a control, metric by metric.

    Of all annotators who make the truth, in the bar or not, and with the paper's scores, the share
    of equal labels and, where the metric is ordinal, minus the root mean square distance of
    severities. Places in a list (`crowd#3`) are not people and are left out.

    `winning_rate` is the share of the tested annotators that the judge is as good as, `passes` what
    the test alone says, `guarded` that the judge also beats every control. `advantage` is the
    average advantage probability; its interval is over whole questions. The t test takes items as
    independent, as in the paper.
    """
    for metric in study.rubric.metrics:
        right = Outcomes(study, metric)
        for judge in study.real_judges:
            for statistic, estimate in _test(study, metric, judge, rule, right):
                yield Row("alternative_test", statistic, estimate, judge.name, metric.id)


def _test(
    study: Study, metric: Metric, judge: JudgeVerdicts, rule: DecisionRule, right: Outcomes
) -> Iterator[tuple[str, Estimate]]:
    humans, k = study.humans[metric.id], len(metric.labels)
    names = [name for name in humans.makers if not is_slot(name)]
    asked = study.asked(judge, metric)[humans.ratings.rows]
    ratings = humans.ratings.of(names).values[asked]
    judged = study.judged(judge, metric)[humans.ratings.rows[asked]]
    severities = metric.severities if metric.kind == "ordinal" else None
    terms = DuelTerms(rule.alternative_test.epsilon, severities=severities)
    test = alternative_annotator_test(ratings, judged, k, terms)
    advantage = average_advantage(ratings, judged, humans.clusters[asked], k, terms, study.level)
    reasons, unbeaten = [test.reason], ""
    if len(names) == 2:
        reasons.append("with two annotators there is no consensus to be close to")
    if test.passes:
        unbeaten = _unbeaten(study, judge, right, rule.alternative_test.guard)
        reasons.append(unbeaten)
    # A judge that fails the test is neither saved nor left open by a control that is missing.
    is_open = test.passes and not study.controls
    guarded = None if is_open else test.passes and not unbeaten
    reason = "; ".join(filter(None, reasons))
    for statistic, number in (
        ("epsilon", rule.alternative_test.epsilon), ("annotators", test.tested),
        ("winning_rate", test.winning_rate), ("advantage", advantage), ("passes", test.passes),
        ("guarded", guarded),
    ):  # fmt: skip
        if not isinstance(number, Estimate):
            number = Estimate(None if number is None else float(number), reason=reason)
        yield statistic, number


def _unbeaten(study: Study, judge: JudgeVerdicts, right: Outcomes, level: float) -> str:
    """Say which baselines the judge is not shown to be more accurate than, on the items that both
    labelled; empty where it beats each."""
    if not study.controls:
        return "there is no baseline to beat"
    p = {c.name: mcnemar_clustered(*right.apart(judge.name, c.name), "greater")
         for c in study.controls}  # fmt: skip
    unbeaten = [name for name, chance in p.items() if chance is None or chance > level]
    return f"not shown to be more accurate than {', '.join(unbeaten)}" if unbeaten else ""
