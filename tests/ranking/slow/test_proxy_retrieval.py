"""The retrieval chain with a real encoder and, where pylate is there, ColBERT."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.transformers
pytest.importorskip("transformers", reason="needs the extra `proxy`")

from judgebench.errors import JudgebenchError, SetupError  # noqa: E402
from judgebench.judges.retrieval import Corpus  # noqa: E402
from judgebench.models.checkpoints import (  # noqa: E402
    Encoder,
    find_encoder,
    open_encoder,
)
from judgebench.ranking.examples import (  # noqa: E402
    ColBERTReranker,
    PassageRetriever,
)
from judgebench.ranking.task import PassagesConfig  # noqa: E402
from judgebench.text import passages_of  # noqa: E402

TEXTS = [
    "Ticks live in tall grass and in leaf litter. Wear long trousers when you walk there. "
    "A tick that is found on the skin should be pulled out with fine tweezers, straight up and "
    "without a twist. Wash the bite with soap and water afterwards. A red ring around the bite in "
    "the weeks that follow may be a sign of Lyme disease, which is treated with antibiotics.",
    "Influenza is a contagious illness of the airways. It brings fever, cough and aching muscles. "
    "A vaccination every autumn protects against severe courses of the disease.",
    "Rabies is passed on by the bite of a sick animal, most often of a dog or a bat. "
    "Without vaccination after the bite it is nearly always fatal.",
    "Iron is found in meat, beans and lentils. A lack of iron makes people pale and tired.",
    "Regular walks and swimming strengthen the heart and lower the blood pressure.",
    "Sugar and soft drinks are the main cause of tooth decay. Brush twice a day with fluoride.",
    "Poor sleep has many causes. A dark, cool bedroom and fixed hours help most people.",
]
CORPUS = Corpus(tuple(TEXTS))


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    try:
        return open_encoder("minilm")
    except JudgebenchError as error:
        pytest.skip(f"the weights of minilm cannot be had: {error}")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the embeddings of CORPUS are kept between tests."""
    return tmp_path_factory.mktemp("embeddings")


@pytest.fixture(scope="module")
def colbert(minilm: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """ColBERT weights made of minilm: a projection at random, which keeps angles roughly."""
    models = pytest.importorskip("pylate.models", reason="needs the extra `colbert`")
    import torch

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("weights") / "colbert"
    models.ColBERT(str(minilm.folder), device="cpu").save_pretrained(str(folder))
    yield folder
    shutil.rmtree(folder)


def retriever(encoder: Encoder, folder: Path, **settings: Any) -> PassageRetriever:
    return PassageRetriever(PassagesConfig(corpus="-", **settings), CORPUS, folder, encoder)


def test_passages_come_from_the_nearest_documents(minilm: Encoder, kept: Path) -> None:
    retrieve = retriever(minilm, kept, documents=2, characters=100)
    queries = ["How is a tick removed from the skin?", "Does the flu vaccine help?"]
    ticks, flu = retrieve.retrieve_all(queries)
    assert "pulled out" in ticks[0]
    assert "vaccination" in flu[0]
    assert set(ticks) <= {c for text in TEXTS for c in passages_of(text, 100)}
    assert len(ticks) == len(flu) == 3
    assert all(len(passage) <= 100 for passage in ticks + flu)
    # Only two documents are read for each.
    assert sum(any(p in passages_of(t, 100) for p in ticks) for t in TEXTS) <= 2


def test_the_manifest_says_what_the_passages_rest_on(minilm: Encoder, kept: Path) -> None:
    about = json.loads(json.dumps(retriever(minilm, kept).describe()))
    assert about["corpus"]["documents"] == 7
    assert about["encoder"] == {"name": "minilm", "max_tokens": 512}
    assert about["reranker"]["name"] == "sentence encoder, no late interaction"
    assert (about["documents"], about["passages"], about["characters"]) == (5, 3, 300)


LONG = "A woman of 54 with a cough and a fever comes to the clinic. " * 12 + "Was it a tick?"


def test_scores_of_late_interaction_are_those_of_the_formula(colbert: Path) -> None:
    reranker = ColBERTReranker(str(colbert))
    queries = ["How is a tick removed?", LONG, "How is a tick removed?"]
    passages = [TEXTS, TEXTS[:2], TEXTS[3:4]]
    asked = reranker.token_vectors(queries, queries=True)
    for query, own, scores in zip(asked, passages, reranker.scores(queries, passages), strict=True):
        held = reranker.token_vectors(own)
        expected = [(query @ passage.T).max(axis=1).sum() for passage in held]
        assert scores == pytest.approx(np.array(expected), rel=1e-4)
        assert np.linalg.norm(query, axis=1) == pytest.approx(1, abs=1e-4)
    assert reranker.scores(queries, passages)[0].argmax() == 0


def test_a_long_query_is_read_to_its_end(colbert: Path) -> None:
    reranker = ColBERTReranker(str(colbert))
    short, long, longest = reranker.token_vectors(["Ticks?", LONG, LONG * 9], queries=True)
    assert len(short) == 32  # filled up with mask tokens, as the weights were trained
    assert 150 < len(long) < 512
    assert len(longest) == 512
    again, *_ = reranker.token_vectors(["Ticks?"], queries=True)
    assert again == pytest.approx(short, abs=1e-5)


def test_weights_without_a_projection_are_refused(colbert: Path, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="holds no projection for late interaction"):
        ColBERTReranker(str(find_encoder("minilm")))
    with pytest.raises(SetupError, match="is no folder of weights and no hub name"):
        ColBERTReranker(str(tmp_path))
    torn = tmp_path / "torn"
    shutil.copytree(colbert, torn)
    (torn / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(SetupError, match="cannot be loaded"):
        ColBERTReranker(str(torn))
