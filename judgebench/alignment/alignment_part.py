"""The presentation of an alignment: sentences, tables, figures and the list of disagreements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from judgebench.alignment import alignment_figures as figures
from judgebench.alignment import alignment_tables as tables
from judgebench.alignment.alignment import Alignment, Disagreement, JudgeSummary
from judgebench.alignment.caveats import MOST_NAMED
from judgebench.records import TRAINED_ON, Estimate, Status, Verdict
from judgebench.results.answer_texts import reasons_of, texts_of
from judgebench.results.layout import Layout
from judgebench.results.part import Block, Card, Drawing, Part, Standing
from judgebench.results.tables import DASH, Cell, Look, Table
from judgebench.rubric import Metric
from judgebench.studies.study import JudgeKind, backend_fact
from judgebench.words import counted, listed

_MOST_UNFOLDED = 2  # judges whose confusion matrices are shown at once
NO_LABELS = "Without human labels nothing says how often the judges are right."
_KINDS: Mapping[JudgeKind, tuple[str, str]] = {
    "judge": ("judge", "judges"),
    "jury": ("jury", "juries"),
    "calibration": ("calibrated judge", "calibrated judges"),
    "control": ("control judge", "control judges"),
}
# How a judge's label stands to the human truth: sign, words to filter by, look of the cell.
_DIRECTIONS: Mapping[str, tuple[str, str, Look]] = {
    "severe": ("▲", "judge more severe", "bad"),
    "mild": ("▼", "judge less severe", "bad"),
    "other": ("≠", "different, no order", "bad"),
    "missing": ("✕", "no label from the judge", "unclear"),
    "flipped": ("⇄", "judge says otherwise in the other order", "unclear"),
}


def alignment_part(a: Alignment) -> Part:
    """The part of an alignment; without human labels only what the judges did and used."""
    measured = _blocks(a) if a.n_labels else ()
    said = () if a.n_labels else (tables.label_use_table(a),)
    compared = (*describe(a), *_verdicts_read(a), *(() if a.n_labels else (NO_LABELS,)))
    blocks = (
        Block("What was compared", compared, said, on_screen=True),
        *measured,
        Block("Judges", tables=(tables.judges_table(a),)),
        Block("Settings of the judges", cards=tuple(_settings(a)), folded=True),
    )
    there = a.judges or a.n_labels
    return Part(
        "alignment",
        "judges against human labels",
        a.results,
        blocks if there else (),
        a.notes,
        tuple(_facts(a)) if there else (),
        paper=tuple(tables.paper_tables(a)) if a.n_labels and a.real_judges else (),
        urgent=a.collapsed,
        files=a.files if a.real_judges else {},
        accuracies=tuple(_accuracies(a)) if a.n_labels else (),
    )


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
                a.ceiling("accuracy", metric.id), people, best, name, 0.0, "", "",
            )  # fmt: skip


def _blocks(a: Alignment) -> Iterator[Block]:
    statistics = tables.present(a)
    yield Block("Summary", tables=(tables.standing_table(a),))
    yield Block(tables=(tables.accuracy_table(a),), on_screen=True)
    if any(declared.key == "severe_recall" for declared in statistics):
        yield Block("Severe labels", tables=(tables.severe_table(a),), on_screen=True)
    # With a value for any judge: not every rubric has severities.
    drawn = [
        figures.score_figures(a, d)
        for d in statistics
        if "drawn" in d.shown
        and any(row.estimate.value is not None for row in a.results.select("score", d.key))
    ]
    yield Block("Alignment with the human labels", figures=tuple(lanes for _, lanes in drawn))
    yield Block("Every judge and control", figures=tuple(heat for heat, _ in drawn), folded=True)
    every = tuple(tables.score_table(a, declared) for declared in statistics)
    yield Block("Every statistic", tables=every, folded=True)
    failed = {declared.key: tables.failures_table(a, declared) for declared in statistics}
    if accuracy := failed.pop("accuracy", None):
        yield Block("Missing verdicts", tables=(accuracy,), on_screen=True)
    others = tuple(failed.values())
    yield Block("Missing verdicts, counted three ways", tables=others, folded=True)
    yield Block("Unanimous and split items", tables=tuple(tables.unanimity_tables(a)), folded=True)
    yield from _judges_and_labels(a)
    yield Block("The annotators", tables=(tables.agreement_table(a),), on_screen=True)
    yield Block("Pairs of annotators", tables=tuple(tables.pairs_tables(a)), folded=True)
    ceilings = tuple(tables.ceiling_table(a, d) for d in statistics if "ceiling" in d.shown)
    yield Block("Human ceilings", tables=ceilings, folded=True)
    yield Block("Judges against each other", tables=(tables.ranking_table(a),))
    compared = (tables.comparison_table(a),)
    yield Block("Pairs of judges on the same items", tables=compared, folded=True)
    yield _disagreement_block(a)


def _judges_and_labels(a: Alignment) -> Iterator[Block]:
    if a.real_judges:
        drawn = tuple(figures.confusion_figures(a))
        few = len(a.real_judges) <= _MOST_UNFOLDED
        shown, rest = (drawn, ()) if few else (drawn[:1], drawn[1:])
        yield Block("Confusion matrices", figures=shown)
        yield Block("Confusion matrices of the other judges", figures=rest, folded=True)
        counts = tuple(tables.confusion_tables(a))
        yield Block("Confusion matrices in numbers", tables=counts, folded=True)
    yield Block("Label use", tables=(tables.label_use_table(a),), folded=True)
    title = "Labels of the human truth"
    said = (
        "Least severe label first. On a metric where nearly all items share one label, a "
        "judge that always gives it looks accurate."
    )
    bars = Drawing("label_distribution", title, partial(figures.draw_distribution, a))
    yield Block(title, (said,), (tables.distribution_table(a),), (bars,))
    yield Block("Labels of each annotator", tables=(tables.annotator_labels_table(a),), folded=True)
    if rates := tuple(tables.rate_tables(a)):
        said = (
            "How often each label would be given if humans labelled every answer that the judge "
            "labelled."
        )
        yield Block("True rates of the labels", (said,), rates, tuple(figures.rate_figures(a)))
    if probabilities := tuple(tables.probability_tables(a)):
        drawn = tuple(figures.reliability_figures(a))
        said = "Of the judges that gave a probability for every label."
        yield Block("Probabilities", (said,), probabilities[:1], drawn)
        yield Block("More on probabilities", tables=probabilities[1:], folded=True)


# --- facts ---------------------------------------------------------------------------------------


def _facts(a: Alignment) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The facts of a run: what was judged, by whose labels and by which judges, and when."""
    yield "Answers", (a.size,)
    if a.n_labels:
        yield "Human labels", a.compared[:1]
    metrics = counted(len(a.rubric.metrics), "metric")
    yield "Rubric", (f"{a.rubric.name}, version {a.rubric.version}: {metrics}",)
    real = tuple(f"{judge.name}: {_what_judged(judge)}" for judge in a.real_judges)
    if len(real) > MOST_NAMED:
        real = (*real[:MOST_NAMED], f"{len(real) - MOST_NAMED:,} others")
    if a.controls or a.n_labels:
        real = (*real, f"{counted(len(a.controls), *_KINDS['control'])} beside them")
    if real:
        yield "Judges", real
    if a.run:
        yield "Run", (a.run,)


