"""The two protocols of batch endpoints: OpenAI's, by files, and Anthropic's, by one request.

A batch is submitted, looked at until it has ended, and collected. Each request has a `custom_id`,
by which its result is found; results come in any order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.client import HTTPException
from typing import Any, Protocol
from urllib.error import URLError
from urllib.request import Request as HTTPRequest

from judgebench.errors import SetupError, shorten
from judgebench.files import to_bytes, to_line
from judgebench.models.chat import (
    TransientError,
    UnreachableError,
    error_text,
    failure,
    read_json,
    retry_after,
)
from judgebench.models.connect import open_whatever
from judgebench.models.contract import Reply, Request

_CLOCKS_APART = timedelta(minutes=5)
_BOUNDARY = "judgebench-7f3c0a9be2d84d51"
_ODD = (KeyError, TypeError, ValueError, AttributeError, RecursionError)  # of JSON in another form

# What came of a request: an HTTP status and body; the status is 0 where it was not made, and the
# body says why.
Result = tuple[int, bytes]


class FailedBatchError(SetupError):
    """A batch was refused as a whole: it has no results."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as a single call sends it."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class Single(Protocol):
    """What a batch needs of a backend that makes single calls: what it sends, and how it reads
    what comes back. `batch_protocol` is None where its provider has none of the two."""

    batch_protocol: str | None

    def written(self, request: Request) -> Sent: ...

    def read_back(self, request: Request, status: int, body: bytes) -> Reply: ...


