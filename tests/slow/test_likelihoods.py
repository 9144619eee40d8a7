"""Likelihoods by real engines, held against each other and lm-evaluation-harness."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgebench.models import open_backend
from judgebench.models.contract import Draws, Message, TokenScorer, weigher_of
from judgebench.models.settings import BackendSettings
from judgebench.models.token_scoring import TextReader

pytestmark = [
    pytest.mark.transformers,
    pytest.mark.skipif(
        not all(map(find_spec, ("torch", "transformers", "outlines"))),
        reason="needs transformers, outlines and torch (make test-transformers)",
    ),
]

QUESTION = "What is the capital of France?"
TEXTS = (
    "The capital of France is Paris.",
    "Benign brain tumors are not cancerous and do not spread or invade surrounding tissues.\n"
    "They grow slowly.",
    "Vitamin D toxicity: 10 ng/mL \u2265 naïve café",
)
PAIRS = (
    ("Q: What is the capital of France?\nA:", " Paris"),
    ("Are benign brain tumors serious?", " No, they do not spread."),
)
# lm-evaluation-harness 0.4.13 (HFLM, float32, max_length 256) on the same weights, 2026-11-23:
# loglikelihood_rolling of the texts, and loglikelihood of pairs.
HARNESS_ROLLING = (-31.742942810058594, -84.1525650024414, -102.29019165039062)
HARNESS_PAIRS = (-3.0114617347717285, -24.55933380126953)


@pytest.fixture(scope="module")
def weigher(smollm2_folder: Path) -> Iterator[TokenScorer]:
    backend = open_backend(
        f"transformers:{smollm2_folder}", BackendSettings(threads=1, context=256)
    )
    yield weigher_of(backend, "transformers:")()
    backend.close()


def sums(weigher: TokenScorer, texts: Any) -> list[float]:
    return [float(np.sum(one.log_p)) for one in weigher.weigh(texts)]


def test_rolling_log_likelihoods_are_those_of_the_harness(weigher: TokenScorer) -> None:
    found = sums(weigher, [("", text) for text in TEXTS])
    assert found == pytest.approx(list(HARNESS_ROLLING), rel=1e-5)
    (long,) = weigher.weigh([("", "word " * 600)])
    assert long.reason.endswith("and the model reads 256")


def test_conditional_log_likelihoods_are_those_of_the_harness(weigher: TokenScorer) -> None:
    assert sums(weigher, PAIRS) == pytest.approx(list(HARNESS_PAIRS), rel=1e-5)


def test_a_text_and_what_stands_before_it_share_out_the_log_likelihood(
    weigher: TokenScorer,
) -> None:
    before, text = "The capital of France", " is Paris."
    alone, both = sums(weigher, [("", before), ("", before + text)])
    tokens = weigher.weigh([("", before + text)])[0].log_p
    assert both - alone == pytest.approx(sum(tokens[-3:]), abs=1e-3)


def small(kind: str, **how: Any) -> Any:
    """A random model of some architecture."""
    import torch
    import transformers

    torch.manual_seed(0)
    plain = {
        "vocab_size": 50, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, **how,
    }  # fmt: skip
    config = getattr(transformers, f"{kind}Config")(**plain)
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


@pytest.mark.parametrize("kind", ["Llama", "Qwen2", "Gemma2"])
def test_branches_at_every_place_cost_one_pass_and_say_what_plain_passes_say(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    model = small(kind)
    draw = np.random.default_rng(3)
    trunk = draw.integers(0, 50, 40).tolist()
    texts = [
        (trunk[:place] + draw.integers(0, 50, size).tolist(), place)
        for place in range(5, 41, 3)
        for size in (1, 2, 4)
    ]
    passes = []
    forward = model.forward
    with torch.inference_mode():
        reader = TextReader(model)
        monkeypatch.setattr(model, "forward", lambda **how: passes.append(1) or forward(**how))
        together = reader.read(texts)
        assert len(passes) == 1
        for text, log_p in zip(texts, together, strict=True):
            assert log_p == pytest.approx(reader.read_alone(*text), abs=1e-4)


def test_completions_are_weighed_as_whole_texts_are(weigher: TokenScorer) -> None:
    asked, draws = (Message("user", QUESTION),), Draws(3, 24, 1.0, 0.9, 8, 5)
    told = weigher.draw(asked, [" Paris", "the city of Paris"], draws)
    for one in told.drawn:
        assert list(one.places) == list(range(0, len(one.tokens) + 1, 8))
    again = weigher.draw(asked, [" Paris", "the city of Paris"], draws)
    assert [one.tokens for one in again.drawn] == [one.tokens for one in told.drawn]
    assert len({tuple(one.tokens) for one in told.drawn}) == 3
    reader = weigher._model._reader  # type: ignore[attr-defined]
    assert reader.tree_reach > 0
    reader.tree_reach = 0  # as of a model that takes no mask of a tree
    plain = weigher.draw(asked, [" Paris", "the city of Paris"], draws)
    for one, other in zip(told.drawn, plain.drawn, strict=True):
        assert one.tokens == other.tokens
        assert one.log_p == pytest.approx(other.log_p, abs=1e-3)
        assert np.array(one.targets) == pytest.approx(np.array(other.targets), abs=1e-3)
    at_0 = {round(one.targets[1][0], 3) for one in told.drawn}
    assert at_0 == {round(sums(weigher, [(asked, "the city of Paris")])[0], 3)}


@pytest.mark.vllm
@pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM (make test-vllm)")
def test_vllm_says_what_transformers_says(weigher: TokenScorer, smollm2_folder: Path) -> None:
    backend = open_backend(f"vllm:{smollm2_folder}", BackendSettings(threads=1, context=256))
    other = weigher_of(backend, "vllm:")()
    asked: list[Any] = [("", TEXTS[1]), *PAIRS, ((Message("user", QUESTION),), "Paris.")]
    assert sums(other, asked) == pytest.approx(sums(weigher, asked), rel=1e-4)
    draws = Draws(2, 16, 1.0, 0.9, 8, 5)
    told = other.draw(asked[-1][0], ["the city of Paris"], draws)
    expected = sums(weigher, [(asked[-1][0], "the city of Paris")])[0]
    for one in told.drawn:
        assert one.targets[0][0] == pytest.approx(expected, rel=1e-4)
        assert len(one.log_p) == len(one.tokens) <= 16
    backend.close()
