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
from judgebench.runs.verdict_log import FiledVerdicts
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.calibration import LEAST_PROBABILITY
from judgebench.studies.answers import IndexedAnswers
from judgebench.tuning.config import BagOfWordsConfig, HeadConfig, RecalibrateConfig


def open_recalibrate(entry: RecalibrateConfig, bench: Bench, run: RunFolder) -> Head:
    """Its learner. Raises MissingExtra."""
    able: Sequence[Judge] = (*bench.judges, *bench.recorded)
    signed = {judge.name: judge.signature for judge in able}
    members = {name: signed[name] for name in entry.needs}  # in the order of what was learnt
    return Head(entry.learn, rubric_of(entry, bench), verdicts(members, run))


def rubric_of(entry: RecalibrateConfig, bench: Bench) -> Rubric:
    """The metrics that any of its judges judges."""
    rubric = bench.rubric.of_kind("answer") or bench.rubric
    recorded = {judge.name: judge.metrics for judge in bench.recorded}
    every = [metric.id for metric in rubric.metrics]
    said = {metric for name in entry.needs for metric in recorded.get(name, every)}
    return rubric.only([metric for metric in every if metric in said])


def verdicts(members: Mapping[str, str], run: RunFolder) -> Features:
    """The verdicts of `members` (signatures by name) in the run.

    Of an item that none of them labelled nothing is known; where no reply came from any, the
    verdict is `failed`, so that it is judged again with them.
    """

    @cache
    def read() -> tuple[IndexedAnswers, Sequence[FiledVerdicts]]:
        answers = run.indexed_answers()
        return answers, [run.latest_verdicts(*member, answers) for member in members.items()]

    @cache
    def of_all(metric: Metric) -> FloatArray:
        answers, by_member = read()
        labels = [verdicts.label_indices(metric, answers) for verdicts in by_member]
        shares = [verdicts.label_probabilities(metric, answers) for verdicts in by_member]
        X = np.hstack([columns_of(*pair) for pair in zip(labels, shares, strict=True)])
        X[np.max(labels, axis=0) < 0] = np.nan
        return X

    def of(answers: Sequence[Answer], metric: Metric, folder: Path) -> FloatArray:
        return of_all(metric)[[read()[0].row(answer.item_id) for answer in answers]]

    def without(item_id: str) -> Status:
        given = [verdicts.get(item_id) for verdicts in read()[1]]
        came = any(verdict and verdict.status is not Status.FAILED for verdict in given)
        return Status.UNPARSED if came else Status.FAILED

    return Features({"from": dict(members)}, of, without=without, needs=tuple(members))


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


@dataclass(frozen=True)
class Recipe:
    """The settings of the fit; `strengths` are scikit-learn's C, less being more regularised.

    `balanced`: rare labels count as much as common ones; the probabilities are then those of a
    world where all are as common.
    """

    strengths: tuple[float, ...] = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)
    balanced: bool = False


# A control that never gave a rare label would be no rival.
BALANCED = Recipe(strengths=(1.0,), balanced=True)


class Regression(NamedTuple):
    """The fit for a metric. `labels` (classes,) are the places of those that occurred; the others
    get the probability 0. `weights` (classes, width) and `bias` (classes,)."""

    labels: IntArray
    weights: FloatArray
    bias: FloatArray

    def probabilities(self, X: Any, k: int) -> FloatArray:
        """(rows, width), perhaps sparse, -> (rows, k); NaN where a feature is."""
        from scipy.special import softmax

        shares = np.zeros((X.shape[0], k))
        shares[:, self.labels] = softmax(X @ self.weights.T + self.bias, axis=1)
        return shares


