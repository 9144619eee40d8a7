"""Backends without an engine: one that replies from a script, for tests, documentation and dry
runs, and any object that somebody wrote in Python and that meets `contract.Backend`.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from judgebench.errors import Problem, SetupError
from judgebench.files import open_bytes
from judgebench.models.contract import BACKEND_METHODS, Backend, Finish, Reply, Request
from judgebench.models.settings import BackendSettings
from judgebench.records import Usage, canonical_json
from judgebench.shipped import at_home


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
        `key` (a request's key), `pattern` (a regular expression searched for in the messages), or
        neither (every request). A request that no line fits fails. Raises SetupError that lists
        every bad line.
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

    @model_validator(mode="after")
    def _one_way_to_fit(self) -> _ScriptLine:
        if self.key is not None and self.pattern is not None:
            raise ValueError("holds key and pattern: give one of them")
        return self

    def fits(self, request: Request) -> bool:
        if self.pattern is not None:
            return self.pattern.search("\n".join(m.content for m in request.messages)) is not None
        return self.key is None or self.key == request.key


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
            rows = file.read().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(Problem(f"cannot be read: {error}", file=str(path))) from None
    lines, problems = [], []
    other: dict[str, list[int]] = {}  # what is no scripted reply at all, and in which lines
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        try:
            lines.append(_ScriptLine.model_validate(json.loads(row)))
        except ValidationError as error:
            unknown = [str(e["loc"][0]) for e in error.errors() if e["type"] == "extra_forbidden"]
            if unknown:
                other.setdefault(", ".join(unknown), []).append(number)
            for item in error.errors():
                if item["type"] != "extra_forbidden":
                    where = ".".join(str(part) for part in item["loc"])
                    problems.append(Problem(item["msg"], str(path), number, where))
        except (ValueError, RecursionError):
            other.setdefault("", []).append(number)
    problems += [_no_reply(str(path), keys, found) for keys, found in other.items()]
    if problems:
        raise SetupError(sorted(problems, key=lambda problem: problem.line or 0))
    return lines


def _no_reply(file: str, keys: str, found: list[int]) -> Problem:
    """One problem for all lines that have the same keys that are not known, or are not JSON."""
    times = f" ({len(found):,} lines)" if len(found) > 1 else ""
    message = "unknown keys" if keys else "is not JSON"
    message += f"{times}: `scripted:` holds model replies for tests; recorded verdicts of a judge "
    message += "belong in {name: NAME, verdicts: FILE}"
    return Problem(message, file, found[0], "", keys, ", ".join(_ScriptLine.model_fields))


def importable_from(folder: Path) -> None:
    """Modules in that folder can be imported from now on; those installed go first."""
    path = str(folder.resolve())
    if path not in sys.path:
        sys.path.append(path)


def made_by(name: str, settings: BackendSettings) -> Backend:
    """The object that the factory `package.module:factory` makes. It is called with the settings
    where it has a parameter of that name or one without a default.

    Raises SetupError where there is no such factory, where it fails, and where what it makes is
    no backend.
    """
    spec = f"python:{name}"
    factory = _factory(name, spec)
    takes_settings = _takes_settings(factory)
    if not takes_settings and settings.model_fields_set:
        raise _problem(spec, f"{name} takes no settings")
    try:
        made = factory(settings) if takes_settings else factory()
    except SetupError:
        raise
    except Exception as error:  # a factory is a program: whatever fails in it is its author's
        raise _problem(spec, f"{name} failed: {type(error).__name__}: {error}") from error
    return checked(made, spec)


def checked(made: object, spec: str) -> Backend:
    """The object, if it is a backend. Raises SetupError that says what it lacks."""
    if missing := [m for m in BACKEND_METHODS if not callable(getattr(made, m, None))]:
        message = f"is no backend: a {type(made).__name__} lacks {', '.join(missing)}"
        raise _problem(spec, message, allowed=f"an object with {', '.join(BACKEND_METHODS)}")
    backend = cast(Backend, made)
    try:
        canonical_json(dict(backend.describe()))
    except (TypeError, ValueError) as error:
        raise _problem(spec, f"describe() must give plain values: {error}") from None
    return backend


def _factory(name: str, spec: str) -> Callable[..., object]:
    module_name, colon, attribute = name.partition(":")
    if not (colon and module_name and attribute):
        raise _problem(spec, "names no factory", allowed="python:package.module:factory")
    try:
        found: object = importlib.import_module(module_name)
    except Exception as error:
        message = f"the module {module_name} cannot be imported: {error}"
        raise _problem(spec, message) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise _problem(spec, f"the module {module_name} has no {attribute}")
        found = getattr(found, part)
    if not callable(found):
        raise _problem(spec, f"{attribute} cannot be called")
    return found


def _takes_settings(factory: Callable[..., object]) -> bool:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except ValueError:  # a class written in C has none
        return False
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(
        p.name == "settings" or (p.default is p.empty and p.kind not in variadic)
        for p in parameters
    )


def _problem(spec: str, message: str, allowed: str = "") -> SetupError:
    return SetupError(Problem(message, field="backend", found=spec, allowed=allowed))
