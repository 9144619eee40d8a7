"""A backend that somebody wrote in Python: any object that meets `contract.Backend`."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from judgebench.errors import Problem, SetupError
from judgebench.models.contract import Backend
from judgebench.models.settings import BackendSettings
from judgebench.records import canonical_json

METHODS = ("describe", "complete", "close")


def importable_from(folder: Path) -> None:
    """Modules in that folder can be imported from now on; those installed go first."""
    path = str(folder.resolve())
    if path not in sys.path:
        sys.path.append(path)


def made_by(name: str, settings: BackendSettings) -> Backend:
    """What the factory `package.module:factory` makes. It is called with the settings where it has
    a parameter of that name or one without a default.

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
    missing = [m for m in METHODS if not callable(getattr(made, m, None))]
    if missing:
        message = f"is no backend: a {type(made).__name__} lacks {', '.join(missing)}"
        raise _problem(spec, message, allowed=f"an object with {', '.join(METHODS)}")
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
