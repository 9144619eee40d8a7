"""The presentation of an alignment: sentences, tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from judgebench.alignment import alignment_figures as figures
from judgebench.alignment import alignment_tables as tables
from judgebench.alignment.alignment import Alignment
from judgebench.alignment.caveats import BLIND, MOST_NAMED, collapsed, size_in_words
from judgebench.alignment.items import items_of
from judgebench.alignment.paper_tables import USUAL, groups, paper_tables
from judgebench.alignment.statistics import STATISTICS
from judgebench.records import Estimate
from judgebench.results.layout import Layout
from judgebench.results.part import Asks, Block, Card, Part
from judgebench.studies.item_table import verdict_rows
from judgebench.studies.study import JudgeVerdicts, backend_fact
from judgebench.words import counted, listed, percent

NO_LABELS = "Without human labels nothing says how often the judges are right."


def alignment_part(a: Alignment) -> Part:
    """The part of an alignment; without human labels only what the judges did and used."""
    study = a.study
    measured = _blocks(a) if study.n_labels else ()
    label_use = () if study.n_labels else (tables.table_of(a, tables.LABEL_USE),)
    blocks = (
        Block(
            "What was compared", tuple(describe(a)), label_use, on_screen=True, asks="sure",
            gist=size_in_words(study),
        ),
        *measured,
        Block(
            "The judges",
            tuple(_models(a)),
            (tables.table_of(a, tables.JUDGES),),
            on_screen=True,
            asks="what_if",
            gist="models, settings, replies and cost",
        ),
        Block("Settings of the judges", cards=tuple(_settings(a)), folded=True, asks="what_if"),
    )  # fmt: skip
    is_something = study.judges or study.n_labels
    return Part(
        "alignment",
        "judges against human labels",
        a.results,
        blocks if is_something else (),
        a.notes,
        tuple(_facts(a)) if is_something else (),
        paper=tuple(paper_tables(a)),
        urgent=tuple(collapsed(study).values()),
        files={"verdicts.csv": partial(verdict_rows, study)} if a.real_judges else {},
        items=partial(items_of, study),
    )


def _blocks(a: Alignment) -> Iterator[Block]:
    asked: Mapping[Asks, Iterator[Block]] = {
        "sure": _how_sure(a), "people": _people(a),
        "wrong": _where_it_goes_wrong(a), "what_if": _what_if(a),
    }  # fmt: skip
    for asks, blocks in asked.items():
        yield from (replace(block, asks=asks) for block in blocks)


def _how_sure(a: Alignment) -> Iterator[Block]:
    judged = [(judge.name, metric.id) for judge in a.real_judges for metric in a.rubric.metrics]
    yield _block(
        a, "Agreement with the reference labels", tables.ACCURACY, on_screen=True,
        gist=f"accuracy {_span(a.score('accuracy', *pair, 'worst') for pair in judged)}",
    )  # fmt: skip
    for column in a.results.values("by", "subgroup"):
        yield _block(a, f"By {column}", groups(a, column), on_screen=True)
    yield _block(a, "Draws of the judges", tables.SELF_CONSISTENCY, on_screen=True)
    several = partial(a.results.select, "several", "hit", failures="left_out")
    hits = [row.estimate for judge in a.real_judges for row in several(judge=judge.name)]
    yield _block(
        a, "Several right labels", tables.SEVERAL_RIGHT, on_screen=True,
        gist=f"hit {_span(hits)}",
    )  # fmt: skip
    yield _block(
        a, "Severe labels", tables.severe(a), on_screen=True,
        gist="how many of them the judges find",
    )  # fmt: skip
    every = map(tables.scores, STATISTICS.values())
    yield _block(a, "Every statistic", *every, folded=True)
    drawn = [
        figures.score_figure(a, key)
        for key in a.columns or USUAL
        if a.study.judges and any(map(STATISTICS[key].fits, a.rubric.metrics))
    ]
    yield Block("The statistics of the paper as figures", figures=tuple(drawn), folded=True)
    yield _block(
        a, "Limits of agreement", tables.LIMITS,
        figures=tuple(figures.difference_figures(a)), folded=True,
    )  # fmt: skip
    yield _block(a, "Correlation given the system", tables.PARTIAL, folded=True)
    yield _block(a, "Pairs of judges on the same items", tables.COMPARISONS, folded=True)


def _block(a: Alignment, heading: str, *specs: tables.TableSpec, **shown: Any) -> Block:
    return Block(heading, tables=tuple(tables.table_of(a, spec) for spec in specs), **shown)


def _people(a: Alignment) -> Iterator[Block]:
    same = _span(row.estimate for row in a.results.select("agreement", "observed", who="all"))
    yield _block(
        a, "Agreement among the annotators", tables.AGREEMENT, on_screen=True,
        gist=f"the same label in {same} of pairs",
    )  # fmt: skip
    yield _block(a, "Pairs of annotators", tables.PAIRS, folded=True)
    yield _block(a, "Each annotator against the others", tables.ANNOTATORS, folded=True)


def _where_it_goes_wrong(a: Alignment) -> Iterator[Block]:
    yield _block(
        a, "Label by label", tables.LABELS, *map(tables.confusion, a.rubric.metrics),
        figures=tuple(figures.confusion_figures(a)),
        on_screen=True,
        gist="which labels the judges give instead of the reference label",
    )  # fmt: skip
    yield _block(a, "Label use", tables.LABEL_USE, gist="how often each label is given")
    drawn = tuple(figures.reliability_figures(a))
    yield _block(a, "Probabilities", tables.PROBABILITIES, figures=drawn)
    yield _block(a, "More on probabilities", tables.CALIBRATION, folded=True)


def _what_if(a: Alignment) -> Iterator[Block]:
    rows = a.results.select("score", "accuracy", failures="left_out")
    names = [judge.name for judge in a.real_judges]
    missing = counted(sum(r.estimate.n_missing for r in rows if r.judge in names), "label")
    yield _block(
        a, "Missing verdicts", tables.FAILURES, on_screen=True,
        gist=f"{missing} of the judges, and what they change",
    )  # fmt: skip


def _span(found: Iterable[Estimate]) -> str:
    """`66 % to 80 %`, the lowest and the highest; `82 %` where they are the same."""
    values = sorted(e.value for e in found if e.value is not None)
    return " to ".join(dict.fromkeys(map(percent, values[:1] + values[-1:])))


# --- facts ---------------------------------------------------------------------------------------


def _facts(a: Alignment) -> Iterator[str]:
    """A few words each: what was judged, by whose labels, how these were made, and when."""
    yield size_in_words(a.study)
    if a.study.n_labels:
        yield counted(len(a.study.makers), "annotator")
    yield counted(len(a.rubric.metrics), "metric")
    if a.study.n_labels:
        yield BLIND.get(a.study.config.blind, BLIND["unknown"])
    if a.study.run:
        yield a.study.run


def _models(a: Alignment) -> Iterator[str]:
    """`gpt-4: gpt-4-0613, openai`, of every judge that is no control judge."""
    real = a.real_judges
    yield from (f"{judge.name}: {what_judged(judge)}" for judge in real[:MOST_NAMED])
    if len(real) > MOST_NAMED:
        yield counted(len(real) - MOST_NAMED, "other")


def what_judged(judge: JudgeVerdicts) -> str:
    """Model and version of a judge as far as they are known: `tiny.gguf, llamacpp, 2026.1`."""
    about = judge.about or {}
    by_user = about.get("about") or {}  # what the user says of recorded verdicts
    keys = ("model", "file", "revision", "engine", "version", "date")
    facts = [by_user.get(key) or backend_fact(about, key) for key in keys]
    if "backend" not in about:
        members = about.get("members") or about.get("of")
        kind = str(about.get("judge", judge.kind))
        facts.insert(0, f"{kind} of {listed([*members])}" if members else kind)
    return ", ".join(str(fact) for fact in facts if fact)


# --- sentences ------------------------------------------------------------------------------------


def describe(a: Alignment) -> list[str]:
    """Say in a few plain sentences what was compared."""
    n_metrics = counted(len(a.rubric.metrics), "metric")
    sentences = [
        *a.compared,
        f"Rubric {a.rubric.name}, version {a.rubric.version}: {n_metrics}.",
        f"{counted(len(a.real_judges), 'judge')} and {counted(len(a.controls), 'baseline')}.",
    ]
    if not a.study.n_labels:
        sentences.append(NO_LABELS)
    elif not a.controls:
        sentences.append("There is no baseline, so no judge can be called good by this report.")
    return sentences


# --- settings ------------------------------------------------------------------------------------


def _settings(a: Alignment) -> Iterator[Card]:
    layout = Layout("settings", "Settings", ("Setting",), beside=("Value",))
    for judge in a.study.judges:
        if told := [(key, str(x)) for key, x in flat(judge.about or {}) if x not in (None, [], ())]:
            yield Card(judge.name, grid=layout.listing(told))


def flat(about: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`{"a": {"b": 1}}` as `("a.b", 1)`, in the order given."""
    for key, value in about.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
