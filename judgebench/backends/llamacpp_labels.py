"""Label probabilities of a reply that llama.cpp has just written.

Its server tells log-probabilities of all tokens, before the grammar takes out those that fit no
label; of a weak model the fitting ones are then often not among the first thousand. So it is
asked anew for one token at each place where labels still part: after the rendered prompt and the
very tokens of the reply, under a grammar of the labels, with the probabilities that are left after
sampling at temperature 1 (`post_sampling_probs`). What has been evaluated is kept, so each
such probe costs about one token, and the branches that the reply did not take can be asked too.

A probe tells the distribution under its grammar only if the first draw was against it: llama.cpp
draws without the grammar, and draws again under it where the token does not fit. So a token that
fits nowhere, a control character, is made certain to be drawn first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cached_property
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from judgebench.backends.contract import LabelsAsked
from judgebench.backends.token_log_probabilities import LabelsRead, Place, Token, read_labels
from judgebench.errors import RunError, SetupError

# llama.cpp's own defaults would cut the distribution that temperature and top_p are declared for.
PLAIN_SAMPLING = {"top_k": 0, "min_p": 0.0}
# The cheapest way to the ids of a reply's tokens: at temperature 0 one candidate is left.
WITH_TOKEN_IDS = {"logprobs": True, "top_logprobs": 1, "post_sampling_probs": True}

_LISTED = 64  # tokens that a probe lists; labels seldom begin in more ways
_CERTAIN = 1000.0  # a logit above all others
_NEVER_IN_JSON = "\x01"
_PATIENCE_S = 60.0


class Probes:
    """One-token requests about the reply in `answered`, which `body` asked for."""

    def __init__(
        self, server: Any, key: str, body: Mapping[str, Any], answered: Mapping[str, Any]
    ) -> None:
        self._server = server
        self._key = key
        self._body = body
        content = answered["choices"][0].get("logprobs", {}).get("content", [])
        self._written = [Token(bytes(t["bytes"]), 0.0, int(t["id"])) for t in content]
        self._text: str = answered["choices"][0]["message"]["content"] or ""
        self._prompt_tokens: int = answered["usage"]["prompt_tokens"]

    def read(self, asked: LabelsAsked) -> LabelsRead:
        """The log-probabilities of the labels of each field, or why there are none."""
        pieces = [token.piece for token in self._written]
        return read_labels(self._text, pieces, asked.fields, self._ask)

    def _ask(self, place: Place) -> list[Token] | None:
        grammar = place.grammar()
        if grammar is None:
            return None
        behind = [token.id for token in (*self._written[: place.at], *place.branch)]
        reply = self._server.handle_completions(
            {
                "prompt": [self._prompt, *behind],
                "n_predict": 1,
                "temperature": 1.0,
                "top_p": 1.0,
                **PLAIN_SAMPLING,
                "grammar": grammar,
                "logit_bias": [[self._never_fits, _CERTAIN]],
                "n_probs": _LISTED,
                "post_sampling_probs": True,
                "cache_prompt": True,
            }
        )
        if "error" in reply:
            raise RunError(f"llama.cpp tells no label probabilities: {reply['error']}")
        if reply["usage"]["prompt_tokens"] != self._prompt_tokens + len(behind):
            return None  # this template's prompt is not rendered alike on its own
        (step,) = reply["choices"][0]["logprobs"]["content"]
        return [_token(entry) for entry in step["top_probs"] if entry["prob"] > 0]

    @cached_property
    def _prompt(self) -> str:
        return str(self._post("/apply-template", self._body)["prompt"])

    @cached_property
    def _never_fits(self) -> int:
        asked = {"content": _NEVER_IN_JSON, "add_special": False}
        tokens = self._post("/tokenize", asked)["tokens"]
        if not tokens:
            raise SetupError("this model knows no control character, so its labels cannot be asked")
        return int(tokens[-1])

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        """What the engine tells only over its loopback port."""
        connection = HTTPConnection(
            urlsplit(self._server.listening_address).netloc, timeout=_PATIENCE_S
        )
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            raw = response.read()
        except (OSError, HTTPException) as error:
            raise RunError(f"llama.cpp does not answer: {error}") from error
        finally:
            connection.close()
        if response.status != 200:
            raise RunError(f"llama.cpp refuses {path}: {raw[:200]!r}")
        return json.loads(raw)


def _token(entry: Mapping[str, Any]) -> Token:
    return Token(bytes(entry["bytes"]), math.log(entry["prob"]), int(entry["id"]))
