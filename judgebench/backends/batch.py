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
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar, cast

from judgebench.backends.batch_api import (
    Anthropic,
    Api,
    Batch,
    Http,
    OpenAI,
    Result,
    Sent,
    Single,
    State,
    longest_results,
    results_in,
)
from judgebench.backends.calls import Call, Policy
from judgebench.backends.chat import (
    Completion,
    RefusedParameterError,
    TransientError,
    UnreachableError,
)
from judgebench.backends.contract import Backend, Reply, Request, wind_down
from judgebench.backends.hosts import host_of, proxy_of
from judgebench.backends.pace import Pace
from judgebench.backends.secrets import Secrets
from judgebench.backends.settings import BackendSettings
from judgebench.errors import EndpointDown, Problem, SetupError, some
from judgebench.files import to_json, write_atomically

T = TypeVar("T")
Due = dict[str, Request]  # by custom_id

_LOG = logging.getLogger("judgebench.backends")
_PROTOCOLS: Mapping[str, type[OpenAI] | type[Anthropic]] = {
    "openai": OpenAI,
    "anthropic": Anthropic,
}
FIRST_S, LONGEST_S = 1.0, 60.0  # between two looks at a batch
_LONGEST_ASKED_S = 600.0
STOP_IS_SAID_S = 0.25  # after no more requests are drawn
_GIVEN_UP = timedelta(hours=48)  # both providers promise 24
_FORGOTTEN = timedelta(days=29)  # results are gone by then


class _StoppedError(Exception):
    """No batch is waited for any longer."""


