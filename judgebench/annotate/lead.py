"""What the study lead sees: progress, agreement, who labels otherwise, and what to settle."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple, get_args

import numpy as np

from judgebench.align.annotators import AGREEMENT_STATISTICS, Votes
from judgebench.align.caveats import odd_uses
from judgebench.annotate.screens import CANNOT_TELL, WHOLE, Field, Screen, State
from judgebench.annotate.store import ADJUDICATED, Given, Reason, Store
from judgebench.records import Answer, Estimate, HumanLabel
from judgebench.report.words import listed
from judgebench.rubric import Label, Metric, Rubric
from judgebench.stats.arrays import value_counts
from judgebench.stats.resample import Resampling
from judgebench.study.study import Study, study_of
from judgebench.study.truth import TruthConfig

REASONS = get_args(Reason)
MOST_LISTED = 500  # disagreements, and texts that annotators wrote
_ROUNDS = ("main", "calibration")
_RANKING = "ranking"  # the task whose last label is no severe one
_AGREEMENT = ("alpha", "observed")
_RESAMPLING = Resampling(resamples=1000)
_PACE, _DAY = timedelta(days=7), timedelta(days=1)


def figures(store: Store, now: datetime | None = None) -> dict[str, Any]:
    """Everything on the lead's page but the disagreements, as JSON. It holds no name of a system,
    no id of the data and no verdict of a judge."""
    return Collected(store, now).figures()


def disagreements(store: Store) -> list[dict[str, Any]]:
    """Fields on which the labels of two annotators or more differ: those that wait for an
    adjudication first, the most severe first. Nothing in it says whose a label is."""
    return Collected(store).disagreements()


class Split(NamedTuple):
    """A field on which labels differ; `labels` are their indices, ascending."""

    metric: Metric
    screen: Screen
    field: Field
    labels: Sequence[int]

    @property
    def place(self) -> tuple[str, str]:
        return self.screen.id, self.field.key

    @property
    def mildness(self) -> tuple[float, float]:
        """Smaller where a label is more severe, as a share of the worst, and where labels are
        farther apart."""
        if self.metric.kind == "nominal":
            return 0.0, -float(len(set(self.labels)))
        first, last = (self.metric.severities[self.labels[i]] for i in (0, -1))
        return -last / self.metric.severities[-1], float(first - last)


class Collected:
    """What an annotation study holds at one moment."""

    def __init__(self, store: Store, now: datetime | None = None) -> None:
        self.now = now or datetime.now(UTC)
        self.meta, self.looks, self.stored = store.meta, store.looks, store.screens
        self.screens = {name: one.screen for name, one in self.stored.items()}
        self.assigned = {who: store.assigned(who) for who in store.annotators}
        self.given = store.given()
        self.labels: dict[tuple[str, str], dict[str, str | None]] = defaultdict(dict)
        for one in self.given:
            self.labels[one.annotator, one.screen][one.field] = one.label
        sql = (
            "SELECT annotator, screen, sum(visible_ms) AS ms, min(saved_at) AS first,"
            " max(saved_at) AS last FROM events GROUP BY 1, 2"
        )
        self.times = {(row["annotator"], row["screen"]): row for row in store.rows(sql)}

    def figures(self) -> dict[str, Any]:
        """As the function of that name."""
        rounds = {name: self.in_round(name) for name in _ROUNDS}
        return {
            "study": self.meta.get("name", ""),
            "task": self.meta.get("task", ""),
            "at": self.now.isoformat(timespec="seconds"),
            "metrics": self.titles,
            "rounds": {
                name: {"of": len(own), "complete": len(own & self.complete)}
                for name, own in rounds.items()
            },
            "people": [self._person(who) for who in self.assigned],
            "minutes": asdict(self._minutes(self.assigned)),
            "end": self._end(),
            "overlaps": list(self._overlaps(rounds["main"])),
            "agreement": {n: list(self._agreement(own)) for n, own in rounds.items()},
            "distribution": [_distribution(*one) for one in self._metrics()],
            "severe": list(self._severe(rounds["main"] & self.complete)),
            "words": list(self._words())[:MOST_LISTED],
            "reasons": list(self._reasons()),
            "looks": {"declared": self.meta.get("looks", []), "made": self.looks},
        }

    # --- how far everybody is ---------------------------------------------------------------------

    @cached_property
    def states(self) -> Mapping[str, Mapping[str, State]]:
        """The state of each assigned screen, by person and screen."""
        return {
            who: {s: self.screens[s].state(self.labels.get((who, s), {})) for s in own}
            for who, own in self.assigned.items()
        }

    @cached_property
    def complete(self) -> set[str]:
        """The screens with which everybody is done who has them."""
        every = [item for states in self.states.values() for item in states.items()]
        return {s for s, _ in every} - {s for s, state in every if state != "done"}

    def in_round(self, name: str) -> set[str]:
        """The screens of that round."""
        return {s for s, one in self.stored.items() if one.calibration == (name == "calibration")}

    def _person(self, who: str) -> dict[str, Any]:
        counts = {metric: Counter[str]() for metric in self.titles}
        for screen in self.assigned[who]:
            labels = self.labels.get((who, screen), {})
            for field in self.screens[screen].asked(labels):
                label, count = labels.get(field.key), counts[field.metric]
                count["of"] += 1
                count["labels"] += bool(label)
                count["cannot_tell"] += label == CANNOT_TELL
        states = Counter(self.states[who].values())
        return {
            "name": who,
            "of": len(self.assigned[who]),
            **{state: states[state] for state in get_args(State)},
            "minutes": asdict(self._minutes([who])),
            "metrics": counts,
        }

    def _minutes(self, people: Collection[str]) -> Estimate:
        """The median time for which an item was looked at, of those that are done."""
        every = ((who, s, state) for who in people for s, state in self.states[who].items())
        done = [self.times[who, s]["ms"] / 60_000 for who, s, state in every if state == "done"]
        if not done:
            return Estimate(None, reason="no item is done")
        return Estimate(median(done), n=len(done), reason="a median of what was measured")

    def _end(self) -> dict[str, Any]:
        """The day on which the last is done if all go on as in the past week; else why not."""
        days, idle, since = 0.0, [], (self.now - _PACE).isoformat()
        for who, states in self.states.items():
            left = sum(state in ("new", "begun") for state in states.values())
            seen = {s: self.times[who, s] for s in states if (who, s) in self.times}
            recent = sum(states[s] == "done" and row["last"] >= since for s, row in seen.items())
            if left and recent:
                first = datetime.fromisoformat(min(row["first"] for row in seen.values()))
                span = min(_PACE, max(_DAY, self.now - first))
                days = max(days, left / recent * (span / _DAY))
            elif left:
                idle.append(who)
        if idle:
            return {"date": None, "reason": f"{listed(idle)} finished no item in the past week"}
        end = self.now + timedelta(days=min(days, 36_500))
        return {"date": end.date().isoformat(), "reason": ""}

    def _overlaps(self, screens: set[str]) -> Iterator[dict[str, Any]]:
        """How many of these items two people share, and with how many both are done."""
        own = {who: screens.intersection(given) for who, given in self.assigned.items()}
        done = {who: {s for s in own[who] if self.states[who][s] == "done"} for who in own}
        for a, b in combinations(own, 2):
            yield {"pair": [a, b], "done": len(done[a] & done[b]), "of": len(own[a] & own[b])}

    # --- what the labels say ----------------------------------------------------------------------

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """The title of each metric by its id, also of what is answered in words."""
        fields = (field for screen in self.screens.values() for field in screen.fields)
        titles = {field.metric: field.title for field in fields}
        return titles | {m.id: m.title for m in self._rubric.values() if m.id in titles}

    @cached_property
    def _rubric(self) -> Mapping[str, Metric]:
        rubric = self.meta.get("rubric")
        return {m.id: m for m in Rubric.model_validate(rubric).metrics} if rubric else {}

    @cached_property
    def _studies(self) -> list[Study]:
        """All labels of annotators; metrics that are asked of the same rows in one study."""
        fields: dict[str, dict[str, Field]] = defaultdict(dict)
        for screen in self.screens.values():
            for field in screen.fields:
                if field.options:
                    fields[field.metric][_item(screen.id, field)] = field
        labels = [
            HumanLabel(_item(name, field), who, field.metric, label)
            for (who, name), given in self.labels.items()
            for field in (self.screens[name].asked(given) if who != ADJUDICATED else ())
            if field.options and (label := given.get(field.key))
        ]
        alike: dict[tuple[str, ...], list[Metric]] = defaultdict(list)
        for name, own in fields.items():
            alike[tuple(own)].append(self._metric(name, [*own.values()]))
        return [
            study_of(
                Rubric(name="labels", version="1", instructions="-", metrics=tuple(metrics)),
                [self._answer(item) for item in items], labels, TruthConfig(), _RESAMPLING,
            )
            for items, metrics in alike.items()
        ]  # fmt: skip

    def _metric(self, name: str, fields: Sequence[Field]) -> Metric:
        """The metric with the labels as they are stored, the rubric's where it has them all."""
        values = dict.fromkeys(value for field in fields for value in field.values)
        known = self._rubric.get(name)
        if known is not None and {*known.options} >= {*values}:
            return known.model_copy(update={"of": "answer"})
        return Metric(
            id=name, title=self.titles[name], question=fields[0].question,
            kind="ordinal" if fields[0].ordinal else "nominal",
            labels=tuple(Label(text=value) for value in values),
        )  # fmt: skip

    def _answer(self, item: str) -> Answer:
        """A row. The hash stands for the texts: the same question and answer is the same group."""
        screen = self.screens[_screen(item)]
        question = screen.hash if len(screen.sections) > 1 else ""
        return Answer(item, screen.hash, question, group=screen.group)

    def _metrics(self, screens: Collection[str] | None = None) -> Iterator[tuple[Metric, Study]]:
        """Each metric with its study; that of some screens alone."""
        for study in self._studies:
            if screens is not None:
                items = enumerate(study.answers.item_ids())
                kept = [row for row, item in items if _screen(item) in screens]
                study = study.only(np.array(kept, dtype=np.int64))
            yield from ((metric, study) for metric in study.rubric.metrics)

    def _agreement(self, screens: set[str]) -> Iterator[dict[str, Any]]:
        for metric, study in self._metrics(screens):
            votes = Votes(study, metric, study.humans[metric.id].made.values)
            for declared in map(AGREEMENT_STATISTICS.__getitem__, _AGREEMENT):
                assert declared.formula is not None
                about = {"metric": metric.id, "statistic": declared.key}
                yield {**about, "heading": declared.heading, **asdict(declared.formula(votes))}

    def _severe(self, screens: set[str]) -> Iterator[dict[str, Any]]:
        """On how many of these items somebody, and more than half, gave the most severe label."""
        for metric, study in self._metrics(screens) if self.meta.get("task") != _RANKING else ():
            if metric.most_severe:
                values = study.humans[metric.id].ratings.values
                severe = (values == len(metric.labels) - 1).sum(axis=1)
                most = 2 * severe > (values >= 0).sum(axis=1)
                yield {
                    "metric": metric.id, "label": metric.most_severe,
                    "somebody": int((severe > 0).sum()), "most": int(most.sum()),
                    "complete": len(study.answers),
                }  # fmt: skip

    def _words(self) -> Iterator[dict[str, Any]]:
        """What annotators wrote, the latest first: answers in words, and remarks."""
        for one in sorted(self.given, key=lambda one: one.at, reverse=True):
            field = self.screens[one.screen].field(one.field)
            said = one.label if field and not field.options else ""
            about = {"screen": one.screen, "title": field.title if field else ""}
            for text in filter(None, (said, one.remark) if one.annotator != ADJUDICATED else ()):
                yield {**about, "text": text, "at": one.at}

    # --- what annotators disagree on --------------------------------------------------------------

    @cached_property
    def _adjudicated(self) -> Mapping[tuple[str, str], Given]:
        every = (one for one in self.given if one.annotator == ADJUDICATED)
        return {(one.screen, one.field): one for one in every if one.label is not None}

    @cached_property
    def _splits(self) -> list[Split]:
        """Where labels differ, those that wait for an adjudication and the most severe first."""
        found = []
        for metric, study in self._metrics():
            ratings = study.humans[metric.id].ratings
            several = (value_counts(ratings.values, len(metric.labels)) > 0).sum(axis=1) > 1
            for i in np.flatnonzero(several).tolist():
                screen, _, about = study.answers[ratings.rows[i]].item_id.partition("@")
                given = sorted(label for _, label in ratings.given(ratings.rows[i]))
                field = self.screens[screen].field(f"{metric.id}@{about}" if about else metric.id)
                assert field is not None
                found.append(Split(metric, self.screens[screen], field, given))
        return sorted(found, key=lambda s: (s.place in self._adjudicated, *s.mildness))

    def disagreements(self) -> list[dict[str, Any]]:
        """As the function of that name. Labels go from the least severe on, and remarks by the
        alphabet: orders that say nothing."""
        remarks = defaultdict[tuple[str, str], list[str]](list)
        for one in self.given:
            if one.remark and one.annotator != ADJUDICATED:
                remarks[one.screen, one.field].append(one.remark)
        found = []
        for split in self._splits[:MOST_LISTED]:
            screen, given = split.screen, self._adjudicated.get(split.place)
            shown = screen.shown_to(ADJUDICATED, self.meta.get("seed", 0), screen.parts - 1)
            found.append(
                {
                    "screen": screen.id,
                    "hash": screen.hash,
                    "calibration": self.stored[screen.id].calibration,
                    "sections": shown["sections"],
                    "field": next(f for f in shown["fields"] if f["key"] == split.field.key),
                    "metric": split.metric.id,
                    "labels": [split.metric.label_texts[i] for i in split.labels],
                    "remarks": sorted(remarks[split.place] + remarks[screen.id, WHOLE]),
                    "adjudication": given
                    and {"label": given.label, "reason": given.reason, "remark": given.remark},
                }
            )
        return found

    def _reasons(self) -> Iterator[dict[str, Any]]:
        """How many disagreements each metric has, and the reasons of those that are adjudicated."""
        of = Counter(split.metric.id for split in self._splits)
        reasons = defaultdict[str, Counter[str]](Counter)
        for split in self._splits:
            if given := self._adjudicated.get(split.place):
                reasons[split.metric.id][given.reason] += 1
        return ({"metric": m, "of": of[m], "reasons": reasons[m]} for m in self.titles if of[m])


def _item(screen: str, field: Field) -> str:
    return f"{screen}@{field.about}"


def _screen(item: str) -> str:
    return item.partition("@")[0]


def _distribution(metric: Metric, study: Study) -> dict[str, Any]:
    """How often each person gave each label, in both rounds, and who uses them as nobody else."""
    humans = study.humans[metric.id]
    counts = value_counts(humans.ratings.values.T, len(metric.labels)).tolist()
    people = zip(humans.ratings.annotators, counts, strict=True)
    return {
        "metric": metric.id,
        "labels": metric.label_texts,
        "people": [{"name": who, "counts": own} for who, own in people],
        "odd": list(odd_uses(humans)),
    }
