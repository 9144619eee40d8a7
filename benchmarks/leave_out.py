"""How long does an alignment take beside plain numpy that leaves the same groups out?

Items with three labels of some annotators each, and one judge's verdicts, are drawn. `align` then
measures everything that it does. Beside it numpy alone computes accuracy, Cohen's kappa and
Krippendorff's alpha of the judge against the most frequent label, the same of each annotator
against the others, and alpha of all annotators; and each of them again without every item in turn,
for the same jackknife interval. Both are timed in turns on the same labels; the values, and the
limits of kappa and alpha, must be equal. The limit is 1.5 times the plain script's time.

    python benchmarks/leave_out.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import median

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import t

from judgebench.alignment import Alignment, align
from judgebench.records import Answer, HumanLabel, Status, Usage, Verdict
from judgebench.rubric import Metric, Rubric
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import JudgeVerdicts, Study, study_of

SIZES = ((4_000, 3), (16_000, 40))  # items, annotators
LABELS, SHARES, LABELS_EACH, LIMIT = ("a", "b", "c"), (0.6, 0.25, 0.15), 3, 1.5
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
METRIC = Metric.model_validate(
    {"id": "harm", "title": "Harm", "question": "How bad?", "kind": "nominal", "labels": [*LABELS]}
)
RUBRIC = Rubric(name="drawn", version="1", instructions="Judge.", metrics=(METRIC,))


def draw(n: int, annotators: int) -> tuple[Ints, Ints]:
    """Labels (items, annotators), -1 where there is none, and the judge's (items,)."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, n, p=SHARES)
    who = rng.random((n, annotators)).argsort(axis=1)[:, :LABELS_EACH]
    given = np.where(rng.random(who.shape) < 0.8, truth[:, None], rng.choice(3, who.shape))
    values = np.full((n, annotators), -1)
    np.put_along_axis(values, who, given, axis=1)
    return values, np.where(rng.random(n) < 0.75, truth, rng.choice(3, n))


def study(values: Ints, judged: Ints) -> Study:
    answers = [Answer(f"i{i}", f"text {i}", group=f"g{i}") for i in range(len(values))]
    labels = [
        HumanLabel(f"i{i}", f"r{a:02}", METRIC.id, LABELS[values[i, a]])
        for i, a in np.argwhere(values >= 0).tolist()
    ]
    verdicts = {
        answer.item_id: Verdict(
            answer.item_id, answer.content_hash, "m", "s", Status.OK, {METRIC.id: LABELS[label]}
        )
        for answer, label in zip(answers, judged.tolist(), strict=True)
    }
    made = study_of(RUBRIC, answers, labels, TruthConfig(rule="majority", ties="lower"))
    judge = JudgeVerdicts("m", "judge", "s", verdicts, Usage(len(answers)))
    return replace(made, judges=(judge,))


# --- plain numpy ----------------------------------------------------------------------------------


def accuracy(C: Floats) -> float:
    return float(np.trace(C) / C.sum())


def kappa(C: Floats) -> float:
    expected = C.sum(axis=0) @ C.sum(axis=1) / C.sum() ** 2
    return float((accuracy(C) - expected) / (1 - expected))


def alpha(o: Floats) -> float:
    n_c = o.sum(axis=0)
    n = n_c.sum()
    expected = n**2 - (n_c**2).sum()
    return float(1 - (n - 1) * (n - np.trace(o)) / expected)


def jackknife(of_item: Floats, formula: Callable[[Floats], float]) -> tuple[float, float, float]:
    """The value and its limits, on the logit of (value + 1) / 2."""
    total = of_item.sum(axis=0)
    value, G = formula(total), len(of_item)
    z = logit((np.array([formula(total - own) for own in of_item]) + 1) / 2)
    half = t.ppf(0.975, G - 1) * np.sqrt((G - 1) / G * ((z - z.mean()) ** 2).sum())
    low, high = 2 * expit(logit((value + 1) / 2) + np.array([-half, half])) - 1
    return value, float(low), float(high)


Numbers = Mapping[str, tuple[float, float, float]]
PLAIN: Mapping[str, Callable[[Floats], float]] = {
    "accuracy": accuracy, "kappa": kappa, "alpha": lambda C: alpha(C + C.T),
}  # fmt: skip


def against(reference: Ints, labels: Ints) -> Numbers:
    C = np.zeros((len(labels), 3, 3))
    C[np.arange(len(labels)), reference, labels] = 1
    return {key: jackknife(C, formula) for key, formula in PLAIN.items()}


def plain(values: Ints, judged: Ints) -> Mapping[str, Numbers]:
    """By the name of the judge, of each annotator, and of `all` annotators among themselves."""
    votes = (values[:, :, None] == np.arange(3)).sum(axis=1)
    pairs = votes[:, :, None] * votes[:, None] - votes[:, :, None] * np.eye(3)
    of_item = pairs / (votes.sum(axis=1) - 1)[:, None, None]
    numbers = {
        "m": against(votes.argmax(axis=1), judged),
        "all": {"alpha": jackknife(of_item, alpha)},
    }
    for annotator, labels in enumerate(values.T):
        rows = np.flatnonzero(labels >= 0)
        others = votes[rows] - (labels[rows, None] == np.arange(3))
        has_one = (others == others.max(axis=1, keepdims=True)).sum(axis=1) == 1
        reference, own = others.argmax(axis=1)[has_one], labels[rows][has_one]
        numbers[f"r{annotator:02}"] = against(reference, own)
    return numbers


def check(alignment: Alignment, expected: Mapping[str, Numbers]) -> None:
    """Raise AssertionError unless both have the same numbers; accuracy has an exact interval."""
    for name, numbers in expected.items():
        for key, (value, *limits) in numbers.items():
            if name == "all":
                e = alignment.results.find(key, "agreement", who="all", metric=METRIC.id)
            elif name == "m":
                e = alignment.score(key, name, METRIC.id)
            else:
                e = alignment.ceiling(key, METRIC.id, name)
            found = (e.value, *limits) if key == "accuracy" else (e.value, e.low, e.high)
            np.testing.assert_allclose(found, (value, *limits), rtol=0, atol=1e-9, err_msg=name)


# --- times ----------------------------------------------------------------------------------------


def compare(n: int, annotators: int, repeats: int) -> None:
    values, judged = draw(n, annotators)
    of_align, of_plain = [], []
    for _ in range(repeats):
        fresh = study(values, judged)
        start = time.perf_counter()
        alignment = align(fresh)
        middle = time.perf_counter()
        expected = plain(values, judged)
        of_align.append(middle - start)
        of_plain.append(time.perf_counter() - middle)
        check(alignment, expected)
    ours, theirs = median(of_align), median(of_plain)
    rows, ratio = len(alignment.results.rows), ours / theirs
    print(f"  {n:>9,}{annotators:>12}{rows:>9,}{ours:>10.2f}{theirs:>10.2f}{ratio:>9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="400 items, once")
    parser.add_argument("--repeat", type=int, default=5, metavar="TIMES")
    given = parser.parse_args()
    sizes, repeats = (((400, 3),), 1) if given.quick else (SIZES, given.repeat)
    print(f"judgebench align, 3 labels an item, median of {repeats}; limit of the ratio {LIMIT}")
    print(
        f"  {'items':>9}{'annotators':>12}{'numbers':>9}{'align s':>10}{'plain s':>10}{'ratio':>9}"
    )
    for n, annotators in sizes:
        compare(n, annotators, repeats)


if __name__ == "__main__":
    main()
