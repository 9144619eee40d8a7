"""The presentation of a watched certificate, and the sentence of each reason."""

from __future__ import annotations

from collections.abc import Iterator

from judgebench.certificate.issue import ISSUE_LEVEL, LEVEL
from judgebench.certificate.record import ALONE
from judgebench.certificate.watch import Reason, Watched
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.tables import Cell, Contents, Layout, in_per_cent
from judgebench.text import counted, listed, percent

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
    unchanged = f"The file is unchanged since {watched.certificate.issued:%Y-%m-%d}."
    sentences = (sentence(watched, reason) for reason in watched.reasons)
    text = (unchanged, *sentences, *_untested(watched))
    if watched.judge not in ("", watched.certificate.judge.name):
        text += (f"{watched.judge} is taken for the judge {watched.certificate.judge.name}.",)
    if watched.differing:
        text += (f"Other than at issue: the judge's {listed(watched.differing)}.",)
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
        title, test = check.role.title, check.role.test
        changed, share = (Cell(in_per_cent(e, "\n")) for e in (check.changed, check.share))
        if n := check.changed.n:
            of = counted(n, "certified answer")
            yield f"{title}: another verdict", of, changed, None, f"at most {allowed}"
        if test is not None:
            at_issue, bound = percent(test.value), f"at least {percent(test.bound)}"
            of = counted(check.questions, "new question")
            yield f"{title}: {_SHARES[test.kind, check.role.outcome]}", of, share, at_issue, bound


def _untested(watched: Watched) -> Iterator[str]:
    """Sentences on roles that no new label was tested for."""
    for check in watched.checks:
        if check.role.test is None:
            yield f"Not tested: {check.role.name}, as new labels cannot say whether it holds."
        elif check.lacks:
            yield f"Not tested: {check.role.name}, as the new verdicts hold no {check.lacks}."


def _headline(watched: Watched) -> str:
    """`VALID: gpt-4, certified for REPLACE on Safety, until 2027-05-25.`"""
    certificate = watched.certificate
    roles = "; ".join(role.name for role in certificate.roles)
    until = f", until {certificate.until:%Y-%m-%d}" if certificate.until else ""
    return f"{watched.state.upper()}: {certificate.judge.name}, certified for {roles}{until}."


def sentence(watched: Watched, reason: Reason) -> str:
    """Say why the certificate does not hold, in numbers, and what to do next."""
    certificate = watched.certificate
    if reason.kind == "expired":
        return f"It expired on {certificate.until:%Y-%m-%d}. Decide again to renew it."
    check = next(c for c in watched.checks if reason.subject in (c.role.title, c.role.name))
    if reason.kind == "changed":
        changed, allowed = check.changed, percent(certificate.rule["certificate"]["changed"])
        n_changed = round((changed.value or 0) * changed.n)
        return (
            f"The judge changed: on {check.role.title} it gives {n_changed:,} of {changed.n:,} "
            f"certified answers another verdict now, and at most {allowed} is allowed. "
            "Find out what changed (model, prompt, decoding), then decide again."
        )
    test = check.role.test
    assert test is not None
    return (
        f"{check.role.title} fell below its bound: {in_per_cent(check.share, bare=True)} now "
        f"({_SHARES[test.kind, check.role.outcome]}), {percent(test.value)} at issue, at least "
        f"{percent(test.bound)} required. This was clear after "
        f"{counted(check.alarm or 0, 'question')}. Read the answers on which judge and annotators "
        "differ, then decide again."
    )
