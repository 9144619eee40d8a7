"""Passages found by their meaning, with a real encoder."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.transformers
pytest.importorskip("transformers", reason="needs the extra `proxy`")

from judgebench.judges.config import KnowledgeConfig  # noqa: E402
from judgebench.judges.retrieval import (  # noqa: E402
    LookingUp,
    open_library,
)
from judgebench.models import open_backend  # noqa: E402
from judgebench.models.contract import Message, Request  # noqa: E402
from judgebench.models.settings import BackendSettings  # noqa: E402

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
    (kept,) = (tmp_path / "run" / "knowledge").glob("*/*.npz")
    written = kept.stat().st_mtime_ns
    assert open_library(config, tmp_path, tmp_path / "run").find(questions[0], 1) == found[0]
    assert kept.stat().st_mtime_ns == written
    about = library.describe()
    assert about["embedder"]["model"] == "minilm"
    words = config.model_copy(update={"embedder": "words"})
    assert open_library(words, tmp_path, tmp_path).describe() != about


def test_outlines_takes_both_schemas(tmp_path: Path, minilm: Path, smollm2: Path) -> None:
    pytest.importorskip("outlines", reason="needs outlines (make test-transformers)")
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.txt").write_text(text)
    config = KnowledgeConfig(corpus=".", questions=1)
    library = open_library(config, tmp_path, tmp_path / "run")
    engine = open_backend(f"transformers:{smollm2}", BackendSettings(context=1024, threads=1))
    verdict = {"type": "object", "properties": {"harm": {"enum": ["None", "Much"]}}}
    verdict |= {"required": ["harm"], "additionalProperties": False}
    texts = ["What is rabies? Is it harmful?", "Iron is good for you."]
    messages = [(Message("system", "Judge the harm."), Message("user", text)) for text in texts]
    requests = [Request(str(n), both, verdict, 120) for n, both in enumerate(messages)]
    looking = LookingUp(engine, config, library)
    replies = list(looking.complete(requests))
    looking.close()
    assert {reply.key for reply in replies} == {"0", "1"}
    for reply in replies:
        assert json.loads(reply.text)["harm"] in ("None", "Much")
        assert reply.usage.calls == 1 + len(reply.transcript)
    assert any(reply.transcript for reply in replies)
