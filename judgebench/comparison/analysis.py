"""Two studies in, one Comparison out: the answers, judges and labels that both have in common, and
every difference on them.

Rows of `difference` hold B minus A, rows of `value` what each of them reaches on these answers.
Which of the two is A changes nothing but the signs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.alignment.analysis import ALIGNED
from judgebench.alignment.judge_scores import truths
from judgebench.alignment.notes import few_questions
from judgebench.alignment.raters import (
    both_of,
    corrected,
    failure_policies,
    score_differences,
    share_tests,
)
from judgebench.alignment.report import flat
from judgebench.comparison.result import (
    CHANGES,
    PROBABILITY_STATISTICS,
    RIGHT,
    RUN_STATISTICS,
    SIDES,
    Comparison,
    Flips,
    PairSummary,
)
from judgebench.errors import Problem, SetupError, raise_any, some
from judgebench.records import Estimate, Results, Row, Status, Verdict
from judgebench.rubric import Metric, Rubric
from judgebench.runs.features import analyses
from judgebench.runs.open import opened_study
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.calibration import NO_ITEM, cross_entropy, one_hot, squared_distance
from judgebench.stats.intervals import ClusterCounts, Kind, clustered_estimate, clustered_mean
from judgebench.stats.paired_tests import (
    FLIPPED,
    LESS_SEVERE,
    MEAN_SHIFT,
    MORE_SEVERE,
    SIGNS_FLIPPED,
    mcnemar_clustered,
    moves_by_cluster,
)
from judgebench.studies.reference_labels import Mask
from judgebench.studies.study import JudgeVerdicts, Study, population_notes
from judgebench.text import counted, listed

NOT_MEASURED = "No answer has a human label: only what changed is known, not what is right."
Pair = tuple[JudgeVerdicts, JudgeVerdicts]
LeftOut = Mapping[str, Sequence[str]]  # ids of answers by the reason why they are left out
_MOST_NAMED = 8
_MOST_SETTINGS = 6
# Why an answer is not compared: its key in the results, and the words for it.
_LEFT_OUT = {
    "text_differs": "whose text or question is not the same in B",
    "only_in_a": "of A only",
    "only_in_b": "of B only",
    "not_asked_a": "without a verdict in A",
    "not_asked_b": "without a verdict in B",
}
# In a head: what a judge is, and not how fast it was asked.
_OF_JUDGES = ("backend", "prompt", "decoding", "rubric")
_TEXTS = {
    "prompt.hash": "the text of the prompt", "rubric.hash": "the text of the rubric",
    "backend.sha256": "the file of the model",
}  # fmt: skip
# Of one judge and statistic, p values are corrected over the metrics.
_FAMILY = ("judge", "who", "failures", "of")


def compare_studies(a: Study, b: Study, judges: tuple[str, str] = ("", "")) -> Comparison:
    """Return B minus A on the answers that both judges were asked about.

    Both are scored against the human labels of B, or of A where B has none. Raises SetupError where
    the two have no answer or metric in common, where labels of a metric differ, or where nothing
    says which judges are compared.
    """
    pairs, metrics = pairs_of(a, b, judges), common_metrics(a, b)
    common, left_out = matched(a, b)
    side = 1 if b.n_labels or not a.n_labels else 0
    labelled = (a, b)[side]
    rubric = labelled.rubric.only([metric.id for metric in metrics])
    base = replace(labelled.only(common[side]), rubric=rubric)
    changed_truths = _changed_truths(a, b, common, metrics)
    rows = [*_left_out_rows(left_out), *changed_truths]
    truth_note = _truth_note(changed_truths, SIDES[side], rubric) if base.n_labels else NOT_MEASURED
    notes = [*_compared_notes(a, b, len(common[0]), pairs), *_left_out_notes(left_out), truth_note]
    summaries, flipped = [], []
    parts: dict[bytes, tuple[Study, list[Results]]] = {}  # by the answers that both were asked
    for pair in pairs:
        is_asked, not_asked = _both_asked(base, pair)
        if is_asked.tobytes() not in parts:
            part = base.only(np.flatnonzero(is_asked))
            both = (_decided(side, part, judge) for side, judge in zip((a, b), pair, strict=True))
            parts[is_asked.tobytes()] = part, [*both]
        study, decided = parts[is_asked.tobytes()]
        by_metric = [Compared(study, pair, metric) for metric in rubric.metrics]
        pair_rows = [row for compared in by_metric for row in differences(compared)]
        rows += _left_out_rows(not_asked, pair[1].name)
        rows += [*pair_rows, *corrected(pair_rows, _FAMILY), *_run_rows(study, pair)]
        flipped += [row for compared in by_metric for row in flips(compared)]
        rows += _decision_rows(decided, pair)
        notes += _left_out_notes(not_asked, f"{pair[1].name}: " if len(pairs) > 1 else "")
        names = (pair[0].name, pair[1].name)
        summaries.append(PairSummary(*names, len(study.answers), _settings(pair)))
    gaps = tuple(_of_either(a.gaps, b.gaps))
    return Comparison(
        name=b.name if a.name == b.name else f"{a.name} and {b.name}",
        rubric=rubric,
        pairs=tuple(summaries),
        rows=Results(tuple(rows)),
        flips=Flips(Results(tuple(flipped)), gaps),
        compared=tuple(notes),
        notes=(
            *_metric_notes(a, b, metrics),
            *_unpaired_notes(a, b, pairs),
            *population_notes(labelled),
            *_of_either(a.notes, b.notes),
            *few_questions(base),
        ),
        runs=(_run(a), _run(b)),
        gaps=gaps,
    )


# --- answers --------------------------------------------------------------------------------------


def matched(a: Study, b: Study) -> tuple[tuple[IntArray, IntArray], LeftOut]:
    """Return the rows (answers,) of A and of B of the answers with the same id and content, in
    the order of B; and the ids of the others.

    Raises SetupError where there is none.
    """
    both: list[tuple[int, int]] = []
    left_out: dict[str, list[str]] = {reason: [] for reason in _LEFT_OUT}
    for row, item_id in enumerate(b.answers.item_ids()):
        row_in_a = a.answers.row(item_id)
        if row_in_a < 0:
            left_out["only_in_b"].append(item_id)
        elif a.answers.content_hash(row_in_a) != b.answers.content_hash(row):
            left_out["text_differs"].append(item_id)
        else:
            both.append((row_in_a, row))
    left_out["only_in_a"] = [i for i in a.answers.item_ids() if b.answers.row(i) < 0]
    if not both:
        why = "no id is in both"
        if left_out["text_differs"]:
            why = "of those with the same id, every text differs"
        message = f"have no answer in common: {why}"
        raise SetupError(Problem(message, f"{a.name} and {b.name}", field="item_id"))
    rows = np.array(both, dtype=np.int64)
    return (rows[:, 0], rows[:, 1]), left_out


def _both_asked(base: Study, pair: Pair) -> tuple[Mask, LeftOut]:
    """Return flags (items,) of the answers that both were asked about, and the ids of the others.

    Raises SetupError where there is none.
    """
    is_asked = [base.asked(judge) for judge in pair]
    both = is_asked[0] & is_asked[1]
    if not both.any():
        message = "no answer has a verdict of both judges"
        counts = ", ".join(
            f"{judge.name} {mask.sum():,}" for judge, mask in zip(pair, is_asked, strict=True)
        )
        raise SetupError(Problem(message, base.name, field="verdicts", found=counts))
    ids = np.array([*base.answers.item_ids()], dtype=object)
    not_asked = (ids[~mask].tolist() for mask in is_asked)
    return both, dict(zip(("not_asked_a", "not_asked_b"), not_asked, strict=True))


def _left_out_notes(left_out: LeftOut, judge: str = "") -> Iterator[str]:
    """A sentence for each reason why answers are not compared, with the first of them."""
    for reason, ids in left_out.items():
        if ids:
            count = counted(len(ids), "answer")
            yield f"{judge}Left out: {count} {_LEFT_OUT[reason]}: {some(ids, _MOST_NAMED)}."


def _left_out_rows(left_out: LeftOut, judge: str = "") -> Iterator[Row]:
    """Rows of the number of answers left out for each reason, and of every one of them."""
    for reason, ids in left_out.items():
        if judge and not any(left_out.values()):
            continue
        yield Row("left_out", reason, Estimate(len(ids)), judge)
        for item_id in ids:
            no_number = Estimate(None, reason="")
            yield Row("left_out_item", reason, no_number, judge, "", {"item_id": item_id})


# --- judges ---------------------------------------------------------------------------------------


def pairs_of(a: Study, b: Study, named: tuple[str, str] = ("", "")) -> list[Pair]:
    """Return the judges to compare: those named, else every judge that is in both, baselines left
    out, else the only judge of each. Where one is named, the other is that of the same name, or
    the only judge.

    Raises SetupError where a named judge is not there, or where nothing says who is compared.
    """
    first, second = ({j.name: j for j in study.judges if j.kind != "control"} for study in (a, b))
    if (common := [name for name in second if name in first]) and not any(named):
        return [(first[name], second[name]) for name in common]
    pair, problems = [], []
    for side, study, wanted, other in zip(SIDES, (a, b), named, reversed(named), strict=True):
        judges = {judge.name: judge for judge in study.judges}
        real = [name for name, judge in judges.items() if judge.kind != "control"]
        name = wanted or (other if other in judges else real[0] if len(real) == 1 else "")
        if name in judges:
            pair.append(judges[name])
        else:
            message = "is no judge of this run" if name else "name the one to compare, as RUN:JUDGE"
            field = f"judge of {side}"
            problems.append(Problem(message, study.name, None, field, name, ", ".join(judges)))
    raise_any(problems)
    return [(pair[0], pair[1])]


def _unpaired_notes(a: Study, b: Study, pairs: Sequence[Pair]) -> Iterator[str]:
    """Sentences on judges that are in one run only."""
    for side, study, judges in zip(SIDES, (a, b), zip(*pairs, strict=True), strict=True):
        names = {judge.name for judge in judges}
        if left := [j.name for j in study.judges if j.kind != "control" and j.name not in names]:
            yield f"Not compared, of {side}: {listed(left)}."


def _compared_notes(a: Study, b: Study, n: int, pairs: Sequence[Pair]) -> Iterator[str]:
    """Sentences on what A and B are, and on how many answers."""
    for side, study, judges in zip(SIDES, (a, b), zip(*pairs, strict=True), strict=True):
        yield f"{side}: {', '.join(judge.name for judge in judges)} in {_run(study)}."
    changes = {pair[1].name: some(_setting_changes(pair), _MOST_SETTINGS) for pair in pairs}
    if any(changes.values()):
        by_judge = (f"{name}: {words}" for name, words in changes.items() if words)
        listing = "; ".join(by_judge if len(pairs) > 1 else changes.values())
        yield f"Settings that differ: {listing}."
    yield f"{counted(n, 'answer')} with the same question and text in both; B − A on these answers."


def _run(study: Study) -> str:
    return ", ".join(filter(None, (study.name, study.run)))


def _settings(pair: Pair) -> tuple[tuple[str, str, str], ...]:
    """The settings that are not the same in both judges."""
    a, b = ({key: str(x) for key, x in flat(judge.about or {})} for judge in pair)
    values = ((key, a.get(key, ""), b.get(key, "")) for key in dict.fromkeys((*a, *b)))
    return tuple(setting for setting in values if setting[1] != setting[2])


def _setting_changes(pair: Pair) -> Iterator[str]:
    """`model gpt-4 → gpt-5` for each setting that may change what a judge says, texts by name
    alone."""
    for key, *values in _settings(pair):
        root, _, last = key.partition(".")
        if key in _TEXTS:
            yield _TEXTS[key]
        elif root in _OF_JUDGES:
            a, b = ("none" if value in ("", "None") else value for value in values)
            yield f"{root if last in ('', 'name') else last} {a} → {b}"


def _of_either(a: Sequence[str], b: Sequence[str]) -> Iterator[str]:
    """The sentences on A and on B, and on which of them where it is only one."""
    for note in dict.fromkeys((*a, *b)):
        only = "" if note in a and note in b else "In A: " if note in a else "In B: "
        yield f"{only}{note}"


# --- metrics and human labels ---------------------------------------------------------------------


def common_metrics(a: Study, b: Study) -> list[Metric]:
    """Return the metrics of both, as B has them.

    Raises SetupError where there is none, and for each whose labels differ.
    """
    in_a = {metric.id: metric for metric in a.rubric.metrics}
    both = [metric for metric in b.rubric.metrics if metric.id in in_a]
    name = f"{a.name} and {b.name}"
    if not both:
        ids = f"{', '.join(in_a)} in A and {', '.join(m.id for m in b.rubric.metrics)} in B"
        raise SetupError(Problem("have no metric in common", name, field="rubric", found=ids))
    message = "its labels are not the same in both runs, so verdicts cannot be compared"
    labels = {m.id: (_labels(in_a[m.id]), _labels(m)) for m in both}
    raise_any([
        Problem(message, name, field=metric, found=f"{first} in A and {second} in B")
        for metric, (first, second) in labels.items()
        if first != second
    ])  # fmt: skip
    return both


def _labels(metric: Metric) -> str:
    """Everything about a metric that its verdicts are counted by."""
    texts = [*metric.label_texts]
    if metric.kind == "ordinal":
        texts = [f"{text} ({n})" for text, n in zip(texts, metric.severities, strict=True)]
    others = sorted(set(metric.options) - set(metric.label_texts))
    kind = f"{metric.kind}{', severe: none' if metric.severe else ''}"
    return f"{kind}: {', '.join([*texts, *others])}"


def _metric_notes(a: Study, b: Study, metrics: Sequence[Metric]) -> Iterator[str]:
    """Sentences on metrics that are in one run only, or worded differently."""
    in_b = {metric.id: metric for metric in metrics}
    for side, study in zip(SIDES, (a, b), strict=True):
        if alone := [m.title for m in study.rubric.metrics if m.id not in in_b]:
            yield f"Metrics of {side} only, not compared: {', '.join(alone)}."
    in_both = (metric for metric in a.rubric.metrics if metric.id in in_b)
    if other := [m.title for m in in_both if m.prompt_line() != in_b[m.id].prompt_line()]:
        yield f"The rubric words these metrics differently in A and B: {', '.join(other)}."


def _changed_truths(
    a: Study, b: Study, rows: tuple[IntArray, IntArray], metrics: Iterable[Metric]
) -> list[Row]:
    """By metric the number of answers whose reference label is not the same."""
    differ = {m.id: a.humans[m.id].truth[rows[0]] != b.humans[m.id].truth[rows[1]] for m in metrics}
    return [
        Row("truth", "truth_differs", Estimate(int(mask.sum())), "", metric)
        for metric, mask in differ.items()
    ]


def _truth_note(changed: Sequence[Row], side: str, rubric: Rubric) -> str:
    """Against whose labels both are scored, and whether the other run's are the same."""
    titles = {metric.id: metric.title for metric in rubric.metrics}
    differ = [f"{titles[r.metric]} {r.estimate.value:,}" for r in changed if r.estimate.value]
    if not differ:
        return "Both are scored against the same reference labels."
    return (
        f"Both are scored against the reference labels of {side}, which are not the same in the "
        f"other run: {', '.join(differ)}."
    )


