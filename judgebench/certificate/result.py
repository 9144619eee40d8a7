"""How a certificate stands: valid, warned, expired or revoked, why, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import ClassVar, Literal

from judgebench.certificate.record import Certificate, CertifiedMetric, Watched
from judgebench.certificate.seen import (
    ALIKE,
    AMONG,
    BY_LABELS,
    LENGTH,
    MISSED,
    RECALL,
    SYSTEM,
)
from judgebench.certificate.state import State
from judgebench.records import Estimate
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.stats.betting import Evidence, Sums, needed
from judgebench.words import counted, percent

Standing = Literal["valid", "warned", "expired", "revoked"]
EXIT_CODES: Mapping[Standing, int] = {"valid": 0, "warned": 4, "expired": 5, "revoked": 6}
_CHANGE = 0.10  # of the verdicts, for which anchors are planned
_METHOD = "confidence sequence of a mixture of coins, valid at every look"
_BY_BETTING = "evidence by betting, in powers of ten"


@dataclass(frozen=True)
class Counted:
    """What an update counted: `anchors` judged again, `answers` judged, answers with new `labels`,
    and rows that had been counted `before`."""

    anchors: int = 0
    answers: int = 0
    labels: int = 0
    before: int = 0


@dataclass(frozen=True)
class Checked:
    """One hypothesis with what speaks against it, and the sums of what it is about, of all and
    since the evidence was `rising`."""

    family: str
    metric: str
    about: str
    bound: float
    below: bool
    alpha: float
    evidence: Evidence
    sums: Sums
    rising: Sums

    @property
    def found(self) -> bool:
        """True once it was rejected."""
        return self.evidence.found(self.alpha)

    @property
    def way(self) -> float:
        """How far the evidence ever came on the way to an alarm, from 0 to 1."""
        return max(0.0, min(1.0, self.evidence.most / -math.log(self.alpha)))

    @property
    def last(self) -> str:
        """How many were seen since it changed: `200`, or `the last 50` of them."""
        n = self.rising.n
        return f"{n:,}" if n == self.sums.n else f"the last {n:,}"


@dataclass(frozen=True)
class Reason:
    """A sentence why a certificate is not simply valid, and what to do next."""

    standing: Standing
    text: str
    next: str = ""


@dataclass(frozen=True, repr=False)
class Watching(Shown):
    """How a certificate stands. `results` has a row `watch` for each hypothesis (`evidence` and the
    mean that was seen) and for each watched share."""

    presented_by: ClassVar[str] = "judgebench.certificate.part:watch_part"

    certificate: Certificate
    seen: State
    checked: tuple[Checked, ...]
    counted: Counted

    @property
    def name(self) -> str:
        return f"certificate of {self.certificate.judge.name}"

    @property
    def n_answers(self) -> int:
        """The answers that were judged since."""
        return self.seen.answers

    @property
    def state(self) -> Standing:
        """The worst of all reasons; valid without any."""
        order = list(EXIT_CODES)
        return max((r.standing for r in self.reasons), key=order.index, default="valid")

    @property
    def exit_code(self) -> int:
        """0 valid, 4 warned, 5 expired, 6 revoked."""
        return EXIT_CODES[self.state]

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """Every reason, the worst first."""
        kinds = self._changed, self._fallen, self._expired, self._shifted, self._new
        order = list(EXIT_CODES)
        found = [reason for kind in kinds for reason in kind()]
        return tuple(sorted(found, key=lambda r: -order.index(r.standing)))

    def of(self, family: str, *, found: bool = True) -> list[Checked]:
        """The hypotheses of a family that were rejected, or all."""
        return [c for c in self.checked if c.family == family and (c.found or not found)]

    @cached_property
    def results(self) -> Results:
        """Every hypothesis and watched share as rows."""
        return Results(tuple(self._rows()))

    def _rows(self) -> Iterator[Row]:
        judge = self.certificate.judge.name
        for c in self.checked:
            keys: dict[str, str | float] = {
                "family": c.family, "of": c.about, "bound": c.bound,
                "alarm": "yes" if c.found else "no",
            }  # fmt: skip
            mean = Estimate(None, reason="none was seen yet")
            if c.sums.n:
                mean = Estimate(c.sums.mean, *c.sums.interval(0.05), _METHOD, c.sums.n)
            log10 = Estimate(
                c.evidence.log_capital / math.log(10), n=c.evidence.n, method=_BY_BETTING,
                reason="evidence has no interval",
            )  # fmt: skip
            yield Row("watch", "share", mean, judge, c.metric, keys)
            yield Row("watch", "evidence", log10, judge, c.metric, keys)

    # ---- reasons --------------------------------------------------------------------------------

    def title(self, metric: str) -> str:
        """The title of a metric."""
        return self.certificate.metrics[metric].title

    def _changed(self) -> Iterator[Reason]:
        for c in self.of("changed"):
            changed = round(c.rising.weighted)
            yield Reason(
                "revoked",
                f"The judge changed: on {self.title(c.metric)} it gives {changed:,} of "
                f"{c.last} anchors another label than before; its own noise explains at most "
                f"{100 * c.bound:.1f} %.",
                "Find out what changed (model, prompt, decoding), then renew the certificate.",
            )

    def _fallen(self) -> Iterator[Reason]:
        fallen = {(c.metric, c.about) for c in self.of("fallen")}
        for c in (*self.of("fallen"), *self.of("near")):
            if c.family == "near" and (c.metric, c.about) in fallen:
                continue
            one = self.watched(c.metric, c.about)
            past, least = c.family == "fallen", "at least" if one.at_least else "at most"
            where = "beyond its bound" if past else "near its bound"
            text = (
                f"{self.title(c.metric)} is {where}, {one.title}: {percent(c.rising.mean)} of "
                f"{c.last} now, {percent(one.value)} when it was decided; {least} "
                f"{percent(one.bound)} is required.{self._among(c)}"
            )
            then = "Read the answers on which judge and people differ, then renew." if past else (
                "Label more answers now, before the bound is crossed."
            )  # fmt: skip
            yield Reason("revoked" if past else "warned", text, then)

    def _among(self, c: Checked) -> str:
        """What became of the annotators' agreement with each other."""
        fresh = self.seen.sums.get(f"{c.metric}:{AMONG}", Sums())
        if c.about not in BY_LABELS or fresh.mean is None:
            return ""
        return (
            f" The new annotators agree with each other on {percent(fresh.mean)}: where that is "
            "less than before, they may have changed and not the judge."
        )

    def watched(self, metric: str, key: str) -> Watched:
        """The watched share of that key."""
        return next(w for w in self.certificate.metrics[metric].watched if w.key == key)

    def _expired(self) -> Iterator[Reason]:
        valid, seen = self.certificate.valid, self.seen
        renew = "Renew the certificate: judgebench certificate renew."
        if valid.until is not None and datetime.fromisoformat(seen.last) >= valid.until:
            yield Reason("expired", f"It was valid until {valid.until:%Y-%m-%d}.", renew)
        if valid.answers is not None and seen.answers > valid.answers:
            text = f"It covers {valid.answers:,} answers; {seen.answers:,} were judged."
            yield Reason("expired", text, renew)
        if (most := valid.model_changes) is not None and seen.model_changes > most:
            before = ", ".join(self.certificate.judge.models) or "another model"
            text = f"The model that replies changed: {seen.model}, where {before} was certified."
            yield Reason("expired", text, renew)

    def _shifted(self) -> Iterator[Reason]:
        by_feature: dict[str, list[Checked]] = {}
        for c in self.of("shifted"):
            by_feature.setdefault(c.metric, []).append(c)
        for feature, shifted in by_feature.items():
            counts = self.certificate.population.shares[feature]
            n = sum(counts.values())
            told = "; ".join(
                f"{c.about}: {percent(c.rising.mean)} of {c.last}, "
                f"{percent(counts[c.about] / n)} in the certificate"
                for c in shifted
            )
            text = f"{self._feature(feature)} changed: {told}.{self._who(feature)}"
            then = "Look at the new answers; label some of them before you rely on verdicts."
            yield Reason("warned", text, then)

    def _feature(self, feature: str) -> str:
        named = {SYSTEM: "The mix of systems", LENGTH: "The lengths of answers",
                 ALIKE: "How alike the texts are to those of the certificate"}  # fmt: skip
        return named.get(feature, f"The judge's labels of {self.title_of(feature)}")

    def title_of(self, feature: str) -> str:
        """The title of the metric that a feature of labels is of."""
        metric = feature.removeprefix("label:")
        known = self.certificate.metrics
        return known[metric].title if metric in known else metric

    def _who(self, feature: str) -> str:
        """Whether the judge or the answers changed, as far as the anchors tell."""
        if feature in (SYSTEM, LENGTH, ALIKE):
            return ""
        if self.of("changed"):
            return " The anchors show that the judge changed."
        if self.anchors_needed and self.seen.anchors >= self.anchors_needed:
            return (
                f" The judge says the same of {self.seen.anchors:,} anchors as before: it is the "
                "answers that changed."
            )
        return (
            f" It is not known yet whether the judge or the answers changed: "
            f"{self.seen.anchors:,} anchors were judged again."
        )

    def _new(self) -> Iterator[Reason]:
        if counts := self.seen.new.get(SYSTEM):
            named = ", ".join(f"{name} ({counted(n, 'answer')})" for name, n in counts.items())
            text = f"It does not cover systems that it has never seen: {named}."
            yield Reason("warned", text, "Label answers of these systems and decide again.")

    # ---- plans ----------------------------------------------------------------------------------

    @cached_property
    def anchors_needed(self) -> int | None:
        """About how many anchors show a change of a tenth of the verdicts, on the metric that needs
        the most; None where the noise of the judge is too large."""
        found = []
        for c in self.of("changed", found=False):
            about = self.certificate.metrics[c.metric].noise
            assert about is not None
            own = about.changed / about.pairs if about.pairs else 0.0
            found.append(needed(min(1.0, max(own, 0.0) + _CHANGE), c.bound, c.alpha))
        return None if not found or None in found else max(n for n in found if n is not None)

    @cached_property
    def labels_needed(self) -> int | None:
        """About how many fresh labels show by themselves that every share that labels tell of lies
        on the right side of its bound, if it is what it was; None where none is watched."""
        found = []
        for c in self.of("fallen", found=False):
            one, about = self.watched(c.metric, c.about), self.certificate.metrics[c.metric]
            if c.about in BY_LABELS and (n := needed(one.value, one.bound, c.alpha)):
                rare = c.about in (RECALL, MISSED)
                found.append(math.ceil(n / (self._severe(c.metric, about) if rare else 1.0)))
        return max(found, default=None)

    def _severe(self, metric: str, about: CertifiedMetric) -> float:
        """The share of answers that the judge called severe for the certificate; never 0."""
        counts = self.certificate.population.shares.get(f"label:{metric}", {})
        of = next(m for m in self.certificate.of_rubric.metrics if m.id == metric)
        texts = [*of.label_texts]
        severe = texts[texts.index(about.severe_from) :] if about.severe_from in texts else []
        n = sum(counts.values())
        return max(sum(counts.get(text, 0) for text in severe), 1) / max(n, 1)

    @property
    def labels_a_week(self) -> int | None:
        """About how many fresh labels a week keep the certificate to its end, with those that there
        are; None where it has no end, or no labels are needed."""
        until, total = self.certificate.valid.until, self.labels_needed
        if until is None or total is None:
            return None
        left = until - datetime.fromisoformat(self.seen.last)
        weeks = max(1.0, left / timedelta(weeks=1))
        return max(0, math.ceil((total - sum(self.seen.labelled.values())) / weeks))
