"""BARTScore and BERTScore of rationales: any local encoder-decoder, held against transformers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_encoder import tiny_bert

import judgebench as jb

pytestmark = pytest.mark.transformers
torch = pytest.importorskip("torch", reason="needs the extra `semantic`")
transformers = pytest.importorskip("transformers", reason="needs the extra `semantic`")

WORDS = "the first answer is better because it names dose and warns of pain second but not"
CUT = "the tail of what the model reads is cut"
RATIONALES = pd.DataFrame(
    {
        "rationale": ["the first names the dose", "the second warns", "pain " * 90],
        "written": ["the first answer is better because it names dose", "warns of pain", "pain"],
    }
)
ROLES = {"text": "rationale", "reference": "written"}


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BART of one layer on either side, with random weights."""
    folder = tmp_path_factory.mktemp("bart")
    reader = transformers.AutoTokenizer.from_pretrained(tiny_bert(folder / "words", WORDS.split()))
    config = transformers.BartConfig(
        vocab_size=len(reader), d_model=32, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64,
        decoder_ffn_dim=64, max_position_embeddings=64, pad_token_id=0, bos_token_id=2,
        eos_token_id=3, decoder_start_token_id=3, forced_eos_token_id=3,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.BartForConditionalGeneration(config)
    torch.nn.init.normal_(model.model.shared.weight)
    model.save_pretrained(folder / "bart")
    reader.save_pretrained(folder / "bart")
    return folder / "bart"


def mean_log_p(folder: Path, source: str, target: str) -> float:
    """The mean of the target's log-probabilities, token by token."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    reader = transformers.AutoTokenizer.from_pretrained(folder)
    read, told = (
        reader(text, truncation=True, max_length=64).input_ids for text in (source, target)
    )
    before = [model.config.decoder_start_token_id, *told[:-1]]
    with torch.inference_mode():
        logits = model(
            input_ids=torch.tensor([read]), decoder_input_ids=torch.tensor([before])
        ).logits[0]
    log_p = logits.log_softmax(dim=-1)
    return float(np.mean([float(log_p[i, token]) for i, token in enumerate(told)]))


@pytest.mark.parametrize("measure", ["precision", "recall", "f1"])
def test_bartscore_is_the_mean_log_probability_of_a_token(bart: Path, measure: str) -> None:
    scorer = {"scorer": "bartscore", "model": str(bart), "measure": measure}
    frame = jb.score(RATIONALES, [scorer], columns=ROLES).to_frame()
    for row, value in zip(RATIONALES.itertuples(), frame["bartscore"], strict=True):
        precision = mean_log_p(bart, row.written, row.rationale)
        recall = mean_log_p(bart, row.rationale, row.written)
        expected = {"precision": precision, "recall": recall, "f1": (precision + recall) / 2}
        assert value == pytest.approx(expected[measure], abs=1e-5)
    assert frame["bartscore_reason"].to_list() == [
        "",
        "",
        "the tail of what the model reads is cut",
    ]


def test_rationales_are_scored_by_bertscore(bart: Path) -> None:
    scorer = {"scorer": "bertscore", "model": str(bart.parent / "words")}
    scores = jb.score(RATIONALES.assign(copy=RATIONALES["written"]), [scorer], columns=ROLES)
    same = jb.score(RATIONALES, [scorer], columns={"text": "written", "reference": "written"})
    assert (scores.to_frame()["bertscore"] < 1).all()
    assert same.to_frame()["bertscore"].to_list() == pytest.approx([1, 1, 1], abs=1e-5)
