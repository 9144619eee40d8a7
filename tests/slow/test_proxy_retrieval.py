"""The retrieval chain with real FAISS, a real encoder and, where pylate is there, ColBERT."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.transformers
pytest.importorskip("faiss", reason="needs the extra `proxy`")
pytest.importorskip("transformers", reason="needs the extra `proxy`")

from judgebench.errors import JudgebenchError, SetupError  # noqa: E402
from judgebench.ranking.proxy.config import PassagesConfig  # noqa: E402
from judgebench.ranking.proxy.encoder import Encoder, find_encoder, open_encoder  # noqa: E402
from judgebench.ranking.proxy.retrieval.chain import PassageRetriever  # noqa: E402
from judgebench.ranking.proxy.retrieval.corpus import Corpus, Document, read_corpus  # noqa: E402
from judgebench.ranking.proxy.retrieval.index import open_index  # noqa: E402
from judgebench.ranking.proxy.retrieval.late_interaction import ColBERTReranker  # noqa: E402
from judgebench.stress.probes.arguments import Instance, control_case, passages_of  # noqa: E402

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
CORPUS = Corpus([Document(str(i), text) for i, text in enumerate(TEXTS)], duplicates=2)


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


# --- the index -----------------------------------------------------------------------------------


class WholeTokenizer:
    """Everything fits."""

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        return {"offset_mapping": []}

    def num_special_tokens_to_add(self) -> int:
        return 2


@dataclass
class FakeEncoder:
    """Every text has a vector of chance, which its own words seed."""

    folder: Path
    tokenizer: Any = field(default_factory=WholeTokenizer)
    max_tokens: int = 8
    name: str = "fake"
    embedded: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> Any:
        self.embedded += texts
        rows = [np.random.default_rng(list(t.encode())).normal(size=16) for t in texts]
        vectors = np.array(rows, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def fake(tmp_path: Path) -> FakeEncoder:
    folder = tmp_path / "encoder"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    return FakeEncoder(folder)


def documents(n: int) -> list[Document]:
    return [Document(str(i), f"text {i}") for i in range(n)]


def test_the_nearest_documents_are_those_of_all_inner_products(fake: Any, tmp_path: Path) -> None:
    held = documents(200)
    queries = [f"query {i}" for i in range(30)]
    scores, places = open_index(held, fake, tmp_path / "index").search(queries, 7)
    cosines = fake.embed(queries) @ fake.embed([d.text for d in held]).T
    assert places.tolist() == np.argsort(-cosines, axis=1)[:, :7].tolist()
    assert scores == pytest.approx(-np.sort(-cosines, axis=1)[:, :7], abs=1e-5)


def test_no_more_documents_are_found_than_there_are(fake: Any, tmp_path: Path) -> None:
    scores, places = open_index(documents(3), fake, tmp_path / "index").search(["query"], 5)
    assert sorted(places[0].tolist()) == [0, 1, 2]
    assert scores.shape == (1, 3)


def test_a_second_opening_embeds_nothing_and_a_change_everything(fake: Any, tmp_path: Path) -> None:
    held, folder = documents(5), tmp_path / "run" / "index"
    first = open_index(held, fake, folder).search(["query"], 5)

    def embedded(documents: Sequence[Document], encoder: Any) -> int:
        encoder.embedded.clear()
        open_index(documents, encoder, folder)
        return len(encoder.embedded)

    assert embedded(held, fake) == 0
    again = open_index(held, fake, folder).search(["query"], 5)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert embedded(documents(6), fake) == 6
    assert embedded(documents(6), replace(fake, max_tokens=16)) == 6
    assert embedded(documents(6), fake) == 6
    (fake.folder / "model.safetensors").write_bytes(b"others")
    assert embedded(documents(6), fake) == 6
    (folder / "embeddings.npy").write_bytes(b"torn")
    assert embedded(documents(6), fake) == 6
    assert embedded(documents(6), fake) == 0
    assert sorted(p.name for p in folder.iterdir()) == ["embeddings.json", "embeddings.npy"]


# --- the chain -----------------------------------------------------------------------------------


def retriever(encoder: Encoder, folder: Path, **settings: Any) -> PassageRetriever:
    return PassageRetriever(PassagesConfig(corpus="-", **settings), CORPUS, folder, encoder)


def test_passages_come_from_the_nearest_documents_the_best_first(
    minilm: Encoder, kept: Path
) -> None:
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
    assert retrieve(queries[0]) == ticks


def test_the_chain_serves_as_the_control_case_passages(minilm: Encoder, kept: Path) -> None:
    retrieve = retriever(minilm, kept, documents=1, passages=1)
    asked = [Instance("a", "Is rabies deadly?", "yes", ""), Instance("b", "Iron?", "no", "")]
    texts = control_case("passages", asked, 0, retrieve)
    assert texts == [TEXTS[2], TEXTS[3]]


def test_many_queries_are_answered_in_their_order(fake: Any, tmp_path: Path) -> None:
    retrieve = retriever(fake, tmp_path, documents=1, passages=1, characters=500)
    found = retrieve.retrieve_all([TEXTS[i % 7] for i in range(150)])
    assert found == [[TEXTS[i % 7]] for i in range(150)]
    assert retrieve.retrieve_all([]) == []


def test_the_manifest_says_what_the_passages_rest_on(minilm: Encoder, kept: Path) -> None:
    about = json.loads(json.dumps(retriever(minilm, kept).describe()))
    assert about["corpus"]["documents"] == 7
    assert (about["corpus"]["duplicates"], about["corpus"]["empty"]) == (2, 0)
    assert about["encoder"] == {"name": "minilm", "max_tokens": 512}
    assert about["reranker"]["name"] == "sentence encoder, no late interaction"
    assert (about["documents"], about["passages"], about["characters"]) == (5, 3, 300)


def test_real_questions_find_their_own_answers(
    minilm: Encoder, tmp_path: Path, shared_data: Path
) -> None:
    path = shared_data / "medquad-cdc" / "medquad_cdc_270.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if 60 < len(row["answer"]) < 300]
    own = {row["answer"].strip(): row["question"] for row in rows}
    held = [d for d in read_corpus(path, "answer") if d.text in own]
    config = PassagesConfig(corpus="-", documents=3, passages=1, characters=300)
    found = PassageRetriever(config, held, tmp_path, minilm).retrieve_all(
        [own[d.text] for d in held]
    )
    hits = [f == passages_of(d.text)[:1] for d, f in zip(held, found, strict=True)]
    # 22 of 28 at the time of writing; chance would find one.
    assert len(held) == 28
    assert sum(hits) > 14


# --- late interaction ----------------------------------------------------------------------------

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


def test_the_chain_reranks_by_late_interaction(colbert: Path, minilm: Encoder, kept: Path) -> None:
    retrieve = retriever(minilm, kept, late_interaction=str(colbert), characters=120)
    assert "tweezers" in " ".join(retrieve("How is a tick removed from the skin?"))
    about = json.loads(json.dumps(retrieve.describe()))["reranker"]
    assert about["name"] == "late interaction (ColBERT)"
    assert about["model"] == "colbert"


def test_the_weights_of_the_projection_are_part_of_what_is_told(
    colbert: Path, tmp_path: Path
) -> None:
    other = tmp_path / "colbert"
    shutil.copytree(colbert, other)
    assert ColBERTReranker(str(other)).describe() == ColBERTReranker(str(colbert)).describe()
    config = json.loads((other / "1_Dense" / "config.json").read_text())
    (other / "1_Dense" / "config.json").write_text(json.dumps(config, indent=8))
    assert ColBERTReranker(str(other)).describe() != ColBERTReranker(str(colbert)).describe()


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
