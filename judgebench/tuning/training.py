"""The verdicts of other judges of the same run as features of a regression on human labels.

With one judge this is matrix scaling of its log-probabilities (Guo, Pleiss, Sun and Weinberger,
2017, "On calibration of modern neural networks", section 4.2), regularised as Kull et al. (2019,
arXiv:1910.12656) do; with several it is stacking (Wolpert, 1992, "Stacked generalization").
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.files import to_json, write_atomically
from judgebench.judges.judge import Judge, Task
from judgebench.judges.retrieval import WORDS, KeptVectors, npz
from judgebench.learning.learnt import Learner, TrainingSet, verdict_of
from judgebench.models.checkpoints import find_beside
from judgebench.records import Answer, Status, Verdict
from judgebench.rubric import Metric, Rubric
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Work
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.calibration import LEAST_PROBABILITY, cross_entropy, one_hot
from judgebench.studies.answers import indexed
from judgebench.tuning.config import BagOfWordsConfig, HeadConfig, RecalibrateConfig


def open_recalibrate(entry: RecalibrateConfig, bench: Bench, run: RunFolder) -> Head:
    """Its learner. Raises MissingExtra."""
    able: Sequence[Judge] = (*bench.judges, *bench.recorded)
    signed = {judge.name: judge.signature for judge in able}
    members = {name: signed[name] for name in entry.needs}  # in the order of what was learnt
    return Head(entry.learn, rubric_of(entry, bench), verdicts(members, run), both_kinds)


def rubric_of(entry: RecalibrateConfig, bench: Bench) -> Rubric:
    """The metrics that any of its judges judges."""
    rubric = bench.rubric.of_kind("answer") or bench.rubric
    recorded = {judge.name: judge.metrics for judge in bench.recorded}
    every = [metric.id for metric in rubric.metrics]
    said = {metric for name in entry.needs for metric in recorded.get(name, every)}
    return rubric.only([metric for metric in every if metric in said])


def both_kinds(metric: Metric) -> Sequence[Recipe]:
    """An ordinal metric's probabilities may be put right by either."""
    return [Recipe(ordinal=True)] * (metric.kind == "ordinal") + [Recipe(ordinal=False)]


def verdicts(members: Mapping[str, str], run: RunFolder) -> Features:
    """The verdicts of `members` (signatures by name) in the run.

    Of an item that none of them labelled nothing is known; where no reply came from any, the
    verdict is `failed`, so that it is judged again with them.
    """

    def of(
        answers: Sequence[Answer], metrics: Sequence[Metric], folder: Path
    ) -> Mapping[str, FloatArray]:
        about = indexed(answers)
        every = [run.latest_verdicts(*member, about) for member in members.items()]
        features = {}
        for metric in metrics:
            labels = [found.label_indices(metric, about) for found in every]
            shares = [found.label_probabilities(metric, about) for found in every]
            known: NDArray[np.bool_] = np.max(labels, axis=0) >= 0
            X = np.hstack([columns_of(*one) for one in zip(labels, shares, strict=True)])
            features[metric.id] = np.where(known[:, None], X, np.nan)
        return features

    @cache
    def of_all() -> Sequence[Mapping[str, Verdict]]:
        answers = run.indexed_answers()
        return [run.latest_verdicts(*member, answers) for member in members.items()]

    def without(item_id: str) -> Status:
        said = [verdicts.get(item_id) for verdicts in of_all()]
        came = any(verdict and verdict.status is not Status.FAILED for verdict in said)
        return Status.UNPARSED if came else Status.FAILED

    about = {"from": dict(members)}
    return Features(about, of, without=without, needs=tuple(members))


def columns_of(label: NDArray[np.int64], p: FloatArray) -> FloatArray:
    """Log-probabilities less their mean; or, where there are none, a column for each label; or,
    where there is no label, one that says so: (rows,) and (rows, k) -> (rows, 2 k + 1).

    >>> columns_of(np.array([0, 1, -1]), np.array([[0.5, 0.5], [np.nan] * 2, [0.1, 0.9]])).tolist()
    [[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    """
    logs = np.log(np.maximum(p, LEAST_PROBABILITY))
    logs -= logs.mean(axis=1, keepdims=True)
    given, named = label >= 0, np.eye(p.shape[1])[label]
    weighed = given & ~np.isnan(logs).any(axis=1)
    logs[~weighed], named[weighed | ~given] = 0.0, 0.0
    return np.hstack([logs, named, ~given[:, None]])


