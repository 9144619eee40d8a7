"""The two protocols of batch endpoints: OpenAI's, by files, and Anthropic's, by one request.

A batch is submitted, looked at until it has ended, and collected. Each request has a `custom_id`,
by which its result is found; results come in any order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.client import HTTPException
from itertools import chain
from tempfile import TemporaryFile
from typing import IO, Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request as HTTPRequest
from urllib.request import build_opener

from judgebench.backends.chat import (
    Completion,
    TransientError,
    UnreachableError,
    error_text,
    failure,
    retry_after,
)
from judgebench.backends.connect import NoRedirect
from judgebench.backends.contract import Request
from judgebench.errors import SetupError, shorten
from judgebench.files import to_bytes, to_line

# OpenAI: "up to 50,000 requests" and "up to 200 MB"; Anthropic: 100,000 and 256 MB, of which some
# is left for what stands between requests.
OPENAI_LIMITS = 50_000, 200_000_000
ANTHROPIC_LIMITS = 100_000, 250_000_000
_LONGEST = 8 * 2**20  # bytes of an answer that is no file of results
_LONGEST_RESULT = 2**20  # bytes a request, in the mean of a file
_BLOCK = 2**20
_ENDS = ("succeeded", "errored", "canceled", "expired")  # of a request, with Anthropic
_CLOCKS_APART = timedelta(minutes=5)
_BOUNDARY = "judgebench-7f3c0a9be2d84d51"
# What an error's name means where it came without a status (docs of the Messages API, "Errors").
_STATUS = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402,
    "permission_error": 403, "not_found_error": 404, "request_too_large": 413,
    "rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "overloaded_error": 529,
}  # fmt: skip


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

    def read_back(self, request: Request, status: int, body: bytes) -> Completion: ...


@dataclass
class Batch:
    """A batch that was submitted: `id` is empty until the endpoint has confirmed it, `file` is the
    uploaded file of the OpenAI protocol."""

    requests: list[str]
    began: str
    id: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """How far a batch is. `results`: where they are, once it has `ended`."""

    ended: bool
    done: int
    failed: str = ""  # why, where it failed as a whole
    results: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one request: an HTTP status and body, or an `error` where it was not made."""

    custom_id: str
    status: int = 0
    body: bytes = b""
    error: str = ""