# --- differences ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """Two judges on one metric of a study of the answers that both were asked about."""

    study: Study
    pair: Pair
    metric: Metric

    @property
    def labels(self) -> tuple[IntArray, IntArray]:
        """The labels of both (items,), -1 where there is none."""
        a, b = (self.study.judged(judge, self.metric) for judge in self.pair)
        return a, b

    def row(self, analysis: str, statistic: str, estimate: Estimate, **keys: str) -> Row:
        """One number."""
        return _row(self.pair, self.metric.id, analysis, statistic, estimate, **keys)

    def rows(self, statistic: str, sides: Sides, failures: str = "left_out") -> Iterator[Row]:
        """The difference, and what each of both reaches."""
        return _rows_of_both(self.pair, self.metric.id, statistic, sides, failures)


Sides = tuple[Estimate, Sequence[Estimate]]  # the difference, and the value of each of both


def _row(
    pair: Pair, metric: str, analysis: str, statistic: str, estimate: Estimate, **keys: str
) -> Row:
    keys = {"who": pair[0].name, **keys}
    return Row(analysis, statistic, estimate, pair[1].name, metric, keys)


def _rows_of_both(
    pair: Pair, metric: str, statistic: str, sides: Sides, failures: str
) -> Iterator[Row]:
    yield _row(pair, metric, "difference", statistic, sides[0], failures=failures)
    for side, value in zip(SIDES, sides[1], strict=True):
        yield _row(pair, metric, "value", statistic, value, failures=failures, run=side)


