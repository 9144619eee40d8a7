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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast
from urllib.error import URLError
from urllib.request import Request as HTTPRequest

from tenacity import Retrying, retry_if_exception, stop_after_delay

from judgebench.errors import EndpointDown, Problem, SetupError, shorten, some
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
from judgebench.models.hosts import host_of, hosts_at, open_whatever
from judgebench.models.secrets import Secrets
from judgebench.models.settings import BackendSettings
from judgebench.models.transport import FEW_WORDS, Waits
from judgebench.records import Usage

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
    """The contract of a backend whose single calls become a batch: what it sends, and how it reads
    what comes back."""

    def written(self, request: Request) -> Sent: ...

    def read_back(self, request: Request, status: int, body: bytes) -> Reply: ...


@dataclass
class Batch:
    """A batch that was submitted: `id` is empty until the endpoint has confirmed it, `file` is the
    uploaded file of the OpenAI protocol."""

    requests: list[str]
    file: str
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
        """Read `url`; a POST where there is data. Raises as `failure`, and SetupError for what is
        refused."""
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
        after = wait_asked_for(answer.headers)
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

    def create(self, batch: Batch) -> str:
        """Submit it; returns its id."""
        about = {"input_file_id": batch.file, "endpoint": "/v1/chat/completions"}
        about["completion_window"] = "24h"
        return _id(self._http.json(f"{self._base}/batches", to_bytes(about)))

    def find(self, batch: Batch) -> str:
        """The id of a batch that may have been submitted; empty where it was not."""
        for found in _listed(self._http.json(f"{self._base}/batches?limit=100")):
            if found.get("input_file_id") == batch.file:
                return _id(found)
        return ""

    def results(self, batch: Batch) -> dict[str, Result] | int:
        """The result of each request; while the batch has not ended, how many are done. Raises
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


def _done(found: Mapping[str, Any], *ends: str) -> int:
    """The number of requests of a batch that ended in one of these ways."""
    counts = found.get("request_counts")
    known = counts if isinstance(counts, dict) else {}
    return sum(n for end in ends if type(n := known.get(end)) is int)


def _results(raw: bytes, result: Callable[[Mapping[str, Any]], Result]) -> dict[str, Result]:
    """The results on the lines, by custom_id. One that cannot be read says nothing."""
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


T = TypeVar("T")

_LOG = logging.getLogger("judgebench.models")
WAITS = Waits(1.0, 60.0, 600.0)  # after faults; between two looks at a batch likewise


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
            allowed = "openai-compatible:MODEL, without `knowledge`, which needs each reply before "
            message = "has no batch endpoint that is known: run this benchmark without batches"
            allowed += "the next question"
            raise SetupError(Problem(message, field="backend", allowed=allowed))
        self._backend, self._settings, self._path = backend, settings, path
        self._single = cast(Single, backend)
        self._stopped = threading.Event()
        self._fault: SetupError | None = None
        self.hosts = set[str]()

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
            if self._ids:
                named = some(sorted(self._ids), 3)
                _LOG.warning("%s: goes on at the provider; rerun to collect it", named)
        except SetupError as error:
            advice = (
                f"; {self._path} notes {some(sorted(self._ids), 3)}: use the address and the key "
                "that it was submitted with, or delete that file to submit, and pay for, its "
                "requests again"
            )
            scrub, advice = self._secrets.scrubbed, advice if self._ids else ""
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
        api: OpenAI | None = None
        for custom_id, request, sent in self._drawn(requests):
            due[custom_id] = request
            if api is None:
                self._where = host_of(sent.url)
                self.hosts.update(hosts_at(sent.url))
                api = OpenAI(Http(sent.headers, self._settings.timeout_s), sent.url)
                self._confirm(api)
                known = {one for batch in self._batches for one in batch.requests}
            if custom_id in known:
                continue
            line = api.line(custom_id, sent.body)
            most, most_bytes = api.limits
            if len(lines) == most or size + len(line) > most_bytes:
                self._submit(api, lines)
                lines, size = {}, 0
            lines[custom_id] = line
            size += len(line)
        if api is None:
            return
        if lines:
            self._submit(api, lines)
        yield from self._collected(api, due)

    def _drawn(self, requests: Iterable[Request]) -> Iterator[tuple[str, Request, Sent]]:
        """Each request, by what it sends; those that send the same are numbered."""
        seen = Counter[str]()
        for request in requests:
            sent = self._single.written(request)
            what = b"%b\n%b" % (sent.url.encode(), sent.body)
            digest = hashlib.sha256(what).hexdigest()[:32]
            yield f"{digest}-{seen[digest]}", request, sent
            seen[digest] += 1

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
            found = {"batches": [asdict(batch) for batch in batches]}
            write_atomically(self._path, to_json(found, indent=1).encode())
        else:
            self._path.unlink(missing_ok=True)

    @property
    def _ids(self) -> set[str]:
        return {batch.id for batch in self._batches if batch.id}

    # --- submit ----------------------------------------------------------------------------------

    def _confirm(self, api: OpenAI) -> None:
        """Find the batches whose submission was cut off; forget those that never arrived."""
        for batch in self._batches:
            batch.id = batch.id or self._patiently(partial(api.find, batch))
        self._note([batch for batch in self._batches if batch.id])

    def _submit(self, api: OpenAI, lines: Mapping[str, bytes]) -> None:
        """Submit a batch. It is noted before, so that it can be found should this be cut off."""
        file = self._patiently(partial(api.upload, list(lines.values())))
        batch = Batch(list(lines), file)
        self._note([*self._batches, batch])
        try:
            batch.id = api.create(batch)
        except TransientError:  # it may have arrived all the same
            batch.id = self._patiently(lambda: api.find(batch) or api.create(batch))
        self._note(self._batches)
        _LOG.warning(
            "%s: submitted %s with %s requests; results may take a day; stop and rerun at will",
            self._where, batch.id, f"{len(lines):,}",
        )  # fmt: skip

    def _patiently(self, act: Callable[[], T]) -> T:
        """Return the result of `act`, tried again after faults that may pass. Raises EndpointDown
        where they last for `down_for_s`, and where there never was a server."""

        def may_pass(error: BaseException) -> bool:
            absent = isinstance(error, UnreachableError) and not self._answered
            return isinstance(error, TransientError) and not absent

        within = stop_after_delay(self._settings.down_for_s)
        try:
            found: T = Retrying(
                stop=within, wait=WAITS, retry=retry_if_exception(may_pass), sleep=self._wait,
                reraise=True,
            )(act)  # fmt: skip
        except TransientError as error:
            said = self._secrets.scrubbed(str(error))
            if not may_pass(error):
                raise EndpointDown(said) from None
            down = f"{self._where} has failed for {self._settings.down_for_s:g} s"
            raise EndpointDown(f"{down}; rerun to collect its batches: {said}") from None
        self._answered = True
        return found

    def _wait(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise _StoppedError

    # --- collect ---------------------------------------------------------------------------------

    def _collected(self, api: OpenAI, due: dict[str, Request]) -> Iterator[Reply]:
        """A reply to everything that is due, batch by batch. Raises SetupError, when all that came
        is kept, where an endpoint refuses requests and has replied to none."""
        batches = [b for b in self._batches if not due.keys().isdisjoint(b.requests)]
        replied, self._fault = False, None
        for batch in batches:
            results = self._results(api, batch)
            none = 0, f"the batch {batch.id} has no result for this request".encode()
            for custom_id in sorted(due.keys() & {*batch.requests}):
                reply = self._reply(due.pop(custom_id), results.get(custom_id, none))
                replied = replied or reply.finish in ("stop", "length")
                yield reply
        self._note([batch for batch in self._batches if batch not in batches])
        if self._fault and not replied:  # it may be about those requests alone
            few_words = [replace(self._refused, messages=FEW_WORDS)]
            list(self._backend.complete(few_words))  # which raises where these are refused too

    def _results(self, api: OpenAI, batch: Batch) -> Mapping[str, Result]:
        """The results of a batch that has ended."""
        interval, told = WAITS.first, -1
        try:
            while isinstance(found := self._patiently(partial(api.results, batch)), int):
                if found != told:
                    of = f"{found:,} of {len(batch.requests):,} requests are done"
                    _LOG.warning("%s: %s: %s", self._where, batch.id, of)
                told = found
                self._wait(interval)
                interval = min(1.5 * interval, WAITS.longest)
        except FailedBatchError as error:
            self._note([other for other in self._batches if other is not batch])
            message = f"{self._where}: the batch {batch.id} failed as a whole: {error}"
            raise SetupError(message) from None
        return found

    def _reply(self, request: Request, result: Result) -> Reply:
        """The reply that a single call would have given."""
        status, body = result
        try:
            if status:
                return self._single.read_back(request, status, body)
            said = body.decode()
        except TransientError as error:
            said = str(error)
        except SetupError as error:
            self._fault, self._refused, said = error, request, failure_reason(error)
        scrubbed = self._secrets.scrubbed(said)
        return Reply(request.key, "", "failed", Usage(1), error=scrubbed)