@dataclass
class Batch:
    """A batch that was submitted: `id` is empty until the endpoint has confirmed it, `file` is the
    uploaded file of the OpenAI protocol."""

    requests: list[str]
    began: str
    file: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Http:
    """Calls to one endpoint, with the headers of its single calls."""

    headers: Mapping[str, str]
    timeout_s: float

    def json(self, url: str, data: bytes | None = None, kind: str = "application/json") -> Any:
        """The JSON object that comes back. Raises as `read`."""
        found = read_json(self.read(url, data, kind))
        if not isinstance(found, dict):
            raise TransientError(f"{url} gives no JSON object")
        return found

    def read(self, url: str, data: bytes | None = None, kind: str = "application/json") -> bytes:
        """What lies at `url`; a POST where there is data. Raises as `failure`, and SetupError for
        what is refused."""
        request = HTTPRequest(url, data, {"Content-Type": kind, **self.headers})
        try:
            with open_whatever(request, self.timeout_s) as answer:
                status, raw = answer.getcode(), answer.read()
        except URLError as error:
            raise UnreachableError(f"no server answers at {url}: {error.reason}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise TransientError(f"{url}: the connection broke: {error}") from None
        if status < 300:
            return bytes(raw)
        after = retry_after(answer.headers.get("Retry-After"))
        done = failure(status, error_text(read_json(raw)), url, "none", after)
        raise SetupError(f"the endpoint refuses the batch: {url}; {done.error}")


class OpenAI:
    """Files of lines: https://platform.openai.com/docs/api-reference/batch."""

    limits = 50_000, 200_000_000  # requests and bytes of a batch

    def __init__(self, http: Http, url: str) -> None:
        self._http, self._base = http, url.removesuffix("/chat/completions")

    def line(self, custom_id: str, body: bytes) -> bytes:
        """A request of a batch."""
        head = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions"}
        return b'%b,"body":%b}\n' % (to_bytes(head)[:-1], body)

    def upload(self, lines: Sequence[bytes]) -> str:
        """Bring there what a batch is made of; this costs nothing. Returns the file's id."""
        mark = f"--{_BOUNDARY}\r\nContent-Disposition: form-data; name="
        head = f'{mark}"purpose"\r\n\r\nbatch\r\n{mark}"file"; filename="batch.jsonl"\r\n'
        head += "Content-Type: application/jsonl\r\n\r\n"
        data = b"".join([head.encode(), *lines, f"\r\n--{_BOUNDARY}--\r\n".encode()])
        kind = f"multipart/form-data; boundary={_BOUNDARY}"
        return _id(self._http.json(f"{self._base}/files", data, kind))

    def create(self, batch: Batch, lines: Sequence[bytes]) -> str:
        """Submit it; returns its id."""
        about = {"input_file_id": batch.file, "endpoint": "/v1/chat/completions"}
        about["completion_window"] = "24h"
        return _id(self._http.json(f"{self._base}/batches", to_bytes(about)))

    def find(self, batch: Batch, known: set[str]) -> str:
        """The id of a batch that may have been submitted; empty where it was not."""
        for found in _listed(self._http.json(f"{self._base}/batches?limit=100")):
            if found.get("input_file_id") == batch.file:
                return _id(found)
        return ""

    def results(self, batch: Batch) -> dict[str, Result] | int:
        """What came of each request; while the batch has not ended, how many are done. Raises
        FailedBatchError."""
        found = self._http.json(f"{self._base}/batches/{batch.id}")
        if found.get("status") == "failed":
            raise FailedBatchError(error_text(found.get("errors") or "no reason is given"))
        if found.get("status") not in ("completed", "expired", "cancelled"):
            return _done(found, "completed", "failed")
        files = [found.get(f"{kind}_file_id") for kind in ("output", "error")]
        urls = [f"{self._base}/files/{file}/content" for file in files if isinstance(file, str)]
        return _results(b"\n".join(map(self._http.read, urls)), self._result)

    def _result(self, line: Mapping[str, Any]) -> Result:
        if response := line.get("response"):
            return int(response["status_code"]), to_line(response["body"]).encode()
        return 0, error_text(line.get("error") or "the batch gives no reason").encode()


class Anthropic:
    """One request with all others inside: https://docs.anthropic.com/en/api/creating-message-batches."""

    limits = 100_000, 250_000_000  # of 256 MB, for something stands between requests

    def __init__(self, http: Http, url: str) -> None:
        self._http, self._url = http, f"{url}/batches"

    def line(self, custom_id: str, body: bytes) -> bytes:
        """A request of a batch."""
        return b'{"custom_id":"%b","params":%b}' % (custom_id.encode(), body)

    def upload(self, lines: Sequence[bytes]) -> str:
        """Nothing is needed before."""
        return ""

    def create(self, batch: Batch, lines: Sequence[bytes]) -> str:
        """Submit it; returns its id."""
        return _id(self._http.json(self._url, b'{"requests":[%b]}' % b",".join(lines)))

    def find(self, batch: Batch, known: set[str]) -> str:
        """The id of a batch that may have been submitted: of as many requests, since then, and
        nobody else's; empty where there is none. Its results show whether it is the one."""
        since = datetime.fromisoformat(batch.began) - _CLOCKS_APART
        for found in _listed(self._http.json(f"{self._url}?limit=100")):
            with suppress(*_ODD):
                recent = datetime.fromisoformat(found["created_at"]) >= since
                as_many = sum(found["request_counts"].values()) == len(batch.requests)
                if recent and as_many and found["id"] not in known:
                    return _id(found)
        return ""

    def results(self, batch: Batch) -> dict[str, Result] | int:
        """What came of each request; while the batch has not ended, how many are done."""
        found = self._http.json(f"{self._url}/{batch.id}")
        if found.get("processing_status") != "ended":
            return _done(found, "succeeded", "errored", "canceled", "expired")
        # Not from the `results_url` that is given: a key goes where the judge's file sends it.
        return _results(self._http.read(f"{self._url}/{batch.id}/results"), self._result)

    def _result(self, line: Mapping[str, Any]) -> Result:
        result = line["result"]
        if result["type"] == "succeeded":
            return 200, to_line(result["message"]).encode()
        if result["type"] != "errored":
            return 0, f"the request is {result['type']}".encode()
        error = result["error"].get("error") or result["error"]
        status = 400 if error["type"] in ("invalid_request_error", "request_too_large") else 500
        return status, to_line({"type": "error", "error": error}).encode()


Api = OpenAI | Anthropic


def _done(found: Mapping[str, Any], *ends: str) -> int:
    """How many requests of a batch have come to any of these ends."""
    counts = found.get("request_counts")
    counts = counts if isinstance(counts, dict) else {}
    return sum(n for end in ends if type(n := counts.get(end)) is int)


def _results(raw: bytes, result: Callable[[Mapping[str, Any]], Result]) -> dict[str, Result]:
    """What the lines say, by custom_id. One that cannot be read says nothing."""
    found: dict[str, Result] = {}
    for line in raw.splitlines():
        with suppress(*_ODD):
            said = json.loads(line)
            found[said["custom_id"]] = result(said)
    return found


def _id(found: Mapping[str, Any]) -> str:
    name = found.get("id")
    if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
        raise TransientError(f"the endpoint gives a batch or file no usable id: {shorten(name)}")
    return name


def _listed(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    batches = found.get("data")
    return [one for one in batches if isinstance(one, dict)] if isinstance(batches, list) else []