def differences(compared: Compared) -> Iterator[Row]:
    """Every statistic on one metric."""
    yield from _scores(compared)
    yield from _probabilities(compared)
    # The share of answers without a usable label: unread, refused, failed or abstained.
    is_missing = [(labels < 0).astype(np.float64) for labels in compared.labels]
    yield from compared.rows("no_label", _shares(compared.study, is_missing))
    p = mcnemar_clustered(is_missing[1] - is_missing[0], compared.study.clusters)
    if p is not None:
        test = Estimate(p, method=SIGNS_FLIPPED, n=len(is_missing[0]))
        yield compared.row("test", "permutation_p", test, failures="left_out", of="no_label")
    yield from _changes(compared)


def _scores(compared: Compared) -> Iterator[Row]:
    """The statistics of an alignment; three ways where either judge failed on some items."""
    study, metric = compared.study, compared.metric
    for policy, both, missing in failure_policies(both_of(study, compared.pair, metric), metric):
        for declared, difference, values in score_differences(study, metric, both, missing):
            yield from compared.rows(declared.key, (difference, values), policy)
        for key, p in share_tests(metric, both):
            yield compared.row("test", "permutation_p", p, failures=policy, of=key)


def _probabilities(compared: Compared) -> Iterator[Row]:
    """Against one reference label per item, on the items on which both gave probabilities; nothing
    where neither did."""
    study, metric = compared.study, compared.metric
    a, b = (study.probabilities(judge, metric) for judge in compared.pair)
    if a is None or b is None:
        lacking = SIDES[0] if a is None else SIDES[1]
        undefined = Estimate(None, reason=f"{lacking} gave no label probabilities")
        for key in PROBABILITY_STATISTICS if a is not b else ():
            yield from compared.rows(key, (undefined, (undefined, undefined)))
        return
    rows, truth, clusters = truths(study, metric)
    q = one_hot(truth, len(metric.labels))
    both = np.where(np.isnan(a + b).any(axis=1), np.nan, 1.0)[rows]
    for key, score in (("brier", squared_distance), ("log_loss", cross_entropy)):
        scores = [both * score(p[rows], q) for p in (a, b)]
        yield from compared.rows(key, _means(scores, clusters.codes, NO_ITEM, study.level))


