"""The presentation of a watched certificate, and the sentence of each reason."""

from __future__ import annotations

from collections.abc import Iterator

from judgebench.certificate.issue import ISSUE_LEVEL, LEVEL
from judgebench.certificate.record import ALONE
from judgebench.certificate.watch import MetricCheck, Reason, Watched
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.tables import Cell, Contents, Layout, in_per_cent
from judgebench.text import counted, percent

_NOTES = (
    "New labels revoke the certificate of a judge that stayed as it was with a chance of at most "
    f"{100 * (LEVEL + ISSUE_LEVEL):g} %, all metrics together and however often you compare. "
    "Verdicts on the same answers do so with a chance of at most 2.5 % each time.",
    "The certificate speaks of the answers that were labelled. Errors that the judge shares with "
    "annotators do not show.",
)
_SHARES = {
    ("severe", "REPLACE"): "severe answers found, by annotators' labels",
    ("severe", "ASSIST"): "severe answers sent to humans, by annotators' labels",
    ("agreement", "REPLACE"): "agreement with an annotator",
    ("severe", ALONE): "severe answers not decided alone, by annotators' labels",
    ("agreement", ALONE): "agreement with an annotator on what it decides alone",
}
_TESTS = Layout(
    "watch", "What is tested", ("Tested",),
    beside=("Of", "Now", "At issue", "Allowed"),
)  # fmt: skip


def watch_part(watched: Watched) -> ReportSection:
    """The part of a watched certificate."""
    sentences = (sentence(watched, reason) for reason in watched.reasons)
    text = tuple(dict.fromkeys((_integrity(watched), *sentences, *_untested(watched))))
    if watched.judge not in ("", watched.certificate.judge.name):
        text += (f"{watched.judge} is taken for the judge {watched.certificate.judge.name}.",)
    tables = (_TESTS.listing(dict.fromkeys(_lines(watched))),)
    headline = _headline(watched)
    return ReportSection(
        "watch", "does it still hold?", watched.results,
        (Block("Why", text, lead=True), Block("What is tested", tables=tables)),
        _NOTES, screen=(Block(text=text), Block(tables=tables)), own_file=True,
        headline=headline, answer=headline,
    )  # fmt: skip


def _lines(watched: Watched) -> Iterator[Contents]:
    """A line for the verdicts on the same answers, where there are any, and one for new labels."""
    allowed = percent(watched.certificate.rule["certificate"]["changed"])
    for check in watched.checks:
        metric = watched.certificate.certified[check.metric]
        now = (in_per_cent(e, "\n") for e in (check.changed, check.share))
        changed, share = (Cell(text) for text in now)
        if n := check.changed.n:
            of = counted(n, "certified answer")
            yield f"{metric.title}: another verdict", of, changed, None, f"at most {allowed}"
        if metric.test is not None:
            at_issue, bound = percent(metric.test.value), f"at least {percent(metric.test.bound)}"
            of = counted(check.questions, "new question")
            yield f"{metric.title}: {_share_name(watched, check)}", of, share, at_issue, bound


def _untested(watched: Watched) -> Iterator[str]:
    """What a valid certificate is not valid for."""
    for check in watched.checks:
        about, share = watched.certificate.certified[check.metric], check.share
        if share.value is None and (about.test is None or about.outcome == ALONE):
            yield f"Not tested: {about.outcome} on {about.title}, as {share.reason}."


def _headline(watched: Watched) -> str:
    """`VALID: gpt-4, certified for REPLACE on Safety, until 2027-05-25.`"""
    certificate = watched.certificate
    roles = "; ".join(f"{m.roles} on {m.title}" for m in certificate.metrics.values() if m.roles)
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
    metric = watched.certificate.certified[reason.metric]
    check = next(check for check in watched.checks if check.metric == reason.metric)
    if reason.kind == "changed":
        allowed = percent(watched.certificate.rule["certificate"]["changed"])
        n_changed = round((check.changed.value or 0) * check.changed.n)
        alone = ", or decides others alone" if metric.alone_signal else ""
        return (
            f"The judge changed: on {metric.title} it gives {n_changed:,} of {check.changed.n:,} "
            f"certified answers another verdict now{alone}, and at most {allowed} is allowed. "
            "Find out what changed (model, prompt, decoding), then decide again."
        )
    assert metric.test is not None
    return (
        f"{metric.title} fell below its bound: {in_per_cent(check.share, bare=True)} now "
        f"({_share_name(watched, check)}), {percent(metric.test.value)} at issue, at least "
        f"{percent(metric.test.bound)} required. This was clear after "
        f"{counted(check.alarm or 0, 'question')}. Read the answers on which judge and annotators "
        "differ, then decide again."
    )


def _share_name(watched: Watched, check: MetricCheck) -> str:
    metric = watched.certificate.certified[check.metric]
    return _SHARES[metric.test.kind, metric.outcome] if metric.test else "nothing is tested"
