"""The figures that the study lead sees: progress, agreement, who differs from the rest, and what to
adjudicate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, get_args

from judgebench.alignment.analysis import EVERYBODY, several
from judgebench.alignment.notes import unusual_label_use_notes
from judgebench.alignment.raters import agreement
from judgebench.annotation.screens import CANNOT_TELL, Round, ScreenField, State
from judgebench.annotation.store import Given, Store, by_screen, now, snapshot
from judgebench.records import ADJUDICATED, Answer, HumanLabel, Results, Row, group_by_key
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.shown import Shown
from judgebench.results.tables import Layout, Table
from judgebench.rubric import Metric, Rubric
from judgebench.stats.intervals import clopper_pearson
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import Study, study_of
from judgebench.text import counted

MOST_LISTED = 500  # disagreements, and remarks
_ROUNDS: tuple[Round, ...] = ("main", "calibration")  # anchors count in progress and hits alone
# The first two, or the others where several labels may be right.
_AGREEMENT = {
    "alpha": "α", "observed": "Observed agreement", "hit": "Hit", "coverage": "Coverage",
}  # fmt: skip
_PROGRESS = {"done": "Done", "of": "Of", "skipped": "Skipped", "cannot_tell": "Cannot tell"}
_INTERVALS = "In brackets: 95 % intervals, over whole groups of items."


class Split(NamedTuple):
    """A field on which labels differ, how severe the worst and the least label are (0 to 1), and
    the adjudication."""

    screen: str
    field: ScreenField
    metric: Metric
    worst: float
    least: float
    adjudication: Given | None


class Collected(Shown):
    """The contents of an annotation study at one moment."""

    def __init__(self, store: Store) -> None:
        with store.reading():
            self.meta, self.times = store.meta, store.times()
            self.screens, self.given, self.notes = store.screens, store.given(), store.notes
            self.assigned = {name: store.assigned(name) for name in store.annotators}
            self.access = store.access
            remarks = store.remarks.items()
            self.remarks = {key: remark for key, remark in remarks if key[1] in self.screens}
        self.name = str(self.meta["name"])
        self.labels = by_screen(self.given)

    @cached_property
    def figures(self) -> Mapping[str, Any]:
        """Everything on the lead's page but the disagreements, as JSON. It holds no name of a
        system, no id of the data and no verdict of a judge."""
        return {
            "study": self.name, "at": now(), "metrics": self.titles,
            "rounds": {name: self.size(name) for name in _ROUNDS},
            "people": [self._person(name) for name in self.assigned],
            "seconds_per_item": self._seconds_per_item(*self.assigned), "access": self.access,
            "left": self.meta.get("left", []),
            "agreement": [row.plain() for row in self.agreement],
            "distribution": [*self._distribution()],
            "anchors": [row.plain() for row in self.hits], "missed": [*self._missed()],
            "words": [*self._remarks()][:MOST_LISTED],
        }  # fmt: skip

    # --- how far everybody is ---------------------------------------------------------------------

    @cached_property
    def states(self) -> Mapping[str, Mapping[str, State]]:
        """The state of each assigned screen, by person and screen; what somebody who left has not
        finished is theirs no more."""
        left, states = self.meta.get("left", ()), dict[str, dict[str, State]]()
        for name, own in self.assigned.items():
            all_states = {s: self.screens[s].state(self.labels.get((name, s), {})) for s in own}
            states[name] = {
                s: state for s, state in all_states.items() if name not in left or state == "done"
            }
        return states

    @cached_property
    def complete(self) -> set[str]:
        """The screens with which everybody is done who has them."""
        every = [item for own in self.states.values() for item in own.items()]
        return {s for s, _ in every} - {s for s, state in every if state != "done"}

    def in_round(self, *names: Round) -> set[str]:
        """The screens of these rounds."""
        return {s for s, one in self.screens.items() if one.round in names}

    def size(self, name: Round) -> dict[str, int]:
        """The number of screens of a round, and of those that are complete. Anchors count among
        the others of the main round: the number does not say which they are."""
        screens = self.in_round(*(("main", "anchor") if name == "main" else (name,)))
        return {"of": len(screens), "complete": len(screens & self.complete)}

    def _person(self, name: str) -> dict[str, Any]:
        states = Counter(self.states[name].values())
        labels = [
            self.labels.get((name, screen), {}).get(field.key)
            for screen in self.states[name]
            for field in self.screens[screen].fields
        ]
        return {
            "name": name, "of": len(self.states[name]),
            **{state: states[state] for state in get_args(State)},
            "cannot_tell": labels.count(CANNOT_TELL),
            "seconds_per_item": self._seconds_per_item(name),
        }  # fmt: skip

    def _seconds_per_item(self, *names: str) -> float | None:
        """The median time for which an item was looked at, of those that are done."""
        every = ((who, s, state) for who in names for s, state in self.states[who].items())
        done = [self.times[who, s] / 1000 for who, s, state in every if state == "done"]
        return median(done) if done else None

    # --- what the labels say ----------------------------------------------------------------------

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics by their ids, as if each were about an answer."""
        plain = {"of": "answer", "preference": False}
        rubric = self.meta.get("rubric")
        metrics = Rubric.model_validate(rubric).metrics if rubric else ()
        return {metric.id: metric.model_copy(update=plain) for metric in metrics}

    @property
    def titles(self) -> Mapping[str, str]:
        """The title of each metric by its id."""
        return {metric.id: metric.title for metric in self.metrics.values()}

    def _study(self, screens: Collection[str]) -> Study | None:
        """The labels of annotators on these screens."""
        answers = {
            _item(name, field): Answer(
                # The hash stands for the texts: repeats are one group.
                _item(name, field), screen.hash, screen.hash, group=screen.group,
            )
            for name, screen in self.screens.items() if name in screens
            for field in screen.fields
        }  # fmt: skip
        labels = [
            HumanLabel(_item(name, field), who, field.metric, label)
            for (who, name), given in self.labels.items()
            if who != ADJUDICATED and name in screens
            for field in self.screens[name].fields
            if (label := given.get(field.key))
        ]
        if not answers or not self.metrics:
            return None
        rubric = Rubric(
            name="labels", version="1", instructions="-", metrics=tuple(self.metrics.values())
        )
        return study_of(rubric, [*answers.values()], labels, TruthConfig())

    @cached_property
    def agreement(self) -> Results:
        """The agreement of annotators, metric by metric, in each round: what `judgebench align`
        measures of the same labels."""
        rows = []
        for name in _ROUNDS:
            study = self._study(self.in_round(name))
            if study is None:
                continue
            measured = [row for metric in study.rubric.metrics for row in several(study, metric)]
            is_set = {row.metric for row in measured}
            measured += [row for row in agreement(study) if row.metric not in is_set]
            rows += [
                Row("agreement", row.statistic, row.estimate, "", row.metric, {"round": name})
                for row in measured
                if row.statistic in _AGREEMENT and row["who"] == EVERYBODY
            ]
        return Results(tuple(rows))

    def _distribution(self) -> Iterator[dict[str, Any]]:
        """The counts of each label by person, in both rounds, and who uses them as nobody else."""
        study = self._study(self.in_round(*_ROUNDS))
        if study is None:
            return
        for metric in study.rubric.metrics:
            humans = study.humans[metric.id]
            counts = humans.ratings.named(len(metric.labels)).sum(axis=0).tolist()
            people = dict(zip(humans.ratings.annotators, counts, strict=True))
            odd = [*unusual_label_use_notes(humans)]
            yield {"metric": metric.id, "labels": metric.label_texts, "people": people, "odd": odd}

    def _anchors(self) -> Iterator[tuple[str, ScreenField, str, dict[str, str]]]:
        """The screen, field and right label of each known label of an anchor, and what annotators
        gave."""
        for name, known in sorted(self.meta.get("anchors", {}).items()):
            for field in self.screens[name].fields if name in self.screens else ():
                labels = {
                    who: self.labels.get((who, name), {}).get(field.key) for who in self.assigned
                }
                if field.metric in known:
                    given = {who: label for who, label in labels.items() if label is not None}
                    yield name, field, known[field.metric], given

    @cached_property
    def hits(self) -> Results:
        """The share of right labels that each annotator gave anchors, by metric."""
        hits = group_by_key(
            ((who, field.metric), field.is_same(label, known))
            for _, field, known, labels in self._anchors()
            for who, label in labels.items()
        )
        return Results(tuple(
            Row("anchors", "hits", clopper_pearson(sum(x), len(x)), "", metric, {"who": who})
            for (who, metric), x in sorted(hits.items())
        ))  # fmt: skip

    def _missed(self) -> Iterator[dict[str, Any]]:
        """The anchors on which somebody gave another label than the right one, and who did."""
        for name, field, known, labels in self._anchors():
            others = {
                who: label for who, label in labels.items() if not field.is_same(label, known)
            }
            if others:
                yield {"screen": name, "metric": field.metric, "known": known, "said": others}

    def _remarks(self) -> Iterator[dict[str, Any]]:
        """The remarks of annotators, the latest first, with the answers of the lead."""
        answers = group_by_key(
            ((note["annotator"], note["screen"]), note["text"]) for note in self.notes
        )
        latest = sorted(self.remarks.items(), key=lambda remark: remark[1][1], reverse=True)
        for (who, name), (text, at) in latest:
            if who in self.assigned:
                about = {"screen": name, "annotator": who, "at": at}
                yield {**about, "text": text, "answers": answers.get((who, name), [])}

    # --- item by item -----------------------------------------------------------------------------

    @cached_property
    def items(self) -> list[dict[str, Any]]:
        """All items with their texts as one, everybody's states, and whether labels differ."""
        differ = {split.screen for split in self._splits}
        return [
            {
                "screen": name, "round": screen.round, "differ": name in differ,
                "text": " ".join(section.text for section in screen.sections),
                "states": self._states_on(name),
            }
            for name, screen in self.screens.items()
        ]  # fmt: skip

    def _states_on(self, name: str) -> dict[str, State]:
        return {who: own[name] for who, own in self.states.items() if name in own}

    def item(self, name: str) -> dict[str, Any]:
        """An item with everybody's labels by name, and the fields on which they differ."""
        people = (*self.assigned, ADJUDICATED)
        screen = self.screens[name]
        shown = screen.shown_to(ADJUDICATED, self.meta["seed"])
        remarks = {who: self.remarks[who, name][0] for who in people if (who, name) in self.remarks}
        notes = [note for note in self.notes if note["screen"] == name]
        return {
            "screen": name, "round": screen.round, **shown,
            "states": self._states_on(name),
            "differ": [split.field.key for split in self._splits if split.screen == name],
            "labels": {who: self.labels.get((who, name), {}) for who in people},
            "remarks": remarks, "notes": notes,
        }  # fmt: skip

    # --- what annotators disagree on --------------------------------------------------------------

    @cached_property
    def _splits(self) -> list[Split]:
        """The fields on which labels differ, but for those of anchors, whose label is known. First
        come those without an adjudication, of these the most severe."""
        lead = {
            (event.screen, event.field): event
            for event in self.given
            if event.annotator == ADJUDICATED and event.label is not None
        }
        splits = []
        for name in sorted(self.in_round(*_ROUNDS)):
            for field in self.screens[name].fields:
                metric = self.metrics[field.metric]
                places = {frozenset(metric.places(label)) for label in self._labels_on(name, field)}
                if len(places) > 1:
                    grades = _grades(metric, places)
                    past = lead.get((name, field.key))
                    splits.append(Split(name, field, metric, max(grades), min(grades), past))
        order = [*self.metrics]
        return sorted(
            splits,
            key=lambda s: (
                s.adjudication is not None, -s.worst, s.least, order.index(s.metric.id),
            ),
        )  # fmt: skip

    def _labels_on(self, name: str, field: ScreenField) -> list[str]:
        """The labels of annotators, from the least severe on, without those that give no grade."""
        metric = self.metrics[field.metric]
        labels = (self.labels.get((who, name), {}).get(field.key) for who in self.assigned)
        graded = [label for label in labels if label and metric.places(label)]
        return sorted(graded, key=lambda label: (metric.places(label), label))

    @cached_property
    def disagreements(self) -> list[dict[str, Any]]:
        """Fields on which the labels of two annotators or more differ: those that wait for an
        adjudication first, the most severe first.

        Nothing in it says whose a label is: labels go from the least severe on, and remarks by the
        alphabet.
        """
        remarks = group_by_key(
            (name, remark)
            for (who, name), (remark, _) in self.remarks.items()
            if who != ADJUDICATED
        )
        cases = []
        for split in self._splits[:MOST_LISTED]:
            screen = self.screens[split.screen]
            shown = screen.shown_to(ADJUDICATED, self.meta["seed"])
            field = next(field for field in shown["fields"] if field["key"] == split.field.key)
            cases.append({
                "screen": screen.id, "hash": screen.hash, "metric": split.metric.id,
                "field": field, "sections": shown["sections"],
                "labels": self._labels_on(screen.id, split.field),
                "remarks": sorted(remarks.get(screen.id, ())),
                "adjudication": split.adjudication and asdict(split.adjudication),
            })  # fmt: skip
        return cases

    # --- on a terminal ----------------------------------------------------------------------------

    @cached_property
    def results(self) -> Results:
        """Agreement, and right labels of anchors."""
        return Results((*self.agreement, *self.hits))

    def records(self) -> dict[str, list[Any]]:
        """The figures of the lead's page."""
        return {"figures": [self.figures]}

    @property
    def part(self) -> ReportSection:
        """The progress of everybody, the agreement of people, and what stands out."""
        blocks = (Block(text=tuple(self._sentences()), tables=self._tables(), on_screen=True),)
        return ReportSection("annotate", "labels so far", self.results, blocks, screen=blocks)

    def _tables(self) -> tuple[Table, ...]:
        names = {"metric": self.titles}
        who = ("Annotator",)
        progress = Layout("progress", "Progress", who, beside=tuple(_PROGRESS.values())).listing(
            (person["name"], *(person[key] for key in _PROGRESS))
            for person in self.figures["people"]
        )
        layout = Layout(
            "agreement", "Agreement", ("Round", "Metric"), (_INTERVALS,), headings=_AGREEMENT
        )
        agreement = layout.by_keys(self.agreement, ["round", "metric"], names=names)
        anchors = Layout("anchors", "Anchors: right labels given", who)
        tables = (progress, agreement, anchors.by_keys(self.hits, ["who"], "metric", names=names))
        return tuple(table for table in tables if table.rows)

    def _sentences(self) -> Iterator[str]:
        f = self.figures
        for name in filter(self.in_round, _ROUNDS):
            size = f["rounds"][name]
            yield f"{size['complete']:,} of {size['of']:,} items of the {name} round are complete."
        yield from (odd for one in f["distribution"] for odd in one["odd"])
        for title, n in Counter(split.metric.title for split in self._splits).items():
            yield f"{title}: {counted(n, 'disagreement')}."


def _grades(metric: Metric, sets: Collection[Set[int]]) -> list[float]:
    """How severe the labels at these places are, from 0 to 1; of a nominal metric none is."""
    if metric.kind != "ordinal":
        return [0.0]
    worst = metric.severities[-1] or 1
    return [metric.severities[place] / worst for places in sets for place in places]


def _item(screen: str, field: ScreenField) -> str:
    return f"{screen}@{field.about}"


def collected(study: str | Path) -> Collected:
    """Summarise the labels of a study of `judgebench annotate` so far: progress, agreement, who
    differs from the rest. Raises SetupError where there is no study.

    >>> import judgebench as jb
    >>> jb.collected("studies/labels").figures["rounds"]["main"]
    {'of': 24, 'complete': 0}
    """
    with snapshot(Path(study)) as store:
        return Collected(store)
