"""The metrics of Arias-Duart et al. (2025, section 2.2 and Appendix D) in one table."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tiny_encoder import tiny_bert
from tiny_model import write_tiny_model

import judgebench as jb

pytestmark = pytest.mark.transformers
transformers = pytest.importorskip("transformers", reason="needs the extra `semantic`")
for package in ("ot", "rouge_score", "sacrebleu"):
    pytest.importorskip(package, reason="needs the extras `scorers` and `semantic`")

TABLE = pd.DataFrame(
    {
        "question": ["what number of words", "what of the matter", "about system and user"],
        "answer": ["few words about the matter", "kind words", "an insult to the model"],
        "reference": ["few words of the matter", "few kind words", "model and user"],
        "points": [4, 5, 1],
    }
)
PERPLEXITIES = ("bits-per-byte", "byte-perplexity", "word-perplexity")


def test_every_metric_has_a_score_for_every_answer(tmp_path: Path) -> None:
    words = " ".join(TABLE[["answer", "reference"]].to_numpy().ravel()).split()
    encoder = tiny_bert(tmp_path / "encoder", words)
    regressor = tmp_path / "bleurt"
    with_head = transformers.BertForSequenceClassification.from_pretrained(encoder, num_labels=1)
    with_head.save_pretrained(regressor)
    transformers.AutoTokenizer.from_pretrained(encoder).save_pretrained(regressor)
    backend = f"transformers:{write_tiny_model(tmp_path / 'model')}"
    relaxed: dict[str, Any] = {
        "of": "reference",
        "samples": 2,
        "best": 1,
        "max_tokens": 8,
        "stride": 4,
    }
    scorers: list[Any] = [
        "rouge-1", "rouge-2", "rouge-l", "bleu",
        {"scorer": "bertscore", "model": str(encoder)},
        {"scorer": "moverscore", "model": str(encoder)},
        {"scorer": "learned", "name": "bleurt", "model": str(regressor), "better": "higher"},
        {"scorer": "column", "name": "prometheus", "from": "points", "better": "higher"},
        *({"scorer": name, "backend": backend} for name in PERPLEXITIES),
        {"scorer": "relaxed-perplexity", "backend": backend, **relaxed},
    ]  # fmt: skip
    scores = jb.score(TABLE, scorers).to_frame()
    names = [how if isinstance(how, str) else how.get("name", how["scorer"]) for how in scorers]
    assert len(names) == 12
    assert scores[names].notna().all().all()
    from_bits = 2 ** scores["bits-per-byte"].to_numpy()
    assert scores["byte-perplexity"].to_numpy() == pytest.approx(from_bits)
