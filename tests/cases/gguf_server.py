"""A real model behind an OpenAI-compatible server on this machine."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from judgebench.models.llamacpp import DEFAULT_CONTEXT, default_threads, load


class Served(NamedTuple):
    """Where a server listens, and the key that it asks for."""

    base_url: str
    api_key: str


@contextmanager
def serve_gguf(
    path: Path, threads: int | None = None, context: int = DEFAULT_CONTEXT, slots: int = 1
) -> Iterator[Served]:
    """An OpenAI-compatible server of a GGUF file on a free port of 127.0.0.1.

    `context` tokens are given to each of `slots` requests served at once; with more than one slot
    replies depend on what else is being served. It ends with the block.
    """
    key = secrets.token_urlsafe(24)
    server = load(path, threads or default_threads(), context, slots, key)
    try:
        yield Served(f"{server.listening_address}/v1", key)
    finally:
        del server