def _means(
    x: Sequence[FloatArray], clusters: IntArray, undefined: str, level: float,
    kinds: tuple[Kind, Kind] = ("mean", "mean"),
) -> Sides:  # fmt: skip
    """The mean difference of two measures (items,), and the mean of each."""
    shared = (clusters, undefined, level)
    values = [clustered_mean(side, *shared, kind=kinds[1]) for side in x]
    return clustered_mean(x[1] - x[0], *shared, kind=kinds[0]), values


def _shares(study: Study, x: Sequence[FloatArray]) -> Sides:
    """The difference of two shares (items,) of 0 and 1, and both."""
    codes = study.clusters.codes
    return _means(x, codes, "there is no answer", study.level, ("difference", "share"))


def _changes(compared: Compared) -> Iterator[Row]:
    """Rows of labels that changed, and which way; of answers to which both gave one."""
    study, metric = compared.study, compared.metric
    a, b = compared.labels
    both = (a >= 0) & (b >= 0)
    a, b, clusters = a[both], b[both], study.clusters[both]
    severity = np.zeros(len(metric.labels), dtype=np.int64)
    if metric.kind == "ordinal":
        severity = np.array(metric.severities)
    moves = moves_by_cluster((a != b).astype(np.int64), severity[b] - severity[a], clusters)
    counts, n = ClusterCounts(moves), {"n": len(a), "n_missing": int((~both).sum())}
    formulas = (FLIPPED, MORE_SEVERE, LESS_SEVERE, MEAN_SHIFT)
    for declared, formula in zip(CHANGES.values(), formulas, strict=True):
        if declared.fits(metric):
            estimate = clustered_estimate(counts, formula, study.level, **n)
            yield compared.row("change", declared.key, estimate)


