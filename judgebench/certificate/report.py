"""The presentation of a watched certificate, and the sentence of each reason."""

from __future__ import annotations

import math
from collections.abc import Iterator

from judgebench.certificate.labels import ISSUE_LEVEL, LEVEL
from judgebench.certificate.watch import PLANNED, MetricCheck, Reason, Watched, smallest_loss
from judgebench.results.layout import Layout
from judgebench.results.part import Block, Part
from judgebench.results.tables import Cell, Table, in_per_cent
from judgebench.words import counted, percent

_NOTES = (
    "New labels revoke the certificate of a judge that stayed as it was with a chance of at most "
    f"{100 * (LEVEL + ISSUE_LEVEL):g} %, all metrics together and however often you compare. "
    "Verdicts on the same answers do so with a chance of at most 2.5 % each time.",
    "To alarm: what a bettor against the judge ever won at most, on a logarithmic "
    "scale: 0 % where nothing was won, 100 % where the certificate is revoked.",
    "The certificate speaks of the answers that were labelled. Errors that the judge shares with "
    "annotators do not show.",
)
_SHARES = {
    ("severe", "REPLACE"): "severe answers found, by annotators' labels",
    ("severe", "ASSIST"): "severe answers sent to humans, by annotators' labels",
    ("agreement", "REPLACE"): "agreement with an annotator",
}


def watch_part(watched: Watched) -> Part:
    """The part of a watched certificate."""
    sentences = tuple(sentence(watched, reason) for reason in watched.reasons)
    is_plan = not watched.checks and watched.state == "valid"
    every_table = [_plan(watched)] if is_plan else [_rejudged(watched), _labelled(watched)]
    tables = tuple(table for table in every_table if table.rows)
    lines = tuple(dict.fromkeys((_integrity(watched), *sentences, *_remarks(watched))))
    return Part(
        "watch", "does it still hold?", watched.results,
        (Block("Why", lines, lead=True), Block("What was compared", tables=tables)),
        _NOTES, screen=(Block(text=lines), Block(tables=tables)), own_file=True,
        headline=_headline(watched), answer=_headline(watched),
    )  # fmt: skip


def _headline(watched: Watched) -> str:
    """`VALID: gpt-4, certified for REPLACE on Safety, until 2027-05-25.`"""
    certificate = watched.certificate
    roles = "; ".join(f"{m.outcome} on {m.title}" for m in certificate.certified.values())
    until = f", until {certificate.until:%Y-%m-%d}" if certificate.until else ""
    return f"{watched.state.upper()}: {certificate.judge.name}, certified for {roles}{until}."


def _integrity(watched: Watched) -> str:
    certificate = watched.certificate
    text = f"The file is unchanged since {certificate.issued:%Y-%m-%d}"
    if Reason("expired") in watched.reasons:
        return f"{text}, but it expired on {certificate.until:%Y-%m-%d}. Decide again to renew it."
    return f"{text}."


def sentence(watched: Watched, reason: Reason) -> str:
    """What happened, in numbers, and what to do next."""
    if reason.kind == "expired":
        return _integrity(watched)
    metric = watched.certificate.metrics[reason.metric]
    check = next(check for check in watched.checks if check.metric == reason.metric)
    if reason.kind == "changed":
        allowed = percent(watched.certificate.rule["certificate"]["changed"])
        n_changed = round((check.changed.value or 0) * check.changed.n)
        return (
            f"The judge changed: on {metric.title} it gives {n_changed:,} of {check.changed.n:,} "
            f"certified answers another verdict now, and at most {allowed} is allowed. Find out "
            "what changed (model, prompt, decoding), then decide again."
        )
    assert metric.test is not None
    return (
        f"{metric.title} fell below its bound: {in_per_cent(check.share, bare=True)} now "
        f"({_share_name(watched, check)}), {percent(metric.test.value)} at issue, at least "
        f"{percent(metric.test.bound)} required. This was clear after "
        f"{counted(check.alarm or 0, 'question')}. Read the answers on which judge and annotators "
        "differ, then decide again."
    )


def _remarks(watched: Watched) -> Iterator[str]:
    """What the certificate says nothing of, and who was taken for its judge."""
    if watched.uncovered:
        systems = ", ".join(f"{name} ({n:,})" for name, n in watched.uncovered.items())
        yield f"The certificate says nothing of these systems: {systems}."
    if watched.judge not in ("", watched.certificate.judge.name):
        yield f"{watched.judge} is taken for the judge {watched.certificate.judge.name}."


def _share_name(watched: Watched, check: MetricCheck) -> str:
    metric = watched.certificate.metrics[check.metric]
    return _SHARES[metric.test.kind, metric.outcome] if metric.test else "nothing is tested"


def _rejudged(watched: Watched) -> Table:
    allowed = Cell(percent(watched.certificate.rule["certificate"]["changed"]))
    titles = watched.certificate.metrics
    lines = [
        (titles[check.metric].title, check.changed.n, Cell(in_per_cent(check.changed)), allowed)
        for check in watched.checks
        if check.changed.n
    ]
    heads = ("Metric", "Answers", "Another verdict", "At most")
    return Layout("watch-rejudged", "Certified answers, judged again", heads).listing(lines)


def _labelled(watched: Watched) -> Table:
    lines = []
    for check in watched.checks:
        metric = watched.certificate.metrics[check.metric]
        if metric.test is None or not check.questions:
            continue
        tested = f"{metric.title}: {_share_name(watched, check)}"
        issue = (Cell(percent(metric.test.value)), Cell(percent(metric.test.bound)))
        alarm = -math.log(LEVEL / len(watched.certificate.certified))
        evidence = Cell(f"{100 * min(1.0, check.capital / alarm):.0f} %")
        if check.alarm is not None:
            evidence = Cell("100 %, revoked", look="bad")
        now = Cell(in_per_cent(check.share, "\n"))
        lines.append((tested, check.questions, now, *issue, evidence))
    heads = ("Tested", "Questions", "Now", "At issue", "At least", "To alarm")
    return Layout("watch-labels", "New labels", heads).listing(lines)


def _plan(watched: Watched) -> Table:
    certificate = watched.certificate
    lines = []
    for metric in certificate.certified.values():
        losses = [
            metric.test and smallest_loss(metric.test, n, len(certificate.certified))
            for n in PLANNED
        ]
        points = (Cell(f"{100 * loss:.0f} points") if loss else None for loss in losses)
        lines.append((metric.title, *points))
    heads = ("Metric", *(f"{n:,} labels" for n in PLANNED))
    return Layout("watch-plan", "Smallest loss that new labels show", heads).listing(lines)
