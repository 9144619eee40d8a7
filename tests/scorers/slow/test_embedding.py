"""BERTScore is that of its library, MoverScore that of its paper; both by encoders that are small,
but real."""

import csv
import functools
import string
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import spearmanr
from tiny_encoder import tiny_bert, tiny_roberta

from judgebench.errors import SetupError
from judgebench.records import Answer, signature_of
from judgebench.scorers.config import scorer_config
from judgebench.scorers.judges import open_scorer
from judgebench.scorers.scorer import EMPTY_ANSWER, NO_REFERENCE, Scored, Scorer

pytestmark = pytest.mark.transformers
pytest.importorskip("transformers", reason="needs the extra `semantic`")
pytest.importorskip("ot", reason="needs the extra `semantic`")

from judgebench.models.checkpoints import Encoder  # noqa: E402
from judgebench.scorers.model_scorers import movers_distance  # noqa: E402

_WORDS = "the patient takes aspirin daily and no other drug she has pain in left knee ."
WORDS = _WORDS.split()
MOVER = {"scorer": "moverscore"}
NOTES = (
    ("The patient takes aspirin daily.", "She takes aspirin every day."),
    ("No allergies. BP 120/80.", "No known allergies; blood pressure 120/80."),
    ("Yes", "Yes."),
    ("Unaffordable électrocardiogram", "Chest X-ray was normal, no pneumothorax."),
    ("pain " * 700, "pain in the left knee"),
    ("No pain", "knee " * 700),
)
texts = st.one_of(
    st.sampled_from(["", " \n", "\u200b", "[SEP]", "zzz"]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=90).map(" ".join),
)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("encoders") / "bert", WORDS)


def opened(how: dict[str, object], pairs: Sequence[tuple[str, str | None]]) -> Scorer:
    return open_scorer(scorer_config(how), answers_of(pairs), Path())


def answers_of(pairs: Sequence[tuple[str, str | None]]) -> list[Answer]:
    return [Answer(f"i{n}", said, reference=true) for n, (said, true) in enumerate(pairs)]


def of(how: dict[str, object], pairs: Sequence[tuple[str, str | None]]) -> Sequence[Scored]:
    return opened(how, pairs).score(answers_of(pairs))


