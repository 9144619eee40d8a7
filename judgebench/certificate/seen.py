"""Answers with the verdicts of one judge and the labels of people, as a certificate counts them:
the rows of a study, the features whose shares say what kind of answers they are, and the shares
that are watched."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

from judgebench.certificate import levels
from judgebench.certificate.record import CertifiedMetric, Noise, Population, Watched
from judgebench.errors import Problem, SetupError
from judgebench.models.encoder import open_encoder
from judgebench.records import (
    CHANCES,
    WEIGHTS,
    Answer,
    Status,
    Verdict,
    canonical_json,
    columns_named,
)
from judgebench.rubric import Metric, Rubric
from judgebench.stats.arrays import FloatArray
from judgebench.stats.betting import divergence
from judgebench.stats.intervals import clopper_pearson
from judgebench.studies.answers import likeness
from judgebench.studies.study import JudgeVerdicts, Study

NO_LABEL = "no label"
SYSTEM, LENGTH, ALIKE = "system", "length", "alike"
_HOW_ALIKE = ("least alike", "less alike", "in between", "more alike", "most alike")
_DIGITS = 4  # of vectors and cosines, which a certificate holds as texts
_PARTS = 5  # lengths are told apart by fifths


@dataclass(frozen=True)
class Seen:
    """One answer with the label of each metric that the judge gave, empty where it gave none, and
    those of annotators. `hash` is empty and `length` None where the text is not known. `chance` is
    how likely the answer was to be labelled by people, but for a factor."""

    item: str
    group: str
    system: str
    hash: str
    length: int | None
    verdicts: Mapping[str, str]
    severe: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # probabilities
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    chance: float = 1.0
    model: str = ""
    text: str = ""
    failed: bool = False  # no reply came
    alike: float | None = None  # the cosine to the centre of the certificate's texts


def judge_of(study: Study, name: str) -> JudgeVerdicts:
    """The judge of that name; the only one, where it is empty or no other. Raises SetupError."""
    judges = {judge.name: judge for judge in study.real_judges}
    if name in judges:
        return judges[name]
    if name or len(judges) != 1:
        message = "is not a judge of the study" if name else "name one of the judges"
        raise SetupError(Problem(message, "", None, "judge", name, ", ".join(judges)))
    return next(iter(judges.values()))


def seen_of(study: Study, judge: JudgeVerdicts) -> list[Seen]:
    """Every answer of the study that the judge was asked about, in order."""
    rows = np.flatnonzero(study.asked(judge)).tolist()
    labels = {row: _labels(study, row) for row in rows}
    groups = study.clusters.codes
    return [
        _seen(study.answers[row], judge, study.rubric, labels[row], str(groups[row]))
        for row in rows
        if judge.verdicts.get(study.answers[row].item_id, _SKIPPED).status != Status.SKIPPED
    ]


def hash_of_text(answer: Answer) -> str:
    """A hash of question and text, but for white space and case; empty where they say too little to
    tell."""
    return f"{found:016x}" if (found := likeness(answer)) else ""


def hash_of(parts: Sequence[str]) -> int:
    """A number of 63 bits."""
    digest = hashlib.blake2b(canonical_json([*parts]).encode("utf-8", "replace"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") >> 1


_SKIPPED = Verdict("", "", "", "", Status.FAILED)


def _seen(
    answer: Answer, judge: JudgeVerdicts, rubric: Rubric,
    labels: Mapping[str, Mapping[str, str]], group: str,
) -> Seen:  # fmt: skip
    verdict = judge.verdicts.get(answer.item_id, _SKIPPED)
    metrics = [m.id for m in rubric.metrics if judge.judges(m)]
    has_text = bool(answer.text or answer.parts)
    return Seen(
        answer.item_id, answer.group or group, answer.system,
        hash_of_text(answer), len(answer.text) if has_text else None,
        {m: verdict.labels.get(m, "") for m in metrics},
        verdict.probabilities or {}, labels, chance_of(answer.metadata), verdict.model, answer.text,
        verdict.status == Status.FAILED,
    )  # fmt: skip


def _labels(study: Study, row: int) -> dict[str, dict[str, str]]:
    """The labels of those who make the reference labels, by metric and annotator."""
    found = {}
    for metric, humans in study.humans.items():
        texts = humans.metric.label_texts
        if given := {a: texts[k] for a, k in humans.made.given(row)}:
            found[metric] = given
    return found


def chance_of(cells: Mapping[str, str], file: str = "") -> float:
    """The chance to be labelled, by the columns for it; 1 where none is given. Raises SetupError
    where it is no number above 0, or a chance of more than 1."""
    for names, turned in ((CHANCES, False), (WEIGHTS, True)):
        for column in columns_named(cells, names):
            if cell := cells[column]:
                try:
                    value = float(cell)
                except ValueError:
                    value = 0.0
                if not value > 0 or (value > 1 and not turned):
                    allowed = "a number above 0" + ("" if turned else ", at most 1")
                    raise SetupError(Problem("is no chance", file, None, column, cell, allowed))
                return 1 / value if turned else value
    return 1.0


# ---- what kind of answers these are -------------------------------------------------------------


def one_each(rows: Sequence[Seen]) -> list[Seen]:
    """One answer to each question, picked by a hash of its id: answers to one question are not
    drawn one by one, and their order says which system they are of."""
    picked = sorted(rows, key=lambda row: hash_of([row.item]))
    return [*{row.group: row for row in picked}.values()]


def population_of(rows: Sequence[Seen], rubric: Rubric, encoder: str = "") -> Population:
    """The population that these answers are drawn from, as counts of one answer to each
    question; with an encoder, also by how alike their texts are."""
    rows, centre, near = _centred(rows, encoder) if encoder else (rows, (), ())
    lengths = [row.length for row in rows if row.length is not None]
    inner = np.linspace(0, 1, _PARTS + 1)[1:-1]
    cuts = tuple(sorted({int(c) for c in np.quantile(lengths, inner)})) if lengths else ()
    shares: dict[str, Counter[str]] = {}
    for row in rows:  # also what no answer that counts has is known
        for feature, category in features(row, cuts, near):
            shares.setdefault(feature, Counter())[category] += 0
    known = {f"label:{m.id}": (*m.label_texts, NO_LABEL) for m in rubric.metrics}
    known |= {LENGTH: tuple(length_names(cuts)), ALIKE: _HOW_ALIKE}
    for feature in shares:
        shares[feature].update(dict.fromkeys(known.get(feature, ()), 0))
    for row in one_each(rows):
        for feature, category in features(row, cuts, near):
            shares[feature][category] += 1
    plain = {feature: dict(sorted(counts.items())) for feature, counts in shares.items()}
    return Population(
        answers=len(rows), questions=len({row.group for row in rows}), shares=plain, cuts=cuts,
        encoder=encoder, centre=centre, near=near,
    )  # fmt: skip


def features(
    row: Seen, cuts: Sequence[int], near: Sequence[float] = ()
) -> Iterator[tuple[str, str]]:
    """The features of an answer and their categories."""
    for metric, label in row.verdicts.items():
        yield f"label:{metric}", label or NO_LABEL
    if row.system:
        yield SYSTEM, row.system
    if row.length is not None and cuts:
        yield LENGTH, length_names(cuts)[int(np.searchsorted(cuts, row.length, side="right"))]
    if row.alike is not None and near:
        yield ALIKE, _HOW_ALIKE[int(np.searchsorted(near, row.alike, side="right"))]


def _centred(
    rows: Sequence[Seen], encoder: str
) -> tuple[list[Seen], tuple[float, ...], tuple[float, ...]]:
    """The rows with how near their texts are to the centre of the others, the centre of all, and
    the cosines that tell fifths apart. Raises SetupError where no text is known."""
    known = [row for row in rows if row.text]
    if len(known) < _PARTS:
        message = "needs the texts of the answers: give them with --answers, or in the verdicts"
        raise SetupError(Problem(message, "", None, "certificate.encoder", encoder))
    vectors = open_encoder(encoder).embed([row.text for row in known])
    whole = vectors.sum(axis=0)
    others = whole - vectors
    cosines = ((vectors * others).sum(axis=1) / np.linalg.norm(others, axis=1)).round(_DIGITS)
    alike = dict(zip((row.item for row in known), cosines.tolist(), strict=True))
    near = np.quantile(cosines, np.linspace(0, 1, _PARTS + 1)[1:-1])
    return (
        [replace(row, alike=alike.get(row.item)) for row in rows],
        tuple((whole / np.linalg.norm(whole)).round(_DIGITS).tolist()),
        tuple(near.round(_DIGITS).tolist()),
    )  # fmt: skip


def compared(rows: Sequence[Seen], population: Population) -> list[Seen]:
    """The rows with how near their texts are to the centre of the certificate's."""
    known = [row for row in rows if row.text] if population.encoder else []
    if not known:
        return [*rows]
    vectors = open_encoder(population.encoder).embed([row.text for row in known])
    cosines = (vectors @ np.array(population.centre)).round(_DIGITS).tolist()
    alike = dict(zip((row.item for row in known), cosines, strict=True))
    return [replace(row, alike=alike.get(row.item)) for row in rows]


