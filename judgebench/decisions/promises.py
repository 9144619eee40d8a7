"""The promises of a protocol, made before the first label, and what became of them. They change no
number."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from judgebench.alignment.report import flat
from judgebench.decisions.rule import DecisionRule, rule_for
from judgebench.protocol import Protocol
from judgebench.records import COLLECTED, Estimate, Row
from judgebench.results.blocks import UNDERSTOOD
from judgebench.rubric import Rubric
from judgebench.studies.study import Study

UNKNOWN = "unknown"
_SHOWN = 16  # of a hash; of a time, up to the minute


def promises(
    protocol: Protocol, study: Study, rule: DecisionRule, looks: Sequence[float]
) -> Iterator[Row]:
    """A row for each promise: 1 where it was kept, 0 where not, none where the data do not show it.

    Decided is by `rule` before it was widened, and at `looks`, the last of which is now. A rule
    that the protocol does not hold counts as made after the labels: nothing shows that it is older.
    """
    first, carried = (_carried(study, fact) for fact in ("first_label", "protocol"))
    sha256 = protocol.sha256[:_SHOWN]
    written = protocol.written[:_SHOWN]
    yield _row("file", [sha256], [protocol.content_hash[:_SHOWN]])
    yield _row("hash in labels", [sha256], [carried])
    yield _row("written before labels", [written], [first], written <= first)
    labels, labels_read = _labels_of(protocol.rubric), _labels_of(study.rubric)
    unread, unplanned = labels - labels_read, labels_read - labels
    yield _row("rubric", sorted(unread or labels), sorted(unplanned or labels_read))
    yield from _counts(protocol, study, looks)
    rules = rule_for(protocol.rule, study.rubric), rule
    before, now = (dict(flat(each.model_dump())).items() for each in rules)
    yield _row("rule changed after labels", [], sorted({key for key, _ in before ^ now}))
    yield _row("analyses at shares", [*protocol.looks, 1.0][: len(looks)], looks)
    # A study of `judgebench annotate` draws by its protocol, and shows nobody another's label.
    is_drawn = carried == sha256
    drawn = study.config.drawn or [protocol.drawn if is_drawn else UNKNOWN]
    yield _row("draw", [protocol.drawn], drawn)
    yield _row("blind to judges", ["yes"], [study.config.blind])
    yield _row("blind to each other", ["yes"], ["yes" if is_drawn else UNKNOWN])
    present = [column for column in protocol.subgroups if any(study.cells.get(column, ()))]
    yield _row("subgroups", protocol.subgroups, present)


def _labels_of(rubric: Rubric) -> set[str]:
    """Each metric in words: its id and its labels, with `<` up to the severe one."""
    marks = {True: " < ", False: ", "}
    return {f"{m.id}: {marks[m.has_severe].join(m.label_texts)}" for m in rubric.metrics}


def _counts(protocol: Protocol, study: Study, looks: Sequence[float]) -> Iterator[Row]:
    """The promises on numbers: of answers with labels of the metric with the fewest, of labels that
    each has on average, and of annotators who do not count."""
    ratings = [humans.ratings for humans in study.humans.values()]
    rows = [len(r.rows) for r in ratings]
    planned = round(protocol.answers * max(looks, default=1))
    yield _row("answers with labels", [planned], [min(rows)], min(rows) >= planned)
    each = study.n_labels / max(1, sum(rows))
    is_enough = each >= protocol.annotators
    yield _row("labels per answer", [protocol.annotators], [round(each, 2)], is_enough)
    everybody = {annotator for r in ratings for annotator in r.annotators}
    yield _row("annotators left out", [], sorted(everybody.difference(study.makers)))


def _row(
    promise: str, planned: Collection[object], actual: Collection[object], is_met: bool = False
) -> Row:
    """The row of a promise, which is kept where both are the same or it is met all the same."""
    kept = is_met or [*planned] == [*actual]
    state = UNKNOWN if UNKNOWN in actual else "kept" if kept else "broken"
    before, now = (", ".join(map(str, side)) or "none" for side in (planned, actual))
    keys = {"promise": promise, "planned": before, "actual": now, "state": state}
    reason = f"{promise}, planned {before}, actual {now} ({state})"
    estimate = Estimate(None if state == UNKNOWN else float(kept), reason=reason)
    return Row("protocol", promise.replace(" ", "_"), estimate, keys=keys)


def _carried(study: Study, fact: str) -> str:
    """The fact of a kind (a key of COLLECTED) that the labels carry."""
    start = UNDERSTOOD + COLLECTED[fact]
    carried = [note.removeprefix(start) for note in study.notes if note.startswith(start)]
    return min(carried, default=UNKNOWN)[:_SHOWN].rstrip(".")
