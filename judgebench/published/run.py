"""One published study, decided again: its figures first, then decisions beside every baseline, the
published test of judges and of rules that never read, and what one choice turns around."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.progress import Progress
from judgebench.published.card import BENCH, Folder, Printed
from judgebench.published.result import NO, YES, Audit, Audited
from judgebench.records import Estimate, is_slot
from judgebench.results.part import Part
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.rubric import Metric
from judgebench.stats.alternative_test import (
    DuelTerms,
    alternative_annotator_test,
    average_advantage,
)
from judgebench.studies.study import Study

_NO_INTERVAL = "a share of the annotators who were tested"
_TEST, _PUBLISHED = "alternative_test", "published"
_ALIGNED = "align"


@dataclass(frozen=True)
class Tools:
    """The work of the rest of judgebench: `run` a bench.yaml on a folder of data into a run folder,
    `decide` by a rule, `align`."""

    run: Callable[[Path, Path, Path], Study]
    decide: Callable[[Study, Path | None], Shown]
    align: Callable[[Study], Shown]


def audit_folders(
    folders: Sequence[Folder], data: Path, tools: Tools, progress: Progress,
    write: Callable[[Audited, Part], object] | None = None, *, choices: bool = True,
) -> Audit:  # fmt: skip
    """Every study whose published files are below `data`; `write` is given each with the part of
    its decisions once it is done. Interrupted, the audit is that of the studies that are done."""
    done, skipped, failed = list[Audited](), list[str](), list[Problem]()
    progress.start("studies", len(folders), 0)
    for folder in folders:
        if not folder.data(data).exists():
            skipped.append(f"{folder.name}: its files are not in {folder.data(data)}")
            progress.advance("studies", folder.name)
            continue
        try:
            with TemporaryDirectory() as work, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what reading left out stands on the page
                decided, found = _audited(folder, folder.data(data), Path(work), tools, choices)
                done.append(found)
                if write:
                    write(found, decided.part)
        except SetupError as error:
            failed += error.problems
            skipped.append(f"{folder.name}: {error.problems[0]}")
        except KeyboardInterrupt:
            skipped.append(f"interrupted in {folder.name}: studies after it are left out")
            break
        progress.advance("studies", folder.name)
    return Audit(tuple(done), tuple(skipped), tuple(failed))


def _audited(
    folder: Folder, data: Path, work: Path, tools: Tools, choices: bool
) -> tuple[Shown, Audited]:
    (work / "tables").mkdir()
    study = tools.run(folder.path / BENCH, folder.prepared(data, work / "tables"), work / "run")
    decided = tools.decide(study, folder.rule)
    rows = [*_figures(folder, study, data, decided, tools)]
    rows += _decisions(decided)
    rows += _tests(folder, study, decided)
    if choices:
        rows += _choices(folder, study, decided, tools)
    named = (replace(row, keys={"study": folder.name, **row.keys}) for row in rows)
    titles = {metric.id: metric.title for metric in study.rubric.metrics}
    standings = decided.part.standings
    return decided, Audited(folder.name, folder.card, titles, standings, Results(tuple(named)))


# ---- the authors' figures -----------------------------------------------------------------------


def _figures(
    folder: Folder, study: Study, data: Path, decided: Shown, tools: Tools
) -> Iterator[Row]:
    """Every printed figure with what the files give."""
    printed = folder.printed()
    found, more = decided.results, Results()
    if any(not _rows(found, figure) for figure in printed):
        more = tools.align(study).results
    for figure in printed:
        row = _one_row(_rows(found, figure) or _rows(more, figure), figure, folder)
        yield _figure(figure, row.estimate.value, row.judge, row.metric)
    for figure, value in folder.computed(study, data):
        yield _figure(figure, value)


def _figure(figure: Printed, value: float | None, judge: str = "", metric: str = "") -> Row:
    keys = {"source": figure.source, "what": figure.what, "printed": figure.text,
            "same": YES if figure.same(value) else NO}  # fmt: skip
    shown = None if value is None else figure.scale * float(value)
    return Row(
        "figure", "value", Estimate(shown, reason="the files give none"), judge, metric, keys
    )


def _rows(found: Results, figure: Printed) -> list[Row]:
    where = dict(figure.where)
    return found.select(where.pop("analysis", ""), where.pop("statistic", ""), **where)


def _one_row(rows: Sequence[Row], figure: Printed, folder: Folder) -> Row:
    """The one row that has all keys of a figure. Raises SetupError for none, or several."""
    if len(rows) != 1:
        message = f"these keys select {len(rows)} rows of the results, and must select one"
        said = ", ".join(f"{key} {value}" for key, value in figure.where.items())
        raise SetupError(Problem(message, str(folder.path), field=figure.what, found=said))
    return rows[0]


# ---- decisions and tests ------------------------------------------------------------------------


def _outcomes(decided: Shown) -> dict[tuple[str, str], str]:
    rows = decided.results.select("decision")
    return {(row.judge, row.metric): row["outcome"] for row in rows}


def _decisions(decided: Shown) -> Iterator[Row]:
    found = zip(_outcomes(decided).items(), decided.part.standings, strict=True)
    for ((judge, metric), outcome), standing in found:
        about = {"outcome": outcome, "who": standing.baseline_name}
        yield Row("decision", "accuracy", standing.accuracy, judge, metric, about)
        yield Row("decision", "humans", standing.humans, judge, metric, about)
        yield Row("decision", "baseline", standing.baseline, judge, metric, about)


def _tests(folder: Folder, study: Study, decided: Shown) -> Iterator[Row]:
    """The published test of every judge, and of every baseline, which nobody should replace
    anybody by."""
    claimed = {(one.judge, one.metric) for one in folder.card.passes}
    outcomes = _outcomes(decided)
    for row in decided.results.select(_TEST, who=_PUBLISHED):
        if row.statistic in ("passes", "guarded", "winning_rate", "advantage"):
            at = (row.judge, row.metric)
            keys = {"kind": "judge", "claimed": YES if at in claimed else NO,
                    "outcome": outcomes.get(at, "")}  # fmt: skip
            yield replace(row, analysis="test", keys=keys)
    for metric in study.rubric.metrics:
        epsilon = decided.results.find("epsilon", _TEST, metric=metric.id, who=_PUBLISHED).value
        if epsilon is not None:
            yield from _blind_tests(study, metric, epsilon)


def _blind_tests(study: Study, metric: Metric, epsilon: float) -> Iterator[Row]:
    """The published test with a baseline in the judge's place."""
    humans = study.humans[metric.id]
    people = [a for a in humans.makers if not is_slot(a)]
    if len(people) < 2:
        return
    ratings, k = humans.ratings.of(people).values, len(metric.labels)
    scores = metric.severities if metric.kind == "ordinal" else None
    terms = DuelTerms(epsilon, severities=scores)
    for judge in study.controls:
        judged = study.judged(judge, metric)[humans.ratings.rows]
        found = alternative_annotator_test(ratings, judged, k, terms)
        advantage = average_advantage(ratings, judged, humans.clusters, k, terms, study.resampling)
        passes = None if found.passes is None else float(found.passes)
        about = (judge.name, metric.id, {"kind": "baseline"})
        yield Row("test", "passes", Estimate(passes, reason=found.reason), *about)
        rate = Estimate(found.winning_rate, n=found.tested, reason=found.reason or _NO_INTERVAL)
        yield Row("test", "winning_rate", rate, *about)
        yield Row("test", "advantage", advantage, *about)


