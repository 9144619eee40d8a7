"""A reporting checklist that fills itself: the items of a guideline, each with what the study shows
and where, or a question to the author.

A checklist is YAML (`rubrics/checklists/`) whose items name facts of the study. A report copies it
into its folder once; there the author answers what no study shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field

from judgebench.alignment.analysis import Alignment
from judgebench.alignment.judge_scores import ALPHA, STATISTICS
from judgebench.alignment.notes import BLIND, headline, named, overlap_lines, reference_labels
from judgebench.alignment.report import flat, what_judged
from judgebench.files import StrictModel, disk_errors, find_file, load_model, write_atomically
from judgebench.judges.config import Name
from judgebench.records import COLLECTED, Results, Row, group_by_key
from judgebench.results.blocks import UNDERSTOOD, Block, ReportSection
from judgebench.results.documents import QUESTIONS
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell, Layout
from judgebench.rubric import Text
from judgebench.stats.annotator_bar import FEWEST_SHARED
from judgebench.studies.study import RECORDED, JudgeVerdicts, Study
from judgebench.text import listed

UNKNOWN = "(not known)"  # in what a study shows of a fact: then the author is asked
TO_AUTHOR = "To the author:"
FOLDER = "rubrics/checklists"
_NO_COPIES = f"Copies: none seen where two named annotators share {FEWEST_SHARED} items or more."
# The fact that a promise of a protocol belongs to, where not to the plan.
_OF_PROMISES = {
    "draw": "sampling", "blind_to_judges": "rating_process",
    "blind_to_each_other": "rating_process",
}  # fmt: skip
_HOW = ("prompt", "mode", "decoding", "thresholds", "about.")  # of what is known of a judge

# The facts that an item can name, and where the report shows each: a section of the page or a file.
FACTS = {
    "sample_size": "#q-sure", "numbers": "#q-sure", "sampling": "#q-sure", "plan": "#q-sure",
    "rating_process": "#q-sure", "background": "#q-sure", "statistics": "#q-sure",
    "annotators": "#q-people", "blindness": "#q-people", "independence": "#q-people",
    "rubric": "#q-wrong", "judges": "#q-what_if",
    "outcomes": "decisions.csv", "estimates": "results.csv", "results_files": "results.csv",
}  # fmt: skip


def _fact(name: str) -> str:
    if name not in FACTS:
        raise ValueError(f"is no fact of a study; facts: {', '.join(FACTS)}")
    return name


class Item(StrictModel):
    """What a guideline wants reported, the facts that fill it, each with the question to the author
    where it is not known, what to `ask` in any case, and the author's answer to all of these."""

    item: Text
    facts: dict[Annotated[str, AfterValidator(_fact)], str | None] = Field(default={})
    ask: str | None = None
    answer: str | None = None


class Checklist(StrictModel):
    """The items of a published guideline, in our own words, with their source."""

    name: Name
    title: Text
    source: Text
    items: tuple[Item, ...] = Field(min_length=1)


def load_checklist(name: str | Path) -> Checklist:
    """The checklist of that path or shipped name. Raises SetupError with every problem in it."""
    return load_model(find_file(FOLDER, str(name), ".yaml"), Checklist)


@dataclass(frozen=True, repr=False)
class FilledChecklist(Shown):
    """A checklist with what is known of each item: sentences, each with the place where the report
    shows it; a question to the author is a sentence, too. The author answers in `file`."""

    presented_by = "judgebench.checklist:checklist_part"

    checklist: Checklist
    items: list[tuple[str, list[tuple[str, str]]]]
    file: Path

    @property
    def summary(self) -> str:
        """Say how many items ask the author, and where to answer."""
        n_open = sum(TO_AUTHOR in str(sentences) for _, sentences in self.items)
        which = f"{n_open} of {len(self.items)} items"
        return f"{self.checklist.title}: {which} ask for answers in {self.file.name}."

    def records(self) -> dict[str, list[Any]]:
        """Each item with its sentences and their places, for JSON."""
        return {"checklist": self.items}


def with_checklist(
    analyses: Mapping[str, Shown], name: str | Path, study: Study, folder: Path
) -> dict[str, Shown]:
    """The analyses of a study (`jb.analyse`), and a checklist that is filled from them: a path, or
    a shipped name.

    The author's answers are in its copy in the report's folder, `checklist-NAME.yaml`, which is
    made where there is none. Raises SetupError with every problem of either, and DiskFailed.
    """
    source = find_file(FOLDER, str(name), ".yaml")
    file = folder / f"checklist-{load_checklist(source).name}.yaml"
    if not file.is_file():
        with disk_errors(file):
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(file, source.read_bytes())
    checklist, facts = load_checklist(file), _facts(study, analyses)
    items = [(item.item, [*_filled(item, facts)] or [(UNKNOWN, "")]) for item in checklist.items]
    return {**analyses, "checklist": FilledChecklist(checklist, items, file)}