class Http:
    """Calls to one endpoint, with the headers of its single calls."""

    def __init__(self, headers: Mapping[str, str], timeout_s: float) -> None:
        self._headers, self._timeout_s = headers, timeout_s
        self.answered = False

    def json(self, url: str, data: bytes | None = None, kind: str = "application/json") -> Any:
        """The JSON object that comes back; a POST where there is data. Raises as `failure`."""
        with TemporaryFile() as file:
            self.fetch(url, file, _LONGEST, HTTPRequest(url, data, {"Content-Type": kind}))
            file.seek(0)
            try:
                found = json.loads(file.read())
            except (ValueError, RecursionError):
                raise TransientError(f"{url} gives no JSON") from None
        if not isinstance(found, dict):
            raise TransientError(f"{url} gives no JSON object")
        return found

    def fetch(self, url: str, to: IO[bytes], most: int, request: HTTPRequest | None = None) -> None:
        """Write what lies at `url`, and nothing else. Raises as `failure`."""
        request = request or HTTPRequest(url)
        to.seek(0)
        to.truncate()
        for name, value in self._headers.items():
            request.add_header(name, value)
        try:
            with build_opener(NoRedirect).open(request, timeout=self._timeout_s) as answer:
                self.answered, size = True, 0
                while block := answer.read(_BLOCK):
                    size += to.write(block)
                    if size > most:
                        raise SetupError(f"{url} gives more than {most:,} bytes")
                whole = answer.headers.get("Content-Length")
            if whole is not None and size < int(whole):
                raise TransientError(f"{url}: the connection broke after {size:,} bytes")
        except HTTPError as error:
            self.answered = True
            self._refuse(error)
        except URLError as error:
            kind = UnreachableError if not self.answered else TransientError
            raise kind(f"no server answers at {url}: {error.reason}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise TransientError(f"{url}: the connection broke: {error}") from None

    def _refuse(self, error: HTTPError) -> None:
        raw = b""
        with suppress(OSError, HTTPException):
            raw = error.read(_LONGEST)
        try:
            said = error_text(json.loads(raw))
        except (ValueError, RecursionError):
            said = error_text(raw.decode(errors="replace"))
        after = retry_after(error.headers.get("Retry-After"))
        done = failure(error.code, said, str(error.url), "none", after)
        raise SetupError(f"the endpoint refuses the batch: {error.url}; {done.error}")


class OpenAI:
    """Files of lines: https://platform.openai.com/docs/api-reference/batch."""

    limits = OPENAI_LIMITS

    def __init__(self, http: Http, url: str) -> None:
        self.http, self._base = http, url.removesuffix("/chat/completions")

    def line(self, custom_id: str, body: bytes) -> bytes:
        """A request of a batch."""
        head = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions"}
        return b'%b,"body":%b}\n' % (to_bytes(head)[:-1], body)

    def upload(self, batch: Batch, lines: Sequence[bytes]) -> None:
        """Bring there what the batch is made of; this costs nothing."""
        mark = f"--{_BOUNDARY}\r\nContent-Disposition: form-data; name="
        head = f'{mark}"purpose"\r\n\r\nbatch\r\n{mark}"file"; filename="batch.jsonl"\r\n'
        head += "Content-Type: application/jsonl\r\n\r\n"
        data = b"".join([head.encode(), *lines, f"\r\n--{_BOUNDARY}--\r\n".encode()])
        kind = f"multipart/form-data; boundary={_BOUNDARY}"
        batch.file = _id(self.http.json(f"{self._base}/files", data, kind))

    def create(self, batch: Batch, lines: Sequence[bytes]) -> str:
        """Submit it; returns its id."""
        about = {"input_file_id": batch.file, "endpoint": "/v1/chat/completions"}
        about["completion_window"] = "24h"
        return _id(self.http.json(f"{self._base}/batches", to_bytes(about)))

    def find(self, batch: Batch, known: set[str]) -> str:
        """The id of a batch that may have been submitted; empty where it was not."""
        listed = _dicts(self.http.json(f"{self._base}/batches?limit=100").get("data"))
        ours = (b for b in listed if batch.file and b.get("input_file_id") == batch.file)
        return next((_id(b) for b in ours), "")

    def state(self, batch: Batch) -> State:
        """How far it is."""
        found = self.http.json(f"{self._base}/batches/{batch.id}")
        status = found.get("status")
        if status == "failed":
            return State(True, 0, error_text(found.get("errors") or "no reason is given"))
        ended = status in ("completed", "expired", "cancelled")
        files = [found.get(f"{kind}_file_id") for kind in ("output", "error")]
        urls = [f"{self._base}/files/{file}/content" for file in files if isinstance(file, str)]
        return State(ended, _count(found, "completed", "failed"), results=urls)

    def result(self, line: Mapping[str, Any]) -> Result:
        """What a line of the results says. Raises KeyError, TypeError or AttributeError."""
        custom_id, response, error = line["custom_id"], line.get("response"), line.get("error")
        if not response:
            return Result(custom_id, error=error_text(error or "the batch gives no reason"))
        return Result(custom_id, int(response["status_code"]), to_line(response["body"]).encode())


class Anthropic:
    """One request with all others inside: https://docs.anthropic.com/en/api/creating-message-batches."""

    limits = ANTHROPIC_LIMITS

    def __init__(self, http: Http, url: str) -> None:
        self.http, self._url = http, f"{url}/batches"

    def line(self, custom_id: str, body: bytes) -> bytes:
        """A request of a batch."""
        return b'{"custom_id":"%b","params":%b}' % (custom_id.encode(), body)

    def upload(self, batch: Batch, lines: Sequence[bytes]) -> None:
        """Nothing is needed before."""

    def create(self, batch: Batch, lines: Sequence[bytes]) -> str:
        """Submit it; returns its id."""
        return _id(self.http.json(self._url, b'{"requests":[%b]}' % b",".join(lines)))

    def find(self, batch: Batch, known: set[str]) -> str:
        """The id of a batch that may have been submitted: of as many requests, since then, and
        nobody else's; empty where there is none. Its results show whether it is the one."""
        since = datetime.fromisoformat(batch.began) - _CLOCKS_APART
        for found in _dicts(self.http.json(f"{self._url}?limit=100").get("data")):
            with suppress(KeyError, TypeError, ValueError):  # another's, in another form
                recent = datetime.fromisoformat(found["created_at"]) >= since
                as_many = _count(found, "processing", *_ENDS) == len(batch.requests)
                if recent and as_many and found["id"] not in known:
                    return _id(found)
        return ""

    def state(self, batch: Batch) -> State:
        """How far it is."""
        found = self.http.json(f"{self._url}/{batch.id}")
        ended, done = found.get("processing_status") == "ended", _count(found, *_ENDS)
        url, own = found.get("results_url"), f"{self._url}/{batch.id}/results"
        # On another host it is not asked: a key goes where the judge's file sends it.
        same = isinstance(url, str) and urlsplit(url)[:2] == urlsplit(own)[:2]
        return State(ended, done, results=[str(url) if same else own])

    def result(self, line: Mapping[str, Any]) -> Result:
        """What a line of the results says. Raises KeyError, TypeError or AttributeError."""
        custom_id, result = line["custom_id"], line["result"]
        if result["type"] == "succeeded":
            return Result(custom_id, 200, to_line(result["message"]).encode())
        if result["type"] == "errored":
            error = result["error"].get("error") or result["error"]
            status = _STATUS.get(error.get("type"), 500)
            return Result(custom_id, status, to_line({"type": "error", "error": error}).encode())
        return Result(custom_id, error=f"the request is {result['type']}")


Api = OpenAI | Anthropic


def results_in(files: Sequence[IO[bytes]], api: Api) -> Iterator[Result | None]:
    """What every line says, in their order; None for one that cannot be read."""
    for file in files:
        file.seek(0)
    for line in chain.from_iterable(files):
        if line.strip():
            try:
                found = api.result(json.loads(line))
                yield found if isinstance(found.custom_id, str) else None
            except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
                yield None


def longest_results(batch: Batch) -> int:
    """Bytes that a file of results may have."""
    return 64 * _BLOCK + len(batch.requests) * _LONGEST_RESULT


def _id(found: Mapping[str, Any]) -> str:
    name = found.get("id")
    if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
        raise TransientError(f"the endpoint gives a batch or file no usable id: {shorten(name)}")
    return name


def _dicts(found: Any) -> list[dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _count(found: Mapping[str, Any], *names: str) -> int:
    """How many requests of a batch have come to any of these ends."""
    (counts,) = _dicts([found.get("request_counts")]) or [{}]
    return sum(value for name in names if type(value := counts.get(name)) is int)
