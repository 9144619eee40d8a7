from __future__ import annotations

from pathlib import Path

from chance_encoder import chance_encoder

from judgebench.ranking.proxy.passages import PassageRetriever
from judgebench.ranking.proxy.task import PassagesConfig
from judgebench.retrieval.vectors import Corpus, Document


def test_many_queries_are_answered_in_their_order(tmp_path: Path) -> None:
    held = Corpus(tuple(Document(str(i), f"text {i}") for i in range(7)))
    fake = chance_encoder(tmp_path / "encoder")
    config = PassagesConfig(corpus="-", documents=1, passages=1, characters=500)
    retriever = PassageRetriever(config, held, tmp_path / "index", fake)
    queries = [held.documents[i % 7].text for i in range(150)]
    assert retriever.retrieve_all(queries) == [[query] for query in queries]
    assert retriever.retrieve_all([]) == []
