"""The figures that the study lead sees: progress, agreement, who differs from the rest, and what to
adjudicate."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from shlex import quote
from statistics import median
from typing import Any, NamedTuple, get_args

import numpy as np

from judgebench.alignment.analysis import EVERYBODY, several
from judgebench.alignment.notes import unusual_label_use_notes
from judgebench.alignment.raters import AGREEMENT_STATISTICS, Votes
from judgebench.annotation.export import key_of, rows_of, snapshot
from judgebench.annotation.screens import (
    CANNOT_TELL,
    SPANS,
    Screen,
    ScreenField,
    State,
    Wanted,
    spans_in,
)
from judgebench.annotation.store import (
    ROUNDS,
    SERVED,
    WITHOUT_RUBRIC,
    Given,
    Store,
    by_screen,
)
from judgebench.data.formats import quoted, to_csv
from judgebench.errors import Problem, SetupError
from judgebench.files import to_line
from judgebench.records import ADJUDICATED, Answer, Estimate, HumanLabel, Results, Row
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.shown import Shown
from judgebench.results.tables import DASH, Layout
from judgebench.rubric import Metric, Rubric
from judgebench.stats.intervals import clopper_pearson
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import Study, study_of
from judgebench.text import counted, listed

MOST_LISTED = 500  # disagreements, and texts that annotators wrote
Place = tuple[str, str]  # a screen and a field on it
_RANKING = "ranking"  # the task whose last label is no severe one
_AGREEMENT = [AGREEMENT_STATISTICS[key] for key in ("alpha", "observed")]
_OF_SETS = {"hit": "Hit", "coverage": "Coverage"}  # instead where several labels may be right
_COUNTS = ("Done", "Of", "Skipped", "Cannot tell", "Seconds per item")
_PROGRESS = Layout("progress", "Progress", ("Annotator",), beside=_COUNTS)
_BY = ("metric", "round")
_GOLD = Layout(
    "gold", "Gold items: known labels found", ("Annotator", "Metric"),
    beside=("Qualification round", "Among the others"),
)  # fmt: skip
_GOLD_ROUNDS = ("qualification", "main")
_ROUNDS = ROUNDS[:2]  # gold items are in no figure but their own


class Collected(Shown):
    """The contents of an annotation study at one moment."""

    def __init__(self, store: Store) -> None:
        with store.reading():
            self.meta, self.looks, self.times = store.meta, store.looks, store.times()
            self.stored, self.given = store.screens, store.given()
            self.assigned = {who: store.assigned(who) for who in store.annotators}
            self.access, file = store.access, store.path
        self.path = file.parents[1] if file.match(str(SERVED)) else file
        self.name = str(self.meta.get("name", ""))
        self.screens = {name: one.screen for name, one in self.stored.items()}
        self.labels = by_screen(self.given)
        # The remark on an item goes with every event on it: the last one's is what counts.
        self.last = {(one.annotator, one.screen): one for one in self.given}

    @cached_property
    def figures(self) -> Mapping[str, Any]:
        """Everything on the lead's page but the disagreements, as JSON. It holds no name of a
        system, no id of the data and no verdict of a judge."""
        main = self.in_round(ROUNDS[0])
        return {
            "study": self.name, "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "metrics": self.titles, "rounds": {name: self._far(name) for name in _ROUNDS},
            "people": [self._person(who) for who in self.assigned],
            "minutes": asdict(self._minutes(self.assigned)),
            "access": self.access,
            "agreement": [row.plain() for row in self.agreement],
            "distribution": [_distribution(*one) for one in self._metrics()],
            "by_place": list(self._by_place(main)), "gold": [row.plain() for row in self.gold],
            "missed": list(self._missed()),
            "severe": list(self._severe(main & self.complete)),
            "words": list(self._words())[:MOST_LISTED], "reasons": list(self._reasons()),
            "looks": {"declared": self.meta.get("looks", []), "made": self.looks,
                      "next": self._next_decision()},
        }  # fmt: skip

    # --- how far everybody is ---------------------------------------------------------------------

    @cached_property
    def states(self) -> Mapping[str, Mapping[str, State]]:
        """The state of each assigned screen, by person and screen; what somebody who left has not
        finished is theirs no more."""
        left, found = self.meta.get("left", ()), dict[str, dict[str, State]]()
        for who, own in self.assigned.items():
            states = ((s, self.screens[s].state(self.labels.get((who, s), {}))) for s in own)
            found[who] = {s: state for s, state in states if who not in left or state == "done"}
        return found

    @cached_property
    def complete(self) -> set[str]:
        """The screens with which everybody is done who has them."""
        every = [item for own in self.states.values() for item in own.items()]
        return {s for s, _ in every} - {s for s, state in every if state != "done"}

    def in_round(self, name: str) -> set[str]:
        """The screens of that round."""
        return {s for s, one in self.stored.items() if one.round == name}

    def _far(self, name: str) -> dict[str, int]:
        screens = self.in_round(name)
        return {"of": len(screens), "complete": len(screens & self.complete)}

    def _person(self, who: str) -> dict[str, Any]:
        counts = {metric: Counter[str]() for metric in self.titles}
        for screen in self.states[who]:
            labels = self.labels.get((who, screen), {})
            for field in self.screens[screen].asked(labels):
                label, count = labels.get(field.key), counts[field.metric]
                count["of"] += 1
                count["labels"] += bool(label)
                count["cannot_tell"] += label == CANNOT_TELL
        states = Counter(self.states[who].values())
        far = {"of": len(self.states[who]), **{state: states[state] for state in get_args(State)}}
        return {
            "name": who,
            **far,
            "minutes": asdict(self._minutes([who])),
            "metrics": counts,
        }

    def _minutes(self, people: Collection[str]) -> Estimate:
        """The median time for which an item was looked at, of those that are done."""
        every = ((who, s, state) for who in people for s, state in self.states[who].items())
        done = [self.times[who, s] / 60_000 for who, s, state in every if state == "done"]
        if not done:
            return Estimate(None, reason="no item is done")
        return Estimate(median(done), n=len(done), reason="a median of what was measured")

    # --- what the labels say ----------------------------------------------------------------------

    @cached_property
    def rubric(self) -> Sequence[Metric]:
        """The metrics whose labels are to choose from, as if each were about an answer."""
        if "rubric" not in self.meta:
            return ()
        metrics = Rubric.model_validate(self.meta["rubric"]).metrics
        plain = {"of": "answer", "preference": False}
        return [metric.model_copy(update=plain) for metric in metrics]

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """The title of each metric by its id, also of what is answered in words."""
        fields = (field for screen in self.screens.values() for field in screen.fields)
        titles = {field.metric: field.title for field in fields}
        return titles | {m.id: m.title for m in self.rubric if m.id in titles}

    @cached_property
    def _studies(self) -> list[Study]:
        """All labels of annotators but those of gold items; metrics that are asked of the same rows
        in one study."""
        gold = self.in_round("gold")
        labels = [
            HumanLabel(_item(name, field), who, field.metric, label)
            for (who, name), given in self.labels.items()
            for field in (self.screens[name].asked(given) if who != ADJUDICATED else ())
            if name not in gold and field.options and (label := given.get(field.key))
        ]
        rows = defaultdict[str, dict[str, Answer]](dict)
        for screen in (one for name, one in self.screens.items() if name not in gold):
            for field in screen.fields:  # the hash stands for the texts: repeats are one group
                item = _item(screen.id, field)
                rows[field.metric][item] = Answer(
                    item, screen.hash, screen.hash, "", None, screen.group
                )
        alike = defaultdict[tuple[str, ...], list[Metric]](list)
        for metric in self.rubric:
            alike[tuple(rows[metric.id])].append(metric)
        return [
            study_of(
                Rubric(name="labels", version="1", instructions="-", metrics=tuple(metrics)),
                [*rows[metrics[0].id].values()], labels, TruthConfig(),
            )
            for items, metrics in alike.items() if items
        ]  # fmt: skip

    def _metrics(self, screens: Collection[str] | None = None) -> Iterator[tuple[Metric, Study]]:
        """Each metric with its study; that of some screens alone."""
        for study in self._studies:
            if screens is not None:
                items = enumerate(study.answers.item_ids())
                kept = [row for row, item in items if item.partition("@")[0] in screens]
                study = study.only(np.array(kept, dtype=np.int64))
            yield from ((metric, study) for metric in study.rubric.metrics)

    @cached_property
    def agreement(self) -> Results:
        """The agreement of annotators, metric by metric, in each round."""
        rows = (
            Row("agreement", key, estimate, "", metric.id, {"round": name})
            for name in filter(self.in_round, _ROUNDS)
            for metric, study in self._metrics(self.in_round(name))
            for key, estimate in _agreed(metric, study).items()
        )
        return Results(tuple(rows))

    @property
    def _of_gold(self) -> Iterator[tuple[str, str, str, str]]:
        """The labels on gold items: who, screen, metric, label."""
        known = {name: self.known[name]["labels"] for name in self.known.keys() & self.screens}
        for who in sorted(self.assigned):
            for name in sorted(known):
                given = self.labels.get((who, name), {})
                said = ((metric, given.get(metric)) for metric in known[name])
                yield from (
                    (who, name, metric, label) for metric, label in said if label is not None
                )

    @cached_property
    def known(self) -> Mapping[str, Any]:
        """What is known of gold items, by screen."""
        return dict(self.meta.get("gold", {}))

    @cached_property
    def gold(self) -> Results:
        """How often each annotator gave the known label, in the qualification round and among the
        others, by metric; "cannot tell" is no known label."""
        hits = defaultdict[tuple[str, str, str], list[bool]](list)
        for who, name, metric, label in self._of_gold:
            of = "qualification" if self.known[name]["first"] else "main"
            hits[who, metric, of].append(self._knows(name, metric, label))
        rows = (
            Row(
                "gold",
                "hits",
                clopper_pearson(sum(x), len(x)),
                "",
                metric,
                {"who": who, "round": of},
            )
            for (who, metric, of), x in hits.items()
        )
        return Results(tuple(rows))

    def _knows(self, name: str, metric: str, label: str) -> bool:
        field, known = self.screens[name].field(metric), self.known[name]["labels"][metric]
        return field is not None and sorted(field.given_in(label)) == sorted(field.given_in(known))

    def _missed(self) -> Iterator[dict[str, Any]]:
        """The gold items on which somebody gave another label than the known one, and who did."""
        missed = defaultdict[tuple[str, str], dict[str, str]](dict)
        for who, name, metric, label in self._of_gold:
            if not self._knows(name, metric, label):
                missed[name, metric][who] = label
        for (name, metric), said in sorted(missed.items()):
            about = {"screen": name, "metric": metric, "known": self.known[name]["labels"][metric]}
            yield about | {"reason": self.known[name]["reason"], "said": said}

    def _by_place(self, screens: set[str]) -> Iterator[dict[str, Any]]:
        """How often each label was given in the first, the middle and the last third of everybody's
        items: who changes with practice or gets tired shows here."""
        third = dict[Place, int]()
        for who, own in self.assigned.items():
            main = [name for name in own if name in screens]
            third |= {(who, name): 3 * n // len(main) for n, name in enumerate(main)}
        for metric in self.rubric:
            counts = [[0] * len(metric.labels) for _ in range(3)]
            for at in third.keys() & self.labels.keys():
                for field in self.screens[at[1]].asked(self.labels[at]):
                    label = self.labels[at].get(field.key)
                    for place in (
                        metric.places(label) if field.metric == metric.id and label else ()
                    ):
                        counts[third[at]][place] += 1
            if any(map(any, counts)):
                yield {"metric": metric.id, "labels": metric.label_texts, "thirds": counts}

    def _severe(self, screens: set[str]) -> Iterator[dict[str, Any]]:
        """On how many of these items somebody, and more than half, gave the most severe label."""
        for metric, study in self._metrics(screens) if self.meta.get("task") != _RANKING else ():
            if metric.most_severe:
                ratings = study.humans[metric.id].ratings
                severe = ratings.named(len(metric.labels))[..., -1].sum(axis=1)
                most = 2 * severe > (ratings.values >= 0).sum(axis=1)
                found = {"metric": metric.id, "label": metric.most_severe, "of": len(study.answers)}
                yield {**found, "somebody": int((severe > 0).sum()), "most": int(most.sum())}

    def _words(self) -> Iterator[dict[str, Any]]:
        """The texts that annotators wrote, the latest first: answers in words, and remarks."""
        for one in sorted(self.given, key=lambda one: one.at, reverse=True):
            field = self.screens[one.screen].field(one.field)
            said = one.label if field and not field.options else ""
            title = field.title if field else ""
            remark = one.remark if self.last.get((one.annotator, one.screen)) is one else ""
            texts = ((said, title), (remark, "")) if one.annotator in self.assigned else ()
            about = {"screen": one.screen, "at": one.at}
            yield from ({**about, "title": title, "text": text} for text, title in texts if text)

    # --- item by item -----------------------------------------------------------------------------

    def items(self, wanted: Wanted) -> dict[str, Any]:
        """The items that are looked for, with their texts, and everybody's states and labels, by
        name; `of` counts those that fit."""
        differ = defaultdict[str, list[str]](list)
        for (name, key), metric, *_ in self._splits:
            if wanted.metric in ("", metric.id):
                differ[name].append(key)
        fit = [name for name in self.screens if self._fits(name, wanted, differ.keys())]
        found = [self._whole(name) | {"differ": differ[name]} for name in fit[: wanted.most]]
        return {"of": len(fit), "items": found}

    def _fits(self, name: str, wanted: Wanted, differ: Collection[str]) -> bool:
        screen, text = self.screens[name], wanted.text.casefold()
        texts = (name, *(section.text for section in screen.sections))
        if (wanted.screen or name) != name or (wanted.differ and name not in differ):
            return False
        if not any(text in x.casefold() for x in texts):
            return False
        people = [wanted.annotator] if wanted.annotator else [*self.states]
        own = [who for who in people if name in self.states.get(who, {})]
        if wanted.state:
            own = [who for who in own if self.states[who][name] == wanted.state]
        if wanted.label is not None:
            own = [who for who in own if self._gave(who, screen, wanted.metric, wanted.label)]
        return bool(own) or not (wanted.annotator or wanted.state or wanted.label is not None)

    def _gave(self, who: str, screen: Screen, metric: str, label: str) -> bool:
        given = self.labels.get((who, screen.id), {})
        asked = (field for field in screen.asked(given) if metric in ("", field.metric))
        return any(label in field.given_in(given.get(field.key)) for field in asked)

    def _whole(self, name: str) -> dict[str, Any]:
        screen, people = self.screens[name], (*self.assigned, ADJUDICATED)
        shown = screen.shown_to(ADJUDICATED, self.meta.get("seed", 0), screen.parts - 1)
        last = {who: self.last[who, name].remark for who in people if (who, name) in self.last}
        return {
            "screen": name, "round": self.stored[name].round,
            "sections": shown["sections"], "fields": shown["fields"],
            "states": {who: own[name] for who, own in self.states.items() if name in own},
            "labels": {who: self.labels.get((who, name), {}) for who in people},
            "remarks": {who: remark for who, remark in last.items() if remark},
            "quotes": {
                who: {one.key: self._quotes(who, name, one.key) for one in screen.fields}
                for who in people
            },
        }  # fmt: skip

    def _quotes(self, who: str, name: str, key: str) -> list[str]:
        """The words that somebody marked as the reason for a label."""
        said = self.labels.get((who, name), {}).get(SPANS + key)
        return [span["text"] for span in spans_in(self.screens[name], said)]

    @property
    def _rows(self) -> Iterator[dict[str, str]]:
        """The labels that count now, under the names of the screens."""
        for one in self.given:
            asked = self.screens[one.screen].asked(self.labels[one.annotator, one.screen])
            metric = next((field.metric for field in asked if field.key == one.field), "")
            if metric and one.label is not None:
                about = {"round": self.stored[one.screen].round, "metric": metric}
                if self.meta.get("spans"):
                    given = self.labels[one.annotator, one.screen]
                    about["spans"] = given.get(SPANS + one.field) or ""
                yield {key: str(value) for key, value in (asdict(one) | about).items()}

    def csv(self) -> str:
        """The labels as a table that a spreadsheet opens without running any text."""
        columns = [*(field.name for field in fields(Given)), "round", "metric"]
        columns += ["spans"] if self.meta.get("spans") else []
        rows = ([quoted(row[column]) for column in columns] for row in self._rows)
        return to_csv(columns, rows).decode()

    def jsonl(self) -> str:
        """The labels, one JSON object per line."""
        return "".join(map(to_line, self._rows))

    # --- what annotators disagree on --------------------------------------------------------------

    @cached_property
    def _splits(self) -> list[tuple[Place, Metric, Given | None]]:
        """The places where labels differ, the metric and the adjudication. First come those without
        one, of these the most severe."""
        lead = (one for one in self.given if one.annotator == ADJUDICATED)
        settled = {(one.screen, one.field): one for one in lead if one.label is not None}
        found = []
        for metric, study in self._metrics():
            ratings, k = study.humans[metric.id].ratings, len(metric.labels)
            severity = metric.severities if metric.kind == "ordinal" else (0,) * k
            counts, of = ratings.named(k).sum(axis=1), (ratings.values >= 0).sum(axis=1)
            differ = ((counts > 0) & (counts < of[:, None])).any(axis=1)
            for row, named in zip(ratings.rows[differ].tolist(), counts[differ] > 0, strict=True):
                screen, _, about = study.answers[row].item_id.partition("@")
                place = screen, f"{metric.id}@{about}" if about else metric.id
                labels = np.flatnonzero(named)
                least, worst = (severity[labels[i]] / (severity[-1] or 1) for i in (0, -1))
                turn = (place in settled, -worst, least - worst)
                found.append((turn, (place, metric, settled.get(place))))
        return [split for _, split in sorted(found, key=lambda one: one[0])]

    @property
    def disagreements(self) -> list[dict[str, Any]]:
        """Fields on which the labels of two annotators or more differ: those that wait for an
        adjudication first, the most severe first.

        Nothing in it says whose a label is: labels go from the least severe on, with the words
        that were marked as the reason of each, and remarks by the alphabet.
        """
        remarks = defaultdict[str, list[str]](list)
        for (who, name), one in self.last.items():
            if one.remark and who != ADJUDICATED:
                remarks[name].append(one.remark)
        found = []
        for (name, key), metric, given in self._splits[:MOST_LISTED]:
            screen = self.screens[name]
            shown = screen.shown_to(ADJUDICATED, self.meta.get("seed", 0), screen.parts - 1)
            asked = next(field for field in shown["fields"] if field["key"] == key)
            about = {"screen": name, "hash": screen.hash, "metric": metric.id, "field": asked}
            about["sections"] = shown["sections"]
            given_by = {who: self.labels.get((who, name), {}).get(key) for who in self.assigned}
            said = sorted(
                (places, label, self._quotes(who, name, key))
                for who, label in given_by.items()
                if label and (places := metric.places(label))
            )
            about["labels"] = [label for _, label, _ in said]
            about["quotes"] = [quotes for *_, quotes in said]
            about["remarks"] = sorted(remarks[name])
            found.append({**about, "adjudication": given and asdict(given)})
        return found

    def _reasons(self) -> Iterator[dict[str, Any]]:
        """The number of disagreements on each metric, and the reasons of those that are
        adjudicated."""
        for name in self.titles:
            if own := [given for _, metric, given in self._splits if metric.id == name]:
                reasons = Counter(given.reason for given in own if given)
                yield {"metric": name, "of": len(own), "reasons": reasons}

    # --- when judges are decided on ---------------------------------------------------------------

    @property
    def to_decide(self) -> str:
        """The command that decides on judges by all labels."""
        return f"judgebench decide {quote(str(self.path))} VERDICTS"

    @cached_property
    def ended(self) -> bool:
        """True where no item of the main round is left to label."""
        main = self.in_round(ROUNDS[0])
        states = (state for own in self.states.values() for s, state in own.items() if s in main)
        return bool(main) and all(state in ("done", "skipped") for state in states)

    def not_due(self) -> str:
        """A sentence on when the next interim analysis is; none where it is due."""
        far = self._far(ROUNDS[0])
        complete, of = far["complete"], far["of"]
        last = max((look["items"] for look in self.looks), default=0)
        left = [n for n in self.meta["looks"] if last < n < of]
        if complete > last and (self.ended or (left and left[0] <= complete)):
            return ""
        which = "next" if last else "first" if left else "only"
        at = f"the {which} one is at {(left or [of])[0]:,}"
        then = f"the last one was made at {last:,}" if self.ended else at
        return f"No interim analysis is due: {_complete(far)}; {then}"

    def _next_decision(self) -> str:
        """The next step towards a decision; none where there is nothing to do but to label."""
        if not self.meta.get("looks"):
            export = f"judgebench annotate export {quote(str(self.path))}"
            then = export if self.meta["task"] in WITHOUT_RUBRIC else self.to_decide
            return f"All labels are in. Next: {then}" if self.ended else ""
        if (not_due := self.not_due()) and self.ended:
            return "The last interim analysis is made."
        due = f"An interim analysis is due: {_complete(self._far(ROUNDS[0]))}"
        return (
            f"{not_due or due}. It is made with “judgebench annotate look”. Until then, nothing "
            "more about the judge is shown."
        )

    # --- on a terminal ----------------------------------------------------------------------------

    @property
    def results(self) -> Results:
        """Labels by person and metric, and agreement."""
        counts = (
            Row("progress", key, Estimate(of[key], n=of["of"]), "", metric, {"who": one["name"]})
            for one in self.figures["people"]
            for metric, of in one["metrics"].items()
            for key in ("labels", "cannot_tell")
        )
        return Results((*counts, *self.agreement))

    def records(self) -> dict[str, list[Any]]:
        """The figures of the lead's page."""
        return {"figures": [self.figures]}

    @property
    def part(self) -> ReportSection:
        """The progress of everybody, the agreement of people, and what stands out."""
        f = self.figures
        people = [
            (one["name"], *(f"{one[key]:,}" for key in ("done", "of", "skipped")),
             str(sum(of["cannot_tell"] for of in one["metrics"].values())),
             f"{60 * one['minutes']['value']:.0f}" if one["minutes"]["n"] else DASH)
            for one in f["people"]
        ]  # fmt: skip
        now = next((name for name in _ROUNDS if f["rounds"][name]["complete"]), ROUNDS[0])
        severe = {one["metric"]: (str(one["somebody"]), str(one["most"])) for one in f["severe"]}
        heads = {one.key: one.heading for one in _AGREEMENT}
        heads |= _OF_SETS if any(metric.several for metric in self.rubric) else {}
        agreed = [
            (self.titles[metric],
             *(f"{found[key].estimate:.2f}" if key in found else DASH for key in heads),
             *severe.get(metric, (DASH, DASH)))
            for (metric, name), found in self.agreement.pivot("agreement", *_BY).items()
            if name == now
        ]  # fmt: skip
        numbers = (*heads.values(), "Severe: by somebody", "by most")
        note = "In brackets: 95 % intervals, over whole groups of items."
        title = f"Agreement in the {now} round"
        agreement = Layout(title.lower(), title, ("Metric",), (note,), numbers).listing(agreed)
        found = self.gold.pivot("gold", "who", "metric", "round")
        hits = {at: row["hits"] for at, row in found.items()}
        gold = [
            (who, self.titles[metric], *(_hits(hits.get((who, metric, of))) for of in _GOLD_ROUNDS))
            for who, metric in dict.fromkeys(at[:2] for at in hits)
        ]
        tables = (_PROGRESS.listing(people), agreement, *([_GOLD.listing(gold)] if gold else []))
        blocks = (Block(text=tuple(self._said()), tables=tables, on_screen=True),)
        return ReportSection("annotate", "labels so far", self.results, blocks, screen=blocks)

    def _said(self) -> Iterator[str]:
        f = self.figures
        for name in filter(self.in_round, _ROUNDS):
            done = f["rounds"][name]
            yield f"{done['complete']:,} of {done['of']:,} items of the {name} round are complete."
        yield from (odd for one in f["distribution"] for odd in one["odd"])
        for one in f["reasons"]:
            settled = "".join(f", {n} {reason}" for reason, n in one["reasons"].items())
            yield f"{self.titles[one['metric']]}: {counted(one['of'], 'disagreement')}{settled}."
        yield from (sentence for look in self.looks for sentence in look["said"])


