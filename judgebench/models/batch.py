"""Requests made as batches: cheaper, later, and safe to wait for in more than one sitting.

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
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from tenacity import Retrying, retry_if_exception, stop_after_delay

from judgebench.errors import EndpointDown, Problem, SetupError, some
from judgebench.files import to_json, write_atomically
from judgebench.models.batch_api import (
    Anthropic,
    Api,
    Batch,
    FailedBatchError,
    Http,
    OpenAI,
    Result,
    Sent,
    Single,
)
from judgebench.models.calls import FEW_WORDS
from judgebench.models.chat import RefusedParameterError, TransientError, UnreachableError
from judgebench.models.contract import Backend, Reply, Request, wind_down
from judgebench.models.hosts import host_of, hosts_at
from judgebench.models.secrets import Secrets
from judgebench.models.settings import BackendSettings
from judgebench.models.transport import Waits
from judgebench.records import Usage

T = TypeVar("T")

_LOG = logging.getLogger("judgebench.models")
_PROTOCOLS: Mapping[str | None, type[OpenAI] | type[Anthropic]] = {
    "openai": OpenAI,
    "anthropic": Anthropic,
}
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
        protocol = _PROTOCOLS.get(getattr(backend, "batch_protocol", None))
        if protocol is None:
            allowed = "openai-compatible:MODEL, litellm:openai/MODEL, litellm:anthropic/MODEL, "
            message = "has no batch endpoint that is known: run this benchmark without batches"
            allowed += "without `knowledge`, which needs each reply before the next question"
            raise SetupError(Problem(message, field="backend", allowed=allowed))
        self._protocol = protocol
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
                _LOG.warning("%s: goes on at the provider; rerun to collect it", self._named)
        except SetupError as error:
            advice = (
                f"; {self._path} notes {self._named}: use the address and the key that it was "
                "submitted with, or delete that file to submit, and pay for, its requests again"
            )
            scrub, advice = self._secrets.scrubbed, advice if self._ids else ""
            raise SetupError(
                [replace(p, message=scrub(p.message) + advice) for p in error.problems]
            ) from None

    def wind_down(self) -> None:
        """Wait no longer; what is submitted stays submitted."""
        self._stopped.set()
        wind_down(self._backend)

    def close(self) -> None:
        self._stopped.set()
        self._backend.close()

    def _replies(self, requests: Iterable[Request]) -> Iterator[Reply]:
        due, lines, size = dict[str, Request](), dict[str, bytes](), 0
        api: Api | None = None
        for custom_id, request, sent in self._drawn(requests):
            due[custom_id] = request
            if api is None:
                api = self._api(sent)
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

    def _api(self, sent: Sent) -> Api:
        self._where = host_of(sent.url)
        self.hosts.update(hosts_at(sent.url))
        return self._protocol(Http(sent.headers, self._settings.timeout_s), sent.url)

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

    @property
    def _named(self) -> str:
        return some(sorted(self._ids), 3)

    # --- submit ----------------------------------------------------------------------------------

    def _confirm(self, api: Api) -> None:
        """Find the batches whose submission was cut off; forget those that never arrived."""
        for batch in self._batches:
            batch.id = batch.id or self._patiently(partial(api.find, batch, self._ids))
        self._note([batch for batch in self._batches if batch.id])

    def _submit(self, api: Api, lines: Mapping[str, bytes]) -> None:
        """Submit a batch. It is noted before, so that it can be found should this be cut off."""
        content = list(lines.values())
        file = self._patiently(partial(api.upload, content))
        batch = Batch(list(lines), datetime.now(UTC).isoformat(timespec="seconds"), file)
        self._note([*self._batches, batch])
        try:
            batch.id = api.create(batch, content)
        except TransientError:  # it may have arrived all the same
            batch.id = self._patiently(
                lambda: api.find(batch, self._ids) or api.create(batch, content)
            )
        self._note(self._batches)
        _LOG.warning(
            "%s: submitted %s with %s requests; results may take a day; stop and rerun at will",
            self._where, batch.id, f"{len(lines):,}",
        )  # fmt: skip

    def _patiently(self, act: Callable[[], T]) -> T:
        """What `act` returns, tried again after faults that may pass. Raises EndpointDown where
        they last for `down_for_s`, and SetupError where there never was a server."""

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
            if not may_pass(error):
                raise SetupError(str(error)) from None
            down = f"{self._where} has failed for {self._settings.down_for_s:g} s"
            said = self._secrets.scrubbed(str(error))
            raise EndpointDown(f"{down}; rerun to collect its batches: {said}") from None
        self._answered = True
        return found

    def _wait(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise _StoppedError

    # --- collect ---------------------------------------------------------------------------------

    def _collected(self, api: Api, due: dict[str, Request]) -> Iterator[Reply]:
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
        if self._fault and not replied and not self._takes_others(self._fault):
            raise self._fault

    def _takes_others(self, fault: SetupError) -> bool:
        """Whether what was refused is about those requests alone: the endpoint replies to a few
        words that are asked in the same way."""
        if not isinstance(fault, RefusedParameterError):
            return False
        probe = [replace(self._refused, messages=FEW_WORDS)]
        return any(reply.finish != "failed" for reply in self._backend.complete(probe))

    def _results(self, api: Api, batch: Batch) -> Mapping[str, Result]:
        """What came of the requests of a batch, once it has ended."""
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
            if not status:
                raise TransientError(body.decode())
            return self._single.read_back(request, status, body)
        except (TransientError, SetupError) as error:
            if isinstance(error, SetupError):
                self._fault, self._refused = error, request
            said = self._secrets.scrubbed(str(error))
            return Reply(request.key, "", "failed", Usage(1), error=said)