def _what_judged(judge: JudgeSummary) -> str:
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
    if a.n_labels:
        listed_ones = counted(len(a.disagreements), "answer")
        said.append(f"{listed_ones} listed on which a judge differs from the human truth.")
        if not kinds["control"]:
            said.append("There is no control judge, so no judge can be called good by this report.")
    return said


def _verdicts_read(a: Alignment) -> Iterator[str]:
    """`judge: 96 of 100 verdicts read; 3 unparsed, 1 refused`, of real judges, and of controls that
    failed on something."""
    for judge in a.judges:
        counts = {status: judge.statuses.get(status, 0) for status in Status}
        read = counts.pop(Status.OK)
        failed = ", ".join(f"{count:,} {status.value}" for status, count in counts.items() if count)
        if judge.kind != "control" or (a.n_labels and read < judge.n):
            said = f"{judge.name}: {read:,} of {judge.n:,} verdicts read"
            said += f"; {failed}" if failed else ""
            own = judge.statuses.get(TRAINED_ON)
            yield f"{said}; {own:,} answers skipped: trained on them" if own else said


# --- cards ----------------------------------------------------------------------------------------


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


def _disagreement_block(a: Alignment) -> Block:
    how = (
        "Items on which at least one judge differs from the human truth, the farthest first "
        "(severity steps, summed over judges and metrics; 1 for a nominal label that differs and "
        "for one that is missing). ▲ more severe than the human truth, ▼ less severe, "
        "≠ different, ✕ no label."
    )
    cards = tuple(_card(a, found) for found in a.disagreements)
    if any(metric.of == "pair" for metric in a.rubric.metrics):
        how += " ⇄ the judge said otherwise when the two responses stood in the other order."
    return Block("Disagreements", (how,) if cards else (), cards=cards)