class Submitted:
    """The batches that the file at `path` notes. Raises SetupError where it is damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.batches: list[Batch] = []
        if path.is_file():
            try:
                found = [Batch(**batch) for batch in json.loads(path.read_bytes())["batches"]]
                recent = datetime.now(UTC) - _FORGOTTEN
                self.batches = [b for b in found if datetime.fromisoformat(b.began) > recent]
            except (ValueError, KeyError, TypeError):
                message = "is damaged: without it, its batches are submitted and paid for again"
                raise SetupError(Problem(message, str(path))) from None

    @property
    def ids(self) -> set[str]:
        """Their names at the endpoint."""
        return {batch.id for batch in self.batches}

    def save(self) -> None:
        """Write what is noted; nothing is left where that is nothing."""
        if self.batches:
            found = {"batches": [asdict(batch) for batch in self.batches]}
            write_atomically(self._path, to_json(found, indent=1).encode())
        else:
            self._path.unlink(missing_ok=True)

    def forget(self, batches: Iterable[Batch]) -> None:
        """Note these no longer."""
        for batch in batches:
            self.batches.remove(batch)
        self.save()


class Batched:
    """A Backend over another, whose calls it makes as batches; `path` is its file.

    Replies have no latency, and a cost only where `price` says what a batch costs. All requests
    are drawn, and held, before the first reply. Raises SetupError where the other's provider has no
    batch endpoint that is known.
    """

    def __init__(self, backend: Backend, settings: BackendSettings, path: Path) -> None:
        protocol = _PROTOCOLS.get(getattr(backend, "batch_protocol", ""))
        if protocol is None:
            allowed = "openai-compatible:MODEL, litellm:openai/MODEL, litellm:anthropic/MODEL"
            message = "has no batch endpoint that is known: run this benchmark without batches"
            raise SetupError(Problem(message, field="backend", allowed=allowed))
        self._protocol = protocol
        self._backend, self._settings, self._path = backend, settings, path
        self._single = cast(Single, backend)
        self._stopped = threading.Event()
        self.hosts = set[str]()

    def describe(self) -> Mapping[str, Any]:
        """As the other's: the same is asked, so the same judge gives the verdicts."""
        about = self._backend.describe()
        return {**about, "runtime": {**about.get("runtime", {}), "batch": True}}

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        self._submitted, self._faults = Submitted(self._path), list[SetupError]()
        self._replied, self._secrets = False, Secrets(self._settings.api_key_env)
        try:
            yield from self._replies(requests)
            for fault in self._faults:
                # An endpoint that has replied takes the parameters: see `Calls`.
                if not (self._replied and isinstance(fault, RefusedParameterError)):
                    raise fault
        except _StoppedError:
            if ids := [batch.id for batch in self._submitted.batches if batch.id]:
                _LOG.warning("%s: goes on at the provider; rerun to collect it", some(ids, 3))
        except SetupError as error:
            scrub = self._secrets.scrubbed
            raise SetupError(
                [replace(p, message=scrub(p.message)) for p in error.problems]
            ) from None

    def wind_down(self) -> None:
        """Wait no longer; what is submitted stays submitted."""
        self._stopped.set()
        wind_down(self._backend)

    def close(self) -> None:
        self._stopped.set()
        self._backend.close()

    def _replies(self, requests: Iterable[Request]) -> Iterator[Reply]:
        due, lines, size = Due(), dict[str, bytes](), 0
        api: Api | None = None
        for custom_id, request, sent in self._drawn(requests):
            due[custom_id] = request
            if api is None:
                api = self._api(sent)
                self._confirm(api)
                known = {one for batch in self._submitted.batches for one in batch.requests}
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
        if self._stopped.wait(STOP_IS_SAID_S):  # which may be why no more came
            raise _StoppedError
        if lines:
            self._submit(api, lines)
        batches = [b for b in self._submitted.batches if not due.keys().isdisjoint(b.requests)]
        yield from self._collected(api, batches, due)
        self._submitted.forget(batches)

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
        self._where, proxy = host_of(sent.url), proxy_of(sent.url)
        self.hosts |= {self._where, *([host_of(proxy)] if proxy else [])}
        settings = self._settings
        pace = Pace(self._where, settings, FIRST_S, LONGEST_S)
        self._policy = Policy(settings, lambda _: 0.0, pace, self._where, 0.0, self._secrets)
        return self._protocol(Http(sent.headers, settings.timeout_s), sent.url)

    # --- submit ----------------------------------------------------------------------------------

    def _confirm(self, api: Api) -> None:
        """Find the batches whose submission was cut off; forget those that never arrived."""
        for batch in [batch for batch in self._submitted.batches if not batch.id]:
            batch.id = self._patiently(partial(api.find, batch, self._submitted.ids))
            self._submitted.forget([] if batch.id else [batch])

    def _submit(self, api: Api, lines: Mapping[str, bytes]) -> None:
        """Submit a batch. It is noted before, so that it can be found should this be cut off."""
        batch = Batch(list(lines), datetime.now(UTC).isoformat(timespec="seconds"))
        content = list(lines.values())
        self._patiently(partial(api.upload, batch, content))
        self._submitted.batches.append(batch)
        self._submitted.save()
        try:
            batch.id = self._patiently(partial(self._create, api, batch, content))
        except SetupError:  # it was refused, so there is none
            self._submitted.forget([batch])
            raise
        self._submitted.save()
        _LOG.warning(
            "%s: submitted %s with %s requests; results may take a day; stop and rerun at will",
            self._where, batch.id, f"{len(lines):,}",
        )  # fmt: skip

    def _create(self, api: Api, batch: Batch, content: Sequence[bytes]) -> str:
        try:
            return api.create(batch, content)
        except TransientError:  # it may have arrived all the same
            if found := self._patiently(partial(api.find, batch, self._submitted.ids)):
                return found
            raise

    def _patiently(self, act: Callable[[], T]) -> T:
        """What `act` returns, tried again after faults that may pass, at growing intervals. Raises
        EndpointDown where they last for `down_for_s`."""
        began, wait = time.monotonic(), FIRST_S
        while True:
            try:
                return act()
            except UnreachableError as error:
                raise SetupError(str(error)) from None
            except TransientError as error:
                if time.monotonic() - began > self._settings.down_for_s:
                    down = f"{self._where} has failed for {self._settings.down_for_s:g} s"
                    said = self._secrets.scrubbed(str(error))
                    raise EndpointDown(f"{down}; rerun to collect its batches: {said}") from None
                if self._stopped.wait(min(error.after or wait, _LONGEST_ASKED_S)):
                    raise _StoppedError from None
                wait = min(2 * wait, LONGEST_S)

    # --- collect ---------------------------------------------------------------------------------

    def _collected(self, api: Api, batches: Sequence[Batch], due: Due) -> Iterator[Reply]:
        """A reply to everything that is due, batch by batch as each ends."""
        waiting, interval, told = list(batches), FIRST_S, ""
        while waiting:
            states = [(batch, self._state(api, batch)) for batch in waiting]
            for batch, state in states:
                if state.ended:
                    waiting.remove(batch)
                    yield from self._replies_of(api, batch, state, due)
            if waiting:
                done = sum(state.done for batch, state in states if batch in waiting)
                of = sum(len(batch.requests) for batch in waiting)
                now = f"{some([b.id for b in waiting], 3)}: {done:,} of {of:,} requests are done"
                if now != told:
                    _LOG.warning("%s: %s", self._where, told := now)
                if self._stopped.wait(interval):
                    raise _StoppedError
                interval = min(1.5 * interval, LONGEST_S)

    def _state(self, api: Api, batch: Batch) -> State:
        """How far a batch is. Raises SetupError for one that failed or is not known there, and
        EndpointDown for one that does not end."""
        state = self._of(batch, partial(api.state, batch))
        if state.failed:
            self._submitted.forget([batch])
            message = f"{self._where}: the batch {batch.id} failed as a whole: {state.failed}"
            raise SetupError(message)
        if not state.ended and datetime.now(UTC) - datetime.fromisoformat(batch.began) > _GIVEN_UP:
            raise EndpointDown(
                f"{self._where}: the batch {batch.id} of {batch.began} has not ended; cancel it "
                "there, and rerun to collect what it has"
            )
        return state

    def _of(self, batch: Batch, act: Callable[[], T]) -> T:
        """As `_patiently`; an error also says what can be done about a batch that is noted."""
        try:
            return self._patiently(act)
        except SetupError as error:
            raise SetupError(
                f"{error}; {self._path} notes the batch {batch.id} of {batch.began}: use the "
                "address and the key that it was submitted with, or delete that file to submit, "
                "and pay for, its requests again"
            ) from None

    def _replies_of(self, api: Api, batch: Batch, state: State, due: Due) -> Iterator[Reply]:
        """A reply to each request of a batch that is due. What has two different results has
        none."""
        left = due.keys() & set(batch.requests)
        first, twice, unread = dict[str, int](), set[str](), 0
        with ExitStack() as stack:
            files = [stack.enter_context(TemporaryFile()) for _ in state.results]
            for url, file in zip(state.results, files, strict=True):
                self._of(batch, partial(api.http.fetch, url, file, longest_results(batch)))
            for result in results_in(files, api):
                if result is None:
                    unread += 1
                elif first.setdefault(result.custom_id, hash(result)) != hash(result):
                    twice.add(result.custom_id)
            if unread:
                told = "%s: %d lines of the results of %s cannot be read"
                _LOG.warning(told, self._where, unread, batch.id)
            for result in results_in(files, api):
                if result is not None and result.custom_id in left - twice:
                    left.remove(result.custom_id)
                    yield self._reply(due.pop(result.custom_id), result)
        for custom_id in sorted(left):
            why = "has two different results for" if custom_id in twice else "has no result for"
            error = f"the batch {batch.id} {why} this request"
            yield self._reply(due.pop(custom_id), Result(custom_id, error=error))

    def _reply(self, request: Request, result: Result) -> Reply:
        """The reply that a single call would have given."""
        done = Completion("", "failed", error=result.error)
        try:
            if not result.error:
                done = self._single.read_back(request, result.status, result.body)
                self._replied = self._replied or done.finish in ("stop", "length")
        except TransientError as error:
            done = replace(done, error=str(error))
        except SetupError as error:  # raised when all that came is kept
            done = replace(done, error=str(error))
            self._faults.append(error)
        reply = self._policy.reply(Call(request, 0, tries=1), replace(done, cost=None))
        return replace(reply, latency=0.0)
