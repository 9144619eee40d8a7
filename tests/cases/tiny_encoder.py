"""An encoder of a few thousand random weights, which reads whole words: made in a moment."""

from collections.abc import Iterable
from pathlib import Path

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def tiny_bert(folder: Path, words: Iterable[str], positions: int = 64) -> Path:
    """A BERT of two layers over `words`, saved as transformers saves it."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    vocabulary = {word: n for n, word in enumerate([*SPECIAL, *sorted(set(words))])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=positions, pad_token_id=0,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def tiny_roberta(folder: Path, words: Iterable[str], spaced: bool) -> Path:
    """A RoBERTa of two layers over byte pairs of `words`; its vocabulary brings the space before a
    first word where it is `spaced`."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizer

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pairs = ByteLevelBPETokenizer()
    pairs.train_from_iterator([" ".join(words)] * 3, 300, 1, special_tokens=special)
    folder.mkdir(parents=True)
    pairs.save_model(str(folder))
    read = RobertaTokenizer.from_pretrained(
        folder, add_prefix_space=spaced, model_max_length=60, cls_token="<s>", sep_token="</s>"
    )
    read.save_pretrained(folder)
    config = RobertaConfig(
        vocab_size=len(read), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=62, pad_token_id=1,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        RobertaModel(config).save_pretrained(folder)
    return folder