def _hits(row: Row | None) -> str:
    found = row.estimate if row else None
    return f"{round((found.value or 0) * found.n)} of {found.n}" if found else DASH


def _complete(far: Mapping[str, int]) -> str:
    return f"{far['complete']:,} of {counted(far['of'], 'item is', 'items are')} complete"


def _item(screen: str, field: ScreenField) -> str:
    return f"{screen}@{field.about}"


def _agreed(metric: Metric, study: Study) -> dict[str, Estimate]:
    """Statistics of everybody's agreement: other ones where several labels may be right."""
    if metric.several:
        rows = {
            row.statistic: row.estimate for row in several(study, metric) if row["who"] == EVERYBODY
        }
        return {key: rows.get(key, Estimate(None, reason="no label yet")) for key in _OF_SETS}
    votes = Votes(study, metric, study.humans[metric.id].made.values)
    return {one.key: one.formula(votes) for one in _AGREEMENT if one.formula}


def _distribution(metric: Metric, study: Study) -> dict[str, Any]:
    """The counts of each label by person, in both rounds, and who uses them as nobody else."""
    humans = study.humans[metric.id]
    counts = humans.ratings.named(len(metric.labels)).sum(axis=0).tolist()
    people = dict(zip(humans.ratings.annotators, counts, strict=True))
    about = {"metric": metric.id, "labels": metric.label_texts}
    return {**about, "people": people, "odd": list(unusual_label_use_notes(humans))}