_NESTED = 3
_FREE = 10.0  # columns of thresholds are so large that their weights cost next to nothing


@dataclass(frozen=True)
class Recipe:
    """The settings of the fit; `strengths` are scikit-learn's C, less being more regularised.

    `balanced`: rare labels count as much as common ones; the probabilities are then those of a
    world where all are as common.
    """

    ordinal: bool
    strengths: tuple[float, ...] = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)
    balanced: bool = False


class Regression(NamedTuple):
    """The fit for a metric of `k` labels. `labels` (classes,) are the places of those that
    occurred; the others get the probability 0. `weights` is (1, width) and `bias` (classes - 1,)
    for thresholds, else both have a row for each class."""

    k: int
    labels: IntArray
    weights: FloatArray
    bias: FloatArray

    def probabilities(self, X: Any) -> FloatArray:
        """(rows, width), perhaps sparse, -> (rows, k); NaN where a feature is."""
        from scipy.special import expit, softmax

        scores, found = X @ self.weights.T + self.bias, np.zeros((X.shape[0], self.k))
        if len(self.bias) == len(self.labels):
            found[:, self.labels] = softmax(scores, axis=1)
        else:
            above = np.pad(expit(scores), ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0)))
            found[:, self.labels] = np.maximum(-np.diff(above, axis=1), 0)
        return np.asarray(found / found.sum(axis=1, keepdims=True))


