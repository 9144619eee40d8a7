"""The figures of an alignment that are neither heat maps nor intervals, and what those show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from judgebench.alignment import tables as tables
from judgebench.alignment.analysis import Alignment, items_of
from judgebench.alignment.judge_scores import LIMITS_OF_AGREEMENT, STATISTICS, label_numbers
from judgebench.alignment.notes import (
    BLIND,
    MOST_NAMED,
    collapsed,
    improbable_labels,
    reversed_labels,
    same_label_notes,
    size_in_words,
)
from judgebench.alignment.tables import USUAL, count_of, groups, naming, paper_tables, scores
from judgebench.records import Estimate, Row
from judgebench.results.blocks import (
    Asks,
    Block,
    Card,
    Drawing,
    Figure,
    IntervalKind,
    Intervals,
    LabelledInterval,
    ReportSection,
)
from judgebench.results.figures import (
    SMALL,
    draw_intervals,
    ink_on,
    new_panels,
    plotted,
    slug,
    whisker,
)
from judgebench.results.tables import Layout
from judgebench.rubric import Metric
from judgebench.studies.item_table import verdict_rows
from judgebench.studies.study import JudgeVerdicts, backend_fact
from judgebench.text import counted, listed, percent, wrapped


def score_figure(a: Alignment, statistic: str) -> Intervals:
    """One statistic with its intervals on each metric: judges, baselines and one annotator."""
    spec = scores(STATISTICS[statistic])
    kinds: dict[str, IntervalKind] = {judge.name: "judge" for judge in a.real_judges}
    kinds[""], name = "human", naming(a, spec)
    lines: dict[str, tuple[LabelledInterval, ...]] = {
        metric.title: () for metric in a.rubric.metrics
    }
    for row in spec.rows(a):
        estimate = row.estimate
        if row.judge:  # as in the table of a paper
            estimate = a.score(statistic, row.judge, row.metric, "worst")
        lane = LabelledInterval(name(row, "judge"), kinds.get(row.judge, "control"), estimate)
        lines[name(row, "metric")] += (lane,)
    heading = STATISTICS[statistic].heading
    title = f"{heading} with interval, failures counted as wrong"
    key = f"judges_and_controls_{statistic}"
    return Intervals(key, title, tuple(lines.items()), axis=heading)


def score_plot(a: Alignment, statistic: str, ax: Any, width: float | None) -> Any:
    """The axes of `score_figure`."""
    return plotted(partial(draw_intervals, score_figure(a, statistic)), ax, width)


def confusion_figures(a: Alignment) -> Iterator[Figure]:
    """The confusion matrices of each real judge."""
    real = [j for j in a.real_judges if a.results.select("confusion", judge=j.name)]
    for number, judge in enumerate(real, start=1):
        title = f"{judge.name} beside the reference label; framed where both agree"
        key = f"confusion_{number}_{slug(judge.name)[:40]}"
        yield Drawing(key, title, partial(draw_confusions, a, judge.name, title))


def reliability_figures(a: Alignment) -> Iterator[Figure]:
    """The reliability diagrams of each judge that gave probabilities."""
    for number, judge in enumerate(a.results.values("judge", "calibration"), start=1):
        title = f"Reliability of {judge}; on the dashed line it is as often right as it says"
        yield Drawing(f"reliability_{number}", title, partial(draw_reliability, a, judge, title))


def difference_figures(a: Alignment) -> Iterator[Figure]:
    """The Bland-Altman plots of each judge on metrics whose labels are numbers."""
    rows = a.results.select("limits_of_agreement", "lower_limit")
    judges = dict.fromkeys(row.judge for row in rows if row.estimate.n)
    for number, judge in enumerate(judges, start=1):
        title = f"Differences of {judge} from the reference label, with limits of agreement"
        yield Drawing(f"differences_{number}", title, partial(draw_differences, a, judge, title))


def draw_confusions(a: Alignment, judge: str, title: str) -> Any:
    """A matrix per metric, human label down, the judge's label across, missing last."""
    found = {m: a.results.select("confusion", judge=judge, metric=m.id) for m in a.rubric.metrics}
    metrics = [metric for metric, rows in found.items() if rows]  # those that it judges
    most = max(len(metric.labels) for metric in metrics)
    size = (2.0 + 0.86 * most, 1.5 + 0.5 * most)
    figure, panels = _panels(title, len(metrics), 2, size, (0.0, 0.5))
    for axes, metric in zip(panels, metrics, strict=True):
        counts = np.array([count_of(row.estimate) for row in found[metric]])
        _matrix(axes, counts.reshape(len(metric.labels), -1), metric)
    return figure


def _panels(
    title: str, n: int, most: int, size: tuple[float, float], beside: tuple[float, float]
) -> tuple[Any, Sequence[Any]]:
    figure, panels = new_panels(n, most, size, beside)
    figure.suptitle(wrapped(title, int(12 * figure.get_figwidth())), fontsize=10)
    return figure, panels


