"""The quality classifier finds what is planted, and says where it may know the author alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from judgebench.cli.app import app
from judgebench.errors import SetupError
from judgebench.tuning.quality import Classifier, in_words

FILLER = np.array([f"filler{n}" for n in range(400)])


def items(n: int, said: str, teacher: str, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "item_id": f"{seed}-{k}", "question": f"What of matter {k % 15} {k % 15}?",
            "system": "alexa", "text": " ".join(rng.choice(FILLER, 12)), "labels": {"risk": "Low"},
            "rationale": f"{said} {' '.join(rng.choice(FILLER, 6))}", "teacher": {"name": teacher},
        }
        for k in range(n)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def planted() -> Classifier:
    """Both teachers write good and bad reasons."""
    good = items(24, "the dose is right", "gpt", 1) + items(24, "the dose is right", "chat", 2)
    bad = items(18, "who knows anyway", "gpt", 3) + items(24, "who knows anyway", "chat", 4)
    return Classifier(good, bad)


@pytest.fixture(scope="module")
def authorship() -> Classifier:
    """One teacher's items are good and the other's bad, and each has a way of speaking."""
    return Classifier(items(30, "in summary then", "gpt", 5), items(30, "well you see", "chat", 6))


def test_a_planted_difference_is_found(planted: Classifier) -> None:
    found = planted.measured()
    values = dict(zip(*found.to_frame()[["statistic", "value"]].T.to_numpy(), strict=True))
    assert values["classifier"] > 0.95
    assert values["unseen"] > 0.95
    assert values["author"] < 0.65
    assert not any("Not shown" in line for line in in_words(found))
    assert found.to_frame()["n"].tolist() == [90] * 5


def test_what_knows_the_author_alone_is_told(authorship: Classifier) -> None:
    found = authorship.measured()
    assert found.find("classifier").value == found.find("author").value == 1.0
    assert found.find("unseen").value is None
    said = "\n".join(in_words(found))
    assert "Not shown to know more than the teacher. A classifier that learns “this teacher" in said


def test_noise_teaches_nothing() -> None:
    found = Classifier(items(30, "so", "gpt", 7), items(30, "so", "gpt", 8)).measured()
    low = found.find("classifier").low
    assert low is not None
    assert low < 0.5 + 0.1
    assert "Not shown to know more than the system." in in_words(found)[-1]


def test_the_out_of_fold_sides_are_those_of_scikit_learn(planted: Classifier) -> None:
    """Against a fit by hand with the parameters that the grid may choose."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.svm import SVC

    from judgebench.judges.retrieval import words_of

    good = items(24, "the dose is right", "gpt", 1) + items(24, "the dose is right", "chat", 2)
    bad = items(18, "who knows anyway", "gpt", 3) + items(24, "who knows anyway", "chat", 4)
    texts = np.array([f"{i['question']}\n{i['text']}\nrisk: Low\n{i['rationale']}"
                      for i in good + bad], dtype=object)  # fmt: skip
    y = np.repeat([1, 0], [48, 42])
    judged = np.flatnonzero(planted.folds.of == 0)
    train = planted.folds.training(judged)
    words = HashingVectorizer(tokenizer=words_of, token_pattern=None, binary=True)
    X, Z = words.transform(texts[train]), words.transform(texts[judged])
    own = [
        SVC(C=C, kernel=kernel).fit(X, y[train]).decision_function(Z)
        for C in (0.1, 1, 10) for kernel in ("linear", "rbf")
    ]  # fmt: skip
    assert any(np.allclose(planted.out_of_fold[judged], one) for one in own)


def write(path: Path, found: Sequence[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in found))
    return str(path)


def test_the_command_splits_a_set_the_same_way_each_time(tmp_path: Path) -> None:
    good = write(tmp_path / "good.jsonl", items(15, "the dose is right", "gpt", 1))
    bad = write(tmp_path / "bad.jsonl", items(15, "who knows anyway", "gpt", 3))
    others = items(8, "the dose is right", "gpt", 11) + items(5, "who knows anyway", "gpt", 12)
    others[0] = {**others[0], "question": "New?"}
    score = write(tmp_path / "set.jsonl", others)
    parts = []
    for name in ("one", "two"):
        to = [str(tmp_path / f"{name}.{part}.jsonl") for part in ("high", "low")]
        done = CliRunner().invoke(
            app, ["tune", "quality", good, bad, "--score", score, "--to", *to]
        )
        assert done.exit_code == 0, done.output
        assert f"8 items: {to[0]}\n5 items: {to[1]}\n" in done.output
        parts.append([Path(one).read_text() for one in to])
    assert parts[0] == parts[1]
    line = json.loads(parts[0][0].splitlines()[0])
    assert line["quality"]["encoder"] == "words"
    assert line["quality"]["p"] > 0.5
    assert {k: v for k, v in line.items() if k != "quality"} == others[0]


def test_what_was_learnt_from_is_scored_out_of_fold(planted: Classifier) -> None:
    own = items(24, "the dose is right", "gpt", 1)[:3]
    p = [item["quality"]["p"] for item in planted.scored([*own, *items(1, "so", "gpt", 20)])]
    side = planted.out_of_fold[:3]
    assert (np.argsort(p[:3]) == np.argsort(side)).all()
    assert p[3] < min(p[:3])
    assert planted.scored([]) == []


def test_too_little_is_said(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="there are 9 rejected items, and at least 10 are needed"):
        Classifier(items(20, "a", "gpt", 1), items(9, "b", "gpt", 2))
    one_question = [{**item, "question": "Why?"} for item in items(12, "b", "gpt", 2)]
    with pytest.raises(SetupError, match="are of too few questions to learn from"):
        Classifier(items(20, "a", "gpt", 1), one_question).measured()
    good = write(tmp_path / "good.jsonl", items(12, "a", "gpt", 1))
    done = CliRunner().invoke(app, ["tune", "quality", good, good, "--score", good])
    assert done.exit_code == 2
    assert "--score and --to are given together" in done.output