# ---- what one choice turns around ---------------------------------------------------------------


def _choices(folder: Folder, study: Study, decided: Shown, tools: Tools) -> Iterator[Row]:
    """The outcome of each judge under every other choice, beside that of the study as it is."""
    before = _outcomes(decided)
    for choice, other in _others(study):
        again = tools.decide(other, folder.rule)
        for row in _decisions(again):
            if row.statistic == "accuracy":
                keys = {"choice": choice, "before": before[row.judge, row.metric],
                        "outcome": row["outcome"]}  # fmt: skip
                yield replace(row, analysis="choice", keys=keys)


def _others(study: Study) -> Iterator[tuple[str, Study]]:
    """The same study with ties settled otherwise, another rule for the reference labels, the two
    annotators with the most labels alone, and without the order of the labels; those alone in which
    something can differ."""
    config, ordinal = study.config, [m for m in study.rubric.metrics if m.kind == "ordinal"]
    people = Counter[str]()
    for humans in study.humans.values():
        given = (humans.ratings.of(humans.makers).values >= 0).sum(axis=0).tolist()
        people.update(dict(zip(humans.makers, given, strict=True)))
    ways: dict[str, dict[str, Any]] = {
        f"ties: {said}": {"ties": ties}
        for ties, said in (
            ("none", "left out"),
            ("lower", "the first label"),
            ("upper", "the last label"),
        )
    }
    rules = ("majority", "median") if ordinal else ("majority",)
    ways |= {f"reference labels: {rule}": {"rule": rule} for rule in (*rules, "dawid_skene")}
    if len(people) > 2:
        two = [name for name, _ in people.most_common(2)]
        ways["two annotators, with the most labels"] = {"annotators": tuple(two)}
    for choice, change in ways.items():
        changed = config.model_copy(update=change)
        with suppress(SetupError):  # such as a truth model of people whom nobody can tell apart
            if changed != config and _differs(study, other := study.under(changed)):
                yield choice, other
    if ordinal:
        yield "labels without an order", _without_order(study)


def _differs(a: Study, b: Study) -> bool:
    """True where the reference labels, or who makes them, are others."""
    return any(
        one.makers != b.humans[metric].makers
        or not np.array_equal(one.truth, b.humans[metric].truth)
        for metric, one in a.humans.items()
    )


def _without_order(study: Study) -> Study:
    """The same labels and reference labels, with metrics whose labels have no order."""
    metrics = tuple(
        m.model_copy(update={"kind": "nominal"}) if m.kind == "ordinal" else m
        for m in study.rubric.metrics
    )
    rubric = study.rubric.model_copy(update={"metrics": metrics})
    humans = {m.id: replace(study.humans[m.id], metric=m) for m in metrics}
    return replace(study, rubric=rubric, humans=humans)
