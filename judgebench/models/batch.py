"""Requests made as batches: cheaper, later, and safe to wait for in more than one sitting.

The protocol is OpenAI's, by files. A batch is submitted, looked at until it has ended, and
collected. Each request has a `custom_id`, by which its result is found; results come in any order.

What was submitted stands in a file beside the verdicts, under a hash of what each request sends. So
whoever asks the same again, after Ctrl-C or a crash, collects the same batch and pays once. Batches
are forgotten when every reply of one stream has been handed over and kept; what then has no verdict
is submitted anew when it is asked again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, build_opener
from urllib.request import Request as HTTPRequest

from tenacity import Retrying, retry_if_exception, stop_after_delay

from judgebench.errors import EndpointDown, Problem, SetupError, shorten
from judgebench.files import to_bytes, to_json, to_line, write_atomically
from judgebench.models.chat import (
    TransientError,
    UnreachableError,
    error_text,
    failure,
    failure_reason,
    read_json,
    wait_asked_for,
)
from judgebench.models.contract import Backend, Reply, Request, drain
from judgebench.models.settings import BackendSettings, Secrets, host_of, url_below
from judgebench.models.transport import Backoff
from judgebench.records import Usage

_BOUNDARY = "judgebench-7f3c0a9be2d84d51"
_PART = f"--{_BOUNDARY}\r\nContent-Disposition: form-data; name="
_FORM = (
    f'{_PART}"purpose"\r\n\r\nbatch\r\n{_PART}"file"; filename="batch.jsonl"\r\n'
    "Content-Type: application/jsonl\r\n\r\n"
)
_ODD = (KeyError, TypeError, ValueError, AttributeError, RecursionError)  # of JSON in another form

# What came of a request: an HTTP status and body; the status is 0 where it was not made, and the
# body says why.
Result = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as a single call sends it. A backend whose single calls become a batch has two
    methods: `written` makes this of a Request, and `read_back` a Reply of a Request, a status and
    a body."""

    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Batch:
    """A batch that was submitted: `id` is empty until the endpoint has confirmed it, `file` is the
    uploaded file of the OpenAI protocol."""

    requests: list[str]
    file: str
    id: str = ""


class OpenAI:
    """Files of lines: https://platform.openai.com/docs/api-reference/batch. Calls have the headers
    of `sent`, a single call."""

    limits = 50_000, 200_000_000  # requests and bytes of a batch

    def __init__(self, sent: Sent, timeout_s: float) -> None:
        self._headers, self._timeout_s = sent.headers, timeout_s
        self._base = sent.url.replace("/chat/completions", "")

    def line(self, custom_id: str, body: bytes) -> bytes:
        """A request of a batch."""
        head = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions"}
        return b'%b,"body":%b}\n' % (to_bytes(head)[:-1], body)

    def upload(self, lines: Iterable[bytes]) -> str:
        """Bring there what a batch is made of; this costs nothing. Returns the file's id."""
        data = b"".join([_FORM.encode(), *lines, f"\r\n--{_BOUNDARY}--\r\n".encode()])
        return _id(self._json("/files", data, f"multipart/form-data; boundary={_BOUNDARY}"))

    def submit(self, file: str) -> str:
        """Submit the batch of this file, unless it was: what cut a submission off may have come
        after it arrived. Returns the batch's id."""
        listed = self._json("/batches?limit=100").get("data")
        for batch in listed if isinstance(listed, list) else ():
            if isinstance(batch, dict) and batch.get("input_file_id") == file:
                return _id(batch)
        window = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
        return _id(self._json("/batches", to_bytes({"input_file_id": file, **window})))

    def results(self, batch_id: str) -> tuple[dict[str, Result], str] | None:
        """The results by custom_id, and the reason why others have none; None while the batch has
        not ended. A line that cannot be read says nothing."""
        batch = self._json(f"/batches/{batch_id}")
        if batch.get("status") not in ("completed", "failed", "expired", "cancelled"):
            return None
        results: dict[str, Result] = {}
        for file in (batch.get("output_file_id"), batch.get("error_file_id")):
            lines = self._read(f"/files/{file}/content") if isinstance(file, str) else b""
            for line in lines.splitlines():
                with suppress(*_ODD):
                    result = json.loads(line)
                    results[result["custom_id"]] = _read_result(result)
        reason = f"the batch {batch_id} has no result for this request"
        return results, error_text(batch.get("errors") or reason)

    def _json(self, path: str, data: bytes | None = None, kind: str = "application/json") -> Any:
        """The JSON object that comes back. Raises as `_read`."""
        answer = read_json(self._read(path, data, kind))
        if not isinstance(answer, dict):
            raise TransientError(f"{self._base}{path} gives no JSON object")
        return answer

    def _read(self, path: str, data: bytes | None = None, kind: str = "application/json") -> bytes:
        """Read a path; a POST where there is data. Raises TransientError where another try may
        help, and SetupError for what is refused."""
        url = url_below(self._base, path)
        request = HTTPRequest(url, data, {"Content-Type": kind, **self._headers})
        try:
            with _answered(request, self._timeout_s) as answer:
                status, raw = answer.getcode(), bytes(answer.read())
        except (OSError, HTTPException, ValueError) as error:
            fault = UnreachableError if isinstance(error, URLError) else TransientError
            raise fault(f"no answer from {url}: {error}") from None
        if status >= 300:
            done = failure(status, error_text(read_json(raw)), url, wait_asked_for(answer.headers))
            raise SetupError(f"the endpoint refuses the batch: {url}; {done.error}")
        return raw