def fitted(X: Any, y: IntArray, recipe: Recipe) -> Iterator[Regression]:
    """One for each strength: `X` (rows, width), dense or sparse, `y` (rows,) places of labels. Of
    one label only, the constant."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    labels, columns = np.unique(y), _condensed_columns(X)
    weights, bias = np.zeros((1, X.shape[1])), np.zeros(1)
    X = X @ columns
    class_weight = "balanced" if recipe.balanced else None
    model = LogisticRegression(max_iter=5_000, warm_start=True, class_weight=class_weight)
    for C in recipe.strengths:
        if len(labels) > 1:
            # On so few rows threads of BLAS only wait for each other, a hundred times as long as
            # they work where other processes work too.
            with threadpool_limits(1):
                model.set_params(C=C).fit(X, y)
            # Of two labels scikit-learn has a row for the second alone.
            missing = (len(labels) - len(model.coef_), 0)
            weights = np.pad(model.coef_ @ columns.T, (missing, (0, 0)))
            bias = np.pad(model.intercept_, missing)
        yield Regression(labels, weights, bias)


def _condensed_columns(X: Any) -> Any:
    """(width, narrower) orthonormal: one column of `X` for each feature of several rows, and one
    for all features of a row that no other has.

    A penalty of squares makes the weights of the latter proportional to their values, so that the
    regression is the same. Most pairs of words occur once.
    """
    from scipy.sparse import diags_array, eye_array, hstack, issparse
    from sklearn.preprocessing import normalize

    if not issparse(X):
        return eye_array(X.shape[1])
    n_rows = np.bincount(X.indices, minlength=X.shape[1])
    several = diags_array(1.0 * (n_rows > 1)).tocsr()[:, n_rows > 1]
    single = normalize(X @ diags_array(1.0 * (n_rows == 1)))
    return hstack([several, single.T], "csr")


def best_strength(train: TrainingSet, X: Any, metric: Metric, recipe: Recipe) -> float:
    """The strength of the least log loss in nested folds; of equal ones the first. `X` (answers,
    width) are the features of the answers, all of which have a label."""
    from sklearn.metrics import log_loss

    y, k = train.labels[metric.id], len(metric.labels)
    row = {answer.item_id: number for number, answer in enumerate(train.answers)}
    loss = np.zeros(len(recipe.strengths))
    for learnt, judged in train.folds(_NESTED) if len(loss) > 1 else ():
        rows, held_out = ([row[a.item_id] for a in part.answers] for part in (learnt, judged))
        fits = fitted(X[rows], y[rows], recipe) if rows else ()
        shares = [fit.probabilities(X[held_out], k) for fit in fits]
        loss += [log_loss(y[held_out], p, labels=range(k), normalize=False) for p in shares] or 0.0
    return recipe.strengths[int(loss.argmin())]


_FIELDS = ("question", "text")
_AT_ONCE = 256
_WORDS = "words.json"


@dataclass(frozen=True)
class Features:
    """The features of a regression: `of(answers, metric, folder)` are numbers (answers, width),
    dense or sparse, a row of NaN where nothing is known; `without` says what the verdict on such an
    item is. `fit` keeps in the folder what must be known of the answers that are learnt from."""

    about: Mapping[str, Any]  # what they depend on
    of: Callable[[Sequence[Answer], Metric, Path], Any]
    fit: Callable[[Sequence[Answer], Path], None] = lambda answers, folder: None
    close: Callable[[], None] = lambda: None
    without: Callable[[str], Status] = lambda item_id: Status.UNPARSED
    needs: Sequence[str] = ()


class Head(Learner):
    """A regression for each metric, by the best of the recipe's strengths in nested folds."""

    def __init__(
        self, learn: str, rubric: Rubric, features: Features, recipe: Recipe = Recipe()
    ) -> None:
        """Raises MissingExtra without scikit-learn."""
        if not has_sklearn():
            raise MissingExtra(f"learn: {learn}", "tuning", "scikit-learn")
        self._learn, self._rubric, self._features, self._recipe = learn, rubric, features, recipe
        self.needs = features.needs

    def describe(self) -> Mapping[str, Any]:
        return {"learn": self._learn, **self._features.about, "recipe": asdict(self._recipe)}

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        facts = {}
        self._features.fit(train.answers, folder)
        for metric in train.rubric.metrics:
            X = self._features.of(train.answers, metric, folder)
            is_known = ~np.isnan(np.asarray(X.sum(axis=1)).ravel())
            rows = np.flatnonzero(is_known & (train.labels[metric.id] >= 0))
            if not len(rows):
                message = f"{self._learn}: nothing is known of the answers that have a human label"
                raise SetupError(Problem(message, field=metric.id))
            labelled, X = train.only(rows), X[rows]
            C = best_strength(labelled, X, metric, self._recipe)
            recipe = replace(self._recipe, strengths=(C,))
            (regression,) = fitted(X, labelled.labels[metric.id], recipe)
            write_atomically(folder / f"{metric.id}.npz", npz(**regression._asdict()))
            facts[metric.id] = {"n": len(rows), "C": C}
        return {"metrics": facts}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        coming, regressions = iter(tasks), {}
        for metric in self._rubric.metrics:
            with np.load(folder / f"{metric.id}.npz") as arrays:
                regressions[metric] = Regression(**arrays)
        while block := list(islice(coming, _AT_ONCE)):
            answers, shares = [task.answer for task in block], {}
            for metric, regression in regressions.items():
                X = self._features.of(answers, metric, folder)
                shares[metric.id] = regression.probabilities(X, len(metric.labels))
            for row, task in enumerate(block):
                known = {m: p[row] for m, p in shares.items() if not np.isnan(p[row]).any()}
                verdict = verdict_of(task, self._rubric, known)
                if verdict.status is Status.UNPARSED:
                    verdict = replace(verdict, status=self._features.without(verdict.item_id))
                yield verdict

    def close(self) -> None:
        self._features.close()


def open_head(
    entry: BagOfWordsConfig | HeadConfig, rubric: Rubric, beside: Path, run: Path
) -> Head:
    """Its learner; an encoder's path is seen from the folder `beside`. Raises MissingExtra, and
    what finding an encoder raises."""
    if isinstance(entry, BagOfWordsConfig):
        return Head(entry.learn, rubric, words(), BALANCED)
    if entry.encoder == WORDS:
        return Head(entry.learn, rubric, words())
    found = find_beside(entry.encoder, beside)
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

    def of(answers: Sequence[Answer], metric: Metric, folder: Path) -> Any:
        parts = [scipy.sparse.csr_array((len(answers), 1))]  # there may be no word at all
        for field, vectors in opened(folder).items():
            parts.append(vectors.transform([getattr(answer, field) for answer in answers]))
        return scipy.sparse.hstack(parts, "csr")

    return Features({"features": "tf-idf of words and pairs of words"}, of, fit)


def _tf_idf(vocabulary: Sequence[str] | None = None) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), vocabulary=vocabulary)


def vectors(encoder: str, folder: Path) -> Features:
    """The vectors of question and text, side by side. Raises what finding an encoder raises."""
    kept = KeptVectors(encoder, folder)

    def of(answers: Sequence[Answer], metric: Metric, folder: Path) -> FloatArray:
        return np.hstack([kept.of([getattr(a, field) for a in answers]) for field in _FIELDS])

    return Features({"encoder": kept.about}, of, close=kept.close)
