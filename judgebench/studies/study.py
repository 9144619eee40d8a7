"""A study: rubric, answers, human labels and verdicts in memory. Every analysis takes one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, HumanLabel, Status, Usage, Verdict, is_slot
from judgebench.rubric import Metric, Rubric
from judgebench.stats.agreement import as_sets
from judgebench.stats.annotator_bar import (
    Bar,
    BarKind,
    Copy,
    UnusualLabelUse,
    camps,
    find_copy,
    fit_bar,
    odd_ones,
)
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, value_counts
from judgebench.stats.intervals import LEVEL
from judgebench.stats.partly_labelled import CovariateImbalance, Sample, unlike
from judgebench.studies.answers import (
    IndexedAnswers,
    ids_and_groups,
    indexed,
    text_lengths,
)
from judgebench.studies.reference_labels import (
    Cells,
    Drawn,
    Labels,
    Mask,
    Ratings,
    TruthConfig,
    drawn_of,
    ratings_by_metric,
    settle,
)
from judgebench.studies.verdicts import CodedVerdicts, coded, status_counts
from judgebench.text import listed

if TYPE_CHECKING:
    import pandas as pd


T = TypeVar("T")
_FIRST_NAMED = (
    "On {title} several labels may be right: decisions, and hit, coverage and the like, count "
    "every label that enough annotators accept; every other number takes the label named first."
)
_NEARLY_ALL, _REPEATED = 0.9, 0.99  # of the items with one label; of labels that are the same
_TELLING = 20  # items on which annotators differ
ANCHORS = "anchors"  # the key of `Study.beside` of the study of answers with known labels
RECORDED = "recorded verdicts"  # how a judge is described whose verdicts somebody has
# The baseline that always gives the most common label.
MAJORITY: Literal["constant-majority"] = "constant-majority"
JudgeKind = Literal["judge", "jury", "calibration", "control"]
JUDGE_KINDS: tuple[JudgeKind, ...] = get_args(JudgeKind)


@dataclass(frozen=True)
class JudgeVerdicts:
    """The verdicts of one judge, the latest on each item, and how it was set up."""

    name: str
    kind: JudgeKind
    signature: str
    verdicts: Mapping[str, Verdict]  # by item_id
    usage: Usage = Usage()  # of every attempt, not only the latest
    cost: float | None = None
    about: Mapping[str, Any] | None = None
    models: Mapping[str, int] = field(default_factory=dict)  # verdicts by who said to reply

    def coded(self, answers: IndexedAnswers, metrics: Sequence[Metric] = ()) -> CodedVerdicts:
        """The labels that these give the answers, as arrays, made once for the same objects."""
        about = answers, metrics
        key = tuple(map(id, about))
        if key not in self._kept:
            self._kept[key] = coded(self.verdicts, *about), about
        return self._kept[key][0]

    @cached_property
    def _kept(self) -> dict[tuple[int, ...], tuple[CodedVerdicts, object]]:
        return {}

    @property
    def asked_in_part(self) -> bool:
        """True where only a part of the items was meant for the judge, as somebody says."""
        return self.is_recorded and (self.about or {}).get("expected") == "rows"

    def judges(self, metric: Metric) -> bool:
        """True where a label on this metric is due from the judge at all."""
        named = (self.about or {}).get("metrics", () if self.is_recorded else None)
        return named is None or metric.id in named

    @property
    def is_majority(self) -> bool:
        """True where it is the control that always gives the most common label."""
        return self.kind == "control" and (self.about or {}).get("control") == MAJORITY

    @property
    def silence(self) -> str:
        """A sentence on a model none of whose verdicts could be read; else empty."""
        counts = status_counts(self.verdicts)
        if self.kind != "judge" or self.is_recorded or counts.get(Status.OK) or not self.verdicts:
            return ""
        told = ", ".join(f"{n:,} {status.value}" for status, n in counts.items() if n)
        reason = next(iter(self.verdicts.values())).reason
        return f"no verdict could be read ({told}); the first: {reason or 'no reason was given'}"

    @property
    def n_draws(self) -> int:
        """The most verdicts that somebody has of an item, of which the label is the majority."""
        return int((self.about or {}).get("draws", 1)) if self.is_recorded else 1

    @property
    def is_recorded(self) -> bool:
        """True where somebody has the verdicts, or gave them in a judge's place."""
        return (self.about or {}).get("judge") == RECORDED