# --- looks at a decision while labels come in: when one is due, and what is kept of it ------------


class InterimAnalysis(NamedTuple):
    """A look that is due: at these complete screens of so many, and the shares that were complete
    at each look so far, this one last."""

    screens: Collection[str]
    of: int
    shares: Sequence[float]


def due_look(store: Store) -> InterimAnalysis:
    """The look that may be made now. Raises SetupError where none may: each declared number of
    complete items allows one look, and then the end of the labels the last."""
    now = Collected(store)
    if (task := now.meta["task"]) in WITHOUT_RUBRIC:
        raise SetupError(Problem(f"does not apply to the task {task}", field="look"))
    if not store.meta.get("looks"):
        message = "No interim analysis was planned; `looks` in annotate.yaml plans some"
        raise SetupError(Problem(f"{message}. When all labels are in: {now.to_decide}"))
    if not_due := now.not_due():
        raise SetupError(Problem(not_due))
    main = now.in_round(ROUNDS[0])
    complete = main & now.complete
    shares = [*(look["share"] for look in store.looks), len(complete) / len(main)]
    return InterimAnalysis(complete, len(main), shares)


def labels_on(store: Store, screens: Collection[str]) -> list[dict[str, str]]:
    """The labels on these screens as rows of a table, under the names of the data; items of one
    question are one `group`."""
    key = key_of(store)
    groups = {
        target.columns["item_id"]: store.screens[screen].screen.group
        for screen in screens
        for target in key.screens[screen].values()
    }
    return [{**row, "group": groups[row["item_id"]]} for row in rows_of(store, key, screens)]


