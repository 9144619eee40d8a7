"""Read a YAML file into a pydantic model; every problem is reported with file, line and field."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from functools import lru_cache, partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from judgebench.errors import Problem, SetupError, nearest, raise_any, shorten
from judgebench.files import open_bytes, read_lines, read_object

Model = TypeVar("Model", bound=BaseModel)
_SECRET = re.compile(r"api_?key|token\b|secret|password|base_url|headers|extra_body", re.IGNORECASE)
_MERGE, _TEXT = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:str"
_PLAIN = {f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "bool", "timestamp")}
# What the YAML package raises for the 31st of June, and for what is not of its tag (`!!bool x`).
_NO_VALUE = ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError
# What people write is a hundredth of this. Reading the most takes some seconds.
_MAX_SIZE, _VALUE_SIZE = 1_000_000, 20
_MAX_DEPTH, _MAX_NUMBER, _MAX_PROBLEMS = 100, 100, 100
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # that of C is many times as fast


class Strict(BaseModel):
    """A part of a file that people write. Unknown keys are refused; instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _size(node: yaml.Node, sizes: dict[yaml.Node, int], above: tuple[yaml.Node, ...] = ()) -> int:
    """The characters in a tree, and some for each value, with every alias (`*name`) replaced by
    what it stands for. Raises YAMLError where they are too many, and for a duplicate key, of which
    YAML would silently keep the last."""
    if node in sizes:
        return sizes[node]
    if node in above:
        raise _refused("an alias stands inside of what it names", node)
    if len(above) > _MAX_DEPTH:
        raise _refused(f"nested more than {_MAX_DEPTH} deep", node)
    size, within = _VALUE_SIZE, node.value
    if isinstance(node, yaml.ScalarNode):
        size, within = size + len(node.value), []
        if node.tag in _PLAIN and len(node.value) > _MAX_NUMBER:
            raise _refused(f"a number of more than {_MAX_NUMBER} characters", node)
    elif isinstance(node, yaml.MappingNode):
        _check_keys(node)
        within = [part for pair in node.value for part in pair]
    size += sum(_size(part, sizes, (*above, node)) for part in within)
    if size > _MAX_SIZE:
        raise _refused(f"more than {_MAX_SIZE:,} characters, aliases filled in", node)
    sizes[node] = size
    return size


def _check_keys(node: yaml.MappingNode) -> None:
    """Make texts of the keys, as they are written. Raises YAMLError for a duplicate one."""
    seen = set[str]()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
            if key.tag in _PLAIN:
                key.tag = _TEXT
            if key.value in seen:
                raise _refused(f"duplicate key {shorten(key.value)}", key)
            seen.add(key.value)


