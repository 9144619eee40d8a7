"""Classifiers and regressors that somebody trained give the numbers that transformers gives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_case import write_notes
from tiny_encoder import tiny_bert

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.records import Answer
from judgebench.scorers.config import scorer_config
from judgebench.scorers.judges import open_scorer
from judgebench.scorers.scorer import EMPTY_ANSWER, NO_REFERENCE, KeptScores, Scorer

pytestmark = pytest.mark.transformers
torch = pytest.importorskip("torch", reason="needs the extra `semantic`")
transformers = pytest.importorskip("transformers", reason="needs the extra `semantic`")

_WORDS = "the patient takes aspirin daily and no other drug has pain in left knee why ? ."
ANSWERS = [
    Answer("1", "no pain", "why ?", reference="pain in left knee"),
    Answer("2", "the patient takes aspirin", "the drug ?", reference="the patient takes no drug"),
    Answer("3", "pain " * 90, "why ?", reference="knee"),
    Answer("4", "", "why ?", reference="knee"),
    Answer("5", "knee", "why ?"),
    Answer("6", "{reference}", reference='["knee", "no knee"]'),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder without a head."""
    return tiny_bert(tmp_path_factory.mktemp("models") / "bert", _WORDS.split())


@pytest.fixture
def model(folder: Path, tmp_path: Path) -> Any:
    """Adds a head of so many labels, drawn at random, to the encoder."""

    def made(labels: int, **config: Any) -> Path:
        place = tmp_path / f"model{labels}"
        torch.manual_seed(labels)
        head = transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, num_labels=labels, **config
        )
        torch.nn.init.normal_(head.classifier.weight)
        head.save_pretrained(place)
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(place)
        return place

    return made


def opened(how: dict[str, Any]) -> Scorer:
    return open_scorer(scorer_config({"scorer": "learned", **how}), ANSWERS, Path())


def logits(place: Path, *texts: str) -> np.ndarray:
    """(labels,): what transformers says of one input."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(place).eval()
    read = transformers.AutoTokenizer.from_pretrained(place)
    with torch.inference_mode():
        cut = {"truncation": True, "max_length": 64, "return_tensors": "pt"}
        return model(**read(*texts, **cut)).logits[0].double().numpy()


def test_one_number_is_the_score_of_reference_and_answer(model: Any) -> None:
    place = model(1)
    found = opened({"model": str(place)}).score(ANSWERS)
    for answer, one in zip(ANSWERS[:3], found, strict=False):
        expected = logits(place, answer.reference or "", answer.text)[0]
        assert one.value == pytest.approx(expected, abs=1e-5)
    assert found[5].value == pytest.approx(
        max(logits(place, one, "{reference}")[0] for one in ("knee", "no knee")), abs=1e-5
    )  # and what looks like a field in an answer is none
    cut = "the tail of what the model reads is cut"
    assert [one.reason for one in found] == ["", "", cut, EMPTY_ANSWER, NO_REFERENCE, ""]


def test_it_may_read_the_question_and_no_reference(model: Any) -> None:
    place = model(1)
    found = opened({"model": str(place), "reads": ["question", "answer"]}).score(ANSWERS)
    assert found[0].value == pytest.approx(logits(place, "why ?", "no pain")[0], abs=1e-5)
    assert found[4].value is not None
    assert [one.reason for one in found[3:]] == [EMPTY_ANSWER, "", "the question is empty"]


def test_of_several_labels_it_is_the_probability_of_one(model: Any) -> None:
    place = model(3, id2label={0: "bad", 1: "fair", 2: "good"})
    raw = logits(place, "pain in left knee", "no pain")
    p = np.exp(raw) / np.exp(raw).sum()
    for how, expected in (({"label": "good"}, p[2]), ({"label": "bad"}, p[0])):
        (one, *_) = opened({"model": str(place), **how}).score(ANSWERS[:1])
        assert one.value == pytest.approx(expected, abs=1e-6)
    message = "label: is not a label of the model; found great; allowed: bad, fair, good"
    with pytest.raises(SetupError, match=message):
        opened({"model": str(place), "label": "great"})


def test_no_answer_changes_the_score_of_another(model: Any) -> None:
    scorer = opened({"model": str(model(1))})
    together = scorer.score(ANSWERS)
    for answer, one in zip(ANSWERS, together, strict=True):
        (alone,) = scorer.score([answer])
        assert (alone.status, alone.reason) == (one.status, one.reason)
        assert (alone.value is None) == (one.value is None)
        assert alone.value is None or alone.value == pytest.approx(one.value, abs=1e-5)
    assert scorer.score([ANSWERS[3]])[0].value is None


def test_a_model_may_lack_a_padding_token(folder: Path, tmp_path: Path) -> None:
    read = transformers.AutoTokenizer.from_pretrained(folder)
    read.pad_token = None
    config = transformers.GPT2Config(
        vocab_size=len(read), n_embd=16, n_layer=1, n_head=2, n_positions=64, num_labels=1,
        bos_token_id=2, eos_token_id=3,
    )  # fmt: skip
    torch.manual_seed(1)
    transformers.GPT2ForSequenceClassification(config).save_pretrained(tmp_path)
    read.save_pretrained(tmp_path)
    found = opened({"model": str(tmp_path), "reads": ["answer"]}).score(ANSWERS[:2])
    expected = [logits(tmp_path, answer.text)[0] for answer in ANSWERS[:2]]
    assert [one.value for one in found] == pytest.approx(expected, abs=1e-5)


def test_a_number_that_is_none_is_told(model: Any) -> None:
    place = model(1)
    broken = transformers.AutoModelForSequenceClassification.from_pretrained(place)
    torch.nn.init.constant_(broken.classifier.bias, float("nan"))
    broken.save_pretrained(place)
    (one,) = KeptScores(opened({"model": str(place)}), None).of(ANSWERS[:1])
    assert (one.value, one.reason) == (None, "its score is no finite number")


def test_an_encoder_without_a_head_is_refused(folder: Path) -> None:
    """transformers would draw one at random and say so in a log."""
    scorer = opened({"model": str(folder), "label": "LABEL_0"})
    with pytest.raises(SetupError, match="holds no classifier or regressor"):
        scorer.score(ANSWERS)


def test_errors_name_the_setting(model: Any, tmp_path: Path) -> None:
    one = str(model(1))
    wrong = [
        ({"model": str(tmp_path / "x")}, "model: no such folder"),
        ({"model": one, "label": "good"}, "label: is not a label of the model; found good"),
    ]
    for how, message in wrong:
        with pytest.raises(SetupError, match=message):
            opened(how)


def test_a_run_resumes_without_the_model(model, tmp_path, monkeypatch) -> None:
    place = model(1)
    more = "scorers:\n  - {scorer: learned, model: ../model1, reads: [answer]}\n"
    bench, _ = write_notes(tmp_path / "bench", more, questions=2)
    study = jb.run(bench, tmp_path / "run")
    found = scores_of(study)
    expected = [logits(place, answer.text)[0] for answer in study.answers]
    assert found == pytest.approx(expected, abs=1e-5)
    monkeypatch.delattr("judgebench.scorers.model_scorers.open_encoder")  # nothing is scored again
    assert scores_of(jb.run(bench, tmp_path / "run")).tolist() == found.tolist()


def scores_of(study: jb.Study) -> np.ndarray:
    (scored,) = (one for one in study.beside["scorers"].runs if one.name == "learned")
    return study.scores(scored.judged)
