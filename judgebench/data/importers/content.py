"""What a file holds, whatever its name: a zip archive, JSON, JSON lines or a table."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile, ZipFile

from judgebench.data.cells import FORBIDDEN, mark_forbidden
from judgebench.data.findings import Findings
from judgebench.errors import Problem, SetupError, some
from judgebench.files import open_bytes

_MARKED = "characters that no text may hold, replaced by U+FFFD"
_LONGEST_INTEGER = 300  # digits; what is longer is no float, either


@dataclass(frozen=True)
class Content:
    """`value` is the names in an archive, a value of JSON, a list of objects (`lines`), or the rows
    of a table by column (`table`). `left_out` counts what of it no file of ours may hold."""

    path: Path
    kind: Literal["zip", "json", "lines", "table"]
    value: Any
    left_out: Counter[str] = field(default_factory=Counter)

    def objects(self, *keys: str) -> list[dict[str, Any]]:
        """The objects of a list or of lines, if the first has all these keys; else none."""
        found = [self.value] if isinstance(self.value, dict) else self.value
        if self.kind not in ("json", "lines") or not isinstance(found, list) or not found:
            return []
        first = found[0]
        return found if isinstance(first, dict) and first.keys() >= set(keys) else []

    @property
    def in_words(self) -> str:
        """What there is, for an error message."""
        value = self.value
        if self.kind == "zip":
            return "a zip archive with " + (some(value, 5) or "nothing in it")
        if self.kind == "table":
            return f"a table with the columns {some(value[0])}"
        kind = "lines of JSON" if self.kind == "lines" else "JSON"
        if isinstance(value, list):
            kind, value = f"{kind}: a list of {len(value)}", value[0] if value else None
        if isinstance(value, dict):
            return f"{kind} with the keys {some(value, 12) or 'none'}"
        return kind

    def cleaned(self, value: Any) -> Any:
        """The value with a mark for each character that no text may hold, in keys as well. Raises
        SetupError where two keys of an object then are the same."""
        if isinstance(value, str):
            self.left_out[_MARKED] += len(FORBIDDEN.findall(value))
            return mark_forbidden(value)
        if isinstance(value, list):
            return list(map(self.cleaned, value))
        if not isinstance(value, dict):
            return value
        found = {self.cleaned(key): self.cleaned(one) for key, one in value.items()}
        if len(found) < len(value):
            raise self.fail("has keys that differ only in characters that no text may hold")
        return found

    def fail(self, message: str, line: int | None = None, **about: str) -> SetupError:
        """The error to raise about this file."""
        return SetupError(Problem(message, str(self.path), line, **about))


def open_content(path: Path) -> Content:
    """What the file holds. Raises SetupError where it is missing, empty, torn or no text."""
    found = _opened(path)
    try:
        return replace(found, value=found.cleaned(found.value))
    except RecursionError:
        raise found.fail("is nested too deeply") from None


def parse_json(text: str | bytes) -> Any:
    """The value in JSON; a number of so many digits that Python counts with none such is its
    text."""
    return json.loads(text, parse_int=_integer)


def _integer(text: str) -> int | str:
    return text if len(text) > _LONGEST_INTEGER else int(text)


def _opened(path: Path) -> Content:
    try:
        with open_bytes(path) as file:
            data = file.read()
    except OSError as error:
        raise SetupError(Problem(f"cannot be read: {error.strerror or error}", str(path))) from None
    if data.startswith(b"PK"):
        return Content(path, "zip", _names(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"is neither a zip archive nor text in UTF-8 (byte {error.start:,})"
        raise SetupError(Problem(message, str(path))) from None
    if not text.strip():
        raise SetupError(Problem("is empty", str(path)))
    if text.lstrip()[0] in "[{":
        return _json(path, text)
    return Content(path, "table", list(_rows(path, text)))


def _names(path: Path) -> list[str]:
    try:
        with ZipFile(path) as archive:
            return archive.namelist()
    except (BadZipFile, OSError):
        message = "is a damaged or incomplete zip archive: copy the file again"
        raise SetupError(Problem(message, str(path))) from None


def _json(path: Path, text: str) -> Content:
    try:
        return Content(path, "json", parse_json(text))
    except (ValueError, RecursionError) as error:
        whole = error
    lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    found, findings = [], Findings()
    for number, line in lines:
        try:
            found.append(parse_json(line))
        except (ValueError, RecursionError):
            findings.add("malformed", "is not JSON", (str(path), number), found=line)
    if found and isinstance(found[0], dict):
        if findings.errors:
            raise SetupError(findings.errors)
        return Content(path, "lines", found)
    torn_at = getattr(whole, "lineno", None)
    reason = getattr(whole, "msg", "is nested too deeply")
    raise SetupError(Problem(f"is not JSON, or not all of it: {reason}", str(path), torn_at))


def _rows(path: Path, text: str) -> Iterator[dict[str, str]]:
    csv.field_size_limit(2**31 - 1)
    reader = csv.DictReader(io.StringIO(text, newline=""), restval="", strict=True)
    try:
        any_row = False
        for row in reader:
            any_row = True
            if None in row:
                message = "has more cells than the header"
                raise SetupError(Problem(message, str(path), reader.line_num))
            yield {str(name): cell or "" for name, cell in row.items()}
    except csv.Error as error:
        raise SetupError(Problem(f"is no table: {error}", str(path), reader.line_num)) from None
    if not any_row:
        raise SetupError(Problem("holds no rows", str(path)))
