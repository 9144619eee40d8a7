"""A corpus of texts: rows of a table, or text files of a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgebench.data.findings import Findings
from judgebench.data.open_table import SUFFIXES
from judgebench.data.source_rows import source_rows
from judgebench.errors import Problem, SetupError


@dataclass(frozen=True, slots=True)
class Document:
    """One text. `id` is its file, with the line where the file is a table."""

    id: str
    text: str


@dataclass(frozen=True)
class Corpus:
    """Documents in the order of their source, no text twice and none empty.

    `duplicates` and `empty` count what was left out for that.
    """

    documents: tuple[Document, ...] = ()
    duplicates: int = 0
    empty: int = 0

    @property
    def content_hash(self) -> str:
        """Sixteen hex digits of the SHA-256 of the texts in their order; ids do not count."""
        digest = hashlib.sha256()
        for document in self.documents:
            content = document.text.encode("utf-8", "surrogatepass")
            digest.update(len(content).to_bytes(8, "big"))
            digest.update(content)
        return digest.hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        """What it holds, for a manifest."""
        return {
            "documents": len(self.documents),
            "content": self.content_hash,
            "duplicates": self.duplicates,
            "empty": self.empty,
        }


def read_corpus(path: Path, column: str = "text") -> Corpus:
    """The texts in `column` of a table (JSONL, CSV, ..., each also with .gz), or of the `.txt`
    files in a folder and in the folders below it, in the order of their paths.

    Texts are stripped. Raises SetupError with every problem: no such file or column, cells without
    a text, bytes that are not UTF-8, a corpus without a text.
    """
    problems: list[Problem] = []
    found = _files(path, problems) if path.is_dir() else _rows(path, column, problems)
    documents: list[Document] = []
    seen: set[str] = set()
    duplicates = empty = 0
    for document in found:
        if not document.text:
            empty += 1
        elif document.text in seen:
            duplicates += 1
        else:
            seen.add(document.text)
            documents.append(document)
    if not documents and not problems:
        where, allowed = column, "at least one row with a text in this column"
        if path.is_dir():
            where, allowed = "", "a folder with .txt files that hold text"
        held = f"{empty:,} empty texts" if empty else "nothing"
        problem = Problem("the corpus holds no text", str(path), None, where, held, allowed)
        problems.append(problem)
    if problems:
        raise SetupError(problems)
    return Corpus(tuple(documents), duplicates, empty)


def _files(folder: Path, problems: list[Problem]) -> Iterator[Document]:
    """A document for each text file; what cannot be read is added to `problems`."""
    paths = (p for p in folder.rglob("*") if p.suffix.lower() == ".txt" and p.is_file())
    for path in sorted(paths, key=lambda p: p.relative_to(folder).as_posix()):
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            message = f"is not UTF-8: {error.reason} at byte {error.start:,}"
            problems.append(Problem(message, str(path), allowed="UTF-8"))
        except OSError as error:
            problems.append(Problem(f"cannot be read: {error.strerror}", str(path)))
        else:
            yield Document(path.relative_to(folder).as_posix(), text.strip())


def _rows(path: Path, column: str, problems: list[Problem]) -> Iterator[Document]:
    """A document for each row of a table; what is wrong with it is added to `problems`."""
    if not path.exists():
        allowed = f"a folder of .txt files, or a file that ends in {', '.join(SUFFIXES)}"
        problems.append(Problem("no such file or folder", str(path), allowed=f"{allowed} (or .gz)"))
        return
    findings = Findings()
    for row in source_rows(path, (column,), findings):
        cell = row.cells[column]
        if isinstance(cell, str):
            yield Document(f"{path.name}:{row.line}", cell.strip())
        else:
            found = "a list" if isinstance(cell, tuple) else "a nested value"
            message = f"holds {found}, where one text was expected"
            findings.add("nested_value", message, (row.file, row.line), column)
    # The table passes over rows without any text.
    yield from [Document(path.name, "")] * findings.times("blank_row")
    problems.extend(findings.errors)
