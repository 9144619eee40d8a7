"""Caveats: what was compared, who makes the truth by which rule and who is left out of the bar,
and what a reader of the tables must not overlook, one sentence each.

`check`, `align` and `decide` all say it in the sentences of this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from judgebench.alignment.statistics import FEW_LABELS, MOST_ANNOTATORS_IN_PAIRS
from judgebench.judges.replies import charged_notes
from judgebench.records import SEVERAL, is_slot
from judgebench.results.rows import Results
from judgebench.rubric import Metric
from judgebench.stats.arrays import IntArray, value_counts
from judgebench.stats.consensus import MOST_ITERATIONS, why_no_model
from judgebench.stats.copies import BarKind, Copy
from judgebench.stats.jackknife import FEW_CLUSTERS, MIN_CLUSTERS
from judgebench.stats.label_use import collapsed_label
from judgebench.studies.labelled import population_notes
from judgebench.studies.study import MAJORITY, Humans, JudgeVerdicts, Study
from judgebench.studies.truth import truth_model
from judgebench.studies.verdicts import replaced, suspects, suspicions
from judgebench.words import counted, listed

MOST_NAMED = 12
BLIND = {
    "yes": "annotators saw no judge's labels",
    "no": "annotators saw a judge's labels",
    "unknown": "not known whether annotators saw a judge's labels",
}
_BARS = {"typical": "", "average": ", who all count the same", "best": ", the best most of all"}
_MOST = 8  # annotators of a bar that are named
_LOOKED_AT = 20  # clusters that tell whether each is one question
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
    seen = np.zeros(len(study.answers), dtype=np.bool_)
    for humans in study.humans.values():
        seen[humans.ratings.rows] = True
    some = [f"{seen.sum():,} labelled"] * bool(seen.any() and not seen.all())
    return " · ".join((study.name, size_in_words(study), *some, listed(makers), metrics))


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
    rules: dict[str, list[Metric]] = {}
    for metric in study.rubric.metrics:
        rules.setdefault(config.in_words(metric), []).append(metric)
    words = (
        f"{listed([m.title for m in of])}: {config.in_words(of[0], '', _tied(study, of))}."
        for of in rules.values()
    )
    said = f"Reference labels by {who}. {' '.join(words)}"
    if len(rules) == 1:
        tied = _tied(study, study.rubric.metrics)
        said = f"Reference labels: {config.in_words(study.rubric.metrics[0], who, tied)}."
    if len(study.makers) == 1 and not is_slot(study.makers[0]):
        said = f"Reference labels: those of {'the annotator' if who == 'annotator' else who}."
    if study.n_adjudicated:
        decide = "but decide" if study.has_gold else "and repeat what the annotators say"
        how = f"are not among them without --adjudicated, {decide}"
        count = "are the reference there" if config.adjudicated else how
        said += f" Adjudicated labels, on {counted(study.n_adjudicated, 'item')}, {count}."
    for judge in (judge for judge in study.judges if judge.n_draws > 1):
        said += (
            f" The label of {judge.name} is the majority of up to {judge.n_draws} draws of an "
            "item: every number is of such a majority, and asked once it is another judge."
        )
    return said


def _tied(study: Study, metrics: Sequence[Metric]) -> str:
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
    first = sorted(people, key=lambda name: name not in why)[:MOST_NAMED]  # a model is never hidden
    known = [name for name in people if name in first]
    marked = [f"{name} (which {why[name]})" if name in why else name for name in known]
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
    lines: dict[str, list[str]] = {}
    for metric in study.rubric.metrics:
        if line := line_of(study.humans[metric.id]):
            lines.setdefault(line, []).append(metric.title)
    for line, titles in lines.items():
        which = f" for {listed(titles)}" if len(lines) > 1 else ""
        yield f"{what}{which}: {line}."


def _items_in_common(humans: Humans) -> str:
    given = humans.ratings.values >= 0
    several, labelled = (int((given.sum(axis=1) >= n).sum()) for n in (2, 1))
    line = f"{several:,} of {counted(labelled, 'item')} with a label have two or more"
    there = (humans.people.values >= 0).astype(np.float32)  # which is multiplied fast
    rated = np.flatnonzero(there.any(axis=0))
    names, there = [humans.people.annotators[a] for a in rated], there[:, rated]
    alone = np.argwhere(np.triu(there.T @ there == 0))
    apart = [f"{names[a]} and {names[b]}" for a, b in alone.tolist()]
    pairs = len(names) * (len(names) - 1) // 2
    more = f", and {len(apart) - _MOST:,} more" if len(apart) > _MOST else ""
    said = f"; {len(apart):,} of {counted(pairs, 'pair')} of annotators share no item: "
    return line + (said + "; ".join(apart[:_MOST]) + more if apart else "")


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
    rubric, humans = study.rubric, study.humans
    yield from population_notes(study)
    yield from maker_notes(study)
    for metric in rubric.metrics:
        found = humans[metric.id]
        about = study.answers.of_kind(metric, rubric)
        if without := int((about & (found.truth < 0)).sum()):
            # Labels of those who make the reference labels, and yet none.
            rated = (found.made.values >= 0).any(axis=1)
            tied = int((rated & (found.truth[found.made.rows] < 0)).sum())
            which = "" if tied == without else f", {tied} of them"
            said = f"{which} because their labels are tied" if tied else ""
            all_of_them = f"{study.n_about(metric)} {SEVERAL[metric.of]}"
            yield f"{metric.title}: {without} of {all_of_them} have no reference label{said}."
        if found.ratings.abstained:
            yield f"{metric.title}: {found.ratings.abstained} human labels are abstentions."
    blank = {m.title: int(humans[m.id].ratings.blank.sum()) for m in rubric.metrics}
    if any(blank.values()):
        counts = ", ".join(f"{title} {n}" for title, n in blank.items() if n)
        yield f"Blank human cells, taken as no label: {counts}."
    overlap = ((metric.title, _overlap(humans[metric.id])) for metric in rubric.metrics)
    if overlaps := [f"{title} {both}" for title, both in overlap if both]:
        yield (
            "Gwet's AC and Fleiss' κ take agreement from the items with two labels or more and "
            f"chance from all items with a label: {', '.join(overlaps)}."
        )
    if any(is_slot(a) for h in humans.values() for a in h.makers):
        yield (
            "Annotators written name#1, name#2, … are places in a list, not people: "
            "they are pooled and never compared in pairs."
        )
    people = [sum(not is_slot(a) for a in h.makers) for h in humans.values()]
    if max(people, default=0) > MOST_ANNOTATORS_IN_PAIRS:
        yield f"More than {MOST_ANNOTATORS_IN_PAIRS} annotators: their pairs are not listed."


def few_questions(study: Study) -> Iterator[str]:
    """A sentence where so few groups of answers have labels that intervals are rough, or lack."""
    n = max((humans.clusters.n for humans in study.humans.values()), default=0)
    if 0 < n < FEW_CLUSTERS:
        yield (
            f"Few questions: {counted(n, 'group')} of answers with labels. Below {FEW_CLUSTERS} an "
            f"interval is a rough one; below {MIN_CLUSTERS} there is none, but for shares of "
            "independent answers."
        )


def maker_notes(study: Study) -> Iterator[str]:
    """Judges whose model changed, those who make the truth and may be no people, and who uses
    labels as nobody else does."""
    yield from filter(None, (replaced(judge.name, judge.models) for judge in study.judges))
    yield from (f"{problem.message}." for problem in suspicions(study.makers, judge_names(study)))
    for metric in study.rubric.metrics:
        yield from odd_uses(study.humans[metric.id])


def odd_uses(humans: Humans) -> Iterator[str]:
    """A sentence for each person who uses the labels of a metric as nobody else does."""
    odd, who, metric = humans.odd, humans.people.annotators, humans.metric
    if not odd.settled:
        names = [who[column] for column in odd.uses]
        label = max(odd.uses.values(), key=lambda use: use.oddness).farthest_label
        shares = [f"{who[c]} {100 * use.own[label]:.0f} %" for c, use in odd.uses.items()]
        yield (
            f"{metric.title}: {listed(names)} use the labels very differently on the same items "
            f"({metric.label_texts[label]!r}: {', '.join(shares)}): a label may have been read as "
            "its opposite, and nothing shows by whom."
        )
        return
    for column, use in odd.uses.items():
        if use.exchanged:
            pair = listed([repr(metric.label_texts[label]) for label in use.exchanged])
            said = (
                f"{who[column]} seems to have exchanged {pair}: they agree with the others on "
                f"{100 * use.agreement:.0f} % of {use.n:,} items, and would on "
                f"{100 * use.agreement_exchanged:.0f} % with these two labels exchanged"
            )
        else:
            label = use.farthest_label
            said = (
                f"the labels of {who[column]} are far from those of the others on the same "
                f"{use.n:,} items: {metric.label_texts[label]!r} on {100 * use.own[label]:.0f} %, "
                f"by the others on {100 * use.others[label]:.0f} %"
            )
        yield f"{metric.title}: {said}. Ask how {who[column]} read the labels."


def _overlap(humans: Humans) -> str:
    """`60 and 100`, the items with two labels or more and all with a label; empty where these are
    the same, or none has two."""
    given = (humans.made.values >= 0).sum(axis=1)
    two, all_ = int((given >= 2).sum()), int((given >= 1).sum())
    return f"{two:,} and {all_:,}" if 0 < two < all_ else ""


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
    known = np.unique(truth)
    recalls = [(judged[truth == one] == one).mean() for one in known]
    return (
        f"{metric.label_texts[label]!r} on {(judged == label).sum():,} of {len(judged):,} items of "
        f"{metric.title}, by the humans on {(truth == label).sum():,} (balanced accuracy "
        f"{np.mean(recalls):.2f}, of a constant {1 / len(known):.2f})"
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
            yield (
                f"{name} is no more accurate than a baseline, which never reads an answer, "
                f"on {', '.join(beaten)}."
            )


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
    """Say where there is no model, and what those that there are rest on; nothing under other
    rules."""
    if study.config.rule != "dawid_skene":
        return
    humans, rubric = study.humans, study.rubric
    reasons = {m.id: why_no_model(humans[m.id].made.values) for m in rubric.metrics}
    for reason in dict.fromkeys(filter(None, reasons.values())):
        which = _titles(m for m in rubric.metrics if reasons[m.id] == reason)
        yield f"No Dawid-Skene model on {which}: {reason}: the majority there."
    fitted = [m for m in rubric.metrics if not reasons[m.id]]
    if few := [m for m in fitted if _few_labels(humans[m.id])]:
        counts = ", ".join(f"{m.title} {_few_labels(humans[m.id])}" for m in few)
        yield (
            f"Annotators with fewer than {FEW_LABELS} labels, of whom a model knows little: "
            f"{counts}."
        )
    if alone := [m for m in fitted if _lost_without_one(humans[m.id])]:
        yield (
            f"Without one of the annotators there is no Dawid-Skene model on {_titles(alone)}: "
            "the human ceiling there is held against the majority of the others."
        )
    models = {m.id: truth_model(humans[m.id].made.values, len(m.labels)) for m in fitted}
    if endless := [m for m in fitted if not models[m.id].converged]:
        yield (
            f"The Dawid-Skene models of {_titles(endless)} had not converged after "
            f"{MOST_ITERATIONS:,} steps."
        )


def _titles(metrics: Iterator[Metric] | list[Metric]) -> str:
    return ", ".join(metric.title for metric in metrics)


def _few_labels(humans: Humans) -> int:
    """The number of annotators who gave too few labels to be known."""
    given = (humans.made.values >= 0).sum(axis=0)
    return int(((given > 0) & (given < FEW_LABELS)).sum())


def _lost_without_one(humans: Humans) -> bool:
    values = humans.made.values
    return any(why_no_model(np.delete(values, i, axis=1)) for i in range(values.shape[1]))
