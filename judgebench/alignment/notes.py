"""Caveats: what was compared, who makes the truth by which rule and who is left out of the bar,
and what a reader of the tables must not overlook, one sentence each.

`check`, `align` and `decide` all say it in the sentences of this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from judgebench.judges.replies import charged_notes
from judgebench.records import SEVERAL, Results, group_by_key, is_slot
from judgebench.rubric import Metric
from judgebench.stats.annotator_bar import BarKind, Copy, collapsed_label
from judgebench.stats.arrays import IntArray, value_counts
from judgebench.stats.consensus import MOST_ITERATIONS, why_no_model
from judgebench.stats.intervals import FEW_CLUSTERS, MIN_CLUSTERS
from judgebench.stats.ranks import spearman
from judgebench.studies.reference_labels import truth_model
from judgebench.studies.study import MAJORITY, Humans, JudgeVerdicts, Study, population_notes
from judgebench.studies.verdicts import replaced, suspects, suspicions
from judgebench.text import counted, listed, percent

MOST_NAMED = 12
BLIND = {
    "yes": "the annotators labelled without seeing a judge's labels",
    "no": "the annotators saw a judge's labels before they labelled",
    "unknown": "not known whether annotators saw a judge's labels",
}
_BARS = {"typical": "", "average": ", who all count the same", "best": ", the best most of all"}
_MOST = 8  # annotators of a bar that are named
_LOOKED_AT = 20  # clusters that tell whether each is one question
_ROUNDING, _MIN_OTHERS = 1e-3, 10  # of probabilities; labels that are not the most probable
_MANY_AGREED = 30  # items on which no two annotators differ, which asks for a reason
_REVERSED = -3.5  # ρ √n, which is about standard normal where nothing is correlated
_COPIED = "one of them may be copied"


def rows_in_words(study: Study) -> list[str]:
    """`66 answers`; where metrics are about others too, `6 answers`, `15 pairs`."""
    about = {metric.of: study.n_about(metric) for metric in study.rubric.metrics}
    return [counted(n, kind, SEVERAL[kind]) for kind, n in about.items()]


def headline(study: Study) -> str:
    """`xstest · 2,250 answers to 450 questions · 300 labelled · 2 annotators · 1 metric`; of all
    that are labelled nothing is said."""
    makers = named(study.makers, judge_names(study))
    if not any(map(is_slot, study.makers)):
        makers = [counted(len(study.makers), "annotator")]
    metrics = counted(len(study.rubric.metrics), "metric")
    parts = [study.name, size_in_words(study), listed(makers), metrics]
    n_labelled = len({*np.concatenate([h.ratings.rows for h in study.humans.values()]).tolist()})
    if 0 < n_labelled < len(study.answers):
        parts.insert(2, f"{n_labelled:,} labelled")
    return " · ".join(parts)


def size_in_words(study: Study) -> str:
    """`2,250 answers to 450 questions`; to groups where a cluster holds several questions."""
    rows = np.flatnonzero(study.clusters.codes < _LOOKED_AT)[: 10 * _LOOKED_AT].tolist()
    codes = study.clusters.codes[rows].tolist()
    questions = {(code, study.answers[row].question) for row, code in zip(rows, codes, strict=True)}
    alone = len(questions) == len(set(codes))
    asked = ("question",) if alone else ("group of questions", "groups of questions")
    return f"{listed(rows_in_words(study))} to {counted(study.clusters.n, *asked)}"


def compared_with(study: Study) -> str:
    """`66 answers and 1,370 human labels. Reference labels: the median of Ann and Ben; ties go to
    the more severe label.`"""
    said = listed([*rows_in_words(study), counted(study.n_labels, "human label")])
    return " ".join(filter(None, (f"{said}.", reference_labels(study))))


def one_annotator_lines(study: Study) -> Iterator[str]:
    """Name whom the row of one annotator leaves out, a sentence for metrics of which the same
    holds."""
    yield from _by_line(study, "One annotator", without)


def without(humans: Humans) -> str:
    """`without kim, who is out of the bar`; empty where every annotator counts."""
    names = () if humans.config.rule == "each" else humans.out_of_bar()
    shown = names if len(names) <= _MOST else (*names[:_MOST], f"{len(names) - _MOST} more")
    verb = "is" if len(names) == 1 else "are"
    return f"without {listed(shown)}, who {verb} out of the bar" if names else ""


def reference_labels(study: Study) -> str:
    """Say who makes the reference labels by which rule; where metrics have several rules, each is
    followed by the metrics that it holds for; and whose label is made of several draws. Empty where
    nobody labelled."""
    if not study.makers:
        return ""
    who, config = listed(named(study.makers, judge_names(study))), study.config
    rules = group_by_key((config.in_words(metric), metric) for metric in study.rubric.metrics)
    words = (
        f"{listed([m.title for m in of])}: {config.in_words(of[0], '', tied_labels(study, of))}."
        for of in rules.values()
    )
    said = f"Reference labels by {who}. {' '.join(words)}"
    if len(rules) == 1:
        tied = tied_labels(study, study.rubric.metrics)
        said = f"Reference labels: {config.in_words(study.rubric.metrics[0], who, tied)}."
    if len(study.makers) == 1 and not is_slot(study.makers[0]):
        said = f"Reference labels: those of {'the annotator' if who == 'annotator' else who}."
    if study.n_adjudicated:
        decision = "judge and annotators are compared with them in decisions all the same"
        decision = decision if study.has_gold else "they repeat what the annotators say"
        how = f"are no reference labels without --adjudicated; {decision}"
        count = "are the reference there" if config.adjudicated else how
        said += f" Adjudicated labels, on {counted(study.n_adjudicated, 'item')}, {count}."
    for judge in (judge for judge in study.judges if judge.n_draws > 1):
        said += (
            f" The label of {judge.name} is the majority of up to {judge.n_draws} draws of an "
            "item: every number is of such a majority, and asked once it is another judge."
        )
    return said


def tied_labels(study: Study, metrics: Sequence[Metric]) -> str:
    """` (9 of 70)`: how many reference labels a tie decides; empty where none."""
    if study.config.rule in ("each", "dawid_skene") or metrics[0].several:
        return ""
    rated = [(m, study.humans[m.id].ratings.of(study.humans[m.id].makers)) for m in metrics]
    n = sum(int(ratings.tied(metric, study.config).sum()) for metric, ratings in rated)
    return f" ({n:,} of {sum(len(ratings.rows) for _, ratings in rated):,})" if n else ""


def judge_names(study: Study) -> list[str]:
    """The names of a study's judges."""
    return [judge.name for judge in study.judges]