def _answered(request: HTTPRequest, timeout_s: float) -> Any:
    """The server's answer, be it an error or not. Raises OSError, HTTPException or ValueError."""
    try:
        return build_opener(_NoRedirect).open(request, timeout=timeout_s)
    except HTTPError as answer:
        return answer


class _NoRedirect(HTTPRedirectHandler):
    """A key is sent to the address that was given and nowhere else."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _read_result(line: Mapping[str, Any]) -> Result:
    if response := line.get("response"):
        return int(response["status_code"]), to_line(response["body"]).encode()
    return 0, error_text(line.get("error") or "the batch gives no reason").encode()


def _id(answer: Mapping[str, Any]) -> str:
    name = answer.get("id")
    if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
        raise TransientError(f"the endpoint gives a batch or file no usable id: {shorten(name)}")
    return name


_LOG = logging.getLogger("judgebench.models")
WAITS = Backoff(1.0, 60.0, 600.0)  # after faults; between two looks at a batch likewise


class _StoppedError(Exception):
    """No batch is waited for any longer."""


class Batched:
    """A Backend over another, whose calls it makes as batches; `path` is the file that notes them.

    Replies have no latency, and a cost only where `price` says what a batch costs. All requests
    are drawn, and held, before the first reply. Raises SetupError where the other's provider has no
    batch endpoint that is known.
    """

    def __init__(self, backend: Backend, settings: BackendSettings, path: Path) -> None:
        if not hasattr(backend, "read_back"):
            message = "has no batch endpoint that is known: run this benchmark without batches"
            allowed = (
                "openai-compatible:MODEL, without `knowledge`, which needs each reply before the "
                "next question"
            )
            raise SetupError(Problem(message, field="backend", allowed=allowed))
        self._backend, self._settings, self._path = backend, settings, path
        self._single: Any = backend
        self._stopped = threading.Event()

    def describe(self) -> Mapping[str, Any]:
        """As the other's: the same is asked, so the same judge gives the verdicts."""
        about = self._backend.describe()
        return {**about, "runtime": {**about.get("runtime", {}), "batch": True}}

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        self._secrets, self._answered = Secrets(self._settings.api_key_env), False
        self._batches = self._noted()
        try:
            yield from self._replies(requests)
        except _StoppedError:
            _LOG.warning("what was submitted goes on at the provider; rerun to collect it")
        except SetupError as error:
            advice = (
                f"; {self._path} notes what was submitted: use the address and the key that it was "
                "submitted with, or delete that file to submit, and pay for, its requests again"
            )
            scrub, advice = self._secrets.scrubbed, advice if self._batches else ""
            raise SetupError(
                [replace(p, message=scrub(p.message) + advice) for p in error.problems]
            ) from None

    def drain(self) -> None:
        """Wait no longer; what is submitted stays submitted."""
        self._stopped.set()
        drain(self._backend)

    def close(self) -> None:
        self._stopped.set()
        self._backend.close()

    def _replies(self, requests: Iterable[Request]) -> Iterator[Reply]:
        due, lines, size = dict[str, Request](), dict[str, bytes](), 0
        for custom_id, request, sent in self._drawn(requests):
            if not due:
                self._open(sent)
                known = {name for batch in self._batches for name in batch.requests}
            due[custom_id] = request
            if custom_id in known:
                continue
            line = self._api.line(custom_id, sent.body)
            max_lines, max_bytes = self._api.limits
            if len(lines) == max_lines or size + len(line) > max_bytes:
                self._submit(lines)
                lines, size = {}, 0
            lines[custom_id] = line
            size += len(line)
        if lines:
            self._submit(lines)
        yield from self._collected(due)

    def _drawn(self, requests: Iterable[Request]) -> Iterator[tuple[str, Request, Sent]]:
        """Each request, by what it sends; those that send the same are numbered."""
        counts = Counter[str]()
        for request in requests:
            sent: Sent = self._single.written(request)
            digest = hashlib.sha256(b"%b\n%b" % (sent.url.encode(), sent.body)).hexdigest()[:32]
            yield f"{digest}-{counts[digest]}", request, sent
            counts[digest] += 1

    def _open(self, sent: Sent) -> None:
        self._where = host_of(sent.url)
        self._api = OpenAI(sent, self._settings.timeout_s)
        self._confirm()

    # --- what is noted ---------------------------------------------------------------------------

    def _noted(self) -> list[Batch]:
        if not self._path.is_file():
            return []
        try:
            return [Batch(**batch) for batch in json.loads(self._path.read_bytes())["batches"]]
        except (ValueError, KeyError, TypeError):
            message = "is damaged: without it, its batches are submitted and paid for again"
            raise SetupError(Problem(message, str(self._path))) from None

    def _note(self, batches: list[Batch]) -> None:
        """Note these, and no others; no file is left where there are none."""
        self._batches = batches
        if batches:
            noted = {"batches": [asdict(batch) for batch in batches]}
            write_atomically(self._path, to_json(noted, indent=1).encode())
        else:
            self._path.unlink(missing_ok=True)

    # --- submit ----------------------------------------------------------------------------------

    def _submit(self, lines: Mapping[str, bytes]) -> None:
        """Submit a batch. It is noted before, so that it can be found should this be cut off."""
        file = self._patiently(partial(self._api.upload, lines.values()))
        self._note([*self._batches, Batch(list(lines), file)])
        self._confirm()
        _LOG.warning(
            "%s: submitted %s with %s requests; results may take a day; stop and rerun at will",
            self._where, self._batches[-1].id, f"{len(lines):,}",
        )  # fmt: skip

    def _confirm(self) -> None:
        """Submit what is noted and not known to be submitted."""
        for batch in self._batches:
            batch.id = batch.id or self._patiently(partial(self._api.submit, batch.file))
        self._note(self._batches)

    def _patiently(self, act: Callable[[], Any]) -> Any:
        """Return the result of `act`, tried again after faults that may pass. Raises EndpointDown
        where they last for `down_for_s`, and where there never was a server."""

        def may_pass(error: BaseException) -> bool:
            is_absent = isinstance(error, UnreachableError) and not self._answered
            return isinstance(error, TransientError) and not is_absent

        retrying = Retrying(
            stop=stop_after_delay(self._settings.down_for_s), wait=WAITS,
            retry=retry_if_exception(may_pass), sleep=self._wait, reraise=True,
        )  # fmt: skip
        try:
            result = retrying(act)
        except TransientError as error:
            message = f"{self._where}: {error}; rerun to collect its batches"
            raise EndpointDown(self._secrets.scrubbed(message)) from None
        self._answered = True
        return result

    def _wait(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise _StoppedError

    # --- collect ---------------------------------------------------------------------------------

    def _collected(self, due: dict[str, Request]) -> Iterator[Reply]:
        """A reply to everything that is due, batch by batch."""
        batches = [b for b in self._batches if not due.keys().isdisjoint(b.requests)]
        for batch in batches:
            results, reason = self._results(batch)
            for custom_id in filter(due.__contains__, batch.requests):
                result = results.get(custom_id, (0, reason.encode()))
                yield self._reply(due.pop(custom_id), *result)
        self._note([batch for batch in self._batches if batch not in batches])

    def _results(self, batch: Batch) -> tuple[dict[str, Result], str]:
        """The result of `OpenAI.results`, once the batch has ended."""
        interval = WAITS.first
        while (results := self._patiently(partial(self._api.results, batch.id))) is None:
            self._wait(interval)
            interval = min(1.5 * interval, WAITS.longest)
        return results  # type: ignore[no-any-return]

    def _reply(self, request: Request, status: int, body: bytes) -> Reply:
        """The reply that a single call would have given."""
        try:
            if status:
                return self._single.read_back(request, status, body)  # type: ignore[no-any-return]
            reason = body.decode()
        except (TransientError, SetupError) as error:
            reason = failure_reason(error)
        return Reply(request.key, "", "failed", Usage(1), error=self._secrets.scrubbed(reason))