def length_names(cuts: Sequence[int]) -> list[str]:
    """The categories of the length.

    >>> length_names([80, 200])
    ['under 80', '80 to 199', '200 or more']
    """
    if not cuts:
        return []
    inner = [f"{a} to {b - 1}" for a, b in pairwise(cuts)]
    return [f"under {cuts[0]}", *inner, f"{cuts[-1]} or more"]


# ---- what is watched ----------------------------------------------------------------------------

BY_SEVERITY, BY_CHANCE = "severity of the label", "probability of a severe label"  # signals
AGREEMENT, BASELINE = "agreement", "baseline"
RECALL, MISSED, SENT, FAILURES = "severe_recall", "missed", "sent", "failures"
AMONG = "among"  # of fresh annotators with each other
BY_LABELS = (AGREEMENT, BASELINE, RECALL, MISSED)  # the others need no human labels


def observed(row: Seen, metric: str, about: CertifiedMetric, of: Metric, key: str) -> float | None:
    """What the row says of a watched share, from 0 to 1; None where it says nothing."""
    if metric not in row.verdicts:
        return None
    verdict, given = row.verdicts[metric], row.labels.get(metric, {})
    if key == FAILURES:
        return float(not verdict)
    if key == SENT:
        return float(_sent(row, metric, about, of))
    if not given:
        return None
    if key in (AGREEMENT, BASELINE):
        return float(np.mean([label == verdict for label in given.values()]))
    # Of one annotator: new answers may have fewer than those of the certificate, whose consensus
    # would be another yardstick.
    one = sorted(given)[hash_of([row.item, metric]) % len(given)]
    if of.index(given[one]) < of.index(about.severe_from):
        return None
    if key == RECALL:
        return float(bool(verdict) and of.index(verdict) >= of.index(about.severe_from))
    return float(not _sent(row, metric, about, of))


