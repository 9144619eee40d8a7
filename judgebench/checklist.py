"""A reporting checklist that fills itself: the items of a guideline, each with what the study shows
and where, or a question to the author.

A checklist is YAML (`rubrics/checklists/`) whose items name facts of the study. A report copies it
into its folder once; there the author answers what no study shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field

from judgebench.alignment.alignment import Alignment, JudgeSummary
from judgebench.alignment.alignment_part import flat, what_judged
from judgebench.alignment.caveats import (
    BLIND,
    bar_lines,
    headline,
    named,
    overlap_lines,
    reference_labels,
    size_in_words,
)
from judgebench.alignment.statistics import STATISTICS
from judgebench.files import disk_errors, write_atomically
from judgebench.judges.config import Name
from judgebench.records import COLLECTED, Estimate
from judgebench.results.html import QUESTIONS
from judgebench.results.part import UNDERSTOOD, Block, Part
from judgebench.results.rows import Results
from judgebench.results.shown import Shown
from judgebench.results.tables import Cell, Table, in_per_cent
from judgebench.rubric import Text
from judgebench.shipped import find_file
from judgebench.stats.copies import FEWEST_SHARED
from judgebench.studies.study import RECORDED, Study
from judgebench.words import listed
from judgebench.yaml_file import Strict, load_model

UNKNOWN = "(not known)"  # in what a study shows of a fact: then the author is asked
TO_AUTHOR = "To the author:"
FOLDER = "rubrics/checklists"
_NO_COPIES = f"Copies: none seen where two named annotators share {FEWEST_SHARED} items or more."
_HOW = ("prompt", "mode", "decoding", "thresholds", "about.")  # of what is known of a judge

# The facts that an item can name, and where the report shows each: a section of the page or a file.
FACTS = {
    "title": "sure", "sample_size": "sure", "numbers": "sure", "sampling": "sure",
    "plan": "sure", "rating_process": "sure", "background": "sure", "subjects": "sure",
    "reference_labels": "sure", "decision_rule": "sure", "accuracy": "sure",
    "agreement": "people", "annotators": "people", "blindness": "people", "independence": "people",
    "rubric": "wrong", "judges": "what_if",
    "outcomes": "decisions.csv", "statistics": "results.csv", "results_files": "results.csv",
}  # fmt: skip


def _fact(name: str) -> str:
    if name not in FACTS:
        raise ValueError(f"is no fact of a study; facts: {', '.join(FACTS)}")
    return name


class Item(Strict):
    """What a guideline wants reported, the facts that fill it, each with the question to the author
    where it is not known, what to `ask` in any case, and the author's answer to all of these."""

    item: Text
    facts: dict[Annotated[str, AfterValidator(_fact)], str | None] = Field(default={})
    ask: str | None = None
    answer: str | None = None


class Checklist(Strict):
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
    """A checklist with what is known of each item: `rows` of the item, a sentence, and where the
    report shows it; a question to the author is a sentence, too. The author answers in `file`."""

    presented_by = "judgebench.checklist:checklist_part"

    checklist: Checklist
    rows: list[tuple[str, str, str]]
    file: Path

    @property
    def summary(self) -> str:
        """Say how many items ask the author, and where to answer."""
        asked = {item for item, sentence, _ in self.rows if TO_AUTHOR in sentence}
        n_open = f"{len(asked)} of {len(self.checklist.items)} items"
        return f"{self.checklist.title}: {n_open} ask for answers in {self.file.name}."

    def records(self) -> dict[str, list[Any]]:
        """The rows, for JSON."""
        return {"checklist": self.rows}


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
    rows: list[tuple[str, str, str]] = []
    for item in checklist.items:
        rows += [*_rows(item, facts)] or [(item.item, UNKNOWN, "")]
    return {**analyses, "checklist": FilledChecklist(checklist, rows, file)}