def _filled(item: Item, facts: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """The sentences that fill an item, each with its place in the report; then what else is asked,
    or the author's answer."""
    for fact, ask in item.facts.items():
        for sentence in facts[fact]:
            if UNKNOWN not in sentence:
                yield sentence, FACTS[fact]
            elif not item.answer:
                yield f"{sentence} {TO_AUTHOR} {ask}" if ask else sentence, ""
    if rest := item.answer or (item.ask and f"{TO_AUTHOR} {item.ask}"):
        yield rest, ""


def checklist_part(filled: FilledChecklist) -> ReportSection:
    """The part of a report: a table in which each item has a line for each sentence."""
    lines = (
        ("" if n else item, text, Cell(QUESTIONS.get(place.removeprefix("#q-"), place), link=place))
        for item, sentences in filled.items
        for n, (text, place) in enumerate(sentences)
    )
    layout = Layout(
        "checklist", filled.checklist.title, ("Item", "In this study"),
        (f"Items in our words, after {filled.checklist.source}.",), ("Where in the report",),
    )  # fmt: skip
    block = Block(
        "Reporting checklist", (filled.summary,), (layout.listing(lines),), on_screen=True
    )
    return ReportSection("checklist", "reporting checklist", Results(), (block,))


# --- the facts ------------------------------------------------------------------------------------


def _facts(study: Study, analyses: Mapping[str, Shown]) -> dict[str, list[str]]:
    """What the study shows of each fact, in sentences; none where there is nothing of the kind."""
    alignment = analyses["align"]
    assert isinstance(alignment, Alignment)
    notes = [note.removeprefix(UNDERSTOOD) for note in study.notes]
    blind = {**BLIND, "unknown": UNKNOWN}[study.config.blind]
    copies = [line for line in alignment.compared if line.startswith("Copies")]
    verdicts = (
        f"{row.judge}: {row.estimate.value or 0:,.0f} of {row.estimate.n:,} answers labelled."
        for judge in alignment.real_judges
        for row in alignment.results.select("verdicts", "ok", judge=judge.name)
    )
    outcome = analyses["decide"].part.answer if "decide" in analyses else ""
    rule = ["Outcomes by the rule that the report prints."] * bool(outcome)
    files = ["results.csv", *alignment.part.files]
    facts = {
        **{
            fact: [note for note in notes if note.startswith(start)] or [f"{start}{UNKNOWN}."]
            for fact, start in COLLECTED.items()
        },
        "judges": [f"{judge.name}: {_model(judge)}." for judge in alignment.real_judges],
        "rubric": [f"{m.title}: {', '.join(m.label_texts)}." for m in study.rubric.metrics],
        "annotators": [f"{listed(named(study.makers) or [UNKNOWN])}."],
        "blindness": [f"Blindness: {blind}."],
        "independence": copies or [_NO_COPIES] * (len(study.makers) > 1),
        "sample_size": [f"{headline(study)}."],
        "sampling": [_sampling(study)],
        "numbers": [*alignment.compared[:1], *overlap_lines(study), *verdicts],
        "statistics": [*_statistics(study, alignment.results), *rule],
        "estimates": [*_estimates(alignment)],
        "outcomes": [f"Can a judge replace the annotators? {outcome or UNKNOWN}"],
        "results_files": [f"All numbers and labels: {listed(files)}."],
    }
    promises = analyses["decide"].results.select("protocol") if "decide" in analyses else ()
    by_fact = group_by_key((_OF_PROMISES.get(row.statistic, "plan"), row) for row in promises)
    for fact, rows in by_fact.items():
        known = [sentence for sentence in facts[fact] if UNKNOWN not in sentence]
        facts[fact] = [*known, _what_was_kept(rows)]
    return facts


def _what_was_kept(promises: Sequence[Row]) -> str:
    """Name the promises of a protocol; of those that were not kept say what became of them."""
    names = (row["promise"] if row["state"] == "kept" else row.estimate.reason for row in promises)
    return f"Protocol (kept where nothing else is said): {'; '.join(names)}."


def _model(judge: JudgeVerdicts) -> str:
    """The model of a judge, its prompt and decoding, or what is said of recorded verdicts."""
    model, about = what_judged(judge), judge.about or {}
    settings = [
        f"{key.removeprefix('about.')} {value}"
        for key, value in flat(about)
        if key.startswith(_HOW) and value is not None and str(value) not in model
    ]
    if about.get("judge") == RECORDED and not settings:
        settings = [f"prompt and decoding {UNKNOWN}"]
    return ", ".join([model, *settings])


def _sampling(study: Study) -> str:
    """Say how the labelled answers were drawn from all."""
    if study.drawn.random:
        return "Labelled answers were drawn at random from all, as declared."
    if drawn := study.drawn.in_words():
        return drawn
    labelled = np.zeros(len(study.answers), dtype=np.bool_)
    for humans in study.humans.values():
        labelled[humans.ratings.rows] |= (humans.ratings.values >= 0).any(axis=1)
    if labelled.all():
        return "All answers of the study have human labels."
    return f"How labelled answers were drawn from all: {UNKNOWN}."


def _statistics(study: Study, results: Results) -> Iterator[str]:
    """Say how reference labels are made, what was measured, and with which intervals."""
    yield from filter(None, [reference_labels(study)])
    scores = [row for row in results.select("score") if row.estimate.value is not None]
    if headings := dict.fromkeys(STATISTICS[row.statistic].heading for row in scores):
        yield f"Judges and reference labels: {listed([*headings])}."
    for analysis, statistic in (("score", "accuracy"), ("agreement", "alpha")):
        estimate = results.find(statistic, analysis)
        if estimate.low is not None:
            of = f"{100 * study.level:g} % interval of {STATISTICS[statistic].heading}"
            yield f"{of}: {estimate.method}."


def _estimates(alignment: Alignment) -> Iterator[str]:
    """The α of the annotators and the accuracy of each judge on each metric, as far as known."""
    alphas = alignment.results.select("agreement", "alpha", who="all")
    measured = {f"{alignment.title(a.metric)}: {ALPHA} of annotators": a.estimate for a in alphas}
    measured |= {
        f"{m.title}: accuracy of {j.name}": alignment.score("accuracy", j.name, m.id, "worst")
        for m, j in product(alignment.rubric.metrics, alignment.real_judges)
    }
    for what, estimate in measured.items():
        yield f"{what} {estimate}{f' ({estimate.reason})' * bool(estimate.reason)}."
