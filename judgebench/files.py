"""Find the files that come with judgebench: prompts, rubrics, tasks, adversarial sets, examples.

In a wheel they are in `judgebench/_shipped/`; in a checkout beside `pyproject.toml`. A path that
the user gives always wins over a shipped name.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from functools import lru_cache, partial
from io import BufferedReader, TextIOWrapper
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, from_json
from pydantic_core import to_json as pydantic_json

from judgebench.errors import DiskFailed, Problem, SetupError, nearest, raise_any, shorten

DECISION_RULE = "decision"  # its file lies among the rubrics, being written as they are

_PACKAGE = Path(__file__).resolve().parent


def shipped_folder(kind: str) -> Path:
    """The folder `kind` (`prompts`, `tasks`, `examples`, …) of this installation."""
    for base in (_PACKAGE / "_shipped", _PACKAGE.parent):
        if (base / kind).is_dir():
            return base / kind
    raise SetupError(f"this installation lacks its folder {kind}/: install judgebench again")


def shipped_names(kind: str, suffix: str) -> list[str]:
    """Names, without suffix, of the shipped files of a kind, sorted."""
    return sorted(p.name.removesuffix(suffix) for p in shipped_folder(kind).glob(f"*{suffix}"))


def is_file(path: Path) -> bool:
    """True where there is such a file; False for an impossible file name."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long a name, a name that holds a NUL
        return False


def at_home(name: str) -> Path:
    """The path of that name, with `~` expanded to the home folder."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def find_file(
    kind: str,
    name: str,
    suffix: str,
    relative_to: Path | None = None,
    meant: Sequence[str] = (),
) -> Path:
    """The file that `name` means: a path (relative to `relative_to`), else a shipped name.

    Raises SetupError that lists the shipped names: those that are meant here, else all of the kind.
    """
    path = at_home(name)
    for candidate in (path if relative_to is None else relative_to / path, path):
        if is_file(candidate):
            return candidate
    shipped = shipped_folder(kind) / f"{name}{suffix}"
    if "/" not in name and is_file(shipped):
        return shipped
    names = ", ".join(meant or shipped_names(kind, suffix))
    raise SetupError(
        f"there is no file {name!r}, and nothing shipped has that name; shipped: {names}"
    )


# Of a table, by column; raises SetupError.
ReadRows = Callable[[Path], Sequence[Mapping[str, str]]]

_MOST_TIMES, _FREE = 100, 1 << 24  # that a file may unpack to: times its size, and bytes anyway


def write_atomically(path: Path, content: bytes) -> None:
    """The file is the old one or the new one, never half of either."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Translates the system's errors about `path` into DiskFailed."""
    try:
        yield
    except OSError as error:
        raise DiskFailed(
            f"{path} cannot be written: {error.strerror or error}; "
            "all that was written before stays readable"
        ) from error


def check_new(path: Path) -> None:
    """Raises SetupError where the file is there already, or cannot be made."""
    if path.exists():
        raise SetupError(Problem("exists and is not overwritten", str(path)))
    if not os.access(next(filter(Path.exists, path.absolute().parents)), os.W_OK | os.X_OK):
        raise SetupError(Problem("cannot be written: its folder takes no file", str(path)))


@contextmanager
def all_or_nothing(folder: Path, paths: Collection[Path]) -> Iterator[None]:
    """Make the folder that files are written into; where anything fails, the files and what was
    made of the folder are gone again. Raises SetupError where a file is there already."""
    there = (str(path) for path in paths if path.exists())
    raise_any([Problem("exists and is not overwritten", path) for path in there])
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for path in paths:
            path.unlink(missing_ok=True)
        with suppress(OSError):  # another's file is in it
            for one in made:
                one.rmdir()
        raise


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSONL; the file is there whole or not at all."""
    write_atomically(path, "".join(map(to_line, rows)).encode("utf-8", "surrogatepass"))


def to_line(value: Mapping[str, Any]) -> str:
    """One line of JSONL."""
    try:
        return to_bytes(value).decode() + "\n"
    except ValueError:  # lone surrogates, which UTF-8 cannot hold
        return to_json(value, separators=(",", ":")) + "\n"


def to_bytes(value: Mapping[str, Any]) -> bytes:
    """Compact JSON, several times as fast as the standard library makes it.

    Raises ValueError for lone surrogates, and for what JSON cannot hold.
    """
    return pydantic_json(value, inf_nan_mode="constants")


def to_json(value: Mapping[str, Any], **style: Any) -> str:
    """JSON as people read it. Lone surrogates, which UTF-8 cannot hold, are escaped."""
    text = json.dumps(value, ensure_ascii=False, **style)
    return text if is_utf8(text) else json.dumps(value, **style)


def is_utf8(text: str) -> bool:
    """True where UTF-8 can hold the text: it has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Translates the system's errors about a file of judgebench's own into SetupError."""
    try:
        yield
    except OSError as error:
        raise SetupError(Problem(f"cannot be read: {error.strerror or error}", str(path))) from None


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every whole line; a torn last line is skipped.

    Raises SetupError where there is no such file, and for a line in the middle without a JSON
    object: that is damage, not a torn write.
    """
    if not path.is_file():
        raise SetupError(Problem("no such file", file=str(path)))
    for number, _, line in whole_lines(path):
        yield number, read_object(line, path, number)


def whole_lines(path: Path, start: int = 0) -> Iterator[tuple[int, int, bytes]]:
    """Number, offset and bytes of every line from the byte `start` on, numbered from there; a torn
    last one is skipped."""
    with read_errors(path), path.open("rb") as file:
        offset = file.seek(start)
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield number, offset, line
            offset += len(line)


def read_object(text: bytes, path: Path, number: int | None = None) -> dict[str, Any]:
    """The JSON object that `text` holds. Raises SetupError where it holds none."""
    try:
        value = from_json(text, cache_strings="keys")  # three times as fast as the standard library
    except ValueError:
        # What it refuses: lone surrogates, depth, other encodings, broken JSON.
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SetupError(Problem(f"is not JSON: {error}", str(path), number)) from None
    if not isinstance(value, dict):
        raise SetupError(Problem("is not a JSON object", str(path), number, found=shorten(value)))
    return value


def open_bytes(path: Path) -> BufferedReader:
    """The file, open for reading. Raises OSError, also for an impossible file name, and for what
    may have no end: devices and pipes."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return path.open("rb")
    except ValueError as error:  # the name holds a NUL
        raise OSError(str(error)) from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError("is a folder, not a file")
    raise OSError("is no regular file, such as a pipe: write its content into a file")


def check_unpacked(unpacked: int, packed: int) -> None:
    """Raise OSError where a packed file holds far more than files do: a few bytes can unpack
    without end."""
    if unpacked > max(_MOST_TIMES * packed, _FREE):
        raise OSError(
            f"unpacks to more than {_MOST_TIMES} times its size; if it holds so much, give it as "
            "plain CSV"
        )


def drop_torn_line(path: Path) -> int:
    """Cut off what follows the last newline, if anything; returns how many bytes that was."""
    if not path.is_file() or not (size := path.stat().st_size):
        return 0
    with path.open("rb+") as file:
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            end = content.rfind(b"\n") + 1
        file.truncate(end)
    return size - end


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


class StrictModel(BaseModel):
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
    message = message.partition(", unable to parse")[0]
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
    elif kind == "model_type":
        message = "must hold a mapping"
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
