"""Judges that are a regression on words, and the control that is fitted beside what learns."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from crowd_tables import crowd_tables
from learning_case import write_bench
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score

import judgebench as jb
from judgebench.errors import MissingExtra, SetupError
from judgebench.judges.judge import Task
from judgebench.learning.learnt import TrainingSet
from judgebench.progress import NoProgress
from judgebench.records import Answer
from judgebench.rubric import Metric, Rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Budget, Stop, Work
from judgebench.studies.study import JudgeVerdicts
from judgebench.tuning.training import BALANCED, Head, words

HEAD = "  - {name: head, learn: head, encoder: words}"
TONES = ("Friendly", "Curt", "Rude")


def named(study: jb.Study, name: str) -> JudgeVerdicts:
    return next(judge for judge in study.judges if judge.name == name)


def tone() -> Rubric:
    labels = [{"text": label} for label in TONES]
    metric = {"id": "tone", "title": "Tone", "question": "?", "kind": "nominal", "labels": labels}
    return Rubric(name="t", version="1", instructions="?", metrics=(Metric.model_validate(metric),))


def test_a_rule_of_words_is_learnt(tmp_path: Path) -> None:
    study = jb.run(write_bench(tmp_path, HEAD), tmp_path / "run")
    metric = study.rubric.metrics[0]
    truth = [TONES.index(answer.text.split()[0]) for answer in study.answers]
    for name, kind in (("head", "judge"), ("bag-of-words", "control"), ("by-system", "control")):
        judge = named(study, name)
        assert judge.kind == kind
        right = (study.judged(judge, metric) == truth).mean()
        assert right >= 0.9 if name != "by-system" else right < 0.8
        if name != "by-system":  # a baseline says a label, and no shares
            assert study.probabilities(judge, metric).sum(axis=1) == pytest.approx(1)
    (cell,) = (tmp_path / "run" / "tuning" / "head").glob("*/fold-1")
    facts = json.loads((cell / "learnt.json").read_text())["metrics"]["tone"]
    assert facts == {"n": 32, "C": facts["C"]}
    assert facts["C"] > 0.1


def test_bag_of_words_is_what_scikit_learn_says(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    some = ["one", "two", "three", "four", "five", "six"]
    said = [" ".join(rng.choice(some, 5)) for _ in range(80)]
    answers = [Answer(f"i{n}", text, question=f"ask {text[:4]}") for n, text in enumerate(said)]
    y = np.array([min(text.count("three"), 2) for text in said])
    train = TrainingSet(tone(), answers[:60], {"tone": y[:60]}, np.arange(60), np.arange(60))
    head = Head("bag-of-words", tone(), words(), BALANCED)
    work = Work(RunFolder(tmp_path / "run"), NoProgress(), Budget(None), Stop())
    head.fit(train, tmp_path, work)
    found = list(head.judge((Task(answer) for answer in answers), tmp_path))

    sides = []
    for field in ("question", "text"):
        texts = [getattr(answer, field) for answer in answers]
        vectors = TfidfVectorizer(ngram_range=(1, 2)).fit(texts[:60])
        sides.append(vectors.transform(texts).toarray())
    X = np.hstack(sides)
    direct = LogisticRegression(class_weight="balanced", max_iter=5_000).fit(X[:60], y[:60])
    p = np.array([list(verdict.probabilities["tone"].values()) for verdict in found])
    assert p == pytest.approx(direct.predict_proba(X), abs=1e-4)
    assert [verdict.item_id for verdict in found] == [answer.item_id for answer in answers]


def test_without_a_word_it_is_the_share_of_the_labels(tmp_path: Path) -> None:
    answers = [Answer(f"i{n}", "?!", question="") for n in range(40)]
    y = np.repeat([0, 1, 2], [10, 20, 10])
    train = TrainingSet(tone(), answers, {"tone": y}, np.arange(40), np.arange(40))
    head = Head("head", tone(), words())
    head.fit(train, tmp_path, Work(RunFolder(tmp_path), NoProgress(), Budget(None), Stop()))
    (verdict,) = head.judge([Task(Answer("new", "words"))], tmp_path)
    assert list(verdict.probabilities["tone"].values()) == pytest.approx(
        [0.25, 0.5, 0.25], abs=1e-3
    )


def test_without_scikit_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is missed where it was asked for; the control is left out, and a report says so."""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtra, match="learn: head needs the package scikit-learn, which is"):
        jb.run(write_bench(tmp_path, HEAD), tmp_path / "run")
    entry = "  - {name: who, learn: by-system}\n  - {name: again, learn: recalibrate, from: who}"
    with pytest.raises(SetupError, match=r"judges\.again\.from: is a judge that learns itself"):
        jb.load_bench(write_bench(tmp_path, entry))


def test_bag_of_words_needs_scikit_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from judgebench.runs.load import load_bench
    from judgebench.tuning.judges import open_judges

    bench = load_bench(write_bench(tmp_path, "  - {name: who, learn: by-system}"))
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert [judge.notes for judge in open_judges(bench, RunFolder(tmp_path / "run"))] == [
        ("The baseline bag-of-words is left out: it needs scikit-learn (the extra `tuning`).",)
    ]


def crowd(metric: str, folder: Path, data: Path) -> jb.Study:
    folder.mkdir(exist_ok=True)
    crowd_tables(data, folder)
    table = {"query_risk": "expert-queries.csv", "response_type": "expert-responses.csv"}[metric]
    (folder / "bench.yaml").write_text(
        f"name: crowd\nrubric: medical-query-risk\nmetrics: [{metric}]\ndata: {table}\n"
        "judges: [{name: bow, learn: bag-of-words}, {name: who, learn: by-system}]\n"
    )
    return jb.run(folder / "bench.yaml", folder / "run")


@pytest.mark.long
@pytest.mark.parametrize(
    ("metric", "n", "accuracy", "balanced"),
    [("query_risk", 1417, 0.816, 0.319), ("response_type", 3697, 0.712, 0.62)],
)
def test_bag_of_words_of_the_crowd_data(
    shared_data: Path, tmp_path: Path, metric: str, n: int, accuracy: float, balanced: float
) -> None:
    """Measured independently: .816 and .319 of query risk, .698 to .727 of response type."""
    study = crowd(metric, tmp_path, shared_data)
    (one,) = study.rubric.metrics
    truth = study.humans[one.id].truth
    labelled = truth >= 0
    assert labelled.sum() == n
    judged = study.judged(named(study, "bow"), one)[labelled]
    assert accuracy_score(truth[labelled], judged) == pytest.approx(accuracy, abs=0.025)
    assert balanced_accuracy_score(truth[labelled], judged) == pytest.approx(balanced, abs=0.05)