def flips(compared: Compared) -> list[Row]:
    """The items whose label differs, also where one of both gave none: `label_a`, `label_b`, the
    `truth` and whose label is `right`. The value is the severity by B minus that by A.

    First those that A has right and B has not, then those with the largest shift.
    """
    study, metric = compared.study, compared.metric
    labels_a, labels_b = compared.labels
    truths = study.humans[metric.id].truth
    ids, texts = [*study.answers.item_ids()], [*metric.label_texts, ""]  # -1 is no label
    rows = []
    for place in np.flatnonzero(labels_a != labels_b).tolist():
        a, b, truth = (int(labels[place]) for labels in (labels_a, labels_b, truths))
        right = RIGHT.index("unknown")
        if truth >= 0:
            right = RIGHT.index("A" if a == truth else "B" if b == truth else "neither")
        shift = Estimate(None, reason="")
        if metric.kind == "ordinal" and min(a, b) >= 0:
            shift = Estimate(float(metric.severities[b] - metric.severities[a]), n=1)
        row = compared.row(
            "flip", "severity_shift", shift, item_id=ids[place], label_a=texts[a],
            label_b=texts[b], truth=texts[truth], right=RIGHT[right],
        )  # fmt: skip
        far = np.inf if shift.value is None else abs(shift.value)
        rows.append(((right, -far), row))
    return [row for _, row in sorted(rows, key=lambda ranked: ranked[0])]


