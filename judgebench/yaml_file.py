"""Read a YAML file into a pydantic model; every problem is reported with file, line and field."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from functools import cache, partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails
from yaml.parser import ParserError
from yaml.reader import ReaderError
from yaml.scanner import ScannerError

from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.files import open_bytes, read_lines, read_object

Model = TypeVar("Model", bound=BaseModel)
_SECRET = re.compile(r"api_?key|token\b|secret|password|base_url|headers|extra_body", re.IGNORECASE)
_MERGE = "tag:yaml.org,2002:merge"
_NUMBERS = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_PLAIN = *_NUMBERS, "tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp"
_TEXT = "tag:yaml.org,2002:str"
# What the YAML package raises for the 31st of June, and for what is not of its tag (`!!bool x`).
_NO_VALUE = ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError
# What people write is a hundredth of this. Reading the most takes some seconds.
_MOST_CHARACTERS, _MOST_VALUES, _DEEPEST, _LONGEST_NUMBER = 1_000_000, 50_000, 100, 100
_MOST_PROBLEMS = 100
# Of pydantic's errors about a number that is one.
_BOUNDS = ("greater_than", "less_than", "int_from_float", "multiple_of", "finite_number")


class Strict(BaseModel):
    """A part of a file that people write. Unknown keys are refused; instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _BoundedLoader(yaml.SafeLoader):
    """Refuses a mapping with a duplicate key, of which YAML would silently keep the last, and what
    is too large once every alias (`*name`) is replaced by what it stands for.

    `parsed` is the text as another parser reads it, instead of the one in Python.
    """

    def __init__(self, text: str, parsed: Any = None) -> None:
        super().__init__(text if parsed is None else "")
        for name in () if parsed is None else ("check_event", "peek_event", "get_event"):
            setattr(self, name, getattr(parsed, name))
        self._values = self._characters = self._depth = 0
        self._sizes: dict[yaml.Node, tuple[int, int]] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        before, copied = (self._values, self._characters), self.check_event(yaml.AliasEvent)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _refused(f"nested more than {_DEEPEST} deep", event.start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        assert node is not None
        if copied and node not in self._sizes:
            raise _refused(f"*{event.anchor} stands inside of what it names", event.start_mark)
        length = len(node.value) if isinstance(node, yaml.ScalarNode) else 0
        values, characters = self._sizes[node] if copied else (1, length)
        self._values, self._characters = self._values + values, self._characters + characters
        self._sizes[node] = self._values - before[0], self._characters - before[1]
        if self._values > _MOST_VALUES or self._characters > _MOST_CHARACTERS:
            most = f"{_MOST_VALUES:,} values or {_MOST_CHARACTERS:,} characters"
            raise _refused(f"more than {most}, aliases filled in", event.start_mark)
        if length > _LONGEST_NUMBER and node.tag in _NUMBERS:
            raise _refused(f"a number of more than {_LONGEST_NUMBER} characters", event.start_mark)
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == _MERGE:
                continue
            if key_node.tag in _PLAIN:  # a key is a text, as it is written
                key_node.tag = _TEXT
            key = self.construct_object(key_node)
            if key in seen:
                raise _refused(f"duplicate key {key!r}", key_node.start_mark)
            seen.add(key)
        return node


def _refused(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


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
    if len(text) > _MOST_CHARACTERS:
        raise SetupError(
            Problem(
                f"is too large for YAML that people write: {len(text):,} characters",
                file,
                allowed=f"at most {_MOST_CHARACTERS:,}",
            )
        )
    try:
        if yaml.__with_libyaml__:  # many times as fast, but says less of what is not YAML
            try:
                return _loaded(_BoundedLoader(text, yaml.CSafeLoader(text)))
            except (ParserError, ReaderError, ScannerError):
                pass
        return _loaded(_BoundedLoader(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        message = getattr(error, "problem", None) or str(error)
        line = mark.line + first_line if mark else None
        raise SetupError(Problem(f"is not YAML: {message}", file=file, line=line)) from None
    except _NO_VALUE as error:
        raise SetupError(Problem(f"cannot be read as YAML: {error}", file=file)) from None


def _loaded(loader: yaml.SafeLoader) -> tuple[Any, yaml.Node | None]:
    try:
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node
    finally:
        loader.dispose()


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

    @cache
    def inside(of: yaml.MappingNode) -> dict[Any, yaml.Node]:
        return {name.value: found for name, found in of.value if isinstance(name, yaml.ScalarNode)}

    bounds = {(e["loc"][:-1], repr(e["input"])) for e in errors if e["type"].startswith(_BOUNDS)}
    for error in errors:
        if error["type"] != "string_type" or not isinstance(error["input"], int | float | date):
            continue
        if (error["loc"][:-1], repr(error["input"])) in bounds:
            continue  # a number or a text, and the number is out of bounds
        above, at, inner, below = copy, None, copy, node
        for part in error["loc"]:  # of which some are names of types
            if isinstance(below, yaml.MappingNode) and part in inside(below) and part in inner:
                above, at, inner, below = inner, part, inner[part], inside(below)[part]
            elif isinstance(below, yaml.SequenceNode) and isinstance(part, int):
                above, at, inner, below = inner, part, inner[part], below.value[part]
        if isinstance(below, yaml.ScalarNode):
            above[at] = below.value
    return copy


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
    problems: list[Problem] = []
    for item in _first_causes(error):
        if len(problems) == _MOST_PROBLEMS:
            return [*problems, Problem("has more problems; these come first", file)]
        where = ".".join(str(part) for part in item["loc"])
        found = "" if item["type"] == "missing" else shorten(item["input"])
        if _SECRET.search(f"{where} {found}"):  # a key where its variable's name belongs
            found = ""
        message = item["msg"].removeprefix("Value error, ")
        message = message.replace("Input should be ", "must be ", 1)
        allowed = ""
        if item["type"] == "extra_forbidden":
            key, known = str(item["loc"][-1]), _known_keys(model, item["loc"])
            place = getattr(model, "place_of", lambda _: "")(key)
            near = f"; it is settled by {place}" if place else _near(key, known)
            message, found = f"is not a known key{near}", ""
            allowed = "" if near else ", ".join(known)
        if item["type"] == "literal_error":
            message += _near(str(item["input"]), re.findall("'(.+?)'", message), 0.82)
        if item["type"] == "string_type" and isinstance(item["input"], int | float | date):
            message = "must be text: put it in quotes"  # bare No, 1.0 and 2026-01-01 are none
        if item["type"] in ("tuple_type", "list_type"):
            message = "must be a list"
        line = _line(node, item["loc"])
        problems.append(Problem(message, file, line, where, found, allowed, item["type"]))
    return sorted(problems, key=lambda problem: problem.line or 0)


def _first_causes(error: ValidationError) -> Iterator[ErrorDetails]:
    """Every error, without "too few entries" where the cause is that entries are wrong, and
    without "is missing" where a key beside it is spelt almost so."""
    places = [item["loc"] for item in error.errors()]
    unknown = [item["loc"] for item in error.errors() if item["type"] == "extra_forbidden"]
    for item in error.errors():
        *above, key = item["loc"] or ("",)
        n = len(item["loc"])
        inside = (place for place in places if len(place) > n and place[:n] == item["loc"])
        beside = (str(place[-1]) for place in unknown if list(place[:-1]) == above)
        if item["type"] == "missing" and get_close_matches(str(key), beside, n=1):
            continue
        if item["type"] != "too_short" or not any(inside):
            yield item


def _line(node: yaml.Node | None, loc: tuple[int | str, ...]) -> int | None:
    """The line where the value at `loc` begins; where it is missing, that of its parent."""
    if node is None:
        return None
    mark = node.start_mark
    for part in loc:
        found = _entry(node, part)
        if found is None:
            break
        key, node = found
        mark = key.start_mark
    return int(mark.line) + 1


def node_below(node: yaml.Node | None, *loc: int | str) -> yaml.Node | None:
    """The part of a file's tree at `loc`; None where there is none."""
    for part in loc:
        found = _entry(node, part)
        if found is None:
            return None
        node = found[1]
    return node


def _entry(node: yaml.Node | None, part: int | str) -> tuple[yaml.Node, yaml.Node] | None:
    """Key and value of an entry of a mapping; of a list, the entry twice."""
    if isinstance(node, yaml.MappingNode):
        return next(((k, v) for k, v in node.value if k.value == str(part)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
        return next(((entry, entry) for entry in node.value[part : part + 1]), None)
    return None


def _known_keys(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The keys allowed at `loc`; none where that is a union."""
    here: Any = model
    for part in loc[:-1]:
        if isinstance(part, int):
            continue
        here = getattr(here, "model_fields", {}).get(part)
        here = _inner_model(getattr(here, "annotation", None))
    return [field.alias or name for name, field in getattr(here, "model_fields", {}).items()]


def _near(written: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    near = get_close_matches(written, known, n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""


def _inner_model(annotation: Any) -> Any:
    """The model inside `list[Model]`, `Model | None` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = [_inner_model(arg) for arg in getattr(annotation, "__args__", ())]
    models = [m for m in found if m is not None]
    return models[0] if len(models) == 1 else None
