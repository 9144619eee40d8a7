"""The presentation of an audit: a page over all studies, and a part for the page of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from judgebench.published.result import GOOD, NO, YES, Audit, Audited
from judgebench.records import Estimate
from judgebench.results.figure import draw_overview
from judgebench.results.layout import Content, Layout
from judgebench.results.part import Block, Drawing, Part, Standing
from judgebench.results.rows import Row
from judgebench.results.tables import DASH, Cell, Look, Table, anchor
from judgebench.words import counted, listed

_LOOKS: dict[str, Look] = {"REPLACE": "good", "ASSIST": "fair", "DO NOT USE": "bad",
                           "CAN'T TELL": "unclear"}  # fmt: skip
_MOST = 6  # judges named in a cell
_NOTES = (
    "Labels are taken as they were published; where the order of labels is ours, the page of the "
    "study says so.",
    "A baseline never reads an answer. A rule by a column says the commonest human label of the "
    "others with the same value (the same question asked, the same system), learnt on one half and "
    "applied to the other.",
    "That a published pass does not survive does not say that the judge is bad: in such a study a "
    "rule without a judge does as well.",
)
_TEST = (
    "The published Alternative Annotator Test (Calderon et al., ACL 2025), with the tolerance ε of "
    "the study. Advantage: the chance to be at least as close to the other annotators as the "
    "annotator whom the judge stands in for."
)


def page_of(name: str) -> str:
    """The page of a study, seen from the page over all."""
    return f"{name}/report.html"


def audit_part(a: Audit) -> Part:
    """The part of the page over all studies."""
    standings = tuple(one for study in a.studies for one in _standings(study))
    outcomes, claimed = paper = (outcomes_table(a), claims_table(a))
    title = "Every judge between the best baseline and the annotators"
    drawing = Drawing("every_judge", title, partial(draw_overview, standings))
    blocks = (
        Block(
            "Outcomes",
            tables=(outcomes,),
            standings=standings,
            figures=(drawing,),
            lead=True,
        ),
        Block("What was published as passing", tables=(claimed,), lead=True),
        Block("Rules that never read, and pass", tables=(blind_table(a),)),
        Block("The authors' figures", tables=(figures_table(a.studies),)),
        Block("What one choice turns around", tables=(choices_table(a.studies),)),
        Block("The studies", tables=(studies_table(a),)),
    )
    screen = (
        Block(tables=(outcomes_table(a, counts=True),)),
        Block(text=(answer(a), *(study_in_words(study) for study in a.studies), *a.skipped)),
    )
    facts = (
        counted(len(a.studies), "study", "studies"),
        counted(len(standings), "pair of judge and metric", "pairs of judge and metric"),
    )
    return Part(
        "audit", "decided again", a.found, blocks, (*_NOTES, *a.skipped),
        facts, screen, paper, own_file=True, answer=answer(a),
    )  # fmt: skip


def study_part(study: Audited) -> Part:
    """The part that stands on the page of one study behind its decisions."""
    card = study.card
    files = tuple(
        f"{source.repository}: {listed(source.paths)} (licence: {source.licence})"
        for source in card.files
    )
    blocks = (
        Block("What was published", (card.what, card.claim, card.source, *files), asks="what_if"),
        Block("What misleads", card.traps, asks="what_if"),
        Block("The authors' figures", tables=(figures_table([study], each=True),), asks="what_if"),
        Block("The published test", tables=(tests_table(study),), asks="what_if"),
        Block("What one choice turns around", tables=(choices_table([study]),), asks="what_if"),
    )
    return Part("audit", card.title, study.found, blocks, own_file=True, answer=card.what)


def answer(a: Audit) -> str:
    """A sentence on the published passes: those that come out again, and what is left of them."""
    claims = a.claims
    if not claims:
        return "No pass was published in these studies."
    again = [row for row in claims if row.estimate.value]
    guarded = [row for row in again if a.found.find("guarded", "test", **_of(row)).value]
    kept = [row for row in again if row["outcome"] in GOOD]
    there = [study for study in a.studies if study.claims]
    blind = [study for study in there if study.blind_passes]
    return (
        f"{len(again)} of {counted(len(claims), 'published pass', 'published passes')} come out of "
        f"the files: {len(guarded)} of judges that beat every baseline, {len(kept)} of judges that "
        f"may replace or assist annotators by our rule. In {len(blind)} of {len(there)} studies "
        "with a pass, a rule that never reads an answer passes too."
    )


def study_in_words(study: Audited) -> str:
    """`WAX: 12 of 12 printed figures are the same; 2 published passes, 2 pass again, 0 may replace
    or assist; no baseline passes.`"""
    figures = study.found.select("figure")
    claims = study.claims
    same = sum(row["same"] == YES for row in figures)
    said = [f"{same} of {counted(len(figures), 'printed figure')} come out"] if figures else []
    if claims:
        again = sum(bool(row.estimate.value) for row in claims)
        kept = sum(row["outcome"] in GOOD for row in claims)
        passes = counted(len(claims), "published pass", "published passes")
        said.append(f"of {passes}, {again} pass again and {kept} may replace or assist")
    blind = list(dict.fromkeys(row.judge for row in study.blind_passes))
    if study.tests("baseline"):
        said.append(f"baselines that pass: {listed(blind) if blind else 'none'}")
    return f"{study.card.title}: {'; '.join(said) or 'nothing was printed that we could find'}."


def _of(row: Row) -> dict[str, str]:
    """The keys of the other numbers of the same judge."""
    return {"study": row["study"], "judge": row.judge, "metric": row.metric}


def _standings(study: Audited) -> Iterator[Standing]:
    for one in study.standings:
        metric = _titled(study, one.metric)
        yield replace(one, metric=metric, next=f"Study: {page_of(study.name)}")


def _titled(study: Audited, metric: str) -> str:
    return study.card.title if len(study.titles) == 1 else f"{study.card.title}: {metric}"


# ---- tables -------------------------------------------------------------------------------------


def outcomes_table(a: Audit, *, counts: bool = False) -> Table:
    """Studies and metrics down, outcomes across: the judges of each, or how many they are."""
    layout = Layout("audit_outcomes", "Outcomes", ("Study", "Metric"), beside=tuple(_LOOKS))
    lines: list[list[Content]] = []
    for study in a.studies:
        for metric, title in study.titles.items():
            rows = study.found.select("decision", "accuracy", metric=metric)
            cells: list[Content]
            if counts:
                cells = [str(sum(r["outcome"] == o for r in rows) or DASH) for o in _LOOKS]
            else:
                cells = [_named(study, title, rows, outcome) for outcome in _LOOKS]
            lines.append([Cell(study.card.title, link=page_of(study.name)), title, *cells])
    return layout.listing(lines)


def _named(study: Audited, metric: str, rows: Sequence[Row], outcome: str) -> Content:
    judges = [row.judge for row in rows if row["outcome"] == outcome]
    if not judges:
        return ""
    said = listed(judges) if len(judges) <= _MOST else f"{len(judges)} judges"
    link = f"#{anchor(_titled(study, metric), judges[0])}"
    return Cell(said, link=link)


def claims_table(a: Audit) -> Table:
    """Every published pass, and what is left of it."""
    layout = Layout(
        "audit_claims", "Published passes", ("Study", "Judge"), (_TEST,),
        beside=("Advantage", "Best baseline", "Its advantage", "Passes again",
                "Beats every baseline", "Outcome"),
    )  # fmt: skip
    lines = []
    pairs = [(study, row) for study in a.studies for row in study.claims]
    for study, row in pairs:
        title = _titled(study, study.titles[row.metric])
        guarded = study.found.find("guarded", "test", **_of(row)).value
        link = f"#{anchor(title, row.judge)}"
        lines.append((
            title, row.judge, study.found.find("advantage", "test", **_of(row)),
            *_best_blind(study, row.metric), _yes(row.estimate), YES if guarded else NO,
            Cell(row["outcome"], look=_LOOKS.get(row["outcome"], ""), link=link),
        ))  # fmt: skip
    return layout.listing(lines)


def _best_blind(study: Audited, metric: str) -> tuple[Content, Content]:
    """The name of the baseline with the highest advantage, and that."""
    rows = [row for row in study.tests("baseline", "advantage") if row.metric == metric]
    if not (known := [row for row in rows if row.estimate.value is not None]):
        return None, None
    best = max(known, key=lambda row: row.estimate.value or 0.0)
    return best.judge, best.estimate


def blind_table(a: Audit) -> Table:
    """The baselines that pass the published test, and how many judges they equal or beat."""
    layout = Layout(
        "audit_blind", "Baselines that pass the published test", ("Study", "Baseline"), (_TEST,),
        beside=("Winning rate", "Advantage", "Judges with no more"),
    )  # fmt: skip
    lines = []
    for study in a.studies:
        for row in study.blind_passes:
            about = {"judge": row.judge, "metric": row.metric}
            advantage = study.found.find("advantage", "test", **about)
            judges = [r for r in study.tests("judge", "advantage") if r.metric == row.metric]
            no_more = [r for r in judges if (r.estimate.value or 0) <= (advantage.value or 0)]
            lines.append((
                _titled(study, study.titles[row.metric]), row.judge,
                _share(study.found.find("winning_rate", "test", **about)), advantage,
                f"{len(no_more)} of {len(judges)}",
            ))  # fmt: skip
    return layout.listing(lines)


def tests_table(study: Audited) -> Table:
    """The published test of each judge and baseline of one study."""
    layout = Layout(
        "audit_tests", "The published test", ("Metric", "Who"), (_TEST,),
        headings={"winning_rate": "Winning rate", "advantage": "Advantage", "passes": "Passes",
                  "guarded": "Beats every baseline"},
    )  # fmt: skip
    rows = sorted(study.found.select("test"), key=lambda row: row["kind"] == "baseline")

    def who(row: Row) -> str:
        return f"{row.judge} (baseline)" if row["kind"] == "baseline" else row.judge

    def cell(row: Row) -> Content:
        shown = {"passes": _yes, "guarded": _yes, "winning_rate": _share}
        return shown.get(row.statistic, Cell)(estimate=row.estimate)

    return layout.of(rows, lambda row: (study.titles[row.metric], who(row)), cell=cell)


def _yes(estimate: Estimate) -> Cell:
    return _share(estimate, YES if estimate.value else NO)


def _share(estimate: Estimate, text: str = "") -> Cell:
    """A share of annotators, or a text that says the same; it has no interval."""
    if estimate.value is None:
        return Cell(DASH, remark=f"undefined: {estimate.reason}" if estimate.reason else "")
    return Cell(text or f"{estimate.value:.2f}")


def figures_table(studies: Sequence[Audited], *, each: bool = False) -> Table:
    """The number of printed figures that are the same, by study and source; or `each` figure."""
    if each:
        layout = Layout(
            "audit_each", "Each figure", ("Source", "Figure"), beside=("Printed", "Found", "Same")
        )
        rows = [row for study in studies for row in study.found.select("figure")]
        return layout.listing(
            (row["source"], row["what"], row["printed"], row.estimate, row["same"]) for row in rows
        )
    layout = Layout(
        "audit_figures", "The authors' figures", ("Study", "Source"),
        beside=("Figures", "The same", "Not the same"),
    )  # fmt: skip
    lines = []
    for study, source, of in _grouped(studies, "figure", "source"):
        others = [_not_the_same(row) for row in of if row["same"] == NO]
        said = "; ".join(others[:3]) + (f" and {len(others) - 3} more" * (len(others) > 3))
        lines.append((study.card.title, source, len(of), len(of) - len(others), said or "none"))
    return layout.listing(lines)


def _grouped(
    studies: Sequence[Audited], analysis: str, key: str
) -> Iterator[tuple[Audited, str, list[Row]]]:
    """The rows of an analysis by study and value of a key."""
    for study in studies:
        for value in study.found.values(key, analysis):
            yield study, value, study.found.select(analysis, **{key: value})


def _not_the_same(row: Row) -> str:
    value = row.estimate.value
    found = DASH if value is None else f"{value:.4g}"
    return f"{row['what']}: {row['printed']} printed, {found} found"


def choices_table(studies: Sequence[Audited]) -> Table:
    """The decisions that another choice turns around."""
    layout = Layout(
        "audit_choices", "What one choice turns around", ("Study", "Choice"),
        beside=("Decisions", "Turned around", "Which"),
    )  # fmt: skip
    lines = []
    for study, choice, of in _grouped(studies, "choice", "choice"):
        turned = [row for row in of if row["before"] != row["outcome"]]
        ways = Counter(map(_way, turned))
        named = [
            f"{way}: {listed([r.judge for r in turned if _way(r) == way]) if n <= 3 else n}"
            for way, n in ways.items()
        ]
        lines.append((study.card.title, choice, len(of), len(turned), "; ".join(named) or "none"))
    return layout.listing(lines)


def _way(row: Row) -> str:
    return f"{row['before']} → {row['outcome']}"


def studies_table(a: Audit) -> Table:
    """Each study with its source."""
    layout = Layout(
        "audit_studies", "The studies", ("Study",), beside=("What", "Claim", "Source", "Decided")
    )
    return layout.listing(
        (
            Cell(study.card.title, link=page_of(study.name)), study.card.what, study.card.claim,
            study.card.source, _decided(study),
        )
        for study in a.studies
    )  # fmt: skip


def _decided(study: Audited) -> str:
    rows = study.found.select("decision", "accuracy")
    good = sum(row["outcome"] in GOOD for row in rows)
    return f"{good} of {len(rows)} REPLACE or ASSIST"
