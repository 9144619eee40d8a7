"""Text encoders by folder, hub name or `minilm`: found, checked, loaded, and asked for vectors of
texts, or of their tokens."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebench.errors import MissingExtra, Problem, RunError, SetupError, raise_any
from judgebench.models.checkpoint import local_path, quietly

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from judgebench.stats.arrays import FloatArray, IntArray

_USUAL_TOKENS = 512  # where an encoder states no limit of its own
_BATCH = 32
_ALLOWED = "minilm, a folder, a hub name"
_HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w.-]+)?")
# Dropout of attention weights rules out fused kernels, which train two to three times as fast.
_ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attention_dropout")
# What a folder must hold: a file of each row.
_NEEDED = {
    "configuration": ("config.json",),
    "weights": ("model*.safetensors*", "pytorch_model*.bin*"),
    "tokenizer": ("tokenizer.json", "vocab.*", "*.model"),
}


@dataclass(frozen=True)
class Tokens:
    """The tokens that an encoder reads of a text: `ids` (tokens,), and whether a word `begins` at
    each, which it never does at those that begin and end a text; `states` (layers, tokens, width),
    float32. `cut`: the tail of the text is left out."""

    ids: IntArray
    begins: NDArray[np.bool_]
    states: FloatArray
    cut: bool


@dataclass(frozen=True)
class Encoder:
    """A loaded encoder. `model` is a transformers AutoModel in eval mode on `device`; `folder`
    holds its files. It reads `max_tokens` at most, special tokens among them."""

    name: str
    folder: Path
    tokenizer: Any
    model: Any
    max_tokens: int
    device: str

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """One vector per text, float32, (texts, width), of length 1: the mean over its tokens.

        A text that is longer than the encoder takes is read in windows. The mean is that of Reimers
        and Gurevych (2019), Sentence-BERT, section 3.
        """
        import numpy as np
        import torch

        sums = np.zeros((len(texts), self.model.config.hidden_size), dtype=np.float32)
        for places, inputs in self.batches(texts, in_windows=True):
            with torch.inference_mode():
                hidden = self.model(**inputs).last_hidden_state
                weights = inputs["attention_mask"].unsqueeze(-1).to(hidden.dtype)
                np.add.at(sums, places, (hidden * weights).sum(dim=1).float().cpu().numpy())
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        sums /= np.maximum(lengths, np.finfo(np.float32).tiny)
        return sums

    def tokens(self, texts: Sequence[str], layers: Sequence[int]) -> Sequence[Tokens]:
        """The tokens of each text with their states in these layers, counted from 1; layer 0 holds
        what goes into the first. The tail of a text that is too long is cut."""
        import numpy as np
        import torch

        found: dict[int, Tokens] = {}
        for places, inputs in self.batches(texts):
            with torch.inference_mode():
                hidden = self.model(**inputs, output_hidden_states=True).hidden_states
                states = torch.stack([hidden[layer] for layer in layers], dim=1).float().cpu()
            for row, (place, read) in enumerate(zip(places, inputs.encodings, strict=True)):
                real = np.array(read.attention_mask, dtype=bool)
                own = states[row].numpy()[:, real]
                ids, special = np.array(read.ids)[real], -1
                words = np.array([special if w is None else w for w in read.word_ids])[real]
                begins = (np.diff(words, prepend=special) != 0) & (words != special)
                begins &= ~np.isin(ids, self.ends)  # which a text may hold
                found[place] = Tokens(ids, begins, own, bool(read.overflowing))
        return [found[place] for place in range(len(texts))]

    @property
    def ends(self) -> list[int]:
        """The ids of the tokens that begin and end a text, as far as there are any."""
        ids = (self.tokenizer.cls_token_id, self.tokenizer.sep_token_id)
        return [one for one in ids if one is not None]

    def batches(
        self, texts: Sequence[Any], *, in_windows: bool = False
    ) -> Iterator[tuple[list[int], Any]]:
        """The inputs of the texts, or of pairs of them, in padded batches with their places. Where
        no token pads, each is a batch of its own. The tail of a text that is too long is cut, or
        comes `in_windows` at the same place."""
        size = 1 if self.tokenizer.pad_token_id is None else _BATCH
        for places in by_length([len("".join(text)) for text in texts], size):
            inputs = self.tokenizer(
                [texts[i] for i in places], padding=size > 1, truncation=True,
                max_length=self.max_tokens, return_tensors="pt",
                return_overflowing_tokens=in_windows,
            ).to(self.device)  # fmt: skip
            if not in_windows:
                yield places, inputs
                continue
            rows = inputs.pop("overflow_to_sample_mapping").tolist()
            for start in range(0, len(rows), size):
                part = slice(start, start + size)
                window = {name: values[part] for name, values in inputs.items()}
                yield [places[row] for row in rows[part]], window


def by_length(lengths: Sequence[float], size: int) -> list[list[int]]:
    """The places in batches of `size`, the longest first: what does not fit shows at once."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return [order[i : i + size] for i in range(0, len(order), size)]


def length_buckets(lengths: Sequence[int], size: int, chance: random.Random) -> list[list[int]]:
    """The places of `lengths` in batches of `size`; which inputs share a batch, and the order
    of the batches, is random, but only inputs of similar length share one."""
    batches = by_length([length * chance.uniform(0.9, 1.1) for length in lengths], size)
    chance.shuffle(batches)
    return batches