def named(makers: Sequence[str], judges: Collection[str] = ()) -> list[str]:
    """People by name, and lists of labels whose people nobody knows by their common name; who may
    be a model is marked."""
    why = suspects(makers, judges)
    people = [name for name in makers if not is_slot(name)]
    slots = Counter(name.split("#")[0] for name in makers if is_slot(name))
    first = people[:MOST_NAMED]
    marked = [f"{name} (which {why[name]})" if name in why else name for name in first]
    if len(people) > MOST_NAMED:
        marked.append(counted(len(people) - MOST_NAMED, "other"))
    return [
        *marked,
        *(
            f"{name} (up to {n} labels per answer{f'; {why[name]}' if name in why else ''})"
            for name, n in slots.items()
        ),
    ]


def bar_lines(
    study: Study, kind: BarKind = "typical", independent: Collection[str] = ()
) -> Iterator[str]:
    """Name who is in the bar, who is left out and who may be somebody's copy; a sentence for
    metrics of which the same holds."""
    yield from _by_line(study, "Bar", lambda humans: _line(humans, kind))

    def copies(humans: Humans) -> str:
        copy = humans.copied_pair(independent)
        return copy_in_words(copy, humans.makers) if copy else ""

    yield from _by_line(study, "Copies", copies)


def copy_in_words(copy: Copy, names: Sequence[str]) -> str:
    """Say why the labels of two annotators cannot both be taken for their own."""
    pair = f"{names[copy.first]} and {names[copy.second]}"
    if copy.n_equal:
        return f"{pair} gave the same label on all of {copy.n_equal:,} items: {_COPIED}"
    where = "on almost all items where another annotator differs"
    return f"{pair} gave the same labels {where}: {_COPIED}"