def library(encoder: Path, layer: int, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Precision, recall and F1 (3, pairs) as bert-score computes them."""
    bert_score = pytest.importorskip("bert_score", reason="bert-score is the oracle")
    scorer = bert_score.BERTScorer(str(encoder), num_layers=layer, device="cpu")
    scorer._tokenizer.model_max_length = min(scorer._tokenizer.model_max_length, 512)
    return np.stack(scorer.score(*map(list, zip(*pairs, strict=True))))


@pytest.mark.parametrize("layer", [6, 3])
def test_bertscore_is_that_of_the_library(minilm: Path, layer: int) -> None:
    expected = library(minilm, layer, NOTES)
    for row, measure in enumerate(("precision", "recall", "f1")):
        how = {"scorer": "bertscore", "model": str(minilm), "layer": layer, "measure": measure}
        found = of(how, NOTES)
        assert [one.value for one in found] == pytest.approx(expected[row], abs=1e-5)
        cut = "the tail of what the model reads is cut"
        assert [one.reason for one in found] == ["", "", "", "", cut, cut]


def test_byte_pairs_are_read_after_a_space_as_the_library_reads_them(tmp_path: Path) -> None:
    """Under transformers 5 the library forgets the space, unless the vocabulary brings it."""
    spaced, plain = (tiny_roberta(tmp_path / str(x), WORDS, x) for x in (True, False))
    pairs = [(said, true) for said, true in NOTES if len(said + true) < 100]
    how = {"scorer": "bertscore", "layer": 2}
    found = [one.value for one in of({**how, "model": str(spaced)}, pairs)]
    assert found == pytest.approx(library(spaced, 2, pairs)[2], abs=1e-5)
    assert [one.value for one in of({**how, "model": str(plain)}, pairs)] == found


def test_each_text_is_embedded_once(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    tokens = Encoder.tokens

    def counted(self: Encoder, texts: Sequence[str], layers: Sequence[int]):  # type: ignore[no-untyped-def]
        read.extend(texts)
        return tokens(self, texts, layers)

    monkeypatch.setattr(Encoder, "tokens", counted)
    pairs = [(f"{word} {system}", word) for system in ("pain", "knee") for word in WORDS]
    scorer = opened({"scorer": "bertscore", "model": str(bert)}, pairs)
    scorer.score(answers_of(pairs))
    assert len(read) == len(set(read)) == 3 * len(WORDS)


@settings(max_examples=30, deadline=None)
@given(pairs=st.lists(st.tuples(texts, texts), min_size=2, max_size=7))
@pytest.mark.parametrize("name", ["bertscore", "moverscore"])
def test_no_text_changes_the_score_of_another(bert, name, pairs) -> None:
    """Least of all an empty one; the corpus that words are weighed by is the same."""
    corpus = [(" ".join(WORDS[i : i + 4]), " ".join(WORDS[i : i + 5])) for i in range(12)]
    scorer = _kept_open(name, bert, tuple(corpus))
    answers = answers_of(pairs)
    together = scorer.score(answers)
    for answer, one in zip(answers, together, strict=True):
        (alone,) = scorer.score([answer])
        assert (alone.status, alone.reason) == (one.status, one.reason)
        if one.value is None:
            assert alone.value is None
        else:
            assert alone.value == pytest.approx(one.value, abs=1e-5)
            assert np.isfinite(one.value)
            assert one.value <= 1 + 1e-5
        if not answer.text.strip():
            assert one.reason == EMPTY_ANSWER
        elif not (answer.reference or "").strip():
            assert one.reason == NO_REFERENCE


@functools.cache
def _kept_open(name: str, bert: Path, corpus: tuple) -> Scorer:  # type: ignore[type-arg]
    return opened({"scorer": name, "model": str(bert)}, corpus)


@pytest.mark.parametrize("name", ["bertscore", "moverscore"])
def test_what_has_no_score_says_why(minilm: Path, name: str) -> None:
    pairs = [("", "a"), ("a", None), ("a", " "), ("\u200b", "a"), ("a", "\u200b"), ("a b", "b c")]
    found = of({"scorer": name, "model": str(minilm)}, pairs)
    assert [one.reason for one in found] == [
        EMPTY_ANSWER, NO_REFERENCE, NO_REFERENCE, "the encoder reads no word of the answer",
        "the encoder reads no word of the reference", "",
    ]  # fmt: skip
    assert [one.value is None for one in found] == [True] * 5 + [False]


def test_the_signature_changes_with_all_that_matters(bert: Path, minilm: Path) -> None:
    pairs = [("knee pain", "pain")]
    ways = [
        {"scorer": "bertscore", "model": str(bert)},
        {"scorer": "bertscore", "model": str(minilm)},
        {"scorer": "bertscore", "model": str(bert), "layer": 1},
        {"scorer": "bertscore", "model": str(bert), "measure": "recall"},
        {"scorer": "moverscore", "model": str(bert)},
    ]
    scorers = [opened(how, pairs) for how in ways]
    other = opened(ways[4], [("knee", "pain")])  # the words' weights are of other texts
    assert len({signature_of(one.about) for one in [*scorers, other]}) == 6
    assert signature_of(opened(ways[0], pairs).about) == signature_of(scorers[0].about)
    assert scorers[0].about["layers"] == [2]
    assert scorers[0].about["idf"] is False


def test_errors_name_the_setting(bert: Path, tmp_path: Path) -> None:
    wrong = [
        (
            {"scorer": "bertscore", "model": str(bert), "layer": 3},
            "layer: the encoder .* has 2 layers; found 3",
        ),
        ({"scorer": "bertscore", "model": str(tmp_path / "x")}, "model: no such folder"),
    ]
    for how, message in wrong:
        with pytest.raises(SetupError, match=message):
            opened(how, [("a", "b")])


def test_the_distance_is_the_least_effort() -> None:
    """That of the linear program, solved by scipy."""
    rng = np.random.default_rng(5)
    for n, m in ((1, 1), (1, 4), (3, 5), (6, 6)):
        x, y = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
        a, b = rng.random(n) + 0.1, rng.random(m) + 0.1
        cost = np.linalg.norm(x[:, None] - y[None], axis=-1)
        rows, columns = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
        mass = np.concatenate([a / a.sum(), b / b.sum()])
        least = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=mass).fun
        assert movers_distance(x, a, y, b) == pytest.approx(least, abs=1e-8)


def test_moverscore_passes_over_what_is_in_all_texts(bert: Path) -> None:
    corpus = [("knee .", "pain"), ("pain", "knee"), ("drug", "drug")]
    found = of({"scorer": "moverscore", "model": str(bert)}, corpus)
    assert found[2].value == pytest.approx(1, abs=1e-6)
    (same,) = of({"scorer": "moverscore", "model": str(bert)}, [("knee", "pain")])
    assert same.reason == "every word of the answer is in all texts: none has a weight"


def test_moverscore_word_by_word(minilm: Path) -> None:
    """The same by loops over the words of one text after the other, without padding."""
    pairs = [(said[:200], true[:200]) for said, true in NOTES]
    found = [one.value for one in of({"scorer": "moverscore", "model": str(minilm)}, pairs)]
    corpora = zip(*pairs, strict=True)
    weights = [rarities(minilm, sorted(set(texts))) for texts in corpora]
    for (said, true), value in zip(pairs, found, strict=True):
        sides = zip((said, true), weights, strict=True)
        moved = movers_distance(*[x for side in sides for x in plain(minilm, *side, 5, 1)])
        assert value == pytest.approx(1 - moved, abs=1e-5)


@functools.cache
def loaded(folder: Path) -> tuple:  # type: ignore[type-arg]
    import transformers

    read = transformers.AutoTokenizer.from_pretrained(folder)
    return read, transformers.AutoModel.from_pretrained(folder).eval()


def rarities(folder: Path, texts: Sequence[str]) -> Callable[[str], float]:
    read, _ = loaded(folder)
    within = [{"[CLS]", *read.tokenize(text), "[SEP]"} for text in texts]
    return lambda piece: np.log((len(texts) + 1) / (sum(piece in one for one in within) + 1))


def plain(
    folder: Path, text: str, weight: Callable[[str], float], layers: int, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and weights of the n-grams of a text."""
    import torch

    read, model = loaded(folder)
    inputs = read(text, return_tensors="pt")
    with torch.inference_mode():
        hidden = model(**inputs, output_hidden_states=True).hidden_states[-layers:]
    words = []
    for place, piece in enumerate(["[CLS]", *read.tokenize(text), "[SEP]"]):
        if piece.startswith("##") or piece in string.punctuation:
            continue
        rows = np.stack([x[0, place].numpy() / np.linalg.norm(x[0, place]) for x in hidden])
        words.append((np.concatenate([rows.min(0), rows.mean(0), rows.max(0)]), weight(piece)))
    found = []
    for start in range(len(words) - n + 1):
        total = sum(w for _, w in words[start : start + n])
        if total > 0:
            vector = sum(w * v for v, w in words[start : start + n])
            found.append((vector / np.linalg.norm(vector), total))
    return np.stack([v for v, _ in found]), np.array([w for _, w in found])


def test_notes_of_conversations_against_people(shared_data: Path, minilm: Path) -> None:
    """Spearman with people's rates: that of BERTScore as measured once with bert-score 0.3.13 and
    this encoder (README of mts-dialog-scores). Neither tells hallucinations."""
    tables = (
        csv.DictReader(
            (shared_data / "mts-dialog-scores" / f"MTS-Dialog-{name}.csv").open(
                encoding="utf-8-sig", newline=""
            )
        )
        for name in ("Automatic-Summaries-ValidationSet", "Manual-Scores4CorrelationStudy")
    )
    rows = [{**note, **said} for note, said in zip(*tables, strict=True)]
    pairs = [(row["Automatic Summary"], row["Reference Summary"]) for row in rows]
    rates = {c: [float(row[c]) for row in rows] for c in ("OmissionRate", "HallucinationRate")}
    for how, omitted in (({"scorer": "bertscore", "layer": 6}, -0.35), (MOVER, -0.52)):
        scores = [one.value for one in of({"model": str(minilm), **how}, pairs)]
        rho = {column: spearmanr(scores, rate).statistic for column, rate in rates.items()}
        assert rho["OmissionRate"] == pytest.approx(omitted, abs=0.005)
        assert abs(rho["HallucinationRate"]) < 0.17