def _card(a: Alignment, d: Disagreement) -> Card:
    about = [f"answer by {d.answer.system}"] if d.answer.system and not d.answer.responses else []
    metrics = [metric for metric in a.rubric.metrics if metric.of == d.answer.kind]
    ids = {metric.id for metric in metrics}
    judges = [j.name for j in a.real_judges if not ids.isdisjoint(j.about.get("metrics", ids))]
    people = sorted({who for labels in d.human.values() for who in labels})
    directions = {(j, m.id): _directions(d, j, m) for j in judges for m in metrics}
    grid = Table(
        "labels", "Labels", ("Metric", "Human truth", *people, *judges),
        tuple(
            (
                Cell(metric.title),
                Cell(d.truth.get(metric.id, DASH), best=True),
                *(Cell(d.human.get(metric.id, {}).get(who, DASH)) for who in people),
                *(_verdict_cell(d, j, metric, directions[j, metric.id]) for j in judges),
            )
            for metric in metrics
        ),
    )  # fmt: skip
    return Card(
        d.answer.item_id,
        (*about, f"distance {d.distance:g}"),
        texts_of(d.answer, [_preferred(d, metrics, place) for place in (0, 1)]),
        tuple(why for j, v in d.verdicts.items() for why in reasons_of(j, v, d.answer, a.rubric)),
        grid,
        tuple(
            {"Judge": judge, "Metric": a.title(metric), "Direction": words}
            for (judge, metric), found in directions.items()
            for _, words, _ in found
        ),
    )


def _directions(d: Disagreement, judge: str, metric: Metric) -> list[tuple[str, str, Look]]:
    """The directions in which a judge's label differs from the truth, and to what the judge said of
    the same pair in the other order."""
    flipped = "flipped" * _flipped(d.verdicts.get(judge), metric)
    return [_DIRECTIONS[found] for found in (_direction(d, judge, metric), flipped) if found]


def _direction(d: Disagreement, judge: str, metric: Metric) -> str:
    """The direction in which a judge's label differs from the truth: empty, severe, mild, other or
    missing."""
    truth, verdict = d.truth.get(metric.id), d.verdicts.get(judge)
    if truth is None or verdict is None:
        return ""
    label, order = verdict.labels.get(metric.id), metric.label_texts
    if label is None or label in metric.abstain:
        return "missing"
    if label == truth:
        return ""
    if metric.kind != "ordinal" or label not in order or truth not in order:
        return "other"
    return "severe" if order.index(label) > order.index(truth) else "mild"


def _verdict_cell(
    d: Disagreement, judge: str, metric: Metric, differs: Sequence[tuple[str, str, Look]]
) -> Cell:
    if (verdict := d.verdicts.get(judge)) is None:
        return Cell("not judged", look="unclear")
    ended = "no label" if verdict.status is Status.OK else verdict.status.value
    text = verdict.labels.get(metric.id, ended)
    if not differs:
        return Cell(text)
    signs, words, looks = zip(*differs, strict=True)
    return Cell(" ".join((*signs, text)), remark="; ".join(words), look=looks[0])


def _flipped(verdict: Verdict | None, metric: Metric) -> bool:
    """True where a judge said otherwise of a pair when the two stood in the other order."""
    said = {metric.of_row(one) for one in (verdict.shown if verdict else ())} - {""}
    return metric.of == "pair" and len(said) > 1


def _preferred(d: Disagreement, metrics: Sequence[Metric], place: int) -> str:
    """Name those who prefer that response of a pair: `preferred by ann and judge m`."""
    found = []
    for metric in (m for m in metrics if m.preference):
        label = metric.label_texts[place]
        who = [name for name, said in d.human.get(metric.id, {}).items() if said == label]
        who += [f"judge {j}" for j, v in d.verdicts.items() if v.labels.get(metric.id) == label]
        found += [f"preferred by {listed(who)}"] * bool(who)
    return "; ".join(found)