def overlap_lines(study: Study) -> Iterator[str]:
    """Count the items with two labels or more and name annotators who share none, a sentence for
    metrics where that is the same."""
    yield from _by_line(study, "Overlap", _items_in_common)


def _by_line(study: Study, what: str, line_of: Callable[[Humans], str]) -> Iterator[str]:
    lines = group_by_key((line_of(study.humans[m.id]), m.title) for m in study.rubric.metrics)
    lines.pop("", None)
    for line, titles in lines.items():
        which = f" for {listed(titles)}" if len(lines) > 1 else ""
        yield f"{what}{which}: {line}."


def _items_in_common(humans: Humans) -> str:
    n_labels = (humans.ratings.values >= 0).sum(axis=1)
    n_labelled = counted(int((n_labels >= 1).sum()), "item")
    line = f"{int((n_labels >= 2).sum()):,} of {n_labelled} with a label have two or more"
    has_label = (humans.people.values >= 0).astype(np.float32)  # which is multiplied fast
    has_label = has_label[:, has_label.any(axis=0)]
    n_people = has_label.shape[1]
    if apart := int(np.triu(has_label.T @ has_label == 0).sum()):
        pairs = counted(n_people * (n_people - 1) // 2, "pair")
        line += f"; {apart:,} of {pairs} of annotators share no item"
    return line


def _line(humans: Humans, kind: BarKind) -> str:
    if not (humans.made.values >= 0).any():
        return ""
    if humans.has_places:
        return "all annotators alike; places in a list are nobody in particular"
    bar, names = humans.bar(kind), humans.in_bar(kind)
    shown = names if len(names) <= _MOST else (*names[:_MOST], f"{len(names) - _MOST} more")
    line = listed(shown) + _BARS[kind]
    if len(names) == 2:
        line += "; with only two annotators, the judge must match both"
    for who in humans.out_of_bar(kind):
        points = -100 * bar.gap.value[humans.makers.index(who)]
        line += f"; {who} is left out of the bar (agrees {points:.0f} points less with the others)"
    return line


# --- what must not be overlooked ------------------------------------------------------------------


OFTEN = 0.05  # of the human labels: one that a judge never gives is named from here on
BY_CHANCE = 0.01  # that a judge who gives it as often as humans did not give it once


def data_notes(study: Study) -> Iterator[str]:
    """Name what is missing on the human side, and what the annotators are."""
    yield from population_notes(study)
    yield from maker_notes(study)
    for metric in study.rubric.metrics:
        humans, n = study.humans[metric.id], study.n_about(metric)
        about = study.answers.of_kind(metric, study.rubric)
        if without_label := int((about & (humans.truth < 0)).sum()):
            yield (
                f"{metric.title}: {without_label} of {n} {SEVERAL[metric.of]} have no reference "
                "label."
            )
        if n_abstained := humans.ratings.abstained:
            yield f"{metric.title}: {counted(n_abstained, 'human label')} of abstention."
        if n_blank := int(humans.ratings.blank.sum()):
            yield f"{metric.title}: {counted(n_blank, 'blank cell')}, taken as no label."
    if any(is_slot(a) for h in study.humans.values() for a in h.makers):
        yield (
            "Annotators written name#1, name#2, … are places in a list, not people: "
            "they are pooled and never compared in pairs."
        )


def few_questions(study: Study) -> Iterator[str]:
    """A sentence where so few groups of answers have labels that intervals are rough, or lack."""
    n = max((humans.clusters.n for humans in study.humans.values()), default=0)
    if 0 < n < FEW_CLUSTERS:
        yield (
            f"Few questions: {counted(n, 'group')} of answers with labels. Below {FEW_CLUSTERS} an "
            f"interval is a rough one; below {MIN_CLUSTERS} there is none, but for shares of "
            "independent answers."
        )


def same_label_notes(study: Study) -> Iterator[str]:
    """A sentence for each metric on which annotators agree on every item: of people who read for
    themselves, that is rare."""
    for metric in study.rubric.metrics:
        values = study.humans[metric.id].ratings.values
        values = values[(values >= 0).sum(axis=1) >= 2]
        labels = values.max(axis=1, initial=-1)
        is_varied = len({*labels.tolist()}) > 1  # one label throughout is that of a rare event
        is_same = ((values < 0) | (values == labels[:, None])).all()
        if len(values) >= _MANY_AGREED and is_varied and is_same:
            yield (
                f"{metric.title}: annotators give the same label on all {len(values):,} items that "
                "two or more labelled: was one label copied into each row?"
            )


def maker_notes(study: Study) -> Iterator[str]:
    """Judges whose model changed, those who make the truth and may be no people, and who uses
    labels as nobody else does."""
    yield from filter(None, (replaced(judge.name, judge.models) for judge in study.judges))
    yield from (f"{problem.message}." for problem in suspicions(study.makers, judge_names(study)))
    for metric in study.rubric.metrics:
        yield from unusual_label_use_notes(study.humans[metric.id])


def unusual_label_use_notes(humans: Humans) -> Iterator[str]:
    """A sentence for each person who uses the labels of a metric as nobody else does."""
    odd, names, metric = humans.odd, humans.people.annotators, humans.metric
    for column, use in odd.uses.items():
        label = use.farthest_label
        text = metric.label_texts[label]
        sentence = (
            f"{names[column]} gave {text!r} on {percent(use.own[label])} and the others on "
            f"{percent(use.others[label])} of the same {use.n:,} items"
        )
        if use.exchanged and odd.settled:
            pair = listed([repr(metric.label_texts[exchanged]) for exchanged in use.exchanged])
            sentence += f", and seems to have exchanged {pair}"
        yield f"{metric.title}: {sentence}. Ask how {names[column]} read the labels."


def collapsed(study: Study) -> Mapping[str, str]:
    """A sentence for each judge that gives nearly one label throughout, as humans do not."""
    told = {
        judge.name: [
            _collapse(metric, study.judged(judge, metric), study.humans[metric.id].truth)
            for metric in study.rubric.metrics
            if judge.judges(metric)
        ]
        for judge in study.real_judges
    }
    words = "gives nearly one label throughout"
    return {
        name: f"{name} {words}: {'; '.join(filter(None, said))}."
        for name, said in told.items()
        if any(said)
    }


def _collapse(metric: Metric, judged: IntArray, truth: IntArray) -> str:
    both = (truth >= 0) & (judged >= 0)
    judged, truth = judged[both], truth[both]
    if (label := collapsed_label(judged, truth)) < 0:
        return ""
    return (
        f"{metric.label_texts[label]!r} on {(judged == label).sum():,} of {len(judged):,} items of "
        f"{metric.title}, by the humans on {(truth == label).sum():,}"
    )


def improbable_labels(study: Study) -> Iterator[str]:
    """A sentence for each judge and metric where most labels are not the most probable by the
    judge's own probabilities, as where columns are swapped."""
    for metric in study.rubric.metrics:
        for judge in study.real_judges:
            labels, p = study.judged(judge, metric), study.probabilities(judge, metric)
            if p is None or metric.several:
                continue
            rows = np.flatnonzero((labels >= 0) & ~np.isnan(p[:, 0]))
            is_other = p[rows, labels[rows]] < p[rows].max(axis=1) - _ROUNDING
            if (n_others := int(is_other.sum())) >= _MIN_OTHERS and is_other.mean() > 0.5:
                yield (
                    f"{judge.name}: in {n_others:,} of {len(rows):,} rows the label of "
                    f"{metric.title} is not the most probable one: are the columns with the "
                    f"probabilities of {listed([*map(repr, metric.label_texts)])} swapped?"
                )


def reversed_labels(study: Study) -> Iterator[str]:
    """A sentence for each annotator and judge whose labels fall where those of the (other)
    annotators rise, on a metric of two labels, of numbers or of labels in a declared order."""
    for metric in study.rubric.metrics:
        is_numeric = all(text.isdigit() for text in metric.label_texts)
        if metric.several or not (
            is_numeric or metric.kind == "ordinal" or len(metric.labels) == 2
        ):
            continue
        ratings = study.humans[metric.id].ratings
        columns = {j.name: study.judged(j, metric)[ratings.rows] for j in study.real_judges}
        columns |= dict(zip(ratings.annotators, ratings.values.T, strict=True))
        sums = np.maximum(ratings.values, 0).sum(axis=1)
        counts = (ratings.values >= 0).sum(axis=1)
        for name, codes in columns.items():
            own = (codes >= 0) & (name in ratings.annotators)
            rows = (codes >= 0) & (counts > own)
            others = (sums - codes * own)[rows] / (counts - own)[rows]
            rho = float(spearman(codes[rows], others)) if rows.any() else 0.0
            if rho * len(others) ** 0.5 < _REVERSED:
                yield (
                    f"{name}: the labels of {metric.title} fall where the annotators' rise (rank "
                    f"correlation {rho:.2f} on {len(others):,} items): do they run the other way? "
                    "Then turn them round in that table; `--order` holds for all tables."
                )


def constant_note(study: Study) -> Iterator[str]:
    """Name the label that the constant control gives, and that choosing it here favours it."""
    if any(judge.is_majority for judge in study.judges):
        found = [(study.humans[m.id].most_common, m) for m in study.rubric.metrics]
        if said := [f"{m.label_texts[label]!r} on {m.title}" for label, m in found if label >= 0]:
            yield (
                f"The baseline {MAJORITY} always says {listed(said)}. It is chosen on these "
                "labels, so slightly optimistic."
            )


def judge_notes(study: Study, found: Results) -> Iterator[str]:
    """Caveats that a reader must not overlook: labels that a judge never gives, judges that a
    control matches, and which constant stands beside them."""
    yield from constant_note(study) if study.real_judges else ()
    yield from charged_notes(study)
    controls = [judge.name for judge in study.controls]
    metrics = study.rubric.metrics
    for judge in study.real_judges:
        name = judge.name
        for metric in metrics:
            for label, share in _never_gave(study, judge, metric):
                yield (
                    f"{name} never gave {label!r} on {metric.title}, which is {100 * share:.0f} % "
                    "of the human labels: was it among the labels to choose from?"
                )
        if beaten := [m.title for m in metrics if _no_better(found, name, controls, m)]:
            yield (f"{name} is no more accurate than a baseline on {', '.join(beaten)}.")


def _never_gave(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[tuple[str, float]]:
    """The labels that humans give often and that a judge never gave, on so many items that this is
    no chance, with their share of the human labels."""
    judged, human = study.judged(judge, metric), study.humans[metric.id].made.values
    given = value_counts(judged[None], len(metric.labels))[0]
    human = human[human >= 0]
    for label in np.flatnonzero(given == 0):
        often = float((human == label).mean()) if len(human) else 0.0
        if often >= OFTEN and (1 - often) ** given.sum() < BY_CHANCE:
            yield metric.label_texts[label], often


def _no_better(found: Results, judge: str, controls: Sequence[str], metric: Metric) -> bool:
    def accuracy(name: str) -> float | None:
        return found.find("accuracy", "score", judge=name, metric=metric.id).value

    own, others = accuracy(judge), [accuracy(name) for name in controls]
    return own is not None and any(other is not None and other >= own for other in others)


# --- a truth by the rule `dawid_skene` ------------------------------------------------------------


def model_notes(study: Study) -> Iterator[str]:
    """Say where there is no model, and which had not converged; nothing under other rules."""
    if study.config.rule != "dawid_skene":
        return
    for metric in study.rubric.metrics:
        values = study.humans[metric.id].made.values
        if reason := why_no_model(values):
            yield f"No Dawid-Skene model on {metric.title}: {reason}: the majority there."
        elif not truth_model(values, len(metric.labels)).converged:
            yield (
                f"The Dawid-Skene model of {metric.title} had not converged after "
                f"{MOST_ITERATIONS:,} steps."
            )
