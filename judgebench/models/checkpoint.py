"""What the backends that load weights themselves share: which weights, and which tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.models.contract import Message, Reply, Request
from judgebench.models.settings import BackendSettings
from judgebench.models.weights import sha256_of
from judgebench.records import content_hash

# Weights, configuration, tokenizer and chat template: all that a reply depends on.
_PARTS = frozenset({".safetensors", ".bin", ".pt", ".gguf", ".json", ".jinja", ".model", ".txt"})
_NOTES = "*.sha256.json"  # which `weights.sha256_of` may leave beside a file
_ENFORCED = ("auto", "json_schema")
_SPACES = 3  # so often control tokens are broken by a space before they are left out


def identify(model: str) -> dict[str, str]:
    """Which weights `model` names, alike on every machine that holds them.

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
    files = sorted(p for p in path.iterdir() if p.suffix in _PARTS and not p.match(_NOTES))
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
    """Whether a request's schema binds the tokens. Raises SetupError for a remote way of it."""
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
    """Turns a request's messages into the model's token ids with its own chat template."""

    def __init__(self, tokenizer: Any, model: str) -> None:
        self.tokenizer = tokenizer
        self._model = model
        self.control, self._ids = _control_tokens(tokenizer)

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
        known = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
        found = next((token for token in known if token is not None), None)
        if found is None:
            raise SetupError(f"{self._model}: its tokenizer has no token that begins a text")
        return int(found)

    @property
    def opening(self) -> list[int]:
        """What the tokenizer puts before every text: BOS, or nothing."""
        return [i for i in self.tokenizer("")["input_ids"] if i == self.tokenizer.bos_token_id]

    def ids(self, text: str) -> list[int]:
        """The tokens of a text in which control tokens are written out."""
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def disarmed(self, text: str) -> str:
        """A text whose control tokens are broken up."""
        return break_up(text, self.control_tokens)

    def control_tokens(self, text: str) -> list[tuple[int, int]]:
        """Where the tokenizer finds control tokens: it may also fold case or width to find them."""
        if not getattr(self.tokenizer, "is_fast", False):
            return [match.span() for match in self.control.finditer(text)]
        read = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        places = zip(read["input_ids"], read["offset_mapping"], strict=True)
        return [(start, end) for id_, (start, end) in places if id_ in self._ids and start < end]

    def _applied(self, messages: Sequence[Message], **how: bool) -> Any:
        turns = [{"role": m.role, "content": self.disarmed(m.content)} for m in messages]
        try:
            return self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, **how)
        except Exception as error:  # a template is a program and raises what it likes
            raise SetupError(
                f"{self._model}: its chat template does not take these messages: {error}"
            ) from error


def _control_tokens(tokenizer: Any) -> tuple[re.Pattern[str], frozenset[int]]:
    """The tokenizer's control tokens: as a pattern, and their ids."""
    added: Mapping[int, Any] = getattr(tokenizer, "added_tokens_decoder", {})
    tokens = {str(token) for token in added.values() if token.special}
    tokens |= set(tokenizer.all_special_tokens)
    longest_first = sorted(tokens, key=len, reverse=True)
    ids = {id_ for id_, token in added.items() if token.special} | set(tokenizer.all_special_ids)
    ids.discard(tokenizer.unk_token_id)  # which also stands for every letter that is unknown
    # A pattern that matches nothing stands in where there are no control tokens.
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)"), frozenset(ids)


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
