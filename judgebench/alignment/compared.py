"""What judges are compared with: who makes the truth by which rule, and who is left out of the bar.

`check`, `align` and `decide` all say it in the sentences of this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from judgebench.records import SEVERAL, is_slot
from judgebench.stats.arrays import Clusters, IntArray
from judgebench.stats.copies import ALMOST_ALL, BarKind, pair_agreement, same_as
from judgebench.studies.study import Humans, Study
from judgebench.studies.verdicts import suspects
from judgebench.words import counted, listed

MOST_NAMED = 12
_BARS = {"typical": "", "average": ", who all count the same", "best": ", the best most of all"}
_MOST = 8  # annotators of a bar that are named
_FEW = 30  # items in common; fewer never show a copy
_MANY = 300  # with whom nobody else can be compared: people who are right 99 times in 100 differ
_COPIED = "one of them may be copied"


def rows_in_words(study: Study) -> list[str]:
    """`66 answers`; where metrics are about others too, `6 answers`, `15 pairs`."""
    about = {metric.of: study.n_about(metric) for metric in study.rubric.metrics}
    return [counted(n, kind, SEVERAL[kind]) for kind, n in about.items()]


def compared_with(study: Study) -> str:
    """`66 answers and 1,370 human labels; the truth is made by Ann and Ben: median; of an even
    number, the more severe of the middle two.`

    Where metrics have several rules, each is followed by the metrics that it holds for.
    """
    said = listed([*rows_in_words(study), counted(study.n_labels, "human label")])
    if not study.makers:
        return f"{said}."
    rules: dict[str, list[str]] = {}
    for metric in study.rubric.metrics:
        rules.setdefault(study.config.in_words(metric), []).append(metric.title)
    words = [f"{rule} ({listed(titles)})" for rule, titles in rules.items()]
    rule = "; ".join(words) if len(words) > 1 else next(iter(rules))
    who = listed(named(study.makers, judge_names(study)))
    return f"{said}; the truth is made by {who}: {rule}.{_adjudicated(study)}"


def _adjudicated(study: Study) -> str:
    """How many items have an adjudicated label, and whether it counts."""
    if not study.n_adjudicated:
        return ""
    count = "are the truth there" if study.config.adjudicated else "do not count"
    return f" Adjudicated labels, on {counted(study.n_adjudicated, 'item')}, {count}."


def judge_names(study: Study) -> list[str]:
    """What the judges of a study are called."""
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
        marked.append(f"{len(people) - MOST_NAMED:,} others")
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
    """Who is in the bar and who is left out, and who may be somebody's copy; a sentence for metrics
    of which the same holds."""
    yield from _by_line(study, "Bar", lambda humans: _line(humans, kind))
    yield from _by_line(study, "Copies", lambda humans: _copies(humans, independent))


def _copies(humans: Humans, independent: Collection[str]) -> str:
    if humans.has_places:
        return ""
    return why_copied(humans.made.values, humans.makers, humans.clusters, independent)


def why_copied(
    ratings: IntArray, names: Sequence[str], clusters: Clusters, independent: Collection[str] = ()
) -> str:
    """Why annotators' labels (items, annotators) cannot all be taken for their own; empty where
    they can. Of those in `independent`, equal labels are no sign of a copy."""
    # A copy is equal on almost all items: where it could not tell, everybody was.
    share, both = pair_agreement(ratings, int(ratings.max(initial=0)) + 1)
    alike = np.argwhere(np.triu((share >= ALMOST_ALL) & (both >= _FEW), 1))
    for a, b in alike:
        pair = f"{names[a]} and {names[b]}"
        if {names[a], names[b]} <= set(independent):
            continue
        if len(names) == 2 and share[a, b] == 1 and both[a, b] >= _MANY:
            return f"{pair} gave the same label on all of {both[a, b]:,.0f} items: {_COPIED}"
        if same_as(ratings[:, a], np.delete(ratings, a, axis=1), clusters)[b - 1]:
            where = "on almost all items where another annotator differs"
            return f"{pair} gave the same labels {where}: {_COPIED}"
    return ""


def overlap_lines(study: Study) -> Iterator[str]:
    """How many items have two labels or more and which annotators share none, a sentence for
    metrics where that is the same."""
    yield from _by_line(study, "Overlap", _overlap)


def _by_line(study: Study, what: str, line_of: Callable[[Humans], str]) -> Iterator[str]:
    lines: dict[str, list[str]] = {}
    for metric in study.rubric.metrics:
        if line := line_of(study.humans[metric.id]):
            lines.setdefault(line, []).append(metric.title)
    for line, titles in lines.items():
        which = f" for {listed(titles)}" if len(lines) > 1 else ""
        yield f"{what}{which}: {line}."


def _overlap(humans: Humans) -> str:
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
    rated = [bool((given >= 0).any()) for given in humans.made.values.T]
    if not any(rated):
        return ""
    if humans.has_places:
        return "all annotators alike; places in a list are nobody in particular"
    bar, names = humans.bar(kind), humans.in_bar(kind)
    shown = names if len(names) <= _MOST else (*names[:_MOST], f"{len(names) - _MOST} more")
    line = listed(shown) + _BARS[kind]
    labelled = (a for a, any_label in zip(humans.makers, rated, strict=True) if any_label)
    left_out = [a for a in labelled if a not in names]
    if len(names) == 2:
        line += "; two cannot be told apart, so that a judge has to reach each of them"
    for who in left_out:
        points = -100 * bar.gap.value[humans.makers.index(who)]
        line += f"; {who} is left out of the bar (agrees {points:.0f} points less with the others)"
    return line
