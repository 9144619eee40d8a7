"""The presentation of an alignment: sentences, tables and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from judgebench.alignment import alignment_figures as figures
from judgebench.alignment import alignment_tables as tables
from judgebench.alignment.against_truth import coverage_in_words
from judgebench.alignment.alignment import Alignment, JudgeSummary
from judgebench.alignment.caveats import BLIND, MOST_NAMED
from judgebench.alignment.statistics import STATISTICS
from judgebench.records import Estimate
from judgebench.results.layout import Layout
from judgebench.results.part import Asks, Block, Card, Part, Standing
from judgebench.results.tables import Table
from judgebench.studies.study import JudgeKind, backend_fact
from judgebench.words import counted, listed, percent

NO_LABELS = "Without human labels nothing says how often the judges are right."
_KINDS: Mapping[JudgeKind, tuple[str, str]] = {
    "judge": ("judge", "judges"),
    "jury": ("jury", "juries"),
    "calibration": ("calibrated judge", "calibrated judges"),
    "control": ("baseline", "baselines"),
}


def alignment_part(a: Alignment) -> Part:
    """The part of an alignment; without human labels only what the judges did and used."""
    measured = _blocks(a) if a.n_labels else ()
    said = () if a.n_labels else (tables.show(a, tables.LABEL_USE),)
    blocks = (
        Block(
            "What was compared", tuple(describe(a)), said, on_screen=True, asks="sure", gist=a.size
        ),
        *measured,
        Block(
            "The judges",
            tuple(_models(a)),
            (tables.judges_table(a),),
            asks="what_if",
            gist="models, settings, replies and cost",
        ),
        Block("Settings of the judges", cards=tuple(_settings(a)), folded=True, asks="what_if"),
    )
    there = a.judges or a.n_labels
    return Part(
        "alignment",
        "judges against human labels",
        a.results,
        blocks if there else (),
        a.notes,
        tuple(_facts(a)) if there else (),
        paper=tuple(_paper(a)),
        urgent=a.collapsed,
        files=a.files if a.real_judges else {},
        accuracies=tuple(_accuracies(a)) if a.n_labels else (),
        items=a.items,
    )


def _paper(a: Alignment) -> Iterator[Table]:
    if a.n_labels:
        yield tables.show(a, tables.paper_agreement(a))
    if a.n_labels and a.real_judges:
        yield tables.paper_table(a)


def _accuracies(a: Alignment) -> Iterator[Standing]:
    """Each judge beside annotators and the best baseline, without an outcome."""
    for metric in a.rubric.metrics:
        rows = a.results.select("ceiling", "accuracy", metric=metric.id)
        people = {row["who"]: row.estimate for row in rows if row["who"] != "all"}
        name, best = a.best_control("accuracy", metric.id) or ("", Estimate(None, reason=""))
        for judge in a.real_judges:
            own = a.score("accuracy", judge.name, metric.id, "worst")
            missing = a.score("accuracy", judge.name, metric.id).n_missing
            yield Standing(
                judge.name, metric.title, "", "none", own, missing,
                coverage_in_words(a.results, judge.name, metric.id),
                a.ceiling("accuracy", metric.id), people, best, name, 0.0, "", "",
            )  # fmt: skip


def _blocks(a: Alignment) -> Iterator[Block]:
    asked: Mapping[Asks, Iterator[Block]] = {
        "sure": _how_sure(a), "people": _people(a),
        "wrong": _where_it_goes_wrong(a), "what_if": _what_if(a),
    }  # fmt: skip
    for asks, blocks in asked.items():
        yield from (replace(block, asks=asks) for block in blocks)


def _how_sure(a: Alignment) -> Iterator[Block]:
    yield _block(
        a, "Agreement with the reference labels", tables.ACCURACY, on_screen=True,
        gist=f"accuracy {_span(one.accuracy for one in _accuracies(a))}",
    )  # fmt: skip
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
    drawn = (
        figures.score_figure(a, d)
        for d in STATISTICS.values()
        if "drawn" in d.shown and a.judges and any(map(d.fits, a.rubric.metrics))
    )
    yield Block("Every statistic as a figure", figures=tuple(drawn), folded=True)
    yield _block(a, "Pairs of judges on the same items", tables.COMPARISONS, folded=True)


def _block(a: Alignment, heading: str, *specs: tables.TableSpec, **shown: Any) -> Block:
    return Block(heading, tables=tuple(tables.show(a, spec) for spec in specs), **shown)


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
        a, "Label by label", *map(tables.confusion, a.rubric.metrics),
        figures=tuple(figures.confusion_figures(a)),
        gist="which labels the judges give instead of the reference label",
    )  # fmt: skip
    yield _block(a, "Label use", tables.LABEL_USE, gist="how often each label is given")
    drawn = tuple(figures.reliability_figures(a))
    yield _block(a, "Probabilities", tables.PROBABILITIES, figures=drawn)
    yield _block(a, "More on probabilities", tables.CALIBRATION, folded=True)


def _what_if(a: Alignment) -> Iterator[Block]:
    missing = counted(sum(one.failures for one in _accuracies(a)), "label")
    yield _block(
        a, "Missing verdicts", tables.failures("accuracy"), on_screen=True,
        gist=f"{missing} of the judges, and what they change",
    )  # fmt: skip
    yield _block(a, "Missing verdicts, counted three ways", tables.failures(), folded=True)


def _span(found: Iterable[Estimate]) -> str:
    """`66 % to 80 %`, the lowest and the highest; `82 %` where they are the same."""
    values = sorted(e.value for e in found if e.value is not None)
    return " to ".join(dict.fromkeys(map(percent, values[:1] + values[-1:])))


# --- facts ---------------------------------------------------------------------------------------


def _facts(a: Alignment) -> Iterator[str]:
    """A few words each: what was judged, by whose labels, how these were made, and when."""
    yield a.size
    if a.n_labels:
        yield counted(len(a.annotators), "annotator")
    yield counted(len(a.rubric.metrics), "metric")
    if a.n_labels:
        yield BLIND.get(a.blind, BLIND["unknown"])
    if a.run:
        yield a.run


def _models(a: Alignment) -> Iterator[str]:
    """`gpt-4: gpt-4-0613, openai`, of every judge that is no control judge."""
    real = a.real_judges
    yield from (f"{judge.name}: {what_judged(judge)}" for judge in real[:MOST_NAMED])
    if len(real) > MOST_NAMED:
        yield counted(len(real) - MOST_NAMED, "other")


def what_judged(judge: JudgeSummary) -> str:
    """Model and version of a judge as far as they are known: `tiny.gguf, llamacpp 2026.1`."""
    if not (model := backend_fact(judge.about, "model") or backend_fact(judge.about, "file")):
        made = judge.about.get("members") or judge.about.get("of") or ()
        what = str(judge.about.get("judge", _KINDS[judge.kind][0]))
        what = f"{what} of {listed(list(made))}" if made else what
        told = judge.about.get("about") or {}  # what the user says of recorded verdicts
        return ", ".join(filter(None, (what, told.get("model"), told.get("date"))))
    facts = [backend_fact(judge.about, key) for key in ("engine", "version")]
    engine = " ".join(str(fact) for fact in facts if fact)
    revision = backend_fact(judge.about, "revision")
    return ", ".join([str(model), *[f"revision {str(revision)[:12]}"] * bool(revision), engine])


# --- sentences ------------------------------------------------------------------------------------


def describe(a: Alignment) -> list[str]:
    """Say in a few plain sentences what was compared."""
    kinds = Counter(judge.kind for judge in a.judges)
    found = [counted(kinds[kind], *word) for kind, word in _KINDS.items() if kinds[kind]]
    said = [
        *a.compared,
        f"Rubric {a.rubric.name}, version {a.rubric.version}: "
        f"{counted(len(a.rubric.metrics), 'metric')}.",
        f"{listed(found)}.",
    ]
    if not a.n_labels:
        said.append(NO_LABELS)
    elif not kinds["control"]:
        said.append("There is no baseline, so no judge can be called good by this report.")
    return said


# --- settings ------------------------------------------------------------------------------------


def _settings(a: Alignment) -> Iterator[Card]:
    layout = Layout("settings", "Settings", ("Setting",), beside=("Value",))
    for judge in a.judges:
        if told := [(key, str(x)) for key, x in flat(judge.about) if x not in (None, [], ())]:
            yield Card(judge.name, grid=layout.listing(told))


def flat(about: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`{"a": {"b": 1}}` as `("a.b", 1)`, in the order given."""
    for key, value in about.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