def keep_look(store: Store, look: InterimAnalysis, decided: Any) -> Sequence[str]:
    """Keeps the decisions of a look, and no verdict, beside the labels. Returns them in words, and
    what data would settle each judge's metrics."""
    titles, n = decided.titles, len(look.screens)
    said = [
        f"Interim analysis {len(look.shares)}, at {n:,} of {look.of:,} items, with intervals of "
        f"{100 * decided.rule.level:.4g} %."
    ]
    plans = defaultdict[str, dict[str, list[str]]](lambda: defaultdict(list))
    for d in decided.decisions:
        said.append(f"{d.judge}: {d.shown} for {titles[d.metric]}. {d.reason}")
        needed = "nothing needs to be added for"
        if d.more is not None:
            severe = f" ({d.more.severe:,} severe)" if d.more.severe else ""
            about = f"about {d.more.items or 0:,} more items{severe} settle"
            needed = "nothing settles" if d.more.items is None else about
        plans[d.judge][needed].append(titles[d.metric])
    for judge, needs in plans.items():
        clauses = (f"{needed} {listed(metrics)}" for needed, metrics in needs.items())
        said.append(f"{judge}: {'; '.join(clauses)}.")
    store.add_look(n, {"share": look.shares[-1], "level": decided.rule.level, "said": said})
    return said


def collected(study: str | Path) -> Collected:
    """Summarise the labels of a study of `judgebench annotate` so far: progress, agreement, who
    differs from the rest. Raises SetupError where there is no study.

    >>> import judgebench as jb
    >>> jb.collected("studies/labels").figures["rounds"]["main"]
    {'of': 24, 'complete': 0}
    """
    with snapshot(Path(study)) as store:
        return Collected(store)