def mean_over(hidden: Any, mask: Any) -> Any:
    """The mean of the hidden states (texts, tokens, width) over the tokens of `mask` (texts,
    tokens)."""
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def open_encoder(
    name: str, max_tokens: int | None = None, *, bare: bool = False, head: bool = False
) -> Encoder:
    """The encoder of a folder, a hub name, or `minilm`; on a GPU where there is one.

    `max_tokens` None means what the encoder takes, or 512 where it states no limit. The weights of
    a `bare` one are still to be filled in. With `head` the model is a classifier or a regressor of
    texts, whose outputs are `logits`. Raises MissingExtra without the packages, SetupError for
    a folder that lacks a part and for more tokens than the encoder takes, RunError where the hub or
    the index cannot be reached.
    """
    torch = import_torch()
    folder = find_encoder(name)
    model, tokenizer = _load(folder, bare=bare, head=head)
    limit = token_limit(model.base_model)
    if max_tokens is not None and limit is not None and max_tokens > limit:
        message, allowed = f"is more than the encoder {name} takes", f"16 to {limit}"
        raise SetupError(Problem(message, "", None, "max_tokens", str(max_tokens), allowed))
    there = torch.accelerator.is_available()
    device = torch.accelerator.current_accelerator().type if there else "cpu"
    most = max_tokens or limit or _USUAL_TOKENS
    return Encoder(name, folder, tokenizer, model.to(device).eval(), most, device)


def import_torch() -> Any:
    """torch, once transformers is found to be there too. Raises MissingExtra."""
    try:
        import torch
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        needed = ("transformers", "torch", "safetensors")
        raise MissingExtra("an encoder", "proxy", *needed) from error
    return torch


def find_encoder(name: str, field: str = "encoder") -> Path:
    """The folder that holds the encoder, downloaded the first time where `name` is no folder;
    `field` is the setting that names it.

    Raises SetupError with everything that the folder lacks, RunError where a download fails.
    """
    folder = Path(local_path(name))
    if not folder.exists() and _HUB_NAME.fullmatch(name):
        folder = _from_hub(name)
    if not folder.is_dir():
        message = "is no folder of an encoder" if folder.exists() else "no such folder"
        raise SetupError(Problem(message, str(folder), field=field, allowed=_ALLOWED))
    raise_any(
        [
            Problem(f"the folder holds no {part}", str(folder), None, field, "", ", ".join(files))
            for part, files in _NEEDED.items()
            if not any(any(folder.glob(file)) for file in files)
        ]
    )
    return folder


def find_beside(name: str, relative_to: Path, field: str = "encoder") -> str:
    """The encoder that a name means: a folder below `relative_to`, or else as `find_encoder` sees
    it. One that must be downloaded is downloaded now, not later."""
    import_torch()
    beside = str(relative_to / name)
    found = beside if Path(beside).is_dir() else name
    find_encoder(found, field)
    return found


def _from_hub(name: str) -> Path:
    """The folder of the hub's local cache that holds the model `name`."""
    from huggingface_hub import snapshot_download

    parts = ["*.json", "*.txt", "*.model"]
    try:
        for weights in _NEEDED["weights"]:
            folder = Path(snapshot_download(name, allow_patterns=[*parts, weights]))
            if any(folder.glob(weights)):
                break
    except Exception as error:  # the hub's client raises its own, httpx's and the system's errors
        reason = " ".join(str(error).split())[:300]
        raise RunError(
            f"the encoder {name} is no folder here, and the Hugging Face hub does not give it: "
            f"{reason}; try again, or name a folder that holds it"
        ) from error
    return folder


def config_of(folder: Path, field: str = "encoder") -> Any:
    """The transformers configuration of a model's folder. Raises SetupError for one that is no
    configuration; `field` is the setting that names the folder."""
    from transformers import AutoConfig

    with _loading(folder, field):
        return AutoConfig.from_pretrained(folder, local_files_only=True)


@contextmanager
def _loading(folder: Path, field: str = "encoder") -> Iterator[None]:
    try:
        with quietly():
            yield
    except Exception as error:  # no memory, an unknown architecture, torn weights, ...
        said = " ".join(str(error).split())[:300]
        raise SetupError(Problem(f"cannot be loaded: {said}", str(folder), field=field)) from error


def _load(folder: Path, *, bare: bool = False, head: bool = False) -> tuple[Any, Any]:
    """Model and tokenizer; a bare model's weights are drawn and not read. A head whose weights are
    not in the folder is refused: transformers would draw them."""
    from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

    field = "model" if head else "encoder"
    config, missing = config_of(folder, field), list[str]()
    for name in _ATTENTION_DROPOUT:
        if hasattr(config, name):
            setattr(config, name, 0.0)
    kind = AutoModelForSequenceClassification if head else AutoModel
    with _loading(folder, field):
        if bare:
            model = kind.from_config(config)
        else:
            how = {"config": config, "local_files_only": True, "output_loading_info": True}
            model, info = kind.from_pretrained(folder, **how)
            missing = sorted(info["missing_keys"])[:3] if head else []
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    unfit = ""
    if missing:
        unfit = f"holds no classifier or regressor: it lacks {', '.join(missing)}"
    elif not tokenizer.is_fast or (tokenizer.pad_token_id is None and not head):
        unfit = "its tokenizer has no fast form or no padding token"
    elif model.config.is_encoder_decoder and not head:
        unfit = "is an encoder with a decoder; BERT, RoBERTa, MPNet or DeBERTa would do"
    if unfit:
        raise SetupError(Problem(unfit, str(folder), field=field))
    if head:
        model.config.pad_token_id = tokenizer.pad_token_id
    return model.float(), tokenizer


def token_limit(model: Any) -> int | None:
    """The number of tokens that the model takes, None where its configuration states no limit.

    RoBERTa, MPNet, XLM-R and others number positions from after the padding index, so that their
    first position vectors are never used.
    """
    limit = getattr(model.config, "max_position_embeddings", None)
    if not limit or limit < 0:
        return None
    positions = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(positions, "padding_idx", None)
    return int(limit) if padding is None else int(limit) - padding - 1
