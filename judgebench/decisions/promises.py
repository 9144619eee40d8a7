"""What a protocol promised before the first label, and what became of it. It changes no number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.alignment.notes import BLIND
from judgebench.alignment.report import flat
from judgebench.decisions.rule import DecisionRule, Rule, rule_for
from judgebench.files import is_file
from judgebench.protocol import Protocol
from judgebench.records import COLLECTED, Estimate, Row
from judgebench.results.blocks import UNDERSTOOD
from judgebench.studies.reference_labels import drawn_of
from judgebench.studies.study import Study, population_notes
from judgebench.text import listed, percent

_STATES = {True: "kept", False: "broken", None: "not known"}
_TITLES = {  # of each promise, and the fact of a reporting checklist that it belongs to
    "unchanged": ("the protocol is as it was written", "plan"),
    "before": ("written before the first label", "plan"),
    "metrics": ("metrics, labels and severe labels", "plan"),
    "answers": ("answers with labels", "plan"),
    "annotators": ("annotators of each answer", "plan"),
    "everybody": ("no annotator is left out", "plan"),
    "rule": ("decision rule", "plan"),
    "looks": ("interim analyses", "plan"),
    "drawn": ("how answers were drawn", "sampling"),
    "blind": ("annotators see no judge's labels", "rating_process"),
    "apart": ("annotators do not see each other's labels", "rating_process"),
    "subgroups": ("subgroups to be decided apart", "plan"),
}


@dataclass(frozen=True)
class Promise:
    """A promise of a protocol (a key of _TITLES): what was planned, what became of it, and whether
    it was kept; None where the data do not show it."""

    key: str
    planned: str
    actual: str
    is_kept: bool | None

    @property
    def title(self) -> str:
        """The subject of the promise."""
        return _TITLES[self.key][0]

    @property
    def state(self) -> str:
        """`kept`, `broken` or `not known`."""
        return _STATES[self.is_kept]

    def row(self) -> Row:
        """The promise as a row: 1 where it was kept, 0 where not."""
        title, fact = _TITLES[self.key]
        keys = {"promise": title, "state": self.state, "planned": self.planned,
                "actual": self.actual, "fact": fact}  # fmt: skip
        kept = None if self.is_kept is None else float(self.is_kept)
        return Row("protocol", self.key, Estimate(kept, reason=self.actual), keys=keys)


def promises(
    protocol: Protocol, study: Study, source: Rule | None, looks: Sequence[float]
) -> Iterator[Promise]:
    """Every promise of a protocol; `source` is the rule that was given in place of its own, and
    `looks` are the interim analyses so far."""
    carried, (first, *_) = _carried(study, "protocol"), [*_carried(study, "first_label"), ""]
    is_linked = carried == [protocol.sha256] if carried else None
    yield _unchanged(protocol, is_linked)
    actual = f"first label at {first}" if first else "labels carry no time"
    yield Promise("before", protocol.written, actual, first > protocol.written if first else None)
    yield _metrics(protocol, study)
    yield from _counts(protocol, study, looks)
    yield _rule(protocol, study, source, first)
    yield _looks(protocol, looks)
    yield _drawn(protocol, study, is_linked)
    blind = {"yes": True, "no": False, "unknown": None}[study.config.blind]
    yield Promise("blind", BLIND["yes"], BLIND[study.config.blind], blind)
    actual = "labels were given on pages that show none" if is_linked else "not known"
    yield Promise("apart", "each labels alone", actual, is_linked or None)
    if protocol.subgroups:
        absent = [c for c in protocol.subgroups if not any(study.cells.get(c, ()))]
        actual = f"no column {listed(absent)} (--column NAME=kept)" if absent else "all there"
        yield Promise("subgroups", listed(protocol.subgroups), actual, not absent)


def _carried(study: Study, fact: str) -> list[str]:
    """What the labels carry of such a fact, sorted."""
    notes = (note.removeprefix(UNDERSTOOD) for note in study.notes)
    start = COLLECTED[fact]
    return sorted(note.removeprefix(start).rstrip(".") for note in notes if note.startswith(start))


def _unchanged(protocol: Protocol, is_linked: bool | None) -> Promise:
    actual = {
        True: "the labels carry its hash", False: "the labels carry the hash of another protocol",
        None: "the labels carry no hash",
    }[is_linked]  # fmt: skip
    if not protocol.is_unchanged:
        actual, is_linked = "the file was changed since it was written", False
    return Promise("unchanged", protocol.sha256[:8], actual, is_linked)


def _metrics(protocol: Protocol, study: Study) -> Promise:
    """The metrics of the study have the labels that were promised, and the promised ones are
    there."""
    actual = {m.id: m.label_texts for m in study.rubric.metrics}
    planned = {m.id: m.label_texts for m in protocol.rubric.metrics}
    differing = [m for m in {**planned, **actual} if planned.get(m) != actual.get(m)]
    words = f"others of {listed(differing)}" if differing else "the same"
    return Promise("metrics", listed([*planned]), words, not differing)


def _counts(protocol: Protocol, study: Study, looks: Sequence[float]) -> Iterator[Promise]:
    """Of the metric with the fewest: how many answers have labels, and how many annotators'; and
    whose labels are left out of the reference labels."""
    n_planned = math.ceil(protocol.answers * (looks[-1] if looks else 1.0))
    n_answers, n_absent, left_out = [], [], set[str]()
    for humans in study.humans.values():
        ratings = humans.ratings
        n_each = ((ratings.values >= 0) | ratings.blank).sum(axis=1)
        absent = np.clip(protocol.annotators - n_each, 0, None).sum() - ratings.abstained
        n_answers.append(len(ratings.rows))
        n_absent.append(max(0, int(absent)))
        left_out |= {*ratings.annotators} - {*humans.makers}
    least, absent = min(n_answers), max(n_absent)
    yield Promise("answers", f"{n_planned:,}", f"{least:,}", least >= n_planned)
    words = f"{absent:,} labels are missing" if absent else f"{protocol.annotators} or more"
    yield Promise("annotators", str(protocol.annotators), words, not absent)
    words = f"{listed(sorted(left_out))} left out" if left_out else "everybody counts"
    yield Promise("everybody", "all count", words, not left_out)


def _rule(protocol: Protocol, study: Study, source: Rule | None, first: str) -> Promise:
    """A rule that is not that of the protocol differs in keys, and was made after the first label
    unless its file is older."""
    planned = _keys(rule_for(protocol.rule, study.rubric))
    actual = _keys(rule_for(protocol.rule if source is None else source, study.rubric))
    changes = [
        f"{key} {planned.get(key)} → {actual.get(key)}"
        for key in {**planned, **actual}
        if planned.get(key) != actual.get(key)
    ]
    if not changes:
        return Promise("rule", "that of the protocol", "the same", True)
    at = datetime.now(UTC).timestamp()
    if isinstance(source, str | Path) and is_file(Path(source)):
        at = Path(source).stat().st_mtime
    changed = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    when = ("after" if changed >= first else "before") + " the first label was read"
    words = f"{'; '.join(changes)}, changed {when if first else '(labels carry no time)'}"
    return Promise("rule", "that of the protocol", words, False)


def _keys(rule: DecisionRule) -> Mapping[str, Any]:
    return dict(flat(rule.model_dump(mode="json")))


def _looks(protocol: Protocol, looks: Sequence[float]) -> Promise:
    """The end is the last analysis, which is said where others came before it."""
    planned = [percent(share) for share in (*protocol.looks, 1.0)]
    actual = [percent(share) for share in looks] or planned[-1:]
    is_kept = actual == planned[: len(actual)]
    return Promise("looks", f"at {listed(planned)}", f"at {listed(actual)}", is_kept)


def _drawn(protocol: Protocol, study: Study, is_linked: bool | None) -> Promise:
    planned, actual = drawn_of([protocol.drawn]), study.drawn
    if actual == planned or (not actual.is_said and is_linked):
        unlike = [*population_notes(study)] if planned.random else []
        return Promise("drawn", protocol.drawn, unlike[0] if unlike else "so", not unlike)
    if actual.is_said:
        return Promise("drawn", protocol.drawn, actual.in_words() or "at random", False)
    return Promise("drawn", protocol.drawn, "not declared (--drawn)", None)
