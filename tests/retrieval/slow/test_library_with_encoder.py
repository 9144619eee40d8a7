"""Passages found by their meaning, with a real encoder."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.transformers
pytest.importorskip("transformers", reason="needs the extra `proxy`")

from judgebench.judges.config import KnowledgeConfig  # noqa: E402
from judgebench.judges.knowledge import open_library  # noqa: E402

TEXTS = {
    "rabies": "Rabies is passed on by the bite of a sick animal. It is nearly always fatal.",
    "iron": "Beans and lentils hold much iron.",
    "sleep": "A dark, cool bedroom helps against poor sleep.",
}


def test_passages_are_found_by_meaning_and_vectors_are_kept(tmp_path: Path, minilm: Path) -> None:
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.txt").write_text(text)
    config = KnowledgeConfig(corpus=".", characters=200)
    library = open_library(config, tmp_path, tmp_path / "run")
    questions = ["Why am I tired in the morning?", "What may a dog give me?"]
    found = [library.find(question, 1) for question in questions]
    assert found == [(TEXTS["sleep"],), (TEXTS["rabies"],)]
    assert library.find("What may a dog give me?", 9, found[1])[-1] != TEXTS["rabies"]
    (kept,) = (tmp_path / "run" / "knowledge").glob("minilm-*/embeddings.npz")
    written = kept.stat().st_mtime_ns
    assert open_library(config, tmp_path, tmp_path / "run").find(questions[0], 1) == found[0]
    assert kept.stat().st_mtime_ns == written
    about = library.describe()
    assert about["embedder"]["model"] == "minilm"
    words = config.model_copy(update={"embedder": "words"})
    assert open_library(words, tmp_path, tmp_path).describe() != about
