"""A head on the vectors of a real encoder."""

from pathlib import Path

import numpy as np
import pytest
from learning_case import write_bench
from sklearn.linear_model import LogisticRegression

import judgebench as jb
from judgebench.judges.judge import Task
from judgebench.learning.learnt import TrainingSet
from judgebench.progress import NoProgress
from judgebench.records import Answer
from judgebench.rubric import Metric, Rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Budget, Stop, Work
from judgebench.tuning.training import Head, Recipe, vectors

pytestmark = pytest.mark.transformers
pytest.importorskip("transformers", reason="needs the extra `tuning`")
TOPICS = ("a broken leg", "a sore throat", "a missed train", "a late bus", "a burnt hand")


def test_it_is_scikit_learn_on_the_encoders_vectors(minilm: Path, tmp_path: Path) -> None:
    """And no text is embedded twice: the second time the encoder need not be there."""
    from judgebench.models.checkpoints import open_encoder

    labels = [{"text": "health"}, {"text": "travel"}]
    metric = {"id": "topic", "title": "T", "question": "?", "kind": "ordinal", "labels": labels}
    metrics = (Metric.model_validate(metric),)
    rubric = Rubric(name="t", version="1", instructions="?", metrics=metrics)
    answers = [
        Answer(f"i{n}", f"They had {TOPICS[n % 5]} {n} days ago", question=f"What of {n % 7}?")
        for n in range(40)
    ]
    y = np.array([int(n % 5 in (2, 3)) for n in range(40)])
    train = TrainingSet(rubric, answers[:30], {"topic": y[:30]}, np.arange(30), np.arange(30))
    place = tmp_path / "encoder"
    place.symlink_to(minilm)
    first, second = (vectors(str(place), tmp_path / "vectors") for _ in range(2))
    head = Head("head", rubric, first, Recipe(strengths=(3.0,)))
    head.fit(train, tmp_path, Work(RunFolder(tmp_path), NoProgress(), Budget(None), Stop()))
    found = list(head.judge([Task(answer) for answer in answers], tmp_path))
    head.close()
    place.unlink()
    again = second.of(answers, metrics[0], tmp_path)

    encoder = open_encoder(str(minilm))
    X = np.hstack([encoder.embed([getattr(a, f) for a in answers]) for f in ("question", "text")])
    assert again == pytest.approx(X, abs=1e-5)
    direct = LogisticRegression(C=3.0, max_iter=5_000).fit(X[:30], y[:30]).predict_proba(X)
    p = np.array([list(verdict.probabilities["topic"].values()) for verdict in found])
    assert p == pytest.approx(direct, abs=1e-3)
    assert (p.argmax(axis=1) == y).all()


def test_a_run_learns_by_it(minilm: Path, tmp_path: Path) -> None:
    bench = write_bench(tmp_path, f"  - {{name: head, learn: head, encoder: {minilm}}}")
    study = jb.run(bench, tmp_path / "run")
    (judge,) = (judge for judge in study.judges if judge.name == "head")
    said = study.judged(judge, study.rubric.metrics[0])
    truth = [("Friendly", "Curt", "Rude").index(a.text.split()[0]) for a in study.answers]
    assert (said == truth).mean() >= 0.9
    (kept,) = (tmp_path / "run" / "tuning" / ".vectors").iterdir()
    n = 0
    for path in kept.iterdir():
        with np.load(path) as held:
            n += len(held["vectors"])
    assert n == 60  # 40 texts and 20 questions, for all five folds together
