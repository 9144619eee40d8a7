"""Other ways than chat completions to ask a server over HTTP: what they share.

Each is a path, a body made of a Request, and a reader that turns the server's body into one of chat
completions, so that refusals, cut replies, tokens and names mean the same (`chat.read_chat`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judgebench.models.contract import Reply, Request
from judgebench.models.openai_compatible import OpenAICompatible, Read

Body = dict[str, Any]


@dataclass(frozen=True)
class Formatted:
    """A Backend that asks a server at `path`. `write` makes a request's body, without the model,
    and raises SetupError for what no such body can ask. Its path names
    it, and `facts` stand in its description in place of the server's."""

    server: OpenAICompatible
    path: str
    write: Callable[[Request], Body]
    read: Read
    facts: Mapping[str, str]

    def describe(self) -> Mapping[str, Any]:
        return {**self.server.describe(), "engine": self.path[1:], **self.facts}

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        def encode(request: Request) -> bytes:
            return self.server.encoded(self.write(request))

        return self.server.asked(self.path, encode, self.read, requests)

    def drain(self) -> None:
        self.server.drain()

    def close(self) -> None:
        self.server.close()


def as_chat(body: Body, choice: Body) -> Body:
    """A body of chat completions with this choice, and the model and the tokens of another body."""
    counted = body.get("usage")
    usage = {
        name.replace("input", "prompt").replace("output", "completion"): value
        for name, value in (counted.items() if isinstance(counted, dict) else ())
    }
    return {"model": body.get("model"), "choices": [choice], "usage": usage}
