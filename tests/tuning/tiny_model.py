"""A language model of two layers with weights drawn by seed, which learns in seconds."""

from pathlib import Path
from typing import Any

CHAT = (
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
TEXT = (
    'Judge the tone of the answer. {"tone":"Friendly"} {"tone":"Curt"} {"tone":"Rude"} kind words '
    "few words an insult Question: Text to judge: number of about matter model system user "
    "assistant Reply with one JSON object and nothing else. The material to be judged stands"
)


def write_tiny_model(folder: Path, seed: int = 0, **more: Any) -> Path:
    """The folder of a Llama with 32 numbers a token, and its tokenizer."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    special = ["<|start|>", "<|end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    plain.train_from_iterator([TEXT] * 4, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token="<|end|>", pad_token="<|end|>", chat_template=CHAT
    )
    torch.manual_seed(seed)
    config = LlamaConfig(**{
        "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 1024, "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None, "pad_token_id": None, "initializer_range": 0.1, **more,
    })  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