def fitted(X: Any, y: IntArray, k: int, recipe: Recipe) -> Iterator[Regression]:
    """One for each strength: `X` (rows, width), dense or sparse, `y` (rows,) places among `k`
    labels. Of one label only, the constant."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    labels, width = np.unique(y), X.shape[1]
    code: IntArray = np.searchsorted(labels, y)
    if len(labels) == 1:
        constant = Regression(k, labels, np.zeros((1, width)), np.zeros(1))
        yield from (constant for _ in recipe.strengths)
        return
    X, weights_of = _condensed(X)
    narrow = X.shape[1]
    if recipe.ordinal:
        X, code = _by_threshold(X, code)
    weighted = "balanced" if recipe.balanced else None
    model = LogisticRegression(max_iter=5_000, warm_start=True, class_weight=weighted)
    for C in recipe.strengths:
        # On so few rows threads of BLAS only wait for each other, a hundred times as long as they
        # work where other processes work too.
        with threadpool_limits(1):
            model.set_params(C=C).fit(X, code)
        weights, more = np.split(model.coef_.copy(), [narrow], axis=1)
        apart = np.append(0, _FREE * more[0]) if recipe.ordinal else 0
        yield Regression(k, labels, weights_of(weights), model.intercept_ + apart)


def _condensed(X: Any) -> tuple[Any, Callable[[FloatArray], FloatArray]]:
    """Sparse features in fewer columns, and the way from the weights of these to those of all.

    A penalty of squares makes the weights of features that occur in one row alone proportional to
    their values there, so that one column, of their norm, stands for all of a row: the regression
    is the same. Most pairs of words occur once.
    """
    import scipy.sparse

    if not scipy.sparse.issparse(X):
        return X, lambda weights: weights
    width, rows_with = X.shape[1], np.bincount(X.indices, minlength=X.shape[1])
    often, once = np.flatnonzero(rows_with > 1), np.flatnonzero(rows_with == 1)
    rare = X[:, once]
    norm = np.sqrt(np.asarray(rare.multiply(rare).sum(axis=1)).ravel())
    share = rare.multiply(1 / np.where(norm, norm, 1)[:, None]).tocsr()

    def whole(weights: FloatArray) -> FloatArray:
        found = np.zeros((len(weights), width))
        found[:, often], found[:, once] = weights[:, : len(often)], weights[:, len(often) :] @ share
        return found

    return scipy.sparse.hstack([X[:, often], scipy.sparse.diags_array(norm)], "csr"), whole


def _by_threshold(X: Any, code: IntArray) -> tuple[Any, IntArray]:
    """Every row for each threshold, with a column for each but the first; whether it is above."""
    import scipy.sparse

    n, steps = len(code), int(code.max())
    rows, step = np.tile(np.arange(n), steps), np.repeat(np.arange(steps), n)
    stacked = scipy.sparse.hstack if scipy.sparse.issparse(X) else np.hstack
    return stacked([X[rows], _FREE * np.eye(steps)[step, 1:]]), (code[rows] > step).astype(np.int64)


def chosen(train: TrainingSet, X: Any, metric: Metric, recipes: Sequence[Recipe]) -> Recipe:
    """The recipe, with the one strength, of the least log loss in nested folds; of equal ones the
    first. `X` (answers, width) are the features of the answers, all of which have a label."""
    y, k = train.labels[metric.id], len(metric.labels)
    ways = [replace(recipe, strengths=(C,)) for recipe in recipes for C in recipe.strengths]
    row = {answer.item_id: number for number, answer in enumerate(train.answers)}
    loss = np.zeros(len(ways))
    for learnt, judged in train.folds(_NESTED) if len(ways) > 1 else ():
        rows, own = ([row[a.item_id] for a in part.answers] for part in (learnt, judged))
        q = one_hot(y[own], k)
        tried = (found for r in recipes for found in fitted(X[rows], y[rows], k, r)) if rows else ()
        loss += [cross_entropy(found.probabilities(X[own]), q).sum() for found in tried] or 0.0
    return ways[int(loss.argmin())]


_FIELDS = ("question", "text")
_AT_ONCE = 256
_WORDS = "words.json"


@dataclass(frozen=True)
class Features:
    """The features of a regression: `of(answers, metrics, folder)` are, by metric, numbers
    (answers, width), dense or sparse, a row of NaN where nothing is known; `without` says what the
    verdict on such an item is. `fit` keeps in the folder what must be known of the answers that are
    learnt from, and `of` may read it once for several blocks of answers."""

    about: Mapping[str, Any]  # what they depend on
    of: Callable[[Sequence[Answer], Sequence[Metric], Path], Mapping[str, Any]]
    fit: Callable[[Sequence[Answer], Path], None] = lambda answers, folder: None
    close: Callable[[], None] = lambda: None
    without: Callable[[str], Status] = lambda item_id: Status.UNPARSED
    needs: Sequence[str] = ()


def by_kind(metric: Metric) -> Sequence[Recipe]:
    """Ordinal or multinomial, as the metric is."""
    return [Recipe(ordinal=metric.kind == "ordinal")]


def balanced(metric: Metric) -> Sequence[Recipe]:
    """The options by which a control is fitted: one that never gave a rare label would be no
    rival."""
    return [Recipe(ordinal=False, strengths=(1.0,), balanced=True)]


class Head(Learner):
    """A regression for each metric, by the best of its recipes in nested folds."""

    def __init__(
        self, learn: str, rubric: Rubric, features: Features,
        recipes: Callable[[Metric], Sequence[Recipe]] = by_kind,
    ) -> None:  # fmt: skip
        """Raises MissingExtra without scikit-learn."""
        if not has_sklearn():
            raise MissingExtra(f"learn: {learn}", "tuning", "scikit-learn")
        self._learn, self._rubric, self._features, self._recipes = learn, rubric, features, recipes
        self.needs = features.needs

    def describe(self) -> Mapping[str, Any]:
        tried = {m.id: list(map(asdict, self._recipes(m))) for m in self._rubric.metrics}
        return {"learn": self._learn, **self._features.about, "recipes": tried}

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        facts = {}
        self._features.fit(train.answers, folder)
        every = self._features.of(train.answers, train.rubric.metrics, folder)
        for metric in train.rubric.metrics:
            X = every[metric.id]
            known = ~np.isnan(np.asarray(X.sum(axis=1)).ravel())
            rows = np.flatnonzero(known & (train.labels[metric.id] >= 0))
            if not len(rows):
                message = f"{self._learn}: nothing is known of the answers that have a human label"
                raise SetupError(Problem(message, field=metric.id))
            own, X = train.only(rows), X[rows]
            recipe = chosen(own, X, metric, self._recipes(metric))
            (found,) = fitted(X, own.labels[metric.id], len(metric.labels), recipe)
            write_atomically(folder / f"{metric.id}.npz", npz(**found._asdict()))
            facts[metric.id] = {"n": len(rows), "C": recipe.strengths[0], "ordinal": recipe.ordinal}
        return {"metrics": facts}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        coming, fitted = iter(tasks), {}
        for metric in self._rubric.metrics:
            with np.load(folder / f"{metric.id}.npz") as held:
                fitted[metric] = Regression(**{**held, "k": int(held["k"])})
        while block := list(islice(coming, _AT_ONCE)):
            X = self._features.of([task.answer for task in block], [*fitted], folder)
            found = {m.id: learnt.probabilities(X[m.id]) for m, learnt in fitted.items()}
            for row, task in enumerate(block):
                shares = {m: None if np.isnan(p[row]).any() else p[row] for m, p in found.items()}
                verdict = verdict_of(task, self._rubric, shares)
                lacking = verdict.status is Status.UNPARSED
                status = self._features.without(task.answer.item_id) if lacking else Status.OK
                yield replace(verdict, status=status)

    def close(self) -> None:
        self._features.close()


def open_head(entry: BagOfWordsConfig | HeadConfig, bench: Bench, run: Path) -> Head:
    """Its learner. Raises MissingExtra, and what finding an encoder raises."""
    rubric = bench.rubric.of_kind("answer") or bench.rubric
    if isinstance(entry, BagOfWordsConfig):
        return Head(entry.learn, rubric, words(), balanced)
    if entry.encoder == WORDS:
        return Head(entry.learn, rubric, words())
    found = find_beside(entry.encoder, bench.file.parent)
    return Head(entry.learn, rubric, vectors(found, run / "tuning" / ".vectors"))


def has_sklearn() -> bool:
    """True where scikit-learn is installed."""
    return find_spec("sklearn") is not None


def words() -> Features:
    """The words, and pairs of words, of question and text: how often each occurs, against how many
    answers have it (tf-idf, as scikit-learn computes it)."""
    import scipy.sparse

    @lru_cache(maxsize=1)
    def opened(folder: Path) -> Mapping[str, Any]:
        """The vectorizer of each field that has words."""
        fields = {}
        for field, weights in json.loads((folder / _WORDS).read_bytes()).items():
            fields[field] = _tf_idf(list(weights))
            fields[field].idf_ = np.array(list(weights.values()))
        return fields

    def fit(answers: Sequence[Answer], folder: Path) -> None:
        fields = {}
        for field in _FIELDS:
            texts, vectors = [getattr(answer, field) for answer in answers], _tf_idf()
            if any(map(vectors.build_analyzer(), texts)):
                names = vectors.fit(texts).get_feature_names_out()
                fields[field] = dict(zip(names, vectors.idf_.tolist(), strict=True))
        write_atomically(folder / _WORDS, to_json(fields).encode())
        opened.cache_clear()

    def of(answers: Sequence[Answer], metrics: Sequence[Metric], folder: Path) -> Mapping[str, Any]:
        parts = [scipy.sparse.csr_array((len(answers), 1))]  # there may be no word at all
        for field, vectors in opened(folder).items():
            parts.append(vectors.transform([getattr(answer, field) for answer in answers]))
        return dict.fromkeys((m.id for m in metrics), scipy.sparse.hstack(parts, "csr"))

    return Features({"features": "tf-idf of words and pairs of words"}, of, fit)


def _tf_idf(vocabulary: Sequence[str] | None = None) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), vocabulary=vocabulary)


def vectors(encoder: str, folder: Path) -> Features:
    """The vectors of question and text, side by side. Raises what finding an encoder raises."""
    kept = KeptVectors(encoder, folder)

    def of(
        answers: Sequence[Answer], metrics: Sequence[Metric], folder: Path
    ) -> Mapping[str, FloatArray]:
        X = np.hstack([kept.of([getattr(a, field) for a in answers]) for field in _FIELDS])
        return dict.fromkeys((metric.id for metric in metrics), X)

    return Features({"encoder": kept.about}, of, close=kept.close)