def _matrix(axes: Any, counts: Any, metric: Metric) -> None:
    from matplotlib.patches import Rectangle

    labels = metric.label_texts
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.15, aspect="auto")
    for (i, j), count in np.ndenumerate(counts):
        ink = ink_on(image.to_rgba(shares[i, j]))
        axes.text(j, i, f"{count:,}", ha="center", va="center", color=ink)
    axes.axvline(len(labels) - 0.5, color="white", linewidth=3)
    look: dict[str, Any] = {"fill": False, "edgecolor": "#D55E00", "linewidth": 1.6, "zorder": 3}
    for i in range(len(labels)):  # where judge and humans agree
        axes.add_patch(Rectangle((i - 0.47, i - 0.47), 0.94, 0.94, **look))
    columns = [*labels, "No label"]
    axes.set_xticks(range(len(columns)), [wrapped(c, 13) for c in columns], fontsize=SMALL)
    axes.set_yticks(range(len(labels)), [wrapped(c, 18) for c in labels], fontsize=SMALL)
    axes.set(xlabel="Label of the judge", ylabel="Reference label")
    axes.set_title(wrapped(metric.title, 40), loc="left", fontsize=9)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def draw_differences(a: Alignment, judge: str, title: str) -> Any:
    """A panel per metric: mean of judge and reference across, their difference up, the area of a
    point by its number of items, and lines at the mean difference and its limits."""
    of = partial(a.results.find, analysis="limits_of_agreement", judge=judge)
    metrics = [metric for metric in a.rubric.metrics if of("lower_limit", metric=metric.id).n]
    figure, panels = _panels(title, len(metrics), 3, (2.8, 2.7), (0.4, 0.8))
    for axes, metric in zip(panels, metrics, strict=True):
        numbers = dict(zip(metric.label_texts, label_numbers(metric), strict=True))
        every = a.results.select("confusion", judge=judge, metric=metric.id)
        rows = [row for row in every if row["label"] and row.estimate.value]
        counts = np.array([count_of(row.estimate) for row in rows])
        judged, human = (
            np.array([numbers[row[key]] for row in rows]) for key in ("label", "human_label")
        )
        area = 180 * counts / max(1, counts.max())
        axes.scatter(
            (judged + human) / 2, judged - human, s=area, color="#0072B2", alpha=0.6, linewidth=0
        )
        for key in LIMITS_OF_AGREEMENT:
            _limit_line(axes, of(key, metric=metric.id), "-" if key == "mean_difference" else "--")
        axes.set_title(wrapped(metric.title, 34), loc="left", fontsize=9)
    figure.supxlabel("Mean of judge and reference label", fontsize=9)
    figure.supylabel("Judge minus reference label", fontsize=9)
    return figure


def _limit_line(axes: Any, limit: Estimate, style: str) -> None:
    if limit.value is None:
        return
    axes.axhline(limit.value, color="#D55E00", linestyle=style, linewidth=1)
    if limit.low is not None:
        axes.axhspan(limit.low, limit.high, color="#D55E00", alpha=0.12, linewidth=0)


def draw_reliability(a: Alignment, judge: str, title: str) -> Any:
    """A panel per metric, confidence across and the share right up, with the diagonal."""
    select = partial(a.results.select, "calibration", judge=judge)
    metrics = [metric for metric in a.rubric.metrics if select(metric=metric.id)]
    figure, panels = _panels(title, len(metrics), 3, (2.5, 2.7), (0.4, 0.8))
    for axes, metric in zip(panels, metrics, strict=True):
        confidences, shares = (select(x, metric=metric.id) for x in ("confidence", "share_right"))
        _reliability_panel(axes, zip(confidences, shares, strict=True))
        about = {"judge": judge, "metric": metric.id, "who": "probabilities"}
        error = a.results.find("ece_debiased", "probability", **about)
        n = sum(row.estimate.n for row in shares)
        name = wrapped(metric.title, 34)
        axes.set_title(f"{name}\nECE {error:.2f}, n = {n:,}", loc="left", fontsize=9)
    figure.supxlabel("Mean probability of the likeliest label", fontsize=9)
    figure.supylabel("Share right, with exact interval", fontsize=9)
    return figure


def _reliability_panel(axes: Any, points: Iterable[tuple[Row, Row]]) -> None:
    axes.plot([0, 1], [0, 1], linestyle="--", color="#767676", linewidth=0.8)
    for confidence, share in points:
        if error := whisker(share.estimate):
            axes.errorbar(
                confidence.estimate.value, share.estimate.value, yerr=error,
                marker="o", markersize=4, color="#0072B2", elinewidth=1,
            )  # fmt: skip
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


NO_LABELS = "Without human labels nothing says how often the judges are right."


def alignment_part(a: Alignment) -> ReportSection:
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
    return ReportSection(
        "alignment",
        "judges against human labels",
        a.results,
        blocks if is_something else (),
        a.notes,
        tuple(_facts(a)) if is_something else (),
        paper=tuple(paper_tables(a)),
        urgent=(
            *collapsed(study).values(),
            *improbable_labels(study),
            *reversed_labels(study),
            *same_label_notes(study),
        ),
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
    yield _block(a, "Every statistic", *map(tables.scores, STATISTICS.values()), folded=True)
    drawn = [
        score_figure(a, key)
        for key in (a.columns or USUAL if a.real_judges else ())
        if any(map(STATISTICS[key].fits, a.rubric.metrics))
    ]
    yield Block("The statistics of the paper as figures", figures=tuple(drawn), folded=True)
    yield _block(
        a, "Limits of agreement", tables.LIMITS,
        figures=tuple(difference_figures(a)), folded=True,
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
        figures=tuple(confusion_figures(a)),
        on_screen=True,
        gist="which labels the judges give instead of the reference label",
    )  # fmt: skip
    yield _block(a, "Label use", tables.LABEL_USE, gist="how often each label is given")
    yield _block(a, "Probabilities", tables.PROBABILITIES, figures=tuple(reliability_figures(a)))
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