# --- failures, cost and time ----------------------------------------------------------------------


def _run_rows(study: Study, pair: Pair) -> Iterator[Row]:
    """Statuses, cost, time and tokens of the verdicts of both; those that neither has are left
    out."""
    verdicts = [[judge.verdicts[i] for i in study.answers.item_ids()] for judge in pair]
    for key in RUN_STATISTICS:
        x = [np.array([_fact(key, verdict) for verdict in side]) for side in verdicts]
        if not np.nansum(np.abs(x)):  # nobody failed so, or nothing is known
            continue
        if key in set(Status):
            difference, values = _shares(study, x)
        else:
            codes = study.clusters.codes
            difference, values = _means(x, codes, "no verdict says it", study.level)
        if unknown := [side for side, y in zip(SIDES, x, strict=True) if np.isnan(y).all()]:
            reason = f"unknown for {unknown[0]}: no model was called, or it does not report it"
            difference = replace(difference, reason=reason)
        yield from _rows_of_both(pair, "", key, (difference, values), "")


def _fact(key: str, verdict: Verdict) -> float:
    """One number of a verdict, NaN where it is unknown."""
    if key == "cost":
        return np.nan if verdict.cost is None else verdict.cost
    if key == "latency":  # of a verdict that was not made here it is 0
        return verdict.latency or np.nan
    if key == "tokens":
        prompt, reply = verdict.usage.prompt_tokens, verdict.usage.completion_tokens
        return np.nan if prompt is None or reply is None else float(prompt + reply)
    return float(verdict.status == key)


