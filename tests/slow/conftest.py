"""Fixtures of the slow lanes (`make test-transformers`, `make test-vllm`)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def smollm2_folder(smollm2: Path) -> Path:
    """SmolLM2 as a folder of safetensors, which vLLM reads; made once, beside the GGUF file."""
    folder = smollm2.with_name("unpacked")
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=smollm2.parent) as scratch:
            unpack(smollm2, Path(scratch) / "whole")
            (Path(scratch) / "whole").rename(folder)
    return folder


def unpack(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.bfloat16,
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)
