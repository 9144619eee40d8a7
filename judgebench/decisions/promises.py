"""The promises of a protocol, made before the first label, and what became of them. They change no
number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from judgebench.alignment.report import flat
from judgebench.decisions.rule import DecisionRule, rule_for
from judgebench.protocol import Protocol
from judgebench.records import COLLECTED, Estimate, Row
from judgebench.results.blocks import UNDERSTOOD
from judgebench.rubric import Rubric
from judgebench.studies.study import Study

UNKNOWN = "unknown"
_SHOWN = 16  # of a hash; of a time, up to the minute
_NEAR = 0.05  # of the promised answers: so many more than are due at an interim analysis
_OF_HASH = ("file", "hash in labels")  # what a file shows that was changed

_Compared = tuple[Any, ...]  # a promise, as planned, as it became; perhaps whether it is kept


def promises(
    protocol: Protocol, study: Study, rule: DecisionRule, looks: Sequence[float]
) -> Iterator[Row]:
    """A row for each promise: 1 where it was kept, 0 where not, none where nothing shows it.

    Decided is by `rule` before it was widened, and at `looks` as somebody says, the last of which
    is now. A rule that the protocol does not hold counts as made after the labels: nothing shows
    that it is older. Of a protocol that was changed only its hash shows anything.
    """
    is_changed = protocol.content_hash != protocol.sha256
    for promise, planned, actual, *is_kept in _compared(protocol, study, rule, looks):
        before, now = (", ".join(map(str, side)) or "none" for side in (planned, actual))
        state = "kept" if any(is_kept) or before == now else "broken"
        if UNKNOWN in actual or (is_changed and promise not in _OF_HASH):
            state = UNKNOWN
        keys = {"promise": promise, "planned": before, "actual": now, "state": state}
        reason = f"{promise}, planned {before}, actual {now} ({state})"
        estimate = Estimate(None if state == UNKNOWN else float(state == "kept"), reason=reason)
        yield Row("protocol", promise.replace(" ", "_"), estimate, keys=keys)


def _compared(
    protocol: Protocol, study: Study, rule: DecisionRule, looks: Sequence[float]
) -> Iterator[_Compared]:
    """Each promise, as planned and as it became; where these may differ, whether it is kept."""
    first, carried = (_carried(study, fact) for fact in ("first_label", "protocol"))
    sha256 = protocol.sha256[:_SHOWN]
    written = protocol.written[:_SHOWN]
    yield "file", [sha256], [protocol.content_hash[:_SHOWN]]
    yield "hash in labels", [sha256], [carried]
    yield "written before labels", [written], [first], written <= first
    labels, labels_read = _labels_of(protocol.rubric), _labels_of(study.rubric)
    unread, unplanned = labels - labels_read, labels_read - labels
    yield "rubric", sorted(unread or labels), sorted(unplanned or labels_read)
    yield from _counts(protocol, study, max(looks, default=1.0), carried != UNKNOWN)
    rules = rule_for(protocol.rule, study.rubric), rule
    before, now = (dict(flat(each.model_dump())).items() for each in rules)
    yield "rule changed after labels", [], sorted({key for key, _ in before ^ now})
    due = [*protocol.looks, 1.0][: len(looks) or None]
    yield "analyses at shares", due, looks or [UNKNOWN]
    # A study of `judgebench annotate` draws by its protocol, and shows nobody another's label.
    is_drawn = carried == sha256
    drawn = study.config.drawn or [protocol.drawn if is_drawn else UNKNOWN]
    yield "draw", [protocol.drawn], drawn
    yield "blind to judges", ["yes"], [study.config.blind]
    yield "blind to each other", ["yes"], ["yes" if is_drawn else UNKNOWN]
    present = [column for column in protocol.subgroups if any(study.cells.get(column, ()))]
    yield "subgroups", protocol.subgroups, present


def _labels_of(rubric: Rubric) -> set[str]:
    """Each metric in words: its id and its labels, with `<` up to the severe one."""
    marks = {True: " < ", False: ", "}
    return {f"{m.id}: {marks[m.has_severe].join(m.label_texts)}" for m in rubric.metrics}


def _counts(
    protocol: Protocol, study: Study, share: float, is_collected: bool
) -> Iterator[_Compared]:
    """The promises on numbers, at that share of the answers: of answers with labels of the metric
    with the fewest, of labels that each has on average, and of annotators who do not count. In
    labels that judgebench collected, a blank says that the annotator cannot tell."""
    ratings = [humans.ratings for humans in study.humans.values()]
    n_answers, n_due = min(len(r.rows) for r in ratings), round(protocol.answers * share)
    most = n_due + _NEAR * protocol.answers if share < 1 else n_answers
    yield "answers with labels", [n_due], [n_answers], n_due <= n_answers <= most
    n_labels = sum(
        (r.values >= 0).sum() + r.abstained + is_collected * r.blank.sum() for r in ratings
    )
    each, n_promised = n_labels / max(1, sum(len(r.rows) for r in ratings)), protocol.annotators
    is_enough = each >= n_promised
    yield "labels per answer", [n_promised], [round(float(each), 2)], is_enough
    everybody = {annotator for r in ratings for annotator in r.annotators}
    left_out = sorted(everybody.difference(study.makers))
    yield "annotators left out", [], left_out or [UNKNOWN] * (not is_enough)


def _carried(study: Study, fact: str) -> str:
    """The fact of a kind (a key of COLLECTED) that the labels carry."""
    start = UNDERSTOOD + COLLECTED[fact]
    carried = [note.removeprefix(start) for note in study.notes if note.startswith(start)]
    return min(carried, default=UNKNOWN)[:_SHOWN].rstrip(".")
