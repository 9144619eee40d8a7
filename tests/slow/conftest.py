"""Fixtures of the slow lanes (`make test-transformers`, `make test-vllm`)."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

KEY = "loopback-key-of-this-test"
PATIENCE = 400.0  # seconds that a loaded machine may take to start the server
# Only the CPU build reads these; see judgebench/models/vllm_backend.py.
CPU = {
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


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


@pytest.fixture(scope="session")
def vllm_server(smollm2_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a vLLM server that serves `smollm2`; $VLLM_TEST_KEY holds its key."""
    port = free_port()
    log = tmp_path_factory.mktemp("vllm") / "server.log"
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--api-key", KEY]
    command += ["--model", str(smollm2_folder), "--served-model-name", "smollm2"]
    command += ["--max-model-len", "2048", "--dtype", "float32", "--enforce-eager"]
    command += ["--structured-outputs-config", '{"backend": "xgrammar"}']
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, stdout=out, stderr=out, env=os.environ | CPU, start_new_session=True
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/health", server, log)
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("VLLM_TEST_KEY", KEY)
            yield f"http://127.0.0.1:{port}/v1"
    finally:
        stop(server)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the server did not come up:\n{log.read_text(errors='replace')[-4000:]}")


def stop(server: subprocess.Popen[bytes]) -> None:
    """End the server and the engine that it started, which share a process group."""
    for last_word in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, last_word)
            server.wait(timeout=30)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