# --- decisions ------------------------------------------------------------------------------------


def _decision_rows(decided: Sequence[Results], pair: Pair) -> Iterator[Row]:
    """The outcomes and conditions on two judges, of what is `decided` on either side, of the
    metrics that are decided on both."""
    sides = [r.select(judge=judge.name) for r, judge in zip(decided, pair, strict=True)]
    metrics = [{row.metric for row in rows if row.analysis == "decision"} for rows in sides]
    for side, rows in zip(SIDES, sides, strict=True):
        for row in rows:
            if row.metric not in metrics[0] & metrics[1]:
                continue
            if row.analysis == "decision":
                reason = Estimate(None, reason=row.estimate.reason)
                keys = {"run": side, "outcome": row["outcome"]}
                yield _row(pair, row.metric, "decision", "", reason, **keys)
            elif row.analysis == "condition" and not row["who"]:
                about = {**row.keys, "who": pair[0].name, "run": side}
                yield replace(row, judge=pair[1].name, keys=about)


def _decided(study: Study, base: Study, judge: JudgeVerdicts) -> Results:
    """The rows of the decisions on the judges of `study`, and on `judge` if it is a baseline, on
    the answers of `base`, whose human labels and baselines serve for both; none where nothing
    decides. Each side keeps its own stress test."""
    controls = [j for j in base.judges if j.kind == "control" and j.name != judge.name]
    judges = [j for j in study.judges if j.kind != "control" or j.name == judge.name]
    beside = {key: value for key, value in study.beside.items() if key != ALIGNED}
    if len(base.rubric.metrics) < len(study.rubric.metrics):
        beside.pop("stress", None)  # its demands are on metrics that are not compared
    side = replace(base, judges=(*judges, *controls), beside=beside)
    decisions = analyses(side, "decide", "stress").get("decide")
    return decisions.results if decisions else Results()


def compare(
    a: Study | str | Path,
    b: Study | str | Path,
    *,
    judges: tuple[str, str] = ("", ""),
    rule: Any | None = None,
) -> Comparison:
    """Compare A with B on the same answers: B minus A with intervals, the decisions that changed,
    the verdicts that flipped.

    Both are studies or run folders, also the same one twice. `judges` names one of each; without,
    judges of the same name are compared, or the only judge of each. Both are scored against the
    human labels of B. Raises SetupError where there is nothing to
    compare.

    >>> import judgebench as jb
    >>> found = jb.compare("runs/small", "runs/small")
    >>> found.difference("accuracy", "my-judge", "empathy").value
    0.0
    >>> len(found.flips.to_frame())
    0
    """
    first = opened_study(a)
    same = isinstance(b, str | Path) and a == b
    second = first if same else opened_study(b)
    if first.name == second.name and first is not second:  # the folders tell them apart
        first, second = (
            study if isinstance(given, Study) else replace(study, run=_in_folder(study, given))
            for study, given in ((first, a), (second, b))
        )
    if rule is not None:
        first, second = (replace(x, beside={**x.beside, "decide": rule}) for x in (first, second))
    return compare_studies(first, second, judges)


def _in_folder(study: Study, folder: str | Path) -> str:
    return ", ".join(filter(None, (study.run, str(folder))))