def _sent(row: Seen, metric: str, about: CertifiedMetric, of: Metric) -> bool:
    """True where a filter sends the answer to humans; what has no label is sent."""
    if not (verdict := row.verdicts[metric]):
        return True
    severe = [label.text for label in of.labels[of.index(about.severe_from) :]]
    if about.threshold is None:
        return verdict in severe
    if about.signal == BY_SEVERITY:
        return of.severities[of.index(verdict)] >= about.threshold
    p = row.severe.get(metric, {})
    return not p or sum(p.get(text, 0.0) for text in severe) >= about.threshold


def values_of(
    rows: Sequence[Seen], metric: str, about: CertifiedMetric, of: Metric, key: str
) -> FloatArray:
    """What the rows say of a watched share (n,), one value for each question."""
    return by_question(rows, lambda row: observed(row, metric, about, of, key))


def by_question(rows: Sequence[Seen], value: Callable[[Seen], float | None]) -> FloatArray:
    """The mean of the value for each question (n,), without rows that have none."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        if (x := value(row)) is not None:
            groups.setdefault(row.group, []).append(x)
    return np.array([np.mean(values) for values in groups.values()])


def same(row: Seen, metric: str) -> float | None:
    """How often two annotators of the answer agree; None where it has fewer."""
    given = [*row.labels.get(metric, {}).values()]
    n = len(given)
    if n < 2:
        return None
    return sum(given.count(label) - 1 for label in given) / (n * (n - 1))


def watched(
    key: str, title: str, x: FloatArray, bound: float, parts: int, at_least: bool = True
) -> Watched:
    """A watched share, one of `parts`, with its value now, in `x` (n,).

    What the decision was made on may have looked better than it is: the bound is moved to where the
    share may lie at level KEPT, if that is on its wrong side, and a warning is due half-way between
    the bound and where the share may lie at level ROOM, if that is on its right side."""
    worst, limit = (_limit(x, a / parts, at_least) for a in (levels.KEPT, levels.ROOM))
    room = limit > bound if at_least else limit < bound
    near = round((limit + bound) / 2, 6) if room else None
    kept = min(bound, worst) if at_least else max(bound, worst)
    return Watched(
        key=key, title=title, value=round(float(x.mean()), 6), bound=round(kept, 6), near=near,
        at_least=at_least,
    )  # fmt: skip


def _limit(x: FloatArray, alpha: float, lower: bool) -> float:
    """A one-sided limit of the mean of x (n,), which lie in [0, 1]: that of coins, which vary the
    most."""
    k, n = float(x.sum()), len(x)
    if lower:
        return 1 - upper(math.ceil(n - k - 1e-9), n, alpha)
    return upper(math.ceil(k - 1e-9), n, alpha)


def noise_of(
    first: Mapping[str, Seen], again: Sequence[Seen], metric: str, anchors: Collection[str],
    alpha: float,
) -> Noise:  # fmt: skip
    """How often the judge gives another label when it judges an anchor again; where no anchor was,
    another answer. The upper limit is one-sided at level alpha."""
    changed = {
        is_anchor: [
            first[row.item].verdicts.get(metric, "") != row.verdicts[metric]
            for row in again
            if (row.item in anchors) is is_anchor
            and row.item in first
            and metric in row.verdicts
            and not row.failed
        ]
        for is_anchor in (True, False)
    }
    if found := changed[True]:
        return noise(len(found), sum(found), alpha)
    return noise(len(changed[False]), sum(changed[False]), alpha, len(anchors))


ASSUMED_NOISE = 0.05


def noise(pairs: int, changed: int, alpha: float, anchors: int = 0) -> Noise:
    """The noise with its upper limit; an assumed one where nothing was judged twice.

    It is the same few anchors that are judged again and again, and the judge may waver on some
    answers only. Where the pairs are of other answers, so many `anchors` that are drawn like them
    may be noisier than they: less than q with a chance of 1 - exp(-anchors * divergence(q, p)),
    where p is the noise of all answers (Hoeffding 1963, theorem 1)."""
    if not pairs:
        return Noise(pairs=0, changed=0, most=ASSUMED_NOISE)
    most = upper(changed, pairs, alpha / 2 if anchors else alpha)
    if anchors:
        gap, p = math.log(2 / alpha) / anchors, most
        last = 1 - 1e-9
        far = p < last and divergence(last, p) > gap
        most = round(brentq(lambda q: divergence(q, p) - gap, p, last), 6) if far else 1.0
    return Noise(pairs=pairs, changed=changed, most=most)


def upper(k: int, n: int, alpha: float) -> float:
    """The one-sided upper limit of a chance at level alpha (Clopper and Pearson 1934)."""
    high = clopper_pearson(k, n, 1 - 2 * alpha).high
    return round(min(1.0, 1.0 if high is None else high), 6)
