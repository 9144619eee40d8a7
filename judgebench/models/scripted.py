"""Backends without an engine: one that replies from a script, for tests, documentation and dry
runs, and any object that somebody wrote in Python and that meets `contract.Backend`.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from judgebench.errors import BackendFailed, JudgebenchError, Problem, SetupError, raise_any
from judgebench.files import at_home, open_bytes, read_object, validate
from judgebench.models.contract import BACKEND_METHODS, Backend, Finish, Reply, Request
from judgebench.models.settings import BackendSettings
from judgebench.records import Usage, canonical_json


class Scripted:
    """Replies with what `reply` returns for each request: a Reply, or the text of a whole one.

    `calls` counts the requests answered.
    """

    def __init__(self, reply: Callable[[Request], Reply | str], name: str = "scripted") -> None:
        self._reply = reply
        self._about = {"engine": "scripted", "name": name}
        self.calls = 0

    @classmethod
    def from_file(cls, path: Path) -> Scripted:
        """Replies from a JSONL file; the first line that fits a request answers it.

        A line holds `text` (a string, or JSON that is written out), optionally `finish`, `error`
        and `log_probabilities` (as in Reply; told where they are asked for), and what it fits:
        `key` (a request's key), `pattern` (a regular expression searched for in the messages),
        both, or neither (every request). A request that no line fits fails. Raises SetupError that
        lists the bad lines.
        """
        lines = _read(path)
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        scripted = cls(lambda request: _first_fit(lines, request))
        scripted._about = {"engine": "scripted", "file": path.name, "sha256": sha256}
        return scripted

    def describe(self) -> Mapping[str, Any]:
        return self._about

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        for request in requests:
            self.calls += 1
            reply = self._reply(request)
            if isinstance(reply, str):
                reply = Reply(request.key, reply, usage=Usage(1))
            yield reply

    def close(self) -> None:
        """Nothing to give back."""


def scripted(file: str, _: BackendSettings) -> Scripted:
    """The backend that replies from a file, which may be one that comes with the package."""
    return Scripted.from_file(at_home(file))


LogProbability = Annotated[float, Field(le=0, allow_inf_nan=False)]
_ROUNDING = 0.01  # of what people write down
_MAX_PROBLEMS = 20  # of a file: one of another kind has thousands


class _ScriptLine(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    key: str | None = None
    pattern: re.Pattern[str] | None = None
    text: Any = ""
    finish: Finish = "stop"
    error: str = ""
    log_probabilities: dict[str, dict[str, LogProbability]] | None = None

    @field_validator("log_probabilities")
    @classmethod
    def _normalised(cls, fields: Any) -> Any:
        for key, options in (fields or {}).items():
            total = math.fsum(map(math.exp, options.values()))
            if abs(total - 1) > _ROUNDING:
                raise ValueError(f"the probabilities of {key} come to {total:.3f} and not to 1")
        return fields

    def fits(self, request: Request) -> bool:
        text = "\n".join(message.content for message in request.messages)
        is_match = self.pattern is None or self.pattern.search(text) is not None
        return is_match and self.key in (None, request.key)


def _first_fit(lines: list[_ScriptLine], request: Request) -> Reply:
    for line in lines:
        if line.fits(request):
            text = line.text if isinstance(line.text, str) else json.dumps(line.text)
            told = line.log_probabilities if request.labels_asked else None
            return Reply(
                request.key, text, line.finish, Usage(1), error=line.error, log_probabilities=told
            )
    return Reply(request.key, "", "failed", Usage(1), error="no scripted reply fits this request")


def _read(path: Path) -> list[_ScriptLine]:
    try:
        with open_bytes(path) as file:
            rows = file.read().splitlines()
    except OSError as error:
        raise SetupError(Problem(f"cannot be read: {error}", file=str(path))) from None
    lines, problems = list[_ScriptLine](), list[Problem]()
    for number, row in enumerate(rows, 1):
        if not row.strip() or len(problems) > _MAX_PROBLEMS:
            continue
        try:
            lines.append(validate(read_object(row, path, number), _ScriptLine, str(path)))
        except SetupError as error:
            problems += [replace(problem, line=number) for problem in error.problems]
    raise_any(problems)
    return lines


def importable_from(folder: Path) -> None:
    """Modules in that folder can be imported from now on; those installed go first."""
    path = str(folder.resolve())
    if path not in sys.path:
        sys.path.append(path)


def made_by(name: str, settings: BackendSettings) -> Backend:
    """The object that the factory `package.module:factory` makes. It is called with the settings
    where it has a parameter of that name.

    Raises SetupError where there is no such factory, where it fails, and where what it makes is
    no backend.
    """
    try:
        factory = resolve_name(name)
        takes_settings = "settings" in inspect.signature(factory).parameters
        if settings.model_fields_set and not takes_settings:
            raise _problem(name, "has no parameter `settings`, and so takes no settings")
        backend: Backend = factory(settings=settings) if takes_settings else factory()
    except SetupError:
        raise
    except Exception as error:  # a module and a factory are programs, in which anything may fail
        raise _problem(name, f"failed: {type(error).__name__}: {error}") from error
    if missing := [m for m in BACKEND_METHODS if not callable(getattr(backend, m, None))]:
        message = f"makes no backend: a {type(backend).__name__} lacks {', '.join(missing)}"
        raise _problem(name, message)
    try:
        canonical_json(dict(backend.describe()))
    except (TypeError, ValueError) as error:
        raise _problem(name, f"describe() must give plain values: {error}") from None
    return cast(Backend, _Foreign(backend, name))


class _Foreign:
    """A backend that somebody wrote, which may raise anything: as an error of this package."""

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend, self._name = backend, name

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        try:
            yield from self._backend.complete(requests)
        except JudgebenchError:
            raise
        except Exception as error:  # it is a program, in which anything may fail
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise BackendFailed(f"python:{self._name} failed: {reason}") from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


def _problem(name: str, message: str) -> SetupError:
    return SetupError(Problem(message, field="backend", found=f"python:{name}"))