def _refused(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file. Raises SetupError where it cannot be read."""
    try:
        with TextIOWrapper(open_bytes(path), encoding="utf-8-sig") as file:
            return file.read()
    except FileNotFoundError:
        raise SetupError(Problem("no such file", file=str(path))) from None
    except (OSError, ValueError) as error:  # not UTF-8, or a NUL in the name
        raise SetupError(Problem(f"cannot be read: {error}", file=str(path))) from None


def parse_yaml(text: str, file: str, first_line: int = 1) -> Any:
    """The value of YAML text whose first line is `line` of `file`.

    Raises SetupError with the line where it is not YAML.
    """
    return parse_with_lines(text, file, first_line)[0]


def parse_with_lines(text: str, file: str, first_line: int = 1) -> tuple[Any, yaml.Node | None]:
    """The value of the text, and the tree that it was made from. Raises SetupError."""
    if len(text) > _MAX_SIZE:
        message = f"is too large for YAML that people write: {len(text):,} characters"
        raise SetupError(Problem(message, file, allowed=f"at most {_MAX_SIZE:,}"))
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, None
        _size(node, {})
        return loader.construct_document(node), node
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        message = getattr(error, "problem", None) or str(error)
        line = mark.line + first_line if mark else None
        raise SetupError(Problem(f"is not YAML: {message}", file=file, line=line)) from None
    except _NO_VALUE as error:
        raise SetupError(Problem(f"cannot be read as YAML: {error}", file=file)) from None


def load_yaml(path: Path) -> Any:
    """The parsed file. Raises SetupError with the line where it is not YAML."""
    return parse_yaml(read_text(path), str(path))


def load_model(path: Path, model: type[Model]) -> Model:
    """The file as `model`. Raises SetupError that lists every problem with its line."""
    value, node = load_with_lines(path)
    return validate(value, model, str(path), node)


def load_with_lines(path: Path) -> tuple[Any, yaml.Node | None]:
    """The parsed file, and its tree for `validate`. Raises SetupError where it is not YAML."""
    return parse_with_lines(read_text(path), str(path))


def validate(
    value: Any, model: type[Model], file: str = "", node: yaml.Node | None = None
) -> Model:
    """`value` as `model`. Raises SetupError that lists every problem, unknown keys included.

    `node` is the YAML that the value came from; with it, each problem names its line, and where a
    text is meant, a number, a date or a bare yes or no is read as it is written.
    """
    if not isinstance(value, dict):
        found = "nothing" if value is None else type(value).__name__
        raise SetupError(Problem("must hold a mapping", file=file, found=found))
    try:
        return model.model_validate(value)
    except ValidationError as error:
        if node is not None and (written := _as_written(value, node, error.errors())) != value:
            return validate(written, model, file, node)
        raise SetupError(_problems(error, model, file, node)) from None


def _as_written(value: Any, node: yaml.Node, errors: Iterable[ErrorDetails]) -> Any:
    """The value with the file's own texts wherever an error says that a text is meant."""
    copy = deepcopy(value)
    for error in errors:
        is_value = isinstance(error["input"], int | float | date)
        if error["type"] == "string_type" and is_value:
            _write(copy, node, error["loc"])
    return copy


def _write(value: Any, node: yaml.Node, loc: tuple[int | str, ...]) -> None:
    """Put the file's own text in the place of the value at `loc`, of which some parts are names of
    types."""
    for part in loc:
        if (entry := _entries(node).get(part)) is None:
            continue
        node = entry[1]
        if isinstance(node, yaml.ScalarNode):
            value[part] = node.value
            return
        value = value[part]


def load_json(path: Path, model: type[Model], what: str) -> Model:
    """The JSON object in a file as `model`; `what` it is that cannot be read. Raises
    SetupError."""
    try:
        with open_bytes(path) as file:
            content = file.read()
    except OSError as error:
        raise SetupError(
            Problem(f"{what} cannot be read: {error.strerror or error}", str(path))
        ) from None
    value = read_object(content, path)
    json.loads(content, object_pairs_hook=partial(_refuse_repeated, path), parse_int=str)
    return validate(value, model, str(path))


def _refuse_repeated(path: Path, pairs: Sequence[tuple[str, Any]]) -> None:
    """Raises SetupError where a JSON object has a key more than once: readers differ on which
    value counts."""
    keys = Counter(key for key, _ in pairs)
    if repeated := [key for key, n in keys.items() if n > 1]:
        raise SetupError(Problem("the key is given twice", str(path), None, shorten(repeated[0])))


def read_models(
    path: Path, model: type[Model], check: Callable[[Model], Iterable[Problem]] = lambda _: ()
) -> list[Model]:
    """Every line of a JSONL file as `model`, and what `check` finds in it. Raises SetupError with
    the problems of all lines, and where there is no file."""
    found, problems = [], list[Problem]()
    for number, value in read_lines(path):
        try:
            found.append(validate(value, model, str(path)))
            new = [*check(found[-1])]
        except SetupError as error:
            new = [*error.problems]
        problems += [replace(problem, file=str(path), line=number) for problem in new]
    raise_any(problems)
    return found


def _problems(
    error: ValidationError, model: type[BaseModel], file: str, node: yaml.Node | None
) -> Sequence[Problem]:
    items = [*_first_causes(error.errors())]
    problems = [_problem(item, model, file, node) for item in items[:_MAX_PROBLEMS]]
    problems.sort(key=lambda problem: problem.line or 0)
    if len(items) > _MAX_PROBLEMS:
        problems.append(Problem("has more problems; these come first", file))
    return problems


def _problem(
    item: ErrorDetails, model: type[BaseModel], file: str, node: yaml.Node | None
) -> Problem:
    kind, loc, value = item["type"], item["loc"], item["input"]
    where, allowed = ".".join(map(str, loc)), ""
    message = item["msg"].removeprefix("Value error, ").replace("Input should be ", "must be ", 1)
    found = "" if kind in ("missing", "extra_forbidden") else shorten(value)
    if _SECRET.search(f"{where} {found}"):  # a key where its variable's name belongs
        found = ""
    if kind == "extra_forbidden":
        message, allowed = _unknown_key(model, loc)
    elif kind == "literal_error":
        message += nearest(str(value), re.findall("'(.+?)'", message), 0.82)
    elif kind == "string_type" and isinstance(value, int | float | date):
        message = "must be text: put it in quotes"  # bare No, 1.0 and 2026-01-01 are none
    elif kind in ("tuple_type", "list_type"):
        message = "must be a list"
    return Problem(message, file, _line(node, loc), where, found, allowed, kind)


def _unknown_key(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[str, str]:
    """What is wrong with a key, and the keys that are allowed where none is near."""
    key, known = str(loc[-1]), _known_keys(model, loc)
    place = getattr(model, "place_of", lambda _: "")(key)
    near = f"; it is settled by {place}" if place else nearest(key, known)
    return f"is not a known key{near}", "" if near else ", ".join(known)


def _first_causes(errors: Sequence[ErrorDetails]) -> Iterator[ErrorDetails]:
    """Every error, without "too few entries" where the cause is that entries are wrong, and
    without "is missing" where a key beside it is spelt almost so."""
    for item in errors:
        loc, others = item["loc"], [other["loc"] for other in errors]
        if item["type"] == "too_short" and any(x[: len(loc)] == loc != x for x in others):
            continue
        unknown = [
            str(other["loc"][-1])
            for other in errors
            if other["type"] == "extra_forbidden" and other["loc"][:-1] == loc[:-1]
        ]
        if item["type"] == "missing" and get_close_matches(str(loc[-1]), unknown, n=1):
            continue
        yield item


def _line(node: yaml.Node | None, loc: tuple[int | str, ...]) -> int | None:
    """The line where the value at `loc` begins; where it is missing, that of its parent."""
    if node is None:
        return None
    key = node
    for part in loc:
        if (entry := _entries(node).get(part)) is None:
            break
        key, node = entry
    return int(key.start_mark.line) + 1


def node_below(node: yaml.Node | None, *loc: int | str) -> yaml.Node | None:
    """The part of a file's tree at `loc`; None where there is none."""
    for part in loc:
        _, node = _entries(node).get(part, (None, None))
    return node


@lru_cache(maxsize=64)
def _entries(node: yaml.Node | None) -> Mapping[int | str, tuple[yaml.Node, yaml.Node]]:
    """Key and value of every entry of a mapping, by the key; of a list each entry twice, by its
    place."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): (key, value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return {place: (entry, entry) for place, entry in enumerate(node.value)}
    return {}


def _known_keys(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The keys allowed at `loc`; none where that is a union."""
    here: Any = model
    for part in loc[:-1]:
        if not isinstance(part, int):
            annotation = getattr(getattr(here, "model_fields", {}).get(part), "annotation", None)
            here = _inner_model(annotation)
    return [field.alias or name for name, field in getattr(here, "model_fields", {}).items()]


def _inner_model(annotation: Any) -> Any:
    """The model inside `list[Model]`, `Model | None` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = [*filter(None, map(_inner_model, getattr(annotation, "__args__", ())))]
    return models[0] if len(models) == 1 else None