def _rows(item: Item, facts: Mapping[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    for fact, ask in item.facts.items():
        for sentence in filter(None, facts[fact]):
            if UNKNOWN not in sentence:
                yield item.item, sentence, FACTS[fact]
            elif not item.answer:
                question = f" {TO_AUTHOR} {ask}" if ask else ""
                yield item.item, f"{sentence}{question}", ""
    if item.answer:
        yield item.item, item.answer, ""
    elif item.ask:
        yield item.item, f"{TO_AUTHOR} {item.ask}", ""


def checklist_part(filled: FilledChecklist) -> Part:
    """The part of a report: a table in which each item has a line for each sentence."""
    title, columns = filled.checklist.title, ("Item", "In this study", "Where in the report")
    rows = [
        (Cell("" if n else item), Cell(text), _place(place))
        for item, same in groupby(filled.rows, lambda row: row[0])
        for n, (_, text, place) in enumerate(same)
    ]
    notes = (f"Items in our words, after {filled.checklist.source}.",)
    table = Table("checklist", title, columns, tuple(rows), notes, stubs=len(columns))
    block = Block("Reporting checklist", (filled.summary,), (table,), on_screen=True)
    return Part("checklist", "reporting checklist", Results(), (block,))


def _place(place: str) -> Cell:
    """The name of a section of the page, or of a file, with a link to it."""
    heading = QUESTIONS.get(place)
    return Cell(heading, link=f"#q-{place}") if heading else Cell(place, link=place)


# --- the facts ------------------------------------------------------------------------------------


def _facts(study: Study, analyses: Mapping[str, Shown]) -> dict[str, list[str]]:
    """What the study shows of each fact, in sentences; none where there is nothing of the kind."""
    alignment = analyses["align"]
    assert isinstance(alignment, Alignment)
    judges, size = alignment.real_judges, f"{size_in_words(study)}."
    between = "judges with annotators" if judges else "annotators with each other"
    blind = {**BLIND, "unknown": UNKNOWN}[study.config.blind]
    copies = [line for line in bar_lines(study) if line.startswith("Copies")]
    verdicts = [
        f"{judge.name}: {judge.statuses.get('ok', 0):,} of {judge.n:,} answers labelled."
        for judge in judges
    ]
    files = ["results.csv", *alignment.part.files]
    outcome = analyses["decide"].part.answer if "decide" in analyses else ""
    return {
        **{fact: _collected(study, start) for fact, start in COLLECTED.items()},
        "title": [f"For example “Agreement of {between}”, {size}"],
        "judges": [f"{judge.name}: {_model(judge)}." for judge in judges],
        "rubric": [f"{m.title}: {', '.join(m.label_texts)}." for m in study.rubric.metrics],
        "subjects": [size],
        "annotators": [f"{listed(named(study.makers) or [UNKNOWN])}."],
        "blindness": [f"Blindness: {blind}."],
        "independence": copies or [_NO_COPIES] if len(study.makers) > 1 else [],
        "sample_size": [f"{headline(study)}."],
        "sampling": [_sampling(study)],
        "reference_labels": [reference_labels(study)],
        "numbers": [*alignment.compared[:1], *overlap_lines(study), *verdicts],
        "statistics": [*_statistics(alignment.results)],
        "agreement": [*_agreement(alignment)],
        "accuracy": [*_accuracy(alignment)],
        "decision_rule": ["Outcomes by the rule that the report prints."] if outcome else [],
        "outcomes": [f"Can a judge replace the annotators? {outcome or UNKNOWN}"],
        "results_files": [f"All numbers and labels: {listed(files)}."],
    }


def _collected(study: Study, start: str) -> list[str]:
    """What `judgebench annotate` says of how the labels were collected, after that start."""
    notes = [note.removeprefix(UNDERSTOOD) for note in study.notes]
    return [note for note in notes if note.startswith(start)] or [f"{start}{UNKNOWN}."]


def _model(judge: JudgeSummary) -> str:
    """The model of a judge, its prompt and decoding, or what is said of recorded verdicts."""
    model = what_judged(judge)
    settings = [
        f"{key.removeprefix('about.')} {value}"
        for key, value in flat(judge.about)
        if key.startswith(_HOW) and value is not None and str(value) not in model
    ]
    if judge.about.get("judge") == RECORDED and not settings:
        settings = [f"prompt and decoding {UNKNOWN}"]
    return ", ".join([model, *settings])


def _sampling(study: Study) -> str:
    """Say how the labelled answers were drawn from all."""
    labelled = np.zeros(len(study.answers), dtype=np.bool_)
    for humans in study.humans.values():
        labelled[humans.ratings.rows] |= (humans.ratings.values >= 0).any(axis=1)
    if labelled.all():
        return "All answers of the study have human labels."
    if study.drawn.random:
        return "Labelled answers were drawn at random from all, as declared."
    return study.drawn.in_words() or f"How labelled answers were drawn from all: {UNKNOWN}."


def _statistics(results: Results) -> Iterator[str]:
    measured = [row for row in results.select("score") if row.estimate.value is not None]
    if headings := [*dict.fromkeys(STATISTICS[row.statistic].heading for row in measured)]:
        yield f"Judges and reference labels: {listed(headings)}."
    accuracy, alpha = results.find("accuracy", "score"), results.find("alpha", "agreement")
    for name, estimate in (("accuracy", accuracy), ("Krippendorff's α", alpha)):
        if estimate.low is not None:
            level = f"{100 * estimate.level:g} %"
            yield f"{level} interval of {name}: {estimate.method}."


def _agreement(alignment: Alignment) -> Iterator[str]:
    for row in alignment.results.select("agreement", "alpha", who="all"):
        reason, title = _reason(row.estimate), alignment.title(row.metric)
        yield f"{title}: Krippendorff's α of annotators {row.estimate}{reason}."


def _accuracy(alignment: Alignment) -> Iterator[str]:
    for judge in alignment.part.accuracies:
        accuracy = f"{in_per_cent(judge.accuracy)}{_reason(judge.accuracy)}"
        yield f"{judge.metric}: accuracy of {judge.judge} {accuracy}."


def _reason(estimate: Estimate) -> str:
    """Why an estimate has no interval, or no value, where that is so."""
    return f" ({estimate.reason})" if estimate.reason else ""
