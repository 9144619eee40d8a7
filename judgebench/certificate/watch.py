"""Watch whether a certificate still holds: of the judge, of the answers, and of its agreement with
people, each by tests that may be looked at whenever one likes.

The judge: anchors, answers that it judged for the certificate, are judged again. Only another judge
can change what it says of them more often than its own noise does (Li 2026, "Who drifted: the
system or the judge?", arXiv 2606.15474, whose anchors are compared with human labels; here they are
compared with the judge's own). The answers: shares of labels, systems and lengths, beside those of
the certificate. Agreement: fresh human labels, beside the bounds of the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.certificate import levels
from judgebench.certificate.reading import Batch, batches
from judgebench.certificate.record import Anchor, Certificate, Watched
from judgebench.certificate.result import Checked, Counted, Watching
from judgebench.certificate.seen import (
    AMONG,
    BY_LABELS,
    Seen,
    compared,
    features,
    hash_of,
    observed,
    one_each,
    same,
    upper,
)
from judgebench.certificate.state import State, StateFile
from judgebench.errors import Problem, SetupError
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray
from judgebench.stats.betting import Evidence, Sums
from judgebench.studies.study import Study


@dataclass(frozen=True)
class Test:
    """One null hypothesis: that the mean of what is seen lies at most `bound` (at least, where
    `below`). It is rejected at level `alpha`."""

    family: str  # changed, shifted, fallen, near
    metric: str
    about: str  # a watched share, or the category of a feature
    bound: float
    alpha: float
    below: bool = False

    @property
    def key(self) -> str:
        """The name of its evidence."""
        return ":".join(part for part in (self.family, self.metric, self.about) if part)

    @property
    def seen(self) -> str:
        """The name of the sums of what it is about, which tests of one share have in common."""
        return f"{self.metric}:{self.about or self.family}"

    def after(self, evidence: Evidence, x: FloatArray, weights: FloatArray) -> Evidence:
        """The evidence with more observations in [0, 1], the weights of which are at most 1."""
        y, floor = (self.bound - x, 1 - self.bound) if self.below else (x - self.bound, self.bound)
        return evidence.after(weights * y, max(floor, 1e-6))


def tests_of(certificate: Certificate) -> list[Test]:
    """Every hypothesis of a certificate, with its part of the levels."""
    found, certified = list[Test](), certificate.certified
    for metric, one in certified.items():
        if one.noise:
            alpha = levels.CHANGED / len(certified)
            found.append(Test("changed", metric, "", one.noise.most, alpha))
    shares = certificate.population.shares
    categories = sum(len(counts) for counts in shares.values())
    for feature, counts in shares.items():
        n = sum(counts.values())
        for category, k in counts.items():
            bound = upper(k, n, levels.SHARES / categories)
            alpha = levels.SHIFTED / categories
            if bound < 1:
                found.append(Test("shifted", feature, category, bound, alpha))
    kept = [(m, w) for m, one in certified.items() for w in one.watched]
    near = [(m, w) for m, w in kept if w.near is not None]
    for metric, w in kept:
        alpha = levels.FALLEN / len(kept)
        found.append(Test("fallen", metric, w.key, w.bound, alpha, w.at_least))
    for metric, w in near:
        assert w.near is not None
        found.append(Test("near", metric, w.key, w.near, levels.NEAR / len(near), w.at_least))
    return found


class Watch:
    """A certificate and what was seen since, kept in the file `state` (in memory without one).

    >>> import judgebench as jb
    >>> watch = jb.watch("judge.json", state=None)
    >>> watch.update("log.csv").state
    'valid'
    """

    def __init__(
        self, certificate: Certificate, state: Path | None = None,
        opened: Callable[[Path], Study] | None = None,
    ) -> None:  # fmt: skip
        self.certificate, self._opened = certificate, opened
        self._file = StateFile(state, certificate)

    def close(self) -> None:
        """Close the file of the state; it can be opened again at any time."""
        self._file.close()

    def update(
        self, *given: Any, source: str = "", again: bool = False, now: datetime | None = None
    ) -> Watching:
        """Count what is new in studies, and tables of verdicts and labels, and say how the
        certificate stands. Nothing counts twice: an answer and its labels count once, an anchor
        once for each `source` (the path of a file) and each time that `again` is said.

        Raises SetupError with every problem; nothing is counted then.
        """
        read = [self._opened(Path(x)) if self._opened and _is_folder(x) else x for x in given]
        names = [str(Path(x).resolve()) if isinstance(x, str | Path) else "" for x in given]
        new = batches(read, self.certificate, names)
        return self.update_rows(new, source=source, again=again, now=now)

    def update_rows(
        self, new: Sequence[Batch], *, source: str = "", again: bool = False,
        now: datetime | None = None,
    ) -> Watching:  # fmt: skip
        """The same of rows."""
        with self._file.transaction() as state:
            self._start(state, now)
            mine, rows = list[Seen](), list[Seen]()
            for batch in new:
                name = source or batch.source or f"update {state.anchors} {state.answers}"
                name += f" again {state.last}" if again else ""
                anchors, others = self._sorted(batch.rows)
                mine += self._fresh(anchors, lambda row, name=name: ("anchor", name, row.item))
                rows += others
            answers = self._fresh(rows, lambda row: ("answer", row.item, row.hash))
            people = [row for row in rows if any(row.labels.values())]
            people = self._fresh(people, lambda row: ("labels", row.item, row.hash))
            # All at once: how rows are ordered and shared out to files says nothing of a change.
            self._judged_again(state, mine)
            self._seen(state, answers)
            self._labelled(state, people)
            before = sum(len(batch.rows) for batch in new) - len(mine) - len(answers)
            state.add_point()
            found = self._watching(state, Counted(len(mine), len(answers), len(people), before))
            state.told = found.state
        return found

    def status(self, now: datetime | None = None) -> Watching:
        """How the certificate stands, without anything new."""
        return self.update_rows([], now=now)

    @property
    def standing(self) -> str:
        """How the certificate stood after the last update; `valid` before any."""
        return self._file.read().told

    def next_anchors(self, n: int) -> list[Anchor]:
        """The next n anchors to judge: in an order that is drawn anew for each pass over all of
        them, from the hash of the certificate and from how many were judged again so far."""
        anchors, at = self.certificate.anchors, self._file.read().anchors
        if not anchors:
            return []
        turn, place = divmod(at, len(anchors))
        order = list[Anchor]()
        for one in (str(turn), str(turn + 1)):
            drawn = [(hash_of([self.certificate.hash, one, a.id]), a) for a in anchors]
            order += [a for _, a in sorted(drawn, key=itemgetter(0))]
        found = order[place : place + min(n, len(anchors))]
        return list({one.id: one for one in found}.values())

    # ---- counting -------------------------------------------------------------------------------

    def _start(self, state: State, now: datetime | None) -> None:
        """Time goes on, also where the clock was put back."""
        time = (now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds")
        state.started = state.started or time
        state.last = max(state.last, time)

    def _sorted(self, rows: Sequence[Seen]) -> tuple[list[Seen], list[Seen]]:
        """Anchors, which have the id and the text of one, and all others. An anchor without any
        reply, as when an endpoint was down, was not judged again."""
        known, anchors, others = self.certificate.by_id, list[Seen](), list[Seen]()
        for row in rows:
            anchor = known.get(row.item)
            is_anchor = anchor is not None and (
                not row.hash or not anchor.hash or row.hash == anchor.hash
            )
            if not is_anchor:
                others.append(row)
            elif not row.failed:
                anchors.append(row)
        return anchors, others

    def _fresh(self, rows: Sequence[Seen], name: Any) -> list[Seen]:
        new = self._file.unseen(hash_of(name(row)) for row in rows)
        return [row for row, is_new in zip(rows, new, strict=True) if is_new]

    def _judged_again(self, state: State, rows: Sequence[Seen]) -> None:
        known = self.certificate.by_id
        state.anchors += len(rows)
        for test in self._of("changed"):
            pairs = [
                (known[row.item].verdicts.get(test.metric, ""), row.verdicts[test.metric])
                for row in rows
                if test.metric in row.verdicts
            ]
            self._count(state, test, [a != b for a, b in pairs])

    def _seen(self, state: State, rows: Sequence[Seen]) -> None:
        """Answers that were judged; of several to one question one counts for the shares."""
        population = self.certificate.population
        state.answers += len(rows)
        for row in rows:
            if row.model:
                last = state.model or next(iter(self.certificate.judge.models), row.model)
                state.model_changes += row.model != last
                state.model = row.model
            for feature, category in features(row, population.cuts, population.near):
                counts = population.shares.get(feature)
                if counts is not None and category not in counts:
                    new = state.new.setdefault(feature, {})
                    new[category] = new.get(category, 0) + 1
        each = compared(one_each(rows), population)
        said = [dict(features(row, population.cuts, population.near)) for row in each]
        for test in self._of("shifted"):
            x = [f[test.metric] == test.about for f in said if test.metric in f]
            self._count(state, test, x)
        self._share(state, rows, [k for k in self._watched if k[1].key not in BY_LABELS])

    def _labelled(self, state: State, rows: Sequence[Seen]) -> None:
        """Fresh human labels."""
        if not rows:
            return
        chances = [row.chance for row in rows]
        state.least_chance = state.least_chance or min(chances)
        if (least := min(chances)) < state.least_chance * (1 - 1e-9):
            row = rows[chances.index(least)]
            message = (
                "has a smaller chance to be labelled than any before: weights have a limit, which "
                "the first labels set"
            )
            found, allowed = f"{row.item}: {least:g}", f"{state.least_chance:g} or more"
            raise SetupError(Problem(message, "", None, "probability", found, allowed))
        day = state.last[:10]
        state.labelled[day] = state.labelled.get(day, 0) + len(rows)
        self._share(state, rows, [k for k in self._watched if k[1].key in BY_LABELS])
        for metric in self.certificate.certified:
            x, weights = self._by_group(state, rows, lambda row, m=metric: same(row, m))
            _add(state, f"{metric}:{AMONG}", x, weights)

    def _share(
        self, state: State, rows: Sequence[Seen], which: Sequence[tuple[str, Watched]]
    ) -> None:
        """Count watched shares, one value for each question."""
        for metric, w in which:
            about, of = self.certificate.metrics[metric], self._metrics[metric]
            x, weights = self._by_group(
                state,
                rows,
                lambda row: observed(row, metric, about, of, w.key),  # noqa: B023
            )
            tests = [t for t in self._tests if (t.metric, t.about) == (metric, w.key)]
            if w.key not in BY_LABELS:
                weights = np.ones(len(x))
            for test in tests:
                self._evidence(state, test, x, weights)
            _add(state, tests[0].seen, x, weights)

    def _by_group(
        self, state: State, rows: Sequence[Seen], value: Any
    ) -> tuple[FloatArray, FloatArray]:
        """A value and a weight for each question, in the order of the rows."""
        groups: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            if (x := value(row)) is not None:
                weight = (state.least_chance or row.chance) / row.chance
                groups.setdefault(row.group, []).append((x, min(1.0, weight)))
        found = [np.array(values) for values in groups.values()]
        weights = np.array([f[:, 1].mean() for f in found])
        x = np.array([(f[:, 0] * f[:, 1]).sum() / f[:, 1].sum() for f in found])
        return x, weights

    def _count(self, state: State, test: Test, said: Sequence[bool]) -> None:
        x = np.array(said, dtype=np.float64)
        self._evidence(state, test, x, np.ones(len(x)))
        _add(state, test.seen, x, np.ones(len(x)))

    def _evidence(self, state: State, test: Test, x: FloatArray, weights: FloatArray) -> None:
        before = state.evidence.get(test.key, Evidence())
        now = state.evidence[test.key] = test.after(before, x, weights)
        state.rising[test.key] = state.rising.get(test.key, Sums()).after(x, weights)
        lowest = now.log_capital <= state.lowest.get(test.key, 0.0)
        if lowest and not now.found(test.alpha):
            state.lowest[test.key], state.rising[test.key] = now.log_capital, Sums()

    def _of(self, family: str) -> Iterable[Test]:
        return (test for test in self._tests if test.family == family)

    @cached_property
    def _tests(self) -> list[Test]:
        return tests_of(self.certificate)

    @cached_property
    def _watched(self) -> list[tuple[str, Watched]]:
        return [(m, w) for m, one in self.certificate.certified.items() for w in one.watched]

    @cached_property
    def _metrics(self) -> Mapping[str, Metric]:
        return {metric.id: metric for metric in self.certificate.of_rubric.metrics}

    # ---- how it stands --------------------------------------------------------------------------

    def _watching(self, state: State, counted: Counted) -> Watching:
        checked = tuple(
            Checked(
                test.family, test.metric, test.about, test.bound, test.below, test.alpha,
                state.evidence.get(test.key, Evidence()), state.sums.get(test.seen, Sums()),
                state.rising.get(test.key, Sums()),
            )
            for test in self._tests
        )  # fmt: skip
        return Watching(self.certificate, state, checked, counted)


def _is_folder(given: Any) -> bool:
    return isinstance(given, str | Path) and Path(given).is_dir()


def _add(state: State, key: str, x: FloatArray, weights: FloatArray) -> None:
    state.sums[key] = state.sums.get(key, Sums()).after(x, weights)
