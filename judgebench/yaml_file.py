"""Read a YAML file into a pydantic model; every problem is told with its file, line and field."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from judgebench.errors import Problem, SetupError

Model = TypeVar("Model", bound=BaseModel)


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a mapping that holds a key twice, of which YAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} stands twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_yaml(path: Path) -> Any:
    """The parsed file. Raises SetupError with the line where it is not YAML."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SetupError(Problem("no such file", file=str(path))) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(Problem(f"cannot be read: {error}", file=str(path))) from None
    try:
        return yaml.load(text, _UniqueKeyLoader)  # a SafeLoader underneath
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        message = getattr(error, "problem", None) or str(error)
        line = mark.line + 1 if mark else None
        raise SetupError(Problem(f"is not YAML: {message}", file=str(path), line=line)) from None


def load_model(path: Path, model: type[Model]) -> Model:
    """The file as `model`. Raises SetupError that lists every problem."""
    return validate(load_yaml(path), model, file=str(path))


def validate(value: Any, model: type[Model], file: str = "") -> Model:
    """`value` as `model`. Raises SetupError that lists every problem, unknown keys included."""
    if not isinstance(value, dict):
        found = "nothing" if value is None else type(value).__name__
        raise SetupError(Problem("must hold a mapping", file=file, found=found))
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise SetupError(_problems(error, model, file)) from None


def _problems(error: ValidationError, model: type[BaseModel], file: str) -> Sequence[Problem]:
    problems = []
    for item in error.errors():
        where = ".".join(str(part) for part in item["loc"])
        found = "" if item["type"] == "missing" else _short(item["input"])
        message = item["msg"].removeprefix("Value error, ")
        allowed = ""
        if item["type"] == "extra_forbidden":
            message, found = "is not a known key", str(item["loc"][-1])
            allowed = _known_keys(model, item["loc"])
        problems.append(
            Problem(
                message, file=file, field=where, found=found, allowed=allowed, kind=item["type"]
            )
        )
    return problems


def _known_keys(model: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    """The keys allowed where `loc` stands, the nearest one first; empty where that is a union."""
    here: Any = model
    for part in loc[:-1]:
        if isinstance(part, int):
            continue
        here = getattr(here, "model_fields", {}).get(part)
        here = _inner_model(getattr(here, "annotation", None))
    fields = list(getattr(here, "model_fields", {}))
    near = get_close_matches(str(loc[-1]), fields, n=1)
    return ", ".join([*near, *(f for f in fields if f not in near)])


def _inner_model(annotation: Any) -> Any:
    """The model inside `list[Model]`, `Model | None` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = [_inner_model(arg) for arg in getattr(annotation, "__args__", ())]
    models = [m for m in found if m is not None]
    return models[0] if len(models) == 1 else None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