def backend_fact(about: Mapping[str, Any] | None, key: str) -> Any:
    """A fact about a judge's backend from its entry in the manifest; None where it has none."""
    backend = (about or {}).get("backend")
    return backend.get(key) if isinstance(backend, Mapping) else None


@dataclass(frozen=True)
class Humans:
    """One metric's human labels: everybody's, and which annotators make the truth.

    `clusters` are those of the rows of `ratings` alone: where few answers have human labels, little
    is to be counted.
    """

    metric: Metric
    config: TruthConfig
    ratings: Ratings
    makers: tuple[str, ...]
    truth: Labels  # (items,)
    clusters: Clusters

    @property
    def made(self) -> Ratings:
        """The ratings of those who make the reference labels."""
        return self.ratings.of(self.makers)

    @cached_property
    def gold(self) -> IntArray:
        """The adjudicated labels that decide (rated,), -1 where there is none. None do that only
        repeat what the annotators said, their majority on nearly all items or one of them: such a
        consensus knows no more than they do. Of several right labels there are none either."""
        gold, own = self.ratings.adjudicated, self.ratings.values
        if self.metric.several or not (gold >= 0).any():
            return np.full_like(gold, -1)
        votes, given = value_counts(own, len(self.metric.labels)), gold >= 0
        first, united = votes.argmax(axis=1), (votes > 0).sum(axis=1) == 1
        clear = given & (2 * votes.max(axis=1) > votes.sum(axis=1))
        covers = united.any() and given[united].mean() >= _NEARLY_ALL
        repeats = covers and clear.any() and (gold == first)[clear].mean() >= _REPEATED
        for column in own.T:
            both = given & (column >= 0) & ~united
            repeats |= both.sum() >= _TELLING and (gold == column)[both].mean() >= _REPEATED
        return np.full_like(gold, -1) if repeats else gold

    @property
    def most_common(self) -> int:
        """The label that is the truth most often, of tied ones the least severe; -1 without any.
        Under the rule `each`, the label that was given most often."""
        labels = self.made.values if self.config.rule == "each" else self.truth
        known = labels[labels >= 0]
        return int(np.bincount(known).argmax()) if len(known) else -1

    @property
    def has_places(self) -> bool:
        """True where places in a list (`crowd#3`) are among the makers: nobody in particular."""
        return any(map(is_slot, self.makers))

    def bar(self, kind: BarKind = "typical") -> Bar:
        """Whose agreement a judge is held against. Places in a list (`crowd#3`) are nobody in
        particular: of them, and where several labels may be right, everybody counts the same."""
        if self.has_places or self.metric.several:
            kind = "average"
        return self._once(("bar", kind), lambda: fit_bar(*self._labels, kind))

    def in_bar(self, kind: BarKind = "typical") -> tuple[str, ...]:
        """The makers of the truth who are in that bar."""
        return tuple(a for a, kept in zip(self.makers, self.bar(kind).kept, strict=True) if kept)

    def out_of_bar(self, kind: BarKind = "typical") -> tuple[str, ...]:
        """The makers of the truth who gave labels and are not in that bar."""
        has_labels = np.any(self.made.values >= 0, axis=0).tolist()
        names = self.in_bar(kind) if any(has_labels) else self.makers
        labelled = zip(self.makers, has_labels, strict=True)
        return tuple(a for a, has_label in labelled if has_label and a not in names)

    def trusted(self, kind: BarKind = "typical") -> tuple[str, ...]:
        """The makers of the truth beside that bar: those in it. A truth model weighs everybody by
        their errors, so that nobody needs to be left out."""
        return self.makers if self.config.rule == "dawid_skene" else self.in_bar(kind)

    @cached_property
    def camps(self) -> tuple[tuple[str, ...], ...]:
        """The makers of each camp; empty where there are no camps, or only places in a list."""
        if self.has_places or self.metric.several:
            return ()
        return tuple(tuple(self.makers[a] for a in camp) for camp in camps(*self._labels))

    def copied_pair(self, independent: Collection[str] = ()) -> Copy | None:
        """The makers, by column, of whom one may be copied; None without any, and of places in a
        list. Of the `independent`, equal labels are no sign of a copy."""
        if self.has_places:
            return None
        columns = {i for i, name in enumerate(self.makers) if name in independent}
        return find_copy(self.made.values, self.clusters, columns)

    def only(self, rows: IntArray, answers: IndexedAnswers) -> Humans:
        """The same of the answers at these rows, which are `answers`; the truth stays as it is."""
        place = np.full(len(self.truth), -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        kept = np.flatnonzero(place[self.ratings.rows] >= 0)
        kept = kept[np.argsort(place[self.ratings.rows[kept]])]
        ratings = replace(self.ratings.at(kept), rows=place[self.ratings.rows[kept]])
        clusters = answers.clusters[ratings.rows].occurring()
        return replace(self, ratings=ratings, truth=self.truth[rows], clusters=clusters)

    @property
    def people(self) -> Ratings:
        """The ratings of everybody who is a person and not a place in a list."""
        return self.ratings.of([a for a in self.ratings.annotators if not is_slot(a)])

    @cached_property
    def odd(self) -> UnusualLabelUse:
        """The `people`, by column, who use the labels as nobody else does."""
        return odd_ones(self.people.values, self.clusters, len(self.metric.labels))

    @property
    def _labels(self) -> tuple[IntArray, Clusters, int]:
        return self.made.values, self.clusters, len(self.metric.labels)

    def truth_of(self, makers: Sequence[str]) -> Labels:
        """The truth that these make (items,), -1 where there is none; with adjudicated labels in
        it, where these count. Judges are compared with it, and never an annotator."""
        if set(makers) == set(self.makers):
            return self.truth

        def truth() -> Labels:
            found = np.full(len(self.truth), -1, dtype=np.int64)
            found[self.ratings.rows] = self.ratings.of(makers).truth(self.metric, self.config)
            return found

        return self._once(("truth", tuple(makers)), truth)

    def truth_without(
        self, annotator: str, makers: Sequence[str] | None = None, *, ties: bool = True
    ) -> IntArray:
        """The truth that the other makers give (rated,), -1 where they give none; without `ties`
        none, too, where these would settle it, other than by a model. Adjudicated labels have no
        part in it: they were settled on with this annotator's label in view.

        Computed once per annotator: a truth model is slow, and ceiling and decisions both need it.
        """
        every = tuple(self.makers if makers is None else makers)
        others = tuple(maker for maker in every if maker != annotator)
        model = self.config.rule == "dawid_skene"
        left_out = {} if ties or model else {"ties": "none"}
        config = self.config.model_copy(update=left_out)

        def settled(names: Sequence[str], rows: Any) -> IntArray:
            columns = [self.ratings.annotators.index(name) for name in names]
            values = self.ratings.values[rows][:, columns]
            return settle(values, self.metric, config).astype(values.dtype)

        def truth() -> IntArray:
            if model or len(others) == len(every):
                return settled(others, slice(None))
            # Only the items that the annotator labelled can have another truth without them.
            rows = self.ratings.of([annotator]).values[:, 0] >= 0
            found = self._once(("all", every, config.ties), lambda: settled(every, slice(None)))
            found = found.copy()
            found[rows] = settled(others, rows)
            return found

        return self._once(("without", others, config.ties), truth)

    def _once(self, key: Any, make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        found: T = self._kept[key]
        return found

    @cached_property
    def _kept(self) -> dict[Any, Any]:
        return {}


@dataclass(frozen=True, repr=False)
class Study:
    """Answers with their human labels and the verdicts of judges.

    `clusters` are those of the items. `judges` holds baselines too. `notes` are sentences that
    every report repeats. `run` says when the judges ran and with what; it is empty without a run
    folder. `beside` holds, by the name of a feature, what it read from the run folder for
    itself. `unfinished` are sentences on what that folder lacks because its run has not ended,
    `changed` on what was repaired. `unconfirmed_question` is the column that items are grouped by,
    where it was taken for the question by its name alone and nobody declared it. `sources` are the
    SHA-256 of the files that it was read from, by their names; of a data frame it is empty.
    """

    rubric: Rubric
    answers: IndexedAnswers
    humans: Mapping[str, Humans]  # by metric id
    n_labels: int  # of any item, blank cells left out
    config: TruthConfig
    level: float  # of all intervals
    name: str = "study"
    judges: tuple[JudgeVerdicts, ...] = ()
    notes: tuple[str, ...] = ()
    run: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)
    unfinished: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unconfirmed_question: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        people = {a for humans in self.humans.values() for a in humans.ratings.annotators}
        judges = ", ".join(judge.name for judge in self.real_judges) or "none"
        baselines = f"; {len(self.controls)} baselines" if self.controls else ""
        return (
            f"Study {self.name!r}: {len(self.answers):,} answers in {self.clusters.n:,} groups, "
            f"{self.n_labels:,} labels by {len(people):,} annotators on "
            f"{', '.join(self.humans)}; judges: {judges}{baselines}"
        )

    @property
    def real_judges(self) -> list[JudgeVerdicts]:
        """Judges, juries and calibrated judges, without the controls."""
        return [judge for judge in self.judges if judge.kind != "control"]

    @property
    def controls(self) -> list[JudgeVerdicts]:
        """The baselines."""
        return [judge for judge in self.judges if judge.kind == "control"]

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """Sentences on what judges were never asked, and on what a run folder lacks or had
        repaired, which every table repeats."""
        asked = ((judge.name, self.n_asked(judge)) for judge in self.real_judges)
        parts = (
            f"{name}: {n:,} of {of:,} asked; its numbers are of these."
            for name, (n, of) in asked
            if n < of
        )
        return (*parts, *self.unfinished, *self.changed)

    @property
    def clusters(self) -> Clusters:
        return self.answers.clusters

    @cached_property
    def knows_questions(self) -> bool:
        """True where a declared column says which items belong together, or somebody that none
        do."""
        named = (item_id != group for item_id, group in ids_and_groups(self.answers.all))
        return self.config.independent_items or (not self.unconfirmed_question and any(named))

    @cached_property
    def cells(self) -> Mapping[str, NDArray[np.object_]]:
        """The cells of each answer beside its texts, by column (items,): its system, and every
        column that was kept; empty where nothing is known."""
        found = {"system": np.full(len(self.answers), "", dtype=object)}
        for row, answer in enumerate(self.answers):  # one pass: they may lie in a file
            for name, text in (("system", answer.system), *answer.metadata.items()):
                if name not in found:
                    found[name] = np.full(len(self.answers), "", dtype=object)
                found[name][row] = sys.intern(text)  # of a million answers few differ
        return found

    @cached_property
    def drawn(self) -> Drawn:
        """The declared draw of the labelled answers; else that by a column of weights or chances
        of a usual name. Raises SetupError for another declaration."""
        return drawn_of(self.config.drawn).or_usual(self.cells)

    @cached_property
    def lengths(self) -> FloatArray:
        """The logarithm of the length of each answer's text (items,)."""
        return np.log1p(np.fromiter(text_lengths(self.answers.all), dtype=np.float64))

    @property
    def makers(self) -> tuple[str, ...]:
        """The annotators who make the truth of any metric."""
        return tuple(sorted({a for humans in self.humans.values() for a in humans.makers}))

    @property
    def n_adjudicated(self) -> int:
        """The number of items with an adjudicated label of any metric beside annotators' labels."""
        rated = [one.ratings for one in self.humans.values()]
        return len({row for r in rated for row in r.rows[r.adjudicated >= 0].tolist()})

    @property
    def has_gold(self) -> bool:
        """True where adjudicated labels decide on a metric."""
        return any((humans.gold >= 0).any() for humans in self.humans.values())

    @property
    def n_judged(self) -> int:
        """About how many answers a judge was asked; all answers where there is no judge but
        controls."""
        asked = [self.asked(judge) for judge in self.real_judges]
        return int(np.any(asked, axis=0).sum()) if asked else len(self.answers)

    def items(self) -> pd.DataFrame:
        """One row for each item and metric: item_id, the text of the question, `group` (which items
        answer the same question), system, every column that was kept, metric, `reference`, the
        label of each annotator (`annotator NAME`), and the label of each judge with how its verdict
        ended (`judge NAME`, `status NAME`). What is missing is NaN.

        >>> import judgebench as jb
        >>> items = jb.open_run("runs/small").items()
        >>> items.columns.to_list()[:5]
        ['item_id', 'question', 'group', 'system', 'metric']
        """
        frame: pd.DataFrame = import_module("judgebench.studies.item_table").item_frame(self)
        return frame

    def only(self, rows: IntArray) -> Study:
        """The same study of the answers at these rows alone, in their order. The truth is not made
        anew, and verdicts on other answers are not looked at."""
        if np.array_equal(rows, np.arange(len(self.answers))):
            return self
        answers = indexed([self.answers[row] for row in rows.tolist()])
        humans = {metric: one.only(rows, answers) for metric, one in self.humans.items()}
        given = sum(int((one.ratings.values >= 0).sum()) for one in humans.values())
        return replace(self, answers=answers, humans=humans, n_labels=given)

    def coded(self, judge: JudgeVerdicts) -> CodedVerdicts:
        """The judge's verdict on each item, as arrays."""
        return judge.coded(self.answers, self.rubric.metrics)

    def scores(self, judge: JudgeVerdicts) -> FloatArray:
        """The score that the judge gives each item (items,), NaN where it gives none."""
        return self.coded(judge).scores(self.answers)

    def judged(self, judge: JudgeVerdicts, metric: Metric) -> Labels:
        """The judge's label index of each item, -1 where there is none or it abstained.

        The most common label is that of the truth of this study, whatever its file says: under
        another truth it is another, and a baseline is never weaker than a constant.
        """
        if judge.is_majority:
            return np.where(self.asked(judge, metric), self.humans[metric.id].most_common, -1)
        return self.coded(judge).label_indices(metric, self.answers)

    def judged_sets(self, judge: JudgeVerdicts, metric: Metric) -> Labels:
        """All labels that the judge gives each item (items,) as `Metric.set_of`, -1 where there are
        none."""
        if judge.is_majority:
            return as_sets(self.judged(judge, metric)).astype(np.int64)
        return self.coded(judge).label_sets(metric, self.answers)

    def asked(self, judge: JudgeVerdicts, metric: Metric | None = None) -> NDArray[np.bool_]:
        """True where the judge was asked about each item (items,), also where no label came; about
        that metric, where one is given. It is not where it learnt from the item."""
        if metric is None:
            said = self.coded(judge)
            return said.was_asked(self.answers) & ~said.trained_on(self.answers)
        return self.owed(judge, metric) & self.coded(judge).was_asked(self.answers)

    def owed(self, judge: JudgeVerdicts, metric: Metric) -> NDArray[np.bool_]:
        """True for the items (items,) that a judge of the metric is to be asked about: all that it
        is about and that the judge did not learn from. Of an annotator in a judge's place those
        that anybody labelled."""
        found = self.answers.of_kind(metric, self.rubric) & judge.judges(metric)
        ratings = self.humans[metric.id].ratings
        if judge.name in ratings.annotators:
            found[np.delete(np.arange(len(found)), ratings.rows)] = False
        return found & ~self.coded(judge).trained_on(self.answers)

    def n_asked(self, judge: JudgeVerdicts, metrics: Sequence[Metric] = ()) -> tuple[int, int]:
        """The number of items that the judge was asked about, and of those that are owed, of any of
        the metrics; all metrics where none is given."""
        every = [self.owed(judge, metric) for metric in metrics or self.rubric.metrics]
        owed = np.any(every, axis=0)
        return int((owed & self.asked(judge)).sum()), int(owed.sum())

    def n_about(self, metric: Metric) -> int:
        """The number of items that the metric is about."""
        return int(self.answers.of_kind(metric, self.rubric).sum())

    def probabilities(self, judge: JudgeVerdicts, metric: Metric) -> FloatArray | None:
        """The judge's probability of each label (items, k), NaN in the rows that have none; None
        where it gave none at all."""
        p = self.coded(judge).label_probabilities(metric, self.answers)
        return None if np.isnan(p[:, 0]).all() else p


def study_of(
    rubric: Rubric,
    answers: Sequence[Answer],
    labels: Iterable[HumanLabel],
    config: TruthConfig,
    level: float = LEVEL,
) -> Study:
    """Reads answers and labels once. Raises SetupError where `config.annotators` fits
    no annotator or a label is not in the rubric."""
    found = indexed(answers)
    annotators: set[str] = set()
    n_labels = 0

    def counted() -> Iterator[HumanLabel]:
        nonlocal n_labels
        for label in labels:
            annotators.add(label.annotator)
            n_labels += label.label is not None and not label.adjudicated
            yield label

    ratings = ratings_by_metric(rubric.metrics, found.row, counted())
    chosen = set(config.choose(annotators))
    humans = {m.id: _humans(m, ratings[m.id], chosen, config, found) for m in rubric.metrics}
    notes = [f"{note}." for note in [found.repeats.note()] if note]
    notes += [_FIRST_NAMED.format(title=m.title) for m in rubric.metrics if m.several]
    return Study(rubric, found, humans, n_labels, config, level, notes=tuple(notes))


def _humans(
    metric: Metric, ratings: Ratings, chosen: set[str], config: TruthConfig, answers: IndexedAnswers
) -> Humans:
    makers = tuple(a for a in ratings.annotators if a in chosen)
    truth = np.full(len(answers), -1, dtype=np.int64)
    truth[ratings.rows] = ratings.of(makers).truth(metric, config)
    return Humans(
        metric, config, ratings, makers, truth, answers.clusters[ratings.rows].occurring()
    )


MOST_GROUPS = 40  # values of a column that are groups
FEWEST = 20  # labelled questions from which a difference is more than chance
_FEWEST_OF_SYSTEM = 10  # labelled questions of each system, from which systems are weighed
_RARELY = 0.01
_MOST_DIFFER = 3  # traits that a sentence names
_BY_SYSTEM = "Each system weighs as it does among all answers."


def traits_of(
    study: Study, metric: Metric, judges: Sequence[JudgeVerdicts]
) -> dict[str, FloatArray]:
    """The columns of numbers by which labelled and other answers are compared (items,): how long
    the text is, and the labels of each judge that were due on every answer."""
    labelled = study.humans[metric.id].truth >= 0
    about, k = study.answers.of_kind(metric, study.rubric), len(metric.labels)
    others = study.lengths[~labelled]  # verdicts may bring along answers whose texts nobody gave
    known = not len(others) or np.mean(others > 0) >= 1 / 2
    length = "length of the text (logarithm)"
    traits: dict[str, FloatArray] = {length: study.lengths} if known else {}
    for judge in judges:
        if study.asked(judge, metric)[about].all():
            labels = study.judged(judge, metric)
            texts = [*enumerate(metric.label_texts)][1 if k == 2 else 0 :]
            given = {f"{judge.name}: {text}": labels == i for i, text in texts}
            traits |= {name: which.astype(np.float64) for name, which in given.items()}
            traits[f"{judge.name}: no label"] = (labels < 0).astype(np.float64)
    return traits


def indicators(cells: Cells, column: str) -> dict[str, FloatArray]:
    """A column of 1 and 0 for each value of a column of few values (items,)."""
    texts = cells.get(column, np.empty(0, dtype=object))
    values = sorted({*texts.tolist()} - {""})
    if len(values) > MOST_GROUPS:
        return {}
    return {f"{column} {value}": (texts == value) * 1.0 for value in values}


def differences(found: Sequence[CovariateImbalance], labelled: str = "the labelled answers") -> str:
    """A clause on what differs: `the labelled answers differ from all in …`."""
    said = listed([
        f"{one.name} ({_shown(one.labelled)} of those labelled, {_shown(one.every)} of all)"
        for one in found[:_MOST_DIFFER]
    ])  # fmt: skip
    return f"{labelled} differ from all in {said}"


def _shown(x: float) -> str:
    return f"{100 * x:.0f} %" if 0 <= x <= 1 else f"{x:.2f}"


@dataclass(frozen=True)
class LabelledPart:
    """The labelled answers beside all answers on which a verdict of a judge is due.

    `weights` (answers,) say how many answers each labelled one stands for; None where all stand for
    as many. `unlike` says in what they differ from all answers, weighed so; empty where they look
    the same, or are too few to tell.
    """

    weights: FloatArray | None
    unlike: tuple[CovariateImbalance, ...]
    by: str = ""  # a sentence on the weights


NOT_COMPARED = LabelledPart(None, ())


def labelled_part(
    study: Study, judge: JudgeVerdicts, metric: Metric, labelled: Mask
) -> LabelledPart:
    """Compare the `labelled` answers (answers,) with all on which a verdict is due.

    Where only systems differ, because as many answers of each were labelled, and each has enough
    labelled questions, every system gets the weight that it has among all answers. Raises
    SetupError for a column of the declared draw that the answers lack.
    """
    due, drawn = (study.asked if judge.asked_in_part else study.owed)(judge, metric), study.drawn
    if not (labelled & due).any() or (labelled[due].all() and not drawn.columns):
        return NOT_COMPARED
    y = np.where(labelled & due, 1.0, np.nan)
    whole = drawn.sample(y, study.clusters, study.cells)
    sample = whole.at(due)
    if sample.why_none:
        raise SetupError(Problem(sample.why_none, field="drawn", found=", ".join(drawn.columns)))
    traits = {name: x[due] for name, x in traits_of(study, metric, [judge]).items()}
    systems = {name: x[due] for name, x in indicators(study.cells, "system").items()}
    found = _unlike(sample, {**traits, **systems})
    by = drawn.in_words()
    if found and not drawn.is_said and {one.name for one in found} <= set(systems):
        each = [sample.at(x > 0) for x in systems.values()]
        if min(part.units for part in each) >= _FEWEST_OF_SYSTEM:
            strata = np.unique(study.cells["system"][due].astype(str), return_inverse=True)[1]
            sample, by = replace(sample, strata=strata), _BY_SYSTEM
            found = unlike(sample, traits)
    weights = None
    if np.ptp(sample.w[sample.labelled]) > 0:
        weights = np.zeros(len(due))
        weights[due] = sample.w
    return LabelledPart(weights, tuple(found), by)


def _unlike(sample: Sample, columns: Mapping[str, FloatArray]) -> list[CovariateImbalance]:
    """The traits in which the labelled answers differ from all. Of few questions, the groups of
    which none is labelled, though chance would leave them out in 1 % of draws at most."""
    if sample.units >= FEWEST:
        return unlike(sample, columns)
    shares = {name: float(x.mean()) for name, x in columns.items() if set(np.unique(x)) <= {0, 1}}
    chance = {
        name: (1 - share) ** sample.units
        for name, share in shares.items()
        if not (columns[name] * sample.labelled).any()
    }
    return [
        CovariateImbalance(name, 0.0, shares[name], p) for name, p in chance.items() if p < _RARELY
    ]


def population_notes(study: Study) -> Iterator[str]:
    """A sentence on each metric whose labelled answers do not look like all answers on which a
    verdict is due."""
    for metric in study.rubric.metrics:
        parts = [
            labelled_part(study, judge, metric, study.humans[metric.id].truth >= 0)
            for judge in study.real_judges
        ]
        if differing := next((part.unlike for part in parts if part.unlike), None):
            yield f"{metric.title}: {differences(differing)}. Every number is of the labelled ones."
