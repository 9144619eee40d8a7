"""A certificate on one screen, as a card for a README, as a badge, and beside another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape

from judgebench.certificate.record import Certificate, CertifiedMetric, Tested
from judgebench.certificate.seen import ALIKE, LENGTH, SYSTEM
from judgebench.records import Estimate
from judgebench.results.layout import Layout
from judgebench.results.part import Block, Part
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell, Table
from judgebench.words import counted, listed, percent

_COLOURS = {"valid": "#1a7f4b", "warned": "#8a4b00", "expired": "#555555", "revoked": "#b3261e"}


@dataclass(frozen=True, repr=False)
class Described(Shown):
    """A certificate as findings: its conditions as rows."""

    certificate: Certificate

    @property
    def name(self) -> str:
        return f"certificate of {self.certificate.judge.name}"

    @property
    def n_answers(self) -> int:
        """The answers that it rests on."""
        return self.certificate.population.answers

    @cached_property
    def part(self) -> Part:
        """One screen."""
        c = self.certificate
        blocks = (
            Block("What it says", tuple(said(c)), lead=True, on_screen=True),
            Block("Conditions", tables=(conditions_table(c),), on_screen=True),
            Block("The answers that it rests on", tables=(answers_table(c),)),
        )
        screen = (Block(text=tuple(said(c))), Block(tables=(conditions_table(c),)))
        return Part("certificate", "certificate", self.results, blocks, (), (), screen)

    @cached_property
    def results(self) -> Results:
        """Every condition as a row."""
        c = self.certificate
        return Results(
            tuple(
                Row(
                    "condition", one.key,
                    Estimate(one.value, one.low, one.high, n=one.n, reason="see the certificate"),
                    c.judge.name, metric,
                    {"outcome": one.outcome, "title": one.title, "state": one.state,
                     "bound": one.bound},
                )
                for metric, about in c.metrics.items()
                for one in about.conditions
            )
        )  # fmt: skip


def said(c: Certificate) -> Iterator[str]:
    """The sentences of a certificate."""
    for one in c.metrics.values():
        yield f"{one.outcome} on {one.title}: {one.reason}"
    yield f"Issued {c.issued:%Y-%m-%d}, by judgebench {c.judgebench}. {_until(c)}"
    models = f", which said to be {listed(c.judge.models)}" if c.judge.models else ""
    yield f"Judge: {c.judge.name} (signature {c.judge.signature[:16]}){models}."
    made = {
        "yes": "made without sight of any model's label", "no": "made in sight of a model's label",
    }  # fmt: skip
    blind = made.get(c.labels.blind, "perhaps made in sight of a model's label (not known)")
    yield (
        f"Reference labels: {c.labels.rule} of {counted(c.labels.annotators, 'annotator')}, "
        f"{c.labels.labels:,} labels, {blind}."
    )
    yield _population(c)
    texts = "with their texts" if any(a.text is not None for a in c.anchors) else "without texts"
    yield f"{counted(len(c.anchors), 'anchor')}, {texts}. {_noise(c)}"
    signed = f"signed by the key {c.signature.key[:16]}…" if c.signature else "not signed"
    yield f"Hash {c.hash[:16]}…, {signed}."


def _until(c: Certificate) -> str:
    ends = []
    if c.valid.until:
        ends.append(f"until {c.valid.until:%Y-%m-%d}")
    if c.valid.answers is not None:
        ends.append(f"for {c.valid.answers:,} judged answers")
    if c.valid.model_changes is not None:
        ends.append(
            f"for {counted(c.valid.model_changes, 'change')} of the model"
            if c.valid.model_changes
            else "as long as the same model replies"
        )
    return f"Valid {listed(ends)}." if ends else "Valid without end."


def _population(c: Certificate) -> str:
    """What the same kind of answers means."""
    p = c.population
    systems = [name for name, n in p.shares.get(SYSTEM, {}).items() if n]
    of = f" of {listed(systems)}" if systems else ""
    length = f", of usually {p.cuts[0]:,} to {p.cuts[-1]:,} characters" if p.cuts else ""
    return (
        f"It covers answers like those that it rests on: {p.answers:,} answers to {p.questions:,} "
        f"questions{of}{length}."
    )


def _noise(c: Certificate) -> str:
    parts = [
        f"{one.title}: {one.noise.changed:,} of {one.noise.pairs:,} labels differed when it "
        "judged again"
        for one in c.certified.values()
        if one.noise and one.noise.pairs
    ]
    return f"{'; '.join(parts)}." if parts else "The judge's own noise was not measured."


def conditions_table(c: Certificate) -> Table:
    """Every condition of the outcomes that were reached, with its interval."""
    lines = [
        (one.title, condition.title, _number(condition),
         f"{'at least' if condition.at_least else 'at most'} {condition.bound:.3g}")
        for one in c.metrics.values()
        for condition in _reached(one)
    ]  # fmt: skip
    heads = ("Metric", "Condition", "Found", "Required")
    return Layout("certificate-conditions", "Conditions", heads).listing(lines)


def _reached(one: CertifiedMetric) -> list[Tested]:
    return [x for x in one.conditions if x.outcome == one.outcome]


def _number(c: Tested) -> Cell:
    spec = "+.3f" if " minus " in c.title else ".3f" if c.low is not None else ".0f"
    return Cell(format(Estimate(c.value, c.low, c.high), spec))


def answers_table(c: Certificate) -> Table:
    """Every share of the population."""
    lines = []
    for feature, counts in c.population.shares.items():
        metric = feature.removeprefix("label:")
        known = {SYSTEM: "System", LENGTH: "Length in characters", ALIKE: "Alike to the others"}
        title = known.get(feature) or f"Label of {c.metrics[metric].title}"
        n = sum(counts.values())
        lines += [(title, name, k, Cell(percent(k / n))) for name, k in counts.items()]
    heads = ("Feature", "Category", "Answers", "Share")
    return Layout("certificate-answers", "The answers", heads).listing(lines)


def markdown(c: Certificate, state: str) -> str:
    """A card for a README."""
    rows = "\n".join(
        f"| {one.title} | {one.outcome} | {_of(one, 'humans_accuracy')} | "
        f"{_of(one, 'severe_recall')} |"
        for one in c.metrics.values()
    )
    lines = "\n".join(f"- {line}" for line in list(said(c))[len(c.metrics) :])
    return (
        f"### Judge {c.judge.name}: {state}\n\n"
        "| Metric | Outcome | Agreement, judge minus annotator | Severe answers found |\n"
        f"|---|---|---|---|\n{rows}\n\n{lines}\n"
    )


def _of(one: CertifiedMetric, key: str) -> str:
    return next((_number(c).text for c in one.conditions if c.key == key), "–")


def badge(c: Certificate, state: str) -> str:
    """A badge as SVG: the judge, what it may do, and how the certificate stands."""
    outcomes = listed(sorted({one.outcome for one in c.certified.values()}))
    left, right = f"judge {c.judge.name}", f"{outcomes}: {state}"
    widths = [round(6.6 * len(text)) + 12 for text in (left, right)]
    whole, middle = sum(widths), widths[0] + widths[1] / 2
    title = escape(f"{left}: {right}", quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" '
        f'aria-label="{title}"><title>{title}</title>'
        f'<rect width="{whole}" height="20" rx="3" fill="#444"/>'
        f'<rect x="{widths[0]}" width="{widths[1]}" height="20" rx="3" fill="{_COLOURS[state]}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" '
        f'font-size="11"><text x="{widths[0] / 2:g}" y="14">{escape(left)}</text>'
        f'<text x="{middle:g}" y="14">{escape(right)}</text></g></svg>\n'
    )


def differences(a: Certificate, b: Certificate) -> list[str]:
    """Sentences on what two certificates do not have in common."""
    found = []
    for what, one, other in (
        ("judge", a.judge.name, b.judge.name),
        ("signature of the judge", a.judge.signature[:16], b.judge.signature[:16]),
        ("models", ", ".join(a.judge.models), ", ".join(b.judge.models)),
        ("rubric", a.of_rubric.content_hash, b.of_rubric.content_hash),
        ("rule", _hash(a), _hash(b)),
        ("annotators", str(a.labels.annotators), str(b.labels.annotators)),
        ("labels made blind", a.labels.blind, b.labels.blind),
        ("end", _until(a), _until(b)),
    ):
        if one != other:
            found.append(f"{what}: {one or 'not known'} → {other or 'not known'}")
    for metric in dict.fromkeys((*a.metrics, *b.metrics)):
        one_, other_ = a.metrics.get(metric), b.metrics.get(metric)
        outcomes = [x.outcome if x else "not decided" for x in (one_, other_)]
        if outcomes[0] != outcomes[1]:
            title = (one_ or other_).title if one_ or other_ else metric  # type: ignore[union-attr]
            found.append(f"{title}: {outcomes[0]} → {outcomes[1]}")
    found += _shifts(a, b)
    return found


def _hash(c: Certificate) -> str:
    from judgebench.records import content_hash

    return content_hash(c.rule)


def _shifts(a: Certificate, b: Certificate) -> Iterator[str]:
    """The shares of the answers that differ by more than five points."""
    cuts = [c.population.cuts for c in (a, b)]
    if cuts[0] != cuts[1] and all(cuts):
        usual = [f"{c[0]:,} to {c[-1]:,}" for c in cuts]
        yield f"usual lengths of answers: {usual[0]} → {usual[1]} characters"
    features = dict.fromkeys((*a.population.shares, *b.population.shares))
    for feature in (f for f in features if f != LENGTH or cuts[0] == cuts[1]):
        counts = [c.population.shares.get(feature, {}) for c in (a, b)]
        totals = [max(1, sum(one.values())) for one in counts]
        for category in dict.fromkeys((*counts[0], *counts[1])):
            p, q = (one.get(category, 0) / n for one, n in zip(counts, totals, strict=True))
            if abs(p - q) > 0.05:
                yield f"{feature} {category}: {percent(p)} → {percent(q)} of the answers"
